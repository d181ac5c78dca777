"""Answers in logs of engines: the lines that vLLM and SGLang write, and what else is in such files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolwire.reparse.engine_logs import logged_answer
from toolwire.reparse.reread_answers import ReparseOptions, reread
from toolwire.reparse.row_sources import batches

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "L\'Aquila"}}\n</tool_call>'
VLLM = "INFO 11-20 10:02:11 [logger.py:72] Generated response chatcmpl-1{}: output: {!r}, {}finish_reason: stop"
SGLANG = "[2026-11-20 10:02:11] Finish: obj=GenerateReqInput(rid='1', text={!r}, stream=False), out={}"


def row_of(line: str) -> Any:
    row = logged_answer(f"{line}\n".encode())
    return None if row is None else json.loads(row)


@pytest.mark.parametrize("text", [CALL, "", "plain", "both ' and \"", "\\n is no line end\n", "\u96e8\x00"])
@pytest.mark.parametrize("ids", ["", "output_token_ids: [1, 2], ", "output_token_ids: None, "])
@pytest.mark.parametrize("kind", ["", " (streaming complete)"])
def test_answers_of_vllm(text: str, ids: str, kind: str) -> None:
    assert row_of(VLLM.format(kind, text, ids)) == {"text": text}


@pytest.mark.parametrize("text", [CALL, "", "an answer, out={'text': 'no'}", "both ' and \""])
@pytest.mark.parametrize("prompt", ["Weather?", "say , out={'text': 'forged'} now", "it's", 'a "b" c'])
def test_answers_of_sglang(text: str, prompt: str) -> None:
    out = repr({"text": text, "output_ids": [1, 2], "meta_info": {"id": "1", "finish_reason": {"type": "stop"}}})
    assert row_of(SGLANG.format(prompt, out)) == {"text": text}


def test_answers_of_sglang_as_json() -> None:
    out = {"text": CALL, "meta_info": {"id": "1"}}
    event = {"timestamp": "t", "event": "request.finished", "rid": "1", "obj": {"text": "Weather?"}, "out": out}
    assert row_of(json.dumps(event)) == out
    assert row_of(json.dumps({**event, "event": "request.received"})) is None


@pytest.mark.parametrize(
    "line",
    [
        "",
        'INFO:     127.0.0.1:40712 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        VLLM.format(" (streaming delta)", "par", ""),
        "INFO Generated response x: output: None, finish_reason: stop",
        "INFO Generated response x: output: 'never closed",
        "[2026-11-20] Receive: obj=GenerateReqInput(rid='1', text='a')",
        "[2026-11-20] Finish: obj=GenerateReqInput(rid='1', text='a, out={')",
    ],
)
def test_other_lines_are_passed_over(line: str) -> None:
    assert row_of(line) is None


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("[{'text': 'a'}, {'text': 'b'}]", "the line has 2 answers"),
        ("{'meta_info': {'id': '1'}}", "the text is not logged"),
        ("{'text': 'abc' ... 'xyz', 'meta_info': {}}", "--log-requests-level 3"),
        ("{'text': '\\xg'}", "not a literal of Python"),
    ],
)
def test_answers_that_cannot_be_used_are_named(out: str, reason: str) -> None:
    assert reason in row_of(SGLANG.format("a", out))["error"]


def test_a_long_line_is_read_in_linear_time() -> None:
    for line in ("Finish: obj=" + "'\\" * 200_000, "Generated response a: output: '" + "\\'" * 200_000, "'" * 300_000):
        assert row_of(line) is None


def test_a_log_is_continued_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    noise = "INFO starting\n"
    path.write_text(noise + VLLM.format("", CALL, "") + "\n" + noise * 3 + json.dumps({"text": "b"}) + "\n", "utf-8")
    (batch,) = batches(path, 0, 0)
    assert [json.loads(line)["text"] for line in batch.lines] == [CALL, "b"]
    assert list(batches(path, batch.end, 2)) == []
    with path.open("a", encoding="utf-8") as file:
        file.write(noise + VLLM.format("", "c", "") + "\n")
    (more,) = batches(path, batch.end, 2)
    assert (more.first, [json.loads(line)["text"] for line in more.lines]) == (3, ["c"])
    result = reread(batch.lines, ReparseOptions(format="hermes"))
    assert sorted(result.counts.items()) == [(("", "none"), 1), (("", "read"), 1)]

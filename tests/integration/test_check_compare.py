"""`toolwire check --compare` with two servers on loopback: a reference, and a vendor that makes mistakes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.servers import Answer, Asked, serving

from toolwire.cli import run

PARAMETERS = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}
TOOL = {"type": "function", "function": {"name": "wait", "parameters": PARAMETERS}}
TEXTS = ["call 1", "call, broken", "call 3", "call 4", "call 5", "call, silent", "call, refused", "words"]
KEY = "secret-key-of-the-test"


@contextmanager
def vendor(*mistakes: str, before: Callable[[str], None] = lambda text: None) -> Iterator[str]:
    """Serve a model that calls if the text says so; a mistake in the text happens if this vendor makes it.

    Args:
        mistakes: the mistakes that this vendor makes.
        before: called with each text before it is answered.
    """

    def answer(asked: Asked) -> Answer:
        if asked.method == "GET":
            return Answer(json.dumps({"data": [{"id": "kimi"}]}).encode())
        text = json.loads(asked.body)["messages"][-1]["content"]
        before(text)
        mistake = next((mistake for mistake in mistakes if mistake in text), "")
        if mistake == "refused":
            return Answer(json.dumps({"error": {"message": f"no quota for {KEY}"}}).encode(), status=400)
        message: dict[str, Any] = {"role": "assistant", "content": "words"}
        calls = text.startswith("call") and mistake != "silent"
        if calls:
            arguments = json.dumps({"days": f"one {KEY}" if mistake == "broken" else 1})
            function = {"name": "wait", "arguments": arguments}
            message = {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": function}],
            }
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return Answer(json.dumps({"id": "a", "object": "chat.completion", "choices": [choice]}).encode())

    with serving(answer, get=True) as url:
        yield url


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEST_KEY", KEY)
    bodies = [{"model": "x", "messages": [{"role": "user", "content": text}], "tools": [TOOL]} for text in TEXTS]
    (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, bodies)))
    return tmp_path


def profiles(folder: Path, maker: str, other: str) -> None:
    lines = [
        f'[profiles.{name}]\nprovider = "openai_compatible"\nmodel = "kimi"\nurl = "{url}/v1"\nkey_env = "TEST_KEY"'
        for name, url in (("maker", maker), ("vendor", other))
    ]
    (folder / "toolwire.toml").write_text("\n".join(lines) + "\n")


def test_a_vendor_is_compared_with_the_maker(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with vendor() as maker, vendor("broken", "silent", "refused") as other:
        profiles(folder, maker, other)
        arguments = ["check", "vendor", "--compare", "maker", "--requests", "requests.jsonl"]
        assert run([*arguments, "--json", "--report", "report.json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert run(arguments) == 0
        table = capsys.readouterr().out
        assert run([*arguments, "--fail-under", "0.95"]) == 1
        assert run([*arguments, "--fail-under", "0.5"]) == 0
    assert result["requests"] == 8
    assert result["errors"] == {"reference": 0, "compared": 1}
    assert (result["schema_accuracy"]["compared"]["count"], result["schema_accuracy"]["compared"]["total"]) == (4, 5)
    similarity = result["trigger_similarity"]
    assert (similarity["both"], similarity["only_reference"], similarity["only_compared"]) == (5, 1, 0)
    assert similarity["f1"] == pytest.approx(10 / 11)
    assert "F1 91 %" in table and "80 %, 4 of 5" in table
    assert "line 2: wait: " in table and "line 7: " in table
    report = (folder / "report.json").read_text()
    assert len(json.loads(report)["answers"]) == 8
    assert KEY not in report + table + json.dumps(result)


def test_equal_vendors_agree(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with vendor() as maker:
        # Without --requests, its own set is sent; this model answers all of that in words.
        assert (
            run(
                [
                    "check",
                    f"{maker}/v1",
                    "--compare",
                    f"{maker}/v1",
                    "--requests",
                    "requests.jsonl",
                    "--fail-under",
                    "1",
                ]
            )
            == 0
        )
        assert run(["check", f"{maker}/v1", "--compare", f"{maker}/v1", "--fail-under", "1"]) == 1
    assert "no endpoint called" in capsys.readouterr().out


def test_an_endpoint_without_answers_leaves_a_report_of_the_other(folder: Path) -> None:
    with vendor() as maker:
        profiles(folder, maker, "http://127.0.0.1:1")
        assert run(["check", "vendor", "--compare", "maker", "--requests", "requests.jsonl", "--report", "r.json"]) == 2
    report = json.loads((folder / "r.json").read_text())
    assert report["errors"] == {"reference": 0, "compared": 8}
    assert [pair["reference"]["is_called"] for pair in report["answers"]] == [True] * 7 + [False]


def test_an_interruption_writes_the_answers_so_far(folder: Path) -> None:
    is_fifth_asked, goes_on, asked = threading.Event(), threading.Event(), threading.Semaphore(0)

    def slow(text: str) -> None:
        number = TEXTS.index(text)
        asked.release()
        if number == 4:
            is_fifth_asked.set()
        if number == 0:
            is_fifth_asked.wait(30)  # the second request is answered before the first one
        elif number > 1:
            goes_on.wait(30)

    with vendor() as maker, vendor("broken", before=slow) as other:
        profiles(folder, maker, other)
        options = ("--compare", "maker", "--requests", "requests.jsonl", "--report", "report.json")
        command = (sys.executable, "-m", "toolwire", "check", "vendor", *options)
        # In a session of its own, as at a terminal: the background of a shell may ignore the signal.
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
            for _ in range(6):  # two answers, and four requests at the same time that get none
                assert asked.acquire(timeout=30)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=30)
            goes_on.set()
    assert process.returncode == 130
    assert errors == "toolwire: the check was interrupted with 6 of 8 requests left\n"
    written = (folder / "report.json").read_text()
    assert "line 2" in written and "wait: " in written and KEY not in written
    report = json.loads(written)
    assert [answer["request"] for answer in report["answers"]] == ["line 1", "line 2"]
    assert (report["requests"], report["requests_left"]) == (2, 6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail-under", "0.5"], "--fail-under belongs to --compare"),
        (["--requests", "requests.jsonl"], "--requests belongs to --compare"),
        (["--compare", "maker", "--smoke"], "--smoke belongs to the probes"),
        (["--compare", "maker", "--junit", "x.xml"], "--junit belongs to the probes"),
        (["--compare", "makr"], "has no profile 'makr'; did you mean maker?"),
        (["--compare", "maker", "--requests", "none.jsonl"], "none.jsonl: No such file"),
        (["--compare", "maker", "--requests", "requests.jsonl"], "kimi at http://127.0.0.1:1/v1 answered no request"),
    ],
)
def test_wrong_usage(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    with vendor() as maker:
        profiles(folder, maker, "http://127.0.0.1:1")
        assert run(["check", "vendor", *arguments]) == 2
    assert message in capsys.readouterr().err

"""`toolwire eval`: a suite asked of models in this process and of a server, judged, reported and judged again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.integration.servers import Answer, Asked, serving
from tests.unit.evaluation.scripted_models import PARIS, TOOL, CountedModel, counted, refused
from tests.unit.evaluation.small_leaderboard import leaderboard

import toolwire
from toolwire import ParsedResponse, ToolCall, Usage
from toolwire.agent.model_pool import Models
from toolwire.cli import run
from toolwire.evaluation.readings import READINGS
from toolwire.wire.prompt_styles import DEFAULT_STYLE

__all__ = ["counted", "leaderboard"]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<script>alert(1)</script></pre><img src=x onerror=alert(2)>\u202e{{7*7}}\x1b[31m"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "200")
    rows = [
        {"id": "paris", "question": "Weather in Paris?", "tools": [TOOL],
         "calls": [{"name": "get_weather", "arguments": {"city": ["Paris"]}}]},
        {"id": "rome", "question": "Weather in Rome?", "tools": [TOOL],
         "calls": [{"name": "get_weather", "arguments": {"city": ["Rome"]}}]},
        {"id": "joke", "question": "Tell me a joke.", "tools": [TOOL], "refusal": True},
    ]  # fmt: skip
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (tmp_path / "tool.json").write_text(json.dumps(TOOL), "utf-8")
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    return tmp_path


def evaluate(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[Any, str]:
    """Return the report, or None, and what was written to standard error."""
    assert run(["eval", *arguments, "--json"]) == status
    captured = capsys.readouterr()
    return json.loads(captured.out) if captured.out else None, captured.err


def column(report: Any, name: str) -> Any:
    return next(figures for figures in report["columns"] if figures["name"] == name)


LOCAL = ("mine.jsonl", "--model", "m.gguf", "-f", "hermes")


def test_a_suite_is_asked_judged_and_reported(counted: CountedModel, capsys: pytest.CaptureFixture[str]) -> None:
    report, _ = evaluate(capsys, *LOCAL, "-f", "pythonic")
    assert sorted(report["questions"]) == ["joke", "paris", "rome"]
    names = [figures["name"] for figures in report["columns"]]
    assert len(names) == 8 and names[0] == "m.gguf · hermes · strict"
    figures = column(report, "m.gguf · hermes · whole_message")
    assert (figures["right"]["count"], figures["right"]["total"]) == (1, 2)
    assert (figures["well_formed"]["count"], figures["irrelevance"]["count"]) == (2, 0)
    assert figures["faults"] == {"value": 1, "unwanted_call": 1}
    assert figures["repairs"] == {"fallback": 3}
    assert figures["outcomes"] == {"answered": 3}
    strict = column(report, "m.gguf · hermes · strict")
    assert (strict["right"]["count"], strict["irrelevance"]["count"]) == (0, 1)
    test = next(t for t in report["comparisons"] if t["first"].endswith("strict") and t["second"].endswith("message"))
    assert (test["questions"], test["only_first"], test["only_second"], test["p"]) == (3, 1, 1, 1.0)
    wrong = next(answer for answer in report["wrong"] if answer["question"] == "rome")
    assert wrong["text"] == PARIS and wrong["calls"] == [["get_weather", {"city": "Paris"}]]
    assert len(counted.prompts) == 6


@pytest.mark.usefixtures("counted")
def test_the_table_is_complete_in_a_terminal_of_eighty_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"COLUMNS": "80", "FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    assert run(["eval", *LOCAL]) == 0
    lines = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 5 * len(READINGS)
    assert "whole_message" in "".join(lines) and "…" not in "".join(lines)


def in_hermes(name: str, **arguments: Any) -> str:
    return toolwire.render_calls([ToolCall(name, arguments)], format="hermes")


def test_a_conversation_is_held_turn_by_turn_and_continued(
    counted: CountedModel, leaderboard: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(last: str) -> str:
        if "Open a ticket" in last:
            return in_hermes("open_ticket", title="lamp")
        if "List them" in last:
            return in_hermes("list_tickets")
        return "Done."

    counted.answer = answer
    suite = ("bfcl:multi_turn_base,multi_turn_miss_func", "--model", "m.gguf", "-f", "hermes")
    report, _ = evaluate(capsys, *suite)
    (figures,) = report["columns"]
    assert figures["name"] == "m.gguf · hermes · whole_message"
    assert (figures["right"]["count"], figures["right"]["total"]) == (1, 2)
    assert figures["faults"] == {"no_call": 1}  # in the turn that offers more tools
    # Each turn is asked until there is no more call, and the model reads what its calls returned.
    texts = ["\n".join(str(message["content"]) for message in prompt) for prompt in counted.prompts]
    assert any('"tickets": ["1", "2"]' in text for text in texts)
    assert any("more functions" in text for text in texts)
    asked = len(counted.prompts)
    again, _ = evaluate(capsys, *suite)
    assert again["columns"][0]["right"] == figures["right"]
    assert len(counted.prompts) == asked
    rescored, _ = evaluate(capsys, "--rescore", "evaluation")
    assert rescored["columns"][0]["faults"] == figures["faults"]


def test_a_conversation_without_end_is_wrong(
    counted: CountedModel, leaderboard: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counted.answer = lambda last: in_hermes("list_tickets")
    report, _ = evaluate(capsys, "bfcl:multi_turn_base", "--model", "m.gguf", "-f", "hermes")
    assert report["columns"][0]["faults"] == {"call_count": 1}
    assert len(counted.prompts) == 21


def test_prompts_are_compared(counted: CountedModel, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('before_tools = "Tools of mine:"\nbefore_example = "So:"\n')
    options = ("--reading", "strict", "--prompt", DEFAULT_STYLE, "--prompt", "own.toml")
    report, _ = evaluate(capsys, *LOCAL, *options)
    names = [figures["name"] for figures in report["columns"]]
    assert names == ["m.gguf · hermes · strict", "m.gguf · hermes · prompt own.toml · strict"]
    assert [test["questions"] for test in report["comparisons"]] == [3]
    systems = [prompt[0]["content"] for prompt in counted.prompts]
    assert sum("Tools of mine:" in system for system in systems) == 3 and len(systems) == 6
    assert "prompt own.toml" in (tmp_path / "evaluation" / "report.html").read_text("utf-8")
    assert evaluate(capsys, *LOCAL, "--prompt", "nowhere", status=2)[1].startswith("toolwire: there is no prompt style")


def test_the_table_is_shown(counted: CountedModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", *LOCAL, "--reading", "whole_message"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "m.gguf · hermes · whole_message\t50 %\t1 of 2 (9 % to 91 %)\t100 %\t0 %\t0\n"
    assert captured.err == "The report: evaluation/report.html\n"


KILLED = """
import os, signal, sys
import toolwire.evaluation.inspect_model as provider
from tests.unit.evaluation.scripted_models import PARIS, CountedModel
from toolwire.cli import main

number = int(sys.argv.pop(1))

def answer(question):
    if len(model.prompts) == 2:
        os.kill(os.getpid(), number)
        return None
    return PARIS

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for processes in the background
model = CountedModel(answer)
provider.load_shared = lambda name: model
main()
"""


@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        (signal.SIGKILL, -signal.SIGKILL, ""),
        (signal.SIGINT, 130, "toolwire: the evaluation was interrupted; the same command continues it\n"),
    ],
    ids=["killed", "interrupted"],
)
def test_an_evaluation_that_was_killed_or_interrupted_continues(
    number: int, status: int, message: str, counted: CountedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(int(number)), "eval", *LOCAL]
    killed = subprocess.run(command, env=environment, check=False, timeout=120, capture_output=True, text=True)
    assert (killed.returncode, killed.stderr) == (status, message)
    report, _ = evaluate(capsys, *LOCAL)
    assert column(report, "m.gguf · hermes · whole_message")["outcomes"] == {"answered": 3}
    assert len(counted.prompts) == 2  # the first answer was stored before the process was killed
    rescored, _ = evaluate(capsys, "--rescore", "evaluation")
    assert rescored["columns"] == report["columns"]


def test_the_same_answers_are_judged_again(
    counted: CountedModel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(capsys, *LOCAL)
    asked = len(counted.prompts)
    report, _ = evaluate(capsys, "--rescore", "evaluation", "--out", "again")
    assert report["changed"] == [] and len(report["columns"]) == 4
    parse = toolwire.parse

    def lenient(text: str, **options: Any) -> ParsedResponse:
        return parse(text.replace("Paris", "Rome"), **options)

    monkeypatch.setattr("toolwire.evaluation.readings.parse", lenient)
    report, _ = evaluate(capsys, "--rescore", "evaluation", "--reading", "whole_message", "--out", "again")
    assert len(counted.prompts) == asked
    changes = [(change["question"], change["right"], change["fault"]) for change in report["changed"]]
    assert sorted(changes) == [
        ("paris", False, "the argument city is 'Rome'; acceptable: ['Paris']"),
        ("rome", True, ""),
    ]
    assert "2 verdicts differ" in Path("again/report.md").read_text("utf-8")


def test_a_timeout_is_neither_right_nor_wrong(counted: CountedModel, capsys: pytest.CaptureFixture[str]) -> None:
    counted.answer = lambda question: None if "Rome" in question else PARIS
    report, _ = evaluate(capsys, *LOCAL, "--timeout", "0.2")
    figures = column(report, "m.gguf · hermes · whole_message")
    assert figures["outcomes"] == {"answered": 2, "timeout": 1}
    assert (figures["right"]["count"], figures["right"]["total"]) == (1, 1)


def test_a_limit_ends_the_evaluation(counted: CountedModel, capsys: pytest.CaptureFixture[str]) -> None:
    report, error = evaluate(capsys, *LOCAL, "--max-seconds", "0", status=1)
    assert report is None
    assert "there is no answer to report on: the time limit of 0 seconds was reached" in error


def test_a_broken_row_is_named_and_the_rest_is_asked(
    counted: CountedModel, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    with (here / "mine.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n{broken\n")
    report, error = evaluate(capsys, *LOCAL)
    assert "mine.jsonl, line 4: " in error and "the other rows are asked" in error
    assert len(report["questions"]) == 3 and report["broken"][0]["place"] == "mine.jsonl, line 4"
    rescored, _ = evaluate(capsys, "--rescore", "evaluation")
    assert rescored["broken"] == report["broken"]


def test_a_row_that_was_mended_is_not_broken_in_a_later_report(
    counted: CountedModel, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    questions = (here / "mine.jsonl").read_text("utf-8")
    (here / "mine.jsonl").write_text(questions + "{broken\n", "utf-8")
    evaluate(capsys, *LOCAL)
    (here / "mine.jsonl").write_text(questions, "utf-8")
    evaluate(capsys, *LOCAL)
    rescored, _ = evaluate(capsys, "--rescore", "evaluation")
    assert rescored["broken"] == [] and len(rescored["questions"]) == 3


class Elements(HTMLParser):
    """The names of the elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_hostile_text_is_text_in_every_report(
    counted: CountedModel, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    hostile = {
        "id": HOSTILE,
        "group": HOSTILE,
        "question": HOSTILE,
        "tools": [TOOL],
        "calls": [{"name": "get_weather", "arguments": {"city": [HOSTILE]}}],
    }
    (here / "mine.jsonl").write_text(json.dumps(hostile), "utf-8")
    counted.answer = lambda question: HOSTILE
    evaluate(capsys, *LOCAL)
    page = Path("evaluation/report.html").read_text("utf-8")
    elements = Elements()
    elements.feed(page)
    assert "script" not in elements.names and "img" not in elements.names
    assert not {name for name in elements.attributes if name.startswith("on")}
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 3
    assert "\u202e" not in page and "\x1b" not in page and "{{7*7}}" in page
    assert 'content="default-src &#39;none&#39;' in page or "default-src 'none'" in page
    assert "http://" not in page.replace("http://www.w3.org/", "") and "https://" not in page
    markdown = Path("evaluation/report.md").read_text("utf-8")
    assert "<script" not in markdown and "\x1b" not in markdown


def answering(request: Asked) -> Answer:
    api = toolwire.get_api("openai_chat")
    question = json.loads(request.body)["messages"][-1]["content"]
    call = ToolCall("get_weather", {"city": "Rome" if "Rome" in question else "Paris"}, id="call_1")
    calls = () if "joke" in question else (call,)
    response = ParsedResponse(
        content="" if calls else "No.",
        tool_calls=calls,
        parts=calls,
        finish_reason=toolwire.FinishReason.TOOL_CALLS if calls else toolwire.FinishReason.STOP,
        usage=Usage(20, 5),
    )
    return Answer(b"".join(api.encode_stream(toolwire.replay(response), model="m")), content_type="text/event-stream")


def test_a_prompt_style_makes_no_columns_of_native_calls(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(answering) as url:
        server = ("mine.jsonl", "--model", "m", "--base-url", url, "--reading", "strict", "--prompt", "brief")
        report, _ = evaluate(capsys, *server, "-f", "native", "-f", "hermes", "--prompt", DEFAULT_STYLE)
        _, error = evaluate(capsys, *server, status=2)
    names = [figures["name"] for figures in report["columns"]]
    assert names == [f"m at {url} · {way}" for way in ("native", "hermes · prompt brief · strict", "hermes · strict")]
    assert error == "toolwire: --prompt is for models of text: name a --format, because native calls need no prompt\n"


def test_a_server_with_fields_for_calls(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Models] = []
    close = Models.__aexit__

    async def record_close(models: Models, *_: object) -> None:
        closed.append(models)
        await close(models)

    monkeypatch.setattr(Models, "__aexit__", record_close)
    with serving(answering) as url:
        report, _ = evaluate(capsys, "mine.jsonl", "--model", "m", "--base-url", url)
    assert len(closed) == 2  # those that show whether the server can be asked, and those that ask it
    (figures,) = report["columns"]
    assert figures["name"] == f"m at {url} · native"
    assert (figures["right"]["count"], figures["irrelevance"]["count"]) == (2, 1)
    assert (figures["input_tokens"], figures["output_tokens"], figures["estimated"]) == (20.0, 5.0, False)


def test_a_server_that_fails_and_a_missing_key(
    counted: CountedModel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted.answer = refused
    _, error = evaluate(capsys, *LOCAL, status=1)
    assert error == "toolwire: there is no answer to report on: the server is down\n"
    assert evaluate(capsys, "--rescore", "evaluation", status=1)[1] == error
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    _, error = evaluate(capsys, "mine.jsonl", "--model", "openai:gpt-5-mini", status=2)
    assert error.count("\n") == 1 and error.startswith("toolwire: openai_chat needs a key: set OPENAI_API_KEY")


def test_answers_of_other_settings_are_not_judged_again(
    counted: CountedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(capsys, *LOCAL)
    counted.answer = refused
    evaluate(capsys, *LOCAL, "--temperature", "0.5", status=1)
    _, error = evaluate(capsys, "--rescore", "evaluation", status=1)
    assert error == "toolwire: there is no answer to report on: the server is down\n"


def test_an_evaluation_that_is_refused_leaves_no_files(
    counted: CountedModel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    constrained = ("--format", "hermes", "--constrain", "auto", "--out", "refused/report")
    asked: list[Asked] = []
    with serving(lambda request: asked.append(request) or Answer()) as url:  # type: ignore[func-returns-value]
        at_server = ("--model", "m", "--base-url", url, "--constrain", "none")
        _, error = evaluate(capsys, "mine.jsonl", *at_server, *constrained, status=2)
    assert error.count("\n") == 1 and "constrain" in error
    assert not asked and not Path("refused").exists()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    evaluate(capsys, "mine.jsonl", "--model", "openai:gpt-5-mini", "--out", "keyless", status=2)
    assert not Path("keyless").exists()
    evaluate(capsys, *LOCAL)
    evaluate(capsys, "mine.jsonl", "--model", "openai:gpt-5-mini", status=2)
    assert Path("evaluation/report.json").exists() and Path("evaluation/answers.db").exists()


def test_suites_in_one_directory_are_not_mixed(
    counted: CountedModel, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    evaluate(capsys, *LOCAL, "--seed", "7")
    (tmp_path / "other.jsonl").write_text((tmp_path / "mine.jsonl").read_text().replace("Weather in", "Rain in"))
    evaluate(capsys, "other.jsonl", *LOCAL[1:], "--seed", "7")
    stored = Path("evaluation/report.json").read_text()
    report, _ = evaluate(capsys, "--rescore", "evaluation", "--out", "again")
    assert Path("evaluation/report.json").read_text() == stored
    assert report["suite"] == "mine, other"
    assert sorted(report["questions"])[::3] == ["mine: joke", "other: joke"]
    assert column(report, "m.gguf · hermes · whole_message")["right"]["total"] == 4
    assert (report["settings"]["seed"], report["settings"]["rescored"]) == (7, "evaluation")


def test_a_format_of_a_file_is_named_anew_for_a_report(
    counted: CountedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(capsys, *LOCAL)
    (log,) = Path("evaluation/logs").glob("*.json")
    log.write_text(log.read_text("utf-8").replace('"hermes"', '"of_a_file"'), "utf-8")
    _, error = evaluate(capsys, "--rescore", "evaluation", status=2)
    assert error == "toolwire: there is no wire format 'of_a_file'; if a file describes it, add --format FILE\n"
    report = Path("evaluation/report.json")
    report.write_text(report.read_text("utf-8").replace('"hermes"', '"of_a_file"'), "utf-8")
    assert run(["profile", "--from", "evaluation"]) == 0
    assert "A file describes of_a_file: name it in format_files" in capsys.readouterr().err


def test_a_report_that_is_written_anew_stays_with_its_answers(
    counted: CountedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(capsys, *LOCAL, "--out", "first")
    Path("first/report.json").unlink()
    report, _ = evaluate(capsys, "--rescore", "first")
    assert report["suite"] == "mine"
    assert Path("first/report.json").exists() and not Path("evaluation").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a suite"),
        (("mine.jsonl",), "name a model"),
        (("nothing.jsonl", "--model", "m.gguf"), "neither a suite"),
        (("mine.jsonl", "--model", "unknown"), "unknown model 'unknown'"),
        (("mine.jsonl", "--model", "openia:x"), "did you mean openai:x?"),
        (("mine.jsonl", "--model", "x", "--api", "openia"), "did you mean openai"),
        (("mine.jsonl", "--model", "x", "--base-url", "localhost:1"), "toolwire: base_url must begin with http://"),
        (("mine.jsonl", "--model", "m.gguf", "-f", "herms"), "herms"),
        (("mine.jsonl", "--model", "m.gguf", "-f", "auto"), "auto cannot be asked for"),
        (("mine.jsonl", "--model", "m.gguf", "--reading", "strit"), "strict"),
        (("mine.jsonl", "--model", "m.gguf", "--constrain", "yes"), "--constrain is none, auto, required"),
        (("mine.jsonl", "--model", "m.gguf", "--system", "no.txt"), "toolwire: no.txt: No such file or directory\n"),
        (("recorded:no.db", "--model", "m.gguf"), "recorded:no.db: there is no file no.db"),
        (("mine.jsonl", "--rescore", "x"), "leave out the suite"),
        (("--rescore", "mine.jsonl"), "is not a log of toolwire eval"),
        (("--rescore", "tool.json"), "(eval: this key is missing); name the directory of an evaluation"),
        (("--rescore", "."), "is not a log of toolwire eval|has no log"),
        (("bfkl:live", "--model", "m.gguf"), "did you mean bfcl:live?"),
        (("bfcl:simpel", "--model", "m.gguf"), "did you mean bfcl:simple?"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: tuple[str, ...], message: str, counted: CountedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    report, error = evaluate(capsys, *arguments, status=2)
    assert report is None and error.count("\n") == 1
    assert any(part in error for part in message.split("|"))
    assert counted.prompts == []

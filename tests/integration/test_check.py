"""`toolwire check` against servers of each API on loopback: healthy ones, and ones with a planted fault."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.integration.planted_faults import FAULTS
from tests.integration.planted_losses import LOSSES
from tests.integration.planted_spellings import SPELLINGS
from tests.integration.probed_server import KEY, MODEL, Fault, probed
from tests.integration.servers import Answer, serving

from toolwire import FinishReason, ParsedResponse, ToolCall, Usage
from toolwire.cli import run
from toolwire.probes.all_probes import PROBES
from toolwire.providers.request import ChatRequest

PLANTED = {**FAULTS, **LOSSES, **SPELLINGS}
APIS = (
    *("openai_chat", "openai_responses", "anthropic_messages", "gemini", "bedrock_converse", "mistral", "cohere"),
    *("ollama", "groq", "openai_compatible"),
)


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, Any]], dict[str, int]]:
    """Return the exit status, the results by the probe's id, and the counts."""
    status = run(["check", "--json", *arguments])
    *lines, last = capsys.readouterr().out.splitlines()
    results = [json.loads(line) for line in lines]
    return status, {result["probe"]: result for result in results}, json.loads(last)


def of(api: str, url: str, *arguments: str) -> tuple[str, ...]:
    """Return the arguments for a server of the tests."""
    return ("--api", api, "--model", MODEL, "--base-url", url, "--key-env", "TEST_KEY", *arguments)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEST_KEY", KEY)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)


NOT_SHOWN = {
    "openai_chat": {"call-in-reasoning"},
    "openai_responses": {"call-in-reasoning", "stop-word"},
    "anthropic_messages": {"call-in-reasoning"},
    "mistral": {"call-in-reasoning", "arguments-in-pieces"},
}
"""Probes that show nothing at a healthy server, besides those of other APIs. The model shows no reasoning."""


@pytest.mark.parametrize("api", APIS)
def test_a_healthy_server_has_no_faults(api: str, capsys: pytest.CaptureFixture[str]) -> None:
    with probed(api) as url:
        status, results, counts = check(capsys, *of(api, url))
    reasons = {name: result["reason"] for name, result in results.items() if result["status"] == "failed"}
    assert (status, reasons) == (0, {})
    assert list(results) == [probe.id for probe in PROBES]
    assert counts == {"passed": counts["passed"], "failed": 0, "not shown": len(PROBES) - counts["passed"]}
    hidden = {
        name
        for name, result in results.items()
        if result["status"] == "not shown" and "is not one of" not in result["reason"]
    }
    assert all(results[name]["reason"] for name in hidden)
    if api in NOT_SHOWN:
        assert hidden == NOT_SHOWN[api]
    assert counts["passed"] > 60


def test_a_model_that_reasons_shows_all_rules(capsys: pytest.CaptureFixture[str]) -> None:
    """Its reasoning is longer than the answers of other models, and no reason to leave a rule out."""

    def reasoned(answer: ParsedResponse, request: ChatRequest) -> ParsedResponse:
        limit, reasoning = request.max_tokens or 0, 250
        usage = answer.usage or Usage(10, 10)
        if limit < reasoning + 100:
            usage = replace(usage, output_tokens=limit, reasoning_tokens=limit)
            return ParsedResponse("", reasoning="I think", finish_reason=FinishReason.LENGTH, usage=usage)
        usage = replace(usage, output_tokens=usage.output_tokens + reasoning, reasoning_tokens=reasoning)
        return replace(answer, reasoning="I think", usage=usage)

    with probed("openai_chat", Fault(response=reasoned)) as url:
        status, results, _ = check(capsys, *of("openai_chat", url, "--tries", "1"))
    reasons = {name: result["reason"] for name, result in results.items() if result["status"] != "passed"}
    assert {name for name, reason in reasons.items() if "is not one of" not in reason} == set()
    assert status == 0


def test_ids_that_count_the_calls_of_a_conversation_are_new(capsys: pytest.CaptureFixture[str]) -> None:
    """Kimi K2's ids are functions.NAME:NUMBER, and the number begins at 0 in each conversation."""

    def numbered(answer: ParsedResponse, request: ChatRequest) -> ParsedResponse:
        earlier = sum(isinstance(part, ToolCall) for message in request.messages for part in message.parts)
        calls = [
            replace(call, id=f"functions.{call.name}:{number}")
            for number, call in enumerate(answer.tool_calls, earlier)
        ]
        return replace(answer, tool_calls=tuple(calls))

    with probed("openai_chat", Fault(response=numbered)) as url:
        status, results, _ = check(capsys, *of("openai_chat", url, "--only", "calls", "--only", "results"))
    assert results["new-ids"]["status"] == "passed", results["new-ids"]
    assert status == 0, [result for result in results.values() if result["status"] == "failed"]


def test_a_chunk_without_a_choice_needs_no_id(capsys: pytest.CaptureFixture[str]) -> None:
    """Azure begins a stream with the results of its filters."""
    filters = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": []}
    with probed("openai_chat", Fault(chunks=lambda chunks: [filters, *chunks])) as url:
        status, results, _ = check(capsys, *of("openai_chat", url, "--only", "bytes", "--only", "streams"))
    assert status == 0, [result for result in results.values() if result["status"] == "failed"]


def test_the_smoke_probes_are_few(capsys: pytest.CaptureFixture[str]) -> None:
    with probed("openai_chat") as url:
        status, results, counts = check(capsys, *of("openai_chat", url, "--smoke"))
    assert status == 0
    assert list(results) == [probe.id for probe in PROBES if probe.smoke]
    assert counts["passed"] == len(results) == 11


@pytest.mark.need(39)
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    probes = sorted(PLANTED[fault].probes)
    with probed("openai_chat", PLANTED[fault]) as url:
        only = [argument for probe in probes for argument in ("--only", probe)]
        status, results, _ = check(capsys, *of("openai_chat", url, *only))
    assert {name: result["status"] for name, result in results.items()} == dict.fromkeys(probes, "failed"), results
    assert status == 1
    assert all(result["reason"] for result in results.values())
    assert KEY not in json.dumps(results)


@pytest.mark.parametrize("api", ["anthropic_messages", "openai_responses", "gemini", "ollama"])
def test_planted_faults_are_found_in_other_apis(api: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        "the second of two calls is lost": "parallel-calls",
        "a call stays in the text": "one-call",
        "results do not reach the model": "result-returned",
        "the reason of a cut answer is stop": "cut-answer",
        "system messages do not reach the model": "system-message",
        "nested objects arrive as text": "nested-schema",
    }
    found = {}
    for fault, probe in expected.items():
        with probed(api, FAULTS[fault]) as url:
            _, results, _ = check(capsys, *of(api, url, "--only", probe))
        found[fault] = results[probe]["status"]
    assert found == dict.fromkeys(expected, "failed")


def _with_text_for_input(body: Any) -> Any:
    for block in body["content"]:
        if block["type"] == "tool_use":
            block["input"] = json.dumps(block["input"])
    return body


def _with_one_index(chunks: list[Any]) -> list[Any]:
    return [{**chunk, "index": 0} if "index" in chunk else chunk for chunk in chunks]


def _ended_as_words(data: bytes, _: bool) -> bytes:
    return re.sub(rb'("stop_reason": ?)"tool_use"', rb'\1"end_turn"', data)


@pytest.mark.parametrize(
    ("probes", "fault"),
    [
        (("call-reason", "streamed-call-reason"), Fault(data=_ended_as_words)),
        (("input-object",), Fault(whole=_with_text_for_input)),
        (("blocks",), Fault(chunks=_with_one_index)),
    ],
    ids=["reason", "input", "index"],
)
def test_faults_of_messages_are_found(
    probes: tuple[str, ...], fault: Fault, capsys: pytest.CaptureFixture[str]
) -> None:
    only = [argument for probe in probes for argument in ("--only", probe)]
    with probed("anthropic_messages", fault) as url:
        _, results, _ = check(capsys, *of("anthropic_messages", url, *only))
    assert {name: result["status"] for name, result in results.items()} == dict.fromkeys(probes, "failed"), results


def _changed_items(**members: Any) -> Any:
    """Return a change of a whole answer of Responses: other members of its calls."""

    def whole(body: Any) -> Any:
        items = [{**item, **members} if item["type"] == "function_call" else item for item in body["output"]]
        return {**body, "output": items}

    return whole


def _changed_events(kind: str, **members: Any) -> Any:
    """Return a change of a stream of Responses: other members of the events of one kind."""
    return lambda chunks: [{**chunk, **members} if kind in chunk.get("type", "") else chunk for chunk in chunks]


def _without_output(chunks: list[Any]) -> list[Any]:
    last = chunks[-1]
    return [*chunks[:-1], {**last, "response": {**last["response"], "output": []}}]


def _with_empty_items(chunks: list[Any]) -> list[Any]:
    return [
        {**chunk, "item": {**chunk["item"], "arguments": ""}}
        if chunk.get("type") == "response.output_item.done" and "arguments" in chunk["item"]
        else chunk
        for chunk in chunks
    ]


@pytest.mark.parametrize(
    ("probe", "fault"),
    [
        ("call-item", Fault(whole=_changed_items(arguments={"city": "Paris"}))),
        ("call-item", Fault(whole=_changed_items(call_id=None))),
        ("items", Fault(chunks=_changed_events("", output_index=0))),
        ("arguments-done", Fault(chunks=_changed_events("arguments.delta", item_id="fc_other"))),
        ("arguments-done", Fault(chunks=_with_empty_items)),
        ("arguments-done", Fault(chunks=_without_output)),
    ],
    ids=["object", "id", "index", "item", "done", "completed"],
)
def test_faults_of_responses_are_found(probe: str, fault: Fault, capsys: pytest.CaptureFixture[str]) -> None:
    with probed("openai_responses", fault) as url:
        _, results, _ = check(capsys, *of("openai_responses", url, "--only", probe))
    assert results[probe]["status"] == "failed", results


def _with_text_for_arguments(body: Any) -> Any:
    for call in body["message"].get("tool_calls", ()):
        call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    return body


def test_arguments_of_ollama_are_objects(capsys: pytest.CaptureFixture[str]) -> None:
    with probed("ollama", Fault(whole=_with_text_for_arguments)) as url:
        _, results, _ = check(capsys, *of("ollama", url, "--only", "input-object"))
    assert results["input-object"]["status"] == "failed", results


def test_a_weak_model_is_not_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    # It answers everything with the same words, which no server can help.
    def weak(answer: Any, _: Any) -> Any:
        words = replace(answer, content="I am not sure.", tool_calls=(), incomplete=(), usage=Usage(20, 4))
        return replace(words, finish_reason=FinishReason.STOP)

    with probed("openai_chat", Fault(response=weak)) as url:
        _, results, _ = check(capsys, *of("openai_chat", url, "--tries", "1"))
    failed = {name: result["reason"] for name, result in results.items() if result["status"] == "failed"}
    # A server has to enforce these whatever the model wants. The tokens of this one do not depend on the prompt.
    enforced = {"required-choice", "streamed-required-choice", "named-choice", "streamed-named-choice"}
    counted = {result["probe"] for result in results.values() if "does not reach the model" in result["reason"]}
    assert set(failed) - counted == enforced, failed


def _without_quotes(answer: ParsedResponse, _: ChatRequest) -> ParsedResponse:
    """Return the answer of a model that writes no text as a text if it looks like a number."""
    calls = [
        replace(
            call,
            arguments=json.loads(re.sub(r'"(\d[\d.]*)"', r"\1", json.dumps(call.arguments).replace(': "0', ': "'))),
        )
        for call in answer.tool_calls
    ]
    return replace(answer, tool_calls=tuple(calls), content=re.sub(r'"0(\d+)"', r"\1", answer.content))


def _with_fraction(answer: ParsedResponse, _: ChatRequest) -> ParsedResponse:
    calls = [replace(call, arguments={**call.arguments, "days": 3.0}) for call in answer.tool_calls]
    return replace(answer, tool_calls=tuple(calls), content=answer.content.replace(": 3}", ": 3.0}"))


def _careless_in_stream(answer: ParsedResponse, request: ChatRequest) -> ParsedResponse:
    """Return the answer of a model that writes another number in a stream, and in text."""
    calls = [replace(call, arguments={**call.arguments, "days": 4}) for call in answer.tool_calls if request.stream]
    return replace(answer, tool_calls=tuple(calls) or answer.tool_calls, content=answer.content.replace("3", "4"))


def _last_code(answer: ParsedResponse, request: ChatRequest) -> ParsedResponse:
    codes = re.findall(r"code is (\d+)", str(request.messages))
    return replace(answer, content=codes[-1]) if codes else answer


def _asks_again_in_text(answer: ParsedResponse, request: ChatRequest) -> ParsedResponse:
    """Return the answer of a model that repeats the call, which the server does not read."""
    repeated = '{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}'
    return replace(answer, content=repeated) if request.tools else answer


@pytest.mark.parametrize(
    ("probe", "response"),
    [
        ("text-values", _without_quotes),
        ("whole-number", _with_fraction),
        ("streamed-equals-whole", _careless_in_stream),
        ("result-ids", _last_code),
        ("result-returned", _asks_again_in_text),
        ("no-choice-text", lambda answer, _: replace(answer, content='<tool_call>{"name": "get_time"}</tool_call>')),
        ("streamed-order", lambda answer, _: replace(answer, tool_calls=answer.tool_calls[::-1])),
        ("streamed-lines", lambda answer, _: replace(answer, content=answer.content.replace("\n", ""))),
        ("streams-at-once", lambda answer, _: replace(answer, content="I do not know.", tool_calls=())),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_of_the_model_is_not_a_fault(
    probe: str, response: Callable[..., ParsedResponse], capsys: pytest.CaptureFixture[str]
) -> None:
    with probed("openai_chat", Fault(response=response)) as url:
        _, results, _ = check(capsys, *of("openai_chat", url, "--only", probe))
    assert results[probe]["status"] == "not shown", results[probe]


def test_a_fault_that_the_model_may_have_made_has_to_happen_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    fault = FAULTS["results do not reach the model"]
    with probed("openai_chat", fault) as url:
        arguments = of("openai_chat", url, "--only", "result-returned", "--tries")
        _, once, _ = check(capsys, *arguments, "1")
        _, thrice, _ = check(capsys, *arguments, "3")
    assert once["result-returned"]["status"] == "not shown"
    assert "more --tries would show more" in once["result-returned"]["reason"]
    assert thrice["result-returned"]["status"] == "failed"
    assert thrice["result-returned"]["reason"].endswith("3 times in a row")


def test_a_profile_of_a_file_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with probed("anthropic_messages") as url:
        (tmp_path / "own.toml").write_text(
            f'[profiles.fast]\nprovider = "anthropic"\nmodel = "m"\nurl = "{url}"\nkey_env = "TEST_KEY"\n'
        )
        assert run(["check", "fast", "--config", "own.toml", "--only", "one-call"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "passed\tcalls\tone-call\tA call that the model makes arrives as a call, once.",
        "1 passed, 0 failed, 0 not shown",
    ]
    assert run(["check", "fats", "--config", "own.toml"]) == 2
    assert "own.toml has no profile 'fats'; did you mean fast?" in capsys.readouterr().err


def test_the_only_model_of_a_url_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    with probed("openai_chat") as url:
        assert run(["check", url, "--key-env", "TEST_KEY", "--only", "plain-answer", "--only", "tool choice"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "9 passed, 0 failed, 0 not shown"


def test_a_server_with_several_models_needs_the_name_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(lambda _: Answer(b'{"data": [{"id": "a"}, {"id": "b"}]}'), get=True) as url:
        assert run(["check", url]) == 2
    assert capsys.readouterr().err == "toolwire: give --model; there are a, b\n"


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_refuses_the_key_is_said_to_do_so(status: int, capsys: pytest.CaptureFixture[str]) -> None:
    refusal = Answer(b'{"error": {"message": "Incorrect API key."}}', status=status)
    with serving(lambda _: refusal, get=True) as url:
        assert run(["check", url]) == 2
    error = capsys.readouterr().err
    assert "the server does not accept the key, or needs one" in error and "--key-env names the variable" in error
    assert "Incorrect API key." in error and "--model" not in error


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_key_that_the_server_quotes_is_not_shown(
    form: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = {"role": "assistant", "content": f"Your key is {KEY}. <|im_end|>"}
    body = {"object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": message}]}
    with serving(lambda _: Answer(json.dumps(body).encode())) as url:
        files = ("--report", str(tmp_path / "report.json"), "--junit", str(tmp_path / "junit.xml"))
        assert run(["check", *of("openai_chat", url, "--only", "clean-text", *files, *form)]) == 1
    output = capsys.readouterr().out
    for text in (output, (tmp_path / "report.json").read_text(), (tmp_path / "junit.xml").read_text()):
        assert "Your key is" in text
        assert KEY not in text


def test_an_error_of_a_server_cannot_add_a_row_to_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    message = "no\npassed\tcalls\tone-call\tA call that the model makes arrives as a call, once."
    refusal = json.dumps({"error": {"message": message}}).encode()
    fault = Fault(reply=lambda answer, asked: Answer(refusal, status=400) if b'"tools"' in asked.body else answer)
    with probed("openai_chat", fault) as url:
        assert run(["check", *of("openai_chat", url, "--only", "plain-answer", "--only", "one-call")]) == 1
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines() if "\t" in line]
    assert [(row[0], row[2], len(row)) for row in rows] == [("passed", "plain-answer", 4), ("failed", "one-call", 4)]
    assert "no\\npassed\\tcalls" in rows[1][3]


def test_reports_contain_requests_and_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, junit = tmp_path / "report.json", tmp_path / "junit.xml"
    with probed("openai_chat", FAULTS["a call stays in the text"]) as url:
        arguments = ("--only", "one-call", "--only", "plain-answer", "--only", "image-result", "--only", "blocks")
        run(["check", *of("openai_chat", url, *arguments, "--report", str(report), "--junit", str(junit))])
    written = json.loads(report.read_text())
    assert (written["api"], written["model"]) == ("openai_chat", "m")
    assert written["counts"] == {"passed": 2, "failed": 1, "not shown": 1}
    (position,) = next(result for result in written["results"] if result["probe"] == "one-call")["exchanges"]
    exchange = written["exchanges"][position]
    assert json.loads(exchange["sent"])["tools"][0]["function"]["name"] == "get_weather"
    assert "<tool_call>" in json.loads(exchange["answer"])["choices"][0]["message"]["content"]
    assert exchange["status"] == 200
    suites = ElementTree.parse(junit).getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("skipped")) == ("4", "1", "1")
    case = next(case for case in suites.iter("testcase") if case.get("name") == "one-call")
    assert "set its parser of tool calls" in str(case.find("failure").get("message"))  # type: ignore[union-attr]
    assert "HTTP 200" in str(case.find("system-out").text)  # type: ignore[union-attr]
    capsys.readouterr()


def test_a_report_has_each_exchange_once_and_is_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = {"role": "assistant", "content": f"{KEY} " * 20_000}  # wherever it is cut, it is amid a key
    body = {"object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": message}]}
    report = tmp_path / "report.json"
    with serving(lambda _: Answer(json.dumps(body).encode())) as url:
        only = ("--only", "plain-answer", "--only", "clean-text", "--only", "usage-total")
        run(["check", *of("openai_chat", url, *only, "--report", str(report))])
    written = json.loads(report.read_text())
    named = [position for result in written["results"] for position in result["exchanges"]]
    assert len(named) > len(set(named)) == len(written["exchanges"])
    capsys.readouterr()
    for exchange in written["exchanges"]:
        assert 90_000 < len(exchange["answer"]) < 101_000
        assert KEY[:8] not in exchange["answer"]


def test_a_missing_key_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert run(["check", "--api", "openai", "--model", "gpt-5-mini"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == (
        "toolwire: openai_chat needs a key: set OPENAI_API_KEY in the environment, or pass key= in a program\n"
    )


def test_a_server_that_cannot_be_reached_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with probed("openai_chat") as url:
        pass
    Path("stopped.toml").write_text(f'[profiles.p]\nmodel = "m"\nurl = "{url}"\nretry = {{ attempts = 1 }}\n')
    assert run(["check", "p", "--config", "stopped.toml"]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert "cannot be reached" in output.err


def test_a_server_that_is_silent_ends_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(lambda _: Answer(delay=2)) as url:
        Path("silent.toml").write_text(f'[profiles.p]\nmodel = "m"\nurl = "{url}"\nretry = {{ attempts = 1 }}\n')
        assert run(["check", "p", "--config", "silent.toml", "--timeout", "0.2"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "toolwire: the first request failed: the answer was cut off: nothing came for 0.2 s\n"


def test_a_server_that_never_finishes_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.probes.probed_model.MAX_SECONDS", 0.5)
    with serving(lambda _: Answer(delay=3)) as url:
        assert run(["check", *of("openai_chat", url)]) == 2
    assert "the first request failed: there was no complete answer within 0.5 seconds" in capsys.readouterr().err


def test_a_reason_that_many_probes_share_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    with probed("openai_chat", FAULTS["a call stays in the text"]) as url:
        assert run(["check", *of("openai_chat", url, "--only", "one-call", "--only", "call-not-in-text")]) == 1
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines() if line.startswith("failed")]
    assert [row[2] for row in rows] == ["one-call", "call-not-in-text"]
    assert rows[1][3] == "the same as for one-call"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(b"<!doctype html><html></html>", content_type="text/html"), "a page of HTML or XML (HTTP 200)"),
        (Answer(b"<html>Not found</html>", 404, "text/html"), "a page of HTML or XML (HTTP 404)"),
        (Answer(b"\xef\xbb\xbf\n<html></html>", content_type="text/html"), "a page of HTML or XML (HTTP 200)"),
        (Answer(b"", 308), "the first request failed: openai_chat answered 308"),
        (Answer(b" \n"), "the first request failed"),
        (Answer(b'{"error": "no such path"}', 404), "the first request failed: openai_chat answered 404"),
        (Answer(b'{"error": {"message": "Wrong key"}}', 401), "the first request failed: openai_chat answered 401"),
    ],
    ids=["page", "missing page", "marked page", "redirect", "nothing", "missing path", "wrong key"],
)
def test_an_address_without_an_api_is_one_line(answer: Answer, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(lambda _: answer) as url:
        assert run(["check", *of("openai_chat", url)]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert words in output.err


def test_a_server_without_keys_is_not_asked_with_a_wrong_one(capsys: pytest.CaptureFixture[str]) -> None:
    with probed("openai_chat") as url:
        status, results, _ = check(capsys, "--base-url", url, "--model", "m", "--only", "wrong-key")
    assert status == 0
    assert results["wrong-key"] == {
        "probe": "wrong-key",
        "theme": "errors",
        "title": "A wrong key is refused.",
        "status": "not shown",
        "reason": "no key is set for this server",
        "source": "https://platform.openai.com/docs/guides/error-codes",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give a profile of --config or a URL, or --model with --api or --base-url"),
        (("--api", "openai"), "give a profile of --config or a URL, or --model with --api or --base-url"),
        (("p", "--api", "openai", "--model", "m"), "take the place of a profile"),
        (("127.0.0.1:1/v1",), "has no profile '127.0.0.1:1/v1'; a URL begins with http://"),
        (
            ("http://127.0.0.1:1",),
            "toolwire: 127.0.0.1:1 cannot be reached",
        ),
        (("http://127.0.0.1:1", "--base-url", "http://127.0.0.1:1"), "give the URL once"),
        (("--api", "opnai", "--model", "m"), "did you mean openai"),
        (("--api", "openai", "--model", "m", "--only", "usages"), "there is no probe 'usages'; did you mean usage"),
        (("--api", "openai", "--model", "m", "--only", "x"), "there are answers, tokens"),
        (("missing", "--config", "none.toml"), "none.toml"),
        (("http://127.0.0.1:1", "--report", "."), "--report .: it is a directory; name a file"),
        (("http://127.0.0.1:1", "--junit", "nowhere/x.xml"), "there is no directory nowhere"),
        (
            ("http://127.0.0.1:1", "--compare", "http://127.0.0.1:1", "--report", "nowhere/x.json"),
            "no directory nowhere",
        ),
    ],
)
def test_wrong_usage_says_what_to_do(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_model_of_this_process_has_no_endpoint(capsys: pytest.CaptureFixture[str]) -> None:
    Path("toolwire.toml").write_text('[profiles.here]\nmodel = "local:1.5b"\n')
    assert run(["check", "here", "--smoke"]) == 2
    assert "1.5b runs in this process: there is no endpoint to check" in capsys.readouterr().err


def test_probes_have_unique_ids_and_a_source() -> None:
    assert len({probe.id for probe in PROBES}) == len(PROBES)
    assert all(probe.source.startswith("https://") and probe.title.endswith(".") for probe in PROBES)
    assert not {probe.id for probe in PROBES} & {probe.theme for probe in PROBES}
    assert {probe for fault in PLANTED.values() for probe in fault.probes} <= {probe.id for probe in PROBES}

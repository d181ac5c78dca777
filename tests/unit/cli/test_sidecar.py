"""Requests and answers of the sidecar, without its input and output."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolwire
from toolwire.cli import sidecar
from toolwire.cli.sidecar import MAX_STREAMS, SidecarSession
from toolwire.text.json_text import standard_json

TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
TEXT = 'Hi. <tool_call>{"name": "f", "arguments": {"a": "1"}}</tool_call>'


def ask(session: SidecarSession, **request: Any) -> Any:
    answer = json.loads(session.answer(json.dumps({"id": 7, **request})))
    assert answer.pop("id") == 7
    ((kind, body),) = answer.items()
    assert kind == "result", body
    return body


def refused(line: str | bytes, session: SidecarSession | None = None) -> str:
    answer = json.loads((session or SidecarSession()).answer(line))
    return str(answer["error"]["message"])


def test_a_whole_message() -> None:
    response = ask(SidecarSession(), do="parse", text=TEXT, format="hermes", tools=[TOOL])
    assert response["content"] == "Hi. "
    assert [(call["name"], call["arguments"]) for call in response["calls"]] == [("f", {"a": 1})]
    assert (response["finish_reason"], response["problems"], response["incomplete"]) == ("tool_calls", [], [])


@pytest.mark.parametrize("size", [1, 2, 3])
def test_pieces_of_utf_16_may_split_a_character(size: int) -> None:
    text = 'Hi \U0001f600. <tool_call>{"name": "f", "arguments": {"a": "\U0001f600\U0001f680"}}</tool_call>'
    units = [unit.decode("utf-16-le", "surrogatepass") for unit in re.findall(b"(?s)..", text.encode("utf-16-le"))]
    session = SidecarSession()
    ask(session, do="open", stream="s", format="hermes")
    pieces = ["".join(units[at : at + size]) for at in range(0, len(units), size)]
    answers = [ask(session, do="feed", stream="s", text=piece) for piece in pieces]
    answers.append(ask(session, do="finish", stream="s"))
    deltas = [delta for answer in answers for delta in answer["deltas"]]
    assert "".join(delta.get("content", "") for delta in deltas) == "Hi \U0001f600. "
    texts = [call["function"]["arguments"] for delta in deltas for call in delta.get("tool_calls", ())]
    assert json.loads("".join(texts)) == {"a": "\U0001f600\U0001f680"}


def test_half_of_a_character_stays_if_the_other_one_is_missing() -> None:
    session = SidecarSession()
    ask(session, do="open", stream="s", format="hermes")
    answers = [ask(session, do="feed", stream="s", text=piece) for piece in ("a\ud83d", "", "b", "\ude00\ud83d")]
    answers.append(ask(session, do="finish", stream="s"))
    deltas = [delta for answer in answers for delta in answer["deltas"]]
    assert "".join(delta.get("content", "") for delta in deltas) == "a\ud83db\ude00\ud83d"


def test_a_cut_message() -> None:
    response = ask(SidecarSession(), do="parse", text=TEXT[:-20], format="hermes")
    assert [call["name"] for call in response["incomplete"]] == ["f"]
    assert response["problems"][0]["kind"] == "truncated"


def test_a_message_in_pieces() -> None:
    session = SidecarSession()
    ask(session, do="open", stream="s", format="hermes", tools=[TOOL])
    answers = [ask(session, do="feed", stream="s", text=character) for character in TEXT]
    answers.append(ask(session, do="finish", stream="s"))
    deltas = [delta for answer in answers for delta in answer["deltas"]]
    assert "".join(delta.get("content", "") for delta in deltas) == "Hi. "
    texts = [call["function"]["arguments"] for delta in deltas for call in delta.get("tool_calls", ())]
    assert json.loads("".join(texts)) == {"a": 1}
    assert answers[-1]["events"][-1]["event"] == "finish"
    assert "open it first" in refused(json.dumps({"do": "feed", "stream": "s", "text": ""}), session)
    assert "open it first" in refused(json.dumps({"do": "finish", "stream": "s"}), session)


def test_calls_that_were_parsed_can_be_rendered() -> None:
    calls = ask(SidecarSession(), do="parse", text=TEXT, format="hermes", tools=[TOOL])["calls"]
    rendered = ask(SidecarSession(), do="render", what="calls", format="hermes", calls=calls)
    assert rendered["text"] == toolwire.render_calls([toolwire.ToolCall("f", {"a": 1})], format="hermes")


@pytest.mark.parametrize("request_members", [{"do": "finish", "more": 1}, {"do": "feed", "text": "b", "more": 1}])
def test_a_request_that_is_refused_changes_no_stream(request_members: dict[str, Any]) -> None:
    session = SidecarSession()
    ask(session, do="open", stream="s", format="hermes")
    assert "unknown members: more" in refused(json.dumps({**request_members, "stream": "s"}), session)
    assert ask(session, do="feed", stream="s", text="a")["deltas"] == [{"content": "a"}]


def test_a_call_may_have_null_for_the_members_that_it_does_not_need() -> None:
    call = {"name": "f", "arguments": {"a": 1}, "id": None, "server": None}
    rendered = ask(SidecarSession(), do="render", what="calls", format="kimi_k2", calls=[call])
    assert rendered["text"] == toolwire.render_calls([toolwire.ToolCall("f", {"a": 1})], format="kimi_k2")


def test_deltas_of_a_call_that_is_cut_off_are_not_a_good_call() -> None:
    session = SidecarSession()
    ask(session, do="open", stream="s", format="hermes", tools=[TOOL])
    cut = '<tool_call>{"name": "f", "arguments": {"a": 1}'
    answers = [ask(session, do="feed", stream="s", text=cut), ask(session, do="finish", stream="s")]
    deltas = [delta for answer in answers for delta in answer["deltas"]]
    sent = "".join(call["function"]["arguments"] for delta in deltas for call in delta["tool_calls"])
    assert sent.startswith('{"a": 1}')
    with pytest.raises(json.JSONDecodeError):
        json.loads(sent)


def test_requests_that_take_time_are_not_quick() -> None:
    session = SidecarSession()

    def is_quick(**request: Any) -> bool:
        return session.is_quick(request)

    assert is_quick(do="hello") and is_quick(do="parse", text='"grammar"') and is_quick(do=[], stream={})
    assert not is_quick(do="grammar", tools=[])
    assert is_quick(do="finish", stream="a"), "there is no such stream"
    ask(session, do="open", stream="a", tools=[TOOL])
    assert is_quick(do="finish", stream="a")
    for _ in range(50):
        ask(session, do="feed", stream="a", text=100 * "a")
    assert is_quick(do="feed", stream="a", text="a") and not is_quick(do="finish", stream="a")


@pytest.mark.parametrize(
    ("line", "in_a_thread", "words"),
    [
        (b'{"id": 1, "do": "hello"}', False, '"id": 1'),
        (b'{"id": 1, "do": "gr\\u0061mmar", "format": "plain"}', True, '"id": 1'),
        (b'{"id": 1, "do": "parse", "text": "' + 5000 * b"a" + b'"}', True, '"id": 1'),
        (b"{", False, "one line of JSON"),
        (5000 * b"{", True, "one line of JSON"),
    ],
    ids=["quick", "grammar", "long", "no JSON", "long and no JSON"],
)
def test_each_line_is_decoded_once_and_long_ones_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, line: bytes, in_a_thread: bool, words: str
) -> None:
    decoded: list[bytes] = []
    threads: list[Any] = []

    def decode(text: bytes) -> Any:
        decoded.append(text)
        return standard_json(text)

    async def run(function: Any, arguments: Any) -> Any:
        threads.append(function)
        return function(**arguments)

    monkeypatch.setattr(sidecar, "standard_json", decode)
    monkeypatch.setattr(sidecar, "in_thread", run)
    assert words in asyncio.run(sidecar._answer_line(SidecarSession(), line))
    assert decoded == [line]
    assert bool(threads) is in_a_thread


def test_streams_are_limited_and_have_one_name_each() -> None:
    session = SidecarSession()
    for number in range(MAX_STREAMS):
        session.answer(json.dumps({"do": "open", "stream": str(number)}))
    assert "is open already" in refused(json.dumps({"do": "open", "stream": "0"}), session)
    assert "finish one first" in refused(json.dumps({"do": "open", "stream": "more"}), session)


@pytest.mark.parametrize(
    ("request_members", "text"),
    [
        (
            {"what": "prompt", "tools": [TOOL], "system": "Be kind."},
            toolwire.prompt([TOOL], format="hermes", system="Be kind."),
        ),
        ({"what": "definitions", "tools": [TOOL]}, toolwire.render_definitions([TOOL], format="hermes")),
        (
            {"what": "calls", "calls": [{"name": "f", "arguments": {"a": 1}}]},
            toolwire.render_calls([toolwire.ToolCall("f", {"a": 1})], format="hermes"),
        ),
        (
            {"what": "results", "results": [{"call_id": "1", "tool_name": "f", "result": "2"}]},
            toolwire.render_results([toolwire.ToolResult("1", "f", "2")], format="hermes"),
        ),
        (
            {
                "what": "results",
                "results": [{"tool_name": "f", "result": {"a": 2}}, {"tool_name": "f", "result": None, "error": "no"}],
            },
            toolwire.render_results(
                [toolwire.ToolResult("", "f", {"a": 2}), toolwire.ToolResult("", "f", error="no")], format="hermes"
            ),
        ),
    ],
)
def test_rendering(request_members: dict[str, Any], text: str) -> None:
    assert ask(SidecarSession(), do="render", format="hermes", **request_members) == {"text": text}


def test_a_grammar() -> None:
    written = ask(SidecarSession(), do="grammar", tools=[TOOL], format="hermes", syntax="gbnf", tool_choice="required")
    assert written["text"] == toolwire.grammar([TOOL], format="hermes", syntax="gbnf", tool_choice="required").text
    assert written["special_tokens"] == ["<tool_call>", "</tool_call>"]


def test_the_protocol_has_a_version() -> None:
    hello = ask(SidecarSession(), do="hello")
    assert hello["version"] == 1 and "hermes" in hello["formats"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[", "one line of JSON"),
        ("[]", "a JSON object"),
        ("{}", "do must be one of"),
        ('{"do": "parse"}', "text must be text"),
        ('{"do": "parse", "text": "a", "format": "hermez"}', "hermes"),
        ('{"do": "parse", "text": "a", "formt": "hermes"}', "unknown members: formt"),
        ('{"do": "parse", "text": "a", "tools": 3}', "not a tool"),
        ('{"do": "hello", "a": 1}', "unknown members: a; hello has no others"),
        ('{"do": "render", "what": "x", "format": "hermes"}', "what must be"),
        ('{"do": "render", "what": "calls", "format": "hermes"}', "calls must be a list of objects"),
        (
            '{"do": "render", "what": "calls", "format": "hermes", "calls": [{"nam": 1}]}',
            "unknown members of a call: nam; known are arguments, confidence, format, id, name, repairs, server",
        ),
        ('{"do": "render", "what": "calls", "format": "hermes", "calls": [{"id": "1"}]}', "a call needs name"),
        (
            '{"do": "render", "what": "calls", "format": "kimi_k2", "calls": [{"name": "f", "id": 5}]}',
            "id must be text",
        ),
        ('{"do": "render", "what": "results", "format": "hermes", "results": [{}]}', "a result needs tool_name"),
        (
            '{"do": "render", "what": "results", "format": "hermes", "results": [{"tool_name": 3, "result": 1}]}',
            "tool_name must be text",
        ),
        (
            '{"do": "render", "what": "results", "format": "hermes", "results": [{"tool_name": "f"}]}',
            "a result has either result or error",
        ),
        (
            '{"do": "render", "what": "results", "format": "hermes", "results": [{"tool_name": "f", "error": 3}]}',
            "error must be text or None",
        ),
        ('{"do": "render", "what": "prompt", "format": "hermes", "system": 3}', "system must be text"),
        (
            '{"do": "parse", "text": "a", "reasoning_started": "no"}',
            "reasoning_started must be True or False, not 'no'",
        ),
        ('{"do": "feed", "stream": "s", "text": "a"}', "no stream has the name 's'"),
        ('{"do": "grammar", "format": "plain", "tools": [], "tool_choice": "required"}', "no tool"),
        (b"\xff", "one line of JSON"),
    ],
)
def test_a_bad_request_is_answered_with_its_error(line: str | bytes, message: str) -> None:
    assert message in refused(line)


@given(st.text(), st.text(max_size=20))
def test_any_text_is_answered_in_one_line_of_ascii(text: str, format: str) -> None:
    session = SidecarSession()
    for line in (text, json.dumps({"do": "parse", "text": text, "format": format}), json.dumps({"do": text})):
        answer = session.answer(line)
        assert answer.isascii() and "\n" not in answer
        json.loads(answer)


def test_half_a_character_is_answered() -> None:
    line = '{"do": "parse", "text": "\\ud800"}'
    assert json.loads(SidecarSession().answer(line))["result"]["content"] == "\ud800"

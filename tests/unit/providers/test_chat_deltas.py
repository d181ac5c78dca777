"""Events as deltas of Chat Completions, and short ids."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolwire
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    ProblemFound,
    ReasoningDelta,
    call_events,
    replay,
)
from toolwire.messages import FinishReason, ParsedResponse, Problem, ToolCall, call_id
from toolwire.providers.chat_deltas import CallSpacing, chat_deltas, closed_calls, short_call_id


def test_neighbouring_events_of_one_kind_are_one_delta() -> None:
    events = [
        ReasoningDelta("Hm"),
        ReasoningDelta("."),
        ContentDelta("I "),
        ContentDelta(""),
        ContentDelta("look."),
        CallStart(0, "f", "call_1"),
        ArgumentsDelta(0, '{"a":'),
        ArgumentsDelta(0, "1}"),
        ProblemFound(Problem("malformed", 0, "", "")),
        CallStart(1, "g", "call_2"),
        ContentDelta("\n"),
        ArgumentsDelta(1, "{}"),
    ]
    assert chat_deltas(events, reasoning="reasoning") == [
        {"reasoning": "Hm."},
        {"content": "I look."},
        {
            "tool_calls": [
                {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
            ]
        },
        {"tool_calls": [{"index": 1, "id": "call_2", "type": "function", "function": {"name": "g", "arguments": ""}}]},
        {"content": "\n"},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
    ]


def test_the_member_for_reasoning_is_the_usual_one() -> None:
    assert chat_deltas([ReasoningDelta("Hm")]) == [{"reasoning_content": "Hm"}]


def test_an_empty_text_is_no_delta() -> None:
    assert chat_deltas([ContentDelta("")]) == []


def test_short_ids() -> None:
    (delta,) = chat_deltas([CallStart(0, "f", "call_0123456789abcdef")], short_ids=True)
    assert re.fullmatch("[a-zA-Z0-9]{9}", delta["tool_calls"][0]["id"])


@given(st.text(), st.text())
def test_short_ids_keep_ids_apart(first: str, second: str) -> None:
    short = short_call_id(first)
    assert re.fullmatch("[a-zA-Z0-9]{9}", short)
    assert short_call_id(short) == short
    assert (short == short_call_id(second)) == (first == second or second == short)


@pytest.mark.parametrize("text", ["", "{", '{"city": ', '{"city": "Pa', '{"city": "Pa\\', '{"city": "Paris"', "{}"])
def test_arguments_of_an_incomplete_call_are_never_json(text: str) -> None:
    call = ToolCall("get_weather", {})
    events: list[Event] = [CallStart(0, "get_weather", "1"), ArgumentsDelta(0, text), CallEnd(0, call, False)]
    joined = "".join(event.text for event in closed_calls(events) if isinstance(event, ArgumentsDelta))
    assert joined.startswith(text)
    for completed in (joined, joined + "}", joined + '"}'):
        with pytest.raises(json.JSONDecodeError):
            json.loads(completed)


def has_wrong_bracket(text: str) -> bool:
    """Return whether a bracket closes what another kind has opened: readers that complete JSON look for that."""
    closers: list[str] = []
    for token in re.findall(r"(?:\\.|[^\\])", text, re.DOTALL):
        if token == '"':
            closers = closers[:-1] if closers[-1:] == ['"'] else [*closers, '"']
        elif closers[-1:] != ['"']:
            if token in ("[", "{"):
                closers.append("]" if token == "[" else "}")
            elif token in ("]", "}") and (not closers or closers.pop() != token):
                return True
    return False


def test_a_reader_that_completes_json_refuses_an_incomplete_call_wherever_it_was_cut() -> None:
    whole = r'{"a": ["x", "y\"\\z"], "b": {"c": [[1, 2], {"d": null}]}, "e": "f"}'
    json.loads(whole)
    assert not has_wrong_bracket(whole)
    for end in range(len(whole) + 1):
        delta, _ = closed_calls([CallEnd(0, ToolCall("f", {}), False)])
        assert isinstance(delta, ArgumentsDelta) and has_wrong_bracket(whole[:end] + delta.text), whole[:end]


def test_arguments_of_a_complete_call_stay_as_they_are() -> None:
    events = list(call_events(0, ToolCall("get_weather", {"city": "Paris"})))
    assert closed_calls(events) == events


def test_wrong_types() -> None:
    with pytest.raises(TypeError, match="id must be text"):
        short_call_id(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="events"):
        chat_deltas(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="events"):
        closed_calls(3)  # type: ignore[arg-type]


@given(st.text(), st.text(), st.lists(st.sampled_from(["f", "g"]), max_size=3))
def test_deltas_join_to_the_response(content: str, reasoning: str, names: list[str]) -> None:
    calls = tuple(ToolCall(name, {"a": name}, id=call_id("", at, name)) for at, name in enumerate(names))
    joined: dict[int, dict[str, str]] = {}
    texts = {"content": "", "reasoning_content": ""}
    for delta in chat_deltas(replay(ParsedResponse(content, reasoning, calls))):
        for member, value in delta.items():
            if member != "tool_calls":
                texts[member] += value
                continue
            (call,) = value
            function = call["function"]
            first = joined.setdefault(call["index"], {"id": call.get("id"), **function, "arguments": ""})
            first["arguments"] += function["arguments"]
    assert texts == {"content": content, "reasoning_content": reasoning}
    assert [(call["id"], call["name"], call["arguments"]) for call in joined.values()] == [
        (call.id, call.name, f'{{"a": "{call.name}"}}') for call in calls
    ]


def test_a_stream_gives_its_name_before_its_arguments() -> None:
    parser = toolwire.StreamParser(format="hermes")
    deltas = [
        delta
        for piece in ('<tool_call>{"name": "f", "arg', 'uments": {"a": "b', 'c"}}</tool_call>')
        for delta in chat_deltas(parser.feed(piece))
    ]
    functions = [delta["tool_calls"][0]["function"] for delta in deltas]
    assert functions[0]["name"] == "f"
    assert "".join(function["arguments"] for function in functions) == '{"a": "bc"}'
    assert len(functions) > 1


CALL = CallStart(0, "f", "call_1")
END = Finish(FinishReason.STOP)


@pytest.mark.parametrize(
    ("events", "content"),
    [
        ([ContentDelta("\n"), CALL, ContentDelta(" "), CALL, ContentDelta("\n"), END], ""),
        ([ContentDelta(" a \n"), CALL, ContentDelta(" "), ContentDelta("\nb "), END], " a \n \nb "),
        ([ContentDelta("\n"), ContentDelta(" "), END], "\n "),
        ([ContentDelta("\n"), ContentDelta("a"), ContentDelta("\n"), END], "\na\n"),
        ([ContentDelta(""), END], ""),
    ],
)
def test_white_space_beside_calls_is_removed(events: list[Event], content: str) -> None:
    spacing = CallSpacing()
    kept = [event for each in events for event in spacing.filter([each])]
    assert "".join(event.text for event in kept if isinstance(event, ContentDelta)) == content
    assert [event for event in kept if not isinstance(event, ContentDelta)] == [
        event for event in events if not isinstance(event, ContentDelta)
    ]
    assert kept[-1] == END

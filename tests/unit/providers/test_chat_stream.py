"""Streams of Chat Completions: chunks in odd orders, calls that come in pieces, and seals of reasoning."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.providers.conftest import chat_stream, decoded, sse_stream

import toolwire as tw
from toolwire import ParsedResponse, ReasoningPart, TextPart
from toolwire.providers.request import Notes

SEAL = {"type": "reasoning.encrypted", "data": "X"}


def delta(**members: Any) -> dict[str, Any]:
    return members


def piece(index: int, name: str = "", arguments: str = "", id: str = "") -> dict[str, Any]:
    """Return a delta with a piece of one call; empty members are left out."""
    function = {"name": name, "arguments": arguments}
    call = {"id": id, "function": {key: value for key, value in function.items() if value}}
    return {"tool_calls": [{"index": index, **{key: value for key, value in call.items() if value}}]}


def read(*deltas: dict[str, Any], reason: str = "stop") -> ParsedResponse:
    return decoded("openai_chat", chat_stream(*deltas, reason=reason))


def test_the_first_choice_is_read_wherever_it_is_in_the_chunk() -> None:
    first, second = ({"index": index, "delta": {"content": text}} for index, text in enumerate("ab"))
    chunks: list[Any] = [{"choices": [first, second]}, {"choices": [second, first]}, {"choices": [second]}]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    assert decoded("openai_chat", sse_stream(*chunks, end, done=True)).content == "aa"


@pytest.mark.parametrize(
    ("deltas", "parts"),
    [
        # a seal on the text before it
        (
            [
                delta(reasoning="thi"),
                delta(reasoning="nk"),
                delta(reasoning_details=[{"text": "", "signature": "S", "provider": "x"}]),
            ],
            [ReasoningPart("think", "S", "x")],
        ),
        # data that seals no text, behind reasoning that is not sealed
        (
            [delta(reasoning="think"), delta(reasoning_details=[SEAL])],
            [ReasoningPart("think"), ReasoningPart("", "", "openrouter", SEAL)],
        ),
        # data alone
        ([delta(reasoning_details=[SEAL])], [ReasoningPart("", "", "openrouter", SEAL)]),
        # a signature on other text than the stream has shown
        (
            [
                delta(reasoning="think"),
                delta(reasoning_details=[{"text": "other", "signature": "S", "provider": "x"}]),
            ],
            [ReasoningPart("think"), ReasoningPart("other", "S", "x")],
        ),
    ],
)
def test_a_seal_covers_the_text_before_it_or_is_a_part_of_its_own(
    deltas: list[dict[str, Any]], parts: list[ReasoningPart]
) -> None:
    assert list(read(*deltas, delta(content="so")).parts) == [*parts, TextPart("so")]


FIRST: dict[str, Any] = {"type": "reasoning.text", "text": "a", "signature": "S1", "index": 0}
SECOND: dict[str, Any] = {"type": "reasoning.text", "text": "b", "signature": "S2", "index": 1}
SUMMARY: dict[str, Any] = {"type": "reasoning.summary", "summary": "a"}


@pytest.mark.parametrize(
    ("deltas", "last"),
    [
        ([delta(reasoning="a", reasoning_details=[FIRST])], delta(reasoning_details=[FIRST])),
        ([delta(reasoning="a", reasoning_details=[FIRST])], delta(reasoning="a", reasoning_details=[FIRST])),
        ([delta(reasoning="a"), delta(reasoning_details=[{**FIRST, "text": ""}])], delta(reasoning_details=[FIRST])),
        (
            [
                delta(reasoning="a", reasoning_details=[FIRST]),
                delta(content="x"),
                delta(reasoning="b", reasoning_details=[SECOND]),
            ],
            delta(reasoning="ab", reasoning_details=[FIRST, SECOND]),
        ),
        (
            [delta(reasoning="a", reasoning_details=[SUMMARY]), delta(reasoning_details=[SEAL])],
            delta(reasoning="a", reasoning_details=[SUMMARY, SEAL]),
        ),
    ],
)
def test_a_last_chunk_that_repeats_sealed_reasoning_adds_nothing(
    deltas: list[dict[str, Any]], last: dict[str, Any]
) -> None:
    said = delta(content="so")
    once = read(*deltas, said)
    assert once.reasoning
    for repeated in (read(*deltas, said, last), read(*deltas, last, said)):
        assert (repeated.parts, repeated.reasoning) == (once.parts, once.reasoning)


def test_a_signature_of_google_does_not_seal_the_reasoning_before_it() -> None:
    call = {**piece(0, "f", "{}", "c")["tool_calls"][0], "extra_content": {"google": {"thought_signature": "S"}}}
    parts = read(delta(reasoning="think"), {"tool_calls": [call]}, reason="tool_calls").parts
    assert parts[:2] == (ReasoningPart("think"), ReasoningPart("", "S", "gemini"))


def test_the_name_of_a_call_may_follow_its_arguments() -> None:
    response = read(piece(0, id="c"), piece(0, arguments='{"a": 1}'), piece(0, name="f"), reason="tool_calls")
    assert [(call.name, call.id, call.arguments) for call in response.tool_calls] == [("f", "c", {"a": 1})]
    assert not response.problems


def test_arguments_behind_the_end_of_their_call_are_reported() -> None:
    late = [piece(0, "f", "{}", "c"), piece(1, "g", "{}", "d"), piece(0, arguments='{"late": 1}')]
    response = read(*late, reason="tool_calls")
    assert [call.name for call in response.tool_calls] == ["f", "g"]
    assert [(problem.kind, problem.raw) for problem in response.problems] == [("missing_name", '{"late": 1}')]


def test_a_stream_ends_with_an_end_marker() -> None:
    assert b"".join(tw.get_api("openai_chat").encode_stream([tw.Finish(tw.FinishReason.STOP)])).endswith(
        b"\n\ndata: [DONE]\n\n"
    )


def test_a_whole_answer_in_place_of_a_stream_is_read() -> None:
    call = tw.ToolCall("f", {"a": 1}, "call_1")
    body = tw.get_api("openai_chat").encode_response(tw.ParsedResponse("Hi.", tool_calls=(call,)))
    decoder = tw.get_api("openai_chat").stream_decoder()
    response = tw.collect([*decoder.feed(json.dumps(body).encode()), *decoder.finish()])
    assert (response.content, response.finish_reason) == ("Hi.", tw.FinishReason.TOOL_CALLS)
    assert [(call.name, call.arguments) for call in response.tool_calls] == [("f", {"a": 1})]


def _streamed_choices(*chunks: list[dict[str, object]]) -> list[tw.Event]:
    decoder = tw.get_api("openai_chat").stream_decoder()
    events = [event for choices in chunks for event in decoder.feed({"id": "x", "choices": choices})]
    return [*events, *decoder.feed(b"data: [DONE]\n\n"), *decoder.finish()]


def test_further_choices_of_a_stream_are_kept_as_a_whole_answer_has_them() -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{"}}
    events = _streamed_choices(
        [{"index": 1, "delta": {"role": "assistant", "content": "b"}}, {"index": 0, "delta": {"content": "a"}}],
        [{"index": 1, "delta": {"role": "assistant", "content": "c", "tool_calls": [call]}}],
        [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        [{"index": 1, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}}],
        [{"index": 1, "delta": {}, "finish_reason": "tool_calls"}],
    )
    answer = tw.collect(events)
    assert (answer.content, answer.tool_calls) == ("a", ())
    api = tw.get_api("openai_chat")
    other = api.encode_response(answer)["choices"][1]
    function = {"name": "f", "arguments": "{}"}
    assert other == {
        "index": 1,
        "message": {
            "role": "assistant",
            "content": "bc",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        "finish_reason": "tool_calls",
    }
    (chunk,) = [line for line in b"".join(api.encode_stream(events)).splitlines() if b'"index":1' in line]
    delta = json.loads(chunk[6:])["choices"][1]["delta"]
    assert (delta["content"], delta["tool_calls"][0]["index"]) == ("bc", 0)


def test_a_note_names_further_choices_that_another_api_has_no_place_for() -> None:
    events = _streamed_choices(
        [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}],
        [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}],
    )
    notes = Notes()
    tw.get_api("anthropic_messages").encode_response(tw.collect(events), notes=notes)
    assert any("choices" in str(note) for note in notes)


def test_a_message_that_repeats_what_was_streamed_is_not_read_again() -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "Hi", "tool_calls": [call]}
    events = _streamed_choices(
        [{"index": 0, "delta": {"content": "Hi", "tool_calls": [call]}}],
        [{"index": 0, "delta": {}, "message": message, "finish_reason": "tool_calls"}],
    )
    answer = tw.collect(events)
    assert (answer.content, [call.id for call in answer.tool_calls]) == ("Hi", ["c1"])


def test_a_further_choice_that_does_not_end_is_kept_at_the_end_of_the_stream() -> None:
    calls: list[dict[str, object]] = [
        {"index": 1, "id": "c1", "function": {"name": "f"}},
        {"index": 1, "id": "c1", "function": {"arguments": "{}"}},
    ]
    events = _streamed_choices(
        *([{"index": 1, "delta": {"content": "b", "tool_calls": [call]}}] for call in calls),
        [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}],
    )
    other = tw.get_api("openai_chat").encode_response(tw.collect(events))["choices"][1]
    function = {"name": "f", "arguments": "{}"}
    message = {"content": "bb", "tool_calls": [{"id": "c1", "function": function}]}
    assert other == {"index": 1, "finish_reason": None, "message": message}


def test_a_further_choice_that_cannot_be_read_does_not_hide_the_first() -> None:
    broken = {"index": 1, "delta": {"tool_calls": [None]}}
    events = _streamed_choices([{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}, broken])
    answer = tw.collect(events)
    assert (answer.content, [problem.kind for problem in answer.problems]) == ("a", ["malformed"])

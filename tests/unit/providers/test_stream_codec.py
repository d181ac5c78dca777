"""Streams of any API: the order of events, truncated calls, and the totals at the end."""

from typing import Any

import pytest
from tests.streams import streamed

import toolwire
from toolwire import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    DefinitionError,
    Event,
    Finish,
    FinishReason,
    OpaquePart,
    OpaquePartReceived,
    ProblemFound,
    ToolCall,
    Usage,
    UsageCounted,
    collect,
)
from toolwire.messages import Problem
from toolwire.providers.stream_codec import as_dict, in_order, open_truncated_calls

TRUNCATED: list[Event] = [
    CallStart(0, "delete_all", "call00001"),
    CallEnd(0, ToolCall("delete_all", {}, "call00001"), False),
    Finish(FinishReason.LENGTH),
]


@pytest.mark.parametrize("name", toolwire.apis())
@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.TOOL_CALLS, FinishReason.STOP])
def test_call_truncated_before_its_arguments_is_never_read_back_as_complete(name: str, reason: FinishReason) -> None:
    events = [*TRUNCATED[:-1], Finish(reason)]
    data = b"".join(toolwire.get_api(name).encode_stream(events))
    assert collect(streamed(name, data)).tool_calls == ()


def test_truncated_call_without_arguments_gets_an_open_bracket() -> None:
    assert list(open_truncated_calls(TRUNCATED)) == [TRUNCATED[0], ArgumentsDelta(0, "{"), *TRUNCATED[1:]]


def test_truncated_call_with_arguments_stays_as_it_is() -> None:
    opened = [TRUNCATED[0], ArgumentsDelta(0, '{"a'), *TRUNCATED[1:]]
    assert list(open_truncated_calls(opened)) == opened


def test_complete_call_stays_as_it_is() -> None:
    complete = [TRUNCATED[0], CallEnd(0, ToolCall("delete_all", {}, "call00001"), True)]
    assert list(open_truncated_calls(complete)) == complete


def test_interleaved_calls_are_written_one_after_another() -> None:
    first, second = (
        [
            CallStart(index, "f", str(index)),
            ArgumentsDelta(index, "{"),
            ArgumentsDelta(index, "}"),
            CallEnd(index, ToolCall("f", {}, str(index)), True),
        ]
        for index in (0, 1)
    )
    text = ContentDelta("x")
    mixed = [first[0], second[0], second[1], first[1], text, second[2], second[3], first[2], first[3]]
    assert list(in_order(mixed)) == [*first, *second, text]


def test_call_without_an_end_is_written_at_the_end() -> None:
    events: list[Event] = [CallStart(0, "f", "1"), ArgumentsDelta(0, "{"), ContentDelta("x")]
    assert list(in_order(events)) == events


@pytest.mark.parametrize("name", toolwire.apis())
def test_totals_are_those_of_the_last_usage_and_finish_events(name: str) -> None:
    events = [UsageCounted(Usage(1, 1)), ContentDelta("x"), UsageCounted(Usage(5, 7)), Finish(FinishReason.LENGTH)]
    response = collect(streamed(name, b"".join(toolwire.get_api(name).encode_stream(events))))
    assert (response.content, response.finish_reason) == ("x", FinishReason.LENGTH)
    assert response.usage is not None
    # Anthropic counts the input at the beginning of a stream, before it is known here.
    assert response.usage.output_tokens == 7


def test_items_of_other_apis_and_problems_are_noted_and_left_out() -> None:
    events = [
        OpaquePartReceived(OpaquePart({"type": "web_search_call"}, "openai_responses")),
        ProblemFound(Problem("malformed", 0, "", "It is broken.")),
        ContentDelta("x"),
        Finish(FinishReason.STOP),
    ]
    notes = toolwire.Notes()
    data = b"".join(toolwire.get_api("anthropic_messages").encode_stream(events, notes=notes))
    assert b"web_search" not in data
    assert [(note.kind, note.where) for note in notes] == [("dropped", "web_search_call"), ("dropped", "malformed")]


@pytest.mark.parametrize(
    ("data", "message", "raw"),
    [
        (b"data: [1]\n\n", "A part of the stream cannot be read: it is not an object", ""),
        (b"data: oops\n\n", "A part of the stream cannot be read: it is not JSON: ", "oops"),
        (
            b'data: {"choices": [5]}\n\n',
            "A part of the stream does not belong to this API: AttributeError ",
            '{"choices": [5]}',
        ),
    ],
)
def test_a_part_that_cannot_be_read_is_a_problem_and_the_rest_is_read(data: bytes, message: str, raw: str) -> None:
    rest = b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    response = collect(streamed("openai_chat", data + rest))
    assert response.content == "x"
    (problem,) = response.problems
    assert (problem.kind, problem.raw) == ("malformed", raw)
    assert problem.message.startswith(message)


@pytest.mark.parametrize(
    ("chunk", "identity"),
    [
        ({"id": "chatcmpl-1", "model": "m", "created": 5}, ("1", "m", 5)),
        ({"responseId": "r", "modelVersion": "g"}, ("r", "g", 0)),
        ({"message": {"id": "msg_2", "model": "c"}}, ("2", "c", 0)),
        ({"response": {"id": "resp_3", "model": "o", "created_at": 7.9}}, ("3", "o", 7)),
        ({"id": 5, "model": ["m"], "created": "now"}, ("9", "later", 9)),
        ({"message": "hello", "id": "x"}, ("x", "later", 9)),
        ({"created": float("inf"), "created_at": 5}, ("9", "later", 9)),
        ({"created": float("nan")}, ("9", "later", 9)),
        ({"created": -(10**30)}, ("9", "later", 9)),
        ({"created": 253_402_300_800}, ("9", "later", 9)),
        ({"created": 253_402_300_799}, ("9", "later", 253_402_300_799)),
    ],
)
def test_an_answer_is_identified_by_the_first_part_that_says_each(
    chunk: dict[str, Any], identity: tuple[str, str, int]
) -> None:
    decoder = toolwire.get_api("openai_chat").stream_decoder()
    decoder.feed({**chunk, "choices": []})
    decoder.feed({"id": "chatcmpl-9", "model": "later", "created": 9, "choices": []})
    assert (decoder.id, decoder.model, decoder.created) == identity


def test_the_object_of_a_client_is_read_without_its_empty_members() -> None:
    class Dumped:
        def __init__(self, value: object) -> None:
            self.value, self.options = value, dict[str, object]()

        def model_dump(self, **options: object) -> object:
            self.options = options
            return self.value

    dumped = Dumped({"a": 1})
    assert as_dict(dumped) == {"a": 1}
    assert dumped.options == {"mode": "json", "by_alias": True, "exclude_none": True}
    for wrong in (Dumped([1]), 5, "text"):
        with pytest.raises(DefinitionError, match="a response must be a dict or an object with model_dump, not "):
            as_dict(wrong)

"""Responses told apart by shape, and calls in the text of a response that has fields for them."""

import json
from typing import Any

import pytest
from tests.streams import streamed

import toolwire
from toolwire import (
    CallEnd,
    ContentDelta,
    DefinitionError,
    Finish,
    FinishReason,
    ParsedResponse,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolDefinition,
    collect,
    merge_text,
    replay,
)
from toolwire.providers.parsing import AnswerReader

TOOL = ToolDefinition("f", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
NATIVE = ToolCall("f", {"a": 1}, "c1")
COPY = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
OTHER = '<tool_call>\n{"name": "f", "arguments": {"a": 2}}\n</tool_call>'


def body(content: str, *calls: ToolCall) -> dict[str, Any]:
    listed = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}}
        for c in calls
    ]
    message = {"role": "assistant", "content": content, "tool_calls": listed or None}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}]}


@pytest.mark.need(1)
@pytest.mark.parametrize("api", toolwire.apis())
def test_api_of_a_response_is_detected_by_its_shape(api: str) -> None:
    expected = toolwire.get_api(api)
    response = expected.encode_response(ParsedResponse("hi", tool_calls=(NATIVE,)))
    read = toolwire.parse(response, tools=[TOOL])
    assert read.content == "hi"
    assert [(call.name, call.arguments) for call in read.tool_calls] == [("f", {"a": 1})]
    assert toolwire.parse(response, api=api).tool_calls == expected.decode_response(response).tool_calls


def test_text_is_parsed_as_text() -> None:
    assert toolwire.parse(COPY, format="hermes").tool_calls[0].format == "hermes"


def test_invalid_responses_are_refused() -> None:
    with pytest.raises(DefinitionError, match="keys a belongs to no known API"):
        toolwire.parse({"a": 1})
    with pytest.raises(DefinitionError, match="keys none belongs to no known API"):
        toolwire.parse({})
    with pytest.raises(TypeError, match=r"parse\(\) has no argument 'formt'"):
        toolwire.parse("x", formt="hermes")  # type: ignore[call-arg]
    with pytest.raises(DefinitionError, match="a response must be a dict or an object with model_dump, not int"):
        toolwire.parse(5)
    with pytest.raises(toolwire.UnknownApi, match="did you mean openai_chat"):
        toolwire.parse({}, api="openai_chatt")


@pytest.mark.mission("F14", "F18", "F25", "F31")
@pytest.mark.need(1)
def test_calls_in_the_text_follow_native_calls() -> None:
    read = toolwire.parse(body(f"see {OTHER} there", NATIVE))
    assert [(call.arguments, call.format) for call in read.tool_calls] == [
        ({"a": 1}, "openai_chat"),
        ({"a": 2}, "hermes"),
    ]
    assert read.content == "see  there"
    assert toolwire.sources(read) == {"openai_chat": 1, "hermes": 1}


@pytest.mark.mission("F18", "F31")
def test_copy_of_a_native_call_is_dropped_once() -> None:
    assert toolwire.parse(body(COPY, NATIVE)).tool_calls == (NATIVE,)
    assert len(toolwire.parse(body(COPY + COPY, NATIVE)).tool_calls) == 2
    assert len(toolwire.parse(body("", NATIVE, ToolCall("f", {"a": 1}, "c2"))).tool_calls) == 2


@pytest.mark.mission("F25")
@pytest.mark.need(25)
def test_call_in_the_text_changes_the_finish_reason() -> None:
    read = toolwire.parse(body(COPY))
    assert (read.finish_reason, len(read.tool_calls)) == (FinishReason.TOOL_CALLS, 1)
    assert toolwire.parse(body(COPY), tool_choice="none").content == COPY


def test_reasoning_in_the_text_is_separated_from_content() -> None:
    read = toolwire.parse(body("<think>hm</think>hi"))
    assert (read.reasoning, read.content) == ("hm", "hi")


@pytest.mark.mission("F33")
def test_malformed_call_in_the_text_has_a_problem() -> None:
    read = toolwire.parse(body('<tool_call>\n{"name": "f", "arguments": {"a": ', NATIVE), format="hermes")
    assert [call.name for call in read.incomplete] == ["f"]
    assert [(problem.kind, problem.index) for problem in read.problems] == [("truncated", 1)]
    alone = toolwire.parse(body(OTHER.partition("2")[0]), format="hermes")
    assert (alone.finish_reason, [call.name for call in alone.incomplete]) == (FinishReason.STOP, ["f"])


def test_text_is_emitted_before_calls_of_the_text() -> None:
    response = ParsedResponse(f"before {OTHER} after", tool_calls=(NATIVE,))
    events = list(merge_text(replay(response), format="hermes"))
    kinds = [type(event).__name__ for event in events]
    assert kinds.index("ContentDelta") < kinds.index("CallStart")
    ends = [event for event in events if isinstance(event, CallEnd)]
    assert [(end.index, end.call.arguments) for end in ends] == [(0, {"a": 1}), (1, {"a": 2})]
    assert "".join(event.text for event in events if isinstance(event, ContentDelta)) == "before  after"
    assert collect(events).finish_reason is FinishReason.TOOL_CALLS


def blocks(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(listed), "stop_reason": "tool_use"}


USE = {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_text_keeps_its_order_with_native_calls() -> None:
    read = toolwire.parse(blocks(said("is 1 <"), USE, said("end <tool")), tools=[TOOL])
    assert read.parts == (TextPart("is 1 <"), NATIVE, TextPart("end <tool"))
    assert read.content == "is 1 <end <tool"


def test_signature_stays_on_its_text() -> None:
    parts = [{"text": "a <"}, {"text": "b", "thoughtSignature": "c2ln"}]
    answer = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    assert toolwire.parse(answer).parts == (TextPart("a <"), ReasoningPart("", "c2ln", "gemini"), TextPart("b"))


def test_calls_of_several_texts_come_last_with_unique_ids() -> None:
    broken = '<tool_call>{"name": 5}'
    read = toolwire.parse(
        blocks(said("x" + OTHER), USE, said(OTHER + COPY), {**USE, "id": "c2"}, said("y" + broken)),
        format="hermes",
        tools=[TOOL],
    )
    assert [(call.arguments["a"], call.format) for call in read.tool_calls] == [
        (1, "anthropic_messages"),
        (1, "anthropic_messages"),
        (2, "hermes"),
        (2, "hermes"),
    ]
    assert len({call.id for call in read.tool_calls}) == 4
    (problem,) = read.problems
    assert problem.position == len("x" + OTHER + OTHER + COPY + "y")


def test_open_call_of_the_text_continues_after_other_events() -> None:
    half = len(OTHER) // 2
    events = [
        ContentDelta(OTHER[:half]),
        *(event for event in replay(ParsedResponse(tool_calls=(NATIVE,))) if not isinstance(event, Finish)),
        ContentDelta(OTHER[half:]),
    ]
    read = collect(merge_text(events, format="hermes", tools=[TOOL]))
    assert [call.arguments["a"] for call in read.tool_calls] == [1, 2]


def test_a_text_behind_a_native_call_is_read_on_its_own() -> None:
    """A code fence that was left open before it would hide what comes after it."""
    for before in (f"{OTHER}\n```\n", "```\n"):
        read = toolwire.parse(blocks(said(before), USE, said(OTHER)), format="hermes", tools=[TOOL])
        calls = [1, 2, 2] if OTHER in before else [1, 2]
        assert [call.arguments["a"] for call in read.tool_calls] == calls


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("reads_text", [True, False])
def test_bytes_of_an_answer_are_read_with_the_calls_in_their_text(reads_text: bool, size: int) -> None:
    api = toolwire.get_api("openai_chat")
    tool = ToolDefinition("files.read")  # for which the API has another name
    name = api.encode_request([toolwire.Message("user", (TextPart("x"),))], tools=[tool])["tools"][0]["function"][
        "name"
    ]
    response = ParsedResponse(f"before {OTHER}", tool_calls=(ToolCall(name, {"a": 1}, "c1"), ToolCall("f")))
    data = b"".join(api.encode_stream(replay(response)))
    reader = AnswerReader(api, reads_text=reads_text, format="hermes", tools=[tool], id_seed="s")
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    read = collect([*(event for piece in pieces for event in reader.feed(piece)), *reader.finish()])
    calls = [(call.name, call.arguments) for call in read.tool_calls]
    assert calls == [("files.read", {"a": 1}), ("f", {}), *([("f", {"a": 2})] if reads_text else [])]
    assert (
        read.tool_calls[:2] == api.decode_response(api.encode_response(response), tools=[tool], id_seed="s").tool_calls
    )
    assert read.content == ("before " if reads_text else f"before {OTHER}")


def test_prompt_precedes_the_first_text_only() -> None:
    read = toolwire.parse(blocks(said("hm</think>a"), USE, said("b")), format="hermes", reasoning_started=True)
    assert (read.reasoning, read.content) == ("hm", "ab")


@pytest.mark.parametrize("name", toolwire.apis())
def test_provider_error_in_a_stream_survives_every_api(name: str) -> None:
    api = toolwire.get_api(name)
    problem = toolwire.ProblemFound(toolwire.Problem("provider_error", 0, "", "Overloaded."))
    events = [ContentDelta("half"), problem, toolwire.Finish(FinishReason.ERROR)]
    read = collect(streamed(api, b"".join(api.encode_stream(events))))
    assert (read.content, read.finish_reason) == ("half", FinishReason.ERROR)
    assert [problem.kind for problem in read.problems] == ["provider_error"]
    assert "Overloaded" in read.problems[0].message


@pytest.mark.parametrize("count", [-1, 10**400, "many"])
@pytest.mark.parametrize("counted", ["prompt_tokens", "completion_tokens"])
def test_token_counts_that_cannot_be_are_not_believed(count: object, counted: str) -> None:
    answer = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": {counted: count}}
    response = toolwire.get_api("openai_chat").decode_response(answer)
    assert response.content == "Hi"
    assert response.usage is None
    assert [problem.kind for problem in response.problems] == ["malformed"]

"""The laws of all provider APIs: every split decodes the same, round trips are exact, nothing raises."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.streams import streamed

import toolwire
from toolwire import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    DefinitionError,
    Event,
    Finish,
    FinishReason,
    Message,
    ParsedResponse,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
    collect,
    replay,
)

ALIKE = frozenset(
    (
        "azure",
        "azure_deployments",
        "xai",
        "together",
        "fireworks",
        "cerebras",
        "moonshot",
        "vllm",
        "sglang",
        "llama_cpp",
        "lm_studio",
        "ollama_chat",
        "zai",
        "venice",
        "hugging_face",
        "deepinfra",
        "cloudflare",
        "anthropic_vertex",
        "openai_compatible",
    )
)
"""Providers with the properties of another provider in these tests."""
NO_FILTER = frozenset(("mistral", "ollama", "gemini_interactions"))
"""APIs without a word of its own for a filtered answer."""
WHOLE_CALLS = frozenset(("gemini", "gemini_openapi", "ollama"))
"""APIs whose streams have no place for a call that is not whole."""
APIS = pytest.mark.parametrize("name", [name for name in toolwire.apis() if name not in ALIKE])
ORDERED = (
    "anthropic_messages",
    "bedrock_converse",
    "gemini",
    "gemini_openapi",
    "gemini_interactions",
    "openai_responses",
)
"""APIs in which text and calls have an order."""

NAMES = st.sampled_from(("get_weather", "f", "files.read", "läsa", "x" * 80))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
ARGUMENTS = st.dictionaries(st.text(max_size=8), VALUES, max_size=3)
IDS = st.integers(0, 10**6).map("call{:05d}".format)
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip)
PARTS = st.lists(
    st.builds(TextPart, TEXT) | st.builds(ToolCall, NAMES, ARGUMENTS, IDS),
    max_size=5,
    # An id names one call: an equal call with the same id is the same piece of a stream again.
    unique_by=lambda part: part.id if isinstance(part, ToolCall) else object(),
).map(tuple)


def response_of(parts: tuple[TextPart | ToolCall, ...]) -> ParsedResponse:
    calls = tuple(part for part in parts if isinstance(part, ToolCall))
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    reason = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
    return ParsedResponse(text, tool_calls=calls, finish_reason=reason, parts=parts)


def tools_of(response: ParsedResponse) -> list[ToolDefinition]:
    return [ToolDefinition(name) for name in dict.fromkeys(call.name for call in response.tool_calls)]


def joined(parts: tuple[Any, ...]) -> list[Any]:
    """Return text and calls in order, with adjacent text joined."""
    all_parts: list[Any] = []
    for part in parts:
        if isinstance(part, TextPart):
            if all_parts and isinstance(all_parts[-1], str):
                all_parts[-1] += part.text
            else:
                all_parts.append(part.text)
        elif isinstance(part, ToolCall):
            all_parts.append((part.name, part.arguments))
    return all_parts


@pytest.mark.mission("F19")
@pytest.mark.need(21)
@APIS
@given(PARTS, st.integers(1, 60))
def test_encoded_response_and_stream_are_decoded_again(
    name: str, parts: tuple[TextPart | ToolCall, ...], size: int
) -> None:
    api, response = toolwire.get_api(name), response_of(parts)
    tools = tools_of(response)
    decoded = api.decode_response(api.encode_response(response), tools=tools)
    data = b"".join(api.encode_stream(replay(response)))
    events = streamed(name, data, size, tools=tools)
    in_pieces = collect(events)
    for again in (decoded, in_pieces):
        assert [(call.name, call.arguments) for call in again.tool_calls] == [
            (call.name, call.arguments) for call in response.tool_calls
        ]
        assert again.content == response.content
        assert not again.problems
        if name in ORDERED:
            assert joined(again.parts) == joined(response.parts)
    for end in (event for event in events if isinstance(event, CallEnd)):
        deltas = "".join(e.text for e in events if isinstance(e, ArgumentsDelta) and e.index == end.index)
        assert json.loads(deltas) == end.call.arguments


@APIS
@given(PARTS, st.integers(1, 30), st.data())
def test_damaged_stream_raises_nothing_and_invents_no_call(
    name: str, parts: tuple[TextPart | ToolCall, ...], size: int, data: st.DataObject
) -> None:
    response = response_of(parts)
    tools = tools_of(response)
    sent = b"".join(toolwire.get_api(name).encode_stream(replay(response)))
    cut = collect(streamed(name, sent[: data.draw(st.integers(0, len(sent)))], size, tools=tools))
    whole_calls = [(call.name, call.arguments) for call in response.tool_calls]
    for call in cut.tool_calls:
        assert (call.name, call.arguments) in whole_calls
    broken = bytearray(sent)
    for _ in range(data.draw(st.integers(0, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    bytewise, in_blocks = (collect(streamed(name, bytes(broken), step, tools=tools)) for step in (1, 1000))
    assert bytewise == in_blocks


def _mutations(value: Any) -> st.SearchStrategy[Any]:
    """Return a JSON value in which one part was replaced by another value."""
    junk = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([]) | st.just({}) | st.just([{}])
    if isinstance(value, dict) and value:
        return st.one_of(
            junk,
            *(
                st.builds(lambda key, inner: {**value, key: inner}, st.just(key), _mutations(inner))
                for key, inner in value.items()
            ),
        )
    if isinstance(value, list) and value:
        return st.one_of(junk, st.builds(lambda inner: [inner, *value[1:]], _mutations(value[0])))
    return junk


@APIS
@given(st.data())
def test_damaged_body_raises_only_documented_errors(name: str, data: st.DataObject) -> None:
    api = toolwire.get_api(name)
    call = ToolCall("f", {"a": 1}, "call00001")
    body = api.encode_response(response_of((TextPart("hi"), call)))
    damaged = data.draw(_mutations(body))
    if isinstance(damaged, dict):
        assert isinstance(api.decode_response(damaged), ParsedResponse)
    request = api.encode_request(
        [
            Message("system", (TextPart("s"),)),
            Message("user", (TextPart("u"),)),
            Message("assistant", (TextPart("t"), call)),
            Message("tool", (ToolResult("call00001", "f", "r"),)),
        ],
        tools=[ToolDefinition("f", "d", {"type": "object", "properties": {"a": {"type": "integer"}}})],
        model="m",
    )
    damaged = data.draw(_mutations(request))
    if isinstance(damaged, dict):
        try:
            again = api.decode_request(damaged)
        except DefinitionError:
            return
        assert isinstance(again, toolwire.ChatRequest)


@pytest.mark.need(19)
@APIS
@given(st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=3), st.data())
def test_conversation_keeps_its_calls_and_results(
    name: str, calls: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    """After encoding and decoding, results are in the order of the calls, by the ids of the calls."""
    api = toolwire.get_api(name)
    tool_calls = [ToolCall(name, arguments, data.draw(IDS | st.just(""))) for name, arguments in calls]
    results = [ToolResult(call.id, call.name, f"result {at}") for at, call in enumerate(tool_calls)]
    shuffled = (
        data.draw(st.permutations(results)) if len({call.id for call in tool_calls}) == len(tool_calls) else results
    )
    tools = [ToolDefinition(name) for name in dict.fromkeys(name for name, _ in calls)]
    conversation = (
        Message("user", (TextPart("q"),)),
        Message("assistant", tuple(tool_calls)),
        Message("tool", tuple(shuffled)),
    )
    again = api.decode_request(api.encode_request(conversation, tools=tools, model="m"))
    (assistant,) = (message for message in again.messages if message.role == "assistant")
    (answers,) = (message for message in again.messages if message.role == "tool")
    read = [part for part in assistant.parts if isinstance(part, ToolCall)]
    assert [part.name for part in read] == [api.names.fit(call.name) for call in tool_calls]
    assert [part.arguments for part in read] == [call.arguments for call in tool_calls]
    results_back = [part for part in answers.parts if isinstance(part, ToolResult)]
    assert [part.call_id for part in results_back] == [part.id for part in read]
    assert all(f"result {at}" in part.text for at, part in enumerate(results_back))


def _cut_arguments(value: Any, arguments: dict[str, Any], data: st.DataObject) -> Any:
    """Return a body in which these arguments are the beginning of themselves, as text or as an object."""
    if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
        try:
            is_arguments = json.loads(value) == arguments
        except ValueError:
            is_arguments = False
        return value[: data.draw(st.integers(0, len(value) - 1))] if is_arguments else value
    if value == arguments and isinstance(value, dict):
        kept = data.draw(st.integers(0, len(value)))
        return dict(list(value.items())[:kept])
    if isinstance(value, dict):
        return {key: _cut_arguments(inner, arguments, data) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cut_arguments(inner, arguments, data) for inner in value]
    return value


CUT = st.sampled_from((FinishReason.LENGTH, FinishReason.CONTENT_FILTER))
CUT_ARGUMENTS = st.dictionaries(st.text(max_size=8), VALUES, max_size=3).map(lambda rest: {"marker": 7.25, **rest})


@pytest.mark.mission("F19")
@APIS
@given(PARTS, CUT_ARGUMENTS, st.data())
def test_whole_answer_that_was_cut_has_no_complete_call_without_closed_arguments(
    name: str, parts: tuple[TextPart | ToolCall, ...], arguments: dict[str, Any], data: st.DataObject
) -> None:
    """The last call of a cut answer is incomplete, unless its arguments are JSON text that was closed."""
    api = toolwire.get_api(name)
    last = ToolCall("last", arguments, "call99999")
    reason = data.draw(CUT)
    assume(name not in NO_FILTER or reason is FinishReason.LENGTH)
    response = ParsedResponse(parts=(*parts, last), tool_calls=(last,), finish_reason=reason)
    body = api.encode_response(response)
    cut = _cut_arguments(body, arguments, data)
    again = api.decode_response(cut)
    assert [call.name for call in again.incomplete] == ["last"]
    assert all(call.name != "last" for call in again.tool_calls)
    assert again.problems[-1].kind == "truncated"
    assert again.finish_reason is reason


@APIS
@given(PARTS, CUT_ARGUMENTS, st.integers(1, 60), st.data())
def test_stream_that_was_cut_has_no_complete_call_without_closed_arguments(
    name: str, parts: tuple[TextPart | ToolCall, ...], arguments: dict[str, Any], size: int, data: st.DataObject
) -> None:
    text = json.dumps(arguments)
    text = text[: data.draw(st.integers(0, len(text) - 1))]
    whole = replay(response_of(parts))
    events: list[Event] = [event for event in whole if not isinstance(event, Finish)]
    index = sum(isinstance(event, CallEnd) for event in events)
    call = ToolCall("last", {}, "call99999", raw=text)
    events.append(CallStart(index, "last", "call99999"))
    events += [ArgumentsDelta(index, text)] if text else []
    events += [CallEnd(index, call, complete=False), Finish(FinishReason.LENGTH)]
    sent = b"".join(toolwire.get_api(name).encode_stream(events))
    again = collect(streamed(name, sent, size))
    assert all(call.name != "last" for call in again.tool_calls)
    assert again.finish_reason is FinishReason.LENGTH
    if name not in WHOLE_CALLS:
        assert [call.name for call in again.incomplete] == ["last"]


@pytest.mark.parametrize("name", sorted(WHOLE_CALLS))
@given(PARTS, CUT_ARGUMENTS, st.data())
def test_stream_of_whole_calls_that_was_cut_has_no_complete_last_call(
    name: str, parts: tuple[TextPart | ToolCall, ...], arguments: dict[str, Any], data: st.DataObject
) -> None:
    """An object does not show its own end, so the last call of a cut stream is incomplete."""
    api = toolwire.get_api(name)
    last = ToolCall("last", arguments, "call99999")
    response = ParsedResponse(parts=(*parts, last), tool_calls=(last,), finish_reason=FinishReason.LENGTH)
    frames = api.framing().feed(b"".join(api.encode_stream(replay(response))))
    decoder = api.stream_decoder()
    events = [event for frame in frames for event in decoder.feed(_cut_arguments(frame.value, arguments, data))]
    again = collect([*events, *decoder.finish()])
    assert [call.name for call in again.incomplete] == ["last"]
    names = [api.names.fit(part.name) for part in parts if isinstance(part, ToolCall)]
    assert [call.name for call in again.tool_calls] == names


@APIS
@given(PARTS, CUT_ARGUMENTS)
def test_answer_that_was_not_cut_keeps_its_last_call(
    name: str, parts: tuple[TextPart | ToolCall, ...], arguments: dict[str, Any]
) -> None:
    """The law above holds because of the finish reason, not because calls at the end are never complete."""
    api = toolwire.get_api(name)
    last = ToolCall("last", arguments, "call99999")
    again = api.decode_response(api.encode_response(response_of((*parts, last))))
    assert (again.tool_calls[-1].name, again.tool_calls[-1].arguments) == ("last", arguments)
    assert not again.incomplete


@APIS
@pytest.mark.parametrize(
    "body", [{}, {"foo": 1}, {"id": "x", "model": "m"}], ids=["empty", "unknown", "without-answer"]
)
def test_members_alone_are_no_answer(name: str, body: dict[str, Any]) -> None:
    response = toolwire.get_api(name).decode_response(body)
    assert [problem.kind for problem in response.problems] == ["malformed"]
    assert response.parts == ()

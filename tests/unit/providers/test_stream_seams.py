"""Streams at their seams: asynchronous events, chunks of the official clients, and what identifies an answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from toolwire import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    FinishReason,
    Notes,
    ParsedResponse,
    Problem,
    ProblemFound,
    ProviderApi,
    ToolCall,
    Usage,
    apis,
    collect,
    get_api,
    replay,
)
from toolwire.errors import DefinitionError
from toolwire.messages import ReasoningPart, TextPart

CALLS = (ToolCall("look", {"item": "tea", "deep": {"a": [1, 2]}}, "call_1"), ToolCall("add", {}, "call_2"))
ANSWER = ParsedResponse(
    "I look.",
    "First think.",
    tool_calls=CALLS,
    finish_reason=FinishReason.TOOL_CALLS,
    parts=(ReasoningPart("First think."), TextPart("I look."), *CALLS),
    usage=Usage(10, 5),
)
OVERLAPPING: list[Event] = [
    CallStart(0, "look", "call_1"),
    CallStart(1, "add", "call_2"),
    ContentDelta("between"),
    ArgumentsDelta(1, "{}"),
    ArgumentsDelta(0, json.dumps(CALLS[0].arguments)),
    CallEnd(1, CALLS[1], True),
    CallEnd(0, CALLS[0], True),
]


async def arriving(events: list[Event], seen: list[int] | None = None) -> AsyncIterator[Event]:
    for at, event in enumerate(events):
        await asyncio.sleep(0)
        if seen is not None:
            seen.append(at)
        yield event


def content_of(api: ProviderApi, text: bytes) -> str:
    return "".join(event.text for event in api.stream_decoder().feed(text) if isinstance(event, ContentDelta))


async def gathered(pieces: AsyncIterator[bytes]) -> list[bytes]:
    return [piece async for piece in pieces]


@pytest.mark.parametrize("events", [list(replay(ANSWER)), OVERLAPPING, []], ids=["answer", "overlapping", "nothing"])
@pytest.mark.parametrize("name", apis())
def test_asynchronous_events_give_the_same_bytes(name: str, events: list[Event]) -> None:
    api = get_api(name)
    pieces = asyncio.run(gathered(api.encode_stream_async(arriving(events), model="m", id="7")))
    assert b"" not in pieces
    assert b"".join(pieces) == b"".join(api.encode_stream(events, model="m", id="7"))


@pytest.mark.parametrize("events", [list(replay(ANSWER)), OVERLAPPING, []], ids=["answer", "overlapping", "nothing"])
@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("name", apis())
def test_pushed_events_give_the_same_bytes(name: str, size: int, events: list[Event]) -> None:
    encoder = get_api(name).stream_encoder(model="m", id="7")
    pieces = [encoder.feed(events[at : at + size]) for at in range(0, len(events), size)]
    assert not encoder.ended
    written = b"".join((*pieces, encoder.feed(()), encoder.finish()))
    assert written == b"".join(get_api(name).encode_stream(events, model="m", id="7"))
    assert (encoder.ended, encoder.feed([ContentDelta("late")]), encoder.finish()) == (True, b"", b"")


def test_an_error_of_the_provider_ends_pushed_events() -> None:
    encoder = get_api("openai_chat").stream_encoder()
    written = encoder.feed([ContentDelta("a"), ProblemFound(Problem("provider_error", 0, "", "it broke"))])
    assert b"it broke" in written
    assert (encoder.ended, encoder.feed([ContentDelta("never")]), encoder.finish()) == (True, b"", b"")


@pytest.mark.parametrize("name", apis())
def test_an_event_is_written_before_the_next_one_is_asked_for(name: str) -> None:
    api, seen, text = get_api(name), list[int](), b""

    async def read() -> None:
        nonlocal text
        async for piece in api.encode_stream_async(arriving([ContentDelta("one"), ContentDelta("two")], seen)):
            text += piece
            if content_of(api, text) == "one":
                assert seen == [0]

    asyncio.run(read())
    assert content_of(api, text) == "onetwo"


def test_an_error_of_the_provider_ends_the_stream() -> None:
    events = [ContentDelta("a"), ProblemFound(Problem("provider_error", 0, "", "it broke")), ContentDelta("never")]
    text = b"".join(asyncio.run(gathered(get_api("openai_chat").encode_stream_async(arriving(events)))))
    assert b"it broke" in text
    assert b"never" not in text


# -- chunks of the official clients ----------------------------------------------------------------------------------


def frames(name: str) -> list[dict[str, Any]]:
    api = get_api(name)
    framing = api.framing()
    data = b"".join(api.encode_stream(replay(ANSWER), model="m", id="7"))
    return [frame.value for frame in [*framing.feed(data), *framing.finish()]]


def decoded(name: str, chunks: list[Any]) -> ParsedResponse:
    decoder = get_api(name).stream_decoder()
    return collect([*(event for chunk in chunks for event in decoder.feed(chunk)), *decoder.finish()])


def openai_chunks() -> list[Any]:
    from openai.types.chat import ChatCompletionChunk

    return [ChatCompletionChunk.model_validate(frame) for frame in frames("openai_chat")]


def responses_events() -> list[Any]:
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    return [adapter.validate_python(frame) for frame in frames("openai_responses")]


def anthropic_events() -> list[Any]:
    from anthropic.types import RawMessageStreamEvent
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
    return [adapter.validate_python(frame) for frame in frames("anthropic_messages")]


def gemini_responses() -> list[Any]:
    from google.genai.types import GenerateContentResponse

    return [GenerateContentResponse.model_validate(frame) for frame in frames("gemini")]


@pytest.mark.parametrize(
    ("name", "chunks"),
    [
        ("openai_chat", openai_chunks),
        ("openai_responses", responses_events),
        ("anthropic_messages", anthropic_events),
        ("gemini", gemini_responses),
    ],
)
def test_a_decoder_takes_the_chunks_of_the_official_client(name: str, chunks: Any) -> None:
    whole = b"".join(get_api(name).encode_stream(replay(ANSWER), model="m", id="7"))
    from_bytes = decoded(name, [whole])
    from_objects = decoded(name, chunks())
    assert from_objects == from_bytes
    assert from_objects.tool_calls == from_bytes.tool_calls
    assert [call.name for call in from_objects.tool_calls] == ["look", "add"]
    assert from_objects.usage == from_bytes.usage
    assert decoded(name, frames(name)) == from_bytes, "dicts are chunks too"


def test_a_decoder_takes_the_events_of_botocore() -> None:
    api = get_api("bedrock_converse")
    data = b"".join(api.encode_stream(replay(ANSWER), model="m"))
    framing = api.framing()
    events = [{frame.event: frame.value} for frame in [*framing.feed(data), *framing.finish()]]
    assert decoded("bedrock_converse", events) == decoded("bedrock_converse", [data])


def test_a_piece_that_is_neither_is_an_error() -> None:
    with pytest.raises(DefinitionError, match=r"a piece of a stream must be bytes, a dict or an object .*, not str"):
        get_api("openai_chat").stream_decoder().feed("data: {}")  # type: ignore[arg-type]


# -- what identifies an answer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["openai_chat", "openai_responses", "anthropic_messages", "gemini"])
@pytest.mark.parametrize("target", ["openai_chat", "openai_responses", "anthropic_messages", "gemini"])
def test_a_translated_stream_has_the_model_the_id_and_the_usage_of_the_original(source: str, target: str) -> None:
    original = b"".join(get_api(source).encode_stream(replay(ANSWER), model="big-1", id="7f3a", created=1_700_000_000))
    decoder = get_api(source).stream_decoder()

    async def events() -> AsyncIterator[Event]:
        for at in range(0, len(original), 50):
            for event in decoder.feed(original[at : at + 50]):
                yield event
        for event in decoder.finish():
            yield event

    translated = b"".join(asyncio.run(gathered(get_api(target).encode_stream_async(events(), source=decoder))))
    again = get_api(target).stream_decoder()
    answer = collect([*again.feed(translated), *again.finish()])
    assert (decoder.model, decoder.id) == (again.model, again.id) == ("big-1", "7f3a")
    assert answer.usage == Usage(10, 5)
    if decoder.created and again.created:
        assert decoder.created == again.created == 1_700_000_000


def test_what_is_passed_counts_before_what_the_original_says() -> None:
    api = get_api("openai_chat")
    decoder = api.stream_decoder()
    events = [*decoder.feed(b"".join(api.encode_stream(replay(ANSWER), model="m", id="7"))), *decoder.finish()]
    text = b"".join(api.encode_stream(events, model="other", source=decoder))
    assert b'"model":"other"' in text
    assert b'"id":"chatcmpl-7"' in text


def test_asynchronous_events_are_refused_where_others_are_expected() -> None:
    async def events() -> AsyncIterator[Event]:
        yield ContentDelta("x")

    with pytest.raises(TypeError, match="encode_stream_async takes an asynchronous one, not async_generator"):
        list(get_api("openai_chat").encode_stream(events()))  # type: ignore[arg-type]


BROKEN_OFF = ProblemFound(Problem("truncated", 0, "", "the stream broke off"))
CUT: dict[str, list[Event]] = {
    "broken off": [ContentDelta("I lo"), BROKEN_OFF, Finish(FinishReason.ERROR)],
    "no finish": [ContentDelta("I lo")],
    "nothing": [],
    "failed": [ContentDelta("I lo"), Finish(FinishReason.ERROR)],
    "broken off behind a call": [
        CallStart(0, "add", "call_2"),
        ArgumentsDelta(0, "{}"),
        CallEnd(0, CALLS[1], True),
        BROKEN_OFF,
        Finish(FinishReason.ERROR),
    ],
}


@pytest.mark.parametrize("notes", [None, Notes()], ids=["without notes", "with notes"])
@pytest.mark.parametrize("events", CUT.values(), ids=CUT)
@pytest.mark.parametrize("api", apis())
def test_a_stream_that_is_not_whole_does_not_end_like_a_whole_one(
    api: str, events: list[Event], notes: Notes | None
) -> None:
    decoder = get_api(api).stream_decoder()
    data = b"".join(get_api(api).encode_stream(events, notes=notes))
    response = collect([*decoder.feed(data), *decoder.finish()])
    assert response.finish_reason is FinishReason.ERROR


@pytest.mark.parametrize("api", apis())
def test_a_whole_call_of_an_answer_that_failed_is_still_written(api: str) -> None:
    failed = ParsedResponse(tool_calls=CALLS, finish_reason=FinishReason.ERROR)
    decoder = get_api(api).stream_decoder()
    response = collect([*decoder.feed(b"".join(get_api(api).encode_stream(replay(failed)))), *decoder.finish()])
    assert [call.name for call in response.tool_calls] == ["look", "add"]

"""Streams that are passed on: their events make up the answer that a decoder reads, and few of them are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.gateway.gateway_calls import CLIENTS

from toolwire import (
    ContentDelta,
    Event,
    Finish,
    FinishReason,
    ParsedResponse,
    ReasoningPart,
    TextPart,
    ToolCall,
    collect,
    replay,
)
from toolwire.gateway import client_apis
from toolwire.gateway.client_apis import ClientApi
from toolwire.gateway.passed_streams import MAX_JOINED, PassedStreamReader

APIS: dict[str, ClientApi] = {
    "chat": client_apis.CHAT,
    "responses": client_apis.RESPONSES,
    "messages": client_apis.MESSAGES,
    "gemini": client_apis.GEMINI,
    "ollama": client_apis.OLLAMA,
}
WORDS = ["word ", "é", "\n", '"', "\\", "😀", "", 'data: {"index": 1}\n\n', "\x07", "}"]


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def read(api: ClientApi, pieces: Iterator[bytes]) -> ParsedResponse:
    reader = PassedStreamReader(api)
    return collect([*(event for piece in pieces for event in reader.feed(piece)), *reader.finish()])


def decoded(api: ClientApi, data: bytes) -> ParsedResponse:
    decoder = api.api.stream_decoder()
    return collect([*decoder.feed(data), *decoder.finish()])


def pieces_of(text: str, size: int = 3) -> list[ContentDelta]:
    return [ContentDelta(text[at : at + size]) for at in range(0, len(text), size)]


def stream(api: ClientApi, events: Sequence[Event]) -> bytes:
    return b"".join(api.api.encode_stream(events, model="m", id="abc", created=1))


CALL = ToolCall("write_file", {"path": "a", "content": 'x = "é"\n' * 30}, "call_1")
PARTS = (ReasoningPart("I think about it."), TextPart("I write. " * 20), CALL)
ANSWER = ParsedResponse(
    "I write. " * 20, "I think about it.", (CALL,), finish_reason=FinishReason.TOOL_CALLS, parts=PARTS
)


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
@pytest.mark.parametrize("api", CLIENTS)
def test_an_answer_is_the_one_that_a_decoder_reads(api: str, size: int) -> None:
    data = stream(APIS[api], list(replay(ANSWER)))
    assert read(APIS[api], in_pieces(data, size)) == decoded(APIS[api], data)


@pytest.mark.parametrize("api", CLIENTS)
@given(words=st.lists(st.sampled_from(WORDS), max_size=200), size=st.integers(1, 400), cut=st.integers(0, 300))
def test_any_text_is_the_one_that_a_decoder_reads(api: str, words: list[str], size: int, cut: int) -> None:
    events = [*map(ContentDelta, words), Finish(FinishReason.STOP)]
    data = stream(APIS[api], events)
    data = data[: len(data) - cut]
    assert read(APIS[api], in_pieces(data, size)) == decoded(APIS[api], data)


@pytest.mark.parametrize("api", CLIENTS)
def test_few_events_of_a_long_text_are_decoded(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = stream(APIS[api], [*[ContentDelta("word ")] * 1_000, Finish(FinishReason.STOP)])
    reader = PassedStreamReader(APIS[api])
    fed: list[bytes] = []
    feed = reader._decoder.feed
    monkeypatch.setattr(reader._decoder, "feed", lambda piece: (fed.append(piece), feed(piece))[1])
    events = [event for piece in in_pieces(data, 1_000) for event in reader.feed(piece)]
    assert collect([*events, *reader.finish()]).content == "word " * 1_000
    # Besides one event in so many, pieces that end inside an event are decoded.
    assert len(fed) < 1_000 / MAX_JOINED + len(data) / 1_000 * 3 + 20


@pytest.mark.parametrize("api", CLIENTS)
def test_the_first_piece_of_text_is_read_when_it_arrives(api: str) -> None:
    data = stream(APIS[api], [ContentDelta("one"), ContentDelta("two"), Finish(FinishReason.STOP)])
    reader = PassedStreamReader(APIS[api])
    arrived = data[: data.index(b"two")]
    assert ContentDelta("one") in reader.feed(arrived)


def chunk(choice: str, **members: Any) -> bytes:
    return f'data: {{"id":"c","choices":[{choice}]{"".join(f",{name}" for name in members.values())}}}\n\n'.encode()


@pytest.mark.parametrize(
    "event",
    [
        chunk('{"index":1,"delta":{"content":"a"},"finish_reason":null}'),
        chunk('{"index":0,"delta":{"content":"a","tool_calls":[{"index":0,"id":"c","function":{"name":"f"}}]}}'),
        chunk('{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}'),
        chunk('{"index":0,"delta":{"content":"a","reasoning_content":"b"}}'),
        chunk('{"index":0,"delta":{"content":"a"},"logprobs":{"content":[]}}'),
        chunk('{"index":0,"delta":{"content":"a"}}', usage='"usage":{"prompt_tokens":1,"completion_tokens":2}'),
        chunk('{"index":0,"delta":{"content":"a"}}', error='"error":{"message":"broken"}'),
        chunk('{"index":0,"delta":{"content":5}}'),
        chunk('{"index":0,"delta":{"content":"a"}'),
        b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a\\q"}}]}\n\n',
    ],
    ids=["choice", "call", "finish", "reasoning", "logprobs", "usage", "error", "number", "brace", "escape"],
)
def test_an_event_that_says_more_is_decoded(event: bytes) -> None:
    plain = chunk('{"index":0,"delta":{"content":"a"},"finish_reason":null}')
    data = plain * 3 + event + plain * 2 + b"data: [DONE]\n\n"
    assert read(client_apis.CHAT, in_pieces(data, len(plain))) == decoded(client_apis.CHAT, data)


DELTAS = [
    ['"role":"assistant"', '"content":null', '"reasoning":"a"', '"refusal":null'],
    ['"content":"a"', '"reasoning":null', '"reasoning_content":null', '"tool_calls":null'],
    ['"reasoning":"a"', '"reasoning_content":"b"', '"content":null'],
    ['"content":null', '"reasoning_content":null', '"tool_calls":[{"index":0,"function":{"arguments":"a"}}]'],
]


@pytest.mark.parametrize("members", DELTAS, ids=["reasoning", "content", "two names", "arguments"])
def test_members_may_have_any_order(members: list[str]) -> None:
    for order in permutations(members):
        data = chunk(f'{{"index":0,"delta":{{{",".join(order)}}},"finish_reason":null}}') * 3 + b"data: [DONE]\n\n"
        assert read(client_apis.CHAT, iter([data])) == decoded(client_apis.CHAT, data)

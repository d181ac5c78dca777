"""Responses that are too large, nested too deeply or packed too often, and errors that quote a part of a key."""

import asyncio
import base64
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from toolwire import Message, ProblemFound, ProviderError, TextPart
from toolwire.client import client as client_module
from toolwire.client import exchange, response_body
from toolwire.client.client import Client
from toolwire.client.response_body import refusal, without_secrets
from toolwire.client.transport import HttpTransport
from toolwire.events import Event

KEY = "sk-Zq81LkmP0xY7uTrW4e2a"
QUESTION = [Message("user", (TextPart("q"),))]
ANSWER = {"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("status", "headers", "body", "message"),
    [
        (
            302,
            {"location": "https://example.org/v1"},
            b"",
            "it redirects to https://example.org/v1, which is not followed",
        ),
        (307, {"location": "/v2"}, b'{"error": "moved"}', "it redirects to /v2, which is not followed"),
        (302, {}, b"moved", "moved"),
        (400, {"location": "/v2"}, b'{"error": "no"}', "no"),
    ],
)
def test_a_redirect_says_where_to(status: int, headers: dict[str, str], body: bytes, message: str) -> None:
    assert refusal(status, headers, body) == message


class Pieces(httpx.AsyncByteStream):
    """A body that arrives in pieces, and counts the bytes that were read."""

    def __init__(self, *pieces: bytes, times: int = 1) -> None:
        self.pieces = pieces * times
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            self.read += len(piece)
            yield piece


def ask(body: bytes | Pieces, *, status: int = 200, encoding: str = "", stream: bool = False) -> list[Event] | str:
    """Return the events of an answer with this body, or the text of one that was not streamed."""
    inside = body if isinstance(body, Pieces) else Pieces(body)

    def handle(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept-encoding"] == response_body.ENCODINGS
        return httpx.Response(status, headers={"content-encoding": encoding} if encoding else {}, stream=inside)

    async def work() -> list[Event] | str:
        async with httpx.AsyncClient(transport=httpx.MockTransport(handle)) as http:
            client = Client("openai_chat", "m", base_url="https://x.test", key=KEY, transport=HttpTransport(http))
            if stream:
                return [event async for event in client.stream(QUESTION)]
            return (await client.ask(QUESTION)).content

    return asyncio.run(work())


def test_the_body_of_an_error_is_not_read_to_its_end() -> None:
    body = Pieces(b"x" * 10_000, times=1_000)
    with pytest.raises(ProviderError, match="answered 400: x"):
        ask(body, status=400)
    assert body.read <= response_body.MAX_ERROR_BODY + 10_000


def test_a_whole_response_has_a_maximum_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MAX_BODY", 1 << 20)
    body = Pieces(b" " * 100_000, times=100)
    with pytest.raises(ProviderError, match="more than 1 MiB"):
        ask(body)
    assert body.read < 1_200_000


def test_a_stream_has_a_maximum_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_STREAM", 1 << 20)
    event = b"data: " + json.dumps({"choices": [{"delta": {"content": "word " * 2_000}}]}).encode() + b"\n\n"
    body = Pieces(event, times=1_000)
    with pytest.raises(ProviderError, match="more than 1 MiB"):
        ask(body, stream=True)
    assert body.read < 1_200_000


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("depth", [900, 20_000])
def test_a_response_that_is_nested_deeply_does_not_raise_by_recursion(depth: int, stream: bool) -> None:
    deep = b'{"choices": [{"message": {"content": ' + b"[" * depth + b"]" * depth + b"}}]}"
    if stream:
        events = ask(b"data: " + deep + b"\n\n", stream=True)
        assert [event.problem.kind for event in events if isinstance(event, ProblemFound)]
    else:
        with pytest.raises(ProviderError, match="JSON object"):
            ask(deep)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate), ("", bytes)]
)
def test_compressed_responses_are_unpacked(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(json.dumps(ANSWER).encode())
    assert ask(Pieces(packed[:7], packed[7:]), encoding=encoding) == "hello"


def test_a_bomb_is_unpacked_in_steps_up_to_the_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MAX_BODY", 2 << 20)
    steps: list[int] = []

    class Unpacker(response_body._Unpacker):
        def feed(self, data: bytes):  # type: ignore[no-untyped-def]
            for part in super().feed(data):
                steps.append(len(part))
                yield part

    monkeypatch.setattr(response_body, "_Unpacker", Unpacker)
    with pytest.raises(ProviderError, match="more than 2 MiB"):
        ask(gzip.compress(bytes(20 << 20)), encoding="gzip")
    assert sum(steps) <= 3 << 20


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd"])
def test_compressions_that_were_not_requested_are_refused(encoding: str) -> None:
    with pytest.raises(ProviderError, match="not requested"):
        ask(b"...", encoding=encoding)


@pytest.mark.parametrize(
    "body",
    [
        "no such key: " + KEY[:-3],
        "no such key: " + KEY[4:12] + "...",
        "x" * 485 + KEY,
        json.dumps({"error": {"message": "x" * 490 + " " + KEY + " is wrong"}}),
        "header was Bearer " + KEY,
    ],
)
def test_no_part_of_a_key_is_in_an_error(body: str) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(body.encode(), status=401)
    message = str(caught.value)
    assert not any(KEY[at : at + 6] in message for at in range(len(KEY) - 5))


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(base64.b64encode(b"user:" + KEY.encode()).decode()[8:], id="base64"),
        pytest.param(base64.b64encode(KEY.encode()).decode()[:-6], id="truncated base64"),
        pytest.param(KEY.encode().hex(), id="hexadecimal"),
    ],
)
def test_no_part_of_an_encoded_key_is_in_an_error(encoded: str) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(f"no such key: {encoded}".encode(), status=401)
    assert not any(encoded[at : at + 6] in str(caught.value) for at in range(len(encoded) - 5))


def test_a_problem_in_a_stream_shows_no_key() -> None:
    events = ask(b'data: {"error": {"message": "wrong key ' + KEY[:-2].encode() + b'"}}\n\n', stream=True)
    problems = [event for event in events if isinstance(event, ProblemFound)]
    assert problems and KEY[:8] not in repr(problems)


def test_secrets_are_replaced_by_their_names() -> None:
    assert without_secrets("a hunter2! b", {"x-pass": "hunter2!"}) == "a [x-pass] b"
    assert without_secrets("a hunter b", {"x-pass": "hunter2!"}) == "a hunter b"
    assert without_secrets("of 0123456789ab: 23456789 and 4567", {"key": "0123456789ab"}) == "of [key]: [key] and 4567"

"""Errors in answers whose status is good: another backend answers, and clients see no key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.unit.gateway.gateway_calls import CLIENTS, Scripted, asked, error_of, gateway, run

from toolwire import ContentDelta, Finish, FinishReason, ProviderError
from toolwire.client.client import Client
from toolwire.gateway.questions import Answer, PassedAnswer, Question
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.testing import ScriptedTransport

KEY = "sk-0123456789abcdef"
ERROR = json.dumps({"error": {"message": f"the key {KEY} may not do that", "code": 503}}).encode()
EVENT = b"data: " + ERROR + b"\n\n"
CONTENT = b'data: {"choices": [{"index": 0, "delta": {"content": "A sentence of an answer. "}}]}\n\n'
GOOD = [ContentDelta("x"), Finish(FinishReason.STOP)]


def backend(
    *answers: bytes | tuple[int, bytes] | Exception, key: str = KEY, piece: int = 64, calls_in_text: str = ""
) -> ApiUpstream:
    """Return a backend of Chat Completions whose client has a key."""
    transport = ScriptedTransport("openai_compatible", answers, piece=piece)
    transport.offline = False
    client = Client("openai_compatible", "m", base_url="http://b", transport=transport, key=key)
    return ApiUpstream(client, name="cloud", calls_in_text=calls_in_text)


@pytest.mark.parametrize("calls_in_text", ["none", "auto"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", CLIENTS)
def test_an_error_in_place_of_an_answer_is_a_failure_without_the_key(
    api: str, stream: bool, calls_in_text: str
) -> None:
    upstream = backend(EVENT if stream else ERROR, piece=4_000, calls_in_text=calls_in_text)
    got = run(gateway(upstream), *asked(api, stream=stream))
    assert got.status == 503
    assert error_of(api, got.json)[1] == "cloud: The key [key] may not do that."


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", CLIENTS)
def test_another_backend_answers_in_place_of_an_error(api: str, stream: bool) -> None:
    spare = Scripted(GOOD)
    got = run(gateway(backend(EVENT if stream else ERROR, piece=4_000), spare), *asked(api, stream=stream))
    assert (got.status, len(spare.questions)) == (200, 1)


@pytest.mark.parametrize("piece", [1, 7, 4_000])
@pytest.mark.parametrize("calls_in_text", ["none", "auto"])
@pytest.mark.parametrize("api", CLIENTS)
def test_an_error_in_the_middle_of_a_stream_shows_no_key(api: str, calls_in_text: str, piece: int) -> None:
    spare = Scripted(GOOD)
    upstream = backend(CONTENT + EVENT, piece=piece, calls_in_text=calls_in_text)
    got = run(gateway(upstream, spare), *asked(api, stream=True))
    assert got.status == 200 and not spare.questions
    assert b"may not do that" in got.body and b"456789" not in got.body


def test_words_of_a_passed_answer_stay_although_the_key_is_one_of_them() -> None:
    text = (
        CONTENT + b'data: {"choices": [{"index": 0, "delta": {"content": "A local \\"error\\"."}}], "error": null}\n\n'
    )
    text += b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    got = run(gateway(backend(text, key="local", calls_in_text="none")), *asked("chat", stream=True))
    assert got.body == text and got.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize("stream", [False, True])
def test_a_transport_that_quotes_the_server_shows_no_key(stream: bool) -> None:
    got = run(gateway(backend(ProviderError(f"bad status line: {KEY}"))), *asked("chat", stream=stream))
    assert (got.status, got.json["error"]["message"]) == (502, "cloud: bad status line: [key]")


def test_an_answer_that_cannot_be_read_is_quoted_without_the_key() -> None:
    body = json.dumps({"choices": [{"message": {"content": 5, "x": KEY}}]}).encode()
    got = run(gateway(backend(body)), *asked("messages"))
    assert got.status == 502 and b"456789" not in got.body


@pytest.mark.parametrize("api", ["chat", "messages", "responses", "gemini"])
def test_no_character_of_a_backend_breaks_a_header(api: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "a\x00b\x1b\x7f\u0085\u65e5\nc", "arguments": "{}"}}
    body = json.dumps({"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}).encode()
    got = run(gateway(backend(body)), *asked(api))
    assert got.status == 200
    assert all(" " <= char <= "~" for value in got.headers.values() for char in value)


class EndInPieces(Scripted):
    """A backend whose events are passed on, and end in a piece of their own."""

    @asynccontextmanager
    async def open(self, question: Question) -> AsyncIterator[Answer]:
        yield PassedAnswer("", self._pieces())

    async def _pieces(self) -> AsyncIterator[bytes]:
        for piece in (CONTENT[:-1], CONTENT[-1:]):
            yield piece
        await asyncio.sleep(25)
        yield b"data: [DONE]\n\n"


def test_a_stream_whose_events_end_in_pieces_is_kept_alive() -> None:
    got = run(gateway(EndInPieces()), *asked("chat", stream=True))
    assert got.body.count(b": waiting") == 2


def test_a_stream_of_responses_that_breaks_off_ends_with_its_own_response_as_failed() -> None:
    got = run(gateway(backend(CONTENT, piece=4_000)), *asked("responses", stream=True))
    events = [json.loads(line[6:]) for line in got.body.split(b"\n") if line.startswith(b"data: {")]
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    assert events[-1]["response"]["id"] == events[0]["response"]["id"]
    assert "broke off" in events[-1]["response"]["error"]["message"]

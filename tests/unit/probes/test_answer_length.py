"""The maximum length of answers: a model that reasons needs more of it than one that writes without end."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from toolwire.client.client import Client
from toolwire.client.exchange import HttpAnswer, HttpRequest
from toolwire.probes.probe_exchange import ProbeRequest
from toolwire.probes.probe_requests import chat
from toolwire.probes.probed_model import ProbedModel
from toolwire.providers.api_registry import get_api

NEEDED = 500
"""Tokens that the model reasons."""


class Server:
    """A transport of a model that writes to the maximum length, or reasons first and then answers."""

    offline = True

    def __init__(self, cut: dict[str, Any], reasoning_tokens: int = 0, reason: str = "length") -> None:
        self.limits: list[int] = []
        self._cut = cut
        self._reason = reason
        self._reasoning_tokens = reasoning_tokens

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        body = json.loads(request.body)
        limit = body.get("max_tokens") or body["max_completion_tokens"]
        self.limits.append(limit)
        is_cut = limit < NEEDED
        message = {"role": "assistant", **(self._cut if is_cut else {"content": "blue"})}
        answer = {
            "choices": [{"index": 0, "message": message, "finish_reason": self._reason if is_cut else "stop"}],
            "usage": {
                "prompt_tokens": 9,
                "completion_tokens": limit,
                "completion_tokens_details": {"reasoning_tokens": self._reasoning_tokens},
            },
        }

        async def pieces() -> AsyncIterator[bytes]:
            yield json.dumps(answer).encode()

        yield HttpAnswer(200, {"content-type": "application/json"}, pieces())


def limits_of(server: Server, *requests: ProbeRequest, max_tokens: int = 1_000) -> list[int]:
    """Return the maximum lengths that a server is asked for."""

    async def run() -> None:
        model = ProbedModel(
            get_api("openai_chat"),
            lambda carrier, _: Client("openai_chat", "m", transport=carrier, key="k", text_format=None),
            server,
            max_tokens=max_tokens,
        )
        for request in requests:
            await model.answer(request)

    asyncio.run(run())
    return server.limits


FIRST = ProbeRequest("first", chat("Reply with this one word: blue"))
SECOND = ProbeRequest("second", chat("Reply with this one word: green"))
SHORT = ProbeRequest("short", chat("Reply with this one word: red", max_tokens=16))
FEW = ProbeRequest("few", chat("Repeat exactly: red red"), enough_tokens=60)


@pytest.mark.parametrize(
    ("cut", "reasoning_tokens"),
    [
        ({"content": "", "reasoning_content": "The user"}, 0),
        ({"content": "The"}, 300),
        ({"content": ""}, 0),
        ({"content": " \n"}, 0),
    ],
    ids=["shown", "counted", "hidden", "white space"],
)
def test_a_model_that_reasons_is_asked_again_with_the_whole_length(cut: dict[str, Any], reasoning_tokens: int) -> None:
    limits = limits_of(Server(cut, reasoning_tokens), FIRST, SECOND)
    assert limits == [300, 1_000, 1_000]


def call_of(arguments: str) -> dict[str, Any]:
    function = {"name": "save_note", "arguments": arguments}
    return {"content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]}


@pytest.mark.parametrize(
    "cut",
    [{"content": "blue blue blue"}, call_of('{"title": "a"}'), call_of('{"title": "a')],
    ids=["words", "call", "half a call"],
)
def test_a_model_that_writes_without_end_is_cut_early(cut: dict[str, Any]) -> None:
    assert limits_of(Server(cut), FIRST, SECOND) == [300, 300]


def test_an_empty_answer_that_was_not_cut_is_not_asked_for_again() -> None:
    assert limits_of(Server({"content": ""}, reason="stop"), FIRST, SECOND) == [300, 300]


def test_a_request_with_a_maximum_length_is_sent_once() -> None:
    assert limits_of(Server({"content": ""}), SHORT, FIRST) == [16, 300, 1_000]


def test_tokens_that_are_enough_without_reasoning_are_not_with_it() -> None:
    assert limits_of(Server({"content": "red red red"}), FEW, FIRST) == [60, 300]
    assert limits_of(Server({"content": "", "reasoning_content": "The user"}), FEW, FIRST) == [60, 1_000, 1_000]
    assert limits_of(Server({"content": ""}), FIRST, FEW) == [300, 1_000, 1_000]
    assert limits_of(Server({"content": ""}), FIRST, SHORT) == [300, 1_000, 16]
    assert limits_of(Server({"content": ""}), FEW, FIRST, max_tokens=50) == [60, 50]
    more = replace(FEW, id="more", enough_tokens=200)  # an answer that needs them gets no fewer with reasoning
    assert limits_of(Server({"content": ""}), FEW, more, max_tokens=100) == [60, 100, 200]


@pytest.mark.parametrize(("max_tokens", "limit"), [(100, 100), (400, 300), (4_000, 1_200)])
def test_the_length_follows_the_option(max_tokens: int, limit: int) -> None:
    server = Server({"content": "blue blue blue"})
    assert limits_of(server, FIRST, max_tokens=max_tokens)[0] == limit


def test_an_answer_that_had_the_whole_length_is_not_asked_for_again() -> None:
    assert limits_of(Server({"content": ""}), FIRST, max_tokens=200) == [200]

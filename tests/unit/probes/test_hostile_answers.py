"""Probes of answers with members of any type: each probe has a result, whatever a server sends."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from toolwire.client.client import Client
from toolwire.client.exchange import HttpAnswer, HttpRequest, Transport
from toolwire.probes.all_probes import PROBES
from toolwire.probes.probe import STATUSES, ProbeResult, run_probes
from toolwire.probes.probed_model import ProbedModel
from toolwire.providers.api_registry import get_api

WRONG: tuple[Any, ...] = (5, "x", [5], {"a": 1})
CALL = {"index": 0, "id": "call_a1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
MEMBERS = ("tool_calls", "call", "index", "id", "type", "function", "name", "arguments")


class OneAnswer:
    """A transport on which each request has the same answer, whole or as a stream."""

    offline = True

    def __init__(self, whole: Any, chunks: list[Any]) -> None:
        self._whole = json.dumps(whole).encode()
        self._stream = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        streams = json.loads(request.body)["stream"] if b'"stream"' in request.body else False
        body, kind = (self._stream, "text/event-stream") if streams else (self._whole, "application/json")

        async def pieces() -> AsyncIterator[bytes]:
            yield body

        yield HttpAnswer(200, {"content-type": kind}, pieces())


def probe_all(api: str, transport: Transport) -> list[ProbeResult]:
    """Return the results of all probes."""

    async def run() -> list[ProbeResult]:
        model = ProbedModel(
            get_api(api), lambda carrier, _: Client(api, "m", transport=carrier, key="k", text_format=None), transport
        )
        return [result async for result in run_probes(model, PROBES, tries=1)]

    return asyncio.run(run())


def with_wrong(member: str, value: Any) -> Any:
    """Return the calls of a message: a sound one, and one with a wrong member."""
    if member == "tool_calls":
        return value
    if member == "call":
        return [CALL, value]
    if member in CALL:
        return [CALL, {**CALL, "index": 1, member: value}]
    return [CALL, {**CALL, "index": 1, "function": {"name": "get_time", "arguments": "{}", member: value}}]


@pytest.mark.parametrize("member", MEMBERS)
def test_calls_of_chat_completions_may_have_any_type(member: str) -> None:
    for value in WRONG:
        calls = with_wrong(member, value)
        choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": calls}}
        whole = {"id": "a", "object": "chat.completion", "choices": [{**choice, "finish_reason": "tool_calls"}]}
        first = {"index": 0, "delta": {"role": "assistant", "tool_calls": [CALL]}}
        second = {"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}
        head = {"id": "a", "object": "chat.completion.chunk"}
        results = probe_all("openai_chat", OneAnswer(whole, [{**head, "choices": [part]} for part in (first, second)]))
        assert [result.probe for result in results] == list(PROBES)
        assert all(result.status in STATUSES for result in results)


@pytest.mark.parametrize("member", ["item_id", "delta", "arguments", "call_id", "output_index", "item"])
def test_events_of_responses_may_have_any_type(member: str) -> None:
    for value in WRONG:
        item = {"type": "function_call", "id": "i", "call_id": "c", "name": "get_weather", "arguments": "{}"}
        done = {"type": "response.function_call_arguments.done", "item_id": "i", "arguments": "{}"}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
            {"type": "response.function_call_arguments.delta", "item_id": "i", "output_index": 0, "delta": "{}"},
            {**done, "output_index": 0, member: value},
            {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "", member: value},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "r", "output": [item], "status": "completed"}},
        ]
        whole = {"id": "r", "object": "response", "status": "completed", "output": [{**item, member: value}]}
        results = probe_all("openai_responses", OneAnswer(whole, events))
        assert all(result.status in STATUSES for result in results)


def test_calls_that_are_no_list_break_a_rule() -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [CALL, 5]}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    results = {result.probe.id: result for result in probe_all("openai_chat", OneAnswer(whole, []))}
    assert results["call-members"].status == "failed"
    assert results["call-members"].reason == "a call of a message is 5, not an object"


def test_a_long_answer_does_not_make_the_repr_of_a_result_long() -> None:
    # asyncio of Python 3.11 forms the repr of the results at the end of a run; that of a bomb took half a minute.
    message = {"role": "assistant", "content": "x" * 100_000}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    results = probe_all("openai_chat", OneAnswer(whole, []))
    assert any(len(exchange.body) > 100_000 for result in results for exchange in result.exchanges)
    assert max(len(repr(result)) for result in results) < 100_000

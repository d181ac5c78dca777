"""Limits of the gateway's own tools: long results, many calls, and what the rounds of an answer may cost."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import Got, asked, request

from toolwire import (
    Client,
    ContentDelta,
    FilePart,
    FinishReason,
    ParsedResponse,
    ToolCall,
    ToolRegistry,
    ToolResult,
    Usage,
    tool,
)
from toolwire.agent.prices import Prices
from toolwire.execution.executor import ToolExecutor
from toolwire.gateway.access import Access
from toolwire.gateway.allowances import Allowance
from toolwire.gateway.answer_meter import AnswerMeter
from toolwire.gateway.answer_retries import RetriedUpstream
from toolwire.gateway.app import Gateway
from toolwire.gateway.gateway_tools import MAX_CALLS, GatewayTools, ToolUpstream, limited_results
from toolwire.gateway.key_spending import KeySpending
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Answer, Question, Upstream, WrappedUpstream
from toolwire.gateway.state_store import IN_MEMORY, opened_store
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.gateway.virtual_keys import VirtualKeys
from toolwire.messages import OpaquePart
from toolwire.testing import ScriptedTransport

CALL = ToolCall("look", {"item": "tea"}, "c1")


def calling(*calls: ToolCall, usage: Usage | None = None) -> ParsedResponse:
    return ParsedResponse("", tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS, usage=usage)


class Looking:
    """A gateway whose only tool returns a prepared value.

    Attributes:
        runs: number of calls that ran.
    """

    def __init__(
        self, value: Any, *answers: ParsedResponse, wraps: Callable[[Upstream], Upstream] = lambda upstream: upstream
    ) -> None:
        self.runs = 0

        @tool
        def look(item: str) -> Any:
            """Look at an item."""
            self.runs += 1
            return value

        registry = ToolRegistry([look])
        tools = GatewayTools(registry, ToolExecutor(registry, shape=limited_results(1_000)))
        self._transport = ScriptedTransport("openai_chat", answers or [calling(CALL), ParsedResponse("Done.")])
        client = Client("openai_chat", "m", key="k", transport=self._transport)
        self.upstream = ToolUpstream(wraps(ApiUpstream(client, name="b")), tools)

    @property
    def sent(self) -> list[dict[str, Any]]:
        return self._transport.requests

    def ask(self) -> Got:
        path, body = asked("chat", tools=False)
        return asyncio.run(request(Gateway(ModelTable([ServedModel("m", (self.upstream,))])), path, body))

    def result(self) -> str:
        """Return the text of the result that the model reads."""
        assert self.ask().status == 200
        return str(self.sent[1]["messages"][-1]["content"])


@pytest.mark.parametrize("length", [1_000, 1_001])
def test_of_a_long_result_the_model_reads_both_ends_and_a_note(length: int) -> None:
    text = "a" * (length // 2) + "b" * (length - length // 2)
    result = Looking(text).result()
    if length == 1_000:
        assert result == text
        return
    assert result.startswith("a" * 500 + "…") and "b" * 500 + "\n[" in result
    assert "This result has 1,001 characters, and 1,000 of them are shown." in result
    assert len(result) < 1_200


def test_a_long_value_is_cut_as_the_json_that_the_model_reads() -> None:
    result = Looking({"items": list(range(2_000))}).result()
    assert result.startswith('{"items": [0, 1,') and "of them are shown" in result
    assert len(result) < 1_200


def test_a_copy_in_the_words_of_a_server_does_not_bypass_the_limit() -> None:
    long = ToolResult("x", "look", "a" * 5_000, extra=OpaquePart("mcp", {"content": "a" * 5_000}))
    shaped = limited_results(1_000)(CALL, long)
    assert shaped.extra is None and len(shaped.text) < 1_200
    short = ToolResult("x", "look", "a", extra=OpaquePart("mcp", {"content": "a"}))
    assert limited_results(1_000)(CALL, short) is short


def test_a_long_text_file_is_left_out_of_a_result() -> None:
    def file(length: int) -> FilePart:
        return FilePart(data=base64.b64encode(b"x" * length).decode(), media_type="text/plain", name=f"{length}.txt")

    result = limited_results(1_000)(CALL, ToolResult("x", "look", "two files", files=(file(1_000), file(1_001))))
    assert [part.name for part in result.files] == ["1000.txt"]
    assert result.text.startswith("two files\n[1 of its files had more than 1,000 characters, and are left out.")


def test_of_very_many_calls_the_first_ones_run() -> None:
    calls = [ToolCall("look", {"item": str(number)}, f"c{number}") for number in range(MAX_CALLS + 2)]
    looking = Looking("seen", calling(*calls), ParsedResponse("Done."))
    assert looking.ask().status == 200
    assert looking.runs == MAX_CALLS
    results = [message["content"] for message in looking.sent[1]["messages"] if message["role"] == "tool"]
    assert len(results) == MAX_CALLS + 2
    assert [f"at most {MAX_CALLS} calls" in result for result in results] == [False] * MAX_CALLS + [True] * 2


def spending(
    looking: Looking, *allowances: Allowance, stream: bool, max_tokens: int = 100, **model: Any
) -> tuple[Got, list[float]]:
    """Return the answer to a key with these allowances, and how much of each is used at the end."""

    async def work() -> tuple[Got, list[float]]:
        async with opened_store(IN_MEMORY) as store:
            keys = VirtualKeys(store)
            key, virtual_key = await keys.add("tester", allowances=allowances)
            models = ModelTable([ServedModel("m", (looking.upstream,), **model)])
            app = Gateway(models, access=Access(virtual_keys=keys), store=store)
            path, body = asked("chat", stream=stream, tools=False)
            got = await request(
                app, path, {**body, "max_tokens": max_tokens}, headers={"authorization": f"Bearer {key}"}
            )
            spent = KeySpending(store)
            return got, [await spent.used(virtual_key, allowance) for allowance in allowances]

    return asyncio.run(work())


ROUND = Usage(200, 50)
"""What each round uses, as the backend reports it."""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("maximum", "rounds"), [(10_000, 4), (600, 3), (500, 2), (250, 1)])
def test_each_round_is_asked_only_if_the_key_may_still_use_something(maximum: int, rounds: int, stream: bool) -> None:
    answers = [calling(CALL, usage=ROUND)] * 3 + [ParsedResponse("Done.", usage=ROUND)]
    looking = Looking("12", *answers)
    got, (used,) = spending(looking, Allowance("tokens", maximum), stream=stream)
    assert len(looking.sent) == rounds
    assert used == 250 * rounds  # what was reserved for a round that was not asked is given back
    if rounds == 4:
        assert got.status == 200 and b"Done." in got.body
    else:
        assert got.status == (200 if stream and got.pieces and b"error" in got.body else 429)
        assert f"{maximum} tokens altogether" in got.body.decode()


def test_a_key_that_is_used_up_between_rounds_does_not_stop_the_backend_for_other_clients() -> None:
    answers = [calling(CALL, usage=ROUND), ParsedResponse("Done.", usage=ROUND)]
    looking = Looking("12", *answers)

    async def work() -> tuple[Got, Got]:
        async with opened_store(IN_MEMORY) as store:
            keys = VirtualKeys(store)
            key, _ = await keys.add("tester", allowances=[Allowance("tokens", 250, "hour")])
            models = ModelTable([ServedModel("m", (looking.upstream,))])
            app = Gateway(models, access=Access(("static",), virtual_keys=keys), store=store)
            path, body = asked("chat", tools=False)
            asking = {**body, "max_tokens": 100}
            used_up = await request(app, path, asking, headers={"authorization": f"Bearer {key}"})
            return used_up, await request(app, path, asking, headers={"authorization": "Bearer static"})

    used_up, other = asyncio.run(work())
    assert (used_up.status, other.status) == (429, 200)


def test_money_is_reserved_for_each_round_too() -> None:
    looking = Looking("12", *[calling(CALL, usage=ROUND)] * 3, ParsedResponse("Done.", usage=ROUND))
    prices = Prices(input=10_000, output=10_000)  # of a million tokens: a round costs 2.5
    got, (used,) = spending(looking, Allowance("money", 5), stream=False, prices=prices)
    assert (got.status, len(looking.sent), used) == (429, 2, 5.0)


def test_rounds_are_no_requests_of_the_client() -> None:
    looking = Looking("12", *[calling(CALL)] * 3, ParsedResponse("Done."))
    got, (used,) = spending(looking, Allowance("requests", 1), stream=False)
    assert (got.status, len(looking.sent), used) == (200, 4, 1)


def test_the_prompt_of_each_round_is_estimated_if_nothing_is_reported() -> None:
    alone, (one,) = spending(Looking("12", ParsedResponse("Done.")), Allowance("tokens", 10_000), stream=False)
    looking = Looking("12", calling(CALL), ParsedResponse("Done."))
    _, (two,) = spending(looking, Allowance("tokens", 10_000), stream=False)
    assert alone.status == 200
    assert two > 2 * one


class FirstAlone(WrappedUpstream):
    """A backend whose second answer breaks before its first byte."""

    asked = 0

    @asynccontextmanager
    async def open(self, question: Question) -> AsyncIterator[Answer]:
        self.asked += 1
        if self.asked == 2:
            raise ConnectionError("the client is gone")
        async with self._upstream.open(question) as answer:
            yield answer


def test_a_client_that_leaves_in_a_later_round_pays_for_its_prompt() -> None:
    looking = Looking("12" * 400, calling(CALL, usage=ROUND), wraps=FirstAlone)
    _, (used,) = spending(looking, Allowance("tokens", 10_000), stream=True)
    assert used > 250 + 200  # the first round, and the 800 characters of the result in the prompt of the second


def test_text_of_a_round_is_estimated_once() -> None:
    meter = AnswerMeter(input_tokens=10)
    meter.observe([ContentDelta("word " * 100)])
    first = meter.usage
    meter.next_request(30)
    assert meter.usage == first + Usage(30, 0)
    meter.observe([ContentDelta("word " * 100)])
    assert meter.usage == Usage(40, 2 * first.output_tokens, estimated=True)


def test_a_key_that_may_use_no_more_gets_the_first_answer_instead_of_another() -> None:
    broken = '<tool_call>\n{"name": "get_weather", "arguments": {"town": \n</tool_call>'
    transport = ScriptedTransport(
        "openai_compatible", [ParsedResponse(broken), ParsedResponse("Better."), ParsedResponse(broken)]
    )
    client = Client("openai_compatible", "m", base_url="http://b/v1", key="k", transport=transport)
    upstream = RetriedUpstream(ApiUpstream(client, name="b", calls_in_text="hermes"))

    async def work(maximum: int) -> Got:
        async with opened_store(IN_MEMORY) as store:
            keys = VirtualKeys(store)
            key, _ = await keys.add("tester", allowances=[Allowance("tokens", maximum)])
            app = Gateway(ModelTable([ServedModel("m", (upstream,))]), access=Access(virtual_keys=keys), store=store)
            path, body = asked("chat")
            return await request(app, path, {**body, "max_tokens": 100}, headers={"authorization": f"Bearer {key}"})

    assert b"Better" in asyncio.run(work(10_000)).body
    assert len(transport.requests) == 2
    got = asyncio.run(work(100))
    assert len(transport.requests) == 3
    assert b"Better" not in got.body

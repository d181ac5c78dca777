"""Budgets over every API: a run that never ends by itself is stopped by each of them."""

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import Client, ConfigurationError, FinishReason, ParsedResponse, ToolCall, Usage
from toolwire.agent import Agent, AgentConfig, AgentTeam, Budget, Member, Prices
from toolwire.agent.prices import PublishedPrices, published_prices
from toolwire.agent.run_events import RunEnded
from toolwire.client.endpoints import ENDPOINTS
from toolwire.events import UsageCounted, replay
from toolwire.models.backends import ApiBackend, TextBackend, client_source
from toolwire.testing import ScriptedBackend

APIS = [
    "openai_chat", "openai_responses", "anthropic", "gemini", "bedrock_converse", "mistral", "cohere", "ollama", "vllm",
    "gemini_interactions", "anthropic_bedrock", "anthropic_vertex",
]  # fmt: skip
USAGE = Usage(90, 10)


@toolwire.tool
def again(step: int) -> str:
    """Ask for more."""
    return f"more after {step}"


def call(step: int, usage: Usage | None) -> ParsedResponse:
    """Return an answer with a call that differs from those before: equal calls would end a run too."""
    calls = (ToolCall("again", {"step": step}, f"call_{step}"),)
    return ParsedResponse("", tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS, usage=usage)


def calling_server(name: str, usage: Usage | None) -> Any:
    """Return a server that calls `again` in each answer. Chat Completions report usage only if they are asked to."""
    api, steps = toolwire.get_api(name), count(1)

    def answer(asked: Asked) -> Answer:
        body = json.loads(asked.body)
        if not (body.get("stream") or "stream" in asked.path.lower()):
            return Answer(json.dumps(api.encode_response(call(next(steps), usage))).encode())
        reported = usage
        if ENDPOINTS[api.name].counts_streams and not body.get("stream_options", {}).get("include_usage"):
            reported = None
        stream = b"".join(api.encode_stream(replay(call(next(steps), reported))))
        content_type = "application/vnd.amazon.eventstream" if "bedrock" in name else "text/event-stream"
        return Answer(stream, content_type=content_type)

    return serving(answer)


def run(agent: Agent, *clients: Client) -> tuple[list[Any], RunEnded]:
    async def main() -> list[Any]:
        async with AsyncExitStack() as stack:
            for opened in clients:
                await stack.enter_async_context(opened)
            return [event async for event in agent.run("Go on.")]

    events = asyncio.run(main())
    return events, events[-1]


def client(name: str, url: str) -> Client:
    return Client(name, "a-model", base_url=url, key="k")


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")


@pytest.mark.parametrize(
    ("budget", "rounds", "stops"),
    [
        (Budget(rounds=4), 4, "4 rounds"),
        (Budget(calls=3), 4, "3 calls"),
        (Budget(tokens=300), 4, "300 tokens"),
        (Budget(money=0.001, prices=Prices(input=3.0, output=15.0)), 4, "0.001 money"),
    ],
)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", APIS)
def test_budget_stops_a_run_over_each_api(name: str, streamed: bool, budget: Budget, rounds: int, stops: str) -> None:
    with calling_server(name, USAGE) as url:
        model = client(name, url)
        backend = ApiBackend(model, streamed=streamed)
        _, end = run(Agent(backend, [again], AgentConfig(budget=budget)), model)
    assert (end.reason, end.rounds) == ("budget", rounds)
    assert stops in end.detail
    assert (end.usage.input_tokens, end.usage.output_tokens) == (90 * rounds, 10 * rounds)
    assert not end.usage.estimated


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", APIS)
def test_time_stops_a_run_over_each_api(name: str, streamed: bool) -> None:
    limit = Budget(seconds=0.2, rounds=100_000)
    with calling_server(name, USAGE) as url:
        model = client(name, url)
        _, end = run(Agent(ApiBackend(model, streamed=streamed), [again], AgentConfig(budget=limit)), model)
    assert end.reason == "budget"
    assert "0.2 seconds" in end.detail


@pytest.mark.parametrize("name", APIS)
def test_tokens_are_estimated_where_a_server_reports_none(name: str) -> None:
    with calling_server(name, None) as url:
        model = client(name, url)
        events, end = run(Agent(ApiBackend(model), [again], AgentConfig(budget=Budget(tokens=300))), model)
    assert end.reason == "budget"
    assert end.rounds < 20
    assert end.usage.estimated
    counted = [event.usage for event in events if isinstance(event, UsageCounted) and event.usage.estimated]
    assert len(counted) == end.rounds
    assert all(usage.input_tokens > 0 and usage.output_tokens > 0 for usage in counted)


def test_tokens_of_a_model_of_text_are_counted() -> None:
    api, steps = toolwire.get_api("openai_chat"), count(1)

    def answer(asked: Asked) -> Answer:
        reports = json.loads(asked.body).get("stream_options") == {"include_usage": True}
        text = f'<tool_call>{{"name": "again", "arguments": {{"step": {next(steps)}}}}}</tool_call>'
        stream = api.encode_stream(replay(ParsedResponse(text, usage=USAGE if reports else None)))
        return Answer(b"".join(stream), content_type="text/event-stream")

    with serving(answer) as url:
        model = client("openai_chat", url)
        backend = TextBackend(client_source(model), format="hermes")
        _, end = run(Agent(backend, [again], AgentConfig(budget=Budget(tokens=300))), model)
    assert (end.reason, end.rounds, end.usage.estimated) == ("budget", 4, False)


# -- prices --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai_chat", "gpt-5-mini"),
        ("openai_responses", "gpt-5-mini"),
        ("anthropic", "claude-sonnet-4-5"),
        ("gemini", "gemini-2.5-flash"),
        ("mistral", "mistral-large-latest"),
    ],
)
def test_money_is_counted_by_published_prices(name: str, model: str) -> None:
    backend = ApiBackend(Client(name, model, key="k"))
    prices = published_prices(backend)
    assert prices is not None
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    assert prices.cost_of(usage) >= prices.cost_of(replace(usage, cached_tokens=900_000)) > 0
    Agent(backend, config=AgentConfig(budget=Budget(money=1.0)))


@pytest.mark.parametrize(
    "backend",
    [
        ScriptedBackend([]),
        ApiBackend(Client("openai_chat", "a-model-of-my-own", key="k")),
        ApiBackend(Client("openai_chat", "gpt-5-mini", base_url="http://127.0.0.1:9", key="k")),
        ApiBackend(Client("ollama", "llama3.2")),
    ],
    ids=["scripted", "unknown model", "own server", "ollama"],
)
def test_money_that_cannot_be_counted_is_refused_at_the_start(backend: Any) -> None:
    config = AgentConfig(budget=Budget(money=1.0))
    with pytest.raises(ConfigurationError, match="a budget of money needs prices"):
        Agent(backend, config=config)
    member = Agent(backend, config=AgentConfig(name="helper"))
    coordinator = Agent(ScriptedBackend([]), config=replace(config, budget=Budget(money=1.0, prices=Prices())))
    with pytest.raises(ConfigurationError, match="a budget of money needs prices"):
        AgentTeam(coordinator, [Member(member, "Helps.")])
    Agent(backend, config=AgentConfig(budget=Budget(money=1.0, prices=Prices())))


def test_prices_of_a_program_go_before_published_ones() -> None:
    assert PublishedPrices("openai", "gpt-5-mini").cost_of(Usage(10**6)) > 0
    backend = ScriptedBackend([ParsedResponse("done", usage=Usage(1_000_000, 0))])
    _, end = run(Agent(backend, config=AgentConfig(budget=Budget(money=9.0, prices=Prices(input=2.0)))))
    assert end.money == 2.0

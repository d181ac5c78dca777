"""Metrics of the gateway: figures with few labels."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.gateway.gateway_calls import CLIENTS, Scripted, asked, request, run

from toolwire import Client, ContentDelta, FinishReason, ParsedResponse, ToolCall, Usage, replay
from toolwire.errors import ProviderError
from toolwire.gateway.access import Access
from toolwire.gateway.app import Gateway
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.gateway_metrics import CLIENT_LEFT
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Upstream
from toolwire.gateway.state_store import IN_MEMORY, opened_store
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.gateway.virtual_keys import VirtualKeys
from toolwire.providers.failure_kinds import RATE_LIMIT
from toolwire.testing import ScriptedTransport

CALL = ToolCall("get_weather", {"city": "Paris"}, "call_1", repairs=("coerced",))
ANSWER = ParsedResponse("I look.", tool_calls=(CALL,), finish_reason=FinishReason.TOOL_CALLS, usage=Usage(7, 5))


def app_with(upstream: Upstream, **options: Any) -> Gateway:
    return Gateway(ModelTable([ServedModel("m*", (upstream,))]), **options)


def metrics_of(app: Gateway) -> dict[tuple[str, ...], float]:
    """Return the metrics by their names and the values of their labels, in the order of the labels' names."""
    text = run(app, "/metrics", method="GET").body.decode()
    return {
        (sample.name.removeprefix("toolwire_gateway_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
    }


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_an_answer_is_counted(api: str, stream: bool) -> None:
    app = app_with(Scripted(list(replay(ANSWER))))
    path, body = asked(api, model="m-of-a-client", stream=stream)
    assert run(app, path, body).status == 200
    metrics = metrics_of(app)
    client_api = {"chat": "openai_compatible"}.get(api, CLIENTS[api])
    assert metrics["requests_total", "scripted", client_api, "m*", "200"] == 1
    assert metrics["request_seconds_count", "scripted", client_api] == 1
    assert metrics["first_event_seconds_count", "scripted", client_api] == 1
    assert metrics["tokens_total", "scripted", "input", "m*"] == 7
    assert metrics["tokens_total", "scripted", "output", "m*"] == 5
    assert metrics["calls_total", "scripted", "m*"] == 1
    assert metrics["repairs_total", "scripted", "m*", "coerced"] == 1
    assert metrics["running_requests",] == 0
    assert not any("client" in label for labels in metrics for label in labels if label.startswith("m-"))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_that_is_passed_on_is_counted(stream: bool) -> None:
    client = Client("openai_chat", "m", key="k", transport=ScriptedTransport("openai_chat", [ANSWER]))
    app = app_with(ApiUpstream(client, name="cloud", model="m"))
    path, body = asked("chat", stream=stream)
    assert run(app, path, body).status == 200
    metrics = metrics_of(app)
    assert metrics["calls_total", "cloud", "m*"] == 1
    assert metrics["tokens_total", "cloud", "output", "m*"] == 5


@pytest.mark.parametrize(
    ("upstream", "stream", "status"),
    [
        (Scripted(opens=GatewayFailure(RATE_LIMIT, "busy")), False, 429),
        (Scripted(opens=GatewayFailure(RATE_LIMIT, "busy")), True, 429),
        (Scripted([ContentDelta("x")], ProviderError("cut off")), True, 502),
        (Scripted([ContentDelta("x")], ProviderError("cut off")), False, 502),
    ],
    ids=["refused", "refused stream", "cut stream", "cut"],
)
def test_a_failure_is_counted_with_its_status(upstream: Scripted, stream: bool, status: int) -> None:
    app = app_with(upstream)
    path, body = asked("messages", stream=stream)
    run(app, path, body)
    statuses = [labels[4] for labels in metrics_of(app) if labels[0] == "requests_total"]
    assert statuses == [str(status)]


def test_a_client_that_leaves_is_counted() -> None:
    app = app_with(Scripted([ContentDelta("x")], 3600.0))
    path, body = asked("chat", stream=True)
    run(app, path, body, leaves_after=1.0)
    metrics = metrics_of(app)
    assert metrics["requests_total", "scripted", "openai_compatible", "m*", str(CLIENT_LEFT)] == 1
    assert metrics["running_requests",] == 0


def test_metrics_are_not_for_the_keys_of_clients() -> None:
    async def work() -> None:
        async with opened_store(IN_MEMORY) as store:
            keys = VirtualKeys(store)
            app = app_with(Scripted(), access=Access(("operator",), virtual_keys=keys), store=store)
            key, _ = await keys.add("client")
            for sent, status in ((key, 403), ("operator", 200), ("", 401)):
                got = await request(app, "/metrics", method="GET", headers={"authorization": f"Bearer {sent}"})
                assert got.status == status

    asyncio.run(work())

"""Metrics and spans of the gateway: figures with few labels, and traces that clients have begun."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.gateway.gateway_calls import CLIENTS, Scripted, asked, request, run

from toolwire import Client, ContentDelta, FinishReason, ParsedResponse, ToolCall, Usage, UsageCounted, replay
from toolwire.client.exchange import HttpAnswer, HttpRequest
from toolwire.errors import ProviderError
from toolwire.gateway.access import Access
from toolwire.gateway.app import Gateway
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.gateway_metrics import CLIENT_LEFT
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Upstream
from toolwire.gateway.request_spans import RequestSpans
from toolwire.gateway.state_store import IN_MEMORY, opened_store
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.gateway.virtual_keys import VirtualKeys
from toolwire.providers.failure_kinds import RATE_LIMIT
from toolwire.testing import ScriptedTransport

CALL = ToolCall("get_weather", {"city": "Paris"}, "call_1", repairs=("coerced",))
ANSWER = ParsedResponse("I look.", tool_calls=(CALL,), finish_reason=FinishReason.TOOL_CALLS, usage=Usage(7, 5))
TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"


class Recording:
    """A transport that remembers the headers of requests."""

    def __init__(self) -> None:
        self.headers: list[Mapping[str, str]] = []
        self._scripted = ScriptedTransport("openai_chat", [ANSWER])

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        self.headers.append(request.headers)
        async with self._scripted.open(request) as answer:
            yield answer


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


def spans_of(
    upstream: Upstream, *, stream: bool, headers: dict[str, str], model: str = "m", **options: Any
) -> dict[SpanKind, Any]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    path, body = asked("messages", stream=stream, model=model)
    run(app_with(upstream, spans=RequestSpans(provider)), path, body, headers=headers, **options)
    return {span.kind: span for span in exporter.get_finished_spans()}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_request_is_two_spans_in_the_trace_of_the_client(stream: bool) -> None:
    transport = Recording()
    upstream = ApiUpstream(Client("openai_chat", "m", key="k", transport=transport), name="cloud", model="m")
    spans = spans_of(upstream, stream=stream, headers={"traceparent": TRACEPARENT})
    server, chat = spans[SpanKind.SERVER], spans[SpanKind.CLIENT]
    assert f"{server.context.trace_id:032x}" == TRACE == f"{chat.context.trace_id:032x}"
    assert f"{server.parent.span_id:016x}" == "b7ad6b7169203331"
    assert chat.parent.span_id == server.context.span_id
    assert server.attributes["http.response.status_code"] == 200
    assert chat.name == "chat m"
    attributes = dict(chat.attributes)
    assert attributes["gen_ai.provider.name"] == "openai"
    assert attributes["gen_ai.operation.name"] == "chat"
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (7, 5)
    assert attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)
    assert attributes["gen_ai.request.max_tokens"] == 99
    assert (attributes["toolwire.backend"], attributes["toolwire.calls"]) == ("cloud", 1)
    assert "Paris" not in json.dumps(attributes, default=str)
    assert server.status.status_code is chat.status.status_code is StatusCode.UNSET
    sent = transport.headers[0]["traceparent"]
    assert sent == f"00-{TRACE}-{chat.context.span_id:016x}-01"


@pytest.mark.parametrize(
    ("upstream", "failed"),
    [
        (Scripted(opens=GatewayFailure(RATE_LIMIT, "busy")), "429"),
        (Scripted([ContentDelta("x")], ProviderError("cut off")), "502"),
    ],
    ids=["refused", "cut"],
)
def test_a_failure_is_an_error_of_the_span_of_the_model(upstream: Scripted, failed: str) -> None:
    spans = spans_of(upstream, stream=True, headers={"traceparent": "broken"})
    server, chat = spans[SpanKind.SERVER], spans[SpanKind.CLIENT]
    assert chat.attributes["error.type"] == failed
    assert chat.status.status_code is StatusCode.ERROR
    assert server.attributes["http.response.status_code"] == int(failed)
    # The server has failed only if the client is not at fault.
    is_error = int(failed) >= 500
    assert (server.status.status_code is StatusCode.ERROR) is is_error
    assert ("error.type" in server.attributes) is is_error
    assert server.parent is None


def test_a_request_for_an_unknown_model_is_a_span() -> None:
    spans = spans_of(Scripted(), stream=False, headers={"traceparent": TRACEPARENT}, model="unknown")
    server = spans[SpanKind.SERVER]
    assert f"{server.context.trace_id:032x}" == TRACE
    assert server.attributes["http.response.status_code"] == 404
    assert spans[SpanKind.CLIENT].attributes["error.type"] == "404"


def test_a_client_that_leaves_ends_the_spans() -> None:
    upstream = Scripted([ContentDelta("x"), UsageCounted(Usage(7, 1))], 3600.0)
    spans = spans_of(upstream, stream=True, headers={}, leaves_after=1.0)
    server, chat = spans[SpanKind.SERVER], spans[SpanKind.CLIENT]
    assert chat.attributes["error.type"] == "client_left"
    assert chat.attributes["gen_ai.usage.output_tokens"] == 1
    assert chat.end_time - chat.start_time < 60e9
    assert server.status.status_code is StatusCode.UNSET


def test_nothing_is_sent_to_backends_without_tracing() -> None:
    transport = Recording()
    app = app_with(ApiUpstream(Client("openai_chat", "m", key="k", transport=transport), model="m"))
    path, body = asked("messages")
    run(app, path, body, headers={"traceparent": TRACEPARENT})
    assert "traceparent" not in transport.headers[0]

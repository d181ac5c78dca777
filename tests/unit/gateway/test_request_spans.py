"""Spans of the gateway: requests, answers and calls of its own tools, in traces that clients have begun."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from tests.unit.gateway.gateway_calls import Scripted, asked, run

from toolwire import (
    Client,
    ContentDelta,
    FinishReason,
    ParsedResponse,
    ToolCall,
    ToolRegistry,
    Usage,
    UsageCounted,
    tool,
)
from toolwire.client.exchange import HttpAnswer, HttpRequest
from toolwire.errors import ProviderError, ToolError
from toolwire.execution.executor import ToolExecutor
from toolwire.gateway.access import Access
from toolwire.gateway.app import Gateway
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.gateway_tools import GatewayTools, ToolUpstream
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Upstream
from toolwire.gateway.request_spans import RequestSpans
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.policy.policy import Policy, Rule
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


def app_with(*upstreams: Upstream, **options: Any) -> tuple[Gateway, InMemorySpanExporter]:
    """Return a gateway and what it exports."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    models = ModelTable([ServedModel("m*", upstreams)] if upstreams else [])
    return Gateway(models, spans=RequestSpans(provider), **options), exporter


def spans_of(
    upstream: Upstream, *, stream: bool, headers: dict[str, str], model: str = "m", **options: Any
) -> dict[SpanKind, Any]:
    app, exporter = app_with(upstream)
    path, body = asked("messages", stream=stream, model=model)
    run(app, path, body, headers=headers, **options)
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
    assert (server.name, chat.name) == ("POST /v1/messages", "chat m")
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
    # A stream that was cut off had begun with 200.
    assert server.attributes["http.response.status_code"] == (429 if failed == "429" else 200)
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


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("POST", "/v1/chat/completions", "POST /v1/chat/completions"),
        ("GET", "/v1/models/a/b", "GET /v1/models/{model}"),
        ("POST", "/v1beta/models/m:generateContent", "POST /v1beta/models/{call}"),
        ("PUT", "/v1/messages", "PUT /v1/messages"),
        ("GET", "/nowhere/at/all", "GET"),
        ("BREW", "/v1/messages", "HTTP /v1/messages"),
    ],
)
def test_a_request_without_a_key_is_a_span_with_the_route(method: str, path: str, name: str) -> None:
    app, exporter = app_with(Scripted(), access=Access(("right",)))
    got = run(
        app, f"{path}?key=wrong", {}, method=method, headers={"user-agent": "tester/1", "traceparent": TRACEPARENT}
    )
    (span,) = exporter.get_finished_spans()
    assert got.status == 401
    assert (span.name, span.kind) == (name, SpanKind.SERVER)
    assert f"{span.context.trace_id:032x}" == TRACE
    attributes = dict(span.attributes)
    assert attributes["http.response.status_code"] == 401
    assert attributes["http.request.method"] == {"BREW": "_OTHER"}.get(method, method)
    assert attributes.get("http.request.method_original") == ("BREW" if method == "BREW" else None)
    assert attributes.get("http.route", "") == name.partition(" ")[2]
    assert (attributes["url.path"], attributes["url.scheme"]) == (path, "http")
    assert attributes["user_agent.original"] == "tester/1"
    assert "wrong" not in json.dumps(attributes)
    assert span.status.status_code is StatusCode.UNSET


def test_behind_a_unix_socket_there_is_no_port(caplog: pytest.LogCaptureFixture) -> None:
    app, exporter = app_with(Scripted())

    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "server": ("/run/toolwire.sock", None)}, receive, send)

    run(mounted, "/nowhere", method="GET")
    (span,) = exporter.get_finished_spans()
    assert span.attributes["server.address"] == "/run/toolwire.sock"
    assert "server.port" not in span.attributes
    assert caplog.text == ""


@pytest.mark.parametrize("path", ["/health", "/ready", "/metrics"])
def test_a_look_at_the_gateway_is_no_span(path: str) -> None:
    app, exporter = app_with(Scripted())
    assert run(app, path, method="GET").status == 200
    assert exporter.get_finished_spans() == ()


def test_a_fault_of_the_gateway_is_an_error_of_the_server() -> None:
    app, exporter = app_with(Scripted([ContentDelta("x")], ArithmeticError("a fault")))
    path, body = asked("messages", stream=True)
    run(app, path, body)
    spans = {span.kind: span for span in exporter.get_finished_spans()}
    server = spans[SpanKind.SERVER]
    assert (server.attributes["http.response.status_code"], server.attributes["error.type"]) == (200, "500")
    assert server.status.status_code is StatusCode.ERROR


@tool
async def stock(item: str) -> str:
    """Return how much of an item there is."""
    SEEN.append(trace.get_current_span().get_span_context().span_id)
    await asyncio.sleep(1)
    if item == "poison":
        raise ToolError("there is none for you")
    return f"12 of {item}"


SEEN: list[int] = []
"""The span in which each call of `stock` ran."""


def tool_spans(*calls: ToolCall, policy: Policy | None = None, **options: Any) -> tuple[list[Any], Any]:
    """Return the spans of calls that a gateway runs itself, and that of the answer."""
    registry = ToolRegistry([stock])
    tools = GatewayTools(registry, ToolExecutor(registry, policy=policy))
    answers = [ParsedResponse("", tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS), ParsedResponse("Done.")]
    client = Client("openai_chat", "m", key="k", transport=ScriptedTransport("openai_chat", answers))
    app, exporter = app_with(ToolUpstream(ApiUpstream(client, name="cloud"), tools))
    SEEN.clear()
    path, body = asked("messages", stream=True)
    run(app, path, body, **options)
    spans = exporter.get_finished_spans()
    (chat,) = [span for span in spans if span.name == "chat m"]
    return [span for span in spans if span.name.startswith("execute_tool")], chat


def test_each_call_of_a_tool_of_the_gateway_is_a_span_below_the_answer() -> None:
    items = ("tea", "poison")
    calls = [ToolCall("stock", {"item": item}, f"c{number}") for number, item in enumerate(items)]
    spans, chat = tool_spans(*calls)
    assert {span.name for span in spans} == {"execute_tool stock"}
    assert {span.kind for span in spans} == {SpanKind.INTERNAL}
    assert {span.parent.span_id for span in spans} == {chat.context.span_id}
    # What a tool does, such as a request of its own, belongs to the span of its call.
    assert {span.context.span_id for span in spans} == set(SEEN)
    by_id = {span.attributes["gen_ai.tool.call.id"]: span for span in spans}
    good, bad = by_id["c0"], by_id["c1"]
    assert dict(good.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "stock",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c0",
        "toolwire.decision": "allowed",
    }
    assert good.status.status_code is StatusCode.UNSET
    assert (bad.attributes["error.type"], bad.status.status_code) == ("tool_error", StatusCode.ERROR)
    assert "tea" not in str([dict(span.attributes) for span in (*spans, chat)])


def test_a_call_that_the_policy_denies_is_a_span_with_the_reason() -> None:
    policy = Policy(rules=(Rule("deny", "stock", reason="closed"),))
    (span,), _ = tool_spans(ToolCall("stock", {"item": "tea"}, "c1"), policy=policy)
    assert (span.attributes["toolwire.decision"], span.attributes["error.type"]) == ("denied", "denied")
    assert SEEN == []


def test_a_client_that_leaves_ends_the_span_of_a_call() -> None:
    (span,), chat = tool_spans(ToolCall("stock", {"item": "tea"}, "c1"), leaves_after=0.5)
    assert (span.attributes["error.type"], chat.attributes["error.type"]) == ("interrupted", "client_left")
    assert len(SEEN) == 1


def test_nothing_is_sent_to_backends_without_tracing() -> None:
    transport = Recording()
    upstream = ApiUpstream(Client("openai_chat", "m", key="k", transport=transport), model="m")
    app = Gateway(ModelTable([ServedModel("m", (upstream,))]))
    path, body = asked("messages")
    run(app, path, body, headers={"traceparent": TRACEPARENT})
    assert "traceparent" not in transport.headers[0]

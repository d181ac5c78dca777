"""Requests to the gateway as OpenTelemetry spans, in the trace of the client if it sends one.

A request is a span of the server, by the semantic conventions for HTTP. The answer of a model is its child
`chat MODEL`, whose trace the backend receives, and each call of a tool that the gateway runs is a child
`execute_tool NAME` of that, by the conventions for generative AI. Spans contain figures and names, and no text of a
conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from toolwire.execution.outcomes import Outcome
from toolwire.gateway.answer_meter import AnswerMeter
from toolwire.gateway.answering import Reply
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.questions import Question
from toolwire.messages import ToolCall
from toolwire.telemetry.otel import model_attributes, settings_attributes, traces, usage_attributes

CLIENT_LEFT = "client_left"
"""The type of error of an answer whose client has left; the request has no status then."""
INTERRUPTED = "interrupted"
"""The type of error of a call that the end of the answer interrupts, because the client has left or the server ends."""
_METHODS = frozenset(("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE", "QUERY"))
"""The methods of the conventions; all others are `_OTHER`, so that clients cannot invent values."""
_PROPAGATOR = TraceContextTextMapPropagator()


class RequestSpans:
    """Writes the spans of requests.

    Args:
        provider: the provider of the spans.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("toolwire")

    def flush(self) -> None:
        """Send the spans that wait to be sent; blocks until it is done."""
        # The interface of providers does not have the method, but that of the SDK does.
        if (flush := getattr(self._provider, "force_flush", None)) is not None:
            flush()

    @contextmanager
    def request(
        self, scope: Mapping[str, Any], route: str, headers: Mapping[str, str], client_api: str, reply: Reply
    ) -> Iterator[None]:
        """Write the span of the request that is answered within the block.

        Args:
            scope: the scope of ASGI.
            route: the path with names in place of its variable parts; "" if the gateway has no such path.
            headers: the headers, in lower case.
            client_api: the name of the API that the path belongs to.
            reply: the response.
        """
        sent_method = scope["method"]
        method = sent_method if sent_method in _METHODS else "_OTHER"
        attributes: dict[str, AttributeValue] = {
            "http.request.method": method,
            "url.scheme": scope.get("scheme", "http"),
            "url.path": scope["path"],  # the query is left out: it may contain a key
            "toolwire.client_api": client_api,
            "toolwire.request.id": reply.id,
        }
        if method != sent_method:
            attributes["http.request.method_original"] = sent_method
        if route:
            attributes["http.route"] = route
        if agent := headers.get("user-agent"):
            attributes["user_agent.original"] = agent
        if server := scope.get("server"):
            attributes["server.address"] = server[0]
            if server[1] is not None:  # the address is not a Unix socket
                attributes["server.port"] = server[1]
        name = " ".join(filter(None, ("HTTP" if method == "_OTHER" else method, route)))
        span = self._tracer.start_span(name, _PROPAGATOR.extract(headers), SpanKind.SERVER, attributes)
        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield
        finally:
            if reply.sent_status:
                span.set_attribute("http.response.status_code", reply.sent_status)
            # By the conventions, a request that is refused as wrong is not an error of the server.
            if reply.status >= 500:
                _fail(span, str(reply.status))
            span.end()

    @contextmanager
    def answer(self, question: Question, meter: AnswerMeter, reply: Reply) -> Iterator[None]:
        """Write the span of the answer that a model gives within the block."""
        span = self._tracer.start_span(f"chat {question.model}", kind=SpanKind.CLIENT)
        _PROPAGATOR.inject(question.trace_headers, trace.set_span_in_context(span))
        question.watching = self._tool_call
        failed = CLIENT_LEFT
        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield
            failed = str(reply.status) if reply.status >= 400 else ""
        except GatewayFailure as failure:
            failed = str(failure.status)
            raise
        finally:
            _describe(span, question, meter)
            if failed:
                _fail(span, failed)
            span.end()

    @contextmanager
    def _tool_call(self, call: ToolCall) -> Iterator[Callable[[Outcome], None]]:
        """Write the span of a call of one of the gateway's own tools; see `toolwire.execution.outcomes.Watching`."""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.id,
        }
        span = self._tracer.start_span(f"execute_tool {call.name}", attributes=attributes)

        failed = INTERRUPTED

        def watch(outcome: Outcome) -> None:
            nonlocal failed
            issue = outcome.issue
            span.set_attribute("toolwire.decision", "allowed" if issue is None else issue.kind)
            failed = "" if outcome.result.success else "tool_error" if issue is None else issue.kind

        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield watch
        finally:
            if failed:
                _fail(span, failed)
            span.end()


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


def _describe(span: Span, question: Question, meter: AnswerMeter) -> None:
    """Write the figures of an answer into its span."""
    upstream = question.answered_by
    span.set_attributes(
        {
            "gen_ai.operation.name": "chat",
            **model_attributes(question.model, "" if upstream is None else upstream.api),
            **settings_attributes(question.request),
            **({} if meter.reported is None else usage_attributes(meter.reported)),
            "gen_ai.request.stream": question.stream,
            "toolwire.backend": "" if upstream is None else upstream.name,
            "toolwire.calls": meter.calls,
            "toolwire.repairs": tuple(meter.repairs),
            "toolwire.problems": tuple(meter.problems),
        }
    )
    if question.retries:
        span.set_attribute("toolwire.retries", tuple(question.retries))
    if meter.finish is not None:
        span.set_attribute("gen_ai.response.finish_reasons", (meter.finish.value,))
    if meter.first_at is not None:
        span.set_attribute("gen_ai.response.time_to_first_chunk", meter.first_at - meter.began)


def configured_spans() -> RequestSpans | None:
    """Return the writer of spans if the program or the environment configures OpenTelemetry, else None."""
    provider = traces()
    return None if provider is None else RequestSpans(provider)

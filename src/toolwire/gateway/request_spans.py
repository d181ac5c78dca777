"""Requests to the gateway as OpenTelemetry spans, in the trace of the client if it sends one.

A request is a span of the server; its child is a span `chat MODEL` by the semantic conventions for generative AI, whose
trace the backend receives. Spans contain figures and names, and no text of a conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from toolwire.gateway.answer_meter import AnswerMeter
from toolwire.gateway.answering import Reply
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.questions import Question
from toolwire.telemetry.otel import model_attributes, settings_attributes, traces, usage_attributes

CLIENT_LEFT = "client_left"
"""The type of error of an answer whose client has left; the request has no status then."""
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
    def recorded(
        self, headers: Mapping[str, str], question: Question, meter: AnswerMeter, reply: Reply
    ) -> Iterator[None]:
        """Write the spans of the answer that is given within the block."""
        names = {"toolwire.client_api": question.client_api.name, "toolwire.request.id": question.id}
        server = self._tracer.start_span(
            "POST", _PROPAGATOR.extract(headers), SpanKind.SERVER, {"http.request.method": "POST", **names}
        )
        chat = self._tracer.start_span(f"chat {question.model}", trace.set_span_in_context(server), SpanKind.CLIENT)
        _PROPAGATOR.inject(question.trace_headers, trace.set_span_in_context(chat))
        failed, status = CLIENT_LEFT, 0
        try:
            yield
            status = reply.status
            failed = str(status) if status >= 400 else ""
        except GatewayFailure as failure:
            status = failure.status
            failed = str(status)
            raise
        finally:
            upstream = question.answered_by
            chat.set_attributes(
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
                chat.set_attribute("toolwire.retries", tuple(question.retries))
            if question.tool_runs:
                chat.set_attribute("toolwire.tool_runs", tuple(name for name, _ in question.tool_runs))
            if meter.finish is not None:
                chat.set_attribute("gen_ai.response.finish_reasons", (meter.finish.value,))
            if meter.first_at is not None:
                chat.set_attribute("gen_ai.response.time_to_first_chunk", meter.first_at - meter.began)
            if status:
                server.set_attribute("http.response.status_code", status)
            # By the conventions for HTTP, a request that is refused as wrong is no error of the server.
            for span, is_error in ((chat, bool(failed)), (server, status >= 500)):
                if is_error:
                    span.set_attribute("error.type", failed)
                    span.set_status(Status(StatusCode.ERROR))
                span.end()


def configured_spans() -> RequestSpans | None:
    """Return the writer of spans if the program or the environment configures OpenTelemetry, else None."""
    provider = traces()
    return None if provider is None else RequestSpans(provider)

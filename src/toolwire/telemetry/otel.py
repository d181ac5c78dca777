"""Runs as OpenTelemetry spans and metrics, with the names of the semantic conventions for generative AI.

A run is a span `invoke_agent NAME`. Its children are a span `chat MODEL` for each answer and a span `execute_tool NAME`
for each call; both are written when the turn is complete, with the times at which they happened. Spans of tools
and HTTP clients are children of the run's span. Text is left out unless
OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says `SPAN_ONLY`, `SPAN_AND_EVENT` or `true`, and is free of secrets.

Source: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai; all of it may still change there.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Container, Mapping, Sequence
from contextvars import Token
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import Histogram, Meter, MeterProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.util.types import AttributeValue

from toolwire.messages import Usage
from toolwire.providers.request import ChatRequest
from toolwire.telemetry.otel_messages import MessageEncoder
from toolwire.telemetry.records import CallRecord, EndRecord, RunRecord, TurnRecord
from toolwire.telemetry.row_codec import MAX_TEXT, NOT_KEPT, kept, secrets_of
from toolwire.text.redaction import redact_value

CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_WITH_CONTENT: Final = frozenset({"span_only", "span_and_event", "true"})

PROVIDERS: Final[Mapping[str, str]] = {
    "anthropic_messages": "anthropic",
    "azure": "azure.ai.openai",
    "bedrock_converse": "aws.bedrock",
    "gemini": "gcp.gemini",
    "gemini_openapi": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "xai": "x_ai",
}
"""Provider names of the conventions that differ from the API's name."""
HERE: Final = "toolwire"
"""Provider name of a model in this process."""

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_RUNS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6)

_log = logging.getLogger("toolwire.telemetry")

_Attributes = dict[str, AttributeValue]


@dataclass(slots=True)
class _Open:
    """A run whose span is open."""

    run: RunRecord
    span: Span
    context: Context
    token: Token[Context]
    encoder: MessageEncoder = field(default_factory=MessageEncoder)
    answer: str = ""  # the last one, as its message


class Tracing:
    """An `Observer` that emits spans and metrics.

    Args:
        traces: provider of the spans; None for the program's own.
        meters: provider of the metrics; None for the program's own.
        content: whether spans contain texts; None to read it from the environment.
    """

    def __init__(
        self,
        traces: TracerProvider | None = None,
        meters: MeterProvider | None = None,
        *,
        content: bool | None = None,
    ) -> None:
        capture_content = os.environ.get(CONTENT, "").strip().lower() in _WITH_CONTENT
        self._content = capture_content if content is None else content
        self._tracer = (traces or trace.get_tracer_provider()).get_tracer("toolwire")
        meter = (meters or metrics.get_meter_provider()).get_meter("toolwire")
        self._open: dict[tuple[str, int], _Open] = {}
        self._operation = _histogram(meter, "client.operation.duration", "s", "How long an answer of a model took.")
        self._first = _histogram(
            meter, "client.operation.time_to_first_chunk", "s", "How long the first piece of an answer took."
        )
        self._tokens = _histogram(meter, "client.token.usage", "{token}", "Tokens that were read and written.", _TOKENS)
        self._runs = _histogram(meter, "invoke_agent.duration", "s", "How long a run took.", _RUNS)
        self._tools = _histogram(meter, "execute_tool.duration", "s", "How long a call took.")
        self._answers = meter.create_counter(
            "toolwire.answers", "{answer}", "Answers, by format and how they were read."
        )
        self._repairs = meter.create_counter(
            "toolwire.repairs", "{call}", "Calls that a repair was made in, by repair."
        )
        self._problems = meter.create_counter("toolwire.problems", "{problem}", "What could not be read, by kind.")

    def begin(self, run: RunRecord, /) -> None:
        """Implement `Observer`."""
        attributes: _Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": run.agent,
            "toolwire.run.id": run.id,
            "toolwire.format.asked": run.format,
            **model_attributes(run.model, run.api),
        }
        if self._content:
            attributes["gen_ai.input.messages"] = MessageEncoder().text("user", run.task)
        span = self._tracer.start_span(
            f"invoke_agent {run.agent}", attributes=attributes, start_time=_nanoseconds(run.started_at)
        )
        context = trace.set_span_in_context(span)
        self._open[run.id, run.instance] = _Open(run, span, context, contexts.attach(context))

    def turn(self, turn: TurnRecord, /) -> None:
        """Implement `Observer`."""
        run = self._open.get((turn.run, turn.instance))
        if run is None:
            return
        if self._content:
            run.encoder.learn(secrets_of(turn))
        if not turn.replayed:
            self._chat(run, turn)
        call_start = turn.started_at + turn.seconds
        for call in turn.calls:
            self._call(run, call, call_start, turn.offered)

    def end(self, end: EndRecord, /) -> None:
        """Implement `Observer`."""
        run = self._open.pop((end.run, end.instance), None)
        if run is None:
            return
        attributes: _Attributes = {"gen_ai.agent.name": run.run.agent, "gen_ai.request.model": run.run.model}
        if not end.good:
            attributes["error.type"] = end.reason
            run.span.set_status(Status(StatusCode.ERROR, end.reason))
        run.span.set_attributes(
            {**attributes, **usage_attributes(end.usage), "toolwire.rounds": end.rounds, "toolwire.calls": end.calls}
        )
        if end.money:
            run.span.set_attribute("toolwire.cost", end.money)
        if run.answer:
            run.span.set_attribute("gen_ai.output.messages", run.answer)
        seconds = end.seconds or None
        run.span.end(None if seconds is None else _nanoseconds(run.run.started_at + seconds))
        if seconds is not None:
            self._runs.record(seconds, attributes, run.context)
        contexts.detach(run.token)

    def _chat(self, run: _Open, turn: TurnRecord) -> None:
        model: _Attributes = {"gen_ai.operation.name": "chat", **model_attributes(turn.model, turn.api)}
        failed = "" if turn.answered else "provider_error"
        error: _Attributes = {"error.type": failed} if failed else {}
        attributes: _Attributes = {
            **model,
            **error,
            "gen_ai.request.stream": True,
            "gen_ai.response.finish_reasons": (turn.response.finish_reason.value,),
            "toolwire.round": turn.round,
            "toolwire.format.asked": turn.format,
            "toolwire.format.found": turn.formats,
            "toolwire.repairs": tuple(turn.repairs),
            "toolwire.problems": tuple(turn.problems),
        }
        if turn.request is not None:
            attributes |= settings_attributes(turn.request)
        usage = turn.response.usage
        if usage is not None:
            attributes |= usage_attributes(usage)
            self._tokens.record(usage.input_tokens, {**model, "gen_ai.token.type": "input"}, run.context)
            self._tokens.record(usage.output_tokens, {**model, "gen_ai.token.type": "output"}, run.context)
        if turn.time_to_first_event is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = turn.time_to_first_event
            self._first.record(turn.time_to_first_event, model, run.context)
        if self._content:
            if turn.request is not None:
                attributes |= run.encoder.request(turn.request)
                if turn.request.stop:
                    attributes["gen_ai.request.stop_sequences"] = turn.request.stop
            run.answer = run.encoder.answer(turn.response, turn.raw)
            attributes["gen_ai.output.messages"] = run.answer
        kind = SpanKind.CLIENT if turn.api else SpanKind.INTERNAL
        self._span(run, f"chat {turn.model}", kind, attributes, turn.started_at, turn.seconds, failed)
        self._operation.record(turn.seconds, {**model, **error}, run.context)
        format: _Attributes = {"gen_ai.request.model": turn.model, "toolwire.format.asked": turn.format}
        if not failed:
            read = "problem" if turn.problems else "mismatch" if turn.mismatched else "clean"
            self._answers.add(1, {**format, "toolwire.read": read}, run.context)
        for name, count in turn.repairs.items():
            self._repairs.add(count, {**format, "toolwire.repair": name}, run.context)
        for name, count in turn.problems.items():
            self._problems.add(count, {**format, "toolwire.problem": name}, run.context)

    def _call(self, run: _Open, one: CallRecord, begun: float, offered: Container[str]) -> None:
        name = one.call.name if self._content or one.call.name in offered else NOT_KEPT  # made up: the model's text
        failed = "" if one.result.success else one.issue.kind if one.issue is not None else "tool_error"
        about: _Attributes = {
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.agent.name": run.run.agent,
        }
        if failed:
            about["error.type"] = failed
        attributes: _Attributes = {
            **about,
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.call.id": one.call.id,
            "toolwire.decision": one.decision,
        }
        if self._content:
            arguments = json.dumps(redact_value(one.call.arguments), ensure_ascii=False, default=str)
            attributes["gen_ai.tool.call.arguments"] = kept(arguments, MAX_TEXT, run.encoder.secrets)
            attributes["gen_ai.tool.call.result"] = kept(one.result.text, MAX_TEXT, run.encoder.secrets)
        self._span(run, f"execute_tool {name}", SpanKind.INTERNAL, attributes, begun, one.seconds, failed)
        self._tools.record(one.seconds, about, run.context)

    def _span(
        self, run: _Open, name: str, kind: SpanKind, attributes: _Attributes, begun: float, seconds: float, failed: str
    ) -> None:
        span = self._tracer.start_span(name, run.context, kind, attributes, start_time=_nanoseconds(begun))
        if failed:
            span.set_status(Status(StatusCode.ERROR, failed))
        span.end(_nanoseconds(begun + seconds))


def configured() -> Tracing | None:
    """Return an observer if the program or the environment configures OpenTelemetry, else None.

    A provider that the program has set is used. Otherwise OTEL_EXPORTER_OTLP_ENDPOINT and related variables,
    OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER decide where spans and metrics go.
    """
    spans, meters = _own_traces(), _own_meters()
    if spans is None and meters is None:
        spans, meters = _traces(), _meters()
    if spans is None and meters is None:
        return None
    return Tracing(spans or trace.NoOpTracerProvider(), meters or metrics.NoOpMeterProvider())


def traces() -> TracerProvider | None:
    """Return the provider of spans that the program has set, else one as the environment says; None if neither does."""
    return _own_traces() or _traces()


def _own_traces() -> TracerProvider | None:
    sdk = sys.modules.get("opentelemetry.sdk.trace")
    provider = trace.get_tracer_provider()
    return provider if sdk is not None and isinstance(provider, sdk.TracerProvider) else None


def _own_meters() -> MeterProvider | None:
    sdk = sys.modules.get("opentelemetry.sdk.metrics")
    provider = metrics.get_meter_provider()
    return provider if sdk is not None and isinstance(provider, sdk.MeterProvider) else None


def _exporter(signal: str) -> str:
    """Return the exporter of a signal in the environment: `otlp`, `console`, or "" for none."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ""
    exporter_name = os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower()
    if exporter_name:
        return exporter_name if exporter_name in ("otlp", "console") else ""
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    return "otlp" if any(os.environ.get(name) for name in endpoints) else ""


def _otlp(signal: str, module: str, name: str) -> Any:
    """Return the exporter class for the protocol in the environment; None if it is not installed."""
    protocol = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    kind = "grpc" if protocol == "grpc" else "http"
    try:
        return getattr(import_module(f"opentelemetry.exporter.otlp.proto.{kind}.{module}"), name)
    except ImportError:
        _log.warning("nothing is exported: install opentelemetry-exporter-otlp-proto-%s", kind)
        return None


def _traces() -> TracerProvider | None:
    where = _exporter("TRACES")
    if not where:
        return None
    from opentelemetry.sdk import trace as sdk
    from opentelemetry.sdk.trace import export

    exporter = (
        export.ConsoleSpanExporter if where == "console" else _otlp("TRACES", "trace_exporter", "OTLPSpanExporter")
    )
    if exporter is None:
        return None
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.BatchSpanProcessor(exporter()))
    return provider


def _meters() -> MeterProvider | None:
    where = _exporter("METRICS")
    if not where:
        return None
    from opentelemetry.sdk import metrics as sdk
    from opentelemetry.sdk.metrics import export

    otlp = where == "otlp"
    exporter = _otlp("METRICS", "metric_exporter", "OTLPMetricExporter") if otlp else export.ConsoleMetricExporter
    return None if exporter is None else sdk.MeterProvider([export.PeriodicExportingMetricReader(exporter())])


def _histogram(meter: Meter, name: str, unit: str, about: str, bounds: Sequence[float] = _SECONDS) -> Histogram:
    return meter.create_histogram(f"gen_ai.{name}", unit, about, explicit_bucket_boundaries_advisory=bounds)


def model_attributes(model: str, api: str) -> dict[str, AttributeValue]:
    """Return the attributes that name a model and its provider.

    Args:
        model: the model's name.
        api: the name of the API that it is reached through; "" for a model in this process.
    """
    return {"gen_ai.provider.name": PROVIDERS.get(api, api or HERE), "gen_ai.request.model": model}


def usage_attributes(usage: Usage) -> dict[str, AttributeValue]:
    """Return the attributes for the tokens of an answer."""
    attributes: _Attributes = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    if usage.cached_tokens:
        attributes["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
    if usage.reasoning_tokens:
        attributes["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning_tokens
    return attributes


def settings_attributes(request: ChatRequest) -> dict[str, AttributeValue]:
    """Return the attributes for the settings of a request, without those that are text."""
    settings = {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "top_k": request.top_k,
        "seed": request.seed,
        "frequency_penalty": request.frequency_penalty,
        "presence_penalty": request.presence_penalty,
    }
    return {f"gen_ai.request.{name}": value for name, value in settings.items() if value is not None}


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)

"""Metrics of the gateway for Prometheus. Labels have few values: names of the configuration, never those of clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from toolwire.gateway.answer_meter import AnswerMeter
from toolwire.gateway.answering import Reply
from toolwire.gateway.client_calls import ClientCall
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.model_table import ServedModel
from toolwire.gateway.questions import Question
from toolwire.providers.failure_kinds import FORBIDDEN, NOT_FOUND

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
CLIENT_LEFT = 499
"""The status of a request whose client left before the answer ended."""


class GatewayMetrics:
    """Counts the answers of one gateway."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        names = ("model", "client_api", "backend")
        self._requests = Counter(
            "toolwire_gateway_requests", "Requests for answers.", (*names, "status"), registry=registry
        )
        self._running = Gauge(
            "toolwire_gateway_running_requests", "Requests that are being answered.", registry=registry
        )
        self._seconds = Histogram(
            "toolwire_gateway_request_seconds",
            "Time until an answer has ended.",
            names[1:],
            buckets=_SECONDS,
            registry=registry,
        )
        self._first = Histogram(
            "toolwire_gateway_first_event_seconds",
            "Time until the first part of an answer has arrived.",
            names[1:],
            buckets=_SECONDS,
            registry=registry,
        )
        self._tokens = Counter(
            "toolwire_gateway_tokens",
            "Tokens that backends reported.",
            ("model", "backend", "direction"),
            registry=registry,
        )
        self._calls = Counter("toolwire_gateway_calls", "Complete calls.", ("model", "backend"), registry=registry)
        self._repairs = Counter(
            "toolwire_gateway_repairs", "Repairs of calls.", ("model", "backend", "repair"), registry=registry
        )
        self._problems = Counter(
            "toolwire_gateway_problems", "Problems in answers.", ("model", "backend", "kind"), registry=registry
        )
        self._tool_runs = Counter(
            "toolwire_gateway_tool_runs",
            "Calls of the gateway's own tools, by whether they succeeded.",
            ("model", "tool", "outcome"),
            registry=registry,
        )
        self._retries = Counter(
            "toolwire_gateway_retries",
            "Answers for which the model was asked once more, by what was wrong with the first one.",
            ("model", "backend", "kind"),
            registry=registry,
        )

    def text(self) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    @contextmanager
    def counted(self, reply: Reply, question: Question, served: ServedModel, meter: AnswerMeter) -> Iterator[None]:
        """Count the answer that is given within the block."""
        self._running.inc()
        status = CLIENT_LEFT
        try:
            yield
            status = reply.status
        except GatewayFailure as failure:
            status = failure.status
            raise
        finally:
            self._running.dec()
            self._count(question, served, meter, status)

    def _count(self, question: Question, served: ServedModel, meter: AnswerMeter, status: int) -> None:
        backend = "" if question.answered_by is None else question.answered_by.name
        client_api = question.client_api.name
        self._requests.labels(served.name, client_api, backend, str(status)).inc()
        self._seconds.labels(client_api, backend).observe(monotonic() - meter.began)
        if meter.first_at is not None:
            self._first.labels(client_api, backend).observe(meter.first_at - meter.began)
        if meter.reported is not None:
            self._tokens.labels(served.name, backend, "input").inc(meter.reported.input_tokens)
            self._tokens.labels(served.name, backend, "output").inc(meter.reported.output_tokens)
        if meter.calls:
            self._calls.labels(served.name, backend).inc(meter.calls)
        for repair, count in meter.repairs.items():
            self._repairs.labels(served.name, backend, repair).inc(count)
        for kind, count in meter.problems.items():
            self._problems.labels(served.name, backend, kind).inc(count)
        for tool, succeeded in question.tool_runs:
            self._tool_runs.labels(served.name, tool, "success" if succeeded else "failure").inc()
        for kind in question.retries:
            self._retries.labels(served.name, backend, kind).inc()


async def show_metrics(call: ClientCall) -> None:
    """Return the metrics, unless the key is one of a client with limits: they are about all clients."""
    if call.requester.key is not None:
        raise GatewayFailure(FORBIDDEN, "metrics are for the operator: use a key without limits")
    metrics = call.services.metrics
    if metrics is None:
        raise GatewayFailure(NOT_FOUND, "this server has no metrics")
    await call.reply.whole(200, metrics.text(), CONTENT_TYPE_LATEST)

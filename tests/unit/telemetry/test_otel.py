"""Spans and metrics, through the real SDK and its exporters in memory."""

from __future__ import annotations

import asyncio
import http.server
import json
import logging
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.trace import SpanKind, StatusCode
from tests.unit.telemetry.scripts import ADD, add, go

import toolwire
from toolwire import ParsedResponse, ToolCall, Usage
from toolwire.agent import Agent, AgentConfig, AgentTeam, Member
from toolwire.telemetry import otel
from toolwire.telemetry.otel import CONTENT, PROVIDERS, Tracing
from toolwire.testing import ScriptedBackend

KNOWN = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str) and value.startswith("gen_ai.")}


class Traced:
    """The SDK with exporters in memory."""

    def __init__(self, **options: Any) -> None:
        self._spans = InMemorySpanExporter()
        self.traces = TracerProvider(shutdown_on_exit=False)
        self.traces.add_span_processor(SimpleSpanProcessor(self._spans))
        self._reader = InMemoryMetricReader()
        self._meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.observer = Tracing(self.traces, self._meters, **options)

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._spans.get_finished_spans()}

    def metrics(self) -> dict[str, list[Any]]:
        data = self._reader.get_metrics_data()
        assert data is not None
        (resource,) = data.resource_metrics
        (scope,) = resource.scope_metrics
        return {metric.name: list(metric.data.data_points) for metric in scope.metrics}


@pytest.fixture
def traced() -> Iterator[Traced]:
    yield Traced(content=False)


def test_a_run_is_a_tree_of_spans(traced: Traced) -> None:
    go(["Adding. " + ADD % '"1"', '<tool_call>{"name": "fail", "arguments": {}}</tool_call>', "3"], traced.observer)
    found = traced.spans()
    assert sorted(found) == ["chat tiny", "execute_tool add", "execute_tool fail", "invoke_agent agent"]
    run, chat, tool, failed = (
        found[name] for name in ("invoke_agent agent", "chat tiny", "execute_tool add", "execute_tool fail")
    )
    assert run.parent is None
    for child in (chat, tool, failed):
        assert child.parent is not None
        assert child.parent.span_id == run.context.span_id
        assert run.start_time <= child.start_time <= child.end_time  # type: ignore[operator]
    assert (run.kind, chat.kind, tool.kind) == (SpanKind.INTERNAL, SpanKind.INTERNAL, SpanKind.INTERNAL)
    assert run.attributes["gen_ai.operation.name"] == "invoke_agent"  # type: ignore[index]
    assert run.status.status_code is StatusCode.UNSET
    assert dict(tool.attributes) == {  # type: ignore[arg-type]
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": tool.attributes["gen_ai.tool.call.id"],  # type: ignore[index]
        "gen_ai.agent.name": "agent",
        "toolwire.decision": "allowed",
    }
    assert (failed.status.status_code, failed.attributes["error.type"]) == (StatusCode.ERROR, "tool_error")  # type: ignore[index]


def test_names_are_those_of_the_conventions(traced: Traced) -> None:
    traced = Traced(content=True)
    response = ParsedResponse(tool_calls=(ToolCall("add", {"a": 1, "b": 2}, "1"),), usage=Usage(20, 10, 5, 3))
    agent = Agent(ScriptedBackend([response, "done"]), [add], observers=[traced.observer], telemetry=False)
    asyncio.run(agent.ask("?"))
    used = {name for span in traced._spans.get_finished_spans() for name in span.attributes or {}}
    own = {name for name in used if name.startswith("toolwire.")}
    assert used - own <= KNOWN | {"error.type"}
    chats = [span for span in traced._spans.get_finished_spans() if span.name.startswith("chat")]
    first = dict(chats[0].attributes or {})
    assert {name: value for name, value in first.items() if ".usage." in name} == {
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.cache_read.input_tokens": 5,
        "gen_ai.usage.reasoning.output_tokens": 3,
    }
    assert first["gen_ai.response.finish_reasons"] == ("stop",)
    assert first["gen_ai.response.time_to_first_chunk"] >= 0  # type: ignore[operator]


def test_an_api_is_named_as_its_provider(traced: Traced) -> None:
    backend = ScriptedBackend(["done"])
    backend.api = "anthropic_messages"
    backend.model = "big"
    asyncio.run(Agent(backend, observers=[traced.observer], telemetry=False).ask("?"))
    chat = traced.spans()["chat big"]
    assert (chat.kind, chat.attributes["gen_ai.provider.name"]) == (SpanKind.CLIENT, "anthropic")  # type: ignore[index]
    assert set(PROVIDERS) <= set(toolwire.apis())


def test_formats_repairs_and_problems_are_told(traced: Traced) -> None:
    go([ADD % '"1"', "[add(a=1, b=2)]", "<tool_call>{]"], traced.observer)
    metrics = traced.metrics()

    def counted(name: str, key: str) -> dict[Any, Any]:
        return {point.attributes[key]: point.value for point in metrics[name]}

    assert counted("toolwire.repairs", "toolwire.repair") == {"coerced": 1, "fallback": 1}
    assert counted("toolwire.answers", "toolwire.read") == {"clean": 2, "mismatch": 1, "problem": 1}
    assert sum(counted("toolwire.problems", "toolwire.problem").values()) == 1


def test_metrics_have_the_conventions_names_and_buckets(traced: Traced) -> None:
    response = ParsedResponse(tool_calls=(ToolCall("add", {"a": 1, "b": 2}, "1"),), usage=Usage(20, 10))
    asyncio.run(
        Agent(
            ScriptedBackend([response, ParsedResponse("done", usage=Usage(5, 1))]),
            [add],
            observers=[traced.observer],
            telemetry=False,
        ).ask("?")
    )
    metrics = traced.metrics()
    tokens = {point.attributes["gen_ai.token.type"]: point.sum for point in metrics["gen_ai.client.token.usage"]}
    assert tokens == {"input": 25, "output": 11}
    (operation,) = metrics["gen_ai.client.operation.duration"]
    assert (operation.count, operation.explicit_bounds[:3]) == (2, (0.01, 0.02, 0.04))
    assert dict(operation.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "toolwire",
        "gen_ai.request.model": "scripted",
    }
    (tool,) = metrics["gen_ai.execute_tool.duration"]
    assert (tool.count, tool.attributes["gen_ai.tool.name"]) == (1, "add")
    (run,) = metrics["gen_ai.invoke_agent.duration"]
    assert (run.count, run.attributes["gen_ai.agent.name"]) == (1, "agent")
    assert metrics["gen_ai.client.operation.time_to_first_chunk"][0].count == 2


def test_runs_inside_a_run_and_the_spans_of_tools_stand_below_it(traced: Traced) -> None:
    tracer = traced.traces.get_tracer("mine")

    @toolwire.tool
    def look() -> str:
        """Looks."""
        with tracer.start_as_current_span("my own"):
            return "seen"

    helper = Agent(
        ScriptedBackend([ParsedResponse(tool_calls=(ToolCall("look", {}, "2"),)), "done"]),
        [look],
        AgentConfig(name="helper"),
        observers=[traced.observer],
        telemetry=False,
    )
    call = ToolCall("helper", {"task": "look"}, "1")
    lead = Agent(
        ScriptedBackend([ParsedResponse(tool_calls=(call,)), "done"]), observers=[traced.observer], telemetry=False
    )
    AgentTeam(lead, [Member(helper, "Looks.")])

    async def main() -> None:
        await lead.ask("?")
        assert not trace.get_current_span().get_span_context().is_valid

    asyncio.run(main())
    found = traced.spans()
    inner, outer = found["invoke_agent helper"], found["invoke_agent agent"]
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id
    own = found["my own"]
    assert own.parent is not None
    assert own.parent.span_id == inner.context.span_id


@pytest.mark.parametrize(("content", "name"), [(False, "(not kept)"), (True, "my_diagnosis")])
def test_a_name_that_the_model_made_up_is_text(content: bool, name: str) -> None:
    traced = Traced(content=content)
    backend = ScriptedBackend([ParsedResponse(tool_calls=(ToolCall("my_diagnosis", {}, "1"),)), "done"])
    asyncio.run(Agent(backend, [add], observers=[traced.observer], telemetry=False).ask("?"))
    assert f"execute_tool {name}" in traced.spans()


def test_a_run_that_fails_is_an_error(traced: Traced) -> None:
    backend = ScriptedBackend([toolwire.ProviderError("no route")])
    with pytest.raises(toolwire.ToolwireError):
        asyncio.run(Agent(backend, observers=[traced.observer], telemetry=False).ask("?"))
    found = traced.spans()
    assert found["invoke_agent agent"].attributes["error.type"] == "error"  # type: ignore[index]
    assert found["chat scripted"].status.status_code is StatusCode.ERROR
    assert found["chat scripted"].attributes["error.type"] == "provider_error"  # type: ignore[index]


@pytest.mark.parametrize(
    ("said", "with_content"), [("", False), ("NO_CONTENT", False), ("SPAN_ONLY", True), ("true", True)]
)
def test_text_is_told_only_if_it_is_asked_for(said: str, with_content: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTENT, said)
    traced = Traced()

    async def agree(_: object) -> bool:
        return True

    wipe = '<tool_call>{"name": "wipe", "arguments": {"path": "/secret/place", "password": "hunter2"}}</tool_call>'
    go([wipe, "All gone."], traced.observer, task="Wipe the place.", confirm=agree)
    spans = traced._spans.get_finished_spans()
    whole = json.dumps([dict(span.attributes or {}) for span in spans])
    assert ("Wipe the place" in whole, "/secret/place" in whole, "All gone." in whole) == (with_content,) * 3
    assert "hunter2" not in whole


# -- what the environment asks for -----------------------------------------------------------------------------------

PROGRAM = """
    import asyncio, sys
    from toolwire import ParsedResponse
    from toolwire.agent import Agent
    from toolwire.testing import ScriptedBackend
    asyncio.run(Agent(ScriptedBackend([ParsedResponse("hi")])).ask("?"))
    print(*sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


def program(**environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        env={**kept, "TOOLWIRE_RECORD": "off", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def test_without_configuration_it_is_not_even_imported() -> None:
    assert program().stdout.strip() == ""


def test_the_environment_says_where_it_goes() -> None:
    paths: list[str] = []
    bodies: list[bytes] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        program(OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_SERVICE_NAME="mine", OTEL_EXPORTER_OTLP_COMPRESSION="none")
    finally:
        server.shutdown()
        server.server_close()
    assert set(paths) == {"/v1/traces", "/v1/metrics"}
    whole = b"".join(bodies)
    assert all(
        name in whole
        for name in (b"invoke_agent agent", b"chat scripted", b"gen_ai.client.operation.duration", b"mine")
    )


@pytest.mark.parametrize(
    ("environment", "where"),
    [
        ({}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:9"}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"}, ""),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"}, ""),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, ""),
    ],
)
def test_the_environment_may_say_nowhere(
    environment: dict[str, str], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert otel._exporter("TRACES") == where
    assert (otel._traces() is None) == (not where)


def test_an_exporter_that_is_not_installed_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with caplog.at_level(logging.WARNING, "toolwire.telemetry"):
        assert otel._traces() is None
    assert "install opentelemetry-exporter-otlp-proto-grpc" in caplog.text

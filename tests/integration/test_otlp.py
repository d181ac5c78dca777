"""Traces by OTLP, as Logfire, Langfuse and Phoenix receive them: to a collector on loopback that decodes the bytes."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROGRAM = """
    import asyncio
    import toolwire
    from toolwire import ParsedResponse, ToolCall, Usage
    from toolwire.agent import Agent, AgentConfig, Budget, Prices
    from toolwire.testing import ScriptedBackend

    @toolwire.tool
    def stock(item: str, password: str) -> str:
        "Returns how much of an item there is."
        return f"12 of {item}"

    call = ToolCall("stock", {"item": "tea", "password": "hunter2hunter2"}, "c1")
    answers = [ParsedResponse(tool_calls=(call,), usage=Usage(100, 10)), ParsedResponse("12.", usage=Usage(120, 5))]
    config = AgentConfig(
        system="Be brief.",
        settings={"temperature": 0.5, "stop": ("Farewell",)},
        budget=Budget(prices=Prices(input=10.0, output=100.0)),
    )
    print(asyncio.run(Agent(ScriptedBackend(answers), [stock], config).ask("How much tea?")))
"""

BASIC = base64.b64encode(b"pk-lf-1:sk-lf-2").decode()


@dataclass
class Collector:
    """What a server received: decoded spans, with the paths and headers of the requests."""

    url: str = ""
    paths: set[str] = field(default_factory=set)
    headers: list[dict[str, str]] = field(default_factory=list)
    spans: list[Any] = field(default_factory=list)
    services: set[str] = field(default_factory=set)

    def receive(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.paths.add(path)
        self.headers.append(headers)
        if not path.endswith("/v1/traces"):
            return
        body = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services |= {
                pair.value.string_value for pair in resource.resource.attributes if pair.key == "service.name"
            }
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def attributes(self, name: str) -> list[dict[str, Any]]:
        """The attributes of the spans of a name, in the order of time."""
        spans = sorted((span for span in self.spans if span.name == name), key=lambda span: span.start_time_unix_nano)
        return [
            {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}
            for span in spans
        ]


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            collector.receive(self.path, headers, self.rfile.read(int(headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()


def run_program(**environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TOOLWIRE_RECORD"))}
    completed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return completed.stdout.strip()


@pytest.mark.parametrize(
    ("path", "headers", "received"),
    [
        pytest.param("", "Authorization=token-of-logfire", {"authorization": "token-of-logfire"}, id="logfire"),
        pytest.param(
            "/api/public/otel",
            f"Authorization=Basic%20{BASIC},x-langfuse-ingestion-version=4",
            {"authorization": f"Basic {BASIC}", "x-langfuse-ingestion-version": "4"},
            id="langfuse",
        ),
        pytest.param("", "Authorization=Bearer%20key", {"authorization": "Bearer key"}, id="phoenix"),
    ],
)
def test_a_run_arrives_with_its_inputs_and_outputs(path: str, headers: str, received: dict[str, str]) -> None:
    with collecting() as collector:
        answer = run_program(
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url + path,
            OTEL_EXPORTER_OTLP_HEADERS=headers,
            OTEL_SERVICE_NAME="shop",
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="SPAN_ONLY",
        )
    assert answer == "12."
    assert f"{path}/v1/traces" in collector.paths
    assert received.items() <= collector.headers[0].items()
    assert collector.services == {"shop"}
    root = next(span for span in collector.spans if span.name == "invoke_agent agent")
    assert {span.parent_span_id for span in collector.spans if span is not root} == {root.span_id}
    first, second = collector.attributes("chat scripted")
    assert json.loads(first["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be brief."}]
    question = {"role": "user", "parts": [{"type": "text", "content": "How much tea?"}]}
    assert json.loads(first["gen_ai.input.messages"]) == [question]
    (definition,) = json.loads(first["gen_ai.tool.definitions"])
    assert (definition["type"], definition["name"]) == ("function", "stock")
    call = {"type": "tool_call", "id": "c1", "name": "stock", "arguments": {"item": "tea", "password": "[redacted]"}}
    (written,) = json.loads(first["gen_ai.output.messages"])
    assert written == {"role": "assistant", "parts": [call], "finish_reason": "tool_call"}
    result = {"type": "tool_call_response", "id": "c1", "response": "12 of tea"}
    assert json.loads(second["gen_ai.input.messages"]) == [
        question,
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [result]},
    ]
    assert (first["gen_ai.request.temperature"], first["gen_ai.usage.input_tokens"]) == (0.5, 100)
    assert "Farewell" in str(first["gen_ai.request.stop_sequences"])
    (whole,) = collector.attributes("invoke_agent agent")
    assert whole["toolwire.cost"] == pytest.approx((220 * 10 + 15 * 100) / 1e6)
    assert "12." in whole["gen_ai.output.messages"]


def test_no_text_is_sent_unless_it_is_asked_for() -> None:
    with collecting() as collector:
        run_program(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    sent = " ".join(map(str, collector.spans))
    assert len(collector.spans) == 4  # the run, two answers and a call
    assert not [
        text
        for text in ("How much tea", "Be brief", "12 of", "hunter2", "Returns how much", "Farewell")
        if text in sent
    ]

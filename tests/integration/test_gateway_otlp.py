"""Spans of `toolwire serve` as a collector receives them by OTLP, asked with the official SDK of a client."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.integration.test_gateway_process import backend, served, within_time, write
from tests.integration.test_otlp import Collector, collecting

TRACE = "0af7651916cd43dd8448eb211c80319c"
HEADERS = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "x-secret": "header-secret"}
KEY = "key-of-the-client-0123456789"
QUESTION = "What is in the safe?"


def attributes_of(span: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}


def spans_by_name(collector: Collector) -> dict[str, Any]:
    return {span.name: span for span in collector.spans}


async def ask(port: int, model: str = "m") -> str:
    """Return the text of a streamed answer."""
    async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, max_retries=0) as client:
        stream = await client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": QUESTION}],
            stop=["a-word-to-stop"],
            stream=True,
            extra_headers=HEADERS,
        )
        async with stream:
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


def test_the_spans_of_a_stream_arrive_at_its_end(tmp_path: Path) -> None:
    async def work() -> None:
        with collecting() as collector:
            async with backend() as behind:
                behind.go_on.set()
                write(tmp_path / "g.toml", behind)
                async with served(tmp_path / "g.toml", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as process:
                    assert await ask(process.port) == "onetwo"
                    with pytest.raises(openai.NotFoundError):
                        await ask(process.port, "unknown")
                    process.process.send_signal(signal.SIGTERM)
                    await process.process.wait()
        spans = spans_by_name(collector)
        chat, refused = spans["chat m"], spans["chat unknown"]
        assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
        servers = [span for span in collector.spans if span.name == "POST /v1/chat/completions"]
        assert {span.parent_span_id.hex() for span in servers} == {"b7ad6b7169203331"}
        assert {chat.parent_span_id, refused.parent_span_id} == {span.span_id for span in servers}
        attributes = attributes_of(chat)
        assert attributes["gen_ai.operation.name"] == "chat"
        assert attributes["gen_ai.request.stream"] is True
        assert attributes["toolwire.backend"] == "m"
        assert (chat.status.code, refused.status.code) == (0, 2)
        assert attributes_of(refused)["error.type"] == "404"
        sent = " ".join(map(str, collector.spans))
        assert [text for text in (QUESTION, KEY, "header-secret", "onetwo", "a-word-to-stop") if text in sent] == []

    within_time(work)

"""A gateway with an inspector, whose models answer from a script: as text, in another API, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from tests.unit.gateway.gateway_calls import Got, asked, request

from toolwire import Client, ContentDelta, Finish, FinishReason, ParsedResponse, ReasoningDelta, ToolCall, Usage
from toolwire.agent import Prices
from toolwire.gateway.access import Access
from toolwire.gateway.app import Gateway
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.upstreams import ApiUpstream, TextUpstream
from toolwire.inspector.inspector import Inspector, InspectorOptions
from toolwire.models import TextBackend
from toolwire.testing import ScriptedTransport

KEY = "the-key-of-the-inspector"
WRITTEN = 'I look it up.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": "3"}}\n'
"""Text of a model with two faults that are repaired: a missing closing tag, and a number in quotes."""
SECRET = "sk-ant-api03-Zx81kQpW7vLm20TnYb44RsEeUu96HhJj"
CALL = ToolCall("get_weather", {"city": "Paris"}, "call_1")
ANSWER = ParsedResponse(
    "I look.",
    reasoning="The user wants the weather.",
    tool_calls=(CALL,),
    finish_reason=FinishReason.TOOL_CALLS,
    usage=Usage(70, 12, cached_tokens=50),
)
TOOL = {
    "name": "get_weather",
    "description": "Weather.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
}


def text_model(text: str = WRITTEN, *, piece: int = 7, reasoning: str = "", waits: Any = None) -> TextUpstream:
    """Return a model that writes this text in pieces; it waits for an event before the last one."""

    async def source(messages: Any) -> AsyncIterator[Any]:
        if reasoning:
            yield ReasoningDelta(reasoning)
        for at in range(0, len(text), piece):
            if waits is not None and at + piece >= len(text):
                await waits.wait()
            yield ContentDelta(text[at : at + piece])
        yield Finish(FinishReason.STOP)

    return TextUpstream(TextBackend(source, format="hermes", model="local"), name="local")


def api_model(*answers: Any, api: str = "anthropic_messages", model: str = "claude") -> ApiUpstream:
    transport = ScriptedTransport(api, answers or [ANSWER] * 50, piece=64)
    return ApiUpstream(Client(api, model, base_url="http://backend", transport=transport), name="backend", model=model)


def inspected(
    *models: ServedModel, options: InspectorOptions | None = None, access: Access | None = None
) -> tuple[Gateway, Inspector]:
    """Return a gateway of these models, or of one that writes text and one of an API."""
    models = models or (
        ServedModel("text", (text_model(),)),
        ServedModel("api", (api_model(),)),
        ServedModel("broken", (api_model((429, b'{"error":{"message":"slow down"}}')),)),
    )
    inspector = Inspector(options or InspectorOptions(key=KEY))
    return Gateway(ModelTable(models), inspector=inspector, access=access), inspector


def question(api: str, model: str, *, stream: bool = True, text: str = "") -> tuple[str, dict[str, Any]]:
    """Return the path and the body of a question whose tool has an integer."""
    path, body = asked(api, model=model, stream=stream)
    function = {"type": "function", "function": TOOL}
    tools: dict[str, list[Any]] = {
        "chat": [function],
        "ollama": [function],
        "responses": [{"type": "function", **TOOL}],
        "messages": [{"name": TOOL["name"], "description": "Weather.", "input_schema": TOOL["parameters"]}],
        "gemini": [{"functionDeclarations": [{**TOOL, "parameters": TOOL["parameters"]}]}],
    }
    body["tools"] = tools[api]
    if text and "messages" in body:
        body["messages"][-1]["content"] = text
    return path, body


def ask(app: Any, api: str, model: str, **options: Any) -> Got:
    """Ask a model, and return the response of the gateway."""
    headers = options.pop("headers", {"user-agent": "claude-cli/2.1 (external)", "authorization": f"Bearer {SECRET}"})
    path, body = question(api, model, **options)
    return asyncio.run(request(app, path, body, headers=headers))


def get(app: Any, path: str, *, body: Any = None, **headers: str) -> Got:
    """Send a request to the inspector, with its key."""
    method = "GET" if body is None else "POST"
    sent = {"authorization": f"Bearer {KEY}", **headers}
    return asyncio.run(request(app, f"/inspector/api{path}", body, method=method, headers=sent))


PRICES = Prices(input=3.0, output=15.0)

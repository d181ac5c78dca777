"""Models of the gateway that write their calls as text under a grammar, in the field of their server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import answer_in, asked, request

from toolwire import ParsedResponse
from toolwire.agent.model_pool import Models
from toolwire.config.tables import Configuration
from toolwire.errors import ConfigurationError
from toolwire.gateway.app import Gateway
from toolwire.gateway.model_loading import load_models
from toolwire.testing import ScriptedTransport

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


def configuration(provider: str, constrain: Any = None, format: str | None = "hermes") -> Configuration:
    profile = {"provider": provider, "model": "m", "url": "http://b/v1", "tools": {"definition_format": format}}
    models = {"free": {"profile": "p"}, "bound": {"profile": "p", "constrain": constrain}}
    return Configuration.model_validate({"profiles": {"p": profile}, "gateway": {"models": models}})


def ask(config: Configuration, model: str) -> tuple[Any, dict[str, Any]]:
    """Return the answer to a question, and the body that the backend got."""
    transport = ScriptedTransport("openai_compatible", [ParsedResponse(CALL)])

    async def run() -> Any:
        async with Models(transport=transport) as models:
            path, body = asked("chat", model=model)
            return await request(Gateway(await load_models(config, models)), path, body)

    got = asyncio.run(run())
    (sent,) = transport.requests
    return answer_in("chat", got.body, stream=False), sent


@pytest.mark.parametrize(
    ("provider", "field"), [("vllm", "structured_outputs"), ("sglang", "ebnf"), ("llama_cpp", "grammar")]
)
def test_a_grammar_is_in_the_field_of_the_server(provider: str, field: str) -> None:
    answer, sent = ask(configuration(provider, "required"), "bound")
    assert "get_weather" in str(sent[field])
    assert [call.arguments for call in answer.tool_calls] == [{"city": "Paris"}]


def test_the_same_model_is_offered_without_a_grammar_too() -> None:
    _, sent = ask(configuration("vllm", "auto"), "free")
    assert "structured_outputs" not in sent


@pytest.mark.parametrize(
    ("provider", "format", "why"),
    [
        ("openai_compatible", "hermes", "field for grammars is known"),
        ("vllm", None, "an API with strict tools, or calls in the text"),
        ("openai", None, "requests say which tools are strict"),
    ],
    ids=["server", "format", "strict tools"],
)
def test_a_grammar_without_effect_is_refused(provider: str, format: str | None, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        ask(configuration(provider, "auto", format), "free")

"""The members for settings are those of the providers' own clients, which also accept the values."""

import inspect
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter

from toolwire import get_api
from toolwire.providers.model_settings import EFFORTS, ModelSettings

SETTINGS: ModelSettings = {
    "max_tokens": 50_000,
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 40,
    "stop": ("END",),
    "seed": 7,
    "frequency_penalty": 0.25,
    "presence_penalty": 0.75,
    "service_tier": "default",
    "metadata": {"team": "a"},
    "end_user": "u1",
}
efforts = pytest.mark.parametrize("effort", [*EFFORTS, 5000])


def body(api: str, effort: Any) -> dict[str, Any]:
    return get_api(api).encode_request("Hi.", model="m", **{**SETTINGS, "reasoning_effort": effort})


def unknown(members: dict[str, Any], names: Any) -> list[str]:
    return [name for name in members if name not in names]


@efforts
def test_openai(effort: Any) -> None:
    chat = pytest.importorskip("openai.types.chat.completion_create_params").CompletionCreateParamsNonStreaming
    responses = pytest.importorskip("openai.types.responses.response_create_params").ResponseCreateParamsNonStreaming
    for api, kind in (("openai_chat", chat), ("openai_responses", responses)):
        assert unknown(body(api, effort), get_type_hints(kind)) == []
        TypeAdapter(kind).validate_python(body(api, effort))


@efforts
def test_anthropic(effort: Any) -> None:
    params = pytest.importorskip("anthropic.types.message_create_params").MessageCreateParamsNonStreaming
    # The newest models sample as they choose, so the newest types lack these; the models before take them.
    sampling = {"temperature", "top_p", "top_k"}
    assert set(unknown(body("anthropic_messages", effort), get_type_hints(params))) <= sampling
    TypeAdapter(params).validate_python(body("anthropic_messages", effort))


@efforts
def test_mistral(effort: Any) -> None:
    request = pytest.importorskip("mistralai.client.models").ChatCompletionRequest
    assert unknown(body("mistral", effort), request.model_fields) == []
    request.model_validate(body("mistral", effort))


@efforts
def test_cohere(effort: Any) -> None:
    client = pytest.importorskip("cohere.v2.client").V2Client
    members = body("cohere", effort)
    assert unknown(members, inspect.signature(client.chat).parameters) == ["stream"], "which is a method there"
    thinking = pytest.importorskip("cohere.types.thinking").Thinking.model_validate(members["thinking"])
    assert thinking.type in ("enabled", "disabled")


@efforts
def test_ollama(effort: Any) -> None:
    types = pytest.importorskip("ollama._types")
    members = body("ollama", effort)
    assert unknown(members, types.ChatRequest.model_fields) == []
    assert unknown(members["options"], types.Options.model_fields) == []
    types.ChatRequest.model_validate(members)


@efforts
def test_gemini(effort: Any) -> None:
    types = pytest.importorskip("google.genai.types")
    members = body("gemini", effort)
    config = types.GenerationConfig.model_validate(members["generationConfig"])  # which refuses unknown members
    assert (config.top_k, config.seed) == (40, 7)
    assert types.ServiceTier(members["serviceTier"]) is types.ServiceTier.STANDARD


@efforts
def test_bedrock(effort: Any) -> None:
    session = pytest.importorskip("botocore.session").get_session()
    shape = session.get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    validator = pytest.importorskip("botocore.validate").ParamValidator()
    assert validator.validate(body("bedrock_converse", effort), shape).generate_report() == ""

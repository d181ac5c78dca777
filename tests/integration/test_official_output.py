"""The place of a schema in each API is that of the providers' own clients, beside the other settings there."""

from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from toolwire import OutputSchema, get_api
from toolwire.schema.output_type import output_type_of


class Leg(BaseModel):
    city: str
    nights: int | None = None


class Trip(BaseModel):
    """A trip."""

    title: str
    legs: list[Leg]


def body(api: str, **options: Any) -> dict[str, Any]:
    output = output_type_of(Trip)
    schema = OutputSchema(output.schema, output.name, output.description, strict=True)
    return get_api(api).encode_request("Hi.", model="m", output=schema, max_tokens=50, **options)


def test_openai() -> None:
    chat = pytest.importorskip("openai.types.chat.completion_create_params").CompletionCreateParamsNonStreaming
    responses = pytest.importorskip("openai.types.responses.response_create_params").ResponseCreateParamsNonStreaming
    strict = pytest.importorskip("openai.lib._pydantic").to_strict_json_schema(Trip)
    for api, kind in (("openai_chat", chat), ("openai_responses", responses)):
        TypeAdapter(kind).validate_python(body(api, reasoning_effort="low"))
    named = body("openai_chat")["response_format"]["json_schema"]
    assert required(named["schema"]) == required(strict)
    assert body("openai_responses")["text"]["format"]["schema"] == named["schema"]


def required(schema: dict[str, Any]) -> list[Any]:
    """The required properties of a trip and of its legs, and whether others are refused."""
    leg = schema["$defs"]["Leg"]
    return [(node["required"], node["additionalProperties"]) for node in (schema, leg)]


def test_anthropic() -> None:
    params = pytest.importorskip("anthropic.types.message_create_params").MessageCreateParamsNonStreaming
    transform = pytest.importorskip("anthropic").transform_schema
    written = body("anthropic_messages", reasoning_effort="low")
    TypeAdapter(params).validate_python(written)
    assert sorted(written["output_config"]) == ["effort", "format"]
    schema = written["output_config"]["format"]["schema"]
    assert required(schema) == required(transform(Trip))


def test_bedrock() -> None:
    session = pytest.importorskip("botocore.session").get_session()
    shape = session.get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    validator = pytest.importorskip("botocore.validate").ParamValidator()
    written = body("bedrock_converse")
    assert validator.validate(written, shape).generate_report() == ""
    assert "textFormat" in written["outputConfig"]


def test_gemini() -> None:
    types = pytest.importorskip("google.genai.types")
    config = types.GenerationConfig.model_validate(body("gemini")["generationConfig"])
    assert config.response_mime_type == "application/json"
    assert config.response_json_schema["required"] == ["title", "legs"]
    older = types.GenerationConfig.model_validate(body("gemini_openapi")["generationConfig"])
    assert sorted(older.response_schema.properties) == ["legs", "title"]


def test_ollama() -> None:
    types = pytest.importorskip("ollama._types")
    assert types.ChatRequest.model_validate(body("ollama")).format["required"] == ["title", "legs"]


def test_mistral() -> None:
    request = pytest.importorskip("mistralai.client.models").ChatCompletionRequest
    format = request.model_validate(body("mistral")).response_format
    assert format.json_schema.strict is True
    assert format.json_schema.name == "Trip"


def test_cohere() -> None:
    format = pytest.importorskip("cohere.types.json_response_format_v2").JsonResponseFormatV2
    written = body("cohere")["response_format"]
    assert written.pop("type") == "json_object"
    assert format.model_validate(written).json_schema["required"] == ["title", "legs"]

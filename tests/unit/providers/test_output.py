"""The schema of an answer in every API: written in its place, in the API's dialect, and read back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire import Message, Notes, ToolDefinition, apis, get_api
from toolwire.providers.output_schema import OutputSchema
from toolwire.providers.output_support import OutputSupport

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
}
OUTPUT = OutputSchema(PERSON, "person", "A person.", strict=True)
QUESTION = [Message("user", "Who wrote it?")]
STRICT = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": ["integer", "null"], "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SEALED = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}


def response_format(**members: Any) -> dict[str, Any]:
    named = {"name": "person", "description": "A person.", **members}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


BEDROCK_SCHEMA = {"schema": json.dumps(SEALED), "name": "person", "description": "A person."}
WRITTEN: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        ("openai_chat", "azure", "azure_deployments", "xai", "openrouter", "cerebras", "mistral"),
        response_format(schema=STRICT, strict=True),
    ),
    **dict.fromkeys(
        (
            *("groq", "together", "fireworks", "vllm", "sglang", "llama_cpp", "lm_studio", "ollama_chat"),
            *("venice", "hugging_face", "deepinfra", "cloudflare", "openai_compatible"),
        ),
        response_format(schema=PERSON),
    ),
    **{name: {"response_format": {"type": "json_object"}} for name in ("deepseek", "moonshot", "zai")},
    "openai_responses": {
        "text": {
            "format": {
                "type": "json_schema",
                "name": "person",
                "description": "A person.",
                "schema": STRICT,
                "strict": True,
            }
        }
    },
    **{
        name: {"output_config": {"format": {"type": "json_schema", "schema": SEALED}}}
        for name in ("anthropic_messages", "anthropic_bedrock", "anthropic_vertex")
    },
    "gemini_interactions": {"response_format": {"type": "text", "mime_type": "application/json", "schema": PERSON}},
    "bedrock_converse": {
        "outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": BEDROCK_SCHEMA}}}
    },
    "gemini": {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": PERSON}},
    "gemini_openapi": {"generationConfig": {"responseMimeType": "application/json", "responseSchema": PERSON}},
    "ollama": {"format": PERSON},
    "cohere": {"response_format": {"type": "json_object", "json_schema": PERSON}},
}
CANNOT_WITHOUT_SCHEMA = ("anthropic_messages", "anthropic_bedrock", "anthropic_vertex", "bedrock_converse")


def support_of(name: str) -> OutputSupport:
    support = get_api(name)._outputs
    assert support is not None
    return support


def members(body: dict[str, Any], names: Any) -> dict[str, Any]:
    """These members of a body, with JSON text in them decoded, since the order of keys does not matter."""
    text = json.dumps({name: body[name] for name in names if name in body})
    chosen = json.loads(text)
    if structure := chosen.get("outputConfig", {}).get("textFormat", {}).get("structure"):
        structure["jsonSchema"]["schema"] = json.loads(structure["jsonSchema"]["schema"])
    return chosen


def test_every_api_is_in_the_table() -> None:
    assert set(WRITTEN) == set(apis())


@pytest.mark.parametrize("name", apis())
def test_schema_is_written_in_its_place(name: str) -> None:
    body = get_api(name).encode_request(QUESTION, model="m", output=OUTPUT)
    assert members(body, WRITTEN[name]) == members(WRITTEN[name], WRITTEN[name])


@pytest.mark.parametrize("name", apis())
def test_schema_is_read_back(name: str) -> None:
    api = get_api(name)
    body = api.encode_request(QUESTION, model="m", output=OUTPUT)
    request = api.decode_request(body)
    assert request.output is not None
    assert request.output.schema == support_of(name).fit(OUTPUT, name, Notes()).schema  # type: ignore[union-attr]
    assert not request.extra
    assert members(api.encode_request(request), WRITTEN[name]) == members(body, WRITTEN[name])


@pytest.mark.parametrize("target", apis())
def test_schema_survives_translation(target: str) -> None:
    body = get_api("openai").encode_request(QUESTION, model="m", output=OutputSchema(PERSON, "person", "A person."))
    notes = Notes()
    translated = get_api(target).encode_request(get_api("openai").decode_request(body), model="m", notes=notes)
    output = get_api(target).decode_request(translated).output
    assert output is not None
    if support_of(target).schemas is None and target != "openai_chat":
        assert output.schema is None
        assert any(note.kind == "changed" and note.where == "output" for note in notes)
    else:
        assert output.schema is not None
        assert list(output.schema["properties"]) == ["name", "age"]


@pytest.mark.parametrize("name", apis())
def test_json_without_a_schema(name: str) -> None:
    notes = Notes()
    body = get_api(name).encode_request(QUESTION, model="m", output=OutputSchema(None), notes=notes)
    output = get_api(name).decode_request(body).output
    if name in CANNOT_WITHOUT_SCHEMA:
        assert output is None
        assert [note.kind for note in notes if note.where == "output"] == ["dropped"]
    else:
        assert output == OutputSchema(None)
        assert not [note for note in notes if note.where == "output"]


@pytest.mark.parametrize("name", apis())
def test_tools_beside_a_schema_are_noted_where_an_api_refuses_them(name: str) -> None:
    notes = Notes()
    get_api(name).encode_request(QUESTION, tools=[ToolDefinition("clock")], model="m", output=OUTPUT, notes=notes)
    noted = any("beside tools" in note.message for note in notes)
    assert noted is not support_of(name).with_tools


def test_other_members_of_a_container_stay() -> None:
    api = get_api("anthropic")
    schema = {"type": "json_schema", "schema": SEALED}
    body = {"messages": [], "max_tokens": 9, "output_config": {"effort": "high", "format": schema}}
    request = api.decode_request(body)
    assert request.output == OutputSchema(SEALED)
    assert api.encode_request(request)["output_config"] == {"effort": "high", "format": schema}


def test_a_body_is_not_changed_by_reading_it() -> None:
    body = {"messages": [], "response_format": {"type": "json_object"}}
    get_api("openai").decode_request(body)
    assert body == {"messages": [], "response_format": {"type": "json_object"}}


def test_unknown_formats_stay_members_of_their_api() -> None:
    request = get_api("openai").decode_request({"messages": [], "response_format": {"type": "text"}})
    assert request.output is None
    assert request.extra == {"response_format": {"type": "text"}}


FREE_KEYS = OutputSchema({"type": "object", "additionalProperties": {"type": "integer"}}, "counts", strict=True)
TREE = OutputSchema(
    {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}},
    },
    "tree",
    strict=True,
)


def test_strict_mode_is_left_where_a_schema_does_not_fit_it() -> None:
    notes = Notes()
    body = get_api("openai").encode_request(
        QUESTION,
        output=OutputSchema({"type": "object", "properties": {"a": FREE_KEYS.schema}}, strict=True),
        notes=notes,
    )
    assert body["response_format"]["json_schema"]["strict"] is False
    assert [note.kind for note in notes] == ["changed"]


@pytest.mark.parametrize("output", [FREE_KEYS, TREE], ids=["free keys", "recursion"])
def test_schema_that_an_api_cannot_guarantee(output: OutputSchema) -> None:
    notes = Notes()
    body = get_api("anthropic").encode_request(QUESTION, output=output, max_tokens=9, notes=notes)
    assert "output_config" not in body
    assert [(note.kind, note.where) for note in notes] == [("dropped", "output")]
    assert not support_of("anthropic").accepts(output, tools=False)
    assert support_of("ollama").accepts(output, tools=False)


def test_root_that_is_not_an_object_is_not_sent() -> None:
    notes = Notes()
    body = get_api("openai").encode_request(QUESTION, output=OutputSchema({"type": "array"}), notes=notes)
    assert "response_format" not in body
    assert "root type must be object" in notes[0].message


def test_schema_must_be_a_dict() -> None:
    with pytest.raises(TypeError, match="schema"):
        OutputSchema("person")  # type: ignore[arg-type]

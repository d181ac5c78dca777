"""Members of requests that only one API has come back in that API, and are noted in every other."""

from dataclasses import replace
from typing import Any

import pytest

from toolwire import Message, Notes, OutputSchema, ToolResult, get_api
from toolwire.providers.request import ChatRequest

OTHERS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini", "bedrock_converse", "cohere", "ollama")
WEATHER = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}
REFERENCE = {"type": "tool_reference", "tool_name": "weather"}
SEARCHED: dict[str, Any] = {
    "max_tokens": 9,
    "messages": [
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "find", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [REFERENCE]}]},
    ],
    "tools": [{"name": "find", "input_schema": {"type": "object", "properties": {}}}],
}


def translated(source: str, body: dict[str, Any], target: str) -> tuple[dict[str, Any], set[str]]:
    """Return a body of another API, and the places that notes name."""
    notes = Notes()
    request = get_api(source).decode_request(body)
    return get_api(target).encode_request(request, notes=notes), {note.where for note in notes}


def test_members_of_a_tool_in_chat() -> None:
    function = {**WEATHER, "max_uses": 2}
    tool = {"type": "function", "function": function, "eager": True}
    body = {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool]}
    for api in ("openai_chat", "cohere", "ollama", "mistral"):
        assert translated(api, body, api)[0]["tools"] == [tool]
        other = "anthropic_messages"
        assert translated(api, body, other)[1] >= {"weather/eager", "weather/function"}


def test_blocks_of_a_result_that_only_anthropic_has() -> None:
    own, _ = translated("anthropic_messages", SEARCHED, "anthropic_messages")
    assert own["messages"][2] == SEARCHED["messages"][2]
    for other in OTHERS:
        if other != "anthropic_messages":
            body, wheres = translated("anthropic_messages", SEARCHED, other)
            assert "result t1" in wheres, other
            assert "tool_reference" in str(body), other


def test_the_original_content_of_a_result_that_was_changed_does_not_come_back() -> None:
    api = get_api("anthropic_messages")
    request = api.decode_request(SEARCHED)
    changed = tuple(
        replace(message, parts=tuple(_redacted(part) for part in message.parts)) for message in request.messages
    )
    body = api.encode_request(replace(request, messages=changed))
    assert body["messages"][2]["content"] == [{"type": "tool_result", "tool_use_id": "t1", "content": "redacted"}]


def _redacted(part: Any) -> Any:
    return replace(part, result="redacted") if isinstance(part, ToolResult) else part


def test_the_id_of_a_document_in_a_result() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    document = {"type": "document", "document": {"id": "https://example.com", "data": {"rain": "no"}}}
    result = {"role": "tool", "tool_call_id": "c1", "content": [document]}
    body = {"messages": [{"role": "user", "content": "Rain?"}, {"role": "assistant", "tool_calls": [call]}, result]}
    assert translated("cohere", body, "cohere")[0]["messages"][2] == result
    assert "result c1" in translated("cohere", body, "openai_chat")[1]


@pytest.mark.parametrize("api", OTHERS)
def test_a_grammar_for_the_input_of_a_tool(api: str) -> None:
    tool = {"type": "custom", "name": "run", "format": {"type": "grammar", "syntax": "lark", "definition": "start: A"}}
    body, wheres = translated("openai_responses", {"input": "Hi.", "tools": [tool]}, api)
    assert ("start: A" in str(body)) != ("run/format" in wheres)


@pytest.mark.parametrize("api", OTHERS)
def test_the_description_of_an_output(api: str) -> None:
    notes = Notes()
    output = OutputSchema({"type": "object", "properties": {}}, "city", "The capital.")
    body = get_api(api).encode_request("Hi.", output=output, notes=notes)
    assert ("The capital." in str(body)) != ("output/description" in {note.where for note in notes})


def test_the_namespace_of_a_call_in_an_answer_and_in_a_request() -> None:
    api = get_api("openai_responses")
    item = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "get", "arguments": "{}", "namespace": "crm"}
    response = api.decode_response({"output": [item], "status": "completed"})
    assert api.encode_response(response)["output"][0]["namespace"] == "crm"
    request = ChatRequest((Message("user", "Hi."), Message("assistant", response.parts)))
    assert api.encode_request(request)["input"][1]["namespace"] == "crm"
    notes = Notes()
    get_api("gemini").encode_request(request, notes=notes)
    assert "namespace" in {note.where for note in notes}


def test_a_part_of_gemini_is_named_by_what_it_is_and_not_by_its_signature() -> None:
    part = {"thoughtSignature": "abc", "toolCall": {"id": "1", "toolType": "GOOGLE_SEARCH_WEB"}}
    contents = [{"role": "user", "parts": [{"text": "Hi."}]}, {"role": "model", "parts": [part, {"text": "Yes."}]}]
    assert "toolCall" in translated("gemini", {"contents": contents}, "openai_chat")[1]

"""Tools that providers run themselves become the tool of the same kind that another provider runs."""

from typing import Any

import pytest

from toolwire import ChatRequest, Message, Notes, get_api

LOCATION = {"type": "approximate", "city": "Paris"}
DOMAINS = ["example.com"]
SEARCH: dict[str, dict[str, Any]] = {
    "anthropic_messages": {"type": "web_search_20250305", "name": "web_search"},
    "openai_responses": {"type": "web_search"},
    "gemini": {"googleSearch": {}},
    "bedrock_converse": {"systemTool": {"name": "nova_grounding"}},
}
CODE: dict[str, dict[str, Any]] = {
    "anthropic_messages": {"type": "code_execution_20250825", "name": "code_execution"},
    "openai_responses": {"type": "code_interpreter", "container": {"type": "auto"}},
    "gemini": {"codeExecution": {}},
    "bedrock_converse": {"systemTool": {"name": "nova_code_interpreter"}},
}
BODIES: dict[str, Any] = {
    "anthropic_messages": lambda *tools: {
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi."}],
        "tools": [*tools],
    },
    "openai_responses": lambda *tools: {"input": "Hi.", "tools": [*tools]},
    "gemini": lambda *tools: {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}], "tools": [*tools]},
    "bedrock_converse": lambda *tools: {
        "messages": [{"role": "user", "content": [{"text": "Hi."}]}],
        "toolConfig": {"tools": [*tools]},
    },
}


def translated(source: str, target: str, *tools: Any, model: str = "amazon.nova-pro") -> tuple[list[Any], Notes]:
    """Return the tools of a request in another API, and the notes."""
    notes = Notes()
    request = get_api(source).decode_request(BODIES[source](*tools))
    body = get_api(target).encode_request(request, model=model, notes=notes)
    return body.get("toolConfig", body).get("tools", []), notes


@pytest.mark.parametrize("tools", [SEARCH, CODE])
@pytest.mark.parametrize("source", SEARCH)
@pytest.mark.parametrize("target", SEARCH)
def test_every_pair(source: str, target: str, tools: dict[str, Any]) -> None:
    written, notes = translated(source, target, tools[source])
    assert written == [tools[target]]
    changed = [note for note in notes if note.kind == "changed"]
    assert len(changed) == (source != target), "what another provider's tool does is not the same"


def test_options_that_both_have_are_translated_and_others_noted() -> None:
    tool = {**SEARCH["anthropic_messages"], "allowed_domains": DOMAINS, "user_location": LOCATION, "max_uses": 3}
    written, notes = translated("anthropic_messages", "openai_responses", tool)
    assert written == [{"type": "web_search", "filters": {"allowed_domains": DOMAINS}, "user_location": LOCATION}]
    assert [note.where for note in notes if note.kind == "dropped"] == ["tools/web_search_20250305/max_uses"]
    written, _ = translated("openai_responses", "anthropic_messages", written[0])
    assert written == [{name: value for name, value in tool.items() if name != "max_uses"}]
    _, notes = translated("anthropic_messages", "gemini", tool)
    assert len([note for note in notes if note.kind == "dropped"]) == 3


def test_tools_without_a_counterpart_are_dropped_with_a_note() -> None:
    for target in ("openai_chat", "cohere"):
        written, notes = translated("gemini", target, SEARCH["gemini"])
        assert (written, [note.kind for note in notes]) == ([], ["dropped"])
    _, notes = translated("openai_responses", "anthropic_messages", {"type": "file_search", "vector_store_ids": ["v"]})
    assert "tools/file_search" in {note.where for note in notes}
    written, _ = translated("gemini", "openai_responses", {"urlContext": {}})
    assert written == []


def test_gemini_gets_none_beside_functions_and_bedrock_none_for_other_models() -> None:
    function = {"name": "rain", "input_schema": {"type": "object", "properties": {}}}
    written, notes = translated("anthropic_messages", "gemini", SEARCH["anthropic_messages"], function)
    assert [list(tool) for tool in written] == [["functionDeclarations"]]
    assert "tools/web_search_20250305" in {note.where for note in notes}
    written, _ = translated("gemini", "bedrock_converse", SEARCH["gemini"], model="anthropic.claude-sonnet-5")
    assert written == []


@pytest.mark.parametrize("value", [True, "x", 3, ["x"]])
@pytest.mark.parametrize(
    ("api", "tool"),
    [("gemini", {"googleSearch": ...}), ("openrouter", {"type": "openrouter:web_search", "parameters": ...})],
)
def test_options_that_are_no_object_are_left_out_with_a_note(api: str, tool: dict[str, Any], value: Any) -> None:
    notes = Notes()
    tools = ({name: value if inner is ... else inner for name, inner in tool.items()},)
    request = ChatRequest((Message("user", "hi"),), provider=get_api(api).kind, provider_tools=tools)
    body = get_api("cohere").encode_request(request, notes=notes)
    assert "tools" not in body
    assert [note.kind for note in notes] == ["dropped"]

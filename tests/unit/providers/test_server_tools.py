"""Tools that providers run themselves become the tool of the same kind that another provider runs."""

from typing import Any

import pytest

from toolwire import ChatRequest, CitationPart, CitedSource, Message, Notes, OpaquePart, TextPart, get_api
from toolwire.messages import Part
from toolwire.providers.server_compaction import is_summary
from toolwire.providers.server_tools import SERVER_TOOLS, is_from_server_tool

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


ANTHROPIC_TYPES = {
    "web_search": "web_search_20250305",
    "code_execution": "code_execution_20250825",
    "web_fetch": "web_fetch_20250910",
}


@pytest.mark.parametrize(("kind", "type"), ANTHROPIC_TYPES.items())
def test_tools_of_anthropic_have_a_type_with_a_date(kind: str, type: str) -> None:
    tools = SERVER_TOOLS["anthropic_messages"]
    read = tools.read({"type": type, "name": kind, "max_uses": 3, "allowed_domains": ["a.example"]})
    assert read is not None
    assert (read.kind, read.options, read.others) == (kind, {"allowed_domains": ["a.example"]}, ("max_uses",))
    written = {"type": type, "name": kind, "allowed_domains": ["a.example"]}
    assert tools.write(read, ChatRequest()) == written
    assert tools.read({"type": "bash_20250124", "name": "bash"}) is None


@pytest.mark.parametrize(
    ("tool", "is_read"),
    [
        ({"type": "openrouter:web_search"}, True),
        ({"type": "openrouter:web_search", "parameters": {"max_results": 3}}, True),
        ({"type": "openrouter:web_search", "parameters": [3]}, False),
        ({"type": "openrouter:datetime"}, False),
        ({}, False),
    ],
)
def test_the_search_of_openrouter_is_read(tool: dict[str, Any], is_read: bool) -> None:
    read = SERVER_TOOLS["openai_chat"].read(tool)
    assert (read is not None) is is_read
    assert read is None or read.kind == "web_search"


PAGE, BOOK = CitedSource("https://example.org"), CitedSource("", "A book")


def members(**values: Any) -> OpaquePart:
    return OpaquePart({"answer": {"choices.0.message": values}}, "openai_chat")


@pytest.mark.parametrize(
    ("part", "is_from_tool"),
    [
        (CitationPart((PAGE,)), True),
        (CitationPart((BOOK, PAGE)), True),
        (CitationPart((BOOK,)), False),
        (CitationPart(()), False),
        (OpaquePart({"type": "web_search_call"}, "openai_responses"), True),
        (OpaquePart({"type": "a_tool_of_tomorrow"}, "openai_responses"), True),
        (OpaquePart({"executableCode": {"code": "1"}}, "gemini"), True),
        (OpaquePart({"type": "compaction"}, "openai_responses"), False),
        (OpaquePart({"type": "image_generation_call"}, "openai_responses"), False),
        (OpaquePart({"inlineData": {"data": ""}}, "gemini"), False),
        *((members(**{name: [1]}), True) for name in ("annotations", "citations", "executed_tools", "search_results")),
        (members(audio={"id": "a"}), False),
        (members(audio={"id": "a"}, annotations=[1]), True),
        (TextPart("https://example.org"), False),
    ],
)
def test_parts_that_rest_on_a_tool_of_the_provider_are_found(part: Part, is_from_tool: bool) -> None:
    assert is_from_server_tool(part) is is_from_tool


@pytest.mark.parametrize(
    ("tool", "kind", "options", "others"),
    [
        ({"type": "code_interpreter", "container": {"type": "auto"}}, "code_execution", {}, ()),
        ({"type": "code_interpreter", "container": "c1"}, "code_execution", {}, ("container",)),
        ({"type": "web_search"}, "web_search", {}, ()),
        (
            {"type": "web_search_preview", "filters": {"allowed_domains": ["a.example"]}, "search_context_size": "low"},
            "web_search",
            {"allowed_domains": ["a.example"], "search_context_size": "low"},
            (),
        ),
        ({"type": "web_search", "filters": {"blocked_domains": ["a.example"]}}, "web_search", {}, ("blocked_domains",)),
    ],
)
def test_tools_of_openai_are_read_with_their_options(
    tool: dict[str, Any], kind: str, options: dict[str, Any], others: tuple[str, ...]
) -> None:
    read = SERVER_TOOLS["openai_responses"].read(tool)
    assert read is not None
    assert (read.kind, read.options, read.others) == (kind, options, others)


@pytest.mark.parametrize(
    ("data", "summary"),
    [
        ({"type": "compaction", "id": "c"}, True),
        ({"type": "reasoning"}, False),
        ({"": "compaction"}, False),
        ({}, False),
    ],
)
def test_the_summary_of_a_server_is_found_by_its_type(data: dict[str, Any], summary: bool) -> None:
    assert is_summary(OpaquePart(data, "openai_responses")) is summary

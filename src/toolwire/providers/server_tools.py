"""Tools that providers run themselves, where two of them have the same: web search, code execution, fetching of pages.

What such a tool does and costs differs between providers, so each translation is a note. Its options are translated as
far as both have them.

Sources: https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool,
https://platform.openai.com/docs/guides/tools, https://ai.google.dev/gemini-api/docs/google-search and
https://docs.aws.amazon.com/nova/latest/userguide/grounding.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolwire.messages import CitationPart, OpaquePart, Part
from toolwire.providers.message_parts import Json, answer_members, message_members
from toolwire.providers.request import ChatRequest, Notes
from toolwire.providers.server_compaction import ITEM

ServerToolKind = Literal["web_search", "code_execution", "web_fetch"]
_DOMAINS, _LOCATION, _SIZE = "allowed_domains", "user_location", "search_context_size"

_OWN_ITEMS = frozenset((ITEM, "image_generation_call"))
"""Types of items with nothing in them but what the model wrote itself."""
_FETCHED_MEMBERS = frozenset(
    ("annotations", "citations", "executed_tools", "groundingMetadata", "search_results", "urlContextMetadata")
)
"""Members of answers that rest on pages or on results of other tools."""


def is_from_server_tool(part: Part) -> bool:
    """Return whether a part of an answer shows that the provider fetched content for it, or ran a tool.

    An item of a type that is not known counts as a tool's.
    """
    match part:
        case CitationPart(sources):
            return any(source.url for source in sources)
        case OpaquePart(data, provider):
            members = [*message_members(part, provider)]
            members += [name for values in answer_members(part).values() for name in values]
            if members:
                return not _FETCHED_MEMBERS.isdisjoint(members)
            return data.get("type") not in _OWN_ITEMS and "inlineData" not in data
    return False


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool that a provider runs itself, independent of any API.

    Attributes:
        kind: what it does.
        options: the domains that it may use, the place of the user, the size of the context.
        others: names of options that only its provider has.
    """

    kind: ServerToolKind
    options: Json
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerTools:
    """The server tools of an API.

    Attributes:
        read: returns the tool that an item of its list of tools stands for; None for any other item.
        write: returns the item of a tool; None if the API, or the model of the request, has none.
        options: names of the options that it writes.
    """

    read: Callable[[Mapping[str, Any]], ServerTool | None]
    write: Callable[[ServerTool, ChatRequest], Json | None]
    options: frozenset[str] = frozenset()


def _tool(kind: ServerToolKind, members: Mapping[str, Any], *structure: str) -> ServerTool:
    members_left = {
        name: value for name, value in members.items() if name not in structure and value not in (None, [], {})
    }
    options = {name: members_left.pop(name) for name in (_DOMAINS, _LOCATION, _SIZE) if name in members_left}
    return ServerTool(kind, options, tuple(members_left))


_ANTHROPIC_TYPES: Mapping[ServerToolKind, str] = {
    "web_search": "web_search_20250305",
    "code_execution": "code_execution_20250825",
    "web_fetch": "web_fetch_20250910",
}


def _read_anthropic(tool: Mapping[str, Any]) -> ServerTool | None:
    type = str(tool.get("type"))
    kind = next((kind for kind in _ANTHROPIC_TYPES if type.startswith(f"{kind}_")), None)
    return None if kind is None else _tool(kind, tool, "type", "name")


def _write_anthropic(tool: ServerTool, request: ChatRequest) -> Json | None:
    options = {name: tool.options[name] for name in (_DOMAINS, _LOCATION) if name in tool.options}
    return {"type": _ANTHROPIC_TYPES[tool.kind], "name": tool.kind, **options}


def _read_responses(tool: Mapping[str, Any]) -> ServerTool | None:
    match tool.get("type"):
        case "code_interpreter":
            container = tool.get("container")
            automatic = isinstance(container, Mapping) and container.keys() == {"type"}
            return _tool("code_execution", tool, "type", *(("container",) if automatic else ()))
        case str(type) if type.startswith("web_search"):
            filters = tool.get("filters")
            domains = filters if isinstance(filters, Mapping) else {}
            return _tool("web_search", {**tool, **domains}, "type", "filters")
    return None


def _write_responses(tool: ServerTool, request: ChatRequest) -> Json | None:
    match tool.kind:
        case "code_execution":
            return {"type": "code_interpreter", "container": {"type": "auto"}}
        case "web_search":
            options = {name: tool.options[name] for name in (_LOCATION, _SIZE) if name in tool.options}
            filters = {"filters": {_DOMAINS: tool.options[_DOMAINS]}} if _DOMAINS in tool.options else {}
            return {"type": "web_search", **filters, **options}
    return None


_GEMINI_NAMES: Mapping[str, ServerToolKind] = {
    "googleSearch": "web_search",
    "codeExecution": "code_execution",
    "urlContext": "web_fetch",
}


def _read_gemini(tool: Mapping[str, Any]) -> ServerTool | None:
    name = next(iter(tool), "")
    options = tool.get(name) or {}
    if len(tool) != 1 or name not in _GEMINI_NAMES or not isinstance(options, Mapping):
        return None
    return _tool(_GEMINI_NAMES[name], options)


def _write_gemini(tool: ServerTool, request: ChatRequest) -> Json | None:
    if request.tools:  # models before Gemini 3 refuse both in one request
        return None
    return {name: {} for name, kind in _GEMINI_NAMES.items() if kind == tool.kind}


_NOVA_NAMES: Mapping[str, ServerToolKind] = {"nova_grounding": "web_search", "nova_code_interpreter": "code_execution"}


def _read_bedrock(tool: Mapping[str, Any]) -> ServerTool | None:
    match tool:
        case {"systemTool": {"name": str(name), **options}} if name in _NOVA_NAMES:
            return _tool(_NOVA_NAMES[name], {str(option): value for option, value in options.items()})
    return None


def _write_bedrock(tool: ServerTool, request: ChatRequest) -> Json | None:
    name = next((name for name, kind in _NOVA_NAMES.items() if kind == tool.kind), None)
    return {"systemTool": {"name": name}} if name is not None and "nova" in request.model else None


def _read_openrouter(tool: Mapping[str, Any]) -> ServerTool | None:
    if tool.get("type") != "openrouter:web_search":
        return None
    parameters = tool.get("parameters") or {}
    return _tool("web_search", parameters) if isinstance(parameters, Mapping) else None


SERVER_TOOLS: Mapping[str, ServerTools] = {
    "anthropic_messages": ServerTools(_read_anthropic, _write_anthropic, frozenset((_DOMAINS, _LOCATION))),
    "openai_responses": ServerTools(_read_responses, _write_responses, frozenset((_DOMAINS, _LOCATION, _SIZE))),
    "gemini": ServerTools(_read_gemini, _write_gemini),
    "bedrock_converse": ServerTools(_read_bedrock, _write_bedrock),
    "openai_chat": ServerTools(_read_openrouter, lambda tool, request: None),
}
"""The server tools of APIs, by the kind of API."""


def translate_server_tools(
    request: ChatRequest, kind: str, name: str, notes: Notes, *, block: str | None = None
) -> tuple[Mapping[str, Any], ...]:
    """Return the server tools of an API that take the place of those of a request's own API.

    Args:
        request: the request.
        kind: the kind of API that it is translated to.
        name: the name of this API, for notes.
        notes: collects each change, and what is lost.
        block: the member of an item that is not a tool, but already in the form of this API: a cache mark.
    """
    counterparts: list[Mapping[str, Any]] = []
    for tool in request.provider_tools:
        if tool.keys() == {block}:
            counterparts.append(tool)
        elif (counterpart := _counterpart(tool, request, kind, name, notes)) is not None:
            counterparts.append(counterpart)
    return tuple(counterparts)


def _counterpart(tool: Mapping[str, Any], request: ChatRequest, kind: str, name: str, notes: Notes) -> Json | None:
    source, target = SERVER_TOOLS.get(request.provider), SERVER_TOOLS.get(kind)
    where = f"tools/{tool.get('type') or next(iter(tool), '')}"
    read = source.read(tool) if source is not None else None
    written = target.write(read, request) if read is not None and target is not None else None
    if read is None or target is None or written is None:
        notes.dropped(where, f"only {request.provider} runs this tool")
        return None
    notes.changed(where, f"{name} runs a tool of its own for it")
    for option in (*(option for option in read.options if option not in target.options), *read.others):
        notes.dropped(f"{where}/{option}", f"{name} has no such option")
    return written

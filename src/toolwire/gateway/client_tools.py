"""Tools of coding agents, as any backend takes them, and the calls of these tools as the agents expect them.

Agents send tools that only their own provider knows: groups of tools under one name, tools whose input is text, a
search for more tools that the agent runs itself, tools that are offered once a result refers to them. Other backends
get plain functions. A call of such a function becomes a call in the client's own form again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolwire.errors import DefinitionError
from toolwire.events import CallEnd, CallStart, Event
from toolwire.messages import Message, OpaquePart, Part, TextPart, ToolCall, ToolResult
from toolwire.providers.api_registry import get_api
from toolwire.providers.request import ChatRequest, Notes
from toolwire.tools import ToolDefinition

_ANTHROPIC, _RESPONSES = "anthropic_messages", "openai_responses"
_SEPARATOR = "__"
"""Text between the name of a group and that of its tool."""
_NEVER_OFFERED = "DeferredToolPlaceholder"
"""A tool of Claude Code for Anthropic's servers: more tools will come."""
_BILLING = "x-anthropic-billing-header:"
"""Beginning of a system text of Claude Code that is not for models: it differs from request to request."""
_SEARCH, _SEARCH_CALL = "tool_search", "tool_search_call"
_CUSTOM, _NAMESPACE = "custom", "namespace"
_SEARCH_MEMBERS = OpaquePart({_SEARCH_CALL: {"execution": "client", "status": "completed"}}, _RESPONSES)
"""The members of a call of the client's search beside its arguments."""


@dataclass(frozen=True, slots=True)
class _Original:
    """The client's own form of a tool that is offered as a function.

    Attributes:
        name: the tool's name.
        namespace: the group that it belongs to; "" for none.
        is_free: its input is text.
        is_search: it is the search for tools that the client runs itself.
    """

    name: str
    namespace: str = ""
    is_free: bool = False
    is_search: bool = False


class ClientTools:
    """The tools of one request as plain functions.

    Args:
        request: the request as the client sent it.
        notes: collects what is left out.

    Attributes:
        request: the request for a backend of another API.
    """

    def __init__(self, request: ChatRequest, notes: Notes) -> None:
        self._originals: dict[str, _Original] = {}
        self._tools: dict[str, ToolDefinition] = {}
        referenced = frozenset(_references(request.messages))
        for tool in request.tools:
            is_deferred = _is_deferred(tool) and tool.name not in referenced
            if tool.name == _NEVER_OFFERED or is_deferred:
                continue
            self._add(tool, _Original(tool.name, is_free=_CUSTOM in tool.annotations))
        provider_tools = [members for members in request.provider_tools if not self._read(members)]
        for message in request.messages:
            for added in _tools_in(message):
                if not self._read(added):
                    notes.dropped(f"tools/{added.get('type')}", "only its own provider runs this tool")
        self.request = replace(
            request,
            messages=tuple(_with_system_first(map(self._message, request.messages))),
            tools=tuple(self._tools.values()),
            provider_tools=tuple(provider_tools),
        )

    def _add(self, tool: ToolDefinition, original: _Original) -> None:
        self._tools.setdefault(tool.name, tool)
        self._originals.setdefault(tool.name, original)

    def _read(self, tool: Mapping[str, Any], namespace: str = "") -> bool:
        """Offer a tool of the client's API as functions; return False for one that the client does not run."""
        match tool.get("type"):
            case "namespace":
                members = _objects_in(tool.get("tools"))
                was_read = [self._read(member, str(tool.get("name") or "")) for member in members]
                return any(was_read)
            case "tool_search" if tool.get("execution") == "client":
                schema = tool.get("parameters")
                parameters = dict(schema) if isinstance(schema, Mapping) else {"type": "object"}
                self._add(
                    ToolDefinition(_SEARCH, str(tool.get("description") or ""), parameters),
                    _Original(_SEARCH, is_search=True),
                )
                return True
            case "function" | "custom":
                try:
                    (definition,) = get_api(_RESPONSES).decode_request({"input": "", "tools": [dict(tool)]}).tools
                except (DefinitionError, ValueError):
                    return False
                is_free = _CUSTOM in definition.annotations
                name = _flat(namespace, definition.name)
                self._add(replace(definition, name=name), _Original(definition.name, namespace, is_free))
                return True
        return False

    def _message(self, message: Message) -> Message:
        return replace(message, parts=tuple(part for old in message.parts for part in self._part(old)))

    def _part(self, part: Part) -> Iterator[Part]:
        match part:
            case ToolCall() if part.server:
                yield replace(part, name=_flat(part.server, part.name), server="")
            case ToolCall(name, arguments) if name == _SEARCH and _is_search(part):
                inner = arguments.get("arguments")
                yield replace(part, arguments=dict(inner) if isinstance(inner, Mapping) else {}, extra=None)
            case ToolResult() if names := [str(tool.get("name")) for tool in _tools_of_result(part)]:
                yield replace(part, result=f"Loaded the tools {', '.join(names)}.", extra=None)
            case ToolResult() if names := list(_references_of(part)):
                yield replace(part, result=f"Loaded the tools {', '.join(names)}.", extra=None)
            case OpaquePart() if _has_tools(part):
                return
            case TextPart(text) if text.startswith(_BILLING):
                return
            case _:
                yield part

    @property
    def names(self) -> frozenset[str]:
        """All names of tools: as a backend knows them, and as the client does."""
        return frozenset(self._tools) | {original.name for original in self._originals.values()}

    def restore(self, events: Sequence[Event]) -> list[Event]:
        """Return the events with calls in the client's own form."""
        return [self._restored(event) for event in events]

    def _restored(self, event: Event) -> Event:
        match event:
            case CallStart(name=name) if (original := self._originals.get(name)) is not None:
                # What an API writes at a call's end depends on how it has begun.
                extra = _SEARCH_MEMBERS if original.is_search else event.extra
                return replace(event, name=original.name, free=original.is_free or event.free, extra=extra)
            case CallEnd(_, call) if (original := self._originals.get(call.name)) is not None:
                return replace(event, call=_call_of(call, original))
        return event


def _call_of(call: ToolCall, original: _Original) -> ToolCall:
    if original.is_search:
        return replace(call, arguments={"arguments": call.arguments}, extra=_SEARCH_MEMBERS)
    if original.namespace:
        extra = {**(call.extra.data if call.extra is not None else {}), _NAMESPACE: original.namespace}
        call = replace(call, name=original.name, extra=OpaquePart(extra, _RESPONSES))
    if original.is_free:
        text = call.arguments.get("input")
        # A model that does not write the one parameter of a text tool has still written its input.
        value = text if isinstance(text, str) else json.dumps(call.arguments, ensure_ascii=False)
        return replace(call, arguments={"input": value}, free=True)
    return call


def _flat(namespace: str, name: str) -> str:
    return f"{namespace}{_SEPARATOR}{name}" if namespace else name


def _is_deferred(tool: ToolDefinition) -> bool:
    members = tool.annotations.get(_ANTHROPIC)
    return isinstance(members, Mapping) and members.get("defer_loading") is True


def _is_search(call: ToolCall) -> bool:
    return call.extra is not None and _SEARCH_CALL in call.extra.data


def _results(messages: Iterable[Message]) -> Iterator[ToolResult]:
    return (part for message in messages for part in message.parts if isinstance(part, ToolResult))


def _references(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the names of the tools that results refer to."""
    for result in _results(messages):
        yield from _references_of(result)


def _references_of(result: ToolResult) -> Iterator[str]:
    content = result.extra.data.get("content") if result.extra is not None else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") == "tool_reference":
            yield str(block.get("tool_name"))


def _tools_of_result(result: ToolResult) -> list[Mapping[str, Any]]:
    """Return the tools that a search of the client came back with."""
    output = result.extra.data.get("tool_search_output") if result.extra is not None else None
    return _objects_in(output.get("tools")) if isinstance(output, Mapping) else []


def _objects_in(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a list; none if a client sends another value in its place."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _tools_in(message: Message) -> Iterator[Mapping[str, Any]]:
    """Yield the tools that are part of the conversation itself."""
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield from _tools_of_result(part)
        elif isinstance(part, OpaquePart) and _has_tools(part):
            yield from _objects_in(part.data.get("tools"))


def _has_tools(part: OpaquePart) -> bool:
    """Return whether a part adds tools to those of the request."""
    return part.provider == _RESPONSES and part.data.get("type") == "additional_tools"


def _joined(texts: Sequence[TextPart]) -> TextPart:
    """Return texts as one, with the members of all of them: a mark of a cache is then behind the last."""
    members = [part.extra for part in texts if part.extra is not None]
    text = "\n\n".join(part.text for part in texts)
    if not members:
        return TextPart(text)
    return TextPart(
        text, OpaquePart({name: each.data[name] for each in members for name in each.data}, members[0].provider)
    )


def _with_system_first(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages with all instructions in one, at the beginning: many templates take no other."""
    instructions: list[Part] = []
    conversation: list[Message] = []
    for message in messages:
        if message.role == "system":
            instructions += message.parts
        elif message.parts:
            conversation.append(message)
    texts = [part for part in instructions if isinstance(part, TextPart) and part.text]
    rest = [part for part in instructions if not isinstance(part, TextPart)]
    if texts or rest:
        yield Message("system", (*([_joined(texts)] if texts else []), *rest))
    yield from conversation

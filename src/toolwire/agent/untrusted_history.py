"""Untrusted content in a conversation that a program passes on, judged by the tools whose results are in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from toolwire.errors import DefinitionError, UnknownTool
from toolwire.execution.disclosure import FIND_TOOLS
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import CitationPart, Message, OpaquePart, TextPart, ToolCall, ToolResult
from toolwire.providers.output_request import FINAL_ANSWER
from toolwire.providers.request import SUMMARY
from toolwire.providers.server_tools import is_from_server_tool

_OF_RUNS = frozenset((FINAL_ANSWER, FIND_TOOLS))
"""Names of the tools that runs themselves have, besides those of an agent."""


class ToolOwner(Protocol):
    """An agent, as far as its tools matter here."""

    @property
    def registry(self) -> ToolRegistry:
        """Its tools."""
        ...

    @property
    def members(self) -> Mapping[str, ToolOwner]:
        """The agents that it calls, by the names of the tools for that."""
        ...

    @property
    def handoffs(self) -> Mapping[str, ToolOwner]:
        """The agents to which it hands a conversation over, by the names of the tools for that."""
        ...


def is_untrusted(messages: Iterable[Message], agent: ToolOwner) -> bool:
    """Return whether a conversation may contain untrusted content.

    That is content of untrusted or unknown tools, of members with such tools, and of tools that a provider ran. A
    program may pass on a conversation without its session. A summary may quote results that were left out.
    """
    messages = list(messages)
    results: dict[str, list[ToolResult]] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResult):
                results.setdefault(part.call_id, []).append(part)
    call_ids: set[str] = set()
    for message in messages:
        for part in message.parts:
            match part:
                case TextPart(text) if message.role == "user" and text.startswith(SUMMARY):
                    return True
                case ToolCall(name, server=server, id=id):
                    call_ids.add(id)
                    if _is_untrusted_tool(name, server, results.get(id, ()), agent):
                        return True
                case ToolResult(id, name) if id not in call_ids and _is_untrusted_tool(name, "", (part,), agent):
                    return True
                case CitationPart() | OpaquePart() if message.role == "assistant" and is_from_server_tool(part):
                    return True
    return False


def _is_untrusted_tool(name: str, server: str, results: Collection[ToolResult], agent: ToolOwner) -> bool:
    """Return whether these results may be untrusted content: a tool's, of this name and server."""
    untrusted: list[bool] = []  # for each agent of the conversation that knows the tool
    refusals: set[str] = set()
    for owner in _colleagues(agent):
        if name in owner.members:
            # A member's answer may quote what its tools returned.
            registries = (colleague.registry for colleague in _colleagues(owner.members[name], members=True))
            untrusted.append(any(definition.untrusted for registry in registries for definition in registry.known()))
            continue
        try:
            untrusted.append(owner.registry.lookup(name, server).definition.untrusted)
        except DefinitionError:
            untrusted.append(True)
        except UnknownTool as error:
            refusals.add(str(error))
    if untrusted:
        return any(untrusted)
    # A tool that never ran has no content: the model made its name up.
    is_refused = bool(results) and all(result.error in refusals for result in results)
    return name not in _OF_RUNS and not is_refused


def _colleagues(agent: ToolOwner, *, members: bool = False) -> Iterator[ToolOwner]:
    """Yield an agent and all to which it may hand over; with `members`, also the agents that any of them calls."""
    owners = [agent]
    for owner in owners:
        yield owner
        reachable = [*owner.handoffs.values(), *(owner.members.values() if members else ())]
        owners += [agent for agent in reachable if agent not in owners]  # agents may refer to each other

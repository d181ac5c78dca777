"""Untrusted content in a conversation that a program passes on, judged by the tools whose results are in it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Protocol

from toolwire.agent.output import ACCEPTED, INVALID_OUTPUT, TOO_EARLY
from toolwire.errors import DefinitionError, UnknownTool
from toolwire.execution.disclosure import FIND_TOOLS, NOTHING_FOUND, listing
from toolwire.execution.outcomes import invalid_arguments
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import CitationPart, Message, OpaquePart, TextPart, ToolCall, ToolResult
from toolwire.providers.output_request import FINAL_ANSWER
from toolwire.providers.request import SUMMARY
from toolwire.providers.server_compaction import is_summary
from toolwire.providers.server_tools import is_from_server_tool
from toolwire.tools import ToolDefinition

_ERRORS_OF_RUNS = {
    FINAL_ANSWER: (INVALID_OUTPUT, TOO_EARLY),
    FIND_TOOLS: (invalid_arguments(FIND_TOOLS),),
}
"""The beginnings of errors of the tools that runs themselves have, besides those of an agent."""


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
    program may pass on a conversation without its session. A summary, of an agent or of a server, may quote results
    that were left out.
    """
    messages = list(messages)
    results: dict[str, list[ToolResult]] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResult):
                results.setdefault(part.call_id, []).append(part)
    names: dict[str, set[str]] = {}  # of the tools that the calls of an id name
    for message in messages:
        for part in message.parts:
            match part:
                case TextPart(text) if message.role in ("user", "system") and SUMMARY in text:
                    return True
                case OpaquePart() if is_summary(part):
                    return True
                case ToolCall(name, server=server, id=id):
                    names.setdefault(id, set()).add(name)
                    if _is_untrusted_tool(name, server, results.get(id, ()), agent):
                        return True
                # A result that names its tool is judged by that too, whatever tool the call of its id names.
                case ToolResult(id, name) if (
                    id not in names or (name and name not in names[id])
                ) and _is_untrusted_tool(name, "", (part,), agent):
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
    is_of_run = name in _ERRORS_OF_RUNS and all(_is_of_run(name, result, agent) for result in results)
    return not (is_refused or is_of_run)


def _is_of_run(name: str, result: ToolResult, agent: ToolOwner) -> bool:
    """Return whether a result is one that a run writes itself: a tool of another program may have the same name."""
    if result.error is not None:
        return result.error.startswith(_ERRORS_OF_RUNS[name])
    if name == FINAL_ANSWER:
        return result.text == ACCEPTED
    return result.text == NOTHING_FOUND or _lists_known_tools(result, agent)


def _lists_known_tools(result: ToolResult, agent: ToolOwner) -> bool:
    """Return whether a result is a list of tools that the agents of the conversation have, as these describe them."""
    value = result.result
    try:
        # A conversation that was sent through an API has the text of a result.
        listed = (json.loads(value) if isinstance(value, str) else value)["found"]
        names = [str(tool["name"]) for tool in listed]
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    by_name: dict[str, ToolDefinition] = {}
    for owner in _colleagues(agent):
        for name in names:
            with suppress(UnknownTool, DefinitionError):
                by_name[name] = owner.registry.lookup(name).definition
    expected = listing([by_name[name] for name in names if name in by_name])
    return result.text == ToolResult(result.call_id, result.tool_name, expected).text


def _colleagues(agent: ToolOwner, *, members: bool = False) -> Iterator[ToolOwner]:
    """Yield an agent and all to which it may hand over; with `members`, also the agents that any of them calls."""
    owners = [agent]
    for owner in owners:
        yield owner
        reachable = [*owner.handoffs.values(), *(owner.members.values() if members else ())]
        owners += [agent for agent in reachable if agent not in owners]  # agents may refer to each other

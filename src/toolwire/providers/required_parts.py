"""Parts of a request that some APIs require, where the conversation does not have them: tools, and a beginning."""

from __future__ import annotations

from collections.abc import Iterable

from toolwire.messages import Message, Part, TextPart, ToolCall
from toolwire.providers.request import Notes
from toolwire.tools import ToolDefinition

_BEGINNING = "(The conversation begins.)"
"""The message of the user where there is none, but an API requires one."""


def called_tools(messages: Iterable[Message], api: str, notes: Notes) -> list[ToolDefinition]:
    """Return tools with the names of earlier calls, for an API that refuses these if no tool is offered.

    Args:
        messages: the conversation; names of calls are spelled as the API takes them, for models make up odd ones.
        api: the name of the API.
        notes: collects the tools that are added.
    """
    names = dict.fromkeys(part.name for message in messages for part in message.parts if isinstance(part, ToolCall))
    for name in names:
        notes.added(f"tools/{name}", f"{api} requires the tools of earlier calls, and none was offered")
    return [ToolDefinition(name, "Not available any more.") for name in names]


def with_beginning(messages: tuple[Message, ...], api: str, notes: Notes, *, by_user: bool) -> tuple[Message, ...]:
    """Return the conversation with a message of the user first, if the API refuses it without.

    Args:
        messages: the conversation; system messages are not part of what the API calls so.
        api: the name of the API.
        notes: collects the message that is added.
        by_user: whether a message of the model may not be the first.
    """
    if not messages:
        return messages
    # Such an API refuses blank text too, so that a blank message is not a beginning.
    usable = tuple(message for message in messages if not all(map(_is_blank, message.parts)))
    first = next((at for at, message in enumerate(usable) if message.role != "system"), len(usable))
    if first < len(usable) and not (by_user and usable[first].role == "assistant"):
        return usable
    notes.added(f"messages/{first}", f"{api} requires a message of the user first")
    return (*usable[:first], Message("user", _BEGINNING), *usable[first:])


def _is_blank(part: Part) -> bool:
    return isinstance(part, TextPart) and not part.text.strip()

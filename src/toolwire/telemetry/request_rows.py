"""Rows of requests: a message is stored once in a run, and each request lists the numbers of its messages.

So a conversation of many rounds takes the room of its messages, not of all requests together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from operator import is_not
from typing import Final

from toolwire.messages import (
    CitationPart,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
)
from toolwire.providers.request import ChatRequest
from toolwire.telemetry.row_codec import MAX_RAW, MAX_TEXT, Row, kept
from toolwire.text.redaction import redact_value, secrets_in
from toolwire.tools import ToolDefinition

TOOLS: Final = "tools"
"""Role of the row with the tool definitions of a request: a line for each, its name and the definition as JSON."""
_LONG: Final = frozenset({"system", TOOLS})
"""Roles whose texts may be as long as an answer: they are few."""

Insert = Callable[[Row], int]
"""Stores a row, and returns its number."""


class StoredMessages:
    """The messages of one run that are stored already.

    They are recognised by identity, since a run keeps the objects of its conversation; those that are made anew for
    each request, such as the system prompt, by their text.
    """

    def __init__(self) -> None:
        # With the objects themselves: the identity of one that is gone could be that of another.
        self._by_identity: dict[int, tuple[Message, int]] = {}
        self._by_text: dict[bytes, int] = {}
        self._tools: tuple[tuple[ToolDefinition, ...], int] | None = None

    def clear(self) -> None:
        """Forget them all, as after rows were deleted."""
        self._by_identity.clear()
        self._by_text.clear()
        self._tools = None

    def unseen(self, request: ChatRequest) -> list[Message]:
        """Return the messages of a request that are not known by identity."""
        return [message for message in request.messages if id(message) not in self._by_identity]

    def store(self, request: ChatRequest, run: str, known: Iterable[str], insert: Insert) -> list[int]:
        """Store what is new in a request, and return the numbers of its rows: the tools first, then each message.

        Args:
            request: the request.
            run: the row of the run.
            known: secrets to redact, besides those that are recognised by their form.
            insert: stores a row of the table `messages`.
        """
        numbers: list[int] = []
        if request.tools:
            numbers.append(self._store_tools(request.tools, run, known, insert))
        for message in request.messages:
            entry = self._by_identity.get(id(message))
            if entry is None:
                entry = message, self._store(message.role, message_text(message), run, known, insert)
                self._by_identity[id(message)] = entry
            numbers.append(entry[1])
        return numbers

    def _store_tools(self, tools: tuple[ToolDefinition, ...], run: str, known: Iterable[str], insert: Insert) -> int:
        stored = self._tools
        if stored is None or len(stored[0]) != len(tools) or any(map(is_not, stored[0], tools)):
            text = "\n".join(f"{tool.name} {json.dumps(definition_value(tool), ensure_ascii=False)}" for tool in tools)
            self._tools = stored = tools, self._store(TOOLS, text, run, known, insert)
        return stored[1]

    def _store(self, role: str, text: str, run: str, known: Iterable[str], insert: Insert) -> int:
        digest = hashlib.sha256(f"{role}\n{text}".encode("utf-8", "surrogatepass")).digest()
        # The digest stays in memory: one in the file could be used to guess a secret that was redacted.
        if digest not in self._by_text:
            limit = MAX_RAW if role in _LONG else MAX_TEXT
            self._by_text[digest] = insert({"run": run, "role": role, "text": kept(text, limit, known)})
        return self._by_text[digest]


def definition_value(tool: ToolDefinition) -> dict[str, object]:
    """Return the definition of a tool as a JSON object."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def message_secrets(messages: Iterable[Message]) -> set[str]:
    """Return values of members with secret names in the calls and results of messages."""
    secrets: set[str] = set()
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                secrets.update(secrets_in(part.arguments))
            elif isinstance(part, ToolResult):
                secrets.update(secrets_in(part.result))
    return secrets


def message_text(message: Message) -> str:
    """Return the parts of a message as text, with calls as their name and arguments."""
    return "\n".join(filter(None, map(_part_text, message.parts)))


def _part_text(part: Part) -> str:
    match part:
        case TextPart() | ReasoningPart():
            return part.text
        case ToolCall():
            return f"{part.name} {json.dumps(redact_value(part.arguments), ensure_ascii=False, default=str)}"
        case ToolResult():
            return "\n".join([part.text, *map(_part_text, part.images)])
        case ImagePart():
            return f"(image: {part.url or part.media_type})"
        case FilePart():
            return f"(file: {part.name or part.url or part.media_type})"
        case CitationPart():
            return f"(sources: {', '.join(source.url or source.title for source in part.sources)})"
        case OpaquePart():
            return f"(item of {part.provider})"


def message_numbers(text: str) -> Sequence[int]:
    """Return the numbers of a stored request."""
    return [int(number) for number in text.split()]

"""Messages and events with ids and names as an API spells them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolwire.events import CallEnd, CallStart, Event
from toolwire.messages import Message, Part, ToolCall, ToolResult
from toolwire.providers.identifiers import Alphabet
from toolwire.providers.message_parts import answer_members


@dataclass(frozen=True, slots=True)
class Spelling:
    """The spelling of ids and names in one request or answer.

    Attributes:
        names, ids: the spelling of tools' names and of calls' ids.
        kept: names of tools that remain as they are, because they come from the reader of the answer.
    """

    names: Alphabet
    ids: Alphabet
    kept: frozenset[str] = frozenset()

    def name(self, text: str) -> str:
        """Return the name of a tool as the API spells it."""
        return text if text in self.kept else self.names.fit(text)

    def call(self, call: ToolCall) -> ToolCall:
        """Return a call as the API spells it."""
        return replace(call, name=self.name(call.name), id=self.ids.fit(call.id))

    def message(self, message: Message) -> Message:
        """Return a message as the API spells it, without the members of a whole answer, which belong to no message."""
        return replace(message, parts=tuple(self._part(part) for part in message.parts if not answer_members(part)))

    def _part(self, part: Part) -> Part:
        match part:
            case ToolCall():
                return self.call(part)
            case ToolResult():
                tool_name = part.tool_name and self.name(part.tool_name)
                return replace(part, tool_name=tool_name, call_id=self.ids.fit(part.call_id))
        return part

    def event(self, event: Event) -> Event:
        """Return an event as the API spells it."""
        match event:
            case CallStart():
                return replace(event, name=self.name(event.name), id=self.ids.fit(event.id))
            case CallEnd():
                return replace(event, call=self.call(event.call))
        return event

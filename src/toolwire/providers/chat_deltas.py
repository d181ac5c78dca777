"""Deltas of Chat Completions as dicts, for servers and engines that send chunks of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolwire._surface import check_type
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, ContentDelta, Event, Finish, ReasoningDelta
from toolwire.providers.identifiers import Alphabet

_SHORT = Alphabet("a-zA-Z0-9", 9, least=9)
_INCOMPLETE = '"[}"[} (the call is incomplete)'
"""Text after the arguments of an incomplete call: they are not JSON then, and readers that complete JSON refuse them.

Inside a string, the first quotation mark ends it; outside of one, or behind a backslash, the second one does. A bracket
follows that a brace closes, which is wrong inside a list, inside an object and behind the arguments.
"""


def short_call_id(id: str) -> str:
    """Return an id of nine letters and digits, as chat templates of Mistral require; itself if it is one.

    Equal ids have equal results, so that a call and its result still match.
    """
    check_type("id", id, str, "text")
    return _SHORT.fit(id)


def closed_calls(events: Iterable[Event]) -> list[Event]:
    """Return events with arguments of incomplete calls that cannot be read as JSON, so that no client runs the calls.

    A stream has no place for the word that a call is incomplete, and its arguments may be whole where it was cut off.

    Args:
        events: events of one message, or those that one piece of it gave.
    """
    check_type("events", events, (list, Iterable), "an iterable of events")
    closed: list[Event] = []
    for event in events:
        if isinstance(event, CallEnd) and not event.complete:
            closed.append(ArgumentsDelta(event.index, _INCOMPLETE))
        closed.append(event)
    return closed


def chat_deltas(
    events: Iterable[Event], *, reasoning: str = "reasoning_content", short_ids: bool = False
) -> list[dict[str, Any]]:
    """Return events as deltas of Chat Completions, in order: the `delta` of a chunk's choice.

    A delta has one member: `content`, the member for reasoning, or `tool_calls` with one call. The first delta of a
    call has its id, type and name, and begins its arguments; later ones continue them. Neighbouring events of one kind
    are one delta. Events that a delta has no place for, such as problems and the finish, are left out. So that an
    incomplete call is not taken for a good one, pass the events through `closed_calls` first.

    Args:
        events: events of one message, or those that one piece of it gave.
        reasoning: name of the member for reasoning, which servers call `reasoning_content` or `reasoning`.
        short_ids: write ids of nine letters and digits; see `short_call_id`.
    """
    check_type("events", events, (list, Iterable), "an iterable of events")
    deltas: list[dict[str, Any]] = []
    open_member: object = None  # what the next event may continue: a member's name, or the index of a call
    for event in events:
        match event:
            case ContentDelta(text) | ReasoningDelta(text):
                member = "content" if isinstance(event, ContentDelta) else reasoning
                if member == open_member:
                    deltas[-1][member] += text
                elif text:
                    deltas.append({member: text})
                    open_member = member
            case CallStart(index, name, id):
                id = short_call_id(id) if short_ids else id
                function = {"name": name, "arguments": ""}
                deltas.append({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})
                open_member = index
            case ArgumentsDelta(index, text):
                if index == open_member:
                    deltas[-1]["tool_calls"][0]["function"]["arguments"] += text
                else:
                    deltas.append({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
                    open_member = index
            case _:
                pass
    return deltas


class CallSpacing:
    """A filter of one message's events that removes white space beside calls.

    White space is removed where it is the only content before a call, between two calls, or behind the last one: models
    write line breaks around calls that belong to no answer.
    """

    def __init__(self) -> None:
        self._waiting: list[str] | None = []  # white space of which it is not certain yet; None in other content
        self._has_called = False

    def filter(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events without such white space, of which the end is known only with the last ones."""
        # Most pieces give one event, inside content or inside arguments.
        if len(events) == 1 and (type(events[0]) is ArgumentsDelta or self._in_content(events[0])):
            return events
        shown: list[Event] = []
        for event in events:
            if isinstance(event, ContentDelta) and self._waiting is not None:
                self._waiting.append(event.text)
                if not event.text or event.text.isspace():
                    continue
                event = ContentDelta("".join(self._waiting))
                self._waiting = None
            elif isinstance(event, CallStart):
                self._waiting, self._has_called = [], True
            elif isinstance(event, Finish) and self._waiting and not self._has_called:
                shown.append(ContentDelta("".join(self._waiting)))
            shown.append(event)
        return shown

    def _in_content(self, event: Event) -> bool:
        return self._waiting is None and type(event) is ContentDelta

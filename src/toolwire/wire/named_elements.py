"""Calls whose opening tag is missing: the name of a known tool on a line, and elements with its parameters below.

    get_weather
    <city>Paris</city>

The whole message has to begin like this. Each call is read as if its tags were there, by the reader of `tool_tags`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from toolwire.events import CallEnd, ContentDelta, Event, ProblemFound, call_events
from toolwire.messages import ToolCall, call_id
from toolwire.tools import ToolDefinition
from toolwire.wire.block_reader import ReadOptions
from toolwire.wire.formats.tool_tags import FORMAT
from toolwire.wire.message_reader import MessageReader

# The lengths are limited, because the beginning is looked at again with each piece.
_NAME = r"(?P<name>[A-Za-z_][-\w.]{0,255})"
_LINE = rf"{_NAME}:?[ \t]{{0,9}}\n\s{{0,99}}(?=<)"
_BEGINS = re.compile(rf"\s{{0,99}}{_LINE}", re.ASCII)
_MAY_BEGIN = re.compile(rf"\s{{0,99}}(?:{_NAME}(?::?[ \t]{{0,9}}(?:\n\s{{0,99}})?)?)?\Z", re.ASCII)
_ELEMENT = re.compile(r"<([A-Za-z_][-\w.]{0,255})[\s>]", re.ASCII)
_NAMED = re.compile(rf"^[ \t]*{_LINE}", re.ASCII | re.MULTILINE)
CONFIDENCE = 0.8
"""Confidence of a call that a format reads in text which the model did not write as that format does."""


@dataclass(frozen=True, slots=True)
class ElementsPlace:
    """The place of a tool's name with elements below it.

    Attributes:
        name: the tool.
        start: where the line of the name begins.
        begin, stop: where the elements begin, and where the last tag ends.
        end: where the next name begins, or the text ends.
        has_parameter: the first element is a declared parameter of the tool.
    """

    name: str
    start: int
    begin: int
    stop: int
    end: int
    has_parameter: bool


def places_of_elements(text: str, tools: Mapping[str, ToolDefinition]) -> list[ElementsPlace]:
    """Return the places in a text where a known tool's name has elements below it."""
    matches = [match for match in _NAMED.finditer(text) if match["name"] in tools]
    places: list[ElementsPlace] = []
    for index, match in enumerate(matches):
        end = matches[index + 1].start() if index + 1 < len(matches) else len(text)
        stop = text.rfind(">", match.end(), end) + 1
        element = _ELEMENT.match(text, match.end())
        declared = tools[match["name"]].shape.property_names
        has_parameter = element is not None and element[1] in declared and stop > 0
        places.append(ElementsPlace(match["name"], match.start(), match.end(), stop, end, has_parameter))
    return places


def recovered(call: ToolCall) -> ToolCall:
    """Return a call of a format that was read where the format itself reads none."""
    return replace(call, repairs=(*call.repairs, "fallback"), confidence=min(call.confidence, CONFIDENCE))


class NamedElements:
    """A reader of a message that consists of such calls, and perhaps of text behind them.

    Attributes:
        alive: the message may still be that.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.alive = True
        self._options = options
        self._text: list[str] = []
        self._head = ""
        self._begun = False

    def feed(self, text: str) -> None:
        """Read the next piece."""
        if not self.alive:  # pragma: no mutate - only to be faster: the beginning stays what it is
            return
        self._text.append(text)
        if not self._begun:
            self._head += text
            begins = _BEGINS.match(self._head)
            self._begun = begins is not None
            match = begins or _MAY_BEGIN.match(self._head)
            self.alive = match is not None and self._is_tool(match["name"] or "")

    def _is_tool(self, name: str) -> bool:
        if self._begun:
            return name in self._options.tools
        return any(tool.startswith(name) for tool in self._options.tools)

    def finish(self, *, call_follows: bool = False) -> list[Event]:
        """Read the end of the text; return the events of its calls and of the text behind, or none.

        Args:
            call_follows: the text ends before a call of the message's format, and not where the message ends.
        """
        if not (self.alive and self._begun):
            return []
        text = "".join(self._text)
        calls = 0
        events: list[Event] = []
        for place in places_of_elements(text, self._options.tools):
            behind = text[place.stop : place.end] if text[place.stop : place.end].strip() else ""
            is_last = place.end == len(text) and not call_follows
            if behind and not is_last:
                return []
            call = self._call(place.name, text[place.begin : place.stop], is_last=is_last)
            if call is not None:
                identifier = call_id(self._options.seed, calls, call.name)
                call = recovered(replace(call, raw=text[place.start : place.stop], id=identifier))
                events.extend(call_events(calls, call))
                calls += 1
            elif place.has_parameter:
                events.append(ContentDelta(text[place.start : place.stop]))  # a broken call beside others
            else:
                return []
            if behind:
                events.append(ContentDelta(behind))
        return events if calls else []

    def _call(self, name: str, elements: str, *, is_last: bool) -> ToolCall | None:
        """Return the call that these elements make, or None if they make no call, or more parameters may follow."""
        closer = f"</{name}>"
        body = elements.removesuffix(closer)
        reader = MessageReader(FORMAT, replace(self._options, reasoning_started=False))
        call: ToolCall | None = None
        for event in (*reader.feed(f"<{name}>{body}{closer}"), *reader.finish()):
            match event:
                case CallEnd(call=complete_call, complete=True):
                    call = complete_call
                case ContentDelta() | ProblemFound() | CallEnd():
                    return None
                case _:
                    pass
        declared = self._options.tools[name].shape.property_names
        # The closing tag was not written by the model, so it proves nothing about the last parameter.
        if call is None or "missing_close" in call.repairs or not set(call.arguments) <= set(declared):
            return None
        # At the end of the message, only the closing tag or the last parameter shows that nothing was cut off.
        return None if is_last and body == elements and len(call.arguments) < len(declared) else call

"""Stream events; `collect` folds them into a response, and `watch` follows one argument while it is written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from toolwire._surface import check_type, wrong_type
from toolwire.messages import (
    CitationPart,
    FinishReason,
    OpaquePart,
    ParsedResponse,
    Part,
    Problem,
    ReasoningPart,
    TextPart,
    ToolCall,
    Usage,
)
from toolwire.text.json_scanner import JsonScanner
from toolwire.text.json_text import json_text


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """More text for the user. An empty text divides it: a statement with sources, or the text behind one, follows."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningEnd:
    """The end of a stretch of reasoning. The part contains all of its text, and what must be sent back with it."""

    part: ReasoningPart


@dataclass(frozen=True, slots=True)
class OpaquePartReceived:
    """A part that the provider handled itself; nothing needs to be done about it."""

    part: OpaquePart


@dataclass(frozen=True, slots=True)
class CitationReceived:
    """The sources of a statement in the content so far."""

    part: CitationPart


@dataclass(frozen=True, slots=True)
class UsageCounted:
    """Token counts so far; the last one counts."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class CallStart:
    """The start of a call: its name is known, and its arguments follow. `free` and `extra`: see `ToolCall`."""

    index: int
    name: str
    id: str
    free: bool = field(default=False, repr=False, compare=False)
    extra: OpaquePart | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """More of a call's arguments, as JSON text; all deltas of a call join to one JSON object."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The end of a call. Only a complete one may run; an incomplete one is followed by its problem."""

    index: int
    call: ToolCall
    complete: bool


@dataclass(frozen=True, slots=True)
class ProblemFound:
    """A piece of the response could not be parsed."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of the response."""

    reason: FinishReason


Event = (
    ContentDelta | ReasoningDelta | ReasoningEnd | CallStart | ArgumentsDelta | CallEnd | CitationReceived
    | OpaquePartReceived | ProblemFound | UsageCounted | Finish
)  # fmt: skip
"""An event of a response."""


class _Parts:
    """The parts of a response in order; a call is where it began."""

    def __init__(self) -> None:
        self._in_order: list[Part | None] = []  # None: the place of a call
        self._kind: type[TextPart | ReasoningPart] | None = None
        self._text: list[str] = []
        self._citations: list[CitationPart] = []  # of the text
        self._places: dict[int, int] = {}

    def text(self, kind: type[TextPart | ReasoningPart], text: str) -> None:
        if kind is not self._kind:
            self.add(None)
            self._kind = kind
        self._text.append(text)

    def reasoned(self, part: ReasoningPart) -> None:
        if self._kind is ReasoningPart:  # the part contains this text
            self._text.clear()
        self.add(part)

    def cite(self, part: CitationPart) -> None:
        """Add a citation, which does not divide the text."""
        if self._kind is TextPart:
            self._citations.append(part)
        else:
            self.add(part)

    def add(self, part: Part | None) -> None:
        if self._kind is not None:
            if self._text:
                self._in_order.append(self._kind("".join(self._text)))
                self._text.clear()
            self._in_order += self._citations
            self._citations.clear()
            self._kind = None
        if part is not None:
            self._in_order.append(part)

    def begin(self, index: int) -> None:
        self.add(None)
        self._places[index] = len(self._in_order)
        self._in_order.append(None)

    def end(self, index: int, call: ToolCall) -> None:
        if index in self._places:
            self._in_order[self._places[index]] = call
        else:
            self.add(call)

    def all(self) -> tuple[Part, ...]:
        self.add(None)
        return tuple([part for part in self._in_order if part is not None])


def collect(events: Iterable[Event], *, raw: Any = None) -> ParsedResponse:
    """Fold events into a response.

    Args:
        events: the events of one response, in order; a stream without `Finish` counts as finished.
        raw: what was parsed, kept as `ParsedResponse.raw`.
    """
    check_type("events", events, (list, Iterable), "an iterable of events")  # the fast one first
    content: list[str] = []
    reasoning: list[str] = []
    incomplete: list[ToolCall] = []
    problems: list[Problem] = []
    reason: FinishReason | None = None
    usage: Usage | None = None
    parts = _Parts()
    for event in events:
        match event:  # the most frequent events come first
            case ContentDelta(text):
                content.append(text)
                parts.text(TextPart, text)
            case ArgumentsDelta():
                pass
            case CallStart(index):
                parts.begin(index)
            case CallEnd(index, call, complete):
                if complete:
                    parts.end(index, call)
                else:
                    incomplete.append(call)
            case Finish(reason):
                pass
            case ReasoningDelta(text):
                reasoning.append(text)
                parts.text(ReasoningPart, text)
            case ReasoningEnd(part):
                parts.reasoned(part)
            case OpaquePartReceived(part):
                parts.add(part)
            case CitationReceived(part):
                parts.cite(part)
            case ProblemFound(problem):
                problems.append(problem)
            case UsageCounted(usage):
                pass
            case _:
                raise wrong_type("events", [event], "an iterable of events")
    in_order = parts.all()
    # Where they began, whichever ended first.
    calls = [part for part in in_order if isinstance(part, ToolCall)]
    return ParsedResponse(
        content="".join(content),
        reasoning="".join(reasoning),
        tool_calls=tuple([call for call in calls if not call.of_provider]),
        incomplete=tuple(incomplete),
        problems=tuple(problems),
        finish_reason=reason or (FinishReason.TOOL_CALLS if calls else FinishReason.STOP),
        raw=raw,
        parts=in_order,
        usage=usage,
    )


def response_parts(response: ParsedResponse) -> tuple[Part, ...]:
    """Return the parts of a response in order; of one without parts: reasoning, content, calls."""
    if response.parts:
        return response.parts
    parts: list[Part] = [ReasoningPart(response.reasoning)] if response.reasoning else []
    parts += [TextPart(response.content)] if response.content else []
    return (*parts, *response.tool_calls)


def replay(response: ParsedResponse) -> Iterator[Event]:
    """Return events that `collect` folds back into `response`: its parts, then cut calls, problems, usage, finish.

    Raises:
        TypeError: it is not a response.
    """
    check_type("response", response, ParsedResponse, "a ParsedResponse")
    return _events_of(response)


def _events_of(response: ParsedResponse) -> Iterator[Event]:
    index = 0
    in_text = False
    for part in with_cited_texts(response_parts(response)):
        if in_text and isinstance(part, TextPart):
            yield ContentDelta("")
        in_text = isinstance(part, TextPart)
        match part:
            case TextPart(text):
                yield ContentDelta(text)
            case CitationPart():
                yield CitationReceived(part)
            case ReasoningPart(text):
                if text:
                    yield ReasoningDelta(text)
                yield ReasoningEnd(part)
            case OpaquePart():
                yield OpaquePartReceived(part)
            case ToolCall():
                yield from call_events(index, part)
                index += 1
            case _:  # not a part of an answer
                pass
    for call in response.incomplete:
        yield from call_events(index, call, complete=False)
        index += 1
    for problem in response.problems:
        yield ProblemFound(problem)
    if response.usage is not None:
        yield UsageCounted(response.usage)
    yield Finish(response.finish_reason)


def with_cited_texts(parts: Sequence[Part]) -> Sequence[Part]:
    """Return the parts of an answer with its text divided so that each citation directly follows its statement."""
    if not any(isinstance(part, CitationPart) for part in parts):
        return parts
    spans = [(part.start, part.end) for part in parts if isinstance(part, CitationPart)]
    cuts = sorted({place for span in spans for place in span if place is not None})
    cited: dict[int, list[CitationPart]] = {}  # citations that can be placed, by the end of their statement
    length = sum(len(part.text) for part in parts if isinstance(part, TextPart))
    for part in parts:
        if isinstance(part, CitationPart) and part.end is not None and 0 < part.end <= length:
            cited.setdefault(part.end, []).append(part)
    divided: list[Part] = []
    start = 0  # of the part, in the text of the answer
    for part in parts:
        match part:
            case TextPart(text):
                end = start + len(text)
                places = [place for place in cuts if start < place < end]
                for begins, ends in pairwise((start, *places, end)):
                    divided.append(replace(part, text=text[begins - start : ends - start]))
                    divided += cited.get(ends, ())
                start = end
            case CitationPart(end=int(place)) if place in cited:
                pass
            case _:
                divided.append(part)
    return divided


def call_events(index: int, call: ToolCall, *, complete: bool = True) -> Iterator[Event]:
    """Yield the start, the arguments and the end of a call that was read before."""
    text = json_text(call.arguments)
    yield CallStart(index, call.name, call.id, call.free, call.extra)
    yield ArgumentsDelta(index, text if complete else text[:-1])  # a truncated call stays open
    yield CallEnd(index, call, complete)


class _Field(JsonScanner):
    """Follows the JSON text of arguments, and collects the value of one key."""

    __slots__ = ("decoded", "inside", "name", "tail")

    plain_strings = False

    def __init__(self, name: str) -> None:
        super().__init__(repair=False)
        self.name = name
        self.inside = False  # the value of the key is being read
        self.decoded: list[str] = []  # pieces of its text
        self.tail = ""  # text whose reading depends on what follows

    def on_top_key(self, key: str) -> None:
        self.inside = key == self.name

    def on_colon(self) -> None:
        if self.inside and len(self.stack) == 1:
            self.out = []  # a value other than a string is collected until it is complete

    def _emit_string(self, text: str) -> None:
        super()._emit_string(text)
        if self.inside and len(self.stack) == 1 and not self.in_key:
            self.decoded.append(json.loads(f'"{text}"'))

    def on_top_value(self) -> None:
        if self.inside:
            value = "".join(self.out).strip()
            if not value.startswith('"'):
                self.decoded.append(value)
            self.out = self.ready
            self.inside = False


def watch(events: Iterable[Event], argument: str, *, tool: str = "", deltas: bool = False) -> Iterator[str]:
    """Yield the growing text of one argument, as an editor shows it while a model writes a file.

    A string grows as it arrives, so an empty one yields nothing. Any other value is yielded once, as JSON text, when it
    is complete. If several calls have the argument, the text begins anew with each.

    Args:
        events: the events of one message, from a `StreamParser` or an API's stream.
        argument: its name, at the top level of the arguments.
        tool: the tool whose calls count; "" for all.
        deltas: yield only new text; otherwise the text so far is copied for each yield.
    """
    check_type("argument", argument, str, "the name of an argument")
    fields: dict[int, _Field] = {}
    texts: dict[int, str] = {}
    for event in events:
        match event:
            case CallStart(index=index, name=name) if tool in ("", name):
                fields[index], texts[index] = _Field(argument), ""
            case ArgumentsDelta(index=index, text=text) if index in fields:
                field = fields[index]
                text = field.tail + text
                field.tail = text[field.scan(text, 0, False) :]
                field.ready.clear()
                if new_text := "".join(field.decoded):
                    field.decoded.clear()
                    if not deltas:
                        new_text = texts[index] = texts[index] + new_text
                    yield new_text
            case _:
                pass

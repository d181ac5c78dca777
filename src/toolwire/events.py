"""Stream events; `collect` folds them into a response, and `watch` follows one argument while it is written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from toolwire._surface import check_type, wrong_type
from toolwire.messages import (
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
    """More text for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningEnd:
    """A stretch of reasoning is over. The part holds all of its text, and what has to travel back with it."""

    part: ReasoningPart


@dataclass(frozen=True, slots=True)
class Passed:
    """Something that the provider did itself, in its own words; nothing is to be done about it."""

    part: OpaquePart


@dataclass(frozen=True, slots=True)
class UsageCounted:
    """Token counts so far; the last one counts."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call is certain to be meant: its name is known, its arguments follow. `free`: see `ToolCall`."""

    index: int
    name: str
    id: str
    free: bool = field(default=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """More of a call's arguments, as JSON text; all deltas of a call join to one JSON object."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """A call is over. Only a complete one may run; an incomplete one is followed by its problem."""

    index: int
    call: ToolCall
    complete: bool


@dataclass(frozen=True, slots=True)
class ProblemFound:
    """Something could not be read."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Finish:
    """The response is over."""

    reason: FinishReason


Event = (
    ContentDelta | ReasoningDelta | ReasoningEnd | CallStart | ArgumentsDelta | CallEnd | Passed | ProblemFound
    | UsageCounted | Finish
)  # fmt: skip


class _Parts:
    """The parts of a response in order, a call where it began."""

    def __init__(self) -> None:
        self._made: list[Part | None] = []  # None: the place of a call
        self._kind: type[TextPart | ReasoningPart] | None = None
        self._text: list[str] = []
        self._places: dict[int, int] = {}

    def text(self, kind: type[TextPart | ReasoningPart], text: str) -> None:
        if kind is not self._kind:
            self.add(None)
            self._kind = kind
        self._text.append(text)

    def reasoned(self, part: ReasoningPart) -> None:
        if self._kind is ReasoningPart:  # it holds this text
            self._text.clear()
        self.add(part)

    def add(self, part: Part | None) -> None:
        if self._text and self._kind is not None:
            self._made.append(self._kind("".join(self._text)))
        self._text.clear()
        self._kind = None
        if part is not None:
            self._made.append(part)

    def begin(self, index: int) -> None:
        self.add(None)
        self._places[index] = len(self._made)
        self._made.append(None)

    def end(self, index: int, call: ToolCall) -> None:
        if index in self._places:
            self._made[self._places[index]] = call
        else:
            self.add(call)

    def all(self) -> tuple[Part, ...]:
        self.add(None)
        return tuple(part for part in self._made if part is not None)


def collect(events: Iterable[Event], *, raw: Any = None) -> ParsedResponse:
    """Fold events into a response.

    Args:
        events: the events of one response, in order; a stream without `Finish` counts as finished.
        raw: what was parsed, kept as `ParsedResponse.raw`.
    """
    check_type("events", events, Iterable, "an iterable of events")
    content: list[str] = []
    reasoning: list[str] = []
    incomplete: list[ToolCall] = []
    problems: list[Problem] = []
    reason: FinishReason | None = None
    usage: Usage | None = None
    parts = _Parts()
    for event in events:
        match event:
            case ContentDelta(text):
                content.append(text)
                parts.text(TextPart, text)
            case ReasoningDelta(text):
                reasoning.append(text)
                parts.text(ReasoningPart, text)
            case ReasoningEnd(part):
                parts.reasoned(part)
            case CallStart(index):
                parts.begin(index)
            case CallEnd(index, call, complete):
                if complete:
                    parts.end(index, call)
                else:
                    incomplete.append(call)
            case Passed(passed):
                parts.add(passed)
            case ProblemFound(problem):
                problems.append(problem)
            case UsageCounted(usage):
                pass
            case Finish(reason):
                pass
            case ArgumentsDelta():
                pass
            case _:
                raise wrong_type("events", [event], "an iterable of events")
    made = parts.all()
    calls = tuple(part for part in made if isinstance(part, ToolCall))  # where they began, whichever ended first
    return ParsedResponse(
        content="".join(content),
        reasoning="".join(reasoning),
        tool_calls=calls,
        incomplete=tuple(incomplete),
        problems=tuple(problems),
        finish_reason=reason or (FinishReason.TOOL_CALLS if calls else FinishReason.STOP),
        raw=raw,
        parts=made,
        usage=usage,
    )


def response_parts(response: ParsedResponse) -> tuple[Part, ...]:
    """The parts of a response in order; of one made by hand without any: reasoning, content, calls."""
    if response.parts:
        return response.parts
    said: list[Part] = [ReasoningPart(response.reasoning)] if response.reasoning else []
    said += [TextPart(response.content)] if response.content else []
    return (*said, *response.tool_calls)


def replay(response: ParsedResponse) -> Iterator[Event]:
    """Return events that `collect` folds back into `response`: its parts, then cut calls, problems, usage, finish.

    Raises:
        TypeError: it is not a response.
    """
    check_type("response", response, ParsedResponse, "a ParsedResponse")
    return _events_of(response)


def _events_of(response: ParsedResponse) -> Iterator[Event]:
    index = 0
    for part in response_parts(response):
        match part:
            case TextPart(text):
                yield ContentDelta(text)
            case ReasoningPart(text):
                if text:
                    yield ReasoningDelta(text)
                yield ReasoningEnd(part)
            case OpaquePart():
                yield Passed(part)
            case ToolCall():
                yield from _call(index, part, complete=True)
                index += 1
            case _:  # nothing that a model answers with
                pass
    for call in response.incomplete:
        yield from _call(index, call, complete=False)
        index += 1
    for problem in response.problems:
        yield ProblemFound(problem)
    if response.usage is not None:
        yield UsageCounted(response.usage)
    yield Finish(response.finish_reason)


def _call(index: int, call: ToolCall, *, complete: bool) -> Iterator[Event]:
    text = json_text(call.arguments)
    yield CallStart(index, call.name, call.id, call.free)
    yield ArgumentsDelta(index, text if complete else text[:-1])  # what was cut stays open
    yield CallEnd(index, call, complete)


class _Field(JsonScanner):
    """Follows the arguments' JSON text, and keeps what comes for one key."""

    __slots__ = ("came", "inside", "name", "tail")

    plain_strings = False

    def __init__(self, name: str) -> None:
        super().__init__(repair=False)
        self.name = name
        self.inside = False  # the value of the key is being read
        self.came: list[str] = []  # its text, decoded
        self.tail = ""  # what cannot be read without what follows

    def on_top_key(self, key: str) -> None:
        self.inside = key == self.name

    def on_colon(self) -> None:
        if self.inside and len(self.stack) == 1:
            self.out = []  # what is no string is kept until it is whole

    def _emit_string(self, text: str) -> None:
        super()._emit_string(text)
        if self.inside and len(self.stack) == 1 and not self.in_key:
            self.came.append(json.loads(f'"{text}"'))

    def on_top_value(self) -> None:
        if self.inside:
            written = "".join(self.out).strip()
            if not written.startswith('"'):
                self.came.append(written)
            self.out = self.ready
            self.inside = False


def watch(events: Iterable[Event], argument: str, *, tool: str = "", deltas: bool = False) -> Iterator[str]:
    """The growing text of one argument, as far as it is known: what an editor shows while a file is being written.

    A string grows as it arrives, so an empty one yields nothing; any other value comes once, as JSON text, when it is
    whole. If several calls have the argument, the text begins anew with each.

    Args:
        events: of one message, from a `StreamParser` or an API's stream.
        argument: its name, at the top of the arguments.
        tool: only calls of this tool count; "" counts all.
        deltas: yield what is new each time; the text so far is copied for each yield otherwise.
    """
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
                if came := "".join(field.came):
                    field.came.clear()
                    if not deltas:
                        came = texts[index] = texts[index] + came
                    yield came
            case _:
                pass

"""Calls to known tools that stay in the content of a message, and the problems that report them.

What a model writes as a call is either read or reported. So once a message is over, its content is searched for calls
that are in a code fence, amid prose, or beside calls of another format. None of them runs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, groupby, islice
from typing import Any

from toolwire.events import CallEnd, CallStart, ContentDelta, Event, ProblemFound, ReasoningDelta
from toolwire.messages import Problem, ProblemKind
from toolwire.text.expressions import ExpressionScanner
from toolwire.text.identity_cache import IdentityCache
from toolwire.text.spans import Spans
from toolwire.text.suggest import closest
from toolwire.wire.block_reader import ReadOptions
from toolwire.wire.compiled_format import compile_format
from toolwire.wire.damaged_calls import damaged_calls
from toolwire.wire.definition_text import is_definition
from toolwire.wire.dialects import ARGUMENT_KEYS, NAME_KEYS, CallScanner, ReadCall, folded_key
from toolwire.wire.embedded import PATIENCE, PATIENCE_AT_LEAST, Doubts, EmbeddedCalls, FormatCall, find_calls
from toolwire.wire.format_detection import FormatDetector
from toolwire.wire.formats.react import FORMAT as REACT
from toolwire.wire.formats.tool_tags import FORMAT as TOOL_TAGS
from toolwire.wire.known_tools import BEFORE_OBJECT
from toolwire.wire.line_calls import calls_in_lines
from toolwire.wire.marker_sets import MarkerSet, marker_set
from toolwire.wire.message_reader import MessageReader
from toolwire.wire.named_elements import NamedElements, places_of_elements
from toolwire.wire.plain_view import is_gloss, may_be_disguised, plain_view
from toolwire.wire.prepared_tools import KnownTools
from toolwire.wire.syntax import WireFormat
from toolwire.wire.unknown_calls import unknown_tool, unknown_tool_message

_NOT_RUN = (
    "A tool call is written amid prose, in reasoning, in a code fence, beside calls of another format or in no known "
    "format, so it is only shown and did not run."
)
_NOT_A_CALL = (
    "The element <%s> is named after a tool, but does not contain the tool's parameters, so nothing ran. Write an "
    "element for each parameter."
)
_MAX_FORMATS = 8
"""Number of formats whose calls are found in one text: it is read once more for each."""
_MOST = 100
"""Maximum number of calls that are reported of one message; thousands would help nobody."""
_MARKUP = 5000
"""Number of characters between two parts of a message: markers, and white space before them."""
_AHEAD = 64
"""Number of characters by which the place of a piece of a message is found."""
_TAG_NAME = r"[A-Za-z_][-\w.:]{0,255}"
_TAG = re.compile(
    rf"<(?:(?P<alone>{_TAG_NAME})\s[^<>]{{0,400}}=[^<>]{{0,400}}/>"
    rf"|(?P<opens>{_TAG_NAME})(?:\s[^<>]{{0,400}})?>(?![ \t,.;:!?)\"'])"
    rf"|/(?P<closes>{_TAG_NAME})\s{{0,400}}>)",
    re.ASCII,
)
"""A tag, unless prose mentions it: a blank or a sign of punctuation is behind an opening tag then."""
_OPENING_TAG = re.compile(rf"<({_TAG_NAME})", re.ASCII)
_TAG_WITH_ATTRIBUTES = re.compile(r"<[\w:-]{1,60}(\s[^<>]{0,400})>")
_ATTRIBUTE = re.compile(r"""\s([\w.-]{1,255})=(?:"([^"]{0,400})"|'([^']{0,400})')""")
_SIGN = re.compile(r"[\[{(<:=]|--")
"""Signs of which every call has one, unless its markup is disguised or it is a command."""
_MAY_BE_COMMAND = re.compile(r"[/!\"']")
_BRACKET = re.compile(r"[\[{(<]|Action:")
"""Signs of which every call has one that is not in lines; most prose has none."""
_HEADING = re.compile(r"^[ \t]*Action:", re.MULTILINE)
_ACTION_WITH_INPUT = re.compile(
    r"(?:(?<=\S[ \t])|(?<=[`(*]))Action:[ \t*`]{0,9}([^\W\d][\w.-]{0,255})[*`]{0,3}[ \t]*,?\s{0,99}"
    r"Action Input:[^\n]{0,1000}"
)
_OBJECT_BEGINS = re.compile(r"""\{\s{0,99}["'](?P<key>[^"'\n]{1,99})["']\s{0,9}:""")
_ARGUMENTS_BEGIN = re.compile(
    rf"""{_OBJECT_BEGINS.pattern}
    | <(?:(?P<tag>\w{{1,30}})=)?(?P<name>[A-Za-z_][-\w.]{{0,255}})(?=[\s>])""",
    re.VERBOSE,
)
_NAME_BEFORE = re.compile(
    rf"""(?<![\w.$<"'-])(?<![^\s`]/)([^\W\d][\w.-]{{0,255}})
    (?:\s{{1,9}}(?:with|json) | >\s{{0,9}} | </\w{{1,99}}>\s{{0,99}}<\w{{1,99}}>)?
    {BEFORE_OBJECT}\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_NEAR = 400
"""Number of characters before an object or element in which the name of its tool begins."""

_SIMILARITY = 0.8
"""Smallest similarity of a misspelled key to one for arguments, from 0 to 1."""
_MAX_KEYS = 1024  # pragma: no mutate - any number keeps the memory bounded

_prepared = IdentityCache(16)


def text_of(event: Event) -> str:
    """Return the text that an event has taken from a message; that of a broken call stays content."""
    match event:
        case ContentDelta(text) | ReasoningDelta(text):
            return text
        case CallEnd(_, call, True):
            return call.raw
        case ProblemFound(problem) if problem.kind == "truncated" and problem.index is not None:
            return problem.raw
        case _:
            return ""


def _located(text: str, events: Iterable[Event]) -> Iterator[tuple[int, Event]]:
    """Yield each event with the position of its text; between two of them there may be markers."""
    pos = 0
    listed = list(events)
    for index, event in enumerate(listed):
        part = text_of(event)
        # A short piece may be found in a marker before it, which the text behind the piece excludes.
        ahead = _ahead(listed, index) if len(part) < _AHEAD else part
        at = text.find(ahead, pos, pos + len(ahead) + _MARKUP)
        if at < 0 and ahead != part:  # a marker is in the text behind
            at = text.find(part, pos, pos + len(part) + _MARKUP)
        if at >= 0:  # else several calls have one text
            yield at, event
            pos = at + len(part)
        else:
            yield pos, event


def _ahead(events: Sequence[Event], index: int) -> str:
    """Return the text of an event, and more text of the same kind that follows it."""
    kind = type(events[index])
    pieces, size = [text_of(events[index])], len(text_of(events[index]))
    while kind in (ContentDelta, ReasoningDelta) and size < _AHEAD and (index := index + 1) < len(events):
        if isinstance(events[index], kind):
            pieces.append(text_of(events[index]))
            size += len(pieces[-1])
        elif text_of(events[index]):
            break
    return "".join(pieces)[:_AHEAD] if len(pieces) > 1 else pieces[0]


# -- the search ----------------------------------------------------------------------------------------------------


def calls_in_text(text: str, options: ReadOptions, tools: KnownTools) -> Iterator[EmbeddedCalls]:
    """Yield the calls to known tools in a text, in any format or dialect, in order."""
    inside = replace(options, fences=False, deltas=False, reasoning_started=False)
    return find_calls(text, tools, list(_of_formats(text, inside, tools, 0, _MAX_FORMATS)))


def _of_formats(
    text: str, options: ReadOptions, tools: KnownTools, before: int, formats_left: int
) -> Iterator[FormatCall]:
    """Yield the calls that formats read in a text, of which `before` is the position in the whole text."""
    formats, openers = _prepared.get(lambda: _searched(options.shared), (options.shared,))
    found_calls = False
    if openers.search(text, 0, True)[2] or any(tag[1] in tools.definitions for tag in _OPENING_TAG.finditer(text)):
        detector = FormatDetector(formats, options)
        located = list(_located(text, [*detector.feed(text), *detector.finish()]))
        found_calls = any(isinstance(event, CallEnd) and event.complete for _, event in located)
    if not found_calls:
        # These are prose to the detection of formats.
        if _HEADING.search(text):
            reader = MessageReader(REACT, options)
            yield from _calls(_located(text, [*reader.feed(text), *reader.finish()]), tools, before)
        places = (place for place in places_of_elements(text, tools.definitions) if place.has_parameter)
        for place in islice(places, _MOST):
            elements = NamedElements(options)
            elements.feed(text[place.start : place.stop])
            yield from _calls(_located(text[place.start : place.stop], elements.finish()), tools, before + place.start)
        return
    for is_content, group in groupby(located, lambda part: isinstance(part[1], ContentDelta)):
        parts = list(group)
        if not is_content:
            yield from _calls(parts, tools, before)
        elif formats_left > 1:
            start = parts[0][0]
            stop = parts[-1][0] + len(text_of(parts[-1][1]))
            yield from _of_formats(text[start:stop], options, tools, before + start, formats_left - 1)


def _calls(located: Iterable[tuple[int, Event]], tools: KnownTools, before: int) -> Iterator[FormatCall]:
    for start, event in located:
        if isinstance(event, CallEnd) and event.complete and event.call.name in tools.definitions:
            call = event.call
            read = ReadCall(call.name, call.arguments, call.repairs, call.raw, call.format)
            yield FormatCall(before + start, before + start + len(call.raw), read)


def _searched(formats: Iterable[WireFormat]) -> tuple[tuple[WireFormat, ...], MarkerSet]:
    """Return the formats to search for in content, and the markers with which their calls begin."""
    marked = tuple(wire for wire in formats if wire.detected and wire.markers)
    openers = frozenset(opener for wire in marked for opener in compile_format(wire).detected)
    return (*marked, TOOL_TAGS), marker_set(openers, any(wire.nocase for wire in marked))


@dataclass(frozen=True, slots=True)
class _Unread:
    """A call in a text that is not read.

    Attributes:
        start, end: its place in the text.
        tool: the tool that an element is named after; "" for a call that could be read elsewhere.
        is_meant: nothing shows that the text only mentions it.
    """

    start: int
    end: int
    tool: str
    is_meant: bool


def _unread_calls(text: str, options: ReadOptions, tools: KnownTools, called: Container[str]) -> list[_Unread]:
    """Return the calls in a text and the elements named after tools that should have been calls, in order.

    Calls whose markup is disguised are among them, and damaged ones of tools that are not called otherwise.
    """
    unread = _undisguised(text, options, tools, called)
    view = plain_view(text)
    if view is None or not tools.may_be_named_in(view.text):
        return unread
    spans = Spans((place.start, place.end) for place in unread)
    for place in _undisguised(view.text, options, tools, called):
        start, end = view.start(place.start), view.end(place.end)
        if not spans.overlap(start, end) and not is_gloss(text[start:end]):
            unread.append(_Unread(start, end, "", place.is_meant))
    return sorted(unread, key=lambda place: place.start)


def _undisguised(text: str, options: ReadOptions, tools: KnownTools, called: Container[str]) -> list[_Unread]:
    """Return those of them whose markup is written as it has to be."""
    places = [(start, end, "") for start, end in islice(calls_in_lines(text, tools), _MOST)]
    unread: list[_Unread] = []
    damaged: list[tuple[int, int, str]] = []
    if _BRACKET.search(text):  # pragma: no mutate - only to be faster
        calls = islice(calls_in_text(text, options, tools), _MOST)
        unread.extend(_Unread(place.start, place.end, "", place.is_meant) for place in calls)
        for search in (_elements, _behind_names, _named_objects):
            places.extend(islice(search(text, tools), _MOST))
        # Last, since whatever can be read says more.
        damaged = [(start, end, "") for start, end in islice(damaged_calls(text, tools, called), _MOST)]
    if not places and not unread and not damaged:  # pragma: no mutate - only to be faster
        return []
    doubts = Doubts(text)
    for group in (places, damaged):
        spans = Spans((place.start, place.end) for place in unread)
        behind = 0
        # At one place, the element says more than its first parameter.
        for start, end, tool in sorted(group, key=lambda place: (place[0], not place[2], place[1])):
            if start >= behind and not spans.overlap(start, end):
                unread.append(_Unread(start, end, tool, not doubts.about(start, end)))
                behind = end
    return sorted(unread, key=lambda place: place.start)


def _elements(text: str, tools: KnownTools) -> Iterator[tuple[int, int, str]]:
    """Yield the places of all elements that look like calls to known tools, and the tools' names."""
    if "<" not in text:  # pragma: no mutate - only to be faster
        return
    opened: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        name = tag[tag.lastgroup or 0]
        if name not in tools.definitions:
            continue
        if tag["alone"]:
            yield tag.start(), tag.end(), name
        elif tag["opens"]:
            opened.setdefault(name, tag.start())
        elif name in opened:
            yield opened.pop(name), tag.end(), name
    for place in places_of_elements(text, tools.definitions):
        if place.has_parameter:
            yield place.start, place.stop, place.name
    for tag in _TAG_WITH_ATTRIBUTES.finditer(text):
        attributes = {key: double or single for key, double, single in _ATTRIBUTE.findall(tag[1])}
        names = (tools.names.resolve(value) for key, value in attributes.items() if folded_key(key) in NAME_KEYS)
        if any(name and not attributes.keys().isdisjoint(tools.properties(name)) for name in names):
            yield tag.start(), tag.end(), ""


def _behind_names(text: str, tools: KnownTools) -> Iterator[tuple[int, int, str]]:
    """Yield the places where arguments of a known tool are right behind its name, anywhere in a line."""
    for match in _ACTION_WITH_INPUT.finditer(text):
        if tools.names.resolve(match[1]):
            yield match.start(), match.end(), ""
    budget = PATIENCE * len(text) + PATIENCE_AT_LEAST
    unclosed: set[str] = set()
    for match in _ARGUMENTS_BEGIN.finditer(text):
        key = match["key"] or match["name"]
        start = match.start()
        before = _NAME_BEFORE.search(text, max(0, start - _NEAR), start) if key in tools.parameters else None
        name = tools.names.resolve(before[1]) if before else ""
        if before is None or not name or key not in tools.properties(name):
            continue
        if match["name"]:
            closer = f"</{match['tag'] or key}>"
            end = text.find(closer, start) if closer not in unclosed else -1
            if end >= 0:
                yield before.start(1), end + len(closer), ""
            else:
                unclosed.add(closer)  # one search for each keeps this linear
            continue
        if budget < 0:
            return
        scanner = CallScanner(tools)
        end = scanner.scan(text, start, True)
        value = scanner.value
        if scanner.done and isinstance(value, dict) and not is_definition(tools.definitions[name], value):
            yield before.start(1), end, ""
        budget -= end - start


def _named_objects(text: str, tools: KnownTools) -> Iterator[tuple[int, int, str]]:
    """Yield the places of objects with a known tool's name and arguments, also under a misspelled key."""
    budget = PATIENCE * len(text) + PATIENCE_AT_LEAST
    for match in _OBJECT_BEGINS.finditer(text):
        key = folded_key(match["key"])
        if key not in NAME_KEYS and not _is_for_arguments(key):
            continue
        if budget < 0:
            return
        scanner = ExpressionScanner()
        end = scanner.scan(text, match.start(), True)
        budget -= end - match.start()
        if scanner.done and isinstance(scanner.value, dict) and _has_name_and_arguments(scanner.value, tools):
            yield match.start(), end, ""


def _has_name_and_arguments(members: Mapping[str, Any], tools: KnownTools) -> bool:
    """Return whether an object has the name of a known tool and arguments, also under a misspelled key."""
    names = [value for key, value in members.items() if folded_key(key) in NAME_KEYS and isinstance(value, str)]
    tool = tools.names.resolve(names[0]) if names else ""
    written = [value for key, value in members.items() if value and _is_for_arguments(folded_key(key))]
    schemas = (value for value in written if isinstance(value, dict) and is_definition(tools.definitions[tool], value))
    return bool(tool and written) and not any(schemas)


@lru_cache(_MAX_KEYS)
def _is_for_arguments(key: str) -> bool:
    """Return whether a folded key is one of those that hold the arguments of a call, or nearly one."""
    return bool(closest(key, ARGUMENT_KEYS, similarity=_SIMILARITY))


def _is_all(text: str, unread: Sequence[_Unread]) -> bool:
    """Return whether a text is nothing but elements named after tools that are not calls."""
    ends = [0, *(place.end for place in unread)]
    starts = [*(place.start for place in unread), len(text)]
    beside = (text[end:start] for end, start in zip(ends, starts, strict=True))
    return all(place.tool for place in unread) and not "".join(beside).strip()


# -- problems ------------------------------------------------------------------------------------------------------


class _Content:
    """A part of the content, or of the reasoning, that nothing but problems interrupts.

    Attributes:
        pieces: its pieces, each with the index of its event.
        text: all of it.
    """

    def __init__(self, pieces: Sequence[tuple[int, str]]) -> None:
        self._indexes = [index for index, _ in pieces]
        self._ends = list(accumulate(len(text) for _, text in pieces))
        self.text = "".join(text for _, text in pieces)

    def position(self, at: int, positions: Sequence[int]) -> int:
        """Return the position in the message of a character of the text, from those of all events."""
        piece = bisect_right(self._ends, at)
        return positions[self._indexes[piece]] + at - (self._ends[piece - 1] if piece else 0)


class UnreadCalls:
    """The text of a message and what became of it, to report the calls in its content once the message is over.

    Args:
        options: the settings.
        tools: the known tools.

    Attributes:
        fed: the pieces of the message so far; each further piece is appended.
        events: what they were read as, appended likewise.
    """

    def __init__(self, options: ReadOptions, tools: KnownTools) -> None:
        self._options = options
        self._tools = tools
        self.fed: list[str] = []
        self.events: list[Event] = []

    @property
    def has_calls(self) -> bool:
        """True if a call began."""
        return any(isinstance(event, CallStart) for event in self.events)

    def problem(self, kind: ProblemKind, raw: str, message: str) -> ProblemFound:
        """Return a problem about a piece of the content, which is the last one of this text."""
        return ProblemFound(Problem(kind, max(0, "".join(self.fed).rfind(raw)), raw, message))

    def problems_outside(self, places: Sequence[tuple[int, int]], kept_back: Sequence[Event]) -> list[Event]:
        """Return the problems among the last events that are about text which was not read as calls after all.

        Args:
            places: beginnings and ends of what was read, in the content of these events.
            kept_back: the events.
        """
        problems = [event for event in kept_back if isinstance(event, ProblemFound) and event.problem.index is None]
        if not problems:
            return []
        located = _located("".join(self.fed), [*self.events, *kept_back])
        positions = [at for at, _ in located][len(self.events) :]
        pieces = ((at, event.text) for at, event in enumerate(kept_back) if isinstance(event, ContentDelta))
        content = _Content(list(pieces))
        read = Spans(
            (content.position(start, positions), content.position(end - 1, positions) + 1) for start, end in places
        )
        return [
            event
            for event in problems
            if not read.overlap(event.problem.position, event.problem.position + len(event.problem.raw))
        ]

    def problems(self, *, answering: bool) -> list[Event]:
        """Return a problem for each call in the content that nothing else reports, in order.

        A message that has neither content nor calls most likely never left its reasoning, which is searched then.

        Args:
            answering: the content is text that its format marks as the answer, which may be any JSON.
        """
        message = "".join(self.fed)
        content = "".join(event.text for event in self.events if isinstance(event, ContentDelta)).strip()
        is_all = not any(isinstance(event, CallStart | ProblemFound) for event in self.events)
        if is_all and not answering and (name := unknown_tool(content, self._tools)):
            return [self.problem("unknown_tool", content, unknown_tool_message(name, self._tools))]
        may_contain_calls = _SIGN.search(message) or may_be_disguised(message) or _MAY_BE_COMMAND.search(message)
        if not may_contain_calls:  # pragma: no mutate - only to be faster
            return []
        unread: list[tuple[_Content, list[_Unread]]] = []
        number = 0
        called_tools = {event.call.name for event in self.events if isinstance(event, CallEnd) and event.complete}
        has_content = any(isinstance(event, ContentDelta) and not event.text.isspace() for event in self.events)
        is_reasoning = not has_content and not self.has_calls
        for part in self._parts(ReasoningDelta if is_reasoning else ContentDelta):
            places = _unread_calls(part.text, self._options, self._tools, called_tools)
            unread.append((part, places))
            number += len(places)
            if number >= _MOST:
                break
        if not any(place.is_meant for _, places in unread for place in places):
            return []
        positions = [at for at, _ in _located(message, self.events)]
        problems = (event.problem for event in self.events if isinstance(event, ProblemFound))
        reported = Spans((problem.position, problem.position + len(problem.raw)) for problem in problems)
        is_all = not is_reasoning and all(_is_all(part.text, places) for part, places in unread)
        events: list[Event] = []
        for part, place in ((part, place) for part, places in unread for place in places):
            at = part.position(place.start, positions)
            if not place.is_meant or reported.overlap(at, at + place.end - place.start):
                continue
            raw = part.text[place.start : place.end]
            problem = Problem("call_in_prose", at, raw, _NOT_RUN)
            if is_all:
                advice = self._options.hint(TOOL_TAGS, place.tool)
                problem = Problem("malformed", at, raw, _NOT_A_CALL % place.tool + advice)
            events.append(ProblemFound(problem))
        return events

    def _parts(self, kind: type[ContentDelta | ReasoningDelta]) -> Iterator[_Content]:
        pieces: list[tuple[int, str]] = []
        for index, event in enumerate(self.events):
            if isinstance(event, kind):
                pieces.append((index, event.text))
            elif pieces and not isinstance(event, ProblemFound):
                yield _Content(pieces)
                pieces = []
        if pieces:
            yield _Content(pieces)

"""The laws of every wire format, as functions that raise AssertionError where a law is broken.

They are used with random texts, with fixed texts, and by the mutation tests, which break the engine and expect the laws
to fail. Text is always fed through the public surface; only the two counters of linearity are internal.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.property.nodes import literals_of, walk, wire_formats

import toolwire
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    ProblemFound,
    ReasoningDelta,
)
from toolwire.messages import ParsedResponse, ToolCall, call_id
from toolwire.wire.syntax import END_OF_SEQUENCE, Call, Lit, ToolTag

HOLD = 400
"""Bound of the text held back, in characters beyond the longest marker: the header of a tag (a name has 256)."""
SCANS = 4
"""Maximum number of scans of a character, on average."""
SCANS_MORE = 4000
"""Additional scans for a message: the white space that a parser waits for is bounded by this."""


@dataclass(slots=True)
class Reading:
    """The result of one way of feeding a text."""

    events: list[Event]
    held: int = 0
    scanned: int = 0
    response: ParsedResponse = field(init=False)

    def __post_init__(self) -> None:
        self.response = toolwire.collect(self.events)


def pieces(text: str, size: int) -> list[str]:
    """Split a text into pieces of one size."""
    return [text[i : i + size] for i in range(0, len(text), size)]


def cut_at(text: str, cuts: Iterable[int]) -> list[str]:
    """Split a text at these positions, taken modulo its length."""
    places = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    return [text[a:b] for a, b in itertools.pairwise(places)]


def read(chunks: Iterable[str], **options: Any) -> Reading:
    """Feed pieces to a StreamParser."""
    parser = toolwire.StreamParser(**options)
    reader = parser._reader
    start = reader.scanned
    events: list[Event] = []
    most_held = 0
    for chunk in chunks:
        events.extend(parser.feed(chunk))
        most_held = max(most_held, reader.held)
    events.extend(parser.finish())
    return Reading(events, most_held, reader.scanned - start)


def _arguments(value: Any) -> str:
    """Write arguments as text that tells 1, 1.0 and true apart."""
    return json.dumps(value, ensure_ascii=True)


def _call(call: ToolCall) -> tuple[Any, ...]:
    arguments = _arguments(call.arguments)
    return call.name, arguments, call.id, call.server, call.raw, call.format, call.repairs, call.confidence


def outcome(response: ParsedResponse) -> dict[str, Any]:
    """Return everything that must not depend on the chunking, by name."""
    return {
        "calls": [_call(call) for call in response.tool_calls],
        "incomplete": [_call(call) for call in response.incomplete],
        "content": response.content,
        "reasoning": response.reasoning,
        "problems": [(p.kind, p.position, p.raw, p.message, p.index) for p in response.problems],
        "finish_reason": response.finish_reason,
    }


def _equal(got: dict[str, Any], want: dict[str, Any], how: str, text: str) -> None:
    for key, value in want.items():
        assert got[key] == value, f"{key} differ {how}:\n  text  {text!r}\n  whole {value!r}\n  now   {got[key]!r}"


# -- L1 ------------------------------------------------------------------------------------------------------------


def check_chunking(text: str, chunkings: Iterable[Sequence[str]] = (), **options: Any) -> Reading:
    """L1: pieces of any size give the same result as the whole text and `parse`; deltas join to the arguments."""
    whole_reading = read([text], **options)
    check_events(whole_reading.events, text)
    want = outcome(whole_reading.response)
    _equal(outcome(toolwire.parse(text, **options)), want, "in parse()", text)
    for chunks in ([*text], *chunkings):
        reading = read(chunks, **options)
        _equal(outcome(reading.response), want, f"in pieces {list(chunks)!r}", text)
        check_events(reading.events, text)
    return whole_reading


def _no_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    assert len(value) == len(pairs), f"deltas give a key twice: {pairs!r}"
    return value


def check_events(events: Sequence[Event], text: str) -> None:
    """L1: a call starts, gets its arguments and ends; the deltas are the JSON text of its final arguments."""
    opened: CallStart | None = None
    deltas: list[str] = []
    count = 0
    for at, event in enumerate(events):
        match event:
            case CallStart(index, name, _):
                assert opened is None, f"a call starts inside a call: {text!r}"
                assert index == count, f"index {index} for call {count}: {text!r}"
                assert name, f"a call without a name: {text!r}"
                opened, deltas, count = event, [], count + 1
            case ArgumentsDelta(index, delta):
                assert opened is not None and opened.index == index, f"arguments outside their call: {text!r}"
                deltas.append(delta)
            case CallEnd(index, call, complete):
                assert opened is not None and opened.index == index, f"an end without its start: {text!r}"
                assert call.name == opened.name, f"the name changes: {text!r}"
                is_generated = opened.id == call_id("", index, call.name)  # the text may give another after the name
                assert is_generated or call.id == opened.id, f"the id changes: {text!r}"
                opened = None
                joined = "".join(deltas)
                if complete:
                    value = json.loads(joined, object_pairs_hook=_no_twice)
                    values = _unordered(value), _unordered(call.arguments)  # values may wait for one another
                    assert values[0] == values[1], (
                        f"deltas {joined!r} are not the arguments {call.arguments!r}: {text!r}"
                    )
                else:
                    problem = next((e for e in events[at + 1 :] if isinstance(e, ProblemFound)), None)
                    assert problem is not None, f"an incomplete call without a problem: {text!r}"
                    assert problem.problem.index == index, f"an incomplete call without its problem: {text!r}"
            case ContentDelta(delta) | ReasoningDelta(delta):
                assert delta, f"an empty delta: {text!r}"
            case Finish():
                assert at == len(events) - 1, f"something after the end: {text!r}"
            case ProblemFound():
                pass
    assert opened is None, f"a call never ends: {text!r}"
    assert isinstance(events[-1], Finish), f"no end: {text!r}"


# -- L3 ------------------------------------------------------------------------------------------------------------


@cache
def _droppable(name: str) -> tuple[re.Pattern[str], re.Pattern[str], tuple[re.Pattern[str], ...]]:
    """Return patterns for the longest marker, an end-of-sequence token, and markers that begin longer ones."""
    markers: set[str] = {"[]"}  # an empty list between a wrapper's markers
    flags = 0
    for wire in wire_formats(name):
        markers |= literals_of(wire)
        flags = re.IGNORECASE if wire.nocase else flags
    ends = "|".join(map(re.escape, sorted(END_OF_SEQUENCE, key=len, reverse=True)))
    named = "|".join(r"\[\s*\]" if m == "[]" else re.escape(m) for m in sorted(markers, key=len, reverse=True))
    for pseudo in {name for wire in wire_formats(name) for name in wire.pseudo}:  # what is written as a call of it
        named += rf"|\[?\s*\{{[^{{}}]*\"{re.escape(pseudo)}\"[^{{}}]*(?:\{{\s*\}}[^{{}}]*)?\}}\s*\]?"
    short = (m for m in markers if any(other != m and other.startswith(m) for other in markers))
    return (
        re.compile(rf"(?:{named})", flags),
        re.compile(rf"({ends})(?:\s|{ends})*\Z", flags),
        tuple(re.compile(re.escape(m), flags) for m in sorted(short)),
    )


def kept(events: Iterable[Event]) -> str:
    """Return all text in the events, in document order, with text that is in them twice only once.

    A broken call's text comes back as content, so its own `raw` is left out; the text of a call that was cut is in
    its `raw` alone.
    """
    parts: list[str] = []
    pending: ToolCall | None = None
    for event in events:
        match event:
            case ContentDelta(text) | ReasoningDelta(text):
                parts.append(text)
            case CallEnd(_, call, True):
                parts.append(call.raw)
            case CallEnd(_, call, False):
                pending = call
            case ProblemFound(problem):
                if pending is not None and problem.kind == "truncated":
                    assert problem.raw == pending.raw, "a cut call's problem holds other text than the call"
                    parts.append(pending.raw)
                pending = None
            case _:
                pass
    return "".join(parts)


@cache
def _primed_rests(name: str) -> tuple[str, ...]:
    """Return the rests of markers that are left out and whose beginning the prompt has written."""
    return tuple(
        marker[len(wire.primed) :]
        for wire in wire_formats(name)
        for marker in wire.drop
        if wire.primed and marker.startswith(wire.primed)
    )


def check_nothing_lost(text: str, events: Iterable[Event], format: str) -> None:
    """L3: the text equals the text in the events, in order, with nothing left out and nothing added but this.

    Left out may be: a marker that the format names, with the white space around it, or the rest of one that the prompt
    began; and an end-of-sequence token after which only white space and other such tokens come.
    """
    markup, ends, shorter = _droppable(format)
    out = kept(events)
    after_space = list(range(len(text) + 1))
    for at in range(len(text) - 1, -1, -1):
        if text[at].isspace():
            after_space[at] = after_space[at + 1]

    # By position in the text: how much of `out` may have been written by then; and that, right after markup or white
    # space that was left out with it.
    written: dict[int, _Counts] = {0: (0, 1)}
    leaving: dict[int, _Counts] = {len(rest): (0, 1) for rest in _primed_rests(format) if text.startswith(rest)}
    furthest = 0
    for at in range(len(text) + 1):
        if left := leaving.pop(at, None):
            written[at] = _merged(written.get(at), left)
            if at < len(text) and text[at].isspace():
                leaving[at + 1] = _merged(leaving.get(at + 1), left)
        states = written.pop(at, None)
        if at == len(text) or not states:
            continue
        furthest = at
        if following := _advanced(states, out, text[at]):
            written[at + 1] = _merged(written.get(at + 1), following)
        if longest := markup.match(text, after_space[at]):
            stops = {longest.end(), *(m.end() for pattern in shorter if (m := pattern.match(text, after_space[at])))}
            for stop in stops:
                leaving[stop] = _merged(leaving.get(stop), states)
        if match := ends.match(text, at):
            written[match.end(1)] = _merged(written.get(match.end(1)), states)
    assert states and _holds(states, len(out)), (
        f"text is lost or added near {text[furthest : furthest + 60]!r} ({furthest}):\n  text {text!r}\n  kept {out!r}"
    )


_Counts = tuple[int, int]
"""A set of counts: the least one, and a bit for each count from there on."""


def _merged(one: _Counts | None, other: _Counts) -> _Counts:
    if one is None:
        return other
    least = min(one[0], other[0])
    return least, one[1] << (one[0] - least) | other[1] << (other[0] - least)


def _advanced(counts: _Counts, out: str, character: str) -> _Counts | None:
    """Return the counts after which this character comes next in `out`, one more each."""
    least, bits = counts
    window = out[least : least + bits.bit_length()]
    if window.count(character) < bits.bit_length():
        bits &= sum(1 << at for at, c in enumerate(window) if c == character)
    if not bits:
        return None
    zeros = (bits & -bits).bit_length() - 1
    return least + zeros + 1, bits >> zeros


def _holds(counts: _Counts, count: int) -> bool:
    return count >= counts[0] and bool(counts[1] >> (count - counts[0]) & 1)


# -- L4 ------------------------------------------------------------------------------------------------------------


@cache
def longest_marker(name: str) -> int:
    """Return the length of the format's longest marker."""
    return max(len(m) for wire in wire_formats(name) for m in (*literals_of(wire), *END_OF_SEQUENCE))


def check_work(text: str, reading: Reading, format: str, *, factor: int = SCANS) -> None:
    """L4 without a clock: the text held back and the number of scans are bounded."""
    bound = longest_marker(format) + HOLD
    shown = text if len(text) < 200 else f"{text[:100]}...{text[-100:]}"
    assert reading.held <= bound, f"{reading.held} characters held back, more than {bound}: {shown!r}"
    most = factor * len(text) + SCANS_MORE
    assert reading.scanned <= most, f"{reading.scanned} characters scanned of {len(text)}: {shown!r}"


# -- L5 ------------------------------------------------------------------------------------------------------------


def check_positions(text: str, response: ParsedResponse) -> None:
    """L5: a problem's text is at its position and is not lost, and its message is short."""
    for problem in response.problems:
        stands = text[problem.position : problem.position + len(problem.raw)]
        assert stands == problem.raw, f"{problem!r} is not at its place in {text!r}: {stands!r}"
        assert problem.message, f"{problem!r} says nothing: {text!r}"
        assert len(problem.message) <= 1200, f"{len(problem.message)} characters of message: {text[:200]!r}"
        if problem.kind == "malformed":
            assert problem.raw in response.content, f"{problem!r} is not kept as content: {text!r}"
    for call in (*response.tool_calls, *response.incomplete):
        assert call.raw in text, f"the raw text of {call!r} is not in the text: {text!r}"


# -- L6 ------------------------------------------------------------------------------------------------------------


@cache
def _call_closers(name: str) -> tuple[str, ...]:
    """Return the closing tags of calls that are written in tags of their own."""
    last = [node.nodes[-1] for wire in wire_formats(name) for node in walk(wire.blocks) if isinstance(node, Call)]
    return tuple({spelling for node in last if isinstance(node, Lit) for spelling in node.spellings})


def check_never_half(text: str, cuts: Iterable[int] | None = None, **options: Any) -> None:
    """L6: complete calls of a cut text are the first calls of the whole text, with their final arguments.

    A raw value may contain the closing tag of its call. A text that is cut right after it cannot be distinguished from
    a whole one in which the closing tag of the value is missing; then the repair is recorded.
    """
    final = [(call.name, _arguments(call.arguments)) for call in toolwire.parse(text, **options).tool_calls]
    closers = _call_closers(options["format"])
    tagged = any(isinstance(node, ToolTag) for wire in wire_formats(options["format"]) for node in walk(wire.blocks))
    for cut in range(len(text)) if cuts is None else cuts:
        found = list(toolwire.parse(text[:cut], **options).tool_calls)
        own = tuple(f"</{call.name}>" for call in found[-1:]) if tagged else ()
        if found and "missing_close" in found[-1].repairs and text[:cut].rstrip().endswith((*closers, *own)):
            del found[-1]
        calls = [(call.name, _arguments(call.arguments)) for call in found]
        assert calls == final[: len(calls)], (
            f"a cut text's call differs:\n  text {text!r}\n  cut  {text[:cut]!r}\n  got  {calls!r}\n  whole {final!r}"
        )


# -- all of them that hold for any text -----------------------------------------------------------------------------


def check_text(text: str, chunkings: Iterable[Sequence[str]] = (), **options: Any) -> ParsedResponse:
    """Check L1, L3, L4 and L5 for one text in one format."""
    reading = check_chunking(text, chunkings, **options)
    name = options["format"]
    check_nothing_lost(text, reading.events, name)
    check_positions(text, reading.response)
    check_work(text, reading, name)
    return reading.response


# -- L2 ------------------------------------------------------------------------------------------------------------


def check_round_trip(calls: Sequence[ToolCall], tools: Sequence[Any], format: str) -> str:
    """L2: rendered calls parse to equal calls. Return the text, or raise the error of `render_calls`."""
    text: str = toolwire.render_calls(calls, format=format, tools=tools)
    response = toolwire.parse(text, format=format, tools=tools)
    actual = [(call.name, call.arguments) for call in response.tool_calls]
    want = [(call.name, call.arguments) for call in calls]
    assert len(actual) == len(want), f"{len(actual)} calls of {len(want)}: {text!r} {response!r}"
    for (name, arguments), (wanted_name, expected) in zip(actual, want, strict=True):
        assert name == wanted_name, f"{name!r} is not {wanted_name!r}: {text!r}"
        assert _unordered(arguments) == _unordered(expected), f"{arguments!r} is not {expected!r}: {text!r}"
    assert not response.problems, f"{response.problems!r}: {text!r}"
    assert not response.incomplete, f"{response.incomplete!r}: {text!r}"
    assert not any(call.repairs for call in response.tool_calls), f"a rendered call needs repair: {text!r} {response!r}"
    assert not response.content.strip(), f"rendered calls leave content: {text!r} {response.content!r}"
    return text


def _unordered(value: Any) -> str:
    return json.dumps(value, sort_keys=True)

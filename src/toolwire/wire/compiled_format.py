"""Formats compiled for reading: which markers can come where, computed once per format before any text is read.

A `Step` is a node together with the markers that it can begin with and those that can follow it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import assert_never

from toolwire.errors import DefinitionError
from toolwire.wire.leaf_scanners import CDATA, ValueEnd
from toolwire.wire.marker_sets import MarkerSet, marker_set
from toolwire.wire.syntax import (
    END_OF_SEQUENCE,
    AnyOrder,
    Args,
    Call,
    Elements,
    Header,
    Ident,
    JsonCall,
    Key,
    Lit,
    Many,
    Mark,
    Name,
    Node,
    OneOf,
    Params,
    PyCalls,
    Server,
    Span,
    Tag,
    TokenArgs,
    Value,
    WireFormat,
)

Markers = frozenset[str]
FENCES = ("```", "~~~")
TEXT = ""
"""Placeholder for plain text in a set of markers."""
_BARE = frozenset("{[")
"""Openers that come from JSON, not from a literal of the format."""
_TAG_SPACE = (" ", "\n", "\t", "\r")


def tag_openers(tag: Tag) -> Markers:
    """Return the beginnings of an opening tag with an attribute: the whole name, then white space."""
    return frozenset(f"{tag.open}{tag.name}{space}" for space in _TAG_SPACE)


def first(nodes: Iterable[Node]) -> tuple[Markers, bool]:
    """Return the markers that a sequence can begin with, and whether it may be empty."""
    markers: set[str] = set()
    for node in nodes:
        node_markers, may_be_empty = first_of(node)
        markers |= node_markers
        if not may_be_empty:
            return frozenset(markers), False
    return frozenset(markers), True


def first_of(node: Node) -> tuple[Markers, bool]:
    """Return the markers that a node can begin with, and whether it may be empty."""
    match node:
        case Lit():
            return node.spellings, node.need != "required"
        case Tag():
            return tag_openers(node), False
        case Name() | Header() | Ident() | Server() | Key() | Mark() | Value():
            return frozenset({TEXT}), False
        case Params(nodes):
            return first(nodes)[0], True
        case Elements(token=token):
            return frozenset({f"{token}<"}), True
        case Args(element):
            return frozenset({TEXT} if element else "{"), False
        case JsonCall():
            return frozenset("{["), False
        case TokenArgs():
            return frozenset("{"), False
        case PyCalls(open=opener, bare=bare, json=json):
            return frozenset({opener, *([TEXT] if bare else []), *("{" if json else "")}), False
        case Many(nodes) | Call(nodes):
            return first(nodes)
        case OneOf(options):
            markers, may_be_empty = zip(*map(first, options), strict=True)
            return frozenset().union(*markers), any(may_be_empty)
        case AnyOrder(groups):
            return frozenset().union(*(first(group)[0] for group in groups)), True
        case _:
            assert_never(node)


def contains_call(node: Node) -> bool:
    """Return whether a call is read inside this node."""
    match node:
        case Call() | JsonCall() | PyCalls():
            return True
        case Many(nodes):
            return any(map(contains_call, nodes))
        case OneOf(options):
            return any(contains_call(inner) for option in options for inner in option)
        case _:
            return False


@dataclass(slots=True, eq=False)
class Step:
    """A node, compiled.

    Attributes:
        node: the node.
        first, first_set: markers that the node can begin with.
        follow, follow_set: markers that can come right after it, up to the end of the block.
        either_set: markers of both kinds.
        groups: the sequences of steps in it: one, or one per option or group.
        group_firsts: the markers that each of these begins with.
        empty_group: index of the option that may be empty, or None.
    """

    node: Node
    first: Markers
    first_set: MarkerSet
    follow: Markers
    follow_set: MarkerSet
    either_set: MarkerSet
    groups: tuple[tuple[Step, ...], ...] = ()
    group_firsts: tuple[Markers, ...] = ()
    empty_group: int | None = None


def _steps(nodes: tuple[Node, ...], follow: Markers, nocase: bool) -> tuple[Step, ...]:
    steps: list[Step] = []
    # Backwards, because the markers that can follow a node are those that the nodes after it begin with.
    for node in reversed(nodes):
        begins, may_be_empty = first_of(node)
        steps.append(_step(node, begins, follow, nocase))
        follow = begins | follow if may_be_empty else begins
    return tuple(reversed(steps))


def _step(node: Node, begins: Markers, follow: Markers, nocase: bool) -> Step:
    step = Step(
        node,
        begins,
        marker_set(begins, nocase),
        follow,
        marker_set(follow, nocase),
        marker_set(begins | follow, nocase),
    )
    match node:
        case Many(nodes=nodes) | Params(nodes=nodes):
            # After one repetition comes the next one, or what follows them all.
            step.groups = (_steps(nodes, begins | follow, nocase),)
        case Call(nodes):
            step.groups = (_steps(nodes, follow, nocase),)
        case OneOf(options):
            step.groups = tuple(_steps(option, follow, nocase) for option in options)
            step.group_firsts = tuple(first(option)[0] for option in options)
            step.empty_group = next((at for at, option in enumerate(options) if first(option)[1]), None)
        case AnyOrder(options):
            step.groups = tuple(_steps(option, begins | follow, nocase) for option in options)
            step.group_firsts = tuple(first(option)[0] for option in options)
        case _:
            pass
    return step


def _closers(nodes: tuple[Node, ...]) -> Markers:
    """Return the markers after the first call of a block, at any level. Repetitions of them are dropped."""
    closers: set[str] = set()
    after_call = False
    for node in nodes:
        if after_call and isinstance(node, Lit):
            closers |= node.spellings
        if isinstance(node, OneOf):
            for option in node.options:
                closers |= _closers(option)
        elif isinstance(node, Many):
            closers |= _closers(node.nodes)
        elif isinstance(node, Call):
            last = node.nodes[-1]
            closers |= last.spellings if isinstance(last, Lit) else frozenset()
        after_call = after_call or contains_call(node)
    return frozenset(closers)


@dataclass(slots=True, eq=False)
class Block:
    """One of a format's blocks, compiled."""

    steps: tuple[Step, ...]
    closers: MarkerSet


class ContentMarkers:
    """Markers that matter outside blocks.

    Attributes:
        prose, prose_start: markers that matter in content, and before there is any.
        reasoning: markers that matter in reasoning, by the span's opener; "" for reasoning that the prompt opened.
        openers, closes, ends: openers of blocks, closers of spans, end-of-sequence tokens.
        stray_closers: closers that are dropped where they close nothing.
        spans: by opener.
        drops: markers that are dropped from content.
        frames: by a marker, the markers that matter from it on: a marker that begins the message, or is around
            reasoning, shows the format. Empty where the format is known.
        stops: texts after which no block begins.
        fences: code fences hide what is inside.
    """

    def __init__(
        self,
        *,
        anywhere: Markers,
        start: Markers,
        ending: Markers,
        spans: Iterable[Span],
        drops: Markers,
        stops: Markers,
        fences: bool,
        nocase: bool,
    ) -> None:
        self.spans = {span.open: span for span in spans}
        self.openers = anywhere | start
        self.closes = frozenset(span.close for span in self.spans.values())
        # A closer of nothing but white space would be found before every message.
        self.stray_closers = frozenset(close for close in self.closes if not close.isspace())
        self.ends = frozenset(END_OF_SEQUENCE)
        self.drops = drops
        self.frames: dict[str, ContentMarkers] = {}
        self.stops = stops
        self.after_stop = marker_set(self.ends, nocase)
        self.fences = fences
        self._nocase = nocase
        opens = frozenset(self.spans)
        shared = opens | self.ends | stops | (frozenset(FENCES) if fences else frozenset())
        self._anywhere = anywhere | shared
        self._start = self.openers | self.closes | shared
        self.prose = marker_set(self._anywhere | drops, nocase)
        self.prose_start = marker_set(self._start | drops, nocase)
        inside = self.ends | ending | stops
        self.reasoning = {
            span.open: marker_set(frozenset({span.close, span.open}) | inside, nocase) for span in self.spans.values()
        }
        self.reasoning[""] = marker_set(self.closes | opens | inside, nocase)

    def set_frames(self, frames: Mapping[str, Markers]) -> None:
        """Set, by marker, which markers are dropped from content after it."""
        by_drops: dict[Markers, ContentMarkers] = {}
        for marker, drops in frames.items():
            # Formats with the same drops share one set, because each set costs a regular expression.
            if drops not in by_drops:
                inner = by_drops[drops] = copy(self)
                inner.drops = drops
                inner.prose = marker_set(self._anywhere | drops, self._nocase)
                inner.prose_start = marker_set(self._start | drops, self._nocase)
            self.frames[marker] = by_drops[drops]
        self.prose_start = marker_set(self._start.union(self.frames), self._nocase)


def _check(name: str, nodes: tuple[Node, ...]) -> None:
    if not isinstance(nodes, tuple):
        raise DefinitionError(f"a block of the format {name!r} is not a tuple of nodes, but {nodes!r}")
    if not any(map(contains_call, nodes)):
        raise DefinitionError(f"a block of the format {name!r} holds no call: no Call, JsonCall or PyCalls node")


class CompiledFormat:
    """A format, compiled for reading.

    Attributes:
        format: the format.
        blocks: by the marker that opens them.
        anywhere: markers that open a block anywhere in content.
        content: markers that matter outside blocks.
    """

    def __init__(self, format: WireFormat) -> None:
        self.format = format
        self._nocase = format.nocase
        self.blocks: dict[str, Block] = {}
        for nodes in format.blocks:
            _check(format.name, nodes)
            # Nothing follows a block: text after it is content, whatever it is.
            block = Block(_steps(nodes, frozenset(), self._nocase), marker_set(_closers(nodes), self._nocase))
            # The first of several blocks with one opener wins, so the order in a description matters.
            for opener in first(nodes)[0]:
                self.blocks.setdefault(opener, block)
        openers = frozenset(self.blocks)
        free = {"anywhere": openers, "start": frozenset[str](), "mixed": openers - _BARE}
        self.anywhere = free[format.at]
        self.content = ContentMarkers(
            anywhere=self.anywhere,
            start=openers,
            ending=openers if format.ends_reasoning else frozenset(),
            spans=format.spans,
            drops=frozenset(format.drop),
            stops=frozenset(format.stop),
            fences=format.fences,
            nocase=self._nocase,
        )
        self._value_ends: dict[int, ValueEnd] = {}  # by identity of the step, which exists as long as this object

    def lookahead(self, names: Iterable[str]) -> dict[str, frozenset[str]]:
        """Return, by opener, the characters one of which has to follow the opener for a block to begin.

        Python calls without markers begin with `[`, like every link in Markdown. So a block only begins before the
        first letter of a known tool's name.
        """
        if self.format.markers:
            return {}
        after = frozenset({" ", "\t", "\n", "\r", *(name[0] for name in names)})
        return {node.open: after for nodes in self.format.blocks if isinstance(node := nodes[0], PyCalls)}

    def value_end(self, params: Step, node: Value) -> ValueEnd:
        """Return the rules for the end of the value of one of these parameters."""
        rules = self._value_ends.get(id(params))
        if rules is None:
            openers = frozenset() if node.missing == "never" else params.first
            stops = openers | {node.close} | ({CDATA} if node.cdata else set())
            starts = {marker[0] for marker in stops} | ({"\n"} if node.newline else set())
            rules = self._value_ends[id(params)] = ValueEnd(
                close=node.close,
                stops=marker_set(stops, self._nocase),
                follow=params.either_set,
                newline=node.newline,
                line_start=node.missing == "line",
                special=re.compile("[" + "".join(map(re.escape, sorted(starts))) + "]").search,
            )
        return rules


_MAX_COMPILED = 256
# By identity, because hashing a description costs more than reading a short message. An entry keeps its format alive,
# so that no other object can have the same identity.
_compiled: dict[int, CompiledFormat] = {}


def compile_format(format: WireFormat) -> CompiledFormat:
    """Return the compiled format, made once per value."""
    compiled = _compiled.get(id(format))
    if compiled is None:
        if len(_compiled) >= _MAX_COMPILED:
            _compiled.clear()
        compiled = _compiled[id(format)] = CompiledFormat(format)
    return compiled

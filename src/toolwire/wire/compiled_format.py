"""What is computed once per format before any text is read: which markers can come where.

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
"""Stands for plain text where the markers are listed that something can begin with."""
_BARE = frozenset("{[")
"""Openers that are no literals of a format."""
_TAG_SPACE = (" ", "\n", "\t", "\r")


def tag_openers(tag: Tag) -> Markers:
    """How an opening tag with an attribute begins: the whole name, then white space."""
    return frozenset(f"{tag.open}{tag.name}{space}" for space in _TAG_SPACE)


def first(nodes: Iterable[Node]) -> tuple[Markers, bool]:
    """The markers that a sequence can begin with, and whether it may be empty."""
    found: set[str] = set()
    for node in nodes:
        markers, more = first_of(node)
        found |= markers
        if not more:
            return frozenset(found), False
    return frozenset(found), True


def first_of(node: Node) -> tuple[Markers, bool]:
    """The same for one node."""
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
            firsts = [first(option) for option in options]
            return frozenset().union(*(f for f, _ in firsts)), any(more for _, more in firsts)
        case AnyOrder(groups):
            return frozenset().union(*(first(group)[0] for group in groups)), True
        case _:
            assert_never(node)


def contains_call(node: Node) -> bool:
    """Whether a call is read inside this node."""
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
    """A node, prepared.

    Attributes:
        node: the node.
        first: markers it begins with.
        here: `first`, compiled.
        follow: markers that can come right after it, up to the end of the block.
        after: `follow`, compiled.
        either: both, compiled.
        groups: its sequences of steps: one, or one per option or group.
        firsts: the markers that each of them begins with.
        empty: the one that may be empty, or None.
    """

    node: Node
    first: Markers
    here: MarkerSet
    follow: Markers
    after: MarkerSet
    either: MarkerSet
    groups: tuple[tuple[Step, ...], ...] = ()
    firsts: tuple[Markers, ...] = ()
    empty: int | None = None


def _steps(nodes: tuple[Node, ...], follow: Markers, nocase: bool) -> tuple[Step, ...]:
    made: list[Step] = []
    for node in reversed(nodes):
        begins, more = first_of(node)
        made.append(_step(node, begins, follow, nocase))
        follow = begins | follow if more else begins
    return tuple(reversed(made))


def _step(node: Node, begins: Markers, follow: Markers, nocase: bool) -> Step:
    groups: tuple[tuple[Step, ...], ...] = ()
    firsts: tuple[Markers, ...] = ()
    empty: int | None = None
    match node:
        case Many(nodes=nodes) | Params(nodes=nodes):
            groups = (_steps(nodes, begins | follow, nocase),)
        case Call(nodes):
            groups = (_steps(nodes, follow, nocase),)
        case OneOf(options):
            groups = tuple(_steps(option, follow, nocase) for option in options)
            firsts = tuple(first(option)[0] for option in options)
            empty = next((at for at, option in enumerate(options) if first(option)[1]), None)
        case AnyOrder(options):
            groups = tuple(_steps(option, begins | follow, nocase) for option in options)
            firsts = tuple(first(option)[0] for option in options)
        case _:
            pass
    return Step(
        node,
        begins,
        marker_set(begins, nocase),
        follow,
        marker_set(follow, nocase),
        marker_set(begins | follow, nocase),
        groups,
        firsts,
        empty,
    )


def _closers(nodes: tuple[Node, ...]) -> Markers:
    """Markers after the first call of a block, at any level: forgiven when missing, swallowed when repeated."""
    found: set[str] = set()
    seen = False
    for node in nodes:
        if seen and isinstance(node, Lit):
            found |= node.spellings
        if isinstance(node, OneOf):
            for option in node.options:
                found |= _closers(option)
        elif isinstance(node, Many):
            found |= _closers(node.nodes)
        elif isinstance(node, Call):
            last = node.nodes[-1]
            found |= last.spellings if isinstance(last, Lit) else frozenset()
        seen = seen or contains_call(node)
    return frozenset(found)


@dataclass(slots=True, eq=False)
class Block:
    """One of a format's blocks, prepared."""

    steps: tuple[Step, ...]
    closers: MarkerSet


class ContentMarkers:
    """What matters outside blocks.

    Attributes:
        prose, prose_start: markers that matter in content, and before there is any.
        reasoning: markers that matter in reasoning, by the span's opener; "" for reasoning that the prompt opened.
        openers, closes, ends: openers of blocks, closers of spans, end-of-sequence tokens.
        lone: closers that are left out where they close nothing.
        spans: by opener.
        drops: markers that are left out of content.
        frames: by a marker, what counts from it on: it tells the format where it begins the message, or is around
            reasoning. Empty where the format is known.
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
        self.lone = frozenset(close for close in self.closes if not close.isspace())
        self.ends = frozenset(END_OF_SEQUENCE)
        self.drops = drops
        self.frames: dict[str, ContentMarkers] = {}
        self.stops = stops
        self.after_stop = marker_set(self.ends, nocase)
        self.fences = fences
        self._nocase = nocase
        opens = frozenset(self.spans)
        shared = opens | self.ends | stops | (frozenset(FENCES) if fences else frozenset())
        self._prose = anywhere | shared
        self._start = self.openers | self.closes | shared
        self.prose = marker_set(self._prose | drops, nocase)
        self.prose_start = marker_set(self._start | drops, nocase)
        inside = self.ends | ending | stops
        self.reasoning = {
            span.open: marker_set(frozenset({span.close, span.open}) | inside, nocase) for span in self.spans.values()
        }
        self.reasoning[""] = marker_set(self.closes | opens | inside, nocase)

    def framed(self, frames: Mapping[str, Markers]) -> None:
        """Let a marker tell which markers are left out of content from it on."""
        made: dict[Markers, ContentMarkers] = {}
        for marker, drops in frames.items():
            if drops not in made:
                inner = made[drops] = copy(self)
                inner.drops = drops
                inner.prose = marker_set(self._prose | drops, self._nocase)
                inner.prose_start = marker_set(self._start | drops, self._nocase)
            self.frames[marker] = made[drops]
        self.prose_start = marker_set(self._start.union(self.frames), self._nocase)


def _check(name: str, nodes: tuple[Node, ...]) -> None:
    if not isinstance(nodes, tuple):
        raise DefinitionError(f"a block of the format {name!r} is no tuple of nodes, but {nodes!r}")
    if not any(map(contains_call, nodes)):
        raise DefinitionError(f"a block of the format {name!r} holds no call: no Call, JsonCall or PyCalls node")


class CompiledFormat:
    """A format, prepared for reading.

    Attributes:
        format: the format.
        blocks: by the marker that opens them.
        anywhere: markers that open one anywhere in content.
        outside: what matters outside them.
    """

    def __init__(self, format: WireFormat) -> None:
        self.format = format
        self._nocase = format.nocase
        self.blocks: dict[str, Block] = {}
        for nodes in format.blocks:
            _check(format.name, nodes)
            block = Block(_steps(nodes, frozenset(), self._nocase), marker_set(_closers(nodes), self._nocase))
            for opener in first(nodes)[0]:
                self.blocks.setdefault(opener, block)
        openers = frozenset(self.blocks)
        free = {"anywhere": openers, "start": frozenset[str](), "mixed": openers - _BARE}
        self.anywhere = free[format.at]
        self.outside = ContentMarkers(
            anywhere=self.anywhere,
            start=openers,
            ending=openers if format.ends_reasoning else frozenset(),
            spans=format.spans,
            drops=frozenset(format.drop),
            stops=frozenset(format.stop),
            fences=format.fences,
            nocase=self._nocase,
        )
        self._value_ends: dict[int, ValueEnd] = {}  # by identity of the step, which lives as long as this

    def lookahead(self, names: Iterable[str]) -> dict[str, frozenset[str]]:
        """By opener, the characters one of which has to follow it where only known tools make a call of it."""
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
                follow=params.either,
                newline=node.newline,
                line_start=node.missing == "line",
                special=re.compile("[" + "".join(map(re.escape, sorted(starts))) + "]").search,
            )
        return rules


_MAX_COMPILED = 256
_compiled: dict[int, CompiledFormat] = {}  # by identity: hashing a description costs more than reading a short message


def compile_format(format: WireFormat) -> CompiledFormat:
    """The prepared format, made once per value."""
    plan = _compiled.get(id(format))
    if plan is None or plan.format is not format:
        if len(_compiled) >= _MAX_COMPILED:
            _compiled.clear()
        plan = _compiled[id(format)] = CompiledFormat(format)
    return plan

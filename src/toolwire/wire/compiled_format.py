"""Formats compiled for reading: which markers can come where, computed once per format before any text is read.

A `Step` is a node together with the markers that it can begin with and those that can follow it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from toolwire.errors import DefinitionError
from toolwire.wire.content_markers import FENCES, ContentMarkers
from toolwire.wire.leaf_scanners import CDATA
from toolwire.wire.lookahead import Lookahead, known_tags, next_character
from toolwire.wire.marker_sets import MarkerSet, marker_set
from toolwire.wire.node_markers import ANY_TAG, TEXT, Markers, first, first_of, leaves
from toolwire.wire.quotation_markers import quotation_markers, quoting_tags
from toolwire.wire.quotations import BEGINS_LINE, BLOCK_QUOTE, MORE_THAN_MENTIONED
from toolwire.wire.raw_values import HeaderPattern, ValueEnd
from toolwire.wire.result_tags import QUOTING_BRACKETS, QUOTING_MARKERS, ResultTags
from toolwire.wire.syntax import (
    AnyOrder,
    Args,
    Call,
    JsonCall,
    KeywordArgs,
    Lit,
    Many,
    Node,
    OneOf,
    Params,
    PyCalls,
    Value,
    WireFormat,
)
from toolwire.wire.turn_headers import HEADS_OF_TURNS

_BARE = frozenset("{[")
"""Openers that come from JSON, not from a literal of the format."""
_BRACKETS = frozenset({")", "]", "}", ")]", *FENCES})


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


def _written(markers: Markers) -> Markers:
    """Return the markers that are literals of the format."""
    return markers - _BARE - {TEXT}


@dataclass(frozen=True, slots=True)
class Around:
    """Surroundings of a part of a call.

    Attributes:
        close: the closing marker of the call, if it has one.
        closers: closing markers of the wrapper.
        openers: openers of calls and of blocks.
    """

    close: Lit | None = None
    closers: Markers = frozenset()
    openers: Markers = frozenset()

    @property
    def call_close(self) -> Markers:
        """The spellings of the call's closing marker."""
        return self.close.spellings if self.close is not None else frozenset()

    @property
    def beyond(self) -> Markers:
        """Markers that show that the call is over."""
        return self.closers | self.openers


NOTHING = Around()


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
        around: the call that the node is part of, and what is around it.
        ends_call: the node is the closing marker of its call.
        ends_block: nothing of the block comes after the node.
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
    around: Around = NOTHING
    ends_call: bool = False
    ends_block: bool = False


def _steps(nodes: tuple[Node, ...], follow: Markers, around: Around, nocase: bool) -> tuple[Step, ...]:
    steps: list[Step] = []
    # Backwards, because the markers that can follow a node are those that the nodes after it begin with.
    for node in reversed(nodes):
        begins, may_be_empty = first_of(node)
        steps.append(_step(node, begins, follow, around, nocase))
        follow = begins | follow if may_be_empty else begins
    return tuple(reversed(steps))


def _step(node: Node, begins: Markers, follow: Markers, around: Around, nocase: bool) -> Step:
    step = Step(
        node,
        begins,
        marker_set(begins, nocase),
        follow,
        marker_set(follow, nocase),
        marker_set(begins | follow, nocase),
        around=around,
    )
    match node:
        case Many(nodes=nodes) | Params(nodes=nodes):
            # After one repetition comes the next one, or what follows them all.
            step.groups = (_steps(nodes, begins | follow, around, nocase),)
        case Call(nodes):
            last = nodes[-1]
            openers = around.openers | _written(begins)
            # What opens the next call can follow this one, too, but it does not close anything by itself: a value ends
            # there only if a call really begins.
            inner = Around(last if isinstance(last, Lit) else None, _written(follow) - openers, openers)
            step.groups = (_steps(nodes, follow, inner, nocase),)
            step.groups[0][-1].ends_call = inner.close is not None
        case OneOf(options):
            step.groups = tuple(_steps(option, follow, around, nocase) for option in options)
            # A wrapper without calls ends where one could begin.
            step.group_firsts = tuple(
                first(option)[0] | (group[0].follow if isinstance(option[0], Many) else frozenset())
                for option, group in zip(options, step.groups, strict=True)
            )
            step.first_set = marker_set(frozenset().union(*step.group_firsts), nocase)
            step.empty_group = next((at for at, option in enumerate(options) if first(option)[1]), None)
        case AnyOrder(options):
            step.groups = tuple(_steps(option, begins | follow, around, nocase) for option in options)
            step.group_firsts = tuple(first(option)[0] for option in options)
        case _:
            pass
    return step


def _mark_end(steps: tuple[Step, ...]) -> None:
    """Mark the last steps of a block."""
    steps[-1].ends_block = True
    if isinstance(steps[-1].node, OneOf):
        for group in steps[-1].groups:
            _mark_end(group)


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
            # The closing marker of the call itself, which its wrapper need not have.
            closers |= last.spellings if isinstance(last, Lit) else frozenset()
        after_call = after_call or contains_call(node)
    return frozenset(closers)


def _has_strings(leaf: Node) -> bool:
    """Return whether values in this node are between quotes."""
    match leaf:
        case JsonCall() | PyCalls() | KeywordArgs():
            return True
        case Args(element=element):
            return not element
        case _:
            return False


def _heading(node: Node) -> bool:
    """Return whether a block that begins with this node is meant as a call; code fences hold anything."""
    if isinstance(node, Call):
        return _heading(node.nodes[0])
    return isinstance(node, Lit) and not node.hint and not node.text.startswith(FENCES)


def _prose(blocks: Iterable[tuple[Node, ...]]) -> Markers:
    """Return the markers of ordinary words that blocks begin with."""
    prose: set[str] = set()
    for node, *_ in blocks:
        if isinstance(node, Call):
            prose |= _prose([node.nodes])
        elif isinstance(node, Lit) and node.prose:
            prose |= node.spellings
    return frozenset(prose)


@dataclass(slots=True, eq=False)
class Block:
    """One of a format's blocks, compiled.

    Attributes:
        steps: its nodes.
        closers: the markers after the first call, at any level.
        marked: it begins with a marker; else only known tools count in it.
        heading: it begins with words that mean a call where they begin a line.
        has_strings: values in it are between quotes, as in JSON and Python.
    """

    steps: tuple[Step, ...]
    closers: MarkerSet
    marked: bool
    heading: bool
    has_strings: bool


def _check(name: str, nodes: tuple[Node, ...]) -> None:
    if not isinstance(nodes, tuple):
        raise DefinitionError(f"a block of the format {name!r} is not a tuple of nodes, but {nodes!r:.80}")
    if non_nodes := [node for node in nodes if not isinstance(node, Node)]:
        raise DefinitionError(f"a block of the format {name!r} contains {non_nodes[0]!r:.80}, which is not a node")
    if not any(map(contains_call, nodes)):
        raise DefinitionError(f"a block of the format {name!r} holds no call: no Call, JsonCall or PyCalls node")


class CompiledFormat:
    """A format, compiled for reading.

    Attributes:
        format: the format.
        blocks: by the marker that opens them.
        anywhere: markers that open a block anywhere in content.
        detected: markers that open a block where the format is not named.
        ending: markers that open a block in unclosed reasoning, and end it.
        quotes: by opener of text that only shows calls, the markers that close it.
        content: markers that matter outside blocks.
        closers: closing markers of all blocks, without brackets and fences.
    """

    def __init__(self, format: WireFormat) -> None:
        self.format = format
        self._nocase = format.nocase
        self.blocks: dict[str, Block] = {}
        if not isinstance(format.blocks, tuple):
            raise DefinitionError(
                f"the blocks of the format {format.name!r} are not a tuple, but {format.blocks!r:.80}"
            )
        for nodes in format.blocks:
            _check(format.name, nodes)
        around = Around(openers=_written(frozenset().union(*(first(nodes)[0] for nodes in format.blocks))))
        for nodes in format.blocks:
            # Nothing follows a block: text after it is content, whatever it is.
            begins = first(nodes)[0]
            # Any answer in JSON begins with a bracket, so a block that does needs more evidence.
            marked = format.markers and not begins & _BARE
            block = Block(
                _steps(nodes, frozenset(), around, self._nocase),
                marker_set(_closers(nodes), self._nocase),
                marked,
                _heading(nodes[0]),
                any(map(_has_strings, chain.from_iterable(map(leaves, nodes)))),
            )
            # The first of several blocks with one opener wins, so the order in a description matters.
            for opener in begins:
                self.blocks.setdefault(opener, block)
            _mark_end(block.steps)
        openers = frozenset(self.blocks)
        # Without a named format, "Action:" in an answer is prose.
        self.detected = openers - _prose(format.blocks)
        # Reasoning contains code and JSON that are drafts, so neither a fence nor a bracket ends it.
        drafts = _BARE | {opener for opener in openers if opener.startswith(FENCES)}
        free = {
            "anywhere": openers,
            "start": frozenset[str](),
            "mixed": openers - _BARE,
            "markers": openers - drafts,
        }
        self.anywhere = free[format.at]
        self.ending = openers - drafts if format.ends_reasoning else frozenset()
        self._tags = quoting_tags(format)
        # Any tag may be the one around a tool's result, or the header of a turn.
        results = dict.fromkeys(QUOTING_MARKERS, frozenset[str]()) | QUOTING_BRACKETS
        self.quotes = results | quotation_markers(format, openers, self.anywhere)
        self.content = ContentMarkers(
            anywhere=self.anywhere,
            start=openers,
            ending=self.ending,
            spans=format.spans,
            drops=frozenset(format.drop),
            stops=frozenset(format.stop),
            quotes=self.quotes,
            nocase=self._nocase,
        )
        self.content.answers = frozenset(format.answers)
        self.closers = marker_set(frozenset().union(*map(_closers, format.blocks)) - _BRACKETS, self._nocase)
        self._value_ends: dict[int, ValueEnd] = {}  # by identity of the step, which exists as long as this object

    def lookahead(self, names: Iterable[str]) -> dict[str, Lookahead]:
        """Return, by opener, what has to follow the opener for a block or a quotation to begin.

        Python calls without markers begin with `[`, like every link in Markdown. So a block only begins before the
        first letter of a known tool's name. The tags of tools and results begin with `<`, like every other.
        """
        lookahead: dict[str, Lookahead] = dict.fromkeys((*self._tags, *QUOTING_BRACKETS), MORE_THAN_MENTIONED)
        lookahead[BLOCK_QUOTE] = BEGINS_LINE
        lookahead |= dict.fromkeys(HEADS_OF_TURNS, ResultTags())
        lookahead[ANY_TAG] = ResultTags(known_tags(tuple(names)) if ANY_TAG in self.blocks else None)
        if not self.format.markers:
            for nodes in self.format.blocks:
                if isinstance(nodes[0], PyCalls):
                    lookahead[nodes[0].open] = next_character(tuple(names))
        return lookahead

    def around_elements(self, step: Step) -> dict[str, MarkerSet]:
        """Return, by closing marker of what these elements are in, the markers that show that it does close it."""
        around = step.around
        inside = _written(step.follow) - around.call_close - around.openers
        beyond = marker_set(around.beyond, self._nocase)
        closed = marker_set(around.beyond | around.call_close, self._nocase)
        return dict.fromkeys(inside, closed) | dict.fromkeys(around.call_close, beyond)

    def value_end(self, params: Step, node: Value) -> ValueEnd:
        """Return the rules for the end of the value of one of these parameters."""
        rules = self._value_ends.get(id(params))
        if rules is None:
            rules = self._value_ends[id(params)] = self._value_end(params, node)
        return rules

    def _value_end(self, params: Step, node: Value) -> ValueEnd:
        around, openers = params.around, params.first
        beyond = around.beyond - openers
        closers = around.call_close | around.closers
        follow = {closer: marker_set(beyond - {closer}, self._nocase) for closer in closers}
        follow[node.close] = marker_set(params.first | params.follow | closers | beyond, self._nocase)
        stops = openers | beyond | follow.keys() | ({CDATA} if node.cdata else set())
        edge = node.newline + any("\n" in text for text in _between(params, node))
        header = [step.node for step in params.groups[0][:-1]]
        return ValueEnd(
            close=node.close,
            follow=follow,
            last=frozenset({node.close}) | (frozenset() if around.closers else around.call_close),
            call_close=around.call_close,
            openers=openers,
            header=HeaderPattern(header),
            missing=node.missing,
            calls=beyond - closers,
            stops=marker_set(frozenset(stops), self._nocase),
            newline=node.newline,
            edge=edge,
        )


def _between(params: Step, value: Value) -> Iterable[str]:
    """Yield the white space that is written between the closing marker of a value and what follows."""
    yield value.after
    for node in (params.groups[0][0].node, params.around.close):
        if isinstance(node, Lit):
            yield node.before


_MAX_COMPILED = 256
# By identity, because hashing a description costs more than reading a short message. An entry keeps its format alive,
# so that no other object can have the same identity.
_compiled: dict[int, CompiledFormat] = {}


def compile_format(format: WireFormat) -> CompiledFormat:
    """Return the compiled format, made once per value."""
    compiled = _compiled.get(id(format))
    if compiled is None:
        # Only a program that makes formats without end gets here, and compiling again is cheap enough for it.
        if len(_compiled) >= _MAX_COMPILED:
            _compiled.clear()
        compiled = _compiled[id(format)] = CompiledFormat(format)
    return compiled

"""Openers that several formats share: which of these formats can read what comes behind the opener.

Nine formats begin a call with `<tool_call>`. A brace behind it, a tag or a name leaves only some of them, so probes of
the others would be made in vain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from toolwire.wire.compiled_format import Block, Step, compile_format
from toolwire.wire.leaf_scanners import begins_name
from toolwire.wire.marker_sets import marker_set
from toolwire.wire.node_markers import TEXT, Markers, first, first_of
from toolwire.wire.syntax import AnyOrder, Call, JsonCall, Lit, Many, Name, Node, OneOf, Params, WireFormat

_OBJECT = "{"
_SPACE = re.compile(r"\s*")
_SPACE_LIMIT = 64
"""Maximum white space behind an opener, in characters, that is waited for; behind more, every format is tried."""


def _leading(steps: Sequence[Step]) -> Iterator[Node]:
    """Yield the nodes, none of which contains others, that a sequence may begin with."""
    for step in steps:
        match step.node:
            case OneOf() | AnyOrder() | Many() | Params() | Call():
                for group in step.groups:
                    yield from _leading(group)
            case node:
                yield node
        if not first_of(step.node)[1]:
            return


def _behind(steps: Sequence[Step], opener: str) -> tuple[Step, Sequence[Step]] | None:
    """Return the step that reads the opener of a block, and those after it; None where the opener begins a value."""
    for at, step in enumerate(steps):
        for group in step.groups:
            if opener in first(inner.node for inner in group)[0]:
                return _behind(group, opener)
        if opener in step.first:
            return (step, steps[at + 1 :]) if isinstance(step.node, Lit) else None
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A format that has an opener.

    Attributes:
        wire: the format.
        opener: the opener as the format spells it.
        anywhere: the opener counts behind content too.
        ends_reasoning: the opener counts in unclosed reasoning.
        block: the block that it opens.
        markers: markers that can come behind the opener; among them `TEXT` where plain text can.
        words: the plain text is a name.
        objects: the node that reads a JSON object there, as far as its beginning is concerned; None for several nodes.
    """

    wire: WireFormat
    opener: str
    anywhere: bool
    ends_reasoning: bool
    block: Block
    markers: Markers
    words: bool
    objects: JsonCall | None

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the block."""
        return [step.node for step in self.block.steps]

    def continues_with(self, marker: str, character: str) -> bool:
        """Return whether the block can continue with this marker, or with text that begins with this character."""
        if TEXT in self.markers and (not self.words or begins_name(character)):
            return True
        return any(begin and marker.startswith(begin) for begin in self.markers)

    def ends(self, reasoning_opener: str) -> bool:
        """Return whether the block ends reasoning that this marker opened, or the prompt if it is "".

        The marker of another format says that the model reasons in the way of that one.
        """
        same_family = not reasoning_opener or any(span.open == reasoning_opener for span in self.wire.spans)
        return self.ends_reasoning and same_family

    def is_preceded(self, earlier: Candidate, marker: str) -> bool:
        """Return whether an earlier format always announces a call no later than this one does."""
        if (
            self.anywhere > earlier.anywhere
            or self.ends_reasoning > earlier.ends_reasoning
            or self.wire.markers > earlier.wire.markers
            or self.block.marked > earlier.block.marked
            or self.wire.pseudo != earlier.wire.pseudo
        ):
            return False
        if marker == _OBJECT and self.objects is not None and self.objects == earlier.objects:
            return True
        return self.wire.nocase == earlier.wire.nocase and self.nodes == earlier.nodes


def candidate(wire: WireFormat, opener: str) -> Candidate:
    """Return a format as a candidate for the blocks that one of its openers begins."""
    compiled = compile_format(wire)
    block = compiled.blocks[opener]
    markers, words, objects = frozenset({TEXT}), False, None
    if (place := _behind(block.steps, opener)) is not None:
        step, after = place
        leading = list(_leading(after))
        texts = [node for node in leading if TEXT in first_of(node)[0]]
        # A wrapper without calls ends where one could begin.
        empty = (inner.follow if isinstance(inner.node, Many) else inner.first_set.spelled for inner in after[:1])
        repeated = step.first if isinstance(step.node, Lit) and step.node.repeats else frozenset()
        markers = step.follow.union(repeated, *empty)
        ends = all(first_of(inner.node)[1] for inner in after)  # what is around the block may follow too
        words = not ends and all(isinstance(node, Name) and not node.phrase for node in texts)
        readers = [node for node in leading if _OBJECT in first_of(node)[0]]
        if len(readers) == 1 and isinstance(readers[0], JsonCall):
            # What only the renderer uses, or counts between two objects, does not matter.
            objects = replace(readers[0], array="never", text=False, nested=False, between="")
    return Candidate(
        wire, opener, opener in compiled.anywhere, opener in compiled.ending, block, markers, words, objects
    )


class SharedOpener:
    """An opener, and the formats that have it.

    Args:
        candidates: the formats, in the order that decides ties.

    Attributes:
        candidates: the formats.
    """

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self.candidates = tuple(candidates)
        behind = frozenset[str]().union(*(each.markers for each in self.candidates)) - {TEXT}
        self._markers = marker_set(behind, any(each.wire.nocase for each in self.candidates))
        self._by_marker: dict[str, Sequence[Candidate]] = {}

    def _compete(self, marker: str, character: str) -> tuple[Candidate, ...]:
        competing: list[Candidate] = []
        for each in self.candidates:
            preceded = (each.is_preceded(earlier, marker) for earlier in competing)
            if each.continues_with(marker, character) and not any(preceded):
                competing.append(each)
        return tuple(competing)

    def competing(self, text: str, pos: int, final: bool) -> Sequence[Candidate] | None:
        """Return the formats that can continue with the text from `pos`, which is behind the opener.

        Returns:
            None if more text is needed to decide; the first format of all where none can continue.
        """
        if len(self.candidates) <= 1:
            return self.candidates
        space = _SPACE.match(text, pos, pos + _SPACE_LIMIT)
        after = space.end() if space else pos
        if after == pos + _SPACE_LIMIT:
            return self.candidates
        if after == len(text):
            return self.candidates if final else None
        marker, wait = self._markers.match(text, after, final)
        if wait:
            return None
        competing: Sequence[Candidate]
        if marker:
            if marker not in self._by_marker:
                self._by_marker[marker] = self._compete(marker, marker[0])
            competing = self._by_marker[marker]
        elif final and self._markers.is_prefix(text[after:]):
            competing = self.candidates  # the text ends inside a marker
        else:
            competing = self._compete("", text[after])
        return competing or self.candidates[:1]

"""The leaf for a parameter's raw value, and the rules for its end.

A raw value escapes nothing, so only what comes after a closing marker decides whether it closes something or is
part of the value. A value never contains the end of its call and the beginning of the next one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from toolwire.wire.leaf_scanners import CDATA, CDATA_END, CDATA_SPECIAL, NAME_LIMIT, ClosedText
from toolwire.wire.marker_sets import MarkerSet
from toolwire.wire.syntax import Key, Lit, Node, OneOf, Tag

_KEY = rf"""(?P<key>[^<>"'\x00-\x1f\x7f]{{1,{NAME_LIMIT}}}+)"""


class HeaderPattern:
    """A pattern for the whole header of a parameter, in any of its spellings.

    Args:
        nodes: the nodes of the header.
    """

    __slots__ = ("_patterns",)

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._patterns = [_pattern(spelling) for spelling in _spellings(nodes)]

    def match(self, text: str, pos: int) -> tuple[str, bool, bool]:
        """Return what is at `pos`.

        Returns:
            The name in the header, "" if there is none; whether text that matches is certain to be a header, whatever
            the name; and whether more text may make it one.
        """
        wait = False
        for pattern, certain in self._patterns:
            match = pattern.match(text, pos)
            if match is not None and match["whole"] is not None:
                return match["key"], certain, False
            wait = wait or match is not None
        return "", False, wait

    def is_prefix(self, text: str) -> bool:
        """Return whether `text` is a part of a header."""
        return self.match(text, 0)[2]


def _spellings(nodes: Sequence[Node]) -> list[tuple[Node, ...]]:
    """Return the sequences without alternatives that a sequence can be."""
    spellings: list[tuple[Node, ...]] = [()]
    for node in nodes:
        options = [inner for option in node.options for inner in _spellings(option)] if isinstance(node, OneOf) else []
        spellings = [(*before, *option) for before in spellings for option in options or [(node,)]]
    return spellings


def _pattern(nodes: Iterable[Node]) -> tuple[re.Pattern[str], bool]:
    """Return a pattern with the groups `key` and `whole`, and whether another marker follows the name and its closer.

    The pattern also matches a part of a header at the end of a text, without the group `whole`.
    """
    parts: list[str] = []
    after_key = 0
    for node in nodes:
        match node:
            case Lit(text=text):
                after_key += _KEY in parts
                parts += [*map(re.escape, text), r"\s{0,8}+"]
            case Key():
                parts.append(_KEY)
            case Tag(name=name, attribute=attribute, open=opener):
                parts += [*map(re.escape, opener + name), r"\s{1,8}+", *map(re.escape, f"{attribute}=")]
                parts += ["[\"']", _KEY, "[\"']"]
            case _:
                break
    pattern = "(?P<whole>)"
    for part in reversed(parts):
        pattern = f"{part}(?:{pattern}|\\Z)"
    return re.compile(pattern), after_key > 1


@dataclass(frozen=True, slots=True, eq=False)
class ValueEnd:
    """Rules for the end of a parameter's raw value.

    Attributes:
        close: the value's closing marker.
        follow: by closing marker (of the value, the call or the wrapper), markers before which it ends the value.
        last: the closing markers that the end of the text may follow too.
        call_close: the closing markers of the call, which the end of the text may follow where the call has no wrapper.
        openers: beginnings of the next parameter's header.
        header: pattern of that header.
        missing: where any such header takes the place of the closing marker, declared or not.
        calls: openers of calls and of blocks.
        stops: all of these markers, and the opener of CDATA sections where the format has them.
        newline: one newline at each end belongs to the format.
        edge: number of newlines that the format may write between a value without its closing marker and what follows.
            Each may be a carriage return with a newline.
    """

    close: str
    follow: Mapping[str, MarkerSet]
    last: frozenset[str]
    call_close: frozenset[str]
    openers: frozenset[str]
    header: HeaderPattern
    missing: Literal["never", "line", "anywhere"]
    calls: frozenset[str]
    stops: MarkerSet
    newline: bool
    edge: int


class RawText(ClosedText):
    """A value as raw text, up to its end.

    It ends at the first of these:

    - its closing marker, if another parameter, the end of the call or of the wrapper, or another call follows;
    - the closing marker of the call or of the wrapper, if the end of the wrapper or another call follows;
    - the header of the next parameter, if it is certain to be one.

    In the last two cases the value's own closing marker is missing, and `closer` is another one or "".

    Args:
        rules: where the value ends.
        put: takes the value's text, piece by piece.
        before: text of the value that was read already.
        is_next: take the name in a header, and whether it is certain to be one; return whether it ends the value.
        unwrapped: the call has no wrapper.

    Attributes:
        closer_inside: the value contains its closing marker, outside CDATA sections.
    """

    __slots__ = (
        "_call_inside", "_held", "_in_cdata", "_is_next", "_line_end", "_previous", "_put", "_rules", "_started",
        "_unwrapped", "closer_inside",
    )  # fmt: skip

    def __init__(
        self,
        rules: ValueEnd,
        put: Callable[[str], None],
        before: str = "",
        *,
        is_next: Callable[[str, bool], bool] = lambda _, certain: certain,
        unwrapped: bool = False,
    ) -> None:
        super().__init__(rules.stops.find_any)
        self._rules = rules
        self._put = put
        self._is_next = is_next
        self._unwrapped = unwrapped
        self._in_cdata = False
        self._call_inside = self.closer_inside = False  # such a marker is part of the value
        self._started = not rules.newline  # the newline at the beginning was dealt with
        self._line_end = "\n"  # the newline at the beginning, which the one at the end is like
        self._held = ""  # newlines that are not passed on yet: the end of the value decides whether they belong to it
        self._previous = "\n"
        if before:
            self._text(before)

    def pass_on(self, text: str) -> None:
        """Take a piece in which no stop begins."""
        if self._held or not self._started or text[-1] in "\r\n":
            self._text(text)
        else:
            self._previous = text[-1]
            self._put(text)

    def _text(self, text: str) -> None:
        self._previous = text[-1]
        text = self._held + text
        self._held = ""
        if not self._started:
            if text == "\r":  # the next piece tells whether it begins a newline
                self._held = text
                return
            self._started = True
            if text.startswith("\r\n"):
                self._line_end = "\r\n"
            text = text.removeprefix(self._line_end)
        if edge := self._rules.edge:
            start = len(text) - text.endswith("\r")
            for _ in range(edge):
                start -= text.endswith("\n", 0, start)
                start -= text.endswith("\r", 0, start) and text.startswith("\n", start)
            text, self._held = text[:start], text[start:]
        if text:
            self._put(text)

    def _give_back(self, text: str) -> None:
        self.closer_inside = self.closer_inside or self.closer == self._rules.close
        self._text(text)

    def _finish(self) -> None:
        rules = self._rules
        if self.closer_inside and self.closer not in ("", rules.close):
            # Which of the closing markers is missing, if any, is not certain.
            self.done = False
            self.error = f"{rules.close} is inside the value of a parameter, and missing after it"
            return
        if self._call_inside and self.closer != rules.close:
            # The closing marker may be that of the call inside, behind which the value goes on.
            self.done = False
            self.error = "another call is inside the value of a parameter"
            return
        # Without its closing marker, the value ends before all newlines that the format may have written.
        if self.closer == rules.close:
            newlines = self._held.removesuffix(self._line_end) if rules.newline else self._held
            if newlines:
                self._put(newlines)

    def _read(self, text: str, pos: int, final: bool) -> tuple[int, bool]:
        rules = self._rules
        stops = CDATA_END if self._in_cdata else rules.stops
        start, stop, marker = stops.search(text, pos, final)
        if start > pos:
            self._text(text[pos:start])
        if not marker:
            if start < len(text):
                self.waiting = stops
            return start, start < len(text)
        if self._in_cdata or marker == CDATA:
            # The wrapper of a section is not part of the value.
            self._in_cdata = not self._in_cdata
            self.quick = CDATA_SPECIAL if self._in_cdata else self._special
            return stop, False
        if marker in rules.follow:
            self._closing(marker, text[start:stop])
            return stop, False
        if marker in rules.openers:
            return self._opener(text, start, stop, final)
        self._call_inside = True
        self._text(text[start:stop])
        return stop, False

    def _opener(self, text: str, start: int, stop: int, final: bool) -> tuple[int, bool]:
        """Read the beginning of a parameter's header, which ends the value or is text."""
        rules = self._rules
        ends = rules.missing == "anywhere" or (rules.missing == "line" and self._previous == "\n")
        if not ends or self._call_inside:
            key, certain, wait = rules.header.match(text, start)
            if wait and not final:
                self.waiting = rules.header
                return start, True
            if key and self._call_inside:
                self.error = "another call is inside the value of a parameter"
                return start, False
            ends = ends or (bool(key) and self._is_next(key, certain))
        if ends:
            self.done = True
            self._finish()
            return start, False
        self._text(text[start:stop])
        return stop, False

    def _follows(self, text: str, pos: int, final: bool) -> tuple[bool, bool]:
        follow = self._rules.follow[self.closer]
        marker, wait = follow.match(text, pos, final)
        if wait:
            self.waiting = follow
        # A text that is cut inside the next marker proves nothing about a missing one.
        cut = final and self.closer == self._rules.close and follow.is_prefix(text[pos : pos + follow.longest])
        return bool(marker) or cut, wait

    def _may_end(self) -> bool:
        rules = self._rules
        if self.closer != rules.close and (self.closer_inside or self._call_inside):
            return False
        return self.closer in rules.last or (self._unwrapped and self.closer in rules.call_close)

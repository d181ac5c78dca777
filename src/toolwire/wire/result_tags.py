"""Tags and tokens around the results of tools: how they are named in any format, and in texts of no format.

Text between them is the text of a tool, and no call in it runs, even if the model wrote the tags. The same is true of
whole turns of anybody but the model, see `turn_headers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from toolwire.wire.lookahead import KnownTags
from toolwire.wire.marker_sets import MarkerSet, marker_set
from toolwire.wire.node_markers import ANY_TAG
from toolwire.wire.quotations import MORE_THAN_MENTIONED, Enclosed
from toolwire.wire.turn_headers import HEADS_OF_TURNS, TURN_BRACKETS, role_may_go_on, turn_header

_SIGN = r"[_:.▁-]"
_RESULT_NAME = (
    rf"(?:(?:[\w:.▁-]{{0,60}}{_SIGN})?(?:tool|function|call)s?(?:[_▁-]?(?:call|use)s?)?(?:{_SIGN}[\w:.▁-]{{0,20}})?"
    rf"(?:response|result|output)s?(?:{_SIGN}[\w:.▁-]{{0,40}}|\d{{1,9}})?|observations?)"
)
_END = r"(?<![a-zA-Z])end(?![a-zA-Z])"
# Tokens such as `<|tool_response_end|>` and `<tool_response|>` close a result.
_OPENS = rf"<(?![^<>\s]{{0,160}}?{_END}|\w{{1,80}}[|｜]>)"
_ATTRIBUTES = r"\s[^<>]{0,400}"
RESULT_TAG = rf"{_OPENS}[|｜]?{_RESULT_NAME}(?:{_ATTRIBUTES}(?<!/))?[|｜]?>"
"""A pattern, for any case, of the opening tags and tokens with which the result of a tool begins."""
RESULT_END = r"[<\[][|｜]?/?[\w:▁-]{0,40}(?:response|result|output|observation)[\w:▁-]{0,40}[|｜]?[>\]]"
"""A pattern, for any case, of the tags and tokens with which a result ends."""
QUOTING_BRACKETS = TURN_BRACKETS | {f"[{name}]": frozenset({f"[/{name}]"}) for name in ("TOOL_RESULTS", "TOOL_RESULT")}
"""By token that opens a result or a turn and does not begin as a tag does, the tokens that close it."""

QUOTING_MARKERS = frozenset({ANY_TAG, *HEADS_OF_TURNS, *QUOTING_BRACKETS})
"""Markers at which a result or a turn may begin, in every format and also in reasoning."""

_QUOTING = marker_set(QUOTING_MARKERS)
_BEGINS = re.compile(rf"{_OPENS}([|｜]?{_RESULT_NAME}[|｜]?)(?=[\s>])", re.IGNORECASE)
_MAY_BEGIN = re.compile(r"<[|｜]?[\w:.▁-]{0,160}[|｜]?\Z")
"""Beginnings of a tag or token whose name may become that of a result; no such name is longer."""
_BEGINNING = re.compile(r"(?<![a-z])(?:start|begin)(?![a-z])")
"""The word in the name of a token for which the closing token has the word "end"."""
_PIPES = "|｜"
_NEXT_TURN = frozenset({"<|assistant|>", "<|user|>"})
"""Tokens before which a result ends if the one that opens it is the name of a role, as `<|observation|>` is."""
_REST_OF_TAG = re.compile(r"[^<>]{0,400}>?")


def result_name(text: str, start: int = 0) -> str:
    """Return the name, with its pipes, in the tag or token at this place if it opens a tool's result, or ""."""
    match = _BEGINS.match(text, start)
    return match[1] if match is not None else ""


@lru_cache(maxsize=64)
def closing_tags(name: str) -> MarkerSet:
    """Return what closes such a result: models write tags in another case, or in the plural or singular."""
    written = name.lower()
    closing = _BEGINNING.sub("end", written)
    if closing != written:
        return marker_set(frozenset({f"<{closing}>"}), nocase=True)
    singular = written.strip(_PIPES).removesuffix("s")
    # The plural, white space or the sign behind the name makes no difference to what is hidden.
    tags = frozenset({f"</{singular}"})
    if written[0] in _PIPES:
        tags |= _NEXT_TURN | {f"<|/{singular}", f"<{singular}|>", f"<{singular}s|>"}
    return marker_set(tags, nocase=True)


def quoted_result(text: str, start: int, outside: frozenset[str] = frozenset()) -> Enclosed | None:
    """Return a reader of the result, or of the turn that is not the model's, that begins at this place, or None.

    Args:
        text: the text.
        start: the place.
        outside: markers before which it ends in any case.
    """
    brackets = next((token for token in QUOTING_BRACKETS if text.startswith(token, start)), "")
    name = result_name(text, start)
    before = _NEXT_TURN
    if brackets:
        opener, closers = brackets, QUOTING_BRACKETS[brackets]
    elif name:
        opener, closers = f"<{name}", frozenset(closing_tags(name).spelled)
    elif (header := turn_header(text, start)) is not None:
        opener = text[start : header.end]
        closers = before = header.ends
    else:
        return None
    return Enclosed(opener, marker_set(closers | outside, nocase=True), before | outside)


def spans_of_results(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the results and the turns that are not the model's begin and end in a whole text, in order."""
    tags = ResultTags()
    position = 0
    while position < len(text):
        start, stop, marker = _QUOTING.search(text, position, True)
        if not marker:
            return
        lookahead = MORE_THAN_MENTIONED if marker in QUOTING_BRACKETS else tags
        before = text[start - 1] if start else "\n"
        position = stop
        if not lookahead.opens(text, start, stop, final=True, blank=False, before=before):
            continue
        quoted = quoted_result(text, start)
        if quoted is not None:
            position = quoted.read(text, start, True)
            yield start, position


class ResultTags:
    """A tag that begins with `<` opens a tool's result if its name says so and prose does not mention it.

    The header of a turn does so too.

    Args:
        tools: the tags of known tools, in formats whose tags are named after the tools. A tag of one is a call first,
            even if the tool is named as results are.
    """

    def __init__(self, tools: KnownTags | None = None) -> None:
        self._tools = tools

    def opens(self, text: str, start: int, stop: int, *, final: bool, blank: bool, before: str) -> bool | None:
        """Look at the whole tag and at the character behind it."""
        if self._tools is not None:
            opens = self._tools.opens(text, start, stop, final=final, blank=blank, before=before)
            if opens is not False:
                return opens
        name = result_name(text, start)
        if not name:
            if not final and (_MAY_BEGIN.match(text, start) or role_may_go_on(text, start)):
                return None
            header = turn_header(text, start)
            if header is None:
                return False
            return MORE_THAN_MENTIONED.opens(text, start, header.end, final=final, blank=blank, before=before)
        behind_name = start + 1 + len(name)
        rest = _REST_OF_TAG.match(text, behind_name)
        end = rest.end() if rest is not None else behind_name
        if text[end - 1] == ">":
            if text[end - 2] == "/":
                return False  # an empty element contains nothing
        elif end == len(text) and not final:
            return None
        else:
            end = behind_name
        return MORE_THAN_MENTIONED.opens(text, start, end, final=final, blank=blank, before=before)

    def opens_block(self, text: str, start: int, before: str) -> bool:
        """Return whether the tag at `start`, which opens something, is that of a known tool and not of a result."""
        tools = self._tools
        return tools is not None and tools.opens(text, start, start + 1, final=True, blank=False, before=before) is True

    def is_prefix(self, text: str) -> bool:
        """Return False: the next piece decides."""
        return False

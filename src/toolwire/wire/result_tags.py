"""Tags and tokens around the results of tools: how they are named in any format, and in texts of no format.

Text between them is the text of a tool, and no call in it runs, even if the model wrote the tags.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolwire.wire.lookahead import KnownTags
from toolwire.wire.marker_sets import MarkerSet, marker_set
from toolwire.wire.quotations import MORE_THAN_MENTIONED

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
RESULT_BRACKETS = {f"[{name}]": frozenset({f"[/{name}]"}) for name in ("TOOL_RESULTS", "TOOL_RESULT")}
"""By token that opens a result and does not begin as a tag does, the tokens that close it."""

_BEGINS = re.compile(rf"{_OPENS}([|｜]?{_RESULT_NAME}[|｜]?)(?=[\s>])", re.IGNORECASE)
_MAY_BEGIN = re.compile(r"<[|｜]?[\w:.▁-]{0,160}[|｜]?\Z")
"""Beginnings of a tag or token whose name may become that of a result; no such name is longer."""
_BEGINNING = re.compile(r"(?<![a-z])(?:start|begin)(?![a-z])")
"""The word in the name of a token for which the closing token has the word "end"."""
_PIPES = "|｜"
_NEXT_TURN = frozenset({"<|assistant|>", "<|user|>"})
"""Tokens that close a result if the one that opens it is the name of a role, as `<|observation|>` is."""
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


class ResultTags:
    """A tag that begins with `<` opens a tool's result if its name says so and prose does not mention it.

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
            return None if not final and _MAY_BEGIN.match(text, start) else False
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

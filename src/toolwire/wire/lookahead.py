"""Openers that other text contains too: what has to follow one, so that a block begins there."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

from toolwire.wire.leaf_scanners import NAME_LIMIT

_NAME = re.compile(r"[A-Za-z_][-\w.:]*", re.ASCII)
_SPACE = frozenset(" \t\n\r")


class Lookahead(Protocol):
    """A condition on the text behind an opener."""

    def opens(self, text: str, start: int, stop: int, *, final: bool, blank: bool, before: str) -> bool | None:
        """Return whether a block begins with the opener at `start`, which ends at `stop`.

        Args:
            text: the text.
            start: where the opener begins.
            stop: where it ends.
            final: the text ends with this piece.
            blank: no content but white space came before.
            before: the character before the opener; "" after a block.

        Returns:
            None if more text is needed to decide.
        """

    def is_prefix(self, text: str) -> bool:
        """Return whether more text is needed to decide about `text`, which begins with the opener."""


class NextCharacter:
    """One of some characters has to follow, except at the start of the message."""

    def __init__(self, characters: Iterable[str]) -> None:
        self._characters = frozenset(characters) | _SPACE

    def opens(self, text: str, start: int, stop: int, *, final: bool, blank: bool, before: str) -> bool | None:
        """Look at the character behind the opener."""
        if blank:
            return True
        if stop == len(text) and not final:
            return None
        return text[stop : stop + 1] in self._characters

    def is_prefix(self, text: str) -> bool:
        """Return False: the next piece decides."""
        return False


class KnownTags:
    """`<` and the name of a known tool have to make a tag, which is not quoted by a backtick.

    The number of tools does not matter: a name is looked up, and the beginning of a name in a sorted list.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(name for name in names if _NAME.fullmatch(name))
        self._sorted = sorted(self._names)

    def opens(self, text: str, start: int, stop: int, *, final: bool, blank: bool, before: str) -> bool | None:
        """Look the name up that follows `<`."""
        # Inline code quotes a tag. Other formats have markers that no prose would contain, but this is ordinary XML.
        if before == "`":
            return False
        # The end is limited, because a text may be one word of a megabyte that arrives in pieces.
        match = _NAME.match(text, stop, stop + NAME_LIMIT + 1)
        end = match.end() if match is not None else stop
        if end == len(text):
            return None if not final and self._begins(text[stop:end]) else False
        return text[stop:end] in self._names and (text[end] in _SPACE or text[end] in ">/")

    def is_prefix(self, text: str) -> bool:
        """Return whether a known tool's name may begin like this."""
        return text[:1] == "<" and self._begins(text[1:])

    def without(self, names: Iterable[str]) -> KnownTags:
        """Return the lookahead for all tools but those with these names."""
        # Parameters are rarely called like a tool, and there may be a thousand tools.
        names = frozenset(names)
        return self if names.isdisjoint(self._names) else KnownTags(self._names - names)

    def _begins(self, text: str) -> bool:
        at = bisect_left(self._sorted, text)
        return at < len(self._sorted) and self._sorted[at].startswith(text)


@lru_cache(maxsize=64)
def next_character(names: tuple[str, ...]) -> NextCharacter:
    """Return the lookahead that accepts the first letters of these names."""
    return NextCharacter(name[0] for name in names)


@lru_cache(maxsize=64)
def known_tags(names: tuple[str, ...]) -> KnownTags:
    """Return the lookahead that accepts the tags of these tools, made once for the same tools."""
    return KnownTags(names)

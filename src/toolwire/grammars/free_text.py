"""Text around calls: where a marker of calls may appear in it, and where only calls may follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from toolwire.grammars.algebra import (
    NOTHING,
    SPACE,
    Expression,
    Lexeme,
    chars,
    chars_except,
    choice,
    lexeme,
    literal,
    optional,
    repeat,
    sequence,
    space,
    without_prefix,
)
from toolwire.grammars.prose import prose
from toolwire.grammars.value_rules import Rules

_BLANKS = " \t\r\n"
MAX_NAME = 40
"""Maximum length of the part of a name that is looked at behind a marker, in characters."""


@dataclass(frozen=True, slots=True)
class Opener:
    """A text by which calls begin for certain.

    Attributes:
        marker: the text.
        names: texts one of which has to follow the marker, so that a call begins; none if the marker alone begins one.
    """

    marker: str
    names: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts by which calls begin."""
        return tuple(self.marker + name for name in self.names) or (self.marker,)

    @property
    def border(self) -> str:
        """The longest beginning of the marker that is its end too: text behind a marker may continue the next one."""
        ends = (self.marker[at:] for at in range(1, len(self.marker) + 1))
        return next(end for end in ends if self.marker.startswith(end))


class FreeText:
    """Text without calls, and text before and behind calls.

    Attributes:
        opener: the text by which calls begin; None if they have none for certain.
        closed_start: characters that text without calls does not begin with, because a call would begin so.
        inside_opener: markers that the text may contain, because the opener contains them.
        banned: the other markers, none of which the text contains, apart from `permitted`.
        permitted: banned markers that the text may contain after all, because an expression cannot exclude them.
    """

    def __init__(
        self,
        opener: Opener | None,
        markers: Iterable[str],
        closed_start: str,
        rules: Rules,
        *,
        reasoning_start: str = "",
    ) -> None:
        """Prepare the expressions.

        Args:
            opener: the text by which calls begin; None if they have none for certain.
            markers: all markers by which calls may begin.
            closed_start: characters that text without calls does not begin with.
            rules: the grammar that the expressions become part of.
            reasoning_start: a marker that begins reasoning; text does not contain it, unless markers overlap too much.
        """
        self.opener = opener
        self.closed_start = closed_start
        self._rules = rules
        start = opener.marker if opener else ""
        markers = [marker for marker in markers if marker != start]
        self.inside_opener = tuple(marker for marker in markers if marker in start)
        self.banned = tuple(marker for marker in markers if marker not in start)
        words = tuple(marker for marker in self.banned if not (start and marker.startswith(start)))
        ends = (start,) if start else ()
        if reasoning_start and not (start and reasoning_start.startswith(start)):
            words = (*words, reasoning_start)
        self._prose = prose(ends, words)
        self._first = "".join(sorted({word[0] for word in (*words, *ends)}))
        # Where a name has to follow the marker, a longer marker is excluded only by markers inside it.
        named = self.banned if opener is not None and opener.names else ()
        hidden = [marker for marker in named if not any(word in marker for word in words)]
        self.permitted = tuple(word for word in (*self._prose.permitted, *hidden) if word != reasoning_start)

    def alone(self) -> Expression:
        """Return text without calls, which may be empty."""
        closed = self.closed_start
        return self._text(NOTHING, (lambda text: _after_start(text, closed)) if closed else None)

    def before(self, calls: Expression) -> Expression:
        """Return text without calls, or text and then calls, which begin with the opener."""
        if self.opener is None:
            return choice([calls, self.alone()])
        return self._text(without_prefix(calls, self.opener.marker, self._rules.rules))

    def after(self, calls: Expression) -> Expression:
        """Return calls that text may follow, which begins with a blank or a letter and contains no further call."""
        # White space has a lexeme of its own, the one between two calls: a lexer would not give it back for a call.
        text = self._text(NOTHING, lambda text: _after_start(text, f"<[{{(`,;|{SPACE}"))
        return sequence(calls, repeat(space(" ")), text)

    def _text(self, rest: Expression, change: Callable[[Lexeme], Expression] | None = None) -> Expression:
        """Return text, as `change` restricts its beginning, behind whose marker the rest of calls may follow."""
        text: Expression = self._prose.text
        until: Expression = self._prose.until
        if change is not None:
            text, until = change(self._prose.text), change(self._prose.until)
        if self.opener is None or (rest == NOTHING and not self.opener.names):
            return optional(text)
        return choice([sequence(until, self._behind_marker(rest, self.opener)), optional(text)])

    def _behind_marker(self, rest: Expression, opener: Opener) -> Expression:
        """Return what may follow the marker: the rest of calls, and text that begins as none of them does."""
        if not opener.names:
            return rest
        name = f"behind the marker, {'text' if rest == NOTHING else 'calls or text'}"
        return self._rules.rule(name, lambda: self._calls_or_text(rest, opener))

    def _calls_or_text(self, rest: Expression, opener: Opener) -> Expression:
        # Text up to the next marker is one lexeme, and a lexer gives no character back. So the text behind a marker
        # begins with the first character in which it differs from all names, or before one that may begin a marker.
        # That beginning is part of the lexeme: where a short one ends, xgrammar tries almost all tokens one by one.
        names = list(dict.fromkeys(name[:MAX_NAME] for name in opener.names))
        blank = chars(_BLANKS)  # the reader takes white space between the marker and a name
        differing = sequence(repeat(blank), _differing(names, self._first, self._first + _BLANKS))
        beginning = choice([sequence(repeat(blank), _beginnings(names, self._first)), repeat(blank, 1)])
        return choice(
            [
                rest,
                self._text(rest, lambda text: lexeme(sequence(differing, text.part))),
                sequence(lexeme(beginning), self._at_marker(rest, "")),
                self._at_marker(rest, opener.border),
            ]
        )

    def _at_marker(self, rest: Expression, prefix: str) -> Expression:
        """Return text, which may be empty, that begins as a marker does; `prefix` was read before."""
        return self._text(rest, lambda text: _at_one_of(text, self._first, prefix))


def _after_start(text: Lexeme, closed: str) -> Expression:
    """Return text behind a character outside a set."""
    return lexeme(sequence(chars_except(closed), text.part))


@lru_cache(256)  # the markers are those of the format
def _at_one_of(text: Lexeme, first: str, prefix: str) -> Expression:
    """Return the texts that begin with one of some characters, without the prefix that was read before it."""
    rests = {character: without_prefix(text.part, prefix + character, {}) for character in first}
    return lexeme(choice(sequence(literal(character), rest) for character, rest in rests.items()))


def _differing(names: Iterable[str], first: str, others: str) -> Expression:
    """Return the texts that begin as names do and end with a character in which they differ from all.

    Args:
        names: the names, none of which begins with another.
        first: characters by which they do not differ.
        others: the same for the first character.
    """
    tails = _tails(names)
    different = chars_except("".join(tails) + others)
    inside = (sequence(literal(head), _differing(inner, first, first)) for head, inner in tails.items() if all(inner))
    return choice([*([different] if different.ranges else []), *inside])


def _beginnings(names: Iterable[str], first: str) -> Expression:
    """Return the beginnings of names behind which no name has one of the characters `first`."""
    options: list[Expression] = []
    for head, tails in _tails(names).items():
        if all(tails):
            inner = _beginnings(tails, first)
            may_end = not any(tail[0] in first for tail in tails)
            options.append(sequence(literal(head), optional(inner) if may_end else inner))
    return choice(options)


def _tails(names: Iterable[str]) -> dict[str, list[str]]:
    """Return what follows each first character of names."""
    tails: dict[str, list[str]] = {}
    for name in names:
        tails.setdefault(name[0], []).append(name[1:])
    return tails

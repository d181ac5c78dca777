"""Text in which some markers do not appear, or which ends at one: one regular expression, which every engine reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from toolwire.errors import DefinitionError
from toolwire.grammars.algebra import (
    EMPTY,
    NOTHING,
    Expression,
    Lexeme,
    chars,
    chars_except,
    choice,
    inside,
    repeat,
    sequence,
)

MAX_SIZE = 1400
"""Maximum number of parts of an expression for text between markers; engines take long to read larger ones."""


def _size(part: Expression, sizes: dict[int, tuple[Expression, int]]) -> int:
    """Return the number of parts of an expression; parts are remembered by identity, because they are shared."""
    if id(part) not in sizes:
        sizes[id(part)] = (part, 1 + sum(_size(inner, sizes) for inner in inside(part)))
    return sizes[id(part)][1]


class Prose:
    """Text in which some markers do not appear, or end it: one regular expression, whatever the markers overlap in.

    The markers make an automaton whose states are the beginnings of markers that the text may be inside. Its states
    become expressions from the longest beginning to the empty one.

    Attributes:
        text: any text without the markers, which may be empty, as one lexeme.
        until: text up to and including the first marker that ends it, as one lexeme.
        permitted: banned markers that the text may contain after all, because the markers overlap in too many ways.
    """

    def __init__(self, markers: Iterable[str], banned: Sequence[str] = ()) -> None:
        """Make the expressions for texts that end at a marker and contain none that is banned.

        Where the markers overlap in too many ways, the last banned ones are permitted.
        """
        self._ends = dict.fromkeys(markers)
        self._words = [*self._ends, *(word for word in dict.fromkeys(banned) if word not in self._ends)]
        ways = self._reduce() or self._with_fewer_words()
        loop = repeat(ways["loop"])
        self.text = Lexeme(sequence(loop, ways["stop"]))
        self.until = Lexeme(sequence(loop, choice(ways.get(f"end {marker}", NOTHING) for marker in self._ends)))
        self.permitted = tuple(dict.fromkeys(word for word in banned if word not in self._words))

    def _with_fewer_words(self) -> dict[str, Expression]:
        """Return the ways of the empty beginning where the last banned markers do not count.

        Raises:
            DefinitionError: the markers that end the text overlap in too many ways by themselves.
        """
        # Banned markers are those of shapes that models write by mistake. Text may then contain them, and the parser
        # reads them; the markers that end the text are never left out.
        while len(self._words) > len(self._ends):
            self._words.pop()
            if (ways := self._reduce()) is not None:
                return ways
        raise DefinitionError(f"these markers overlap in too many ways for a grammar: {', '.join(self._words)[:200]}")

    def _reduce(self) -> dict[str, Expression] | None:
        """Return the ways from the empty beginning past all others; None if they are too many."""
        edges = self._edges()
        sizes: dict[int, tuple[Expression, int]] = {}
        # The longest beginnings go first: almost every one of them is entered from one state alone, so that its way
        # is copied once. Only where markers overlap are ways copied more often.
        for state in sorted(edges, key=len, reverse=True):
            if state:
                changed = self._remove(edges, state)
                if any(_size(way, sizes) > MAX_SIZE for row in changed for way in row.values()):
                    return None
        total = sum(_size(way, sizes) for way in edges[""].values())
        return edges[""] if total <= MAX_SIZE or len(self._words) == len(self._ends) else None

    def _edges(self) -> dict[str, dict[str, Expression]]:
        """Return for each state what leads where: "to STATE", "loop", "end MARKER", or "stop" for the text's end."""
        states = {word[:at] for word in self._words for at in range(len(word))}
        alphabet = sorted({character for word in self._words for character in word})
        # Where a character leads from a state: a state, a marker, or None for a banned one. Only characters count that
        # do not lead to the empty state.
        leads: dict[str, dict[str, str | None]] = {}
        edges: dict[str, dict[str, Expression]] = {}
        waiting = [("", "")]
        for state, longest_suffix in waiting:
            row = dict(leads[longest_suffix]) if state else {}
            fallback = dict(row)
            for character in alphabet:
                longer = state + character
                if longer in self._words:
                    row[character] = longer if longer in self._ends else None
                elif longer in states and not self._is_over(fallback.get(character, "")):
                    row[character] = longer
                    waiting.append((longer, fallback.get(character) or ""))
            leads[state] = row
            edges[state] = self._ways(state, row)
        return edges

    def _is_over(self, target: str | None) -> bool:
        """Return whether a marker ends here, so that no longer one can."""
        return target is None or target in self._ends

    def _ways(self, state: str, leads: Mapping[str, str | None]) -> dict[str, Expression]:
        targets: dict[str, list[str]] = {}
        for character, target in leads.items():
            if target is not None:
                kind = "loop" if target == state else f"end {target}" if target in self._ends else f"to {target}"
                targets.setdefault(kind, []).append(character)
        ways: dict[str, Expression] = {kind: chars("".join(letters)) for kind, letters in targets.items()}
        home = chars_except("".join(leads))
        if home.ranges:
            ways["to " if state else "loop"] = home
        return {**ways, "stop": EMPTY}

    @staticmethod
    def _remove(edges: dict[str, dict[str, Expression]], state: str) -> list[dict[str, Expression]]:
        """Replace the ways through a state by ways past it; return the ways of the states that lead there."""
        ways = edges.pop(state)
        loop = repeat(ways.pop("loop", NOTHING))
        changed: list[dict[str, Expression]] = []
        for other, row in edges.items():
            into = row.pop(f"to {state}", None)
            if into is None:
                continue
            through = sequence(into, loop)
            for target, way in ways.items():
                key = "loop" if target == f"to {other}" else target
                row[key] = choice([row.get(key, NOTHING), sequence(through, way)])
            changed.append(row)
        return changed


@lru_cache(256)
def prose(markers: tuple[str, ...], banned: tuple[str, ...] = ()) -> Prose:
    """Return the expressions for text around these markers; see `Prose`."""
    return Prose(markers, banned)

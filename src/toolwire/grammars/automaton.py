"""The smallest automaton of an expression without rules: one state at each place, whatever was read before."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from toolwire.grammars.algebra import (
    Chain,
    Chars,
    Either,
    Expression,
    Fixed,
    Lexeme,
    Repeat,
    RuleName,
    chars,
    inside,
    union,
)


class State(NamedTuple):
    """A place in a text.

    Attributes:
        may_end: the text may end here.
        ways: sets of characters, each with the number of the state to which they lead.
    """

    may_end: bool
    ways: tuple[tuple[Chars, int], ...]


def counts(part: Expression) -> bool:
    """Return whether an expression counts repetitions, each of which would be a state."""
    return (isinstance(part, Repeat) and (part.least > 1 or (part.most or 0) > 1)) or any(map(counts, inside(part)))


def automaton(part: Expression) -> tuple[State, ...]:
    """Return the states of an expression without rules and counts; the first one is the beginning."""
    return _smallest(_deterministic(_before(part, _Place(is_end=True))))


@dataclass(slots=True, eq=False)
class _Place:
    """A place in an expression.

    Attributes:
        ways: the characters that lead to other places.
        same: places at which the text is too, without a character.
        is_end: the expression ends here.
    """

    ways: list[tuple[Chars, _Place]] = field(default_factory=list)
    same: list[_Place] = field(default_factory=list)
    is_end: bool = False


def _before(part: Expression, after: _Place) -> _Place:
    """Return the place before an expression that ends at a place."""
    match part:
        case Fixed(text):
            for character in reversed(text):
                after = _Place([(chars(character), after)])
            return after
        case Chars():
            return _Place([(part, after)])
        case Chain(parts):
            for inner in reversed(parts):
                after = _before(inner, after)
            return after
        case Either(options):
            return _Place(same=[_before(option, after) for option in options])
        case Lexeme(inner):
            return _before(inner, after)
        case Repeat(inner, least, most):
            loop = _Place(same=[after])
            loop.same.append(_before(inner, loop if most is None else after))
            return _before(inner, loop) if least else loop
        case RuleName(name):
            raise AssertionError(f"the rule {name!r} inside a lexeme")


def _closed(places: Iterable[_Place]) -> frozenset[_Place]:
    """Return places with all those that are the same."""
    closed: dict[_Place, None] = {}
    waiting = list(places)
    while waiting:
        place = waiting.pop()
        if place not in closed:
            closed[place] = None
            waiting += place.same
    return frozenset(place for place in closed if place.ways or place.is_end)


def _deterministic(start: _Place) -> list[State]:
    """Return the automaton in which each character leads to one state."""
    numbers: dict[frozenset[_Place], int] = {}
    waiting = [_closed([start])]
    numbers[waiting[0]] = 0
    states: list[State] = []
    for places in waiting:
        ways: dict[int, list[tuple[int, int]]] = {}
        for low, high, targets in _pieces(places):
            following = _closed(targets)
            if following not in numbers:
                numbers[following] = len(numbers)
                waiting.append(following)
            ways.setdefault(numbers[following], []).append((low, high))
        sets = tuple((Chars(tuple(ranges)), target) for target, ranges in ways.items())
        states.append(State(any(place.is_end for place in places), sets))
    return states


def _pieces(places: Iterable[_Place]) -> Iterator[tuple[int, int, list[_Place]]]:
    """Yield ranges of characters that lead to the same places, with these places."""
    changes: dict[int, list[tuple[bool, _Place]]] = {}
    for place in places:
        for part, target in place.ways:
            for low, high in part.ranges:
                changes.setdefault(low, []).append((True, target))
                changes.setdefault(high + 1, []).append((False, target))
    open_targets: dict[_Place, int] = {}
    points = sorted(changes)
    for low, end in itertools.pairwise(points):
        for begins, target in changes[low]:
            open_targets[target] = open_targets.get(target, 0) + (1 if begins else -1)
        targets = [target for target, count in open_targets.items() if count]
        if targets:
            yield low, end - 1, targets


def _smallest(states: list[State]) -> tuple[State, ...]:
    """Return the automaton with the fewest states: those behind which the same texts may follow become one."""
    groups = _numbered(state.may_end for state in states)
    while True:
        kinds = [(groups[at], State(may_end, _ways(ways, groups))) for at, (may_end, ways) in enumerate(states)]
        finer = _numbered(kinds)
        if max(finer) == max(groups):
            return tuple(state for _, state in dict.fromkeys(kinds))
        groups = finer


def _numbered(values: Iterable[Hashable]) -> list[int]:
    """Return the numbers of values, in the order in which each comes first."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


def _ways(ways: Iterable[tuple[Chars, int]], groups: list[int]) -> tuple[tuple[Chars, int], ...]:
    """Return ways to states as ways to their groups, one to each."""
    sets: dict[int, list[Chars]] = {}
    for part, target in ways:
        sets.setdefault(groups[target], []).append(part)
    return tuple(sorted(((union(*parts), group) for group, parts in sets.items()), key=lambda way: way[1]))

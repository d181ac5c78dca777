"""Results of pure functions, held by the very values they were made of: nothing is hashed or compared."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

_T = TypeVar("_T")

MOST = 512


class Memo:
    """Results by the identity of what they were made of; the oldest go first.

    The values are held as well, so that no other gets their identity. They must not change.

    Args:
        most: results that are held.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._made: dict[Hashable, tuple[tuple[object, ...], Any]] = {}

    def get(self, make: Callable[[], _T], values: Iterable[object], *names: Hashable) -> _T:
        """What `make` gave for these values and names, or gives now."""
        held = tuple(values)
        key = (names, *map(id, held))
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= self._most:
                self._made.pop(next(iter(self._made)), None)
            found = self._made[key] = held, make()
        result: _T = found[1]
        return result

"""A bounded cache keyed by object identity: arguments are neither hashed nor compared."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

_T = TypeVar("_T")

MAX_ENTRIES = 512


class IdentityCache:
    """Results of pure functions, by the identity of their arguments; the oldest entries go first.

    Args:
        max_entries: the maximum number of results.
    """

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        # The arguments are stored as well: as long as they exist, no other object gets their identity.
        self._entries: dict[Hashable, tuple[tuple[object, ...], Any]] = {}

    def get(self, compute: Callable[[], _T], values: Iterable[object], *names: Hashable) -> _T:
        """Return the cached result for these values and names, or compute it now.

        The values must not change afterwards.
        """
        arguments = tuple(values)
        key = (names, *map(id, arguments))
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= self._max_entries:
                self._entries.pop(next(iter(self._entries)), None)
            entry = self._entries[key] = arguments, compute()
        result: _T = entry[1]
        return result

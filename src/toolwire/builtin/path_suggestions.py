"""Suggest existing paths for a path that does not exist.

Tools do not know the policy, so a suggestion must not be a way around it. Of other directories only the requested name
is suggested, and similar names only of the requested directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePath
from time import monotonic
from typing import Literal

from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.search.re2_search import is_skipped
from toolwire.text.escape import escape_invisible
from toolwire.text.suggest import closest, did_you_mean

LOOKED_AT = 5_000
"""Maximum number of names that are examined."""
SECONDS = 0.2
"""Maximum duration of the search."""
NAMED = 3
ALIKE = 0.8

Kind = Literal["file", "directory", "any"]


@contextmanager
def helpful(roots: AllowedRoots, path: str, kind: Kind, *, suggestions: bool = True) -> Iterator[None]:
    """Add suggestions to the error of a path that does not exist.

    Args:
        roots: the allowed directories.
        path: the path as it was given.
        kind: which names are suggested.
        suggestions: False adds none.

    Raises:
        ToolError: the error of the block, with suggestions if the path does not exist.
    """
    try:
        yield
    except ToolError as error:
        missing = suggestions and isinstance(error.__cause__, FileNotFoundError)
        matches = _alike(roots, PurePath(path), kind) if missing else []
        if not matches:
            raise
        raise ToolError(f"{error}{did_you_mean(map(escape_invisible, matches))}") from error


def _alike(roots: AllowedRoots, path: PurePath, kind: Kind) -> list[str]:
    """Return paths with the same name, otherwise the nearest names in the same directory."""
    left = _Room()
    first, *other_roots = roots.roots
    matches: list[str] = []
    for root in (first, *other_roots):
        for name in left.names(roots, str(root), kind, deep=True):
            if PurePath(name).name == path.name:
                matches.append(name if root is first else str(root / name))
                if len(matches) == NAMED:
                    return matches
    if matches:
        return matches
    names = list(_Room().names(roots, str(path.parent), kind, deep=False))
    return [str(path.parent / name) for name in closest(path.name, names, limit=NAMED, similarity=ALIKE)]


class _Room:
    """Limits of one search."""

    def __init__(self) -> None:
        self._entries = LOOKED_AT
        self._until = monotonic() + SECONDS

    def names(self, roots: AllowedRoots, path: str, kind: Kind, *, deep: bool) -> Iterator[str]:
        """Yield the names of one kind in a directory, up to the limits; names that are skipped count too."""
        with suppress(ToolError):  # the directory may be what is not there
            for name, directory in roots.names(path, is_skipped, deep=deep, most=self._entries):
                self._entries -= 1
                if monotonic() > self._until:
                    return
                if name and (kind == "any" or directory == (kind == "directory")):
                    yield name

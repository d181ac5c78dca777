"""What there is in place of a path that there is not, so that a model need not guess again.

Tools know no policy, so what is told must be no way around one: of other directories the very name alone that was asked
for, and names nearly like it of the directory that was asked for.
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
"""Names, of files and directories, at which the search for one ends."""
SECONDS = 0.2
"""After which it ends, too."""
NAMED = 3
ALIKE = 0.8

Kind = Literal["file", "directory", "any"]


@contextmanager
def helpful(roots: AllowedRoots, path: str, kind: Kind, *, suggestions: bool = True) -> Iterator[None]:
    """Around the use of a path: if it is not there, the error names what is called so elsewhere, or nearly so there.

    Args:
        roots: where it was looked for, and where others are.
        path: as it was given.
        kind: what is named.
        suggestions: whether anything is.

    Raises:
        ToolError: whatever was raised inside, with names where the path is not there.
    """
    try:
        yield
    except ToolError as error:
        missing = suggestions and isinstance(error.__cause__, FileNotFoundError)
        found = _alike(roots, PurePath(path), kind) if missing else []
        if not found:
            raise
        raise ToolError(f"{error}{did_you_mean(map(escape_invisible, found))}") from error


def _alike(roots: AllowedRoots, path: PurePath, kind: Kind) -> list[str]:
    """What has the name of a path somewhere, or else the nearest names in the directory that it names."""
    left = _Room()
    first, *others = roots.roots
    found: list[str] = []
    for root in (first, *others):
        for one in left.names(roots, str(root), kind, deep=True):
            if PurePath(one).name == path.name:
                found.append(one if root is first else str(root / one))
                if len(found) == NAMED:
                    return found
    if found:
        return found
    there = list(_Room().names(roots, str(path.parent), kind, deep=False))
    return [str(path.parent / one) for one in closest(path.name, there, limit=NAMED, similarity=ALIKE)]


class _Room:
    """How far is looked."""

    def __init__(self) -> None:
        self._entries = LOOKED_AT
        self._until = monotonic() + SECONDS

    def names(self, roots: AllowedRoots, path: str, kind: Kind, *, deep: bool) -> Iterator[str]:
        """What is in a directory, of that kind, as far as there is room; what is passed over takes room as well."""
        with suppress(ToolError):  # the directory may be what is not there
            for name, directory in roots.names(path, is_skipped, deep=deep, most=self._entries):
                self._entries -= 1
                if monotonic() > self._until:
                    return
                if name and (kind == "any" or directory == (kind == "directory")):
                    yield name

"""What there is in place of a path that there is not, so that a model need not guess again."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import PurePath

from toolwire.display import visible
from toolwire.errors import ToolError
from toolwire.roots import AllowedRoots

SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages"})
LOOKED_AT = 2_000
"""Files at which the search for a name ends."""
NAMED = 3
ALIKE = 0.8


def passed_over(name: str) -> bool:
    """Whether files and directories of this name are left out where nobody named them."""
    return name.startswith(".") or name in SKIPPED


@contextmanager
def helpful(roots: AllowedRoots, path: str) -> Iterator[None]:
    """Around the use of a path: if it is not there, the error names files that are called so, or nearly so.

    Args:
        roots: where it was looked for, and where others are.
        path: as it was given.

    Raises:
        ToolError: whatever was raised inside, with names where the path is not there.
    """
    try:
        yield
    except ToolError as error:
        found = _alike(roots, PurePath(path).name) if isinstance(error.__cause__, FileNotFoundError) else []
        if not found:
            raise
        raise ToolError(f"{error}; did you mean {' or '.join(map(visible, found))}?") from error


def _alike(roots: AllowedRoots, name: str) -> list[str]:
    """Files below the roots that have a name, or else the nearest."""
    files: dict[str, list[str]] = {}
    for one in islice(_files(roots), LOOKED_AT):
        files.setdefault(PurePath(one).name, []).append(one)
    names = [name] if name in files else difflib.get_close_matches(name, files, n=NAMED, cutoff=ALIKE)
    return [path for one in names for path in files[one]][:NAMED]


def _files(roots: AllowedRoots) -> Iterator[str]:
    first, *others = roots.roots
    for root in (first, *others):
        for name, _ in roots.files(str(root), passed_over, lambda why: None):
            yield name if root is first else str(root / name)

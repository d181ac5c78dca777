"""Did you mean: the known names that are nearest to an unknown one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

_KindT = TypeVar("_KindT", bound=type)

SIMILARITY = 0.5
"""Smallest similarity of a suggestion, from 0 to 1, as `difflib` measures it."""


def closest(name: str, known: Iterable[str], *, limit: int = 1, similarity: float = SIMILARITY) -> list[str]:
    """Return the known names nearest to a name, whatever their case; the best comes first.

    Args:
        name: the name that is not known.
        known: the names to choose from.
        limit: the maximum number of names.
        similarity: the smallest similarity of a name, from 0 to 1.
    """
    import difflib  # here, since only failures need it, and every command would pay for it

    spellings: dict[str, list[str]] = {}
    for candidate in known:
        spellings.setdefault(candidate.casefold(), []).append(candidate)
    near = difflib.get_close_matches(name.casefold(), spellings, n=limit, cutoff=similarity)
    return [candidate for folded in near for candidate in spellings[folded]][:limit]


def did_you_mean(names: Iterable[str]) -> str:
    """Return the end of a sentence that suggests these names, or "" if there are none."""
    listed = " or ".join(names)
    return f"; did you mean {listed}?" if listed else ""


def check_options(function: str, options: Iterable[str], known: Collection[str]) -> None:
    """Check the names of keyword arguments that are passed on as a dict.

    Raises:
        TypeError: a name is not known; the message suggests the nearest one.
    """
    for name in options:
        if name not in known:
            hint = did_you_mean(closest(name, known)) or f"; it takes {', '.join(sorted(known))}"
            raise TypeError(f"{function}() has no argument {name!r}{hint}")


def suggests_keywords(kind: _KindT) -> _KindT:
    """Make the constructor of a dataclass suggest the nearest name for a misspelt keyword argument.

    Python's own error names the class and the unknown argument alone, and settings have many names. The signature
    stays what it was, for type checkers and for `inspect`.
    """
    construct = vars(kind)["__init__"]
    names = frozenset(field.name for field in fields(kind) if field.init)

    @wraps(construct)
    def checked(self: Any, *values: Any, **options: Any) -> None:
        if not names.issuperset(options):
            check_options(kind.__name__, options, names)
        construct(self, *values, **options)

    kind.__init__ = checked  # type: ignore[misc]
    return kind

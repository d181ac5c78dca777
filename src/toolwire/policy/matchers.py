"""What a rule says about one argument: text, paths, values, numbers; commands and hosts have modules of their own.

Each is asked in two ways. `surely` is for rules that allow, and is false in doubt; `maybe` is for rules that ask or
deny, and is true in doubt.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol
from urllib.parse import unquote


class Matcher(Protocol):
    """Whether a rule fits an argument."""

    def surely(self, value: Any) -> bool:
        """It certainly does: for rules that allow."""
        ...

    def maybe(self, value: Any) -> bool:
        """It cannot be ruled out: for rules that deny or ask."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """Text that a glob fits: `*` any characters, `?` one."""

    glob: str

    def surely(self, value: Any) -> bool:
        """The whole text fits."""
        return isinstance(value, str) and fnmatchcase(value, self.glob)

    def maybe(self, value: Any) -> bool:
        """The text fits, case aside; or it is no text."""
        return not isinstance(value, str) or fnmatchcase(value.casefold(), self.glob.casefold())


@dataclass(frozen=True, slots=True)
class PathGlob:
    """Paths below a place: `*` is any name, `**` any number of them.

    It is the path that a call says which is looked at, and no file: where a link leads, it does not know.

    Attributes:
        glob: the pattern, `/` between names.
        base: what relative paths begin at. Without one, a rule that asks or denies fits a relative pattern at any
            depth, since an absolute path may lead to the same place.
    """

    glob: str
    base: str = "/"

    def surely(self, value: Any) -> bool:
        """The path fits, and says plainly where it leads."""
        if not isinstance(value, str) or "\0" in value or "\\" in value or value.startswith("~"):
            return False
        return _path_fits(self._names(value), self._pattern())

    def maybe(self, value: Any) -> bool:
        """The path fits in some spelling; or it is no path."""
        if not isinstance(value, str) or "\0" in value or value.startswith("~"):
            return True
        spellings = {value, value.replace("\\", "/"), unquote(value), value.strip()}
        pattern = [name.casefold() for name in self._pattern()]
        if self.base == "/" and not self.glob.startswith("/"):
            pattern = ["**", *pattern]
        return any(_path_fits([name.casefold() for name in self._names(one)], pattern) for one in spellings)

    def _names(self, path: str) -> list[str]:
        return [name for name in posixpath.normpath(posixpath.join(self.base, path)).split("/") if name]

    def _pattern(self) -> list[str]:
        return self._names(self.glob)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Values that are equal to one of these; 1 is not true, and text is no number."""

    values: tuple[Any, ...]

    def surely(self, value: Any) -> bool:
        """It is one of them."""
        return any(_same(value, one) for one in self.values)

    def maybe(self, value: Any) -> bool:
        """It is one of them, case aside; or it holds other values."""
        return isinstance(value, list | dict) or any(_same(_folded(value), _folded(one)) for one in self.values)


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)


def _folded(value: Any) -> Any:
    return value.strip().casefold() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Number:
    """Numbers in a range, its ends included; None: it has no such end."""

    at_least: float | None = None
    at_most: float | None = None

    def surely(self, value: Any) -> bool:
        """A number in the range."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def maybe(self, value: Any) -> bool:
        """A number in the range, or none that can be compared."""
        comparable = isinstance(value, int | float) and not isinstance(value, bool) and value == value
        return self.surely(value) or not comparable


def _path_fits(names: list[str], pattern: list[str]) -> bool:
    """Whether names fit a pattern in which `**` is any number of names; in time of their product."""
    reached = {0}
    for name in [*names, None]:
        closed = set(reached)
        for at in sorted(reached):
            while at < len(pattern) and pattern[at] == "**":
                at += 1
                closed.add(at)
        if name is None:
            return len(pattern) in closed
        reached = {at for at in closed if at < len(pattern) and pattern[at] == "**"}
        reached |= {
            at + 1 for at in closed if at < len(pattern) and pattern[at] != "**" and fnmatchcase(name, pattern[at])
        }
    return False

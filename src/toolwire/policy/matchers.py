"""Matchers of arguments in rules: text, paths, values and numbers.

Each has two methods. `surely` is for rules that allow, and is false in doubt. `maybe` is for rules that ask or deny,
and is true in doubt.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import NoneType
from typing import Any, Protocol
from unicodedata import category
from urllib.parse import unquote

from toolwire._surface import check_items, check_type
from toolwire.text.unicode_forms import normalize

_EXPANDED = re.compile(r"^\s*~|\$[A-Za-z_{]")
"""The beginning of a home directory, and variables, which some tools expand."""
_FILE_URL = re.compile(r"^file:(?://[^/]*)?", re.IGNORECASE)


class Matcher(Protocol):
    """A condition on an argument."""

    def surely(self, value: Any) -> bool:
        """Return whether the value certainly matches; for rules that allow."""
        ...

    def maybe(self, value: Any) -> bool:
        """Return whether a match cannot be ruled out; for rules that deny or ask."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """Text that a glob fits: `*` any characters, `?` one."""

    glob: str

    def __post_init__(self) -> None:
        """Check the type of the glob."""
        check_type("glob", self.glob, str, "text")

    def surely(self, value: Any) -> bool:
        """Return whether the whole text fits."""
        return isinstance(value, str) and fnmatchcase(value, self.glob)

    def maybe(self, value: Any) -> bool:
        """Return whether the text fits, ignoring case, or the value is not text."""
        return not isinstance(value, str) or fnmatchcase(value.casefold(), self.glob.casefold())


@dataclass(frozen=True, slots=True)
class PathGlob:
    """Paths below a place: `*` is any name, `**` any number of them.

    It compares the path in the call and reads no file, so symbolic links are not followed.

    Attributes:
        glob: the pattern, `/` between names.
        base: what relative paths begin at. Without one, a rule that asks or denies fits a relative pattern at any
            depth, since an absolute path may lead to the same place.
    """

    glob: str
    base: str = "/"

    def __post_init__(self) -> None:
        """Check the types of the glob and its base."""
        check_type("glob", self.glob, str, "text")
        check_type("base", self.base, str, "text")

    def surely(self, value: Any) -> bool:
        """Return whether the path fits in all spellings, and none of them depends on the environment."""
        if not isinstance(value, str):
            return False
        spellings = _spellings(value)
        is_plain = "\\" not in "".join(spellings) and not any(map(_is_unknown, spellings))
        return is_plain and all(_path_fits(self._names(spelling), self._pattern()) for spelling in spellings)

    def maybe(self, value: Any) -> bool:
        """Return whether the path fits in some spelling, or the value is not a path."""
        if not isinstance(value, str):
            return True
        spellings = _spellings(value)
        pattern = [_folded_name(name) for name in self._pattern()]
        if self.base == "/" and not self.glob.startswith("/"):
            pattern = ["**", *pattern]
        return any(
            _is_unknown(spelling) or _path_fits([*map(_folded_name, self._names(spelling))], pattern)
            for spelling in spellings
        )

    def _names(self, path: str) -> list[str]:
        return [name for name in posixpath.normpath(posixpath.join(self.base, path)).split("/") if name]

    def _pattern(self) -> list[str]:
        return self._names(self.glob)


def _spellings(path: str) -> set[str]:
    """Return a path as it is, and as tools read it that decode it, strip it, or take backslashes or URLs of files."""
    spellings = {path, unquote(path)}
    spellings |= {spelling.strip() for spelling in spellings}
    spellings |= {spelling.replace("\\", "/") for spelling in spellings}
    return spellings | {_FILE_URL.sub("", spelling) for spelling in spellings}


def _is_unknown(path: str) -> bool:
    """Return whether the path itself does not say where it leads."""
    return "\0" in path or _EXPANDED.search(path) is not None


def _folded_name(name: str) -> str:
    """Return a name as file systems compare it that ignore case, normal forms and invisible characters."""
    visible = "".join(character for character in name if character.isascii() or category(character) != "Cf")
    return normalize("NFC", normalize("NFC", visible).casefold())


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Values that are equal to one of these; 1 is not true, and text is not a number."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Check that the values are several: the letters of a text would be values, and a rule would never match."""
        check_items("values", self.values, object, "a tuple of values")

    def surely(self, value: Any) -> bool:
        """Return whether the value is one of them."""
        return any(_same(value, allowed) for allowed in self.values)

    def maybe(self, value: Any) -> bool:
        """Return whether the value is one of them, ignoring case, or contains other values."""
        return isinstance(value, list | dict) or any(_same(_folded(value), _folded(allowed)) for allowed in self.values)


def _same(a: Any, b: Any) -> bool:
    # Python takes True for equal to 1, which JSON does not.
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)


def _folded(value: Any) -> Any:
    return value.strip().casefold() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Number:
    """Numbers in a range, its ends included; None: it has no such end."""

    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        """Check the types of both ends."""
        check_type("at_least", self.at_least, (int, float, NoneType), "a number or None")
        check_type("at_most", self.at_most, (int, float, NoneType), "a number or None")

    def surely(self, value: Any) -> bool:
        """Return whether it is a number in the range."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def maybe(self, value: Any) -> bool:
        """Return whether it is a number in the range, or cannot be compared."""
        # NaN compares false with both ends, so it would slip through a rule that denies.
        comparable = isinstance(value, int | float) and not isinstance(value, bool) and value == value
        return self.surely(value) or not comparable


def _path_fits(names: list[str], pattern: list[str]) -> bool:
    """Return whether names fit a pattern in which `**` is any number of names."""
    # All positions of the pattern at once. Backtracking would take exponential time for a pattern with many `**`,
    # and the model chooses the path.
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

"""The known tool that a written name can mean: `functions.f`, `f()`, `server__f`, `Get-Weather` or `getWeather`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

MAX_NAME = 256
"""Maximum length of a written name that is not the tool's own, in characters."""
_SEPARATORS = re.compile(r"[-_. ]+")
_HUMP = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])")
"""The place in `getWeather` where `get_weather` has its separator."""
_PARTS = re.compile(r"[./:]|__")


def _folded(name: str) -> str:
    return _SEPARATORS.sub("_", name).casefold()


def _endings(name: str) -> Sequence[str]:
    """Return the name without its first part, without its first two, and so on, each folded."""
    return [_folded(name[match.end() :]) for match in _PARTS.finditer(name) if match.end() < len(name)]


def _in_snake_case(name: str) -> str:
    return _HUMP.sub("_", name)


class ToolNames:
    """The names of some tools, indexed by what may be written for them.

    A name stands for a tool if it differs in case and in `-`, `_`, `.` alone, has capitals for these, has a prefix in
    front of it (`functions.`, `server__`), or leaves out such a prefix of the tool's own name. A name that can mean two
    tools means none.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._by_spelling: dict[str, set[str]] = {}
        self._by_ending: dict[str, set[str]] = {}
        for name in self._names:
            for spelling in (name, _in_snake_case(name)):
                self._by_spelling.setdefault(_folded(spelling), set()).add(name)
                for ending in _endings(spelling):
                    self._by_ending.setdefault(ending, set()).add(name)

    def __contains__(self, name: str) -> bool:
        """Return whether a tool has exactly this name."""
        return name in self._names

    def resolve(self, written: str) -> str:
        """Return the one tool that a written name can mean, or ""."""
        if written in self._names:
            return written
        if len(written) > MAX_NAME:  # each part of it may be the beginning of a name
            return ""
        written = written.replace("\\_", "_").strip().removesuffix("()").strip("`\"'")
        if written in self._names:
            return written
        tools = self._meant_by(written)
        # Capitals may stand for separators or be another case alone; neither is more likely to be meant.
        if _HUMP.search(written):
            tools = {*tools, *self._meant_by(_in_snake_case(written))}
        return next(iter(tools)) if len(tools) == 1 else ""

    def _meant_by(self, written: str) -> Collection[str]:
        """Return the tools that a name can mean that is none of their own names."""
        # A name without any prefix is preferred to one that needs one: "a.f" is the tool "a.f" before it is "f".
        spelling = _folded(written)
        tools = self._by_spelling.get(spelling)
        if tools is None and _PARTS.search(written):  # most names have no prefix
            tools = next((tools for ending in _endings(written) if (tools := self._by_spelling.get(ending))), None)
        return self._by_ending.get(spelling, ()) if tools is None else tools

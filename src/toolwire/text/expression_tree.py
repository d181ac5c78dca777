"""The tree of an expression that a model wrote: JSON values, expressions that stay text, and calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Source:
    """An expression that stays the text that was written.

    Attributes:
        text: the text, without white space around it.
        is_name: it is a name, such as `x` or `a.b`.
    """

    text: str
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class CallExpression:
    """A call as it was written.

    Attributes:
        name: the name before the parenthesis.
        positional, keywords: the arguments: JSON values in which a `Source` may be anywhere.
        unpacked: the dictionaries behind `**`.
        text: the text of the call.
    """

    name: str
    positional: list[Any]
    keywords: dict[str, Any]
    unpacked: list[Any]
    text: str


@dataclass(frozen=True, slots=True)
class TextSpan:
    """The beginning and end of an expression; its text is taken once the outermost expression was read."""

    start: int
    end: int
    call: OpenBracket | None = None


class OpenBracket:
    """An open bracket.

    Attributes:
        opener: the bracket, or "f(" for that of a call.
        start: position of the first character of its expression.
        items, members: the values without and with a key.
        unpacked: the values behind `**`.
        key: the key of the value that comes next; None if it has none.
        commas: a comma was read.
        name: the called name.
        in_tool: the bracket is inside the arguments of a known tool, or opens them.
        unpacks: the value that comes next is behind `**`.
    """

    __slots__ = (
        "commas", "in_tool", "items", "key", "members", "name", "opener", "start", "unpacked", "unpacks",
    )  # fmt: skip

    def __init__(self, opener: str, start: int, *, in_tool: bool, name: str = "") -> None:
        self.opener = opener
        self.start = start
        self.in_tool = in_tool
        self.name = name
        self.items: list[Any] = []
        self.members: dict[str, Any] = {}
        self.unpacked: list[Any] = []
        self.key: str | None = None
        self.commas = self.unpacks = False


def resolve(value: Any, text: str) -> Any:
    """Return a value with its expressions' text in place of their positions; at most `MAX_NESTING` levels deep."""
    if isinstance(value, list):
        return [resolve(item, text) for item in value]
    if isinstance(value, dict):
        return {key: resolve(item, text) for key, item in value.items()}
    if not isinstance(value, TextSpan):
        return value
    written = text[value.start : value.end].strip()
    if (frame := value.call) is None:
        return Source(written)
    items, members, unpacked = (resolve(part, text) for part in (frame.items, frame.members, frame.unpacked))
    return CallExpression(frame.name, items, members, unpacked, written)

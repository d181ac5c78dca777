"""Messages that are nothing but a call, of which the tool does not exist.

    [list_directory(path="/")]
    {"name": "list_directory", "arguments": {"path": "/"}}

Between the markers of a format such a call is read, and the executor answers that the tool does not exist. Without
markers only calls to known tools are read, so this one would be the answer of the model. It is reported instead, and
the model can correct the name. Few shapes are certain enough: an object that has a name and arguments and nothing else,
and a list of calls whose arguments are named values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from toolwire.text.expression_tree import CallExpression, Source
from toolwire.text.expressions import ExpressionScanner
from toolwire.text.suggest import closest, did_you_mean, first_of
from toolwire.wire.dialects import (
    ARGUMENT_KEYS,
    CALL_KEYS,
    COMMENT_KEYS,
    IDENTITY_KEYS,
    LIST_KEYS,
    NAME_KEYS,
    folded_key,
)
from toolwire.wire.prepared_tools import KnownTools

_NAME = re.compile(r"[A-Za-z_][\w.-]{0,127}\Z", re.ASCII)
_FENCED = re.compile(r"(`{3,80}|~{3,80})[^\n`~]{0,80}\n(?P<inside>[^`~]*)\n?\1\Z")
_BARE_CALL = re.compile(r"([A-Za-z_][\w.-]{0,127})\(", re.ASCII)
_BETWEEN = re.compile(r"[\s,;]*")
_MOST = 20_000
"""Number of characters above which a message is no longer likely to be only such a call."""
_NEARLY = 0.8
"""Smallest similarity of a name that is nearly that of a tool, from 0 to 1."""
_LISTED = 20
"""Number of tools that a problem lists."""


def unknown_tool(message: str, tools: KnownTools) -> str:
    """Return the name of the first unknown tool in a message of nothing but calls; "" if it is something else."""
    text = message.strip()
    if fenced := _FENCED.match(text):
        text = fenced["inside"].strip()
    bare = _BARE_CALL.match(text)
    # Without brackets it is more likely a line of a program, unless it is nearly the name of a tool.
    is_near = bare is not None and bool(closest(bare[1], tools.definitions, similarity=_NEARLY))
    if not (is_near or text.startswith(("[", "{"))) or len(text) > _MOST:
        return ""
    names: list[str] = []
    pos = 0
    while pos < len(text):
        scanner = _AnyCallScanner()
        pos = scanner.scan(text, pos, True)
        value = [scanner.value] if isinstance(scanner.value, CallExpression) else scanner.value
        written = list(_names(value)) if scanner.done else []
        if not written or "" in written:
            return ""
        names += written
        behind = _BETWEEN.match(text, pos)
        pos = behind.end() if behind else pos
    return next((name for name in names if not tools.names.resolve(name)), "")


class _AnyCallScanner(ExpressionScanner):
    """A scanner that stops at the first key that no call has, because most objects are data."""

    def on_key(self, key: str) -> bool:
        """Return whether the object of a call can have the key."""
        return folded_key(key) in CALL_KEYS


def unknown_tool_message(name: str, tools: KnownTools) -> str:
    """Return an explanation for the model: the names that it may have meant, and those that there are."""
    tool_names = list(tools.definitions)
    hint = did_you_mean(closest(name, tool_names)) or "."
    return f"There is no tool {name!r}, so nothing ran{hint} There are: {first_of(tool_names, _LISTED)}."


def _names(value: Any) -> Iterator[str]:
    """Yield the names of the calls that an expression is; "" for what is not a call."""
    match value:
        case list() if value:
            for item in value:
                if isinstance(item, CallExpression):
                    yield item.name if _has_named_values(item) else ""
                else:
                    yield from _names(item) if isinstance(item, dict) else ("",)
        case dict():
            yield from _names_in_object(value)
        case _:
            yield ""


def _names_in_object(members: dict[str, Any]) -> Iterator[str]:
    if len(members) == 1:
        ((key, inner),) = members.items()
        if folded_key(key) in LIST_KEYS and isinstance(inner, list):
            yield from _names(inner)
            return
    kinds = {key: folded_key(key) for key in members}
    names = [value for key, value in members.items() if kinds[key] in NAME_KEYS]
    arguments = [value for key, value in members.items() if kinds[key] in ARGUMENT_KEYS]
    beside = set(kinds.values()) - NAME_KEYS - ARGUMENT_KEYS - IDENTITY_KEYS - COMMENT_KEYS
    is_call = len(names) == len(arguments) == 1 and not beside and _is_argument_object(arguments[0])
    yield names[0] if is_call and isinstance(names[0], str) and _NAME.match(names[0]) else ""


def _is_argument_object(value: Any) -> bool:
    """Return whether a value can be arguments, and is not the schema of a tool that the model repeats or proposes."""
    return isinstance(value, dict) and not ("properties" in value and "type" in value)


def _has_named_values(call: CallExpression) -> bool:
    """Return whether all arguments are values with names, and none is a variable or another call."""
    values = call.keywords.values()
    return not (call.positional or call.unpacked or any(isinstance(value, Source) for value in values))

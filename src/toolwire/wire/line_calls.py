"""Calls that are written in lines without brackets, as YAML or as a command, which are reported and never read.

    name: get_weather
    arguments:
      city: Paris

    /get_weather city=Paris

Notes and instructions for people have the same form, so a call is not certain even where nothing else is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolwire.wire.dialects import ARGUMENT_KEYS, COMMENT_KEYS, IDENTITY_KEYS, NAME_KEYS, folded_key
from toolwire.wire.prepared_tools import KnownTools

_BESIDE_NAME = COMMENT_KEYS | IDENTITY_KEYS
_QUOTES = "\"'`"
_BULLETS = " \t-*"
_PROMPTS = " \t\r`$>-*"
"""Characters around a command: of inline code, of a shell's prompt, of a quotation, of a list."""


def calls_in_lines(text: str, tools: KnownTools) -> Iterator[tuple[int, int]]:
    """Yield the places of such calls to known tools, in order."""
    lines = text.split("\n")
    position = behind = 0
    for at, line in enumerate(lines):
        if at >= behind:
            number = 0
            if ":" in line:  # pragma: no mutate - only to be faster
                number = _lines_of_mapping(lines, at, tools)
            if not number and ("=" in line or "--" in line):  # pragma: no mutate - only to be faster
                number = int(_is_command(line, tools))
            if number:
                yield position, position + len("\n".join(lines[at : at + number]))
                behind = at + number
        position += len(line) + 1


def _lines_of_mapping(lines: Sequence[str], start: int, tools: KnownTools) -> int:
    """Return the number of lines of a mapping from this line on that names a tool and its arguments, or 0."""
    tool = _named_tool(lines[start], tools)
    if not tool:
        return 0
    at = start + 1
    while at < len(lines) and folded_key(_member(lines[at])[0]) in _BESIDE_NAME:
        at += 1
    if at < len(lines) and folded_key(_member(lines[at])[0]) in ARGUMENT_KEYS:
        if _member(lines[at])[1]:
            return at + 1 - start
        at += 1
    if at == len(lines) or _member(lines[at])[0] not in tools.properties(tool):
        return 0
    indent = _indent(lines[at])
    at += 1
    while at < len(lines) and (_indent(lines[at]) > indent or (_indent(lines[at]) == indent and _member(lines[at])[0])):
        at += 1
    return at - start


def _named_tool(line: str, tools: KnownTools) -> str:
    """Return the known tool that a line such as `- name: "get_weather"` names, or ""."""
    label, value = _member(line)
    return tools.names.resolve(value.strip(_QUOTES)) if folded_key(label.lstrip(_BULLETS)) in NAME_KEYS else ""


def _member(line: str) -> tuple[str, str]:
    """Return the key and the value of a line of a mapping; two times "" if it is not one."""
    key, colon, value = line.partition(":")
    return (key.strip(" \t\"'"), value.strip()) if colon and not value[:1].strip() else ("", "")


def _indent(line: str) -> int:
    """Return the number of blanks before the text of a line, or -1 if it has none."""
    return len(line) - len(line.lstrip(" \t")) if line.strip() else -1


def _is_command(line: str, tools: KnownTools) -> bool:
    """Return whether a line is a tool's name and an argument, such as `/f a=1`, `f --a 1`."""
    name, word = (*line.strip(_PROMPTS).split(maxsplit=2), "", "")[:2]
    flag = word.removeprefix("--")
    key, equals, value = flag.partition("=")
    if flag == word and (not equals or value.startswith("=")):
        return False
    if key not in tools.parameters:  # pragma: no mutate - only to be faster
        return False
    tool = tools.names.resolve(name.removeprefix("/").removesuffix(":"))
    return bool(tool) and key in tools.properties(tool)

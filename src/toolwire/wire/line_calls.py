"""Calls that are written in lines without brackets, as YAML or as a command, which are reported and never read.

    name: get_weather
    arguments:
      city: Paris

    get_weather:
      city: Paris

    /get_weather city=Paris
    /get_weather Paris
    get_weather[Paris]

Notes and instructions for people have the same form, so a call is not certain even where nothing else is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolwire.wire.content_markers import FENCES
from toolwire.wire.dialects import ARGUMENT_KEYS, COMMENT_KEYS, IDENTITY_KEYS, NAME_KEYS, folded_key
from toolwire.wire.prepared_tools import KnownTools

_BESIDE_NAME = COMMENT_KEYS | IDENTITY_KEYS
_QUOTES = "\"'`"
_BULLETS = " \t-*`"
_PROMPTS = " \t\r`$>-*"
"""Characters around a command: of inline code, of a shell's prompt, of a quotation, of a list."""

_OF_WORDS = re.compile(
    r"""[ \t\r`$>*-]{0,9}(?:[A-Za-z]{1,20}(?:[ ]\d{1,3})?:[ \t]{1,9})?[*`]{0,3}(?:
      [/!](?P<command>[\w.-]{1,255})(?:[ \t]+(?![<\[({:|=\u2013\u2014-])(?P<words>\S.*))?
    | (?P<name>[^\W\d][\w.-]{0,255})(?:\[(?!\d+\])[^\[\]]+\]|[ \t]+(?:"[^"]+"|'[^']+'))
    | \[{1,2}(?P<bracketed>[^\W\d][\w.-]{0,255})(?::[ \t]*[^\[\]]+|[ \t]+["'][^\[\]]+)\]{1,2}
    )[ \t\r`*]*\Z""",
    re.VERBOSE,
)
"""A line that is nothing but a tool's name and words: a command, `f[words]`, `f "words"` or `[f: words]`."""
_BEFORE_MESSAGE = (*FENCES, "---")
"""Beginnings of lines that are not part of a message: code fences, and the line before a document of YAML."""
_ALONE = re.compile(r"[^\W\d][\w.-]{0,255}")
_SIGNS_OF_WORDS = frozenset("/![\"'")


def calls_in_lines(text: str, tools: KnownTools) -> Iterator[tuple[int, int]]:
    """Yield the places of such calls to known tools, in order."""
    lines = text.split("\n")
    position = behind = 0
    begins = True
    for at, line in enumerate(lines):
        if at >= behind:
            number = 0
            if ":" in line or ":" in lines[min(at + 1, len(lines) - 1)]:  # pragma: no mutate - only to be faster
                number = _lines_of_mapping(lines, at, tools, begins=begins)
            if not number and ("=" in line or "--" in line):  # pragma: no mutate - only to be faster
                number = int(_is_command(line, tools))
            if not number and not _SIGNS_OF_WORDS.isdisjoint(line):  # pragma: no mutate - only to be faster
                number = int(_is_call_of_words(line, tools))
            if number:
                yield position, position + len("\n".join(lines[at : at + number]))
                behind = at + number
        begins = begins and (not line.strip() or line.startswith(_BEFORE_MESSAGE))
        position += len(line) + 1


def _lines_of_mapping(lines: Sequence[str], start: int, tools: KnownTools, *, begins: bool) -> int:
    """Return the number of lines of a mapping from this line on that names a tool and its arguments, or 0."""
    tool = _named_tool(lines[start], tools, begins=begins)
    if not tool:
        return 0
    at = start + 1
    while at < len(lines) and folded_key(_member(lines[at])[0]) in _BESIDE_NAME:
        at += 1
    if at < len(lines) and folded_key(_member(lines[at])[0]) in ARGUMENT_KEYS:
        if _member(lines[at])[1]:
            return at + 1 - start
        at += 1
    if at == len(lines) or not _is_parameter(_member(lines[at])[0], tool, tools):
        return 0
    indent = _indent(lines[at])
    at += 1
    while at < len(lines) and (_indent(lines[at]) > indent or (_indent(lines[at]) == indent and _member(lines[at])[0])):
        at += 1
    return at - start


def _named_tool(line: str, tools: KnownTools, *, begins: bool) -> str:
    """Return the known tool that a line such as `- name: "get_weather"`, `get_weather:` or `get_weather` names, or "".

    The latter two are headings too, so they count only where the message begins with them.
    """
    label, value = _member(line)
    if not value:
        name = label or line.strip(_PROMPTS)
        return tools.names.resolve(name) if begins and _ALONE.fullmatch(name) else ""
    return tools.names.resolve(value.strip(_QUOTES)) if folded_key(label.lstrip(_BULLETS)) in NAME_KEYS else ""


def _is_parameter(label: str, tool: str, tools: KnownTools) -> bool:
    """Return whether a label in a line is a parameter of the tool, in any case."""
    return label.lstrip(_BULLETS).lower() in map(str.lower, tools.properties(tool))


def _member(line: str) -> tuple[str, str]:
    """Return the key and the value of a line of a mapping; two times "" if it is not one."""
    key, colon, value = line.replace("**", "").partition(":")
    return (key.strip(" \t\"'`"), value.strip()) if colon and not value[:1].strip() else ("", "")


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


def _is_call_of_words(line: str, tools: KnownTools) -> bool:
    """Return whether a line is a tool's name and words without the name of a parameter, such as `/f words`."""
    match = _OF_WORDS.match(line)
    if match is None:
        return False
    tool = tools.names.resolve(match["command"] or match["name"] or match["bracketed"])
    has_words = not match["command"] or bool(match["words"])
    return bool(tool) and bool(tools.properties(tool)) == has_words

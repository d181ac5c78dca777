"""Read the part of YAML in which models write arguments: a mapping, in one pass over the lines.

Values are plain, quoted or block scalars, lists, mappings, and JSON on one line. Text that YAML reads in a way that its
writer may not have meant is refused: comments behind a value, anchors, tags, tabs as indentation, keys given twice.
"""

from __future__ import annotations

import re
from typing import Any

from toolwire.text.json_reading import read_json

MAX_LEVELS = 20
"""Maximum depth of lists and mappings in each other."""

_KEY = re.compile(r"""([A-Za-z_][-\w.]*|"[^"\\\n]+"|'[^'\n]+')[ ]*:(?:[ ]+(.*))?\Z""", re.DOTALL)
_BLOCK = re.compile(r"([|>])(?:([1-9])?([-+])?|([-+])([1-9]))[ \t]*\Z")
_INSIDE = {'"': re.compile(r'(?:[^"\\]|\\.)*+'), "'": re.compile(r"(?:[^']|'')*+")}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.|\n))")
_WORDS = re.compile(r"\[[\w .-]+(?:,[\w .-]+)*\]\Z")
_SIMPLE = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b", '"': '"',
    "/": "/", "\\": "\\", " ": " ", "\t": "\t", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_NOT_PLAIN = re.compile(r"[&*!|>%@`#,\[\]{}]|[-?](?: |\Z)|---|\.\.\.")


class YamlError(ValueError):
    """The text is not in this part of YAML."""


class PlainText(str):
    """A scalar without quotes, whose type its text decides."""

    __slots__ = ()


def read_mapping(text: str) -> dict[str, Any]:
    """Return the mapping that the text consists of.

    Raises:
        YamlError: it is something else.
    """
    reader = _Reader(text)
    indent = reader.indent()
    if indent < 0:
        raise YamlError("there are no keys")
    mapping = reader.mapping(indent, 0)
    if reader.indent() >= 0:
        raise YamlError(f"a key should begin here: {reader.rest()[:60]!r}")
    return mapping


class _Reader:
    """A reader of lines, with a position."""

    def __init__(self, text: str) -> None:
        self._lines = text.replace("\r\n", "\n").split("\n")
        self._unfinished = bool(self._lines[-1].strip())  # the last line has no line break
        if not self._unfinished:
            self._lines.pop()
        self._at = 0

    def indent(self) -> int:
        """Skip blank lines; return the indentation of the next one, or -1 at the end."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            bare = line.lstrip(" ")
            if bare.strip():
                if bare[0] == "\t":
                    raise YamlError("a line is indented with tabs")
                return len(line) - len(bare)
            self._at += 1
        return -1

    def rest(self) -> str:
        """Return the next line without its indentation."""
        return self._lines[self._at].strip()

    def mapping(self, indent: int, level: int) -> dict[str, Any]:
        """Read the keys with this indentation."""
        if level > MAX_LEVELS:
            raise YamlError(f"more than {MAX_LEVELS} levels")
        mapping: dict[str, Any] = {}
        while self.indent() == indent:
            match = _KEY.match(self._lines[self._at], indent)
            if match is None:
                raise YamlError(f"a key should begin here: {self.rest()[:60]!r}")
            key = match[1][1:-1] if match[1][0] in _INSIDE else match[1]
            if key in mapping:
                raise YamlError(f"the key {key[:60]!r} is given twice")
            self._at += 1
            mapping[key] = self._value((match[2] or "").rstrip(), indent, level)
        if self.indent() > indent:
            raise YamlError(f"the line {self.rest()[:60]!r} is indented too far")
        return mapping

    def _sequence(self, indent: int, level: int) -> list[Any]:
        if level > MAX_LEVELS:
            raise YamlError(f"more than {MAX_LEVELS} levels")
        items: list[Any] = []
        while self.indent() == indent and (self.rest() == "-" or self.rest().startswith("- ")):
            line = self._lines[self._at]
            rest = line[indent + 1 :].lstrip(" ")
            inner = len(line) - len(rest)
            if _KEY.match(rest):
                # The item is a mapping, which begins in the middle of this line.
                self._lines[self._at] = " " * inner + rest
                items.append(self.mapping(inner, level + 1))
            else:
                self._at += 1
                items.append(self._value(rest.rstrip(), indent, level))
        return items

    def _value(self, text: str, indent: int, level: int) -> Any:
        """Read a value that begins with `text`, behind a key or a dash with this indentation."""
        if not text:
            return self._nested(indent, level)
        if header := _BLOCK.match(text):
            return self._block(header, indent)
        if text[0] in _INSIDE:
            return self._quoted(text)
        if text[0] in "[{":
            return _flow(text)
        return self._plain(text, indent)

    def _nested(self, indent: int, level: int) -> Any:
        inner = self.indent()
        if inner >= 0 and inner >= indent and (self.rest() == "-" or self.rest().startswith("- ")):
            return self._sequence(inner, level + 1)
        if inner <= indent:
            return PlainText("")
        if _KEY.match(self._lines[self._at], inner):
            return self.mapping(inner, level + 1)
        text = self.rest()
        self._at += 1
        return self._value(text, indent, level)

    def _plain(self, text: str, indent: int) -> PlainText:
        pieces = [text]
        while True:
            before = self._at
            if (inner := self.indent()) <= indent:
                break
            if _KEY.match(self._lines[self._at], inner):
                raise YamlError(f"the line {self.rest()[:60]!r} is indented too far")
            pieces.append("\n" * (self._at - before) or " ")
            pieces.append(self.rest())
            self._at += 1
        plain = "".join(pieces)
        if _NOT_PLAIN.match(text) or " #" in plain:
            raise YamlError(f"{text[:60]!r} needs quotes")
        return PlainText(plain)

    def _quoted(self, text: str) -> str:
        quote, line = text[0], text[1:]
        lines: list[str] = []
        while (end := _INSIDE[quote].match(line).end()) == len(line) or line[end] != quote:  # type: ignore[union-attr]
            lines.append(line)
            if end < len(line) or self._at == len(self._lines):  # a backslash is the last character
                raise YamlError("a quote is not closed")
            line = self._lines[self._at]
            self._at += 1
        if line[end + 1 :].strip():
            raise YamlError(f"text follows a quoted value: {line[end + 1 :][:60]!r}")
        inside = _folded_quotes([*lines, line[:end]])
        return _ESCAPE.sub(_unescape, inside) if quote == '"' else inside.replace("''", "'")

    def _block(self, header: re.Match[str], indent: int) -> str:
        """Read the lines of a block scalar, whose header says how they are joined."""
        digit, chomp = int(header[2] or header[5] or 0), header[3] or header[4] or ""
        inner = indent + digit if digit else 0
        lines: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            spaces = len(line) - len(line.lstrip(" "))
            if spaces < len(line):
                inner = inner or (spaces if spaces > indent else 0)
                if not inner or spaces < inner:
                    break
            lines.append(line[inner:] if inner else "")
            self._at += 1
        end = len(lines)
        while end and not lines[end - 1]:
            end -= 1
        joined = _folded(lines[:end]) if header[1] == ">" else "\n".join(lines[:end])
        cut = self._unfinished and self._at == len(self._lines) and end == len(lines)
        if chomp == "-" or cut:
            return joined
        return joined + "\n" * (len(lines) - end + 1 if chomp == "+" else 1) if end else ""


def _flow(text: str) -> Any:
    """Return a list or an object that is written on one line."""
    try:
        return read_json(text)[0]
    except ValueError as error:
        if _WORDS.match(text):
            return [PlainText(word.strip()) for word in text[1:-1].split(",")]
        raise YamlError(f"{text[:60]!r} is not JSON: {error}") from error


def _folded_quotes(lines: list[str]) -> str:
    """Join the lines of a quoted value: one line break is a space, and n more are n line breaks."""
    pieces = [lines[0].rstrip(" \t") if len(lines) > 1 else lines[0]]
    breaks = 0
    for at, line in enumerate(lines[1:], 1):
        bare = line.lstrip(" \t") if at == len(lines) - 1 else line.strip(" \t")
        if not bare and at < len(lines) - 1:
            breaks += 1
            continue
        pieces += "\n" * breaks or " ", bare
        breaks = 0
    return "".join(pieces)


def _folded(lines: list[str]) -> str:
    """Join the lines of a folded block: lines that are indented more keep their line breaks."""
    pieces: list[str] = []
    breaks, was_indented = 0, True
    for line in lines:
        if not line:
            breaks += 1
            continue
        indented = line[0] in " \t"
        if pieces or breaks:
            kept_break = (indented or was_indented) and bool(pieces)
            pieces.append("\n" * (breaks + kept_break) if breaks or kept_break else " ")
        pieces.append(line)
        breaks, was_indented = 0, indented
    return "".join(pieces)


def _unescape(match: re.Match[str]) -> str:
    if match[4] is None:
        code = int(match[1] or match[2] or match[3], 16)
        if code > 0x10FFFF:
            raise YamlError(f"{match[0]} is not a character")
        return chr(code)
    if match[4] not in _SIMPLE:
        raise YamlError(f"{match[0]!r} is not an escape")
    return _SIMPLE[match[4]]

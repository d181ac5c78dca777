"""Regular expressions of response templates, taken apart: as much of their language as delimiters of calls use."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.errors import DefinitionError

MAX_DEPTH = 20
"""The number of groups inside each other that are taken apart."""


@dataclass(frozen=True, slots=True)
class PatternText:
    """Text that stands for itself."""

    text: str


@dataclass(frozen=True, slots=True)
class PatternBlank:
    """White space, or none."""


@dataclass(frozen=True, slots=True)
class PatternClass:
    """One or more characters of a class.

    Attributes:
        characters: the class as it is written, without its brackets; "." for any character.
    """

    characters: str


@dataclass(frozen=True, slots=True)
class PatternGroup:
    """A group with a name."""

    name: str


@dataclass(frozen=True, slots=True)
class PatternChoice:
    """One of several sequences.

    Attributes:
        options: the sequences.
        optional: none of them has to be there.
    """

    options: tuple[tuple[PatternPart, ...], ...]
    optional: bool = False


PatternPart = PatternText | PatternBlank | PatternClass | PatternGroup | PatternChoice

_BLANKS = {"s": PatternBlank(), "n": PatternBlank(), "t": PatternBlank(), "r": PatternBlank()}
_CLASSES = frozenset("wWdDS")
_ANCHORS = frozenset("AbBZz")


def pattern_parts(pattern: str, place: str) -> tuple[PatternPart, ...]:
    """Return the parts of a regular expression; what looks ahead or behind, and anchors, are left out.

    Args:
        pattern: the expression, in the syntax of Python's `regex`.
        place: where it is written, for messages.

    Raises:
        DefinitionError: the expression is not complete, or has a part that stands for something else.
    """
    return _Reader(pattern, place).whole()


class _Reader:
    def __init__(self, pattern: str, place: str) -> None:
        self._pattern = pattern
        self._place = place
        self._at = 0

    def whole(self) -> tuple[PatternPart, ...]:
        options = self._options(0)
        if self._at < len(self._pattern):
            raise self._refused("a closing bracket that nothing opens")
        return options[0] if len(options) == 1 else (PatternChoice(options),)

    def _refused(self, reason: str) -> DefinitionError:
        return DefinitionError(f"{self._place}: {reason} at character {self._at} of {self._pattern!r:.200}")

    def _next(self) -> str:
        if self._at >= len(self._pattern):
            raise self._refused("the pattern ends too early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _has(self, text: str) -> bool:
        is_next = self._pattern.startswith(text, self._at)
        self._at += len(text) if is_next else 0
        return is_next

    def _options(self, depth: int) -> tuple[tuple[PatternPart, ...], ...]:
        """Return alternatives, up to a closing bracket or the end."""
        if depth > MAX_DEPTH:
            raise self._refused("too many brackets inside each other")
        options: list[tuple[PatternPart, ...]] = []
        parts: list[PatternPart] = []
        while self._at < len(self._pattern) and self._pattern[self._at] != ")":
            if self._has("|"):
                options.append(_merged(parts))
                parts = []
            else:
                parts += self._quantified(self._part(depth))
        return (*options, _merged(parts))

    def _part(self, depth: int) -> PatternPart | None:
        """Return the next part; None for what stands for no text."""
        character = self._next()
        match character:
            case "(":
                return self._bracket(depth)
            case "[":
                return self._class()
            case "\\":
                return self._escaped()
            case ".":
                return PatternClass(".")
            case "^" | "$":
                return None
            case "*" | "+" | "?" | "{":
                raise self._refused(f"a quantifier {character!r} behind nothing")
        return PatternBlank() if character.isspace() else PatternText(character)

    def _bracket(self, depth: int) -> PatternPart | None:
        looks = any(self._has(opening) for opening in ("?=", "?!", "?<=", "?<!"))
        name = ""
        if not looks and self._has("?P<"):
            while (character := self._next()) != ">":
                name += character
        elif not looks and not self._has("?:") and self._pattern.startswith("?", self._at):
            raise self._refused("a group of an unknown kind")
        options = self._options(depth + 1)
        if self._next() != ")":
            raise self._refused("a closing bracket is missing")
        if looks:
            return None
        return PatternGroup(name) if name else PatternChoice(options)

    def _class(self) -> PatternPart:
        characters = ""
        while (character := self._next()) != "]" or not characters:
            characters += character + (self._next() if character == "\\" else "")
        # Of all classes, only white space is a part that descriptions have.
        return PatternBlank() if characters in ("\\s", " \\n", "\\n ") else PatternClass(characters)

    def _escaped(self) -> PatternPart | None:
        character = self._next()
        if character in _BLANKS:
            return _BLANKS[character]
        if character in _CLASSES:
            return PatternClass(f"\\{character}")
        if character in _ANCHORS:
            return None
        if character.isalnum():
            raise self._refused(f"an escape \\{character} of an unknown kind")
        return PatternBlank() if character.isspace() else PatternText(character)

    def _quantified(self, part: PatternPart | None) -> list[PatternPart]:
        """Return a part with the quantifier behind it: repeated text is refused, and so is text that may be missing."""
        quantifier = next((sign for sign in "*+?" if self._has(sign)), "")
        if not quantifier and self._has("{"):
            while self._next() != "}":
                pass
            quantifier = "{"
        if quantifier:
            _ = self._has("?") or self._has("+")  # how much it takes first makes no difference here
        if part is None or (quantifier and isinstance(part, PatternBlank)):
            return [] if part is None else [part]
        if quantifier == "?":
            return [PatternChoice(part.options if isinstance(part, PatternChoice) else ((part,),), optional=True)]
        if quantifier and not isinstance(part, PatternClass):
            raise self._refused("text that is repeated")
        return [part]


def _merged(parts: list[PatternPart]) -> tuple[PatternPart, ...]:
    """Return parts with neighbouring texts as one, and alternatives that are only one as their parts."""
    merged: list[PatternPart] = []
    for part in parts:
        inner = (
            part.options[0]
            if isinstance(part, PatternChoice) and len(part.options) == 1 and not part.optional
            else (part,)
        )
        for each in inner:
            if isinstance(each, PatternText) and merged and isinstance(merged[-1], PatternText):
                merged[-1] = PatternText(merged[-1].text + each.text)
            elif not (isinstance(each, PatternBlank) and merged and isinstance(merged[-1], PatternBlank)):
                merged.append(each)
    return tuple(merged)

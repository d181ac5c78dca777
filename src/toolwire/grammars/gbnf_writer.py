"""Grammars in GBNF, the language of llama.cpp, which xgrammar, vLLM and SGLang read as EBNF too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from toolwire.grammars.algebra import (
    EMPTY,
    LAST,
    Chain,
    Chars,
    Either,
    Expression,
    Fixed,
    Lexeme,
    Repeat,
    RuleName,
    chars_except,
)
from toolwire.grammars.rule_names import reachable


def write_gbnf(root: Expression, rules: Mapping[str, Expression], *, start: str = "root") -> str:
    """Return a grammar as text; its first rule is `start`."""
    writer = RuleWriter(reachable(root, rules))
    lines = [f"{start} ::= {writer.write(root)}"]
    lines += [f"{name} ::= {writer.write(rules[rule])}" for rule, name in writer.names.items()]
    lexemes = list(writer.lexemes.items())
    for part, name in lexemes:
        lines.append(f"{name} ::= {writer.write(part)}")
        lexemes += list(writer.lexemes.items())[len(lexemes) :]  # those inside this one
    return "\n".join(lines) + "\n"


class RuleWriter:
    """A writer of expressions, which gives each lexeme a rule of its own.

    Attributes:
        names: the names of rules.
        lexemes: the names of the lexemes that were written so far.
    """

    prefix = "t"
    """Beginning of the names of lexemes."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.lexemes: dict[Expression, str] = {}
        self._texts: dict[tuple[int, bool], str] = {}

    def write(self, part: Expression, *, inner: bool = False) -> str:
        """Return an expression as text, in parentheses where it is `inner` and has several parts."""
        # The same white space is everywhere; the rules keep all expressions, so that an id names one of them.
        key = (id(part), inner)
        if key not in self._texts:
            self._texts[key] = self._written(part, inner)
        return self._texts[key]

    def characters(self, part: Chars) -> str:
        """Return a set of characters outside of lexemes."""
        return write_class(part.ranges, _escape_in_class)

    def lexeme(self, content: Expression) -> str:
        """Return the name of a lexeme."""
        return self.lexemes.setdefault(content, f"{self.prefix}{len(self.lexemes)}")

    def _written(self, part: Expression, inner: bool) -> str:
        match part:
            case Fixed(text):
                return '"' + "".join(map(escape_quoted, text)) + '"'
            case Chars():
                return self.characters(part)
            case RuleName(name):
                return self.names[name]
            case Lexeme(Fixed() as content):
                return self.write(content)
            # Strings, numbers and white space appear everywhere; as rules they are read once.
            case Lexeme(content):
                return self.lexeme(content)
            case Repeat(content, least, most):
                text = self.write(content, inner=True) + repetition(least, most)
                return f"({text})" if inner else text
            case Chain(()):
                return '""'
            case Chain(parts):
                text = " ".join(self.write(each, inner=isinstance(each, Either)) for each in parts)
                return f"({text})" if inner else text
            case Either(options):
                text = " | ".join(self.write(each) for each in options if each != EMPTY)
                # An empty alternative is not allowed everywhere, so the others become optional.
                if EMPTY in options:
                    return f"({text})?"
                return f"({text})" if inner else text


def repetition(least: int, most: int | None) -> str:
    """Return the sign of a repetition, which regular expressions and grammars share."""
    match least, most:
        case 0, 1:
            return "?"
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case _:
            return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


@lru_cache(2000)  # text around calls has few different sets, and very many places of them
def write_class(ranges: tuple[tuple[int, int], ...], escape: Callable[[str], str]) -> str:
    """Return a set of characters in brackets; a set that is open to above is written as its complement."""
    sign = ""
    if ranges[-1][1] == LAST:
        sign, ranges = "^", chars_except(Chars(ranges)).ranges
        if not ranges:
            return "[^\\u0000]"
    # A hyphen is itself only at the end.
    hyphen = "-" if any(low <= _HYPHEN <= high for low, high in ranges) else ""
    pieces = [piece for low, high in ranges for piece in ((low, min(high, _HYPHEN - 1)), (max(low, _HYPHEN + 1), high))]
    pieces = [(low, high) for low, high in pieces if low <= high]
    return f"[{sign}{''.join(_write_range(low, high, escape) for low, high in dict.fromkeys(pieces))}{hyphen}]"


_HYPHEN = ord("-")


def _write_range(low: int, high: int, escape: Callable[[str], str]) -> str:
    first, last = escape(chr(low)), escape(chr(high))
    return first if low == high else f"{first}-{last}" if high > low + 1 else f"{first}{last}"


def escape_quoted(character: str) -> str:
    """Return a character as text in double quotes contains it."""
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else escape_code(character)


def _escape_in_class(character: str) -> str:
    return character if character.isascii() and character.isalnum() else escape_code(character)


def escape_code(character: str) -> str:
    """Return a character as an escape that every engine reads; they differ in the digits of hexadecimal ones."""
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    code = ord(character)
    return short or (f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}")

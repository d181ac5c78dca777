"""Grammars in GBNF, the language of llama.cpp, which xgrammar, vLLM and SGLang read as EBNF too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    inside,
)
from toolwire.grammars.automaton import automaton, counts


def write_gbnf(root: Expression, rules: Mapping[str, Expression]) -> str:
    """Return a grammar as text; its first rule is `root`."""
    writer = RuleWriter(reachable(root, rules))
    lines = [f"root ::= {writer.write(root)}"]
    lines += [f"{name} ::= {writer.write(rules[rule])}" for rule, name in writer.names.items()]
    lexemes = list(writer.lexemes.items())
    for part, name in lexemes:
        lines += _lexeme_rules(writer, name, part)
        lexemes += list(writer.lexemes.items())[len(lexemes) :]  # those inside this one
    return "\n".join(lines) + "\n"


def _lexeme_rules(writer: RuleWriter, name: str, part: Lexeme) -> Iterator[str]:
    """Yield the rules of a lexeme."""
    states = _state_rules(part)
    if not states:
        yield f"{name} ::= {writer.write(part.part)}"
    for suffix, text in states:
        yield f"{name}{suffix} ::= {text.replace(_OWN_NAME, name)}"


_OWN_NAME = "\0"
"""The name of a lexeme in the texts of its rules."""


@lru_cache(1000)  # text around calls is the same in all grammars of a format
def _state_rules(part: Lexeme) -> tuple[tuple[str, str], ...]:
    """Return the rules of a lexeme, each by what is behind its name in the rule's name; none if one rule is enough.

    Text between markers has a rule for each state of its automaton. xgrammar computes the mask at the beginning of a
    rule once, for all that may follow in it. Inside a choice in parentheses, it tries most tokens again each time:
    tens of milliseconds.
    """
    if not _has_detours(part) or counts(part):
        return ()
    states = automaton(part)
    suffixes = ["", *(f"-{number}" for number in range(1, len(states)))]
    rules: list[tuple[str, str]] = []
    for number, (suffix, state) in enumerate(zip(suffixes, states, strict=True)):
        loop = ""
        options = ['""'] if state.may_end else []
        for characters, target in state.ways:
            written = write_class(characters.ranges, _escape_in_class)
            if target == number:
                loop = f"{written}* "
            else:
                options.append(f"{written} {_OWN_NAME}{suffixes[target]}" if states[target].ways else written)
        if loop and len(options) > 1:  # a choice in parentheses is what the rules are for
            rules.append((suffix, f"{loop}{_OWN_NAME}{suffix}-"))
            loop, suffix = "", f"{suffix}-"
        if state.ways:
            rules.append((suffix, loop + " | ".join(options)))
    return tuple(rules)


def _has_detours(part: Expression) -> bool:
    """Return whether a choice is repeated any number of times, as in text between markers and in strings."""
    if isinstance(part, Repeat) and part.most is None and isinstance(part.part, Either):
        return True
    return any(map(_has_detours, inside(part)))


def reachable(root: Expression, rules: Mapping[str, Expression]) -> dict[str, str]:
    """Return short names for the rules that a grammar uses, in the order in which they are first used."""
    names: dict[str, str] = {}
    # Rules that nothing refers to are not written: a tool that was left out, for example.
    waiting = [root]
    while waiting:
        new_names = [name for name in dict.fromkeys(_references(waiting.pop(0))) if name not in names]
        for name in new_names:
            names[name] = f"r{len(names)}"
            waiting.append(rules[name])
    return names


def _references(part: Expression) -> Iterator[str]:
    if isinstance(part, RuleName):
        yield part.name
    if isinstance(part, Lexeme):  # one regular expression, which cannot refer to rules; text between markers is long
        return
    for inner in inside(part):
        yield from _references(inner)


class RuleWriter:
    """A writer of expressions, which gives each lexeme a rule of its own.

    Attributes:
        names: the names of rules.
        lexemes: the names of the lexemes that were written so far.
    """

    prefix = "t"
    """Beginning of the names of lexemes."""
    space, bar, empty_text = " ", " | ", '""'
    """Signs between parts and between alternatives, and of the empty text."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self.names = names or {}
        self.lexemes: dict[Lexeme, str] = {}
        self._texts: dict[tuple[int, bool], tuple[Expression, str]] = {}

    def write(self, part: Expression, *, inner: bool = False) -> str:
        """Return an expression as text, in parentheses where it is `inner` and has several parts."""
        # The same white space is everywhere. What was written is kept, so that no other expression gets its id.
        key = (id(part), inner)
        if key not in self._texts:
            self._texts[key] = part, self._written(part, inner)
        return self._texts[key][1]

    def fixed(self, text: str, inner: bool) -> str:
        """Return a literal."""
        return '"' + "".join(map(escape_quoted, text)) + '"'

    def characters(self, part: Chars) -> str:
        """Return a set of characters outside of lexemes."""
        return write_class(part.ranges, _escape_in_class)

    def lexeme(self, part: Lexeme, inner: bool) -> str:
        """Return a lexeme: the name of its rule, because strings, numbers and white space appear everywhere."""
        if isinstance(part.part, Fixed):
            return self.write(part.part)
        return self.lexemes.setdefault(part, f"{self.prefix}{len(self.lexemes)}")

    def _written(self, part: Expression, inner: bool) -> str:
        match part:
            case Fixed(text):
                return self.fixed(text, inner)
            case Chars():
                return self.characters(part)
            case RuleName(name):
                if name not in self.names:
                    raise AssertionError(f"the rule {name!r} inside a lexeme")
                return self.names[name]
            case Lexeme():
                return self.lexeme(part, inner)
            case Repeat(content, least, most):
                text = self.write(content, inner=True) + repetition(least, most)
            case Chain(()):
                return self.empty_text
            case Chain(parts):
                text = self.space.join(self.write(each, inner=isinstance(each, (Either, Lexeme))) for each in parts)
            case Either(options):
                text = self.bar.join(self.write(each) for each in options if each != EMPTY)
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

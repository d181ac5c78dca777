"""Grammars in the dialect of Lark that llguidance reads, and with it llama.cpp, vLLM, SGLang and xgrammar."""

from __future__ import annotations

from collections.abc import Mapping

from toolwire.grammars.algebra import Chars, Either, Expression, Fixed, Lexeme, choice
from toolwire.grammars.gbnf_writer import RuleWriter, escape_code, reachable, write_class

_REGEX_SPECIAL = frozenset("\\^$.|?*+()[]{}/")
_AMBIGUOUS = frozenset("-\"'&~#")
"""Characters that some engines take for operators, and others refuse to see escaped."""
MAX_LITERALS = 500
"""Maximum number of literals in a choice; llguidance reads few more, and any number in one regular expression."""


def write_lark(root: Expression, rules: Mapping[str, Expression]) -> str:
    """Return a grammar as text; its first rule is `start`."""
    writer, regex = _LarkWriter(reachable(root, rules)), _RegexWriter()
    lines = [f"start: {writer.write(root)}"]
    lines += [f"{name}: {writer.write(rules[rule])}" for rule, name in writer.names.items()]
    lines += [f"{name}: /{regex.write(each.part)}/" for each, name in writer.lexemes.items()]
    return "\n".join(lines) + "\n"


class _LarkWriter(RuleWriter):
    """A writer of expressions; sets of characters and choices of many literals are terminals too."""

    prefix = "T"

    def characters(self, part: Chars) -> str:
        return self.lexeme(Lexeme(part), False)

    def _written(self, part: Expression, inner: bool) -> str:
        if isinstance(part, Either) and len(part.options) > MAX_LITERALS:
            literals = [option for option in part.options if isinstance(option, Fixed)]
            if len(literals) > MAX_LITERALS:
                rest = [option for option in part.options if not isinstance(option, Fixed)]
                part = choice([Lexeme(choice(literals)), *rest])
        return super()._written(part, inner)


class _RegexWriter(RuleWriter):
    """A writer of the expressions inside a lexeme as one regular expression."""

    space, bar, empty_text = "", "|", ""

    def fixed(self, text: str, inner: bool) -> str:
        written = "".join(map(_escape, text))
        return f"({written})" if inner and len(text) > 1 else written

    def characters(self, part: Chars) -> str:
        return write_class(part.ranges, _escape)

    def lexeme(self, part: Lexeme, inner: bool) -> str:
        return self.write(part.part, inner=inner)


def _escape(character: str) -> str:
    if character in _REGEX_SPECIAL:
        return f"\\{character}"
    return character if character.isprintable() and character not in _AMBIGUOUS else escape_code(character)

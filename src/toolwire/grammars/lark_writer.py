"""Grammars in the dialect of Lark that llguidance reads, and with it llama.cpp, vLLM, SGLang and xgrammar."""

from __future__ import annotations

from collections.abc import Mapping

from toolwire.grammars.algebra import EMPTY, Chain, Chars, Either, Expression, Fixed, Lexeme, Repeat, RuleName, choice
from toolwire.grammars.gbnf_writer import RuleWriter, escape_code, repetition, write_class
from toolwire.grammars.rule_names import reachable

_REGEX_SPECIAL = frozenset("\\^$.|?*+()[]{}/")
_AMBIGUOUS = frozenset("-\"'&~#")
"""Characters that some engines take for operators, and others refuse to see escaped."""


MAX_LITERALS = 500
"""Maximum number of literals in a choice; llguidance reads few more, and any number in one regular expression."""


class _LarkWriter(RuleWriter):
    """A writer of expressions; sets of characters and choices of many literals are terminals too."""

    prefix = "T"

    def characters(self, part: Chars) -> str:
        return self.lexeme(part)

    def _written(self, part: Expression, inner: bool) -> str:
        if isinstance(part, Either) and len(part.options) > MAX_LITERALS:
            literals = [option for option in part.options if isinstance(option, Fixed)]
            if len(literals) > MAX_LITERALS:
                rest = [option for option in part.options if not isinstance(option, Fixed)]
                return super()._written(choice([Lexeme(choice(literals)), *rest]), inner)
        return super()._written(part, inner)


def write_lark(root: Expression, rules: Mapping[str, Expression]) -> str:
    """Return a grammar as text; its first rule is `start`."""
    writer = _LarkWriter(reachable(root, rules))
    lines = [f"start: {writer.write(root)}"]
    lines += [f"{name}: {writer.write(rules[rule])}" for rule, name in writer.names.items()]
    lines += [f"{name}: /{_regex(part)}/" for part, name in writer.lexemes.items()]
    return "\n".join(lines) + "\n"


def _regex(part: Expression, *, inner: bool = False) -> str:
    match part:
        case Fixed(text):
            written = "".join(map(_escape_regex, text))
            return f"({written})" if inner and len(text) > 1 else written
        case Chars(ranges):
            return write_class(ranges, _escape_regex)
        case Lexeme(content):
            return _regex(content, inner=inner)
        case Repeat(content, least, most):
            text = _regex(content, inner=True) + repetition(least, most)
            return f"({text})" if inner else text
        case Chain(parts):
            text = "".join(_regex(each, inner=isinstance(each, (Either, Lexeme))) for each in parts)
            return f"({text})" if inner else text
        case Either(options):
            text = "|".join(_regex(each) for each in options if each != EMPTY)
            return f"({text})?" if EMPTY in options else f"({text})" if inner else text
        case RuleName(name):
            raise AssertionError(f"the rule {name!r} inside a lexeme")


def _escape_regex(character: str) -> str:
    if character in _REGEX_SPECIAL:
        return f"\\{character}"
    return character if character.isprintable() and character not in _AMBIGUOUS else escape_code(character)

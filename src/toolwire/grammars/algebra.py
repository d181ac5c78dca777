"""The expressions of which grammars are made, between formats and schemas on one side and syntaxes on the other.

Build expressions with the functions, which merge neighbours and remove what can never match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from toolwire.text.identity_cache import IdentityCache

LAST = 0x10FFFF
"""The last code point."""
_SURROGATES = (0xD800, 0xDFFF)
Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Fixed:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set.

    Attributes:
        ranges: inclusive ranges of code points, sorted and disjoint, without surrogates.
    """

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Chain:
    """Expressions one after the other; none of them is the empty text."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of several expressions; without any, nothing matches."""

    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """An expression several times.

    Attributes:
        part: the expression.
        least, most: number of repetitions; None is any number.
    """

    part: Expression
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class RuleName:
    """A reference to a rule of the grammar, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A regular expression, without rules, that engines with a lexer read as one unit: the longest match counts."""

    part: Expression
    _hash: list[int] = field(default_factory=list, repr=False, compare=False)

    def __hash__(self) -> int:
        """Return the hash of the expression, which is computed once, because text between markers is long."""
        if not self._hash:
            self._hash.append(hash(self.part))
        return self._hash[0]


Expression = Fixed | Chars | Chain | Either | Repeat | RuleName | Lexeme
EMPTY = Chain(())
"""The empty text."""
NOTHING = Either(())
"""An expression that matches no text."""


def sequence(*parts: Expression) -> Expression:
    """Return expressions one after the other."""
    flat: list[Expression] = []
    for part in parts:
        if part == NOTHING:
            return NOTHING
        for inner in part.parts if isinstance(part, Chain) else (part,):
            if isinstance(inner, Fixed) and flat and isinstance(last := flat[-1], Fixed):
                flat[-1] = Fixed(last.text + inner.text)
            else:
                flat.append(inner)
    return flat[0] if len(flat) == 1 else Chain(tuple(flat))


def choice(options: Iterable[Expression]) -> Expression:
    """Return the choice between expressions, each once."""
    flat: list[Expression] = []
    atoms: set[Expression] = set()
    for option in options:
        for inner in option.options if isinstance(option, Either) else (option,):
            # Only small expressions are compared: the hash of a large one is as large as it is.
            if isinstance(inner, (Fixed, RuleName)) or inner == EMPTY:
                if inner in atoms:
                    continue
                atoms.add(inner)
            flat.append(inner)
    return flat[0] if len(flat) == 1 else Either(tuple(flat))


def factored(options: Iterable[Expression]) -> Expression:
    """Return the choice between expressions in which those that begin alike share their beginning.

    An engine follows all alternatives at once: it takes few of those that differ in a late character, such as the calls
    of 1,000 tools, but any number of them as a tree.
    """
    groups: dict[Expression | str, list[tuple[Expression, ...]]] = {}
    for option in options:
        parts = option.parts if isinstance(option, Chain) else (option,)
        if not (option == EMPTY and EMPTY in groups):  # equal options end alike
            head = parts[0] if parts else EMPTY
            groups.setdefault(head.text[0] if isinstance(head, Fixed) else head, []).append(parts)
    return choice(_with_common_head(group) for group in groups.values())


def _with_common_head(group: list[tuple[Expression, ...]]) -> Expression:
    """Return the choice between chains whose first parts are equal, or literals that begin alike."""
    if len(group) == 1:
        return sequence(*group[0])
    head = group[0][0]
    texts = [parts[0].text for parts in group if isinstance(parts[0], Fixed)]
    if texts:
        low, high = min(texts), max(texts)  # what these two share, all texts between them share
        shared = low[
            : next((at for at, pair in enumerate(zip(low, high, strict=False)) if len(set(pair)) > 1), len(low))
        ]
        rests = [sequence(literal(text[len(shared) :]), *parts[1:]) for text, parts in zip(texts, group, strict=True)]
        return sequence(literal(shared), factored(rests))
    return sequence(head, factored(sequence(*parts[1:]) for parts in group))


def repeat(part: Expression, least: int = 0, most: int | None = None) -> Expression:
    """Return an expression several times; `most` of None is any number."""
    if part == EMPTY or most == 0:
        return EMPTY
    if part == NOTHING:
        return NOTHING if least else EMPTY
    return part if (least, most) == (1, 1) else Repeat(part, least, most)


def optional(part: Expression) -> Expression:
    """Return an expression that may be missing."""
    return repeat(part, 0, 1)


def literal(text: str) -> Expression:
    """Return a text as an expression."""
    return Fixed(text) if text else EMPTY


def lexeme(part: Expression) -> Expression:
    """Return an expression without rules as one unit for engines with a lexer."""
    return part if part in (EMPTY, NOTHING) else Lexeme(part)


def chars(text: str) -> Chars:
    """Return one of the characters of a text."""
    return Chars(_merged((ord(character), ord(character)) for character in text))


def char_range(first: str, last: str) -> Chars:
    """Return one character between two, which are included."""
    return Chars(((ord(first), ord(last)),))


def chars_except(excluded: Chars | str) -> Chars:
    """Return one character outside a set."""
    ranges = chars(excluded).ranges if isinstance(excluded, str) else excluded.ranges
    gaps: list[tuple[int, int]] = []
    at = 0
    for low, high in _merged([*ranges, _SURROGATES]):
        if at < low:
            gaps.append((at, low - 1))
        at = high + 1
    if at <= LAST:
        gaps.append((at, LAST))
    return Chars(tuple(gaps))


def union(*sets: Chars) -> Chars:
    """Return one character of any of these sets."""
    return Chars(_merged(pair for each in sets for pair in each.ranges))


def _merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


ANY = chars_except("")
"""Any character."""
SPACE = " \n"
"""The white space that grammars offer; other white space is not what formats write."""
MOST_SPACE = 4
"""Maximum length of free white space, in characters: a small model that may write more can write it forever."""


def space(written: str) -> Expression:
    """Return white space where a format writes some; nothing where it writes none."""
    return Lexeme(repeat(chars(SPACE), 1, MOST_SPACE)) if written else EMPTY


def free_space(written: str) -> Expression:
    """Return white space, or nothing, where a format writes white space; nothing where it writes none."""
    return optional(space(written))


def inside(part: Expression) -> tuple[Expression, ...]:
    """Return the expressions that an expression is made of."""
    match part:
        case Chain(parts) | Either(parts):
            return parts
        case Repeat(inner) | Lexeme(inner):
            return (inner,)
        case _:
            return ()


def escape(part: Expression, escapes: Mapping[str, str], rule: Callable[[str], str]) -> Expression:
    """Return the expression whose texts are those of `part` with characters replaced.

    Args:
        part: the expression.
        escapes: replacements of single characters.
        rule: the name of the escaped form of a rule, by the rule's name.
    """
    match part:
        case Fixed(text):
            return literal("".join(escapes.get(character, character) for character in text))
        case Chars(ranges):
            special = [key for key in escapes if any(low <= ord(key) <= high for low, high in ranges)]
            if not special:
                return part
            # What is left of the set is one part, and each character that is escaped another: sets stay small.
            plain = chars_except(union(chars_except(part), chars("".join(special))))
            return choice([*([plain] if plain.ranges else []), *(literal(escapes[key]) for key in special)])
        case RuleName(name):
            return RuleName(rule(name))
        case _:
            return rebuild(part, lambda inner: escape(inner, escapes, rule))


def rebuild(part: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return an expression with the expressions inside it changed."""
    match part:
        case Chain(parts):
            return sequence(*map(change, parts))
        case Either(options):
            return choice(map(change, options))
        case Repeat(inner, least, most):
            return repeat(change(inner), least, most)
        case Lexeme(inner):
            return Lexeme(change(inner))
        case _:
            return part


def without_prefixes(part: Expression, texts: Sequence[str], rules: Mapping[str, Expression]) -> dict[str, Expression]:
    """Return, for each text with which an expression can begin, what may follow it.

    A beginning that texts share is taken away once, so that many texts cost about as much as one.
    """
    rests = {"": part}
    for text in texts:
        for at in range(len(text)):
            if text[: at + 1] not in rests:
                rests[text[: at + 1]] = _without(rests[text[:at]], text[at], rules)
    return {text: rests[text] for text in texts if rests[text] != NOTHING}


def without_prefix(part: Expression, text: str, rules: Mapping[str, Expression]) -> Expression:
    """Return what may follow a text at the beginning of an expression; NOTHING if it cannot begin so."""
    rest = _without_literal(part, text, rules) if text else part
    return without_prefixes(part, [text], rules).get(text, NOTHING) if rest is None else rest


def _without_literal(part: Expression, text: str, rules: Mapping[str, Expression]) -> Expression | None:
    """Return what may follow a text where literals alone decide; None where they do not."""
    match part:
        case Fixed(written):
            if written.startswith(text):
                return literal(written[len(text) :])
            return None if text.startswith(written) else NOTHING
        case Either(options):
            rests = [_without_literal(option, text, rules) for option in options]
            decided = [rest for rest in rests if rest is not None]
            return choice(decided) if len(decided) == len(rests) else None
        case RuleName(name):
            return _without_literal(rules[name], text, rules)
        case Chain((head, *tail)):
            rest = _without_literal(head, text, rules)
            return None if rest is None else sequence(rest, *tail)
        case _:
            return None


_RESTS = IdentityCache(2000)
"""The rests of lexemes behind a character; the text around calls is the same in all grammars of a format."""


def _without(part: Expression, character: str, rules: Mapping[str, Expression]) -> Expression:
    """Return what may follow one character at the beginning of an expression: its derivative."""
    match part:
        case Fixed(text):
            return literal(text[1:]) if text.startswith(character) else NOTHING
        case Chars(ranges):
            return EMPTY if any(low <= ord(character) <= high for low, high in ranges) else NOTHING
        case Either(options):
            return choice(_without(option, character, rules) for option in options)
        case RuleName(name):
            return _without(rules[name], character, rules)
        case Lexeme(inner):
            # The rest of a lexeme is one too: engines with a lexer start it where the prompt ends.
            return _RESTS.get(lambda: lexeme(_without(inner, character, rules)), (part,), character)
        case Repeat(inner, least, most):
            more = repeat(inner, max(least - 1, 0), None if most is None else most - 1)
            return sequence(_without(inner, character, rules), more)
        case Chain(()):
            return NOTHING
        case Chain((head, *rest)):
            tail = sequence(*rest)
            started = sequence(_without(head, character, rules), tail)
            return choice([started, _without(tail, character, rules)]) if can_be_empty(head, rules) else started
    raise AssertionError(part)


def can_be_empty(part: Expression, rules: Mapping[str, Expression], open_rules: frozenset[str] = frozenset()) -> bool:
    """Return whether the empty text matches."""
    match part:
        case Fixed() | Chars():
            return False
        case RuleName(name):
            return name not in open_rules and can_be_empty(rules[name], rules, open_rules | {name})
        case Repeat(_, 0):
            return True
    parts = (can_be_empty(inner, rules, open_rules) for inner in inside(part))
    return any(parts) if isinstance(part, Either) else all(parts)

"""Names of the rules that a grammar uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolwire.grammars.algebra import Chain, Either, Expression, Lexeme, Repeat, RuleName


def references(part: Expression) -> Iterator[str]:
    """Yield the names of the rules that an expression refers to."""
    match part:
        case RuleName(name):
            yield name
        case Chain(inner) | Either(inner):
            for each in inner:
                yield from references(each)
        case Repeat(content) | Lexeme(content):
            yield from references(content)
        case _:
            pass


def reachable(root: Expression, rules: Mapping[str, Expression]) -> dict[str, str]:
    """Return short names for the rules that a grammar uses, in the order in which they are first used."""
    names: dict[str, str] = {}
    # Rules that nothing refers to are not written: a tool that was left out, for example.
    waiting = [root]
    while waiting:
        new_names = [name for name in dict.fromkeys(references(waiting.pop(0))) if name not in names]
        for name in new_names:
            names[name] = f"r{len(names)}"
            waiting.append(rules[name])
    return names

"""Texts drawn from the expressions of a grammar."""

from __future__ import annotations

import random
from collections.abc import Mapping

from toolwire.grammars.algebra import Chain, Chars, Either, Expression, Fixed, Lexeme, Repeat, RuleName

LEVELS = 14
"""Levels of rules below which the shortest texts are chosen."""
_FREQUENT = "abcxyz019 <>\"'&{}[]/\\\n`:,=é日😀"


class Sampler:
    """A writer of random texts that a grammar offers."""

    def __init__(self, rules: Mapping[str, Expression], seed: int) -> None:
        self._rules = rules
        self._random = random.Random(seed)
        self._costs = dict.fromkeys(rules, 10**9)
        while (costs := {name: self._cost(part) for name, part in rules.items()}) != self._costs:
            self._costs = costs

    def _cost(self, part: Expression) -> int:
        """Return the length of the shortest text, about."""
        match part:
            case Fixed(text):
                return len(text)
            case Chars():
                return 1
            case RuleName(name):
                return min(self._costs[name] + 1, 10**9)
            case Chain(parts):
                return min(sum(map(self._cost, parts)), 10**9)
            case Either(options):
                return min(map(self._cost, options), default=10**9)
            case Repeat(inner, least):
                return min(self._cost(inner) * least, 10**9)
            case Lexeme(inner):
                return self._cost(inner)

    def text(self, part: Expression, level: int = 0) -> str:
        """Return a random text of an expression."""
        draw = self._random
        match part:
            case Fixed(text):
                return text
            case Chars(ranges):
                frequent = [c for c in _FREQUENT if any(low <= ord(c) <= high for low, high in ranges)]
                if frequent and draw.random() < 0.9:
                    return draw.choice(frequent)
                low, high = draw.choice(ranges)
                return chr(draw.randint(low, high))
            case RuleName(name):
                return self.text(self._rules[name], level + 1)
            case Chain(parts):
                return "".join(self.text(inner, level) for inner in parts)
            case Either(options):
                if level > LEVELS:
                    return self.text(min(options, key=self._cost), level)
                return self.text(draw.choice(options), level)
            case Repeat(inner, least, most):
                more = 0 if level > LEVELS else draw.choice((0, 0, 1, 1, 2, 5))
                count = least + more if most is None else min(most, least + more)
                return "".join(self.text(inner, level) for _ in range(count))
            case Lexeme(inner):
                return self.text(inner, level)

"""Spellings of ids and names. They depend on the text alone, so that calls, results and definitions match."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_DIGEST = 8


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The spelling that an API requires of an id or a name.

    Attributes:
        letters: a character class of a regular expression, without its brackets.
        most: maximum length, in characters.
        least: minimum length, in characters.
        first: the character class of the first character; "" for the same class.
    """

    letters: str
    most: int
    least: int = 1
    first: str = ""

    def takes(self, text: str) -> bool:
        """Return whether the API accepts this text unchanged."""
        return (
            self.least <= len(text) <= self.most
            and re.fullmatch(f"[{self.letters}]*", text) is not None
            and (not self.first or re.match(f"[{self.first}]", text) is not None)
        )

    def fit(self, text: str) -> str:
        """Return the text if the API accepts it; else its acceptable characters and a hash, which keeps it unique."""
        if self.takes(text):
            return text
        digest = _digest(text, min(_DIGEST, self.most) if self.most > self.least else self.most)
        prefix = re.sub(f"[^{self.letters}]", "_", text) if re.match(f"[{self.letters}]", "_") else ""
        if self.first and prefix and not re.match(f"[{self.first}]", prefix):
            prefix = f"_{prefix}"
        prefix = prefix[: max(self.most - len(digest) - 1, 0)]
        return f"{prefix}_{digest}" if prefix else digest


def _digest(text: str, size: int) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")
    digits: list[str] = []
    for _ in range(size):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(digits)


ANY = Alphabet(r"\s\S", 1 << 30, least=0)
WORD_64 = Alphabet("a-zA-Z0-9_-", 64)


def own_names(alphabet: Alphabet, names: Iterable[str]) -> dict[str, str]:
    """Return the tools' own names by those that the API knows them by, where these differ."""
    return {fitted: name for name in names if (fitted := alphabet.fit(name)) != name}

"""Ids and names as an API takes them: mapped by the text alone, so that calls, results and definitions agree."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_DIGEST = 8


@dataclass(frozen=True, slots=True)
class Alphabet:
    """What an API takes as an id or as a name.

    Attributes:
        letters: a character class of a regular expression, without its brackets.
        most: how long it may be.
        least: how long it must be.
        first: the class of its first character; "" if that may be any.
    """

    letters: str
    most: int
    least: int = 1
    first: str = ""

    def takes(self, text: str) -> bool:
        """Whether the API takes this text as it is."""
        return (
            self.least <= len(text) <= self.most
            and re.fullmatch(f"[{self.letters}]*", text) is not None
            and (not self.first or re.match(f"[{self.first}]", text) is not None)
        )

    def fit(self, text: str) -> str:
        """The text if the API takes it; else what can be kept of it and a hash, so that no two become the same."""
        if self.takes(text):
            return text
        digest = _digest(text, min(_DIGEST, self.most) if self.most > self.least else self.most)
        kept = re.sub(f"[^{self.letters}]", "_", text) if re.match(f"[{self.letters}]", "_") else ""
        if self.first and kept and not re.match(f"[{self.first}]", kept):
            kept = f"_{kept}"
        kept = kept[: self.most - len(digest) - 1]
        return f"{kept}_{digest}" if kept else digest


def _digest(text: str, size: int) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")
    made: list[str] = []
    for _ in range(size):
        number, digit = divmod(number, len(_DIGITS))
        made.append(_DIGITS[digit])
    return "".join(made)


ANY = Alphabet(r"\s\S", 1 << 30, least=0)
WORD_64 = Alphabet("a-zA-Z0-9_-", 64)


def own_names(alphabet: Alphabet, names: Iterable[str]) -> dict[str, str]:
    """The tools' own names by the names that the API knows them by, where these differ."""
    return {fitted: name for name in names if (fitted := alphabet.fit(name)) != name}

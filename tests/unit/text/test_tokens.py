"""Token counts, exact and estimated."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from toolwire.errors import ConfigurationError
from toolwire.text.tokens import TokenCount, count_tokens


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("日本", 2), ("\ud800", 1)])
def test_an_estimate_is_marked_as_one(text: str, tokens: int) -> None:
    found = count_tokens(text)
    assert (found.tokens, found.estimated) == (tokens, True)
    assert "estimate" in found.by
    assert str(found) == f"~{tokens} tokens"


def by_words(text: str) -> int:
    return len(text.split())


class Words:
    name = "words"

    def encode(self, text: str) -> list[str]:
        return text.split()


class Encodings:
    def encode(self, text: str) -> SimpleNamespace:
        return SimpleNamespace(ids=[1, 2, 3])


@pytest.mark.parametrize(
    ("tokenizer", "expected"),
    [
        (by_words, TokenCount(3, False, "by_words")),
        (Words(), TokenCount(3, False, "words")),
        (Encodings(), TokenCount(3, False, "Encodings")),
    ],
)
def test_any_kind_of_tokenizer_is_accepted(tokenizer: object, expected: TokenCount) -> None:
    assert count_tokens("one two three", tokenizer) == expected
    assert str(expected) == "3 tokens"


def test_an_object_that_is_not_a_tokenizer_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"tokenizer must be a function, or an object with encode\(text\), not int"
    ):
        count_tokens("a", 5)

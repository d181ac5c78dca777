"""How many tokens a text has: counted if a tokenizer is given, estimated otherwise, and it says which."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Any

from toolwire.errors import ConfigurationError

BYTES = 4
"""UTF-8 bytes that the estimate takes for one token; `benchmarks/definitions.py` measures how far off that is."""

Tokenizer = Callable[[str], int] | Any
"""A function from text to a number of tokens, or any object with `encode(text)`, as those of tiktoken, tokenizers,
transformers and SentencePiece. None is looked for: some of them load their vocabulary from the network."""


@dataclass(frozen=True, slots=True)
class TokenCount:
    """How many tokens.

    Attributes:
        tokens: the number.
        estimated: whether it is a guess.
        by: who counted.
    """

    tokens: int
    estimated: bool
    by: str

    def __str__(self) -> str:
        """The number as a user should read it: `~1,200 tokens` if it is a guess."""
        return f"{'~' if self.estimated else ''}{self.tokens:,} tokens"


def count_tokens(text: str, tokenizer: Tokenizer | None = None) -> TokenCount:
    """The tokens of a text; without a tokenizer, a quarter of its UTF-8 bytes.

    Raises:
        ConfigurationError: the tokenizer is neither a function nor an object with `encode`.
    """
    if tokenizer is None:
        size = len(text.encode("utf-8", "surrogatepass"))
        return TokenCount(-(-size // BYTES), estimated=True, by=f"an estimate of {BYTES} bytes to a token")
    by = getattr(tokenizer, "name", None) or getattr(tokenizer, "__name__", None) or type(tokenizer).__name__
    encode = getattr(tokenizer, "encode", None)
    if callable(encode):
        made = encode(text)
        made = getattr(made, "ids", made)
    elif callable(tokenizer):
        made = tokenizer(text)
    else:
        raise ConfigurationError(f"a {type(tokenizer).__name__} counts no tokens: it needs encode(text)")
    return TokenCount(len(made) if isinstance(made, Sized) else int(made), estimated=False, by=str(by))

"""Token counts of text: exact if a tokenizer is given, estimated otherwise, and marked as such."""

from __future__ import annotations

import json
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Any

from toolwire._surface import check_type
from toolwire.errors import ConfigurationError
from toolwire.messages import FilePart, Message, ReasoningPart, TextPart, ToolCall, ToolResult

PER_TOKEN = 4
"""UTF-8 bytes, or characters, that the estimate takes for one token; `benchmarks/definitions.py` measures the error."""

_MESSAGE_OVERHEAD = 9
"""Size of a message's role and delimiters, in characters."""
_OTHER_PART = 400
"""Size assumed for an image, or for a part that only its provider understands, in characters."""

_PER_CHARACTER = 10
"""Characters of a document's base64 that are taken for one of text: a page of a PDF file has layout and fonts too."""

Tokenizer = Callable[[str], int] | Any
"""A function from text to a number of tokens, or any object with `encode(text)`, as those of tiktoken, tokenizers,
transformers and SentencePiece. Toolwire never picks one itself: some load their vocabulary from the network."""


@dataclass(frozen=True, slots=True)
class TokenCount:
    """A number of tokens.

    Attributes:
        tokens: the number.
        estimated: whether it is an estimate.
        by: the name of the tokenizer, or of the estimate.
    """

    tokens: int
    estimated: bool
    by: str

    def __str__(self) -> str:
        """The number as a user should read it: `~1,200 tokens` if it is an estimate."""
        return f"{'~' if self.estimated else ''}{self.tokens:,} tokens"


def estimate_tokens(size: int) -> int:
    """Return about how many tokens there are in this many characters or UTF-8 bytes, rounded up."""
    return -(-size // PER_TOKEN)


def estimate_message_tokens(message: Message) -> int:
    """Return about how many tokens there are in a message."""
    size = _MESSAGE_OVERHEAD
    for part in message.parts:
        match part:
            case TextPart(text) | ReasoningPart(text):
                size += len(text)
            case ToolCall():
                size += len(part.name) + len(json.dumps(part.arguments))
            case ToolResult():
                size += len(part.text) + _OTHER_PART * len(part.images) + sum(map(_size_of_file, part.files))
            case FilePart():
                size += _size_of_file(part)
            case _:
                size += _OTHER_PART
    return estimate_tokens(size)


def _size_of_file(file: FilePart) -> int:
    """Return the size that is assumed for a file, in characters."""
    if (text := file.text) is not None:
        return len(text)
    return max(_OTHER_PART, len(file.data) // _PER_CHARACTER if file.kind == "document" else 0)


def count_tokens(text: str, tokenizer: Tokenizer | None = None) -> TokenCount:
    """Count the tokens of a text; without a tokenizer, estimate a quarter of its UTF-8 bytes.

    Raises:
        ConfigurationError: the tokenizer is neither a function nor an object with `encode`.
    """
    check_type("text", text, str, "text")
    if tokenizer is None:
        tokens = estimate_tokens(len(text.encode("utf-8", "surrogatepass")))
        return TokenCount(tokens, estimated=True, by=f"an estimate of {PER_TOKEN} bytes to a token")
    by = getattr(tokenizer, "name", None) or getattr(tokenizer, "__name__", None) or type(tokenizer).__name__
    encode = getattr(tokenizer, "encode", None)
    if callable(encode):
        encoded = encode(text)
        encoded = getattr(encoded, "ids", encoded)
    elif callable(tokenizer):
        encoded = tokenizer(text)
    else:
        expected = "tokenizer must be a function, or an object with encode(text)"
        raise ConfigurationError(f"{expected}, not {type(tokenizer).__name__}")
    return TokenCount(len(encoded) if isinstance(encoded, Sized) else int(encoded), estimated=False, by=str(by))

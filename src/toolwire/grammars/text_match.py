"""The check of a text against a grammar, by llguidance: how far the grammar allows it, and what may follow there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from toolwire._surface import needs_extra
from toolwire.errors import DefinitionError
from toolwire.grammars.message_grammar import Grammar

_END = 256
"""The token behind those of single bytes that ends a text."""


@dataclass(frozen=True, slots=True)
class TextMatch:
    """The part of a text that a grammar allows.

    Attributes:
        allowed: length of the longest beginning that is allowed, in characters.
        complete: all of the text is allowed, and a message may end there.
        following: the ASCII characters that may follow that beginning, sorted.
        others: characters outside ASCII may follow it too.
    """

    allowed: int
    complete: bool
    following: str = ""
    others: bool = False


class _Bytes:
    """A vocabulary of all bytes, so that every text has its tokens."""

    eos_token_id = _END
    bos_token_id = None
    tokens = (*(bytes([byte]) for byte in range(_END)), b"<eos>")

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


@cache
def _tokenizer(llguidance: Any) -> Any:
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Bytes()))


def open_matcher(text: str) -> Any:
    """Return llguidance's matcher of a grammar in its dialect of Lark; its tokens are bytes.

    Raises:
        DefinitionError: llguidance cannot read the grammar; the message contains its own.
        MissingExtra: llguidance is not installed.
    """
    with needs_extra("The check of a text against a grammar"):
        import llguidance  # here, because the library is large and few programs need it
    matcher = llguidance.LLMatcher(_tokenizer(llguidance), llguidance.LLMatcher.grammar_from_lark(text))
    _check(matcher)
    return matcher


def _check(matcher: Any) -> None:
    """Raise DefinitionError if llguidance has given up; from there on it would refuse every text."""
    if matcher.is_error():
        # A panic is reported with many lines of its place in the library.
        reason = matcher.get_error().partition("\n")[0]
        raise DefinitionError(
            f"llguidance cannot read the grammar: {reason[:200]}. Its size is limited: offer fewer tools"
        )


def match_text(grammar: Grammar, text: str) -> TextMatch:
    """Return how far a grammar allows a text.

    Raises:
        DefinitionError: the grammar is not in the syntax `lark`, or llguidance cannot read it.
        MissingExtra: llguidance is not installed.
    """
    if grammar.syntax != "lark":
        raise DefinitionError(f"a text is checked with a grammar in the syntax lark, not {grammar.syntax}")
    matcher = open_matcher(grammar.text)
    encoded = text.encode("utf-8", "replace")
    consumed = matcher.try_consume_tokens(list(encoded))
    _check(matcher)
    allowed = len(encoded[:consumed].decode(errors="ignore"))
    # A character of several bytes may be refused behind its first one; what may follow is asked before it.
    matcher.rollback(consumed - len(text[:allowed].encode("utf-8", "replace")))
    complete = consumed == len(encoded) and matcher.is_accepting()
    following = list(_following(matcher))
    ascii_characters = "".join(chr(byte) for byte in following if byte < 0x80)
    return TextMatch(allowed, complete, ascii_characters, any(byte >= 0x80 for byte in following))


def _following(matcher: Any) -> Iterator[int]:
    """Yield the bytes that may follow."""
    if not matcher.is_stopped():
        yield from (byte for byte, bias in enumerate(matcher.compute_logit_bias()[:_END]) if bias)

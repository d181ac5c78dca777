"""Walks through a grammar: the characters that a real engine allows next, step by step.

Only characters of ASCII and a few others are asked about: vocabularies are bytes, and a walk has to choose something.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tests.property.grammar_engines import LlamaCpp, XGrammar, engine

_CHARACTERS = "".join(map(chr, range(0x20, 0x7F))) + "\n\té日😀"
_BYTES = 256


class Walk(Protocol):
    """One walk."""

    def may_end(self) -> bool: ...
    def allowed(self) -> str: ...
    def take(self, character: str) -> None: ...
    def close(self) -> None: ...


class _LlGuidanceWalk:
    """A walk over the masks of llguidance, whose tokens are bytes."""

    def __init__(self, grammar: str, syntax: str) -> None:
        self._matcher: Any = engine("llguidance").load(grammar)  # type: ignore[union-attr]

    def may_end(self) -> bool:
        return bool(self._matcher.is_accepting())

    def allowed(self) -> str:
        if self._matcher.is_stopped():
            return ""
        mask = self._matcher.compute_logit_bias()
        # A character of several bytes is tried as a whole: its first byte may be allowed and the others not.
        return "".join(
            character
            for character in _CHARACTERS
            if mask[(encoded := character.encode())[0]]
            and (len(encoded) == 1 or self._matcher.validate_tokens(list(encoded)) == len(encoded))
        )

    def take(self, character: str) -> None:
        assert self._matcher.consume_tokens(list(character.encode()))

    def close(self) -> None:
        pass


class _XGrammarWalk:
    """A walk over the masks of xgrammar, whose tokens are bytes."""

    def __init__(self, grammar: str, syntax: str) -> None:
        import numpy

        real = engine("xgrammar")
        assert isinstance(real, XGrammar)
        compiler = real.compiler([*(bytes([byte]) for byte in range(_BYTES)), b"<eos>"], _BYTES)
        self._matcher = real.matcher(compiler, grammar, syntax)
        self._mask = numpy.full((1, _BYTES // 32 + 1), -1, dtype=numpy.int32)

    def may_end(self) -> bool:
        return bool(self._matcher.is_completed())

    def allowed(self) -> str:
        if self._matcher.is_terminated():
            return ""
        self._matcher.fill_next_token_bitmask(self._mask)
        return "".join(character for character in _CHARACTERS if self._allows(character.encode()))

    def _allows(self, encoded: bytes) -> bool:
        if not self._mask[0, encoded[0] // 32] >> (encoded[0] % 32) & 1:
            return False
        if len(encoded) > 1:
            if not self._matcher.accept_string(encoded):
                return False
            self._matcher.rollback(1)
        return True

    def take(self, character: str) -> None:
        assert self._matcher.accept_string(character)

    def close(self) -> None:
        pass


class _LlamaCppWalk:
    """A walk through llama.cpp's grammar code, which is asked about each character in a copy."""

    def __init__(self, grammar: str, syntax: str) -> None:
        real = engine("llama.cpp")
        assert isinstance(real, LlamaCpp)
        self._real = real
        self._loaded = real.load(grammar)

    def may_end(self) -> bool:
        return self._real.may_end(self._loaded)

    def allowed(self) -> str:
        return "".join(character for character in _CHARACTERS if self._real.allows(self._loaded, character))

    def take(self, character: str) -> None:
        self._real.take(self._loaded, character)

    def close(self) -> None:
        self._real.free(self._loaded)


OPEN_WALKS: dict[str, Callable[[str, str], Walk]] = {
    "llama.cpp": _LlamaCppWalk,
    "llguidance": _LlGuidanceWalk,
    "xgrammar": _XGrammarWalk,
}
"""Opens a walk by a grammar and its syntax, for each engine."""

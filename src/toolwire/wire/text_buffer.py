"""A buffer for text that arrives in small pieces."""

from __future__ import annotations

_JOIN_AT = 1024
"""Number of pieces that are joined at a time."""


class TextBuffer:
    """Text collected in pieces."""

    __slots__ = ("_blocks", "_recent")

    def __init__(self) -> None:
        # Pieces are joined in blocks, because fifty bytes of overhead for each small piece would add up.
        self._blocks: list[str] = []
        self._recent: list[str] = []

    def add(self, text: str) -> None:
        """Append a piece."""
        recent = self._recent
        recent.append(text)
        if len(recent) >= _JOIN_AT:
            self._blocks.append("".join(recent))
            recent.clear()

    def take(self) -> str:
        """Return all of the text and forget it."""
        self._blocks.extend(self._recent)
        self._recent.clear()
        text = self._blocks[0] if len(self._blocks) == 1 else "".join(self._blocks)
        self._blocks.clear()
        return text

    def __bool__(self) -> bool:
        """Return whether there is any piece."""
        return bool(self._recent or self._blocks)

"""Frames of a stream that arrive twice, as behind a proxy that sends a piece again.

Most APIs write a call in several frames, and one too many makes its arguments unreadable. Where a frame contains a
whole call, the same frame again would be a second call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class RepeatedFrames:
    """Recognizes a frame that is the one before it again.

    Args:
        is_unique: returns whether no other frame of a stream can be equal to this one. A model may make the same call
            twice, so that being equal alone is not enough.
    """

    def __init__(self, is_unique: Callable[[dict[str, Any]], bool]) -> None:
        self._is_unique = is_unique
        self._last: dict[str, Any] | None = None

    def repeats(self, frame: dict[str, Any]) -> bool:
        """Return whether a frame repeats the last one."""
        last, self._last = self._last, frame
        return frame == last and self._is_unique(frame)

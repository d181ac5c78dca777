"""Turns of others that a model makes up in plain words, and the calls that it writes behind them.

    <tool_call>..</tool_call>            Shall I delete it?
    Observation: It is not there.        User: Yes, do.
    <tool_call>..</tool_call>            Assistant: <tool_call>..</tool_call>

The second call on the left is based on a result that no tool has returned, the one on the right on a request that no
user has made. A line that begins with such a word may also be part of a list, so the calls stay calls, but with a
confidence that no policy lets run unasked. Headers with the tokens of chat templates hide calls; see `turn_headers`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from toolwire.events import CallEnd, ContentDelta, Event

CONFIDENCE_BEHIND_TURN = 0.4
"""Confidence of a call behind a turn that the model made up."""
_HEADER = re.compile(
    r"""
    ^[ \t]{0,3}(?:[*_]{2}|\#{1,4}[ ]|\[)?(?=[A-Z])(?i:
      (?P<others>human|user|observation|(?:tool|function)(?:[ _-](?:call[ _-])?(?:result|response|output)s?)?)
    | (?P<model>assistant|ai|model)
    )(?:[ ]\d{1,3})?\]?(?:[*_]{2})?[ \t]{0,3}:
    """,
    re.VERBOSE | re.MULTILINE,
)
"""A line that begins with a role in plain words."""
_FENCED = re.compile(r"^[ \t]*(?P<run>`{3,}+|~{3,}+)[^\n]*\n(?:[\s\S]*?^[ \t]*(?P=run)|[\s\S]*)", re.MULTILINE)
"""A code fence, which only shows a conversation."""
_USERS = ("human", "user")


class InventedTurns:
    """A filter of events that lowers the confidence of calls behind turns which the model made up.

    Attributes:
        content: the pieces of content since the last call; one that comes alone may be appended, and not filtered.
    """

    def __init__(self) -> None:
        self.content: list[ContentDelta] = []
        self._has_calls = self._has_user = self._is_invented = False

    def filter(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events, with less confidence in some calls."""
        return [self._judged(event) for event in events]

    def _judged(self, event: Event) -> Event:
        if isinstance(event, ContentDelta):
            self.content.append(event)
        elif isinstance(event, CallEnd) and event.complete:
            self._read("".join(piece.text for piece in self.content))
            self.content.clear()
            self._has_calls = True
            if self._is_invented:
                confidence = min(event.call.confidence, CONFIDENCE_BEHIND_TURN)
                return replace(event, call=replace(event.call, confidence=confidence))
        return event

    def _read(self, content: str) -> None:
        """Look for headers in the content between two calls, or before the first one."""
        if self._is_invented or ":" not in content:  # pragma: no mutate - only to be faster
            return
        for header in _HEADER.finditer(_FENCED.sub("", content)):
            if header["others"] is not None:
                self._has_user = self._has_user or header["others"].lower() in _USERS
                self._is_invented = self._is_invented or self._has_calls
            elif self._has_user:
                self._is_invented = True

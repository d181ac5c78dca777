"""Answers that are JSON alone, without the code fence that models write around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolwire.events import ContentDelta, Event, Finish, ProblemFound, UsageCounted

# The repetitions have bounds, so that little text waits for what follows it.
_OPENING = re.compile(r"\s{0,40}```\w{0,20}[ \t\r]{0,20}\n")
_PART_OF_OPENING = re.compile(r"\s{0,40}(?:`{0,2}|```\w{0,20}[ \t\r]{0,20})")
_CLOSING = re.compile(r"\s*```\s*")
_PART_OF_CLOSING = re.compile(r"\s{0,8}(?:(?<!`)`{1,3}\s{0,40})?\Z")


class FencedOutput:
    """Removes the code fence around the content of one answer; the content of any other answer stays as it is.

    Text after the closing fence stays, and so does the closing fence then.
    """

    def __init__(self) -> None:
        self._held = ""
        self._in_fence: bool | None = None  # None: the content has not begun, or only with a part of a fence

    def without_fence(self, events: Sequence[Event]) -> list[Event]:
        """Return the events that the next ones make certain."""
        return [written for event in events for written in self._read(event)]

    def _read(self, event: Event) -> Iterator[Event]:
        match event:
            case ContentDelta(text):
                if text := self._certain(self._held + text):
                    yield ContentDelta(text)
            case UsageCounted() | ProblemFound():
                yield event
            case _:
                is_end = isinstance(event, Finish) and self._in_fence
                if self._held and not (is_end and _CLOSING.fullmatch(self._held)):
                    yield ContentDelta(self._held)
                self._held = ""
                yield event

    def _certain(self, text: str) -> str:
        """Return the beginning of a text that is content, and hold the rest back."""
        if self._in_fence is None:
            if opening := _OPENING.match(text):
                self._in_fence, text = True, text[opening.end() :]
            elif _PART_OF_OPENING.fullmatch(text):
                self._held = text
                return ""
            else:
                self._in_fence = False
        certain = len(text)
        if self._in_fence and (closing := _PART_OF_CLOSING.search(text)):
            certain = closing.start()
        self._held = text[certain:]
        return text[:certain]

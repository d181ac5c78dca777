"""Reading of streams that are passed on: figures and faults, at a fraction of what decoding each event costs."""

from __future__ import annotations

from toolwire.events import Event
from toolwire.gateway.client_apis import ClientApi
from toolwire.gateway.stream_pieces import inside_string

MAX_JOINED = 64
"""Maximum number of events that are decoded as one."""


class PassedStreamReader:
    """Reads the bytes of a stream as events. Events of the stream that only continue a text are decoded together.

    The answer that its events make up is the one that a decoder reads, in longer pieces that come later.

    Args:
        client_api: the API of the stream.
    """

    def __init__(self, client_api: ClientApi) -> None:
        shape = client_api.pieces
        self._end = shape.end
        self._match = shape.event.match
        self._text_names, self._place_names = shape.texts, shape.places
        self._decoder = client_api.api.stream_decoder()
        self._is_between = True  # the decoder has no part of an event
        self._has_begun = False
        self._texts: list[bytes] = []  # of events that have not been decoded
        self._continued: tuple[object, ...] = ()  # which text they continue
        self._around = (b"", b"")  # the last of these events, before and behind its text

    def feed(self, piece: bytes) -> list[Event]:
        """Return the events that the next piece makes certain, except those that wait for others."""
        events: list[Event] = []
        at = 0
        while at < len(piece):
            if self._is_between and (behind := self._join(piece, at, events)):
                at = behind
                continue
            events += self.flush()
            end = piece.find(self._end, at)
            self._is_between = end >= 0
            end = end + len(self._end) if self._is_between else len(piece)
            events += self._decoder.feed(piece[at:end])
            at = end
        return events

    def _join(self, piece: bytes, at: int, events: list[Event]) -> int:
        """Let the event at a position wait for others; return the position behind it, 0 if it cannot wait."""
        before, behind = self._around
        if before and piece.startswith(before, at):  # many servers repeat everything except the text
            start = at + len(before)
            end = inside_string(piece, start)
            if piece.startswith(behind, end):
                self._wait(piece[start:end], events)
                return end + len(behind)
        found = self._match(piece, at)
        texts = [] if found is None else [name for name in self._text_names if found[name] is not None]
        if found is None or len(texts) != 1:
            return 0
        continued = (*texts, *map(found.group, self._place_names))
        if continued != self._continued:
            events += self.flush()
            self._continued = continued
        start, end = found.span(texts[0])
        self._around = (piece[at:start], piece[end : found.end()])
        self._wait(piece[start:end], events)
        return found.end()

    def _wait(self, text: bytes, events: list[Event]) -> None:
        self._texts.append(text)
        if not self._has_begun or len(self._texts) == MAX_JOINED:  # the time of the first event counts
            self._has_begun = True
            events += self.flush()

    def flush(self) -> list[Event]:
        """Return the events that wait for others."""
        if not self._texts:
            return []
        before, behind = self._around
        data = b"".join((before, *self._texts, behind))
        self._texts.clear()
        return self._decoder.feed(data)

    def finish(self) -> list[Event]:
        """End the answer and return the remaining events, `Finish` last."""
        return [*self.flush(), *self._decoder.finish()]

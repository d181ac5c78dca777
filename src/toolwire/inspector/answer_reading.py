"""The answer of a backend, read as events: those that the gateway recorded, or those that its bytes give now.

An answer that is passed on is not read by the gateway, so it is read when a user looks. The same bytes can be read
once more in another wire format.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

from toolwire.client.response_body import json_of
from toolwire.errors import DefinitionError
from toolwire.events import Event, ProblemFound, replay
from toolwire.inspector.recorded_exchange import BackendAttempt, Exchange
from toolwire.messages import Problem
from toolwire.providers.api_registry import get_api
from toolwire.providers.parsing import AnswerReader, merge_text
from toolwire.providers.request import ChatRequest, result_texts
from toolwire.wire.stream_parser import ParseOptions, StreamParser


def request_of(exchange: Exchange) -> ChatRequest:
    """Return the request that the body of an exchange is; an empty one if it is not a request of its API."""
    if not isinstance(exchange.body, dict):
        return ChatRequest()
    try:
        return get_api(exchange.client_api).decode_request(exchange.body)
    except DefinitionError:
        return ChatRequest()


@dataclass(slots=True)
class AnswerReading:
    """The answer of one attempt as events, in the groups of its steps; it grows while the answer arrives.

    Attributes:
        exchange: the exchange.
        attempt: its attempt that is read.
        format: the wire format of calls in the text; "" for none.
        fresh: whether all bytes are read now, even if the gateway has read them.
        groups: the events of each step.
    """

    exchange: Exchange
    attempt: BackendAttempt
    format: str
    fresh: bool = False
    groups: list[list[Event]] = field(default_factory=list)
    _reader: AnswerReader | StreamParser | None = None
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    @property
    def options(self) -> ParseOptions:
        """The options for calls in the text."""
        exchange = self.exchange
        request = request_of(exchange)
        results = result_texts(request.messages)
        return {"format": self.format or "plain", "tools": request.tools, "id_seed": exchange.id, "results": results}

    @property
    def events(self) -> list[Event]:
        """All events so far."""
        return [event for group in self.groups for event in group]

    def update(self, *, ended: bool) -> None:
        """Read the steps that have arrived; `ended`: no more will."""
        attempt, steps = self.attempt, self.attempt.steps
        if not self.fresh and not attempt.passed:
            self.groups += [list(step.events or ()) for step in steps[len(self.groups) :]]
        elif attempt.streamed or not attempt.api:
            for step in steps[len(self.groups) :]:
                self.groups.append(self._fed(step.raw))
            if ended and self.groups:
                self.groups[-1] += self._open().finish()
        elif ended and len(self.groups) < len(steps):
            self.groups = [[] for _ in steps]
            self.groups[-1] = self._whole(b"".join(_bytes(step.raw) for step in steps))

    def _open(self) -> AnswerReader | StreamParser:
        if self._reader is None:
            if self.attempt.api:
                api = get_api(self.attempt.api)
                self._reader = AnswerReader(api, reads_text=bool(self.format), **self.options)
            else:
                options: ParseOptions = {**self.options, "fallback": "whole_message"}
                self._reader = StreamParser(**options)
        return self._reader

    def _fed(self, raw: bytes | str) -> list[Event]:
        reader = self._open()
        if isinstance(reader, StreamParser):
            return list(reader.feed(raw if isinstance(raw, str) else self._decoder.decode(raw)))
        return reader.feed(_bytes(raw))

    def _whole(self, body: bytes) -> list[Event]:
        data = json_of(body)
        if not isinstance(data, dict):
            return [
                ProblemFound(
                    Problem("malformed", 0, body.decode("utf-8", "replace"), "The answer is not a JSON object.")
                )
            ]
        options = self.options
        api = get_api(self.attempt.api)
        events = replay(api.decode_response(data, tools=options["tools"], id_seed=options["id_seed"]))
        return list(merge_text(events, **options)) if self.format else list(events)


def reading_of(exchange: Exchange, *, format: str | None = None) -> AnswerReading | None:
    """Return the answer of the last backend that was asked; None if none was.

    Args:
        exchange: the exchange.
        format: the wire format in which its bytes are read now; "" for no calls in the text, None for the events of
            the gateway.
    """
    if not exchange.attempts:
        return None
    attempt = exchange.attempts[-1]
    chosen = attempt.format if format is None else format
    reading = AnswerReading(exchange, attempt, chosen, fresh=format is not None)
    reading.update(ended=exchange.state != "running")
    return reading


def _bytes(raw: bytes | str) -> bytes:
    return raw if isinstance(raw, bytes) else raw.encode("utf-8", "surrogatepass")

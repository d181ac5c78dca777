"""Parse answers of any kind: text, responses of provider APIs, and calls in the text of such a response.

A model with native calls may still write a call in its text, in the format that it was trained on. The text parser
finds it. The merged answer contains the native calls first, then those of the text. A call in the text with the name
and the arguments of a native call is a copy and is dropped; each native call has at most one copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import NoneType
from typing import Any, Unpack

from toolwire._surface import wrong_type
from toolwire.errors import DefinitionError
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    OpaquePartReceived,
    ProblemFound,
    ReasoningDelta,
    ReasoningEnd,
    collect,
    replay,
)
from toolwire.messages import FinishReason, ParsedResponse, Problem
from toolwire.providers.api_registry import api_of, get_api
from toolwire.providers.base import ProviderApi
from toolwire.providers.stream_codec import as_dict
from toolwire.text.suggest import check_options
from toolwire.tools import definitions
from toolwire.wire import stream_parser
from toolwire.wire.echoes import check_results
from toolwire.wire.stream_parser import ParseOptions, StreamParser


def parse(
    text_or_response: Any, *, api: str | ProviderApi | None = None, **options: Unpack[ParseOptions]
) -> ParsedResponse:
    """Parse a whole message: text, or the response of a provider API. Its content never raises.

    Args:
        text_or_response: text as a model wrote it; or a response as a dict, or as the object of a provider's client.
        api: the API of the response; None to detect it by the response's shape.
        options: options for the text, or for the text in the response; see `StreamParser`.

    Raises:
        UnknownFormat, UnknownApi: there is no such format or API.
        DefinitionError: a tool has an unknown shape; or a response has one and `api` was not given.
        ValueError: see `StreamParser`.
    """
    check_options("parse", options, ParseOptions.__annotations__)
    if isinstance(text_or_response, str):
        return stream_parser.parse(text_or_response, **options)
    if isinstance(text_or_response, bytes | bytearray | NoneType):
        raise wrong_type("text_or_response", text_or_response, "text, or a response as a dict or a client's object")
    options["tools"] = definitions(options.get("tools", ()))  # may be an iterator
    data = as_dict(text_or_response)
    response_api = get_api(api) if api is not None else api_of(data)
    if response_api is None:
        keys = ", ".join(map(str, list(data)[:8])) or "none"
        raise DefinitionError(f"a response with the keys {keys} belongs to no known API; name it with api=")
    response = response_api.decode_response(data, tools=options["tools"], id_seed=options.get("id_seed", ""))
    return collect(merge_text(replay(response), **options), raw=text_or_response)


def merge_text(events: Iterable[Event], **options: Unpack[ParseOptions]) -> Iterator[Event]:
    """Yield the events of an API's answer, with the calls in its text.

    Text and reasoning are emitted as they become certain. Calls in the text are emitted at the end, because only then
    it is certain which of them are copies. A native call, or native reasoning, ends the text before it.

    Args:
        events: those of one answer, in any portions.
        options: options for the text; see `StreamParser`. Positions of problems count from the start of all content.

    Raises:
        UnknownFormat, DefinitionError, ValueError: see `StreamParser`.
    """
    merging = Merging(**options)
    for event in events:
        yield from merging.feed(event)
    yield from merging.finish()


class Merging:
    """The state of `merge_text`, for events that are pushed."""

    def __init__(self, **options: Unpack[ParseOptions]) -> None:
        # These may be iterators, and a parser is made for each stretch of text.
        tools, results = definitions(options.get("tools", ())), check_results(options.get("results", ()))
        self._options: ParseOptions = {**options, "tools": tools, "results": results}
        self._parser = StreamParser(**self._options)
        self._merger = _Merger()
        self._finish = Finish(FinishReason.STOP)
        self._fed = 0  # characters that the parser has been fed
        self._before = 0  # characters that earlier ones were fed
        self._parsers = 1

    def feed(self, event: Event) -> Iterator[Event]:
        """Yield the events that the next event makes certain."""
        match event:
            case ContentDelta(text):
                self._fed += len(text)
                yield from self._text(self._parser.feed(text))
            case Finish():
                self._finish = event
            case _:
                if isinstance(event, CallStart | ReasoningDelta | ReasoningEnd | OpaquePartReceived):
                    yield from self._settle()
                self._merger.native(event)
                yield event

    def finish(self) -> Iterator[Event]:
        """End the answer, and yield the remaining events, `Finish` last."""
        yield from self._text(self._parser.finish())
        yield from self._merger.late()
        if self._merger.complete and self._finish.reason is FinishReason.STOP:
            self._finish = Finish(FinishReason.TOOL_CALLS)
        yield self._finish

    def _settle(self) -> Iterator[Event]:
        """End the text so far, unless it is in the middle of a call."""
        if not self._fed or self._merger.reading or self._parser.reading_call:
            return
        yield from self._text(self._parser.finish())
        self._merger.next_text()
        self._before += self._fed
        self._fed = 0
        seed = f"{self._options.get('id_seed', '')}\x1f{self._parsers}"  # the calls of each text are numbered from 0
        self._parsers += 1
        # A prompt precedes the first text alone.
        again: ParseOptions = {**self._options, "reasoning_started": False, "primed": "", "id_seed": seed}
        self._parser = StreamParser(**again)

    def _text(self, events: Iterable[Event]) -> Iterator[Event]:
        return self._merger.text(events, self._before)


class AnswerReader:
    """Reads the bytes of a streamed answer as events, with the calls in its text.

    Args:
        api: the API of the answer.
        reads_text: whether calls in the text are read.
        options: options for the text; see `StreamParser`.
    """

    def __init__(self, api: ProviderApi, *, reads_text: bool = True, **options: Unpack[ParseOptions]) -> None:
        self._decoder = api.stream_decoder(tools=options.get("tools", ()), id_seed=options.get("id_seed", ""))
        self._merging = Merging(**options) if reads_text else None

    @property
    def problem(self) -> Problem | None:
        """The last problem of the answer that belongs to no call; None if there is none. Text has no part in it."""
        return self._decoder.problem

    def feed(self, piece: bytes) -> list[Event]:
        """Return the events that the next piece makes certain."""
        return self._merged(self._decoder.feed(piece))

    def finish(self) -> list[Event]:
        """End the answer and return the remaining events, `Finish` last."""
        events = self._merged(self._decoder.finish())
        return events if self._merging is None else [*events, *self._merging.finish()]

    def _merged(self, events: list[Event]) -> list[Event]:
        if self._merging is None:
            return events
        return [merged for event in events for merged in self._merging.feed(event)]


class _Merger:
    """Collects the calls of the text until the native ones are known."""

    def __init__(self) -> None:
        self.complete = 0  # complete calls of the text, without copies
        self._native: Counter[tuple[str, str]] = Counter()
        self._next = 0  # index of the next call of the text
        self._calls: dict[int, list[Event]] = {}  # of the text, by their own index
        self._earlier: list[list[Event]] = []  # those of earlier texts
        self._open = 0  # calls of the text that have not ended

    def native(self, event: Event) -> None:
        match event:
            case CallStart(index):
                self._next = max(self._next, index + 1)
            case CallEnd(_, call, True):
                self._native[call.name, call.fingerprint] += 1
            case _:
                pass

    @property
    def reading(self) -> bool:
        """True in the middle of a call of the text."""
        return self._open > 0

    def next_text(self) -> None:
        """Begin another text, whose calls are numbered from 0."""
        self._earlier += self._calls.values()
        self._calls = {}

    def text(self, events: Iterable[Event], before: int) -> Iterator[Event]:
        """Yield the events that belong to no call; `before`: the length of earlier texts, in characters."""
        for event in events:
            if isinstance(event, ProblemFound) and before:
                event = ProblemFound(replace(event.problem, position=event.problem.position + before))
            match event:
                case CallStart(index):
                    self._calls[index] = [event]
                    self._open += 1
                case CallEnd(index):
                    self._calls[index].append(event)
                    self._open -= 1
                case ArgumentsDelta(index):
                    self._calls[index].append(event)
                case ProblemFound(problem) if problem.index is not None:
                    self._calls[problem.index].append(event)
                case Finish():
                    pass
                case _:
                    yield event

    def late(self) -> Iterator[Event]:
        """Yield the calls of the text that are not copies."""
        self.next_text()
        for events in self._earlier:
            end = next((event for event in events if isinstance(event, CallEnd)), None)
            if end is not None and end.complete:
                key = end.call.name, end.call.fingerprint
                if self._native[key]:
                    self._native[key] -= 1
                    continue
                self.complete += 1
            for event in events:
                match event:
                    case CallStart() | ArgumentsDelta() | CallEnd():
                        yield replace(event, index=self._next)
                    case ProblemFound(problem):
                        yield ProblemFound(replace(problem, index=self._next))
                    case _:
                        yield event
            self._next += 1


def sources(response: ParsedResponse) -> Mapping[str, int]:
    """Count the calls of a response by their API, or by their wire format for calls in the text."""
    return Counter(call.format for call in response.tool_calls)

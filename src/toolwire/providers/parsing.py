"""Answers from everywhere: text, responses of provider APIs, and calls that stand in the text of such a response.

A model with native calls may still write one in its text, in the format that it was trained on. That text is read by
the text parser, and the calls of both places are merged: native ones first, then those of the text; a call in the text
that is a copy of a native one (same name, same arguments) is dropped, once for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Unpack

from toolwire._surface import check_options
from toolwire.errors import DefinitionError
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    Passed,
    ProblemFound,
    ReasoningDelta,
    ReasoningEnd,
    collect,
    replay,
)
from toolwire.messages import FinishReason, ParsedResponse
from toolwire.providers.api_registry import api_of, get_api
from toolwire.providers.base import ProviderApi, as_dict
from toolwire.tools import definitions
from toolwire.wire import stream_parser
from toolwire.wire.stream_parser import ParseOptions, StreamParser


def parse(
    text_or_response: Any, *, api: str | ProviderApi | None = None, **options: Unpack[ParseOptions]
) -> ParsedResponse:
    """Read a whole message: text, or the response of a provider API.

    No text and no response makes it raise.

    Args:
        text_or_response: text as a model wrote it; or a response as a dict, or as the object of a provider's client.
        api: the API that the response is of; None: told by its shape.
        options: how text is read; see `StreamParser`. Of a response, that is the text in it.

    Raises:
        UnknownFormat, UnknownApi: no such format or API.
        DefinitionError: a tool is of no known shape, or a response is of none and `api` does not say which it is.
        ValueError: see `StreamParser`.
    """
    check_options("parse", options, ParseOptions.__annotations__)
    if isinstance(text_or_response, str):
        return stream_parser.parse(text_or_response, **options)
    options["tools"] = definitions(options.get("tools", ()))  # which may come but once
    data = as_dict(text_or_response)
    known = get_api(api) if api is not None else api_of(data)
    if known is None:
        keys = ", ".join(map(str, list(data)[:8])) or "none"
        raise DefinitionError(f"a response with the keys {keys} is of no known API; say which with api=")
    response = known.decode_response(data, tools=options["tools"], id_seed=options.get("id_seed", ""))
    return collect(merge_text(replay(response), **options), raw=text_or_response)


def merge_text(events: Iterable[Event], **options: Unpack[ParseOptions]) -> Iterator[Event]:
    """The events of an API's answer, with the calls that stand in its text.

    Text and reasoning pass as they become certain. Calls in the text come at the end, once it is known which of them
    are copies. A native call, or native reasoning, ends the text before it: what stands behind it is read anew.

    Args:
        events: of one answer, whole or as they come.
        options: how the text is read; see `StreamParser`. Positions of problems count from the start of all content.

    Raises:
        UnknownFormat, DefinitionError, ValueError: see `StreamParser`.
    """
    merging = Merging(**options)
    for event in events:
        yield from merging.feed(event)
    yield from merging.finish()


class Merging:
    """`merge_text` for events that come one by one; see there."""

    def __init__(self, **options: Unpack[ParseOptions]) -> None:
        self._options: ParseOptions = {**options, "tools": definitions(options.get("tools", ()))}  # may be an iterator
        self._parser = StreamParser(**self._options)
        self._merger = _Merger()
        self._finish = Finish(FinishReason.STOP)
        self._fed = 0  # characters that the parser has been fed
        self._before = 0  # characters that earlier ones were fed
        self._parsers = 1

    def feed(self, event: Event) -> Iterator[Event]:
        """What the next event makes certain."""
        match event:
            case ContentDelta(text):
                self._fed += len(text)
                yield from self._text(self._parser.feed(text))
            case Finish():
                self._finish = event
            case _:
                if isinstance(event, CallStart | ReasoningDelta | ReasoningEnd | Passed):
                    yield from self._settle()
                self._merger.native(event)
                yield event

    def finish(self) -> Iterator[Event]:
        """The answer is over; the remaining events, `Finish` last."""
        yield from self._text(self._parser.finish())
        yield from self._merger.late()
        if self._merger.found and self._finish.reason is FinishReason.STOP:
            self._finish = Finish(FinishReason.TOOL_CALLS)
        yield self._finish

    def _settle(self) -> Iterator[Event]:
        """The text so far is over, unless it is in the middle of a call: what comes now stands behind all of it."""
        if not self._fed or self._merger.reading:
            return
        yield from self._text(self._parser.finish())
        self._merger.next_text()
        self._before += self._fed
        self._fed = 0
        seed = f"{self._options.get('id_seed', '')}\x1f{self._parsers}"  # calls are numbered anew
        self._parsers += 1
        # A prompt precedes the first text alone.
        again: ParseOptions = {**self._options, "reasoning_started": False, "primed": "", "id_seed": seed}
        self._parser = StreamParser(**again)

    def _text(self, events: Iterable[Event]) -> Iterator[Event]:
        return self._merger.text(events, self._before)


class _Merger:
    """Keeps the calls of the text until the native ones are known."""

    def __init__(self) -> None:
        self.found = 0  # complete calls of the text
        self._native: Counter[tuple[str, str]] = Counter()
        self._next = 0  # the index that a call of the text gets
        self._calls: dict[int, list[Event]] = {}  # of the text, by their own index
        self._earlier: list[list[Event]] = []  # those of texts that are over
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
        """Whether the text is in the middle of a call."""
        return self._open > 0

    def next_text(self) -> None:
        """Another text begins, whose calls are numbered anew."""
        self._earlier += self._calls.values()
        self._calls = {}

    def text(self, events: Iterable[Event], before: int) -> Iterator[Event]:
        """What is no call; `before`: characters of earlier texts."""
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
        """The calls of the text that are no copies."""
        self.next_text()
        for events in self._earlier:
            end = next((event for event in events if isinstance(event, CallEnd)), None)
            if end is not None and end.complete:
                key = end.call.name, end.call.fingerprint
                if self._native[key]:
                    self._native[key] -= 1
                    continue
                self.found += 1
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
    """How many calls came from where: by the API's name, or by the wire format's for calls that stood in text."""
    return Counter(call.format for call in response.tool_calls)

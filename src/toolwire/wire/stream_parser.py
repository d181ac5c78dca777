"""The public parser of text: `parse` for a whole message, `StreamParser` for a message in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from types import NoneType
from typing import Any, Literal, TypedDict, Unpack

from toolwire._surface import check_choice, check_type, wrong_type
from toolwire.events import ArgumentsDelta, ContentDelta, Event, Finish, ReasoningDelta, collect
from toolwire.messages import FinishReason, ParsedResponse
from toolwire.text.suggest import check_options
from toolwire.wire import renderer
from toolwire.wire.block_reader import ReadOptions
from toolwire.wire.echoes import EchoFilter, check_results
from toolwire.wire.fallback import FallbackLevel, FallbackReader
from toolwire.wire.format_detection import FormatDetector
from toolwire.wire.format_registry import AUTO, all_formats, get_format
from toolwire.wire.invented_turns import InventedTurns
from toolwire.wire.message_reader import MessageReader
from toolwire.wire.prepared_tools import KnownTools, prepared_tools
from toolwire.wire.reasoning_reader import (
    ReasoningReader,
    any_reasoning,
    formats_without_reasoning,
    without_reasoning,
)
from toolwire.wire.syntax import WireFormat

Repair = Literal["safe", "none"]
ToolChoice = Literal["auto", "none"]
_CALLED, _STOPPED = Finish(FinishReason.TOOL_CALLS), Finish(FinishReason.STOP)
MAX_EXAMPLE = 300
"""Maximum length of the example of a call in a problem's message, in characters."""


class RareOptions(TypedDict, total=False):
    """Keywords of `StreamParser` that few callers need; it describes them.

    Attributes:
        repair: by default "safe".
        tool_choice: by default "auto".
        results: by default none.
        only: by default None.
    """

    repair: Repair
    tool_choice: ToolChoice
    results: Iterable[str]
    only: Literal["calls", "reasoning"] | None


class TextOptions(RareOptions, total=False):
    """Keywords of `StreamParser`, which describes them and has their defaults, but for the format."""

    tools: Iterable[Any]
    reasoning_started: bool
    primed: str | None
    fallback: FallbackLevel | None
    id_seed: str


class ParseOptions(TextOptions, total=False):
    """The keywords of `parse`; `StreamParser` describes them and has their defaults."""

    format: str | WireFormat


class StreamParser:
    """A parser of one message that arrives in pieces.

    Any split of the same text gives the same calls, content, reasoning and problems. The time is linear in the length
    of the text. The text held back is bounded by the longest marker, and by 4,000 characters of white space after a
    closing marker.

    Args:
        format: a format's name or alias, "auto", or a `WireFormat`.
        tools: definitions, decorated functions or provider-shaped dicts; their schemas type the arguments.
        reasoning_started: the prompt had already opened the reasoning.
        primed: the end of the prompt, which is read as if the model had written it; None for the end of the format's
            own template.
        fallback: which calls to known tools are read without the markers of a format, if no call between markers was
            found: "none"; "whole_message", where the message is nothing but such calls; "embedded", also amid prose.
            None is "whole_message" for "auto", and "none" for a named format.
        id_seed: goes into the ids of calls whose text has none.
        rare: `repair`: "safe", or "none" for no repairs at all. `tool_choice`: "none" reads no calls and only tells
            reasoning from content. `results`: the texts of the tool results in the conversation; a call that appears
            word for word in one of them is content, with a problem. `only`: "calls" reads no reasoning, so that its
            tags are content; "reasoning" reads the first stretch of reasoning, and returns everything else as it was
            written, for a second parser that reads the calls. A call ends unclosed reasoning as it does otherwise,
            except with the format "auto".

    Raises:
        UnknownFormat: no such format.
        DefinitionError: a tool has a shape that is not known.
        ValueError: `repair`, `tool_choice`, `only` or `fallback` has none of the values above.
    """

    def __init__(
        self,
        *,
        format: str | WireFormat = "auto",
        tools: Iterable[Any] = (),
        reasoning_started: bool = False,
        primed: str | None = None,
        fallback: FallbackLevel | None = None,
        id_seed: str = "",
        _deltas: bool = True,
        **rare: Unpack[RareOptions],
    ) -> None:
        if rare:
            check_options("StreamParser", rare, ("format", *TextOptions.__annotations__))
        repair, tool_choice, results = rare.get("repair", "safe"), rare.get("tool_choice", "auto"), rare.get("results")
        if not isinstance(id_seed, str):
            raise wrong_type("id_seed", id_seed, "text")
        if reasoning_started is not False:
            check_type("reasoning_started", reasoning_started, bool, "True or False")
        if primed is not None:
            check_type("primed", primed, str, "text or None")
        only = rare.get("only")
        check_choice("repair", repair, ("safe", "none"))
        check_choice("tool_choice", tool_choice, ("auto", "none"))
        check_choice("only", only, ("calls", "reasoning", None))
        wire = None if isinstance(format, str) and format.lower() == AUTO else get_format(format)
        check_type("fallback", fallback, (str, NoneType), "'none', 'whole_message' or 'embedded'")
        check_choice("fallback", fallback, ("none", "whole_message", "embedded", None))
        formats = all_formats()
        if tool_choice == "none":
            wire = _without_calls(wire) if wire is not None else None
        if only == "calls":
            wire, formats = without_reasoning(wire) if wire is not None else None, formats_without_reasoning(formats)
        prepared = prepared_tools(tools)
        options = ReadOptions(
            tools=prepared.definitions,
            reasoning_started=reasoning_started,
            repair=repair == "safe",
            seed=id_seed,
            deltas=_deltas,
            shared=all_formats() if tool_choice == "auto" else (),
            hint=partial(_example_call, prepared),
        )
        start = primed if primed is not None else wire.primed if wire is not None and not reasoning_started else ""
        if only == "reasoning":  # markers of the prompt that are not read would become content
            start = primed or ""
        before = -len(start)  # positions count from the text that is fed

        def new_reader(options: ReadOptions, position: int = 0) -> MessageReader | FormatDetector:
            if wire is not None:
                return MessageReader(wire, options, position=position)
            return FormatDetector(formats, options, position=position, calls=tool_choice == "auto")

        self._reader: MessageReader | FormatDetector | ReasoningReader
        if only == "reasoning":
            self._reader = ReasoningReader(wire or any_reasoning(formats), options, position=before)
        else:
            self._reader = new_reader(options, before)
        # Without markers only the name of a known tool says that something is a call, so there have to be tools.
        reads_more = repair == "safe" and tool_choice == "auto" and only != "reasoning" and bool(prepared.definitions)
        reads_more = reads_more and (fallback != "none" if fallback else wire is None)
        self._fallback = (
            FallbackReader(options, prepared, new_reader, beside=self._reader, prose=fallback == "embedded")
            if reads_more
            else None
        )
        self._echoes = EchoFilter(check_results(results)) if results else None
        self._turns = InventedTurns()
        self._content = self._turns.content
        self._finished = False
        self._before: list[Event] = []  # events of a call that the prompt had begun
        if start:
            # The prompt's own content is not the model's, so only a call that it has begun is reported.
            events = self._reader.feed(start)
            self._before = [event for event in events if not isinstance(event, ContentDelta | ReasoningDelta)]

    def feed(self, text: str) -> Sequence[Event]:
        """Read the next piece of text; return the events that became certain.

        Raises:
            RuntimeError: called after `finish`.
            TypeError: the piece is not text.
        """
        if self._finished:
            raise RuntimeError("feed() after finish(): a StreamParser reads one message")
        try:
            events: Sequence[Event] = self._reader.feed(text)
        except TypeError:  # looked at only then, because a check would cost time with every piece
            check_type("text", text, str, "text")
            raise
        if self._before:
            events = [*self._before, *events]
            self._before.clear()
        if self._fallback is not None:
            events = self._fallback.filter(events, text)
        if self._echoes is not None:
            events = self._echoes.filter(events, text)
        if events:
            event = events[0]
            if type(event) is ContentDelta and len(events) == 1:  # most pieces, which cost little so
                self._content.append(event)
            elif type(event) is not ArgumentsDelta or len(events) > 1:
                events = self._turns.filter(events)
        return events

    @property
    def reading_call(self) -> bool:
        """True in the middle of a call whose start was not returned yet, because it may be an echo of a result."""
        return self._echoes is not None and self._echoes.holding

    def finish(self) -> Sequence[Event]:
        """Read the end of the text; return the remaining events, `Finish` last. A second call returns none."""
        if self._finished:
            return ()
        self._finished = True
        events: Sequence[Event] = [*self._before, *self._reader.finish()]
        calls = self._reader.complete_calls
        if self._fallback is not None:
            events = self._fallback.filter(events)
        if self._echoes is not None:
            events = self._echoes.filter(events)
        if self._fallback is not None:
            more, more_calls = self._fallback.finish()
            if self._echoes is not None:
                more = self._echoes.filter_message(more, self._fallback.content)
            events, calls = [*events, *more], calls + more_calls
        if self._echoes is not None:
            # The finish reason must not promise calls that turned out to be copies of a result.
            calls -= self._echoes.echoes
        return [*self._turns.filter(events), _CALLED] if calls else [*events, _STOPPED]


def _example_call(tools: KnownTools, wire: WireFormat, name: str) -> str:
    """Return an example call of the tool in this format, or of the first tool if the name is not known."""
    definition = tools.definitions.get(name) or next(iter(tools.definitions.values()), None)
    if definition is None:
        return ""
    example = tools.example(
        wire, definition, lambda: renderer.call_example(wire, definition, tools.definitions, most=MAX_EXAMPLE)
    )
    return f" {example}" if example else ""


@lru_cache(maxsize=128)
def _without_calls(wire: WireFormat) -> WireFormat:
    return replace(wire, blocks=())


def parse(text: str, **options: Unpack[ParseOptions]) -> ParsedResponse:
    """Parse a whole message; no text makes it raise.

    Args:
        text: the text that the model wrote.
        options: see `StreamParser`, which also says what they can raise.
    """
    parser = StreamParser(**options, _deltas=False)
    return collect([*parser.feed(text), *parser.finish()], raw=text)

"""The public parser of text: `parse` for a whole message, `StreamParser` for a message in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, TypedDict, Unpack

from toolwire._surface import check_items, check_type, wrong_type
from toolwire.events import ContentDelta, Event, Finish, ReasoningDelta, collect
from toolwire.messages import FinishReason, ParsedResponse
from toolwire.tools import definitions
from toolwire.wire import renderer
from toolwire.wire.block_reader import ReadOptions
from toolwire.wire.fallback import Fallback
from toolwire.wire.format_detection import FormatDetector
from toolwire.wire.format_registry import AUTO, all_formats, get_format
from toolwire.wire.message_reader import MessageReader
from toolwire.wire.syntax import WireFormat

Repair = Literal["safe", "none"]
ToolChoice = Literal["auto", "none"]
MAX_EXAMPLE = 300
"""Maximum length of the example of a call in a problem's message, in characters."""


class TextOptions(TypedDict, total=False):
    """Keywords of `StreamParser`, which describes them and has their defaults, but for the format."""

    tools: Iterable[Any]
    reasoning_started: bool
    primed: str | None
    repair: Repair
    tool_choice: ToolChoice
    fallback: Sequence[str]
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
        repair: "safe", or "none" for no repairs at all.
        tool_choice: "none" reads no calls and only tells reasoning from content.
        fallback: formats without markers, tried for the whole message if no call was found.
        id_seed: goes into the ids of calls whose text has none.

    Raises:
        UnknownFormat: no such format.
        DefinitionError: a tool has a shape that is not known.
        ValueError: `repair` is neither "safe" nor "none", or `tool_choice` neither "auto" nor "none".
    """

    def __init__(
        self,
        *,
        format: str | WireFormat = "auto",
        tools: Iterable[Any] = (),
        reasoning_started: bool = False,
        primed: str | None = None,
        repair: Repair = "safe",
        tool_choice: ToolChoice = "auto",
        fallback: Sequence[str] = (),
        id_seed: str = "",
        _deltas: bool = True,
    ) -> None:
        if not isinstance(id_seed, str):
            raise wrong_type("id_seed", id_seed, "text")
        if primed is not None:
            check_type("primed", primed, str, "text or None")
        if repair not in ("safe", "none"):
            raise ValueError(f"repair is {repair!r}; it can be 'safe' or 'none'")
        if tool_choice not in ("auto", "none"):
            raise ValueError(f"tool_choice is {tool_choice!r}; it can be 'auto' or 'none'")
        wire = None if isinstance(format, str) and format.lower() == AUTO else get_format(format)
        fallback = (fallback,) if isinstance(fallback, str) else fallback
        if fallback:
            check_items("fallback", fallback, str, "a list of formats' names")
        if tool_choice == "none":
            wire, fallback = _without_calls(wire) if wire is not None else None, ()
        self._tools = definitions(tools)
        options = ReadOptions(
            tools=self._tools,
            reasoning_started=reasoning_started,
            repair=repair == "safe",
            seed=id_seed,
            deltas=_deltas,
            hint=self._hint,
        )
        self._hints: dict[tuple[int, str], str] = {}
        start = primed if primed is not None else wire.primed if wire is not None and not reasoning_started else ""
        before = -len(start)  # positions count from the text that is fed
        self._reader: MessageReader | FormatDetector = (
            MessageReader(wire, options, position=before)
            if wire is not None
            else FormatDetector(all_formats(), options, position=before, calls=tool_choice == "auto")
        )
        self._fallback = Fallback([get_format(name) for name in fallback], wire, options) if fallback else None
        self._finished = False
        self._before: list[Event] = []  # events of a call that the prompt had begun
        if start:
            events = self._reader.feed(start)
            self._before = [event for event in events if not isinstance(event, ContentDelta | ReasoningDelta)]

    def _hint(self, wire: WireFormat, name: str) -> str:
        """Return an example call of the tool in this format, or of the first tool if the name is not known."""
        tools = self._tools
        definition = tools.get(name) or next(iter(tools.values()), None)
        if definition is None:
            return ""
        key = id(wire), definition.name
        if key not in self._hints:
            example = renderer.call_example(wire, definition, tools, most=MAX_EXAMPLE)
            self._hints[key] = f" {example}" if example else ""
        return self._hints[key]

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
        return events if self._fallback is None else self._fallback.filter(events)

    def finish(self) -> Sequence[Event]:
        """Read the end of the text; return the remaining events, `Finish` last. A second call returns none."""
        if self._finished:
            return ()
        self._finished = True
        events: Sequence[Event] = [*self._before, *self._reader.finish()]
        calls = self._reader.complete_calls
        if self._fallback is not None:
            passed = self._fallback.filter(events)
            more, more_calls = self._fallback.finish()
            events, calls = [*passed, *more], calls + more_calls
        return [*events, Finish(FinishReason.TOOL_CALLS if calls else FinishReason.STOP)]


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

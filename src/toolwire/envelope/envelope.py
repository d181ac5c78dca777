"""Envelopes for the results of any tool: a header, as much as the reader has room for, and a handle for the whole.

Shaping is a step after a call has run, and independent of the call's format and of the policy:
`ToolExecutor(registry, shape=Envelope(agent="qwen-local").shape)`.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import NoneType
from typing import Any, Final

from toolwire._surface import check_number, check_type
from toolwire.envelope.content_type import TEXT, content_type
from toolwire.envelope.grammar import EnvelopeDocument, EnvelopeHeader, EnvelopeSection, count_lines
from toolwire.envelope.layout import compose_text, pieces
from toolwire.envelope.ranking import hot_zone, hottest, remaining, zone_of
from toolwire.envelope.settings import Settings
from toolwire.envelope.store import HandleStore, StoredResult
from toolwire.envelope.usage_log import MAX_INPUT, UsageLog, UsageRecord, redacted_arguments
from toolwire.errors import ToolError, capture_errors
from toolwire.messages import ToolCall, ToolResult
from toolwire.text.escape import escape_as_json

_SAID: Final = 140
"""Characters that the breadcrumb of a page has room in."""
MAX_CMD: Final = 100
"""Characters of a tool's name that a header says."""
_PLACE: Final = re.compile(r"([^:\n]{1,1000}):\d+:")


class EnvelopeText(str):
    """Text that is an envelope already. Only this package makes it, so content that looks like one is still content."""

    __slots__ = ()


class Envelope:
    """Shape results for one reader. Safe to use from several threads.

    Args:
        agent: the reader, which determines the budget; None for the agent that the environment names.
        budget: maximum length of one result, in characters; None for the agent's.
        preview: maximum number of lines or items that are shown; None for as many as fit.
        settings: all other settings; None for those of the configuration file and the environment.
        store: where whole results are stored.
        telemetry: where calls are recorded; None for nowhere.

    Raises:
        ConfigurationError: the settings cannot be used, or the budget is too small for any header.
    """

    def __init__(
        self,
        *,
        agent: str | None = None,
        budget: int | None = None,
        preview: int | None = None,
        settings: Settings | None = None,
        store: HandleStore | None = None,
        telemetry: UsageLog | None = None,
    ) -> None:
        check_type("agent", agent, (str, NoneType), "an agent's name or None")
        check_type("budget", budget, (int, NoneType), "a number of characters or None")
        check_number("preview", preview, "a number of lines", whole=True, optional=True)
        settings = settings or Settings.read()
        if agent is not None:
            settings = settings.for_agent(agent)
        if budget is not None:
            settings = settings.with_budget(budget)
        self.settings = settings
        self.store = store or HandleStore.of(settings)
        self.telemetry = telemetry
        self._preview = preview

    @property
    def budget(self) -> int:
        """Maximum length of one result, in characters."""
        return self.settings.budget

    def shape(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return the result with its text in an envelope of at most `budget` characters.

        The header counts the lines of a text, the items of a list, or the characters of any other value. Images and the
        like stay. An error keeps its text; it is only truncated if it exceeds the budget.
        """
        began = time.perf_counter()
        if not result.success:
            return replace(result, error=(result.error or "")[: self.budget])
        if isinstance(result.result, EnvelopeText):
            return result
        document = self.compose(call.name, result.result)
        with capture_errors():  # telemetry never gets in the way
            self._record(call, document, began)
        return replace(result, result=EnvelopeText(document.text))

    def compose(self, cmd: str, value: Any) -> EnvelopeDocument:
        """Return a value in an envelope; see `shape`."""
        cmd = escape_as_json(cmd)[:MAX_CMD] or "tool"
        if isinstance(value, list | tuple):
            return self._items(cmd, value)
        if isinstance(value, str):
            kind = content_type(value if len(value) < 1 << 20 else value[:2_000] + value[-200:])
            header = EnvelopeHeader(cmd=cmd, lines=count_lines(value), content_type=None if kind == TEXT else kind)
            return self._text(header, value)
        if value is None:
            return EnvelopeDocument(EnvelopeHeader(cmd=cmd, lines=0), (EnvelopeSection(""),))
        text = json.dumps(value, ensure_ascii=False)
        return self._text(EnvelopeHeader(cmd=cmd, size=len(text), content_type="json"), text)

    def chunk(self, handle: str, number: int = 1) -> EnvelopeDocument:
        """Return a part of a result that is stored for this reader, in an envelope; parts are numbered from 1.

        Raises:
            ToolError: nothing is stored under the handle for this agent and session, or there is no such part.
        """
        settings = self.settings
        stored, text = self.store.get(handle, agent=settings.agent, session=settings.session or None)
        return page(stored, text, number, budget=self.budget)

    def keep(self, text: str, header: EnvelopeHeader) -> str | None:
        """Store a whole result; return its handle, or None if it cannot be stored."""
        return self.store.keep(text, header, self.settings)

    def _text(self, header: EnvelopeHeader, text: str) -> EnvelopeDocument:
        return compose_text(text, header, limit=self.budget, keep=self.keep, lines=self._preview)

    def _items(self, cmd: str, items: list[Any] | tuple[Any, ...]) -> EnvelopeDocument:
        """Return a list with one item per line: as text if every item is text of one line, otherwise as JSON."""
        plain = all(isinstance(item, str) and "\n" not in item for item in items)
        lines = list(items) if plain else [json.dumps(item, ensure_ascii=False) for item in items]
        places = [place[1] for place in map(_PLACE.match, lines) if place] if plain else []
        placed = len(places) == len(lines)
        zones = Counter(map(zone_of, places)) if placed else Counter[str]()
        header = EnvelopeHeader(
            cmd=cmd,
            matches=len(lines),
            hot_zone=hot_zone(zones, len(lines)),
            content_type=None if plain else "jsonl",
        )
        document = self._text(header, "\n".join(lines))
        if not document.header.truncated:
            return document
        (section,) = document.sections
        shown = count_lines(section.text)
        if shown == len(lines):  # the last one is cut
            return document
        left = zones - Counter(map(zone_of, places[:shown]))
        left_out = remaining(left, hottest(zones, len(lines))) if placed else f"{len(lines) - shown} more"
        left_out += "" if document.header.handle else " (not kept)"
        return replace(document, sections=(replace(section, left_out=(left_out, *section.left_out[1:])),))

    def _record(self, call: ToolCall, document: EnvelopeDocument, began: float) -> None:
        if self.telemetry is None or not self.telemetry.enabled:
            return
        text = document.text
        settings = self.settings
        self.telemetry.record(
            UsageRecord(
                cmd=document.header.cmd,
                mode="tool",
                input=redacted_arguments(call.arguments, MAX_INPUT),
                output=len(text),
                truncated=document.header.truncated,
                handle=document.header.handle or "",
                latency_ms=1_000 * (time.perf_counter() - began),
                output_text=text,
                agent=settings.agent,
                session=settings.session,
            )
        )


def page(
    kept: StoredResult, text: str, number: int, *, budget: int, written: Callable[[EnvelopeDocument], str] | None = None
) -> EnvelopeDocument:
    """Return a part of a stored result in an envelope; the parts are the same for the same budget.

    Args:
        kept: the stored result.
        text: its whole text.
        number: which part, from 1.
        budget: maximum length of each part, in characters.
        written: how envelopes are encoded, if not as text; all parts are then made as short as that requires.

    Raises:
        ToolError: there is no such part.
    """
    head = EnvelopeHeader(cmd="handle", lines=kept.lines, content_type=kept.content_type or None, handle=kept.handle)
    document = EnvelopeDocument(head, (EnvelopeSection(text),))
    if number == 1 and len(written(document) if written else document.text) <= budget:
        return document
    head = replace(head, truncated=True)
    room = budget - len(head.text) - _SAID
    pages = _pages(kept, text, head, room)
    while written and room > _SAID and any(len(written(part)) > budget for part in pages):
        room = room * 2 // 3
        pages = _pages(kept, text, head, room)
    if number > len(pages):
        raise ToolError(f"there is no chunk {number}; {kept.handle} has {max(len(pages), 1)}")
    return pages[number - 1]


def _pages(kept: StoredResult, text: str, head: EnvelopeHeader, room: int) -> list[EnvelopeDocument]:
    parts = list(pieces(text, room))
    documents: list[EnvelopeDocument] = []
    before = 0
    for number, piece in enumerate(parts, 1):
        breaks = piece.count("\n")
        cut = not piece.endswith("\n")
        crumb = f"chunk {number} of {len(parts)}: lines {before + 1}-{before + breaks + cut} of {kept.lines}"
        if cut and number < len(parts):
            crumb += ", the last one in part"
        documents.append(EnvelopeDocument(head, (EnvelopeSection(piece.removesuffix("\n"), (crumb,)),)))
        before += breaks
    return documents

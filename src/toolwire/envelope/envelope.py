"""Envelopes for the results of any tool: each says how much it is, fits its reader, and leads to the whole.

This is a step behind the running of calls, and knows nothing of how they were written or of whether they may run:
`ToolExecutor(registry, shape=Envelope(agent="qwen-local").shape)`.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from toolwire.envelope.content_type import TEXT, content_type
from toolwire.envelope.grammar import Document, EnvelopeHeader, Section, count_lines
from toolwire.envelope.layout import compose_text, pieces
from toolwire.envelope.ranking import hot_zone, hottest, remaining, zone_of
from toolwire.envelope.settings import Settings
from toolwire.envelope.store import HandleStore, Kept
from toolwire.envelope.usage_log import MAX_INPUT, Record, Telemetry, redacted_arguments
from toolwire.errors import ToolError
from toolwire.messages import ToolCall, ToolResult
from toolwire.runtime.foreign_code import Caught
from toolwire.text.escape import escape_as_json

_SAID: Final = 140
"""Characters that the breadcrumb of a page has room in."""
MAX_CMD: Final = 100
"""Characters of a tool's name that a header says."""
_PLACE: Final = re.compile(r"([^:\n]{1,1000}):\d+:")


class EnvelopeText(str):
    """Text that is an envelope already, because it was made here; what only looks like one is content."""

    __slots__ = ()


class Envelope:
    """Shapes results for one reader. Safe to use from several threads.

    Args:
        agent: who reads, which says how much; None for the one that the environment names.
        budget: characters of one result, if not the agent's.
        preview: lines or items that are shown of one; None for as many as there is room for.
        settings: what else holds; None for what the configuration and the environment say.
        store: where whole results go.
        telemetry: where calls are recorded; None for nowhere.

    Raises:
        ConfigurationError: the settings cannot be used, or the budget is too small to say anything.
    """

    def __init__(
        self,
        *,
        agent: str | None = None,
        budget: int | None = None,
        preview: int | None = None,
        settings: Settings | None = None,
        store: HandleStore | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
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
        """Characters of one result."""
        return self.settings.budget

    def shape(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """The result as its reader is told it: its text is an envelope, at most `budget` characters long.

        A text has its lines counted, a list its items, any other value its characters. Images and what else came with
        the result stay. An error is told as it is; only what of it goes beyond the budget is cut.
        """
        began = time.perf_counter()
        if not result.success:
            return replace(result, error=(result.error or "")[: self.budget])
        if isinstance(result.result, EnvelopeText):
            return result
        document = self.compose(call.name, result.result)
        with Caught():  # telemetry never gets in the way
            self._record(call, document, began)
        return replace(result, result=EnvelopeText(document.text))

    def compose(self, cmd: str, value: Any) -> Document:
        """A value in an envelope; see `shape`."""
        cmd = escape_as_json(cmd)[:MAX_CMD] or "tool"
        if isinstance(value, list | tuple):
            return self._items(cmd, value)
        if isinstance(value, str):
            kind = content_type(value if len(value) < 1 << 20 else value[:2_000] + value[-200:])
            header = EnvelopeHeader(cmd=cmd, lines=count_lines(value), content_type=None if kind == TEXT else kind)
            return self._text(header, value)
        if value is None:
            return Document(EnvelopeHeader(cmd=cmd, lines=0), (Section(""),))
        text = json.dumps(value, ensure_ascii=False)
        return self._text(EnvelopeHeader(cmd=cmd, size=len(text), content_type="json"), text)

    def chunk(self, handle: str, number: int = 1) -> Document:
        """A piece of a result that is kept for this reader, in an envelope; pieces are numbered from 1.

        Raises:
            ToolError: nothing is kept under the handle for this agent and session, or there is no such piece.
        """
        settings = self.settings
        kept, text = self.store.get(handle, agent=settings.agent, session=settings.session or None)
        return page(kept, text, number, budget=self.budget)

    def keep(self, text: str, header: EnvelopeHeader) -> str | None:
        """Keep a whole result; its handle, or None if it cannot be kept."""
        settings = self.settings
        try:
            return self.store.put(
                text,
                cmd=header.cmd,
                agent=settings.agent,
                session=settings.session,
                content_type=header.content_type or "",
            )
        except ToolError:
            return None

    def _text(self, header: EnvelopeHeader, text: str) -> Document:
        return compose_text(text, header, limit=self.budget, keep=self.keep, lines=self._preview)

    def _items(self, cmd: str, items: list[Any] | tuple[Any, ...]) -> Document:
        """A list, an item on a line: text as it is if all are text of one line, else as JSON."""
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
        said = remaining(left, hottest(zones, len(lines))) if placed else f"{len(lines) - shown} more"
        said += "" if document.header.handle else " (not kept)"
        return replace(document, sections=(replace(section, left_out=(said, *section.left_out[1:])),))

    def _record(self, call: ToolCall, document: Document, began: float) -> None:
        if self.telemetry is None or not self.telemetry.enabled:
            return
        text = document.text
        settings = self.settings
        self.telemetry.record(
            Record(
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
    kept: Kept, text: str, number: int, *, budget: int, written: Callable[[Document], str] | None = None
) -> Document:
    """A piece of a result that is kept, in an envelope; the same for the same budget.

    Args:
        kept: what is known of it.
        text: all of it.
        number: which piece, from 1.
        budget: characters that each may have.
        written: how envelopes are written, if not as they are; then all pieces are made as small as that needs.

    Raises:
        ToolError: there is no such piece.
    """
    head = EnvelopeHeader(cmd="handle", lines=kept.lines, content_type=kept.content_type or None, handle=kept.handle)
    whole = Document(head, (Section(text),))
    if number == 1 and len(written(whole) if written else whole.text) <= budget:
        return whole
    head = replace(head, truncated=True)
    room = budget - len(head.text) - _SAID
    pages = _pages(kept, text, head, room)
    while written and room > _SAID and any(len(written(one)) > budget for one in pages):
        room = room * 2 // 3
        pages = _pages(kept, text, head, room)
    if number > len(pages):
        raise ToolError(f"there is no chunk {number}: {kept.handle} has {max(len(pages), 1)}")
    return pages[number - 1]


def _pages(kept: Kept, text: str, head: EnvelopeHeader, room: int) -> list[Document]:
    found = list(pieces(text, room))
    made: list[Document] = []
    before = 0
    for number, piece in enumerate(found, 1):
        breaks = piece.count("\n")
        cut = not piece.endswith("\n")
        said = f"chunk {number} of {len(found)}: lines {before + 1}-{before + breaks + cut} of {kept.lines}"
        if cut and number < len(found):
            said += ", the last one in part"
        made.append(Document(head, (Section(piece.removesuffix("\n"), (said,)),)))
        before += breaks
    return made

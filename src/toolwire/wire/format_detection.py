"""Detection of the format of a message, for `format="auto"`.

One scanner searches for the openers of all formats. At an opener, a probe for each format that has it reads the block;
the probes read the same text side by side. The format whose probe announces a call first wins and reads the rest of the
message. The order of the formats decides ties. If all probes fail, the text that the longest lasting one read is
content, and the search continues there. No text is read by more probes than formats share an opener.

Markers that a format drops from content are dropped after its reasoning, or where they begin the message. Elsewhere
they may be prose.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from toolwire.events import ContentDelta, Event
from toolwire.text.json_text import FastJsonReader
from toolwire.wire.block_reader import ReadOptions
from toolwire.wire.compiled_format import ContentMarkers, compile_format
from toolwire.wire.content_scanner import ContentScanner
from toolwire.wire.message_reader import MessageReader, hidden_by_fence
from toolwire.wire.syntax import END_OF_SEQUENCE, Span, WireFormat


@dataclass(frozen=True, slots=True, eq=False)
class MergedFormats:
    """The openers of several formats, merged.

    Attributes:
        content: markers that matter outside blocks.
        owners: by opener in lower case, the formats that have it, each with its own spelling.
    """

    content: ContentMarkers
    owners: dict[str, tuple[tuple[WireFormat, str], ...]]


@lru_cache(maxsize=16)
def _merged(names: tuple[int, ...], formats: tuple[WireFormat, ...], calls: bool) -> MergedFormats:
    spans: dict[str, Span] = {}
    owners: dict[str, list[tuple[WireFormat, str]]] = {}
    frames: dict[str, list[frozenset[str]]] = {}  # by marker, the drops of each format that has it
    anywhere: set[str] = set()
    start: set[str] = set()
    staying: set[str] = set()  # openers that some format does not let end the reasoning
    for wire in formats:
        for span in wire.spans:
            if not span.prose:
                spans.setdefault(span.open, span)
        drops = frozenset(wire.drop)
        around = {marker for span in wire.spans if not span.prose for marker in (span.open, span.close)}
        for marker in around | drops.difference(END_OF_SEQUENCE):
            frames.setdefault(marker, []).append(drops)
        if not calls:  # reasoning is still told apart from content
            continue
        compiled = compile_format(wire)
        for opener in compiled.blocks:
            owners.setdefault(opener.lower(), []).append((wire, opener))
            (anywhere if opener in compiled.anywhere else start).add(opener)
            if not wire.ends_reasoning:
                staying.add(opener.lower())
    content = ContentMarkers(
        anywhere=frozenset(anywhere),
        start=frozenset(start),
        ending=frozenset(opener for opener in anywhere if opener.lower() not in staying),
        spans=spans.values(),
        drops=frozenset(),
        stops=frozenset(),
        fences=True,
        nocase=any(wire.nocase for wire in formats),
    )
    content.set_frames({marker: frozenset().union(*drops) for marker, drops in frames.items() if all(drops)})
    return MergedFormats(content, {opener: tuple(spellings) for opener, spellings in owners.items()})


class FormatDetector:
    """A reader of one message in a format that is not known.

    Attributes:
        scanned: number of characters scanned, by all probes; see `MessageReader.scanned`.
    """

    def __init__(
        self, formats: Iterable[WireFormat], options: ReadOptions, *, position: int = 0, calls: bool = True
    ) -> None:
        """Take formats without markers only if there are tools, and open no block unless `calls`."""
        self._options = options
        # A probe begins at an opener outside reasoning, or at one that ends it.
        self._probing = replace(options, reasoning_started=False)
        chosen = tuple(wire for wire in formats if wire.detected and (wire.markers or options.tools))
        self._merged = _merged(tuple(map(id, chosen)), chosen, calls)
        self._events: list[Event] = []
        lookahead = {
            opener: after for wire in chosen for opener, after in compile_format(wire).lookahead(options.tools).items()
        }
        self._content = ContentScanner(
            self._merged.content, self._events.append, reasoning=options.reasoning_started, lookahead=lookahead
        )
        self._probes: list[MessageReader] = []
        self._reader: MessageReader | None = None
        self._fast = FastJsonReader()
        self._tail = ""
        self._position = position
        self._scanned = 0

    @property
    def held(self) -> int:
        """Number of characters held back."""
        return len(self._tail)

    @property
    def scanned(self) -> int:
        """Number of characters scanned."""
        return self._scanned + (self._reader.scanned if self._reader is not None else 0)

    @property
    def complete_calls(self) -> int:
        """Number of calls read to their end."""
        return self._reader.complete_calls if self._reader is not None else 0

    def feed(self, text: str) -> Sequence[Event]:
        """Read the next piece; return the events that became certain."""
        held_size = len(self._tail)
        if held_size:
            text = self._tail + text
            self._tail = ""
        if self._reader is not None:
            return self._reader.feed(text)
        waiting = self._content.waiting
        if held_size and not self._probes and waiting is not None and waiting.is_prefix(text):
            self._tail = text
            self._scanned += len(text) - held_size
            return ()
        quick = self._content.quick
        if not self._probes and quick is not None and text and quick(text) is None:
            self._content.pass_on(text)
            self._position += len(text)
            self._scanned += len(text)
        else:
            self._tail = self._advance(text, False)
        return self._take()

    def finish(self) -> Sequence[Event]:
        """Read the end of the text; return the last events."""
        if self._reader is None:
            self._advance(self._tail, True)
        self._tail = ""
        if self._reader is not None:
            return [*self._take(), *self._reader.finish()]
        hidden = self._content.finish()
        if hidden and self._hides_calls(hidden):
            self._events.extend(hidden_by_fence(hidden, self._position))
        return self._take()

    def _hides_calls(self, text: str) -> bool:
        options = replace(self._probing, deltas=False, fences=False)
        for wire in {id(wire): wire for spellings in self._merged.owners.values() for wire, _ in spellings}.values():
            if wire.markers:
                reader = MessageReader(wire, options)
                reader.feed(text)
                reader.finish()
                if reader.complete_calls:
                    return True
        return False

    def _take(self) -> Sequence[Event]:
        events = self._events.copy()
        self._events.clear()
        return events

    # -- the search ----------------------------------------------------------------------------------------------

    def _advance(self, text: str, final: bool) -> str:
        """Read on; return the text that has to wait, or "" once a format was found."""
        start, pos = self._position, 0
        while True:
            if self._probes:
                if not self._advance_probes(text, start, final):
                    waiting = (probe.position for probe in self._probes if not _failed(probe))
                    self._position = min(waiting)
                    return text[self._position - start :]
                if self._reader is not None:
                    return ""
                pos = self._position - start
            self._content.waiting = None
            stop = self._content.scan(text, pos, final)
            self._scanned += stop - pos
            self._position += stop - pos
            pos = stop
            if not self._content.done:
                return text[pos:]
            self._open(text, pos)
            pos = self._position - start

    def _open(self, text: str, pos: int) -> None:
        """Start a probe for each format that has the opener at `pos`."""
        opener: str = self._content.value
        written = text[pos : pos + len(opener)]
        blank = self._content.blank
        for wire, spelled in self._merged.owners[opener.lower()]:
            if (wire.nocase or written == spelled) and (blank or spelled in compile_format(wire).anywhere):
                probe = MessageReader(
                    wire, self._probing, probe=spelled, position=self._position, blank=blank, fast=self._fast
                )
                self._probes.append(probe)
        if not self._probes:
            # The spelling is one that no format allows: a reader of one format would have read over it.
            self._content.resume()
            self._content.add_content(text[pos])
            self._position += 1

    def _advance_probes(self, text: str, start: int, final: bool) -> bool:
        """Let the probes read on; return whether it is decided what the block is."""
        for probe in self._probes:
            if not probe.decided and not probe.ended:
                before = probe.position
                if final:
                    probe.end(text, before - start)
                else:
                    probe.advance(text, before - start, False)
        # The position decides before the order of formats: the result must be the same for every chunking.
        best = min((probe for probe in self._probes if probe.announced), key=_position, default=None)
        undecided = [probe for probe in self._probes if not probe.announced and not _failed(probe)]
        # A probe that is behind may still announce its call at an earlier position, whatever the chunking.
        if best is not None and all(probe.position > best.position for probe in undecided):
            self._choose(best, text[best.position - start :])
            return True
        if best is None and not undecided:
            self._reject()
            return True
        return False

    def _choose(self, probe: MessageReader, rest: str) -> None:
        """Let this probe, which found a call, read the rest of the message."""
        self._scanned += sum(other.scanned for other in self._probes if other is not probe)
        self._probes.clear()
        self._reader = probe
        self._events.extend(probe.take_events())
        probe.stop_probing()
        self._events.extend(probe.feed(rest))

    def _reject(self) -> None:
        """End the probes, none of which found a call; the text that the longest lasting one read is content."""
        longest = max(self._probes, key=_position)
        self._scanned += sum(probe.scanned for probe in self._probes)
        self._probes.clear()
        self._position = longest.position
        self._content.resume()
        for event in longest.take_events():
            if isinstance(event, ContentDelta):
                self._content.add_rejected_block(event.text)
            elif not self._content.reasoning:  # reasoning only mentions markers
                self._events.append(event)


def _position(probe: MessageReader) -> int:
    return probe.position


def _failed(probe: MessageReader) -> bool:
    return not probe.announced and (probe.decided or probe.ended)

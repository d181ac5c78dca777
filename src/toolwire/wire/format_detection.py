"""`format="auto"`: reading a message without being told its format.

One scanner looks for the openers of all formats. Where one is found, a probe of each format that has it reads the
block, side by side on the same text. The format whose probe announces a call earliest wins (the order of the formats
decides ties), and it reads the rest of the message. If all probes fail, the text is content as far as the longest
lasting one read it, and the search goes on there. Nothing is read by more probes than share an opener.

What a format leaves out of content is left out from where its reasoning stood, or where the message begins with it:
elsewhere it may be prose.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from toolwire.events import ContentDelta, Event
from toolwire.text.json_scanner import FastTries
from toolwire.wire.block_reader import ReadOptions
from toolwire.wire.compiled_format import ContentMarkers, compile_format
from toolwire.wire.content_scanner import ContentScanner
from toolwire.wire.message_reader import MessageReader, hidden_by_fence
from toolwire.wire.syntax import END_OF_SEQUENCE, Span, WireFormat


@dataclass(frozen=True, slots=True, eq=False)
class MergedFormats:
    """The openers of several formats, merged.

    Attributes:
        outside: what matters outside blocks.
        owners: formats by opener (lower case), each with its own spelling of it.
    """

    outside: ContentMarkers
    owners: dict[str, tuple[tuple[WireFormat, str], ...]]


@lru_cache(maxsize=16)
def _union(names: tuple[int, ...], formats: tuple[WireFormat, ...], calls: bool) -> MergedFormats:
    spans: dict[str, Span] = {}
    owners: dict[str, list[tuple[WireFormat, str]]] = {}
    frames: dict[str, list[frozenset[str]]] = {}  # what each format that has a marker leaves out
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
        if not calls:
            continue
        plan = compile_format(wire)
        for opener in plan.blocks:
            owners.setdefault(opener.lower(), []).append((wire, opener))
            (anywhere if opener in plan.anywhere else start).add(opener)
            if not wire.ends_reasoning:
                staying.add(opener.lower())
    outside = ContentMarkers(
        anywhere=frozenset(anywhere),
        start=frozenset(start),
        ending=frozenset(opener for opener in anywhere if opener.lower() not in staying),
        spans=spans.values(),
        drops=frozenset(),
        stops=frozenset(),
        fences=True,
        nocase=any(wire.nocase for wire in formats),
    )
    outside.framed({marker: frozenset().union(*drops) for marker, drops in frames.items() if all(drops)})
    return MergedFormats(outside, {opener: tuple(found) for opener, found in owners.items()})


class FormatDetector:
    """Reads one message in whatever format it is in.

    Attributes:
        winner: the format that was found, or None.
        scanned: see `MessageReader.scanned`; summed over the probes.
    """

    def __init__(
        self, formats: Iterable[WireFormat], options: ReadOptions, *, position: int = 0, calls: bool = True
    ) -> None:
        """Formats without markers take part only if there are tools to call; none opens a block without `calls`."""
        self._options = options
        self._probing = replace(options, reasoning_started=False)
        chosen = tuple(wire for wire in formats if wire.detected and (wire.markers or options.tools))
        self._union = _union(tuple(map(id, chosen)), chosen, calls)
        self._events: list[Event] = []
        lookahead = {
            opener: after for wire in chosen for opener, after in compile_format(wire).lookahead(options.tools).items()
        }
        self._prose = ContentScanner(
            self._union.outside, self._events.append, reasoning=options.reasoning_started, lookahead=lookahead
        )
        self._probes: list[MessageReader] = []
        self._machine: MessageReader | None = None
        self._fast = FastTries()
        self._tail = ""
        self._position = position
        self._scanned = 0
        self.winner: WireFormat | None = None

    @property
    def held(self) -> int:
        """Characters held back."""
        return len(self._tail)

    @property
    def scanned(self) -> int:
        """Characters looked at."""
        return self._scanned + (self._machine.scanned if self._machine is not None else 0)

    @property
    def complete_calls(self) -> int:
        """How many calls were read."""
        return self._machine.complete_calls if self._machine is not None else 0

    def feed(self, text: str) -> Sequence[Event]:
        """Read the next piece; the events that became certain."""
        held = len(self._tail)
        if held:
            text = self._tail + text
            self._tail = ""
        if self._machine is not None:
            return self._machine.feed(text)
        waiting = self._prose.waiting
        if held and not self._probes and waiting is not None and waiting.begins(text):
            self._tail = text
            self._scanned += len(text) - held
            return ()
        quick = self._prose.quick
        if not self._probes and quick is not None and text and quick(text) is None:
            self._prose.take(text)
            self._position += len(text)
            self._scanned += len(text)
        else:
            self._tail = self._advance(text, False)
        return self._take()

    def finish(self) -> Sequence[Event]:
        """The text is over."""
        if self._machine is None:
            self._advance(self._tail, True)
        self._tail = ""
        if self._machine is not None:
            return [*self._take(), *self._machine.finish()]
        hidden = self._prose.finish()
        if hidden and self._hides_calls(hidden):
            self._events.extend(hidden_by_fence(hidden, self._position))
        return self._take()

    def _hides_calls(self, text: str) -> bool:
        options = replace(self._probing, deltas=False, fences=False)
        for wire in {id(wire): wire for found in self._union.owners.values() for wire, _ in found}.values():
            if wire.markers:
                machine = MessageReader(wire, options)
                machine.feed(text)
                machine.finish()
                if machine.complete_calls:
                    return True
        return False

    def _take(self) -> Sequence[Event]:
        made = self._events.copy()
        self._events.clear()
        return made

    # -- the search ----------------------------------------------------------------------------------------------

    def _advance(self, text: str, final: bool) -> str:
        """Read on; the text that has to wait, or "" once a machine has taken over."""
        start, pos = self._position, 0
        while True:
            if self._probes:
                if not self._compare(text, start, final):
                    waiting = (probe.position for probe in self._probes if not _dead(probe))
                    self._position = min(waiting)
                    return text[self._position - start :]
                if self._machine is not None:
                    return ""
                pos = self._position - start
            self._prose.waiting = None
            stop = self._prose.scan(text, pos, final)
            self._scanned += stop - pos
            self._position += stop - pos
            pos = stop
            if not self._prose.done:
                return text[pos:]
            self._open(text, pos)
            pos = self._position - start

    def _open(self, text: str, pos: int) -> None:
        """An opener was found: start a probe for each format that has it."""
        opener: str = self._prose.value
        written = text[pos : pos + len(opener)]
        blank = self._prose.blank
        for wire, spelled in self._union.owners[opener.lower()]:
            if (wire.nocase or written == spelled) and (blank or spelled in compile_format(wire).anywhere):
                probe = MessageReader(
                    wire, self._probing, probe=spelled, position=self._position, blank=blank, fast=self._fast
                )
                self._probes.append(probe)
        if not self._probes:  # written in another case than any of its formats allows
            self._prose.resume()
            self._prose.released(text[pos])
            self._position += 1

    def _compare(self, text: str, start: int, final: bool) -> bool:
        """Let the probes read on; whether it is decided what the block is."""
        for probe in self._probes:
            if not probe.decided and not probe.ended:
                before = probe.position
                if final:
                    probe.end(text, before - start)
                else:
                    probe.advance(text, before - start, False)
        best = min((probe for probe in self._probes if probe.announced), key=_position, default=None)
        undecided = [probe for probe in self._probes if not probe.announced and not _dead(probe)]
        if best is not None and all(probe.position > best.position for probe in undecided):
            self._keep(best, text[best.position - start :])
            return True
        if best is None and not undecided:
            self._give_back()
            return True
        return False

    def _keep(self, probe: MessageReader, rest: str) -> None:
        """The block is a call in this probe's format; it reads the rest of the message."""
        self._scanned += sum(other.scanned for other in self._probes if other is not probe)
        self._probes.clear()
        self.winner = probe.wire
        self._machine = probe
        self._events.extend(probe.take_events())
        probe.keep()
        self._events.extend(probe.feed(rest))

    def _give_back(self) -> None:
        """No probe found a call: what the longest lasting one read is content."""
        longest = max(self._probes, key=_position)
        self._scanned += sum(probe.scanned for probe in self._probes)
        self._probes.clear()
        self._position = longest.position
        self._prose.resume()
        for event in longest.take_events():
            if isinstance(event, ContentDelta):
                self._prose.absorb(event.text)
            elif not self._prose.reasoning:  # there, a marker is only mentioned
                self._events.append(event)


def _position(probe: MessageReader) -> int:
    return probe.position


def _dead(probe: MessageReader) -> bool:
    return not probe.announced and (probe.decided or probe.ended)

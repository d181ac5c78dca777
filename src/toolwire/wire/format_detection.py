"""Detection of the format of a message, for `format="auto"`.

One scanner searches for the openers of all formats. At an opener, a probe for each format that has it reads the block;
the probes read the same text side by side. The format whose probe announces a call first wins and reads the rest of the
message. The order of the formats decides ties. If all probes fail, the text that the longest lasting one read is
content, and the search continues there. No text is read by more probes than formats share an opener.

Markers that a format drops from content are dropped after its reasoning, or where they begin the message. Elsewhere
they may be prose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolwire.events import ContentDelta, Event
from toolwire.text.identity_cache import IdentityCache
from toolwire.text.json_text import FastJsonReader
from toolwire.wire.block_reader import ReadOptions
from toolwire.wire.compiled_format import compile_format
from toolwire.wire.content_markers import FENCES, ContentMarkers
from toolwire.wire.content_scanner import ContentScanner
from toolwire.wire.lookahead import Lookahead
from toolwire.wire.message_reader import MessageReader, hidden_by_fence
from toolwire.wire.node_markers import ANY_TAG
from toolwire.wire.shared_openers import Candidate, SharedOpener, candidate
from toolwire.wire.syntax import END_OF_SEQUENCE, Span, WireFormat

_MAX_OPENERS = 512
"""Maximum number of spellings of openers that are prepared; some have one for each case of their letters."""


@dataclass(frozen=True, slots=True, eq=False)
class MergedFormats:
    """The openers of several formats, merged.

    Attributes:
        formats: the formats.
        content: markers that matter outside blocks.
        owners: by opener in lower case, the formats that have it, each with its own spelling.
    """

    formats: tuple[WireFormat, ...]
    content: ContentMarkers
    owners: dict[str, tuple[tuple[WireFormat, str], ...]]
    _openers: dict[str, SharedOpener] = field(default_factory=dict)

    def opener(self, written: str) -> SharedOpener:
        """Return the opener that is written like this, with the formats that allow this spelling."""
        opener = self._openers.get(written)
        if opener is None:
            # Most openers are never met, so each is compared with what can be behind it when it is first met.
            owners = self.owners[written.lower()]
            opener = SharedOpener(
                candidate(wire, spelled) for wire, spelled in owners if wire.nocase or written == spelled
            )
            if len(self._openers) < _MAX_OPENERS:
                self._openers[written] = opener
        return opener


_prepared = IdentityCache(256)
"""Merged formats and lookaheads: making them takes longer than reading a short message."""


def _merge(formats: Iterable[WireFormat], known_tools: bool, calls: bool) -> MergedFormats:
    formats = tuple(wire for wire in formats if wire.detected and (wire.markers or known_tools))
    spans: dict[str, Span] = {}
    owners: dict[str, list[tuple[WireFormat, str]]] = {}
    frames: dict[str, list[frozenset[str]]] = {}  # by marker, the drops of each format that has it
    anywhere: set[str] = set()
    start: set[str] = set()
    ending: set[str] = set()  # openers that some format lets end the reasoning
    quotes: dict[str, frozenset[str]] = dict.fromkeys(FENCES, frozenset())
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
        for opener in compiled.detected:
            owners.setdefault(opener.lower(), []).append((wire, opener))
            (anywhere if opener in compiled.anywhere else start).add(opener)
        ending |= compiled.ending
        for opener, closers in compiled.quotes.items():
            quotes[opener] = quotes.get(opener, frozenset()) | closers
    content = ContentMarkers(
        anywhere=frozenset(anywhere),
        start=frozenset(start),
        ending=frozenset(ending & anywhere),
        spans=spans.values(),
        drops=frozenset(),
        stops=frozenset(),
        quotes={opener: closers for opener, closers in quotes.items() if not (closers and opener.lower() in owners)},
        nocase=any(wire.nocase for wire in formats),
    )
    content.answers = frozenset(marker for wire in formats for marker in wire.answers)
    content.set_frames({marker: frozenset().union(*drops) for marker, drops in frames.items() if all(drops)})
    return MergedFormats(formats, content, {opener: tuple(spellings) for opener, spellings in owners.items()})


def _lookahead(formats: Iterable[WireFormat], names: Iterable[str]) -> dict[str, Lookahead]:
    lookahead: dict[str, Lookahead] = {}
    # Where one of the formats has tags that are named after tools, they have to be tools in the others too.
    for compiled in sorted(map(compile_format, formats), key=lambda compiled: ANY_TAG in compiled.blocks):
        lookahead |= compiled.lookahead(names)
    return lookahead


def _prepare(
    formats: tuple[WireFormat, ...], tools: Iterable[str], calls: bool
) -> tuple[MergedFormats, Mapping[str, Lookahead]]:
    """Return the merged formats, which do not depend on which tools are known, and the lookaheads for these tools."""
    names = tuple(tools)
    known_tools = bool(names)
    merged = _prepared.get(lambda: _merge(formats, known_tools, calls), (formats,), known_tools, calls)
    return merged, _prepared.get(lambda: _lookahead(merged.formats, names), (merged,), names)


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
        self._probing = replace(options, reasoning_started=False) if options.reasoning_started else options
        formats = tuple(formats)
        self._merged, lookahead = _prepared.get(
            lambda: _prepare(formats, options.tools, calls), (formats, options.tools), calls
        )
        self._events: list[Event] = []
        self._content = ContentScanner(
            self._merged.content,
            self._events.append,
            reasoning=options.reasoning_started,
            fences=options.fences,
            lookahead=lookahead,
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

    @property
    def answering(self) -> bool:
        """True if text that its format marks as the answer was read."""
        return self._content.answering or (self._reader is not None and self._reader.answering)

    def feed(self, text: str) -> Sequence[Event]:
        """Read the next piece; return the events that became certain."""
        if self._reader is not None:
            return self._reader.feed(text)
        content = self._content
        if not (self._tail or self._probes) and text and content.quick is not None and content.quick(text) is None:
            self._position += len(text)
            self._scanned += len(text)
            return (content.plain_event(text),)
        held_size = len(self._tail)
        if held_size:
            text = self._tail + text
            self._tail = ""
        if held_size and not self._probes and content.waiting is not None and content.waiting.is_prefix(text):
            self._tail = text
            self._scanned += len(text) - held_size
            return ()
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
        merged = self._merged
        marked = _prepared.get(lambda: tuple(wire for wire in merged.formats if wire.markers), (merged,), "marked")
        reader = FormatDetector(marked, replace(self._probing, deltas=False, fences=False))
        reader.feed(text)
        reader.finish()
        return reader.complete_calls > 0

    def _take(self) -> Sequence[Event]:
        if not self._events:
            return ()
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
            if not self._content.done:  # else an opener waits for what comes behind it
                self._content.waiting = None
                stop = self._content.scan(text, pos, final)
                self._scanned += stop - pos
                self._position += stop - pos
                pos = stop
                if not self._content.done:
                    return text[pos:]
            if not self._open(text, pos, final):
                return text[pos:]
            pos = self._position - start

    def _open(self, text: str, pos: int, final: bool) -> bool:
        """Start a probe for each format that may read a block at `pos`; return False if more text is needed first."""
        stop = pos + len(self._content.value)
        opener = self._merged.opener(text[pos:stop])
        competing = opener.competing(text, stop, final)
        if competing is None:
            return False
        allowed = [each for each in competing if self._is_allowed(each)]
        if not allowed:  # then the first one that may begin here reports what is wrong
            allowed = [each for each in opener.candidates if self._is_allowed(each)][:1]
        if not allowed:
            # No format allows the spelling, or one in an answer: a reader of one format would have read over it.
            self._content.resume()
            self._content.add_content(text[pos])
            self._position += 1
            return True
        for each in allowed:
            # Behind a call without a marker, what closes it depends on the formats in which the message may continue.
            is_competing = len(allowed) > 1 or not each.block.marked
            probe = MessageReader(
                each.wire,
                self._probing,
                probe=each.opener,
                competing=is_competing,
                position=self._position,
                blank=self._content.blank,
                fast=self._fast,
            )
            self._probes.append(probe)
        return True

    def _is_allowed(self, candidate: Candidate) -> bool:
        """Return whether the format's block may begin here; in other formats it is part of the reasoning, or prose."""
        if self._content.reasoning and not candidate.ends(self._content.reasoning_opener):
            return False
        if self._content.answering and not candidate.wire.markers:
            return False  # without markers of a call it is part of the answer
        return candidate.anywhere or self._content.blank

    def _advance_probes(self, text: str, start: int, final: bool) -> bool:
        """Let the probes read on; return whether it is decided what the block is."""
        for probe in self._probes:
            if not probe.decided:
                before = probe.position
                if final:
                    probe.end(text, before - start)
                else:
                    probe.advance(text, before - start, False)
        announced = [probe for probe in self._probes if probe.announced]
        undecided = [probe for probe in self._probes if not (probe.announced or probe.decided or probe.ended)]
        if not announced:
            if not undecided:
                self._reject()
            return not undecided
        # The position decides before the order of formats: the result must be the same for every chunking.
        best = min(announced, key=_position)
        # A probe that is behind may still announce its call at an earlier position, whatever the chunking.
        if undecided and min(map(_position, undecided)) <= best.position:
            return False
        self._choose(best, text[best.position - start :])
        return True

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

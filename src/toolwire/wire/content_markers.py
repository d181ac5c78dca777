"""Markers that matter outside blocks, compiled: openers, reasoning, fences, tokens that end a sequence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy

from toolwire.wire.marker_sets import MarkerSet, marker_set
from toolwire.wire.result_tags import QUOTING_MARKERS
from toolwire.wire.syntax import END_OF_SEQUENCE, Span

Markers = frozenset[str]
FENCES = ("```", "~~~")


class ContentMarkers:
    """Markers that matter outside blocks.

    Attributes:
        prose, prose_start: markers that matter in content, and before there is any.
        reasoning: markers that matter in reasoning, by the span's opener; "" for reasoning that the prompt opened.
        openers, closes, ends: openers of blocks, closers of spans, end-of-sequence tokens.
        stray_closers: closers that are dropped where they close nothing.
        spans: by opener.
        drops: markers that are dropped from content.
        answers: those of them that open the answer; none until they are set.
        frames: by a marker, the markers that matter from it on: a marker that begins the message, or is around
            reasoning, shows the format. Empty where the format is known.
        stops: texts after which no block begins.
        quotes: openers of code fences and other quotations, which hide what is inside.
        reasoning_quotes: those of them that do so in reasoning too; none where no block ends the reasoning.
        closers: by opener of a quotation between markers, the markers that close it.
    """

    def __init__(
        self,
        *,
        anywhere: Markers,
        start: Markers,
        ending: Markers,
        spans: Iterable[Span],
        drops: Markers,
        stops: Markers,
        quotes: Mapping[str, Markers],
        nocase: bool,
    ) -> None:
        self.spans = {span.open: span for span in spans}
        self.openers = anywhere | start
        self.closes = frozenset(span.close for span in self.spans.values())
        # A closer of nothing but white space would be found before every message.
        self.stray_closers = frozenset(close for close in self.closes if not close.isspace())
        self.ends = frozenset(END_OF_SEQUENCE)
        self.drops = drops
        self.answers: Markers = frozenset()
        self.frames: dict[str, ContentMarkers] = {}
        self.stops = stops
        self.after_stop = marker_set(self.ends, nocase)
        self.quotes = frozenset(quotes)
        hides = bool(ending)  # pragma: no mutate - else nothing is read in reasoning anyway, and this is faster
        self.reasoning_quotes = self.quotes & QUOTING_MARKERS if hides else frozenset[str]()
        self.closers: dict[str, MarkerSet] = {
            opener: marker_set(closers, nocase) for opener, closers in quotes.items() if closers
        }
        self._nocase = nocase
        opens = frozenset(self.spans)
        shared = opens | self.ends | stops | self.quotes
        self._anywhere = anywhere | shared
        self._start = self.openers | self.closes | shared
        self.prose = marker_set(self._anywhere | drops, nocase)
        self.prose_start = marker_set(self._start | drops, nocase)
        inside = self.ends | ending | stops | self.reasoning_quotes
        self.reasoning = {
            span.open: marker_set(frozenset({span.close, span.open}) | inside, nocase) for span in self.spans.values()
        }
        self.reasoning[""] = marker_set(self.closes | opens | inside, nocase)

    def set_frames(self, frames: Mapping[str, Markers]) -> None:
        """Set, by marker, which markers are dropped from content after it."""
        by_drops: dict[Markers, ContentMarkers] = {}
        for marker, drops in frames.items():
            # Formats with the same drops share one set, because each set costs a regular expression.
            if drops not in by_drops:
                inner = by_drops[drops] = copy(self)
                inner.drops = drops
                inner.prose = marker_set(self._anywhere | drops, self._nocase)
                inner.prose_start = marker_set(self._start | drops, self._nocase)
            self.frames[marker] = by_drops[drops]
        self.prose_start = marker_set(self._start.union(self.frames), self._nocase)

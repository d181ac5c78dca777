"""Parsing speed in relation to lower bounds: `json.loads`, and a `feed` that does nothing.

    python benchmarks/parse.py              # all formats; some minutes
    python benchmarks/parse.py --quick      # smaller texts
    python benchmarks/parse.py --check      # exit status 1 if a target is missed

Engine and reference take turns in short blocks, and medians are compared, so a machine that slows down for a while
slows both. Columns, lower is better, each with its target in the last lines:

    source, unicode   `parse` of one call with a 1 MB string, in times of `json.loads` of the same arguments
    entities          the same, source code with entities instead of CDATA (formats with elements)
    plain, special    4-character pieces, in times of a `feed` that returns (); ordinary text, and text of which every
                      piece holds a special character
    growth            the last 10 % of one 4 MB stream in times of its first 10 %
    whole, chunks     a response of 300 characters, milliseconds, whole and in 4-character pieces
    peak, stream      tracemalloc's peak in times of the text's own size, whole and in 4-character pieces
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tracemalloc
from collections.abc import Callable
from time import perf_counter
from typing import Any

import texts

import toolwire
from toolwire.tools import definitions
from toolwire.wire.syntax import WireFormat

Row = dict[str, float]

COLUMNS = ("source", "unicode", "entities", "plain", "special", "growth", "whole", "chunks", "peak", "stream")
TARGETS: dict[str, Row] = {
    "json": {"source": 2, "unicode": 3},
    "raw": {"source": 4, "unicode": 4},
    "elements": {"source": 4, "unicode": 4, "entities": 4},
    "python": {},
}
COMMON: Row = {
    "plain": 40, "special": 80, "growth": 1.1, "whole": 0.3, "chunks": 1.0, "peak": 4, "stream": 4
}  # fmt: skip

TOOLS = list(definitions(texts.TOOLS).values())
BLOCK = 2000
"""Number of pieces in one block of a stream."""


class Idle:
    """A parser that does nothing, as a lower bound."""

    def feed(self, text: str) -> tuple[()]:
        """Do nothing."""
        return ()


def turns(engine: Callable[[], Any], reference: Callable[[], Any], rounds: int) -> float:
    """Return the median time of one function as a multiple of the median of another, measured in turns."""
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for side, times in ((engine, took[0]), (reference, took[1])):
            start = perf_counter()
            side()
            times.append(perf_counter() - start)
    return statistics.median(took[0]) / statistics.median(took[1])


def parsed(wire: WireFormat, text: str) -> toolwire.ParsedResponse:
    """Parse the whole text."""
    return toolwire.parse(text, format=wire.name, tools=TOOLS)


def whole(wire: WireFormat, value: str, rounds: int, *, entities: bool = False) -> float:
    """Return the time of `parse` as a multiple of `json.loads`."""
    text = texts.call(wire, value, entities=entities)
    arguments = {"path": "a.py", "content": value}
    if [call.arguments for call in parsed(wire, text).tool_calls] != [arguments]:
        raise SystemExit(f"{wire.name}: the text is not read as it was meant")
    reference = json.dumps(arguments, ensure_ascii=False)
    return turns(lambda: parsed(wire, text), lambda: json.loads(reference), rounds)


def _feed(feed: Callable[[str], Any], text: str, start: int, stop: int) -> float:
    began = perf_counter()
    for at in range(start, stop, 4):
        for _ in feed(text[at : at + 4]):
            pass
    return perf_counter() - began


def stream(wire: WireFormat, value: str) -> list[float]:
    """Return the time of each block of a stream in 4-character pieces, as a multiple of an idle `feed`."""
    text = texts.call(wire, value)
    parser, idle = toolwire.StreamParser(format=wire.name, tools=TOOLS), Idle()
    ratios = [
        _feed(parser.feed, text, start, start + 4 * BLOCK) / _feed(idle.feed, text, start, start + 4 * BLOCK)
        for start in range(0, len(text) - 4 * BLOCK, 4 * BLOCK)
    ]
    return ratios[1:] if len(ratios) > 1 else ratios  # the first block holds the head of the call


def growth(wire: WireFormat, value: str) -> float:
    """Return the time of the last tenth of a stream as a multiple of the first tenth of another, measured in turns."""
    text = texts.call(wire, value)
    tenth = len(text) // 10 // (4 * BLOCK) * 4 * BLOCK
    late = toolwire.StreamParser(format=wire.name, tools=TOOLS)
    early = toolwire.StreamParser(format=wire.name, tools=TOOLS)
    last = 9 * tenth
    _feed(late.feed, text, 0, last)
    _feed(early.feed, text, 0, 4 * BLOCK)
    ratios = [
        _feed(late.feed, text, last + at, last + at + 4 * BLOCK) / _feed(early.feed, text, at, at + 4 * BLOCK)
        for at in range(4 * BLOCK, tenth, 4 * BLOCK)
    ]
    return statistics.median(ratios)


def small(wire: WireFormat, rounds: int) -> tuple[float, float]:
    """Return milliseconds for a response of 300 characters, or little more where its markers are longer."""
    head, tail = texts.around(wire)
    value = texts.SOURCE * 2
    while value and len(head + texts.written(wire, value) + tail) > 300:
        value = value[:-1]
    text = head + texts.written(wire, value) + tail
    chunks = [text[at : at + 4] for at in range(0, len(text), 4)]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        start = perf_counter()
        parsed(wire, text)
        middle = perf_counter()
        parser = toolwire.StreamParser(format=wire.name, tools=TOOLS)
        for chunk in chunks:
            parser.feed(chunk)
        parser.finish()
        times[0].append(middle - start)
        times[1].append(perf_counter() - middle)
    return statistics.median(times[0]) * 1000, statistics.median(times[1]) * 1000


def peaks(wire: WireFormat, value: str) -> tuple[float, float]:
    """Return the memory peak as a multiple of the text's size: whole, and in 4-character pieces."""
    text = texts.call(wire, value)
    size = sys.getsizeof(text)
    peaks_measured: list[float] = []
    for chunked in (False, True):
        tracemalloc.start()
        if chunked:
            parser = toolwire.StreamParser(format=wire.name, tools=TOOLS)
            for at in range(0, len(text), 4):
                parser.feed(text[at : at + 4])
            parser.finish()
        else:
            parsed(wire, text)
        peaks_measured.append(tracemalloc.get_traced_memory()[1] / size)
        tracemalloc.stop()
    return peaks_measured[0], peaks_measured[1]


def measure(wire: WireFormat, *, quick: bool) -> Row:
    """Return all columns for one format."""
    million = 200_000 if quick else 1_000_000
    rounds = 9 if quick else 25
    source = texts.fill(texts.SOURCE, million)
    row: Row = {
        "source": whole(wire, source, rounds),
        "unicode": whole(wire, texts.fill(texts.UNICODE, million), rounds),
    }
    if texts.reads_entities(wire):
        row["entities"] = whole(wire, source, rounds, entities=True)
    row["plain"] = statistics.median(stream(wire, texts.fill(texts.PROSE, million)))
    row["special"] = statistics.median(stream(wire, texts.fill(texts.SPECIAL, million // 2)))
    row["growth"] = growth(wire, texts.fill(texts.PROSE, 4_000_000 if not quick else 1_000_000))
    row["whole"], row["chunks"] = small(wire, 300 if not quick else 100)
    row["peak"], row["stream"] = peaks(wire, source)
    return row


def missed(wire: WireFormat, row: Row) -> list[str]:
    """Return the targets that a format misses."""
    targets = {**COMMON, **TARGETS[texts.kind(wire)]}
    return [f"{column} {row[column]:.2f} > {most}" for column, most in targets.items() if row.get(column, 0) > most]


def main() -> int:
    """Measure, print and compare with the targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help="only these")
    parser.add_argument("--quick", action="store_true", help="smaller texts")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a target is missed")
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file as well")
    options = parser.parse_args()

    print(f"{'':16}" + "".join(f"{column:>9}" for column in COLUMNS))
    figures: dict[str, Row] = {}
    failures: dict[str, list[str]] = {}
    for wire in texts.formats(options.formats):
        row = figures[wire.name] = measure(wire, quick=options.quick)
        if failed := missed(wire, row):
            failures[wire.name] = failed
        shown = (f"{row[column]:9.2f}" if column in row else f"{'-':>9}" for column in COLUMNS)
        print(f"{wire.name:16}{''.join(shown)}", flush=True)
    for kind, targets in TARGETS.items():
        print(f"target {kind:9}" + "".join(f"{({**COMMON, **targets}).get(column, '-')!s:>9}" for column in COLUMNS))
    for name, failed in failures.items():
        print(f"missed by {name}: {'; '.join(failed)}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"quick": options.quick, "figures": figures, "missed": failures}, out, indent=1)
    return 1 if options.check and failures else 0


if __name__ == "__main__":
    sys.exit(main())

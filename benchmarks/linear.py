"""Floods: twice the text may take at most 2.3 times as long, and nothing may raise.

    python benchmarks/linear.py             # sizes as below; many minutes
    python benchmarks/linear.py --quick     # a sixteenth of the sizes
    python benchmarks/linear.py --sample 60 # 60 floods of each kind: auto has 1,440; --seed N draws others
    python benchmarks/linear.py hermes auto # only these formats

A flood is a prefix that opens something (prose, reasoning, a call up to one of its parts) and a unit that never ends
it, again and again. Every format reads floods of 2 and 4 MB whole and of 64 and 128 KB in 4-character pieces; some read
2 and 4 MB in 4-character pieces. A pair over the limit is measured again, since machines stumble.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from random import Random
from time import process_time

import texts

import toolwire
from toolwire.tools import definitions
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import WireFormat

LIMIT = 2.3
MEGABYTE = 1_000_000
LONG_STREAMS = ("hermes", "qwen3_coder", "forge_xml", "auto")
NOISE = 0.005
"""Processor time in seconds that is too short to be measured."""
TRIES = 6

TOOLS = list(definitions(texts.TOOLS).values())
MANY_TOOLS = [*TOOLS, *definitions([{"name": f"tool_{number}", "parameters": {}} for number in range(1000)]).values()]
DIALECTS = "dialects"
"""The name, in place of a format's, of calls in no format to one of many known tools."""
DIALECT_PREFIXES = (
    "", "```python\n", "write_file(", "[write_file(path='", '{"write_file": {"path": ', "write_file\n", "- ",
)  # fmt: skip
DIALECT_UNITS = (
    "write_file(path='a'), ", "write_file(path='a')\n", "{'write_file': {'path': 'a'}}, ",
    "write_file\n{'path': 'a'}\n", "'write_file(path=1)', ", "path=write_file(", "path=[", "x + ", "(", "[", "{", "'",
    '"', "\\", "#", " ", "\n", "`", "9", "a", "a.", "=", "tool_", "- ", "<|x|>",
)  # fmt: skip

UNITS = (
    "<", "<a>", "</", "<!--", "&", "&#65;", "]]", "{", "[", '{"', '{"a":', "[]", '"', "'", "\\", ",", ":", "(", "=",
    "```", "```\n", "~~~\n", " ", "\n", "9", "x", "é", "</s>", "\n</",
)  # fmt: skip
MAIN_UNITS = ("<", "<a>", "&", "{", '"', "\\", "```\n", " ", "9", "</s>")


def markers(wire: WireFormat) -> list[str]:
    """Return the first and the last marker of a call, complete and without the last character."""
    head, tail = texts.around(wire)
    opener = head[: head.index("write_file")].rstrip('"') or head[:1]
    closer = tail.strip().splitlines()[-1] if tail.strip() else ""
    partial_texts = [
        opener,
        opener[:-1],
        head,
        closer,
        closer[:-1],
        tail.strip().splitlines()[0] if tail.strip() else "",
    ]
    return [marker for marker in dict.fromkeys(partial_texts) if marker]


def floods(wires: Iterable[WireFormat], *, main: bool) -> Iterator[tuple[str, str]]:
    """Return prefixes and units for these formats."""
    wires = tuple(wires)
    units = list(MAIN_UNITS if main else UNITS)
    prefixes = ["text "] if main else ["", "text ", "<think>", "```\n"]
    for wire in wires:
        if wire.blocks:
            head, _ = texts.around(wire)
            prefixes.extend([head] if main else [head[: head.index("write_file") + 5], head])
            units.extend(markers(wire)[: 2 if main or len(wires) > 1 else None])
    if len(wires) > 1:  # detection: every unit in prose, and some units inside the calls of every format
        yield from ((prefix, unit) for prefix in prefixes[: 1 if main else 4] for unit in dict.fromkeys(units))
        yield from (
            (prefix, unit) for prefix in prefixes[1 if main else 4 :] for unit in MAIN_UNITS[:: 5 if main else 2]
        )
        return
    yield from ((prefix, unit) for prefix in dict.fromkeys(prefixes) for unit in dict.fromkeys(units))


def seconds(name: str, text: str, piece: int) -> float:
    """Return the processor time of one reading, with the garbage collector switched off."""
    gc.collect()
    gc.disable()
    start = process_time()
    in_dialects = name == DIALECTS
    parser = toolwire.StreamParser(format="auto" if in_dialects else name, tools=MANY_TOOLS if in_dialects else TOOLS)
    if piece:
        feed = parser.feed
        for at in range(0, len(text), piece):
            feed(text[at : at + piece])
    else:
        parser.feed(text)
    parser.finish()
    took = process_time() - start
    gc.enable()
    return took


def ratio(name: str, prefix: str, unit: str, size: int, piece: int) -> tuple[float, float]:
    """Return the time for twice the text as a multiple of the time for the text, and the longer time."""
    texts_ = [prefix + unit * (n // len(unit)) for n in (size, 2 * size)]
    best = [float("inf"), float("inf")]
    for _ in range(TRIES):
        for at, text in enumerate(texts_):
            best[at] = min(best[at], seconds(name, text, piece))
        if best[1] - NOISE < LIMIT * best[0]:
            break
    return max(0.0, best[1] - NOISE) / best[0], best[1]


def main() -> int:
    """Measure, and print the worst cases and those over the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help="only these")
    parser.add_argument("--quick", action="store_true", help="a sixteenth of the sizes")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only N floods of each kind")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    options = parser.parse_args()
    scale = 16 if options.quick else 1

    over = 0
    print(f"{'format':16}{'read':>12}{'floods':>8}{'worst':>8}{'slowest':>10}   slowest flood")
    for name in [*(wire.name for wire in FORMATS), "auto", DIALECTS]:
        if options.formats and name not in options.formats:
            continue
        wires = FORMATS if name in ("auto", DIALECTS) else [wire for wire in FORMATS if wire.name == name]
        kinds = [("whole", 2 * MEGABYTE, 0, False), ("pieces", 65_536, 4, False)]
        if name in LONG_STREAMS:
            kinds.append(("long pieces", 2 * MEGABYTE, 4, True))
        for kind, size, piece, some in kinds:
            worst, slowest, shown = 0.0, 0.0, ""
            cases = list(product(DIALECT_PREFIXES, DIALECT_UNITS) if name == DIALECTS else floods(wires, main=some))
            if 0 < options.sample < len(cases):
                cases = Random(options.seed).sample(cases, options.sample)
            for prefix, unit in cases:
                growth, took = ratio(name, prefix, unit, size // scale, piece)
                worst = max(worst, growth)
                if took > slowest:
                    slowest, shown = took, f"{prefix[-40:]!r} + {unit[:30]!r}"
                if growth >= LIMIT:
                    over += 1
                    print(f"OVER {name} {kind}: {prefix!r} + {unit!r} x {size // scale}: {growth:.2f}", flush=True)
            print(f"{name:16}{kind:>12}{len(cases):8}{worst:8.2f}{slowest:9.2f}s   {shown}", flush=True)
    print(f"{over} over {LIMIT}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())

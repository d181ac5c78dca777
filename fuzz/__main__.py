"""Search for texts that break a law, in every format and in both directions.

    .venv/bin/python -m fuzz                          # 30 seconds
    .venv/bin/python -m fuzz --seconds 3600           # an hour
    .venv/bin/python -m fuzz --seed 7 hermes auto     # these formats, the same texts each time
    .venv/bin/python -m fuzz --seed 7 --turns 500     # so many texts, however long that takes

Each turn takes a format, renders calls to it (L2), or makes a message with accidents, and feeds it whole and in pieces
(L1, L3, L4, L5) and cut (L6). A text that breaks a law is printed as a row for tests/conformance/own.jsonl, which still
needs what it should be read as; calls that do not come back are printed as such. Exit status 1: something was found.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from typing import Any

from tests.property import laws, texts
from tests.property.nodes import names, wire_formats

import toolwire
from toolwire.messages import ToolCall

LONGEST = 2_000
CUTS = 25
PIECES = (
    "", " ", "\n", "\t", "é", "😀", "\ud83d", "0", '"', "'", "\\", "<", "&", "```", "```\n", "</s>", "<think>",
    "</think>",
)  # fmt: skip
"""Parts of texts in any format, besides the markup of the format."""


class Fuzzer:
    """A generator of texts and calls in one format."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name = name
        self._chance = chance
        self._fragments = (*texts.fragments(name), *PIECES)
        self._samples = texts.samples(name) or ("text",)
        self._last: dict[str, Any] = {}
        self._targets = [wire.name for wire in wire_formats(name) if wire.blocks]

    def turn(self) -> str:
        """Try one text and return it; raise AssertionError, or another exception, where a law is broken."""
        chance = self._chance
        text = chance.choice((self._message, self._soup))()
        options = {"format": self.name, "tools": texts.TOOLS if chance.random() < 0.8 else ()}
        self._last = {"format": self.name, "text": text}
        laws.check_text(
            text,
            [laws.pieces(text, chance.randint(2, 9)), laws.cut_at(text, [chance.randrange(999) for _ in range(4)])],
            reasoning_started=chance.random() < 0.1,
            repair=chance.choice(("safe", "safe", "none")),
            **options,
        )
        cuts = [chance.randrange(len(text) + 1) for _ in range(CUTS)]
        laws.check_never_half(text, cuts, **options)
        return text

    @property
    def last(self) -> dict[str, Any]:
        """The last attempt: a format, and a text to read or calls to write."""
        return self._last

    def _soup(self) -> str:
        return "".join(self._chance.choices(self._fragments, k=self._chance.randint(1, 16)))[:LONGEST]

    def _message(self) -> str:
        chance = self._chance
        text = self._rendered() if self._targets and chance.random() < 0.7 else chance.choice(self._samples)
        for _ in range(chance.randint(0, 4)):
            text = self._accident(text)
        return text[:LONGEST]

    def _accident(self, text: str) -> str:
        a = self._chance.randint(0, len(text))
        b = min(len(text), a + self._chance.randint(0, 12))
        match self._chance.choice(("insert", "delete", "double", "cut", "move")):
            case "insert":
                return text[:a] + self._chance.choice(self._fragments) + text[a:]
            case "delete":
                return text[:a] + text[b:]
            case "double":
                return text[:b] + text[a:]
            case "cut":
                return text[:a]
            case _:
                return text[:a] + text[b:] + text[a:b]

    def _rendered(self) -> str:
        chance = self._chance
        target = chance.choice(self._targets)
        calls = [
            ToolCall("write_file", {"path": self._value(), "content": self._value()})
            for _ in range(chance.randint(1, 2))
        ]
        try:
            self._last = {
                "format": target,
                "calls": [{"name": call.name, "arguments": call.arguments} for call in calls],
            }
            return laws.check_round_trip(calls, texts.TOOLS, target)
        except toolwire.RenderError:
            return toolwire.render_calls([ToolCall("ping")], format=target, tools=texts.TOOLS)

    def _value(self) -> str:
        text = "".join(self._chance.choices((*self._fragments, "a", "x y"), k=self._chance.randint(0, 4)))
        return text.encode("utf-8", "ignore").decode()


def main() -> int:
    """Run the fuzzer and print the failures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help="only these")
    parser.add_argument("--seconds", type=float, default=30, help="how long; 30 if nothing is said")
    parser.add_argument("--turns", type=int, default=0, help="how many texts, instead of how long")
    parser.add_argument("--seed", type=int, default=None, help="a number: the same texts each time")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    fuzzers = [Fuzzer(name, chance) for name in names() if not options.formats or name in options.formats]
    if not fuzzers:
        parser.error(f"no such format: {' '.join(options.formats)}")
    turns, failures = 0, 0
    end = time.monotonic() + options.seconds
    while turns < options.turns if options.turns else time.monotonic() < end:
        fuzzer = fuzzers[turns % len(fuzzers)]
        turns += 1
        try:
            fuzzer.turn()
        except Exception as error:  # whatever it is, it is what is looked for
            failures += 1
            print(json.dumps({"id": f"own/{fuzzer.name}/fuzz-{seed}-{turns}", **fuzzer.last}), flush=True)
            print(f"  {type(error).__name__}: {str(error)[:600]}", file=sys.stderr, flush=True)
            if failures >= 20:
                break
    print(f"{turns} texts in {len(fuzzers)} formats, seed {seed}: {failures} broke a law", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

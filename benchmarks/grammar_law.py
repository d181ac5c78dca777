"""Law L7 with figures: what real engines make of grammars, for every format that writes calls.

    .venv/bin/python -m benchmarks.grammar_law                      # the totals; about half an hour
    .venv/bin/python -m benchmarks.grammar_law --each hermes react  # a line for each format too
    .venv/bin/python -m benchmarks.grammar_law --cases 4 --walks 2  # a sample

xgrammar takes part if `xgrammar`, `apache-tvm-ffi` and `numpy` are installed, without dependencies, on the path.

Columns, each as "right of all":

    accepted    rendered calls with their arguments in the schema's order
    rejected    damaged calls: cut anywhere, another tool, another type, a misspelt key, text around them, one character
                missing. A damage counts if the parser does not read the text as complete calls that are valid. Under
                auto, text without a call of a known tool, or with text before valid calls, does not count
    read        random walks over the characters that the engine allows, under `required` and up to a permitted end,
                which the parser reads as complete calls that are valid, without repairs or problems

The tools have arguments of every type, nested ones too. Exit status 1 if anything is missed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from tests.property.grammar_engines import usable_engines
from tests.property.grammar_walks import OPEN_WALKS
from tests.property.test_grammars import KNOWN, TOOLS, WITH_CALLS, Case, cases, damaged, render

import toolwire
from toolwire.grammars.message_grammar import grammar
from toolwire.schema.validation import validate
from toolwire.wire.syntax import WireFormat

CHOICES = ("required", "auto", "named")
MAX_WALK = 400
"""Characters after which a walk that has not ended is given up."""


def drawn_cases(wire: WireFormat, count: int, most: int) -> list[Case]:
    """Return random messages of one format."""
    drawn: list[Case] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(wire, most=most))
    def collect(case: Case) -> None:
        drawn.append(case)

    collect()
    return drawn


def is_clean(wire: WireFormat, text: str, *, prose: bool = False) -> bool:
    """Return whether the parser reads a text as calls that are complete, valid and unrepaired.

    Args:
        wire: the format.
        text: the text.
        prose: text may come before the calls, and there may be no call of a known tool at all.
    """
    read = toolwire.parse(text, format=wire, tools=TOOLS)
    if prose and not read.incomplete and all(call.name not in KNOWN for call in read.tool_calls):
        return True
    return (
        bool(read.tool_calls)
        and not read.problems
        and not read.incomplete
        and (prose or not read.content.strip())
        and not any(set(call.repairs) - {"coerced"} for call in read.tool_calls)
        and all(call.name in KNOWN for call in read.tool_calls)
        and not any(validate(call.arguments, KNOWN[call.name].parameters) for call in read.tool_calls)
    )


def damages(case: Case, draw: random.Random) -> Iterator[str]:
    """Yield damaged forms of a message of one call, which the parser does not read as it stands."""
    dropped = (
        case.text[:at] + case.text[at + 1 :] for at in draw.sample(range(len(case.text)), min(12, len(case.text)))
    )
    for text in dict.fromkeys([*damaged(case), *dropped]):
        if not is_clean(case.wire, text):
            yield text


def count_format(
    wire: WireFormat, engines: dict[str, Any], sizes: tuple[int, int], wrong: list[str]
) -> Iterator[tuple[str, Counter[str]]]:
    """Yield the counts of one format by engine, syntax and tool choice, and add what is missed."""
    number, walks = sizes
    several, single = drawn_cases(wire, number, 3), drawn_cases(wire, max(1, number // 2), 1)
    draw = random.Random(wire.name)
    broken = [(case, list(damages(case, draw))) for case in single]
    for engine, real in engines.items():
        for syntax in real.syntaxes:
            for choice in CHOICES:
                count = Counter[str]()
                accepts = Acceptance(wire, real, syntax, choice)
                for case in several if choice != "named" else single:
                    count["calls"] += 1
                    if accepts(case, case.text):
                        count["accepted"] += 1
                    else:
                        wrong.append(f"{wire.name} {engine} {syntax} {choice} rejects {case.text!r}")
                for case, texts in broken:
                    for text in texts:
                        if choice == "auto" and is_clean(wire, text, prose=True):
                            continue
                        count["damages"] += 1
                        if accepts(case, text):
                            wrong.append(f"{wire.name} {engine} {syntax} {choice} accepts {text!r}")
                        else:
                            count["rejected"] += 1
                if choice == "required":
                    for text in walked(accepts.text("required"), engine, syntax, wire, walks):
                        count["walks"] += 1
                        if is_clean(wire, text):
                            count["read"] += 1
                        else:
                            wrong.append(f"{wire.name} {engine} {syntax} offers {text!r}")
                yield f"{engine} {syntax} {choice}", count


class Acceptance:
    """Asks one engine about texts, under the grammar of one format and tool choice."""

    def __init__(self, wire: WireFormat, real: Any, syntax: str, choice: str) -> None:
        self._wire = wire
        self._real = real
        self._syntax: Any = syntax
        self._choice = choice
        self._texts: dict[str, str] = {}

    def text(self, tool_choice: str) -> str:
        """Return the grammar for a tool choice."""
        if tool_choice not in self._texts:
            self._texts[tool_choice] = grammar(
                TOOLS, format=self._wire, tool_choice=tool_choice, syntax=self._syntax
            ).text
        return self._texts[tool_choice]

    def __call__(self, case: Case, text: str) -> bool:
        """Return whether the engine accepts a text in place of a message."""
        tool_choice = case.calls[0].name if self._choice == "named" else self._choice
        accepted: bool = self._real.match(self.text(tool_choice), text, self._syntax).complete
        return accepted


def walked(text: str, engine: str, syntax: str, wire: WireFormat, count: int) -> Iterator[str]:
    """Yield the texts of random walks that came to an end."""
    # A long walk prefers the characters that end things, among them those of the format's own markers.
    markers = list(closers(wire))
    for seed in range(count):
        draw = random.Random(f"{wire.name} {seed}")
        walk = OPEN_WALKS[engine](text, syntax)
        written = ""
        while len(written) < MAX_WALK:
            if walk.may_end() and (draw.random() < 0.5 or len(written) > MAX_WALK // 3):
                yield written
                break
            allowed = walk.allowed()
            if not allowed:
                break
            character = chosen(allowed, written, markers, draw)
            walk.take(character)
            written += character
        walk.close()


def closers(wire: WireFormat) -> Iterable[str]:
    """Return the texts that a rendered call consists of, apart from its name and arguments."""
    sample = render(wire, [toolwire.ToolCall("get_weather", {"city": "Q", "days": 7})])
    return [sample[at:] for at in range(len(sample)) if sample[at] in "<[{(\"'}])/|\n"]


def chosen(allowed: str, written: str, markers: list[str], draw: random.Random) -> str:
    """Return one of the characters that may follow."""
    if draw.random() < len(written) / 60:
        for marker in markers:
            for size in range(min(len(marker) - 1, len(written)), 0, -1):
                if written.endswith(marker[:size]) and marker[size] in allowed and size > 1:
                    return marker[size]
        # A quote in JSON inside a string has a backslash before it.
        endings = [character for character in "\"}])<'" if character in allowed] or list(
            "\\" if "\\" in allowed else ""
        )
        if endings:
            return draw.choice(endings)
    return draw.choice(allowed)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", help="names of formats; all by default")
    parser.add_argument("--cases", type=int, default=20, help="messages of a format")
    parser.add_argument("--walks", type=int, default=4, help="walks of a format, engine and syntax")
    parser.add_argument("--each", action="store_true", help="a line for each format too")
    parser.add_argument("--show", type=int, default=30, help="so many lines about what is missed")
    options = parser.parse_args()
    engines = usable_engines()
    totals: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    start = time.monotonic()
    wires = [param.values[0] for param in WITH_CALLS]
    wires = [wire for wire in wires if not options.formats or wire.name in options.formats]
    print(f"{'':34}{'accepted':>16}{'rejected':>18}{'read':>14}")
    for wire in wires:
        for row, count in count_format(wire, engines, (options.cases, options.walks), wrong):
            totals.setdefault(row, Counter()).update(count)
            if options.each:
                print(line(f"{wire.name} {row}", count), flush=True)
    for row, count in totals.items():
        print(line(row, count))
    for text in wrong[: options.show]:
        print(text)
    print(f"{len(wires)} formats, {len(wrong)} wrong, {time.monotonic() - start:.0f} s")
    return 1 if wrong else 0


def line(title: str, count: Counter[str]) -> str:
    """Return a line of the table."""
    pairs = (("accepted", "calls", 16), ("rejected", "damages", 18), ("read", "walks", 14))
    return f"{title:34}" + "".join(f"{f'{count[right]} of {count[all]}':>{width}}" for right, all, width in pairs)


if __name__ == "__main__":
    sys.exit(main())

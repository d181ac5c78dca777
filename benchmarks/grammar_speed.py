"""Tokens per second of a local model without a grammar and with one, over all formats.

    python -m benchmarks.grammar_speed --model 0.5b            # all formats; 20 minutes with two processors
    python -m benchmarks.grammar_speed --model 1.5b hermes json_fence
    python -m benchmarks.grammar_speed --json

The model writes a text without a grammar (`free`), the same text under a grammar that permits calls (`auto`), and a
call under a grammar that demands one (`required`), in turns, each with the same three tools. Columns:

    free, auto, required       tokens per second from the first token of the answers to their last, all turns together
    auto /, required /         the same in times of `free`; 0.9 or more meets the target
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from time import perf_counter
from typing import Any

from benchmarks.grammar import tools

import toolwire
from toolwire.events import Finish
from toolwire.models.local.model_files import open_model
from toolwire.models.local.runtime import LocalModel
from toolwire.wire.formats import FORMATS

TEXT = "Describe the city of Paris in five long sentences. Use no tool."
CALL = "Look up the weather in Paris with tool_number_1, at most 12 results, with the tags rain and wind."
TARGET = 0.9
MODES = ("auto", "required")


class Clock:
    """The tokens of one kind of answer, and the time that they took.

    Attributes:
        tokens: number of tokens behind the first one of each answer.
        seconds: the time of these tokens.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self.seconds = 0.0

    def answer(self, model: LocalModel, messages: list[dict[str, str]], grammar: str, tokens: int) -> None:
        """Let the model answer once."""
        stream = model.stream(messages, max_tokens=tokens, grammar=grammar)
        times = [perf_counter() for piece in stream if not isinstance(piece, Finish)]
        self.tokens += len(times) - 1
        self.seconds += times[-1] - times[0]


def speeds(model: LocalModel, format: str, tokens: int, turns: int) -> dict[str, float]:
    """Return the columns of a format."""
    definitions = tools(3)
    system = {"role": "system", "content": toolwire.prompt(definitions, format=format)}
    asked = {
        name: [system, {"role": "user", "content": question}]
        for name, question in (("free", TEXT), ("auto", TEXT), ("required", CALL))
    }
    grammars = {"free": ""} | {
        mode: toolwire.grammar(definitions, format=format, tool_choice=mode, syntax="gbnf", text_after=True).text
        for mode in MODES
    }
    clocks = {mode: Clock() for mode in asked}
    for _ in range(turns):
        for mode, clock in clocks.items():
            clock.answer(model, asked[mode], grammars[mode], tokens)
    rates = {mode: clock.tokens / clock.seconds for mode, clock in clocks.items()}
    shares = {f"{mode} /": rates[mode] / rates["free"] for mode in MODES}
    return {**rates, **shares}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", help="names of formats; all by default")
    parser.add_argument("--model", default="0.5b", help="a model on this machine")
    parser.add_argument("--tokens", type=int, default=48, help="the maximum number of tokens of an answer")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = options.formats or [wire.name for wire in FORMATS if wire.blocks]
    model = open_model(options.model)
    table: dict[str, dict[str, float]] = {}
    for name in names:
        table[name] = speeds(model, name, options.tokens, options.turns)
        if not options.json:
            if len(table) == 1:
                print(f"{'format':20}" + "".join(f"{column:>11}" for column in table[name]))
            print(f"{name:20}" + "".join(f"{value:11.2f}" for value in table[name].values()), flush=True)
    missed: dict[str, list[Any]] = {
        mode: [name for name, row in table.items() if row[f"{mode} /"] < TARGET] for mode in MODES
    }
    if options.json:
        print(json.dumps({"model": options.model, "formats": table, "missed": missed}, indent=1))
        return 0
    for mode, late in missed.items():
        share = statistics.median(row[f"{mode} /"] for row in table.values())
        print(f"{mode}: median {share:.2f}; under {TARGET:g} in {len(late)} of {len(table)}: {' '.join(late)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

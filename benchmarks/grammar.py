"""Build times of grammars, over all formats, and the cost of a mask under them.

    python benchmarks/grammar.py                    # build times; a minute
    python benchmarks/grammar.py --json             # the same for a program
    python benchmarks/grammar.py --check            # exit status 1 if a target is missed
    python -m benchmarks.grammar --mask 0.5b        # a mask of each token, with a local model's vocabulary

Columns, lower is better, each with its target in the last lines:

    3, 10, 100, 300   milliseconds of processor time to build the grammar of a message, for so many tools
    growth            time for 300 tools in times of that for 100; 3 is linear
    mean, worst       milliseconds of processor time to compute the mask of one token by llguidance
    xg .., loading    the same by xgrammar, with structural tags, and milliseconds to load the grammar; xgrammar takes
                      part if `xgrammar`, `apache-tvm-ffi` and `numpy` are installed, without dependencies, on the path

The tools differ in their names alone, and have five parameters each. The least of several builds counts, in which
nothing is stored but what each process computes once per format.
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any, BinaryIO

import toolwire
from toolwire.messages import ToolCall
from toolwire.tools import ToolDefinition
from toolwire.wire.formats import FORMATS

COUNTS = (3, 10, 100, 300)
TARGETS = {"3": 5.0, "100": 100.0, "growth": 4.0, "mean": 2.0, "xg mean": 2.0}
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "verbose": {"type": "boolean"},
    },
    "required": ["query"],
}
ARGUMENTS = {"query": "the weather in Paris, and a walk", "limit": 12, "unit": "celsius", "tags": ["rain", "wind"]}


def tools(count: int) -> list[ToolDefinition]:
    """Return as many tools."""
    return [ToolDefinition(f"tool_number_{number}", parameters=PARAMETERS) for number in range(count)]


def build_time(format: str, count: int, syntax: Any) -> float:
    """Return the milliseconds that a grammar takes."""
    definitions = tools(count)
    times: list[float] = []
    for _ in range(5 if count < 50 else 2):
        start = process_time()
        toolwire.grammar(definitions, format=format, syntax=syntax)
        times.append(process_time() - start)
    return 1000 * min(times)


def builds(format: str, syntax: str) -> dict[str, float]:
    """Return the columns of build times."""
    times = {str(count): build_time(format, count, syntax) for count in COUNTS}
    return {**times, "growth": times["300"] / times["100"]}


class Vocabulary:
    """The tokens of a GGUF model, as llguidance takes them; a text becomes the longest tokens that fit."""

    bos_token_id = None

    def __init__(self, path: Path) -> None:
        """Read the tokens of a model whose vocabulary is one of bytes in printable characters."""
        with path.open("rb") as file:
            metadata = read_metadata(file)
        as_bytes = printable_bytes()
        special = {at for at, kind in enumerate(metadata["tokenizer.ggml.token_type"]) if kind == 3}
        self.special_token_ids = sorted(special)
        self.tokens = [
            token.encode() if at in special else bytes(as_bytes[character] for character in token)
            for at, token in enumerate(metadata["tokenizer.ggml.tokens"])
        ]
        self.eos_token_id = metadata["tokenizer.ggml.eos_token_id"]
        self._ids = {token: at for at, token in enumerate(self.tokens) if at not in special}
        self._longest = max(map(len, self._ids))

    def __call__(self, text: str | bytes) -> list[int]:
        """Return the tokens of a text."""
        rest = text.encode() if isinstance(text, str) else text
        ids: list[int] = []
        while rest:
            size = next(size for size in range(min(self._longest, len(rest)), 0, -1) if rest[:size] in self._ids)
            ids.append(self._ids[rest[:size]])
            rest = rest[size:]
        return ids


def printable_bytes() -> dict[str, int]:
    """Return the byte of each character that stands for one in vocabularies made of bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + at): byte for at, byte in enumerate(others)}


_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def read_metadata(file: BinaryIO) -> dict[str, Any]:
    """Return the metadata at the beginning of a GGUF file."""

    def number(form: str) -> Any:
        return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))[0]

    def value(kind: int) -> Any:
        if kind == 8:
            return file.read(number("Q")).decode("utf-8", "replace")
        if kind == 9:
            inner = number("I")
            return [value(inner) for _ in range(number("Q"))]
        return number(_NUMBERS[kind])

    number("Q"), number("Q")  # magic and version; number of tensors
    return {value(8): value(number("I")) for _ in range(number("Q"))}


def masks(format: str, tokenizer: Any, vocabulary: Vocabulary, xgrammar: tuple[Any, Any] | None) -> dict[str, float]:
    """Return the columns of masks: text and then a call, token by token, under `auto`.

    Args:
        format: the name of the format.
        tokenizer: llguidance's tokenizer.
        vocabulary: the tokens.
        xgrammar: the engine xgrammar and its compiler for the vocabulary; None without it.
    """
    import llguidance

    definitions = tools(3)
    text = toolwire.render_calls([ToolCall("tool_number_1", ARGUMENTS)], format=format, tools=definitions)
    wire = toolwire.get_format(format)
    written = text.removeprefix(wire.primed)
    if wire.markers and not wire.primed and wire.at == "anywhere":
        written = f"Let me look at that.\n{written}"
    grammar = llguidance.LLMatcher.grammar_from_lark(toolwire.grammar(definitions, format=format).text)
    matcher = llguidance.LLMatcher(tokenizer, grammar)
    tokens = vocabulary(written)
    times = mask_times(matcher.compute_bitmask, matcher.consume_token, tokens)
    columns = {"tokens": len(tokens), "mean": statistics.mean(times), "worst": max(times)}
    if xgrammar is not None:
        import numpy

        (real, compiler), mask = xgrammar, numpy.zeros((1, -(-len(vocabulary.tokens) // 32)), dtype=numpy.int32)
        tag = toolwire.grammar(definitions, format=format, syntax="structural_tag").text
        start = process_time()
        other = real.matcher(compiler, tag, "structural_tag")
        loading = 1000 * (process_time() - start)
        times = mask_times(lambda: other.fill_next_token_bitmask(mask), other.accept_token, tokens)
        columns |= {"xg mean": statistics.mean(times), "xg worst": max(times), "loading": loading}
    return columns


def mask_times(compute: Callable[[], Any], take: Callable[[int], bool], tokens: list[int]) -> list[float]:
    """Return the milliseconds that the mask before each token takes."""
    times: list[float] = []
    for token in tokens:
        start = process_time()
        compute()
        times.append(1000 * (process_time() - start))
        if not take(token):
            raise SystemExit(f"the grammar refuses token {len(times)} of a rendered call")
    return times


def open_xgrammar(vocabulary: Vocabulary) -> tuple[Any, Any] | None:
    """Return xgrammar and its compiler for a vocabulary; None if it is not installed."""
    from tests.property.grammar_engines import ENGINES

    try:
        real: Any = ENGINES["xgrammar"]()
    except ImportError as error:
        print(f"without xgrammar: {error}")
        return None
    return real, real.compiler(vocabulary.tokens, vocabulary.eos_token_id)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", help="names of formats; all by default")
    parser.add_argument("--syntax", default="gbnf", help="the syntax that is built")
    parser.add_argument("--mask", metavar="MODEL", help="measure masks with the vocabulary of this local model instead")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    names = options.formats or [wire.name for wire in FORMATS if wire.blocks]
    if options.mask:
        import llguidance

        from toolwire.models.local.model_files import locate

        vocabulary = Vocabulary(locate(options.mask))
        tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(vocabulary))
        xgrammar = open_xgrammar(vocabulary)
        table = {name: masks(name, tokenizer, vocabulary, xgrammar) for name in names}
    else:
        builds(names[0], options.syntax)  # imports and caches
        table = {name: builds(name, options.syntax) for name in names}
    columns = list(next(iter(table.values())))
    missed = [
        (column, name)
        for column in columns
        for name, row in table.items()
        if column in TARGETS and row[column] > TARGETS[column]
    ]
    if options.json:
        print(json.dumps({"formats": table, "missed": missed}, indent=1))
    else:
        print(f"{'format':20}" + "".join(f"{column:>9}" for column in columns))
        for name, row in table.items():
            print(f"{name:20}" + "".join(f"{row[column]:9.2f}" for column in columns))
        print(f"{'median':20}" + "".join(f"{statistics.median(r[c] for r in table.values()):9.2f}" for c in columns))
        for column in columns:
            if column in TARGETS:
                late = [name for late_column, name in missed if late_column == column]
                print(f"{column}: at most {TARGETS[column]:g}; missed by {len(late)} of {len(table)}: {' '.join(late)}")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Answers of models that a prompt asked for calls: how many each parser reads, and how long it takes.

    python -m venv /tmp/peers
    /tmp/peers/bin/pip install json-repair llm-beacon langchain-core agent-tool-parser
    /tmp/peers/bin/pip install --no-deps bfcl-eval
    /tmp/peers/bin/pip install tenacity filelock python-dotenv requests \\
        tree-sitter==0.21.3 tree-sitter-java==0.21.0 tree-sitter-javascript==0.21.4
    .venv/bin/python benchmarks/asked.py --packages /tmp/peers/lib/python3.11/site-packages
    .venv/bin/python benchmarks/asked.py --packages ... --write     # benchmarks/asked.json, for the table in docs
    .venv/bin/python benchmarks/asked.py --profiles                 # the figures in wire/answer_shares.py
    .venv/bin/python benchmarks/asked.py --quick                    # every twentieth row

The rows are not part of this repository. `--rows` names a folder with `asked/rows.jsonl` (model, text, tools, expected
calls), `asked/tools.json` and `asked.py`, whose function `matches` compares calls with the expected ones. Without them
the benchmark says so and ends with status 2.

A row with expected calls can be read: some parser found them. It counts as right if exactly these calls are read. A row
without is a refusal that names a tool, and every call in it is wrong. The other parsers take no tools, so a call of an
unknown tool is dropped for each parser, as its caller would do, and tuples become lists. Time: the second reading of
each row, all parsers in turns, as a multiple of Toolwire's; the definitions of the tools are made before. The decoder
of bfcl-eval evaluates expressions that the model wrote: run it on rows that you trust.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import platform
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import toolwire
from toolwire.tools import ToolDefinition, definitions

Calls = list[tuple[str, Any]]
Read = Callable[[str, list[Any]], Calls]
Row = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "benchmarks" / "asked.json"
SHARES = ROOT / "src" / "toolwire" / "wire" / "answer_shares.py"
QUICK = 20
"""Step between the rows of a quick run."""


@dataclass
class Reading:
    """What one parser made of the rows.

    Attributes:
        parser: its name.
        function: the function that is called, of another parser.
        version: version of its package.
        readable: number of rows with expected calls.
        right: number of those rows that were read right.
        refusals: number of rows without a call.
        called: number of those rows in which a call was read.
        raised: number of rows for which it raised an exception.
        seconds: the time of one reading of all rows.
    """

    parser: str
    function: str
    version: str
    readable: int = 0
    right: int = 0
    refusals: int = 0
    called: int = 0
    raised: int = 0
    seconds: float = 0.0


def objects(value: Any) -> Calls:
    """Return the calls in JSON: objects with a name and arguments, or with the name as their key."""
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    calls: Calls = []
    for item in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(item, dict):
            continue
        arguments = next((item[key] for key in ("arguments", "args", "parameters") if key in item), None)
        if isinstance(item.get("name"), str) and arguments is not None:
            calls.append((item["name"], arguments))
        else:
            calls.extend((key, inner) for key, inner in item.items() if isinstance(inner, dict))
    return calls


def _objects_by(load: Callable[[str], Any]) -> Callable[[str], Calls]:
    return lambda text: objects(load(text))


def ours(text: str, tools: list[Any]) -> Calls:
    """Read a text with Toolwire, which knows the tools but not the format."""
    return [(call.name, call.arguments) for call in toolwire.parse(text, format="auto", tools=tools).tool_calls]


def peers() -> Iterator[tuple[tuple[str, str, str], Read]]:
    """Yield each of the other parsers that is installed: its package, function and version, and how it reads."""
    entries: tuple[tuple[str, str, str, Callable[[Any], Callable[[str], Calls]]], ...] = (
        (
            "bfcl-eval",
            "default_decode_ast_prompting",
            "bfcl_eval.model_handler.utils",
            lambda m: _objects_by(m.default_decode_ast_prompting),
        ),
        ("json-repair", "loads", "json_repair", lambda m: _objects_by(m.loads)),
        (
            "langchain-core",
            "output_parsers.JsonOutputParser",
            "langchain_core.output_parsers.json",
            lambda m: _objects_by(m.JsonOutputParser().parse),
        ),
        (
            "llm-beacon",
            "parse_tool_calls",
            "beacon",
            lambda m: lambda text: [(call["name"], call["arguments"]) for call in m.parse_tool_calls(text)],
        ),
        (
            "agent-tool-parser",
            "try_parse_tool_calls",
            "agent_tool_parser",
            lambda m: lambda text: [(call.name, call.args) for call in m.try_parse_tool_calls(text)],
        ),
    )
    for package, function, module, make in entries:
        try:
            read, version = make(importlib.import_module(module)), importlib.metadata.version(package)
        except ImportError as error:
            print(f"left out: {package} is not installed ({error})", file=sys.stderr)
            continue
        yield (package, function, version), lambda text, _, read=read: read(text)


def plain(value: Any) -> Any:
    """Return a value in which tuples have become lists."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def measure(rows: list[Row], tools: dict[str, list[Any]], matches: Callable[..., bool]) -> list[Reading]:
    """Read each row with each parser."""
    version = importlib.metadata.version("toolwire")
    parsers: list[tuple[Reading, Read]] = [
        (Reading("Toolwire", "", version), ours),
        (Reading("Toolwire, without the tools", "", version), lambda text, _: ours(text, [])),
        *((Reading(*names), read) for names, read in peers()),
    ]
    prepared: dict[str, dict[str, ToolDefinition]] = {}
    for row in rows:
        if row["tools"] not in prepared:
            prepared[row["tools"]] = definitions(tools[row["tools"]])
        known = prepared[row["tools"]]
        for reading, read in parsers:
            calls, raised, seconds = timed(read, row["text"], list(known.values()))
            calls = [(name, plain(arguments)) for name, arguments in calls if name in known]
            well_formed = all(isinstance(arguments, dict) for _, arguments in calls)
            if row["expected"]:
                reading.readable += 1
                reading.right += well_formed and matches(calls, row["expected"])
            else:
                reading.refusals += 1
                reading.called += bool(calls)
            reading.raised += raised
            reading.seconds += seconds
    return [reading for reading, _ in parsers]


def timed(read: Read, text: str, tools: list[Any]) -> tuple[Calls, bool, float]:
    """Return the calls of a text, whether the parser raised, and the time of its second reading."""
    calls: Calls = []
    raised, seconds = False, 0.0
    for _ in range(2):
        start = perf_counter()
        try:
            calls = read(text, tools)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # whatever a parser raises; a panic in Rust is no Exception
            raised = True
        seconds = perf_counter() - start
    return calls, raised, seconds


def show(readings: list[Reading]) -> None:
    """Print the table."""
    print(f"{'parser':44}{'version':>12}{'readable':>10}{'right':>8}{'rate':>8}", end="")
    print(f"{'refusals':>10}{'called':>8}{'raised':>8}{'ms a row':>10}{'ratio':>8}")
    for r in readings:
        rate = r.right / max(r.readable, 1)
        print(f"{f'{r.parser} {r.function}':44}{r.version:>12}{r.readable:10}{r.right:8}{rate:8.1%}", end="")
        each = 1000 * r.seconds / max(r.readable + r.refusals, 1)
        print(f"{r.refusals:10}{r.called:8}{r.raised:8}{each:10.3f}{r.seconds / readings[0].seconds:8.2f}")


def shares(rows: list[Row], tools: dict[str, list[Any]], matches: Callable[..., bool]) -> dict[str, Counter[str]]:
    """Return for each model the number of readable rows by form: a format, a dialect, or "" for rows not read."""
    forms: dict[str, Counter[str]] = {}
    for row in rows:
        if not row["expected"]:
            continue
        calls = toolwire.parse(row["text"], format="auto", tools=tools[row["tools"]]).tool_calls
        right = matches([(call.name, call.arguments) for call in calls], row["expected"])
        forms.setdefault(row["model"], Counter())[calls[0].format if right else ""] += 1
    return forms


def write_shares(forms: dict[str, Counter[str]]) -> None:
    """Rewrite the figures in the module of answer shares."""
    lines = []
    for model, counted in sorted(forms.items()):
        listed = ", ".join(f'("{form}", {number})' for form, number in counted.most_common() if form)
        # A comma at the end of a longer tuple would make the formatter give each form a line of its own.
        end = "," if len(+counted) - ("" in counted) == 1 else ""
        lines.append(f'    ModelAnswers("{model}", {counted.total()}, ({listed}{end})),\n')
    source = SHARES.read_text("utf-8")
    part = re.compile(r"(# begin measured\n).*?( *# end measured\n)", re.DOTALL)
    SHARES.write_text(part.sub(lambda match: match[1] + "".join(lines) + match[2], source), "utf-8")
    print(f"{SHARES.relative_to(ROOT)}: {len(forms)} models; now run ruff format and scripts/update_docs.py")


def main() -> int:
    """Read the rows; print or write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, default=ROOT.parent / "shared" / "conformance", metavar="FOLDER")
    parser.add_argument("--packages", type=Path, help="a site-packages folder with the other parsers")
    parser.add_argument("--quick", action="store_true", help=f"only one of {QUICK} rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file as well")
    parser.add_argument("--write", action="store_true", help=f"write the figures to {FIGURES.name}, for the docs")
    parser.add_argument("--profiles", action="store_true", help="only measure the forms that each model writes")
    options = parser.parse_args()
    needed = [options.rows / name for name in ("asked/rows.jsonl", "asked/tools.json", "asked.py")]
    if missing := [str(path) for path in needed if not path.is_file()]:
        print(f"nothing measured: this benchmark needs {', '.join(missing)}; see --rows", file=sys.stderr)
        return 2
    if options.packages:
        sys.path.append(str(options.packages))
    matches = matching_rule(needed[2])
    tools = json.loads(needed[1].read_text("utf-8"))
    rows = [json.loads(line) for line in needed[0].read_text("utf-8").splitlines()][:: QUICK if options.quick else 1]
    if options.profiles:
        write_shares(shares(rows, tools, matches))
        return 0
    readings = measure(rows, tools, matches)
    show(readings)
    figures = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "rows": len(rows),
        "readings": [asdict(reading) for reading in readings],
    }
    for path in [options.json] * bool(options.json) + [FIGURES] * options.write:
        path.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 0


def matching_rule(path: Path) -> Callable[..., bool]:
    """Return the function of the rows that compares calls with the expected ones."""
    spec = importlib.util.spec_from_file_location("asked_rows", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rule: Callable[..., bool] = module.matches
    return rule


if __name__ == "__main__":
    sys.exit(main())

"""Coverage of JSON Schema by grammars: every schema is loaded by real engines, and all that it admits is accepted.

    pip download --no-deps --no-binary :all: jsonschema==4.26.0     # its archive contains the official test suite
    .venv/bin/python -m benchmarks.grammar_schemas --suite jsonschema-4.26.0/json/tests --generated 1000
    .venv/bin/python -m benchmarks.grammar_schemas --bfcl bfcl_eval/data     # see bfcl_roundtrip.py

xgrammar takes part if `xgrammar`, `apache-tvm-ffi` and `numpy` are installed, without dependencies, on the path.

Columns:

    schemas     grammars that were made, and loaded by the engine
    refused     grammars that the engine refuses; has to be 0
    valid       values that the schema admits
    accepted    those that the engine accepts in one of their spellings; has to be all
    invalid     values that the schema does not admit
    rejected    those that the engine rejects
    unsaid      those that it accepts although no keyword is listed as one without effect; has to be 0

Of the suite, objects are open where they do not mention other members, as the standard says; `toolwire.grammar` closes
them. A schema that admits nothing has no grammar. BFCL's schemas are those of its tools, in the format hermes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
from benchmarks.bfcl_roundtrip import messages
from tests.property.grammar_engines import usable_engines
from tests.property.schema_samples import SchemaSampler, grammars_of, spellings

import toolwire
from toolwire.errors import DefinitionError, RenderError
from toolwire.grammars.message_grammar import grammar
from toolwire.schema.validation import validate
from toolwire.tools import definitions

COLUMNS = ("schemas", "refused", "valid", "accepted", "invalid", "rejected", "unsaid")
Case = tuple[str, Any, list[tuple[Any, bool]]]
"""A name, a schema, and values, each with whether the schema admits it."""


def suite(folder: Path, draft: str) -> Iterator[Case]:
    """Yield the cases of the official test suite, those of optional keywords too."""
    for path in sorted((folder / draft).rglob("*.json")):
        for group in json.loads(path.read_text("utf-8")):
            tests = [(test["data"], test["valid"]) for test in group["tests"]]
            yield f"{path.stem}: {group['description']}", group["schema"], tests


def generated(count: int) -> Iterator[Case]:
    """Yield random cases."""
    for seed in range(count):
        schema, values = SchemaSampler(seed).sample()
        yield f"seed {seed}", schema, [(value, jsonschema_rs.is_valid(schema, value)) for value in values]


def sweep(cases: Iterable[Case], engines: dict[str, Any], wrong: list[str]) -> dict[str, Counter[str]]:
    """Return the counts of each engine and syntax, and add what is wrong."""
    counts = {f"{name} {syntax}": Counter[str]() for name, real in engines.items() for syntax in real.syntaxes}
    for name, schema, tests in cases:
        try:
            texts, widened = grammars_of(schema)
        except DefinitionError as error:
            if any(valid for _, valid in tests):
                wrong.append(f"{name}: no grammar: {error}")
            continue
        for engine, real in engines.items():
            for syntax in real.syntaxes:
                text = texts[syntax], syntax
                count_case(counts[f"{engine} {syntax}"], real, text, tests, (name, bool(widened)), wrong)
    return counts


def count_case(
    count: Counter[str],
    real: Any,
    grammar: tuple[str, str],
    tests: list[tuple[Any, bool]],
    case: tuple[str, bool],
    wrong: list[str],
) -> None:
    """Count one schema in one engine."""
    (text, syntax), (name, is_wide) = grammar, case
    count["schemas"] += 1
    try:
        for value, valid in tests:
            accepted = any(real.match(text, spelling, syntax).complete for spelling in spellings(value))
            count["valid" if valid else "invalid"] += 1
            count["accepted"] += valid and accepted
            count["rejected"] += not valid and not accepted
            if not valid and accepted and not is_wide:
                count["unsaid"] += 1
                wrong.append(f"{name}: {syntax} accepts {json.dumps(value)[:100]}, and nothing is listed")
            if valid and not accepted:
                wrong.append(f"{name}: {syntax} rejects {json.dumps(value)[:100]}")
    except (ValueError, RuntimeError, DefinitionError) as error:
        count["refused"] += 1
        wrong.append(f"{name}: {syntax}: {error}")


def bfcl(data: Path, engines: dict[str, Any], limit: int, wrong: list[str]) -> dict[str, Counter[str]]:
    """Return the counts of BFCL's messages: the grammar of their tools, and their calls."""
    counts = {f"{name} {syntax}": Counter[str]() for name, real in engines.items() for syntax in real.syntaxes}
    for id, tools, calls in messages(data, limit):
        known = definitions(tools)
        ordered = [in_order(call, known[call.name].parameters) for call in calls]
        valid = all(is_admitted(call, known[call.name].parameters) for call in calls)
        try:
            text = toolwire.render_calls(ordered, format="hermes", tools=tools)
            grammar(tools, format="hermes", tool_choice="required")
        except RenderError:
            continue
        except DefinitionError as error:  # an array that has to be one of some strings
            print(f"{id}: no grammar: {error}")
            continue
        for engine, real in engines.items():
            for syntax in real.syntaxes:
                count = counts[f"{engine} {syntax}"]
                written = grammar(tools, format="hermes", tool_choice="required", syntax=syntax)
                count["schemas"] += 1
                accepted = real.match(written.text, text, syntax).complete
                count["valid" if valid else "invalid"] += 1
                count["accepted"] += valid and accepted
                count["rejected"] += not valid and not accepted
                if valid and not accepted:
                    wrong.append(f"{id}: {syntax} rejects {text[:200]}")
                if not valid and accepted and not written.widened:
                    count["unsaid"] += 1
                    wrong.append(f"{id}: {syntax} accepts {text[:200]}, and nothing is listed")
    return counts


def is_admitted(call: Any, schema: Any) -> bool:
    """Return whether a schema admits a call, if it admits no arguments that it does not name."""
    return not validate(call.arguments, schema) and call.arguments.keys() <= schema.get("properties", {}).keys()


def in_order(call: Any, schema: Any) -> Any:
    """Return a call with its members in the order of the schema, and with integers written as such."""

    def ordered(value: Any, inner: Any) -> Any:
        properties = inner.get("properties", {}) if isinstance(inner, dict) else {}
        match value:
            case dict():
                names = [name for name in properties if name in value]
                names += [name for name in value if name not in properties]
                return {name: ordered(value[name], properties.get(name)) for name in names}
            case list():
                return [ordered(item, inner.get("items") if isinstance(inner, dict) else None) for item in value]
            case float() if isinstance(inner, dict) and inner.get("type") == "integer" and value.is_integer():
                return int(value)
            case _:
                return value

    return toolwire.ToolCall(call.name, ordered(call.arguments, schema))


def main() -> int:
    """Print the tables; exit status 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=Path, help="the folder `tests` of the official test suite")
    parser.add_argument("--drafts", default="draft2020-12,draft2019-09,draft7,draft6,draft4")
    parser.add_argument("--generated", type=int, default=0, help="number of random schemas")
    parser.add_argument("--bfcl", type=Path, help="the folder with BFCL_v4_*.json")
    parser.add_argument("--limit", type=int, default=0, help="so many messages of each of BFCL's categories; 0: all")
    parser.add_argument("--show", type=int, default=20, help="so many lines about what is wrong")
    options = parser.parse_args()
    engines = usable_engines()
    wrong: list[str] = []
    tables: dict[str, Any] = {}
    start = time.monotonic()
    if options.suite:
        for draft in options.drafts.split(","):
            tables[draft] = sweep(suite(options.suite, draft), engines, wrong)
    if options.generated:
        tables["generated"] = sweep(generated(options.generated), engines, wrong)
    if options.bfcl:
        tables["BFCL"] = bfcl(options.bfcl, engines, options.limit, wrong)
    for title, counts in tables.items():
        print(f"{title:28}" + "".join(f"{column:>10}" for column in COLUMNS))
        for name, count in counts.items():
            print(f"  {name:26}" + "".join(f"{count[column]:10}" for column in COLUMNS))
    for line in wrong[: options.show]:
        print(line)
    print(f"{len(wrong)} wrong, {time.monotonic() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Agreement of our scorer with the checker of the Berkeley Function Calling Leaderboard.

    pip install --no-deps --target /tmp/bfcl bfcl-eval
    pip install --target /tmp/bfcl tree-sitter==0.21.3 tree-sitter-java==0.21.0 tree-sitter-javascript==0.21.4
    .venv/bin/python benchmarks/scorer_agreement.py --packages /tmp/bfcl --rows FOLDER

`--rows` names a folder with `asked/rows.jsonl` and `asked/tools.json`, which are not part of this repository: answers
of real models to questions of the leaderboard. A sample of the answers that expect calls is read with `parse`, and both
scorers judge the calls. Almost all of these answers are right, so every answer is judged a second time with one
change, such as another value, a missing argument, a number as text, or one call less. Every difference is printed.
Exit status 1 if fewer than `--at-least` percent of the verdicts agree, in either half.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import random
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import toolwire
from toolwire.evaluation.call_scoring import AcceptableCall, ExpectedCalls, answer_fault
from toolwire.messages import ToolCall

Calls = list[tuple[str, dict[str, Any]]]
TYPES = {"dict": "object", "float": "number", "tuple": "array"}


def load_checker(packages: Path) -> tuple[Any, Any]:
    """Return the checker and its language, with an empty table of models: the real one imports every client."""
    sys.path.insert(0, str(packages))
    stub = types.ModuleType("bfcl_eval.constants.model_config")

    class NoModels(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            return types.SimpleNamespace(underscore_to_dot=False)

    stub.MODEL_CONFIG_MAPPING = NoModels()  # type: ignore[attr-defined]
    sys.modules[stub.__name__] = stub
    checker = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
    return checker.ast_checker, checker.Language.PYTHON


def functions_of(data: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the function descriptions of each question, in the leaderboard's own types."""
    functions = {}
    for category in ("simple_python", "multiple", "parallel", "parallel_multiple"):
        for line in (data / f"BFCL_v4_{category}.json").read_text("utf-8").splitlines():
            row = json.loads(line)
            functions[row["id"]] = row["function"]
    return functions


def underscored(functions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**function, "name": function["name"].replace(".", "_")} for function in functions]


def json_schema(value: Any) -> Any:
    """Return a schema with the types of JSON Schema in place of the leaderboard's."""
    if isinstance(value, list):
        return [json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: TYPES.get(inner, inner) if key == "type" and isinstance(inner, str) else json_schema(inner)
        for key, inner in value.items()
    }


def changed_value(value: Any, choose: random.Random) -> Any:
    """Return another value, of the same type or not."""
    match value:
        case bool():
            return choose.choice([not value, str(value), int(value)])
        case int():
            return choose.choice([value + 1, float(value), str(value), -value])
        case float():
            return choose.choice([value * 2, int(value), str(value)])
        case str():
            return choose.choice([value.upper(), value + "!", f"{value}, x", value.replace(" ", "-"), [value], ""])
        case list():
            return choose.choice([value[:-1], [*value, *value[-1:]], value[::-1], [str(item) for item in value], "x"])
        case dict():
            return choose.choice([{**value, "extra": 1}, dict(list(value.items())[1:]), str(value)])
    return value


def changed(calls: Calls, choose: random.Random) -> tuple[str, Calls]:
    """Return calls with one change, and its name."""
    calls = copy.deepcopy(calls)
    name, arguments = choose.choice(calls)
    kinds = ["rename", "extra argument", "fewer calls", "more calls", "order"]
    kinds += ["value"] * 6 + ["missing argument"] * 2 if arguments else []
    kind = choose.choice(kinds)
    at = next(index for index, call in enumerate(calls) if call[0] == name and call[1] is arguments)
    key = choose.choice(sorted(arguments)) if arguments else ""
    match kind:
        case "rename":
            calls[at] = (name + "_x", arguments)
        case "extra argument":
            arguments["extra"] = "x"
        case "fewer calls":
            del calls[at]
        case "more calls":
            calls.append((name, dict(arguments)))
        case "order":
            calls.reverse()
        case "value":
            arguments[key] = changed_value(arguments[key], choose)
        case "missing argument":
            del arguments[key]
    return kind, calls


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261126)
    parser.add_argument("--at-least", type=float, default=99.8)
    options = parser.parse_args()
    check, python = load_checker(options.packages)
    functions = functions_of(options.packages / "bfcl_eval" / "data")
    tools = json.loads((options.rows / "asked" / "tools.json").read_text("utf-8"))
    rows = [json.loads(line) for line in (options.rows / "asked" / "rows.jsonl").read_text("utf-8").splitlines()]
    choose = random.Random(options.seed)
    rows = choose.sample([row for row in rows if row["expected"]], options.answers)
    worst = 100.0
    for half in ("as read", "with one change"):
        counts: Counter[tuple[bool, bool]] = Counter()
        differences = []
        for row in rows:
            answer = toolwire.parse(row["text"], tools=tools[row["tools"]])
            calls: Calls = [(call.name, call.arguments) for call in answer.tool_calls]
            kind = ""
            if half != "as read":
                if not calls:
                    continue
                kind, calls = changed(calls, choose)
            id = row["tools"].removesuffix("_u")
            described = functions[id] if id == row["tools"] else underscored(functions[id])
            category = id.rpartition("_")[0]
            output = [{name: copy.deepcopy(arguments)} for name, arguments in calls]
            theirs = (
                bool(output)
                and check(copy.deepcopy(described), output, copy.deepcopy(row["expected"]), python, category, "any")[
                    "valid"
                ]
            )
            expected = tuple(
                AcceptableCall(name, arguments) for call in row["expected"] for name, arguments in call.items()
            )
            fault = answer_fault(
                [ToolCall(name, arguments) for name, arguments in calls],
                ExpectedCalls("calls", expected),
                {function["name"]: json_schema(function["parameters"]) for function in described},
            )
            counts[theirs, fault is None] += 1
            if theirs != (fault is None):
                differences.append((row["id"], kind, "right" if theirs else "wrong", fault, calls, row["expected"]))
        total = counts.total()
        agreed = counts[True, True] + counts[False, False]
        worst = min(worst, 100 * agreed / total)
        print(
            f"{half}: {agreed} of {total} verdicts agree ({100 * agreed / total:.2f} %): both right "
            f"{counts[True, True]}, both wrong {counts[False, False]}, only the checker right {counts[True, False]}, "
            f"only ours right {counts[False, True]}"
        )
        for id, kind, verdict, fault, calls, wanted in differences:
            print(f"  {id} {kind}: the checker says {verdict}, ours {fault.message if fault else 'right'}")
            print(f"    read {json.dumps(calls)[:300]}\n    acceptable {json.dumps(wanted)[:300]}")
    return 0 if worst >= options.at_least else 1


if __name__ == "__main__":
    sys.exit(main())

"""The effect of prompts, formats, grammars and readings on real models: figures of evaluations for the documentation.

    toolwire eval bfcl --model 0.5b -f hermes --prompt brief --prompt rules --limit 40 --seed 1
    python -m benchmarks.effect training-questions=evaluation other-questions=second,third

Each argument is a title and the directories of evaluations with the same questions. Their figures replace those of the
title in benchmarks/effect.json, from which `scripts/update_docs.py` writes the tables of docs/explanation/effect.md.
The picture of that page is drawn from the figures of the title "200-questions"; without arguments, it is drawn again.
Raw answers stay in the directories: `toolwire eval --rescore` judges them again.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolwire.evaluation.intervals import Share, share_of_counts
from toolwire.evaluation.report import Column
from toolwire.evaluation.report_page import shares_chart

FILE = Path(__file__).with_name("effect.json")
PICTURE = FILE.parent.parent / "docs" / "explanation" / "effect.svg"
DRAWN = "200-questions"
"""The title of the figures in the picture."""
READINGS = ("whole_message", "native")
"""The readings of agents and of the gateway."""
_SHARES = ("right", "well_formed", "irrelevance")
_ASKED = ("model", "format", "constrain", "prompt")


def summary(title: str, folders: list[Path]) -> dict[str, Any]:
    """Return the figures of evaluations with the same questions, with everything that is needed to run them again.

    Raises:
        ValueError: the questions or the settings differ.
    """
    reports = [json.loads((folder / "report.json").read_text("utf-8")) for folder in folders]
    report = reports[0]
    if any(set(other["questions"]) != set(report["questions"]) for other in reports):
        raise ValueError(f"the evaluations of {title} have different questions")
    if any(_settings(other) != _settings(report) for other in reports):
        raise ValueError(f"the evaluations of {title} have different settings, so their columns cannot be compared")
    figures = [column for each in reports for column in each["columns"] if column["column"]["reading"] in READINGS]
    ways = {Column(**column["column"]).name: {name: column["column"][name] for name in _ASKED} for column in figures}
    return {
        "title": title,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "suite": report["suite"],
        "questions": report["questions"],
        "settings": _settings(report),
        "versions": report["machine"],
        "columns": [
            {
                **{name: column["column"][name] for name in (*_ASKED, "reading")},
                **{name: [column[name]["count"], column[name]["total"]] for name in _SHARES},
                "groups": {name: [share["count"], share["total"]] for name, share in column["groups"].items()},
                "output_tokens": round(column["output_tokens"], 1),
                "seconds": round(column["seconds"], 2) if column["seconds"] is not None else None,
            }
            for column in figures
        ],
        "comparisons": [
            {
                "first": ways[test["first"]],
                "second": ways[test["second"]],
                **{name: test[name] for name in ("questions", "only_first", "only_second", "p")},
            }
            for each in reports
            for test in each["comparisons"]
            if test["first"] in ways and test["second"] in ways
        ],
    }


def drawn_shares(evaluation: dict[str, Any]) -> dict[str, Share]:
    """Return the shares of right answers without a grammar in each category of questions, by their labels."""
    return {
        f"{category}: {column['model']}, {column['prompt']}": share_of_counts(count, total)
        for category in evaluation["columns"][0]["groups"]
        for column in evaluation["columns"]
        if column["constrain"] in ("", "none")
        for count, total in [column["groups"][category]]
    }


def _settings(report: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that answers depend on: not where they came from, and not the limit, which the ids show."""
    return {name: value for name, value in report["settings"].items() if name not in ("rescored", "limit")}


def _stored() -> list[dict[str, Any]]:
    return json.loads(FILE.read_text("utf-8"))["evaluations"] if FILE.exists() else []


def main(arguments: list[str]) -> int:
    """Write the file; return the exit status."""
    named = [argument.partition("=") for argument in arguments]
    if not all(separator and folders for _, separator, folders in named):
        print(__doc__, file=sys.stderr)
        return 2
    evaluations = {evaluation["title"]: evaluation for evaluation in _stored()}
    for title, _, folders in named:
        evaluations[title] = summary(title, [Path(each) for each in folders.split(",")])
    picture = shares_chart(drawn_shares(evaluations[DRAWN]))
    data = {"evaluations": list(evaluations.values())}
    FILE.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")
    PICTURE.write_text(picture, "utf-8")
    print(f"{FILE}: {len(evaluations)} evaluations; {PICTURE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The report of a comparison of two endpoints: tables, an object for a program, and a file with all answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from toolwire._surface import needs_extra
from toolwire.cli.console import console, labelled, print_rows, styled

with needs_extra("A comparison", "eval"):
    from toolwire.evaluation.intervals import Share
    from toolwire.evaluation.report_page import interval, percent
    from toolwire.evaluation.vendor_comparison import TriggerSimilarity, VendorComparison

MAX_SHOWN = 10
"""Maximum number of faults and errors that are shown; all are in the file."""


def comparison_row(comparison: VendorComparison) -> dict[str, Any]:
    """Return the measures as an object; shares are from 0 to 1, and None without an answer that counts."""
    similarity = comparison.similarity
    return {
        "requests": len(comparison.answers),
        "schema_accuracy": {
            name: {**asdict(share), "value": share.value} for name, share in _shares(comparison).items()
        },
        "trigger_similarity": {
            **asdict(similarity),
            "precision": similarity.precision,
            "recall": similarity.recall,
            "f1": similarity.f1,
        },
        "errors": {
            name: sum(answer.is_called is None for answer in answers) for name, answers in comparison.columns.items()
        },
    }


def show_comparison(comparison: VendorComparison, names: Mapping[str, str]) -> None:
    """Print the measures, and the first faults and errors.

    Args:
        comparison: the comparison.
        names: the names of "reference" and "compared".
    """
    rows = []
    shares, columns = _shares(comparison), comparison.columns
    f1 = {"reference": "-", "compared": _f1(comparison.similarity)}
    for column, answers in columns.items():
        calls = Counter(answer.is_called for answer in answers)
        counts = (calls[True], calls[False], calls[None])
        measures = (f"{percent(shares[column].value)}, {interval(shares[column])}", f1[column])
        rows.append([styled(text) for text in (names[column], *map(str, counts), *measures)])
    titles = ("endpoint", "calls", "words", "errors", "schema accuracy", "trigger similarity")
    print_rows(titles, rows, fold=titles, right=("calls", "words", "errors"))
    screen = console()
    for column, answers in columns.items():
        faults = [
            (pair.request, text)
            for pair, answer in zip(comparison.answers, answers, strict=True)
            for text in (*answer.faults, *filter(None, [answer.error]))
        ]
        for request, text in faults[:MAX_SHOWN]:
            screen.print(labelled("fault", f"{names[column]}, {request}: {text}", "dim"))
        if len(faults) > MAX_SHOWN:
            screen.print(
                Text(f"and {len(faults) - MAX_SHOWN} more of {names[column]}; --report writes all", style="dim")
            )


def write_comparison(path: str, names: Mapping[str, str], comparison: VendorComparison, requests_left: int = 0) -> None:
    """Write a JSON file with the measures and all answers.

    Args:
        path: the file.
        names: the names of "reference" and "compared".
        comparison: the comparison.
        requests_left: the number of requests that were not answered before an interruption.

    Raises:
        OSError: the file cannot be written.
    """
    report = {
        "endpoints": dict(names),
        **comparison_row(comparison),
        "requests_left": requests_left,
        "answers": [asdict(pair) for pair in comparison.answers],
    }
    Path(path).write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def _shares(comparison: VendorComparison) -> dict[str, Share]:
    return {"reference": comparison.reference_accuracy, "compared": comparison.compared_accuracy}


def _f1(similarity: TriggerSimilarity) -> str:
    if similarity.f1 is None:
        return "no endpoint called"
    return f"F1 {percent(similarity.f1)} ({percent(similarity.low)} to {percent(similarity.high)})"

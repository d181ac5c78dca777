"""The report as one page of HTML: no script, nothing from the network, and every text of a model escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any, Final, NamedTuple

from toolwire._surface import needs_extra
from toolwire.evaluation.column_names import ColumnNames
from toolwire.evaluation.intervals import Share
from toolwire.evaluation.report import (
    OUTCOMES,
    SHOWN_READINGS,
    ColumnFigures,
    Report,
    UnansweredQuestion,
    WrongAnswer,
)
from toolwire.text.counted import counted
from toolwire.text.escape import escape_invisible, replace_surrogates
from toolwire.text.truncate import truncate

with needs_extra("A report", "eval"):
    import altair
    import jinja2
    from markupsafe import Markup

MAX_SHOWN: Final = 20
"""Maximum number of answers of a column in a list of the page; the JSON file has all of them."""
MAX_TEXT: Final = 4_000
"""Maximum length of a model's text on the page, in characters."""
_LABEL: Final = 460
"""Maximum width of the name of a column in the chart, in pixels."""


class ShownAnswers(NamedTuple):
    """The answers of a column that the page shows, of all that it could show."""

    column: str
    total: int
    answers: Sequence[WrongAnswer | UnansweredQuestion]


def report_html(report: Report) -> str:
    """Return a report as a page that needs no other file."""
    loader = jinja2.PackageLoader("toolwire.evaluation", ".")
    # Escaping is on for every value, because texts of models are hostile.
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["counted"] = counted
    names = ColumnNames([figures.column for figures in report.columns])
    environment.filters |= {"percent": percent, "interval": interval, "visible": visible, "compact": compact_json}
    environment.filters["short"] = names
    template = environment.get_template("report_page.html.jinja")
    return template.render(
        report=report,
        OUTCOMES=OUTCOMES,
        shared=names.shared,
        chart=Markup(_chart(report.columns, names)),
        maps=heat_maps(report.columns),
        wrong=_shown((answer.column, answer) for answer in report.wrong),
        unanswered=_shown((question.model, question) for question in report.unanswered),
    )


def _shown(answers: Iterable[tuple[str, WrongAnswer | UnansweredQuestion]]) -> list[ShownAnswers]:
    """Return the answers of each column, as many as the page shows."""
    columns: dict[str, list[WrongAnswer | UnansweredQuestion]] = {}
    for column, answer in answers:
        columns.setdefault(column, []).append(answer)
    return [ShownAnswers(column, len(entries), entries[:MAX_SHOWN]) for column, entries in columns.items()]


def heat_maps(columns: Sequence[ColumnFigures]) -> list[dict[str, Any]]:
    """Return a table of models and formats for each constraint and prompt style, in the readings of agents.

    The rows are the models or the formats, whichever are more: a page is longer than it is wide.
    """
    maps: list[dict[str, Any]] = []
    shown = [figures for figures in columns if figures.column.reading in SHOWN_READINGS]
    ways = dict.fromkeys((figures.column.constrain, figures.column.prompt) for figures in shown)
    for constrain, prompt in ways:
        part = [
            figures for figures in shown if (figures.column.constrain, figures.column.prompt) == (constrain, prompt)
        ]
        sides = {
            "model": list(dict.fromkeys(figures.column.model for figures in part)),
            "format": list(dict.fromkeys(figures.column.format for figures in part)),
        }
        down, across = sorted(sides, key=lambda side: len(sides[side]), reverse=True)
        maps.append(
            {
                "constrain": constrain,
                "prompt": prompt,
                "down": down,
                "rows": sides[down],
                "columns": sides[across],
                "cells": {
                    (getattr(figures.column, down), getattr(figures.column, across)): figures.right for figures in part
                },
            }
        )
    return maps


def _chart(columns: Sequence[ColumnFigures], names: ColumnNames) -> str:
    """Return a chart of right answers with their intervals, as SVG; "" without answers."""
    shares = {visible(names(figures.column.name)): figures.right for figures in columns if figures.right.total}
    return shares_chart(shares) if shares else ""


def shares_chart(shares: Mapping[str, Share]) -> str:
    """Return a chart of shares of right answers with their intervals, as SVG.

    Args:
        shares: the shares by their labels, from top to bottom; each has an answer at least.
    """
    rows = [
        {"label": label, "right": share.value, "low": share.low, "high": share.high} for label, share in shares.items()
    ]
    axis = altair.Axis(labelLimit=_LABEL)
    base = altair.Chart({"values": rows}).encode(y=altair.Y("label:N", sort=None, title=None, axis=axis))
    scale = altair.Scale(domain=[0, 1])
    line = altair.X("low:Q", title="right answers, with 95 % intervals", scale=scale, axis=altair.Axis(format="%"))
    intervals = base.mark_rule(strokeWidth=2, color="#5b6b7b").encode(x=line, x2="high:Q")
    points = base.mark_point(filled=True, size=70, color="#0b57a4", opacity=1).encode(x="right:Q")
    drawing = StringIO()
    (intervals + points).properties(width=420, background="white").save(drawing, format="svg")
    return drawing.getvalue()


def percent(value: float | None) -> str:
    """Return a share in percent; "-" for none."""
    return "-" if value is None else f"{100 * value:.0f} %"


def interval(share: Share) -> str:
    """Return a share with its counts and its interval as text."""
    if share.value is None:
        return "-"
    return f"{share.count} of {share.total} ({percent(share.low)} to {percent(share.high)})"


def visible(text: str) -> str:
    """Return text of a model with its invisible characters escaped, and with a bounded length."""
    return escape_invisible(replace_surrogates(truncate(text, MAX_TEXT)), keep="\n\t")


def compact_json(value: Any) -> str:
    """Return a value as JSON text that is safe to show."""
    if isinstance(value, Mapping) and value.get("rule") in ("no_call", "any_call"):
        return {"no_call": "no call: no tool fits the question", "any_call": "a call of any tool"}[value["rule"]]
    return visible(json.dumps(value, ensure_ascii=False, indent=1, default=str))

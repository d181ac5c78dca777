"""The report as Markdown, for a pull request or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from toolwire.evaluation.column_names import ColumnNames
from toolwire.evaluation.intervals import Share
from toolwire.evaluation.report import OUTCOMES, Report
from toolwire.text.counted import counted
from toolwire.text.escape import escape_invisible

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|&~])")


def report_markdown(report: Report) -> str:
    """Return a report as Markdown; in names and messages, what Markdown or HTML would interpret is escaped."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# Evaluation of {_text(report.suite)}"
    yield ""
    machine = _text(", ".join(f"{name} {value}" for name, value in report.machine.items()))
    yield f"{counted(len(report.questions), 'question')}. {machine}"
    yield ""
    names = ColumnNames([figures.column for figures in report.columns])
    if names.shared:
        yield f"All columns: {_text(names.shared)}"
        yield ""
    titles = (
        "column",
        "right",
        "well-formed",
        "irrelevance",
        "timeouts",
        "errors",
        "tokens out",
        "median s",
        "repairs",
    )
    yield from _table(
        titles,
        [
            (
                _text(names(figures.column.name)),
                _share(figures.right),
                _share(figures.well_formed),
                _share(figures.irrelevance),
                str(figures.outcomes.get("timeout", 0)),
                str(figures.outcomes.get("error", 0)),
                f"{figures.output_tokens:.0f}",
                "-" if figures.seconds is None else f"{figures.seconds:.1f}",
                _tally(figures.repairs),
            )
            for figures in report.columns
        ],
    )
    if report.comparisons:
        yield ""
        yield "Columns that differ in one respect (McNemar's exact test):"
        yield ""
        yield from _table(
            ("first", "second", "questions", "only first right", "only second right", "p", "adjusted p"),
            [
                (
                    _text(names(test.first)),
                    _text(names(test.second)),
                    str(test.questions),
                    str(test.only_first),
                    str(test.only_second),
                    f"{test.p:.3f}",
                    f"{test.adjusted_p:.3f}",
                )
                for test in report.comparisons
            ],
        )
    if report.changed:
        yield ""
        yield f"{len(report.changed)} verdicts differ from those in the log:"
        yield ""
        for change in report.changed:
            verdict = "right" if change.right else f"wrong: {change.fault}"
            yield f"- {_text(change.question)}, {_text(names(change.column))}: now {_text(verdict)}"
    if report.unanswered:
        yield ""
        yield "Questions without a complete answer:"
        yield ""
        for entry in report.unanswered:
            reason = ": ".join(filter(None, (OUTCOMES[entry.outcome], entry.detail)))
            yield f"- {_text(entry.question)}, {_text(names(entry.model))}: {_text(reason)}"
    if report.broken:
        yield ""
        yield "Rows that are not questions:"
        yield ""
        for row in report.broken:
            yield f"- {_text(row.place)}: {_text(row.reason)}"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _share(share: Share) -> str:
    if share.value is None:
        return "-"
    return f"{100 * share.value:.0f} % ({share.count}/{share.total}, {100 * share.low:.0f}-{100 * share.high:.0f})"


def _tally(counts: Mapping[str, int]) -> str:
    return _text(", ".join(f"{name} {count}" for name, count in counts.items())) or "-"


def _text(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(escape_invisible(text).split()))

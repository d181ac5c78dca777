"""The report of an evaluation: figures of each column, comparisons, and the answers that are wrong."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from itertools import combinations
from statistics import median
from typing import Any, Final

from toolwire.errors import ConfigurationError
from toolwire.evaluation.asked_model import ModelChoice
from toolwire.evaluation.inspect_tasks import AskedQuestion
from toolwire.evaluation.intervals import PairedTest, Share, adjusted, paired_test, share_of
from toolwire.evaluation.model_answer import ModelAnswer
from toolwire.evaluation.readings import DEFAULT_READING, READINGS, Reading
from toolwire.evaluation.suite import BrokenRow, SuiteQuestion
from toolwire.evaluation.verdicts import NATIVE, Verdict, verdicts
from toolwire.models.backends import text_of
from toolwire.wire.prompt_styles import DEFAULT_STYLE

SHOWN_READINGS: Final = (DEFAULT_READING, NATIVE)
"""The readings whose wrong answers and groups are shown: those of agents and of the gateway."""
OUTCOMES: Final = {
    "answered": "complete",
    "timeout": "not in time",
    "error": "failed",
    "not_asked": "not asked",
}
"""The words for the outcomes of questions."""
_SEPARATOR: Final = " · "
_PERCENTILE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Column:
    """A model, asked and read in one way.

    Attributes:
        model: the model.
        format: the wire format that it was asked to write; "native" for the fields of an API.
        constrain: whether it wrote under a grammar: "", "auto" or "required".
        reading: the way in which its answers were read.
        prompt: the style of its prompt; "" where a server writes it.
    """

    model: str
    format: str
    constrain: str
    reading: str
    prompt: str = ""

    def words(self, *parts: str) -> str:
        """Return some parts of the name as text, in the order of the name."""
        words = {
            "model": self.model,
            "format": self.format,
            "constrain": f"constrain {self.constrain}" if self.constrain else "",
            "prompt": "" if self.prompt in ("", DEFAULT_STYLE) else f"prompt {self.prompt}",
            "reading": "" if self.reading == NATIVE else self.reading,
        }
        return _SEPARATOR.join(text for part, text in words.items() if part in parts and text)

    @property
    def asked(self) -> str:
        """The model and how it is asked, as text; its answers may be read in several ways."""
        return self.words("model", "format", "constrain", "prompt")

    @property
    def name(self) -> str:
        """The column as text, unique in a report."""
        return self.words("model", "format", "constrain", "prompt", "reading")

    def differences(self, other: Column) -> int:
        """Return in how many respects two columns differ."""
        values, other_values = asdict(self), asdict(other)
        return sum(values[key] != other_values[key] for key in values)


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """The figures of a column. Only complete answers are right or wrong.

    Attributes:
        column: the column.
        choice: the model and the way in which it was asked.
        outcomes: the number of questions by their outcome: answered, timeout, error, not_asked.
        right: answers with the right calls, of the questions that expect calls.
        well_formed: answers with calls and without a part that could not be read, of the same questions.
        usable: answers whose calls all name tools of the question, with valid arguments, of the same questions.
        irrelevance: answers without a call, of the questions that no tool fits.
        groups: the share of right answers of each group of questions.
        repairs: the number of calls with each repair.
        problems: the number of parts that could not be read, by their kind.
        faults: the number of wrong answers by the kind of their fault.
        input_tokens, output_tokens: tokens of an answer, on average.
        estimated: whether tokens are estimated.
        seconds, slow_seconds: the median duration of an answer and its 95th percentile.
        money: the price of all answers in US dollars; None if it is unknown.
        notes: what could not be asked as intended, with the number of answers.
    """

    column: Column
    choice: ModelChoice
    outcomes: Mapping[str, int]
    right: Share
    well_formed: Share
    usable: Share
    irrelevance: Share
    groups: Mapping[str, Share]
    repairs: Mapping[str, int]
    problems: Mapping[str, int]
    faults: Mapping[str, int]
    input_tokens: float
    output_tokens: float
    estimated: bool
    seconds: float | None
    slow_seconds: float | None
    money: float | None
    notes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """A wrong answer, with its text beside the reading.

    Attributes:
        column: the name of the column.
        question: the id of the question.
        group: its group.
        asked: the text of the question.
        expected: the right answer as a JSON value.
        text: the raw text of the model.
        calls: the calls that were read.
        fault: the reason why the answer is wrong.
    """

    column: str
    question: str
    group: str
    asked: str
    expected: Mapping[str, Any]
    text: str
    calls: Sequence[tuple[str, Mapping[str, Any]]]
    fault: str


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """A question without a complete answer: it counts as neither right nor wrong.

    Attributes:
        model: the model and how it was asked; see `Column.asked`.
        question: the id of the question.
        outcome: timeout, error or not_asked.
        detail: what happened.
        text: the text that had arrived until then.
    """

    model: str
    question: str
    outcome: str
    detail: str
    text: str


@dataclass(frozen=True, slots=True)
class ChangedVerdict:
    """A verdict that is another one than in the log: the parser or the scorer has changed since.

    Attributes:
        column: the name of the column.
        question: the id of the question.
        right: whether the answer is right now.
        text: the raw text of the model.
        fault: the reason why it is wrong now; "" if it is right.
    """

    column: str
    question: str
    right: bool
    text: str
    fault: str


@dataclass(frozen=True, slots=True)
class Report:
    """The report of an evaluation.

    Attributes:
        suite: the name of the suite.
        questions: the ids of the questions.
        columns: the figures of each column.
        comparisons: the columns that differ in one respect, compared on the same questions.
        wrong: the wrong answers in the readings of agents.
        unanswered: questions without a complete answer.
        changed: verdicts that differ from those in the log; only after rescoring.
        broken: rows of the suite that are not questions.
        settings: settings of the answers.
        machine: the versions and the processor that gave the figures.
    """

    suite: str
    questions: Sequence[str]
    columns: Sequence[ColumnFigures]
    comparisons: Sequence[PairedTest]
    wrong: Sequence[WrongAnswer]
    unanswered: Sequence[UnansweredQuestion] = ()
    changed: Sequence[ChangedVerdict] = ()
    broken: Sequence[BrokenRow] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Entries:
    """The answers of one column with their verdicts."""

    choice: ModelChoice
    ids: set[str] = field(default_factory=set)
    questions: list[SuiteQuestion] = field(default_factory=list)
    answers: list[ModelAnswer] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def rights(self) -> dict[str, bool]:
        return {verdict.question: verdict.right for verdict in self.verdicts if verdict.outcome == "answered"}


def make_report(
    asked: Sequence[AskedQuestion],
    readings: Sequence[Reading] = READINGS,
    *,
    suite: str = "",
    broken: Sequence[BrokenRow] = (),
    settings: Mapping[str, Any] | None = None,
) -> Report:
    """Return the report of the answers in logs.

    Args:
        asked: the questions and answers.
        readings: the ways in which texts are read.
        suite: the name of the suite.
        broken: rows of the suite that are not questions.
        settings: settings of the answers.

    Raises:
        ConfigurationError: there is no answer.
    """
    if not any(entry.answer.outcome == "answered" for entry in asked):
        reasons = Counter(entry.answer.detail or entry.answer.outcome for entry in asked)
        reason = f": {reasons.most_common(1)[0][0]}" if reasons else ""
        raise ConfigurationError(f"there is no answer to report on{reason}")
    columns: dict[Column, _Entries] = {}
    changed: list[ChangedVerdict] = []
    for entry in asked:
        for verdict in verdicts(entry.question, entry.answer, readings):
            column = _column(entry.choice, entry.answer, verdict)
            entries = columns.setdefault(column, _Entries(entry.choice))
            # A format may have been asked for twice, by its name and as the best one of the model.
            if entry.question.id in entries.ids:
                continue
            entries.ids.add(entry.question.id)
            entries.questions.append(entry.question)
            entries.answers.append(entry.answer)
            entries.verdicts.append(verdict)
            before = entry.stored_right.get(verdict.reading)
            if before is not None and before != verdict.right:
                changed.append(_changed(column, entry, verdict))
    rights = {column.name: entries.rights for column, entries in columns.items()}
    # Columns that differ in several respects say nothing about any of them.
    pairs = [pair for pair in combinations(columns, 2) if pair[0].differences(pair[1]) == 1]
    return Report(
        suite=suite,
        questions=tuple(dict.fromkeys(entry.question.id for entry in asked)),
        columns=[_figures(column, entries) for column, entries in columns.items()],
        comparisons=adjusted([paired_test(first.name, second.name, rights) for first, second in pairs]),
        wrong=[wrong for column, entries in columns.items() for wrong in _wrong(column, entries)],
        unanswered=_unanswered(columns),
        changed=changed,
        broken=tuple(broken),
        settings=settings or {},
        machine=_machine(),
    )


def _column(choice: ModelChoice, answer: ModelAnswer, verdict: Verdict) -> Column:
    place = choice.url or choice.api
    model = f"{choice.model} at {place}" if place else choice.model
    # Answers of earlier versions do not name the default, and are asked in the same way.
    prompt = choice.prompt or (DEFAULT_STYLE if answer.format else "")
    return Column(model, answer.format or NATIVE, choice.constrain, verdict.reading, prompt)


def _changed(column: Column, entry: AskedQuestion, verdict: Verdict) -> ChangedVerdict:
    fault = verdict.fault.message if verdict.fault is not None else ""
    return ChangedVerdict(column.name, entry.question.id, verdict.right, entry.answer.text, fault)


def _figures(column: Column, entries: _Entries) -> ColumnFigures:
    answered = [verdict for verdict in entries.verdicts if verdict.outcome == "answered"]
    calling = [verdict for verdict in answered if verdict.expects_calls]
    complete = [answer for answer in entries.answers if answer.outcome == "answered"]
    groups: dict[str, list[bool]] = {}
    for verdict in answered:
        groups.setdefault(verdict.group, []).append(verdict.right)
    seconds = sorted(answer.seconds for answer in complete)
    prices = [answer.money for answer in complete if answer.money is not None]
    count = max(1, len(complete))
    return ColumnFigures(
        column=column,
        choice=entries.choice,
        outcomes=_counted(verdict.outcome for verdict in entries.verdicts),
        right=share_of([verdict.right for verdict in calling]),
        well_formed=share_of([verdict.well_formed for verdict in calling]),
        usable=share_of([verdict.usable for verdict in calling]),
        irrelevance=share_of([verdict.right for verdict in answered if not verdict.expects_calls]),
        groups={group: share_of(rights) for group, rights in sorted(groups.items())},
        repairs=_counted(name for verdict in answered for name in verdict.repairs),
        problems=_counted(name for verdict in answered for name in verdict.problems),
        faults=_counted(verdict.fault.kind for verdict in answered if verdict.fault is not None),
        input_tokens=sum(answer.input_tokens for answer in complete) / count,
        output_tokens=sum(answer.output_tokens for answer in complete) / count,
        estimated=any(answer.estimated for answer in complete),
        seconds=median(seconds) if seconds else None,
        slow_seconds=seconds[min(len(seconds) - 1, int(_PERCENTILE * len(seconds)))] if seconds else None,
        money=sum(prices) if prices else None,
        notes=_counted(note for answer in complete for note in answer.notes),
    )


def _counted(names: Any) -> dict[str, int]:
    return dict(Counter(names).most_common())


def _wrong(column: Column, entries: _Entries) -> list[WrongAnswer]:
    if column.reading not in SHOWN_READINGS:
        return []
    return [
        WrongAnswer(
            column=column.name,
            question=question.id,
            group=question.group,
            asked="\n\n".join(text_of(message) for message in question.messages),
            expected=asdict(question.expected),
            text=answer.text,
            calls=verdict.calls,
            fault=verdict.fault.message,
        )
        for question, answer, verdict in zip(entries.questions, entries.answers, entries.verdicts, strict=True)
        if verdict.fault is not None
    ]


def _unanswered(columns: Mapping[Column, _Entries]) -> list[UnansweredQuestion]:
    """Return the questions without a complete answer, once for all readings of a column."""
    questions = [
        UnansweredQuestion(column.asked, question.id, answer.outcome, answer.detail, answer.text)
        for column, entries in columns.items()
        for question, answer in zip(entries.questions, entries.answers, strict=True)
        if answer.outcome != "answered"
    ]
    return list(dict.fromkeys(questions))


def _machine() -> dict[str, str]:
    return {
        "toolwire": version("toolwire"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def report_json(report: Report) -> dict[str, Any]:
    """Return a report as a JSON object."""
    body = asdict(report)
    for figures, entry in zip(report.columns, body["columns"], strict=True):
        entry["name"] = figures.column.name
        entry["choice"]["recorded_name"] = figures.choice.recorded_name
    return body

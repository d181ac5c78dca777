"""A stored report: which format suits which model, for the coach and for profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from toolwire.config.toml_source import fault_words
from toolwire.errors import ConfigurationError
from toolwire.telemetry.coach import Standing, Tally, wilson
from toolwire.wire.prompt_styles import DEFAULT_STYLE

FILE: Final = "report.json"
"""The name of the report in the directory of an evaluation."""
_REQUESTED: Final = ("strict", "native")
"""Readings that count only calls in the requested form, as records of runs do."""
_OF_AGENTS: Final = ("whole_message", "native")
_MOST_QUESTIONS: Final = 1_000_000
"""More questions than an evaluation asks: the coach stores a row for each."""


class _Count(BaseModel):
    count: int = Field(ge=0)
    total: int = Field(ge=0, le=_MOST_QUESTIONS)

    @model_validator(mode="after")
    def _is_share(self) -> Self:
        if self.count > self.total:
            raise ValueError(f"{self.count} of {self.total} is not a share")
        return self


class _Column(BaseModel):
    format: str
    constrain: str
    reading: str
    prompt: str


class StoredChoice(BaseModel):
    """A model of a report; see `toolwire.evaluation.asked_model.ModelChoice`.

    Attributes:
        model: the model as it was named for the evaluation.
        api: the API of the server at `url`.
        url: the base URL of a server.
        key_env: the environment variable with the key of that server.
        recorded_name: the name of the model in records of runs.
    """

    model: str
    api: str = ""
    url: str = ""
    key_env: str = ""
    recorded_name: str


class _Figures(BaseModel):
    column: _Column
    choice: StoredChoice
    right: _Count
    irrelevance: _Count
    usable: _Count


@dataclass(frozen=True, slots=True)
class MeasuredFormat:
    """A way to ask a model for calls, with its share of right answers.

    Attributes:
        choice: the model.
        constrain: whether calls were written under a grammar: "", "auto" or "required".
        right: the right answers in a format, as agents read answers, of all questions. Those that no tool fits count
            too. The format "native" stands for the fields of an API.
    """

    choice: StoredChoice
    constrain: str
    right: Standing


class StoredReport(BaseModel):
    """Figures of a report about models and formats; other members of the file are ignored.

    Attributes:
        suite: the name of the suite.
        columns: the figures of each column.
    """

    suite: str
    columns: list[_Figures]

    def evidence(self) -> dict[str, list[Tally]]:
        """Return the outcomes of each model by format, under the names of the models in records of runs.

        An outcome is a question that expects calls. It is good if the answer's calls are in the requested format, were
        read completely, and name existing tools with valid arguments: the same rule as for recorded runs. Answers under
        a grammar do not count, because a grammar leaves the model no other form.
        """
        tallies: dict[str, dict[str, Tally]] = {}
        for figures in self._columns(_REQUESTED):
            if not figures.column.constrain and figures.usable.total:
                format, usable = figures.column.format, figures.usable
                of_model = tallies.setdefault(figures.choice.recorded_name, {})
                before = of_model.get(format, Tally(format))  # several servers of one model
                of_model[format] = Tally(format, before.tried + usable.total, before.good + usable.count)
        return {model: list(of_model.values()) for model, of_model in tallies.items()}

    def formats(self) -> dict[str, list[MeasuredFormat]]:
        """Return the formats of each model that have answers, the one with the most right answers first."""
        measured: dict[str, list[MeasuredFormat]] = {}
        for figures in self._columns(_OF_AGENTS):
            # A format that makes a model call always would win on the questions that expect calls alone.
            count = figures.right.count + figures.irrelevance.count
            total = figures.right.total + figures.irrelevance.total
            if not total:
                continue
            column, choice = figures.column, figures.choice
            right = Standing(Tally(column.format, total, count), *wilson(count, total))
            place = choice.url or choice.api
            name = f"{choice.model} at {place}" if place else choice.model
            measured.setdefault(name, []).append(MeasuredFormat(choice, column.constrain, right))
        # The lower end of the interval: one right answer of one is less evidence than five of ten.
        return {
            name: sorted(formats, key=lambda measured: measured.right.low, reverse=True)
            for name, formats in measured.items()
        }

    def _columns(self, readings: tuple[str, ...]) -> Iterator[_Figures]:
        """Yield the figures of these readings; those of other prompts than that of agents say nothing about agents."""
        styles = ("", DEFAULT_STYLE)
        return (
            figures
            for figures in self.columns
            if figures.column.reading in readings and figures.column.prompt in styles
        )


def read_report(path: str | os.PathLike[str]) -> StoredReport:
    """Read a report.

    Args:
        path: the report as JSON, or the directory of an evaluation.

    Raises:
        ConfigurationError: the file cannot be read, or is not a report of this version.
    """
    file = Path(path)
    if file.is_dir():
        file /= FILE
    try:
        return StoredReport.model_validate_json(file.read_bytes())
    except OSError as error:
        raise ConfigurationError(
            f"{file}: {error.strerror or error}; name the report, or the directory of an evaluation"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigurationError(
            f"{file} is not a report of this version ({place}: {fault_words(first)}); "
            "`toolwire eval --rescore DIRECTORY` writes it anew"
        ) from error

"""Answers of models to the questions of a suite, and the file in which they are stored while an evaluation runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter, ValidationError

from toolwire.runtime.sqlite import open_database, storable

Outcome = Literal["answered", "timeout", "error", "not_asked"]
_SCHEMA: Final = ("CREATE TABLE answers (key TEXT PRIMARY KEY, answer TEXT)",)
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """An answer of a model.

    Attributes:
        outcome: "answered"; "timeout": the model did not finish in time; "error": it could not be asked;
            "not_asked": a limit of the evaluation was reached before.
        format: the wire format of the calls in its text; "" if they have fields of their own.
        text: the text of the model, markers included; of an unfinished answer, its beginning.
        native_calls: the calls in the fields of an API, as name and arguments; None for a model of text.
        native_problems: the kinds of the parts of such an answer that could not be read.
        finish: the reason why the model stopped.
        seconds: the duration of the answer.
        input_tokens, output_tokens: the tokens that were read and written.
        estimated: whether the tokens are estimated, because the model reported none.
        money: the price in US dollars; None if it is unknown.
        detail: the error of an answer that there is not.
        notes: what could not be asked as intended, such as a grammar that the server refused.
        turns: the calls of a conversation, by turn and answer; empty for a single question.
    """

    outcome: Outcome
    format: str = ""
    text: str = ""
    native_calls: tuple[tuple[str, dict[str, Any]], ...] | None = None
    native_problems: tuple[str, ...] = ()
    finish: str = ""
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    money: float | None = None
    detail: str = ""
    notes: tuple[str, ...] = field(default=())
    turns: tuple[tuple[tuple[tuple[str, dict[str, Any]], ...], ...], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the answer as a JSON object."""
        return asdict(self)


_ANSWER: Final[TypeAdapter[ModelAnswer]] = TypeAdapter(ModelAnswer)


def answer_from_json(value: Any) -> ModelAnswer:
    """Return the answer that `ModelAnswer.to_json` wrote.

    Raises:
        ValueError: it is not one.
    """
    return _ANSWER.validate_python(value)


def question_key(asked: Mapping[str, Any]) -> str:
    """Return a key that is the same for the same question, model and settings.

    Args:
        asked: everything that the answer may depend on, as JSON values.
    """
    text = json.dumps(asked, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


class AnswerStore:
    """Finished answers in an SQLite file; each is on the disk before the next question of its model is asked.

    Args:
        path: the file, which is created if it does not exist.

    Raises:
        StateError: the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._connection = open_database(path, _SCHEMA, _VERSION)

    def find(self, key: str) -> ModelAnswer | None:
        """Return the stored answer to a question; None if there is none."""
        row = self._connection.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            return _ANSWER.validate_json(row[0])
        except ValidationError:  # of an older version: the question is asked again
            return None

    def store(self, key: str, answer: ModelAnswer) -> None:
        """Store an answer that the model finished; others are asked for again in the next run."""
        # A timeout or an error may be gone in the next run.
        if answer.outcome == "answered":
            text = storable(json.dumps(answer.to_json(), ensure_ascii=True))
            self._connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, text))

    @property
    def is_empty(self) -> bool:
        """True if no answer is stored."""
        return self._connection.execute("SELECT 1 FROM answers LIMIT 1").fetchone() is None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

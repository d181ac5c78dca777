"""Suites of questions: each has tools, and the calls that a right answer contains."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from toolwire.config.toml_source import fault_words
from toolwire.errors import ConfigurationError, DefinitionError
from toolwire.evaluation.call_scoring import AcceptableCall, ExpectedCalls
from toolwire.evaluation.conversations import ScriptedConversation
from toolwire.messages import Message, TextPart
from toolwire.text.json_text import json_type, line_text, standard_json, within_limits
from toolwire.text.limits import MAX_DEPTH
from toolwire.tools import ToolDefinition, definitions

DEFAULT_GROUP = "questions"
_RowT = TypeVar("_RowT")


@dataclass(frozen=True)
class SuiteQuestion:
    """A question of a suite.

    Attributes:
        id: its name, unique in the suite.
        group: the part of the suite that it belongs to, such as a category.
        messages: the conversation, which ends with the question.
        tools: the tools that are offered.
        expected: the right answer; of no meaning for a conversation.
        conversation: the conversation that the question begins; None if one answer is all.
    """

    id: str
    group: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    expected: ExpectedCalls
    conversation: ScriptedConversation | None = None

    @cached_property
    def parameters(self) -> Mapping[str, Mapping[str, Any]]:
        """The JSON Schema of each tool's parameters, by its name; of all tools that a conversation ever offers."""
        turns = self.conversation.turns if self.conversation is not None else ()
        tools = itertools.chain(self.tools, *(turn.tools for turn in turns))
        return {tool.name: tool.parameters for tool in tools}


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """A row that is not a question.

    Attributes:
        place: the file and the line, or the recorded turn.
        reason: the reason as a sentence.
    """

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Suite:
    """Questions, and the rows that are not questions.

    Attributes:
        name: the name of the suite.
        questions: the questions.
        broken: the rows that could not be read; the others are asked.
    """

    name: str
    questions: tuple[SuiteQuestion, ...]
    broken: tuple[BrokenRow, ...] = ()

    def sample(self, limit: int | None, seed: int) -> Suite:
        """Return a sample in which the groups alternate, so that each beginning of it is balanced.

        Args:
            limit: the maximum number of questions; None for all.
            seed: the number that the draw depends on. The draw from one group does not depend on the other groups.
        """
        by_group: dict[str, list[SuiteQuestion]] = {}
        for question in self.questions:
            by_group.setdefault(question.group, []).append(question)
        for group, questions in by_group.items():
            # A generator for each group: adding a group must not change the draw from the others.
            random.Random(f"{seed} {group}").shuffle(questions)
        return replace(self, questions=tuple(_alternating(by_group.values()))[:limit])


def _alternating(groups: Iterable[Sequence[SuiteQuestion]]) -> Iterator[SuiteQuestion]:
    columns = list(groups)
    for position in range(max(map(len, columns), default=0)):
        for column in columns:
            if position < len(column):
                yield column[position]


class _Call(BaseModel):
    """An acceptable call in a row."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    arguments: dict[str, list[Any]]


class _Turn(BaseModel):
    """A message in a row."""

    model_config = ConfigDict(extra="forbid", strict=True)
    role: Literal["system", "user", "assistant"]
    content: str


class _Row(BaseModel):
    """A row of a file of questions."""

    model_config = ConfigDict(extra="forbid", strict=True)
    id: str = ""
    group: str = DEFAULT_GROUP
    question: str | list[_Turn] = Field(min_length=1)
    tools: list[dict[str, Any]] = Field(min_length=1)
    calls: list[_Call] | None = None
    ordered: bool = False
    refusal: bool = False
    any_call: bool = False

    @model_validator(mode="after")
    def _one_expectation(self) -> Self:
        if (self.calls is not None) + self.refusal + self.any_call != 1:
            raise ValueError('a row has one of the members "calls", "refusal": true and "any_call": true')
        if self.calls == []:
            raise ValueError('"calls" is empty; a question that no tool fits has the member "refusal": true')
        for call in self.calls or ():
            for name, values in call.arguments.items():
                if not values:
                    raise ValueError(f"calls: {call.name}.{name} is an empty list, so no value of it would be right")
        return self

    @model_validator(mode="after")
    def _ends_with_a_question(self) -> Self:
        last = _Turn(role="user", content=self.question) if isinstance(self.question, str) else self.question[-1]
        if last.role != "user":
            raise ValueError(f"the question ends with a message of the role {last.role}, not of the user")
        if not last.content.strip():
            raise ValueError("the question is empty")
        return self

    def expected(self) -> ExpectedCalls:
        if self.refusal:
            return ExpectedCalls("no_call")
        if self.any_call:
            return ExpectedCalls("any_call")
        calls = tuple(AcceptableCall(call.name, call.arguments) for call in self.calls or ())
        return ExpectedCalls("calls", calls, ordered=self.ordered)

    def messages(self) -> tuple[Message, ...]:
        if isinstance(self.question, str):
            return (text_message("user", self.question),)
        return tuple(text_message(turn.role, turn.content) for turn in self.question)


def load_rows(path: Path) -> Suite:
    """Return the suite in a file of JSON lines; a row that is not a question is reported and left out.

    Raises:
        ConfigurationError: the file cannot be read, or has no question.
    """
    ids: set[str] = set()

    def read(line: bytes, number: int) -> SuiteQuestion:
        question = _question(line, default_id=f"line {number}")
        if question.id in ids:
            raise ValueError(f"an earlier row has the id {question.id!r:.100}")
        ids.add(question.id)
        return question

    questions, broken = read_lines(path, read, noun="question")
    return Suite(path.stem, tuple(questions), tuple(broken))


def read_lines(path: Path, read: Callable[[bytes, int], _RowT], *, noun: str) -> tuple[list[_RowT], list[BrokenRow]]:
    """Return what the lines of a file stand for, and the lines that stand for nothing.

    Args:
        path: the file.
        read: reads a line with its number; it raises ValueError, RecursionError or DefinitionError for a broken one.
        noun: the word for what a line stands for.

    Raises:
        ConfigurationError: the file cannot be read, or has no such line.
    """
    rows: list[_RowT] = []
    broken: list[BrokenRow] = []
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(read(line, number))
        except ValidationError as error:
            broken.append(BrokenRow(f"{path}, line {number}", validation_message(error)))
        except (ValueError, RecursionError, DefinitionError) as error:
            broken.append(BrokenRow(f"{path}, line {number}", " ".join(str(error).split())[:300]))
    if not rows:
        detail = f": {broken[0].place}: {broken[0].reason}" if broken else ""
        raise ConfigurationError(f"{path} has no {noun}{detail}")
    return rows, broken


def read_row(line: bytes) -> Any:
    """Return the JSON value of a row that is sent to models and stored in logs.

    Raises:
        ValueError: it is not an object of JSON, or has no form in other programs.
        RecursionError: it is nested too deeply.
    """
    try:
        value = standard_json(line_text(line))
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"it is a JSON {json_type(value)}, and not an object")
    if not within_limits(value):
        raise ValueError(f"it has half of a surrogate pair, a number that is too long, or more than {MAX_DEPTH} levels")
    return value


def _question(line: bytes, *, default_id: str) -> SuiteQuestion:
    """Return the question in a line.

    Raises:
        ValueError, DefinitionError: it is not one.
    """
    row = _Row.model_validate(read_row(line))
    if repeated := duplicates(name for tool in row.tools if isinstance(name := tool.get("name"), str)):
        raise ValueError(f"tools: two have the name {repeated[0]!r:.100}")
    tools = tuple(definitions(row.tools, strict=True).values())
    expected = row.expected()
    by_name = {tool.name: tool for tool in tools}
    for call in expected.calls:
        if call.name not in by_name:
            raise ValueError(f"calls: no tool is called {call.name!r:.100}; there are {', '.join(by_name)}")
        _check_arguments(call, by_name[call.name].parameters)
    return SuiteQuestion(row.id or default_id, row.group, row.messages(), tools, expected)


def _check_arguments(call: AcceptableCall, schema: Mapping[str, Any]) -> None:
    """Check that an answer can be right: a valid call has no argument besides the parameters, and all required ones.

    Raises:
        ValueError: no valid call is right.
    """
    parameters = schema.get("properties") or {}
    is_closed = bool(parameters) and schema.get("additionalProperties", False) is False
    if is_closed and (unknown := [name for name in call.arguments if name not in parameters]):
        names = ", ".join(parameters)
        raise ValueError(f"calls: {call.name} has no parameter {unknown[0]!r:.100}; there are {names:.200}")
    if missing := [name for name in schema.get("required") or () if name not in call.arguments]:
        raise ValueError(f"calls: {call.name} requires {missing[0]}, and the row lists no acceptable value of it")


def duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that come more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def validation_message(error: ValidationError) -> str:
    """Return the first fault that pydantic found as a sentence, with its place."""
    fault = error.errors(include_url=False)[0]
    place = ".".join(map(str, fault["loc"]))
    message = fault_words(fault)
    return f"{place}: {message}" if place else message


def text_message(role: Literal["system", "user", "assistant"], text: str) -> Message:
    """Return a message of text."""
    return Message(role, (TextPart(text),))

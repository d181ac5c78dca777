"""Recorded runs as questions: a model should make the calls that worked when the run was recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

from toolwire.errors import ConfigurationError, DefinitionError
from toolwire.evaluation.call_scoring import AcceptableCall, ExpectedCalls
from toolwire.evaluation.suite import BrokenRow, Suite, SuiteQuestion, text_message
from toolwire.messages import Message
from toolwire.telemetry.archive import Archive
from toolwire.telemetry.request_rows import TOOLS
from toolwire.telemetry.row_codec import MAX_RAW, MAX_TEXT
from toolwire.tools import ToolDefinition, definitions

NAME: Final = "recorded"
MAX_RUNS: Final = 10_000
"""Maximum number of runs that are read, the newest first."""

_Row = Mapping[str, Any]


def load_recorded(archive: Archive) -> Suite:
    """Return the first turns of recorded runs whose calls all worked; the expected calls are the recorded ones.

    A turn that cannot be a question is reported: one of which a text was shortened or not stored.

    Raises:
        ConfigurationError: no turn can be a question.
        StateError: the file does not exist or cannot be read.
    """
    questions: list[SuiteQuestion] = []
    broken: list[BrokenRow] = []
    for run in archive.runs(MAX_RUNS):
        recorded = archive.run(run["id"])
        for turn in recorded.turns:
            messages = [recorded.messages[number] for number in turn["request"] if number in recorded.messages]
            if not _is_usable(turn, messages):
                continue
            id = f"{run['id']}.{turn['round']}.{turn['attempt']}"
            try:
                questions.append(_question(id, turn, messages, complete=len(messages) == len(turn["request"])))
            except (ValueError, DefinitionError) as error:
                broken.append(BrokenRow(f"the recorded turn {id}", str(error)))
    if not questions:
        detail = f": {broken[0].place}: {broken[0].reason}" if broken else ""
        raise ConfigurationError(f"{archive.path} has no first turn whose calls all worked{detail}")
    return Suite(NAME, tuple(questions), tuple(broken))


def _is_usable(turn: _Row, messages: Sequence[_Row]) -> bool:
    """Return whether a turn's calls are evidence, and its conversation can be sent again.

    Only the texts of a conversation are recorded, so one with earlier calls cannot be sent again as it was.
    """
    calls = turn["calls"]
    worked = turn["good"] == 1 and calls and all(call["ok"] for call in calls)
    return bool(worked) and all(message["role"] in ("system", "user", TOOLS) for message in messages)


def _question(id: str, turn: _Row, rows: Sequence[_Row], *, complete: bool) -> SuiteQuestion:
    """Return the question of a turn.

    Raises:
        ValueError, DefinitionError: a text is missing or was shortened.
    """
    # A question that lacks a part of its conversation would have another right answer.
    if not complete:
        raise ValueError("a message of its request was deleted")
    tools: tuple[ToolDefinition, ...] = ()
    messages: list[Message] = []
    for row in rows:
        role = cast(Literal["system", "user"], row["role"])
        limit = MAX_TEXT if role == "user" else MAX_RAW
        if len(row["text"]) > limit:
            raise ValueError(f"its {row['role']} message was shortened when it was recorded")
        if row["role"] == TOOLS:
            tools = tuple(definitions(list(_stored_tools(row["text"])), strict=True).values())
        elif row["text"]:
            messages.append(text_message(role, row["text"]))
    if not tools or not messages:
        raise ValueError("its tools or its messages were not stored")
    calls = tuple(AcceptableCall(call["tool"], _acceptable(call["arguments"])) for call in turn["calls"])
    return SuiteQuestion(id, str(turn["agent"] or NAME), tuple(messages), tools, ExpectedCalls("calls", calls))


def _stored_tools(text: str) -> Iterator[Any]:
    for line in text.split("\n"):
        yield json.loads(line.partition(" ")[2])


def _acceptable(text: str) -> dict[str, list[Any]]:
    arguments = json.loads(text) if len(text) <= MAX_TEXT else None
    if not isinstance(arguments, dict):
        raise ValueError("the arguments of a call were shortened when it was recorded")
    return {name: [_members(value)] for name, value in arguments.items()}


def _members(value: Any) -> Any:
    """Return a value as an acceptable one, in which each member of an object has a list of acceptable values."""
    match value:
        case dict():
            return {name: [_members(item)] for name, item in value.items()}
        case list():
            return [_members(item) for item in value]
    return value

"""Stream events, and `collect`, the only place that folds them into a response."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from toolwire.messages import FinishReason, ParsedResponse, Problem, ToolCall


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """More text for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call is certain to be meant: its name is known, its arguments follow."""

    index: int
    name: str
    id: str


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """More of a call's arguments, as JSON text; all deltas of a call join to one JSON object."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """A call is over. Only a complete one may run; an incomplete one is followed by its problem."""

    index: int
    call: ToolCall
    complete: bool


@dataclass(frozen=True, slots=True)
class ProblemFound:
    """Something could not be read."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Finish:
    """The response is over."""

    reason: FinishReason


Event = ContentDelta | ReasoningDelta | CallStart | ArgumentsDelta | CallEnd | ProblemFound | Finish


def collect(events: Iterable[Event], *, raw: Any = None) -> ParsedResponse:
    """Fold events into a response.

    Args:
        events: the events of one response, in order; a stream without `Finish` counts as finished.
        raw: what was parsed, kept as `ParsedResponse.raw`.
    """
    content: list[str] = []
    reasoning: list[str] = []
    calls: list[ToolCall] = []
    incomplete: list[ToolCall] = []
    problems: list[Problem] = []
    reason: FinishReason | None = None
    for event in events:
        match event:
            case ContentDelta(text):
                content.append(text)
            case ReasoningDelta(text):
                reasoning.append(text)
            case CallEnd(_, call, complete):
                (calls if complete else incomplete).append(call)
            case ProblemFound(problem):
                problems.append(problem)
            case Finish(reason):
                pass
            case CallStart() | ArgumentsDelta():
                pass
    return ParsedResponse(
        content="".join(content),
        reasoning="".join(reasoning),
        tool_calls=tuple(calls),
        incomplete=tuple(incomplete),
        problems=tuple(problems),
        finish_reason=reason or (FinishReason.TOOL_CALLS if calls else FinishReason.STOP),
        raw=raw,
    )


def arguments_text(arguments: dict[str, Any]) -> str:
    """The JSON text of a call's arguments, as deltas write it: no ASCII escapes, `, ` and `: ` between."""
    return json.dumps(arguments, ensure_ascii=False, allow_nan=False)


def replay(response: ParsedResponse) -> Iterator[Event]:
    """Yield events that `collect` folds back into `response`: reasoning, content, calls, problems, finish."""
    if response.reasoning:
        yield ReasoningDelta(response.reasoning)
    if response.content:
        yield ContentDelta(response.content)
    index = 0
    for complete, calls in ((True, response.tool_calls), (False, response.incomplete)):
        for call in calls:
            yield CallStart(index, call.name, call.id)
            yield ArgumentsDelta(index, arguments_text(call.arguments))
            yield CallEnd(index, call, complete)
            index += 1
    for problem in response.problems:
        yield ProblemFound(problem)
    yield Finish(response.finish_reason)

"""Encode records as rows of a table: truncated texts without secrets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    CitationReceived,
    ContentDelta,
    Event,
    Finish,
    OpaquePartReceived,
    ProblemFound,
    ReasoningDelta,
    ReasoningEnd,
    UsageCounted,
)
from toolwire.messages import ParsedResponse, ReasoningPart, TextPart, ToolCall, Usage
from toolwire.runtime.sqlite import storable
from toolwire.telemetry.records import CallRecord, EndRecord, RunRecord, TurnRecord
from toolwire.text.redaction import redact, redact_value, secrets_in
from toolwire.text.truncate import omission

MAX_RAW: Final = 16_000
"""Maximum stored length of one answer, in characters."""
MAX_TEXT: Final = 4_000
"""Maximum stored length of a task, of arguments and of a result, in characters."""
MAX_WORDS: Final = 1_000
"""Maximum stored length of an error, a reason or a correction, in characters."""
MAX_EVENTS: Final = 200
MAX_EVENT: Final = 500
"""Maximum stored length of one event, in characters."""
_MARGIN: Final = 2_000
"""Characters beyond a limit that are searched, so that a secret across the limit is found."""
NOT_KEPT: Final = "(not kept)"
"""Placeholder for a text where only figures are stored."""
_PIECES: Final = frozenset({"content", "reasoning", "arguments"})

SCHEMA: Final = (
    "CREATE TABLE runs (id TEXT PRIMARY KEY, parent TEXT, agent TEXT, model TEXT, api TEXT, format TEXT, task TEXT, "
    "started_at REAL, reason TEXT, good INTEGER, detail TEXT, rounds INTEGER, calls INTEGER, input_tokens INTEGER, "
    "output_tokens INTEGER, money REAL, seconds REAL)",
    "CREATE INDEX runs_started_at ON runs (started_at)",
    "CREATE TABLE turns (id INTEGER PRIMARY KEY, run TEXT, round INTEGER, attempt INTEGER, agent TEXT, model TEXT, "
    "api TEXT, format TEXT, choice TEXT, started_at REAL, time_to_first_event REAL, seconds REAL, finish TEXT, "
    "offered INTEGER, formats TEXT, good INTEGER, repairs TEXT, problems TEXT, failed TEXT, raw TEXT, events TEXT, "
    "request TEXT, correction TEXT, error TEXT, input_tokens INTEGER, output_tokens INTEGER, cached_tokens INTEGER, "
    "reasoning_tokens INTEGER)",
    "CREATE INDEX turns_run ON turns (run)",
    "CREATE INDEX turns_started_at ON turns (started_at)",
    "CREATE TABLE calls (turn INTEGER, position INTEGER, id TEXT, tool TEXT, arguments TEXT, format TEXT, "
    "repairs TEXT, confidence REAL, decision TEXT, reason TEXT, approval_seconds REAL, ok INTEGER, issue TEXT, "
    "error TEXT, result TEXT, seconds REAL)",
    "CREATE INDEX calls_turn ON calls (turn)",
    "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT, role TEXT, text TEXT)",
    "CREATE INDEX messages_run ON messages (run)",
    "CREATE TABLE outcomes (id INTEGER PRIMARY KEY, model TEXT, format TEXT, good INTEGER, at REAL, "
    "source TEXT DEFAULT '')",
    "CREATE INDEX outcomes_model ON outcomes (model, format)",
    "CREATE TABLE losses (run TEXT PRIMARY KEY, records INTEGER, at REAL)",
)
VERSION: Final = 4

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TurnRows:
    """The row of a turn and those of its calls, which get the turn's id once it has one."""

    turn: Row
    calls: tuple[Row, ...]


def run_row(run: RunRecord, *, content: bool, known: Iterable[str] = ()) -> Row:
    """Return the row of a run that begins."""
    task = kept(run.task, MAX_TEXT, known) if content else ""
    return {**_same(run, "id", "parent", "agent", "model", "api", "format", "started_at"), "task": task}


def end_row(end: EndRecord, *, content: bool, known: Iterable[str] = ()) -> Row:
    """Return the columns that the end of a run sets."""
    return {
        **_same(end, "reason", "good", "rounds", "calls", "money", "seconds"),
        **_same(end.usage, "input_tokens", "output_tokens"),
        "detail": kept(end.detail, MAX_WORDS, known) if content else "",
    }


def secrets_of(turn: TurnRecord) -> set[str]:
    """Return values of members with secret names in the calls and results of a turn."""
    response = turn.response
    secrets = {secret for call in (*response.all_calls, *response.incomplete) for secret in secrets_in(call.arguments)}
    return secrets | {secret for record in turn.calls for secret in secrets_in(record.result.result)}


def turn_rows(turn: TurnRecord, *, content: bool, known: Iterable[str] = ()) -> TurnRows:
    """Return the rows of a turn.

    Args:
        turn: the record.
        content: whether to store texts, arguments and results; otherwise only figures and names are stored.
        known: secrets to redact, besides those that are recognised by their form.
    """
    response = turn.response
    usage = response.usage or Usage()
    failed = [problem.raw for problem in response.problems]
    row = {
        **_same(turn, "run", "round", "attempt", "agent", "model", "api", "format", "choice"),
        **_same(turn, "started_at", "time_to_first_event", "seconds", "good"),
        **_same(usage, "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"),
        "finish": response.finish_reason.value,
        "offered": len(turn.offered),
        "formats": " ".join(turn.formats),
        "repairs": json.dumps(turn.repairs) if turn.repairs else "",
        "problems": json.dumps(turn.problems) if turn.problems else "",
        "failed": kept("\n".join(failed), MAX_RAW, known) if content else "",
        "raw": kept(turn.raw or written(response), MAX_RAW, known) if content else "",
        "events": _events(turn.events, known) if content else "",
        "correction": kept(turn.correction, MAX_WORDS, known) if content else "",
        "error": kept(turn.error, MAX_WORDS, known) if content or not turn.error else NOT_KEPT,
    }
    names = frozenset(turn.offered)  # a name that a model makes up is text of the model
    return TurnRows(
        row, tuple(_call(at, record, names, known, content=content) for at, record in enumerate(turn.calls))
    )


def _same(record: object, *names: str) -> Row:
    """Return the columns that have the name and the value of a field."""
    return {name: getattr(record, name) for name in names}


def _call(at: int, one: CallRecord, names: frozenset[str], known: Iterable[str], *, content: bool) -> Row:
    call, issue, approval = one.call, one.issue, one.approval
    reason = approval.reason if approval is not None else issue.message if issue is not None else ""
    return {
        "position": at,
        "id": storable(call.id[:MAX_EVENT]) if content else "",
        "tool": call.name if call.name in names else kept(call.name, MAX_EVENT, known) if content else NOT_KEPT,
        "arguments": kept(_json(redact_value(call.arguments)), MAX_TEXT, known) if content else "",
        "format": call.format,
        "repairs": " ".join(call.repairs),
        "confidence": call.confidence,
        "decision": one.decision,
        "reason": kept(reason, MAX_WORDS, known) if content else "",
        "approval_seconds": None if approval is None else approval.seconds,
        "ok": one.result.success,
        "issue": "" if issue is None else issue.kind,
        "error": kept(one.result.error or "", MAX_WORDS, known) if content else "",
        "result": kept(one.result.text, MAX_TEXT, known) if content and one.result.success else "",
        "seconds": one.seconds,
    }


def kept(text: str, most: int, known: Iterable[str] = ()) -> str:
    """Return a text without secrets, truncated to a number of characters."""
    if not text:
        return ""
    clean = redact(storable(text[: most + _MARGIN]), known)
    if len(text) <= most:
        return clean
    return clean[:most] + omission(len(text) - most)


def written(response: ParsedResponse) -> str:
    """Return an approximation of what a model with native calls wrote: reasoning, prose and calls in order."""
    pieces: list[str] = []
    for part in response.parts:
        if isinstance(part, TextPart | ReasoningPart):
            pieces.append(part.text)
        elif isinstance(part, ToolCall):
            pieces.append(_written(part))
    if not response.parts:
        pieces = [response.reasoning, response.content, *map(_written, response.all_calls)]
    return "\n".join(filter(None, (*pieces, *map(_written, response.incomplete))))


def _written(call: ToolCall) -> str:
    return call.raw or f"{call.name} {_json(call.arguments)}"


def _events(events: Iterable[Event], known: Iterable[str]) -> str:
    """Return events as JSON: a list of [kind, text, count].

    Deltas of one text are merged at the place of the first one, those of one call's arguments even across other calls:
    a secret in two halves would not be found.
    """
    entries: list[list[Any]] = []
    growing: dict[str | int, list[Any]] = {}  # by kind, and the arguments by the number of their call
    for event in events:
        kind, text = _event(event)
        if kind not in _PIECES:
            ended = event.index if isinstance(event, CallEnd) else None
            growing = {key: entry for key, entry in growing.items() if isinstance(key, int) and key != ended}
            entries.append([kind, text, 1])
            continue
        key = event.index if isinstance(event, ArgumentsDelta) else kind
        if key in growing:
            entry = growing[key]
            entry[2] += 1
            if len(entry[1]) <= MAX_EVENT + _MARGIN:
                entry[1] += text
        else:
            growing[key] = entry = [kind, text, 1]
            entries.append(entry)
    if len(entries) > MAX_EVENTS:
        entries = [*entries[:MAX_EVENTS], ["left out", f"{len(entries) - MAX_EVENTS} more", 1]]
    return json.dumps(
        [[kind, kept(text, MAX_EVENT, known), count] for kind, text, count in entries], ensure_ascii=False
    )


def _event(event: Event) -> tuple[str, str]:
    match event:
        case ContentDelta(text):
            return "content", text
        case ReasoningDelta(text):
            return "reasoning", text
        case ReasoningEnd():
            return "reasoning end", ""
        case CallStart(index, name, id):
            return "call start", f"{index}: {name} {id}"
        case ArgumentsDelta(_, text):
            return "arguments", text
        case CallEnd(index, call, complete):
            repaired = f", repaired: {', '.join(call.repairs)}" if call.repairs else ""
            return "call end", f"{index}: {'complete' if complete else 'incomplete'}{repaired}"
        case ProblemFound(problem):
            return "problem", f"{problem.kind} at {problem.position}: {problem.message}"
        case UsageCounted(usage):
            return "usage", f"{usage.input_tokens} in, {usage.output_tokens} out"
        case Finish(reason):
            return "finish", reason.value
        case CitationReceived(part):
            return "citation", ", ".join(source.url or source.title for source in part.sources)
        case OpaquePartReceived():
            return "opaque part", ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

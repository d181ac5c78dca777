"""The view of one exchange for the page: JSON without secrets, made when a user looks.

A secret may be split between the pieces of a stream, so that no piece contains it. The pieces are therefore searched
one by one, and once more joined; where only the joined text contains a secret, the pieces are not shown.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

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
    collect,
)
from toolwire.inspector.answer_reading import AnswerReading, reading_of, request_of
from toolwire.inspector.exchange_summary import Json, row_of
from toolwire.inspector.prompt_parts import PromptPart, prefix_change, prompt_parts
from toolwire.inspector.recorded_exchange import BackendAttempt, Exchange
from toolwire.messages import Message, ToolCall
from toolwire.providers.request import ChatRequest
from toolwire.schema.validation import validate
from toolwire.telemetry.run_rows import secrets_of_process
from toolwire.text.redaction import REDACTED, redact, redact_value
from toolwire.text.secret_spellings import secret_spellings
from toolwire.text.truncate import truncate

MAX_TEXT = 200_000
"""Maximum length of one text on the page, in characters."""
HIDDEN = "(hidden: a secret is split between its pieces)"
"""Text in place of pieces that only together contain a secret."""


def view_of(exchange: Exchange, previous: Exchange | None = None, *, start: int = 0, format: str | None = None) -> Json:
    """Return the view of an exchange; times are in milliseconds from its beginning.

    Args:
        exchange: the exchange.
        previous: the request before it in the same session.
        start: the first step that is wanted; from a later one than the first on, the requests are left out too.
        format: the wire format in which the answer is read now; None as the gateway read it.
    """
    reading = reading_of(exchange, format=format)
    events = reading.events if reading else []
    request = request_of(exchange)
    view: Json = {
        "record": "exchange",
        "row": row_of(exchange, None if format is not None else reading),
        "start": start,
        "steps": _steps(exchange, reading, start) if reading else [],
        "calls": _calls(exchange, reading, request) if reading else [],
        "read_as": reading.format if reading else "",
        **_texts(events),
        "notes": [{"kind": note.kind, "where": note.where, "message": note.message} for note in exchange.notes],
        "truncated": exchange.truncated,
    }
    if not start:
        view |= {
            "headers": dict(exchange.headers),
            "request": redact_value(exchange.body),
            "attempts": [_attempt(exchange, attempt) for attempt in exchange.attempts],
            "tools": [tool.name for tool in request.tools],
            **_prompt(exchange, previous),
        }
    if exchange.state != "running":
        view["sent"] = _limited(redact("".join(_decoded(data for _, data in exchange.sent))))
    return _without_known(view)


def _without_known(view: Json) -> Json:
    """Return a view without the secrets of this process's environment."""
    text = json.dumps(view, ensure_ascii=False, default=str)
    for secret in secret_spellings(secrets_of_process()):
        text = text.replace(secret, REDACTED)
    without: Json = json.loads(text)
    return without


def _ms(exchange: Exchange, at: float) -> float | None:
    return round((at - exchange.started) * 1000, 2) if at else None


def _limited(text: str) -> str:
    return truncate(text, MAX_TEXT)


def _decoded(pieces: Iterable[bytes | str]) -> list[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return [piece if isinstance(piece, str) else decoder.decode(piece) for piece in pieces]


# -- the answer --------------------------------------------------------------------------------------------------------


def safe_pieces(pieces: Sequence[str]) -> list[str]:
    """Return the pieces of a text without secrets, the same number of pieces."""
    safe = [redact(piece) for piece in pieces]
    joined = "".join(safe)
    return safe if redact(joined) == joined else [HIDDEN, *([""] * (len(pieces) - 1))]


def _steps(exchange: Exchange, reading: AnswerReading, start: int) -> list[Json]:
    # The answer may grow while it is read here.
    steps = reading.attempt.steps[: len(reading.groups)]
    # Earlier pieces are searched too: the beginning of a secret may be among them.
    raw = safe_pieces(_decoded(step.raw for step in steps)) if steps else []
    views = [[_event(event) for event in events] for events in reading.groups]
    split = _hide_split_secrets(views)
    if split and raw and raw[0] != HIDDEN:
        raw = [HIDDEN, *([""] * (len(raw) - 1))]
    rows: list[Json] = []
    for at, step in enumerate(steps):
        if at >= start:
            events = views[at] if at < len(views) else []
            rows.append({"n": at, "t": _ms(exchange, step.at), "raw": _limited(raw[at]), "events": events})
    return rows


def _hide_split_secrets(views: list[list[Json]]) -> bool:
    """Hide texts of deltas that only together contain a secret; return whether there are any."""
    deltas: dict[tuple[str, int], list[Json]] = {}
    for events in views:
        for event in events:
            if event["kind"] in ("text", "reasoning", "arguments"):
                deltas.setdefault((event["kind"], event.get("index", -1)), []).append(event)
    is_split = False
    for events in deltas.values():
        pieces = safe_pieces([event["text"] for event in events])
        is_split = is_split or pieces[0] == HIDDEN
        for event, piece in zip(events, pieces, strict=True):
            event["text"] = piece
    return is_split


def _event(event: Event) -> Json:
    match event:
        case ContentDelta(text):
            return {"kind": "text", "text": text}
        case ReasoningDelta(text):
            return {"kind": "reasoning", "text": text}
        case ReasoningEnd():
            return {"kind": "end of reasoning", "text": ""}
        case CallStart(index, name, id):
            return {"kind": "call", "index": index, "text": redact(name), "id": id}
        case ArgumentsDelta(index, text):
            return {"kind": "arguments", "index": index, "text": text}
        case CallEnd(index, call, complete):
            return {
                "kind": "end of call" if complete else "incomplete call",
                "index": index,
                "text": redact(call.name),
                "repairs": list(call.repairs),
            }
        case ProblemFound(problem):
            return {"kind": "problem", "text": redact(problem.message), "problem": problem.kind}
        case UsageCounted(usage):
            cached = f", {usage.cached_tokens:,} from the cache" if usage.cached_tokens else ""
            estimated = " (estimated)" if usage.estimated else ""
            text = f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out{estimated}"
            return {"kind": "usage", "text": text}
        case Finish(reason):
            return {"kind": "finish", "text": reason.value}
        case CitationReceived(part):
            return {"kind": "sources", "text": redact(", ".join(source.url or source.title for source in part.sources))}
        case OpaquePartReceived():
            return {"kind": "part of the provider", "text": ""}


def _texts(events: list[Event]) -> Json:
    response = collect(events)
    return {
        "content": _limited(redact(response.content)),
        "reasoning": _limited(redact(response.reasoning)),
        "problems": [
            {
                "kind": problem.kind,
                "position": problem.position,
                "message": redact(problem.message),
                "raw": _limited(redact(problem.raw)),
            }
            for problem in response.problems
        ],
    }


def _calls(exchange: Exchange, reading: AnswerReading, request: ChatRequest) -> list[Json]:
    calls: dict[int, Json] = {}
    arguments: dict[int, list[str]] = {}
    tools = {tool.name: tool for tool in request.tools}
    for step, events in zip(reading.attempt.steps, reading.groups, strict=False):
        for event in events:
            match event:
                case CallStart(index, name, id):
                    calls[index] = {"index": index, "name": redact(name), "id": id, "begun": _ms(exchange, step.at)}
                    calls[index] |= {"ended": None, "complete": None, "repairs": [], "issues": [], "raw": ""}
                    arguments[index] = []
                case ArgumentsDelta(index, text):
                    arguments.setdefault(index, []).append(text)
                case CallEnd(index, call, complete):
                    tool = tools.get(call.name)
                    issues = validate(call.arguments, tool.parameters) if tool is not None and complete else []
                    calls.setdefault(index, {"index": index, "name": redact(call.name), "id": call.id, "begun": None})
                    calls[index] |= _end_of_call(call, complete=complete)
                    calls[index] |= {
                        "ended": _ms(exchange, step.at),
                        "known": tool is not None or not tools,
                        "issues": [{"pointer": issue.pointer, "message": redact(issue.message)} for issue in issues],
                    }
                case _:
                    pass
    for index, view in calls.items():
        view["text"] = _limited(redact("".join(arguments.get(index, ()))))
    return list(calls.values())


def _end_of_call(call: ToolCall, *, complete: bool) -> Json:
    return {
        "complete": complete,
        "id": call.id,
        "server": call.server,
        "format": call.format,
        "confidence": call.confidence,
        "repairs": list(call.repairs),
        "arguments": redact_value(call.arguments),
        "raw": _limited(redact(call.raw)),
    }


# -- the requests ------------------------------------------------------------------------------------------------------


def _attempt(exchange: Exchange, attempt: BackendAttempt) -> Json:
    body = sent_body(attempt)
    is_same = (
        isinstance(body, dict)
        and isinstance(exchange.body, dict)
        and _without_model(body) == _without_model(exchange.body)
    )
    return {
        "backend": attempt.backend,
        "api": attempt.api or "text",
        "model": attempt.model,
        "format": attempt.format,
        "status": attempt.status,
        "passed": attempt.passed,
        "failure": redact(attempt.failure),
        "asked": _ms(exchange, attempt.asked_at),
        "answered": _ms(exchange, attempt.answered_at),
        "same": is_same,
        "request": None if is_same else redact_value(body),
    }


def _without_model(body: Json) -> Json:
    return {key: value for key, value in body.items() if key != "model"}


def sent_body(attempt: BackendAttempt) -> Any:
    """Return the body that a backend was sent, or the messages of a model that reads text alone, as JSON."""
    if isinstance(attempt.body, list):
        return [_as_json(message) for message in attempt.body]
    return attempt.body


def _as_json(message: Any) -> Any:
    if not isinstance(message, Message):
        return message
    return {"role": message.role, "content": "\n".join(getattr(part, "text", "") for part in message.parts)}


def parts_of(exchange: Exchange) -> list[PromptPart]:
    """Return the parts of the request that the last backend was sent."""
    return prompt_parts(sent_body(exchange.attempts[-1]) if exchange.attempts else exchange.body)


def _prompt(exchange: Exchange, previous: Exchange | None) -> Json:
    parts = parts_of(exchange)
    view: Json = {
        "parts": [{"place": p.place, "kind": p.kind, "label": redact(p.label), "tokens": p.tokens} for p in parts],
        "prefix": None,
    }
    if previous is not None:
        change = asdict(prefix_change(parts_of(previous), parts))
        view["prefix"] = {
            **{key: redact(value) if isinstance(value, str) else value for key, value in change.items()},
            "previous": previous.id,
            "number": previous.number,
        }
    return view

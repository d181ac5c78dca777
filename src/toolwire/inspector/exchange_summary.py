"""The figures of an exchange: one row of the inspector's list."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from toolwire.errors import MissingExtra
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    ProblemFound,
    ReasoningDelta,
    UsageCounted,
)
from toolwire.inspector.answer_reading import AnswerReading, reading_of
from toolwire.inspector.recorded_exchange import Exchange
from toolwire.messages import Usage
from toolwire.text.redaction import redact

SESSION_HEADERS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")
MAX_NAME = 200
"""Maximum length of a name that a client or a model gave, in characters."""
_PRODUCT = re.compile(r"[\w.@-]{1,40}(?:/[\w.+-]{1,30})?")
_OUTPUT = (ContentDelta, ReasoningDelta, CallStart)

Json = dict[str, Any]


@dataclass(slots=True)
class AnswerFigures:
    """Figures of an answer, without its content.

    Attributes:
        first: seconds from the request to the first event of the answer; None as long as there is none.
        usage: the token counts; None if the backend reported none.
        cost: the cost; None if it is not known.
        calls: the names of the calls, in order.
        incomplete: the number of calls that were truncated or broken.
        repairs: how often each repair was needed.
        problems: how often each kind of problem was found.
        finish: why the answer ended; "" as long as it has not.
        characters: length of text, reasoning and arguments, in characters.
    """

    first: float | None = None
    usage: Usage | None = None
    cost: float | None = None
    calls: list[str] = field(default_factory=list)
    incomplete: int = 0
    repairs: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    finish: str = ""
    characters: int = 0

    def add(self, event: Event, seconds: float) -> None:
        """Count an event; `seconds`: its time after the request."""
        if self.first is None and isinstance(event, _OUTPUT):
            self.first = seconds
        match event:
            case ContentDelta(text) | ReasoningDelta(text):
                self.characters += len(text)
            case ArgumentsDelta(_, text):
                self.characters += len(text)
            case CallStart(_, name):
                self.calls.append(redact(name)[:MAX_NAME])
            case CallEnd(_, call, complete):
                self.incomplete += not complete
                self.repairs.update(call.repairs)
            case ProblemFound(problem):
                self.problems[problem.kind] += 1
            case UsageCounted(usage):
                self.usage = usage
            case Finish(reason):
                self.finish = reason.value
            case _:
                pass


def figures_of(exchange: Exchange, reading: AnswerReading | None = None) -> AnswerFigures:
    """Return the figures of an exchange; those of one that has ended are counted once."""
    if exchange.figures is not None:
        return exchange.figures
    reading = reading or reading_of(exchange)
    figures = AnswerFigures()
    if reading is not None:
        for step, events in zip(reading.attempt.steps, reading.groups, strict=False):
            for event in events:
                figures.add(event, step.at - exchange.started)
    if exchange.prices is not None and figures.usage is not None:
        # A list of prices may be missing, or may not have the model.
        with suppress(LookupError, MissingExtra):
            prices = exchange.prices()
            figures.cost = None if prices is None else prices.cost_of(figures.usage)
    if exchange.state != "running":
        exchange.figures = figures
    return figures


def row_of(exchange: Exchange, reading: AnswerReading | None = None) -> Json:
    """Return the row of an exchange; times are in milliseconds."""
    figures = figures_of(exchange, reading)
    attempt = exchange.attempts[-1] if exchange.attempts else None
    usage = figures.usage
    return {
        "id": exchange.id,
        "number": exchange.number,
        "version": exchange.version,
        "at": exchange.started_at,
        "state": exchange.state,
        "status": exchange.status,
        "client": client_name(exchange.headers),
        "session": session_of(exchange),
        "model": redact(exchange.model)[:MAX_NAME],
        "path": exchange.path[:MAX_NAME],
        "api_in": exchange.client_api,
        "api_out": (attempt.api or "text") if attempt else "",
        "backend": attempt.backend if attempt else "",
        "backend_model": attempt.model if attempt else "",
        "attempts": len(exchange.attempts),
        "failed_attempts": sum(bool(earlier.failure) for earlier in exchange.attempts[:-1]),
        "format": attempt.format if attempt else "",
        "passed": exchange.passed,
        "stream": exchange.stream,
        "first": None if figures.first is None else round(figures.first * 1000, 1),
        "total": round((exchange.ended - exchange.started) * 1000, 1) if exchange.ended else None,
        "input": usage.input_tokens if usage else None,
        "output": usage.output_tokens if usage else None,
        "cached": usage.cached_tokens if usage else None,
        "estimated": usage.estimated if usage else False,
        "cost": figures.cost,
        "calls": figures.calls,
        "incomplete": figures.incomplete,
        "repairs": sum(figures.repairs.values()),
        "problems": dict(figures.problems),
        "finish": figures.finish,
        "notes": len(exchange.notes),
        "failure": redact(exchange.failure)[:1000],
        "pinned": exchange.pinned,
        "resent_from": exchange.resent_from,
        "characters": figures.characters,
    }


def client_name(headers: Mapping[str, str]) -> str:
    """Return the first product that the header `user-agent` names."""
    match = _PRODUCT.match(headers.get("user-agent", ""))
    return match[0].replace("/", " ") if match else ""


def session_of(exchange: Exchange) -> str:
    """Return the id of the client's session; "" if it names none."""
    for name in SESSION_HEADERS:
        if value := exchange.headers.get(name, ""):
            return value[:MAX_NAME]
    key = exchange.body.get("prompt_cache_key") if isinstance(exchange.body, dict) else None
    return key[:MAX_NAME] if isinstance(key, str) else ""

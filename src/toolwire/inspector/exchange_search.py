"""Search in the content of all exchanges: in what the client sent, and in what was read from the answer."""

from __future__ import annotations

import json
import time

from toolwire.events import collect
from toolwire.inspector.answer_reading import reading_of
from toolwire.inspector.inspector import Inspector
from toolwire.inspector.recorded_exchange import Exchange

SECONDS = 5.0
"""Seconds that a search may take; older exchanges are not searched any more then."""


def matching_ids(inspector: Inspector, text: str) -> list[str]:
    """Return the ids of the exchanges that contain a text in any case, the newest first."""
    folded = text.casefold()
    if not folded:
        return []
    end = time.monotonic() + SECONDS
    matches = [id for id, view in inspector.stored.items() if folded in _folded(view)]
    for exchange in reversed(list(inspector.ring)):
        if time.monotonic() > end:
            break
        if _contains(exchange, folded):
            matches.append(exchange.id)
    return matches


def _contains(exchange: Exchange, folded: str) -> bool:
    if folded in exchange.model.casefold() or folded in exchange.failure.casefold() or folded in _folded(exchange.body):
        return True
    reading = reading_of(exchange)
    if reading is None:
        return False
    response = collect(reading.events)
    calls = [[call.name, call.arguments] for call in (*response.tool_calls, *response.incomplete)]
    return folded in response.content.casefold() or folded in response.reasoning.casefold() or folded in _folded(calls)


def _folded(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str).casefold()

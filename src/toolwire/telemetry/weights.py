"""About how much memory a record takes, counted fast: the tellers of records wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolwire.telemetry.records import TurnRecord

_RECORD: Final = 1_000
_EVENT: Final = 160
"""Bytes of an event with a short text; long ones stand in the answer too, which is counted twice for that."""
_VALUE: Final = 60
_LOOKED_AT: Final = 100
"""Values of one result that are counted; more are taken to be like those."""


def weight(record: object) -> int:
    """Bytes of a record, roughly."""
    if not isinstance(record, TurnRecord):
        return _RECORD
    response = record.response
    size = _RECORD + _EVENT * len(record.events) + 2 * len(record.raw)
    size += 2 * (len(response.content) + len(response.reasoning))
    size += sum(len(problem.raw) for problem in response.problems)
    for call in response.incomplete:
        size += len(call.raw) + _of(call.arguments)
    for one in record.calls:
        size += _RECORD + 2 * len(one.call.raw) + 2 * _of(one.call.arguments) + _of(one.result.result)
    return size


def _of(value: Any) -> int:
    """Bytes of a JSON value, roughly."""
    if isinstance(value, str):
        return _VALUE + len(value)
    size, seen, left = 0, 0, [value]
    while left:
        if seen >= _LOOKED_AT:
            return size + len(left) * max(_VALUE, size // seen)
        one = left.pop()
        seen += 1
        size += _VALUE
        if isinstance(one, str | bytes):
            size += len(one)
        elif isinstance(one, Mapping):
            left.extend(one)
            left.extend(one.values())
        elif isinstance(one, list | tuple):
            left.extend(one)
    return size

"""Estimate the memory of a record; called while a run waits, so it must be fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolwire.telemetry.records import TurnRecord

_RECORD: Final = 1_000
_EVENT: Final = 110
"""Bytes of an event with a short text; long texts are part of the answer too, which counts twice."""
_VALUE: Final = 60
_FEW: Final = 20
"""Maximum number of plain arguments for the fast path."""
_LOOKED_AT: Final = 100
"""Maximum number of values of one result that are counted; the rest is extrapolated."""


def weight(record: object) -> int:
    """Return the approximate size of a record, in bytes."""
    if not isinstance(record, TurnRecord):
        return _RECORD
    response = record.response
    size = _RECORD + _EVENT * len(record.events) + 2 * (len(record.raw) + len(response.content))
    if response.reasoning:
        size += 2 * len(response.reasoning)
    for problem in response.problems:
        size += len(problem.raw)
    for call in response.incomplete:
        size += len(call.raw) + _of(call.arguments)
    for record_of_call in record.calls:
        size += _RECORD + 2 * len(record_of_call.call.raw) + 2 * _of(record_of_call.call.arguments)
        result = record_of_call.result.result
        size += len(result) if isinstance(result, str) else _of(result)
    return size


def _of(value: Any) -> int:
    """Return the approximate size of a JSON value, in bytes."""
    if value.__class__ is dict and len(value) <= _FEW:
        size = 0
        for item in value.values():
            kind = item.__class__
            if kind is str:
                size += _VALUE + len(item)
            elif kind is int or kind is float or kind is bool or item is None:
                size += _VALUE
            else:
                break
        else:
            return size
    elif not isinstance(value, str | bytes | Mapping | list | tuple):
        return _VALUE
    return _deep(value)


def _deep(value: Any) -> int:
    size, counted, left = 0, 0, [value]
    while left:
        if counted >= _LOOKED_AT:
            return size + len(left) * max(_VALUE, size // counted)
        item = left.pop()
        counted += 1
        size += _VALUE
        if isinstance(item, str | bytes):
            size += len(item)
        elif isinstance(item, Mapping):
            left.extend(item)
            left.extend(item.values())
        elif isinstance(item, list | tuple):
            left.extend(item)
    return size

"""JSON text as models and prompts write it, and as it may be read: no duplicate keys, no NaN, no lone surrogates."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NoReturn

from toolwire.text.limits import MAX_DEPTH, MAX_DIGITS

_MAX_BITS = (10**MAX_DIGITS - 1).bit_length()


class JsonError(ValueError):
    """Text that is not JSON, nor JSON after repairs; `position` is the offending character's."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class DuplicateKeyError(ValueError):
    """An object with the same `key` twice: readers differ in which of the values they take."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key[:60]!r} is given twice")
        self.key = key


def json_text(value: Any) -> str:
    """Return a value as JSON is written in prompts and calls: no ASCII escapes, `, ` and `: ` between."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; an `object_pairs_hook` for decoders.

    Raises:
        DuplicateKeyError: a key is given twice.
    """
    members = dict(pairs)
    if len(members) != len(pairs):
        seen = set[str]()
        for key, _ in pairs:
            if key in seen:
                raise DuplicateKeyError(key)
            seen.add(key)
    return members


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and the infinities; a `parse_constant` for decoders."""
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number out of range")
    return value


scan_once: Callable[[str, int], tuple[Any, int]] = vars(
    json.JSONDecoder(parse_constant=refuse_constant, parse_float=_finite, object_pairs_hook=unique_members)
)["scan_once"]
"""Reads the JSON value at a position of a text; returns the value and its end."""


def encodable(text: str) -> bool:
    """Return whether text can be written as UTF-8: whether it has no lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode("utf-16-le")  # refuses what UTF-8 refuses, in half the time
    except UnicodeEncodeError:
        return False
    return True


def decode(text: str) -> Any:
    """Decode JSON text that a scanner let through.

    Raises:
        JsonError: half of a surrogate pair stands alone in it, or this Python refuses an integer that the limits allow
            (its own limit was lowered).
    """
    if not encodable(text):
        raise JsonError("half of a surrogate pair stands alone", 0)
    try:
        return json.loads(text)
    except ValueError as error:
        raise JsonError(str(error), 0) from error


def within_limits(value: Any) -> bool:
    """Return whether a decoded value keeps the rules on depth, surrogates and integers."""
    level = 0
    layer = [value]
    while layer:
        below: list[Any] = []
        for item in layer:
            if isinstance(item, str):
                if not encodable(item):
                    return False
            elif isinstance(item, dict):
                below.extend(item)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, int) and item.bit_length() > _MAX_BITS:
                return False
        level += 1
        if level > MAX_DEPTH and any(isinstance(item, (dict, list)) for item in layer):
            return False
        layer = below
    return True

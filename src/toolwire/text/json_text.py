"""Write JSON as models and prompts do, and decode it strictly: no duplicate keys, no NaN, no lone surrogates."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Callable
from typing import Any, NoReturn

from toolwire.text.limits import MAX_DEPTH, MAX_DIGITS

_MAX_BITS = (10**MAX_DIGITS - 1).bit_length()
_FAST_MINIMUM = 64
"""Length from which trying the C scanner pays, in characters."""
_SHORT = 2 * MAX_DEPTH
"""Length up to which a text is too short for too many levels or digits, in characters."""
ENVELOPE_DEPTH = 20
"""Levels that the answer of an API may have around a value of `MAX_DEPTH` levels."""
_FAST_FAILURES = 8
"""Failures after which a `FastJsonReader` gives up: each may cost a pass over all text before it."""


class JsonError(ValueError):
    """Text that is not JSON, even after repairs.

    Attributes:
        position: the position of the offending character.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class DuplicateKeyError(ValueError):
    """An object has the same key twice, and readers differ in which value they take.

    Attributes:
        key: the key.
    """

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key[:60]!r} is given twice")
        self.key = key


class NumberError(ValueError):
    """A number is not JSON, or is out of range."""


def json_text(value: Any) -> str:
    """Return a value as JSON is written in prompts and calls: no ASCII escapes, `, ` and `: ` between."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def json_excerpt(value: Any) -> str:
    """Return any value as JSON text for a message; what JSON cannot express is written in Python's way."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        return str(type(value))


def json_type(value: Any) -> str:
    """Return JSON Schema's name of the type of a value; integers are numbers."""
    match value:
        case str():
            return "string"
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; an `object_pairs_hook` for decoders.

    Raises:
        DuplicateKeyError: a key is given twice.
    """
    # Comparing lengths costs almost nothing; the duplicate is only searched for once there is one.
    members = dict(pairs)
    if len(members) != len(pairs):
        keys = set[str]()
        for key, _ in pairs:
            if key in keys:
                raise DuplicateKeyError(key)
            keys.add(key)
    return members


def refuse_constant(name: str) -> NoReturn:
    """Raise NumberError for NaN and the infinities; a `parse_constant` for decoders."""
    raise NumberError(f"{name} is not a number of JSON")


def finite_number(text: str) -> float:
    """Return a number; a `parse_float` for decoders.

    Raises:
        NumberError: it is out of range, so that it would be written as an infinity.
    """
    value = float(text)
    if math.isinf(value):
        raise NumberError(f"{text[:20]} is out of range")
    return value


def same_object(members: dict[str, Any]) -> dict[str, Any]:
    """Return an object as it is; an `object_hook` for decoders in a thread.

    Python's decoder lets other threads run only where it calls a function that is written in Python.
    """
    return members


def standard_json(text: str | bytes, *, lets_threads_run: bool = False) -> Any:
    """Decode JSON that may be written again for another program: Python's own decoder takes more than the standard.

    Args:
        text: the JSON text.
        lets_threads_run: whether other threads can run after each object.

    Raises:
        NumberError: it contains NaN, an infinity, or a number out of range.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    hook = same_object if lets_threads_run else None
    return json.loads(text, object_hook=hook, parse_constant=refuse_constant, parse_float=finite_number)


def line_text(line: bytes) -> str:
    """Return a line of a file of JSON lines as text; a byte order mark is left out.

    Raises:
        ValueError: it is not UTF-8. The lines of a file in UTF-16 contain NUL bytes, which no text of JSON has.
    """
    try:
        text = line.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        place = f"byte 0x{line[error.start]:02x} at position {error.start}"
        raise ValueError(f"it is not UTF-8: {place}; convert the file first, with iconv for example") from error
    if "\0" in text:
        raise ValueError(
            "it has NUL bytes, as files in UTF-16 do; convert the file to UTF-8 first, with iconv for example"
        )
    return text


_scan_once: Callable[[str, int], tuple[Any, int]] = vars(
    json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite_number, object_pairs_hook=unique_members)
)["scan_once"]


def encodable(text: str) -> bool:
    """Return whether text has no lone surrogates, so that UTF-8 can hold it."""
    if text.isascii():
        return True
    try:
        text.encode("utf-16-le")  # refuses what UTF-8 refuses, in half the time
    except UnicodeEncodeError:
        return False
    return True


def decode(text: str) -> Any:
    """Decode JSON text that a scanner emitted.

    Raises:
        JsonError: it has a lone surrogate, or this Python refuses an integer that the limits allow (its own limit was
            lowered).
    """
    if not encodable(text):
        raise JsonError("half of a surrogate pair is alone", 0)
    if text.startswith('"') and text.endswith('"') and "\\" not in text:  # most often the key or the name of a call
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError as error:
        raise JsonError(str(error), 0) from error


def within_limits(value: Any) -> bool:
    """Return whether a decoded value keeps the rules on depth, surrogates and integers."""
    # Iterative, layer by layer: recursion would overflow the stack at depths that the C scanner accepts.
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


def is_nested_too_deeply(value: Any, written: bytes, limit: int = MAX_DEPTH + ENVELOPE_DEPTH) -> bool:
    """Return whether a value of a server has more levels than code may follow by recursion.

    Args:
        value: the value.
        written: the JSON text that it was read from.
        limit: maximum number of levels.
    """
    # Nearly every text has too few brackets, which are counted much faster than levels.
    if written.count(b"[") + written.count(b"{") <= limit:
        return False
    layer = [value]
    for _ in range(limit):
        layer = [
            item
            for container in layer
            if isinstance(container, dict | list)
            for item in (container.values() if isinstance(container, dict) else container)
        ]
        if not layer:
            return False
    return any(isinstance(item, dict | list) for item in layer)


class FastJsonReader:
    """Reads values that are there as a whole with the C scanner; shared by all scanners of one text."""

    __slots__ = ("failures",)

    def __init__(self) -> None:
        self.failures = 0

    def read(self, text: str, pos: int) -> tuple[Any, int] | None:
        """Return the string or container at `pos` and its end, or None unless it is complete and valid JSON."""
        if self.failures >= _FAST_FAILURES or len(text) - pos < _FAST_MINIMUM or text[pos] not in '{["':
            return None
        try:
            value, end = _scan_once(text, pos)
        except (ValueError, StopIteration, RecursionError):
            self.failures += 1
            return None
        # Only an escape can write half of a surrogate pair in ASCII, so most short texts need no look at each value.
        is_harmless = end - pos <= _SHORT and text.isascii() and text.find("\\u", pos, end) < 0
        return (value, end) if is_harmless or within_limits(value) else None


def equal_json(a: Any, b: Any) -> bool:
    """Return whether two JSON values are equal; booleans are not numbers."""
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        if isinstance(x, bool) or isinstance(y, bool):
            if x is not y:
                return False
        elif isinstance(x, dict) and isinstance(y, dict):
            if x.keys() != y.keys():
                return False
            stack.extend((x[key], y[key]) for key in x)
        elif isinstance(x, list) and isinstance(y, list):
            if len(x) != len(y):
                return False
            stack.extend(zip(x, y, strict=True))
        elif x != y or (type(x) is not type(y) and not (isinstance(x, (int, float)) and isinstance(y, (int, float)))):
            return False
    return True

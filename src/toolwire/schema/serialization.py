"""Convert results of tools to JSON values, as they are or as pydantic writes them, or name the place that fails."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from inspect import isgenerator
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_jsonable_python

from toolwire.errors import ToolError
from toolwire.schema.pointer import json_pointer
from toolwire.text.escape import replace_surrogates

MAX_SEARCH_DEPTH = 60
"""Maximum levels of nesting at which the place of a value that cannot be converted is named."""
MAX_NESTING = 300
"""Maximum levels of nesting of a value; pydantic writes fewer."""
MAX_INTEGER = 1 << 63
"""Bound of the integers that need no test: JSON writers of any Python take them."""

_JSON = json.JSONEncoder(allow_nan=False)
_ANY: TypeAdapter[Any] = TypeAdapter(Any)
SURROGATE = "\\ud"
"""Start of the escapes that an ASCII encoder writes for surrogates: of pairs, and of lone halves."""
_CONVERSION_ERRORS = (TypeError, ValueError, RecursionError)


def to_json_value(value: Any) -> Any:
    """Return a value if JSON has it, else the value that pydantic makes of dates, enums, dataclasses and models.

    Raises:
        ToolError: a part of it cannot be converted; the message names its place, as a JSON pointer, and its type.
    """
    if isinstance(value, str):
        return replace_surrogates(value)
    if value is None or isinstance(value, bool) or (type(value) is int and -MAX_INTEGER < value < MAX_INTEGER):
        return value
    try:
        return _replace_surrogates(value) if SURROGATE in _JSON.encode(value) else value
    except _CONVERSION_ERRORS:
        pass
    # Not plain JSON: pydantic converts it.
    try:
        converted = _convert(value)
        return _replace_surrogates(converted) if SURROGATE in _JSON.encode(converted) else converted
    except _CONVERSION_ERRORS as error:
        raise ToolError(_place(value)) from error


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, Mapping):
        return {
            replace_surrogates(key) if isinstance(key, str) else key: _replace_surrogates(item)
            for key, item in value.items()
        }
    return list(map(_replace_surrogates, value)) if isinstance(value, list | tuple) else value


def _convert(value: Any) -> Any:
    if _has_iterator(_ANY.dump_python(value, by_alias=False, warnings=False)):  # dump_python advances no iterator
        raise TypeError("an iterator may have no end")
    dump = getattr(value, "model_dump", None)
    converted = dump(mode="json") if callable(dump) else to_jsonable_python(value, by_alias=False)
    _JSON.encode(converted)
    return converted


def _has_iterator(value: Any) -> bool:
    """Return whether there is an iterator anywhere in a value that pydantic dumped.

    Raises:
        RecursionError: it is nested too deeply to be written.
    """
    pending, visited = [(value, 0)], set[int]()
    while pending:
        node, depth = pending.pop()
        if depth > MAX_NESTING:
            raise RecursionError("nested too deeply")
        if isinstance(node, Iterator):
            return True
        if id(node) in visited:  # it contains itself, or is in two places
            continue
        visited.add(id(node))
        if isinstance(node, Mapping):
            pending += ((item, depth + 1) for item in node.values())
        elif isinstance(node, list | tuple | set | frozenset | deque):
            pending += ((item, depth + 1) for item in node)
    return False


def _place(value: Any) -> str:
    """Describe the place in a value that cannot be converted."""
    pointer, above = "", {id(value)}
    while len(above) < MAX_SEARCH_DEPTH:
        unfit = next(((key, part) for key, part in _parts(value) if not _is_convertible(part)), None)
        if unfit is None:
            break
        key, value = unfit
        pointer += json_pointer([key])
        if id(value) in above:
            return f"at {pointer} it contains itself."
        above.add(id(value))
    else:
        return f"at {pointer} it is nested too deeply."
    where = f"at {pointer} it is" if pointer else "it is"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{where} {value}, a number that JSON does not have. Return null or text there."
    if isinstance(value, int):
        return f"{where} a number of too many digits to be written."
    wrong_key = (
        next((key for key in value if not _is_convertible({key: None})), None) if isinstance(value, Mapping) else None
    )
    if wrong_key is not None:
        return f"{where} a {type(value).__name__} with a key of the type {_kind(wrong_key)}. Use keys of text."
    if isinstance(value, Iterator):
        kind = "a generator" if isgenerator(value) else f"an iterator, {_kind(value)}"
        return f"{where} {kind}. Return a list of its items."
    return f"{where} of the type {_kind(value)}. Return text, numbers, lists, dicts, dataclasses or pydantic models."


def _parts(value: Any) -> Iterator[tuple[object, Any]]:
    match value:
        case Mapping():
            yield from value.items()
        case list() | tuple() | set() | frozenset():
            yield from enumerate(value)
        case BaseModel():
            yield from value.__dict__.items()
        case _ if is_dataclass(value) and not isinstance(value, type):
            for field in fields(value):
                yield field.name, getattr(value, field.name, None)


def _is_convertible(value: Any) -> bool:
    try:
        _convert(value)
    except _CONVERSION_ERRORS:
        return False
    return True


def _kind(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"

"""What tools give back, as JSON: it as it is, or as pydantic writes it; or where in it there is no way to write it."""

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

DEEPEST = 60
"""How far down the place of what cannot be written is looked for."""
WRITABLE = 300
"""Values inside values: pydantic writes fewer."""
WHOLE = 1 << 63

_JSON = json.JSONEncoder(allow_nan=False)
_ANY: TypeAdapter[Any] = TypeAdapter(Any)
SURROGATE = "\\ud"
"""How an ASCII encoder begins what lies outside of the basic plane, and halves of it."""
_UNFIT = (TypeError, ValueError, RecursionError)


def to_json_value(value: Any) -> Any:
    """A value that JSON has: the very same if it is one, else what pydantic makes of dates, enums, dataclasses, models.

    Raises:
        ToolError: something in it has no such form; the message names its place, as a JSON pointer, and its type.
    """
    if isinstance(value, str):
        return replace_surrogates(value)
    if value is None or isinstance(value, bool) or (type(value) is int and -WHOLE < value < WHOLE):
        return value
    try:
        return _sound(value) if SURROGATE in _JSON.encode(value) else value
    except _UNFIT:
        pass
    try:
        made = _written(value)
        return _sound(made) if SURROGATE in _JSON.encode(made) else made
    except _UNFIT as error:
        raise ToolError(_place(value)) from error


def _sound(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, Mapping):
        return {replace_surrogates(key) if isinstance(key, str) else key: _sound(inner) for key, inner in value.items()}
    return list(map(_sound, value)) if isinstance(value, list | tuple) else value


def _written(value: Any) -> Any:
    if _yields(_ANY.dump_python(value, by_alias=False, warnings=False)):  # of iterators, this takes nothing yet
        raise TypeError("an iterator may have no end")
    dump = getattr(value, "model_dump", None)
    made = dump(mode="json") if callable(dump) else to_jsonable_python(value, by_alias=False)
    _JSON.encode(made)
    return made


def _yields(value: Any) -> bool:
    """Whether there is an iterator anywhere in what pydantic made of a value.

    Raises:
        RecursionError: it is nested more deeply than can be written.
    """
    left, known = [(value, 0)], set[int]()
    while left:
        one, depth = left.pop()
        if depth > WRITABLE:
            raise RecursionError("nested too deeply")
        if isinstance(one, Iterator):
            return True
        if id(one) in known:  # it holds itself, or is in two places
            continue
        known.add(id(one))
        if isinstance(one, Mapping):
            left += ((inner, depth + 1) for inner in one.values())
        elif isinstance(one, list | tuple | set | frozenset | deque):
            left += ((inner, depth + 1) for inner in one)
    return False


def _place(value: Any) -> str:
    """Where in a value something cannot be written, and what it is."""
    pointer, above = "", {id(value)}
    while len(above) < DEEPEST:
        inner = next(((key, one) for key, one in _parts(value) if not _fits(one)), None)
        if inner is None:
            break
        key, value = inner
        pointer += json_pointer([key])
        if id(value) in above:
            return f"at {pointer} it holds itself."
        above.add(id(value))
    else:
        return f"at {pointer} it is nested too deeply."
    where = f"at {pointer} it is" if pointer else "it is"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{where} {value}, a number that JSON does not have. Give back null or text there."
    if isinstance(value, int):
        return f"{where} a number of too many digits to be written."
    odd = next((key for key in value if not _fits({key: None})), None) if isinstance(value, Mapping) else None
    if odd is not None:
        return f"{where} a {type(value).__name__} with a key of the type {_kind(odd)}. Give it keys of text."
    if isinstance(value, Iterator):
        kind = "a generator" if isgenerator(value) else f"an iterator, {_kind(value)}"
        return f"{where} {kind}. Give back a list of what it yields."
    return f"{where} of the type {_kind(value)}. Give back text, numbers, lists, dicts, dataclasses or pydantic models."


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


def _fits(value: Any) -> bool:
    try:
        _written(value)
    except _UNFIT:
        return False
    return True


def _kind(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"

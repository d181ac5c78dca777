"""Values of a run as JSON text, and back exactly, by the declared types of their fields.

Reading a record runs and imports nothing. Fields that have their default value are left out, so a field that is added
to a class later reads as its default from older records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from toolwire.errors import JournalError
from toolwire.messages import ParsedResponse, ToolCall

T = TypeVar("T")

TAG: Final = "is"
"""The key for the class of a value that may be of several classes."""
CALL: Final = "call"
"""The tag of a part that is one of the response's calls; the key `at` has its index."""
LEFT_OUT: Final = frozenset({(ParsedResponse, "raw")})
"""Fields that are not recorded: the provider's own data, which was parsed into the other fields."""
RECORDED: Final = "recorded"
"""Key in the metadata of a field of a class of this package; False if the field is not recorded."""

_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def to_json(value: Any) -> str:
    """Return a dataclass of this library as JSON text, in ASCII.

    Raises:
        JournalError: it contains a value that JSON does not have.
    """
    return dumps(_codec(type(value)).write(value))


def from_json(kind: type[T], text: str) -> T:
    """Return the value that `to_json` wrote.

    Raises:
        JournalError: the text is not a record of this class.
    """
    return from_data(kind, loads(text))


def to_data(value: Any) -> Any:
    """Return a dataclass of this library as dicts and lists; plain data inside it is not copied."""
    return _codec(type(value)).write(value)


def from_data(kind: type[T], data: Any, *, strict: bool = False) -> T:
    """Return the value that `to_data` took apart.

    Args:
        kind: the class of the value.
        data: the dicts and lists.
        strict: also check the types of plain values, for data that this program may not have written.

    Raises:
        JournalError: the data is not a record of this class.
    """
    try:
        value: T = _codec(kind, strict).read(data)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise JournalError(f"a record of {kind.__name__} cannot be read: {error!r:.200}") from error
    return value


def dumps(data: Any) -> str:
    """Return plain data as JSON text.

    Raises:
        JournalError: it contains a value that JSON does not have.
    """
    try:
        return _ENCODER.encode(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise JournalError(f"this cannot be recorded as JSON: {error!s:.200}") from error


def loads(text: str) -> Any:
    """Return the plain data of JSON text.

    Raises:
        JournalError: the text is not JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JournalError(f"a record is not JSON: {error!s:.200}") from error


# -- codecs by declared types ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Codec:
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


_PLAIN = _Codec(_same, _same)


_codecs: dict[tuple[Any, bool], _Codec] = {}


def _codec(kind: Any, strict: bool = False) -> _Codec:
    """Return the codec of a declared type; made once for each type."""
    codec = _codecs.get((kind, strict))
    if codec is None:
        codec = _codecs[kind, strict] = _make_codec(kind, strict)
    return codec


def _make_codec(kind: Any, strict: bool) -> _Codec:
    origin = get_origin(kind)
    if kind in (Any, str, int, float, bool, type(None)) or kind is dict or origin in (dict, Literal):
        return _checked_codec(kind) if strict and kind is not Any else _PLAIN
    if origin is tuple:
        return _tuple_codec(get_args(kind), strict)
    if origin in (Union, UnionType):
        return _union_codec(get_args(kind), strict)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _Codec(lambda value: value.value, kind)
    if isinstance(kind, type) and is_dataclass(kind):
        codec = _class_codec(kind, strict)
        return _response_codec(codec, strict) if kind is ParsedResponse else codec
    raise TypeError(f"no rule says how {kind!r} is recorded")


def _checked_codec(kind: Any) -> _Codec:
    """Return a codec that reads plain values of a type only."""
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    expected = (int, float) if kind is float else object if choices else get_origin(kind) or kind

    def read(data: Any) -> Any:
        if not isinstance(data, expected) or (choices and data not in choices):
            raise TypeError(f"{data!r:.80} is not {' or '.join(map(repr, choices)) or expected}")
        return data

    return _Codec(_same, read)


def _tuple_codec(arguments: tuple[Any, ...], strict: bool) -> _Codec:
    if len(arguments) != 2 or arguments[1] is not ...:
        raise TypeError(f"no rule says how a tuple of {arguments!r} is recorded")
    inner = _codec(arguments[0], strict)

    def read(data: Any) -> tuple[Any, ...]:
        if strict and not isinstance(data, list):  # the characters of a text would be items too
            raise TypeError(f"{data!r:.80} is not a list")
        return tuple(inner.read(item) for item in data)

    return _Codec(lambda value: [inner.write(item) for item in value], read)


def _union_codec(arguments: tuple[Any, ...], strict: bool) -> _Codec:
    classes = [kind for kind in arguments if isinstance(kind, type) and is_dataclass(kind)]
    kinds = {kind.__name__: (kind, _codec(kind, strict)) for kind in classes}
    other_kinds = [kind for kind in arguments if not is_dataclass(kind) and kind is not type(None)]
    if len(kinds) > 1 and not other_kinds:

        def write(value: Any) -> Any:
            name = type(value).__name__
            return None if value is None else {TAG: name, **kinds[name][1].write(value)}

        def read(data: Any) -> Any:
            return None if data is None else kinds[data[TAG]][1].read(data)

        return _Codec(write, read)
    inner = [_codec(kind, strict) for kind in arguments if kind is not type(None)]
    if all(codec is _PLAIN for codec in inner):
        return _PLAIN
    if len(inner) > 1:
        raise TypeError(f"no rule says how one of {arguments!r} is recorded")
    (only,) = inner
    return _Codec(
        lambda value: None if value is None else only.write(value),
        lambda data: None if data is None else only.read(data),
    )


def _class_codec(kind: type, strict: bool) -> _Codec:
    hints = get_type_hints(kind)
    members = [
        (field.name, _default(field), _codec(hints[field.name], strict))
        for field in fields(kind)
        if field.init and field.metadata.get(RECORDED, True) and (kind, field.name) not in LEFT_OUT
    ]

    def write(value: Any) -> dict[str, Any]:
        data = {}
        for name, default, codec in members:
            member = getattr(value, name)
            # By type too: True equals 1, and 1 equals 1.0.
            if type(member) is not type(default) or member != default:
                data[name] = codec.write(member)
        return data

    names = {TAG, *(name for name, _, _ in members)}

    def read(data: Mapping[str, Any]) -> Any:
        if strict and not names.issuperset(data):
            raise ValueError(f"a {kind.__name__} has no {sorted(set(data) - names)[0]!r:.80}")
        return kind(**{name: codec.read(data[name]) for name, _, codec in members if name in data})

    return _Codec(write, read)


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    return MISSING if field.default_factory is MISSING else field.default_factory()


def _response_codec(whole: _Codec, strict: bool) -> _Codec:
    """Return a codec that writes calls once, though they are among the parts of a response too, as the same objects."""

    def write(value: ParsedResponse) -> dict[str, Any]:
        data: dict[str, Any] = whole.write(value)
        places = {id(call): at for at, call in enumerate(value.tool_calls)}
        if "parts" in data:
            data["parts"] = [
                {TAG: CALL, "at": places[id(part)]} if id(part) in places else data_part
                for part, data_part in zip(value.parts, data["parts"], strict=True)
            ]
        return data

    def read(data: Mapping[str, Any]) -> ParsedResponse:
        calls = [_codec(ToolCall, strict).read(call) for call in data.get("tool_calls", ())]
        parts = _codec(get_type_hints(ParsedResponse)["parts"], strict)
        response: ParsedResponse = whole.read({key: data[key] for key in data if key not in ("tool_calls", "parts")})
        # Set on the frozen response, so that its parts are the very objects among its calls.
        object.__setattr__(response, "tool_calls", tuple(calls))
        object.__setattr__(
            response,
            "parts",
            tuple(calls[part["at"]] if part[TAG] == CALL else parts.read([part])[0] for part in data.get("parts", ())),
        )
        return response

    return _Codec(write, read)

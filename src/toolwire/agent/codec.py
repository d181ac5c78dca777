"""What a run is recorded as: its values as JSON text, and back exactly, by the types that their fields declare.

Nothing in a record is run or imported when it is read. Members with their usual value are left out, so a field that
comes to a class later reads as its default from older records.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from time import time
from types import UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from toolwire.errors import JournalError
from toolwire.messages import ParsedResponse, ToolCall
from toolwire.policy.policy import REMEMBERED
from toolwire.policy.session import Session

T = TypeVar("T")

TAG: Final = "is"
"""The member that says which of several classes a value is of."""
CALL: Final = "call"
"""The tag of a part that is one of the response's calls; the member `at` says which."""
LEFT_OUT: Final = frozenset({(ParsedResponse, "raw")})
"""What is not recorded: the provider's own words, of which everything that matters was read."""

_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def to_json(value: Any) -> str:
    """A dataclass of this library as JSON text, in ASCII.

    Raises:
        JournalError: something in it is no JSON.
    """
    return dumps(_codec(type(value)).write(value))


def from_json(kind: type[T], text: str) -> T:
    """The value that `to_json` wrote.

    Raises:
        JournalError: the text is no record of this class.
    """
    return read(kind, loads(text))


def written(value: Any) -> Any:
    """A dataclass of this library as dicts and lists; not copied further down than its own classes go."""
    return _codec(type(value)).write(value)


def read(kind: type[T], data: Any) -> T:
    """The value that `written` took apart.

    Raises:
        JournalError: the data is no record of this class.
    """
    try:
        value: T = _codec(kind).read(data)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise JournalError(f"a record of {kind.__name__} cannot be read: {error!r:.200}") from error
    return value


def dumps(data: Any) -> str:
    """JSON text of plain data.

    Raises:
        JournalError: something in it is no JSON.
    """
    try:
        return _ENCODER.encode(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise JournalError(f"this cannot be recorded as JSON: {error!s:.200}") from error


def loads(text: str) -> Any:
    """Plain data of JSON text.

    Raises:
        JournalError: it is none.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JournalError(f"a record is no JSON: {error!s:.200}") from error


# -- by the types of fields ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Codec:
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


_PLAIN = _Codec(_same, _same)


_codecs: dict[Any, _Codec] = {}


def _codec(kind: Any) -> _Codec:
    """How values of a declared type are written and read."""
    codec = _codecs.get(kind)
    if codec is None:
        codec = _codecs[kind] = _made(kind)
    return codec


def _made(kind: Any) -> _Codec:
    origin = get_origin(kind)
    if kind in (Any, str, int, float, bool, type(None)) or kind is dict or origin in (dict, Literal):
        return _PLAIN
    if origin is tuple:
        return _sequence(get_args(kind))
    if origin in (Union, UnionType):
        return _union(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _Codec(lambda value: value.value, kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return _response(_of_class(kind)) if kind is ParsedResponse else _of_class(kind)
    raise TypeError(f"nothing says how {kind!r} is recorded")


def _sequence(arguments: tuple[Any, ...]) -> _Codec:
    if len(arguments) != 2 or arguments[1] is not ...:
        raise TypeError(f"nothing says how a tuple of {arguments!r} is recorded")
    inner = _codec(arguments[0])
    return _Codec(
        lambda value: [inner.write(one) for one in value], lambda data: tuple(inner.read(one) for one in data)
    )


def _union(arguments: tuple[Any, ...]) -> _Codec:
    kinds = {kind.__name__: (kind, _codec(kind)) for kind in arguments if isinstance(kind, type) and is_dataclass(kind)}
    others = [kind for kind in arguments if not is_dataclass(kind) and kind is not type(None)]
    if len(kinds) > 1 and not others:

        def write(value: Any) -> Any:
            name = type(value).__name__
            return None if value is None else {TAG: name, **kinds[name][1].write(value)}

        def read(data: Any) -> Any:
            return None if data is None else kinds[data[TAG]][1].read(data)

        return _Codec(write, read)
    inner = [_codec(kind) for kind in arguments if kind is not type(None)]
    if all(one is _PLAIN for one in inner):
        return _PLAIN
    if len(inner) > 1:
        raise TypeError(f"nothing says how one of {arguments!r} is recorded")
    (only,) = inner
    return _Codec(
        lambda value: None if value is None else only.write(value),
        lambda data: None if data is None else only.read(data),
    )


def _of_class(kind: type) -> _Codec:
    hints = get_type_hints(kind)
    known = [
        (one.name, _default(one), _codec(hints[one.name]))
        for one in fields(kind)
        if one.init and (kind, one.name) not in LEFT_OUT
    ]

    def write(value: Any) -> dict[str, Any]:
        made = {}
        for name, default, codec in known:
            one = getattr(value, name)
            if type(one) is not type(default) or one != default:
                made[name] = codec.write(one)
        return made

    def read(data: Mapping[str, Any]) -> Any:
        return kind(**{name: codec.read(data[name]) for name, _, codec in known if name in data})

    return _Codec(write, read)


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    return MISSING if field.default_factory is MISSING else field.default_factory()


def _response(whole: _Codec) -> _Codec:
    """A response whose parts are its calls, the same objects: they are written once, and read back as the same."""

    def write(value: ParsedResponse) -> dict[str, Any]:
        data: dict[str, Any] = whole.write(value)
        places = {id(call): at for at, call in enumerate(value.tool_calls)}
        if "parts" in data:
            data["parts"] = [
                {TAG: CALL, "at": places[id(part)]} if id(part) in places else made
                for part, made in zip(value.parts, data["parts"], strict=True)
            ]
        return data

    def read(data: Mapping[str, Any]) -> ParsedResponse:
        calls = [_codec(ToolCall).read(one) for one in data.get("tool_calls", ())]
        parts = _codec(get_type_hints(ParsedResponse)["parts"])
        made: ParsedResponse = whole.read({key: data[key] for key in data if key not in ("tool_calls", "parts")})
        object.__setattr__(made, "tool_calls", tuple(calls))
        object.__setattr__(
            made,
            "parts",
            tuple(calls[one["at"]] if one[TAG] == CALL else parts.read([one])[0] for one in data.get("parts", ())),
        )
        return made

    return _Codec(write, read)


# -- sessions --------------------------------------------------------------------------------------------------------

RAN: Final = "_ran"
"""The field of a session that only grows: the times of calls, by name. A record holds those that came to it."""
MOMENTARY: Final = frozenset({"_busy"})
"""What is not recorded: calls that run in one process run in no other."""


class SessionRecord:
    """A session as records hold it: what has changed since the one before.

    Times of calls are kept as the wall's, since another process has another clock.

    Args:
        session: what is recorded, and restored into.
        clock: seconds, as the session's own times count them.
        wall: seconds, as every process counts them.
    """

    def __init__(self, session: Session, clock: Callable[[], float], wall: Callable[[], float] = time) -> None:
        self._session = session
        self._clock = clock
        self._wall = wall
        self._last: dict[str, Any] = {}
        self._known: dict[str, int] = {}  # how many times of a name there were

    def changes(self) -> dict[str, Any]:
        """What has changed since this was asked before; everything, the first time."""
        made: dict[str, Any] = {}
        for one in fields(self._session):
            if one.name in MOMENTARY:
                continue
            value = getattr(self._session, one.name)
            if one.name == RAN:
                if self._session.handed_on:
                    continue  # these are recorded with the session that it comes from
                if new := self._new_calls(value):
                    made[RAN] = new
                continue
            data = _plain(value)
            if one.name not in self._last or self._last[one.name] != data:
                self._last[one.name] = made[one.name] = data
        return made

    def unkept(self, changes: Mapping[str, Any]) -> None:
        """These changes could not be kept; they are told again."""
        for name, data in changes.items():
            if name != RAN:
                self._last.pop(name, None)
                continue
            for called, times in data.items():
                self._known[called] -= len(times)

    def reset(self) -> None:
        """Make the session a new one."""
        new = type(self._session)()
        for one in fields(new):
            setattr(self._session, one.name, getattr(new, one.name))

    def restore(self, changes: Iterable[Mapping[str, Any]]) -> None:
        """Put what was recorded back into the session, in the order of the records.

        What only grows is the most of what the records say, since sessions that are of one user share it.

        Raises:
            JournalError: the records are of something else.
        """
        kinds = {one.name: type(getattr(self._session, one.name)) for one in fields(self._session)}
        past = self._clock() - self._wall()
        for change in changes:
            for name, data in change.items():
                kind = kinds.get(name)
                try:
                    if kind is None:
                        raise ValueError(name)
                    if name == RAN:
                        for called, times in data.items():
                            getattr(self._session, name).setdefault(called, []).extend(at + past for at in times)
                    else:
                        self._put(name, kind, data)
                except (AttributeError, TypeError, ValueError) as error:
                    raise JournalError(f"the record of a session cannot be read: {error!r:.200}") from error
        self.changes()  # they are known

    def _put(self, name: str, kind: type, data: Any) -> None:
        value = getattr(self._session, name)
        if isinstance(value, set):
            value |= set(data)
        elif isinstance(value, dict):
            for key, number in data.items():
                value[key] = max(value.get(key, 0), number)
        else:
            setattr(self._session, name, kind(data))

    def _new_calls(self, ran: Mapping[str, list[float]]) -> dict[str, list[float]]:
        past = self._clock() - self._wall()
        new: dict[str, list[float]] = {}
        for name, times in ran.items():
            count = len(times) - self._known.get(name, 0)
            if count < 0:  # the oldest were forgotten
                count += REMEMBERED
            if count:
                new[name] = [at - past for at in times[-count:]]
            self._known[name] = len(times)
        return new


def _plain(value: Any) -> Any:
    """The value of a session's field as JSON; the kinds that it may be are few."""
    match value:
        case bool() | str() | None:
            return value
        case Enum():
            return value.value
        case int() | float():
            return value
        case Counter() | dict():
            return dict(value)
        case set() | frozenset():
            return sorted(value)
        case tuple() | list():
            return list(value)
    raise TypeError(f"nothing says how a session's {type(value).__name__} is recorded")

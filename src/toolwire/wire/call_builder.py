"""One call under construction: what its leaves find out goes in, its events come out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Self

from toolwire.events import ArgumentsDelta, CallEnd, CallStart, Event
from toolwire.messages import ToolCall, call_id
from toolwire.schema.shape import ANY, Shape
from toolwire.text.delimited_scanner import TokenScanner
from toolwire.text.json_scanner import FastTries, JsonScanner, read_json
from toolwire.text.json_text import JsonError, decode, encodable, json_text, within_limits
from toolwire.text.python_scanner import KeywordScanner
from toolwire.wire.leaf_scanners import JsonValue, escape


class Unreadable(Exception):
    """A block is not what it began as; raised inside the parser only, at a character."""

    def __init__(self, message: str, kind: str = "malformed") -> None:
        super().__init__(message)
        self.kind = kind


class EndOfText(Exception):
    """The text is over; raised inside the parser only."""


def decoded(text: str) -> Any:
    """Decode JSON text that a leaf let through; raises Unreadable where that cannot be done."""
    try:
        return decode(text)
    except JsonError as error:
        raise Unreadable(str(error)) from error


def holds(shape: Shape) -> bool:
    """Whether a JSON value for this place waits for its end: only then its type, and so its text, is known."""
    return shape.typed and not shape.keeps_text


class CallBuilder:
    """A call being read.

    Attributes:
        name, id, server: what was read so far.
        index: its index in the message, once it was announced; else -1.
        arguments: values read whole.
        repairs: names of the repairs made.
        payload: the arguments are all there.
        pseudo: its name stands for no call: it is read, and nothing comes of it.
    """

    __slots__ = (
        "_deltas", "_early", "_emit", "_given", "_json", "_known", "_opened", "_repair", "_seed", "_waiting",
        "_written", "arguments", "id", "index", "name", "payload", "pseudo", "repairs", "server", "shape",
    )  # fmt: skip

    def __init__(
        self,
        emit: Callable[[Event], None],
        known: Callable[[str], Shape | None],
        *,
        deltas: bool,
        repair: bool,
        seed: str,
    ) -> None:
        self._emit = emit
        self._known = known
        self._deltas = deltas
        self._repair = repair
        self._seed = seed
        self._opened = self._written = self._given = False
        self._early: list[str] = []  # arguments' text from before the call was announced
        self._json: Arguments | None = None
        self._waiting: tuple[Any, str] | None = None  # arguments that were read before the name
        self.name = self.id = self.server = ""
        self.index = -1
        self.shape: Shape = ANY
        self.arguments: dict[str, Any] = {}
        self.repairs: list[str] = []
        self.payload = self.pseudo = False

    # -- repairs -------------------------------------------------------------------------------------------------

    def repaired(self, name: str, otherwise: str) -> None:
        """Record a repair, or refuse to make it."""
        if not self._repair:
            raise Unreadable(otherwise)
        if name not in self.repairs:
            self.repairs.append(name)

    def adopt(self, repairs: Iterable[str]) -> None:
        """Record repairs that a scanner made, which makes none where none is allowed."""
        for repair in repairs:
            self.repaired(repair, "")

    def unescaped(self, repairs: Iterable[str]) -> None:
        """Record what stood unescaped in a value, or refuse it."""
        for repair in repairs:
            self.repaired(repair, "a special character stands unescaped in a value")

    def read_json(self, text: str) -> Any:
        """JSON text inside a value; repairs are recorded. Raises ValueError if it is none."""
        value, repairs = read_json(text, repair=self._repair)
        self.adopt(repairs)
        return value

    @property
    def repairing(self) -> bool:
        """Whether repairs are allowed."""
        return self._repair

    # -- the name ------------------------------------------------------------------------------------------------

    def named(self, name: str) -> None:
        """The tool's name was read."""
        if self.name:
            raise Unreadable("the name is given twice")
        if not name:
            raise Unreadable("the name of the tool is missing", "missing_name")
        if not encodable(name):
            raise Unreadable("the name of the tool holds half of a surrogate pair")
        self.name = name
        self.shape = self._known(name) or ANY

    def silence(self) -> None:
        """The name stands for no call."""
        self.pseudo = True
        self._deltas = False

    def start(self, index: int) -> None:
        """Announce the call."""
        self.index = index
        self.id = self.id or call_id(self._seed, index, self.name)
        self._emit(CallStart(index, self.name, self.id))
        if self._early:
            self._emit(ArgumentsDelta(index, "".join(self._early)))
            self._early.clear()

    # -- arguments as one JSON object ----------------------------------------------------------------------------

    def given(self) -> None:
        """All arguments begin here; they may be given once."""
        if self._given:
            raise Unreadable("the arguments are given twice")
        self._given = True

    def json_arguments(self, fast: FastTries | None) -> Arguments:
        """A leaf that reads the arguments, as JSON, and streams them."""
        return self._arguments(_JsonArguments(repair=self._repair, fast=fast))

    def keyword_arguments(self) -> Arguments:
        """The same for the keyword arguments of a Python call, parentheses included."""
        return self._arguments(_KeywordArguments())

    def token_arguments(self, token: str) -> Arguments:
        """The same for arguments whose strings stand between tokens."""
        return self._arguments(_TokenArguments(token))

    def _arguments(self, scanner: _Holding) -> Arguments:
        self.given()
        self._json = Arguments(self, scanner)
        return self._json

    def json_delta(self, text: str) -> None:
        """More of the arguments' JSON text."""
        self._written = True
        if not self._deltas:
            return
        if self.index < 0:
            self._early.append(text)
        else:
            self._emit(ArgumentsDelta(self.index, text))

    def whole(self, value: Any, text: str = "") -> None:
        """All arguments at once, as a value (and its JSON text); they wait if the name is not known yet."""
        if not isinstance(value, dict):
            raise Unreadable("the arguments are not a JSON object")
        if not self.name:
            self._waiting = (value, text)
            return
        changed: dict[str, Any] = {}
        for key, item in value.items():
            shape = self.shape.property(key)
            if holds(shape) and (coerced := shape.coerce(item, self.read_json)) is not item:
                changed[key] = coerced
        if changed:
            self.coerced()
            value, text = {**value, **changed}, ""
        self.arguments = value
        self.json_delta(text or json_text(value))

    def coerced(self) -> None:
        """A value was coerced to the type that the schema wants."""
        self.repaired("coerced", "the arguments do not have the types that the tool's schema wants")

    def settle(self) -> None:
        """Use arguments that were read before the name was."""
        if self._waiting is not None and self.name:
            value, text = self._waiting
            self._waiting = None
            self.whole(value, text)

    @property
    def has_arguments(self) -> bool:
        """Whether any arguments were read before the name."""
        return self._waiting is not None

    # -- arguments one by one ------------------------------------------------------------------------------------

    def open(self, key: str, keep: Callable[[str], None]) -> Callable[[str], None]:
        """A string value begins that is passed on as it arrives; where its text goes, which is kept too."""
        self._check_key(key)
        self._key(key, '"')
        if not self._deltas:
            return keep
        emit, index = self._emit, self.index

        def put(text: str) -> None:
            keep(text)
            emit(ArgumentsDelta(index, escape(text)[1:-1]))

        return put

    def shut(self, key: str, value: str) -> None:
        """That string is complete."""
        if not encodable(value):
            raise Unreadable(f"the value of {key[:60]!r} holds half of a surrogate pair")
        self.arguments[key] = value
        if self._deltas:
            self._emit(ArgumentsDelta(self.index, '"'))

    def put(self, key: str, value: Any) -> None:
        """A value that is there as a whole."""
        self._check_key(key)
        if not within_limits(value):
            raise Unreadable(f"the value of {key[:60]!r} holds half of a surrogate pair")
        if self._deltas:
            self._key(key, json.dumps(value, ensure_ascii=False))
        self.arguments[key] = value

    @staticmethod
    def _check_key(key: str) -> None:
        if not encodable(key):
            raise Unreadable("the name of a parameter holds half of a surrogate pair")

    def _key(self, key: str, after: str) -> None:
        if self._deltas:
            before = ", " if self._opened else "{"
            self._emit(ArgumentsDelta(self.index, f"{before}{escape(key)}: {after}"))
        self._opened = True

    # -- the end -------------------------------------------------------------------------------------------------

    def complete(self) -> None:
        """The payload is all there."""
        if not encodable(self.id) or not encodable(self.server):
            raise Unreadable("the id or the server of the call holds half of a surrogate pair")
        if self._opened:
            self.json_delta("}")
        elif not self._written:
            self.json_delta("{}")
        self.payload = True

    def end(self, raw: str, format_name: str, confidence: float, *, complete: bool) -> None:
        """Emit the call."""
        if not complete and self._json is not None and not self._json.done:
            self.arguments = self._json.so_far()
        call = ToolCall(
            self.name, self.arguments, self.id, self.server, raw, format_name, tuple(self.repairs), confidence
        )
        self._emit(CallEnd(self.index, call, complete))


class _Holding(JsonScanner):
    """A scanner of arguments that holds back the values whose JSON form their type decides."""

    builder: CallBuilder
    shape: Shape
    hold: Shape | None
    coerced: bool
    written: int  # characters let through
    upto: int  # of these, up to the end of the last whole value
    pausing: bool  # stop after the first key
    first: str | None  # that key, where it stopped

    def begin(self, builder: CallBuilder, shape: Shape) -> Self:
        """Say what the arguments are for."""
        self.builder = builder
        self.shape = shape
        self.hold = None
        self.coerced = False
        self.written = self.upto = 0
        self.pausing = False
        self.first = None
        return self

    def on_top_key(self, key: str) -> None:
        if self.pausing:
            self.pausing, self.first, self.done = False, key, True
        shape = self.shape.property(key)
        self.hold = shape if holds(shape) else None

    def on_colon(self) -> None:
        if self.hold is not None and len(self.stack) == 1:
            self.out = []

    def on_top_value(self) -> None:
        if self.hold is not None:
            text = "".join(self.out)
            self.out = self.ready
            try:
                value = decode(text)
            except JsonError as error:
                self.error = str(error)
                return
            coerced = self.hold.coerce(value, self.builder.read_json)
            self.hold = None
            if coerced is not value:
                self.coerced = True
                text = " " * (len(text) - len(text.lstrip())) + json.dumps(coerced, ensure_ascii=False)
            self.out.append(text)
        self.upto = self.written + sum(map(len, self.ready))


class _JsonArguments(_Holding):
    """A JSON object."""


class _KeywordArguments(_Holding, KeywordScanner):
    """Keyword arguments in Python."""


class _TokenArguments(_Holding, TokenScanner):
    """An object whose strings stand between tokens."""


class Arguments(JsonValue):
    """The arguments as one JSON object, streamed into the call."""

    __slots__ = ("_builder",)

    scanner: _Holding

    def __init__(self, builder: CallBuilder, scanner: _Holding) -> None:
        super().__init__(scanner.begin(builder, builder.shape))
        self._builder = builder

    def let(self, text: str) -> None:
        """More valid JSON text was let through."""
        scanner = self.scanner
        scanner.written += len(text)
        self.text.add(text)
        if not scanner.whole:
            self._builder.json_delta(text)

    def until_key(self) -> Self:
        """Read up to the first key only, which is the value then; None if all of the arguments were read."""
        self.scanner.pausing = True
        return self

    def rest(self) -> Self:
        """Read what follows the first key."""
        self.scanner.done = self.done = False
        self.value = None
        return self

    def finish(self) -> None:
        """The arguments are complete, or their first key is."""
        scanner = self.scanner
        if scanner.first is not None:
            self.value, scanner.first = scanner.first, None
            return
        builder = self._builder
        text = self.text.take()
        builder.adopt(scanner.repairs)
        try:
            if scanner.whole:
                builder.whole(scanner.value, text)
                return
            builder.arguments = decode(text)
            if scanner.coerced:
                builder.coerced()
        except (JsonError, Unreadable) as error:
            self.error = str(error)

    def so_far(self) -> dict[str, Any]:
        """The values that were read whole before the text was cut; none where they cannot be decoded."""
        if not self.scanner.upto or not self.text:
            return {}
        try:
            value: dict[str, Any] = decode(self.text.take()[: self.scanner.upto] + "}")
        except JsonError:
            return {}
        return value

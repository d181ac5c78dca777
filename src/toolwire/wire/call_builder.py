"""One call under construction: takes what the leaves read, and emits the call's events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from toolwire.events import ArgumentsDelta, CallEnd, CallStart, Event
from toolwire.messages import ToolCall, call_id
from toolwire.schema.shape import ANY, Shape
from toolwire.text.delimited_scanner import DelimitedScanner
from toolwire.text.json_reading import read_json
from toolwire.text.json_scanner import JsonScanner
from toolwire.text.json_text import FastJsonReader, JsonError, decode, encodable, json_text, within_limits
from toolwire.text.python_scanner import KeywordScanner
from toolwire.tools import ToolDefinition
from toolwire.wire.call_members import arguments_among, lost_argument
from toolwire.wire.leaf_scanners import JsonValue, escape


class Unreadable(Exception):
    """Raised at the character where a block turns out not to be what it began as; never leaves the parser."""

    def __init__(self, message: str, kind: str = "malformed") -> None:
        super().__init__(message)
        self.kind = kind


class EndOfText(Exception):
    """Raised where the text ends; never leaves the parser."""


def decode_json(text: str) -> Any:
    """Decode JSON text that a leaf let through; raise Unreadable where a limit forbids it."""
    try:
        return decode(text)
    except JsonError as error:
        raise Unreadable(str(error)) from error


def waits_for_end(shape: Shape) -> bool:
    """Return whether a JSON value has to wait for its end, because only its type decides how its text is written."""
    return shape.typed and not shape.keeps_text


class CallBuilder:
    """A call being read.

    Attributes:
        name, id, server: read so far; "" where not.
        index: index of the call in the message; -1 until the call is announced.
        arguments: values read to their end.
        members: members of the call's object that have no meaning in the format.
        repairs: names of the repairs made.
        payload: name and arguments are complete.
        pseudo: the name stands for no call, so nothing is emitted.
    """

    __slots__ = (
        "_arguments_begun", "_deltas", "_early_text", "_emit", "_json", "_object_open", "_repair", "_seed",
        "_text_written", "_tools", "_waiting", "arguments", "id", "index", "members", "name", "payload", "pseudo",
        "refusal", "repairs", "server", "shape",
    )  # fmt: skip

    def __init__(
        self,
        emit: Callable[[Event], None],
        tools: Mapping[str, ToolDefinition],
        *,
        deltas: bool,
        repair: bool,
        seed: str,
    ) -> None:
        self._emit = emit
        self._tools = tools
        self._deltas = deltas
        self._repair = repair
        self._seed = seed
        self._object_open = self._text_written = self._arguments_begun = False
        self._early_text: list[str] = []  # read before the call could be announced
        self._json: Arguments | None = None
        self._waiting: tuple[Any, str] | None = None  # arguments that were read before the name
        self.name = self.id = self.server = ""
        self.index = -1
        self.shape: Shape = ANY
        self.arguments: dict[str, Any] = {}
        self.members: dict[str, Any] = {}
        self.repairs: list[str] = []
        self.payload = self.pseudo = False
        self.refusal = ""

    # -- repairs -------------------------------------------------------------------------------------------------

    def record_repair(self, name: str, otherwise: str) -> None:
        """Record a repair; raise Unreadable with the message `otherwise` where repairs are not allowed."""
        if not self._repair:
            raise Unreadable(otherwise)
        if name not in self.repairs:
            self.repairs.append(name)

    def record_repairs(self, repairs: Iterable[str]) -> None:
        """Record the repairs of a scanner, which makes none where repairs are not allowed."""
        for repair in repairs:
            self.record_repair(repair, "")

    def record_unescaped(self, repairs: Iterable[str]) -> None:
        """Record special characters that are not escaped in a value; raise Unreadable where repairs are not allowed."""
        for repair in repairs:
            self.record_repair(repair, "a special character is not escaped in a value")

    def read_json(self, text: str) -> Any:
        """Read JSON text inside a value and record its repairs; raise ValueError if it is not JSON."""
        value, repairs = read_json(text, repair=self._repair)
        self.record_repairs(repairs)
        return value

    @property
    def may_repair(self) -> bool:
        """True if repairs are allowed."""
        return self._repair

    # -- the name ------------------------------------------------------------------------------------------------

    def set_name(self, name: str) -> None:
        """Set the name of the tool."""
        if self.name:
            raise Unreadable("the name is given twice")
        if not name:
            raise Unreadable("the name of the tool is missing", "missing_name")
        if not encodable(name):
            raise Unreadable("the name of the tool contains half of a surrogate pair")
        self.name = name
        definition = self._tools.get(name)
        self.shape = definition.shape if definition is not None else ANY

    def silence(self) -> None:
        """Treat the call as a pseudo call."""
        self.pseudo = True
        self._deltas = False

    def start(self, index: int) -> None:
        """Announce the call."""
        self._refuse_surrogates()
        self.index = index
        # A format may still write an id after the name. The end of the call then has that id.
        self.id = self.id or call_id(self._seed, index, self.name)
        self._emit(CallStart(index, self.name, self.id))
        if self._early_text:
            self._emit(ArgumentsDelta(index, "".join(self._early_text)))

    # -- arguments as one JSON object ----------------------------------------------------------------------------

    def begin_arguments(self) -> None:
        """Raise Unreadable if the arguments were given before."""
        if self._arguments_begun:
            raise Unreadable("the arguments are given twice")
        self._arguments_begun = True

    def json_arguments(self, fast: FastJsonReader | None) -> Arguments:
        """Return a leaf that reads the arguments as JSON and streams them."""
        return self._arguments(_JsonArguments(repair=self._repair, fast=fast))

    def keyword_arguments(self) -> Arguments:
        """Return such a leaf for the keyword arguments of a Python call, parentheses included."""
        return self._arguments(_KeywordArguments(repair=self._repair))

    def token_arguments(self, token: str) -> Arguments:
        """Return such a leaf for arguments whose strings are between tokens."""
        return self._arguments(_TokenArguments(token))

    def _arguments(self, scanner: _ArgumentScanner) -> Arguments:
        self.begin_arguments()
        self._json = Arguments(self, scanner)
        return self._json

    def json_delta(self, text: str) -> None:
        """Emit more of the arguments' JSON text, or keep it until the call is announced."""
        self._text_written = True
        if not self._deltas:
            return
        if self.index < 0:
            self._early_text.append(text)
        else:
            self._emit(ArgumentsDelta(self.index, text))

    def set_arguments(self, value: Any, text: str = "") -> None:
        """Set all arguments at once, from a value and its JSON text; they wait while the name is not known."""
        if not isinstance(value, dict):
            raise Unreadable("the arguments are not a JSON object")
        if not self.name:
            self._waiting = (value, text)
            return
        if not text and not within_limits(value):  # the scanner has checked what it has read as JSON
            raise Unreadable("the arguments contain half of a surrogate pair")
        # Coerce exactly the values that the streaming scanner holds back: neither the chunking nor the order of name
        # and arguments may change the result.
        changed: dict[str, Any] = {}
        for key, item in value.items():
            shape = self.shape.property(key)
            if waits_for_end(shape) and (coerced := shape.coerce(item, self.read_json)) is not item:
                changed[key] = coerced
        if changed:
            self.record_coerced()
            value, text = {**value, **changed}, ""
        self.arguments = value
        self.json_delta((text or json_text(value)) if self._deltas else "")

    def record_coerced(self) -> None:
        """Record that a value was coerced to the type that the schema wants."""
        self.record_repair("coerced", "the arguments do not have the types that the tool's schema wants")

    def use_waiting_arguments(self) -> None:
        """Set the arguments that were read before the name was known."""
        if self._waiting is not None and self.name:
            value, text = self._waiting
            self._waiting = None
            self.set_arguments(value, text)

    @property
    def has_arguments(self) -> bool:
        """True if arguments were read, at least an empty object."""
        return self._arguments_begun or self._object_open or self._waiting is not None

    def use_members(self) -> None:
        """Take members as arguments if there are no others."""
        if not self.members or self.has_arguments or not self._repair:
            return
        read = arguments_among(self.members, self.shape.property_names)
        if read is not None:
            arguments, keys, repair = read
            self.begin_arguments()
            self.set_arguments(arguments)
            self.record_repair(repair, "")
            for key in keys:
                del self.members[key]

    @property
    def has_waiting_arguments(self) -> bool:
        """True if arguments wait for the name."""
        return self._waiting is not None

    # -- arguments one by one ------------------------------------------------------------------------------------

    def refuse(self, why: str) -> None:
        """Refuse the call, for a reason found before its end; reading goes on, and fails where the call is complete.

        Were the rest of the call content, a call that one of its values quotes would be read as a call.
        """
        self.refusal = self.refusal or why

    def refuse_repeat(self, key: str, repeated: bool) -> None:
        """Refuse the call if a parameter is given twice."""
        if repeated:
            self.refuse(f"the parameter {key[:60]!r} is given twice")

    def _is_repeat(self, key: str) -> bool:
        """Return whether a refused call gives this parameter again; it shows the first of the values."""
        return bool(self.refusal) and key in self.arguments

    def open_string(self, key: str, keep: Callable[[str], None]) -> Callable[[str], None]:
        """Begin a string value that is streamed; return a function that takes its text, also for `keep`."""
        self._check_key(key)
        if self._is_repeat(key):
            return keep
        self._key(key, '"')
        if not self._deltas:
            return keep
        emit, index = self._emit, self.index

        def put(text: str) -> None:
            keep(text)
            emit(ArgumentsDelta(index, escape(text)[1:-1]))

        return put

    def close_string(self, key: str, value: str) -> None:
        """End the string value."""
        if not encodable(value):
            raise Unreadable(f"the value of {key[:60]!r} contains half of a surrogate pair")
        if self._is_repeat(key):
            return
        self.arguments[key] = value
        if self._deltas:
            self._emit(ArgumentsDelta(self.index, '"'))

    def put_value(self, key: str, value: Any) -> None:
        """Add a value that was read to its end."""
        self._check_key(key)
        if not within_limits(value):
            raise Unreadable(f"the value of {key[:60]!r} contains half of a surrogate pair")
        if self._is_repeat(key):
            return
        if self._deltas:
            self._key(key, json.dumps(value, ensure_ascii=False))
        self.arguments[key] = value

    @staticmethod
    def _check_key(key: str) -> None:
        if not encodable(key):
            raise Unreadable("the name of a parameter contains half of a surrogate pair")

    def _key(self, key: str, after: str) -> None:
        if self._deltas:
            before = ", " if self._object_open else "{"
            self._emit(ArgumentsDelta(self.index, f"{before}{escape(key)}: {after}"))
        self._object_open = True

    # -- the end -------------------------------------------------------------------------------------------------

    def complete_payload(self) -> None:
        """Mark the payload as complete; raise Unreadable for a refused call."""
        self._refuse_surrogates()
        if self.refusal:
            raise Unreadable(self.refusal)
        # Run without them, the tool would do something else than the model wrote.
        if self.members and not self.arguments and (parameters := self.shape.property_names):
            if declared := lost_argument({key: self.members[key] for key in parameters if key in self.members}):
                raise Unreadable(f"{declared[:60]!r} is beside the arguments of {self.name!r}, which are empty")
            if not self.has_arguments and (lost := lost_argument(self.members)):
                raise Unreadable(f"{lost[:60]!r} is not a parameter of {self.name!r}, and there are no arguments")
        if self._object_open:
            self.json_delta("}")
        elif not self._text_written:
            self.json_delta("{}")
        self.payload = True

    def _refuse_surrogates(self) -> None:
        """Refuse the call if its id or server has half of a surrogate pair, which no event can contain."""
        if not encodable(self.id) or not encodable(self.server):
            self.refuse("the id or the server of the call contains half of a surrogate pair")
            self.id, self.server = call_id(self._seed, self.index, self.name) if self.index >= 0 else "", ""

    def end(self, raw: str, format_name: str, confidence: float, *, complete: bool) -> None:
        """Emit the end of the call."""
        # A call that was cut shows the values that were read to their end, and no half of one.
        if not complete and self._json is not None and not self._json.done:
            self.arguments = self._json.partial_arguments()
        self._json = None  # it refers to this object, which only the garbage collector would free
        call = ToolCall(
            self.name, self.arguments, self.id, self.server, raw, format_name, tuple(self.repairs), confidence
        )
        self._emit(CallEnd(self.index, call, complete))


class _ArgumentScanner(JsonScanner):
    """A scanner of arguments that holds back the values whose JSON text their type decides."""

    builder: CallBuilder
    shape: Shape
    hold: Shape | None
    coerced: bool
    written: int  # characters let through
    whole_values_end: int  # number of these up to the end of the last complete value
    pausing: bool  # stop after the first key
    first: str | None  # that key, once the scanner has stopped there

    def begin(self, builder: CallBuilder, shape: Shape) -> Self:
        """Set the call that takes the arguments, and their shape."""
        self.builder = builder
        self.shape = shape
        self.hold = None
        self.coerced = False
        self.written = self.whole_values_end = 0
        self.pausing = False
        self.first = None
        return self

    def on_top_key(self, key: str) -> None:
        if self.pausing:
            # To be done is how a scanner returns control at once; `Arguments.rest` undoes it.
            self.pausing, self.first, self.done = False, key, True
        shape = self.shape.property(key)
        self.hold = shape if waits_for_end(shape) else None

    def on_colon(self) -> None:
        if self.hold is not None and len(self.stack) == 1:
            self.out = []  # the text of the value is collected here, and not let through

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
                # The white space before a value was part of the text held back, and deltas keep it.
                text = " " * (len(text) - len(text.lstrip())) + json.dumps(coerced, ensure_ascii=False)
            self.out.append(text)
        self.whole_values_end = self.written + sum(map(len, self.ready))


class _JsonArguments(_ArgumentScanner):
    """A JSON object."""


class _KeywordArguments(_ArgumentScanner, KeywordScanner):
    """Keyword arguments in Python."""


class _TokenArguments(_ArgumentScanner, DelimitedScanner):
    """An object whose strings are between tokens."""

    containers: list[Shape]  # shapes of the objects and lists that are open
    value_shape: Shape  # of the value that comes next

    def begin(self, builder: CallBuilder, shape: Shape) -> Self:
        self.containers, self.value_shape = [], shape
        return super().begin(builder, shape)

    def word(self, text: str) -> str:
        """Return the JSON text of a word without tokens, which is text where the schema admits nothing else."""
        shape = self.value_shape
        if shape.typed and shape.kinds == {"string"}:
            return json.dumps(text.rstrip(), ensure_ascii=False)
        return super().word(text)

    def _open(self, bracket: str, level: set[str] | None, state: int, pos: int) -> int:
        self.containers.append(self.value_shape)
        if bracket == "[":
            self.value_shape = self.value_shape.items
        return super()._open(bracket, level, state, pos)

    def _key_end(self, key: str) -> None:
        self.value_shape = self.containers[-1].property(key)
        super()._key_end(key)

    def _close(self, c: str, pos: int) -> int:
        self.containers.pop()
        if self.containers and self.stack[-2] is None:
            self.value_shape = self.containers[-1].items
        return super()._close(c, pos)


class Arguments(JsonValue):
    """A leaf that streams arguments, written as one JSON object, into the call."""

    __slots__ = ("_builder",)

    scanner: _ArgumentScanner

    def __init__(self, builder: CallBuilder, scanner: _ArgumentScanner) -> None:
        super().__init__(scanner.begin(builder, builder.shape))
        self._builder = builder

    def let_through(self, text: str) -> None:
        """Emit more of the arguments' text."""
        scanner = self.scanner
        scanner.written += len(text)
        self.text.add(text)
        # A scanner that read the value in one go emits it at the end, once it is known whether a value is coerced.
        if not scanner.whole:
            self._builder.json_delta(text)

    def until_key(self) -> Self:
        """Stop after the first key, which is the value then; None if there is no key."""
        self.scanner.pausing = True
        return self

    def rest(self) -> Self:
        """Continue after the first key."""
        self.scanner.done = self.done = False
        self.value = None
        return self

    def finish(self) -> None:
        """Set the arguments, or the first key."""
        scanner = self.scanner
        if scanner.first is not None:
            self.value, scanner.first = scanner.first, None
            return
        builder = self._builder
        text = self.text.take()
        builder.record_repairs(scanner.repairs)
        try:
            if scanner.whole:
                builder.set_arguments(scanner.value, text)
                return
            builder.arguments = decode(text)
            if scanner.coerced:
                builder.record_coerced()
        except (JsonError, Unreadable) as error:
            self.error = str(error)

    def partial_arguments(self) -> dict[str, Any]:
        """Return the values that were read to their end before the text was cut."""
        if not self.scanner.whole_values_end or not self.text:
            return {}
        try:
            value: dict[str, Any] = decode(self.text.take()[: self.scanner.whole_values_end] + "}")
        except JsonError:
            return {}
        return value

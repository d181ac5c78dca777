"""What an API's answer says, piece by piece -> events.

Every API's reader tells an `Assembler` of text, reasoning, calls and the end; the rules that hold for all of them
stand here. Names and ids are set once. No arguments at all (nothing, white space, `null`) are `{}`. Arguments stream
as the JSON text that is let through, and only what is whole and unambiguous becomes a complete call.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    Passed,
    ProblemFound,
    ReasoningDelta,
    ReasoningEnd,
    UsageCounted,
)
from toolwire.messages import (
    MESSAGE_LIMIT,
    FinishReason,
    OpaquePart,
    Problem,
    ProblemKind,
    ReasoningPart,
    ToolCall,
    Usage,
    call_id,
)
from toolwire.text.json_scanner import FastTries, JsonScanner
from toolwire.text.json_text import JsonError, decode, encodable, json_text, within_limits
from toolwire.wire.arguments import read_arguments

_NOTHING = frozenset(("", "null"))
_SPACE = " \t\r\n"


class _Arguments(JsonScanner):
    """Reads a call's arguments, and knows how much of them is whole."""

    __slots__ = ("taken", "whole_until")

    def __init__(self) -> None:
        super().__init__(fast=FastTries())
        self.taken = 0  # pieces that were let through and taken
        self.whole_until = 0  # of all pieces that were let through, those up to the end of the last whole value

    def on_top_value(self) -> None:
        self.whole_until = self.taken + len(self.ready)

    def take(self) -> list[str]:
        """The pieces that were let through since they were last taken."""
        made = self.ready.copy()
        self.ready.clear()
        self.taken += len(made)
        return made


class _OpenCall:
    """A call whose arguments are still coming."""

    def __init__(self, index: int, name: str, id: str) -> None:
        self.index = index
        self.name = name
        self.id = id
        self.begun = False
        self.free = False  # the arguments are text that is no JSON
        self.came: list[str] = []  # the arguments as they were written
        self.given: dict[str, Any] | None = None  # the arguments, where they came as an object
        self.blank = True  # so far nothing but white space
        self.scanner: _Arguments | None = None
        self.tail = ""  # what the scanner waits with
        self.after: list[str] = []  # what came after the object
        self.let: list[str] = []  # the JSON text that was let through

    @property
    def raw(self) -> str:
        return "".join(self.came)

    @property
    def whole(self) -> bool:
        """Whether the arguments are an object that has been closed."""
        return self.given is not None or (self.scanner is not None and self.scanner.done)

    def add(self, text: str) -> str:
        """More of the arguments; the JSON text that can be let through."""
        self.came.append(text)
        if self.blank:
            text = text.lstrip(_SPACE)
            if not text:
                return ""
            self.blank = False
            if text.startswith("{") and not self.free:
                self.scanner = _Arguments()
        scanner = self.scanner
        if scanner is None:
            return ""
        if self.over:
            self.after.append(text)
            return ""
        if not self.tail and scanner.quick is not None and scanner.quick(text) is None:
            scanner.out.append(text)
        else:
            self._scan(scanner, text, False)
        return self._take(scanner)

    @property
    def over(self) -> bool:
        """Whether what comes now stands behind the arguments."""
        return self.scanner is not None and (self.scanner.done or bool(self.scanner.error))

    def _scan(self, scanner: _Arguments, text: str, final: bool) -> None:
        text = self.tail + text
        stop = scanner.scan(text, 0, final)
        rest = text[stop:]
        self.tail = ""
        if self.over:
            self.after.append(rest)
        else:
            self.tail = rest

    def close(self) -> str:
        """The arguments are over; the JSON text that can still be let through."""
        if self.scanner is None:
            return ""
        if self.tail:
            self._scan(self.scanner, "", True)
        return self._take(self.scanner)

    def _take(self, scanner: _Arguments) -> str:
        made = scanner.take()
        self.let += made
        return "".join(made)

    @property
    def whole_values(self) -> dict[str, Any]:
        """Of arguments that were cut or broken: those that are whole."""
        text = "".join(self.let[: self.scanner.whole_until]) if self.scanner is not None else ""
        if not text:
            return {}
        try:
            value = decode(text + "}")
        except JsonError:
            return {}
        return value if isinstance(value, dict) else {}


class Assembler:
    """Makes the events of one answer.

    Args:
        api: the API's name, which calls carry as their format.
        names: the tools' own names by the names that the API knows them by, where those differ.
        id_seed: goes into the ids of calls that come without one.

    Attributes:
        reason: why the answer ended, once it is known.
        calls: how many calls have begun.
    """

    def __init__(self, api: str, *, names: Mapping[str, str] | None = None, id_seed: str = "") -> None:
        self.api = api
        self.reason: FinishReason | None = None
        self.calls = 0
        self._names = names or {}
        self._seed = id_seed
        self._events: list[Event] = []
        self._open: dict[Hashable, _OpenCall] = {}
        self._complete = 0
        self._half = ""  # half of a character that was cut in two
        self._finished = False

    @property
    def empty(self) -> bool:
        """Whether nothing was told so far, not even why the answer ended."""
        return not (self._events or self.calls or self.reason)

    def take(self) -> list[Event]:
        """The events since they were last taken."""
        made, self._events = self._events, []
        return made

    # -- text ----------------------------------------------------------------------------------------------------

    def text(self, text: Any) -> None:
        """More content."""
        if isinstance(text, str) and (text := self._joined(text)):
            self._events.append(ContentDelta(text))

    def reasoning(self, text: Any) -> None:
        """More reasoning."""
        if isinstance(text, str) and (text := self._joined(text)):
            self._events.append(ReasoningDelta(text))

    def reasoned(self, part: ReasoningPart) -> None:
        """A stretch of reasoning is over, and this is what has to travel back."""
        self._events.append(ReasoningEnd(part))

    def _joined(self, text: str) -> str:
        """Text in which no half of a surrogate pair stands alone: some servers cut pairs in two."""
        if not self._half and (text.isascii() or encodable(text)):
            return text
        text, self._half = self._half + text, ""
        if text and 0xD800 <= ord(text[-1]) < 0xDC00:
            text, self._half = text[:-1], text[-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def passed(self, data: Mapping[str, Any]) -> None:
        """Something that the provider did itself."""
        self._events.append(Passed(OpaquePart(dict(data), self.api)))

    # -- calls ---------------------------------------------------------------------------------------------------

    def known(self, key: Hashable) -> bool:
        """Whether the call of this key is open."""
        return key in self._open

    def is_whole(self, key: Hashable) -> bool:
        """Whether the arguments of this open call are an object that has been closed."""
        return self._open[key].whole

    def named(self, key: Hashable) -> tuple[str, str]:
        """The name and the id of this open call, as they came."""
        return self._open[key].name, self._open[key].id

    def begin(self, key: Hashable, name: Any = "", id: Any = "", *, free: bool = False) -> None:
        """A call begins; its name and id may come later. `free`: its arguments are text, not JSON."""
        call = _OpenCall(self.calls, _text(name), _text(id))
        call.free = free
        self.calls += 1
        self._open[key] = call
        self._announce(call)

    def name(self, key: Hashable, name: Any = "", id: Any = "") -> None:
        """The name or the id of an open call; the first of each counts."""
        call = self._open[key]
        call.name = call.name or _text(name)
        if not call.begun:
            call.id = call.id or _text(id)
        self._announce(call)

    def _announce(self, call: _OpenCall) -> None:
        if call.begun or not call.name:
            return
        call.begun = True
        call.name = self._names.get(call.name, call.name)
        call.id = call.id or call_id(self._seed, call.index, call.name)
        self._events.append(CallStart(call.index, call.name, call.id, call.free))
        if call.let:
            self._events.append(ArgumentsDelta(call.index, "".join(call.let)))

    def arguments(self, key: Hashable, text: Any) -> None:
        """More of the arguments of an open call, as JSON text; or all of them, as an object."""
        call = self._open[key]
        if isinstance(text, str):
            if call.given is not None:  # an object, and more of it: it is text after all
                call.given = None
                self.arguments(key, call.came.pop())
            if text and (let := call.add(text)) and call.begun:
                self._events.append(ArgumentsDelta(call.index, let))
        elif isinstance(text, Mapping):
            value = dict(text)
            written = _written(value)
            if call.came or written is None:
                self.arguments(key, "{" if written is None else written)
            else:
                call.came.append(written)
                call.given = value

    def end(self, key: Hashable, *, cut: bool = False) -> None:
        """A call is over. `cut`: the answer was cut, so arguments that are not there were not left out."""
        call = self._open.pop(key)
        if not call.begun:
            if call.name or call.raw.strip() or call.id:
                self._problem("missing_name", "a call has no name", call.raw, None)
            return
        value, repairs, problem = self._value(call, cut=cut)
        arguments = call.whole_values if value is None else value
        free = call.free and call.given is None
        made = ToolCall(call.name, arguments, call.id, raw=call.raw, format=self.api, repairs=repairs, free=free)
        self._events.append(CallEnd(call.index, made, problem is None))
        if problem is None:
            self._complete += 1
        else:
            self._problem(*problem, call.raw, call.index)

    def _value(
        self, call: _OpenCall, *, cut: bool
    ) -> tuple[dict[str, Any] | None, tuple[str, ...], tuple[ProblemKind, str] | None]:
        """The arguments, the repairs that they took, and why they are no arguments."""
        raw = call.raw
        if call.given is not None:
            self._events.append(ArgumentsDelta(call.index, raw))
            return call.given, (), None
        if call.free:
            return self._given(call, {"input": raw}), (), ("truncated", "its input was cut") if cut else None
        if raw.strip() in _NOTHING:
            if cut:
                return None, (), ("truncated", f"the arguments of {call.name!r} were cut")
            return self._given(call, {}), (), None
        scanner = call.scanner
        if scanner is None:
            read = read_arguments(raw)
            if read.value is None:
                why = read.problem.message if read.problem else ""
                return None, (), (read.problem.kind if read.problem else "malformed", why)
            return self._given(call, read.value), read.repairs, None
        if let := call.close():  # what waited for more text
            self._events.append(ArgumentsDelta(call.index, let))
        if scanner.error:
            return None, (), ("malformed", f"the arguments of {call.name!r} are not a JSON object: {scanner.error}")
        if not scanner.done:
            return None, (), ("truncated", f"the arguments of {call.name!r} end inside them")
        repairs = list(scanner.repairs)
        if rest := "".join(call.after).strip():
            if rest.strip("}] \t\r\n"):
                return None, (), ("malformed", f"text follows the arguments of {call.name!r}")
            repairs.append("extra_close")
        try:
            value = scanner.value if scanner.whole else decode("".join(call.let))
        except JsonError as error:
            return None, (), ("malformed", str(error))
        return value, tuple(repairs), None

    def _given(self, call: _OpenCall, value: dict[str, Any]) -> dict[str, Any]:
        """The arguments, of which nothing was let through so far."""
        self._events.append(ArgumentsDelta(call.index, json_text(value)))
        return value

    def call(self, name: Any, arguments: Any, id: Any = "") -> None:
        """A call that came whole; its arguments are an object, JSON text or nothing."""
        key = object()
        self.begin(key, name, id)
        self.arguments(key, arguments)
        if arguments is not None and not isinstance(arguments, str | Mapping):
            self.arguments(key, json.dumps(arguments))  # no object: it is refused as what it is
        self.end(key)

    # -- the end -------------------------------------------------------------------------------------------------

    def usage(self, usage: Usage) -> None:
        """Token counts so far."""
        self._events.append(UsageCounted(usage))

    def problem(self, kind: ProblemKind, message: str, raw: str = "") -> None:
        """Something that belongs to no call."""
        self._problem(kind, message, raw, None)

    def _problem(self, kind: ProblemKind, message: str, raw: str, index: int | None) -> None:
        shown = f" It was written: {raw[:MESSAGE_LIMIT]!r}." if raw and len(message) < MESSAGE_LIMIT else ""
        text = message[:1].upper() + message[1 : 2 * MESSAGE_LIMIT].rstrip(".") + "."
        self._events.append(ProblemFound(Problem(kind, 0, raw, text + shown, index)))

    def broke_off(self) -> None:
        """The stream is over, and has not said so."""
        self.reason = FinishReason.ERROR
        self.problem("truncated", "the stream broke off before the answer was over")

    def end_all(self) -> None:
        """Every call that is open is over."""
        cut = self.reason not in (FinishReason.STOP, FinishReason.TOOL_CALLS)
        for key in list(self._open):
            self.end(key, cut=cut)

    def finish(self) -> None:
        """The answer is over."""
        if self._finished:
            return
        self._finished = True
        self.end_all()
        if self._half:
            self._events.append(ContentDelta("\ufffd"))
        reason = self.reason
        if self._complete and reason in (None, FinishReason.STOP):
            reason = FinishReason.TOOL_CALLS
        elif reason is None or (reason is FinishReason.TOOL_CALLS and not self._complete):
            reason = FinishReason.STOP
        self._events.append(Finish(reason))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _written(value: dict[str, Any]) -> str | None:
    """An object as JSON text; None if it breaks a limit, or holds what JSON has not."""
    try:
        return json_text(value) if within_limits(value) else None
    except (TypeError, ValueError, RecursionError):
        return None

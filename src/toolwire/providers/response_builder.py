"""Builds the events of an answer from the pieces that an API's reader reports.

The rules are the same for all APIs. Names and ids are set once. No arguments at all (nothing, white space, `null`) are
`{}`. Arguments are streamed as the JSON text that the scanner releases, and only whole and unambiguous arguments make
a complete call. Arguments that do not show their own end (none, an object that was read already, free text) may be
all that was left of a longer call: if the answer was cut off right behind them, the call is incomplete.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    CitationReceived,
    ContentDelta,
    Event,
    Finish,
    OpaquePartReceived,
    ProblemFound,
    ReasoningDelta,
    ReasoningEnd,
    UsageCounted,
)
from toolwire.messages import (
    MESSAGE_LIMIT,
    CitationPart,
    FinishReason,
    OpaquePart,
    Problem,
    ProblemKind,
    ReasoningPart,
    ToolCall,
    Usage,
    call_id,
)
from toolwire.providers.answer_shapes import AnswerShape
from toolwire.providers.error_bodies import error_in
from toolwire.providers.failure_kinds import code_of, status_of
from toolwire.providers.finish_reasons import is_own_word
from toolwire.providers.message_parts import Json, answer_item, members_item
from toolwire.providers.open_call import NO_ARGUMENTS, OpenCall
from toolwire.text.json_text import JsonError, decode, json_text, within_limits
from toolwire.text.surrogate_pairs import SurrogatePairs
from toolwire.wire.arguments import read_arguments


class ResponseBuilder:
    """Builds the events of one answer.

    Args:
        api: the API's name, which calls carry as their format.
        names: the tools' own names by the names that the API knows them by, where those differ.
        id_seed: part of the ids of calls that come without one.

    Attributes:
        reason: the finish reason; None as long as it is unknown.
        call_count: number of calls that have begun.
        in_reasoning: whether reasoning was the last thing to be reported, and has not ended.
        content_length: length of the content so far, in code points.
        problem: the last problem that belongs to no call; None if there is none.
    """

    def __init__(self, api: str, *, names: Mapping[str, str] | None = None, id_seed: str = "") -> None:
        self.api = api
        self.reason: FinishReason | None = None
        self.call_count = 0
        self.in_reasoning = False
        self.content_length = 0
        self.problem: Problem | None = None
        self._names = names or {}
        self._seed = id_seed
        self._events: list[Event] = []
        self._open: dict[Hashable, OpenCall] = {}
        self._unproven: OpenCall | None = None  # ended, but perhaps only because the answer was cut off
        self._complete = 0
        self._pairs = SurrogatePairs("replace")  # characters that are split between two pieces
        self._finished = False
        self._failed = False  # an error took the place of the rest
        self._before_finish: Callable[[], None] | None = None

    @property
    def pending(self) -> int:
        """Number of events that were not taken yet."""
        return len(self._events)

    @property
    def empty(self) -> bool:
        """True as long as nothing was reported, not even a finish reason."""
        return not (self._events or self.call_count or self.reason)

    def take(self) -> list[Event]:
        """Return the events since the last call."""
        events, self._events = self._events, []
        return events

    # -- text ----------------------------------------------------------------------------------------------------

    def add_text(self, text: Any) -> None:
        """Add content; a value that is not text is ignored."""
        if isinstance(text, str) and (text := self._pairs.feed(text)):
            self._settle()
            self.in_reasoning = False
            self.content_length += len(text)
            self._events.append(ContentDelta(text))

    def divide_text(self) -> None:
        """Begin another block of text, next to the last."""
        self._events.append(ContentDelta(""))

    def add_reasoning(self, text: Any) -> None:
        """Add reasoning; a value that is not text is ignored."""
        if isinstance(text, str) and (text := self._pairs.feed(text)):
            self._settle()
            self.in_reasoning = True
            self._events.append(ReasoningDelta(text))

    def end_reasoning(self, part: ReasoningPart) -> None:
        """End a stretch of reasoning; the part is sent back to the provider in later requests.

        Text and signatures that are not text are ignored.
        """
        self.in_reasoning = False
        text, signature = _text_only(part.text), _text_only(part.signature)
        if (text, signature) != (part.text, part.signature):
            provider = part.provider if signature or part.data else ""
            part = replace(part, text=text, signature=signature, provider=provider)
        self._events.append(ReasoningEnd(part))

    def add_thought(self, part: ReasoningPart) -> None:
        """Add a whole stretch of reasoning."""
        self.add_reasoning(part.text)
        self.end_reasoning(part)

    def add_opaque(self, data: Mapping[str, Any]) -> None:
        """Add an item of something that the provider did itself."""
        self._settle()
        self.in_reasoning = False
        self._events.append(OpaquePartReceived(OpaquePart(dict(data), self.api)))

    def add_citation(self, part: CitationPart) -> None:
        """Add the sources of a statement in the content so far."""
        self._events.append(CitationReceived(part))

    def add_unread(self, shape: AnswerShape, answer: Mapping[str, Any]) -> None:
        """Add the members of an answer, or of the end of its stream, that are not read, unless an error replaces it."""
        if self._failed:
            return
        if members := shape.unread(answer):
            self.add_answer_members(members)
        word, members = shape.finish_of(answer)
        if self.reason is not None and is_own_word(self.api, word, self.reason):
            self.add_answer_members(members)

    def add_answer_members(self, members: Mapping[str, Json]) -> None:
        """Add members of the answer that only this API has, by the paths of their objects."""
        self._events.append(OpaquePartReceived(OpaquePart(answer_item(members), self.api)))

    def add_members(self, members: Mapping[str, Any]) -> None:
        """Add members of the whole message. They do not prove that a call before them was complete."""
        self.in_reasoning = False
        self._events.append(OpaquePartReceived(OpaquePart(members_item(members), self.api)))

    # -- calls ---------------------------------------------------------------------------------------------------

    def is_open(self, key: Hashable) -> bool:
        """Return whether the call of this key is open."""
        return key in self._open

    def is_whole(self, key: Hashable) -> bool:
        """Return whether the arguments of this open call are an object that has been closed."""
        return self._open[key].whole

    def id_of(self, key: Hashable) -> str:
        """Return the id of this open call, "" if it has none yet."""
        return self._open[key].id

    def begin_call(
        self, key: Hashable, name: Any = "", id: Any = "", *, free: bool = False, extra: OpaquePart | None = None
    ) -> None:
        """Begin a call; its name and id may come later. `free`: its arguments are text, not JSON."""
        self._settle()
        call = OpenCall(self.call_count, _text(name), _text(id))
        call.free = free
        call.extra = extra
        self.call_count += 1
        self._open[key] = call
        self._announce(call)

    def name_call(self, key: Hashable, name: Any = "", id: Any = "") -> None:
        """Set the name or the id of an open call, unless it has one."""
        call = self._open[key]
        call.name = call.name or _text(name)
        if not call.announced:
            call.id = call.id or _text(id)
        self._announce(call)

    def _announce(self, call: OpenCall) -> None:
        if call.announced or not call.name:
            return
        call.announced = True
        call.name = self._names.get(call.name, call.name)
        call.id = call.id or call_id(self._seed, call.index, call.name)
        self.in_reasoning = False
        self._events.append(CallStart(call.index, call.name, call.id, call.free, call.extra))
        if call.released:
            self._events.append(ArgumentsDelta(call.index, "".join(call.released)))

    def add_arguments(self, key: Hashable, arguments: Any) -> None:
        """Add to the arguments of an open call: JSON text, or all of them as an object."""
        call = self._open[key]
        if isinstance(arguments, str):
            if call.object is not None:  # more follows the object, so its text was only the beginning
                call.object = None
                self.add_arguments(key, call.pieces.pop())
            if (arguments := call.pairs.feed(arguments)) and (released := call.add(arguments)) and call.announced:
                self._events.append(ArgumentsDelta(call.index, released))
        elif isinstance(arguments, Mapping):
            value = dict(arguments)
            text = _json_text(value)
            if call.pieces or text is None:
                # A lone bracket makes the call incomplete: an object that has no JSON text must not run.
                self.add_arguments(key, "{" if text is None else text)
            else:
                call.pieces.append(text)
                call.object = value

    def contradict_call(self, key: Hashable) -> None:
        """Report that the provider gives other arguments at the end of an open call than it streamed.

        Neither can be taken for what the model wrote, so the call is incomplete.
        """
        self._open[key].contradicted = True

    def end_call(self, key: Hashable, *, truncated: bool | None = None, extra: OpaquePart | None = None) -> None:
        """End a call.

        Args:
            key: the key of the open call.
            truncated: whether it was cut off, so that missing arguments were not left out on purpose; None if only the
                rest of the answer can say.
            extra: members of the call that only this API has.
        """
        call = self._open.pop(key)
        call.extra = extra
        if truncated is None and call.announced and not call.shows_end:
            self._settle()
            self._unproven = call
        else:
            self._end(call, truncated=bool(truncated))

    def _settle(self, *, truncated: bool = False) -> None:
        """End the call that waits for proof that it is whole: the answer continues behind it, or ends as it should."""
        call, self._unproven = self._unproven, None
        if call is not None:
            self._end(call, truncated=truncated)

    def _end(self, call: OpenCall, *, truncated: bool) -> None:
        if not call.announced:
            if call.name or call.raw.strip() or call.id:
                self._problem("missing_name", "a call has no name", call.raw, None)
            return
        if (half := call.pairs.finish()) and (released := call.add(half)):
            self._events.append(ArgumentsDelta(call.index, released))
        value, repairs, problem = self._value(call, truncated=truncated)
        arguments = call.whole_values if value is None else value
        free = call.free and call.object is None
        ended = ToolCall(
            *(call.name, arguments, call.id),
            raw=call.raw,
            format=self.api,
            repairs=repairs,
            free=free,
            extra=call.extra,
            of_provider=call.of_provider,
        )
        self._events.append(CallEnd(call.index, ended, problem is None))
        if problem is None:
            self._complete += 1
        else:
            self._problem(*problem, call.raw, call.index)

    def _value(
        self, call: OpenCall, *, truncated: bool
    ) -> tuple[dict[str, Any] | None, tuple[str, ...], tuple[ProblemKind, str] | None]:
        """Return the arguments, the repairs that they took, and the problem if there are no arguments."""
        raw = call.raw
        cut: tuple[ProblemKind, str] = ("truncated", f"the arguments of {call.name!r} were truncated")
        if call.contradicted:
            return None, (), ("malformed", f"the arguments of {call.name!r} at its end differ from those in its pieces")
        if call.object is not None:
            if truncated:
                return None, (), cut
            self._events.append(ArgumentsDelta(call.index, raw))
            return call.object, (), None
        if call.free:
            problem: tuple[ProblemKind, str] | None = ("truncated", "its input was truncated") if truncated else None
            return self._streamed(call, {"input": raw}), (), problem
        if raw.strip() in NO_ARGUMENTS:
            if truncated:
                return None, (), cut
            return self._streamed(call, {}), (), None
        scanner = call.scanner
        if scanner is None:
            read = read_arguments(raw)
            if read.value is None:
                return None, (), (read.problem.kind, read.problem.message) if read.problem else ("malformed", "")
            return self._streamed(call, read.value), read.repairs, None
        if released := call.close():
            self._events.append(ArgumentsDelta(call.index, released))
        if scanner.error:
            return None, (), ("malformed", f"the arguments of {call.name!r} are not a JSON object: {scanner.error}")
        if not scanner.done:
            return None, (), ("truncated", f"the arguments of {call.name!r} end inside them")
        repairs = list(scanner.repairs)
        if rest := "".join(call.trailing).strip():
            if rest.strip("}] \t\r\n"):
                return None, (), ("malformed", f"text follows the arguments of {call.name!r}")
            repairs.append("extra_close")
        try:
            value = scanner.value if scanner.whole else decode("".join(call.released))
        except JsonError as error:
            return None, (), ("malformed", str(error))
        return value, tuple(repairs), None

    def _streamed(self, call: OpenCall, arguments: dict[str, Any]) -> dict[str, Any]:
        """Stream all arguments at once, none of which were released before; return them."""
        self._events.append(ArgumentsDelta(call.index, json_text(arguments)))
        return arguments

    def add_call(
        self, name: Any, arguments: Any, id: Any = "", *, free: bool = False, extra: OpaquePart | None = None
    ) -> None:
        """Add a whole call; its arguments are an object, text or nothing."""
        key = object()
        self.begin_call(key, name, id, free=free, extra=extra)
        if arguments is not None and not isinstance(arguments, str | Mapping):
            arguments = json.dumps(arguments)  # not an object: the problem then quotes it
        self.add_arguments(key, arguments)
        self.end_call(key, extra=extra)

    def add_provider_call(self, call: ToolCall, *, truncated: bool | None) -> None:
        """Add a whole call of a tool that the provider defined; `truncated`: see `end_call`."""
        key = object()
        self.begin_call(key, call.name, call.id, extra=call.extra)
        self._open[key].of_provider = True
        self.add_arguments(key, call.arguments)
        self.end_call(key, truncated=truncated, extra=call.extra)

    # -- the end -------------------------------------------------------------------------------------------------

    def add_usage(self, usage: Usage) -> None:
        """Report token counts; the last ones count."""
        self._events.append(UsageCounted(usage))

    def add_problem(self, kind: ProblemKind, message: str, raw: str = "") -> None:
        """Report a problem that belongs to no call."""
        self._problem(kind, message, raw, None)

    def _problem(self, kind: ProblemKind, message: str, raw: str, index: int | None, error: Any = None) -> None:
        shown = f" It was written: {raw[:MESSAGE_LIMIT]!r}." if raw and len(message) < MESSAGE_LIMIT else ""
        text = message[:1].upper() + message[1 : 2 * MESSAGE_LIMIT].rstrip(".") + "."
        problem = Problem(kind, 0, raw, text + shown, index, status_of(error), code_of(error))
        if index is None:
            self.problem = problem
        self._events.append(ProblemFound(problem))

    def fail(self, message: str, kind: ProblemKind = "provider_error", raw: str = "", *, error: Any = None) -> None:
        """Report that an error, the provider's object `error`, took the place of the answer or of its rest."""
        self._failed = True
        self.reason = FinishReason.ERROR
        self._problem(kind, message, raw, None, error)

    def add_error(self, body: Mapping[str, Any]) -> bool:
        """Report the error that a body consists of, in whichever way it is written; return whether it is one."""
        error = error_in(body)
        if error is not None:
            self.fail(str(error["message"]), error=error)
        return error is not None

    def fail_with(self, body: Mapping[str, Any], otherwise: str, raw: str) -> None:
        """Report the error that a body consists of; or, if it is none, `otherwise`, and the body as `raw`."""
        if not self.add_error(body):
            self.fail(otherwise, "malformed", raw)

    def break_off(self) -> None:
        """Report that the stream ended without an end marker."""
        self.fail("the stream broke off before the answer was over", "truncated")

    def before_finish(self, report: Callable[[], None]) -> None:
        """Let a reader report what it has collected before the answer ends."""
        self._before_finish = report

    def finish(self) -> None:
        """End the answer, and every call that is open."""
        if self._finished:
            return
        self._finished = True
        if self._before_finish is not None:
            self._before_finish()
        if self._failed:
            self.reason = FinishReason.ERROR  # some servers end a stream as usual after an error in it
        truncated = self.reason not in (FinishReason.STOP, FinishReason.TOOL_CALLS)
        cut = self._failed or self.reason in (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)
        if (waiting := self._unproven) is not None:
            # An answer that failed may have a whole object before its end, but missing arguments prove nothing then.
            self._settle(truncated=cut or (self.reason is FinishReason.ERROR and waiting.object is None))
        for key in list(self._open):
            self.end_call(key, truncated=truncated)
        if self._pairs.finish():
            self._events.append(ContentDelta("\ufffd"))
        # Many servers report `stop` after calls, some report `tool_calls` without any.
        reason = self.reason
        if self._complete and reason in (None, FinishReason.STOP):
            reason = FinishReason.TOOL_CALLS
        elif reason is None or (reason is FinishReason.TOOL_CALLS and not self._complete):
            reason = FinishReason.STOP
        self._events.append(Finish(reason))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _text_only(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _json_text(value: dict[str, Any]) -> str | None:
    """Return an object as JSON text; None if it breaks a limit, or contains a value that JSON cannot express."""
    try:
        return json_text(value) if within_limits(value) else None
    except (TypeError, ValueError, RecursionError):
        return None

"""What is asked of a model: messages, tools and choices, as one value that every API can be written from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict

from toolwire.errors import DefinitionError
from toolwire.messages import Message, OpaquePart, Part, ReasoningPart, TextPart, ToolCall, ToolResult, call_id
from toolwire.tools import ToolDefinition

Mode = Literal["auto", "none", "required"]
MISSING_RESULT = "the call was not answered"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether a model may, must or must not call a tool.

    Attributes:
        mode: "auto": as it likes; "none": no call; "required": at least one.
        names: the only tools it may choose from; empty if any.
    """

    mode: Mode = "auto"
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, choice: ToolChoice | str | None) -> ToolChoice:
        """A choice from its mode's name; "any" is "required". Anything else names the tool that has to be called.

        Raises:
            DefinitionError: it is neither text nor a choice.
        """
        match choice:
            case None:
                return cls()
            case ToolChoice():
                return choice
            case "auto" | "none" | "required":
                return cls(choice)
            case "any":
                return cls("required")
            case str() if choice:
                return cls("required", (choice,))
        raise DefinitionError(f"a tool choice is auto, none, required or a tool's name, not {choice!r:.80}")

    @property
    def name(self) -> str:
        """The one tool that has to be called, or ""."""
        return self.names[0] if self.mode == "required" and len(self.names) == 1 else ""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that could not be translated as it was.

    Attributes:
        kind: "dropped": it is gone; "changed": it says something else now; "quarantined": a tool that was left out.
        where: what it concerns: a tool's name with a JSON pointer, a message's number, a field.
        message: what happened, and why.
    """

    kind: Literal["dropped", "changed", "quarantined"]
    where: str
    message: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.kind} {self.where}: {self.message}"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to a model, in no API's words.

    Attributes:
        messages: the conversation so far; system messages say what the model is told beforehand.
        tools: what it may call.
        tool_choice: whether it may, must or must not.
        parallel: whether it may make several calls in one answer; None: as the API does by itself.
        model: the model's name.
        stream: whether the answer is to come in pieces.
        max_tokens: how long the answer may be.
        temperature, top_p, stop: as everywhere.
        provider: the API that `extra` and `provider_tools` are of.
        extra: members of the request's body that no other API has, as they stand there.
        provider_tools: tools that the provider runs itself, as they stand in the body.
    """

    messages: tuple[Message, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel: bool | None = None
    model: str = ""
    stream: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    provider: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    provider_tools: tuple[Mapping[str, Any], ...] = ()


class RequestOptions(TypedDict, total=False):
    """Keywords of a request; None or a missing key leaves the choice to the conversation or the API.

    Attributes:
        tool_choice: "auto", "none", "required", a tool's name, or a `ToolChoice`.
        parallel: whether the model may make several calls in one answer.
        max_tokens: the maximum length of the answer, in tokens.
        temperature: the sampling temperature.
        top_p: the share of probability that sampling is limited to.
        stop: texts that end the answer.
    """

    tool_choice: ToolChoice | str | None
    parallel: bool | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop: Iterable[str] | None


class Notes(list[Note]):
    """Notes being taken."""

    def dropped(self, where: str, message: str) -> None:
        """Something is gone."""
        self.append(Note("dropped", where, message))

    def changed(self, where: str, message: str) -> None:
        """Something says something else now."""
        self.append(Note("changed", where, message))

    def quarantined(self, where: str, message: str) -> None:
        """A tool is left out."""
        self.append(Note("quarantined", where, message))


def settled(messages: Iterable[Message]) -> Iterator[Message]:
    """The messages of a request as read, with results in messages of their own, in front of what else is said.

    Messages of the role `tool` hold one result each in many APIs: those in a row become one. A result gets the name of
    the tool whose call it answers, if it has none.
    """
    names: dict[str, str] = {}  # of calls, by id
    results: list[Part] = []
    for message in messages:
        if message.role != "tool" and results:
            yield Message("tool", tuple(results))
            results = []
        if message.role == "assistant":
            names.update((part.id, part.name) for part in message.parts if isinstance(part, ToolCall))
            yield message
            continue
        mine: list[Part] = []
        others: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                mine.append(part if part.tool_name else replace(part, tool_name=names.get(part.call_id, "")))
            else:
                others.append(part)
        if message.role == "tool":
            results += mine
            continue
        if mine:
            yield Message("tool", tuple(mine))
        if others or not mine:
            yield replace(message, parts=tuple(others))
    if results:
        yield Message("tool", tuple(results))


class _Turn:
    """What the model said in a row, and what has come since."""

    def __init__(self) -> None:
        self.said: list[Message] = []
        self.calls: list[tuple[ToolCall, str]] = []  # each with the id that it had
        self.results: dict[int, ToolResult] = {}
        self.after: list[Message | ToolResult] = []  # what else came; a result that no call of these asked for
        self._found = 0  # calls that can be looked up
        self._waiting: dict[tuple[str | None, str | None], deque[int]] = {}  # by id, by name, and by both

    @property
    def goes_on(self) -> bool:
        """Whether nothing has come yet, so that more of the model's own belongs to it."""
        return not (self.results or self.after)

    def takes(self, result: ToolResult) -> bool:
        """Whether a result was for a call that had none yet: the one that it names."""
        for at in range(self._found, len(self.calls)):
            call, old = self.calls[at]
            for key in ((old, None), (None, call.name), (old, call.name)):
                self._waiting.setdefault(key, deque()).append(at)
        self._found = len(self.calls)
        name = result.tool_name
        for key in ((result.call_id, None),) if result.call_id else (("", name), (None, name)):
            waiting = self._waiting.get(key) or deque()
            while waiting and waiting[0] in self.results:
                waiting.popleft()
            if waiting:
                self._answer(waiting[0], result)
                return True
        return False

    def _answer(self, at: int, result: ToolResult) -> None:
        call = self.calls[at][0]
        self.results[at] = replace(result, call_id=call.id, tool_name=call.name)

    def close(self, notes: Notes, owned: frozenset[str], *, last: bool) -> Iterator[Message]:
        """The model's messages, the results in the order of the calls, and what else came.

        `owned` are the ids of all calls: a result that has one of them is no other call's.
        """
        yield from self.said
        missing = [at for at in range(len(self.calls)) if at not in self.results]
        strays = [one for one in self.after if isinstance(one, ToolResult) and one.call_id not in owned]
        if strays and len(strays) == len(missing):
            for at, stray in zip(missing, strays, strict=True):
                notes.changed(f"call {self.calls[at][1]}", f"the result of {stray.call_id!r} is taken for its own")
                self._answer(at, stray)
            gone = set(map(id, strays))
            self.after = [one for one in self.after if id(one) not in gone]
            missing = []
        if self.calls and not (last and self.goes_on):
            for at in missing:
                call = self.calls[at][0]
                notes.changed(f"call {call.id}", f"{call.name} had no result: an error stands for it")
                self.results[at] = ToolResult(call.id, call.name, error=MISSING_RESULT)
            yield Message("tool", tuple(self.results[at] for at in range(len(self.calls))))
        for one in self.after:
            if isinstance(one, Message):
                yield one
                continue
            notes.changed(f"result {one.call_id!r}", "it has no call of its own: it is text now")
            shown = "" if one.images and one.success and one.result is None else one.text
            text = f"Result of {one.tool_name or 'a tool'}: {shown}".rstrip()
            yield Message("user", (TextPart(text), *one.images))


def paired(messages: Iterable[Message], notes: Notes) -> tuple[Message, ...]:
    """The conversation with every call answered once, right after it, in the order of the calls, under unique ids.

    Calls without an id get one; of two calls with the same id the second gets another, and its result with it. A
    result is found by its id, by its tool's name where it has none, and where just as many calls are without a result
    as results without a call, by its place, unless its id is another call's. One that comes when the model has gone on
    already goes to its call. A call that was never answered gets an error as its result, unless the conversation ends
    with it; a result without a call becomes text of the user.
    """
    messages = tuple(messages)
    owned = frozenset(part.id for one in messages for part in one.parts if isinstance(part, ToolCall) and part.id)
    used: set[str] = set()
    turns = [_Turn()]
    waiting: dict[str, _Turn] = {}  # earlier turns whose calls have no result, by the ids of these
    for number, message in enumerate(messages):
        turn = turns[-1]
        if message.role == "assistant":
            if not turn.goes_on:  # else the model's messages are one turn, and its calls are answered together
                for at, (_, old) in enumerate(turn.calls):
                    if at not in turn.results and old:
                        waiting[old] = turn
                turn = _Turn()
                turns.append(turn)
            turn.said.append(_with_ids(message, number, used, turn))
            continue
        others: list[Part] = []
        for part in message.parts:
            if not isinstance(part, ToolResult):
                others.append(part)
            elif not turn.takes(part):
                late = waiting.pop(part.call_id, None)
                if late is not None and late.takes(part):
                    notes.changed(f"call {part.call_id}", "its result came late: it stands behind it now")
                else:
                    turn.after.append(part)
        if others or not message.parts:
            role = "user" if message.role == "tool" else message.role
            turn.after.append(Message(role, tuple(others)))
    return tuple(made for turn in turns for made in turn.close(notes, owned, last=turn is turns[-1]))


def joined(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages, for APIs that want results right behind the message that holds their calls.

    What the model says behind a call joins it.
    """
    made: list[Message] = []
    for message in messages:
        before = made[-1].parts if made and made[-1].role == message.role == "assistant" else ()
        if any(isinstance(part, ToolCall) for part in before):
            made[-1] = replace(message, parts=(*before, *message.parts))
        else:
            made.append(message)
    return tuple(made)


def told(message: Message, api: str, notes: Notes) -> str:
    """The text of a system message; with a note of what else stands in it, for an API that takes only text there."""
    for part in message.parts:
        if not isinstance(part, TextPart):
            kind = type(part).__name__
            if isinstance(part, OpaquePart):
                kind = str(part.data.get("type") or next(iter(part.data), kind))
            notes.dropped(f"system message/{kind}", f"{api} takes text alone here")
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def unsealed(part: Part, kind: str, api: str, notes: Notes) -> str | None:
    """The text of reasoning that an answer shows without a seal, as it has none of this API; None for all else."""
    if not isinstance(part, ReasoningPart) or (part.provider == kind and (part.signature or part.data)):
        return None
    if part.signature or part.data:
        notes.dropped("reasoning", f"{api} has no place for what {part.provider} wants back with it")
    return part.text


def note_foreign(request: ChatRequest, kind: str, notes: Notes) -> None:
    """Take a note of members of messages and tools that only another API than this one knows: each once."""
    lost: dict[tuple[str, str], None] = {}
    for message in request.messages:
        for part in message.parts:
            inner = part.images if isinstance(part, ToolResult) else ()
            for one in (part, *inner):
                extra = None if isinstance(one, ReasoningPart | OpaquePart) else one.extra
                if extra is not None and extra.provider != kind:
                    lost.update(((key, extra.provider), None) for key in extra.data)
    for tool in request.tools if request.provider not in ("", kind) else ():
        if isinstance(extra := tool.annotations.get(request.provider), Mapping):
            lost.update(((f"{tool.name}/{key}", request.provider), None) for key in extra)
    for where, provider in lost:
        notes.dropped(where, f"only {provider} has it")


def _with_ids(message: Message, number: int, used: set[str], turn: _Turn) -> Message:
    """A model's message whose calls have ids that no call before them had."""
    made: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            old = part.id
            if not old or old in used:
                part = replace(part, id=call_id(f"{old}\x1f{number}", len(turn.calls), part.name))
            used.add(part.id)
            turn.calls.append((part, old))
        made.append(part)
    return replace(message, parts=tuple(made))

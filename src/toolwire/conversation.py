"""What is asked of a model: messages, tools and choices, as one value that every API can be written from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from toolwire.errors import DefinitionError
from toolwire.messages import Message, Part, TextPart, ToolCall, ToolResult, call_id
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


class _Turn:
    """The calls of one answer, and what has come since."""

    def __init__(self) -> None:
        self.calls: list[tuple[ToolCall, str]] = []  # each with the id that it had
        self.results: dict[int, ToolResult] = {}
        self.after: list[
            Message | ToolResult
        ] = []  # what else came; a result that names none of the calls stands alone

    @property
    def goes_on(self) -> bool:
        """Whether nothing has come yet, so that more of the model's own belongs to it."""
        return not (self.results or self.after)

    def take(self, result: ToolResult) -> None:
        """A result, for the call it names that had none yet."""
        waiting = [at for at in range(len(self.calls)) if at not in self.results]
        named = [at for at in waiting if self.calls[at][1] == result.call_id]
        if not result.call_id:
            same = [at for at in waiting if self.calls[at][0].name == result.tool_name]
            named = [at for at in same if at in named] or same
        if named:
            self._answer(named[0], result)
        else:
            self.after.append(result)

    def _answer(self, at: int, result: ToolResult) -> None:
        call = self.calls[at][0]
        self.results[at] = replace(result, call_id=call.id, tool_name=call.name)

    def close(self, notes: Notes, *, last: bool) -> Iterator[Message]:
        """The results, in the order of the calls; and what else came."""
        missing = [at for at in range(len(self.calls)) if at not in self.results]
        strays = [one for one in self.after if isinstance(one, ToolResult)]
        if strays and len(strays) == len(missing):
            for at, stray in zip(missing, strays, strict=True):
                notes.changed(f"call {self.calls[at][1]}", f"the result of {stray.call_id!r} is taken for its own")
                self._answer(at, stray)
            self.after = [one for one in self.after if isinstance(one, Message)]
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
            yield Message("user", (TextPart(f"Result of {one.tool_name or 'a tool'}: {one.text}"),))


def paired(messages: Iterable[Message], notes: Notes) -> tuple[Message, ...]:
    """The conversation with every call answered once, right after it, in the order of the calls, under unique ids.

    Calls without an id get one; of two calls with the same id the second gets another, and its result with it. A
    result is found by its id, by its tool's name where it has none, and where just as many calls are without a result
    as results without a call, by its place. A call that was never answered gets an error as its result, unless the
    conversation ends with it; a result without a call becomes text of the user.
    """
    made: list[Message] = []
    used: set[str] = set()
    turn = _Turn()
    for number, message in enumerate(messages):
        if message.role == "assistant":
            if not turn.goes_on:  # else the model's messages are one turn, and its calls are answered together
                made += turn.close(notes, last=False)
                turn = _Turn()
            made.append(_with_ids(message, number, used, turn))
            continue
        others: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                turn.take(part)
            else:
                others.append(part)
        if others or not message.parts:
            role = "user" if message.role == "tool" else message.role
            turn.after.append(Message(role, tuple(others)))
    made += turn.close(notes, last=True)
    return tuple(made)


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

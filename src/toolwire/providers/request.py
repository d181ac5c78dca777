"""Requests to a model, independent of any API: messages, tools and choices, with calls and results paired."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from toolwire._surface import wrong_type
from toolwire.errors import DefinitionError
from toolwire.messages import (
    Content,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    call_id,
)
from toolwire.providers.model_settings import Effort, ModelOptions, ModelSettings, checked
from toolwire.providers.output_schema import OutputSchema
from toolwire.text.tokens import estimate_tokens
from toolwire.tools import ToolDefinition, definitions

SUMMARY = "(Summary of the earlier conversation, written by a model.)"
"""The first line of a message that a model wrote in place of older messages."""

Mode = Literal["auto", "none", "required"]
MISSING_RESULT = "the call was not answered"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """A choice whether a model may, must or must not call a tool.

    Attributes:
        mode: "auto": the model decides; "none": no call; "required": at least one.
        names: the only tools that it may choose from; empty for all.
    """

    mode: Mode = "auto"
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, choice: ToolChoice | str | None) -> ToolChoice:
        """Return the choice that a mode or a tool's name stands for; "any" is "required".

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
        """The only tool that has to be called, or ""."""
        return self.names[0] if self.mode == "required" and len(self.names) == 1 else ""


@dataclass(frozen=True, slots=True)
class Note:
    """A translation loss.

    Attributes:
        kind: "dropped": it is left out; "changed": its meaning differs; "added": the conversation does not have it;
            "quarantined": a tool that is not offered.
        where: a tool's name with a JSON pointer, a message's number, or a field; an added field with its value.
        message: the loss and its reason.
    """

    kind: Literal["dropped", "changed", "added", "quarantined"]
    where: str
    message: str

    def __str__(self) -> str:
        """Return the note in one line."""
        return f"{self.kind} {self.where}: {self.message}"


class Notes(list[Note]):
    """A list of translation losses."""

    def dropped(self, where: str, message: str) -> None:
        """Note that something was left out."""
        self.append(Note("dropped", where, message))

    def changed(self, where: str, message: str) -> None:
        """Note that the meaning of something differs."""
        self.append(Note("changed", where, message))

    def added(self, where: str, message: str) -> None:
        """Note that the API requires something that the conversation does not have."""
        self.append(Note("added", where, message))

    def quarantined(self, where: str, message: str) -> None:
        """Note that a tool is not offered."""
        self.append(Note("quarantined", where, message))


class RequestOptions(ModelSettings, total=False):
    """Keywords of a request; None or a missing key leaves the choice to the conversation or the API.

    Attributes:
        tool_choice: "auto", "none", "required", a tool's name, or a `ToolChoice`.
        output: the schema that the text of the answer must follow.
    """

    tool_choice: ToolChoice | str | None
    output: OutputSchema | None


class AskOptions(RequestOptions, ModelOptions, total=False):
    """Keywords of a question to a client: those of a request, and additions to it, which count after these."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to a model, independent of any API.

    Attributes:
        messages: the conversation so far; system messages are instructions.
        tools: the tools that the model may call.
        tool_choice: whether it may, must or must not.
        parallel: whether it may make several calls in one answer; None for the API's default.
        model: the model's name.
        stream: whether the answer is streamed.
        max_tokens: maximum length of the answer, in tokens.
        temperature, top_p, top_k, stop, seed, frequency_penalty, presence_penalty: settings of sampling; see
            `ModelSettings`, as for the next two.
        reasoning_effort: how much the model reasons, or the maximum number of tokens for it.
        service_tier, metadata, end_user: settings of the service.
        compact_at: the number of tokens from which the server summarises the older conversation.
        output: the schema that the text of the answer must follow; None for free text.
        provider: the API that `extra` and `provider_tools` belong to.
        extra: members of the request's body that no other API has, unchanged.
        provider_tools: tools that the provider runs itself, as the body lists them.
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
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    reasoning_effort: Effort | int | None = None
    service_tier: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    end_user: str | None = None
    compact_at: int | None = None
    output: OutputSchema | None = None
    provider: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    provider_tools: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, conversation: ChatRequest | Iterable[Message] | Content, fields: Mapping[str, Any]) -> ChatRequest:
        """Return the request of a conversation; those of the fields that are not None replace what it says.

        Raises:
            DefinitionError: a message, a tool or the value of a setting is not one.
        """
        # Iterating over a dict, such as the body of a request, would send its keys as the messages of a user.
        if isinstance(conversation, Mapping) or not isinstance(conversation, (ChatRequest, Iterable)):
            raise wrong_type("conversation", conversation, "messages, text or a ChatRequest")
        request = conversation if isinstance(conversation, ChatRequest) else cls(_messages(conversation))
        converted = {
            name: _CONVERTERS[name](value) if name in _CONVERTERS else checked(name, value)
            for name, value in fields.items()
            if value is not None
        }
        return replace(request, **converted) if converted else request

    def with_defaults(self, settings: ModelSettings) -> ChatRequest:
        """Return the request with these settings where it has none.

        Raises:
            DefinitionError: a value cannot be one of its setting.
        """
        return ChatRequest.of(
            self, {name: value for name, value in settings.items() if getattr(self, name) in (None, (), {})}
        )


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "tools": lambda tools: tuple(definitions(tools).values()),
    "tool_choice": ToolChoice.of,
}


def _messages(conversation: Any) -> tuple[Message, ...]:
    if isinstance(conversation, str):
        return (Message("user", conversation),)
    messages = tuple(conversation)
    if messages and all(isinstance(part, str | TextPart | ImagePart | FilePart | OpaquePart) for part in messages):
        return (Message("user", messages),)
    for at, message in enumerate(messages):
        if not isinstance(message, Message):
            kind = type(message).__name__
            raise DefinitionError(
                f"a {kind} is not a toolwire.Message; messages of an API are read with decode_request",
                subject=f"message {at}",
            )
    return messages


def split_results(parts: Iterable[Part]) -> tuple[list[ToolResult], list[Part]]:
    """Return the results among some parts, and the other parts."""
    results: list[ToolResult] = []
    rest: list[Part] = []
    for part in parts:
        if isinstance(part, ToolResult):
            results.append(part)
        else:
            rest.append(part)
    return results, rest


def estimate_tools(tools: Iterable[ToolDefinition]) -> int:
    """Return about how many tokens the definitions of tools have in a request."""
    return sum(estimate_tokens(len(json.dumps([tool.name, tool.description, tool.parameters]))) for tool in tools)


def result_texts(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the texts of a conversation that contain no call of the model; see `StreamParser`.

    They are the results of tools, documents, and what a model wrote about older results.
    """
    return tuple(text for message in messages for part in message.parts for text in _quotable(message.role, part))


def _quotable(role: str, part: Part) -> Iterator[str]:
    match part:
        case ToolResult():
            yield part.text
            for file in part.files:
                yield from _quotable(role, file)
        case FilePart():
            if (text := part.text) is not None:
                yield text
        case TextPart(text) if role == "tool" or text.startswith(SUMMARY):
            yield text


def group_results(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages of a request as read, with results in messages of their own before other content.

    Messages of the role `tool` contain one result each in many APIs: those in a row become one. A result without a
    name gets the name of the tool whose call it answers.
    """
    names: dict[str, str] = {}  # of calls, by id
    pending: list[Part] = []
    for message in messages:
        if message.role != "tool" and pending:
            yield Message("tool", tuple(pending))
            pending = []
        if message.role == "assistant":
            names.update((part.id, part.name) for part in message.parts if isinstance(part, ToolCall))
            yield message
            continue
        results, rest = split_results(message.parts)
        named = [part if part.tool_name else replace(part, tool_name=names.get(part.call_id, "")) for part in results]
        if message.role == "tool":
            pending += named
            continue
        if named:
            yield Message("tool", tuple(named))
        if rest or not named:
            yield replace(message, parts=tuple(rest))
    if pending:
        yield Message("tool", tuple(pending))


class _Turn:
    """Consecutive messages of the model, and the messages up to its next ones."""

    def __init__(self) -> None:
        self.model_messages: list[Message] = []
        self.calls: list[tuple[ToolCall, str]] = []  # each with its original id
        self.results: dict[int, ToolResult] = {}
        self.following: list[Message | ToolResult] = []  # other messages, and results without a call in this turn
        self.has_references = False  # this turn or an earlier one contains calls by reference, so their ids are unknown
        self._indexed = 0  # calls that can be looked up
        self._waiting: dict[tuple[str | None, str | None], deque[int]] = {}  # by id, by name, and by both

    @property
    def is_open(self) -> bool:
        """True if nothing followed yet, so that another message of the model belongs to this turn."""
        return not (self.results or self.following)

    def take(self, result: ToolResult) -> bool:
        """Match a result with the call that it names; return whether that call was waiting for one."""
        for at in range(self._indexed, len(self.calls)):
            call, original_id = self.calls[at]
            for key in ((original_id, None), (None, call.name), (original_id, call.name)):
                self._waiting.setdefault(key, deque()).append(at)
        self._indexed = len(self.calls)
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

    def close(self, notes: Notes, call_ids: frozenset[str], *, last: bool) -> Iterator[Message]:
        """Yield the model's messages, the results in the order of the calls, and the messages that followed.

        `call_ids` are the ids of all calls: a result with one of them does not belong to another call.
        """
        yield from self.model_messages
        missing = [at for at in range(len(self.calls)) if at not in self.results]
        strays = [item for item in self.following if isinstance(item, ToolResult) and item.call_id not in call_ids]
        # Results with unknown ids are matched by position. With other counts any match would be a guess.
        if strays and len(strays) == len(missing) and not self.has_references:
            for at, stray in zip(missing, strays, strict=True):
                notes.changed(f"call {self.calls[at][1]}", f"the result of {stray.call_id!r} is taken for its own")
                self._answer(at, stray)
            matched = set(map(id, strays))
            self.following = [item for item in self.following if id(item) not in matched]
            missing = []
        if self.calls and not (last and self.is_open):
            for at in missing:
                call = self.calls[at][0]
                notes.changed(f"call {call.id}", f"{call.name} had no result: an error stands for it")
                self.results[at] = ToolResult(call.id, call.name, error=MISSING_RESULT)
            yield Message("tool", tuple(self.results[at] for at in range(len(self.calls))))
        for item in self.following:
            if isinstance(item, Message):
                yield item
                continue
            if self.has_references and item.call_id not in call_ids:
                yield Message("tool", (item,))
                continue
            notes.changed(f"result {item.call_id!r}", "it belongs to no call: it becomes text")
            shown = "" if item.only_media else item.text
            text = f"Result of {item.tool_name or 'a tool'}: {shown}".rstrip()
            yield Message("user", (TextPart(text), *item.media))


def pair_results(
    messages: Iterable[Message], notes: Notes, *, is_reference: Callable[[Part], bool] | None = None
) -> tuple[Message, ...]:
    """Return the conversation with each call answered once, right after it, in the order of the calls.

    Every call has a unique id then: a call without one gets one, and so does the second of two calls with one id,
    together with its result. A result is matched

    - by its id;
    - by its tool's name, if it has no id;
    - by its position, if its id is unknown and as many calls lack a result as results lack a call.

    A late result moves to its call. A call without a result gets an error as its result, unless the conversation ends
    with it. A result without a call becomes text of the user, unless a reference before it can stand for its call.

    Args:
        messages: the messages.
        notes: collects the changes.
        is_reference: whether a part stands for an item, perhaps a call, that only the provider has.
    """
    messages = tuple(messages)
    call_ids = frozenset(
        part.id for message in messages for part in message.parts if isinstance(part, ToolCall) and part.id
    )
    used_ids: set[str] = set()
    turns = [_Turn()]
    waiting: dict[str, _Turn] = {}  # earlier turns with calls that lack a result, by the ids of these
    for number, message in enumerate(messages):
        turn = turns[-1]
        if message.role == "assistant":
            if not turn.is_open:  # else the model's messages are one turn, and its calls are answered together
                for at, (_, original_id) in enumerate(turn.calls):
                    if at not in turn.results and original_id:
                        waiting[original_id] = turn
                has_references = turn.has_references
                turn = _Turn()
                turn.has_references = has_references
                turns.append(turn)
            if is_reference is not None and any(map(is_reference, message.parts)):
                turn.has_references = True
            turn.model_messages.append(_with_ids(message, number, used_ids, turn))
            continue
        rest: list[Part] = []
        for part in message.parts:
            if not isinstance(part, ToolResult):
                rest.append(part)
            elif not turn.take(part):
                earlier = waiting.pop(part.call_id, None)
                if earlier is not None and earlier.take(part):
                    notes.changed(f"call {part.call_id}", "its result came late: it follows the call now")
                else:
                    turn.following.append(part)
        if rest or not message.parts:
            role = "user" if message.role == "tool" else message.role
            turn.following.append(Message(role, tuple(rest)))
    return tuple(paired for turn in turns for paired in turn.close(notes, call_ids, last=turn is turns[-1]))


def _with_ids(message: Message, number: int, used_ids: set[str], turn: _Turn) -> Message:
    """Return a model's message whose calls have ids that no earlier call has."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            original_id = part.id
            if not original_id or original_id in used_ids:
                part = replace(part, id=call_id(f"{original_id}\x1f{number}", len(turn.calls), part.name))
            used_ids.add(part.id)
            turn.calls.append((part, original_id))
        parts.append(part)
    return replace(message, parts=tuple(parts))


def join_answers(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join a message of the model to the one before it that contains calls.

    For APIs that require results directly after the message with their calls.
    """
    joined: list[Message] = []
    for message in messages:
        before = joined[-1].parts if joined and joined[-1].role == message.role == "assistant" else ()
        if any(isinstance(part, ToolCall) for part in before):
            joined[-1] = replace(message, parts=(*before, *message.parts))
        else:
            joined.append(message)
    return tuple(joined)


def note_foreign_members(request: ChatRequest, messages: Iterable[Message], kind: str, notes: Notes) -> None:
    """Note members of the messages that are sent, and of tools, that only another API understands, each once."""
    lost: dict[tuple[str, str], None] = {}
    for message in messages:
        for part in message.parts:
            media = part.media if isinstance(part, ToolResult) else ()
            for item in (part, *media):
                extra = None if isinstance(item, ReasoningPart | OpaquePart) else item.extra
                if extra is not None and extra.provider != kind:
                    keys = set(extra.data)
                    if isinstance(item, ToolResult) and "content" in keys:
                        keys.remove("content")
                        notes.changed(f"result {item.call_id}", f"what only {extra.provider} has in it is JSON text")
                    lost.update(((key, extra.provider), None) for key in extra.data if key in keys)
    for tool in request.tools if request.provider not in ("", kind) else ():
        if isinstance(extra := tool.annotations.get(request.provider), Mapping):
            lost.update(((f"{tool.name}/{key}", request.provider), None) for key in extra)
    for where, provider in lost:
        notes.dropped(where, f"only {provider} has it")

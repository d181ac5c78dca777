"""What all provider APIs share: the methods they offer, and the order in which things are done.

A provider API is pure: JSON and bytes in, values and events out, and back. Its file says how messages, tools and
answers are written; ids, names, schemas, pairing and the rules of assembling calls are the same for all and stand
beside it.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

from toolwire._surface import check_options
from toolwire.errors import DefinitionError
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    Passed,
    ProblemFound,
    collect,
    response_parts,
)
from toolwire.messages import (
    FinishReason,
    ImagePart,
    Message,
    OpaquePart,
    ParsedResponse,
    Part,
    Problem,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
)
from toolwire.providers.framing import Frame, Framing, sse
from toolwire.providers.identifiers import ANY, Alphabet, own_names
from toolwire.providers.request import ChatRequest, Notes, RequestOptions, ToolChoice, paired
from toolwire.providers.response_builder import Assembler
from toolwire.providers.schema_dialects import Dialect, lower
from toolwire.text.json_scanner import read_json
from toolwire.text.json_text import JsonError, json_text
from toolwire.tools import ToolDefinition, definitions

Json = dict[str, Any]

UNREADABLE = (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError, RecursionError)
"""What reading JSON of an unexpected shape raises."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool as a request offers it.

    Attributes:
        name: the name that the API takes.
        schema: the schema of the arguments, in the API's dialect.
        strict: whether the schema is in strict mode; None: nothing was asked for.
        definition: the tool itself.
    """

    name: str
    schema: Json
    strict: bool | None
    definition: ToolDefinition

    @property
    def description(self) -> str:
        """What the model is told of it."""
        return self.definition.description


class ProviderApi(ABC):
    """One API.

    Attributes:
        name: what users call it.
        kind: the API whose words it speaks; what it signs can be sent back to any API of the same kind.
        names, ids: what it takes as the name of a tool, and as the id of a call.
        dialect: what it takes as a schema.
        strict_dialect: the same in strict mode; None if it has none.
    """

    kind: ClassVar[str]
    names: Alphabet = ANY
    ids: Alphabet = ANY
    dialect: Dialect
    strict_dialect: Dialect | None = None

    def __init__(self, name: str = "") -> None:
        self.name = name or self.kind

    def __repr__(self) -> str:
        """The API's name."""
        return f"<ProviderApi {self.name}>"

    # -- requests ------------------------------------------------------------------------------------------------

    def encode_request(
        self,
        conversation: ChatRequest | Iterable[Message],
        *,
        tools: Any = None,
        model: str | None = None,
        stream: bool | None = None,
        notes: Notes | None = None,
        **options: Unpack[RequestOptions],
    ) -> Json:
        """Return the body of a request.

        Calls and results are paired, ids and names are made what the API takes, schemas are written in its dialect. A
        tool that cannot be offered is left out, with a note that says why; the others go on.

        Args:
            conversation: messages, or a whole request, whose fields the other arguments override.
            tools: the tools that the model may call, in any shape that `toolwire.parse` takes.
            model: the model's name.
            stream: whether to ask for a stream.
            notes: collects what could not be translated.
            options: see `RequestOptions`.

        Raises:
            DefinitionError: a message or a tool is invalid, or the tool that must be called is not offered.
            TypeError: an option is unknown.
        """
        check_options("encode_request", options, RequestOptions.__annotations__)
        notes = Notes() if notes is None else notes
        request = conversation if isinstance(conversation, ChatRequest) else ChatRequest(_messages(conversation))
        overrides: Json = {**options, "model": model, "stream": stream}
        if tools is not None:
            overrides["tools"] = tuple(definitions(tools).values())
        if (choice := options.get("tool_choice")) is not None:
            overrides["tool_choice"] = ToolChoice.of(choice)
        if (stop := options.get("stop")) is not None:
            overrides["stop"] = tuple(stop)
        request = replace(request, **{key: value for key, value in overrides.items() if value is not None})
        offered = list(self._offer(request.tools, notes))
        tool_choice = self._choice(request, offered, notes)
        messages = tuple(map(self._fitted, self.pair(request, notes)))
        if request.provider and request.provider != self.kind:
            for key in request.extra:
                notes.dropped(key, f"it is {request.provider}'s, and nothing is known to stand for it")
            for tool in request.provider_tools:
                what = tool.get("type") or next(iter(tool), "")
                notes.dropped(f"tools/{what}", f"only {request.provider} runs this tool")
            request = replace(request, extra={}, provider_tools=())
        return self.write_request(replace(request, messages=messages, tool_choice=tool_choice), offered, notes)

    def pair(self, request: ChatRequest, notes: Notes) -> tuple[Message, ...]:
        """The messages, with every call answered once."""
        return paired(request.messages, notes)

    def _offer(self, tools: Iterable[ToolDefinition], notes: Notes) -> Iterator[Offered]:
        taken: dict[str, str] = {}
        for tool in tools:
            name = self.names.fit(tool.name)
            if name in taken:
                notes.quarantined(tool.name, f"its name and that of {taken[name]!r} are the same to {self.name}")
                continue
            try:
                schema, strict = self._schema(tool, notes)
            except DefinitionError as error:
                notes.quarantined(tool.name, str(error))
                continue
            taken[name] = tool.name
            if name != tool.name:
                notes.changed(tool.name, f"{self.name} takes no such name: it is called {name}")
            yield Offered(name, schema, strict, tool)

    def _schema(self, tool: ToolDefinition, notes: Notes) -> tuple[Json, bool | None]:
        wanted = tool.annotations.get("strict")
        if wanted is True and self.strict_dialect is not None:
            mine = Notes()
            try:
                schema = lower(tool, self.strict_dialect, mine)
            except DefinitionError as error:
                notes.changed(tool.name, f"it cannot be strict: {error}")
                return lower(tool, self.dialect, notes), False
            notes.extend(mine)
            return schema, True
        if wanted is True:
            notes.dropped(f"{tool.name}/strict", f"{self.name} has no strict mode")
        strict = wanted if self.strict_dialect is not None and isinstance(wanted, bool) else None
        return lower(tool, self.dialect, notes), strict

    def _choice(self, request: ChatRequest, offered: list[Offered], notes: Notes) -> ToolChoice:
        """The choice by the names that the API knows."""
        choice = request.tool_choice
        known = {one.definition.name: one.name for one in offered}
        known |= {str(tool["name"]): str(tool["name"]) for tool in request.provider_tools if "name" in tool}
        missing = [name for name in choice.names if name not in known]
        if missing:
            names = ", ".join(known) or "none"
            raise DefinitionError(f"the tool choice names {missing[0]!r}, which is not offered; offered are: {names}")
        if choice.mode == "required" and not known and not request.provider_tools:
            notes.dropped("tool_choice", "no tool is offered, so none can be required")
            return ToolChoice()
        return ToolChoice(choice.mode, tuple(known[name] for name in choice.names))

    def chooses_from_all(self, choice: ToolChoice, notes: Notes) -> None:
        """Take a note that the model may choose from all tools, where only some were named."""
        notes.changed("tool_choice", f"{self.name} cannot be told to choose from {', '.join(choice.names)} alone")

    def _fitted(self, message: Message) -> Message:
        """The message with names and ids as the API takes them."""
        parts: list[Part] = []
        for part in message.parts:
            match part:
                case ToolCall():
                    part = replace(part, name=self.names.fit(part.name), id=self.ids.fit(part.id))
                case ToolResult():
                    part = replace(
                        part,
                        tool_name=part.tool_name and self.names.fit(part.tool_name),
                        call_id=self.ids.fit(part.call_id),
                    )
                case _:
                    pass
            parts.append(part)
        return replace(message, parts=tuple(parts))

    def decode_request(self, body: Any) -> ChatRequest:
        """What a client asks for, from the body that it sends.

        Raises:
            DefinitionError: the body, a message or a tool is none that the API takes.
        """
        data = as_dict(body)
        try:
            return self.read_request(data)
        except UNREADABLE as error:
            raise DefinitionError(f"the body is no request of {self.name}: {type(error).__name__} {error}") from error

    def encode_results(self, results: Sequence[ToolResult], *, notes: Notes | None = None) -> list[Json]:
        """The results of one turn as the messages that carry them, in their order."""
        notes = Notes() if notes is None else notes
        return self.write_results([self._fitted(Message("tool", tuple(results)))], notes)

    def write_results(self, messages: Sequence[Message], notes: Notes) -> list[Json]:
        """These messages, in the API's words; for APIs whose messages stand in a list."""
        return [made for message in messages for made in self.write_message(message, notes)]

    # -- answers -------------------------------------------------------------------------------------------------

    def decode_response(self, response: Any, *, tools: Any = (), id_seed: str = "") -> ParsedResponse:
        """What a response says. Nothing in it makes this raise: what cannot be read is a problem.

        Args:
            response: the body as a dict, or the object of the provider's own client.
            tools: those of the request; their names come back as they were.
            id_seed: goes into the ids of calls that come without one.

        Raises:
            DefinitionError: `response` is neither a dict nor an object that can become one.
        """
        data = as_dict(response)
        assembler = self._assembler(tools, id_seed)
        try:
            self.read_response(data, assembler)
        except UNREADABLE as error:
            why = f"the body is no response of {self.name}: {type(error).__name__} {error}"
            assembler.problem("malformed", why, _shown(data))
        if assembler.empty:
            assembler.reason = FinishReason.ERROR
            assembler.problem("malformed", f"the body holds no answer of {self.name}", _shown(data))
        assembler.finish()
        return collect(assembler.take(), raw=response)

    def stream_decoder(self, *, tools: Any = (), id_seed: str = "") -> StreamDecoder:
        """A decoder of one streamed answer; see `decode_response` for the arguments."""
        assembler = self._assembler(tools, id_seed)
        return StreamDecoder(self.framing(), self.stream_reader(assembler), assembler)

    def _assembler(self, tools: Any, id_seed: str) -> Assembler:
        return Assembler(self.kind, names=own_names(self.names, definitions(tools)), id_seed=id_seed)

    def encode_response(
        self, response: ParsedResponse, *, model: str = "", id: str = "", created: int = 0, notes: Notes | None = None
    ) -> Json:
        """A response as this API would have given it.

        Args:
            response: the answer.
            model: the model's name, as the answer is to say it.
            id: of the answer; made from what it says if it is not given.
            created: seconds since 1970.
            notes: takes a note of everything that the API has no place for.
        """
        notes = Notes() if notes is None else notes
        if response.finish_reason is FinishReason.ERROR:
            notes.changed("finish_reason", f"{self.name} has no word for an answer that failed")
        for call in response.incomplete:
            notes.dropped(f"call {call.id}", f"the call of {call.name} was cut: only a stream can show it")
        parts = self._fitted(Message("assistant", response_parts(response))).parts
        head = Head(model or "unknown", id or _hashed(parts), created)
        return self.write_response(replace(response, parts=parts), head, notes)

    def encode_stream(
        self, events: Iterable[Event], *, model: str = "", id: str = "", created: int = 0, notes: Notes | None = None
    ) -> Iterator[bytes]:
        """The bytes in which this API would have streamed these events; see `encode_response` for the arguments.

        An error of the provider in the middle ends the stream, as this API's errors do.
        """
        head = Head(model or "unknown", id or "0" * 24, created)
        events = self._told(events, Notes() if notes is None else notes)
        try:
            yield from self.write_stream(map(self._fitted_event, _open_where_cut(events)), head)
        except _Failed as failed:
            yield self.write_error(str(failed))

    def _told(self, events: Iterable[Event], notes: Notes) -> Iterator[Event]:
        """The events, with a note of each that this API has no place for."""
        for event in events:
            match event:
                case Passed(part) if part.provider != self.kind:
                    dropped(part, self.name, notes)
                case ProblemFound(Problem("provider_error", message=message)):
                    raise _Failed(message)
                case ProblemFound(problem):
                    notes.dropped(problem.kind, problem.message)
                case _:
                    pass
            yield event

    def _fitted_event(self, event: Event) -> Event:
        match event:
            case CallStart():
                return replace(event, name=self.names.fit(event.name), id=self.ids.fit(event.id))
            case CallEnd():
                call = replace(event.call, name=self.names.fit(event.call.name), id=self.ids.fit(event.call.id))
                return replace(event, call=call)
        return event

    # -- what an API's file says ---------------------------------------------------------------------------------

    @abstractmethod
    def write_request(self, request: ChatRequest, tools: Sequence[Offered], notes: Notes) -> Json:
        """The body; ids, names and results are in order already."""

    @abstractmethod
    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """One message, as those that say it."""

    @abstractmethod
    def read_request(self, body: Json) -> ChatRequest:
        """What a body asks for."""

    @abstractmethod
    def read_response(self, response: Json, assembler: Assembler) -> None:
        """Tell the assembler what a response says."""

    @abstractmethod
    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """The body of a response; `response.parts` holds what to say."""

    @abstractmethod
    def framing(self) -> Framing:
        """How a stream is cut."""

    @abstractmethod
    def stream_reader(self, assembler: Assembler) -> Callable[[Frame], None]:
        """What reads the frames of one stream."""

    def write_error(self, message: str) -> bytes:
        """How a stream says that it failed."""
        return sse({"error": {"message": message, "type": "server_error", "code": None}})

    @abstractmethod
    def write_stream(self, events: Iterable[Event], head: Head) -> Iterator[bytes]:
        """The bytes of a stream."""


@dataclass(frozen=True, slots=True)
class Head:
    """What an answer says of itself: the model, its id, and when it was made (seconds since 1970)."""

    model: str
    id: str
    created: int


class _Failed(Exception):
    """The provider failed in the middle of an answer."""


class StreamDecoder:
    """Reads one streamed answer: bytes in any split -> events."""

    def __init__(self, framing: Framing, read: Callable[[Frame], None], assembler: Assembler) -> None:
        self._framing = framing
        self._read = read
        self._assembler = assembler

    def feed(self, data: bytes) -> list[Event]:
        """The events that the next bytes make certain."""
        for frame in self._framing.feed(data):
            self._frame(frame)
        return self._assembler.take()

    def finish(self) -> list[Event]:
        """The stream is over; the remaining events, `Finish` last. A second call gives nothing."""
        for frame in self._framing.finish():
            self._frame(frame)
        if self._assembler.reason is None and not self._framing.ended:
            self._assembler.broke_off()
        self._assembler.finish()
        return self._assembler.take()

    def _frame(self, frame: Frame) -> None:
        if frame.error or not isinstance(frame.value, dict):
            why = frame.error or "it is no object"
            self._assembler.problem("malformed", f"a part of the stream cannot be read: {why}", frame.raw)
            return
        try:
            self._read(frame)
        except UNREADABLE as error:
            why = f"a part of the stream is none of this API: {type(error).__name__} {error}"
            self._assembler.problem("malformed", why, _shown(frame.value))


def _messages(conversation: Any) -> tuple[Message, ...]:
    if isinstance(conversation, str):
        return (Message("user", (TextPart(conversation),)),)
    messages = tuple(conversation)
    for message in messages:
        if not isinstance(message, Message):
            kind = type(message).__name__
            raise DefinitionError(f"a {kind} is no toolwire.Message; messages of an API are read with decode_request")
    return messages


def as_dict(obj: Any) -> Json:
    """A dict, or what an object of a provider's own client says of itself as one.

    Raises:
        DefinitionError: it is neither.
    """
    if isinstance(obj, Mapping):
        return dict(obj)
    dump = getattr(obj, "model_dump", None)
    if callable(dump):
        made = dump(mode="json", by_alias=True, exclude_none=True)
        if isinstance(made, Mapping):
            return dict(made)
    raise DefinitionError(f"a {type(obj).__name__} is neither a dict nor an object with model_dump")


def _open_where_cut(events: Iterable[Event]) -> Iterator[Event]:
    """The events, with a bracket in a call that was cut before its arguments came: it is not one without arguments."""
    said: set[int] = set()
    for event in events:
        match event:
            case ArgumentsDelta(index):
                said.add(index)
            case CallEnd(index, _, False) if index not in said:
                yield ArgumentsDelta(index, "{")
            case _:
                pass
        yield event


class _Slot:
    """A call in its place among the events, or one event that belongs to none."""

    __slots__ = ("closed", "events")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.closed = False


def in_order(events: Iterable[Event]) -> Iterator[Event]:
    """The events with each call in one piece: what comes in the middle of a call waits for its end."""
    slots: deque[_Slot] = deque()
    calls: dict[int, _Slot] = {}
    for event in events:
        index = event.index if isinstance(event, CallStart | ArgumentsDelta | CallEnd) else None
        slot = calls.get(index) if index is not None else None
        if slot is None:
            slot = _Slot()
            slots.append(slot)
            slot.closed = index is None
            if index is not None:
                calls[index] = slot
        slot.events.append(event)
        if isinstance(event, CallEnd):
            slot.closed = True
            del calls[event.index]
        while slots:
            yield from slots[0].events
            slots[0].events.clear()
            if not slots[0].closed:
                break
            slots.popleft()
    for slot in slots:
        yield from slot.events


def text_of(parts: Iterable[Part]) -> str:
    """All text of some parts."""
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def calls_of(parts: Iterable[Part]) -> list[ToolCall]:
    """All calls of some parts."""
    return [part for part in parts if isinstance(part, ToolCall)]


def arguments_of(call: ToolCall) -> str:
    """A call's arguments as JSON text."""
    return json_text(call.arguments)


def object_of(arguments: Any) -> Json:
    """The arguments of a call in a history: an object, or its JSON text; what is neither is kept as `input`."""
    if isinstance(arguments, Mapping):
        return dict(arguments)
    text = arguments if isinstance(arguments, str) else ""
    if text.strip() in ("", "null"):
        return {}
    try:
        value, _ = read_json(text, repair=False)
    except JsonError:
        return {"input": text}
    return value if isinstance(value, dict) else {"input": text}


def dropped(part: Part, api: str, notes: Notes) -> None:
    """Take a note of a part that the API has no place for."""
    match part:
        case ReasoningPart():
            notes.dropped("reasoning", f"{part.provider or 'another API'}'s reasoning cannot be used by {api}")
        case OpaquePart():
            kind = part.data.get("type") or next(iter(part.data), "an item")
            notes.dropped(str(kind), f"only {part.provider} understands it")
        case ImagePart():
            notes.dropped("image", f"{api} takes no image here")
        case _:
            notes.dropped(type(part).__name__, f"{api} has no place for it here")


def _hashed(parts: Sequence[Part]) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _shown(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return str(type(value))

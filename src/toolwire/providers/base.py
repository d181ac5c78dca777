"""The base class of all provider APIs: their public methods, and the order of the steps behind these.

A provider API is pure: JSON and bytes become values and events, and the other way round. The module of an API states
how that API spells messages, tools and answers. Ids, names, schemas, pairing of results and the rules for building
calls are the same for all APIs and have modules of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any, ClassVar, Unpack

from toolwire._surface import check_items, check_type
from toolwire.errors import DefinitionError
from toolwire.events import (
    CallStart,
    ContentDelta,
    Event,
    Finish,
    OpaquePartReceived,
    ProblemFound,
    UsageCounted,
    collect,
    response_parts,
)
from toolwire.messages import Content, FinishReason, Message, ParsedResponse, ToolResult
from toolwire.providers.answer_losses import note_losses, put_answer_members
from toolwire.providers.answer_shapes import AnswerShape, joined
from toolwire.providers.cache_marks import MarkForm, with_marks
from toolwire.providers.failure_kinds import INTERNAL, FailureKind
from toolwire.providers.finish_reasons import has_failure_word
from toolwire.providers.framing import Frame, Framing, ServerSentEvents, sse
from toolwire.providers.identifiers import ANY, Alphabet, own_names
from toolwire.providers.member_types import check_member_types, unreadable_reason
from toolwire.providers.message_parts import Json, answer_members, note_dropped
from toolwire.providers.offered_tool import OfferedTool, text_input
from toolwire.providers.output_schema import OutputSchema
from toolwire.providers.output_support import OutputSupport
from toolwire.providers.request import (
    ChatRequest,
    Notes,
    RequestOptions,
    ToolChoice,
    note_foreign_members,
    pair_results,
)
from toolwire.providers.required_parts import called_tools, with_beginning
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.schema_dialects import Dialect, lower
from toolwire.providers.server_tools import translate_server_tools
from toolwire.providers.setting_members import SettingMembers, private_members
from toolwire.providers.spelling import Spelling
from toolwire.providers.stream_codec import (
    UNREADABLE,
    WAITING,
    EventWriter,
    FrameReader,
    Head,
    ProviderFailed,
    StreamDecoder,
    StreamEncoder,
    StreamEncoding,
    StreamEnd,
    answer_id,
    as_dict,
    open_truncated_calls,
    written_async,
)
from toolwire.text.json_text import json_excerpt
from toolwire.text.suggest import check_options
from toolwire.tools import ToolDefinition, definitions


class ProviderApi(ABC):
    """One API.

    Attributes:
        name: the name that users know it by.
        kind: the API whose vocabulary it uses; reasoning sealed by any API of a kind can go back to any other of it.
        names, ids: the spelling of tools' names and of calls' ids.
        dialect: the schema dialect.
        strict_dialect: the schema dialect of strict mode; None without strict mode.
        members: other members of a body that `read_request` reads.
        takes_text_input: whether there are tools whose input is text, not JSON.
        divides_text: whether sources belong to blocks of text, so that a statement must be a block.
        defines_called_tools: whether a request with earlier calls is refused if it offers no tools.
        separates_system: whether system messages are not part of the conversation, which may not be empty.
        begins_with_user: whether a conversation must not begin with a message of the model.
        checks_signatures: whether reasoning is refused whose signature the API did not give.
        framing, reader, writer: classes with an instance for each stream. An API may override the methods instead.
    """

    kind: ClassVar[str]
    names: Alphabet = ANY
    ids: Alphabet = ANY
    dialect: Dialect
    strict_dialect: Dialect | None = None
    _settings: SettingMembers = SettingMembers()
    members: frozenset[str]
    takes_text_input = divides_text = False
    _mark_form: MarkForm | None = None  # the form of cache marks
    separates_system = begins_with_user = defines_called_tools = checks_signatures = False
    _outputs: OutputSupport  # the structured outputs of the API
    _answer: AnswerShape
    framing: Callable[[], Framing] = ServerSentEvents
    reader: Callable[[ResponseBuilder], FrameReader]
    writer: Callable[[Head, StreamEnd], EventWriter]

    def __init__(self, name: str = "") -> None:
        self.name = name or self.kind

    def __repr__(self) -> str:
        """Return the API's name."""
        return f"<ProviderApi {self.name}>"

    # -- requests ------------------------------------------------------------------------------------------------

    def encode_request(
        self,
        conversation: ChatRequest | Iterable[Message] | Content,
        *,
        tools: Any = None,
        model: str | None = None,
        stream: bool | None = None,
        notes: Notes | None = None,
        **options: Unpack[RequestOptions],
    ) -> Json:
        """Return the body of a request.

        Calls and results are paired, ids and names are spelled for the API, schemas are translated to its dialect. A
        tool that cannot be offered is left out, with a note of the reason.

        Args:
            conversation: messages; a user's text, or a list of text, images and files; or a whole request, whose
                fields the other arguments override.
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
        request = ChatRequest.of(conversation, {**options, "tools": tools, "model": model, "stream": stream})
        if request.provider and request.provider != self.kind:
            for path in private_members(request):
                notes.dropped(path, f"{self.name} has no equivalent")
            if self._mark_form is not None:
                request = with_marks(request, self.kind, self._mark_form)
            counterparts = translate_server_tools(request, self.kind, self.name, notes, block=self._mark_form)
            request = replace(request, extra={}, provider_tools=counterparts)
        offered = list(self._offer(request.tools, notes))
        choice = self._choice(request, offered, notes)
        paired = self.pair(request, notes)
        note_foreign_members(request, paired, self.kind, notes)
        messages = tuple(map(self._spelling().message, paired))
        if self.defines_called_tools and not offered and not request.provider_tools:
            offered = list(self._offer(called_tools(messages, self.name, notes), notes))
        if self.separates_system and request.provider != self.kind:  # a client of this API knows what it may send
            messages = with_beginning(messages, self.name, notes, by_user=self.begins_with_user)
        request = replace(request, messages=messages, tool_choice=choice)
        body = self.write_request(request, offered, notes)
        self._write_output(request, body, notes)
        return body

    @property
    def hides_schemas(self) -> bool:
        """True if a schema for answers limits what the model can write, but the model does not see it."""
        return not self._outputs.shown

    def guarantees(self, output: OutputSchema, *, tools: bool) -> bool:
        """Return whether answers are sure to follow a schema, in requests with or without tools."""
        return self._outputs.accepts(output, tools=tools)

    def _write_output(self, request: ChatRequest, body: Json, notes: Notes) -> None:
        """Write the schema of the answer into the body."""
        output, support = request.output, self._outputs
        if output is None:
            return
        if request.provider != self.kind or support.schemas is None:  # what a client of this API sent stays as it is
            output = support.fit(output, self.name, notes)
            if output is not None and request.tools and not support.with_tools:
                notes.changed("output", f"beside tools, {self.name} refuses a schema for answers, or calls no tool")
        if output is not None:
            support.place.put(body, output)

    def takes_setting(self, name: str) -> bool:
        """Return whether the API has a setting of `toolwire.models.ModelSettings`."""
        return self._settings.takes(name)

    def _with_settings(self, body: Json, request: ChatRequest, notes: Notes) -> Json:
        """Return a body with the members that only this API has, and with the settings of a request."""
        return self._settings.write({**body, **request.extra}, request, self, notes)

    def pair(self, request: ChatRequest, notes: Notes) -> tuple[Message, ...]:
        """Return the messages, with each call answered once."""
        return pair_results(request.messages, notes)

    def _offer(self, tools: Iterable[ToolDefinition], notes: Notes) -> Iterator[OfferedTool]:
        originals: dict[str, str] = {}
        for tool in tools:
            name = self.names.fit(tool.name)
            if name in originals:
                notes.quarantined(tool.name, f"its name and that of {originals[name]!r} are the same to {self.name}")
                continue
            try:
                schema, strict = self._schema(tool, notes)
            except DefinitionError as error:
                notes.quarantined(tool.name, str(error))
                continue
            originals[name] = tool.name
            if name != tool.name:
                notes.changed(tool.name, f"{self.name} takes no such name: it is called {name}")
            custom = text_input(tool)
            if custom is None and "custom" in tool.annotations:
                notes.dropped(f"{tool.name}/custom", "only a tool with the parameter input alone can get text")
            if not self.takes_text_input and custom is not None:
                notes.changed(f"{tool.name}/input", f"{self.name} has no text as input: it is an argument")
                if custom.get("format"):
                    notes.dropped(f"{tool.name}/format", f"{self.name} cannot be told how input is written")
            yield OfferedTool(name, schema, strict, tool)

    def _schema(self, tool: ToolDefinition, notes: Notes) -> tuple[Json, bool | None]:
        strict = tool.annotations.get("strict")
        if strict is True and self.strict_dialect is not None:
            # Losses of a translation that fails do not count.
            strict_notes = Notes()
            try:
                schema = lower(tool, self.strict_dialect, strict_notes)
            except DefinitionError as error:
                notes.changed(tool.name, f"it cannot be strict: {error}")
                return lower(tool, self.dialect, notes), False
            notes.extend(strict_notes)
            return schema, True
        if strict is True:
            notes.dropped(f"{tool.name}/strict", f"{self.name} has no strict mode")
        has_strict_mode = self.strict_dialect is not None and isinstance(strict, bool)
        return lower(tool, self.dialect, notes), strict if has_strict_mode else None

    def _choice(self, request: ChatRequest, offered: list[OfferedTool], notes: Notes) -> ToolChoice:
        """Return the choice with the tools' names as the API spells them."""
        choice = request.tool_choice
        spelled = {tool.definition.name: tool.name for tool in offered}
        spelled |= {str(tool["name"]): str(tool["name"]) for tool in request.provider_tools if "name" in tool}
        missing = [name for name in choice.names if name not in spelled]
        if missing:
            names = ", ".join(spelled) or "none"
            raise DefinitionError(f"the tool choice names {missing[0]!r}, which is not offered; offered are: {names}")
        if choice.mode == "required" and not spelled and not request.provider_tools:
            notes.dropped("tool_choice", "no tool is offered, so none can be required")
            return ToolChoice()
        return ToolChoice(choice.mode, tuple(spelled[name] for name in choice.names))

    def note_choice_from_all(self, choice: ToolChoice, notes: Notes) -> None:
        """Note that the model may choose from all tools although the choice names some."""
        notes.changed("tool_choice", f"{self.name} cannot be told to choose from {', '.join(choice.names)} alone")

    def decode_request(self, body: Any) -> ChatRequest:
        """Parse the body that a client sends.

        Raises:
            DefinitionError: the body, a message or a tool is not one that the API takes.
        """
        data = as_dict(body, "a request must be")
        try:
            request = self.read_request(data)
        except UNREADABLE as error:
            reason = unreadable_reason(self.read_request, data, error)
            raise DefinitionError(f"the body is not a request of {self.name}: {reason}") from error
        check_member_types(request)
        return request

    def _request_of(self, body: Json, messages: Iterable[Message], **fields: Any) -> ChatRequest:
        """Return the request that a body stands for; `fields` replace what the common members say."""
        body = dict(body)
        output = self._outputs.place.take(body)
        settings, rest = self._settings.read(body)
        common = {
            "messages": tuple(messages),
            "output": output,
            "model": str(body.get("model") or ""),
            "stream": bool(body.get("stream")),
            "provider": self.kind,
            "extra": {key: value for key, value in rest.items() if key not in self.members},
            **settings,
        }
        return ChatRequest(**{**common, **fields})

    def encode_results(self, results: Sequence[ToolResult], *, notes: Notes | None = None) -> list[Json]:
        """Return the messages that carry the results of one turn, in the order of the results."""
        check_items("results", results, ToolResult, "a sequence of ToolResult")
        notes = Notes() if notes is None else notes
        return self.write_messages([self._spelling().message(Message("tool", tuple(results)))], notes)

    def write_messages(self, messages: Iterable[Message], notes: Notes) -> list[Json]:
        """Return these messages in the API's spelling."""
        return [written for message in messages for written in self.write_message(message, notes)]

    # -- answers -------------------------------------------------------------------------------------------------

    def decode_response(self, response: Any, *, tools: Any = (), id_seed: str = "") -> ParsedResponse:
        """Parse a response. Unreadable content does not raise: it becomes a problem of the result.

        Args:
            response: the body as a dict, or the object of the provider's own client.
            tools: those of the request; calls get the tools' original names.
            id_seed: part of the ids of calls that come without one.

        Raises:
            DefinitionError: `response` is neither a dict nor an object that can become one.
        """
        data = as_dict(response)
        builder = self._builder(tools, id_seed)
        why = ""
        try:
            self.read_response(data, builder)
        except UNREADABLE as error:
            why = f"the body is not a response of {self.name}: {type(error).__name__} {error}"
        if builder.empty:  # unread members alone are no answer
            builder.fail_with(data, why or f"the body contains no answer of {self.name}", json_excerpt(data))
        elif why:
            builder.add_problem("malformed", why, json_excerpt(data))
        else:
            builder.add_unread(self._answer, data)
        builder.finish()
        return collect(builder.take(), raw=response)

    def stream_decoder(self, *, tools: Any = (), id_seed: str = "") -> StreamDecoder:
        """Return a decoder of one streamed answer; see `decode_response` for the arguments."""
        builder = self._builder(tools, id_seed)
        return StreamDecoder(self.framing(), self.stream_reader(builder), builder)

    def _builder(self, tools: Any, id_seed: str) -> ResponseBuilder:
        return ResponseBuilder(self.kind, names=own_names(self.names, definitions(tools)), id_seed=id_seed)

    def encode_response(
        self,
        response: ParsedResponse,
        *,
        tools: Any = (),
        model: str = "",
        id: str = "",
        created: int = 0,
        notes: Notes | None = None,
    ) -> Json:
        """Return the body in which this API would have given a response.

        Args:
            response: the answer.
            tools: those of the request, whose names remain as the client knows them.
            model: the model's name.
            id: the answer's id; "" to derive it from the content.
            created: seconds since 1970.
            notes: collects everything that the API has no place for.
        """
        check_type("response", response, ParsedResponse, "a ParsedResponse")
        wants_notes, notes = notes is not None, Notes() if notes is None else notes
        if response.finish_reason is FinishReason.ERROR and not has_failure_word(self.kind):
            notes.changed("finish_reason", f"{self.name} has no word for an answer that failed")
        for call in response.incomplete:
            where = f"call {call.id or call.name}"
            notes.dropped(where, f"the call of {call.name} was truncated: only a stream can show it")
        parts = self._spelling(tools).message(Message("assistant", response_parts(response))).parts
        head = Head(model or "unknown", id or answer_id(parts), created)
        body = self.write_response(replace(response, parts=parts), head, notes)
        put_answer_members(body, response.parts, self.kind, notes)
        if wants_notes:
            note_losses(response, self.decode_response(body), self.name, notes)
        return body

    def encode_stream(
        self,
        events: Iterable[Event],
        *,
        tools: Any = (),
        model: str = "",
        id: str = "",
        created: int = 0,
        notes: Notes | None = None,
        source: StreamDecoder | None = None,
    ) -> Iterator[bytes]:
        """Yield the bytes in which this API would have streamed these events; see `encode_response` for the arguments.

        An error of the provider ends the stream with an error of this API. `source` is the decoder that the events come
        from: the stream has its model, id and time where none is passed.
        """
        check_type("events", events, Iterable, "an iterable of events; encode_stream_async takes an asynchronous one")
        if source is not None:
            # The decoder knows them once the first event is there.
            pulled = iter(events)
            events = chain(list(islice(pulled, 1)), pulled)
            model, id, created = model or source.model, id or source.id, created or source.created
        head, end = Head(model or "unknown", id or "0" * 24, created), StreamEnd()
        written: list[Event] | None = None if notes is None else []
        writable = self._writable(events, end, Notes() if notes is None else notes, written)
        try:
            yield from self.write_stream(map(self._spelling(tools).event, open_truncated_calls(writable)), head, end)
        except ProviderFailed as failure:
            yield self.write_error(str(failure), failure.kind, head)
            return
        if notes is not None and written:  # a stream has what a whole answer has, and calls that were truncated
            self.encode_response(replace(collect(written), incomplete=()), tools=tools, notes=(differences := Notes()))
            notes.extend(note for note in differences if note not in notes)

    def encode_stream_async(
        self, events: AsyncIterable[Event], **options: Unpack[StreamEncoding]
    ) -> AsyncGenerator[bytes]:
        """Yield the bytes of a stream as its events arrive; see `encode_stream`."""
        return written_async(self.stream_encoder(**options), events)

    def stream_encoder(self, **options: Unpack[StreamEncoding]) -> StreamEncoder:
        """Return an encoder of a stream whose events are pushed as they arrive; see `encode_stream`."""
        return StreamEncoder(partial(self.encode_stream, **options))

    def _writable(
        self, events: Iterable[Event], end: StreamEnd, notes: Notes, written: list[Event] | None
    ) -> Iterator[Event]:
        """Yield the events that this API has a place for; note the others, and set the totals of the stream."""
        for event in events:
            if written is not None and event is not WAITING:
                written.append(event)
            match event:
                case OpaquePartReceived(part) if part.provider != self.kind:
                    note_dropped(part, self.name, notes)
                case OpaquePartReceived(part) if members := answer_members(part):
                    end.members = joined(end.members, members)
                case ProblemFound(problem):
                    end.add_problem(problem, notes)
                case ContentDelta("") if event is not WAITING and not self.divides_text:
                    pass
                case UsageCounted(usage):
                    end.usage = usage
                case Finish(reason):
                    end.finish(reason, self.kind, self._answer)
                case _:
                    end.has_calls |= isinstance(event, CallStart)
                    yield event
        if not end.is_finished:
            end.finish(None, self.kind, self._answer)

    def _spelling(self, tools: Any = ()) -> Spelling:
        """Return how ids and names are spelled; the reader of an answer knows its own tools by their own names."""
        return Spelling(self.names, self.ids, frozenset(definitions(tools)))

    # -- defined by the API's own module -------------------------------------------------------------------------

    @abstractmethod
    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body; ids, names and results are in order already."""

    @abstractmethod
    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """Return the messages of the API that one message becomes."""

    @abstractmethod
    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body."""

    @abstractmethod
    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the content of a response to the builder."""

    @abstractmethod
    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return the body of a response; `response.parts` is its content."""

    def stream_reader(self, builder: ResponseBuilder) -> Callable[[Frame], None]:
        """Return the function that reads the frames of one stream."""
        return self.reader(builder).read

    def write_error(self, message: str, kind: FailureKind = INTERNAL, head: Head | None = None) -> bytes:
        """Return what reports a failure in the middle of a stream; `head` is that of the answer, if there is one."""
        return sse({"error": {"message": message, "type": kind.openai_type, "code": kind.openai_code or None}})

    def write_stream(self, events: Iterable[Event], head: Head, end: StreamEnd) -> Iterator[bytes]:
        """Yield the bytes of a stream; `end` is complete once the events are consumed."""
        return self.writer(head, end).write(events)

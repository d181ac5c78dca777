"""Model backends: a request goes in, events come out, for any server and any way to write calls.

A backend either has fields for tools (an API), or everything is text: definitions are part of the system prompt, calls
and results are rendered into the messages in one wire format, and calls are parsed from the model's text.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from toolwire._surface import check_type, wrong_type
from toolwire.errors import RenderError
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, ContentDelta, Event, Finish, UsageCounted, replay
from toolwire.messages import FilePart, FinishReason, Message, Part, TextPart, ToolCall, ToolResult, Usage
from toolwire.models.constraints import (
    ConstrainedAnswer,
    ConstrainedSource,
    Constraint,
    strict_request,
    strict_tools,
)
from toolwire.providers.model_settings import SETTINGS, ModelOptions, ModelSettings, RequestAdditions
from toolwire.providers.parsing import parse
from toolwire.providers.request import ChatRequest, Notes, group_results, result_texts
from toolwire.text.identity_cache import IdentityCache
from toolwire.text.suggest import check_options
from toolwire.text.tokens import estimate_tokens
from toolwire.tools import ToolDefinition
from toolwire.wire.format_registry import get_format
from toolwire.wire.prompts import render_calls, render_results
from toolwire.wire.result_text import inert_file
from toolwire.wire.stream_parser import StreamParser

if TYPE_CHECKING:
    from toolwire.client.client import Client  # not imported at run time: a text model needs no HTTP

BABBLE = 20
"""Characters of prose after a complete call at which a text model is stopped: small models invent results there."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Options of one streamed answer. A backend may ignore those that it has no use for.

    Attributes:
        id_seed: part of the ids of calls that come without one.
        raw_text: collects the text that a text-only model writes, markers included; None to discard it.
        notes: collects what could not be translated for the model; None to discard it.
        memo: caches rendered messages between the requests of a run; None to render each request anew.
        extra_body, extra_headers: additions to the request; see `ModelOptions`.
        attempts: begins the attempt of one model, in a backend that may ask several; None if its reader can read the
            answer of one model only, to one request.
        prompt: collects the messages of text that a text-only model is sent; None to discard them.
        refusals: the models whose server refused their constraint, with the reason: a backend adds itself, and is not
            constrained again in the same run; None to try each request anew.
    """

    id_seed: str = ""
    raw_text: list[str] | None = None
    notes: Notes | None = None
    memo: IdentityCache | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    attempts: Callable[[Backend], Attempt] | None = None
    prompt: list[Message] | None = None
    refusals: MutableMapping[Backend, str] | None = None


class Attempt(Protocol):
    """The attempt of one model to answer, as a backend of several models sees it.

    Attributes:
        request: the request as this model reads it.
        options: options of its answer.
    """

    @property
    def request(self) -> ChatRequest: ...  # noqa: D102

    @property
    def options(self) -> StreamOptions: ...  # noqa: D102

    def begin(self, reason: str, /) -> None:
        """Take the events that follow as the answer; those of an earlier attempt are void. `reason` is for people."""
        ...

    def drop(self, reason: str, events: Sequence[Event], /, *, billed: bool) -> None:
        """Record that the model's answer is not read.

        Args:
            reason: why, for people.
            events: the events of the answer so far.
            billed: whether it may have to be paid.
        """
        ...


NO_OPTIONS = StreamOptions()


class Backend(Protocol):
    """A model."""

    @property
    def model(self) -> str:
        """The name of the model."""
        ...

    @property
    def api(self) -> str:
        """The API that the model is reached through, or ""."""
        ...

    @property
    def format(self) -> str:
        """The wire format that the model is asked to write; "" if calls have fields of their own."""
        ...

    def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        """Yield the events of an answer, `Finish` last; closing the iterator stops the model.

        Raises:
            ProviderError: the model cannot be reached, or refuses.
        """
        ...


class ApiBackend:
    """A model behind an API with fields for tools; calls in its text are parsed too.

    Args:
        client: the client of the API; its owner closes it.
        streamed: whether answers are streamed. Whole answers are for servers that stream no tool calls.
        options: additions to each request; see `toolwire.models.ModelOptions`.

    Attributes:
        constraint: makes the tools of each request strict; None for no change; may be set later.

    Raises:
        DefinitionError: a setting has an invalid value.
        TypeError: `client` is not a client, or an option is unknown.
    """

    format = ""

    def __init__(self, client: Client, *, streamed: bool = True, **options: Unpack[ModelOptions]) -> None:
        _check_client(client)
        check_type("streamed", streamed, bool, "True or False")
        check_options("ApiBackend", options, ModelOptions.__annotations__)
        self.model = client.model
        self.api = client.api.name
        self.price_provider = client.price_provider
        self.client = client
        self._streamed = streamed
        self._additions = RequestAdditions.of(**options)
        self.constraint: Constraint | None = None

    @property
    def takes_grammars(self) -> bool:
        """True if a constraint has an effect: the API has strict tools."""
        return self.client.api.strict_dialect is not None

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        """See `Backend`."""
        kind = strict_tools(self.client.api.strict_dialect)
        answer = ConstrainedAnswer(self, kind, options.refusals, options.notes)
        strict = None if self.constraint is None else strict_request(self.constraint, request)
        first = None if strict is None or answer.was_refused() else self._answer(strict, options)
        async with aclosing(answer.events(first, lambda: self._answer(request, options))) as events:
            async for event in events:
                yield event

    async def _answer(self, request: ChatRequest, options: StreamOptions) -> AsyncGenerator[Event]:
        with_settings = request.with_defaults(self._additions.settings)
        call = RequestAdditions(extra_body=options.extra_body, extra_headers=options.extra_headers)
        additions = call.over(self._additions)
        send = partial(
            self.client.stream if self._streamed else self._whole,
            with_settings,
            tools=request.tools,
            notes=options.notes,
            id_seed=options.id_seed,
            extra_body=additions.extra_body,
            extra_headers=additions.extra_headers,
        )
        async with aclosing(send()) as events:
            async for event in events:
                yield event

    async def _whole(self, request: ChatRequest, **options: Any) -> AsyncGenerator[Event]:
        """Yield the events of a whole answer, once it is there."""
        for event in replay(await self.client.ask(request, **options)):
            yield event


def _check_client(client: Client) -> None:
    if not hasattr(client, "api"):  # its class is not imported here: a model of text needs no HTTP
        raise wrong_type("client", client, "a Client")


Source = Callable[..., AsyncGenerator[Event]]
"""A text model: takes messages of text, and yields content, reasoning, and a `Finish`.

Its keyword parameters are the settings that it takes, by their names in `ModelSettings`; those that a request leaves
open are not passed. It may also take `extra_body`, `extra_headers` and `notes`; see `StreamOptions`.
"""


class TextBackend:
    """A model that reads and writes text alone.

    If it reports no token counts, because it was stopped or never does, they are estimated: a budget must work for it
    too.

    Args:
        source: the model; see `client_source` and `local_source`.
        format: the wire format that the model is asked to write.
        model: the model's name.
        api: the API that it is reached through, if any.
        reads: the format in which its calls are parsed, "auto" for any; "" for `format`.
        results: the format of results; "" for `format`.
        babble: characters of prose after a complete call at which the model is stopped; None for never.

    Attributes:
        constraint: the grammar under which the model writes; None for none; may be set later.
    """

    def __init__(
        self,
        source: Source,
        *,
        format: str,
        model: str = "",
        api: str = "",
        reads: str = "",
        results: str = "",
        babble: int | None = BABBLE,
    ) -> None:
        if not callable(source):
            raise wrong_type("source", source, "a source, such as client_source(client)")
        self.model = model
        self.api = api
        get_format(format)  # here, where a misspelt name was written, and not at the first request
        self.format = format
        self._source = source
        self._takes = keyword_names(source)
        self._reads = reads or format
        self._results = results or format
        self._babble = babble
        self.constraint: Constraint | None = None

    @property
    def _constrained_source(self) -> ConstrainedSource:
        return ConstrainedSource(self._source, self._takes, self.format, self.api, self.constraint, self)

    @property
    def takes_grammars(self) -> bool:
        """True if a constraint has an effect: the model is in this process, or its server's field is known."""
        return self._constrained_source.takes_grammars

    def _keywords_of(self, request: ChatRequest, options: StreamOptions) -> dict[str, Any]:
        """Return the keywords for the model; note settings that it does not take."""
        values: dict[str, Any] = {name: getattr(request, name) for name in ModelSettings.__annotations__}
        values |= {"extra_body": options.extra_body, "extra_headers": options.extra_headers}
        keywords: dict[str, Any] = {"notes": options.notes} if "notes" in self._takes else {}
        for name, value in values.items():
            if value in (None, (), {}):
                continue
            if name in self._takes:
                keywords[name] = value
            elif options.notes is not None:
                options.notes.dropped(name, f"{self.model or 'the model'} reads text, and has no setting for it")
        return keywords

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        """See `Backend`."""
        tools = request.tools
        parser = StreamParser(
            format=self._reads if tools else "plain",
            tools=tools,
            fallback="whole_message",
            id_seed=options.id_seed,
            results=result_texts(request.messages),
        )
        end = Finish(FinishReason.STOP)
        has_called, is_over, has_usage, trailing, written = False, False, False, 0, 0
        raw = options.raw_text
        prompt = text_messages(
            request.messages, format=self.format, tools=tools, results=self._results, memo=options.memo
        )
        if options.prompt is not None:
            options.prompt.extend(prompt)
        written_text = self._constrained_source.stream(
            prompt,
            request,
            self._keywords_of(request, options),
            notes=options.notes,
            refusals=options.refusals,
        )
        async with aclosing(written_text) as pieces:
            async for piece in pieces:
                if isinstance(piece, Finish):
                    end = piece
                    break
                if not isinstance(piece, ContentDelta):
                    has_usage = has_usage or isinstance(piece, UsageCounted)
                    yield piece
                    continue
                written += len(piece.text)
                if raw is not None:
                    raw.append(piece.text)
                for event in parser.feed(piece.text):
                    has_called = has_called or (isinstance(event, CallEnd) and event.complete)
                    if has_called and isinstance(event, ContentDelta):
                        trailing += len(event.text.strip())
                    yield event
                    is_over = _is_only_call(request, event)
                    if is_over:
                        break
                if is_over or (self._babble is not None and trailing > self._babble):
                    break
        if not has_usage:  # the model was stopped before it reported them, or never does
            read = sum(len(part.text) for message in prompt for part in message.parts if isinstance(part, TextPart))
            yield UsageCounted(Usage(estimate_tokens(read), estimate_tokens(written), estimated=True))
        # Behind the only call that the request allows, the model was stopped, as by a stop word.
        for event in (Finish(FinishReason.TOOL_CALLS),) if is_over else parser.finish():
            if isinstance(event, Finish) and end.reason is not FinishReason.STOP:
                event = end
            # Calls without markers are known at the end only, so nothing could stop the model behind the first.
            if is_over and isinstance(event, CallStart | ArgumentsDelta | CallEnd):
                continue
            yield event
            is_over = is_over or _is_only_call(request, event)


def _is_only_call(request: ChatRequest, event: Event) -> bool:
    """Return whether an event ends the only call that a request allows."""
    return request.parallel is False and isinstance(event, CallEnd) and event.complete


def keyword_names(source: Source) -> Collection[str]:
    """Return the keywords that a text model takes: the settings and the members of `StreamOptions`."""
    try:
        parameters = signature(source).parameters.values()
    except ValueError:  # a function without Python code
        return ("max_tokens", "temperature")
    names = {parameter.name for parameter in parameters if parameter.kind is not Parameter.VAR_KEYWORD}
    has_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters)
    return names | SETTINGS - {"parallel"} if has_any else names - {"parallel"}


def client_source(client: Client, **options: Unpack[ModelOptions]) -> Source:
    """Return the source of a model behind an API that is asked with text alone.

    Args:
        client: the client of the API; its owner closes it.
        options: additions to each request; see `toolwire.models.ModelOptions`.

    Raises:
        DefinitionError: a setting has an invalid value.
        TypeError: an option is unknown.
    """
    check_options("client_source", options, ModelOptions.__annotations__)
    additions = RequestAdditions.of(**options)

    async def stream(
        messages: list[Message],
        *,
        notes: Notes | None = None,
        extra_body: Mapping[str, Any] | None = None,
        extra_headers: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> AsyncGenerator[Event]:
        call = RequestAdditions.of(settings, extra_body, extra_headers).over(additions)
        async with aclosing(
            client.stream(
                messages,
                notes=notes,
                settings=call.settings,
                extra_body=call.extra_body,
                extra_headers=call.extra_headers,
            )
        ) as events:
            async for event in events:
                yield event

    return stream


_AS_TEXT = (TextPart, ToolCall, ToolResult)  # parts that become text


def text_messages(
    messages: Iterable[Message],
    *,
    format: str,
    tools: Sequence[ToolDefinition] = (),
    results: str = "",
    memo: IdentityCache | None = None,
) -> list[Message]:
    """Return a conversation as text alone: calls and results in the format that the model writes and reads.

    Results become user messages. A user message that follows them is merged with them, because templates expect turns
    to alternate. Markup for models is inert in results and in documents. Reasoning is left out, and so is a message of
    the model without text and calls. A call that the format cannot express is written as it was parsed. Where results
    name the id of their call, it is the id in the call's text.

    Args:
        messages: the conversation.
        format: the wire format.
        tools: the tools of the calls.
        results: the format of results, if it differs.
        memo: caches rendered messages, because the conversation is rendered again in each round.
    """
    memo, wire = memo or IdentityCache(), get_format(results or format)
    rendered: list[Message] = []
    shows_ids = any("{id}" in edge for edge in wire.result)
    ids: dict[str, str] = {}  # of calls as the format writes them, by those of the conversation
    for message in group_results(messages):
        role, parts = message.role, message.parts
        if role == "tool":
            tool_results = [part for part in parts if isinstance(part, ToolResult)]
            way = results or format
            call_ids = tuple(ids.get(result.call_id, result.call_id) for result in tool_results)
            render = partial(_result_text, tool_results, call_ids, way)
            role, text = "user", memo.get(render, tool_results, way, call_ids)
        elif role == "assistant":
            text = memo.get(partial(_model_text, parts, format, tools), (*parts, *tools), format, len(parts))
            if shows_ids:
                read = partial(_written_ids, text, parts, format, tools)
                ids |= memo.get(read, (*parts, *tools), "ids", format, len(parts))
            if not text:
                continue
        else:
            text = text_of(message)
        media: list[Part] = [part for part in parts if role == "user" and not isinstance(part, _AS_TEXT)]
        media += [part for result in parts if isinstance(result, ToolResult) for part in result.media]
        media = [inert_file(wire, part) if isinstance(part, FilePart) else part for part in media]
        if role == "user" and rendered and rendered[-1].role == "user":
            previous = rendered.pop()
            text = "\n\n".join(filter(None, (text_of(previous), text)))
            media = [*(part for part in previous.parts if not isinstance(part, TextPart)), *media]
        rendered.append(Message(role, (TextPart(text), *media)))
    return rendered


def _model_text(parts: Sequence[Part], format: str, tools: Sequence[ToolDefinition]) -> str:
    """Return the text of a model's message: its prose, then its calls."""
    prose = "".join(part.text for part in parts if isinstance(part, TextPart)).strip()
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if not calls:
        return prose
    try:
        written = render_calls(calls, format=format, tools=tools)
    except RenderError:
        written = "\n".join(call.raw for call in calls)
    return "\n\n".join(filter(None, (prose, written)))


def _result_text(results: Sequence[ToolResult], call_ids: Sequence[str], format: str) -> str:
    """Return results as text, under the ids that their calls have in the text."""
    named = [replace(result, call_id=id) for result, id in zip(results, call_ids, strict=True)]
    return render_results(named, format=format)


def _written_ids(text: str, parts: Sequence[Part], format: str, tools: Sequence[ToolDefinition]) -> Mapping[str, str]:
    """Return the ids of calls in the text of a model's message, by the calls' own ids."""
    calls = [part for part in parts if isinstance(part, ToolCall)]
    written = parse(text, format=format, tools=tools).tool_calls if calls else ()
    if len(written) != len(calls):
        return {}
    return {call.id: read.id for call, read in zip(calls, written, strict=True) if call.id}


def text_of(message: Message) -> str:
    """Return the text of a message."""
    return "\n\n".join(part.text for part in message.parts if isinstance(part, TextPart))

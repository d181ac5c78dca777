"""Models as an agent asks them: a request goes out, events come back, whoever serves the model and however it calls.

A backend either has fields for tools (an API), or everything is text: then definitions stand in the system prompt,
calls and results are written into the messages in one wire format, and calls are read from what the model writes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from toolwire._surface import wrong_type
from toolwire.errors import ProviderError, RenderError, ToolwireError
from toolwire.events import CallEnd, ContentDelta, Event, Finish, UsageCounted
from toolwire.messages import FinishReason, Message, Part, TextPart, ToolCall, ToolResult, Usage
from toolwire.providers.request import ChatRequest, Notes, RequestOptions, group_results
from toolwire.runtime.foreign_code import capture_errors
from toolwire.text.identity_cache import IdentityCache
from toolwire.text.suggest import check_options
from toolwire.text.tokens import estimate_tokens
from toolwire.tools import ToolDefinition
from toolwire.wire.prompts import render_calls, render_results
from toolwire.wire.stream_parser import StreamParser

if TYPE_CHECKING:
    from toolwire.client.client import Client  # whoever has one has loaded it; a model of text needs no HTTP

BABBLE = 20
"""Characters of prose behind a complete call at which a model of text is stopped: small ones invent results there."""

FALLBACK = ("bare_json", "pythonic")


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Options of one streamed answer. A backend may ignore those that it has no use for.

    Attributes:
        id_seed: part of the ids of calls that come without one.
        raw_text: collects the text that a text-only model writes, markers included; None to discard it.
        notes: collects what could not be translated for the model; None to discard it.
        memo: caches rendered messages between the requests of a run; None to render each request anew.
    """

    id_seed: str = ""
    raw_text: list[str] | None = None
    notes: Notes | None = None
    memo: IdentityCache | None = None


NO_OPTIONS = StreamOptions()


class Backend(Protocol):
    """A model."""

    @property
    def model(self) -> str:
        """Its name."""
        ...

    @property
    def api(self) -> str:
        """The API that it is asked through, or ""."""
        ...

    @property
    def format(self) -> str:
        """The wire format that it is asked to write; "" where calls have fields of their own."""
        ...

    def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        """The events of an answer, `Finish` last; closing it stops the model.

        Raises:
            ProviderError: the model cannot be reached, or refuses.
        """
        ...


class ApiBackend:
    """A model behind an API with fields for tools; calls that stand in its text are read too.

    Args:
        client: of the API; its owner closes it.
        options: what else goes into each request, see `ProviderApi.encode_request`.
    """

    format = ""

    def __init__(self, client: Client, **options: Unpack[RequestOptions]) -> None:
        check_options("ApiBackend", options, RequestOptions.__annotations__)
        _check_client(client)
        self.model = client.model
        self.api = client.api.name
        self._client = client
        self._options = options

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        """See `Backend`."""
        async with aclosing(
            self._client.stream(
                request, tools=request.tools, notes=options.notes, id_seed=options.id_seed, **self._options
            )
        ) as events:
            async for event in events:
                yield event


def _check_client(client: Client) -> None:
    if not hasattr(client, "api"):  # its class is not imported here: a model of text needs no HTTP
        raise wrong_type("client", client, "a Client")


Source = Callable[..., AsyncGenerator[Event]]
"""Text messages in, with `max_tokens` and `temperature` where a request says so; content, reasoning, a `Finish` out."""


class TextBackend:
    """A model that takes text and writes text.

    Where it does not say how many tokens there were, since it was stopped or never does, a quarter of the characters is
    told: a budget has to hold for it too.

    Args:
        source: the model; see `client_source` and `local_source`.
        format: the wire format that it shall write.
        model: its name.
        api: the API that it is asked through, if any.
        reads: the format in which its calls are read, "auto" for any; "" for the one that it shall write.
        results: the format of results; "" for the one that it shall write.
        babble: characters behind a complete call at which it is stopped; None: never.
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
        self.format = format
        self._source = source
        self._reads = reads or format
        self._results = results or format
        self._babble = babble

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        """See `Backend`."""
        tools = request.tools
        parser = StreamParser(
            format=self._reads if tools else "plain", tools=tools, fallback=FALLBACK, id_seed=options.id_seed
        )
        end = Finish(FinishReason.STOP)
        called, behind = False, 0
        raw = options.raw_text
        sampling = {"max_tokens": request.max_tokens, "temperature": request.temperature}
        sampling = {name: value for name, value in sampling.items() if value is not None}
        told = spoken(request.messages, format=self.format, tools=tools, results=self._results, memo=options.memo)
        counted, written = False, 0
        async with aclosing(self._source(told, **sampling)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Finish):
                    end = piece
                    break
                if not isinstance(piece, ContentDelta):
                    counted = counted or isinstance(piece, UsageCounted)
                    yield piece
                    continue
                written += len(piece.text)
                if raw is not None:
                    raw.append(piece.text)
                for event in parser.feed(piece.text):
                    called = called or (isinstance(event, CallEnd) and event.complete)
                    if called and isinstance(event, ContentDelta):
                        behind += len(event.text.strip())
                    yield event
                if self._babble is not None and behind > self._babble:
                    break
        if not counted:  # the model was stopped before it told, or counts none
            read = sum(len(part.text) for one in told for part in one.parts if isinstance(part, TextPart))
            yield UsageCounted(Usage(estimate_tokens(read), estimate_tokens(written)))
        for event in parser.finish():
            if isinstance(event, Finish) and end.reason is not FinishReason.STOP:
                event = end
            yield event


def client_source(client: Client, **options: Unpack[RequestOptions]) -> Source:
    """A model behind an API, asked with text alone."""

    async def stream(messages: list[Message], **asked: Any) -> AsyncGenerator[Event]:
        async with aclosing(client.stream(messages, **{**options, **asked})) as events:
            async for event in events:
                yield event

    return stream


class Writer(Protocol):
    """What writes text while its caller waits; `toolwire.models.local.LocalModel` is one."""

    def stream(
        self, messages: Sequence[Mapping[str, str]], /, *, max_tokens: int = ..., temperature: float = ...
    ) -> Generator[str | Finish]:
        """Yield the answer's text as it is written, then a `Finish`; options that are not given are the model's own."""
        ...


def local_source(model: Writer) -> Source:
    """A model in this process, which writes in a thread of its own."""
    if not callable(getattr(model, "stream", None)):
        raise wrong_type("model", model, "a model in this process, such as open_model() gives")

    async def stream(messages: list[Message], **options: Any) -> AsyncGenerator[Event]:
        asked = [{"role": one.role, "content": _text(one)} for one in messages]
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[str | Finish | BaseException | None] = asyncio.Queue()
        left = threading.Event()

        def write() -> None:
            with capture_errors() as caught, closing(model.stream(asked, **options)) as written:
                for piece in written:
                    loop.call_soon_threadsafe(pieces.put_nowait, piece)
                    if left.is_set():
                        break
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(pieces.put_nowait, caught.error)

        threading.Thread(target=write, name="toolwire-local", daemon=True).start()
        try:
            while (piece := await pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece if isinstance(piece, ToolwireError) else _failed(piece)
                yield piece if isinstance(piece, Finish) else ContentDelta(piece)
        finally:
            left.set()

    return stream


def _failed(error: BaseException) -> BaseException:
    """What a model's own trouble is to whoever asked it; an interrupt is none."""
    if not isinstance(error, Exception):
        return error
    failed = ProviderError(f"the model in this process failed: {type(error).__name__}: {error}")
    failed.__cause__ = error
    return failed


_TOLD = (TextPart, ToolCall, ToolResult)  # parts that become text


def spoken(
    messages: Iterable[Message],
    *,
    format: str,
    tools: Sequence[ToolDefinition] = (),
    results: str = "",
    memo: IdentityCache | None = None,
) -> list[Message]:
    """A conversation as text alone: calls and results as a model of this format writes and reads them.

    Results come from the user; what the user says next is the same message, since templates want turns to alternate.
    Reasoning is left out. A call that the format cannot write stands as it was read.

    Args:
        messages: the conversation.
        format: the wire format.
        tools: whose calls these are.
        results: the format of results, if that is another.
        memo: holds what was written before, since a conversation is written again in each round.
    """
    memo = memo or IdentityCache()
    found: list[Message] = []
    for message in group_results(messages):
        role, parts = message.role, message.parts
        if role == "tool":
            given = [part for part in parts if isinstance(part, ToolResult)]
            way = results or format
            role, text = "user", memo.get(partial(render_results, given, format=way), given, way)
        elif role == "assistant":
            text = memo.get(partial(_said, parts, format, tools), (*parts, *tools), format, len(parts))
        else:
            text = _text(message)
        others: list[Part] = [part for part in parts if role == "user" and not isinstance(part, _TOLD)]
        if role == "user" and found and found[-1].role == "user":
            before = found.pop()
            text = "\n\n".join(filter(None, (_text(before), text)))
            others = [*(part for part in before.parts if not isinstance(part, TextPart)), *others]
        made: tuple[Part, ...] = (TextPart(text), *others)
        found.append(Message(role, made))
    return found


def _said(parts: Sequence[Part], format: str, tools: Sequence[ToolDefinition]) -> str:
    """What the model wrote: its prose, then its calls."""
    prose = "".join(part.text for part in parts if isinstance(part, TextPart)).strip()
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if not calls:
        return prose
    try:
        written = render_calls(calls, format=format, tools=tools)
    except RenderError:
        written = "\n".join(call.raw for call in calls)
    return "\n\n".join(filter(None, (prose, written)))


def _text(message: Message) -> str:
    return "\n\n".join(part.text for part in message.parts if isinstance(part, TextPart))

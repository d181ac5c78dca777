"""A client's request, as the gateway passes it on, and the answer of a backend as it arrives."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from toolwire.agent.history import answer_parts
from toolwire.agent.prices import ModelPrices
from toolwire.events import CallEnd, Event
from toolwire.execution.outcomes import Watching
from toolwire.gateway.client_apis import ClientApi
from toolwire.inspector.recorded_exchange import Exchange
from toolwire.messages import Message, ParsedResponse, TextPart, ToolResult
from toolwire.policy.policy import HEURISTIC
from toolwire.providers.gemini_stream import camel
from toolwire.providers.request import ChatRequest, Notes, estimate_tools
from toolwire.text.tokens import estimate_message_tokens, estimate_tokens
from toolwire.tools import ToolDefinition


@dataclass(slots=True)
class BackendReading:
    """The answer of a backend as it was read: its calls have the form that the backend knows, not the client's own.

    Attributes:
        reads_text: whether calls are read in the model's text.
        format: the wire format that the model is asked to write; "" where calls have fields of their own.
        tools: the tools that it was offered.
        events: the events of the answer so far.
    """

    reads_text: bool = False
    format: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    events: list[Event] = field(default_factory=list, repr=False)


@dataclass(slots=True)
class Question:
    """One request of a client.

    Attributes:
        id: the gateway's id of the request.
        client_api: the API that the client speaks.
        body: the body as the client sent it.
        request: the request that the body stands for.
        headers: the headers of the request, in lower case.
        model: the model's name as the client wrote it.
        stream: whether the client asked for a stream.
        created: the time of the request, in seconds since 1970.
        size: the size of the body, in bytes.
        notes: collects what could not be translated.
        observers: called with the events of the answer, in the groups in which they arrive. They must be quick, because
            the client waits for them. The events of an answer that is passed on are read only for them.
        answered_by: the backend that answers; None as long as none does.
        exchange: records the request for the inspector; None if it is off.
        trace_headers: headers by which a backend continues the trace of the request.
        passes: whether a backend of the client's API gets the body as it is, and the client its answer.
        reading: collects the answer as the backend gave it; None if nobody reads it.
        retries: for each time that the model was asked once more, the kind of fault that was the reason.
        tool_runs: for each call of the gateway's own tools, the name of the tool and whether it succeeded.
        reserve: reserves what a further request for this answer is expected to use, and raises a `GatewayFailure` if
            the client's key may not use as much; None if nothing is limited.
        watching: opens a context for each such call, such as a span; None for none.
    """

    id: str
    client_api: ClientApi
    body: dict[str, Any]
    request: ChatRequest
    headers: Mapping[str, str] = field(repr=False)
    model: str
    stream: bool
    created: int = 0
    size: int = 0
    notes: Notes = field(default_factory=Notes)
    observers: list[Callable[[Sequence[Event]], None]] = field(default_factory=list, repr=False)
    answered_by: Upstream | None = None
    exchange: Exchange | None = field(default=None, repr=False)
    trace_headers: dict[str, str] = field(default_factory=dict)
    passes: bool = True
    reading: BackendReading | None = field(default=None, repr=False)
    retries: list[str] = field(default_factory=list)
    tool_runs: list[tuple[str, bool]] = field(default_factory=list)
    reserve: Callable[[ChatRequest], Awaitable[None]] | None = field(default=None, repr=False)
    watching: Watching | None = field(default=None, repr=False)

    @property
    def has_choices(self) -> bool:
        """True if the client asks for another number of answers than one."""
        value: Any = self.body if self.client_api.choices else None
        for name in self.client_api.choices:
            value = camel(value).get(name) if isinstance(value, Mapping) else None
        return value not in (None, 1)

    def observe(self, events: Sequence[Event]) -> None:
        """Show events of the answer to the observers, and note calls that should not run unasked."""
        for event in events:
            if isinstance(event, CallEnd) and event.call.confidence < HEURISTIC:
                advice = "do not run it before a person confirms it"
                self.notes.dropped(f"call/{event.call.name}", f"its confidence, {event.call.confidence:g}: {advice}")
        for observe in self.observers:
            observe(events)


@dataclass(slots=True)
class PassedAnswer:
    """A stream in the client's own API, whose bytes are passed on as they are.

    Attributes:
        media_type: the media type of the body; "" for that of the client's API.
        body: the bytes, as they arrive.
    """

    media_type: str
    body: AsyncIterator[bytes]


@dataclass(slots=True)
class EventAnswer:
    """An answer that is encoded for the client.

    Attributes:
        events: the events, in the groups in which they arrive.
        body: the bytes of a whole answer that is passed on as it is instead; b"" to encode the events.
        media_type: the media type of these bytes.
        size: the size of a whole answer at the backend, in bytes; 0 if it is not known.
    """

    events: AsyncIterator[Sequence[Event]]
    body: bytes = b""
    media_type: str = ""
    size: int = 0


Answer = PassedAnswer | EventAnswer


class Upstream(Protocol):
    """A model behind the gateway.

    Attributes:
        name: the name of the backend, for messages.
        api: the name of the API that the model is reached through; "" for a model in this process.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def api(self) -> str: ...  # noqa: D102

    def open(self, question: Question) -> AbstractAsyncContextManager[Answer]:
        """Ask the model; leaving the context cancels the request.

        Raises:
            GatewayFailure: the backend cannot be reached, or refuses; nothing of an answer has been read then.
        """
        ...

    def prices_of(self, model: str) -> ModelPrices | None:
        """Return the prices of a model, by the name that the client asks for; None if they are not known."""
        ...

    async def list_models(self) -> list[str]:
        """Return the names of the models that the backend has.

        Raises:
            ProviderError: the backend cannot be reached, or refuses.
        """
        ...


class WrappedUpstream:
    """A backend that is asked through another object, which changes what `open` does.

    Args:
        upstream: the backend.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    @property
    def name(self) -> str:
        """See `Upstream`."""
        return self._upstream.name

    @property
    def api(self) -> str:
        """See `Upstream`."""
        return self._upstream.api

    def prices_of(self, model: str) -> ModelPrices | None:
        """See `Upstream`."""
        return self._upstream.prices_of(model)

    async def list_models(self) -> list[str]:
        """See `Upstream`."""
        return await self._upstream.list_models()


def next_question(
    question: Question, response: ParsedResponse, results: tuple[ToolResult, ...], note: str = "", *, suffix: str
) -> Question:
    """Return the question for a further answer of the model, before the client gets one.

    Args:
        question: the question before.
        response: the answer to it.
        results: a result for each call of the answer.
        note: an instruction at the end; "" for none.
        suffix: a name of the answer, so that its calls have other ids than those of the answers before.
    """
    parts = answer_parts(response, response.content, written=True)
    messages = [*question.request.messages, *([Message("assistant", parts)] if parts else [])]
    if results:
        messages.append(Message("tool", results))
    if note:
        messages.append(Message("user", (TextPart(note),)))
    request = replace(question.request, messages=tuple(messages))
    return replace(question, id=f"{question.id}.{suffix}", request=request, passes=False)


async def at_once(events: Sequence[Event]) -> AsyncIterator[Sequence[Event]]:
    """Yield the events of a whole answer as one group."""
    yield events


def tokens_of(request: ChatRequest) -> int:
    """Return the estimated tokens of a request: its messages with their media, and its tools."""
    messages = sum(map(estimate_message_tokens, request.messages))
    provider_tools = sum(estimate_tokens(len(json.dumps(tool, default=str))) for tool in request.provider_tools)
    return messages + estimate_tools(request.tools) + provider_tools

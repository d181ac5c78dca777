"""The model behind an adapter: a request goes in, and events or a whole response come out, with and without async.

All adapters share it. A framework's messages become a request in one of two ways: as the body of a request in the shape
of Chat Completions, which most frameworks can write, or as messages of Toolwire.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from functools import partial
from typing import Any

from toolwire.errors import DefinitionError, ProviderError
from toolwire.events import Event, ProblemFound, collect
from toolwire.gateway.answer_faults import FaultWatch
from toolwire.gateway.fenced_output import FencedOutput
from toolwire.gateway.text_prompts import describe_request
from toolwire.integrations.model_argument import AnyModel, backend_of
from toolwire.messages import ParsedResponse, ToolCall
from toolwire.models.backends import StreamOptions
from toolwire.providers.api_registry import get_api
from toolwire.providers.chat_deltas import CallSpacing, closed_calls
from toolwire.providers.request import ChatRequest
from toolwire.runtime.blocking import iterate_blocking, run_blocking
from toolwire.runtime.time_limit import time_limit


class AdaptedModel:
    """A model, as an adapter asks it.

    Args:
        model: the model.
        format: the wire format that it is asked to write; "" if it knows its own, or has fields for tools.

    Attributes:
        name: the model's name; "toolwire" if it has none.
        format: the wire format that it writes; "" if it has fields for tools.
        is_text: whether the model reads and writes text alone.

    Raises:
        ConfigurationError, KeyError, TypeError: see `ToolwireTransport`.
    """

    def __init__(self, model: AnyModel, format: str = "") -> None:
        self._backend = backend_of(model, format)
        self.name = self._backend.model or "toolwire"
        self.format = self._backend.format
        self.is_text = bool(self.format)

    async def stream(
        self,
        request: ChatRequest,
        *,
        seconds: float | None = None,
        extra_body: Mapping[str, Any] | None = None,
        extra_headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[Event]:
        """Yield the events of an answer as they arrive, `Finish` last; closing the generator stops the model.

        For a model of text, the tools and the schema of the output are part of the prompt, and the code fence around an
        output is removed. White space beside calls is removed: frameworks would show it as a message between two calls.
        Arguments of incomplete calls are not JSON; see `closed_calls`.

        Args:
            request: the request.
            seconds: maximum time until the next event; None for no limit.
            extra_body: additions to the request; see `toolwire.models.ModelOptions`.
            extra_headers: the same for its headers.

        Raises:
            ProviderError: the model cannot be reached or refuses, or its answer broke off.
            DefinitionError, RenderError: a tool or a message cannot be written for the model.
            TimeoutError: the model wrote nothing for that time. It has been stopped.
        """
        fenced = FencedOutput() if self.is_text and request.output is not None else None
        if self.is_text:
            request = describe_request(request, self.format)
        # Without a seed of its own, the same call in two answers would have the same id.
        options = StreamOptions(
            id_seed=uuid.uuid4().hex, extra_body=extra_body or {}, extra_headers=extra_headers or {}
        )
        spacing = CallSpacing()
        watch = FaultWatch(shows_truncated_calls=True)
        async with aclosing(self._backend.stream(request, options)) as events:
            async for event in events if seconds is None else _limited(events, seconds):
                if isinstance(event, ProblemFound) and event.problem.kind == "provider_error":
                    raise ProviderError(event.problem.message, status=event.problem.status)
                if (fault := watch.fault_in([event])) is not None:
                    raise ProviderError(fault.message, status=fault.status)
                certain = [event] if fenced is None else fenced.without_fence([event])
                for written in closed_calls(spacing.filter(certain)):
                    yield written

    async def ask(self, request: ChatRequest, *, seconds: float | None = None, **additions: Any) -> ParsedResponse:
        """Return a whole answer, for which the model has `seconds`; see `stream`."""
        async with _time_limit(seconds), aclosing(self.stream(request, **additions)) as events:
            return collect([event async for event in events])

    async def ask_several(
        self, request: ChatRequest, count: int, *, seconds: float | None = None
    ) -> list[ParsedResponse]:
        """Return several answers to a request, for all of which the model has `seconds`."""
        async with _time_limit(seconds):
            return [await self.ask(request) for _ in range(count)]

    def stream_blocking(self, request: ChatRequest, *, seconds: float | None = None) -> Generator[Event]:
        """Yield the events of an answer in a program without async; see `stream`."""
        return iterate_blocking(partial(self.stream, request, seconds=seconds))

    def ask_blocking(self, request: ChatRequest, *, seconds: float | None = None) -> ParsedResponse:
        """Return a whole answer in a program without async; see `ask`."""
        return run_blocking(partial(self.ask, request, seconds=seconds))

    def ask_several_blocking(
        self, request: ChatRequest, count: int, *, seconds: float | None = None
    ) -> list[ParsedResponse]:
        """Return several answers in a program without async; see `ask_several`."""
        return run_blocking(partial(self.ask_several, request, count, seconds=seconds))


def _time_limit(seconds: float | None) -> AbstractAsyncContextManager[None]:
    return time_limit(seconds, lambda: TimeoutError(f"the model took longer than {seconds:g} seconds"))


async def _limited(events: AsyncIterator[Event], seconds: float) -> AsyncIterator[Event]:
    """Yield events, each of which has to arrive within a time."""
    while True:
        async with _time_limit(seconds):
            try:
                event = await anext(events)
            except StopAsyncIteration:
                return
        yield event


def chat_request(messages: Iterable[Mapping[str, Any]], *, tools: Iterable[Any] = (), **members: Any) -> ChatRequest:
    """Return the request of a conversation in the shape of Chat Completions.

    Args:
        messages: the messages, as dicts.
        tools: the tools, as dicts with `type` and `function`.
        members: other members of the body, such as `temperature`; None leaves one out.

    Raises:
        DefinitionError: a message, a tool or a member is not one of Chat Completions, or `n` asks for several answers.
    """
    if members.get("n") not in (None, 1):
        raise DefinitionError("n: the model gives one answer to a request; ask for 1, several times")
    body = {name: value for name, value in members.items() if value is not None}
    body["messages"] = [dict(message) for message in messages]
    if tools := list(tools):
        body["tools"] = tools
    return get_api("openai_chat").decode_request(body)


def confidence_of(calls: Iterable[ToolCall]) -> dict[str, float]:
    """Return the confidence of those calls that are not certain, by their ids, for the metadata of an answer."""
    return {call.id: call.confidence for call in calls if call.confidence < 1}

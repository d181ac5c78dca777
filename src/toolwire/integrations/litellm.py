"""LiteLLM: any model as a provider of its own, for its functions, its router and its proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from toolwire._surface import needs_extra
from toolwire.errors import DefinitionError, ProviderError, RenderError
from toolwire.events import Event, Finish, UsageCounted
from toolwire.integrations.adapted_model import AdaptedModel, chat_request
from toolwire.integrations.model_argument import AnyModel
from toolwire.messages import ParsedResponse, Usage
from toolwire.providers.api_registry import get_api
from toolwire.providers.chat_deltas import chat_deltas
from toolwire.providers.chat_parts import write_usage
from toolwire.providers.request import ChatRequest

with needs_extra("toolwire.integrations.litellm", "litellm"):
    from litellm.llms.custom_llm import CustomLLM, CustomLLMError
    from litellm.types.utils import ModelResponse, ModelResponseStream
    from litellm.types.utils import Usage as LiteLLMUsage

__all__ = ["ToolwireLiteLLM"]

_API = get_api("openai_chat")
_ERRORS = (ProviderError, DefinitionError, RenderError, TimeoutError)


class ToolwireLiteLLM(CustomLLM):
    """A provider of LiteLLM that asks any model.

    It is registered in `litellm.custom_provider_map`, and models of the provider are asked by `litellm.completion` and
    the others. Calls that are incomplete are left out of a whole answer; in a stream their arguments are not JSON. An
    error of the model is an exception of LiteLLM with the status, or else 502; a request that cannot be sent to the
    model has 400, with which LiteLLM does not try again. A model that takes longer than `timeout` is stopped, which is
    a `litellm.Timeout`. For `n` answers the model is asked `n` times, within the same time; a stream with `n` above 1
    is an error.

    Args:
        model: the model; see `toolwire.integrations.AnyModel`.
        format: the wire format that the model is asked to write; "" for a backend, and for an API whose own fields for
            tools are used.
        settings: settings of each answer by their names in Chat Completions, such as `temperature`.

    Raises:
        ConfigurationError: `format` is missing or has no effect, or `model` is text that names no model of an API.
        KeyError: there is no such provider, or no such format; the message suggests similar names.
        TypeError: `model` is something else.
    """

    def __init__(self, model: AnyModel, *, format: str = "", settings: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._adapted = AdaptedModel(model, format)
        self._settings = dict(settings or {})

    def completion(
        self, messages: list[Any], optional_params: dict[str, Any], timeout: Any = None, **context: Any
    ) -> Any:
        """Return a whole answer; LiteLLM's other arguments in `context` have no effect."""
        try:
            request, count = self._request(messages, optional_params)
            responses = self._adapted.ask_several_blocking(request, count, seconds=_seconds(timeout))
        except _ERRORS as error:
            raise _litellm_error(error) from error
        return _whole(responses, request, self._adapted.name)

    async def acompletion(
        self, messages: list[Any], optional_params: dict[str, Any], timeout: Any = None, **context: Any
    ) -> Any:
        """Return a whole answer; see `completion`."""
        try:
            request, count = self._request(messages, optional_params)
            responses = await self._adapted.ask_several(request, count, seconds=_seconds(timeout))
        except _ERRORS as error:
            raise _litellm_error(error) from error
        return _whole(responses, request, self._adapted.name)

    def streaming(
        self, messages: list[Any], optional_params: dict[str, Any], timeout: Any = None, **context: Any
    ) -> Iterator[Any]:
        """Yield the pieces of an answer as they arrive; closing the iterator stops the model."""
        chunks = _Chunks(self._adapted.name)
        try:
            request = self._stream_request(messages, optional_params)
            with closing(self._adapted.stream_blocking(request, seconds=_seconds(timeout))) as events:
                for event in events:
                    yield from chunks.of(event)
        except _ERRORS as error:
            raise _litellm_error(error) from error

    async def astreaming(
        self, messages: list[Any], optional_params: dict[str, Any], timeout: Any = None, **context: Any
    ) -> AsyncIterator[Any]:
        """Yield the pieces of an answer; see `streaming`."""
        chunks = _Chunks(self._adapted.name)
        try:
            request = self._stream_request(messages, optional_params)
            async with aclosing(self._adapted.stream(request, seconds=_seconds(timeout))) as events:
                async for event in events:
                    for chunk in chunks.of(event):
                        yield chunk
        except _ERRORS as error:
            raise _litellm_error(error) from error

    def _request(self, messages: list[Any], members: dict[str, Any]) -> tuple[ChatRequest, int]:
        """Return the request, and how many answers it asks for."""
        # LiteLLM puts the members that it does not know under `extra_body`, as the OpenAI client does.
        members = {**self._settings, **members, **(members.get("extra_body") or {})}
        count = members.pop("n", None)
        for name in ("extra_body", "stream"):
            members.pop(name, None)
        if count is None:
            count = 1
        if type(count) is not int or count < 1:
            raise DefinitionError(f"n must be a number of answers from 1, not {count!r:.80}")
        return chat_request(messages, **members), count

    def _stream_request(self, messages: list[Any], members: dict[str, Any]) -> ChatRequest:
        request, count = self._request(messages, members)
        if count > 1:
            raise DefinitionError(f"a stream has one answer: ask without a stream for n={count}")
        return request


class _Chunks:
    """Chunks of one answer as LiteLLM passes them on.

    Args:
        model: the model's name.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._usage: Usage | None = None

    def of(self, event: Event) -> Iterator[Any]:
        """Yield the chunks of the next event."""
        match event:
            case UsageCounted(usage):
                self._usage = usage
            case Finish(reason):
                # LiteLLM reads no token counts from the chunk with the finish, or from those behind it.
                if self._usage is not None:
                    chunk = self._chunk({})
                    chunk.usage = LiteLLMUsage(**write_usage(self._usage))
                    yield chunk
                yield self._chunk({}, reason.value)
            case _:
                for delta in chat_deltas([event]):
                    yield self._chunk(delta)

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> Any:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return ModelResponseStream(model=self._model, choices=[choice])


def _whole(responses: Sequence[ParsedResponse], request: ChatRequest, model: str) -> Any:
    """Return the answers to one request as its choices."""
    counts = [response.usage for response in responses if response.usage is not None]
    first = replace(responses[0], usage=reduce(add, counts) if counts else None)
    body = _API.encode_response(first, tools=request.tools, model=model)
    for index, response in enumerate(responses[1:], 1):
        (choice,) = _API.encode_response(response, tools=request.tools)["choices"]
        body["choices"] += [{**choice, "index": index}]
    # LiteLLM makes an id and a time: ours depend on the answer alone, and its proxy counts equal ids as one request.
    del body["id"], body["created"]
    return ModelResponse(**body)


def _seconds(timeout: Any) -> float | None:
    """Return a time limit of LiteLLM, which may be one of httpx, in seconds."""
    seconds = getattr(timeout, "read", timeout)
    return None if seconds is None else float(seconds)


def _litellm_error(error: Exception) -> Exception:
    match error:
        case TimeoutError():
            status = 408  # which LiteLLM knows as its `Timeout`
        case ProviderError():
            status = error.status or 502
        case _:
            status = 400
    return CustomLLMError(status, str(error))

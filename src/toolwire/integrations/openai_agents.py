"""The OpenAI Agents SDK: any model as its `Model`, in the items and events of the Responses API that the SDK speaks."""

from __future__ import annotations

import json
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any

import httpx
from pydantic import TypeAdapter

from toolwire._surface import needs_extra
from toolwire.errors import ProviderError, capture_errors
from toolwire.events import Event, collect
from toolwire.integrations.adapted_model import AdaptedModel
from toolwire.integrations.model_argument import AnyModel
from toolwire.messages import Message
from toolwire.providers.api_registry import get_api
from toolwire.providers.model_settings import SETTINGS
from toolwire.providers.request import ChatRequest

with needs_extra("toolwire.integrations.openai_agents", "openai-agents"):
    from agents import (
        FunctionTool,
        Model,
        ModelBehaviorError,
        ModelResponse,
        ModelRetryAdvice,
        ModelRetryNormalizedError,
        ModelSettings,
        SpanError,
        Usage,
        UserError,
        generation_span,
    )
    from agents.items import TResponseStreamEvent
    from openai.types.responses import Response

__all__ = ["ToolwireAgentsModel"]

_EVENT: TypeAdapter[Any] = TypeAdapter(TResponseStreamEvent)
_API = get_api("openai_responses")
_LOGPROBS = "message.output_text.logprobs"
_PASSED_ON = ("top_logprobs", "prompt_cache_retention", "prompt_cache_options", "context_management")
"""Settings that are members of a request under the same name; older versions of the SDK lack some."""
_TRACED = ("temperature", "top_p", "max_tokens", "tool_choice", "parallel_tool_calls", "reasoning", "verbosity")
"""Settings that traces show."""


class ToolwireAgentsModel(Model):
    """A model of the OpenAI Agents SDK that asks any model.

    An incomplete call never runs: its arguments are not JSON, so the SDK answers it with an error. An incomplete
    handoff is an `agents.ModelBehaviorError`. An error of the model is a `toolwire.ProviderError`; policies of retries
    see its HTTP status, an error of the network, or else 502. Each answer is a span of the SDK's traces. Settings that
    `agents.ModelSettings` has no name for, such as `stop`, are in its `extra_args`, by their names in
    `toolwire.models.ModelSettings`. A warning says that `extra_query` has no effect.

    Args:
        model: the model; see `toolwire.integrations.AnyModel`.
        format: the wire format that the model is asked to write; "" for a backend, and for an API whose own fields for
            tools are used.

    Raises:
        ConfigurationError: `format` is missing or has no effect, or `model` is text that names no model of an API.
        KeyError: there is no such provider, or no such format; the message suggests similar names.
        TypeError: `model` is something else.
    """

    def __init__(self, model: AnyModel, *, format: str = "") -> None:
        self._adapted = AdaptedModel(model, format)

    def get_retry_advice(self, request: Any) -> ModelRetryAdvice | None:
        """Return what policies of retries read of an error."""
        error = request.error
        if not isinstance(error, ProviderError):
            return None
        seconds = None
        with suppress(ValueError):  # it may be a date
            seconds = float(error.retry_after)
        normalized = ModelRetryNormalizedError(message=str(error))
        if not isinstance(error.__cause__, httpx.RequestError):  # the SDK knows an error of the network itself
            normalized = ModelRetryNormalizedError(message=str(error), status_code=error.status or 502)
        return ModelRetryAdvice(retry_after=seconds, normalized=normalized)

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **stored: Any,
    ) -> ModelResponse:
        """Return a whole answer; ids of stored answers in `stored` have no effect."""
        request = _request(system_instructions, input, model_settings, [*tools, *handoffs], output_schema)
        with self._traced(system_instructions, input, model_settings, tracing) as record:
            async with aclosing(self._adapted.stream(request, **_additions(model_settings))) as stream:
                events = [event async for event in stream]
            response = _with_whole_handoffs(self._whole(events, request), handoffs)
            record(response)
        usage = Usage(requests=1)
        if response.usage is not None:
            usage.input_tokens, usage.output_tokens = response.usage.input_tokens, response.usage.output_tokens
            usage.total_tokens = response.usage.total_tokens
            usage.input_tokens_details = response.usage.input_tokens_details
            usage.output_tokens_details = response.usage.output_tokens_details
        return ModelResponse(output=response.output, usage=usage, response_id=None)

    def _whole(self, events: list[Event], request: ChatRequest) -> Response:
        answer = collect(events)
        if not answer.incomplete:
            body = _API.encode_response(answer, tools=request.tools, model=self._adapted.name)
            return Response.model_validate(body)
        # Only a stream has a place for incomplete calls.
        pieces = _API.encode_stream(events, tools=request.tools, model=self._adapted.name)
        *_, last = (line for line in b"".join(pieces).splitlines() if line.startswith(b"data: {"))
        return Response.model_validate(json.loads(last.removeprefix(b"data: "))["response"])

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **stored: Any,
    ) -> AsyncIterator[Any]:
        """Yield the events of an answer as they arrive; closing the iterator stops the model."""
        request = _request(system_instructions, input, model_settings, [*tools, *handoffs], output_schema)
        with self._traced(system_instructions, input, model_settings, tracing) as record:
            async with aclosing(self._events(request, model_settings)) as events:
                async for event in events:
                    if event.type in ("response.completed", "response.incomplete"):
                        record(_with_whole_handoffs(event.response, handoffs))
                    yield event

    async def _events(self, request: ChatRequest, model_settings: ModelSettings) -> AsyncGenerator[Any]:
        async with (
            aclosing(self._adapted.stream(request, **_additions(model_settings))) as events,
            aclosing(_API.encode_stream_async(events, tools=request.tools, model=self._adapted.name)) as pieces,
        ):
            async for piece in pieces:
                for line in piece.splitlines():
                    if line.startswith(b"data: {"):
                        yield _EVENT.validate_python(json.loads(line.removeprefix(b"data: ")))

    @contextmanager
    def _traced(
        self, instructions: str | None, items: str | list[Any], settings: ModelSettings, tracing: Any
    ) -> Iterator[Callable[[Response], None]]:
        """Write an answer as a span; the context is a function that records the response."""
        has_data = tracing is not None and tracing.include_data()
        config = {name: value for name in _TRACED if (value := getattr(settings, name)) is not None}
        is_off = tracing is None or tracing.is_disabled()
        with generation_span(model=self._adapted.name, model_config=config, disabled=is_off) as span:
            data = span.span_data
            if has_data:
                conversation = [{"role": "user", "content": items}] if isinstance(items, str) else list(items)
                data.input = (
                    [{"role": "system", "content": instructions}, *conversation] if instructions else conversation
                )

            def record(response: Response) -> None:
                if has_data:
                    data.output = [item.model_dump() for item in response.output]
                if (usage := response.usage) is not None:
                    data.usage = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}

            with capture_errors() as captured:
                yield record
            if (error := captured.error) is not None:
                shown = str(error) if has_data else type(error).__name__
                span.set_error(SpanError(message="the model failed", data={"error": shown}))
                raise error


def _request(
    instructions: str | None, items: str | list[Any], settings: ModelSettings, tools: Iterable[Any], output_schema: Any
) -> ChatRequest:
    """Return the request for a model."""
    more = settings.extra_args or {}
    if more.get("n") not in (None, 1):
        raise UserError("n: the model gives one answer to a request; ask for 1, several times")
    if settings.extra_query:
        warnings.warn("extra_query of the model settings has no effect on a model of Toolwire", stacklevel=3)
    members = {
        "input": items,
        "tools": [_tool(tool) for tool in tools],
        "tool_choice": settings.tool_choice,
        "parallel_tool_calls": settings.parallel_tool_calls,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_output_tokens": settings.max_tokens,
        "reasoning": settings.reasoning and settings.reasoning.model_dump(exclude_none=True),
        "metadata": settings.metadata,
        "store": settings.store,
        "truncation": settings.truncation,
        "include": _include(settings),
        **{name: value for name in _PASSED_ON if (value := getattr(settings, name, None)) is not None},
        **{name: value for name, value in more.items() if name not in SETTINGS},
    }
    text: dict[str, Any] = {"verbosity": settings.verbosity} if settings.verbosity else {}
    if output_schema is not None and not output_schema.is_plain_text():
        schema, strict = output_schema.json_schema(), output_schema.is_strict_json_schema()
        text["format"] = {"type": "json_schema", "name": "final_output", "schema": schema, "strict": strict}
    members["text"] = text or None
    request = _API.decode_request({name: value for name, value in members.items() if value is not None})
    # The Responses API has no member for these settings.
    fields: dict[str, Any] = {
        "frequency_penalty": settings.frequency_penalty,
        "presence_penalty": settings.presence_penalty,
        **{name: value for name, value in more.items() if name in SETTINGS},
    }
    if instructions:
        fields["messages"] = (Message("system", instructions), *request.messages)
    return ChatRequest.of(request, fields)


def _include(settings: ModelSettings) -> list[str] | None:
    names = [str(name) for name in settings.response_include or ()]
    if settings.top_logprobs is not None and _LOGPROBS not in names:
        names.append(_LOGPROBS)
    return names or None


def _with_whole_handoffs(response: Response, handoffs: list[Any]) -> Response:
    """Return a response, in which the SDK would follow a handoff that is incomplete."""
    names = {handoff.tool_name for handoff in handoffs}
    for item in response.output:
        if item.type == "function_call" and item.status == "incomplete" and item.name in names:
            raise ModelBehaviorError(f"the handoff {item.name} is incomplete")
    return response


def _additions(settings: ModelSettings) -> dict[str, Any]:
    """Return what the request has besides; the SDK marks headers that are left out by an object of its own."""
    headers = {name: value for name, value in (settings.extra_headers or {}).items() if isinstance(value, str)}
    return {"extra_body": settings.extra_body, "extra_headers": headers}


def _tool(tool: Any) -> dict[str, Any]:
    """Return a tool or a handoff as the Responses API spells it."""
    if isinstance(tool, FunctionTool):
        name, description, parameters = tool.name, tool.description, tool.params_json_schema
    elif hasattr(tool, "input_json_schema"):
        name, description, parameters = tool.tool_name, tool.tool_description, tool.input_json_schema
    else:
        raise UserError(f"{type(tool).__name__} runs at OpenAI, so another model cannot call it: use a function tool")
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": parameters,
        "strict": tool.strict_json_schema,
    }

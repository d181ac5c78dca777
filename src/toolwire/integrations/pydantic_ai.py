"""Pydantic AI: any model as its `Model`, with a profile that says what a model of text can do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from toolwire._surface import needs_extra
from toolwire.errors import ProviderError
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    ReasoningDelta,
    UsageCounted,
)
from toolwire.messages import (
    FilePart,
    FinishReason,
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
)
from toolwire.providers.output_schema import OutputSchema
from toolwire.providers.request import ChatRequest, ToolChoice
from toolwire.tools import ToolDefinition

with needs_extra("toolwire.integrations.pydantic_ai", "pydantic-ai"):
    from pydantic_ai import exceptions
    from pydantic_ai import messages as ai
    from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
    from pydantic_ai.profiles import ModelProfile, ModelProfileSpec
    from pydantic_ai.settings import ModelSettings, ToolOrOutput
    from pydantic_ai.usage import RequestUsage

    from toolwire.integrations.adapted_model import AdaptedModel
    from toolwire.integrations.model_argument import AnyModel

__all__ = ["ToolwireModel", "toolwire_profile"]

_SETTINGS = {
    "stop_sequences": "stop",
    "parallel_tool_calls": "parallel",
    **{name: name for name in ("max_tokens", "temperature", "top_p", "top_k", "seed")},
    **{name: name for name in ("frequency_penalty", "presence_penalty")},
}
"""Settings of Pydantic AI with their names in Toolwire."""

_EFFORTS: dict[Any, str] = {True: "medium", False: "none"}
"""Efforts for the values of Pydantic AI's setting `thinking` that are not efforts."""

_FINISH_REASONS = {
    FinishReason.STOP: "stop",
    FinishReason.TOOL_CALLS: "tool_call",
    FinishReason.LENGTH: "length",
    FinishReason.CONTENT_FILTER: "content_filter",
    FinishReason.ERROR: "error",
}


def toolwire_profile(*, is_text: bool) -> ModelProfile:
    """Return the profile of a model that Toolwire asks.

    Args:
        is_text: whether the model reads and writes text alone. Then a structured output is JSON in its text by default,
            which small models write more reliably than a call of an output tool.
    """
    return ModelProfile(
        supports_tools=True,
        supports_thinking=True,
        supports_json_schema_output=True,
        supports_json_object_output=True,
        default_structured_output_mode="native" if is_text else "tool",
    )


class ToolwireModel(Model[None]):
    """A model of Pydantic AI that asks any model.

    A call that is incomplete has arguments that are not JSON, so Pydantic AI asks the model again instead of running
    it. One that is not certain has its `confidence` in the `provider_details` of its part. An error of the model
    is a `ModelAPIError`, or a `ModelHTTPError` if it has an HTTP status.

    Args:
        model: the model; see `toolwire.integrations.AnyModel`.
        format: the wire format that the model is asked to write; "" for a backend, and for an API whose own fields for
            tools are used.
        profile: the profile, in place of that of `toolwire_profile`.
        settings: settings of each answer, as Pydantic AI names them.

    Raises:
        ConfigurationError: `format` is missing or has no effect, or `model` is text that names no model of an API.
        KeyError: there is no such provider, or no such format; the message suggests similar names.
        TypeError: `model` is something else.
    """

    unsupported_settings = frozenset({"extra_body", "extra_headers", "logit_bias", "max_retries", "timeout"})

    def __init__(
        self,
        model: AnyModel,
        *,
        format: str = "",
        profile: ModelProfileSpec | None = None,
        settings: ModelSettings | None = None,
    ) -> None:
        self._adapted = AdaptedModel(model, format)
        super().__init__(settings=settings, profile=profile or toolwire_profile(is_text=self._adapted.is_text))

    @property
    def model_name(self) -> str:
        """The name of the model."""
        return self._adapted.name

    @property
    def system(self) -> str:
        """The name of the provider: "toolwire"."""
        return "toolwire"

    async def request(
        self,
        messages: list[ai.ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ai.ModelResponse:
        """Return a whole answer."""
        async with self.request_stream(messages, model_settings, model_request_parameters) as answer:
            async for _ in answer:
                pass
            return answer.get()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ai.ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Return an answer that arrives in pieces; leaving the context stops the model."""
        model_settings, parameters = self.prepare_request(model_settings, model_request_parameters)
        instructions = self._get_instruction_parts(messages, parameters) or []
        request = _request(messages, [part.content for part in instructions], model_settings or {}, parameters)
        async with aclosing(self._events(request)) as events:
            yield _Answer(parameters, self.model_name, events)

    async def _events(self, request: ChatRequest) -> AsyncGenerator[Event]:
        """Yield the events of an answer, with errors as Pydantic AI expects them."""
        try:
            async with aclosing(self._adapted.stream(request)) as events:
                async for event in events:
                    yield event
        except ProviderError as error:
            if error.status:
                raise exceptions.ModelHTTPError(error.status, self.model_name, str(error)) from error
            raise exceptions.ModelAPIError(self.model_name, str(error)) from error


@dataclass
class _Answer(StreamedResponse):
    """An answer that arrives in pieces."""

    asked_name: str
    events: AsyncGenerator[Event]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def _get_event_iterator(self) -> AsyncIterator[ai.ModelResponseStreamEvent]:
        async for event in self.events:
            for written in self._written(event):
                yield written

    def _written(self, event: Event) -> Iterator[ai.ModelResponseStreamEvent]:
        manager = self._parts_manager
        match event:
            case ContentDelta(text):
                # White space alone is not a text: Pydantic AI asks again.
                yield from manager.handle_text_delta(vendor_part_id=None, content=text, ignore_leading_whitespace=True)
            case ReasoningDelta(text):
                yield from manager.handle_thinking_delta(vendor_part_id=None, content=text)
            case CallStart(index, name, id):
                yield from manager.handle_tool_call_delta_events(
                    vendor_part_id=index, tool_name=name, args="", tool_call_id=id
                )
            case ArgumentsDelta(index, text):
                yield from manager.handle_tool_call_delta_events(vendor_part_id=index, args=text)
            case CallEnd(index, call, complete=True) if call.confidence < 1:
                details = {"confidence": call.confidence}
                yield from manager.handle_tool_call_delta_events(vendor_part_id=index, provider_details=details)
            case UsageCounted(usage):
                self._usage = RequestUsage(
                    input_tokens=usage.input_tokens,
                    output_tokens=usage.output_tokens,
                    cache_read_tokens=usage.cached_tokens,
                    details={"reasoning_tokens": usage.reasoning_tokens} if usage.reasoning_tokens else {},
                )
            case Finish(reason):
                self.finish_reason = _FINISH_REASONS[reason]

    async def close_stream(self) -> None:
        await self.events.aclose()

    @property
    def model_name(self) -> str:
        return self.asked_name

    @property
    def provider_name(self) -> str:
        return "toolwire"

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self.started


def _request(
    messages: Iterable[ai.ModelMessage],
    instructions: Iterable[str],
    settings: Mapping[str, Any],
    parameters: ModelRequestParameters,
) -> ChatRequest:
    """Return the request for a model."""
    converted: list[Message] = []
    for message in messages:
        if isinstance(message, ai.ModelResponse):
            parts = tuple(part for written in message.parts for part in _answered(written))
            converted += [Message("assistant", parts)] if parts else []
        else:
            converted += chain.from_iterable(map(_asked, message.parts))
    system = [message for message in converted if message.role == "system"]
    system += [Message("system", text) for text in instructions]
    rest = [message for message in converted if message.role != "system"]
    tools, choice = _tools(settings.get("tool_choice"), parameters)
    output = parameters.output_object
    return ChatRequest.of(
        [*system, *rest],
        {
            **{name: settings.get(framework_name) for framework_name, name in _SETTINGS.items()},
            "tools": tools,
            "tool_choice": choice,
            "reasoning_effort": _EFFORTS.get(parameters.thinking, parameters.thinking),
            "output": output
            and OutputSchema(output.json_schema, output.name or "", output.description or "", output.strict),
        },
    )


def _asked(part: Any) -> Iterator[Message]:
    """Yield the messages for a part of a request."""
    match part:
        case ai.SystemPromptPart():
            yield Message("system", part.content)
        case ai.UserPromptPart():
            yield _user_message(part.content)
        case ai.ToolReturnPart():
            text, media = part.model_response_str_and_user_content(wrap_if_error=False)
            value = {"error": text} if part.outcome in ai.ERROR_OUTCOMES else {"result": text}
            yield Message("tool", (ToolResult(part.tool_call_id, part.tool_name, **value),))
            if media:
                yield _user_message(media)
        # Agents translate these parts before; programs that ask a model themselves do not.
        case ai.RetryPromptPart() if part.tool_name is None:
            yield Message("user", part.model_response())
        case ai.RetryPromptPart():
            yield Message("tool", (ToolResult(part.tool_call_id, part.tool_name, error=part.model_response()),))
        case _:
            raise exceptions.UserError(f"ToolwireModel cannot send a part of the kind {type(part).__name__}")


def _user_message(content: str | Iterable[Any]) -> Message:
    items = [content] if isinstance(content, str) else content
    return Message("user", tuple(part for item in items for part in _content(item)))


def _content(item: Any) -> Iterator[Part]:
    match item:
        case str(text):
            yield TextPart(text)
        case ai.TextContent():
            yield TextPart(item.content)
        case ai.ImageUrl():
            yield ImagePart(url=item.url)
        case ai.BinaryContent() if item.is_image:
            yield ImagePart(item.base64, item.media_type)
        case ai.BinaryContent():
            yield FilePart(item.base64, item.media_type)
        case ai.DocumentUrl() | ai.AudioUrl() | ai.VideoUrl():
            yield FilePart(url=item.url, media_type=item.media_type)
        case ai.CachePoint():
            pass
        case _:
            raise exceptions.UserError(f"ToolwireModel cannot send content of the type {type(item).__name__}")


def _answered(part: Any) -> Iterator[Part]:
    """Yield the parts of an earlier answer; files and tools of providers are left out."""
    match part:
        case ai.TextPart():
            yield TextPart(part.content)
        case ai.ThinkingPart():
            yield ReasoningPart(part.content)
        case ai.ToolCallPart():
            yield ToolCall(part.tool_name, part.args_as_dict(), part.tool_call_id)


def _tools(choice: Any, parameters: ModelRequestParameters) -> tuple[list[ToolDefinition], ToolChoice]:
    """Return the tools of a request, with the choice that the model has."""
    functions, outputs = parameters.declared_function_tools, parameters.output_tools
    names: tuple[str, ...] = ()
    must_call = not parameters.allow_text_output
    match choice:
        case "none":
            functions = []
        case "required":
            names, must_call = tuple(tool.name for tool in functions), True
        case list():
            names, must_call = tuple(choice), True
        case ToolOrOutput():
            functions = [tool for tool in functions if tool.name in choice.function_tools]
    offered = [*functions, *outputs]
    tools = [
        ToolDefinition(
            tool.name,
            tool.description or "",
            tool.parameters_json_schema,
            annotations={} if tool.strict is None else {"strict": tool.strict},
        )
        for tool in offered
    ]
    return tools, ToolChoice("required" if must_call and tools else "auto", names)

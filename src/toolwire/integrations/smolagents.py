"""smolagents: any model as its `Model`, for agents that call tools and agents that write code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

from toolwire._surface import needs_extra
from toolwire.errors import ProviderError, RenderError
from toolwire.events import CallEnd, UsageCounted
from toolwire.integrations.adapted_model import AdaptedModel, chat_request
from toolwire.integrations.model_argument import AnyModel
from toolwire.messages import ToolCall, Usage
from toolwire.providers.chat_deltas import chat_deltas
from toolwire.providers.request import ChatRequest
from toolwire.wire.prompts import render_calls

with needs_extra("toolwire.integrations.smolagents", "smolagents"):
    from smolagents import models as smol
    from smolagents.monitoring import TokenUsage

__all__ = ["ToolwireSmolModel"]

_CALLS = "Calling tools:\n"
"""The text that smolagents writes before the calls of an earlier answer; it is also a stop word."""


class ToolwireSmolModel(smol.Model):
    """A model of smolagents that asks any model.

    Where a model of text is offered tools, it sees its earlier calls in its own format, as it is asked to write them.
    A call that is incomplete is left out of a whole answer, so the agent asks again. In a stream it is a
    `toolwire.ProviderError`, as any error of the model is: smolagents would pass half of the arguments to the tool.

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
        self._adapted = AdaptedModel(model, format)
        super().__init__(model_id=self._adapted.name, **(settings or {}))

    def generate(
        self,
        messages: list[Any],
        stop_sequences: list[str] | None = None,
        response_format: dict[str, Any] | None = None,
        tools_to_call_from: list[Any] | None = None,
        **members: Any,
    ) -> Any:
        """Return a whole answer; `members` are other members of a request of Chat Completions."""
        request = self._request(messages, stop_sequences, response_format, tools_to_call_from, members)
        response = self._adapted.ask_blocking(request)
        calls = [
            smol.ChatMessageToolCall(
                id=call.id,
                type="function",
                function=smol.ChatMessageToolCallFunction(name=call.name, arguments=call.arguments),
            )
            for call in response.tool_calls
        ]
        return smol.ChatMessage(
            role=smol.MessageRole.ASSISTANT,
            content=response.content,
            tool_calls=calls or None,
            raw=response,
            token_usage=_usage(response.usage),
        )

    def generate_stream(
        self,
        messages: list[Any],
        stop_sequences: list[str] | None = None,
        response_format: dict[str, Any] | None = None,
        tools_to_call_from: list[Any] | None = None,
        **members: Any,
    ) -> Iterator[Any]:
        """Yield the pieces of an answer as they arrive; closing the iterator stops the model."""
        request = self._request(messages, stop_sequences, response_format, tools_to_call_from, members)
        with closing(self._adapted.stream_blocking(request)) as events:
            for event in events:
                match event:
                    case CallEnd(_, call, complete=False):
                        raise ProviderError(f"the call of {call.name} is incomplete")
                    case UsageCounted(usage):
                        yield smol.ChatMessageStreamDelta(content="", token_usage=_usage(usage))
                    case _:
                        for delta in chat_deltas([event]):
                            yield from _deltas(delta)

    def _request(
        self, messages: list[Any], stop: Any, response_format: Any, tools: Any, members: dict[str, Any]
    ) -> ChatRequest:
        if tools and self._adapted.is_text:
            messages = [_with_written_calls(message, self._adapted.format) for message in messages]
        body = self._prepare_completion_kwargs(
            messages=messages,
            stop_sequences=stop,
            response_format=response_format,
            tools_to_call_from=tools,
            convert_images_to_image_urls=True,
            custom_role_conversions=smol.tool_role_conversions,
            **members,
        )
        return chat_request(**body)


def _with_written_calls(message: Any, format: str) -> Any:
    """Return a message of the history with calls in a wire format, which smolagents wrote as a list of Python."""
    match message:
        case smol.ChatMessage(role=smol.MessageRole.TOOL_CALL, content=[{"type": "text", "text": str(text)}]):
            try:
                values = ast.literal_eval(text.removeprefix(_CALLS))
                calls = [ToolCall(value["function"]["name"], value["function"]["arguments"]) for value in values]
                written = render_calls(calls, format=format)
            except (ValueError, SyntaxError, LookupError, TypeError, RecursionError, MemoryError, RenderError):
                return message
            return replace(message, content=[{"type": "text", "text": written}])
    return message


def _deltas(delta: dict[str, Any]) -> Iterator[Any]:
    """Yield the piece for a delta of Chat Completions; smolagents has none for reasoning."""
    if "content" in delta:
        yield smol.ChatMessageStreamDelta(content=delta["content"])
    for call in delta.get("tool_calls", ()):
        function = smol.ChatMessageToolCallFunction(
            name=call["function"].get("name"), arguments=call["function"]["arguments"]
        )
        piece = smol.ChatMessageToolCallStreamDelta(
            index=call["index"], id=call.get("id"), type="function", function=function
        )
        yield smol.ChatMessageStreamDelta(content="", tool_calls=[piece])


def _usage(usage: Usage | None) -> Any:
    return usage and TokenUsage(usage.input_tokens, usage.output_tokens)

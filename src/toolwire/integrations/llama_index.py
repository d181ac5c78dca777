"""LlamaIndex: any model as an LLM that calls functions."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from mimetypes import guess_type
from typing import Any

from toolwire._surface import needs_extra
from toolwire.errors import DefinitionError
from toolwire.events import CallEnd, CallStart, ContentDelta, Event, Finish, ReasoningDelta, collect
from toolwire.integrations.adapted_model import AdaptedModel, chat_request, confidence_of
from toolwire.messages import ParsedResponse
from toolwire.providers.chat_parts import write_usage
from toolwire.providers.request import ChatRequest
from toolwire.text.json_text import json_text

with needs_extra("toolwire.integrations.llama_index", "llama-index"):
    from llama_index.core.base.llms.generic_utils import (
        achat_to_completion_decorator,
        astream_chat_to_completion_decorator,
        chat_to_completion_decorator,
        stream_chat_to_completion_decorator,
    )
    from llama_index.core.base.llms.types import (
        AudioBlock,
        CachePoint,
        ChatMessage,
        ChatResponse,
        DocumentBlock,
        ImageBlock,
        LLMMetadata,
        MessageRole,
        TextBlock,
        ThinkingBlock,
        ToolCallBlock,
    )
    from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
    from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
    from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
    from llama_index.core.llms.function_calling import FunctionCallingLLM
    from llama_index.core.llms.llm import ToolSelection

__all__ = ["ToolwireLLM"]

_ROLES = {
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
}


class ToolwireLLM(FunctionCallingLLM):
    """An LLM of LlamaIndex that asks any model.

    A call is a `ToolCallBlock` of the message. In a stream it appears with its name, and `tool_kwargs` is text until
    the arguments are complete. An incomplete call is not a block of the last message, so it never runs. The `raw`
    of the last response has `finish_reason`, `usage`, the messages of the `problems`, and the confidence of calls that
    are not certain as `call_confidence`, by their ids. An error of the model is a `toolwire.ProviderError`.

    Attributes:
        model: the model; see `toolwire.integrations.AnyModel`.
        format: the wire format that the model is asked to write; "" for a backend, and for an API whose own fields for
            tools are used.
        settings: settings of each answer by their names in Chat Completions, such as `temperature`.
        context_window: the number of tokens that prompt and answer may have; LlamaIndex cuts longer histories.

    Raises:
        ConfigurationError: `format` is missing or has no effect, or `model` is text that names no model of an API.
        KeyError: there is no such provider, or no such format; the message suggests similar names.
        TypeError: `model` is something else.
    """

    model_config = ConfigDict(extra="forbid")  # settings by another name than `settings` would have no effect

    model: Any = Field(exclude=True, repr=False)
    format: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    context_window: int = DEFAULT_CONTEXT_WINDOW
    _adapted: AdaptedModel = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check the model and the format."""
        super().model_post_init(context)
        self._adapted = AdaptedModel(self.model, self.format)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex stores the settings."""
        return "ToolwireLLM"

    @property
    def metadata(self) -> Any:
        """Return what LlamaIndex asks about a model."""
        return LLMMetadata(
            context_window=self.context_window,
            num_output=int(self.settings.get("max_tokens") or -1),  # -1: not known
            is_chat_model=True,
            is_function_calling_model=True,
            model_name=self._adapted.name,
        )

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **members: Any) -> Any:
        """Return a whole answer; `members` are other members of a request of Chat Completions."""
        return _whole(self._adapted.ask_blocking(self._request(messages, members)))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **members: Any) -> Any:
        """Return a whole answer; see `chat`."""
        return _whole(await self._adapted.ask(self._request(messages, members)))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **members: Any) -> Any:
        """Return a generator of responses, each with the message so far; closing it stops the model."""
        request = self._request(messages, members)

        def responses() -> Generator[Any]:
            answer = _GrowingAnswer()
            with closing(self._adapted.stream_blocking(request)) as events:
                for event in events:
                    yield from answer.add(event)

        return responses()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **members: Any) -> Any:
        """Return an asynchronous generator; see `stream_chat`."""
        request = self._request(messages, members)

        async def responses() -> AsyncGenerator[Any]:
            answer = _GrowingAnswer()
            async with aclosing(self._adapted.stream(request)) as events:
                async for event in events:
                    for response in answer.add(event):
                        yield response

        return responses()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **members: Any) -> Any:
        """Return the text of an answer to one question."""
        return chat_to_completion_decorator(self.chat)(prompt, **members)

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **members: Any) -> Any:
        """Return the text of an answer to one question."""
        return await achat_to_completion_decorator(self.achat)(prompt, **members)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **members: Any) -> Any:
        """Return a generator of the text of an answer to one question."""
        return stream_chat_to_completion_decorator(self.stream_chat)(prompt, **members)

    @llm_completion_callback()
    async def astream_complete(self, prompt: str, formatted: bool = False, **members: Any) -> Any:
        """Return an asynchronous generator of the text of an answer to one question."""
        return await astream_chat_to_completion_decorator(self.astream_chat)(prompt, **members)

    def get_tool_calls_from_response(
        self, response: Any, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        """Return the complete calls of a response.

        Raises:
            ValueError: there is none, and `error_on_no_tool_call` is true.
        """
        calls = [
            ToolSelection(tool_id=block.tool_call_id or "", tool_name=block.tool_name, tool_kwargs=block.tool_kwargs)
            for block in response.message.blocks
            if isinstance(block, ToolCallBlock) and isinstance(block.tool_kwargs, dict)
        ]
        if not calls and error_on_no_tool_call:
            raise ValueError(f"the model called no tool; it wrote: {(response.message.content or '')[:200]!r}")
        return calls

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[Any],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        messages = list(chat_history or ())
        if user_msg is not None:
            is_text = isinstance(user_msg, str)
            messages.append(ChatMessage(user_msg, role=MessageRole.USER) if is_text else user_msg)
        # A name may be longer than the 64 characters that OpenAI allows: each format has its own limits.
        offered = [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools]
        members: dict[str, Any] = {"messages": messages, "tools": offered}
        if offered:
            members["tool_choice"] = "required" if tool_required else "auto"
            members["parallel_tool_calls"] = allow_parallel_tool_calls
        if kwargs.get("tool_choice") is None:
            kwargs.pop("tool_choice", None)  # LlamaIndex's programs pass None, and mean `tool_required`
        return members | kwargs

    def _request(self, messages: Sequence[ChatMessage], members: Mapping[str, Any]) -> ChatRequest:
        return chat_request(map(_chat_message, messages), **{**self.settings, **members})


class _GrowingAnswer:
    """The answer so far, of which LlamaIndex wants a whole message with every piece."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._content = ""
        self._reasoning = ""
        self._calls: dict[int, ToolCallBlock] = {}

    def add(self, event: Event) -> Iterator[Any]:
        """Yield the response after the next event, if it changes the message."""
        match event:
            case ContentDelta(text):
                self._content += text
                yield self._response(text)
            case ReasoningDelta(text):
                self._reasoning += text
                yield self._response("", thinking_delta=text)
            case CallStart(index, name, id):
                # Text in place of a dict says that the arguments are not complete, as LlamaIndex's own models do.
                self._calls[index] = ToolCallBlock(tool_call_id=id, tool_name=name, tool_kwargs="")
                yield self._response("")
            case CallEnd(index, call, complete):
                if complete:  # arguments grow unseen, because each response would repeat them all
                    self._calls[index] = _call_block(call)
                else:
                    self._calls.pop(index, None)
                self._events.append(event)
                yield self._response("")
            case Finish():
                yield self._response("", _facts(collect([*self._events, event])))
            case _:
                self._events.append(event)

    def _response(self, delta: str, facts: dict[str, Any] | None = None, **more: Any) -> Any:
        message = _message(self._content, self._reasoning, list(self._calls.values()), is_whole=facts is not None)
        return ChatResponse(message=message, delta=delta, raw=facts, additional_kwargs=more)


def _whole(response: ParsedResponse) -> Any:
    calls = [_call_block(call) for call in response.tool_calls]
    message = _message(response.content, response.reasoning, calls, is_whole=True)
    return ChatResponse(message=message, raw=_facts(response))


def _message(content: str, reasoning: str, calls: list[Any], *, is_whole: bool) -> Any:
    blocks: list[Any] = [ThinkingBlock(content=reasoning)] if reasoning else []
    if content or not calls:
        blocks.append(TextBlock(text=content))
    # LlamaIndex looks for the calls here too: its streamed structured outputs and its summaries read no blocks.
    more = {"tool_calls": [_chat_call(call) for call in calls]} if calls and is_whole else {}
    return ChatMessage(role=MessageRole.ASSISTANT, blocks=[*blocks, *calls], additional_kwargs=more)


def _call_block(call: Any) -> Any:
    return ToolCallBlock(tool_call_id=call.id, tool_name=call.name, tool_kwargs=dict(call.arguments))


def _chat_call(block: Any) -> dict[str, Any]:
    """Return a call as Chat Completions spells it."""
    arguments = block.tool_kwargs
    text = arguments if isinstance(arguments, str) else json_text(arguments)
    return {"id": block.tool_call_id, "type": "function", "function": {"name": block.tool_name, "arguments": text}}


def _facts(response: ParsedResponse) -> dict[str, Any]:
    """Return what LlamaIndex has no field for; its token counters read `usage`."""
    facts: dict[str, Any] = {"finish_reason": response.finish_reason.value}
    if response.usage is not None:
        facts["usage"] = write_usage(response.usage)
    if response.problems:
        facts["problems"] = [problem.message for problem in response.problems]
    if uncertain := confidence_of(response.tool_calls):
        facts["call_confidence"] = uncertain
    return facts


def _chat_message(message: ChatMessage) -> dict[str, Any]:
    """Return a message as Chat Completions spells it.

    Raises:
        DefinitionError: it has a block that Chat Completions has no place for.
    """
    parts: list[dict[str, Any]] = []
    calls: list[Any] = []
    reasoning = ""
    for block in message.blocks:
        match block:
            case TextBlock():
                parts.append({"type": "text", "text": block.text})
            case ImageBlock():
                parts.append({"type": "image_url", "image_url": {"url": _image_url(block)}})
            case AudioBlock():
                data = block.resolve_audio(as_base64=True).read().decode()
                parts.append({"type": "input_audio", "input_audio": {"data": data, "format": block.format or "mp3"}})
            case DocumentBlock():
                parts.append({"type": "file", "file": {"filename": block.title, "file_data": _document_url(block)}})
            case CachePoint():
                pass
            case ThinkingBlock():
                reasoning += block.content or ""
            case ToolCallBlock():
                calls.append(_chat_call(block))
            case _:
                raise DefinitionError(f"a {block.block_type} block of a message cannot be sent to this model")
    written: dict[str, Any] = {"role": _ROLES[message.role], "content": parts}
    # Messages that older versions stored have no blocks of calls.
    if calls := calls or list(message.additional_kwargs.get("tool_calls") or ()):
        written["tool_calls"] = calls
    if reasoning:
        written["reasoning_content"] = reasoning
    if written["role"] == "tool":
        written["tool_call_id"] = message.additional_kwargs.get("tool_call_id", "")
    return written


def _image_url(block: Any) -> str:
    if block.url:
        return str(block.url)
    data = block.resolve_image(as_base64=True).read().decode()
    return f"data:{block.image_mimetype or 'image/png'};base64,{data}"


def _document_url(block: Any) -> str:
    data = base64.b64encode(block.resolve_document().read()).decode()
    # LlamaIndex knows the types of files with a signature only, and text has none.
    guess, _ = guess_type(str(block.path or block.url or block.title))
    return f"data:{block.document_mimetype or guess or 'application/octet-stream'};base64,{data}"

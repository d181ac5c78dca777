"""LangChain: any model as a chat model, and a parser for the text of any model of LangChain."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, suppress
from functools import partial
from types import FunctionType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from toolwire._surface import needs_extra
from toolwire.errors import DefinitionError
from toolwire.events import CallEnd, Event, Finish, ProblemFound, UsageCounted, collect
from toolwire.messages import ParsedResponse, Usage
from toolwire.providers.chat_deltas import chat_deltas, closed_calls
from toolwire.providers.request import ChatRequest
from toolwire.runtime.isolation.isolated_call import importable
from toolwire.text.tokens import estimate_tokens
from toolwire.tools import definitions
from toolwire.wire.prompts import prompt
from toolwire.wire.stream_parser import StreamParser

with needs_extra("toolwire.integrations.langchain", "langchain"):
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, convert_to_openai_messages
    from langchain_core.output_parsers import (
        BaseTransformOutputParser,
        JsonOutputKeyToolsParser,
        JsonOutputParser,
        PydanticOutputParser,
        PydanticToolsParser,
    )
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langchain_core.runnables import Runnable, RunnableLambda
    from langchain_core.utils.function_calling import convert_to_json_schema, convert_to_openai_tool

    from toolwire.integrations.adapted_model import AdaptedModel, chat_request, confidence_of

__all__ = ["ChatToolwire", "ToolCallOutputParser"]

_REASONING = "reasoning_content"
"""Member for reasoning in the additional arguments of a message, and in Chat Completions."""


class ChatToolwire(BaseChatModel):
    """A chat model of LangChain that asks any model.

    Calls that are incomplete are among `invalid_tool_calls`, so that they never run. The `response_metadata` has the
    confidence of calls that are not certain, as `call_confidence`, by their ids. An error of the model is a
    `toolwire.ProviderError`.

    Attributes:
        model: the model; see `toolwire.integrations.AnyModel`.
        format: the wire format that the model is asked to write; "" for a backend, and for an API whose own fields for
            tools are used.
        settings: settings of each answer by their names in Chat Completions, such as `temperature`.

    Raises:
        ConfigurationError: `format` is missing or has no effect, or `model` is text that names no model of an API.
        KeyError: there is no such provider, or no such format; the message suggests similar names.
        TypeError: `model` is something else.
    """

    model_config = ConfigDict(extra="forbid")  # settings by another name than `settings` would have no effect

    model: Any = Field(exclude=True, repr=False)
    format: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    _adapted: AdaptedModel = PrivateAttr()
    _identity: str = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check the model and the format."""
        super().model_post_init(context)
        self._adapted = AdaptedModel(self.model, self.format)
        self._identity = _identity(self.model)

    @property
    def model_name(self) -> str:
        """The name of the model. Agents of LangChain read it, and would read `model` as a name otherwise."""
        return self._adapted.name

    @property
    def _llm_type(self) -> str:
        return "toolwire"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        # They are part of the key under which LangChain caches answers.
        return {"model_name": self._adapted.name, "model": self._identity, "format": self.format, **self.settings}

    def get_num_tokens(self, text: str) -> int:
        """Return about how many tokens a text has, unless `custom_get_token_ids` counts them.

        LangChain would download a tokenizer of another model.
        """
        return estimate_tokens(len(text)) if self.custom_get_token_ids is None else super().get_num_tokens(text)

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | Any],
        *,
        tool_choice: dict[str, Any] | str | bool | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with tools.

        Args:
            tools: the tools, in any shape that LangChain takes.
            tool_choice: "auto", "none", "any" or "required", the name of a tool, or a choice of Chat Completions; True
                for "required".
            strict: whether a server may write no other arguments than the schemas allow, where it can be made to.
            kwargs: other members of each request, such as `parallel_tool_calls`.
        """
        offered = [convert_to_openai_tool(tool, strict=strict) for tool in tools]
        return self.bind(tools=offered, tool_choice=_choice(tool_choice), **kwargs)

    def with_structured_output(
        self,
        schema: dict[str, Any] | type,
        *,
        include_raw: bool = False,
        method: Literal["json_schema", "function_calling"] = "json_schema",
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """Return the model with answers that follow a schema.

        Args:
            schema: a class of pydantic, a TypedDict or a JSON Schema. The answer is an object of the class, or a dict.
            include_raw: whether the answer is a dict with `raw`, `parsed` and `parsing_error`.
            method: "json_schema" for JSON in the text of the answer, "function_calling" for the arguments of a call.
            strict: whether a server may write nothing else than the schema allows, where it can be made to.
            kwargs: none is known; `BaseChatModel` has them.

        Raises:
            ValueError: an argument is not known.
        """
        if kwargs:
            raise ValueError(f"a structured output takes no {', '.join(kwargs)}; tools come before, with bind_tools")
        members, parser = (_call_output if method == "function_calling" else _text_output)(schema, strict)
        traced = {"kwargs": {"method": method}, "schema": schema}
        model = self.bind(**members, ls_structured_output_format=traced)
        return model | (RunnableLambda(partial(_parsed_with_raw, parser)) if include_raw else parser)

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        return self._result(self._adapted.ask_blocking(self._request(messages, stop, kwargs)))

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Any:
        return self._result(await self._adapted.ask(self._request(messages, stop, kwargs)))

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[Any]:
        chunks = _Chunks(self._adapted.name)
        with closing(self._adapted.stream_blocking(self._request(messages, stop, kwargs))) as events:
            for event in events:
                yield from map(_generation_chunk, chunks.of([event]))

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        chunks = _Chunks(self._adapted.name)
        async with aclosing(self._adapted.stream(self._request(messages, stop, kwargs))) as events:
            async for event in events:
                for chunk in chunks.of([event]):
                    yield _generation_chunk(chunk)

    def _request(self, messages: list[BaseMessage], stop: Any, members: Mapping[str, Any]) -> ChatRequest:
        members = {**self.settings, **members}
        if stop is not None:
            members["stop"] = stop
        return chat_request(itertools.chain.from_iterable(map(_chat_messages, messages)), **members)

    def _result(self, response: ParsedResponse) -> Any:
        return ChatResult(generations=[ChatGeneration(message=_message(response, self._adapted.name))])


class ToolCallOutputParser(BaseTransformOutputParser[Any]):
    """A parser that reads tool calls in the text of any model: a message with `tool_calls` comes out.

    It comes after a model in a chain. A stream becomes chunks of a message, which name a call before its arguments are
    complete. `get_format_instructions` returns the text for the prompt.

    Attributes:
        tools: the tools, in any shape that LangChain takes.
        format: the wire format of the calls; "auto" to read any.
    """

    tools: list[Any]
    format: str = "auto"

    @property
    def _type(self) -> str:
        return "toolwire"

    def get_format_instructions(self) -> str:
        """Return the part of a prompt that describes the tools, and how to call them.

        Raises:
            DefinitionError: the format is "auto", so that the model could not know which one to write.
        """
        if self.format == "auto":
            raise DefinitionError('name the format that the model is asked to write, such as format="hermes"')
        return prompt(self._offered(), format=self.format)

    def parse(self, text: str) -> Any:
        """Return the message that a text is, with its calls."""
        parser = self._parser()
        return _message(collect([*parser.feed(text), *parser.finish()]))

    def _transform(self, input: Iterator[str | BaseMessage]) -> Iterator[Any]:
        parser, chunks = self._parser(), _Chunks()
        for piece in input:
            yield from chunks.of(closed_calls(parser.feed(_text(piece))))
        yield from chunks.of(closed_calls(parser.finish()))

    async def _atransform(self, input: AsyncIterator[str | BaseMessage]) -> AsyncIterator[Any]:
        parser, chunks = self._parser(), _Chunks()
        async for piece in input:
            for chunk in chunks.of(closed_calls(parser.feed(_text(piece)))):
                yield chunk
        for chunk in chunks.of(closed_calls(parser.finish())):
            yield chunk

    def _offered(self) -> list[Any]:
        return list(definitions([convert_to_openai_tool(tool) for tool in self.tools]).values())

    def _parser(self) -> StreamParser:
        # Without a seed of its own, the same call in two messages would have the same id.
        return StreamParser(
            format=self.format, tools=self._offered(), fallback="whole_message", id_seed=uuid.uuid4().hex
        )


class _Chunks:
    """Chunks of one message as LangChain adds them up.

    Args:
        model: the model's name; "" if it is not known.
    """

    def __init__(self, model: str = "") -> None:
        self._model = model
        self._usage: Usage | None = None

    def of(self, events: Iterable[Event]) -> Iterator[Any]:
        """Yield the chunks of the next events."""
        for event in events:
            match event:
                case UsageCounted(usage):
                    self._usage = usage
                case ProblemFound(problem):
                    yield AIMessageChunk("", response_metadata={"problems": [problem.message]})
                case CallEnd(_, call, complete=True) if uncertain := confidence_of([call]):
                    yield AIMessageChunk("", response_metadata={"call_confidence": uncertain})
                case Finish(reason):
                    metadata = _metadata(reason.value, self._model)
                    total = _usage(self._usage)
                    yield AIMessageChunk("", response_metadata=metadata, usage_metadata=total, chunk_position="last")
                case _:
                    yield from map(_delta_chunk, chat_deltas([event]))


def _delta_chunk(delta: Mapping[str, Any]) -> Any:
    """Return the chunk for a delta of Chat Completions."""
    match delta:
        case {"content": text}:
            return AIMessageChunk(text)
        case {"tool_calls": [call]}:
            function = call["function"]
            return _call_chunk(call["index"], function.get("name"), function["arguments"], call.get("id"))
    return AIMessageChunk("", additional_kwargs=dict(delta))


def _call_chunk(index: int, name: str | None = None, args: str = "", id: str | None = None) -> Any:
    chunk = {"type": "tool_call_chunk", "index": index, "name": name, "args": args, "id": id}
    return AIMessageChunk("", tool_call_chunks=[chunk])


def _generation_chunk(chunk: Any) -> Any:
    return ChatGenerationChunk(message=chunk)


def _message(response: ParsedResponse, model: str = "") -> Any:
    """Return a whole message."""
    problems = [problem.message for problem in response.problems]
    uncertain = confidence_of(response.tool_calls)
    of_calls = [problem for problem in response.problems if problem.index is not None]
    broken = [
        {
            "type": "invalid_tool_call",
            "name": call.name,
            "args": problem.raw if problem else call.raw,
            "id": call.id,
            "error": problem.message if problem else "the call is incomplete",
        }
        for call, problem in itertools.zip_longest(response.incomplete, of_calls[: len(response.incomplete)])
    ]
    return AIMessage(
        response.content,
        tool_calls=[
            {"type": "tool_call", "name": call.name, "args": call.arguments, "id": call.id}
            for call in response.tool_calls
        ],
        invalid_tool_calls=broken,
        additional_kwargs={_REASONING: response.reasoning} if response.reasoning else {},
        response_metadata={
            **_metadata(response.finish_reason.value, model),
            **({"problems": problems} if problems else {}),
            **({"call_confidence": uncertain} if uncertain else {}),
        },
        usage_metadata=_usage(response.usage),
    )


def _metadata(finish_reason: str, model: str) -> dict[str, Any]:
    return {"finish_reason": finish_reason, **({"model_name": model} if model else {})}


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_token_details": {"cache_read": usage.cached_tokens},
        "output_token_details": {"reasoning": usage.reasoning_tokens},
    }


def _chat_messages(message: BaseMessage) -> list[dict[str, Any]]:
    """Return a message as Chat Completions spells it; some messages with results of tools become several."""
    written: list[dict[str, Any]] = convert_to_openai_messages([message])
    # LangChain leaves reasoning out, which some models need back together with their calls.
    if isinstance(message, AIMessage) and (reasoning := message.additional_kwargs.get(_REASONING)):
        written[0][_REASONING] = reasoning
    return written


def _identity(model: Any) -> str:
    """Return text that no other model has; of one that an importable name means, the same text in every process."""
    if isinstance(model, str):
        return model
    if isinstance(model, FunctionType):
        # Functions of two scripts may have the same name, and so may a function and the one that took its place.
        with suppress(DefinitionError):
            return ".".join(importable(model))
    return uuid.uuid4().hex  # closures of one function have the same name, and clients differ in their settings


def _choice(choice: dict[str, Any] | str | bool | None) -> Any:
    """Return a choice of tools in a form that the decoder of Chat Completions reads; a name is one."""
    return "required" if choice is True else choice or None


def _text_output(schema: dict[str, Any] | type, strict: bool | None) -> tuple[dict[str, Any], Any]:
    """Return the members of a request for JSON in the text of the answer, and the parser of that text."""
    json_schema = convert_to_json_schema(schema)
    output: dict[str, Any] = {"name": str(json_schema.get("title") or "output"), "schema": json_schema}
    if strict is not None:
        output["strict"] = strict
    parser = PydanticOutputParser(pydantic_object=schema) if _is_model_class(schema) else JsonOutputParser()
    return {"response_format": {"type": "json_schema", "json_schema": output}}, parser


def _call_output(schema: dict[str, Any] | type, strict: bool | None) -> tuple[dict[str, Any], Any]:
    """Return the members of a request for a call, and the parser of its arguments."""
    tool = convert_to_openai_tool(schema, strict=strict)
    parser = (
        PydanticToolsParser(tools=[schema], first_tool_only=True)
        if _is_model_class(schema)
        else JsonOutputKeyToolsParser(key_name=tool["function"]["name"], first_tool_only=True)
    )
    return {"tools": [tool], "tool_choice": "required"}, parser


def _is_model_class(schema: dict[str, Any] | type) -> bool:
    return isinstance(schema, type) and issubclass(schema, BaseModel)


def _text(piece: str | BaseMessage) -> str:
    return piece if isinstance(piece, str) else str(piece.text)


def _parsed_with_raw(parser: Any, message: Any) -> dict[str, Any]:
    """Return a message with what a parser reads from it, or with the error."""
    try:
        return {"raw": message, "parsed": parser.invoke(message), "parsing_error": None}
    except ValueError as error:  # of LangChain and of pydantic
        return {"raw": message, "parsed": None, "parsing_error": error}

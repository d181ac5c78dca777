"""The plug-in for the program `llm` and its library: models that call tools, whatever model answers.

The file `toolwire.toml` in llm's own folder (`llm logs path` shows it) names the models. Each becomes a model
`toolwire/NAME` of llm:

    [models.qwen]
    model = "ollama:qwen3:8b"        # a provider and a model, or "local:1.5b" for one in this process
    format = "hermes"                # the wire format; without it, the fields for tools that the API has

    [models.orca]
    llm_model = "orca-mini-3b"       # a model of another plug-in, which needs no support for tools
    format = "bare_json"
    options = {temperature = 0}      # options of that model
"""

from __future__ import annotations

import base64
import warnings
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolwire._surface import needs_extra
from toolwire.errors import ConfigurationError, ProviderError
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, ContentDelta, Event, ReasoningDelta, UsageCounted
from toolwire.text.json_text import json_text

with needs_extra("toolwire.integrations.llm_plugin", "llm"):
    import llm
    from llm.parts import AttachmentPart, ReasoningPart, StreamEvent, TextPart, ToolCallPart, ToolResultPart

if TYPE_CHECKING:
    from toolwire.integrations.adapted_model import AdaptedModel
    from toolwire.integrations.model_argument import AnyModel
    from toolwire.providers.request import ChatRequest

__all__ = ["AsyncToolwireLlmModel", "ToolwireLlmModel", "register_models"]

PREFIX = "toolwire/"


class _Answers:
    """The part that both kinds of model share; see `ToolwireLlmModel` for the arguments."""

    can_stream = True
    supports_tools = True
    supports_schema = True
    attachment_types = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})

    class Options(llm.Options):
        """The settings of an answer."""

        temperature: float | None = Field(default=None, description="How random the answer is; 0 is not at all")
        top_p: float | None = Field(default=None, description="The share of likely tokens to choose from")
        max_tokens: int | None = Field(default=None, description="The largest number of tokens of an answer")
        seed: int | None = Field(default=None, description="A number that makes the answer repeatable")
        stop: str | None = Field(default=None, description="Text at which the answer ends")

    def __init__(self, model_id: str, load: Callable[[], AnyModel], format: str = "") -> None:
        self.model_id = model_id
        self._load = load
        self._format = format
        self._adapted: AdaptedModel | None = None

    def _model(self) -> AdaptedModel:
        if self._adapted is None:
            from toolwire.integrations.adapted_model import AdaptedModel  # not with each start of llm: HTTP comes along

            self._adapted = AdaptedModel(self._load(), self._format)
        return self._adapted

    def _request(self, prompt: Any) -> ChatRequest:
        from toolwire.integrations.adapted_model import chat_request

        members = dict(prompt.options)
        tools = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description or "",
                    "parameters": tool.input_schema or {"type": "object", "properties": {}},
                },
            }
            for tool in prompt.tools
        ]
        if prompt.schema:
            schema = {"name": str(prompt.schema.get("title") or "output"), "schema": prompt.schema}
            members["response_format"] = {"type": "json_schema", "json_schema": schema}
        messages = [message for each in prompt.messages for message in _chat_messages(each)]
        return chat_request(messages, tools=tools, **members)


class ToolwireLlmModel(_Answers, llm.Model):
    """A model of llm that asks any model.

    A call that is incomplete is a `toolwire.ProviderError`, as any error of the model is, so that it never runs.

    Args:
        model_id: the name of the model in llm.
        load: returns the model; see `toolwire.integrations.AnyModel`. It is called with the first question.
        format: the wire format that the model is asked to write; "" for a backend, and for an API whose own fields for
            tools are used.
    """

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[Any]:
        """Yield the events of an answer as they arrive; closing the iterator stops the model."""
        writer = _EventWriter(response)
        with closing(self._model().stream_blocking(self._request(prompt))) as events:
            for event in events:
                yield from writer.write(event)


class AsyncToolwireLlmModel(_Answers, llm.AsyncModel):
    """A model of llm for programs with async; see `ToolwireLlmModel`."""

    async def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> AsyncGenerator[Any]:
        """Yield the events of an answer as they arrive; closing the generator stops the model."""
        writer = _EventWriter(response)
        async with aclosing(self._model().stream(self._request(prompt))) as events:
            async for event in events:
                for each in writer.write(event):
                    yield each


class _ModelTable(BaseModel):
    """A table `[models.NAME]` of the file."""

    model_config = ConfigDict(extra="forbid")

    model: str = ""
    llm_model: str = ""
    format: str = ""
    options: dict[str, Any] = Field(default_factory=dict)


class _ModelFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    models: dict[str, _ModelTable] = Field(default_factory=dict)


@llm.hookimpl
def register_models(register: Callable[..., None]) -> None:
    """Register the models of the file. A broken file is a warning, because other models of llm still work."""
    try:
        for name, table in _read_models().items():
            load = _loader(name, table)
            kinds = (ToolwireLlmModel, AsyncToolwireLlmModel)  # llm takes both under one name
            register(*(kind(PREFIX + name, load, table.format) for kind in kinds))
    except ConfigurationError as error:
        warnings.warn(f"the models of Toolwire are missing: {error}", stacklevel=2)


def _read_models() -> dict[str, _ModelTable]:
    """Return the tables of the file, by their names.

    Raises:
        ConfigurationError: it cannot be read, or has an unknown key or a value of the wrong type.
    """
    from toolwire.config.toml_source import read_text, read_toml, refused, toml_line

    path = llm.user_dir() / "toolwire.toml"
    if not path.exists():
        return {}
    text = read_text(path)
    try:
        return _ModelFile.model_validate(read_toml(path, text)).models
    except ValidationError as error:
        raise refused(path, error, lambda keys: toml_line(text, keys), model=_ModelFile) from error


def _loader(name: str, table: _ModelTable) -> Callable[[], AnyModel]:
    """Return the function that loads the model of a table.

    Raises:
        ConfigurationError: the table names no model, or two, or options without effect.
    """
    if bool(table.model) == bool(table.llm_model):
        raise ConfigurationError(f"models.{name}: give either model or llm_model")
    if table.llm_model:
        if not table.format:
            raise ConfigurationError(f'models.{name}: name the wire format of the model, such as format = "hermes"')
        return lambda: _other_model(table.llm_model, table.options)
    if table.options:
        raise ConfigurationError(f"models.{name}: options belong to llm_model; this model takes them with -o")
    if table.model.startswith("local:"):
        if not table.format:
            raise ConfigurationError(f'models.{name}: name the wire format of the model, such as format = "hermes"')
        return lambda: _local_model(table.model.removeprefix("local:"))
    return lambda: table.model


def _local_model(name: str) -> Any:
    from toolwire.models.local.model_files import open_model

    return open_model(name)


def _other_model(model_id: str, options: dict[str, Any]) -> Callable[[list[dict[str, str]]], Iterator[str]]:
    """Return a function that asks a model of another plug-in.

    Raises:
        ConfigurationError: there is no such model.
    """
    try:
        model = llm.get_model(model_id)
    except llm.UnknownModelError as error:
        raise ConfigurationError(f"llm has no model {model_id!r}; `llm models` lists them") from error

    def ask(messages: list[dict[str, str]]) -> Iterator[str]:
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        turns = [message for message in messages if message["role"] != "system"]
        # Plug-ins read either the messages or, if they are older, the prompt, which then has the whole conversation.
        lines = [f"{turn['role'].capitalize()}: {turn['content']}" for turn in turns]
        text = turns[0]["content"] if len(turns) == 1 else "\n\n".join([*lines, "Assistant:"])
        history = [llm.Message(role=each["role"], parts=[TextPart(text=each["content"])]) for each in messages]
        # `model.prompt` would add the text to the messages.
        prompt = llm.Prompt(
            text, model=model, system=system or None, messages=history, options=model.Options(**options)
        )
        yield from llm.Response(prompt, model, stream=model.can_stream)

    return ask


class _EventWriter:
    """The events of one answer as llm spells them.

    Args:
        response: the response of llm, which gets the calls and the token counts.
    """

    def __init__(self, response: Any) -> None:
        self._response = response
        self._ids: dict[int, str] = {}  # of the calls, by their indexes

    def write(self, event: Event) -> Iterator[Any]:
        """Yield the next event.

        Raises:
            ProviderError: it is the end of an incomplete call.
        """
        match event:
            case ContentDelta(text):
                yield StreamEvent(type="text", chunk=text)
            case ReasoningDelta(text):
                yield StreamEvent(type="reasoning", chunk=text)
            case CallStart(index, name, id):
                self._ids[index] = id
                yield StreamEvent(type="tool_call_name", chunk=name, tool_call_id=id)
            case ArgumentsDelta(index, text):
                yield StreamEvent(type="tool_call_args", chunk=text, tool_call_id=self._ids[index])
            case CallEnd(_, call, complete=False):
                raise ProviderError(f"the call of {call.name} is incomplete")
            case CallEnd(_, call):
                arguments = dict(call.arguments)
                self._response.add_tool_call(llm.ToolCall(call.name, arguments, tool_call_id=call.id))
            case UsageCounted(usage):
                details = {"cached_tokens": usage.cached_tokens, "reasoning_tokens": usage.reasoning_tokens}
                details = {name: count for name, count in details.items() if count}
                self._response.set_usage(input=usage.input_tokens, output=usage.output_tokens, details=details or None)


def _chat_messages(message: Any) -> Iterable[dict[str, Any]]:
    """Yield a message as Chat Completions spells it; each result of a tool is a message of its own there."""
    content: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    reasoning = ""
    for part in message.parts:
        match part:
            case TextPart():
                content.append({"type": "text", "text": part.text})
            case ReasoningPart():
                reasoning += part.text
            case ToolCallPart():
                function = {"name": part.name, "arguments": json_text(part.arguments)}
                calls.append({"id": part.tool_call_id, "type": "function", "function": function})
            case ToolResultPart():
                text = part.output if not part.exception else f"{part.output}\n{part.exception}".strip()
                yield {"role": "tool", "tool_call_id": part.tool_call_id, "content": text}
                content += [_picture(attachment) for attachment in part.attachments]
            case AttachmentPart():
                content.append(_picture(part.attachment))
    if not (content or calls or reasoning):
        return
    role = "user" if message.role == "tool" else message.role  # what is left of results are their pictures
    written: dict[str, Any] = {"role": role, "content": content}
    if calls:
        written["tool_calls"] = calls
    if reasoning:
        written["reasoning_content"] = reasoning
    yield written


def _picture(attachment: Any) -> dict[str, Any]:
    url = attachment.url
    if not url:
        data = base64.b64encode(attachment.content_bytes()).decode()
        url = f"data:{attachment.resolve_type()};base64,{data}"
    return {"type": "image_url", "image_url": {"url": url}}

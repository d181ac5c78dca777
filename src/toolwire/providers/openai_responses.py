"""OpenAI Responses: input and output are lists of items.

Source: https://platform.openai.com/docs/api-reference/responses

Calls and results are items of their own, paired by `call_id`; the ids of items are not sent back, except in those that
go back as they came: reasoning, which has to stand before what came of it, and what the provider did itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolwire.events import Event
from toolwire.messages import (
    ImagePart,
    Message,
    OpaquePart,
    ParsedResponse,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
)
from toolwire.providers.base import (
    Head,
    Json,
    Offered,
    ProviderApi,
    arguments_of,
    dropped,
    object_of,
)
from toolwire.providers.chat_completions import FREE_INPUT
from toolwire.providers.framing import Frame, Framing, ServerSentEvents, sse
from toolwire.providers.identifiers import WORD_64, Alphabet
from toolwire.providers.request import ChatRequest, Mode, Notes, ToolChoice, note_foreign, paired, told
from toolwire.providers.response_builder import Assembler
from toolwire.providers.responses_stream import (
    KIND,
    OutputReader,
    output_items,
    reasoning_part,
    response_body,
    write_stream,
)
from toolwire.providers.schema_dialects import JSON_SCHEMA, STRICT
from toolwire.tools import ToolDefinition, as_definition

_COMMON = ("temperature", "top_p")
_READ = frozenset(
    (*_COMMON, "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "model", "stream",
     "max_output_tokens")
)  # fmt: skip
_FUNCTION = frozenset(("type", "name", "description", "parameters", "strict"))
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_ELSEWHERE = ("previous_response_id", "conversation")
"""Members that say that the conversation began before this request, and that the provider keeps the beginning."""


class OpenAIResponses(ProviderApi):
    """The API."""

    kind = KIND
    names = WORD_64
    ids = Alphabet(r"\x21-\x7e", 64)
    dialect = JSON_SCHEMA
    strict_dialect = STRICT

    # -- requests ------------------------------------------------------------------------------------------------

    def pair(self, request: ChatRequest, notes: Notes) -> tuple[Message, ...]:
        """Calls and results paired; the calls of results that come first may be kept by the provider."""
        start = 0
        if request.provider == self.kind and any(request.extra.get(key) for key in _ELSEWHERE):
            while start < len(request.messages) and request.messages[start].role != "assistant":
                start += 1
        return (*request.messages[:start], *paired(request.messages[start:], notes))

    def write_request(self, request: ChatRequest, tools: Sequence[Offered], notes: Notes) -> Json:
        """The body."""
        note_foreign(request, self.kind, notes)
        body: Json = {"model": request.model} if request.model else {}
        first = 0
        while first < len(request.messages) and request.messages[first].role == "system":
            first += 1
        if first:
            said = [told(message, self.name, notes) for message in request.messages[:first]]
            body["instructions"] = "\n\n".join(said)
        writer = _ItemWriter(self.name, notes)
        writer.custom = frozenset(tool.name for tool in tools if _is_custom(tool))
        writer.stored = request.extra.get("store") is not False
        body["input"] = [item for message in request.messages[first:] for item in writer.items(message)]
        listed = [_tool(tool) for tool in tools] + [dict(tool) for tool in request.provider_tools]
        if listed:
            body["tools"] = listed
            if request.tool_choice != ToolChoice():
                body["tool_choice"] = _write_choice(request.tool_choice, writer.custom)
            if request.parallel is not None:
                body["parallel_tool_calls"] = request.parallel
        if request.stream:
            body["stream"] = True
        if request.max_tokens is not None:
            body["max_output_tokens"] = request.max_tokens
        for key in _COMMON:
            if (value := getattr(request, key)) is not None:
                body[key] = value
        if request.stop:
            notes.dropped("stop", f"{self.name} cannot be told where to stop")
        return {**body, **request.extra}

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """One message, as the items that say it."""
        return _ItemWriter(self.name, notes).items(message)

    def read_request(self, body: Json) -> ChatRequest:
        """What a body asks for."""
        tools: list[ToolDefinition] = []
        others: list[Mapping[str, Any]] = []
        for tool in body.get("tools") or ():
            match tool.get("type"):
                case "function":
                    tools.append(_read_tool(tool))
                case "custom":
                    tools.append(_read_custom(tool))
                case _:
                    others.append(tool)
        extra = {key: value for key, value in body.items() if key not in _READ}
        choice = _read_choice(body.get("tool_choice"))
        if choice is None:  # a tool that the provider runs
            extra["tool_choice"] = body["tool_choice"]
        given = body.get("input") or ()
        begins = body.get("instructions")
        messages = [Message("system", (TextPart(begins),))] if isinstance(begins, str) and begins else []
        if isinstance(given, str):
            messages.append(Message("user", (TextPart(given),)))
        else:
            messages += _read_items(given)
        return ChatRequest(
            messages=tuple(messages),
            tools=tuple(tools),
            tool_choice=choice or ToolChoice(),
            parallel=body.get("parallel_tool_calls"),
            model=body.get("model") or "",
            stream=bool(body.get("stream")),
            max_tokens=body.get("max_output_tokens"),
            temperature=body.get("temperature"),
            top_p=body.get("top_p"),
            provider=self.kind,
            extra=extra,
            provider_tools=tuple(others),
        )

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, assembler: Assembler) -> None:
        """Tell the assembler what a response says."""
        OutputReader(assembler).response(response)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """The body of a response."""
        for part in response.parts:
            if isinstance(part, OpaquePart) and part.provider != self.kind:
                dropped(part, self.name, notes)
        error = next((problem.message for problem in response.problems), "")
        return response_body(head, output_items(response, head), response.finish_reason, response.usage, error)

    def framing(self) -> Framing:
        """Server-sent events."""
        return ServerSentEvents()

    def stream_reader(self, assembler: Assembler) -> Callable[[Frame], None]:
        """What reads the events of one stream."""
        return OutputReader(assembler).read

    def write_error(self, message: str) -> bytes:
        """How a stream says that it failed."""
        return sse(
            {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": 0}, "error"
        )

    def write_stream(self, events: Iterable[Event], head: Head) -> Iterator[bytes]:
        """The events of a stream."""
        return write_stream(events, head)


# -- writing messages --------------------------------------------------------------------------------------------


class _ItemWriter:
    """Writes messages as items.

    Attributes:
        custom: the tools whose input is text and no JSON.
        stored: whether the provider keeps what it answers.
    """

    def __init__(self, api: str, notes: Notes) -> None:
        self._api = api
        self._notes = notes
        self.custom: frozenset[str] = frozenset()
        self._free: set[str] = set()  # the ids of calls that are written with such an input
        self.stored = True

    def items(self, message: Message) -> list[Json]:
        """The items that say a message."""
        if message.role == "assistant":
            return list(self._assistant(message.parts))
        made: list[Json] = []
        others: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                made.append(self._result(part))
            else:
                others.append(part)
        if others or not message.parts:
            role = "system" if message.role == "system" else "user"
            made.append({"role": role, "content": self._content(others)})
        return made

    def _content(self, parts: Sequence[Part]) -> Any:
        made: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text):
                    made.append({"type": "input_text", "text": text})
                case ImagePart():
                    made.append(_image(part))
                case OpaquePart(data, provider) if provider == KIND:
                    made.append(data)
                case _:
                    dropped(part, self._api, self._notes)
        if len(made) == 1 and made[0].get("type") == "input_text":
            return made[0]["text"]
        return made or ""

    def _assistant(self, parts: Sequence[Part]) -> Iterator[Json]:
        texts: list[str] = []
        for at, part in enumerate(parts):
            match part:
                case TextPart(text):
                    if text:
                        texts.append(text)
                    if at + 1 < len(parts) and isinstance(parts[at + 1], TextPart):
                        continue
                    if texts:
                        yield {"role": "assistant", "content": "".join(texts)}
                    texts = []
                case ToolCall():
                    yield self._call(part)
                case ReasoningPart(provider=provider, data=data) if provider == KIND and data is not None:
                    if self._usable(data, parts[at + 1 :]):
                        yield data
                case OpaquePart(data, provider) if provider == KIND:
                    yield data
                case _ if part != ReasoningPart(""):
                    dropped(part, self._api, self._notes)

    def _usable(self, item: Json, after: Sequence[Part]) -> bool:
        """Whether an item of reasoning is taken: what came of it follows, and the provider can know it."""
        if not any(isinstance(part, TextPart | ToolCall | OpaquePart) for part in after):
            self._notes.dropped("reasoning", "nothing that came of it follows")
        elif not self.stored and not item.get("encrypted_content") and not item.get("content"):
            self._notes.dropped("reasoning", "the provider did not store it, and it is not here either")
        else:
            return True
        return False

    def _call(self, call: ToolCall) -> Json:
        made: Json = {"type": "function_call", "call_id": call.id, "name": call.name}
        if call.free or call.name in self.custom:
            self._free.add(call.id)
            made["type"] = "custom_tool_call"
            made["input"] = str(call.arguments.get("input", ""))
        else:
            made["arguments"] = arguments_of(call)
        if call.server:
            made["namespace"] = call.server
        return made

    def _result(self, result: ToolResult) -> Json:
        text = result.told
        output: Any = text
        if result.images:
            said = [{"type": "input_text", "text": text}] if result.result is not None or not result.success else []
            output = [*said, *map(_image, result.images)]
        free = result.call_id in self._free or result.tool_name in self.custom
        kind = "custom_tool_call" if free else "function_call"
        return {"type": f"{kind}_output", "call_id": result.call_id, "output": output}


def _image(image: ImagePart) -> Json:
    return {"type": "input_image", "detail": "auto", "image_url": image.as_url}


# -- reading messages --------------------------------------------------------------------------------------------


def _read_items(items: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
    """The messages of a list of items: what the model said in a row is one, and so are results in a row."""
    calls: dict[str, str] = {}  # the names of calls, by id
    others: set[Any] = set()  # the ids of calls that are no tool's
    said: list[Part] = []
    results: list[Part] = []
    for item in items:
        type = item.get("type") or "message"
        if type in _OUTPUTS and not (item.get("call_id") in others and item.get("call_id") not in calls):
            if said:
                yield Message("assistant", tuple(said))
                said = []
            id = str(item.get("call_id") or "")
            results += _read_result(id, calls.get(id, str(item.get("name") or "")), item.get("output"))
            continue
        if results:
            yield Message("tool", tuple(results))
            results = []
        if type == "message" and item.get("role") != "assistant":
            if said:
                yield Message("assistant", tuple(said))
                said = []
            role = "system" if item["role"] in ("system", "developer") else "user"
            yield Message("system" if role == "system" else "user", tuple(_blocks(item.get("content"))))
            continue
        for part in _read_said(type, item):
            if isinstance(part, ToolCall):
                calls[part.id] = part.name
            elif isinstance(part, OpaquePart) and isinstance(part.data.get("call_id"), str):
                others.add(part.data["call_id"])
            said.append(part)
    if said:
        yield Message("assistant", tuple(said))
    if results:
        yield Message("tool", tuple(results))


def _read_said(type: str, item: Mapping[str, Any]) -> Iterator[Part]:
    """What an item of the model says."""
    id, server = str(item.get("call_id") or ""), str(item.get("namespace") or "")
    match type:
        case "message":
            yield from _blocks(item.get("content"))
        case "function_call":
            yield ToolCall(str(item["name"]), object_of(item.get("arguments")), id, server, format=KIND)
        case "custom_tool_call":
            given = {"input": str(item.get("input") or "")}
            yield ToolCall(str(item["name"]), given, id, server, format=KIND, free=True)
        case "reasoning":
            yield reasoning_part(item)
        case _:
            yield OpaquePart(dict(item), KIND)


def _blocks(content: Any) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield TextPart(content)
        return
    for block in content or ():
        match block.get("type"):
            case "input_text" | "output_text" | "text":
                yield TextPart(str(block["text"]))
            case "refusal":
                yield TextPart(str(block["refusal"]))
            case "input_image" if isinstance(block.get("image_url"), str):
                yield ImagePart(url=block["image_url"])
            case _:
                yield OpaquePart(dict(block), KIND)


def _read_result(id: str, name: str, output: Any) -> Iterator[Part]:
    """A result; what it holds besides text and images follows it."""
    if output is None or isinstance(output, str):
        yield ToolResult(id, name, output or "")
        return
    parts = list(_blocks(output))
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    images = tuple(part for part in parts if isinstance(part, ImagePart))
    others = [part for part in parts if isinstance(part, OpaquePart)]
    text = "\n".join(texts) if texts else "The file follows." if others else None if images else ""
    yield ToolResult(id, name, text, images=images)
    yield from others


# -- tools -------------------------------------------------------------------------------------------------------


def _is_custom(tool: Offered) -> bool:
    return isinstance(tool.definition.annotations.get("custom"), Mapping)


def _tool(tool: Offered) -> Json:
    custom = tool.definition.annotations.get("custom")
    if isinstance(custom, Mapping):
        made: Json = {"type": "custom", "name": tool.name, "description": tool.description, **custom}
        if isinstance(format := made.get("format"), Mapping) and isinstance(format.get("grammar"), Mapping):
            made["format"] = {"type": "grammar", **format["grammar"]}  # as Chat Completions nests it
        return made
    rest = tool.definition.annotations.get(KIND)
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        "strict": tool.strict is True,  # left out it would mean true
        **(rest if isinstance(rest, Mapping) else {}),
    }


def _read_tool(tool: Mapping[str, Any]) -> ToolDefinition:
    definition = as_definition(tool)
    if rest := {key: value for key, value in tool.items() if key not in _FUNCTION}:
        return replace(definition, annotations={**definition.annotations, KIND: rest})
    return definition


def _read_custom(tool: Mapping[str, Any]) -> ToolDefinition:
    rest = {key: value for key, value in tool.items() if key not in ("type", "name", "description")}
    return ToolDefinition(tool["name"], tool.get("description") or "", FREE_INPUT, annotations={"custom": rest})


def _write_choice(choice: ToolChoice, custom: frozenset[str]) -> Any:
    listed = [{"type": "custom" if name in custom else "function", "name": name} for name in choice.names]
    if choice.name:
        return listed[0]
    if listed and choice.mode != "none":
        return {"type": "allowed_tools", "mode": choice.mode, "tools": listed}
    return choice.mode


def _read_choice(choice: Any) -> ToolChoice | None:
    """The choice; None if it names what is no function."""
    if not isinstance(choice, Mapping):
        return ToolChoice.of(choice)
    mode: Mode = "required"
    named: Iterable[Any] = (choice,)
    if choice.get("type") == "allowed_tools":
        mode = "required" if choice.get("mode") == "required" else "auto"
        named = choice.get("tools") or ()
    found = [one.get("name") for one in named if one.get("type") in ("function", "custom", None)]
    if len(found) < len(list(named)) or not all(isinstance(name, str) for name in found):
        return None
    return ToolChoice(mode, tuple(str(name) for name in found))


APIS = (OpenAIResponses(),)

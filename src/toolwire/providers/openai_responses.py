"""OpenAI Responses: input and output are lists of items.

Source: https://platform.openai.com/docs/api-reference/responses

Calls and results are items of their own, paired by `call_id`. Ids of items are sent back only in items that are sent
back unchanged: reasoning, which must precede the output that it led to, and what the provider did itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolwire.messages import (
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    ParsedResponse,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolResult,
)
from toolwire.providers import reasoning_effort, server_compaction
from toolwire.providers.base import OfferedTool, ProviderApi
from toolwire.providers.chat_completions import custom_tool
from toolwire.providers.file_parts import file_name, files_of, images_of, in_words
from toolwire.providers.framing import sse
from toolwire.providers.identifiers import WORD_64, Alphabet
from toolwire.providers.message_parts import Json, note_dropped, object_of, read_tools, role_of, system_text
from toolwire.providers.output_support import OPENAI_RESPONSES
from toolwire.providers.request import ChatRequest, Mode, Notes, ToolChoice, pair_results, split_results
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.responses_items import KIND, input_text, output_items, reasoning_part, response_body
from toolwire.providers.responses_stream import OutputReader, ResponsesStreamWriter
from toolwire.providers.schema_dialects import JSON_SCHEMA, STRICT
from toolwire.providers.setting_members import SettingMembers
from toolwire.providers.stream_codec import Head, StreamEnd
from toolwire.text.json_text import json_text
from toolwire.tools import ToolDefinition, as_definition

_FUNCTION = frozenset(("type", "name", "description", "parameters", "strict"))
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_ELSEWHERE = ("previous_response_id", "conversation")
"""Members of requests whose conversation began before, so that the provider has its beginning."""


class OpenAIResponses(ProviderApi):
    """The API."""

    kind = KIND
    names = WORD_64
    ids = Alphabet(r"\x21-\x7e", 64)
    dialect = JSON_SCHEMA
    strict_dialect = STRICT
    _outputs = OPENAI_RESPONSES
    _settings = SettingMembers(
        {
            "max_output_tokens": "max_tokens",
            "temperature": "temperature",
            "top_p": "top_p",
            "service_tier": "service_tier",
            "metadata": "metadata",
            "user": "end_user",
        },
        reasoning_effort.RESPONSES,
        compaction=server_compaction.RESPONSES,
    )
    reader, writer = OutputReader, ResponsesStreamWriter
    members = frozenset(("input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "model", "stream"))

    # -- requests ------------------------------------------------------------------------------------------------

    def pair(self, request: ChatRequest, notes: Notes) -> tuple[Message, ...]:
        """Return the messages with results paired; the provider may have the calls of the first results."""
        start = 0
        if request.provider == self.kind and any(request.extra.get(key) for key in _ELSEWHERE):
            while start < len(request.messages) and request.messages[start].role != "assistant":
                start += 1
        return (*request.messages[:start], *pair_results(request.messages[start:], notes))

    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body."""
        body: Json = {"model": request.model} if request.model else {}
        first = 0
        while first < len(request.messages) and request.messages[first].role == "system":
            first += 1
        if first:
            instructions = [system_text(message, self.name, notes) for message in request.messages[:first]]
            body["instructions"] = "\n\n".join(instructions)
        custom = frozenset(tool.name for tool in tools if _is_custom(tool))
        writer = _ItemWriter(self.name, notes, custom, stored=request.extra.get("store") is not False)
        body["input"] = [item for message in request.messages[first:] for item in writer.items(message)]
        if listed := [*map(_tool, tools), *map(dict, request.provider_tools)]:
            body["tools"] = listed
            if request.tool_choice != ToolChoice():
                body["tool_choice"] = _write_choice(request.tool_choice, custom)
            if request.parallel is not None:
                body["parallel_tool_calls"] = request.parallel
        if request.stream:
            body["stream"] = True
        return self._with_settings(body, request, notes)

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """Return the items that one message becomes."""
        return _ItemWriter(self.name, notes).items(message)

    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body."""
        choice = _read_choice(body.get("tool_choice"))
        items = body.get("input") or ()
        instructions = body.get("instructions")
        messages = (
            [Message("system", (TextPart(instructions),))] if isinstance(instructions, str) and instructions else []
        )
        messages += [Message("user", (TextPart(items),))] if isinstance(items, str) else _read_items(items)
        request = self._request_of(
            body,
            messages,
            **read_tools(body.get("tools"), _read_tool),
            tool_choice=choice or ToolChoice(),
            parallel=body.get("parallel_tool_calls"),
        )
        if choice is None:  # of a tool that the provider runs
            request = replace(request, extra={**request.extra, "tool_choice": body["tool_choice"]})
        return request

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the content of a response to the builder."""
        OutputReader(builder).response(response)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return the body of a response."""
        for part in response.parts:
            if isinstance(part, OpaquePart) and part.provider != self.kind:
                note_dropped(part, self.name, notes)
        problem = next((problem.message for problem in response.problems), "")
        return response_body(
            head, output_items(response, head), StreamEnd(response.finish_reason, response.usage, problem)
        )

    def write_error(self, message: str) -> bytes:
        """Return the event that reports a failure in the middle of a stream."""
        return sse(
            {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": 0}, "error"
        )


# -- writing messages --------------------------------------------------------------------------------------------


class _ItemWriter:
    """Writes messages as items.

    Args:
        custom: the tools whose input is text, not JSON.
        stored: whether the provider stores its answers.
    """

    def __init__(self, api: str, notes: Notes, custom: frozenset[str] = frozenset(), *, stored: bool = True) -> None:
        self._api = api
        self._notes = notes
        self._custom = custom
        self._free: set[str] = set()  # ids of calls whose input is written as text
        self._stored = stored

    def items(self, message: Message) -> list[Json]:
        """Return the items that a message becomes."""
        if message.role == "assistant":
            return list(self._assistant(message.parts))
        results, rest = split_results(message.parts)
        items = list(map(self._result, results))
        if rest or not results:
            role = "system" if message.role == "system" else "user"
            items.append({"role": role, "content": self._content(rest)})
        return items

    def _content(self, parts: Sequence[Part]) -> Any:
        blocks: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text):
                    blocks.append({"type": "input_text", "text": text})
                case ImagePart():
                    blocks.append(_image(part))
                case FilePart():
                    blocks.append(self._file(part))
                case OpaquePart(data, provider) if provider == KIND:
                    blocks.append(data)
                case _:
                    note_dropped(part, self._api, self._notes)
        if len(blocks) == 1 and blocks[0].get("type") == "input_text":
            return blocks[0]["text"]
        return blocks or ""

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
                    note_dropped(part, self._api, self._notes)

    def _usable(self, item: Json, after: Sequence[Part]) -> bool:
        """Return whether an item of reasoning is accepted: its output follows, and the provider has its text."""
        if not any(isinstance(part, TextPart | ToolCall | OpaquePart) for part in after):
            self._notes.dropped("reasoning", "its output does not follow")
        elif not self._stored and not item.get("encrypted_content") and not item.get("content"):
            self._notes.dropped("reasoning", "the provider did not store it, and the request does not contain it")
        else:
            return True
        return False

    def _call(self, call: ToolCall) -> Json:
        item: Json = {"type": "function_call", "call_id": call.id, "name": call.name}
        if call.free or call.name in self._custom:
            self._free.add(call.id)
            item["type"] = "custom_tool_call"
            item["input"] = input_text(call)
        else:
            item["arguments"] = json_text(call.arguments)
        if call.server:
            item["namespace"] = call.server
        return item

    def _result(self, result: ToolResult) -> Json:
        output: Any = result.marked_text
        if result.media:
            text = [] if result.only_media else [{"type": "input_text", "text": output}]
            output = [*text, *map(_image, result.images), *map(self._file, result.files)]
        free = result.call_id in self._free or result.tool_name in self._custom
        kind = "custom_tool_call" if free else "function_call"
        return {"type": f"{kind}_output", "call_id": result.call_id, "output": output}

    def _file(self, file: FilePart) -> Json:
        """Return a document; words in place of any other file, because this API takes neither sound nor video."""
        if file.kind != "document":
            return {"type": "input_text", "text": in_words(file, self._api, self._notes).text}
        block: Json = {"type": "input_file"}
        if file.url:
            block["file_url"] = file.url
        else:
            block |= {"filename": file.name or file_name(file), "file_data": file.as_url}
        return block


def _image(image: ImagePart) -> Json:
    return {"type": "input_image", "detail": "auto", "image_url": image.as_url}


# -- reading messages --------------------------------------------------------------------------------------------


def _read_items(items: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
    """Yield the messages of a list of items; consecutive items of the model are one, and so are consecutive results."""
    calls: dict[str, str] = {}  # names of calls, by id
    provider_calls: set[Any] = set()  # ids of calls of the provider's own tools
    role: Role = "user"
    parts: list[Part] = []
    for item in items:
        type, call_id = item.get("type") or "message", item.get("call_id")
        if type in _OUTPUTS and not (call_id in provider_calls and call_id not in calls):
            item_role: Role = "tool"
        elif type == "message" and item.get("role") != "assistant":
            item_role = role_of(item["role"])
        else:
            item_role = "assistant"
        if parts and item_role != role:
            yield Message(role, tuple(parts))
            parts = []
        role = item_role
        if role == "tool":
            id = str(call_id or "")
            parts += _read_result(id, calls.get(id, str(item.get("name") or "")), item.get("output"))
        elif role == "assistant":
            for part in _read_output(type, item):
                if isinstance(part, ToolCall):
                    calls[part.id] = part.name
                elif isinstance(part, OpaquePart) and isinstance(part.data.get("call_id"), str):
                    provider_calls.add(part.data["call_id"])
                parts.append(part)
        else:
            yield Message(role, tuple(_blocks(item.get("content"))))
    if parts:
        yield Message(role, tuple(parts))


def _read_output(type: str, item: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of an item of the model."""
    id, server = str(item.get("call_id") or ""), str(item.get("namespace") or "")
    match type:
        case "message":
            yield from _blocks(item.get("content"))
        case "function_call":
            yield ToolCall(str(item["name"]), object_of(item.get("arguments")), id, server, format=KIND)
        case "custom_tool_call":
            arguments = {"input": str(item.get("input") or "")}
            yield ToolCall(str(item["name"]), arguments, id, server, format=KIND, free=True)
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
            case "input_file" if (file := _read_file(block)) is not None:
                yield file
            case _:
                yield OpaquePart(dict(block), KIND)


def _read_file(block: Mapping[str, Any]) -> FilePart | None:
    """Parse a document; None for one that only this API knows, such as that of an uploaded file."""
    rest = {key for key, value in block.items() if value is not None} - {"type", "filename", "file_data", "file_url"}
    name, data, url = (str(block.get(key) or "") for key in ("filename", "file_data", "file_url"))
    if rest or (url and (data or name)):
        return None
    if url:
        return FilePart(url=url)
    return FilePart(url=data, name=name) if data.startswith("data:") else None


def _read_result(id: str, name: str, output: Any) -> Iterator[Part]:
    """Yield a result, and after it the parts that are neither text nor images."""
    if output is None or isinstance(output, str):
        yield ToolResult(id, name, output or "")
        return
    parts = list(_blocks(output))
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    images, files = images_of(parts), files_of(parts)
    unplaced = [part for part in parts if isinstance(part, OpaquePart)]
    text = "\n".join(texts) if texts else "The file follows." if unplaced else None if images or files else ""
    yield ToolResult(id, name, text, images=images, files=files)
    yield from unplaced


# -- tools -------------------------------------------------------------------------------------------------------


def _is_custom(tool: OfferedTool) -> bool:
    return isinstance(tool.definition.annotations.get("custom"), Mapping)


def _tool(tool: OfferedTool) -> Json:
    custom = tool.definition.annotations.get("custom")
    if isinstance(custom, Mapping):
        written: Json = {"type": "custom", "name": tool.name, "description": tool.description, **custom}
        if isinstance(format := written.get("format"), Mapping) and isinstance(format.get("grammar"), Mapping):
            written["format"] = {"type": "grammar", **format["grammar"]}  # Chat Completions nests it
        return written
    rest = tool.definition.annotations.get(KIND)
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        "strict": tool.strict is True,  # the API's default is true
        **(rest if isinstance(rest, Mapping) else {}),
    }


def _read_tool(tool: Json) -> ToolDefinition | None:
    match tool.get("type"):
        case "custom":
            return custom_tool(tool)
        case "function":
            definition = as_definition(tool)
            if rest := {key: value for key, value in tool.items() if key not in _FUNCTION}:
                return replace(definition, annotations={**definition.annotations, KIND: rest})
            return definition
    return None


def _write_choice(choice: ToolChoice, custom: frozenset[str]) -> Any:
    listed = [{"type": "custom" if name in custom else "function", "name": name} for name in choice.names]
    if choice.name:
        return listed[0]
    if listed and choice.mode != "none":
        return {"type": "allowed_tools", "mode": choice.mode, "tools": listed}
    return choice.mode


def _read_choice(choice: Any) -> ToolChoice | None:
    """Return the choice; None if it names a tool that the provider runs."""
    if not isinstance(choice, Mapping):
        return ToolChoice.of(choice)
    mode: Mode = "required"
    named: Iterable[Any] = (choice,)
    if choice.get("type") == "allowed_tools":
        mode = "required" if choice.get("mode") == "required" else "auto"
        named = choice.get("tools") or ()
    names = [tool.get("name") for tool in named if tool.get("type") in ("function", "custom", None)]
    if len(names) < len(list(named)) or not all(isinstance(name, str) for name in names):
        return None
    return ToolChoice(mode, tuple(map(str, names)))


APIS = (OpenAIResponses(),)

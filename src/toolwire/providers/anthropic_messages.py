"""Anthropic Messages: content in typed blocks, results first in the user's message behind the calls.

Thinking is signed, and goes back block by block as it came, before the calls that followed it. Of several blocks one
is open at a time.

Source: https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolwire.events import (
    Event,
)
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
    Usage,
)
from toolwire.providers.anthropic_stream import (
    KIND,
    StreamReader,
    StreamWriter,
    event_of,
    failed,
    message_of,
    read_usage,
    thinking_part,
)
from toolwire.providers.base import Head, Json, Offered, ProviderApi, dropped, in_order, object_of
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import Frame, Framing, ServerSentEvents
from toolwire.providers.identifiers import WORD_64, Alphabet
from toolwire.providers.request import ChatRequest, Mode, Notes, ToolChoice, note_foreign, settled, unsealed
from toolwire.providers.response_builder import Assembler
from toolwire.providers.schema_dialects import PLAIN_ROOT
from toolwire.tools import ToolDefinition, as_definition

MAX_TOKENS = 4096
"""Written where a request does not say how long the answer may be: the API wants it said."""

_TOOL = frozenset(("type", "name", "description", "input_schema", "strict", "annotations"))
_READ = frozenset(
    ("messages", "system", "tools", "tool_choice", "model", "stream", "max_tokens", "temperature", "top_p",
     "stop_sequences")
)  # fmt: skip
_MODES: dict[Mode, str] = {"auto": "auto", "required": "any", "none": "none"}


class AnthropicMessages(ProviderApi):
    """The Messages API."""

    kind = KIND
    names = WORD_64
    ids = Alphabet("a-zA-Z0-9_-", 128)
    dialect = PLAIN_ROOT
    strict_dialect = PLAIN_ROOT

    # -- requests ------------------------------------------------------------------------------------------------

    def write_request(self, request: ChatRequest, tools: Sequence[Offered], notes: Notes) -> Json:
        """The body."""
        note_foreign(request, self.kind, notes)
        body: Json = {"model": request.model} if request.model else {}
        if request.max_tokens is None:
            notes.changed("max_tokens", f"{self.name} wants it said: {MAX_TOKENS}")
        body["max_tokens"] = MAX_TOKENS if request.max_tokens is None else request.max_tokens
        system, rest = self._split(request, notes)
        if said := self._system(system, notes):
            body["system"] = said
        body["messages"] = self.write_results(rest, notes)
        listed = [*map(self._tool, tools), *map(dict, request.provider_tools)]
        if listed:
            body["tools"] = listed
            if (choice := self._write_choice(request, notes)) is not None:
                body["tool_choice"] = choice
        if request.stream:
            body["stream"] = True
        for key in ("temperature", "top_p"):
            if (value := getattr(request, key)) is not None:
                body[key] = value
        if request.stop:
            body["stop_sequences"] = list(request.stop)
        return {**body, **request.extra}

    def _split(self, request: ChatRequest, notes: Notes) -> tuple[list[Message], list[Message]]:
        """What stands in `system`, and the messages. System messages in the middle stay there if they came so."""
        system: list[Message] = []
        rest: list[Message] = []
        for message in request.messages:
            if message.role == "system" and not (rest and request.provider == self.kind):
                if rest:
                    notes.changed("system", "a system message from the middle stands at the beginning now")
                system.append(message)
            else:
                rest.append(message)
        return system, rest

    def _system(self, messages: Sequence[Message], notes: Notes) -> Any:
        blocks = [block for one in messages for part in one.parts for block in self._blocks(part, "system", notes)]
        return blocks[0]["text"] if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} else blocks

    @staticmethod
    def _tool(tool: Offered) -> Json:
        made: Json = {"name": tool.name, "input_schema": tool.schema}
        if tool.description:
            made["description"] = tool.description
        if tool.strict is not None:
            made["strict"] = tool.strict
        rest = tool.definition.annotations.get(KIND)
        return {**made, **rest} if isinstance(rest, Mapping) else made

    def _write_choice(self, request: ChatRequest, notes: Notes) -> Json | None:
        choice = request.tool_choice
        made: Json = {"type": _MODES[choice.mode]}
        if choice.name:
            made = {"type": "tool", "name": choice.name}
        elif choice.names and choice.mode != "none":
            self.chooses_from_all(choice, notes)
        if request.parallel is not None and choice.mode != "none":
            made["disable_parallel_tool_use"] = not request.parallel
        elif choice == ToolChoice():
            return None
        return made

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """One message; results stand first in it."""
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        blocks = [self._result(part) for part in results]
        for part in message.parts:
            if not isinstance(part, ToolResult):
                blocks += self._blocks(part, message.role, notes)
        role = "user" if message.role == "tool" else message.role
        if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
            return [{"role": role, "content": blocks[0]["text"]}]
        return [{"role": role, "content": blocks}] if blocks else []

    def write_results(self, messages: Sequence[Message], notes: Notes) -> list[Json]:
        """The messages, those of the same role in one: what the user says stands behind the results."""
        made: list[Json] = []
        for message in messages:
            for one in self.write_message(message, notes):
                if made and made[-1]["role"] == one["role"] == "user":
                    made[-1] = {"role": "user", "content": [*_listed(made[-1]), *_listed(one)]}
                else:
                    made.append(one)
        return made

    def _blocks(self, part: Part, role: str, notes: Notes) -> list[Json]:
        match part:
            case TextPart(text):
                return [{"type": "text", "text": text, **_own(part)}] if text.strip() else []
            case ImagePart():
                return [_image(part)]
            case ToolCall():
                use = {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}
                return [{**use, **_own(part)}]
            case ReasoningPart(text, signature, self.kind, data) if role == "assistant" and (signature or data):
                return [data or {"type": "thinking", "thinking": text, "signature": signature}]
            case OpaquePart(data, self.kind):
                return [data]
            case _:
                dropped(part, self.name, notes)
                return []

    @staticmethod
    def _result(result: ToolResult) -> Json:
        made: Json = {"type": "tool_result", "tool_use_id": result.call_id}
        shown = [_image(image) for image in result.images]
        if result.success and result.result is None and shown:
            made["content"] = shown
        elif shown:
            made["content"] = [{"type": "text", "text": result.text}, *shown]
        else:
            made["content"] = result.text
        if not result.success:
            made["is_error"] = True
        return {**made, **_own(result)}

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """What a body asks for."""
        tools: list[ToolDefinition] = []
        others: list[Mapping[str, Any]] = []
        for tool in body.get("tools") or ():
            if "input_schema" in tool and tool.get("type") in (None, "custom"):
                tools.append(_read_tool(tool))
            else:
                others.append(tool)
        choice = body.get("tool_choice") or {}
        single = choice.get("disable_parallel_tool_use")
        system = body.get("system")
        messages = [Message("system", tuple(self._read_blocks(system)))] if system else []
        return ChatRequest(
            messages=(*messages, *settled(self._read_messages(body["messages"]))),
            tools=tuple(tools),
            tool_choice=_read_choice(choice),
            parallel=None if single is None else not single,
            model=body.get("model") or "",
            stream=bool(body.get("stream")),
            max_tokens=body.get("max_tokens"),
            temperature=body.get("temperature"),
            top_p=body.get("top_p"),
            stop=tuple(body.get("stop_sequences") or ()),
            provider=self.kind,
            extra={key: value for key, value in body.items() if key not in _READ},
            provider_tools=tuple(others),
        )

    def _read_messages(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
        for message in messages:
            role = message["role"]
            parts = tuple(self._read_blocks(message["content"]))
            yield Message(role if role in ("assistant", "user") else "system", parts)

    def _read_blocks(self, content: Any) -> Iterator[Part]:
        if isinstance(content, str):
            yield TextPart(content)
            return
        for block in content:
            match block.get("type"):
                case "text":
                    yield TextPart(block["text"], _extra(block, "text"))
                case "image" if (image := _read_image(block)) is not None:
                    yield image
                case "tool_use":
                    extra = _extra(block, "id", "name", "input")
                    arguments = object_of(block.get("input"))
                    yield ToolCall(block["name"], arguments, block["id"], format=self.kind, extra=extra)
                case "tool_result":
                    yield _read_result(block)
                case "thinking" | "redacted_thinking":
                    yield thinking_part(block)
                case _:
                    yield OpaquePart(dict(block), self.kind)

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, assembler: Assembler) -> None:
        """Tell the assembler what a response says."""
        if failed(response, assembler):
            return
        assembler.reason = read_reason(self.kind, response.get("stop_reason"))
        for block in response["content"]:
            match block.get("type"):
                case "text":
                    assembler.text(block.get("text"))
                case "thinking" | "redacted_thinking":
                    part = thinking_part(block)
                    assembler.reasoning(part.text)
                    assembler.reasoned(part)
                case "tool_use":
                    assembler.call(block.get("name"), block.get("input"), block.get("id"))
                case _:
                    assembler.passed(block)
        read_usage(response.get("usage"), {}, assembler)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """The body of a response."""
        blocks: list[Json] = []
        for part in response.parts:
            if (text := unsealed(part, self.kind, self.name, notes)) is not None:
                blocks += [{"type": "thinking", "thinking": text, "signature": ""}] if text else []
            else:
                blocks += self._blocks(part, "assistant", notes)
        body = message_of(head, response.usage or Usage())
        return {**body, "content": blocks, "stop_reason": write_reason(self.kind, response.finish_reason)}

    # -- streams -------------------------------------------------------------------------------------------------

    def framing(self) -> Framing:
        """Server-sent events."""
        return ServerSentEvents()

    def stream_reader(self, assembler: Assembler) -> Callable[[Frame], None]:
        """What reads the events of one stream."""
        return StreamReader(assembler).read

    def write_error(self, message: str) -> bytes:
        """How a stream says that it failed."""
        return event_of("error", error={"type": "api_error", "message": message})

    def write_stream(self, events: Iterable[Event], head: Head) -> Iterator[bytes]:
        """The events of a stream: blocks one after another, each of one type."""
        return StreamWriter(head).write(in_order(events))


def _listed(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _own(part: TextPart | ImagePart | ToolCall | ToolResult) -> Json:
    """What only this API knows of a part."""
    return part.extra.data if part.extra is not None and part.extra.provider == KIND else {}


def _extra(block: Mapping[str, Any], *read: str) -> OpaquePart | None:
    """What a block says besides its type and these members: a mark to cache, citations."""
    rest = {key: value for key, value in block.items() if key not in ("type", *read) and value not in (None, [])}
    return OpaquePart(rest, KIND) if rest else None


def _read_tool(tool: Mapping[str, Any]) -> ToolDefinition:
    definition = as_definition({key: value for key, value in tool.items() if key != "type"})
    if rest := {key: value for key, value in tool.items() if key not in _TOOL and value is not None}:
        return replace(definition, annotations={**definition.annotations, KIND: rest})
    return definition


def _image(image: ImagePart) -> Json:
    source = {"type": "base64", "media_type": image.media_type or "image/png", "data": image.data}
    if image.url:
        source = {"type": "url", "url": image.url}
    return {"type": "image", "source": source, **_own(image)}


def _read_image(block: Mapping[str, Any]) -> ImagePart | None:
    extra = _extra(block, "source")
    match block.get("source"):
        case {"type": "base64", "data": str(data), "media_type": str(media_type)}:
            return ImagePart(data, media_type, extra=extra)
        case {"type": "url", "url": str(url)}:
            return ImagePart(url=url, extra=extra)
    return None


def _read_result(block: Mapping[str, Any]) -> ToolResult:
    content = block.get("content")
    texts: list[str] = []
    images: list[ImagePart] = []
    marks: Json = {}  # a mark to cache on text of a result: the result carries it
    for one in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        image = _read_image(one) if one.get("type") == "image" else None
        if image is not None:
            images.append(image)
        elif one.get("type") == "text":
            texts.append(one["text"])
            marks.update((key, one[key]) for key in ("cache_control",) if one.get(key))
        else:  # a document, a reference: told as what it is
            texts.append(json.dumps(one, ensure_ascii=False))
    text = "\n".join(texts)
    extra = _extra({**marks, **block}, "tool_use_id", "content", "is_error")
    made = ToolResult(block["tool_use_id"], "", images=tuple(images), extra=extra)
    if block.get("is_error"):
        return replace(made, error=text)
    return replace(made, result=text if texts or not images else None)


def _read_choice(choice: Mapping[str, Any]) -> ToolChoice:
    match choice.get("type"):
        case "any":
            return ToolChoice("required")
        case "none":
            return ToolChoice("none")
        case "tool":
            return ToolChoice("required", (choice["name"],))
    return ToolChoice()


APIS = (AnthropicMessages(),)

"""Amazon Bedrock's Converse: content as objects with one key each, streams as binary frames.

Bytes (images, redacted reasoning) are base64 text in JSON; `boto3` gives and takes them as bytes, and both are read.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolwire.events import CallStart, Event
from toolwire.messages import (
    FinishReason,
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
from toolwire.providers.base import Head, Json, Offered, ProviderApi, dropped, in_order, object_of
from toolwire.providers.content_blocks import Block, BlockWriter
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import AwsEventStream, Frame, Framing, aws_event
from toolwire.providers.identifiers import WORD_64, Alphabet
from toolwire.providers.request import ChatRequest, Notes, ToolChoice, note_foreign, settled, unsealed
from toolwire.providers.response_builder import Assembler
from toolwire.providers.schema_dialects import PLAIN_ROOT
from toolwire.tools import ToolDefinition

_READ = frozenset(("messages", "system", "toolConfig", "inferenceConfig", "modelId", "stream"))
_INFERENCE = {"maxTokens": "max_tokens", "temperature": "temperature", "topP": "top_p", "stopSequences": "stop"}
_FORMATS = ("png", "jpeg", "gif", "webp")
_SERVER = "server_tool_use"
_NO_CONTENT = " "
_OWN_JSON = frozenset(("json", "input", "additionalModelRequestFields"))
"""Members that hold the caller's own JSON."""


class BedrockConverse(ProviderApi):
    """The Converse and ConverseStream operations."""

    kind = "bedrock_converse"
    names = WORD_64
    ids = Alphabet("a-zA-Z0-9_.:-", 64)
    dialect = PLAIN_ROOT
    strict_dialect = PLAIN_ROOT

    # -- requests ------------------------------------------------------------------------------------------------

    def write_request(self, request: ChatRequest, tools: Sequence[Offered], notes: Notes) -> Json:
        """The body, with the model as `modelId`, as the operation's parameters have it."""
        note_foreign(request, self.kind, notes)
        body: Json = {"modelId": request.model} if request.model else {}
        system = [part for message in request.messages if message.role == "system" for part in message.parts]
        if told := [block for part in system for block in self._blocks(part, "user", notes)]:
            body["system"] = told
        others = [message for message in request.messages if message.role != "system"]
        body["messages"] = self.write_results(others, notes)
        listed = [*map(self._tool, tools), *map(dict, request.provider_tools)]
        if listed:
            body["toolConfig"] = {"tools": listed, **self._choice_of(request, notes)}
        elif any(isinstance(part, ToolCall | ToolResult) for message in others for part in message.parts):
            notes.changed("tools", f"{self.name} wants the tools of calls in the history offered again")
        inference: Json = {}
        for key, field in _INFERENCE.items():
            if (value := getattr(request, field)) not in (None, ()):
                inference[key] = list(value) if isinstance(value, tuple) else value
        if inference:
            body["inferenceConfig"] = inference
        return {**body, **request.extra}

    @staticmethod
    def _tool(tool: Offered) -> Json:
        spec: Json = {"name": tool.name, "inputSchema": {"json": tool.schema}}
        if tool.description:
            spec["description"] = tool.description
        if tool.strict is not None:
            spec["strict"] = tool.strict
        return {"toolSpec": spec}

    def _choice_of(self, request: ChatRequest, notes: Notes) -> Json:
        choice = request.tool_choice
        if request.parallel is not None:
            notes.dropped("parallel", f"{self.name} has no switch for it")
        if choice.mode == "none":
            notes.dropped("tool_choice", f"{self.name} cannot say that no tool may be called")
        elif choice.name:
            return {"toolChoice": {"tool": {"name": choice.name}}}
        elif choice.names:
            self.chooses_from_all(choice, notes)
        return {"toolChoice": {"any": {}}} if choice.mode == "required" else {}

    def write_results(self, messages: Sequence[Message], notes: Notes) -> list[Json]:
        """The messages, those of the same role in one: roles have to alternate."""
        made: list[Json] = []
        for message in messages:
            for one in self.write_message(message, notes):
                if made and made[-1]["role"] == one["role"]:
                    made[-1]["content"] += one["content"]
                else:
                    made.append(one)
        return made

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """One message; results stand first in it."""
        role = "assistant" if message.role == "assistant" else "user"
        ordered = sorted(message.parts, key=lambda part: not isinstance(part, ToolResult))
        blocks = [block for part in ordered for block in self._blocks(part, role, notes)]
        return [{"role": role, "content": blocks}] if blocks else []

    def _blocks(self, part: Part, role: str, notes: Notes) -> list[Json]:
        match part:
            case TextPart(text):
                return [{"text": text}] if text.strip() else []
            case ImagePart():
                return [self._image(part, notes)]
            case ToolCall():
                return [{"toolUse": {"toolUseId": part.id, "name": part.name, "input": part.arguments}}]
            case ToolResult():
                return [{"toolResult": self._result(part, notes)}]
            case ReasoningPart(text, signature, self.kind, data) if role == "assistant" and (signature or data):
                return [data or _reasoned(text, signature)]
            case OpaquePart(data, self.kind):
                return [data]
            case _:
                dropped(part, self.name, notes)
                return []

    def _image(self, image: ImagePart, notes: Notes) -> Json:
        form = image.media_type.removeprefix("image/")
        if image.data and form in _FORMATS:
            return {"image": {"format": form, "source": {"bytes": image.data}}}
        if image.url:
            notes.changed("image", f"{self.name} takes no address of an image: the model is told it")
            return {"text": f"Image: {image.url}"}
        notes.dropped("image", f"{self.name} takes none that is {image.media_type or 'of an unknown type'}")
        return {"text": "An image that cannot be shown."}

    def _result(self, result: ToolResult, notes: Notes) -> Json:
        content: list[Json] = []
        if not result.success or result.result is not None:
            structured = result.success and isinstance(result.result, dict)
            content.append({"json": result.result} if structured else {"text": result.text or _NO_CONTENT})
        content += [self._image(image, notes) for image in result.images]
        status = "success" if result.success else "error"
        return {"toolUseId": result.call_id, "content": content or [{"text": _NO_CONTENT}], "status": status}

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """What a body asks for."""
        config = body.get("toolConfig") or {}
        tools: list[ToolDefinition] = []
        others: list[Mapping[str, Any]] = []
        for tool in config.get("tools") or ():
            if "toolSpec" in tool:
                tools.append(_read_tool(tool["toolSpec"]))
            else:
                others.append(tool)
        inference = body.get("inferenceConfig") or {}
        given = {field: inference.get(key) for key, field in _INFERENCE.items() if field != "stop"}
        system = tuple(part for block in body.get("system") or () for part in self._read_block(block))
        extra = {key: value for key, value in body.items() if key not in _READ}
        return ChatRequest(
            messages=(
                *([Message("system", system)] if system else []),
                *settled(self._read_messages(body["messages"])),
            ),
            tools=tuple(tools),
            tool_choice=_read_choice(config.get("toolChoice") or {}),
            model=body.get("modelId") or "",
            stream=bool(body.get("stream")),
            stop=tuple(inference.get("stopSequences") or ()),
            provider=self.kind,
            extra=extra,
            provider_tools=tuple(others),
            **given,
        )

    def _read_messages(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
        for message in messages:
            mine = message["role"] == "assistant"
            parts = tuple(part for block in message["content"] for part in self._read_block(block, mine=mine))
            yield Message("assistant" if mine else "user", parts)

    def _read_block(self, block: Mapping[str, Any], *, mine: bool = False) -> Iterator[Part]:
        match block:
            case {"text": str(text)}:
                yield TextPart(text)
            case {"image": {"format": str(form), "source": {"bytes": data}}}:
                yield ImagePart(_base64(data), f"image/{form}")
            case {"toolUse": use} if use.get("type") != _SERVER:
                yield ToolCall(use["name"], object_of(use.get("input")), use["toolUseId"], format=self.kind)
            case {"toolResult": result} if not mine:
                yield _read_result(result)
            case {"reasoningContent": _}:
                yield _reasoning(block)
            case _:
                yield OpaquePart(_in_base64(dict(block)), self.kind)

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, assembler: Assembler) -> None:
        """Tell the assembler what a response says."""
        if "output" not in response and (message := response.get("message") or response.get("Message")):
            assembler.reason = FinishReason.ERROR
            assembler.problem("provider_error", str(message))
            return
        assembler.reason = read_reason(self.kind, response.get("stopReason"))
        for block in response["output"]["message"].get("content") or ():
            match block:
                case {"text": text}:
                    assembler.text(text)
                case {"toolUse": use} if use.get("type") != _SERVER:
                    assembler.call(use.get("name"), use.get("input"), use.get("toolUseId"))
                case {"reasoningContent": _}:
                    part = _reasoning(block)
                    assembler.reasoning(part.text)
                    assembler.reasoned(part)
                case _:
                    assembler.passed(block)
        _usage(response.get("usage"), assembler)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """The body of a response."""
        blocks: list[Json] = []
        for part in response.parts:
            if (text := unsealed(part, self.kind, self.name, notes)) is not None:
                blocks += [_reasoned(text)] if text else []
            else:
                blocks += self._blocks(part, "assistant", notes)
        return {
            "output": {"message": {"role": "assistant", "content": blocks}},
            "stopReason": write_reason(self.kind, response.finish_reason),
            "usage": _write_usage(response.usage or Usage()),
            "metrics": {"latencyMs": 0},
        }

    # -- streams -------------------------------------------------------------------------------------------------

    def framing(self) -> Framing:
        """Binary frames."""
        return AwsEventStream()

    def stream_reader(self, assembler: Assembler) -> Callable[[Frame], None]:
        """What reads the events of one stream."""
        return _Reader(self.kind, assembler).read

    def write_error(self, message: str) -> bytes:
        """How a stream says that it failed."""
        return aws_event({"message": message}, "modelStreamErrorException", exception=True)

    def write_stream(self, events: Iterable[Event], head: Head) -> Iterator[bytes]:
        """The frames of a stream: blocks one after another, each of one kind."""
        return _Writer(self.kind).write(in_order(events))


class _Reader:
    """Reads the events of one stream."""

    def __init__(self, kind: str, assembler: Assembler) -> None:
        self._kind = kind
        self._assembler = assembler
        self._kept: dict[int, Json] = {}  # blocks that the provider uses itself
        self._input: dict[int, list[str]] = {}  # of these, the input
        self._thought: dict[int, Json] = {}  # reasoning that is open

    def read(self, frame: Frame) -> None:
        assembler = self._assembler
        event = frame.value
        match frame.event:
            case "contentBlockStart":
                self._start(event["contentBlockIndex"], event["start"])
            case "contentBlockDelta":
                self._delta(event["contentBlockIndex"], event["delta"])
            case "contentBlockStop":
                self._stop(event["contentBlockIndex"])
            case "messageStop":
                assembler.reason = read_reason(self._kind, event.get("stopReason"))
            case "metadata":
                _usage(event.get("usage"), assembler)
            case "messageStart":
                pass
            case other if other.endswith(("Exception", "Error")) or "message" in event:
                assembler.reason = FinishReason.ERROR
                assembler.problem("provider_error", f"{other}: {event.get('message', '')}")
            case _:
                pass

    def _start(self, index: int, start: Json) -> None:
        use = start.get("toolUse")
        if use is not None and use.get("type") != _SERVER:
            self._assembler.begin(index, use.get("name"), use.get("toolUseId"))
        else:
            self._kept[index] = {key: dict(value) for key, value in start.items() if isinstance(value, Mapping)}
            self._input[index] = []

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        assembler = self._assembler
        match delta:
            case {"text": text}:
                assembler.text(text)
            case {"toolUse": {"input": text}}:
                if assembler.known(index):
                    assembler.arguments(index, text)
                else:
                    self._input.setdefault(index, []).append(str(text))
            case {"reasoningContent": said}:
                thought = self._thought.setdefault(index, {"text": [], "signature": ""})
                assembler.reasoning(said.get("text"))
                thought["text"].append(said.get("text") or "")
                thought["signature"] += said.get("signature") or ""
                if "redactedContent" in said:
                    thought["redactedContent"] = _base64(said["redactedContent"])
            case {"toolResult": content} if index in self._kept:
                self._kept[index].setdefault("toolResult", {}).setdefault("content", []).extend(content)
            case _:
                pass

    def _stop(self, index: int) -> None:
        assembler = self._assembler
        if assembler.known(index):
            assembler.end(index)
        if (thought := self._thought.pop(index, None)) is not None:
            said: Json = {"reasoningText": {"text": "".join(thought["text"]), "signature": thought["signature"]}}
            if "redactedContent" in thought:
                said = {"redactedContent": thought["redactedContent"]}
            assembler.reasoned(_reasoning({"reasoningContent": said}))
        if (kept := self._kept.pop(index, None)) is not None:
            if (text := "".join(self._input.pop(index))) and "toolUse" in kept:
                kept["toolUse"]["input"] = object_of(text)
            assembler.passed(kept)


class _Writer(BlockWriter):
    """Writes the events of one stream; frames have no place for a whole block of another kind."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def first(self) -> Iterator[bytes]:
        yield aws_event({"role": "assistant"}, "messageStart")

    def last(self) -> Iterator[bytes]:
        yield aws_event({"stopReason": write_reason(self._kind, self.reason)}, "messageStop")
        yield aws_event({"usage": _write_usage(self.usage), "metrics": {"latencyMs": 0}}, "metadata")

    def opened(self, block: Block, call: CallStart | None) -> Iterator[bytes]:
        if call is not None:  # the others begin with their first delta
            start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
            yield aws_event({"contentBlockIndex": self.index, "start": start}, "contentBlockStart")

    def piece(self, block: Block, text: str) -> bytes:
        match block:
            case "text":
                return self._delta({"text": text})
            case "reasoning":
                return self._delta({"reasoningContent": {"text": text}})
            case "call":
                return self._delta({"toolUse": {"input": text}})

    def closed(self) -> bytes:
        return aws_event({"contentBlockIndex": self.index}, "contentBlockStop")

    def sealed(self, part: ReasoningPart) -> Iterator[bytes]:
        if part.provider == self._kind:
            redacted = ((part.data or {}).get("reasoningContent") or {}).get("redactedContent")
            if part.signature or redacted:
                yield from self.begin("reasoning")
                said = {"redactedContent": redacted} if redacted else {"signature": part.signature}
                yield self._delta({"reasoningContent": said})

    def _delta(self, delta: Json) -> bytes:
        return aws_event({"contentBlockIndex": self.index, "delta": delta}, "contentBlockDelta")


def _base64(data: Any) -> str:
    return base64.b64encode(data).decode() if isinstance(data, bytes | bytearray) else str(data)


def for_boto3(body: Json) -> Json:
    """The body as boto3 takes it: `client.converse(**for_boto3(body))`.

    boto3 wants bytes (of images, documents, hidden reasoning) where the API has base64, and encodes them itself.
    """
    return {key: _for_boto3(value, key) for key, value in body.items()}


def _for_boto3(value: Any, key: str) -> Any:
    if key in _OWN_JSON:
        return value
    if key in ("bytes", "redactedContent") and isinstance(value, str):
        return base64.b64decode(value)
    if isinstance(value, Mapping):
        return {inner: _for_boto3(one, inner) for inner, one in value.items()}
    return [_for_boto3(one, key) for one in value] if isinstance(value, list) else value


def _in_base64(value: Any) -> Any:
    """What boto3's users write, as it goes over the wire."""
    if isinstance(value, Mapping):
        return {key: _in_base64(one) for key, one in value.items()}
    if isinstance(value, bytes | bytearray):
        return _base64(value)
    return [_in_base64(one) for one in value] if isinstance(value, list) else value


def _reasoned(text: str, signature: str = "") -> Json:
    said = {"text": text, "signature": signature} if signature else {"text": text}
    return {"reasoningContent": {"reasoningText": said}}


def _reasoning(block: Mapping[str, Any]) -> ReasoningPart:
    said = block["reasoningContent"]
    text = said.get("reasoningText") or {}
    if "redactedContent" in said:
        data = {"reasoningContent": {"redactedContent": _base64(said["redactedContent"])}}
        return ReasoningPart("", "", "bedrock_converse", data)
    signature = text.get("signature") or ""
    return ReasoningPart(text.get("text") or "", signature, "bedrock_converse" if signature else "")


def _read_tool(spec: Mapping[str, Any]) -> ToolDefinition:
    schema = (spec.get("inputSchema") or {}).get("json") or {"type": "object", "properties": {}}
    strict = {"strict": spec["strict"]} if isinstance(spec.get("strict"), bool) else {}
    return ToolDefinition(spec["name"], spec.get("description") or "", dict(schema), annotations=strict)


def _read_choice(choice: Mapping[str, Any]) -> ToolChoice:
    if "tool" in choice:
        return ToolChoice("required", (choice["tool"]["name"],))
    return ToolChoice("required" if "any" in choice else "auto")


def _read_result(result: Mapping[str, Any]) -> ToolResult:
    texts: list[str] = []
    images: list[ImagePart] = []
    values: list[Any] = []
    for block in result.get("content") or ():
        match block:
            case {"text": text}:
                texts.append(text)
            case {"json": structured}:
                values.append(structured)
                texts.append(json.dumps(structured, ensure_ascii=False))
            case {"image": {"format": str(form), "source": {"bytes": data}}}:
                images.append(ImagePart(_base64(data), f"image/{form}"))
            case _:  # a document, a video: told as what it is
                texts.append(json.dumps(block, ensure_ascii=False, default=_base64))
    text = "\n".join(texts)
    if result.get("status") == "error":
        return ToolResult(result["toolUseId"], "", error=text, images=tuple(images))
    value: Any = values[0] if len(values) == len(texts) == 1 else text if texts or not images else None
    return ToolResult(result["toolUseId"], "", value, images=tuple(images))


def _usage(usage: Any, assembler: Assembler) -> None:
    if isinstance(usage, Mapping):
        cached = int(usage.get("cacheReadInputTokens") or 0)
        written = int(usage.get("cacheWriteInputTokens") or 0)
        read = int(usage.get("inputTokens") or 0) + cached + written
        assembler.usage(Usage(read, int(usage.get("outputTokens") or 0), cached))


def _write_usage(usage: Usage) -> Json:
    total = usage.input_tokens + usage.output_tokens
    return {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens, "totalTokens": total}


APIS = (BedrockConverse(),)

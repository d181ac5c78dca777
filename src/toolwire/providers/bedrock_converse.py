"""Amazon Bedrock's Converse: content as objects with one key each, streams as binary frames.

Bytes (images, redacted reasoning) are base64 text in JSON, but bytes in `boto3`; both are read.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolwire.events import CallEnd, CallStart
from toolwire.messages import (
    FilePart,
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
from toolwire.providers import reasoning_effort
from toolwire.providers.base import OfferedTool, ProviderApi
from toolwire.providers.bedrock_media import KIND, as_base64, read_media, with_names, write_file, write_image
from toolwire.providers.content_blocks import BlockWriter
from toolwire.providers.file_parts import files_of, images_of
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import AwsEventStream, Frame, aws_event
from toolwire.providers.identifiers import WORD_64, Alphabet
from toolwire.providers.message_parts import (
    Json,
    UsageReader,
    note_dropped,
    object_of,
    read_tools,
    stand_in,
    uncached_tokens,
    without_seal,
)
from toolwire.providers.output_support import BEDROCK
from toolwire.providers.request import ChatRequest, Notes, ToolChoice, group_results
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.schema_dialects import PLAIN_ROOT
from toolwire.providers.setting_members import SettingMembers
from toolwire.providers.stream_codec import Head
from toolwire.tools import ToolDefinition

_SERVER = "server_tool_use"
_NO_CONTENT = " "
_OWN_JSON = frozenset(("json", "input", "additionalModelRequestFields"))
"""Members whose value is the caller's own JSON."""


class _Reader:
    """Reads the events of one stream."""

    def __init__(self, builder: ResponseBuilder) -> None:
        self._builder = builder
        self._opaque: dict[int, Json] = {}  # open blocks that the provider uses itself
        self._input: dict[int, list[str]] = {}  # the input of these
        self._thoughts: dict[int, Json] = {}  # open reasoning

    def read(self, frame: Frame) -> None:
        builder = self._builder
        event = frame.value
        match frame.event:
            case "contentBlockStart":
                self._start(event["contentBlockIndex"], event["start"])
            case "contentBlockDelta":
                self._delta(event["contentBlockIndex"], event["delta"])
            case "contentBlockStop":
                self._stop(event["contentBlockIndex"])
            case "messageStop":
                builder.reason = read_reason(builder.api, event.get("stopReason"))
            case "metadata":
                _add_usage(event.get("usage"), builder)
            case "messageStart":
                pass
            case other if other.endswith(("Exception", "Error")) or "message" in event:
                builder.fail(f"{other}: {event.get('message', '')}")
            case _:
                pass

    def _start(self, index: int, start: Json) -> None:
        use = start.get("toolUse")
        if use is not None and use.get("type") != _SERVER:
            self._builder.begin_call(index, use.get("name"), use.get("toolUseId"))
        else:
            self._opaque[index] = {key: dict(value) for key, value in start.items() if isinstance(value, Mapping)}
            self._input[index] = []

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        builder = self._builder
        match delta:
            case {"text": text}:
                builder.add_text(text)
            case {"toolUse": {"input": text}}:
                if builder.is_open(index):
                    builder.add_arguments(index, text)
                else:
                    self._input.setdefault(index, []).append(str(text))
            case {"reasoningContent": content}:
                thought = self._thoughts.setdefault(index, {"text": [], "signature": ""})
                builder.add_reasoning(content.get("text"))
                thought["text"].append(content.get("text") or "")
                thought["signature"] += content.get("signature") or ""
                if "redactedContent" in content:
                    thought["redactedContent"] = content["redactedContent"]
            case {"toolResult": content} if index in self._opaque:
                self._opaque[index].setdefault("toolResult", {}).setdefault("content", []).extend(content)
            case _:
                pass

    def _stop(self, index: int) -> None:
        builder = self._builder
        if builder.is_open(index):
            builder.end_call(index)
        if (thought := self._thoughts.pop(index, None)) is not None:
            signed = {"text": "".join(thought.pop("text")), "signature": thought.pop("signature")}
            builder.end_reasoning(_reasoning_part({"reasoningContent": {"reasoningText": signed, **thought}}))
        if (block := self._opaque.pop(index, None)) is not None:
            if (text := "".join(self._input.pop(index))) and "toolUse" in block:
                block["toolUse"]["input"] = object_of(text)
            builder.add_opaque(block)


class _Writer(BlockWriter):
    """Writes the events of one stream; frames have no place for a whole block of another kind."""

    def first(self) -> Iterator[bytes]:
        yield aws_event({"role": "assistant"}, "messageStart")

    def last(self) -> Iterator[bytes]:
        yield aws_event({"stopReason": write_reason("bedrock_converse", self.end.reason)}, "messageStop")
        yield aws_event(_totals(self.end.usage), "metadata")

    def opened(self, call: CallStart | None) -> Iterator[bytes]:
        if call is not None:  # other blocks begin with their first delta
            start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
            yield aws_event({"contentBlockIndex": self.index, "start": start}, "contentBlockStart")

    def piece(self, text: str) -> Iterator[bytes]:
        match self.block:
            case "text":
                yield self._delta({"text": text})
            case "reasoning":
                yield self._delta({"reasoningContent": {"text": text}})
            case _:
                yield self._delta({"toolUse": {"input": text}})

    def closed(self, call: CallEnd | None) -> Iterator[bytes]:
        yield aws_event({"contentBlockIndex": self.index}, "contentBlockStop")

    def sealed(self, part: ReasoningPart) -> Iterator[bytes]:
        if part.provider != "bedrock_converse":
            return
        redacted = ((part.data or {}).get("reasoningContent") or {}).get("redactedContent")
        if part.signature or redacted:
            yield from self.begin("reasoning")
            content = {"redactedContent": redacted} if redacted else {"signature": part.signature}
            yield self._delta({"reasoningContent": content})

    def _delta(self, delta: Json) -> bytes:
        return aws_event({"contentBlockIndex": self.index, "delta": delta}, "contentBlockDelta")


class BedrockConverse(ProviderApi):
    """The Converse and ConverseStream operations."""

    kind = KIND
    names = WORD_64
    ids = Alphabet("a-zA-Z0-9_.:-", 64)
    dialect = PLAIN_ROOT
    _mark_form = "cachePoint"
    strict_dialect = PLAIN_ROOT
    reader, writer = _Reader, _Writer
    _settings = SettingMembers(
        {
            "inferenceConfig.maxTokens": "max_tokens",
            "inferenceConfig.temperature": "temperature",
            "inferenceConfig.topP": "top_p",
            "inferenceConfig.stopSequences": "stop",
            "serviceTier.type": "service_tier",
            "requestMetadata": "metadata",
        },
        reasoning_effort.BEDROCK,
        {"default": "default", "flex": "flex", "priority": "priority", "reserved": "reserved"},
        parallel=False,
    )
    members = frozenset(("messages", "system", "toolConfig", "modelId", "stream"))
    defines_called_tools = True
    separates_system = begins_with_user = True
    _outputs = BEDROCK
    framing = AwsEventStream

    # -- requests ------------------------------------------------------------------------------------------------

    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body, with the model as `modelId`, as in the operation's parameters."""
        body: Json = {"modelId": request.model} if request.model else {}
        system = [part for message in request.messages if message.role == "system" for part in message.parts]
        if instructions := [block for part in system for block in self._blocks(part, "user", notes)]:
            body["system"] = instructions
        conversation = [message for message in request.messages if message.role != "system"]
        body["messages"] = self.write_messages(conversation, notes)
        if listed := [*map(self._tool, tools), *map(dict, request.provider_tools)]:
            body["toolConfig"] = {"tools": listed, **self._write_choice(request, notes)}
        return self._with_settings(body, request, notes)

    @staticmethod
    def _tool(tool: OfferedTool) -> Json:
        spec: Json = {"name": tool.name, "inputSchema": {"json": tool.schema}}
        if tool.description:
            spec["description"] = tool.description
        if tool.strict is not None:
            spec["strict"] = tool.strict
        return {"toolSpec": spec}

    def _write_choice(self, request: ChatRequest, notes: Notes) -> Json:
        choice = request.tool_choice
        if choice.mode == "none":
            notes.dropped("tool_choice", f"{self.name} cannot say that no tool may be called")
        elif choice.name:
            return {"toolChoice": {"tool": {"name": choice.name}}}
        elif choice.names:
            self.note_choice_from_all(choice, notes)
        return {"toolChoice": {"any": {}}} if choice.mode == "required" else {}

    def write_messages(self, messages: Iterable[Message], notes: Notes) -> list[Json]:
        """Return the messages, with consecutive ones of a role joined: roles have to alternate."""
        joined: list[Json] = []
        for message in super().write_messages(messages, notes):
            if joined and joined[-1]["role"] == message["role"]:
                joined[-1]["content"] += message["content"]
            else:
                joined.append(message)
        return with_names(joined, self.name, notes)

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """Return one message, with its results first."""
        role = "assistant" if message.role == "assistant" else "user"
        ordered = sorted(message.parts, key=lambda part: not isinstance(part, ToolResult))
        blocks = [block for part in ordered for block in self._blocks(part, role, notes)]
        if not blocks and role == "user" and (text := stand_in(message.parts)):
            blocks = [{"text": text}]
        return [{"role": role, "content": blocks}] if blocks else []

    def _blocks(self, part: Part, role: str, notes: Notes) -> list[Json]:
        match part:
            case TextPart(text):
                return [{"text": text}] if text.strip() else []
            case ImagePart():
                return [write_image(part, self.name, notes)]
            case FilePart():
                return [write_file(part, self.name, notes)]
            case ToolCall():
                return [{"toolUse": {"toolUseId": part.id, "name": part.name, "input": part.arguments}}]
            case ToolResult():
                return [{"toolResult": self._result(part, notes)}]
            case ReasoningPart(text, signature, self.kind, data) if role == "assistant" and (signature or data):
                return [data or _reasoning_block(text, signature)]
            case OpaquePart(data, self.kind):
                return [data]
            case _:
                note_dropped(part, self.name, notes)
                return []

    def _result(self, result: ToolResult, notes: Notes) -> Json:
        content: list[Json] = []
        if not result.success or result.result is not None:
            structured = result.success and isinstance(result.result, dict)
            content.append({"json": result.result} if structured else {"text": result.text or _NO_CONTENT})
        content += [write_image(image, self.name, notes) for image in result.images]
        content += [write_file(file, self.name, notes, result=True) for file in result.files]
        status = "success" if result.success else "error"
        return {"toolUseId": result.call_id, "content": content or [{"text": _NO_CONTENT}], "status": status}

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body."""
        config = body.get("toolConfig") or {}
        system = tuple(part for block in body.get("system") or () for part in self._read_block(block))
        instructions = [Message("system", system)] if system else []
        return self._request_of(
            body,
            (*instructions, *group_results(self._read_messages(body["messages"]))),
            **read_tools(config.get("tools"), _read_tool),
            tool_choice=_read_choice(config.get("toolChoice") or {}),
            model=body.get("modelId") or "",
        )

    def _read_messages(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
        for message in messages:
            by_model = message["role"] == "assistant"
            parts = tuple(part for block in message["content"] for part in self._read_block(block, by_model=by_model))
            yield Message("assistant" if by_model else "user", parts)

    def _read_block(self, block: Mapping[str, Any], *, by_model: bool = False) -> Iterator[Part]:
        match block:
            case {"text": str(text)}:
                yield TextPart(text)
            case {"image": _} | {"document": _} | {"audio": _} | {"video": _}:
                yield read_media(block) or OpaquePart(_in_base64(dict(block)), self.kind)
            case {"toolUse": use} if use.get("type") != _SERVER:
                yield ToolCall(use["name"], object_of(use.get("input")), use["toolUseId"], format=self.kind)
            case {"toolResult": result} if not by_model:
                yield _read_result(result)
            case {"reasoningContent": _}:
                yield _reasoning_part(block)
            case _:
                yield OpaquePart(_in_base64(dict(block)), self.kind)

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the content of a response to the builder."""
        if "output" not in response and (message := response.get("message") or response.get("Message")):
            builder.fail(str(message))
            return
        builder.reason = read_reason(self.kind, response.get("stopReason"))
        for block in response["output"]["message"].get("content") or ():
            match block:
                case {"text": text}:
                    builder.add_text(text)
                case {"toolUse": use} if use.get("type") != _SERVER:
                    builder.add_call(use.get("name"), use.get("input"), use.get("toolUseId"))
                case {"reasoningContent": _}:
                    builder.add_thought(_reasoning_part(block))
                case {"citationsContent": {"content": pieces}}:
                    # The answer itself, with its sources; `raw` has these. A stream has the text alone, too.
                    for piece in pieces:
                        builder.add_text(piece.get("text"))
                case _:
                    builder.add_opaque(block)
        _add_usage(response.get("usage"), builder)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return the body of a response."""
        blocks: list[Json] = []
        for part in response.parts:
            match without_seal(part, self.name, notes, self.kind):
                case ReasoningPart(text, "", data=None):
                    blocks += [_reasoning_block(text)] if text else []
                case part:
                    blocks += self._blocks(part, "assistant", notes)
        return {
            "output": {"message": {"role": "assistant", "content": blocks}},
            "stopReason": write_reason(self.kind, response.finish_reason),
            **_totals(response.usage),
        }

    # -- streams -------------------------------------------------------------------------------------------------

    def write_error(self, message: str) -> bytes:
        """Return the frame that reports a failure in the middle of a stream."""
        return aws_event({"message": message}, "modelStreamErrorException", exception=True)


def for_boto3(body: Json) -> Json:
    """Return a body as boto3 takes it: `client.converse(**for_boto3(body))`.

    boto3 takes bytes (of images, documents, redacted reasoning) where the API has base64, and encodes them itself.
    """
    return {key: _for_boto3(value, key) for key, value in body.items()}


def _for_boto3(value: Any, key: str) -> Any:
    if key in _OWN_JSON:
        return value
    if key in ("bytes", "redactedContent") and isinstance(value, str):
        return base64.b64decode(value)
    if isinstance(value, Mapping):
        return {member: _for_boto3(inner, member) for member, inner in value.items()}
    return [_for_boto3(item, key) for item in value] if isinstance(value, list) else value


def _in_base64(value: Any) -> Any:
    """Return a value with bytes, as boto3's users write it, in the form that is sent."""
    if isinstance(value, Mapping):
        return {key: _in_base64(inner) for key, inner in value.items()}
    if isinstance(value, bytes | bytearray):
        return as_base64(value)
    return [_in_base64(item) for item in value] if isinstance(value, list) else value


def _reasoning_block(text: str, signature: str = "") -> Json:
    content = {"text": text, "signature": signature} if signature else {"text": text}
    return {"reasoningContent": {"reasoningText": content}}


def _reasoning_part(block: Mapping[str, Any]) -> ReasoningPart:
    content = block["reasoningContent"]
    text = content.get("reasoningText") or {}
    if "redactedContent" in content:
        data = {"reasoningContent": {"redactedContent": as_base64(content["redactedContent"])}}
        return ReasoningPart("", "", "bedrock_converse", data)
    signature = text.get("signature") or ""
    return ReasoningPart(text.get("text") or "", signature, "bedrock_converse" if signature else "")


def _read_tool(tool: Json) -> ToolDefinition | None:
    if "toolSpec" not in tool:
        return None
    spec = tool["toolSpec"]
    schema = (spec.get("inputSchema") or {}).get("json") or {"type": "object", "properties": {}}
    strict = {"strict": spec["strict"]} if isinstance(spec.get("strict"), bool) else {}
    return ToolDefinition(spec["name"], spec.get("description") or "", dict(schema), annotations=strict)


def _read_choice(choice: Mapping[str, Any]) -> ToolChoice:
    if "tool" in choice:
        return ToolChoice("required", (choice["tool"]["name"],))
    return ToolChoice("required" if "any" in choice else "auto")


def _read_result(result: Mapping[str, Any]) -> ToolResult:
    texts: list[str] = []
    media: list[ImagePart | FilePart] = []
    values: list[Any] = []
    for block in result.get("content") or ():
        match block:
            case {"text": text}:
                texts.append(text)
            case {"json": structured}:
                values.append(structured)
                texts.append(json.dumps(structured, ensure_ascii=False))
            case _ if (part := read_media(block)) is not None:
                media.append(part)
            case _:  # shown as JSON
                texts.append(json.dumps(block, ensure_ascii=False, default=as_base64))
    text = "\n".join(texts)
    if result.get("status") == "error":
        return ToolResult(result["toolUseId"], "", error=text, images=images_of(media), files=files_of(media))
    value: Any = values[0] if len(values) == len(texts) == 1 else text if texts or not media else None
    return ToolResult(result["toolUseId"], "", value, images=images_of(media), files=files_of(media))


_USAGE = UsageReader("inputTokens cacheReadInputTokens cacheWriteInputTokens", "outputTokens", "cacheReadInputTokens")


def _add_usage(usage: Any, builder: ResponseBuilder) -> None:
    if isinstance(usage, Mapping):
        builder.add_usage(_USAGE.read(usage))


def _totals(usage: Usage | None) -> Json:
    usage = usage or Usage()
    total = usage.input_tokens + usage.output_tokens
    counts = {
        "inputTokens": uncached_tokens(usage),
        "outputTokens": usage.output_tokens,
        "totalTokens": total,
    }
    if usage.cached_tokens:
        counts["cacheReadInputTokens"] = usage.cached_tokens
    return {"usage": counts, "metrics": {"latencyMs": 0}}


APIS = (BedrockConverse(),)

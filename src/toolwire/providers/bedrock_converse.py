"""Amazon Bedrock's Converse: content as objects with one key each, streams as binary frames.

Bytes (images, redacted reasoning) are base64 text in JSON, but bytes in `boto3`; both are read.

CitedSource: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolwire.events import with_cited_texts
from toolwire.messages import (
    CitationPart,
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
)
from toolwire.providers import reasoning_effort
from toolwire.providers.base import ProviderApi
from toolwire.providers.bedrock_media import KIND, as_base64, read_media, with_names, write_file, write_image
from toolwire.providers.bedrock_stream import (
    ANSWER,
    SERVER_CALL,
    ConverseReader,
    ConverseWriter,
    add_usage,
    citation_part,
    reasoning_part,
    totals,
    write_citations,
)
from toolwire.providers.citations import own_item
from toolwire.providers.failure_kinds import INTERNAL, FailureKind
from toolwire.providers.file_parts import files_of, images_of
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import AwsEventStream, aws_event
from toolwire.providers.identifiers import WORD_64, Alphabet
from toolwire.providers.message_parts import (
    Json,
    note_dropped,
    object_of,
    read_tools,
    stand_in,
    without_seal,
)
from toolwire.providers.offered_tool import OfferedTool
from toolwire.providers.output_support import BEDROCK
from toolwire.providers.request import ChatRequest, Notes, ToolChoice, group_results
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.schema_dialects import PLAIN_ROOT, SEALED
from toolwire.providers.setting_members import SettingMembers
from toolwire.providers.stream_codec import Head
from toolwire.tools import ToolDefinition

_NO_CONTENT = " "
_OWN_JSON = frozenset(("json", "input", "additionalModelRequestFields"))
"""Members whose value is the caller's own JSON."""


class BedrockConverse(ProviderApi):
    """The Converse and ConverseStream operations."""

    kind = KIND
    names = WORD_64
    ids = Alphabet("a-zA-Z0-9_.:-", 64)
    dialect = PLAIN_ROOT
    _mark_form = "cachePoint"
    strict_dialect = SEALED
    divides_text = True
    _answer = ANSWER
    reader, writer = ConverseReader, ConverseWriter
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
        blocks: list[Json] = []
        for part in with_cited_texts(ordered):
            if isinstance(part, CitationPart) and own_item(part, KIND) is not None:
                _cite(blocks, part)
            else:
                blocks += self._blocks(part, role, notes)
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
            case {"toolUse": use} if use.get("type") != SERVER_CALL:
                yield ToolCall(use["name"], object_of(use.get("input")), use["toolUseId"], format=self.kind)
            case {"toolResult": result} if not by_model:
                yield _read_result(result)
            case {"reasoningContent": _}:
                yield reasoning_part(block)
            case _:
                yield OpaquePart(_in_base64(dict(block)), self.kind)

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the content of a response to the builder."""
        builder.reason = read_reason(self.kind, response.get("stopReason"))
        for block in response["output"]["message"].get("content") or ():
            match block:
                case {"text": text}:
                    builder.add_text(text)
                case {"toolUse": use} if use.get("type") != SERVER_CALL:
                    builder.add_call(use.get("name"), use.get("input"), use.get("toolUseId"))
                case {"reasoningContent": _}:
                    builder.add_thought(reasoning_part(block))
                case {"citationsContent": {"content": pieces} as cited}:
                    start = builder.content_length
                    for piece in pieces:
                        builder.add_text(piece.get("text"))
                    for citation in cited.get("citations") or ():
                        builder.add_citation(citation_part(citation, start, builder.content_length))
                case _:
                    builder.add_opaque(block)
        add_usage(response.get("usage"), builder)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return the body of a response."""
        blocks: list[Json] = []
        for part in with_cited_texts(response.parts):
            match without_seal(part, self.name, notes, self.kind):
                case ReasoningPart(text, "", data=None):
                    blocks += [_reasoning_block(text)] if text else []
                case CitationPart() as citation:
                    _cite(blocks, citation)
                case part:
                    blocks += self._blocks(part, "assistant", notes)
        return {
            "output": {"message": {"role": "assistant", "content": blocks}},
            "stopReason": write_reason(self.kind, response.finish_reason),
            **totals(response.usage),
        }

    # -- streams -------------------------------------------------------------------------------------------------

    def write_error(self, message: str, kind: FailureKind = INTERNAL, head: Head | None = None) -> bytes:
        """Return the frame that reports a failure in the middle of a stream."""
        return aws_event({"message": message}, kind.aws, exception=True)


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


def _cite(blocks: list[Json], part: CitationPart) -> None:
    """Add a citation to the block of the text that precedes it."""
    last = blocks[-1] if blocks else {}
    cited = last.get("citationsContent") or {
        "content": [{"text": last["text"]}] if "text" in last else [],
        "citations": [],
    }
    if cited["content"] and (citations := list(write_citations(part))):
        blocks[-1] = {"citationsContent": {**cited, "citations": [*cited["citations"], *citations]}}


def _reasoning_block(text: str, signature: str = "") -> Json:
    content = {"text": text, "signature": signature} if signature else {"text": text}
    return {"reasoningContent": {"reasoningText": content}}


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


APIS = (BedrockConverse(),)

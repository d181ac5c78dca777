"""Anthropic Messages: content in typed blocks, results first in the user's message after the calls.

Thinking is signed, and must be sent back unchanged, block by block, before the calls that followed it. In a stream one
block is open at a time.

CitedSource: https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
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
    Usage,
)
from toolwire.providers import reasoning_effort, server_compaction
from toolwire.providers.anthropic_stream import (
    ANSWER,
    KIND,
    AnthropicStreamReader,
    AnthropicStreamWriter,
    add_citations,
    add_error,
    add_usage,
    call_extra,
    event_of,
    message_of,
    thinking_block,
    thinking_part,
    write_citations,
)
from toolwire.providers.base import ProviderApi
from toolwire.providers.citations import own_item
from toolwire.providers.context_overflow import anthropic_words
from toolwire.providers.failure_kinds import INTERNAL, TOO_LONG, UNAVAILABLE, FailureKind
from toolwire.providers.file_parts import PDF, in_words, is_uploaded
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.identifiers import WORD_64, Alphabet
from toolwire.providers.member_paths import member
from toolwire.providers.message_parts import (
    Json,
    note_dropped,
    object_of,
    original_content,
    read_tools,
    role_of,
    stand_in,
)
from toolwire.providers.offered_tool import OfferedTool
from toolwire.providers.output_support import ANTHROPIC
from toolwire.providers.request import ChatRequest, Mode, Notes, ToolChoice, group_results, split_results
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.schema_dialects import PLAIN_ROOT, SEALED
from toolwire.providers.setting_members import SettingMembers
from toolwire.providers.stream_codec import Head
from toolwire.tools import ToolDefinition, as_definition

MAX_TOKENS = 4096
"""Tokens; the maximum length of an answer where a request has none, because the API requires one."""

_TOOL = frozenset(("type", "name", "description", "input_schema", "strict", "annotations"))
_MODES: dict[Mode, str] = {"auto": "auto", "required": "any", "none": "none"}


class AnthropicMessages(ProviderApi):
    """The Messages API.

    Attributes:
        header_members: members that the API takes in other places, and here only as headers.
        takes_file_ids: whether a file may be named by the id that it got when it was uploaded.
    """

    kind = KIND
    checks_signatures = True
    names = WORD_64
    ids = Alphabet("a-zA-Z0-9_-", 128)
    dialect = PLAIN_ROOT
    _mark_form = "cache_control"
    strict_dialect = SEALED
    divides_text = True
    takes_file_ids: bool = True
    _settings = SettingMembers(
        {
            "max_tokens": "max_tokens",
            "temperature": "temperature",
            "top_p": "top_p",
            "top_k": "top_k",
            "stop_sequences": "stop",
            "service_tier": "service_tier",
            "metadata.user_id": "end_user",
        },
        reasoning_effort.ANTHROPIC,
        {"auto": "auto", "default": "standard_only"},
        compaction=server_compaction.ANTHROPIC,
    )
    _answer = ANSWER
    reader, writer = AnthropicStreamReader, AnthropicStreamWriter
    members = frozenset(("messages", "system", "tools", "tool_choice", "model", "stream"))
    defines_called_tools = True
    separates_system = True
    header_members: frozenset[str] = frozenset(("anthropic_version", "anthropic_beta"))
    _outputs = ANTHROPIC

    # -- requests ------------------------------------------------------------------------------------------------

    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body."""
        body: Json = {"model": request.model} if request.model else {}
        body["max_tokens"] = MAX_TOKENS
        system, rest = self._split(request, notes)
        if instructions := self._system(system, notes):
            body["system"] = instructions
        body["messages"] = self.write_messages(rest, notes)
        if listed := [*map(self._tool, tools), *map(dict, request.provider_tools)]:
            body["tools"] = listed
            if (choice := self._write_choice(request, notes)) is not None:
                body["tool_choice"] = choice
        if request.stream:
            body["stream"] = True
        complete = self._with_settings(body, request, notes)
        for name in self.header_members & complete.keys():
            del complete[name]
            notes.dropped(name, f"{self.name} takes it as a header")
        if request.max_tokens is None:
            budget = member(complete, reasoning_effort.ANTHROPIC.budget)
            complete["max_tokens"] = MAX_TOKENS + (budget if isinstance(budget, int) else 0)
            notes.added(f"max_tokens={complete['max_tokens']}", f"{self.name} requires it")
        return complete

    def _split(self, request: ChatRequest, notes: Notes) -> tuple[list[Message], list[Message]]:
        """Return the messages for `system`, and the rest; this API's own may have system messages in the middle."""
        system: list[Message] = []
        rest: list[Message] = []
        for message in request.messages:
            if message.role == "system" and not (rest and request.provider == self.kind):
                if rest:
                    notes.changed("system", "a system message from the middle moves to the beginning")
                system.append(message)
            else:
                rest.append(message)
        return system, rest

    def _system(self, messages: Sequence[Message], notes: Notes) -> Any:
        blocks = [
            block for message in messages for part in message.parts for block in self._blocks(part, "system", notes)
        ]
        return _only_text(blocks) or blocks

    @staticmethod
    def _tool(tool: OfferedTool) -> Json:
        written: Json = {"name": tool.name, "input_schema": tool.schema}
        if tool.description:
            written["description"] = tool.description
        if tool.strict is not None:
            written["strict"] = tool.strict
        rest = tool.definition.annotations.get(KIND)
        return {**written, **rest} if isinstance(rest, Mapping) else written

    def _write_choice(self, request: ChatRequest, notes: Notes) -> Json | None:
        choice = request.tool_choice
        written: Json = {"type": _MODES[choice.mode]}
        if choice.name:
            written = {"type": "tool", "name": choice.name}
        elif choice.names and choice.mode != "none":
            self.note_choice_from_all(choice, notes)
        if request.parallel is not None and choice.mode != "none":
            written["disable_parallel_tool_use"] = not request.parallel
        elif choice == ToolChoice():
            return None
        return written

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """Return one message, with its results first."""
        results, rest = split_results(message.parts)
        blocks = [self._result(result, notes) for result in results]
        for part in with_cited_texts(rest):
            if isinstance(part, CitationPart) and own_item(part, KIND) is not None:
                _cite(blocks, part)
            else:
                blocks += self._blocks(part, message.role, notes)
        if not blocks and message.role == "user" and (text := stand_in(rest)):
            blocks = [{"type": "text", "text": text}]
        role = "user" if message.role == "tool" else message.role
        return [{"role": role, "content": _only_text(blocks) or blocks}] if blocks else []

    def write_messages(self, messages: Iterable[Message], notes: Notes) -> list[Json]:
        """Return the messages, with consecutive ones of the user joined: other content follows the results."""
        joined: list[Json] = []
        for message in super().write_messages(messages, notes):
            if joined and joined[-1]["role"] == message["role"] == "user":
                joined[-1] = {"role": "user", "content": [*_listed(joined[-1]), *_listed(message)]}
            else:
                joined.append(message)
        return joined

    def _blocks(self, part: Part, role: str, notes: Notes) -> list[Json]:
        match part:
            case TextPart(text):
                return [{"type": "text", "text": text, **_own(part)}] if text.strip() else []
            case ImagePart():
                return [_image(part)]
            case FilePart():
                return [self._file(part, notes)]
            case ToolCall():
                use = {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}
                return [{**use, **_own(part)}]
            case ReasoningPart(_, signature, self.kind, data) if role == "assistant" and (signature or data):
                return [thinking_block(part)]
            case OpaquePart(data, self.kind) if self.takes_file_ids or not is_uploaded(data):
                return [data]
            case _:
                note_dropped(part, self.name, notes)
                return []

    def _file(self, file: FilePart, notes: Notes) -> Json:
        """Return a document by its address, a PDF, or plain text; words in place of any other file."""
        pdf = file.media_type == PDF
        if file.url and (pdf or (not file.media_type and file.kind == "document")):
            source = {"type": "url", "url": file.url}
        elif pdf:
            source = {"type": "base64", "media_type": PDF, "data": file.data}
        elif (text := file.text) is not None:
            source = {"type": "text", "media_type": "text/plain", "data": text}
        else:
            return {"type": "text", "text": in_words(file, self.name, notes).text}
        title = {"title": file.name} if file.name else {}
        return {"type": "document", "source": source, **title, **_own(file)}

    def _result(self, result: ToolResult, notes: Notes) -> Json:
        block: Json = {"type": "tool_result", "tool_use_id": result.call_id}
        media = [*map(_image, result.images), *(self._file(file, notes) for file in result.files)]
        if result.only_media:
            block["content"] = media
        elif media:
            block["content"] = [{"type": "text", "text": result.text}, *media]
        else:
            block["content"] = result.text
        if not result.success:
            block["is_error"] = True
        return {**block, **original_content(result, KIND, lambda content: _read_result({**block, "content": content}))}

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body."""
        choice = body.get("tool_choice") or {}
        single = choice.get("disable_parallel_tool_use")
        system = body.get("system")
        messages = [Message("system", tuple(self._read_blocks(system)))] if system else []
        return self._request_of(
            body,
            (*messages, *group_results(self._read_messages(body["messages"]))),
            **read_tools(body.get("tools"), _read_tool),
            tool_choice=_read_choice(choice),
            parallel=None if single is None else not single,
        )

    def _read_messages(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
        for message in messages:
            yield Message(role_of(message["role"]), tuple(self._read_blocks(message["content"])))

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
                case "document" if (file := _read_file(block)) is not None:
                    yield file
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

    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the content of a response to the builder."""
        if add_error(response, builder):
            return
        builder.reason = read_reason(self.kind, response.get("stop_reason"))
        for block in response["content"]:
            match block.get("type"):
                case "text":
                    start = builder.content_length
                    builder.add_text(block.get("text"))
                    add_citations(block.get("citations"), start, builder)
                case "thinking" | "redacted_thinking":
                    builder.add_thought(thinking_part(block))
                case "tool_use":
                    builder.add_call(block.get("name"), block.get("input"), block.get("id"), extra=call_extra(block))
                case _:
                    builder.add_opaque(block)
        add_usage(response.get("usage"), {}, builder)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return the body of a response."""
        blocks: list[Json] = []
        for part in with_cited_texts(response.parts):
            match part:
                case ReasoningPart():
                    blocks += [thinking_block(part)] if part != ReasoningPart("") else []
                case CitationPart() as citation:
                    _cite(blocks, citation)
                case TextPart(text) if blocks and text and text.isspace():  # it divides two statements with sources
                    blocks.append({"type": "text", "text": text})
                case part:
                    blocks += self._blocks(part, "assistant", notes)
        body = message_of(head, response.usage or Usage())
        return {**body, "content": blocks, "stop_reason": write_reason(self.kind, response.finish_reason)}

    # -- streams -------------------------------------------------------------------------------------------------

    def write_error(self, message: str, kind: FailureKind = INTERNAL, head: Head | None = None) -> bytes:
        """Return the event that reports a failure in the middle of a stream."""
        # A stream has no status: clients such as opencode ask again after this type, not after api_error.
        name = UNAVAILABLE.anthropic if kind.is_temporary else kind.anthropic
        text = anthropic_words(message) if kind is TOO_LONG else message
        return event_of("error", error={"type": name, "message": text})


def _only_text(blocks: list[Json]) -> str:
    """Return the text of a single block without other members; "" otherwise."""
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} else ""


def _cite(blocks: list[Json], part: CitationPart) -> None:
    """Add a citation to the block of the text that precedes it."""
    if blocks and blocks[-1]["type"] == "text" and (citations := list(write_citations(part))):
        blocks[-1] = {**blocks[-1], "citations": [*blocks[-1].get("citations", ()), *citations]}


def _listed(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _own(part: TextPart | ImagePart | FilePart | ToolCall | ToolResult) -> Json:
    """Return the members of a part that only this API knows."""
    return part.extra.data if part.extra is not None and part.extra.provider == KIND else {}


def _extra(block: Mapping[str, Any], *read: str) -> OpaquePart | None:
    """Return the members of a block other than its type and these: a cache mark, citations."""
    rest = {key: value for key, value in block.items() if key not in ("type", *read) and value not in (None, [])}
    return OpaquePart(rest, KIND) if rest else None


def _read_tool(tool: Json) -> ToolDefinition | None:
    if "input_schema" not in tool or tool.get("type") not in (None, "custom"):
        return None
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


def _read_file(block: Mapping[str, Any]) -> FilePart | None:
    """Parse a document; None for one that only this API knows, such as that of an uploaded file."""
    extra, name = _extra(block, "source", "title"), str(block.get("title") or "")
    match block.get("source"):
        case {"type": "base64", "data": str(data), "media_type": str(media_type)}:
            return FilePart(data, media_type, name=name, extra=extra)
        case {"type": "text", "data": str(text)}:
            return replace(FilePart.of_text(text, name=name), extra=extra)
        case {"type": "url", "url": str(url)}:
            return FilePart("", PDF, url, name, extra)
    return None


def _read_result(block: Mapping[str, Any]) -> ToolResult:
    content = block.get("content")
    texts: list[str] = []
    images: list[ImagePart] = []
    files: list[FilePart] = []
    marks: Json = {}  # a cache mark on text of a result moves to the result
    unread = False  # the content has blocks that our values do not have
    for item in _listed({"content": content or ()}):
        image = _read_image(item) if item.get("type") == "image" else None
        file = _read_file(item) if item.get("type") == "document" else None
        if image is not None:
            images.append(image)
        elif file is not None:
            files.append(file)
        elif item.get("type") == "text":
            texts.append(item["text"])
            if item.get("cache_control"):
                marks["cache_control"] = item["cache_control"]
        else:  # an uploaded file, a reference: shown as JSON
            texts.append(json.dumps(item, ensure_ascii=False))
            unread = True
    text = "\n".join(texts)
    extra = _extra({**({} if unread else marks), **block}, "tool_use_id", *(() if unread else ("content",)), "is_error")
    value, error = (None, text) if block.get("is_error") else (text if texts or not (images or files) else None, None)
    return ToolResult(block["tool_use_id"], "", value, error, tuple(images), extra, tuple(files))


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

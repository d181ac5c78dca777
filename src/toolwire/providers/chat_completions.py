"""Chat Completions: the shape that OpenAI began and most others took over, each with differences of its own.

Arguments are JSON text; results have no flag for errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolwire.events import Event
from toolwire.messages import (
    CitationPart,
    FileKind,
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
from toolwire.providers.chat_messages import ChatMessages, read_image
from toolwire.providers.chat_parts import (
    ANSWER,
    MESSAGE,
    Sound,
    add_error,
    add_members,
    add_usage,
    annotations_of,
    content_blocks,
    detail,
    is_custom,
    is_signature,
    read_finish,
    reasoning_parts,
    signatures_of,
    thinking_part,
    with_signature,
    without_transcript,
    write_usage,
)
from toolwire.providers.chat_settings import OPENAI
from toolwire.providers.chat_stream import ChatStreamReader, ChatStreamWriter
from toolwire.providers.file_parts import AUDIO_FORMATS, file_name, in_words, media_follow
from toolwire.providers.finish_reasons import write_reason
from toolwire.providers.identifiers import WORD_64, Alphabet
from toolwire.providers.message_parts import (
    Json,
    members_except,
    note_dropped,
    own_members,
    read_tools,
    split_members,
    text_of,
)
from toolwire.providers.offered_tool import OfferedTool
from toolwire.providers.output_support import OPENAI_CHAT, OutputSupport
from toolwire.providers.request import ChatRequest, Mode, Notes, ToolChoice, group_results
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.schema_dialects import JSON_SCHEMA, STRICT, Dialect
from toolwire.providers.setting_members import SettingMembers
from toolwire.providers.stream_codec import Head, StreamEnd
from toolwire.text.json_text import json_text
from toolwire.tools import ToolDefinition

FREE_INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""The arguments of a tool whose input is text, not JSON."""

_VISIBLE_40 = Alphabet(r"\x21-\x7e", 40)


_FILE = frozenset(("type", "file", "input_audio"))
_AUDIO = {form: media_type for media_type, form in AUDIO_FORMATS.items()}


@dataclass(frozen=True, slots=True)
class Facts:
    """Properties in which APIs of this shape differ.

    Attributes:
        ids: the spelling of calls' ids.
        strict: whether there is a strict mode.
        custom: whether there are tools whose input is text, not JSON.
        choices: whether a request may say that a tool must or must not be called.
        allowed_tools: whether a choice may name several tools.
        reasoning: the member for reasoning in a request; "" if reasoning is not sent back.
        max_tokens: the member for the maximum length of an answer.
        required: the mode that requires a call.
        whole_calls: whether a stream gives each call in one piece.
        seals: the providers whose signed reasoning can be sent back.
        output: the structured outputs.
        settings: the members for settings, other than that maximum.
        files: the kinds of files that a message of the user may contain.
        file_ids: whether a file may be named by the id that it got when it was uploaded.
        cache_marks: whether blocks and tools may be marked for the cache.
    """

    ids: Alphabet = _VISIBLE_40
    strict: bool = True
    custom: bool = False
    choices: bool = True
    allowed_tools: bool = False
    reasoning: str = "reasoning_content"
    max_tokens: str = "max_tokens"
    required: str = "required"
    whole_calls: bool = False
    seals: frozenset[str] = frozenset()
    output: OutputSupport = OPENAI_CHAT
    settings: SettingMembers = OPENAI
    files: frozenset[FileKind] = frozenset()
    file_ids: bool = False
    cache_marks: bool = False


class ChatCompletions(ChatMessages):
    """An API of this shape."""

    kind = "openai_chat"
    names = WORD_64
    dialect: Dialect = JSON_SCHEMA
    _answer = ANSWER
    reader = ChatStreamReader
    message_members = MESSAGE
    members = frozenset(
        ("messages", "tools", "tool_choice", "parallel_tool_calls", "model", "stream", "functions", "function_call")
    )

    def __init__(self, name: str = "", facts: Facts = Facts()) -> None:
        super().__init__(name)
        self.facts = facts
        self.ids = facts.ids
        self.takes_text_input, self.takes_file_ids = facts.custom, facts.file_ids
        self._mark_form = "cache_control" if facts.cache_marks else None
        self.strict_dialect = STRICT if facts.strict else None
        self._outputs = facts.output
        limits = dict.fromkeys((facts.max_tokens, "max_tokens", "max_completion_tokens"), "max_tokens")
        self._settings = replace(facts.settings, paths={**limits, **facts.settings.paths})

    # -- requests ------------------------------------------------------------------------------------------------

    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body."""
        body: Json = {"model": request.model} if request.model else {}
        custom = frozenset(tool.name for tool in tools if self._text_input(tool) is not None)
        messages = (_with_free_calls(message, custom) for message in request.messages)
        body["messages"] = self.write_messages(messages, notes)
        if listed := [*map(self._tool, tools), *map(dict, request.provider_tools)]:
            body["tools"] = listed
            if request.tool_choice != ToolChoice() and not self.facts.choices:
                notes.dropped("tool_choice", f"{self.name} always lets the model decide")
            elif request.tool_choice != ToolChoice():
                body["tool_choice"] = self._write_choice(request.tool_choice, custom, notes)
            if request.parallel is not None:
                body["parallel_tool_calls"] = request.parallel
        if request.stream:
            body["stream"] = True
        return self._with_settings(body, request, notes)

    def _tool(self, tool: OfferedTool) -> Json:
        if (text_input := self._text_input(tool)) is not None:
            custom: Json = {"name": tool.name, "description": tool.description, **text_input}
            format = custom.get("format")
            if isinstance(format, Mapping) and format.get("type") == "grammar" and "grammar" not in format:
                # The Responses API has the members of a grammar directly in the format.
                grammar = {key: value for key, value in format.items() if key != "type"}
                custom["format"] = {"type": "grammar", "grammar": grammar}
            return {"type": "custom", "custom": custom}
        written = self.function_of(tool)
        if tool.strict is not None:
            written["function"]["strict"] = tool.strict
        return written

    def _text_input(self, tool: OfferedTool) -> Mapping[str, Any] | None:
        """Return the members of a tool that is offered as one whose input is text, not JSON; None for others."""
        return tool.text_input if self.facts.custom else None

    def _write_choice(self, choice: ToolChoice, custom: frozenset[str], notes: Notes) -> Any:
        listed: list[Json] = []
        for name in choice.names:
            kind = "custom" if name in custom else "function"
            listed.append({"type": kind, kind: {"name": name}})
        if choice.name:
            return listed[0]
        if choice.names and choice.mode != "none":
            if self.facts.allowed_tools:
                mode = "required" if choice.mode == "required" else "auto"
                return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}
            self.note_choice_from_all(choice, notes)
        return self.facts.required if choice.mode == "required" else choice.mode

    def write_system(self, message: Message, notes: Notes) -> Any:
        """Return the content of a system message."""
        text = super().write_system(message, notes)
        return self._marked_blocks(message.parts) or text

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """Return the messages of the API that one message becomes; a recording is sent back by its id."""
        written = [without_transcript(item) for item in super().write_message(message, notes)]
        for item in written:
            if isinstance(audio := item.get("audio"), Mapping) and "id" in audio:
                item["audio"] = {"id": audio["id"]}
        return written

    def write_result(self, result: ToolResult) -> Json:
        """Return a message that carries one result."""
        content = media_follow(result) if result.only_media else result.marked_text
        return {"role": "tool", "tool_call_id": result.call_id, "content": content}

    def file_block(self, part: FilePart, notes: Notes) -> Json:
        """Return a block for a file: a document, or a recording in one of two formats; text for any other."""
        if part.kind in self.facts.files and part.data:
            extra = own_members(part, self.kind)
            if part.kind == "document":
                file = {"filename": part.name or file_name(part), "file_data": part.as_url}
                return {"type": "file", "file": file, **extra}
            if form := AUDIO_FORMATS.get(part.media_type):
                return {"type": "input_audio", "input_audio": {"data": part.data, "format": form}, **extra}
        reason = f"{self.name} takes no address of a {part.kind}" if part.url else ""
        return {"type": "text", "text": in_words(part, self.name, notes, reason=reason).text}

    def _marked_blocks(self, parts: Sequence[Part]) -> list[Json]:
        """Return the text as blocks, if any of them has a member of its own, such as a cache mark."""
        blocks = [self.text_block(part) for part in parts if isinstance(part, TextPart)]
        return blocks if any(len(block) > 2 for block in blocks) else []

    def write_answer(self, parts: Sequence[Part], notes: Notes) -> Json:
        """Return a message of the model."""
        message: Json = {"role": "assistant", "content": self._marked_blocks(parts) or text_of(parts) or None}
        calls: list[Json] = []
        reasoning: list[str] = []
        details: list[Json] = []
        signature: ReasoningPart | None = None  # for the next call
        for part in parts:
            match part:
                case ToolCall():
                    calls.append(with_signature(self.write_call(part), signature))
                    signature = None
                case ReasoningPart(text, provider=provider):
                    if provider in self.facts.seals and (part.signature or part.data):
                        if not is_signature(part):
                            details.append(detail(part))
                            continue
                        part, signature = signature or ReasoningPart(""), part
                    if text and self.facts.reasoning and provider in ("", self.kind):
                        reasoning.append(text)
                    elif part != ReasoningPart(""):
                        self.drop_reasoning(part, notes)
                case TextPart():
                    pass
                case CitationPart() if annotations_of((part,), self.kind, only_own=True):
                    pass
                case _:
                    note_dropped(part, self.name, notes)
        message |= annotations_of(parts, self.kind, only_own=True)
        if signature is not None:
            self.drop_reasoning(signature, notes)
        if reasoning:
            message[self.facts.reasoning] = "".join(reasoning)
        return _completed(message, calls, details)

    def drop_reasoning(self, part: ReasoningPart, notes: Notes) -> None:
        """Note reasoning that has no place of its own in a message."""
        note_dropped(part, self.name, notes)

    def write_call(self, call: ToolCall) -> Json:
        """Return a call as a message or a response contains it."""
        if call.free and self.facts.custom:
            custom = {"name": call.name, "input": str(call.arguments.get("input", ""))}
            return {"id": call.id, "type": "custom", "custom": custom, **own_members(call, self.kind)}
        function = {"name": call.name, "arguments": json_text(call.arguments)}
        return {"id": call.id, "type": "function", "function": function, **own_members(call, self.kind)}

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body."""
        functions = ({"type": "function", "function": function} for function in body.get("functions") or ())
        return self._request_of(
            body,
            group_results(self.read_messages(body["messages"])),
            **read_tools([*(body.get("tools") or ()), *functions], self._read_tool),
            tool_choice=_read_choice(body.get("tool_choice", body.get("function_call"))),
            parallel=body.get("parallel_tool_calls"),
        )

    def _read_tool(self, tool: Json) -> ToolDefinition | None:
        if isinstance(custom := tool.get("custom"), Mapping) and tool.get("type") == "custom":
            return custom_tool(custom)
        return self.function_tool(tool) if "function" in tool else None

    def read_parts(self, message: Mapping[str, Any]) -> Iterator[Part]:
        """Yield the parts of a message that contains no result."""
        yield from (part for _, part in reasoning_parts(message))
        content = message.get("content")
        for block in [content] if isinstance(content, str) and content else content or ():
            yield self._read_block(block)
        if isinstance(message.get("refusal"), str):
            yield TextPart(message["refusal"])
        for call in message.get("tool_calls") or ():
            yield from signatures_of(call)
            yield self.read_call(call)
        if isinstance(legacy := message.get("function_call"), Mapping):
            yield self.read_call({"function": legacy})

    def read_call(self, call: Mapping[str, Any]) -> ToolCall:
        """Parse a call of a message."""
        if not is_custom(call):
            return super().read_call(call)
        custom = call["custom"]
        arguments, id = {"input": str(custom.get("input") or "")}, str(call.get("id") or "")
        extra = self.call_extra(call)
        return ToolCall(str(custom["name"]), arguments, id, format=self.kind, free=True, extra=extra)

    def _read_block(self, block: Any) -> Part:
        if isinstance(block, str):
            return TextPart(block)
        match block.get("type"):
            case "text" | "refusal":
                rest = {key: value for key, value in block.items() if key not in ("type", "text", "refusal")}
                extra = OpaquePart(rest, self.kind) if rest else None
                return TextPart(str(block.get("text", block.get("refusal", ""))), extra)
            case "image_url":
                return read_image(block, self.kind)
            case "thinking":
                return thinking_part(block, self.kind)
        return self.read_file(block) or OpaquePart(dict(block), self.kind)

    def read_file(self, block: Mapping[str, Any]) -> FilePart | None:
        """Parse a block with a file; None for any other, and for one that only this API can express."""
        part, extra = None, members_except(block, _FILE, self.kind)
        match block:
            case {"type": "file", "file": {"file_data": str(url), **rest}} if url.startswith("data:"):
                if rest.keys() <= {"filename"}:
                    part = FilePart(url=url, name=str(rest.get("filename") or ""), extra=extra)
            case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(form), **rest}}:
                if not rest and form in _AUDIO:
                    part = FilePart(data, _AUDIO[form], extra=extra)
        return part if part is not None and part.kind in self.facts.files else None

    def read_result(self, message: Mapping[str, Any]) -> ToolResult:
        """Parse a message that carries a result."""
        call_id, name = str(message.get("tool_call_id") or ""), str(message.get("name") or "")
        content = message.get("content")
        if isinstance(content, str) or content is None:
            return ToolResult(call_id, name, content or "")
        texts: list[str] = []
        images: list[ImagePart] = []
        for block in content:
            if isinstance(block, str):
                texts.append(block)
            elif "text" in block:
                texts.append(str(block["text"]))
            elif block.get("type") == "image_url":
                images.append(read_image(block, self.kind))
            else:
                texts.append(json_text(dict(block)))
        return ToolResult(call_id, name, "\n".join(texts), images=tuple(images))

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the content of a response to the builder."""
        if add_error(response, builder):
            return
        choices = response.get("choices") or ()
        if choices:
            message = choices[0].get("message") or {}
            builder.reason = read_finish(choices[0], self.kind)
            for shown, part in reasoning_parts(message):
                builder.add_reasoning(shown)
                builder.end_reasoning(part)
            for block in content_blocks(message.get("content"), builder):
                builder.add_thought(thinking_part(block, self.kind))
            builder.add_text(message.get("refusal"))
            add_members(message, builder)
            sound = Sound()
            sound.add(message, builder)
            sound.end(builder)
            for call in message.get("tool_calls") or ():
                self.add_call(call, builder)
            legacy = message.get("function_call")
            if isinstance(legacy, Mapping) and legacy.get("name"):
                self.add_call({"function": legacy}, builder)
        add_usage(response.get("usage"), builder)

    def add_call(self, call: Mapping[str, Any], builder: ResponseBuilder) -> None:
        """Report a whole call of an answer to the builder."""
        for part in signatures_of(call):
            builder.end_reasoning(part)
        if is_custom(call):
            custom = call["custom"]
            builder.add_call(custom.get("name"), custom.get("input"), call.get("id"), free=True)
        else:
            super().add_call(call, builder)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return the body of a response."""
        members, parts = split_members(response.parts, self.kind)
        message: Json = {"role": "assistant", "content": text_of(parts) or None, "refusal": None}
        message = without_transcript(message | _with_annotations(members, annotations_of(parts, self.kind)))
        calls: list[Json] = []
        details: list[Json] = []
        signature: ReasoningPart | None = None  # for the next call
        for part in parts:
            match part:
                case ToolCall():
                    if part.free and not self.facts.custom:
                        notes.changed(f"call {part.id}", "its input is text, and becomes the only argument")
                    calls.append(with_signature(self.write_call(part), signature))
                    signature = None
                case ReasoningPart() if is_signature(part):
                    signature = part
                case ReasoningPart():
                    if part.signature or part.data:
                        details.append(detail(part))
                case OpaquePart():
                    note_dropped(part, self.name, notes)
                case _:
                    pass
        if reasoning := "".join(part.text for part in parts if isinstance(part, ReasoningPart)):
            message["reasoning_content"] = reasoning
        if signature is not None:
            details.append(detail(signature))
        reason = write_reason(self.kind, response.finish_reason)
        choice = {"index": 0, "message": _completed(message, calls, details), "logprobs": None, "finish_reason": reason}
        return {
            "id": f"chatcmpl-{head.id}",
            "object": "chat.completion",
            "created": head.created,
            "model": head.model,
            "choices": [choice],
            "usage": write_usage(response.usage or Usage()),
        }

    # -- streams -------------------------------------------------------------------------------------------------

    def reasoning_delta(self, text: str) -> Json:
        """Return a delta of reasoning."""
        return {"reasoning_content": text}

    def write_stream(self, events: Iterable[Event], head: Head, end: StreamEnd) -> Iterator[bytes]:
        """Yield the chunks of a stream."""
        facts = self.facts
        writer = ChatStreamWriter(
            self.kind, head, self.reasoning_delta, whole_calls=facts.whole_calls, custom=facts.custom
        )
        return writer.write(events, end)


def _with_annotations(members: Json, annotations: Json) -> Json:
    """Return the members of a message with annotations added to its own."""
    return {**members, **{name: [*members.get(name, ()), *values] for name, values in annotations.items()}}


def _completed(message: Json, calls: list[Json], details: list[Json]) -> Json:
    """Return a message of the model with its calls; without any, its content is text."""
    if details:
        message["reasoning_details"] = details
    if calls:
        message["tool_calls"] = calls
    elif message["content"] is None:
        message["content"] = ""
    return message


def _with_free_calls(message: Message, names: frozenset[str]) -> Message:
    """Return a message in which the calls of these tools are marked as calls with text input."""
    parts = (
        replace(part, free=True) if isinstance(part, ToolCall) and part.name in names else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts)) if names else message


def custom_tool(tool: Mapping[str, Any]) -> ToolDefinition:
    """Return a tool whose input is text; its other members become an annotation."""
    rest = {key: value for key, value in tool.items() if key not in ("type", "name", "description")}
    return ToolDefinition(tool["name"], tool.get("description") or "", FREE_INPUT, annotations={"custom": rest})


def _read_choice(choice: Any) -> ToolChoice:
    if not isinstance(choice, Mapping):
        return ToolChoice.of(choice)
    if isinstance(allowed := choice.get("allowed_tools"), Mapping):
        mode: Mode = "required" if allowed.get("mode") == "required" else "auto"
        return ToolChoice(mode, tuple(map(_choice_name, allowed.get("tools") or ())))
    return ToolChoice("required", (_choice_name(choice),))


def _choice_name(choice: Mapping[str, Any]) -> str:
    tool = choice.get("function") or choice.get("custom") or choice
    return str(tool["name"])

"""Gemini's Interactions API: the conversation and the answer are lists of steps.

Each request contains the whole conversation, so `previous_interaction_id` is not needed; that of a client is kept.

CitedSource: https://ai.google.dev/api/interactions-api
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

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
from toolwire.providers import reasoning_effort
from toolwire.providers.base import ProviderApi
from toolwire.providers.citations import write_annotations
from toolwire.providers.failure_kinds import INTERNAL, FailureKind
from toolwire.providers.file_parts import in_words, media_follow
from toolwire.providers.finish_reasons import write_reason
from toolwire.providers.identifiers import Alphabet
from toolwire.providers.interactions_stream import (
    ANSWER,
    KIND,
    InteractionReader,
    InteractionWriter,
    call_step,
    event_of,
    interaction_of,
    result_text,
    usage_of,
)
from toolwire.providers.message_parts import Json, note_dropped, object_of, read_tools, stand_in, system_text
from toolwire.providers.offered_tool import OfferedTool
from toolwire.providers.output_support import INTERACTIONS
from toolwire.providers.request import ChatRequest, Mode, Notes, ToolChoice, group_results, split_results
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.schema_dialects import JSON_SCHEMA
from toolwire.providers.setting_members import SettingMembers
from toolwire.providers.stream_codec import Head
from toolwire.tools import ToolDefinition

_MODES: dict[Mode, str] = {"auto": "auto", "required": "any", "none": "none"}
_READ_MODES: dict[str, Mode] = {"any": "required", "none": "none"}
_FUNCTION = frozenset(("type", "name", "description", "parameters"))
_CONFIG, _CHOICE = "generation_config", "tool_choice"
_MEDIA: frozenset[FileKind] = frozenset(("document", "audio", "video"))


class GeminiInteractions(ProviderApi):
    """The API."""

    kind = KIND
    names = Alphabet(r"a-zA-Z0-9_.\-", 64, first="a-zA-Z_")
    dialect = JSON_SCHEMA
    _settings = SettingMembers(
        {
            "generation_config.max_output_tokens": "max_tokens",
            "generation_config.temperature": "temperature",
            "generation_config.top_p": "top_p",
            "generation_config.stop_sequences": "stop",
            "generation_config.seed": "seed",
            "service_tier": "service_tier",
        },
        reasoning_effort.INTERACTIONS,
        {"default": "standard", "flex": "flex", "priority": "priority"},
        parallel=False,
    )
    reader, writer = InteractionReader, InteractionWriter
    members = frozenset(("input", "system_instruction", "tools", "model", "stream"))
    separates_system = begins_with_user = True
    _answer = ANSWER
    _outputs = INTERACTIONS

    # -- requests ------------------------------------------------------------------------------------------------

    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body."""
        body: Json = {"model": request.model} if request.model else {}
        system = [message for message in request.messages if message.role == "system"]
        if text := "\n\n".join(filter(None, (system_text(message, self.name, notes) for message in system))):
            body["system_instruction"] = text
        rest = (message for message in request.messages if message.role != "system")
        body["input"] = self.write_messages(rest, notes)
        if request.stream:
            body["stream"] = True
        if listed := [*map(self._tool, tools), *map(dict, request.provider_tools)]:
            body["tools"] = listed
        complete = self._with_settings(body, request, notes)
        if listed and request.tool_choice != ToolChoice():
            complete[_CONFIG] = {**complete.get(_CONFIG, {}), _CHOICE: _write_choice(request.tool_choice)}
        return complete

    @staticmethod
    def _tool(tool: OfferedTool) -> Json:
        written = {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema}
        rest = tool.definition.annotations.get(KIND)
        return {**written, **rest} if isinstance(rest, Mapping) else written

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """Return the steps that one message becomes."""
        if message.role == "assistant":
            return list(self._model_steps(message.parts, notes))
        results, rest = split_results(message.parts)
        steps = list(map(_result, results))
        files: list[Part] = []  # a result contains text and images only
        for result in results:
            if result.files:
                files += [TextPart(f"Files of the result of {result.tool_name}:"), *result.files]
        if files or rest or not results:
            content = [block for part in (*files, *rest) for block in self._content(part, notes)]
            blocks = content or [{"type": "text", "text": stand_in(rest)}]
            steps.append({"type": "user_input", "content": blocks})
        return steps

    def _model_steps(self, parts: Iterable[Part], notes: Notes) -> Iterator[Json]:
        """Yield the steps of the model; adjacent text is one step."""
        content: list[Json] = []
        for part in parts:
            if isinstance(part, TextPart | ImagePart | FilePart):
                content += self._content(part, notes)
                continue
            if content:
                yield {"type": "model_output", "content": content}
                content = []
            match part:
                case ToolCall(name, arguments, id):
                    yield call_step(name, id, arguments)
                case ReasoningPart(text, signature, provider, data) if provider in ("", KIND) and data is None:
                    if signature or text:
                        yield _thought(text, signature)
                case OpaquePart(data, provider) if provider == KIND:
                    yield data
                case _:
                    note_dropped(part, self.name, notes)
        if content:
            yield {"type": "model_output", "content": content}

    def _content(self, part: Part, notes: Notes) -> list[Json]:
        match part:
            case TextPart(text):
                return [{"type": "text", "text": text}] if text else []
            case ImagePart():
                return [_media("image", part)]
            case FilePart() if part.text is None and part.kind in _MEDIA:  # text is not a type of documents
                return [_media(part.kind, part)]
            case FilePart():
                return [{"type": "text", "text": in_words(part, self.name, notes).text}]
            case OpaquePart(data, provider) if provider == KIND:
                return [data]
            case _:
                note_dropped(part, self.name, notes)
                return []

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body."""
        config = dict(body.get(_CONFIG) or {})
        choice = _read_choice(config.pop(_CHOICE, None))
        rest = {**body, _CONFIG: config} if config else {name: body[name] for name in body if name != _CONFIG}
        system = body.get("system_instruction")
        instructions = (Message("system", (TextPart(str(system)),)),) if system else ()
        return self._request_of(
            rest,
            (*instructions, *group_results(_read_input(body["input"]))),
            **read_tools(body.get("tools"), _read_tool),
            tool_choice=choice,
        )

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the steps of an interaction to the builder."""
        InteractionReader(builder).whole(response)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return an interaction."""
        steps: list[Json] = []
        start = length = 0  # of the last text, and of all of it
        for part in response.parts:
            if isinstance(part, CitationPart):
                annotations = write_annotations(part, start, KIND)
                if annotations and steps and steps[-1].get("type") == "model_output":
                    text = steps[-1]["content"][-1]
                    text["annotations"] = [*text.get("annotations", ()), *annotations]
                continue
            if isinstance(part, TextPart):
                start, length = length, length + len(part.text)
            if isinstance(part, ReasoningPart) and part.provider not in ("", KIND):
                if part.signature or part.data:
                    notes.dropped("reasoning", f"{self.name} has no place for what {part.provider} wants back with it")
                part = ReasoningPart(part.text)
            steps += self._model_steps((part,), notes)
        body = interaction_of(head, write_reason(KIND, response.finish_reason))
        return {**body, "steps": steps, "usage": usage_of(response.usage or Usage())}

    # -- streams -------------------------------------------------------------------------------------------------

    def write_error(self, message: str, kind: FailureKind = INTERNAL, head: Head | None = None) -> bytes:
        """Return the event that reports a failure in the middle of a stream."""
        return event_of("error", error={"code": kind.gemini.lower(), "message": message})


def _result(result: ToolResult) -> Json:
    shown: Any = result.text
    if result.images:
        texts = [] if result.only_media else [{"type": "text", "text": shown}]
        shown = [*texts, *(_media("image", image) for image in result.images)]
    elif result.only_media:
        shown = media_follow(result)
    step: Json = {"type": "function_result", "call_id": result.call_id, "result": shown}
    if result.tool_name:
        step["name"] = result.tool_name
    return step if result.success else {**step, "is_error": True}


def _thought(text: str, signature: str) -> Json:
    step: Json = {"type": "thought"}
    if signature:
        step["signature"] = signature
    if text:
        step["summary"] = [{"type": "text", "text": text}]
    return step


def _media(kind: str, part: ImagePart | FilePart) -> Json:
    source = {"uri": part.url} if part.url and not part.url.startswith("data:") else {"data": part.data}
    media_type = part.media_type or ("image/png" if kind == "image" and part.data else "")
    return {"type": kind, **source, **({"mime_type": media_type} if media_type else {})}


def _read_input(value: Any) -> Iterator[Message]:
    """Yield the messages of an input: text, a content, several contents, or steps."""
    if isinstance(value, str):
        yield Message("user", (TextPart(value),))
        return
    items = [value] if isinstance(value, Mapping) else list(value)
    if items and not any(item.get("type") in _STEPS for item in items):
        yield Message("user", tuple(map(_read_content, items)))
        return
    answer: list[Part] = []
    for step in items:
        if step.get("type") not in _CLIENT_STEPS:
            answer += _read_model_step(step)
            continue
        if answer:
            yield Message("assistant", tuple(answer))
            answer = []
        if step["type"] == "function_result":
            yield Message("tool", (_read_result(step),))
        else:
            yield Message("user", tuple(map(_read_content, step.get("content") or ())))
    if answer:
        yield Message("assistant", tuple(answer))


_CLIENT_STEPS = frozenset(("user_input", "function_result"))
_STEPS = _CLIENT_STEPS | {"model_output", "thought", "function_call"}


def _read_model_step(step: Mapping[str, Any]) -> Iterator[Part]:
    match step.get("type"):
        case "function_call":
            arguments = object_of(step.get("arguments"))
            yield ToolCall(str(step["name"]), arguments, str(step.get("id") or ""), format=KIND)
        case "thought":
            text = "".join(str(block.get("text") or "") for block in step.get("summary") or ())
            signature = str(step.get("signature") or "")
            yield ReasoningPart(text, signature, KIND if signature else "")
        case "model_output":
            yield from map(_read_content, step.get("content") or ())
        case _:
            yield OpaquePart(dict(step), KIND)


def _read_content(block: Mapping[str, Any]) -> Part:
    is_plain = block.keys() <= {"type", "text", "data", "uri", "mime_type"}
    data, url, media_type = (str(block.get(name) or "") for name in ("data", "uri", "mime_type"))
    match block.get("type"):
        case "text" if is_plain:
            return TextPart(str(block.get("text") or ""))
        case "image" if is_plain and (data or url):
            return ImagePart(data, media_type, url)
        case "document" | "audio" | "video" if is_plain and media_type and (data or url):
            return FilePart(data, media_type, url)
        case _:
            return OpaquePart(dict(block), KIND)


def _read_result(step: Mapping[str, Any]) -> ToolResult:
    texts: list[str] = []
    images: list[ImagePart] = []
    result = step.get("result")
    for block in result if isinstance(result, list) else (result,):
        part = _read_content(block) if isinstance(block, Mapping) and "type" in block else None
        match part:
            case ImagePart():
                images.append(part)
            case TextPart(text):
                texts.append(text)
            case _ if block is not None:
                texts.append(result_text(block))
    text = "\n".join(texts)
    value, error = (None, text) if step.get("is_error") else (text if texts or not images else None, None)
    return ToolResult(str(step.get("call_id") or ""), str(step.get("name") or ""), value, error, tuple(images))


def _read_tool(tool: Json) -> ToolDefinition | None:
    if tool.get("type") != "function":
        return None
    rest = {name: value for name, value in tool.items() if name not in _FUNCTION and value is not None}
    schema = tool.get("parameters") or {"type": "object", "properties": {}}
    annotations = {KIND: rest} if rest else {}
    return ToolDefinition(tool["name"], tool.get("description") or "", dict(schema), annotations=annotations)


def _write_choice(choice: ToolChoice) -> Any:
    mode = _MODES[choice.mode]
    if choice.names and choice.mode != "none":
        return {"allowed_tools": {"mode": mode, "tools": list(choice.names)}}
    return mode


def _read_choice(choice: Any) -> ToolChoice:
    names: tuple[str, ...] = ()
    if isinstance(choice, Mapping):
        allowed = choice.get("allowed_tools") or {}
        choice, names = allowed.get("mode"), tuple(map(str, allowed.get("tools") or ()))
    return ToolChoice(_READ_MODES.get(str(choice), "auto"), names)


APIS = (GeminiInteractions(),)

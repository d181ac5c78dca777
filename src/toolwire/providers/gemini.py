"""Gemini's generateContent, of AI Studio and of Vertex AI.

Roles are `user` and `model`; arguments and results are objects; the calls of a turn are one content, and so are its
results. A thought signature belongs to the part that it is on: in our values it is reasoning without text, directly
before that part. The URL contains the model's name and whether to stream, so the body does not.

CitedSource: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from toolwire.events import (
    CallEnd,
    CitationReceived,
    ContentDelta,
    Event,
    OpaquePartReceived,
    ReasoningDelta,
    ReasoningEnd,
)
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
from toolwire.providers import reasoning_effort
from toolwire.providers.answer_shapes import put_members
from toolwire.providers.base import ProviderApi
from toolwire.providers.failure_kinds import INTERNAL, FailureKind
from toolwire.providers.file_parts import files_of, images_of
from toolwire.providers.framing import Frame, sse
from toolwire.providers.gemini_media import read_media, write_media
from toolwire.providers.gemini_stream import (
    ANSWER,
    KIND,
    GeminiStreamReader,
    Signer,
    answer_of,
    camel,
    grounding_of,
    is_gemini_id,
    listed,
    signature_part,
    write_call,
)
from toolwire.providers.identifiers import Alphabet
from toolwire.providers.message_parts import Json, answer_item, note_dropped, object_of, read_tools, stand_in
from toolwire.providers.offered_tool import OfferedTool
from toolwire.providers.openapi_schemas import read_openapi_schema
from toolwire.providers.output_support import GEMINI, GEMINI_OPENAPI, OutputSupport
from toolwire.providers.reasoning_seals import needs_seal, seal_of
from toolwire.providers.request import ChatRequest, Mode, Notes, ToolChoice, group_results, split_results
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.schema_dialects import JSON_SCHEMA, OPENAPI
from toolwire.providers.setting_members import SettingMembers
from toolwire.providers.stream_codec import WAITING, Head, StreamEnd, in_order
from toolwire.tools import ToolDefinition

_DECLARED = frozenset(("name", "description", "parameters", "parametersJsonSchema"))
_SCHEMAS = ("parametersJsonSchema", "parameters")
_DESCRIPTIVE = frozenset(("type", "title", "description", "$schema"))
"""Members that a schema without any parameters may have."""
_WRAPPED = ({"result"}, {"output"}, {"error"})
_UNSIGNED = "skip_thought_signature_validator"
"""Accepted by Gemini 3 in place of the signature of a call that it did not make."""


class Gemini(ProviderApi):
    """The API.

    Args:
        name: the name that users know it by.
        openapi: whether schemas are written in the OpenAPI subset, which older versions require.
    """

    kind = KIND
    checks_signatures = True
    _answer = ANSWER
    names = Alphabet(r"a-zA-Z0-9_.\-", 64, first="a-zA-Z_")
    _settings = SettingMembers(
        {
            "generationConfig.maxOutputTokens": "max_tokens",
            "generationConfig.temperature": "temperature",
            "generationConfig.topP": "top_p",
            "generationConfig.topK": "top_k",
            "generationConfig.stopSequences": "stop",
            "generationConfig.seed": "seed",
            "generationConfig.frequencyPenalty": "frequency_penalty",
            "generationConfig.presencePenalty": "presence_penalty",
            "serviceTier": "service_tier",
        },
        reasoning_effort.GEMINI,
        {"default": "standard", "flex": "flex", "priority": "priority"},
        parallel=False,
    )
    separates_system = begins_with_user = True
    members = frozenset(("contents", "systemInstruction", "tools", "toolConfig", "model", "stream"))

    def __init__(self, name: str = "", *, openapi: bool = False) -> None:
        super().__init__(name)
        self.openapi = openapi
        self.dialect = OPENAPI if openapi else JSON_SCHEMA
        self._outputs: OutputSupport = GEMINI_OPENAPI if openapi else GEMINI

    # -- requests ------------------------------------------------------------------------------------------------

    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body."""
        extra = dict(request.extra)
        body: Json = {}
        if instructions := list(self._instructions(request.messages, notes)):
            body["systemInstruction"] = {"parts": instructions}
        sign = "gemini-3" in str(request.model)
        body["contents"] = [
            content for message in request.messages for content in self._contents(message, notes, sign=sign)
        ]
        declared: list[Json] = [{"functionDeclarations": list(map(self._declaration, tools))}] if tools else []
        config = dict(extra.pop("toolConfig", {}))
        if offered := [*declared, *map(dict, request.provider_tools)]:
            body["tools"] = offered
            if calling := {**config.get("functionCallingConfig", {}), **_write_choice(request.tool_choice)}:
                config["functionCallingConfig"] = calling
        if config:
            body["toolConfig"] = config
        return self._with_settings(body, replace(request, extra=extra), notes)

    def _instructions(self, messages: Iterable[Message], notes: Notes) -> Iterator[Json]:
        at_start = True
        for message in messages:
            if message.role != "system":
                at_start = False
                continue
            if not at_start:
                notes.changed("system message", "it moves to the beginning of the conversation")
            for part in message.parts:
                if isinstance(part, TextPart):
                    yield {"text": part.text}
                else:
                    note_dropped(part, self.name, notes)

    def _declaration(self, tool: OfferedTool) -> Json:
        declaration: Json = {"name": tool.name, "description": tool.description}
        if any(key not in _DESCRIPTIVE and value not in ({}, [], False) for key, value in tool.schema.items()):
            declaration["parameters" if self.openapi else "parametersJsonSchema"] = tool.schema
        extra = tool.definition.annotations.get(self.kind)
        return {**declaration, **extra} if isinstance(extra, Mapping) else declaration

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """Return the contents that one message becomes; none for the system instruction."""
        return self._contents(message, notes, sign=False)

    def _contents(self, message: Message, notes: Notes, *, sign: bool) -> list[Json]:
        """Return the contents that one message becomes; `sign`: its first call needs a signature."""
        if message.role == "system":
            return []
        if message.role == "assistant":
            parts = self._model_parts(message.parts, notes, sign=sign)
            return [{"role": "model", "parts": parts}] if parts else []
        results, rest = split_results(message.parts)
        contents: list[Json] = []
        if results:
            contents.append({"role": "user", "parts": [{"functionResponse": _result(result)} for result in results]})
        if rest or not results:
            contents.append({"role": "user", "parts": self._user_parts(rest, notes) or [{"text": stand_in(rest)}]})
        return contents

    def _user_parts(self, parts: Iterable[Part], notes: Notes) -> list[Json]:
        written: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text):
                    written.append({"text": text})
                case ImagePart() | FilePart():
                    written.append(write_media(part))
                case OpaquePart(data, self.kind):
                    written.append(data)
                case _:
                    note_dropped(part, self.name, notes)
        return written

    def _model_parts(
        self, parts: Sequence[Part], notes: Notes, *, sign: bool = False, own_ids: bool = False
    ) -> list[Json]:
        """Return the parts of the model's content; `own_ids`: with ids of calls that Gemini did not give."""
        written: list[Json] = []
        signer = Signer()
        if any(isinstance(part, ReasoningPart) and part.signature and part.provider == self.kind for part in parts):
            sign = False
        for part in parts:
            match part:
                case TextPart(text):
                    written += [signer.signed({"text": text})] if text else []
                case ToolCall():
                    if sign:
                        written += signer.reasoning(ReasoningPart("", _UNSIGNED, self.kind))
                        notes.changed(f"call {part.id}", "it has no thought signature: the one that is not checked is")
                        sign = False
                    written.append(signer.signed({"functionCall": write_call(part, own_ids=own_ids)}))
                case ReasoningPart(provider=provider) if provider in ("", self.kind):
                    written += signer.reasoning(part)
                case ImagePart() | FilePart():
                    written += [*signer.rest(), write_media(part)]
                case OpaquePart(data, self.kind):
                    written += [*signer.rest(), data]
                case CitationPart() if own_ids:  # an answer has them beside its parts
                    pass
                case _:
                    note_dropped(part, self.name, notes)
        return [*written, *signer.rest()]

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body."""
        body = camel(body)
        declared: list[Json] = []
        provider_tools: list[Mapping[str, Any]] = []
        for tool in listed(body.get("tools")):
            tool = camel(tool)
            declared += map(camel, listed(tool.pop("functionDeclarations", None)))
            if tool:
                provider_tools.append(tool)
        config, generation = camel(body.get("toolConfig")), camel(body.pop("generationConfig", None))
        if isinstance(generation.get("thinkingConfig"), Mapping):
            generation["thinkingConfig"] = camel(generation["thinkingConfig"])
        if generation:
            body["generationConfig"] = generation
        calling = camel(config.pop("functionCallingConfig", None))
        choice = _read_choice(calling)
        if calling:
            config["functionCallingConfig"] = calling
        instructions = self._read_instructions(body.get("systemInstruction"))
        request = self._request_of(
            body,
            (*instructions, *group_results(self._read_contents(body["contents"]))),
            tools=read_tools(declared, self._definition)["tools"],
            tool_choice=choice,
            provider_tools=tuple(provider_tools),
        )
        return replace(request, extra={**request.extra, "toolConfig": config}) if config else request

    def _definition(self, declared: Json) -> ToolDefinition:
        description, rest = declared.get("description"), declared.keys() - _DECLARED
        key = next((key for key in _SCHEMAS if isinstance(declared.get(key), Mapping) and declared[key]), None)
        schema: Json = {"type": "object", "properties": {}}
        if key is not None:
            schema = read_openapi_schema(declared[key]) if key == "parameters" else dict(declared[key])
        return ToolDefinition(
            declared["name"],
            description if isinstance(description, str) else "",
            schema,
            annotations={self.kind: {key: declared[key] for key in sorted(rest)}} if rest else {},
        )

    def _read_instructions(self, content: Any) -> Iterator[Message]:
        if content:
            parts = [{"text": content}] if isinstance(content, str) else listed(content.get("parts"))
            yield Message("system", tuple(TextPart(str(part["text"])) for part in parts))

    def _read_contents(self, contents: Any) -> Iterator[Message]:
        for content in listed(contents):
            parts: list[Part] = []
            from_model = content.get("role") == "model"
            for raw in listed(content.get("parts")):
                part = camel(raw)
                if not from_model and isinstance(answer := part.get("functionResponse"), Mapping):
                    parts += self._read_result(camel(answer))
                else:
                    parts += self._read_part(raw, part)
            yield Message("assistant" if from_model else "user", tuple(_without_copies(parts)))

    def _read_part(self, raw: Mapping[str, Any], part: Json) -> Iterator[Part]:
        signature = str(part.get("thoughtSignature") or "")
        if isinstance(text := part.get("text"), str):
            if part.get("thought"):
                yield ReasoningPart(text, signature, self.kind if signature else "")
                return
            if signature:
                yield signature_part(signature, text)
            if text:
                yield TextPart(text)
        elif isinstance(call := part.get("functionCall"), Mapping):
            if signature:
                yield signature_part(signature)
            yield ToolCall(str(call["name"]), object_of(call.get("args")), str(call.get("id") or ""), format=self.kind)
        else:
            yield read_media(part) or OpaquePart(dict(raw), self.kind)

    def _read_result(self, answer: Json) -> Iterator[Part]:
        """Yield a result, and the parts of it that a result has no place for."""
        media: list[ImagePart | FilePart] = []
        unplaced: list[Part] = []
        for raw in listed(answer.get("parts")):
            if (part := read_media(camel(raw))) is not None:
                media.append(part)
            else:
                unplaced.append(OpaquePart(dict(raw), self.kind))
        value, error = answer.get("response"), None
        if isinstance(value, Mapping) and set(value) in _WRAPPED:
            (key, value), *_ = value.items()
            if key == "error":
                value, error = None, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        call_id, name = str(answer.get("id") or ""), str(answer.get("name") or "")
        yield ToolResult(call_id, name, value, error, images_of(media), files=files_of(media))
        yield from unplaced

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the content of a response to the builder."""
        GeminiStreamReader(builder).answer(response, whole=True)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return the body of a response."""
        parts = self._model_parts(list(_sealed(response.parts)), notes, own_ids=True)
        answer = answer_of(head, parts, response.finish_reason, response.usage or Usage())
        answer["candidates"][0] |= grounding_of(response.parts)
        return answer

    # -- streams -------------------------------------------------------------------------------------------------

    def stream_reader(self, builder: ResponseBuilder) -> Callable[[Frame], None]:
        """Return the function that reads the responses of one stream."""
        reader = GeminiStreamReader(builder)
        return lambda frame: reader.piece(frame.value)

    def write_error(self, message: str, kind: FailureKind = INTERNAL, head: Head | None = None) -> bytes:
        """Return the event that reports a failure in the middle of a stream."""
        return sse({"error": {"code": kind.status, "message": message, "status": kind.gemini}})

    def write_stream(self, events: Iterable[Event], head: Head, end: StreamEnd) -> Iterator[bytes]:
        """Yield the responses of a stream, each call whole in one of them."""
        signer = Signer()
        cited: list[Part] = []  # the text, and its citations
        for event in in_order(events):
            if event is WAITING:
                yield b""
                continue
            match event:
                case ContentDelta(text):
                    cited.append(TextPart(text))
                    parts = [signer.signed({"text": text})]
                case CitationReceived(part):
                    cited.append(part)
                    continue
                case ReasoningDelta(text):
                    parts = [{"text": text, "thought": True}]
                case ReasoningEnd(part) if part.provider == self.kind and part.signature:
                    parts = signer.reasoning(part, streamed=True)
                case ReasoningEnd(part) if needs_seal(part, self.kind):
                    parts = signer.reasoning(_seal_part(part))
                case CallEnd(_, call, True):
                    parts = [signer.signed({"functionCall": write_call(call, own_ids=True)})]
                case CallEnd():
                    signer = Signer()  # its signature would be on another part
                    continue
                case OpaquePartReceived(part):
                    parts = [*signer.rest(), part.data]
                case _:  # pieces of a call
                    continue
            if parts:
                yield sse(answer_of(head, parts))
        last = answer_of(head, signer.rest() or [{"text": ""}], end.reason, end.usage)
        members = OpaquePart(answer_item(end.members), self.kind)
        last["candidates"][0] |= grounding_of((*cited, members))
        put_members(last, end.members)
        yield sse(last)


def _sealed(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts of an answer; what another API needs back is on the part behind its reasoning.

    Gemini's clients send the signatures of calls back, and not the thoughts.
    """
    for part in parts:
        if not isinstance(part, ReasoningPart) or not needs_seal(part, KIND):
            yield part
            continue
        if part.text:
            yield ReasoningPart(part.text)
        yield _seal_part(part)


def _without_copies(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield parts without thoughts whose text is in the seal behind them as well."""
    for part, following in zip_longest(parts, parts[1:]):
        if not (isinstance(following, ReasoningPart) and part == ReasoningPart(following.text) != following):
            yield part


def _seal_part(part: ReasoningPart) -> ReasoningPart:
    return ReasoningPart("", seal_of(part, with_text=True), KIND)


def _write_choice(choice: ToolChoice) -> Json:
    if choice == ToolChoice():
        return {}
    if choice.mode == "none":
        return {"mode": "NONE"}
    mode = "ANY" if choice.mode == "required" else "VALIDATED"
    return {"mode": mode, "allowedFunctionNames": list(choice.names)} if choice.names else {"mode": mode}


def _read_choice(calling: Json) -> ToolChoice:
    """Return the choice, and remove its members."""
    names = tuple(map(str, calling.pop("allowedFunctionNames", None) or ()))
    word = str(calling.get("mode") or "").upper()
    if word != "VALIDATED" or names:
        calling.pop("mode", None)
    mode: Mode = "required" if word == "ANY" else "none" if word == "NONE" else "auto"
    return ToolChoice(mode, () if mode == "none" else names)


def _result(result: ToolResult) -> Json:
    value = result.result
    if result.error is not None:
        response: Any = {"error": result.error}
    elif _has_references(value):
        response = {"result": result.text}
    else:
        response = value if isinstance(value, dict) and set(value) not in _WRAPPED else {"result": value}
    written: Json = {"id": result.call_id} if is_gemini_id(result.call_id) else {}
    written |= {"name": result.tool_name, "response": response}
    if result.media:
        written["parts"] = list(map(write_media, result.media))
    return written


def _has_references(value: Any) -> bool:
    """Return whether `$ref` is a key anywhere: Gemini would follow it."""
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, Mapping):
            if "$ref" in node:
                return True
            todo += node.values()
        elif isinstance(node, list | tuple):
            todo += node
    return False


APIS = (Gemini(), Gemini("gemini_openapi", openapi=True))

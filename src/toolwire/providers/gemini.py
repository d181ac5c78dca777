"""Gemini's generateContent, of AI Studio and of Vertex AI.

Roles are `user` and `model`; arguments and results are objects; calls and results of a turn stand in one content each.
A thought signature belongs to the part that it is on: in our values it stands directly before that part, as reasoning
without text. The model's name and whether to stream stand in the URL, so no body holds them.

Source: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolwire.errors import DefinitionError
from toolwire.events import (
    CallEnd,
    ContentDelta,
    Event,
    Finish,
    Passed,
    ReasoningDelta,
    ReasoningEnd,
    UsageCounted,
)
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
from toolwire.providers.framing import Frame, Framing, ServerSentEvents, sse
from toolwire.providers.gemini_parts import answer_of, camel, is_theirs, listed, signature_part, write_call
from toolwire.providers.gemini_stream import Signer, StreamReader
from toolwire.providers.identifiers import Alphabet
from toolwire.providers.request import ChatRequest, Mode, Notes, ToolChoice, note_foreign, settled
from toolwire.providers.response_builder import Assembler
from toolwire.providers.schema_dialects import JSON_SCHEMA, OPENAPI
from toolwire.text.limits import MAX_DEPTH
from toolwire.tools import ToolDefinition

_SETTINGS = {"maxOutputTokens": "max_tokens", "temperature": "temperature", "topP": "top_p", "stopSequences": "stop"}
_READ = frozenset(("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model", "stream"))
_DECLARED = frozenset(("name", "description", "parameters", "parametersJsonSchema"))
_SCHEMAS = ("parametersJsonSchema", "parameters")
_UNSAID = frozenset(("type", "title", "description", "$schema"))
"""What a schema may say while it still has no parameters."""
_WRAPPED = ({"result"}, {"output"}, {"error"})
_UNSIGNED = "skip_thought_signature_validator"
"""What Gemini 3 takes instead of the signature of a call that it did not make."""


class Gemini(ProviderApi):
    """The API.

    Args:
        name: what users call it.
        openapi: schemas are written in the OpenAPI subset that it took first, and not as JSON Schema.
    """

    kind = "gemini"
    names = Alphabet(r"a-zA-Z0-9_.\-", 64, first="a-zA-Z_")

    def __init__(self, name: str = "", *, openapi: bool = False) -> None:
        super().__init__(name)
        self.openapi = openapi
        self.dialect = OPENAPI if openapi else JSON_SCHEMA

    # -- requests ------------------------------------------------------------------------------------------------

    def write_request(self, request: ChatRequest, tools: Sequence[Offered], notes: Notes) -> Json:
        """The body."""
        note_foreign(request, self.kind, notes)
        extra = dict(request.extra)
        body: Json = {}
        if said := list(self._told_before(request.messages, notes)):
            body["systemInstruction"] = {"parts": said}
        unsigned = "gemini-3" in str(request.model)
        body["contents"] = [made for one in request.messages for made in self._content(one, notes, unsigned=unsigned)]
        listed: list[Json] = [{"functionDeclarations": [self._declaration(tool) for tool in tools]}] if tools else []
        listed += [dict(tool) for tool in request.provider_tools]
        config = dict(extra.pop("toolConfig", {}))
        if listed:
            body["tools"] = listed
            if calling := {**config.get("functionCallingConfig", {}), **_write_choice(request.tool_choice)}:
                config["functionCallingConfig"] = calling
        if config:
            body["toolConfig"] = config
        if request.parallel is not None:
            notes.dropped("parallel", f"{self.name} has no switch for it")
        settings = dict(extra.pop("generationConfig", {}))
        for key, name in _SETTINGS.items():
            value = getattr(request, name)
            if value is not None and value != ():
                settings[key] = list(value) if isinstance(value, tuple) else value
        if settings:
            body["generationConfig"] = settings
        return {**body, **extra}

    def _told_before(self, messages: Iterable[Message], notes: Notes) -> Iterator[Json]:
        before = True
        for message in messages:
            if message.role != "system":
                before = False
                continue
            if not before:
                notes.changed("system message", "it stands before the conversation now")
            for part in message.parts:
                if isinstance(part, TextPart):
                    yield {"text": part.text}
                else:
                    dropped(part, self.name, notes)

    def _declaration(self, tool: Offered) -> Json:
        made: Json = {"name": tool.name, "description": tool.description}
        if any(key not in _UNSAID and value not in ({}, [], False) for key, value in tool.schema.items()):
            made["parameters" if self.openapi else "parametersJsonSchema"] = tool.schema
        own = tool.definition.annotations.get(self.kind)
        return {**made, **own} if isinstance(own, Mapping) else made

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """One message, as the contents that say it; none for what stands in the system instruction."""
        return self._content(message, notes, unsigned=False)

    def _content(self, message: Message, notes: Notes, *, unsigned: bool) -> list[Json]:
        """`unsigned`: the first call has to be signed, whoever made it."""
        if message.role == "system":
            return []
        if message.role == "assistant":
            said = self._model_parts(message.parts, notes, unsigned=unsigned)
            return [{"role": "model", "parts": said}] if said else []
        results = [{"functionResponse": _result(part)} for part in message.parts if isinstance(part, ToolResult)]
        others = [part for part in message.parts if not isinstance(part, ToolResult)]
        contents: list[Json] = [{"role": "user", "parts": results}] if results else []
        if others or not results:
            contents.append({"role": "user", "parts": self._user_parts(others, notes) or [{"text": ""}]})
        return contents

    def _user_parts(self, parts: Iterable[Part], notes: Notes) -> list[Json]:
        made: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text):
                    made.append({"text": text})
                case ImagePart():
                    made.append(_media(part))
                case OpaquePart(data, self.kind):
                    made.append(data)
                case _:
                    dropped(part, self.name, notes)
        return made

    def _model_parts(
        self, parts: Sequence[Part], notes: Notes, *, unsigned: bool = False, own_ids: bool = False
    ) -> list[Json]:
        """What the model said; `own_ids`: with the ids of calls that Gemini did not give."""
        made: list[Json] = []
        signer = Signer()
        if any(isinstance(part, ReasoningPart) and part.signature and part.provider == self.kind for part in parts):
            unsigned = False
        for part in parts:
            match part:
                case TextPart(text):
                    made += [signer.signed({"text": text})] if text else []
                case ToolCall():
                    if unsigned:
                        made += signer.reasoning(ReasoningPart("", _UNSIGNED, self.kind))
                        notes.changed(f"call {part.id}", "it has no thought signature: the one that is not checked is")
                        unsigned = False
                    made.append(signer.signed({"functionCall": write_call(part, own_ids=own_ids)}))
                case ReasoningPart(provider=provider) if provider in ("", self.kind):
                    made += signer.reasoning(part)
                case OpaquePart(data, self.kind):
                    made += [*signer.left(), data]
                case _:
                    dropped(part, self.name, notes)
        return [*made, *signer.left()]

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """What a body asks for."""
        body = camel(body)
        tools: list[ToolDefinition] = []
        others: list[Mapping[str, Any]] = []
        for tool in listed(body.get("tools")):
            tool = camel(tool)
            tools += [self._definition(camel(one)) for one in listed(tool.pop("functionDeclarations", None))]
            if tool:
                others.append(tool)
        config, settings = camel(body.get("toolConfig")), camel(body.get("generationConfig"))
        calling = camel(config.pop("functionCallingConfig", None))
        choice = _read_choice(calling)
        if calling:
            config["functionCallingConfig"] = calling
        stop = settings.get("stopSequences")
        extra = {key: value for key, value in body.items() if key not in _READ}
        rest = {key: value for key, value in settings.items() if key not in _SETTINGS}
        extra |= {key: value for key, value in (("toolConfig", config), ("generationConfig", rest)) if value}
        return ChatRequest(
            messages=(*self._read_told(body.get("systemInstruction")), *settled(self._read_contents(body["contents"]))),
            tools=tuple(tools),
            tool_choice=choice,
            model=str(body.get("model") or ""),
            stream=bool(body.get("stream")),
            max_tokens=settings.get("maxOutputTokens"),
            temperature=settings.get("temperature"),
            top_p=settings.get("topP"),
            stop=(stop,) if isinstance(stop, str) else tuple(stop or ()),
            provider=self.kind,
            extra=extra,
            provider_tools=tuple(others),
        )

    def _definition(self, declared: Json) -> ToolDefinition:
        description, rest = declared.get("description"), declared.keys() - _DECLARED
        key = next((key for key in _SCHEMAS if isinstance(declared.get(key), Mapping) and declared[key]), None)
        schema: Json = {"type": "object", "properties": {}}
        if key is not None:
            schema = _plain(declared[key]) if key == "parameters" else dict(declared[key])
        return ToolDefinition(
            declared["name"],
            description if isinstance(description, str) else "",
            schema,
            annotations={self.kind: {key: declared[key] for key in sorted(rest)}} if rest else {},
        )

    def _read_told(self, told: Any) -> Iterator[Message]:
        if told:
            parts = [{"text": told}] if isinstance(told, str) else listed(told.get("parts"))
            yield Message("system", tuple(TextPart(str(part["text"])) for part in parts))

    def _read_contents(self, contents: Any) -> Iterator[Message]:
        for content in listed(contents):
            parts = [(part, camel(part)) for part in listed(content.get("parts"))]
            if content.get("role") == "model":
                yield Message("assistant", tuple(made for raw, part in parts for made in self._read_part(raw, part)))
                continue
            told: list[Part] = []
            for raw, part in parts:
                if isinstance(answer := part.get("functionResponse"), Mapping):
                    result, media = self._read_result(camel(answer))
                    told += [result, *media]
                else:
                    told += self._read_part(raw, part)
            yield Message("user", tuple(told))

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
            yield _image(part) or OpaquePart(dict(raw), self.kind)

    def _read_result(self, answer: Json) -> tuple[ToolResult, list[Part]]:
        """A result, and what came with it that a result has no place for."""
        images: list[ImagePart] = []
        others: list[Part] = []
        for raw in listed(answer.get("parts")):
            if (image := _image(camel(raw))) is not None:
                images.append(image)
            else:
                others.append(OpaquePart(dict(raw), self.kind))
        value, error = answer.get("response"), None
        if isinstance(value, Mapping) and set(value) in _WRAPPED:
            (key, value), *_ = value.items()
            if key == "error":
                value, error = None, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        call_id, name = str(answer.get("id") or ""), str(answer.get("name") or "")
        return ToolResult(call_id, name, value, error, tuple(images)), others

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, assembler: Assembler) -> None:
        """Tell the assembler what a response says."""
        StreamReader(self.kind, assembler).answer(response, whole=True)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """The body of a response."""
        parts = self._model_parts(response.parts, notes, own_ids=True)
        return answer_of(head, parts, response.finish_reason, response.usage or Usage())

    # -- streams -------------------------------------------------------------------------------------------------

    def framing(self) -> Framing:
        """Server-sent events, or one JSON array."""
        return ServerSentEvents()

    def stream_reader(self, assembler: Assembler) -> Callable[[Frame], None]:
        """What reads the responses of one stream."""
        reader = StreamReader(self.kind, assembler)
        return lambda frame: reader.answer(frame.value)

    def write_error(self, message: str) -> bytes:
        """How a stream says that it failed."""
        return sse({"error": {"code": 500, "message": message, "status": "INTERNAL"}})

    def write_stream(self, events: Iterable[Event], head: Head) -> Iterator[bytes]:
        """The responses of a stream, each call whole in one of them."""
        signer = Signer()
        usage: Usage | None = None
        reason = FinishReason.STOP
        for event in in_order(events):
            parts: list[Json] = []
            match event:
                case ContentDelta(text):
                    parts = [signer.signed({"text": text})]
                case ReasoningDelta(text):
                    parts = [{"text": text, "thought": True}]
                case ReasoningEnd(part) if part.provider == self.kind and part.signature:
                    parts = signer.reasoning(part, told=True)
                case CallEnd(_, call, True):
                    parts = [signer.signed({"functionCall": write_call(call, own_ids=True)})]
                case CallEnd():
                    signer = Signer()
                case Passed(OpaquePart(data, self.kind)):
                    parts = [*signer.left(), data]
                case UsageCounted(usage):
                    pass
                case Finish(reason):
                    pass
                case _:  # what a call consists of, a problem: nothing stands for them
                    pass
            if parts:
                yield sse(answer_of(head, parts))
        yield sse(answer_of(head, signer.left() or [{"text": ""}], reason, usage))


def _write_choice(choice: ToolChoice) -> Json:
    if choice == ToolChoice():
        return {}
    if choice.mode == "none":
        return {"mode": "NONE"}
    mode = "ANY" if choice.mode == "required" else "VALIDATED"
    return {"mode": mode, "allowedFunctionNames": list(choice.names)} if choice.names else {"mode": mode}


def _read_choice(calling: Json) -> ToolChoice:
    """The choice; what it says is taken out."""
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
    made: Json = {"id": result.call_id} if is_theirs(result.call_id) else {}
    made |= {"name": result.tool_name, "response": response}
    if result.images:
        made["parts"] = list(map(_media, result.images))
    return made


def _has_references(value: Any) -> bool:
    """Whether `$ref` is a key anywhere, which Gemini would follow."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, Mapping):
            if "$ref" in one:
                return True
            todo += one.values()
        elif isinstance(one, list | tuple):
            todo += one
    return False


def _media(image: ImagePart) -> Json:
    if image.url:
        return {"fileData": {"fileUri": image.url, **({"mimeType": image.media_type} if image.media_type else {})}}
    return {"inlineData": {"mimeType": image.media_type or "image/png", "data": image.data}}


def _image(part: Json) -> ImagePart | None:
    """The image that a part is, if it is one and nothing else."""
    key = next((key for key in ("inlineData", "fileData") if isinstance(part.get(key), Mapping)), "")
    blob = camel(part[key]) if key else {}
    kind = str(blob.get("mimeType") or "")
    if len(part) > 1 or not kind.startswith("image/"):
        return None
    return ImagePart(str(blob.get("data") or ""), kind, str(blob.get("fileUri") or ""))


_TYPES = ("", "string", "number", "integer", "boolean", "array", "object")
"""Types by the numbers that clients of the protocol-buffer interface write."""


def _plain(schema: Any, depth: int = 0) -> Any:
    """A schema of the OpenAPI subset as JSON Schema: types in small letters, `null` as a type, counts as numbers."""
    if depth > MAX_DEPTH:
        raise DefinitionError("the schema of a tool is nested too deeply")
    if not isinstance(schema, Mapping):
        return schema
    made: Json = {}
    for key, value in camel(schema).items():
        match key, value:
            case "type", str():
                made[key] = value.lower()
            case "type", int() if 0 < value < len(_TYPES):
                made[key] = _TYPES[value]
            case "properties", Mapping():
                made[key] = {name: _plain(one, depth + 1) for name, one in value.items()}
            case "anyOf", list():
                made[key] = [_plain(one, depth + 1) for one in value]
            case (("items" | "additionalProperties"), Mapping()):
                made[key] = _plain(value, depth + 1)
            case (("minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties"), str()):
                made[key] = int(value) if re.fullmatch(r"[0-9]{1,18}", value) else value
            case _:
                made[key] = value
    if made.get("nullable") is True and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
        del made["nullable"]
        if isinstance(made.get("enum"), list) and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
    return made


APIS = (Gemini(), Gemini("gemini_openapi", openapi=True))

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

from toolwire.apis.assembly import Assembler
from toolwire.apis.base import Head, Json, Offered, ProviderApi, dropped, in_order, object_of
from toolwire.apis.finishing import read_reason, write_reason
from toolwire.apis.framing import Frame, Framing, ServerSentEvents, sse
from toolwire.apis.lowering import JSON_SCHEMA, OPENAPI
from toolwire.apis.naming import Alphabet
from toolwire.conversation import ChatRequest, Mode, Notes, ToolChoice
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
    arguments_text,
)
from toolwire.jsontext import MAX_DEPTH
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
        extra = dict(request.extra)
        body: Json = {}
        if told := list(_told(request.messages, notes)):
            body["systemInstruction"] = {"parts": told}
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
        signer = _Signer()
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
                    made.append(signer.signed({"functionCall": _call(part, own_ids=own_ids)}))
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
        body = _camel(body)
        tools: list[ToolDefinition] = []
        others: list[Mapping[str, Any]] = []
        for tool in _listed(body.get("tools")):
            tool = _camel(tool)
            tools += [self._definition(_camel(one)) for one in _listed(tool.pop("functionDeclarations", None))]
            if tool:
                others.append(tool)
        config, settings = _camel(body.get("toolConfig")), _camel(body.get("generationConfig"))
        calling = _camel(config.pop("functionCallingConfig", None))
        choice = _read_choice(calling)
        if calling:
            config["functionCallingConfig"] = calling
        stop = settings.get("stopSequences")
        extra = {key: value for key, value in body.items() if key not in _READ}
        rest = {key: value for key, value in settings.items() if key not in _SETTINGS}
        extra |= {key: value for key, value in (("toolConfig", config), ("generationConfig", rest)) if value}
        return ChatRequest(
            messages=(*self._read_told(body.get("systemInstruction")), *self._read_contents(body["contents"])),
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
            parts = [{"text": told}] if isinstance(told, str) else _listed(told.get("parts"))
            yield Message("system", tuple(TextPart(str(part["text"])) for part in parts))

    def _read_contents(self, contents: Any) -> Iterator[Message]:
        for content in _listed(contents):
            parts = [(part, _camel(part)) for part in _listed(content.get("parts"))]
            if content.get("role") == "model":
                yield Message("assistant", tuple(made for raw, part in parts for made in self._read_part(raw, part)))
                continue
            results: list[Part] = []
            others: list[Part] = []
            for raw, part in parts:
                if isinstance(answer := part.get("functionResponse"), Mapping):
                    result, media = self._read_result(_camel(answer))
                    results.append(result)
                    others += media
                else:
                    others += self._read_part(raw, part)
            if results:
                yield Message("tool", tuple(results))
            if others or not results:
                yield Message("user", tuple(others))

    def _read_part(self, raw: Mapping[str, Any], part: Json) -> Iterator[Part]:
        signature = str(part.get("thoughtSignature") or "")
        if isinstance(text := part.get("text"), str):
            if part.get("thought"):
                yield ReasoningPart(text, signature, self.kind if signature else "")
                return
            if signature:
                yield _signature(signature, text)
            if text:
                yield TextPart(text)
        elif isinstance(call := part.get("functionCall"), Mapping):
            if signature:
                yield _signature(signature)
            yield ToolCall(str(call["name"]), object_of(call.get("args")), str(call.get("id") or ""), format=self.kind)
        else:
            yield _image(part) or OpaquePart(dict(raw), self.kind)

    def _read_result(self, answer: Json) -> tuple[ToolResult, list[Part]]:
        """A result, and what came with it that a result has no place for."""
        images: list[ImagePart] = []
        others: list[Part] = []
        for raw in _listed(answer.get("parts")):
            if (image := _image(_camel(raw))) is not None:
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
        _Reader(self.kind, assembler).answer(response, whole=True)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """The body of a response."""
        parts = self._model_parts(response.parts, notes, own_ids=True)
        return _answer(head, parts, response.finish_reason, response.usage or Usage())

    # -- streams -------------------------------------------------------------------------------------------------

    def framing(self) -> Framing:
        """Server-sent events, or one JSON array."""
        return ServerSentEvents()

    def stream_reader(self, assembler: Assembler) -> Callable[[Frame], None]:
        """What reads the responses of one stream."""
        reader = _Reader(self.kind, assembler)
        return lambda frame: reader.answer(frame.value)

    def write_stream(self, events: Iterable[Event], head: Head) -> Iterator[bytes]:
        """The responses of a stream, each call whole in one of them."""
        signer = _Signer()
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
                    parts = [signer.signed({"functionCall": _call(call, own_ids=True)})]
                case CallEnd():
                    signer = _Signer()
                case Passed(OpaquePart(data, self.kind)):
                    parts = [*signer.left(), data]
                case UsageCounted(usage):
                    pass
                case Finish(reason):
                    pass
                case _:  # what a call consists of, a problem: nothing stands for them
                    pass
            if parts:
                yield sse(_answer(head, parts))
        yield sse(_answer(head, signer.left() or [{"text": ""}], reason, usage))


class _Signer:
    """Puts signatures on the parts that they belong to."""

    def __init__(self) -> None:
        self._signature = ""

    def reasoning(self, part: ReasoningPart, *, told: bool = False) -> list[Json]:
        """What stands for reasoning; `told`: its text was written already."""
        made = self.left()
        if part.data is not None:
            made.append(part.data)
        elif part.text:
            said: Json = {"text": "" if told else part.text, "thought": True}
            made.append({**said, "thoughtSignature": part.signature} if part.signature else said)
        else:
            self._signature = part.signature
        return made

    def signed(self, part: Json) -> Json:
        """The part that follows."""
        made = {**part, "thoughtSignature": self._signature} if self._signature else part
        self._signature = ""
        return made

    def left(self) -> list[Json]:
        """A signature that nothing follows."""
        return [self.signed({"text": ""})] if self._signature else []


class _Reader:
    """Reads a response, or those of one stream."""

    def __init__(self, kind: str, assembler: Assembler) -> None:
        self._kind = kind
        self._assembler = assembler
        self._thought: list[str] = []  # of which the end has not come
        self._pieces: _Pieces | None = None

    def answer(self, response: Mapping[str, Any], *, whole: bool = False) -> None:
        """One response; `whole`: every part of it is complete."""
        response = _camel(response)
        assembler = self._assembler
        if error := response.get("error"):
            assembler.reason = FinishReason.ERROR
            said = error.get("message") if isinstance(error, Mapping) else None
            assembler.problem("provider_error", str(said or error))
            return
        if _camel(response.get("promptFeedback")).get("blockReason"):
            assembler.reason = FinishReason.CONTENT_FILTER
        first = next((one for one in response.get("candidates") or () if not one.get("index")), None)
        if first is not None:
            candidate = _camel(first)
            for part in (candidate.get("content") or {}).get("parts") or ():
                self._part(part, _camel(part), whole=whole)
            self._finish(candidate)
        _read_usage(_camel(response.get("usageMetadata")), assembler)

    def _part(self, raw: Mapping[str, Any], part: Json, *, whole: bool) -> None:
        assembler = self._assembler
        signature = str(part.get("thoughtSignature") or "")
        text = part.get("text")
        if isinstance(text, str) and part.get("thought"):
            self._thought.append(text)
            assembler.reasoning(text)
            if signature or whole:
                self._thought_over(signature)
            return
        self._thought_over()
        call = part.get("functionCall")
        if signature and (isinstance(text, str) or isinstance(call, Mapping)):
            assembler.reasoned(_signature(signature, text))
        if isinstance(call, Mapping):
            self._call(_camel(call))
        elif isinstance(text, str):
            assembler.text(text)
        elif raw.keys() - {"thoughtSignature"}:
            assembler.passed(raw)

    def _thought_over(self, signature: str = "") -> None:
        if self._thought:
            text = _sound("".join(self._thought))
            self._assembler.reasoned(ReasoningPart(text, signature, self._kind if signature else ""))
            self._thought.clear()

    def _call(self, call: Json) -> None:
        """A whole call, or one piece of a call that comes in pieces."""
        assembler = self._assembler
        goes_on, given = bool(call.get("willContinue")), call.get("partialArgs")
        pieces = self._pieces
        if call.get("name") and pieces is not None:
            self._pieces = None
            pieces.end(assembler)
            pieces = None
        if pieces is None:
            if not goes_on and not given:
                assembler.call(call.get("name"), call.get("args"), call.get("id"))
                return
            self._pieces = pieces = _Pieces(object_of(call.get("args")))
            assembler.begin(pieces, call.get("name"), call.get("id"))
            assembler.arguments(pieces, "{")  # so that a call whose end never comes is no complete one
        else:
            pieces.value |= object_of(call.get("args"))
        if not goes_on:
            self._pieces = None
        pieces.add(given or ())
        if not goes_on:
            pieces.end(assembler)

    def _finish(self, candidate: Json) -> None:
        word = candidate.get("finishReason")
        reason = read_reason(self._kind, word)
        if reason is None:
            return
        assembler = self._assembler
        assembler.reason = reason
        if word == "MALFORMED_FUNCTION_CALL" or (word == "UNEXPECTED_TOOL_CALL" and not assembler.calls):
            said = str(candidate.get("finishMessage") or "")
            assembler.problem("malformed", f"the model's call could not be read by its provider: {word}", said)


class _Pieces:
    """The arguments of a call that come in pieces, each with the path of its place."""

    def __init__(self, value: Json) -> None:
        self.value = value
        self._text: dict[str, list[str]] = {}  # by the path of a text that goes on
        self._broken = False

    def add(self, pieces: Iterable[Mapping[str, Any]]) -> None:
        """More of them."""
        self._broken, broken = True, self._broken
        for piece in map(_camel, pieces):
            path = str(piece["jsonPath"])
            kind = next((kind for kind in ("stringValue", "numberValue", "boolValue") if kind in piece), "")
            if kind == "stringValue":
                begun = self._text.setdefault(path, [])
                begun.append(str(piece[kind]))
                if piece.get("willContinue"):
                    if len(begun) == 1:
                        _put(self.value, path, begun[0])
                    continue
                _put(self.value, path, "".join(self._text.pop(path)))
            elif kind or "nullValue" in piece:
                _put(self.value, path, piece[kind] if kind else None)
        self._broken = broken

    def end(self, assembler: Assembler) -> None:
        """There are no more."""
        if not self._broken and not self._text:
            assembler.arguments(self, arguments_text(self.value)[1:])
        assembler.end(self)


_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\[(['"])(.*?)\3\]""")


def _put(root: Json, path: str, value: Any) -> None:
    """Put a value where a JSON path says.

    Raises:
        ValueError: there is no such place.
    """
    steps: list[str | int] = []
    pos = 1
    while path.startswith("$") and (match := _STEP.match(path, pos)):
        steps.append(int(match[2]) if match[2] else match[1] or match[4] or "")
        pos = match.end()
    if not steps or pos != len(path) or len(steps) > MAX_DEPTH:
        raise ValueError(f"{path!r:.80} is no path")
    node: Any = root
    for at, step in enumerate(steps, 1):
        last = at == len(steps)
        fresh: Any = value if last else [] if isinstance(steps[at], int) else {}
        if isinstance(step, str) and isinstance(node, dict):
            node[step] = fresh if last else node.get(step, fresh)
        elif isinstance(step, int) and isinstance(node, list) and step <= len(node):
            node[step:] = [fresh if last else node[step] if step < len(node) else fresh, *node[step + 1 :]]
        else:
            raise ValueError(f"{path!r:.80} leads nowhere")
        node = node[step]


def _camel(data: Any) -> Json:
    """An object with its names in camel case; both are taken."""
    if data is None:
        return {}
    return {re.sub(r"_([a-z])", lambda match: match[1].upper(), key): value for key, value in data.items()}


def _listed(value: Any) -> list[Any]:
    """The items of a list, which may be left out where there is one."""
    return [value] if isinstance(value, Mapping) else list(value or ())


def _sound(text: str) -> str:
    """Text without halves of characters."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _signature(signature: str, text: Any = None) -> ReasoningPart:
    """A signature as it stands before the part that it is on; one on empty text is a part of its own."""
    return ReasoningPart("", signature, "gemini", {"text": "", "thoughtSignature": signature} if text == "" else None)


def _told(messages: Iterable[Message], notes: Notes) -> Iterator[Json]:
    before = True
    for message in messages:
        if message.role != "system":
            before = False
            continue
        if not before:
            notes.changed("system message", "it stands before the conversation now")
        yield from ({"text": part.text} for part in message.parts if isinstance(part, TextPart))


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


def _call(call: ToolCall, *, own_ids: bool) -> Json:
    made: Json = {"name": call.name, "args": call.arguments}
    return {"id": call.id, **made} if call.id and (own_ids or _is_theirs(call.id)) else made


def _is_theirs(id: str) -> bool:
    """Whether an id may be sent: those that were made up here begin like this."""
    return bool(id) and not id.startswith("call_")


def _result(result: ToolResult) -> Json:
    value = result.result
    if result.error is not None:
        response: Any = {"error": result.error}
    elif _has_references(value):
        response = {"result": result.text}
    else:
        response = value if isinstance(value, dict) and set(value) not in _WRAPPED else {"result": value}
    made: Json = {"id": result.call_id} if _is_theirs(result.call_id) else {}
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
    blob = _camel(part[key]) if key else {}
    kind = str(blob.get("mimeType") or "")
    if len(part) > 1 or not kind.startswith("image/"):
        return None
    return ImagePart(str(blob.get("data") or ""), kind, str(blob.get("fileUri") or ""))


def _plain(schema: Any, depth: int = 0) -> Any:
    """A schema of the OpenAPI subset as JSON Schema: types in small letters, `null` as a type, counts as numbers."""
    if depth > MAX_DEPTH:
        raise DefinitionError("the schema of a tool is nested too deeply")
    if not isinstance(schema, Mapping):
        return schema
    made: Json = {}
    for key, value in _camel(schema).items():
        match key, value:
            case "type", str():
                made[key] = value.lower()
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


def _read_usage(usage: Json, assembler: Assembler) -> None:
    if not usage.keys() & {"promptTokenCount", "candidatesTokenCount"}:
        return
    thoughts = int(usage.get("thoughtsTokenCount") or 0)
    assembler.usage(
        Usage(
            int(usage.get("promptTokenCount") or 0),
            int(usage.get("candidatesTokenCount") or 0) + thoughts,
            int(usage.get("cachedContentTokenCount") or 0),
            thoughts,
        )
    )


def _answer(head: Head, parts: list[Json], reason: FinishReason | None = None, usage: Usage | None = None) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = write_reason("gemini", reason)
    made: Json = {"candidates": [candidate]}
    if usage is not None:
        made["usageMetadata"] = {
            "promptTokenCount": usage.input_tokens,
            "candidatesTokenCount": max(usage.output_tokens - usage.reasoning_tokens, 0),
            "thoughtsTokenCount": usage.reasoning_tokens,
            "cachedContentTokenCount": usage.cached_tokens,
            "totalTokenCount": usage.input_tokens + usage.output_tokens,
        }
    return {**made, "modelVersion": head.model, "responseId": head.id}


APIS = (Gemini(), Gemini("gemini_openapi", openapi=True))

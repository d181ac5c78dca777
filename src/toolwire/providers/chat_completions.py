"""Chat Completions: the shape that OpenAI began and most others took over, each with facts of its own.

Arguments are JSON text; results are messages of the role `tool`, without a flag for errors; images of a result go
into a message of the user behind all results of the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from toolwire.providers.base import (
    Head,
    Json,
    Offered,
    ProviderApi,
    arguments_of,
    dropped,
    object_of,
    text_of,
)
from toolwire.providers.chat_parts import (
    content_blocks,
    detail,
    failed,
    is_custom,
    is_signature,
    read_usage,
    reasoning_parts,
    signatures_of,
    thinking_part,
    with_signature,
    write_usage,
)
from toolwire.providers.chat_stream import StreamReader, StreamWriter
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import Frame, Framing, ServerSentEvents
from toolwire.providers.identifiers import WORD_64, Alphabet
from toolwire.providers.request import ChatRequest, Mode, Notes, ToolChoice, joined, note_foreign, settled, told
from toolwire.providers.response_builder import Assembler
from toolwire.providers.schema_dialects import JSON_SCHEMA, STRICT, Dialect
from toolwire.tools import ToolDefinition, as_definition

_COMMON = ("temperature", "top_p")
_READ = frozenset(
    (*_COMMON, "messages", "tools", "tool_choice", "parallel_tool_calls", "model", "stream", "stop", "max_tokens",
     "max_completion_tokens", "functions", "function_call")
)  # fmt: skip
FREE_INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""The arguments of a tool whose input is text and no JSON."""

_VISIBLE_40 = Alphabet(r"\x21-\x7e", 40)


@dataclass(frozen=True, slots=True)
class Facts:
    """What one API of this shape does in its own way.

    Attributes:
        ids: what it takes as the id of a call.
        strict: whether it has strict mode.
        custom: whether it has tools whose input is text and no JSON.
        reasoning: the member that carries reasoning in a request; "" if it takes none back.
        max_tokens: what it calls the limit of an answer.
        required: what it calls the choice that some tool has to be called.
        whole_calls: a stream gives each call in one piece.
        seals: the providers whose signed reasoning it takes back.
    """

    ids: Alphabet = _VISIBLE_40
    strict: bool = True
    custom: bool = True
    reasoning: str = "reasoning_content"
    max_tokens: str = "max_tokens"
    required: str = "required"
    whole_calls: bool = False
    seals: frozenset[str] = frozenset()


class ChatCompletions(ProviderApi):
    """An API of this shape."""

    kind = "openai_chat"
    names = WORD_64
    dialect: Dialect = JSON_SCHEMA

    def __init__(self, name: str = "", facts: Facts = Facts()) -> None:
        super().__init__(name)
        self.facts = facts
        self.ids = facts.ids
        self.strict_dialect = STRICT if facts.strict else None

    # -- requests ------------------------------------------------------------------------------------------------

    def pair(self, request: ChatRequest, notes: Notes) -> tuple[Message, ...]:
        """Calls and results paired, the results right behind the message that holds their calls."""
        return joined(super().pair(request, notes))

    def write_request(self, request: ChatRequest, tools: Sequence[Offered], notes: Notes) -> Json:
        """The body."""
        note_foreign(request, self.kind, notes)
        body: Json = {"model": request.model} if request.model else {}
        custom = frozenset(tool.name for tool in tools if self._is_free(tool))
        body["messages"] = [_as_custom(one, custom) for one in self.write_results(request.messages, notes)]
        listed = [self._tool(tool) for tool in tools] + [dict(tool) for tool in request.provider_tools]
        if listed:
            body["tools"] = listed
            choice = request.tool_choice
            if choice != ToolChoice():
                body["tool_choice"] = self._write_choice(choice, custom, notes)
            if request.parallel is not None:
                body["parallel_tool_calls"] = request.parallel
        if request.stream:
            body["stream"] = True
        if request.max_tokens is not None:
            body[self.facts.max_tokens] = request.max_tokens
        for key in _COMMON:
            if (value := getattr(request, key)) is not None:
                body[key] = value
        if request.stop:
            body["stop"] = list(request.stop)
        return {**body, **request.extra}

    def _tool(self, tool: Offered) -> Json:
        if self._is_free(tool):
            custom: Json = {"name": tool.name, "description": tool.description, **tool.definition.annotations["custom"]}
            format = custom.get("format")
            if isinstance(format, Mapping) and format.get("type") == "grammar" and "grammar" not in format:
                inner = {key: value for key, value in format.items() if key != "type"}  # as Responses has it, flat
                custom["format"] = {"type": "grammar", "grammar": inner}
            return {"type": "custom", "custom": custom}
        function: Json = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        if tool.strict is not None:
            function["strict"] = tool.strict
        return {"type": "function", "function": function}

    def _is_free(self, tool: Offered) -> bool:
        """Whether a tool is offered as one whose input is text and no JSON."""
        return self.facts.custom and isinstance(tool.definition.annotations.get("custom"), Mapping)

    def _write_choice(self, choice: ToolChoice, custom: frozenset[str], notes: Notes) -> Any:
        listed: list[Json] = []
        for name in choice.names:
            kind = "custom" if name in custom else "function"
            listed.append({"type": kind, kind: {"name": name}})
        if choice.name:
            return listed[0]
        if choice.names and choice.mode != "none":
            if self.facts.strict:
                mode = "required" if choice.mode == "required" else "auto"
                return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}
            self.chooses_from_all(choice, notes)
        return self.facts.required if choice.mode == "required" else choice.mode

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """One message, as those that say it."""
        match message.role:
            case "assistant":
                return [self._assistant(message.parts, notes)]
            case "system":
                text = told(message, self.name, notes)
                return [{"role": "system", "content": self._marked(message.parts) or text}]
        made: list[Json] = []
        pictures: list[Json] = []
        others: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                made.append(self._result(part, pictures))
            else:
                others.append(part)
        if pictures:
            made.append({"role": "user", "content": pictures})
        if others or not message.parts:
            made.append({"role": "user", "content": self._content(others, notes)})
        return made

    def _result(self, result: ToolResult, pictures: list[Json]) -> Json:
        text = result.told
        content = text
        if result.images:
            shown = [{"type": "image_url", "image_url": {"url": image.as_url}} for image in result.images]
            if result.result is None and result.success:
                content = "The image follows."
            pictures.append({"type": "text", "text": f"Images of the result of {result.tool_name}:"})
            pictures += shown
        return {"role": "tool", "tool_call_id": result.call_id, "content": content}

    def _content(self, parts: Sequence[Part], notes: Notes) -> Any:
        made: list[Json] = []
        for part in parts:
            match part:
                case TextPart():
                    made.append(self._text(part))
                case ImagePart():
                    made.append({"type": "image_url", "image_url": {"url": part.as_url}})
                case OpaquePart(data, provider) if provider == self.kind:
                    made.append(data)
                case _:
                    dropped(part, self.name, notes)
        if len(made) == 1 and made[0].keys() == {"type", "text"}:
            return made[0]["text"]
        return made or ""

    def _text(self, part: TextPart) -> Json:
        own = part.extra.data if part.extra is not None and part.extra.provider == self.kind else {}
        return {"type": "text", "text": part.text, **own}

    def _marked(self, parts: Sequence[Part]) -> list[Json]:
        """The text as blocks, if one of them says more than its text: a mark to cache."""
        made = [self._text(part) for part in parts if isinstance(part, TextPart)]
        return made if any(len(block) > 2 for block in made) else []

    def _assistant(self, parts: Sequence[Part], notes: Notes) -> Json:
        made: Json = {"role": "assistant", "content": self._marked(parts) or text_of(parts) or None}
        calls: list[Json] = []
        reasoning: list[str] = []
        details: list[Json] = []
        signature: ReasoningPart | None = None  # that the next call carries
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
                        self._signed(part, notes)
                case TextPart():
                    pass
                case _:
                    dropped(part, self.name, notes)
        if signature is not None:
            self._signed(signature, notes)
        if reasoning:
            made[self.facts.reasoning] = "".join(reasoning)
        if details:
            made["reasoning_details"] = details
        if calls:
            made["tool_calls"] = calls
        elif made["content"] is None:
            made["content"] = ""
        return made

    def _signed(self, part: ReasoningPart, notes: Notes) -> None:
        """Reasoning that it has no place for."""
        dropped(part, self.name, notes)

    def write_call(self, call: ToolCall) -> Json:
        """A call, in a message or a response."""
        if call.free and self.facts.custom:
            input = str(call.arguments.get("input", ""))
            return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": input}}
        return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_of(call)}}

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """What a body asks for."""
        tools: list[ToolDefinition] = []
        others: list[Mapping[str, Any]] = []
        listed = [
            *(body.get("tools") or ()),
            *({"type": "function", "function": f} for f in body.get("functions") or ()),
        ]
        for tool in listed:
            if isinstance(tool.get("custom"), Mapping) and tool.get("type") == "custom":
                tools.append(_custom(tool["custom"]))
            elif "function" in tool:
                tools.append(as_definition(tool))
            else:
                others.append(tool)
        limit = body.get("max_completion_tokens")
        stop = body.get("stop")
        return ChatRequest(
            messages=tuple(settled(self._read_messages(body["messages"]))),
            tools=tuple(tools),
            tool_choice=_read_choice(body.get("tool_choice", body.get("function_call"))),
            parallel=body.get("parallel_tool_calls"),
            model=body.get("model") or "",
            stream=bool(body.get("stream")),
            max_tokens=limit if limit is not None else body.get("max_tokens"),
            temperature=body.get("temperature"),
            top_p=body.get("top_p"),
            stop=(stop,) if isinstance(stop, str) else tuple(stop or ()),
            provider=self.kind,
            extra={key: value for key, value in body.items() if key not in _READ},
            provider_tools=tuple(others),
        )

    def _read_messages(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
        for message in messages:
            role = message["role"]
            if role in ("tool", "function"):
                call_id, name = str(message.get("tool_call_id") or ""), str(message.get("name") or "")
                yield Message("tool", (_read_result(call_id, name, message.get("content")),))
                continue
            parts = tuple(self.read_parts(message))
            yield Message(
                "system" if role in ("system", "developer") else "assistant" if role == "assistant" else "user", parts
            )

    def read_parts(self, message: Mapping[str, Any]) -> Iterator[Part]:
        """The parts of a message that holds no result."""
        yield from (part for _, part in reasoning_parts(message))
        content = message.get("content")
        if isinstance(content, str):
            if content:
                yield TextPart(content)
        else:
            for block in content or ():
                yield from self._block(block)
        if isinstance(message.get("refusal"), str):
            yield TextPart(message["refusal"])
        for call in message.get("tool_calls") or ():
            yield from signatures_of(call)
            function = call.get("function") or {}
            if is_custom(call):
                custom = call["custom"]
                given, id = {"input": str(custom.get("input") or "")}, str(call.get("id") or "")
                yield ToolCall(str(custom["name"]), given, id, format=self.kind, free=True)
            else:
                arguments = object_of(function.get("arguments"))
                yield ToolCall(str(function["name"]), arguments, str(call.get("id") or ""), format=self.kind)
        if isinstance(legacy := message.get("function_call"), Mapping):
            yield ToolCall(str(legacy["name"]), object_of(legacy.get("arguments")), format=self.kind)

    def _block(self, block: Any) -> Iterator[Part]:
        if isinstance(block, str):
            yield TextPart(block)
            return
        match block.get("type"):
            case "text" | "refusal":
                rest = {key: value for key, value in block.items() if key not in ("type", "text", "refusal")}
                extra = OpaquePart(rest, self.kind) if rest else None
                yield TextPart(str(block.get("text", block.get("refusal", ""))), extra)
            case "image_url":
                image = block["image_url"]
                yield ImagePart(url=str(image["url"] if isinstance(image, Mapping) else image))
            case "thinking":
                yield thinking_part(block, self.kind)
            case _:
                yield OpaquePart(dict(block), self.kind)

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, assembler: Assembler) -> None:
        """Tell the assembler what a response says."""
        if failed(response, assembler):
            return
        choices = response.get("choices") or ()
        if choices:
            message = choices[0].get("message") or {}
            assembler.reason = read_reason(self.kind, choices[0].get("finish_reason"))
            self._reasoning(message, assembler)
            for block in content_blocks(message.get("content"), assembler):
                part = thinking_part(block, self.kind)
                assembler.reasoning(part.text)
                assembler.reasoned(part)
            assembler.text(message.get("refusal"))
            for call in message.get("tool_calls") or ():
                self.read_call(call, assembler)
            legacy = message.get("function_call")
            if isinstance(legacy, Mapping) and legacy.get("name"):
                assembler.call(legacy.get("name"), legacy.get("arguments"))
        read_usage(response.get("usage"), assembler)

    @staticmethod
    def _reasoning(message: Mapping[str, Any], assembler: Assembler) -> None:
        for shown, part in reasoning_parts(message):
            assembler.reasoning(shown)
            assembler.reasoned(part)

    @staticmethod
    def read_call(call: Mapping[str, Any], assembler: Assembler) -> None:
        """Tell the assembler of a call that came whole."""
        for part in signatures_of(call):
            assembler.reasoned(part)
        if is_custom(call):
            custom, key = call["custom"], object()
            assembler.begin(key, custom.get("name"), call.get("id"), free=True)
            assembler.arguments(key, custom.get("input"))
            assembler.end(key)
            return
        function = call.get("function") or {}
        assembler.call(function.get("name"), function.get("arguments"), call.get("id"))

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """The body of a response."""
        parts = response.parts
        message: Json = {"role": "assistant", "content": text_of(parts) or None, "refusal": None}
        calls: list[Json] = []
        details: list[Json] = []
        signature: ReasoningPart | None = None
        for part in parts:
            match part:
                case ToolCall():
                    if part.free and not self.facts.custom:
                        notes.changed(f"call {part.id}", "its input is text, and goes as the only argument")
                    calls.append(with_signature(self.write_call(part), signature))
                    signature = None
                case ReasoningPart() if is_signature(part):
                    signature = part
                case ReasoningPart():
                    if part.signature or part.data:
                        details.append(detail(part))
                case OpaquePart():
                    dropped(part, self.name, notes)
                case _:
                    pass
        if reasoning := "".join(part.text for part in parts if isinstance(part, ReasoningPart)):
            message["reasoning_content"] = reasoning
        if signature is not None:
            details.append(detail(signature))
        if details:
            message["reasoning_details"] = details
        if calls:
            message["tool_calls"] = calls
        elif message["content"] is None:
            message["content"] = ""
        reason = write_reason(self.kind, response.finish_reason)
        return {
            "id": f"chatcmpl-{head.id}",
            "object": "chat.completion",
            "created": head.created,
            "model": head.model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
            "usage": write_usage(response.usage or Usage()),
        }

    # -- streams -------------------------------------------------------------------------------------------------

    def framing(self) -> Framing:
        """Server-sent events."""
        return ServerSentEvents()

    def stream_reader(self, assembler: Assembler) -> Callable[[Frame], None]:
        """What reads the chunks of one stream."""
        return StreamReader(self.kind, assembler).read

    def reasoning_delta(self, text: str) -> Json:
        """More reasoning, as a stream says it."""
        return {"reasoning_content": text}

    def write_stream(self, events: Iterable[Event], head: Head) -> Iterator[bytes]:
        """The chunks of a stream."""
        facts = self.facts
        writer = StreamWriter(self.kind, head, self.reasoning_delta, whole_calls=facts.whole_calls, custom=facts.custom)
        return writer.write(events)


def _read_result(call_id: str, name: str, content: Any) -> ToolResult:
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
            image = block["image_url"]
            images.append(ImagePart(url=str(image["url"] if isinstance(image, Mapping) else image)))
        else:
            texts.append(arguments_of(ToolCall("", dict(block))))
    return ToolResult(call_id, name, "\n".join(texts), images=tuple(images))


def _as_custom(message: Json, custom: frozenset[str]) -> Json:
    """A message whose calls of tools that take text are written as such."""
    if not custom or "tool_calls" not in message:
        return message
    calls: list[Json] = []
    for call in message["tool_calls"]:
        function = call.get("function") or {}
        if function.get("name") in custom:
            input = object_of(function.get("arguments")).get("input", "")
            call = {"id": call["id"], "type": "custom", "custom": {"name": function["name"], "input": str(input)}}
        calls.append(call)
    return {**message, "tool_calls": calls}


def _custom(tool: Mapping[str, Any]) -> ToolDefinition:
    rest = {key: value for key, value in tool.items() if key not in ("name", "description")}
    return ToolDefinition(tool["name"], tool.get("description") or "", FREE_INPUT, annotations={"custom": rest})


def _read_choice(choice: Any) -> ToolChoice:
    if not isinstance(choice, Mapping):
        return ToolChoice.of(choice)
    if isinstance(allowed := choice.get("allowed_tools"), Mapping):
        mode: Mode = "required" if allowed.get("mode") == "required" else "auto"
        return ToolChoice(mode, tuple(_choice_name(one) for one in allowed.get("tools") or ()))
    return ToolChoice("required", (_choice_name(choice),))


def _choice_name(choice: Mapping[str, Any]) -> str:
    inner = choice.get("function") or choice.get("custom") or choice
    return str(inner["name"])

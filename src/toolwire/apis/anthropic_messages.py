"""Anthropic Messages: content in typed blocks, results first in the user's message behind the calls.

Thinking is signed, and goes back block by block as it came, before the calls that followed it. Of several blocks one
is open at a time.

Source: https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolwire.apis.assembly import Assembler
from toolwire.apis.base import (
    Head,
    Json,
    Offered,
    ProviderApi,
    dropped,
    in_order,
    object_of,
)
from toolwire.apis.finishing import read_reason, write_reason
from toolwire.apis.framing import Frame, Framing, ServerSentEvents, sse
from toolwire.apis.lowering import PLAIN_ROOT
from toolwire.apis.naming import WORD_64, Alphabet
from toolwire.conversation import ChatRequest, Mode, Notes, ToolChoice
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
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
from toolwire.tools import ToolDefinition, as_definition

MAX_TOKENS = 4096
"""Written where a request does not say how long the answer may be: the API wants it said."""

_READ = frozenset(
    ("messages", "system", "tools", "tool_choice", "model", "stream", "max_tokens", "temperature", "top_p",
     "stop_sequences")
)  # fmt: skip
_MODES: dict[Mode, str] = {"auto": "auto", "required": "any", "none": "none"}
_RAN_BY_PROVIDER = "server_tool_use"


class AnthropicMessages(ProviderApi):
    """The Messages API."""

    kind = "anthropic_messages"
    names = WORD_64
    ids = Alphabet("a-zA-Z0-9_-", 128)
    dialect = PLAIN_ROOT
    strict_dialect = PLAIN_ROOT

    # -- requests ------------------------------------------------------------------------------------------------

    def write_request(self, request: ChatRequest, tools: Sequence[Offered], notes: Notes) -> Json:
        """The body."""
        body: Json = {"model": request.model} if request.model else {}
        if request.max_tokens is None:
            notes.changed("max_tokens", f"{self.name} wants it said: {MAX_TOKENS}")
        body["max_tokens"] = MAX_TOKENS if request.max_tokens is None else request.max_tokens
        system, rest = self._split(request, notes)
        if system:
            body["system"] = self._system(system)
        body["messages"] = self.write_results(rest, notes)
        listed = [*map(self._tool, tools), *map(dict, request.provider_tools)]
        if listed:
            body["tools"] = listed
            if (choice := self._write_choice(request, notes)) is not None:
                body["tool_choice"] = choice
        if request.stream:
            body["stream"] = True
        for key in ("temperature", "top_p"):
            if (value := getattr(request, key)) is not None:
                body[key] = value
        if request.stop:
            body["stop_sequences"] = list(request.stop)
        return {**body, **request.extra}

    def _split(self, request: ChatRequest, notes: Notes) -> tuple[list[Message], list[Message]]:
        """What stands in `system`, and the messages. System messages in the middle stay there if they came so."""
        system: list[Message] = []
        rest: list[Message] = []
        for message in request.messages:
            if message.role == "system" and not (rest and request.provider == self.kind):
                if rest:
                    notes.changed("system", "a system message from the middle stands at the beginning now")
                system.append(message)
            else:
                rest.append(message)
        return system, rest

    @staticmethod
    def _system(messages: Sequence[Message]) -> Any:
        blocks: list[Json] = []
        for message in messages:
            for part in message.parts:
                match part:
                    case TextPart(text):
                        blocks.append({"type": "text", "text": text})
                    case OpaquePart(data):
                        blocks.append(data)
                    case _:
                        pass
        return blocks[0]["text"] if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} else blocks

    @staticmethod
    def _tool(tool: Offered) -> Json:
        made: Json = {"name": tool.name, "input_schema": tool.schema}
        if tool.description:
            made["description"] = tool.description
        if tool.strict is not None:
            made["strict"] = tool.strict
        return made

    def _write_choice(self, request: ChatRequest, notes: Notes) -> Json | None:
        choice = request.tool_choice
        made: Json = {"type": _MODES[choice.mode]}
        if choice.name:
            made = {"type": "tool", "name": choice.name}
        elif choice.names and choice.mode != "none":
            notes.changed("tool_choice", f"{self.name} cannot be told to choose from {', '.join(choice.names)} alone")
        if request.parallel is not None and choice.mode != "none":
            made["disable_parallel_tool_use"] = not request.parallel
        elif choice == ToolChoice():
            return None
        return made

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """One message; results stand first in it."""
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        blocks = [self._result(part) for part in results]
        for part in message.parts:
            if not isinstance(part, ToolResult):
                blocks += self._blocks(part, message.role, notes)
        role = "user" if message.role == "tool" else message.role
        if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
            return [{"role": role, "content": blocks[0]["text"]}]
        return [{"role": role, "content": blocks}] if blocks else []

    def write_results(self, messages: Sequence[Message], notes: Notes) -> list[Json]:
        """The messages, those of the same role in one: what the user says stands behind the results."""
        made: list[Json] = []
        for message in messages:
            for one in self.write_message(message, notes):
                if made and made[-1]["role"] == one["role"] == "user":
                    made[-1] = {"role": "user", "content": [*_listed(made[-1]), *_listed(one)]}
                else:
                    made.append(one)
        return made

    def _blocks(self, part: Part, role: str, notes: Notes) -> list[Json]:
        match part:
            case TextPart(text):
                return [{"type": "text", "text": text}] if text.strip() else []
            case ImagePart():
                return [_image(part)]
            case ToolCall():
                return [{"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}]
            case ReasoningPart(text, signature, self.kind, data) if role == "assistant" and (signature or data):
                return [data or {"type": "thinking", "thinking": text, "signature": signature}]
            case OpaquePart(data, self.kind):
                return [data]
            case _:
                dropped(part, self.name, notes)
                return []

    @staticmethod
    def _result(result: ToolResult) -> Json:
        made: Json = {"type": "tool_result", "tool_use_id": result.call_id}
        shown = [_image(image) for image in result.images]
        if result.success and result.result is None and shown:
            made["content"] = shown
        elif shown:
            made["content"] = [{"type": "text", "text": result.text}, *shown]
        else:
            made["content"] = result.text
        if not result.success:
            made["is_error"] = True
        return made

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """What a body asks for."""
        tools: list[ToolDefinition] = []
        others: list[Mapping[str, Any]] = []
        for tool in body.get("tools") or ():
            if "input_schema" in tool and tool.get("type") in (None, "custom"):
                tools.append(as_definition({key: value for key, value in tool.items() if key != "type"}))
            else:
                others.append(tool)
        choice = body.get("tool_choice") or {}
        single = choice.get("disable_parallel_tool_use")
        system = body.get("system")
        messages = [Message("system", tuple(self._read_blocks(system)))] if system else []
        return ChatRequest(
            messages=(*messages, *self._read_messages(body["messages"])),
            tools=tuple(tools),
            tool_choice=_read_choice(choice),
            parallel=None if single is None else not single,
            model=body.get("model") or "",
            stream=bool(body.get("stream")),
            max_tokens=body.get("max_tokens"),
            temperature=body.get("temperature"),
            top_p=body.get("top_p"),
            stop=tuple(body.get("stop_sequences") or ()),
            provider=self.kind,
            extra={key: value for key, value in body.items() if key not in _READ},
            provider_tools=tuple(others),
        )

    def _read_messages(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
        names: dict[str, str] = {}  # of calls, by id
        for message in messages:
            parts = list(self._read_blocks(message["content"]))
            names.update((part.id, part.name) for part in parts if isinstance(part, ToolCall))
            if message["role"] != "user":
                yield Message("assistant" if message["role"] == "assistant" else "system", tuple(parts))
                continue
            results = tuple(_named(part, names) for part in parts if isinstance(part, ToolResult))
            others = tuple(part for part in parts if not isinstance(part, ToolResult))
            if results:
                yield Message("tool", results)
            if others or not results:
                yield Message("user", others)

    def _read_blocks(self, content: Any) -> Iterator[Part]:
        if isinstance(content, str):
            yield TextPart(content)
            return
        for block in content:
            match block.get("type"):
                case "text" if block.keys() <= {"type", "text", "citations"} and not block.get("citations"):
                    yield TextPart(block["text"])
                case "image" if (image := _read_image(block)) is not None:
                    yield image
                case "tool_use":
                    yield ToolCall(block["name"], object_of(block.get("input")), block["id"], format=self.kind)
                case "tool_result":
                    yield _read_result(block)
                case "thinking" | "redacted_thinking":
                    yield _thinking(block)
                case _:
                    yield OpaquePart(dict(block), self.kind)

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, assembler: Assembler) -> None:
        """Tell the assembler what a response says."""
        if _failed(response, assembler):
            return
        assembler.reason = read_reason(self.kind, response.get("stop_reason"))
        for block in response["content"]:
            match block.get("type"):
                case "text":
                    assembler.text(block.get("text"))
                case "thinking" | "redacted_thinking":
                    part = _thinking(block)
                    assembler.reasoning(part.text)
                    assembler.reasoned(part)
                case "tool_use":
                    assembler.call(block.get("name"), block.get("input"), block.get("id"))
                case _:
                    assembler.passed(block)
        _usage(response.get("usage"), {}, assembler)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """The body of a response."""
        blocks = [block for part in response.parts for block in self._blocks(part, "assistant", notes)]
        body = _message(head, response.usage or Usage())
        return {**body, "content": blocks, "stop_reason": write_reason(self.kind, response.finish_reason)}

    # -- streams -------------------------------------------------------------------------------------------------

    def framing(self) -> Framing:
        """Server-sent events."""
        return ServerSentEvents()

    def stream_reader(self, assembler: Assembler) -> Callable[[Frame], None]:
        """What reads the events of one stream."""
        return _Reader(self.kind, assembler).read

    def write_error(self, message: str) -> bytes:
        """How a stream says that it failed."""
        return _event("error", error={"type": "api_error", "message": message})

    def write_stream(self, events: Iterable[Event], head: Head) -> Iterator[bytes]:
        """The events of a stream: blocks one after another, each of one type."""
        return _Writer(self.kind, head).write(in_order(events))


class _Reader:
    """Reads the events of one stream."""

    def __init__(self, kind: str, assembler: Assembler) -> None:
        self._kind = kind
        self._assembler = assembler
        self._blocks: dict[int, Json] = {}  # those that are open
        self._pieces: dict[int, list[str]] = {}  # of the text or the JSON of a block that is kept
        self._counted: Json = {}

    def read(self, frame: Frame) -> None:
        event = frame.value
        assembler = self._assembler
        match event.get("type"):
            case "content_block_delta":
                self._delta(event["index"], event["delta"])
            case "content_block_start":
                self._start(event["index"], dict(event["content_block"]))
            case "content_block_stop":
                self._stop(event["index"])
            case "message_start":
                self._counted = dict(event["message"].get("usage") or {})
            case "message_delta":
                reason = read_reason(self._kind, event["delta"].get("stop_reason"))
                assembler.reason = reason or assembler.reason
                _usage(event.get("usage"), self._counted, assembler)
            case _:
                _failed(event, assembler)

    def _start(self, index: int, block: Json) -> None:
        assembler = self._assembler
        self._blocks[index] = block
        self._pieces[index] = []
        match block.get("type"):
            case "text":
                assembler.text(block.get("text"))
            case "tool_use":
                assembler.begin(index, block.get("name"), block.get("id"))
                if block.get("input"):
                    assembler.arguments(index, block["input"])
            case "thinking":
                assembler.reasoning(block.get("thinking"))
                self._pieces[index].append(block.get("thinking") or "")
            case _:
                pass

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        assembler = self._assembler
        block = self._blocks.get(index)
        match delta.get("type"):
            case "text_delta":
                assembler.text(delta["text"])
            case "input_json_delta":
                if block is not None and block.get("type") == "tool_use":
                    assembler.arguments(index, delta["partial_json"])
                elif block is not None:
                    self._pieces[index].append(delta["partial_json"])
            case "thinking_delta":
                assembler.reasoning(delta["thinking"])
                self._pieces.setdefault(index, []).append(delta["thinking"])
            case "signature_delta" if block is not None:
                block["signature"] = block.get("signature", "") + delta["signature"]
            case _:
                pass

    def _stop(self, index: int) -> None:
        assembler = self._assembler
        block, pieces = self._blocks.pop(index, None), "".join(self._pieces.pop(index, ()))
        match block:
            case None:
                return
            case {"type": "tool_use"}:
                assembler.end(index)
            case {"type": "thinking"}:
                assembler.reasoned(_thinking({**block, "thinking": pieces}))
            case {"type": "redacted_thinking"}:
                assembler.reasoned(_thinking(block))
            case {"type": "text"}:
                pass
            case _:
                if pieces:
                    block["input"] = object_of(pieces)
                assembler.passed(block)


class _Writer:
    """Writes the events of one stream."""

    def __init__(self, kind: str, head: Head) -> None:
        self._kind = kind
        self._head = head
        self._index = -1
        self._open = ""  # the type of the open block
        self._reason = FinishReason.STOP
        self._usage = Usage()

    def write(self, events: Iterable[Event]) -> Iterator[bytes]:
        yield _event("message_start", message=_message(self._head, Usage()))
        for event in events:
            yield from self._event(event)
        yield from self._close()
        usage = {"input_tokens": self._usage.input_tokens, "output_tokens": self._usage.output_tokens}
        delta = {"stop_reason": write_reason(self._kind, self._reason), "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage=usage)
        yield _event("message_stop")

    def _event(self, event: Event) -> Iterator[bytes]:
        match event:
            case ContentDelta(text):
                yield from self._begin("text", text="")
                yield self._delta("text_delta", text=text)
            case ReasoningDelta(text):
                yield from self._begin("thinking", thinking="", signature="")
                yield self._delta("thinking_delta", thinking=text)
            case ReasoningEnd(part):
                yield from self._reasoned(part)
            case CallStart(_, name, id):
                yield from self._close()
                yield from self._begin("tool_use", id=id, name=name, input={})
            case ArgumentsDelta(_, text):
                yield self._delta("input_json_delta", partial_json=text)
            case CallEnd():
                yield from self._close()
            case Passed(part) if part.provider == self._kind:
                yield from self._whole(part.data)
            case UsageCounted(usage):
                self._usage = usage
            case Finish(reason):
                self._reason = reason
            case _:  # a problem, or what another provider did: nothing stands for it
                pass

    def _reasoned(self, part: ReasoningPart) -> Iterator[bytes]:
        if part.provider == self._kind and part.data is not None:
            yield from self._whole(part.data)
        elif part.provider == self._kind and part.signature:
            yield from self._begin("thinking", thinking="", signature="")
            yield self._delta("signature_delta", signature=part.signature)
        if self._open == "thinking":
            yield from self._close()

    def _whole(self, block: Json) -> Iterator[bytes]:
        yield from self._close()
        self._index += 1
        yield _event("content_block_start", index=self._index, content_block=block)
        yield _event("content_block_stop", index=self._index)

    def _begin(self, kind: str, **facts: Any) -> Iterator[bytes]:
        if self._open != kind:
            yield from self._close()
            self._open = kind
            self._index += 1
            yield _event("content_block_start", index=self._index, content_block={"type": kind, **facts})

    def _delta(self, kind: str, **facts: Any) -> bytes:
        return _event("content_block_delta", index=self._index, delta={"type": kind, **facts})

    def _close(self) -> Iterator[bytes]:
        if self._open:
            self._open = ""
            yield _event("content_block_stop", index=self._index)


def _event(kind: str, **facts: Any) -> bytes:
    return sse({"type": kind, **facts}, kind)


def _message(head: Head, usage: Usage) -> Json:
    return {
        "id": f"msg_{head.id}",
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
    }


def _failed(body: Mapping[str, Any], assembler: Assembler) -> bool:
    """Whether an error stands for the answer; a problem then."""
    if body.get("type") != "error" and not (body.get("error") and "content" not in body):
        return False
    error = body.get("error") or {}
    assembler.reason = FinishReason.ERROR
    assembler.problem("provider_error", f"{error.get('type', 'error')}: {error.get('message', '')}")
    return True


def _listed(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _thinking(block: Mapping[str, Any]) -> ReasoningPart:
    if block.get("type") == "redacted_thinking" or block.keys() - {"type", "thinking", "signature"}:
        return ReasoningPart(
            block.get("thinking") or "", block.get("signature") or "", "anthropic_messages", dict(block)
        )
    return ReasoningPart(block.get("thinking") or "", block.get("signature") or "", "anthropic_messages")


def _image(image: ImagePart) -> Json:
    if image.url:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    source = {"type": "base64", "media_type": image.media_type or "image/png", "data": image.data}
    return {"type": "image", "source": source}


def _read_image(block: Mapping[str, Any]) -> ImagePart | None:
    match block.get("source"):
        case {"type": "base64", "data": str(data), "media_type": str(media_type)}:
            return ImagePart(data, media_type)
        case {"type": "url", "url": str(url)}:
            return ImagePart(url=url)
    return None


def _read_result(block: Mapping[str, Any]) -> ToolResult:
    content = block.get("content")
    texts: list[str] = []
    images: list[ImagePart] = []
    for one in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        image = _read_image(one) if one.get("type") == "image" else None
        if image is not None:
            images.append(image)
        elif one.get("type") == "text":
            texts.append(one["text"])
        else:  # a document, a reference: told as what it is
            texts.append(json.dumps(one, ensure_ascii=False))
    text = "\n".join(texts)
    if block.get("is_error"):
        return ToolResult(block["tool_use_id"], "", error=text, images=tuple(images))
    return ToolResult(block["tool_use_id"], "", text if texts or not images else None, images=tuple(images))


def _named(result: ToolResult, names: Mapping[str, str]) -> ToolResult:
    return ToolResult(result.call_id, names.get(result.call_id, ""), result.result, result.error, result.images)


def _read_choice(choice: Mapping[str, Any]) -> ToolChoice:
    match choice.get("type"):
        case "any":
            return ToolChoice("required")
        case "none":
            return ToolChoice("none")
        case "tool":
            return ToolChoice("required", (choice["name"],))
    return ToolChoice()


def _usage(usage: Any, counted: Mapping[str, Any], assembler: Assembler) -> None:
    """Token counts; a stream says those of the input at its beginning."""
    if not isinstance(usage, Mapping):
        return
    known = {**counted, **{key: value for key, value in usage.items() if value is not None}}
    cached = int(known.get("cache_read_input_tokens") or 0)
    created = int(known.get("cache_creation_input_tokens") or 0)
    read = int(known.get("input_tokens") or 0) + cached + created
    assembler.usage(Usage(read, int(known.get("output_tokens") or 0), cached))


APIS = (AnthropicMessages(),)

"""Cohere's chat API, version 2.

What the model means to do before it calls tools is a `tool_plan`: reasoning to us. Results are documents, so that the
model can cite them. A stream is of typed events, in which a call is an object and not a list.

Source: https://docs.cohere.com/reference/chat
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    Passed,
    ReasoningDelta,
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
from toolwire.providers.base import (
    Head,
    Json,
    Offered,
    ProviderApi,
    arguments_of,
    calls_of,
    dropped,
    in_order,
    object_of,
)
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import Frame, Framing, ServerSentEvents, compact, sse
from toolwire.providers.identifiers import WORD_64
from toolwire.providers.request import ChatRequest, Mode, Notes, ToolChoice, joined, note_foreign, settled, told
from toolwire.providers.response_builder import Assembler
from toolwire.providers.schema_dialects import JSON_SCHEMA
from toolwire.tools import as_definition

_SETTINGS = {"max_tokens": "max_tokens", "temperature": "temperature", "p": "top_p", "stop_sequences": "stop"}
_READ = frozenset((*_SETTINGS, "model", "messages", "tools", "tool_choice", "stream"))
_WRAPPED = ({"output"}, {"error"})


class Cohere(ProviderApi):
    """The API."""

    kind = "cohere"
    names = WORD_64
    dialect = JSON_SCHEMA

    # -- requests ------------------------------------------------------------------------------------------------

    def pair(self, request: ChatRequest, notes: Notes) -> tuple[Message, ...]:
        """Calls and results paired, the results right behind the message that holds their calls."""
        return joined(super().pair(request, notes))

    def write_request(self, request: ChatRequest, tools: Sequence[Offered], notes: Notes) -> Json:
        """The body."""
        note_foreign(request, self.kind, notes)
        body: Json = {"model": request.model} if request.model else {}
        body["messages"] = self.write_results(request.messages, notes)
        choice = request.tool_choice
        if choice.names and choice.mode != "none":
            only = ", ".join(choice.names)
            notes.changed("tool_choice", f"{self.name} cannot be told to choose from some: only {only} is offered")
            tools = [tool for tool in tools if tool.name in choice.names]
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
            if choice.mode != "auto":
                body["tool_choice"] = choice.mode.upper()
        if request.parallel is not None:
            notes.dropped("parallel", f"{self.name} has no switch for it")
        body["stream"] = request.stream
        for key, name in _SETTINGS.items():
            value = getattr(request, name)
            if value is not None and value != ():
                body[key] = list(value) if isinstance(value, tuple) else value
        return {**body, **request.extra}

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """One message, as those that say it."""
        match message.role:
            case "assistant":
                return [self._assistant(message.parts, notes)]
            case "system":
                return [{"role": "system", "content": told(message, self.name, notes)}]
        made: list[Json] = []
        others: list[Part] = []
        pictures: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                made.append(_result(part))
                if part.images:
                    pictures += [TextPart(f"Images of the result of {part.tool_name}:"), *part.images]
            else:
                others.append(part)
        if pictures:
            made.append({"role": "user", "content": self._content(pictures, notes)})
        if others or not message.parts:
            made.append({"role": "user", "content": self._content(others, notes)})
        return made

    def _content(self, parts: Iterable[Part], notes: Notes) -> Any:
        made: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text):
                    made.append({"type": "text", "text": text})
                case ImagePart():
                    made.append({"type": "image_url", "image_url": {"url": part.as_url}})
                case OpaquePart(data, self.kind):
                    made.append(data)
                case _:
                    dropped(part, self.name, notes)
        if len(made) == 1 and made[0].get("type") == "text":
            return made[0]["text"]
        return made or ""

    def _assistant(self, parts: Sequence[Part], notes: Notes) -> Json:
        """A message of the model, with its content as blocks."""
        made: Json = {"role": "assistant"}
        calls = calls_of(parts)
        plan: list[str] = []
        blocks: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text):
                    _extend(blocks, "text", text)
                case ReasoningPart(text, "", ""):
                    if calls:
                        plan.append(text)
                    else:
                        _extend(blocks, "thinking", text)
                case OpaquePart(data, self.kind) if isinstance(data.get("citations"), list):
                    made["citations"] = [*made.get("citations", ()), *data["citations"]]
                case ToolCall():
                    pass
                case _:
                    dropped(part, self.name, notes)
        if calls:
            if any(plan):
                made["tool_plan"] = "".join(plan)
            made["tool_calls"] = list(map(_call, calls))
        if blocks or not calls:
            made["content"] = blocks or [{"type": "text", "text": ""}]
        return made

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """What a body asks for."""
        stop = body.get("stop_sequences")
        return ChatRequest(
            messages=tuple(settled(self._read_messages(body["messages"]))),
            tools=tuple(as_definition(tool) for tool in body.get("tools") or ()),
            tool_choice=ToolChoice(_read_mode(body.get("tool_choice"))),
            model=str(body.get("model") or ""),
            stream=bool(body.get("stream")),
            max_tokens=body.get("max_tokens"),
            temperature=body.get("temperature"),
            top_p=body.get("p"),
            stop=tuple(stop or ()),
            provider=self.kind,
            extra={key: value for key, value in body.items() if key not in _READ},
        )

    def _read_messages(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
        for message in messages:
            role = message["role"]
            if role == "tool":
                result = _read_result(str(message.get("tool_call_id") or ""), "", message.get("content"))
                yield Message("tool", (result,))
                continue
            parts = tuple(self._read_parts(message))
            yield Message("system" if role == "system" else "assistant" if role == "assistant" else "user", parts)

    def _read_parts(self, message: Mapping[str, Any]) -> Iterator[Part]:
        if message.get("tool_plan"):
            yield ReasoningPart(str(message["tool_plan"]))
        for block in _blocks(message.get("content")):
            match block.get("type"):
                case "text":
                    if block.get("text"):
                        yield TextPart(str(block["text"]))
                case "thinking":
                    yield ReasoningPart(str(block.get("thinking") or ""))
                case "image_url":
                    image = block["image_url"]
                    yield ImagePart(url=str(image["url"] if isinstance(image, Mapping) else image))
                case _:
                    yield OpaquePart(dict(block), self.kind)
        for call in message.get("tool_calls") or ():
            function = call["function"]
            arguments = object_of(function.get("arguments"))
            yield ToolCall(str(function["name"]), arguments, str(call.get("id") or ""), format=self.kind)
        if citations := message.get("citations"):
            yield _citations(list(citations), self.kind)

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, assembler: Assembler) -> None:
        """Tell the assembler what a response says."""
        message = response.get("message")
        if isinstance(message, str):  # what it says where something went wrong
            _failed(message, assembler)
            return
        message = message or {}
        assembler.reason = read_reason(self.kind, response.get("finish_reason"))
        assembler.reasoning(message.get("tool_plan"))
        for block in _blocks(message.get("content")):
            if block.get("type") == "thinking":
                assembler.reasoning(block.get("thinking"))
            elif "text" in block:
                assembler.text(block["text"])
            else:
                assembler.passed(block)
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            assembler.call(function.get("name"), function.get("arguments"), call.get("id"))
        if citations := message.get("citations"):
            assembler.passed(_citations(list(citations), self.kind).data)
        _read_usage(response.get("usage"), assembler)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """The body of a response."""
        said: list[Part] = []
        for part in response.parts:
            if isinstance(part, ReasoningPart):
                if part.signature or part.data:
                    notes.dropped("reasoning", f"{self.name} has no place for what {part.provider} wants back with it")
                part = ReasoningPart(part.text)
            said.append(part)
        return {
            "id": head.id,
            "finish_reason": write_reason("cohere", response.finish_reason),
            "message": self._assistant(said, notes),
            "usage": _write_usage(response.usage or Usage()),
        }

    # -- streams -------------------------------------------------------------------------------------------------

    def framing(self) -> Framing:
        """Server-sent events."""
        return ServerSentEvents()

    def stream_reader(self, assembler: Assembler) -> Callable[[Frame], None]:
        """What reads the events of one stream."""
        return _Reader(self.kind, assembler).read

    def write_error(self, message: str) -> bytes:
        """How a stream says that it failed."""
        return sse({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": message}})

    def write_stream(self, events: Iterable[Event], head: Head) -> Iterator[bytes]:
        """The events of a stream."""
        usage: Usage | None = None
        reason = FinishReason.STOP
        contents, calls = 0, 0
        is_open = False  # a block of content
        said = False  # something of the arguments of the last call
        empty: Json = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        yield sse({"id": head.id, "type": "message-start", "delta": {"message": empty}})
        for event in in_order(events):
            if is_open and isinstance(event, ReasoningDelta | CallStart | Finish):
                is_open = False
                yield sse({"type": "content-end", "index": contents - 1})
            match event:
                case ContentDelta(text):
                    if not is_open:
                        is_open = True
                        contents += 1
                        yield _delta("content-start", {"content": {"type": "text", "text": ""}}, contents - 1)
                    yield _delta("content-delta", {"content": {"text": text}}, contents - 1)
                case ReasoningDelta(text):
                    yield _delta("tool-plan-delta", {"tool_plan": text})
                case CallStart(_, name, id):
                    calls += 1
                    said = False
                    call = {"id": id, "type": "function", "function": {"name": name, "arguments": ""}}
                    yield _delta("tool-call-start", {"tool_calls": call}, calls - 1)
                case ArgumentsDelta(_, text):
                    said = True
                    yield _delta("tool-call-delta", {"tool_calls": {"function": {"arguments": text}}}, calls - 1)
                case CallEnd(_, broken, complete):
                    if not complete and not said:  # no arguments at all would be a call without any
                        function = {"function": {"arguments": broken.raw.strip() or "{"}}
                        yield _delta("tool-call-delta", {"tool_calls": function}, calls - 1)
                    yield sse({"type": "tool-call-end", "index": calls - 1})
                case Passed(OpaquePart(data, self.kind)):
                    for citation in data.get("citations") or ():
                        yield _delta("citation-start", {"citations": citation}, max(contents - 1, 0))
                        yield sse({"type": "citation-end", "index": max(contents - 1, 0)})
                case UsageCounted(usage):
                    pass
                case Finish(reason):
                    pass
                case _:  # signatures, a problem, what another provider did itself: nothing stands for them
                    pass
        if is_open:
            yield sse({"type": "content-end", "index": contents - 1})
        last: Json = {"finish_reason": write_reason("cohere", reason)}
        yield sse({"type": "message-end", "delta": last if usage is None else {**last, "usage": _write_usage(usage)}})


class _Reader:
    """Reads the events of one stream."""

    def __init__(self, kind: str, assembler: Assembler) -> None:
        self._kind = kind
        self._assembler = assembler
        self._citations: list[Any] = []

    def read(self, frame: Frame) -> None:
        data = frame.value
        assembler = self._assembler
        delta = data.get("delta") or {}
        message = delta.get("message") or {}
        key = str(data.get("index"))
        match data.get("type") or frame.event:
            case "tool-plan-delta":
                assembler.reasoning(message.get("tool_plan"))
            case "content-start" | "content-delta":
                content = message.get("content") or {}
                assembler.reasoning(content.get("thinking"))
                assembler.text(content.get("text"))
            case "tool-call-start":
                if assembler.known(key):
                    assembler.end(key)
                call = _one(message.get("tool_calls"))
                function = call.get("function") or {}
                assembler.begin(key, function.get("name"), call.get("id"))
                assembler.arguments(key, function.get("arguments"))
            case "tool-call-delta":
                if not assembler.known(key):
                    assembler.begin(key)
                assembler.arguments(key, (_one(message.get("tool_calls")).get("function") or {}).get("arguments"))
            case "tool-call-end":
                if assembler.known(key):
                    assembler.end(key)
            case "citation-start":
                self._citations.append(message["citations"])
            case "message-end":
                if self._citations:
                    assembler.passed(_citations(self._citations, self._kind).data)
                assembler.reason = read_reason(self._kind, delta.get("finish_reason"))
                if error := delta.get("error"):
                    _failed(str(error), assembler)
                _read_usage(delta.get("usage"), assembler)
            case _:
                said = data.get("message") or data.get("error")
                if isinstance(said, str) and "delta" not in data:
                    _failed(said, assembler)


def _delta(kind: str, message: Json, index: int | None = None) -> bytes:
    place: Json = {} if index is None else {"index": index}
    return sse({"type": kind, **place, "delta": {"message": message}})


def _failed(why: str, assembler: Assembler) -> None:
    assembler.reason = FinishReason.ERROR
    assembler.problem("provider_error", why)


def _one(calls: Any) -> Mapping[str, Any]:
    """The call of an event; some put it into a list."""
    found = calls[0] if isinstance(calls, list) and calls else calls
    return found if isinstance(found, Mapping) else {}


def _blocks(content: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
        return
    for block in content or ():
        yield {"type": "text", "text": block} if isinstance(block, str) else block


def _extend(blocks: list[Json], kind: str, text: str) -> None:
    """More text in the last block, if it is of this kind, or in a new one."""
    if not text:
        return
    if blocks and blocks[-1]["type"] == kind:
        blocks[-1][kind] += text
    else:
        blocks.append({"type": kind, kind: text})


def _citations(citations: list[Any], kind: str) -> OpaquePart:
    return OpaquePart({"type": "citations", "citations": citations}, kind)


def _tool(tool: Offered) -> Json:
    function: Json = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _call(call: ToolCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_of(call)}}


def _result(result: ToolResult) -> Json:
    """A result as a document: an object as it is, anything else as the output of the tool."""
    value = result.result
    if result.error is not None:
        data: Json = {"error": result.error}
    elif isinstance(value, dict) and value and set(value) not in _WRAPPED:
        data = value
    elif result.images and value is None:
        data = {"output": "The image follows."}
    else:
        data = {"output": result.text}
    content = [{"type": "document", "document": {"data": data}}]
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


def _read_result(call_id: str, name: str, content: Any) -> ToolResult:
    values: list[Any] = []
    for block in _blocks(content):
        if block.get("type") == "document" and isinstance(document := block.get("document"), Mapping):
            values.append(document.get("data"))
        else:
            values.append(block["text"] if "text" in block else dict(block))
    value = values[0] if len(values) == 1 else values
    if isinstance(value, Mapping) and set(value) in _WRAPPED:
        (key, value), *_ = value.items()
        if key == "error":
            return ToolResult(call_id, name, error=value if isinstance(value, str) else compact(value))
    if len(values) != 1 and all(isinstance(one, str) for one in values):
        value = "\n".join(values)
    return ToolResult(call_id, name, value)


def _read_mode(choice: Any) -> Mode:
    match str(choice or "").upper():
        case "REQUIRED":
            return "required"
        case "NONE":
            return "none"
    return "auto"


def _read_usage(usage: Any, assembler: Assembler) -> None:
    if not isinstance(usage, Mapping):
        return
    tokens = usage.get("tokens") or usage.get("billed_units")
    if tokens:
        assembler.usage(
            Usage(
                int(tokens.get("input_tokens") or 0),
                int(tokens.get("output_tokens") or 0),
                int(usage.get("cached_tokens") or 0),
                int(tokens.get("reasoning_tokens") or 0),
            )
        )


def _write_usage(usage: Usage) -> Json:
    billed = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    tokens = {**billed, "reasoning_tokens": usage.reasoning_tokens} if usage.reasoning_tokens else dict(billed)
    return {"billed_units": billed, "tokens": tokens, "cached_tokens": usage.cached_tokens}


APIS = (Cohere(),)

"""Cohere's chat API, version 2.

The model states its intention before it calls tools in a `tool_plan`, which is read as reasoning. Results are
documents, so that the model can cite them. A stream consists of typed events, in which a call is an object, not a list.

CitedSource: https://docs.cohere.com/reference/chat
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolwire.events import CallEnd, CallStart
from toolwire.messages import (
    CitationPart,
    CitedSource,
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
from toolwire.providers.answer_shapes import AnswerShape
from toolwire.providers.chat_messages import ChatMessages, read_image
from toolwire.providers.citations import content_of, own_item, place_of, range_in
from toolwire.providers.content_blocks import Block, BlockWriter
from toolwire.providers.failure_kinds import INTERNAL, FailureKind
from toolwire.providers.file_parts import media_follow
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import Frame, compact, sse
from toolwire.providers.identifiers import WORD_64
from toolwire.providers.message_parts import (
    Json,
    UsageReader,
    calls_of,
    members_except,
    note_dropped,
    own_members,
    parsed_text,
    read_tools,
    without_seal,
)
from toolwire.providers.offered_tool import OfferedTool
from toolwire.providers.output_support import COHERE
from toolwire.providers.request import ChatRequest, Mode, Notes, ToolChoice, group_results
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.schema_dialects import JSON_SCHEMA
from toolwire.providers.setting_members import SettingMembers
from toolwire.providers.stream_codec import Head, StreamEnd
from toolwire.text.json_text import json_text

_WRAPPED = ({"output"}, {"error"})
_MODES: dict[str, Mode] = {"REQUIRED": "required", "NONE": "none"}


_ANSWER = AnswerShape(
    "finish_reason",
    """
: id finish_reason message usage
message: role content tool_plan tool_calls citations
message.content[text]: type text
message.content[thinking]: type thinking
message.tool_calls[function]: id type function
""",
)


class _Reader:
    """Reads the events of one stream."""

    def __init__(self, builder: ResponseBuilder) -> None:
        self._builder = builder
        self._citations: list[Any] = []
        self._starts: list[int] = []  # the places where blocks of content begin

    def read(self, frame: Frame) -> None:
        data = frame.value
        builder = self._builder
        delta = data.get("delta") or {}
        message = delta.get("message") or {}
        key = str(data.get("index"))
        match data.get("type") or frame.event:
            case "tool-plan-delta":
                builder.add_reasoning(message.get("tool_plan"))
            case "content-start" | "content-delta":
                content = message.get("content") or {}
                if data.get("type") == "content-start":
                    self._starts.append(builder.content_length)
                builder.add_reasoning(content.get("thinking"))
                builder.add_text(content.get("text"))
            case "tool-call-start":
                if builder.is_open(key):  # its end is missing
                    builder.end_call(key, truncated=not builder.is_whole(key))
                call = _only_call(message)
                function = call.get("function") or {}
                builder.begin_call(key, function.get("name"), call.get("id"))
                builder.add_arguments(key, function.get("arguments"))
            case "tool-call-delta":
                if not builder.is_open(key):
                    builder.begin_call(key)
                builder.add_arguments(key, (_only_call(message).get("function") or {}).get("arguments"))
            case "tool-call-end":
                if builder.is_open(key):
                    builder.end_call(key)
            case "citation-start":
                self._citations.append(message["citations"])
            case "message-end":
                _add_citations(self._citations, self._starts, builder)
                builder.reason = read_reason(builder.api, delta.get("finish_reason"))
                builder.add_unread(_ANSWER, {name: value for name, value in delta.items() if name != "error"})
                if error := delta.get("error"):
                    builder.fail(str(error))
                _add_usage(delta.get("usage"), builder)
            case _:
                pass


class _Writer(BlockWriter):
    """Writes the events of one stream; blocks of content and calls are numbered separately."""

    def __init__(self, head: Head, end: StreamEnd) -> None:
        super().__init__(head, end)
        self._content = self._call = -1
        self._text = ""
        self._start = 0  # of the block of text, in all of it

    def first(self) -> Iterator[bytes]:
        empty: Json = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        yield sse({"id": self.head.id, "type": "message-start", "delta": {"message": empty}})

    def last(self) -> Iterator[bytes]:
        delta: Json = {"finish_reason": write_reason("cohere", self.end.reason)}
        if self.end.usage is not None:
            delta["usage"] = _write_usage(self.end.usage)
        yield sse({"type": "message-end", "delta": delta})

    def opened(self, call: CallStart | None) -> Iterator[bytes]:
        if call is not None:
            self._call += 1
            yield _delta("tool-call-start", {"tool_calls": _call(call.id, call.name, "")}, self._call)
        elif self.block == "text":
            self._content += 1
            yield _delta("content-start", {"content": {"type": "text", "text": ""}}, self._content)

    def piece(self, text: str) -> Iterator[bytes]:
        match self.block:
            case "text":
                self._text += text
                yield _delta("content-delta", {"content": {"text": text}}, self._content)
            case "call":
                yield _delta("tool-call-delta", {"tool_calls": {"function": {"arguments": text}}}, self._call)
            case _:
                yield _delta("tool-plan-delta", {"tool_plan": text})

    def closed(self, call: CallEnd | None) -> Iterator[bytes]:
        if self.block == "text":
            yield sse({"type": "content-end", "index": self._content})
        elif call is not None:
            yield sse({"type": "tool-call-end", "index": self._call})

    def begin(self, block: Block, call: CallStart | None = None) -> Iterator[bytes]:
        if block == "text" and self.block != block:
            self._start = len(self._text)
        yield from super().begin(block, call)

    def cited(self, part: CitationPart) -> Iterator[bytes]:
        index = max(self._content, 0)
        statement = self._text[part.start or 0 : part.end or 0]
        yield _delta("citation-start", {"citations": _write_citation(part, self._start, statement)}, index)
        yield sse({"type": "citation-end", "index": index})

    def passed(self, part: OpaquePart) -> Iterator[bytes]:
        index = max(self._content, 0)
        for citation in part.data.get("citations") or ():
            yield _delta("citation-start", {"citations": citation}, index)
            yield sse({"type": "citation-end", "index": index})


class Cohere(ChatMessages):
    """The API."""

    kind = "cohere"
    names = WORD_64
    dialect = JSON_SCHEMA
    _outputs = COHERE
    _settings = SettingMembers(
        {
            "max_tokens": "max_tokens",
            "temperature": "temperature",
            "p": "top_p",
            "k": "top_k",
            "seed": "seed",
            "stop_sequences": "stop",
            "frequency_penalty": "frequency_penalty",
            "presence_penalty": "presence_penalty",
        },
        reasoning_effort.COHERE,
        parallel=False,
    )
    _answer = _ANSWER
    reader, writer = _Reader, _Writer
    message_members = frozenset(("role", "content", "tool_plan", "tool_calls", "tool_call_id", "citations"))
    members = frozenset(("model", "messages", "tools", "tool_choice", "stream"))

    # -- requests ------------------------------------------------------------------------------------------------

    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body."""
        body: Json = {"model": request.model} if request.model else {}
        body["messages"] = self.write_messages(request.messages, notes)
        choice = request.tool_choice
        if choice.names and choice.mode != "none":
            only = ", ".join(choice.names)
            notes.changed("tool_choice", f"{self.name} cannot be told to choose from some: only {only} is offered")
            tools = [tool for tool in tools if tool.name in choice.names]
        if tools:
            body["tools"] = list(map(self.function_of, tools))
            if choice.mode != "auto":
                body["tool_choice"] = choice.mode.upper()
        body["stream"] = request.stream
        return self._with_settings(body, request, notes)

    def write_answer(self, parts: Sequence[Part], notes: Notes, *, answers: bool = False) -> Json:
        """Return a message of the model, with its content as blocks; `answers`: as an answer contains it."""
        message: Json = {"role": "assistant"}
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
                    message["citations"] = [*message.get("citations", ()), *data["citations"]]
                case CitationPart(start=start, end=end) if answers or own_item(part, self.kind) is not None:
                    statement = content_of(parts)[start or 0 : end or 0]
                    message["citations"] = [*message.get("citations", ()), _write_citation(part, 0, statement)]
                case ToolCall():
                    pass
                case _:
                    note_dropped(part, self.name, notes)
        if calls:
            if any(plan):
                message["tool_plan"] = "".join(plan)
            message["tool_calls"] = [
                {**_call(call.id, call.name, json_text(call.arguments)), **own_members(call, self.kind)}
                for call in calls
            ]
        if blocks or not calls:
            message["content"] = blocks or [{"type": "text", "text": ""}]
        return message

    def write_result(self, result: ToolResult) -> Json:
        """Return a result as a document: an object unchanged, any other value as the output of the tool."""
        value = result.result
        if result.error is not None:
            data: Json = {"error": result.error}
        elif isinstance(value, dict) and value and set(value) not in _WRAPPED:
            data = value
        elif result.only_media:
            data = {"output": media_follow(result)}
        else:
            data = {"output": result.text}
        content = [{"type": "document", "document": {"data": data}}]
        return {"role": "tool", "tool_call_id": result.call_id, "content": content}

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body."""
        return self._request_of(
            body,
            group_results(self.read_messages(body["messages"])),
            **read_tools(body.get("tools"), self.function_tool),
            tool_choice=ToolChoice(_MODES.get(str(body.get("tool_choice") or "").upper(), "auto")),
        )

    def read_parts(self, message: Mapping[str, Any]) -> Iterator[Part]:
        """Yield the parts of a message that contains no result."""
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
                    yield read_image(block, self.kind)
                case _:
                    yield OpaquePart(dict(block), self.kind)
        yield from map(self.read_call, message.get("tool_calls") or ())
        if citations := message.get("citations"):
            yield OpaquePart(_citations(citations), self.kind)

    def has_unread(self, content: Any) -> bool:
        """Return whether the content of a result has more than text and the data of documents."""
        documents = (block.get("document") for block in _blocks(content))
        return any(isinstance(document, Mapping) and document.keys() > {"data"} for document in documents)

    def read_result(self, message: Mapping[str, Any]) -> ToolResult:
        """Parse a message that carries a result."""
        call_id = str(message.get("tool_call_id") or "")
        values: list[Any] = []
        for block in _blocks(message.get("content")):
            if block.get("type") == "document" and isinstance(document := block.get("document"), Mapping):
                values.append(document.get("data"))
            else:
                values.append(block["text"] if "text" in block else dict(block))
        value = values[0] if len(values) == 1 else values
        if isinstance(value, Mapping) and set(value) in _WRAPPED:
            (key, value), *_ = value.items()
            if key == "error":
                return ToolResult(call_id, "", error=value if isinstance(value, str) else compact(value))
        if len(values) != 1 and all(isinstance(text, str) for text in values):
            value = "\n".join(values)
        return ToolResult(call_id, "", value)

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the content of a response to the builder."""
        message = response.get("message") or {}
        builder.reason = read_reason(self.kind, response.get("finish_reason"))
        builder.add_reasoning(message.get("tool_plan"))
        starts: list[int] = []
        for block in _blocks(parsed_text(message.get("content"))):
            starts.append(builder.content_length)
            if block.get("type") == "thinking":
                builder.add_reasoning(block.get("thinking"))
            elif "text" in block:
                builder.add_text(block["text"])
            else:
                builder.add_opaque(block)
        for call in message.get("tool_calls") or ():
            self.add_call(call, builder)
        _add_citations(message.get("citations"), starts, builder)
        _add_usage(response.get("usage"), builder)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return the body of a response."""
        parts = [without_seal(part, self.name, notes) for part in response.parts]
        return {
            "id": head.id,
            "finish_reason": write_reason(self.kind, response.finish_reason),
            "message": self.write_answer(parts, notes, answers=True),
            "usage": _write_usage(response.usage or Usage()),
        }

    # -- streams -------------------------------------------------------------------------------------------------

    def write_error(self, message: str, kind: FailureKind = INTERNAL, head: Head | None = None) -> bytes:
        """Return the event that reports a failure in the middle of a stream."""
        return sse({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": message}})


def _delta(kind: str, message: Json, index: int | None = None) -> bytes:
    place: Json = {} if index is None else {"index": index}
    return sse({"type": kind, **place, "delta": {"message": message}})


def _only_call(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the call of an event; some servers put it into a list."""
    calls = message.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and calls else calls
    return call if isinstance(call, Mapping) else {}


def _blocks(content: Any) -> Iterator[Mapping[str, Any]]:
    for block in [content] if isinstance(content, str) else content or ():
        yield {"type": "text", "text": block} if isinstance(block, str) else block


def _extend(blocks: list[Json], kind: str, text: str) -> None:
    """Add text to the last block, if it is of this kind, or to a new one."""
    if not text:
        return
    if blocks and blocks[-1]["type"] == kind:
        blocks[-1][kind] += text
    else:
        blocks.append({"type": kind, kind: text})


_PLACED = frozenset(("start", "end"))


def _add_citations(citations: Any, starts: Sequence[int], builder: ResponseBuilder) -> None:
    """Report citations to the builder; `starts`: the places where the blocks of content begin."""
    for citation in citations or ():
        at = citation.get("content_index") or 0
        offset = starts[at] if isinstance(at, int) and 0 <= at < len(starts) else 0
        start, end = (place_of(citation.get(name), offset) for name in ("start", "end"))
        sources = tuple(map(_source, citation.get("sources") or ()))
        builder.add_citation(CitationPart(sources, start, end, members_except(citation, _PLACED, builder.api)))


def _source(source: Mapping[str, Any]) -> CitedSource:
    document = source.get("document") or source.get("tool_output") or {}
    url, title = (str(document.get(name) or "") for name in ("url", "title"))
    return CitedSource(url, title, str(document.get("text") or document.get("snippet") or ""))


def _write_citation(part: CitationPart, offset: int, statement: str) -> Json:
    members = own_item(part, "cohere")
    if members is None:
        sources = [
            {"type": "document", "id": source.url or source.title, "document": _document(source)}
            for source in part.sources
        ]
        members = {"text": statement, "sources": sources, "type": "TEXT_CONTENT"}
    return {**range_in(part, offset, ("start", "end")), "sources": [], **members}


def _document(source: CitedSource) -> Json:
    members = {"url": source.url, "title": source.title, "text": source.quote}
    return {"id": source.url or source.title, **{name: value for name, value in members.items() if value}}


def _citations(citations: Iterable[Any]) -> Json:
    return {"type": "citations", "citations": list(citations)}


def _call(id: str, name: str, arguments: str) -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


_USAGE = UsageReader("input_tokens", "output_tokens", "", "reasoning_tokens")


def _add_usage(usage: Any, builder: ResponseBuilder) -> None:
    if isinstance(usage, Mapping) and (counts := usage.get("tokens") or usage.get("billed_units")):
        builder.add_usage(replace(_USAGE.read(counts), cached_tokens=int(usage.get("cached_tokens") or 0)))


def _write_usage(usage: Usage) -> Json:
    billed = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    tokens = {**billed, "reasoning_tokens": usage.reasoning_tokens} if usage.reasoning_tokens else dict(billed)
    return {"billed_units": billed, "tokens": tokens, "cached_tokens": usage.cached_tokens}


APIS = (Cohere(),)

"""Ollama's chat API.

Arguments are objects; a call comes whole; there is no choice of tools. A stream is lines of JSON, and an answer is a
stream unless the request says that it is not.

Source: https://docs.ollama.com/api/chat
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from toolwire.events import CallEnd, ContentDelta, Event, Finish, ReasoningDelta, UsageCounted
from toolwire.messages import (
    FinishReason,
    ImagePart,
    Message,
    ParsedResponse,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from toolwire.providers.base import Head, Json, Offered, ProviderApi, calls_of, dropped, in_order, object_of, text_of
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import Frame, Framing, JsonLines, json_line
from toolwire.providers.request import ChatRequest, Notes, ToolChoice, joined, note_foreign, settled
from toolwire.providers.response_builder import Assembler
from toolwire.providers.schema_dialects import JSON_SCHEMA
from toolwire.tools import as_definition

_OPTIONS = {"num_predict": "max_tokens", "temperature": "temperature", "top_p": "top_p", "stop": "stop"}
_READ = frozenset(("model", "messages", "tools", "stream", "options"))


class Ollama(ProviderApi):
    """The API."""

    kind = "ollama"
    dialect = JSON_SCHEMA

    # -- requests ------------------------------------------------------------------------------------------------

    def pair(self, request: ChatRequest, notes: Notes) -> tuple[Message, ...]:
        """Calls and results paired, the results right behind the message that holds their calls."""
        return joined(super().pair(request, notes))

    def write_request(self, request: ChatRequest, tools: Sequence[Offered], notes: Notes) -> Json:
        """The body."""
        note_foreign(request, self.kind, notes)
        extra = dict(request.extra)
        body: Json = {"model": request.model} if request.model else {}
        body["messages"] = self.write_results(request.messages, notes)
        listed = [_tool(tool) for tool in self._chosen(request.tool_choice, tools, notes)]
        listed += [dict(tool) for tool in request.provider_tools]
        if listed:
            body["tools"] = listed
        if request.parallel is not None:
            notes.dropped("parallel", f"{self.name} has no switch for it")
        body["stream"] = request.stream
        options = dict(extra.pop("options", {}))
        for key, name in _OPTIONS.items():
            value = getattr(request, name)
            if value is not None and value != ():
                options[key] = list(value) if isinstance(value, tuple) else value
        if options:
            body["options"] = options
        return {**body, **extra}

    def _chosen(self, choice: ToolChoice, tools: Sequence[Offered], notes: Notes) -> Sequence[Offered]:
        """The tools that the model is told of: the only way to choose."""
        if choice == ToolChoice() or not tools:
            return tools
        if choice.mode == "none":
            notes.changed("tool_choice", f"{self.name} has no choice of tools: none is offered")
            return ()
        if choice.mode == "required":
            notes.dropped("tool_choice", f"{self.name} cannot be told that a tool has to be called")
        if not choice.names:
            return tools
        notes.changed("tool_choice", f"{self.name} has no choice of tools: only {', '.join(choice.names)} is offered")
        return [tool for tool in tools if tool.name in choice.names]

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """One message, as those that say it."""
        if message.role == "assistant":
            return [self._assistant(message.parts, notes)]
        made = [self._result(part, notes) for part in message.parts if isinstance(part, ToolResult)]
        others = [part for part in message.parts if not isinstance(part, ToolResult)]
        if others or not made:
            said: Json = {"role": "system" if message.role == "system" else "user", "content": text_of(others)}
            for part in others:
                if not isinstance(part, TextPart | ImagePart):
                    dropped(part, self.name, notes)
            made.append(self._with_images(said, others, notes))
        return made

    def _assistant(self, parts: Sequence[Part], notes: Notes) -> Json:
        made: Json = {"role": "assistant", "content": text_of(parts)}
        thought: list[str] = []
        for part in parts:
            match part:
                case TextPart() | ToolCall():
                    pass
                case ReasoningPart(text, "", ""):
                    thought.append(text)
                case _:
                    dropped(part, self.name, notes)
        if any(thought):
            made["thinking"] = "".join(thought)
        if calls := calls_of(parts):
            made["tool_calls"] = list(map(_call, calls))
        return made

    def _result(self, result: ToolResult, notes: Notes) -> Json:
        text = result.told
        if result.images and result.result is None and result.success:
            text = ""
        made: Json = {"role": "tool", "content": text, "tool_name": result.tool_name}
        if result.call_id:
            made["tool_call_id"] = result.call_id
        return self._with_images(made, result.images, notes)

    def _with_images(self, made: Json, parts: Iterable[Part], notes: Notes) -> Json:
        images = [part for part in parts if isinstance(part, ImagePart)]
        for image in images:
            if not image.data:
                notes.dropped("image", f"{self.name} takes no address of an image")
        shown = [image.data for image in images if image.data]
        return {**made, "images": shown} if shown else made

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """What a body asks for."""
        options = {**(body.get("options") or {})}
        limit = options.get("num_predict")
        if isinstance(limit, int) and limit < 0:  # as long as it likes
            limit = None
        else:
            options.pop("num_predict", None)
        stop = options.get("stop")
        extra = {key: value for key, value in body.items() if key not in _READ}
        if rest := {key: value for key, value in options.items() if key not in _OPTIONS or key == "num_predict"}:
            extra["options"] = rest
        stream = body.get("stream")
        return ChatRequest(
            messages=tuple(settled(self._read_messages(body["messages"]))),
            tools=tuple(as_definition(tool) for tool in body.get("tools") or ()),
            model=str(body.get("model") or ""),
            stream=stream is None or bool(stream),
            max_tokens=limit,
            temperature=options.get("temperature"),
            top_p=options.get("top_p"),
            stop=(stop,) if isinstance(stop, str) else tuple(stop or ()),
            provider=self.kind,
            extra=extra,
        )

    def _read_messages(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
        waiting: list[ToolCall] = []
        for message in messages:
            role = message["role"]
            if role == "tool":
                yield Message("tool", (_answered(_read_result(message), waiting),))
                continue
            parts = tuple(self._read_parts(message))
            if role == "assistant":
                waiting = calls_of(parts)
            yield Message("system" if role == "system" else "assistant" if role == "assistant" else "user", parts)

    def _read_parts(self, message: Mapping[str, Any]) -> Iterator[Part]:
        if message.get("thinking"):
            yield ReasoningPart(str(message["thinking"]))
        if message.get("content"):
            yield TextPart(str(message["content"]))
        yield from (ImagePart(str(data)) for data in message.get("images") or ())
        for call in message.get("tool_calls") or ():
            function = call["function"]
            arguments = object_of(function.get("arguments"))
            yield ToolCall(str(function["name"]), arguments, str(call.get("id") or ""), format=self.kind)

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, assembler: Assembler) -> None:
        """Tell the assembler what a response says, or a line of a stream."""
        if error := response.get("error"):
            assembler.reason = FinishReason.ERROR
            assembler.problem("provider_error", str(error))
            return
        message = response.get("message") or {}
        assembler.reasoning(message.get("thinking"))
        assembler.text(message.get("content"))
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            assembler.call(function.get("name"), function.get("arguments"), call.get("id"))
        if response.get("done"):
            assembler.reason = read_reason(self.kind, response.get("done_reason")) or assembler.reason
            read, written = response.get("prompt_eval_count"), response.get("eval_count")
            if read is not None or written is not None:
                assembler.usage(Usage(int(read or 0), int(written or 0)))

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """The body of a response."""
        said: list[Part] = []
        for part in response.parts:
            if isinstance(part, ReasoningPart):
                if part.signature or part.data:
                    notes.dropped("reasoning", f"{self.name} has no place for what {part.provider} wants back with it")
                part = ReasoningPart(part.text)
            said.append(part)
        message = self._assistant(said, notes)
        for at, call in enumerate(message.get("tool_calls", ())):
            call["function"]["index"] = at
        return _last(head, message, response.finish_reason, response.usage)

    # -- streams -------------------------------------------------------------------------------------------------

    def framing(self) -> Framing:
        """Lines of JSON."""
        return JsonLines()

    def stream_reader(self, assembler: Assembler) -> Callable[[Frame], None]:
        """What reads the lines of one stream."""
        return lambda frame: self.read_response(frame.value, assembler)

    def write_error(self, message: str) -> bytes:
        """How a stream says that it failed."""
        return json_line({"error": message})

    def write_stream(self, events: Iterable[Event], head: Head) -> Iterator[bytes]:
        """The lines of a stream, each call whole in one of them."""
        usage: Usage | None = None
        reason = FinishReason.STOP
        count = 0
        for event in in_order(events):
            said: Json = {}
            match event:
                case ContentDelta(text):
                    said = {"content": text}
                case ReasoningDelta(text):
                    said = {"content": "", "thinking": text}
                case CallEnd(_, call, True):
                    said = {"content": "", "tool_calls": [_call(call)]}
                    said["tool_calls"][0]["function"]["index"] = count
                    count += 1
                case UsageCounted(usage):
                    pass
                case Finish(reason):
                    pass
                case _:  # what a call consists of, signatures, a problem: nothing stands for them
                    pass
            if said:
                yield json_line({**_begin(head), "message": {"role": "assistant", **said}, "done": False})
        yield json_line(_last(head, {"role": "assistant", "content": ""}, reason, usage))


def _tool(tool: Offered) -> Json:
    function: Json = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _call(call: ToolCall) -> Json:
    made: Json = {"function": {"name": call.name, "arguments": call.arguments}}
    return {"id": call.id, **made} if call.id else made


def _read_result(message: Mapping[str, Any]) -> ToolResult:
    images = tuple(ImagePart(str(data)) for data in message.get("images") or ())
    text = message.get("content") or (None if images else "")
    name = str(message.get("tool_name") or message.get("name") or "")
    return ToolResult(str(message.get("tool_call_id") or ""), name, text, images=images)


def _answered(result: ToolResult, waiting: list[ToolCall]) -> ToolResult:
    """The result with its call's name; of the calls that wait for one it answers the first that fits."""
    for at, call in enumerate(waiting):
        fits = call.id == result.call_id if result.call_id else result.tool_name in ("", call.name)
        if fits:
            del waiting[at]
            return replace(result, tool_name=call.name)
    return result


def _begin(head: Head) -> Json:
    made = datetime.fromtimestamp(head.created, UTC).isoformat().replace("+00:00", "Z")
    return {"model": head.model, "created_at": made}


def _last(head: Head, message: Json, reason: FinishReason, usage: Usage | None) -> Json:
    body = {**_begin(head), "message": message, "done": True, "done_reason": write_reason("ollama", reason)}
    if usage is not None:
        body |= {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}
    return body


APIS = (Ollama(),)

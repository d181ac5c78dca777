"""Ollama's chat API.

Arguments are objects, calls are whole, and there is no choice of tools. A stream consists of lines of JSON. An answer
is streamed unless the request says that it is not.

Source: https://docs.ollama.com/api/chat
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from toolwire.events import CallEnd, ContentDelta, Event, ReasoningDelta
from toolwire.messages import (
    FilePart,
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
from toolwire.providers import reasoning_effort
from toolwire.providers.answer_shapes import AnswerShape, put_members
from toolwire.providers.chat_messages import ChatMessages
from toolwire.providers.error_bodies import may_be_error
from toolwire.providers.failure_kinds import INTERNAL, FailureKind
from toolwire.providers.file_parts import images_of, in_words
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import Frame, JsonLines, json_line
from toolwire.providers.message_parts import (
    Json,
    UsageReader,
    calls_of,
    note_dropped,
    own_members,
    parsed_text,
    read_tools,
    split_members,
    stand_in,
    text_of,
    without_seal,
)
from toolwire.providers.offered_tool import OfferedTool
from toolwire.providers.output_support import OLLAMA
from toolwire.providers.repeated_frames import RepeatedFrames
from toolwire.providers.request import ChatRequest, Notes, ToolChoice, group_results, split_results
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.schema_dialects import JSON_SCHEMA
from toolwire.providers.setting_members import SettingMembers
from toolwire.providers.stream_codec import WAITING, Head, StreamEnd, in_order

_USAGE = UsageReader("prompt_eval_count", "eval_count")


class Ollama(ChatMessages):
    """The API."""

    kind = "ollama"
    dialect = JSON_SCHEMA
    _outputs = OLLAMA
    _settings = SettingMembers(
        {
            "options.num_predict": "max_tokens",
            "options.temperature": "temperature",
            "options.top_p": "top_p",
            "options.top_k": "top_k",
            "options.stop": "stop",
            "options.seed": "seed",
            "options.frequency_penalty": "frequency_penalty",
            "options.presence_penalty": "presence_penalty",
        },
        reasoning_effort.OLLAMA,
        parallel=False,
    )
    message_members = frozenset(("role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"))
    members = frozenset(("model", "messages", "tools", "stream"))
    _answer = AnswerShape(
        "done_reason",
        """
: model created_at done done_reason message prompt_eval_count eval_count total_duration load_duration \
prompt_eval_duration eval_duration remote_model remote_host
message: role content thinking tool_calls
message.tool_calls[function]: id type function
""",
    )
    framing = JsonLines

    # -- requests ------------------------------------------------------------------------------------------------

    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body."""
        body: Json = {"model": request.model} if request.model else {}
        body["messages"] = self.write_messages(request.messages, notes)
        chosen = self._chosen(request.tool_choice, tools, notes)
        if listed := [*map(self.function_of, chosen), *map(dict, request.provider_tools)]:
            body["tools"] = listed
        body["stream"] = request.stream
        return self._with_settings(body, request, notes)

    def _chosen(self, choice: ToolChoice, tools: Sequence[OfferedTool], notes: Notes) -> Sequence[OfferedTool]:
        """Return the tools to offer: the only way to express a choice."""
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
        """Return the messages of the API that one message becomes."""
        if message.role == "assistant":
            return super().write_message(message, notes)
        members, parts = split_members(message.parts, self.kind)
        results, rest = split_results(parts)
        written = [{**self._written_result(result, notes), **own_members(result, self.kind)} for result in results]
        if rest or members or not results:
            written += self._written_content("system" if message.role == "system" else "user", rest, members, notes)
        return written

    def _written_content(self, role: str, parts: Sequence[Part], members: Json, notes: Notes) -> list[Json]:
        """Return the message with some parts that are not results."""
        usable = list(self._taken(parts, notes))
        for part in usable:
            if not isinstance(part, TextPart | ImagePart):
                note_dropped(part, self.name, notes)
        content = _with_images({"role": role, "content": text_of(usable)}, usable)
        if content.keys() == {"role", "content"} and not content["content"] and parts:
            if role == "system":
                return []
            content["content"] = stand_in(parts)
        return [{**content, **members}]

    def write_answer(self, parts: Sequence[Part], notes: Notes) -> Json:
        """Return a message of the model."""
        message: Json = {"role": "assistant", "content": text_of(parts)}
        reasoning: list[str] = []
        for part in parts:
            match part:
                case TextPart() | ToolCall():
                    pass
                case ReasoningPart(text, "", ""):
                    reasoning.append(text)
                case _:
                    note_dropped(part, self.name, notes)
        if any(reasoning):
            message["thinking"] = "".join(reasoning)
        if calls := calls_of(parts):
            message["tool_calls"] = [{**_call(call), **own_members(call, self.kind)} for call in calls]
        return message

    def write_result(self, result: ToolResult) -> Json:
        """Return a message that carries one result, without its images."""
        message: Json = {
            "role": "tool",
            "content": "" if result.only_media else result.marked_text,
            "tool_name": result.tool_name,
        }
        if result.call_id:
            message["tool_call_id"] = result.call_id
        return message

    def _written_result(self, result: ToolResult, notes: Notes) -> Json:
        message = self.write_result(result)
        media = list(self._taken(result.media, notes))
        content = "\n".join(filter(None, (message["content"], text_of(media))))
        return _with_images({**message, "content": content}, media)

    def _taken(self, parts: Iterable[Part], notes: Notes) -> Iterator[Part]:
        """Yield the parts, with text in place of files, which this API does not take, and of addresses of images."""
        for part in parts:
            if isinstance(part, FilePart):
                yield in_words(part, self.name, notes)
            elif isinstance(part, ImagePart) and not part.data:
                yield in_words(part, self.name, notes, reason=f"{self.name} takes no address of an image")
            else:
                yield part

    # -- reading requests ----------------------------------------------------------------------------------------

    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body."""
        return self._request_of(
            body,
            group_results(self.read_messages(body["messages"])),
            **read_tools(body.get("tools"), self.function_tool),
            stream=body.get("stream") is None or bool(body["stream"]),
        )

    def read_messages(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
        """Yield the messages of a request; results without an id are matched with the calls before them."""
        waiting: list[ToolCall] = []
        for message in super().read_messages(messages):
            if message.role == "assistant":
                waiting = calls_of(message.parts)
            elif message.role == "tool":
                results, _ = split_results(message.parts)
                message = replace(message, parts=tuple(_named(result, waiting) for result in results))
            yield message

    def read_parts(self, message: Mapping[str, Any]) -> Iterator[Part]:
        """Yield the parts of a message that contains no result."""
        if message.get("thinking"):
            yield ReasoningPart(str(message["thinking"]))
        if message.get("content"):
            yield TextPart(str(message["content"]))
        yield from _images(message)
        yield from map(self.read_call, message.get("tool_calls") or ())

    def read_result(self, message: Mapping[str, Any]) -> ToolResult:
        """Parse a message that carries a result."""
        images = tuple(_images(message))
        text = message.get("content") or (None if images else "")
        name = str(message.get("tool_name") or message.get("name") or "")
        return ToolResult(str(message.get("tool_call_id") or ""), name, text, images=images)

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the content of a response, or of a line of a stream, to the builder."""
        if response.get("error"):
            builder.add_error(response)
            return
        message = response.get("message") or {}
        builder.add_reasoning(message.get("thinking"))
        builder.add_text(parsed_text(message.get("content")))
        for call in message.get("tool_calls") or ():
            self.add_call(call, builder)
        if response.get("done"):
            builder.reason = read_reason(self.kind, response.get("done_reason")) or builder.reason
            if response.get("prompt_eval_count") is not None or response.get("eval_count") is not None:
                builder.add_usage(_USAGE.read(response))

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return the body of a response."""
        message = self.write_answer([without_seal(part, self.name, notes) for part in response.parts], notes)
        for at, call in enumerate(message.get("tool_calls", ())):
            call["function"]["index"] = at
        return _last(head, message, response.finish_reason, response.usage)

    # -- streams -------------------------------------------------------------------------------------------------

    def stream_reader(self, builder: ResponseBuilder) -> Callable[[Frame], None]:
        """Return the function that reads the lines of one stream."""
        repeated = RepeatedFrames(_is_unique_line)

        def read(frame: Frame) -> None:
            if repeated.repeats(frame.value):
                return
            self.read_response(frame.value, builder)
            # The members of an error are no part of an answer.
            if not may_be_error(frame.value) or isinstance(frame.value.get("message"), Mapping):
                builder.add_unread(self._answer, frame.value)

        return read

    def write_error(self, message: str, kind: FailureKind = INTERNAL, head: Head | None = None) -> bytes:
        """Return the line that reports a failure in the middle of a stream."""
        return json_line({"error": message})

    def write_stream(self, events: Iterable[Event], head: Head, end: StreamEnd) -> Iterator[bytes]:
        """Yield the lines of a stream, each call whole in one of them."""
        calls = 0
        for event in in_order(events):
            if event is WAITING:
                yield b""
                continue
            match event:
                case ContentDelta(text):
                    message: Json = {"content": text}
                case ReasoningDelta(text):
                    message = {"content": "", "thinking": text}
                case CallEnd(_, call, True):
                    written = _call(call)
                    written["function"]["index"] = calls
                    message = {"content": "", "tool_calls": [written]}
                    calls += 1
                case _:  # pieces of a call, signatures
                    continue
            yield json_line({**_begin(head), "message": {"role": "assistant", **message}, "done": False})
        last = _last(head, {"role": "assistant", "content": ""}, end.reason, end.usage)
        put_members(last, end.members)
        yield json_line(last)


def _call(call: ToolCall) -> Json:
    written: Json = {"function": {"name": call.name, "arguments": call.arguments}}
    return {"id": call.id, **written} if call.id else written


def _is_unique_line(line: Json) -> bool:
    """Return whether a line with calls has their ids, or says when it was written more exactly than to the second."""
    message = line.get("message")
    calls = (message.get("tool_calls") if isinstance(message, Mapping) else None) or ()
    return bool(calls) and ("." in str(line.get("created_at")) or any(call.get("id") for call in calls))


def _with_images(message: Json, parts: Iterable[Part]) -> Json:
    data = [image.data for image in images_of(parts)]
    return {**message, "images": data} if data else message


def _images(message: Mapping[str, Any]) -> Iterator[ImagePart]:
    return (ImagePart(str(data)) for data in message.get("images") or ())


def _named(result: ToolResult, waiting: list[ToolCall]) -> ToolResult:
    """Return a result with its call's name; it answers the first waiting call that fits."""
    for at, call in enumerate(waiting):
        fits = call.id == result.call_id if result.call_id else result.tool_name in ("", call.name)
        if fits:
            del waiting[at]
            return replace(result, tool_name=call.name)
    return result


def _begin(head: Head) -> Json:
    created = datetime.fromtimestamp(head.created, UTC).isoformat().replace("+00:00", "Z")
    return {"model": head.model, "created_at": created}


def _last(head: Head, message: Json, reason: FinishReason, usage: Usage | None) -> Json:
    body = {**_begin(head), "message": message, "done": True, "done_reason": write_reason("ollama", reason)}
    if usage is not None:
        body |= {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}
    return body


APIS = (Ollama(),)

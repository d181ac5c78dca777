"""Broken servers: the healthy one with one fault each, and the probes that have to find it.

The faults come from the rules of the APIs and from reports about real servers, not from the probes.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.integration.probed_server import Answer, Asked, Body, Fault

from toolwire import FinishReason, Message, ParsedResponse, ToolCall, ToolDefinition, ToolResult
from toolwire.messages import Part, TextPart
from toolwire.providers.request import ChatRequest, ToolChoice


def fault(*probes: str, **changes: Any) -> Fault:
    return Fault(frozenset(probes), **changes)


def calls_changed(change: Callable[[ToolCall], ToolCall]) -> Callable[[ParsedResponse, ChatRequest], ParsedResponse]:
    """Return a change of each call of an answer."""
    return lambda answer, _: replace(answer, tool_calls=tuple(map(change, answer.tool_calls)))


def in_stream(change: Callable[[ParsedResponse, ChatRequest], ParsedResponse]) -> Any:
    return lambda answer, request: change(answer, request) if request.stream else answer


def arguments_changed(change: Callable[[Any], Any]) -> Callable[[ParsedResponse, ChatRequest], ParsedResponse]:
    """Return a change of each argument of an answer's calls."""
    return calls_changed(
        lambda call: replace(call, arguments={name: change(item) for name, item in call.arguments.items()})
    )


def parts_changed(change: Callable[[Part], Part | None]) -> Callable[[ChatRequest], ChatRequest]:
    """Return a change of each part of the conversation; None leaves one out."""

    def request(request: ChatRequest) -> ChatRequest:
        messages = [
            Message(message.role, tuple(part for old in message.parts if (part := change(old)) is not None))
            for message in request.messages
        ]
        return replace(request, messages=tuple(message for message in messages if message.parts))

    return request


def tools_changed(change: Callable[[ToolDefinition], ToolDefinition]) -> Callable[[ChatRequest], ChatRequest]:
    return lambda request: replace(request, tools=tuple(map(change, request.tools)))


def _without_roles(*roles: str) -> Callable[[ChatRequest], ChatRequest]:
    return lambda request: replace(
        request, messages=tuple(message for message in request.messages if message.role not in roles)
    )


def _as_text(answer: ParsedResponse, _: ChatRequest) -> ParsedResponse:
    """Leave the calls in the text, as a server without a parser does."""
    written = [
        f"<tool_call>{json.dumps({'name': c.name, 'arguments': c.arguments})}</tool_call>" for c in answer.tool_calls
    ]
    if not written:
        return answer
    return replace(answer, content="\n".join(written), tool_calls=(), finish_reason=FinishReason.STOP)


def _as_reasoning(answer: ParsedResponse, request: ChatRequest) -> ParsedResponse:
    """Leave the calls in the reasoning."""
    text = _as_text(answer, request)
    return replace(text, reasoning=f"I call it. {text.content}", content="") if answer.tool_calls else answer


def _with_copy(answer: ParsedResponse, request: ChatRequest) -> ParsedResponse:
    return replace(answer, content=_as_text(answer, request).content)


def _without_last_message(request: ChatRequest) -> ChatRequest:
    """Keep only the last messages, as a server with a small context does without a word."""
    return replace(request, messages=request.messages[-1:])


def _with_short_text(answer: ParsedResponse, _: ChatRequest) -> ParsedResponse:
    return replace(answer, content=answer.content[:80])


def _without_a_piece(answer: ParsedResponse, _: ChatRequest) -> ParsedResponse:
    return replace(answer, content=answer.content[:40] + answer.content[52:])


def _status(status: int, message: bytes = b'{"error": {"message": "internal error"}}') -> Any:
    """Return a change of refusals."""
    return lambda answer, _: Answer(message, status=status) if answer.status == 400 else answer


def _chunked(change: Callable[[Body], None]) -> Callable[[list[Any]], list[Any]]:
    """Return a change of each chunk of a stream of Chat Completions."""

    def chunks(chunks: list[Any]) -> list[Any]:
        for chunk in chunks:
            if isinstance(chunk, dict):
                change(chunk)
        return chunks

    return chunks


def _delta_calls(chunk: Body) -> list[Body]:
    return [call for choice in chunk["choices"] for call in choice["delta"].get("tool_calls", ())]


def _set_index(chunk: Body) -> None:
    for call in _delta_calls(chunk):
        call["index"] = 0


def _repeat_names() -> Callable[[list[Any]], list[Any]]:
    """Return a change that repeats the name of a call in each of its deltas."""

    def chunks(chunks: list[Any]) -> list[Any]:
        names: dict[int, str] = {}
        for chunk in chunks:
            for call in _delta_calls(chunk) if isinstance(chunk, dict) else ():
                names.setdefault(call["index"], call["function"].get("name", ""))
                call["function"]["name"] = names[call["index"]]
        return chunks

    return chunks


def _number_ids(chunks: list[Any]) -> list[Any]:
    for number, chunk in enumerate(chunks):
        if isinstance(chunk, dict):
            chunk["id"] = f"chatcmpl-{number}"
    return chunks


def _merge_deltas(chunks: list[Any]) -> list[Any]:
    """Send the arguments of each call in its first delta."""
    first: dict[int, Body] = {}
    for chunk in chunks:
        if not isinstance(chunk, dict):
            continue
        for call in _delta_calls(chunk):
            if call["index"] in first:
                first[call["index"]]["function"]["arguments"] += call["function"].pop("arguments", "")
            else:
                first[call["index"]] = call
    return chunks


def _without_chunks(needle: str) -> Callable[[list[Any]], list[Any]]:
    return lambda chunks: [chunk for chunk in chunks if needle not in json.dumps(chunk)]


def without_members(value: Any, *names: str) -> Any:
    """Return a JSON value without members of these names."""
    if isinstance(value, dict):
        return {name: without_members(item, *names) for name, item in value.items() if name not in names}
    return [without_members(item, *names) for item in value] if isinstance(value, list) else value


def _without_nested_descriptions(tool: ToolDefinition) -> ToolDefinition:
    return replace(tool, parameters=without_members(tool.parameters, "description"))


def _message(change: Callable[[Body], None]) -> Callable[[Body], Body]:
    """Return a change of the message of a whole answer of Chat Completions."""

    def whole(body: Body) -> Body:
        change(body["choices"][0]["message"])
        return body

    return whole


def _objects_for_arguments(message: Body) -> None:
    for call in message.get("tool_calls", ()):
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])


def _double_encoded(message: Body) -> None:
    for call in message.get("tool_calls", ()):
        call["function"]["arguments"] = json.dumps(call["function"]["arguments"])


def _empty_text_for_arguments(message: Body) -> None:
    for call in message.get("tool_calls", ()):
        if call["function"]["arguments"] == "{}":
            call["function"]["arguments"] = ""


def _cut_arguments(message: Body) -> None:
    for call in message.get("tool_calls", ()):
        call["function"]["arguments"] = call["function"]["arguments"][:-3]


def _closed_when_cut(answer: ParsedResponse, request: ChatRequest) -> ParsedResponse:
    """Complete a call that was cut, and say that the model called a tool."""
    if not answer.incomplete:
        return answer
    calls = tuple(replace(call, id="call00001") for call in answer.incomplete)
    return replace(answer, incomplete=(), tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS)


def _reason(old: FinishReason, new: FinishReason) -> Callable[[ParsedResponse, ChatRequest], ParsedResponse]:
    return lambda answer, _: replace(answer, finish_reason=new) if answer.finish_reason is old else answer


def _with_other_reason(reason: str) -> Callable[[Any], Any]:
    """Return the change of an answer, or of the chunks of one, after which calls end for another reason."""
    old, new = (f'"finish_reason": "{name}"' for name in ("tool_calls", reason))
    return lambda body: json.loads(json.dumps(body).replace(old, new))


def _in_one_piece(answer: Answer, _: Asked) -> Answer:
    """Collect a stream, and send it at once when it is complete."""
    return replace(answer, pause=0.0, delay=answer.pause * len(answer.body) / 97) if answer.pause else answer


FAULTS = {
    "a call stays in the text": fault("one-call", "streamed-call", response=_as_text),
    "a call stays in the text of streams": fault("streamed-call", response=in_stream(_as_text)),
    "a call stays in the reasoning": fault("one-call", "call-in-reasoning", response=_as_reasoning),
    "a call is also in the text": fault("call-not-in-text", "streamed-not-in-text", response=_with_copy),
    "a call arrives twice": fault(
        "one-call", response=lambda a, _: replace(a, tool_calls=tuple(c for c in a.tool_calls for _ in "ab"))
    ),
    "the second of two calls is lost": fault(
        "parallel-calls", "streamed-parallel", response=lambda a, _: replace(a, tool_calls=a.tool_calls[:1])
    ),
    "the first of two calls is sent twice": fault(
        "parallel-calls", response=lambda a, _: replace(a, tool_calls=a.tool_calls[:1] * len(a.tool_calls))
    ),
    "ids are missing": fault("call-ids", data=lambda data, _: re.sub(rb'"id": ?"call\d+", ?', b"", data)),
    "ids are equal": fault("call-ids", "new-ids", response=calls_changed(lambda call: replace(call, id="call00000"))),
    "ids begin anew with each answer": fault(
        "new-ids",
        response=lambda a, _: replace(
            a, tool_calls=tuple(replace(call, id=f"call_{at}") for at, call in enumerate(a.tool_calls))
        ),
    ),
    "the reason of an answer with calls is length": fault(
        "call-reason",
        "streamed-call-reason",
        whole=_with_other_reason("length"),
        chunks=_with_other_reason("length"),
    ),
    "the reason of an answer with calls is stop": fault(
        "call-reason",
        "streamed-call-reason",
        whole=_with_other_reason("stop"),
        chunks=_with_other_reason("stop"),
    ),
    "control tokens are in the text beside a call": fault(
        "call-not-in-text",
        "streamed-not-in-text",
        response=lambda a, _: replace(a, content="I look.<|im_end|>") if a.tool_calls else a,
    ),
    "the reason of a cut answer is stop": fault(
        "cut-answer", "cut-stream", response=_reason(FinishReason.LENGTH, FinishReason.STOP)
    ),
    "the maximum length is ignored": fault("maximum-length", request=lambda request: replace(request, max_tokens=None)),
    "a cut call is completed": fault("cut-call", "cut-streamed-call", response=_closed_when_cut),
    "arguments are cut": fault("valid-arguments", whole=_message(_cut_arguments)),
    "arguments are an object": fault("call-members", whole=_message(_objects_for_arguments)),
    "arguments are encoded twice": fault("valid-arguments", whole=_message(_double_encoded)),
    "no arguments are an empty text": fault("empty-arguments-text", whole=_message(_empty_text_for_arguments)),
    "numbers arrive as text": fault(
        "nested-schema",
        response=arguments_changed(lambda item: json.loads(re.sub(r": (\d+(?:\.\d+)?)", r': "\1"', json.dumps(item)))),
    ),
    "nested objects arrive as text": fault(
        "nested-schema",
        "streamed-nested-schema",
        response=arguments_changed(lambda item: json.dumps(item) if isinstance(item, dict) else item),
    ),
    "optional parameters arrive as null": fault(
        "optional-parameter",
        response=calls_changed(
            lambda call: (
                replace(call, arguments={"limit": None, **call.arguments}) if call.name == "list_files" else call
            )
        ),
    ),
    "arguments have character references": fault(
        "quotes", response=arguments_changed(lambda item: item.replace("<", "&lt;") if isinstance(item, str) else item)
    ),
    "arguments lose characters outside ASCII": fault(
        "characters",
        response=arguments_changed(
            lambda item: item.encode("ascii", "replace").decode() if isinstance(item, str) else item
        ),
    ),
    "text is decoded as Latin-1": fault(
        "text-characters", "streamed-characters", data=lambda data, in_stream: _mojibake(data) if in_stream else data
    ),
    "line ends in arguments are lost": fault(
        "quotes",
        "streamed-quotes",
        response=arguments_changed(lambda item: item.replace("\n", " ") if isinstance(item, str) else item),
    ),
    "long arguments are cut": fault(
        "long-arguments", response=arguments_changed(lambda item: item[:200] if isinstance(item, str) else item)
    ),
    "streamed arguments differ": fault(
        "streamed-equals-whole",
        response=in_stream(arguments_changed(lambda item: item * 11 if isinstance(item, int) else item)),
    ),
    "arguments are withheld until the call is complete": fault("arguments-in-pieces", chunks=_merge_deltas),
    "a stream arrives at once": fault("stream-over-time", reply=_in_one_piece),
    "a stream ends in the middle": fault("stream-end", data=lambda data, s: data[: len(data) * 6 // 10] if s else data),
    "a stream has no end mark": fault("stream-end", chunks=lambda chunks: [c for c in chunks if c != "[DONE]"]),
    "a stream is a whole answer": fault("stream-framing", body=lambda body: {**body, "stream": False}),
    "the calls of a stream all have the index 0": fault("call-indexes", chunks=_chunked(_set_index)),
    "the name is repeated in each delta": fault("call-begins-once", chunks=_repeat_names()),
    "each chunk has another id": fault("chunk-members", chunks=_number_ids),
    "the finish reason is missing in streams": fault("one-finish", chunks=_without_chunks('"finish_reason": "')),
    "usage is missing": fault("usage", whole=lambda body: without_members(body, "usage")),
    "usage of streams is missing": fault("streamed-usage", chunks=_without_chunks('"prompt_tokens"')),
    "usage counts only the answer": fault(
        "usage-total",
        whole=lambda body: {**body, "usage": {**body["usage"], "total_tokens": body["usage"]["completion_tokens"]}},
    ),
    "required calls are not required": fault(
        "required-choice",
        request=lambda r: replace(r, tool_choice=ToolChoice()) if r.tool_choice == ToolChoice("required") else r,
    ),
    "a named choice is only required": fault(
        "named-choice", request=lambda r: replace(r, tool_choice=ToolChoice("required")) if r.tool_choice.names else r
    ),
    "forbidden calls are made": fault(
        "no-choice",
        "streamed-no-choice",
        request=lambda r: replace(r, tool_choice=ToolChoice()) if r.tool_choice.mode == "none" else r,
    ),
    "parallel calls cannot be forbidden": fault("one-call-allowed", request=lambda r: replace(r, parallel=None)),
    "results do not reach the model": fault("result-returned", "result", request=_without_roles("tool")),
    "errors do not reach the model": fault(
        "error-result",
        "error",
        request=parts_changed(
            lambda part: replace(part, result="") if isinstance(part, ToolResult) and "Error" in part.text else part
        ),
    ),
    "system messages do not reach the model": fault(
        "system-message", "template-messages", request=_without_roles("system")
    ),
    "earlier messages do not reach the model": fault("earlier-messages", request=_without_last_message),
    "text beside a call does not reach the model": fault(
        "words-beside-call",
        request=lambda r: replace(
            r,
            messages=tuple(
                Message(m.role, tuple(p for p in m.parts if not isinstance(p, TextPart)))
                if any(isinstance(p, ToolCall) for p in m.parts)
                else m
                for m in r.messages
            ),
        ),
    ),
    "earlier arguments do not reach the model": fault(
        "call", request=parts_changed(lambda part: replace(part, arguments={}) if isinstance(part, ToolCall) else part)
    ),
    "descriptions of parameters do not reach the model": fault(
        "parameter", "template-tools", request=tools_changed(_without_nested_descriptions)
    ),
    "allowed values do not reach the model": fault(
        "allowed-values",
        request=tools_changed(lambda tool: replace(tool, parameters=without_members(tool.parameters, "enum"))),
    ),
    "long streams end early": fault("long-stream", response=in_stream(_with_short_text)),
    "long streams lose a piece": fault("long-stream", response=in_stream(_without_a_piece)),
    "descriptions of tools do not reach the model": fault(
        "description", request=tools_changed(lambda tool: replace(tool, description=""))
    ),
    "an empty result is refused": fault(
        "empty-result",
        reply=lambda answer, asked: (
            Answer(b'{"error": {"message": "content is empty"}}', status=400)
            if b'"content": ""' in asked.body
            else answer
        ),
    ),
    "references in schemas are refused": fault(
        "references-in-schema",
        reply=lambda answer, asked: (
            Answer(b'{"error": {"message": "unknown keyword $ref"}}', status=400) if b"$ref" in asked.body else answer
        ),
    ),
    "alternatives in schemas crash the server": fault(
        "union-in-schema",
        reply=lambda answer, asked: Answer(b"Internal Server Error", status=500) if b"anyOf" in asked.body else answer,
    ),
    "stop words are ignored": fault("stop-word", request=lambda request: replace(request, stop=())),
    "control tokens are in the text": fault(
        "clean-text", response=lambda a, _: replace(a, content=f"{a.content}<|im_end|>") if a.content else a
    ),
    "a wrong request is an error of the server": fault("not-json", "no-messages", reply=_status(500)),
    "an error has the status of a success": fault("not-json", "no-messages", reply=_status(200)),
    "an error is text": fault("error-message", reply=_status(400, b"Bad Request")),
    "any key is accepted": fault(
        "wrong-key",
        reply=lambda answer, asked: Answer(b'{"object": "chat.completion"}') if answer.status == 401 else answer,
    ),
    "a wrong key crashes the server": fault(
        "wrong-key", reply=lambda answer, _: Answer(b"{}", status=500) if answer.status == 401 else answer
    ),
}
"""Planted faults of a server of Chat Completions."""


def _mojibake(data: bytes) -> bytes:
    """Return a stream whose texts were read as Latin-1."""

    def broken(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: broken(item) for name, item in value.items()}
        if isinstance(value, list):
            return [broken(item) for item in value]
        return value.encode().decode("latin-1") if isinstance(value, str) else value

    lines = []
    for line in data.split(b"\n"):
        if line.startswith(b"data: {"):
            line = b"data: " + json.dumps(broken(json.loads(line[6:]))).encode()
        lines.append(line)
    return b"\n".join(lines)

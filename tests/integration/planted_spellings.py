"""Broken servers whose answers have a form that many clients do not read, or that lose what few clients send."""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.integration.planted_faults import fault, tools_changed, without_members
from tests.integration.probed_server import Answer, Asked, Body


def _respelled(pattern: str, replacement: str) -> Callable[[bytes, bool], bytes]:
    return lambda data, _: re.sub(pattern.encode(), replacement.encode(), data)


def _respelled_in_stream(pattern: str, replacement: str) -> Callable[[bytes, bool], bytes]:
    change = _respelled(pattern, replacement)
    return lambda data, streams: change(data, streams) if streams else data


def _without_last_delta(chunks: list[Any]) -> list[Any]:
    """Send the finish reason beside a null in place of a delta."""
    return [
        {**chunk, "choices": [{**chunk["choices"][0], "delta": None}]}
        if isinstance(chunk, dict) and chunk["choices"] and chunk["choices"][0]["finish_reason"]
        else chunk
        for chunk in chunks
    ]


def _crashing_at_lists(answer: Answer, asked: Asked) -> Answer:
    """Return an error for a result that is a list, as a server whose template expects a text."""
    body = json.loads(asked.body) if asked.body.startswith(b"{") else {}
    messages: Any = body.get("messages") or []
    lists = [m for m in messages if m.get("role") == "tool" and isinstance(m["content"], list)]
    return Answer(b'{"error": {"message": "internal error"}}', status=500) if lists else answer


def _first_texts_of_results(body: Body) -> Body:
    messages = [
        {**message, "content": message["content"][0]["text"]}
        if message.get("role") == "tool" and isinstance(message["content"], list)
        else message
        for message in body.get("messages") or ()
    ]
    return {**body, "messages": messages} if messages else body


SPELLINGS = {
    "the finish reason is the word of an engine": fault(
        "stop-reason", data=_respelled('"finish_reason": ?"stop"', '"finish_reason": "eos_token"')
    ),
    "the finish reason of calls is the word of another API": fault(
        "call-reason",
        "streamed-call-reason",
        data=_respelled('"finish_reason": ?"tool_calls"', '"finish_reason": "tool_use"'),
    ),
    "the finish reason of a cut answer is the word of another API": fault(
        "cut-answer", "cut-stream", data=_respelled('"finish_reason": ?"length"', '"finish_reason": "max_tokens"')
    ),
    "answers end with calls that they do not have": fault(
        "no-choice",
        "streamed-no-choice",
        data=_respelled('"finish_reason": ?"stop"', '"finish_reason": "tool_calls"'),
    ),
    "ids are numbers": fault("call-members", "call-begins-once", data=_respelled(r'"id": ?"call0*(\d+)"', r'"id": \1')),
    "null is a word beside calls": fault(
        "content-beside-call",
        whole=lambda body: json.loads(re.sub(r'"content": ?null', '"content": "None"', json.dumps(body))),
    ),
    "the last delta is null": fault("chunk-members", chunks=_without_last_delta),
    "no empty lines are between events": fault("stream-framing", data=_respelled_in_stream("\n\n", "\n")),
    "results that are lists crash the server": fault("result-parts", reply=_crashing_at_lists),
    "the second text of a result does not reach the model": fault("result-parts", body=_first_texts_of_results),
    "alternatives in schemas do not reach the model": fault(
        "alternatives",
        request=tools_changed(
            lambda tool: type(tool)(tool.name, tool.description, without_members(tool.parameters, "anyOf"))
        ),
    ),
}
"""Planted faults of a server of Chat Completions."""

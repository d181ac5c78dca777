"""Rows of logs as answers: text with the calls that were read from it, or the response of a provider API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from toolwire.providers.api_registry import api_of
from toolwire.text.json_text import json_type, line_text
from toolwire.text.limits import MAX_DEPTH

Calls = list[tuple[str, Any]]
"""Calls as their names and arguments."""
_WRAPPERS: Final = ("response", "body")
"""Members that contain a response: `response.body` in a batch of OpenAI, `response` in logs of requests."""
_TEXTS: Final = ("text", "output", "completion", "raw", "response")
_CALLS: Final = ("calls", "tool_calls")


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer in a log.

    Attributes:
        model: the name of the model; "" if the row has none.
        text: the text of the model; None if the row contains a response.
        response: the response of a provider API.
        format: the wire format that the row names; "" for none.
        tools: the definitions of the tools; None if the row has none.
        calls: the calls that were read when the answer was logged; None if the row does not say.
    """

    model: str
    text: str | None = None
    response: Mapping[str, Any] | None = None
    format: str = ""
    tools: Sequence[Any] | None = None
    calls: Calls | None = None


def answer_row(line: bytes) -> AnswerRow:
    """Return the answer in a line of JSON.

    Raises:
        ValueError: it is not an answer; the message says why.
    """
    content = line_text(line)
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise ValueError(f"it has more than {MAX_DEPTH} levels") from error
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"it is a JSON {json_type(value)}, and not an object")
    tools = _tools(value)
    response = value
    for _ in range(len(_WRAPPERS) + 1):
        if api_of(response) is not None:
            return AnswerRow(_model(response) or _model(value), response=response, tools=tools)
        inner = next((response[key] for key in _WRAPPERS if isinstance(response.get(key), dict)), None)
        if inner is None:
            break
        response = inner
    text = next((value[key] for key in _TEXTS if isinstance(value.get(key), str)), None)
    if text is not None:
        return _text_row(value, text, value, tools)
    # A batch has the refusal of a request where the other rows have an answer.
    for row in (value, response):
        if row.get("error") is not None:
            raise ValueError(f"it is an error: {json.dumps(row['error'])[:200]}")
    # The last message of a conversation, as training data and logs of chats have it.
    messages = value.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        return _message_row(value, messages[-1], tools)
    raise ValueError(f"it has no text ({', '.join(_TEXTS)}), no messages, and no response of a known API")


def _text_row(
    value: Mapping[str, Any], text: str, recorded: Mapping[str, Any], tools: Sequence[Any] | None
) -> AnswerRow:
    """Return a text as an answer, with the calls that are recorded beside it."""
    calls = next((listed for key in _CALLS if (listed := _listed(recorded.get(key))) is not None), None)
    format = value.get("format")
    return AnswerRow(
        _model(value),
        text,
        format=format if isinstance(format, str) else "",
        tools=tools,
        calls=None if calls is None else [_call(call) for call in calls],
    )


def _message_row(value: Mapping[str, Any], message: Mapping[str, Any], tools: Sequence[Any] | None) -> AnswerRow:
    """Return the message of an assistant as an answer.

    Raises:
        ValueError: it is the message of somebody else: the answer to it is not in the row.
    """
    role = message.get("role")
    if role != "assistant":
        raise ValueError(f"its last message has the role {role!r:.40}, and is not an answer")
    if calls := _listed(message.get("tool_calls")):
        # The calls are in fields, and no longer in the text: this is the response of a server.
        response = {"choices": [{"index": 0, "message": {**message, "tool_calls": calls}}]}
        return AnswerRow(_model(value), response=response, tools=tools)
    return _text_row(value, _content_text(message.get("content")), {**value, **message}, tools)


def _content_text(content: Any) -> str:
    """Return the text of a message's content, which may be a list of parts."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _model(value: Mapping[str, Any]) -> str:
    model = value.get("model")
    return model if isinstance(model, str) else ""


def _listed(value: Any) -> list[Any] | None:
    """Return a list, or the list that a text has as JSON, as in columns of tables; None if it is neither."""
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return value if isinstance(value, list) else None


def _tools(value: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return the definitions of tools in a row, or in the request that it contains."""
    request = value.get("request")
    request = request.get("body", request) if isinstance(request, dict) else {}
    for place in (value, request):
        if isinstance(place, dict) and (tools := _listed(place.get("tools"))) is not None:
            return tools
    return None


def _call(call: Any) -> tuple[str, Any]:
    """Return a logged call, in the form of Chat Completions or as a name with arguments.

    Raises:
        ValueError: it is not a call.
    """
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise ValueError("one of its calls has no name")
    arguments = call.get("arguments", {})
    if isinstance(arguments, str):
        # A server passes on arguments that it cannot read: the text is then compared as it is.
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments or "{}")
    return call["name"], arguments

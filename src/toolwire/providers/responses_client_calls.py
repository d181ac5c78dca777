"""Calls of OpenAI's own tools that the client has to run: in the Responses API, each has an item of its own.

They are calls here, with the name of the tool and its arguments, so that an agent does not take an answer with them for
the end. They are not among a response's `tool_calls`, because the request defines no tool with this name and these
arguments, but among its `provider_calls`. A tool of that name can run them. What else the item has is a member of the
call that only this API knows, by which the call becomes that item again, and its result the item that answers it.

Source: https://platform.openai.com/docs/guides/tools
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.events import CallStart
from toolwire.messages import ImagePart, OpaquePart, ToolCall, ToolResult
from toolwire.providers.message_parts import Json, object_of, own_members

KIND = "openai_responses"


@dataclass(frozen=True, slots=True)
class OpenAIToolCall:
    """A kind of call that the client has to run.

    Attributes:
        tool: the name of the tool.
        arguments: the members of the item that are its arguments.
        output: the type of the item with its result.
        id: the member with the id of the call, in the item and in that of the result.
        write: returns the members for a result.
    """

    tool: str
    arguments: tuple[str, ...]
    output: str
    write: Callable[[ToolResult], Json]
    id: tuple[str, str] = ("call_id", "call_id")


def _screenshot(result: ToolResult) -> Json:
    url = result.images[0].as_url if result.images else result.text
    return {"output": {"type": "computer_screenshot", "image_url": url}}


def _shell(result: ToolResult) -> Json:
    stream = "stdout" if result.success else "stderr"
    outcome = {"type": "exit", "exit_code": 0 if result.success else 1}
    return {"output": [{"stdout": "", "stderr": "", stream: result.text, "outcome": outcome}]}


def _patch(result: ToolResult) -> Json:
    return {"status": "completed" if result.success else "failed", "output": result.text}


def _approval(result: ToolResult) -> Json:
    # Only what is certainly a yes is one: the server would run the call.
    if result.success and result.result is True:
        return {"approve": True}
    return {"approve": False, "reason": result.text} if not result.success else {"approve": False}


def _search(result: ToolResult) -> Json:
    tools = result.result if result.success and isinstance(result.result, list) else []
    return {"execution": "client", "status": "completed" if result.success else "incomplete", "tools": tools}


CLIENT_CALLS: Mapping[str, OpenAIToolCall] = {
    "computer_call": OpenAIToolCall(
        "computer", ("action", "actions", "pending_safety_checks"), "computer_call_output", _screenshot
    ),
    "local_shell_call": OpenAIToolCall(
        "local_shell", ("action",), "local_shell_call_output", lambda result: {"output": result.text}, ("call_id", "id")
    ),
    "shell_call": OpenAIToolCall("shell", ("action",), "shell_call_output", _shell),
    "apply_patch_call": OpenAIToolCall("apply_patch", ("operation",), "apply_patch_call_output", _patch),
    "tool_search_call": OpenAIToolCall("tool_search", ("arguments",), "tool_search_output", _search),
    "mcp_approval_request": OpenAIToolCall(
        "mcp_approval",
        ("server_label", "name", "arguments"),
        "mcp_approval_response",
        _approval,
        ("id", "approval_request_id"),
    ),
}
"""Kinds of calls, by the types of their items."""

_FUNCTION_OUTPUT = "function_call_output"
_OUTPUTS = {call.output: call for call in CLIENT_CALLS.values()}
_ANSWERS = frozenset((*_OUTPUTS, _FUNCTION_OUTPUT))


def client_call(item: Mapping[str, Any]) -> ToolCall | None:
    """Return the call that an item stands for; None if it is not a call, or one that the provider runs itself."""
    type = str(item.get("type"))
    call = CLIENT_CALLS.get(type)
    if call is None or not isinstance(id := item.get(call.id[0]), str) or not id or _runs_on_server(item):
        return None
    arguments = {name: item[name] for name in call.arguments if item.get(name) is not None}
    if isinstance(text := arguments.get("arguments"), str):
        arguments["arguments"] = object_of(text)
    rest = {name: value for name, value in item.items() if name not in ("type", call.id[0], *call.arguments)}
    extra = OpaquePart({type: rest}, KIND)
    return ToolCall(call.tool, arguments, id, format=KIND, extra=extra, of_provider=True)


def _runs_on_server(item: Mapping[str, Any]) -> bool:
    environment = item.get("environment")
    in_container = isinstance(environment, Mapping) and str(environment.get("type")).startswith("container")
    return in_container or item.get("execution") == "server"


def is_client_call(call: ToolCall | CallStart) -> str:
    """Return the type of the item that a call was read from, if it is one of these; else ""."""
    if call.extra is None or call.extra.provider != KIND:
        return ""
    return next((type for type in call.extra.data if type in CLIENT_CALLS), "")


def client_call_item(call: ToolCall) -> Json | None:
    """Return the item of such a call; None for any other call."""
    type = is_client_call(call)
    if not type:
        return None
    arguments = dict(call.arguments)
    if type == "mcp_approval_request" and not isinstance(arguments.get("arguments"), str):
        arguments["arguments"] = json.dumps(arguments.get("arguments") or {}, ensure_ascii=False)
    return {"type": type, CLIENT_CALLS[type].id[0]: call.id, **arguments, **own_members(call, KIND)[type]}


def client_result_item(result: ToolResult, type: str) -> Json:
    """Return the item with the result of a call from an item of this type; as it was read, if it was."""
    call = CLIENT_CALLS[type]
    members = own_members(result, KIND)
    original = next((members[name] for name in members if name in _ANSWERS), None)
    if isinstance(original, Mapping) and result_text(original) == result.text:
        return dict(original)
    return {"type": call.output, call.id[1]: result.call_id, **call.write(result)}


def client_result_id(item: Mapping[str, Any]) -> str:
    """Return the id of the call that an item answers, if it answers one of these calls; else ""."""
    if item.get("type") == _FUNCTION_OUTPUT:  # some clients answer every call with it
        return str(item.get("call_id") or "")
    call = _OUTPUTS.get(str(item.get("type")))
    id = None if call is None else item.get(call.id[1]) or item.get("call_id")
    return id if isinstance(id, str) else ""


def client_result(item: Mapping[str, Any], call: ToolCall) -> ToolResult:
    """Return the result that an item answers a call with."""
    output = item.get("output")
    images: tuple[ImagePart, ...] = ()
    if isinstance(output, Mapping) and isinstance(url := output.get("image_url"), str):
        images = (ImagePart(url=url),)
    extra = OpaquePart({str(item["type"]): dict(item)}, KIND)
    return ToolResult(call.id, call.name, result_text(item), images=images, extra=extra)


def result_text(item: Mapping[str, Any]) -> str:
    """Return the text of the result in an item."""
    if "approve" in item:
        return "true" if item["approve"] is True else "false"
    for member in ("output", "tools"):
        if (value := item.get(member)) is not None:
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return str(item.get("status") or "")

"""Calls of OpenAI's own tools that the client has to run, in answers and requests of the Responses API."""

from typing import Any

import pytest

from toolwire import CallEnd, FinishReason, ImagePart, Message, Notes, ToolResult, collect, get_api, replay
from toolwire.providers.request import ChatRequest
from toolwire.providers.responses_client_calls import CLIENT_CALLS, client_call, result_text

API = get_api("openai_responses")
COMPUTER = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "c1",
    "action": {"type": "click", "button": "left", "x": 1, "y": 2},
    "pending_safety_checks": [],
    "status": "completed",
}
SHELL = {"type": "shell_call", "id": "sh_1", "call_id": "c1", "action": {"commands": ["ls"]}, "status": "completed"}
LOCAL = {"type": "local_shell_call", "id": "ls_1", "call_id": "c1", "action": {"command": ["ls"], "type": "exec"}}
PATCH = {"type": "apply_patch_call", "id": "ap_1", "call_id": "c1", "operation": {"type": "delete_file", "path": "a"}}
SEARCH = {"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {"query": "rain"}}
APPROVAL = {
    "type": "mcp_approval_request",
    "id": "c1",
    "server_label": "mail",
    "name": "send",
    "arguments": '{"to": "a@example.com"}',
}
NAMES = {
    "computer": COMPUTER,
    "shell": SHELL,
    "local_shell": LOCAL,
    "apply_patch": PATCH,
    "tool_search": SEARCH,
    "mcp_approval": APPROVAL,
}
OUTPUTS: dict[str, dict[str, Any]] = {
    "computer": {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot"}},
    "shell": {"type": "shell_call_output", "call_id": "c1", "output": [{"stdout": "a", "stderr": ""}]},
    "local_shell": {"type": "local_shell_call_output", "id": "c1", "output": "a"},
    "apply_patch": {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed"},
    "tool_search": {"type": "tool_search_output", "call_id": "c1", "execution": "client", "tools": []},
    "mcp_approval": {"type": "mcp_approval_response", "approval_request_id": "c1", "approve": True},
}
every_call = pytest.mark.parametrize("name", NAMES)


def answer(*items: Any, status: str = "completed") -> dict[str, Any]:
    return {"object": "response", "status": status, "output": list(items)}


@every_call
def test_it_is_a_call_and_the_finish_reason_says_so(name: str) -> None:
    response = API.decode_response(answer(NAMES[name]))
    (call,) = response.provider_calls
    assert (response.tool_calls, response.all_calls) == ((), (call,))  # no definition in the request has this name
    assert (call.name, call.id, response.finish_reason) == (name, "c1", FinishReason.TOOL_CALLS)
    assert call.arguments


@every_call
def test_it_becomes_the_same_item_again(name: str) -> None:
    response = API.decode_response(answer(NAMES[name]))
    (item,) = API.encode_response(response)["output"]
    assert {"id": item["id"], **NAMES[name]} == item
    decoder = API.stream_decoder()
    streamed = b"".join(API.encode_stream(replay(response)))
    again = collect([*decoder.feed(streamed), *decoder.finish()])
    assert again.all_calls == response.all_calls
    (streamed_item,) = API.encode_response(again)["output"]
    assert {**streamed_item, "id": item["id"]} == item  # an item without an id gets that of its answer


@every_call
def test_a_conversation_with_its_result_comes_back_as_it_was(name: str) -> None:
    question = {"role": "user", "content": "Go."}
    body = {"input": [question, NAMES[name], OUTPUTS[name], question]}
    assert API.encode_request(API.decode_request(body))["input"] == body["input"]


@every_call
def test_other_apis_show_a_call_and_its_result(name: str) -> None:
    request = API.decode_request({"input": [{"role": "user", "content": "Go."}, NAMES[name], OUTPUTS[name]]})
    notes = Notes()
    messages = get_api("openai_chat").encode_request(request, notes=notes)["messages"]
    assert [message["role"] for message in messages[:3]] == ["user", "assistant", "tool"]
    assert messages[1]["tool_calls"][0]["function"]["name"] == name
    assert NAMES[name]["type"] in {note.where for note in notes}


def test_results_of_an_agent() -> None:
    def written(name: str, result: ToolResult) -> dict[str, Any]:
        asked = Message("assistant", API.decode_response(answer(NAMES[name])).parts)
        items = API.encode_request(ChatRequest((Message("user", "Go."), asked, Message("tool", (result,)))))["input"]
        return {key: value for key, value in items[-1].items() if key not in ("call_id", "id", "approval_request_id")}

    image = ImagePart("aGk=", "image/png")
    screenshot = {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="}
    assert written("computer", ToolResult("c1", "computer", images=(image,))) == {
        "type": "computer_call_output",
        "output": screenshot,
    }
    failed = written("shell", ToolResult("c1", "shell", error="denied"))
    assert failed["output"] == [{"stdout": "", "stderr": "denied", "outcome": {"type": "exit", "exit_code": 1}}]
    assert written("apply_patch", ToolResult("c1", "apply_patch", error="no such file")) == {
        "type": "apply_patch_call_output",
        "status": "failed",
        "output": "no such file",
    }
    assert written("local_shell", ToolResult("c1", "local_shell", "a"))["output"] == "a"
    assert written("computer", ToolResult("c1", "computer", ""))["output"]["image_url"] == ""
    tools = [{"type": "function", "name": "rain"}]
    assert written("tool_search", ToolResult("c1", "tool_search", tools))["tools"] == tools


@pytest.mark.parametrize(
    ("result", "approved"),
    [
        (ToolResult("c1", "mcp_approval", True), True),
        (ToolResult("c1", "mcp_approval", "true"), False),
        (ToolResult("c1", "mcp_approval", 1), False),
        (ToolResult("c1", "mcp_approval", error="there is no tool 'mcp_approval'"), False),
    ],
)
def test_only_true_approves_a_call_of_a_server(result: ToolResult, approved: bool) -> None:
    asked = Message("assistant", API.decode_response(answer(APPROVAL)).parts)
    request = ChatRequest((Message("user", "Go."), asked, Message("tool", (result,))))
    assert API.encode_request(request)["input"][-1]["approve"] is approved


def test_a_call_that_the_provider_runs_stays_its_own() -> None:
    container = {**SHELL, "environment": {"type": "container_reference", "container_id": "x"}}
    searched = {**SEARCH, "execution": "server", "call_id": None}
    response = API.decode_response(answer(container, searched))
    assert (response.all_calls, response.finish_reason) == ((), FinishReason.STOP)
    assert API.encode_response(response)["output"] == [container, searched]


def test_a_call_that_was_cut_off_is_incomplete() -> None:
    for item, status in ((PATCH, "incomplete"), ({**PATCH, "status": "incomplete"}, "completed")):
        response = API.decode_response(answer(item, status=status))
        assert (response.all_calls, len(response.incomplete)) == ((), 1)


def test_a_stream_of_another_api_has_it_whole() -> None:
    response = API.decode_response(answer(COMPUTER))
    chat = get_api("openai_chat")
    decoder = chat.stream_decoder()
    events = [*decoder.feed(b"".join(chat.encode_stream(replay(response)))), *decoder.finish()]
    (end,) = (event for event in events if isinstance(event, CallEnd))
    assert (end.call.name, end.call.arguments) == ("computer", response.all_calls[0].arguments)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call", "call_id": "c1"},
        {"type": "shell_call"},
        {"type": "shell_call", "call_id": ""},
        {"type": "shell_call", "call_id": 5},
        {"type": "shell_call", "call_id": "c1", "environment": {"type": "container_auto"}},
        {"type": "tool_search_call", "call_id": "c1", "execution": "server"},
        {},
    ],
)
def test_other_items_are_not_calls_of_the_client(item: dict[str, Any]) -> None:
    assert client_call(item) is None


def test_members_of_a_call_are_its_arguments() -> None:
    check = {"id": "k1", "code": "malicious_instructions"}
    call = client_call(
        {"type": "computer_call", "call_id": "c1", "action": {"type": "wait"}, "pending_safety_checks": [check]}
    )
    assert call is not None
    assert call.arguments == {"action": {"type": "wait"}, "pending_safety_checks": [check]}
    request = {"type": "mcp_approval_request", "id": "m1", "server_label": "s", "name": "f", "arguments": '{"a": 1}'}
    approval = client_call(request)
    assert approval is not None
    assert approval.arguments == {"server_label": "s", "name": "f", "arguments": {"a": 1}}


@pytest.mark.parametrize(
    ("type", "result", "members"),
    [
        ("mcp_approval_request", ToolResult("1", "", error="No."), {"approve": False, "reason": "No."}),
        ("mcp_approval_request", ToolResult("1", "", "yes"), {"approve": False}),
        ("mcp_approval_request", ToolResult("1", "", True), {"approve": True}),
        (
            "tool_search_call",
            ToolResult("1", "", [{"name": "f"}]),
            {"execution": "client", "status": "completed", "tools": [{"name": "f"}]},
        ),
        (
            "tool_search_call",
            ToolResult("1", "", {"name": "f"}),
            {"execution": "client", "status": "completed", "tools": []},
        ),
        (
            "tool_search_call",
            ToolResult("1", "", error="None."),
            {"execution": "client", "status": "incomplete", "tools": []},
        ),
        ("apply_patch_call", ToolResult("1", "", error="No."), {"status": "failed", "output": "No."}),
    ],
)
def test_a_result_has_the_members_of_its_kind(type: str, result: ToolResult, members: dict[str, Any]) -> None:
    assert CLIENT_CALLS[type].write(result) == members


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"approve": True, "output": "x"}, "true"),
        ({"approve": "yes"}, "false"),
        ({"output": "done", "status": "failed"}, "done"),
        ({"output": None, "tools": [{"name": "é"}]}, '[{"name": "é"}]'),
        ({"status": "failed"}, "failed"),
        ({}, ""),
    ],
)
def test_the_text_of_a_result(item: dict[str, Any], text: str) -> None:
    assert result_text(item) == text

"""Ollama's chat API: bodies and streams, read and written."""

import json
from functools import partial
from typing import Any

import pytest
from tests.streams import streamed
from tests.unit.providers.conftest import CITY, CLOCK, USER, WEATHER

import toolwire
from toolwire import collect, get_api
from toolwire.errors import DefinitionError
from toolwire.messages import (
    FinishReason,
    ImagePart,
    Message,
    ParsedResponse,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from toolwire.providers.request import ChatRequest, Notes, ToolChoice

API = get_api("ollama")
fed = partial(streamed, API)


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)


def message(done: bool = False, **said: Any) -> dict[str, Any]:
    end = {"done_reason": "stop", "prompt_eval_count": 5, "eval_count": 7} if done else {}
    said = {"role": "assistant", "content": "", **said}
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": said, "done": done, **end}


def call(name: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": name, **({} if arguments is None else {"arguments": arguments})}}


@pytest.mark.mission("F5")
def test_request_contains_tools() -> None:
    body = API.encode_request([USER], tools=[WEATHER], model="qwen3")
    function = {"name": "weather", "description": "Tells it.", "parameters": CITY}
    assert body == {
        "model": "qwen3",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": function}],
        "stream": False,
    }


@pytest.mark.parametrize(
    ("choice", "offered", "noted"),
    [
        ("auto", ["weather", "clock"], 0),
        ("none", [], 1),
        ("required", ["weather", "clock"], 1),
        ("clock", ["clock"], 2),
        (ToolChoice("auto", ("clock",)), ["clock"], 1),
    ],
)
def test_tool_choice_limits_the_offered_tools(choice: Any, offered: list[str], noted: int) -> None:
    notes = Notes()
    body = API.encode_request([USER], tools=[WEATHER, CLOCK], tool_choice=choice, notes=notes)
    assert "tool_choice" not in body
    assert [tool["function"]["name"] for tool in body.get("tools", ())] == offered
    assert [note.where for note in notes] == ["tool_choice"] * noted


def test_sampling_settings_are_options() -> None:
    notes = Notes()
    request = ChatRequest((USER,), parallel=True, max_tokens=5, temperature=0.0, top_p=0.9, stop=("x",), stream=True)
    body = API.encode_request(request, notes=notes)
    assert body["options"] == {"num_predict": 5, "temperature": 0.0, "top_p": 0.9, "stop": ["x"]}
    assert body["stream"] is True
    assert [note.where for note in notes] == ["parallel"]
    back = API.decode_request(body)
    assert (back.max_tokens, back.temperature, back.top_p, back.stop) == (5, 0.0, 0.9, ("x",))


def test_members_that_only_ollama_has_are_kept() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": False,
        "options": {"num_predict": -1, "seed": 4},
        "keep_alive": "5m",
        "think": True,
    }
    request = API.decode_request(body)
    assert request.max_tokens is None
    assert API.encode_request(request) == body


@pytest.mark.parametrize(("body", "stream"), [({}, True), ({"stream": None}, True), ({"stream": False}, False)])
def test_streaming_is_the_default(body: Any, stream: bool) -> None:
    assert API.decode_request({"messages": [], **body}).stream is stream


@pytest.mark.parametrize(
    "body", [{}, {"messages": ["x"]}, {"messages": [], "options": [[]]}, {"messages": [], "tools": [{}]}]
)
def test_invalid_request_is_refused(body: Any) -> None:
    with pytest.raises(DefinitionError):
        API.decode_request(body)


HISTORY = (
    Message("system", (TextPart("be kind"),)),
    Message("user", (TextPart("look"), ImagePart("AA=="))),
    Message(
        "assistant",
        (
            ReasoningPart("hm"),
            TextPart("Looking."),
            ToolCall("weather", {"city": "Oslo"}, "a"),
            ToolCall("clock", {}, "b"),
        ),
    ),
    Message("tool", (ToolResult("a", "weather", "blue", images=(ImagePart("BB=="),)), ToolResult("b", "clock", "5"))),
)
WRITTEN = [
    {"role": "system", "content": "be kind"},
    {"role": "user", "content": "look", "images": ["AA=="]},
    {
        "role": "assistant",
        "content": "Looking.",
        "thinking": "hm",
        "tool_calls": [call("weather", {"city": "Oslo"}, id="a"), call("clock", {}, id="b")],
    },
    {"role": "tool", "content": "blue", "tool_name": "weather", "tool_call_id": "a", "images": ["BB=="]},
    {"role": "tool", "content": "5", "tool_name": "clock", "tool_call_id": "b"},
]


@pytest.mark.mission("F2", "G9")
def test_history_is_written_and_read() -> None:
    assert API.encode_request(HISTORY)["messages"] == WRITTEN
    assert API.decode_request({"messages": WRITTEN}).messages == HISTORY


def test_results_of_every_kind_are_written() -> None:
    notes = Notes()
    results = [ToolResult("a", "f", error="no"), ToolResult("b", "f", {"a": 1}, images=(ImagePart(url="https://x"),))]
    messages = API.encode_results(results, notes=notes)
    assert [item["content"] for item in messages] == ["Error: no", '{"a": 1}\nImage: https://x']
    assert [note.where for note in notes] == ["image"]


def test_results_without_a_name_answer_the_calls_in_order() -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [call("f", {}), call("g", {})]}
    answers = [{"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}]
    messages = API.encode_request(API.decode_request({"messages": [message, *answers]}))["messages"]
    assert [(item["tool_name"], item["content"]) for item in messages[1:]] == [("f", "1"), ("g", "2")]
    assert messages[1]["tool_call_id"] == messages[0]["tool_calls"][0]["id"]


def test_reasoning_of_other_apis_is_left_out() -> None:
    notes = Notes()
    message = Message("assistant", (ReasoningPart("x", "sig", "anthropic_messages"), TextPart("y")))
    assert API.encode_request([message], notes=notes)["messages"] == [{"role": "assistant", "content": "y"}]
    assert len(notes) == 1


def test_response_is_decoded() -> None:
    calls = [call("weather", {"city": "Oslo"}, id="call_1"), call("clock")]
    read = API.decode_response(message(done=True, content="Looking.", thinking="hm", tool_calls=calls))
    assert (read.content, read.reasoning) == ("Looking.", "hm")
    assert [(call.name, call.arguments) for call in read.tool_calls] == [("weather", {"city": "Oslo"}), ("clock", {})]
    assert read.tool_calls[0].id == "call_1"
    assert (read.finish_reason, read.usage) == (FinishReason.TOOL_CALLS, Usage(5, 7))


@pytest.mark.parametrize(
    ("response", "reason", "kinds"),
    [
        ({**message(done=True), "done_reason": "length"}, "length", []),
        ({**message(done=True), "done_reason": "load"}, "stop", []),
        ({"error": "model not found"}, "error", ["provider_error"]),
        ({"message": 5}, "error", ["malformed"]),
        ({}, "error", ["malformed"]),
    ],
)
def test_finish_reasons_are_read(response: Any, reason: str, kinds: list[str]) -> None:
    read = API.decode_response(response)
    assert read.finish_reason == reason
    assert [problem.kind for problem in read.problems] == kinds


STREAM = lines(
    message(thinking="h"),
    message(thinking="m"),
    message(content="Blå "),
    message(content="himmel"),
    message(tool_calls=[call("weather", {"city": "Oslo"})]),
    message(tool_calls=[call("weather", {"city": "Bergen"})]),
    message(done=True),
)


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_stream_is_decoded_in_any_split(size: int) -> None:
    read = collect(fed(STREAM, size))
    assert (read.content, read.reasoning) == ("Blå himmel", "hm")
    assert [call.arguments for call in read.tool_calls] == [{"city": "Oslo"}, {"city": "Bergen"}]
    assert (read.finish_reason, read.usage) == (FinishReason.TOOL_CALLS, Usage(5, 7))


def test_error_in_a_stream_becomes_a_problem() -> None:
    read = collect(fed(lines(message(content="x"), {"error": "gone"})))
    assert (read.content, read.finish_reason, read.problems[0].kind) == ("x", "error", "provider_error")


CALLS = (ToolCall("weather", {"city": "Oslo"}, "toolu_1"), ToolCall("clock", {}, "toolu_2"))
RESPONSE = ParsedResponse("Looking.", "hm", CALLS, finish_reason=FinishReason.TOOL_CALLS, usage=Usage(5, 7))


def test_encoded_response_is_decoded_again() -> None:
    body = API.encode_response(RESPONSE, model="m", created=1767225600)
    assert (body["created_at"], body["done_reason"]) == ("2026-01-01T00:00:00Z", "stop")
    assert API.decode_response(body) == RESPONSE


def test_encoded_stream_is_decoded_again() -> None:
    data = b"".join(API.encode_stream(toolwire.replay(RESPONSE), model="m", created=1767225600))
    written = [json.loads(line) for line in data.splitlines()]
    assert [item["done"] for item in written] == [False] * 4 + [True]
    assert {item["created_at"] for item in written} == {"2026-01-01T00:00:00Z"}
    back = collect(fed(data))
    assert (back, back.usage) == (RESPONSE, RESPONSE.usage)


def test_truncated_call_is_not_written() -> None:
    cut = ParsedResponse(incomplete=(ToolCall("f", {}, "a"),))
    notes = Notes()
    assert "tool_calls" not in API.encode_response(cut, notes=notes)["message"]
    assert len(notes) == 1
    assert b"tool_calls" not in b"".join(API.encode_stream(toolwire.replay(cut)))


def test_signature_is_dropped_with_a_note() -> None:
    notes = Notes()
    response = ParsedResponse(parts=(ReasoningPart("hm", "sig", "anthropic_messages"), TextPart("x")))
    assert API.encode_response(response, notes=notes)["message"]["thinking"] == "hm"
    assert [note.where for note in notes] == ["reasoning"]


@pytest.mark.need(12)
def test_calls_get_ids_indexes_and_a_finish_reason() -> None:
    twice = [call("f", {"a": 1}), call("f", {"a": 2})]
    for item in twice:
        item["function"]["index"] = 0
    read = collect(fed(lines(message(tool_calls=twice[:1]), message(tool_calls=twice[1:]), message(done=True))))
    assert read.finish_reason is FinishReason.TOOL_CALLS
    assert all(call.id.startswith("call_") for call in read.tool_calls)
    assert len({call.id for call in read.tool_calls}) == 2
    written = API.encode_response(read)["message"]["tool_calls"]
    assert [item["function"]["index"] for item in written] == [0, 1]
    data = b"".join(API.encode_stream(toolwire.replay(read)))
    chunk = [json.loads(line)["message"].get("tool_calls") for line in data.splitlines()]
    assert [item[0]["function"]["index"] for item in chunk if item] == [0, 1]


def test_content_that_is_an_object_is_its_json() -> None:
    content = {"city": "Paris", "days": [1]}
    body = {"message": {"role": "assistant", "content": content}, "done": True, "done_reason": "stop"}
    assert json.loads(API.decode_response(body).content) == content
    decoder = API.stream_decoder()
    streamed = collect([*decoder.feed(json.dumps(body).encode() + b"\n"), *decoder.finish()])
    assert json.loads(streamed.content) == content


def test_missing_arguments_are_an_empty_object() -> None:
    input_value: tuple[Any, ...] = (None, "", "null", {})
    for arguments in input_value:
        read = API.decode_response(message(done=True, tool_calls=[call("f", arguments)]))
        assert [call.arguments for call in read.tool_calls] == [{}]


@pytest.mark.mission("G9")
def test_arguments_may_be_json_text() -> None:
    read = API.decode_response(message(done=True, tool_calls=[call("f", '{"a": 1}'), call("g", "nonsense")]))
    assert [call.arguments for call in read.tool_calls] == [{"a": 1}]
    assert [call.name for call in read.incomplete] == ["g"]
    original = {"role": "assistant", "content": "", "tool_calls": [call("f", '{"a": 1}')]}
    messages = API.encode_request(API.decode_request({"messages": [original]}))["messages"]
    assert messages[0]["tool_calls"][0]["function"]["arguments"] == {"a": 1}


def test_image_alone_is_a_result() -> None:
    [message] = API.encode_results([ToolResult("a", "f", images=(ImagePart("AA=="),))])
    assert (message["content"], message["images"]) == ("", ["AA=="])
    original = {"role": "assistant", "content": "", "tool_calls": [call("f", {}, id="a")]}
    back = API.decode_request({"messages": [original, message]}).messages[1].parts
    assert back == (ToolResult("a", "f", images=(ImagePart("AA=="),)),)


@pytest.mark.parametrize("count", [-1, 10**13, float("nan")])
def test_counts_that_cannot_be_are_not_believed(count: float) -> None:
    body = {**message(done=True, content="x"), "eval_count": count}
    response = API.decode_response(body)
    assert response.usage is None
    assert any("eval_count" in problem.message or "integer" in problem.message for problem in response.problems)

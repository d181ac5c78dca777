"""The Responses API: what is written and read, one table for each direction."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tests.unit.providers.conftest import USER, decoded, sse_stream

import toolwire as tw
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, ContentDelta, Finish, ProblemFound, collect, replay
from toolwire.messages import (
    FinishReason,
    ImagePart,
    Message,
    OpaquePart,
    ParsedResponse,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from toolwire.providers.request import ChatRequest, Notes, ToolChoice
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.responses_items import reasoning_item, reasoning_part, same_arguments
from toolwire.providers.responses_stream import OutputReader
from toolwire.tools import ToolDefinition

API = tw.get_api("openai_responses")
decode = partial(decoded, API)
stream = partial(sse_stream, event="x")
KIND = "openai_responses"
WEATHER = ToolDefinition("get_weather", "Weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
SQL = ToolDefinition(
    "sql",
    "Runs SQL.",
    {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
    annotations={"custom": {"format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}}},
)
WITH_INPUT = {
    "type": "object",
    "properties": {"input": {"type": "string"}, "database": {"type": "string"}},
    "required": ["input", "database"],
}
USER_ITEM = {"role": "user", "content": "hi"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
REASONING = ReasoningPart("", "", KIND, THOUGHT)


def event(type: str, at: int = 0, **members: Any) -> dict[str, Any]:
    return {"type": f"response.{type}", "output_index": at, **members}


def call(arguments: str = "", id: str = "fc_1", call_id: str = "call_1", **members: Any) -> dict[str, Any]:
    written = {"type": "function_call", "id": id, "call_id": call_id, "name": "get_weather", "arguments": arguments}
    return {**written, **members}


def message(text: str, id: str = "msg_1") -> dict[str, Any]:
    return {"type": "message", "id": id, "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def completed(*output: dict[str, Any], **members: Any) -> dict[str, Any]:
    response = {"status": "completed", "output": list(output), **members}
    return {"type": f"response.{response['status']}", "response": response}


def calls(response: ParsedResponse) -> list[tuple[str, dict[str, Any], str]]:
    return [(call.name, call.arguments, call.id) for call in response.tool_calls]


# -- requests --------------------------------------------------------------------------------------------------------


def test_definitions_are_flat_and_always_state_strict() -> None:
    tools = API.encode_request([USER], tools=[WEATHER, SQL])["tools"]
    assert tools[0] == {
        "type": "function",
        "name": "get_weather",
        "description": "Weather.",
        "parameters": WEATHER.parameters,
        "strict": False,
    }
    assert tools[1] == {
        "type": "custom",
        "name": "sql",
        "description": "Runs SQL.",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
    }
    strict = ToolDefinition("w", "", WEATHER.parameters, annotations={"strict": True})
    tool = API.encode_request([USER], tools=[strict])["tools"][0]
    assert tool["strict"] is True
    assert tool["parameters"]["required"] == ["city"]
    assert tool["parameters"]["properties"]["city"]["type"] == ["string", "null"]


def test_grammar_of_a_custom_tool_is_written_for_both_apis() -> None:
    chat = tw.get_api("openai_chat")
    nested = chat.encode_request([USER], tools=[SQL])["tools"][0]["custom"]["format"]
    assert nested == {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /.+/"}}
    again = chat.decode_request(chat.encode_request([USER], tools=[SQL])).tools
    assert API.encode_request([USER], tools=again)["tools"][0]["format"] == SQL.annotations["custom"]["format"]


@pytest.mark.parametrize("name", ["openai_responses", "openai_chat", "anthropic_messages"])
def test_a_tool_that_needs_other_arguments_than_a_text_gets_json(name: str) -> None:
    """The text would be the argument `input`, which the tool does not have, or which is not enough."""
    for tool in (replace(SQL, parameters=WEATHER.parameters), replace(SQL, parameters=WITH_INPUT)):
        notes = Notes()
        (offered,) = tw.get_api(name).encode_request([USER], tools=[tool], notes=notes)["tools"]
        assert offered.get("type") != "custom"
        assert "sql/custom" in [note.where for note in notes]


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        ("none", "none"),
        ("required", "required"),
        ("get_weather", {"type": "function", "name": "get_weather"}),
        ("sql", {"type": "custom", "name": "sql"}),
        (
            ToolChoice("required", ("get_weather", "sql")),
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "get_weather"}, {"type": "custom", "name": "sql"}],
            },
        ),
    ],
)
def test_tool_choice_is_written_and_read(choice: Any, written: Any) -> None:
    body = API.encode_request([USER], tools=[WEATHER, SQL], tool_choice=choice, parallel=True)
    assert (body["tool_choice"], body["parallel_tool_calls"]) == (written, True)
    assert API.decode_request(body).tool_choice == ToolChoice.of(choice)


def test_choice_of_a_provider_tool_is_kept() -> None:
    body = {
        "input": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "web_search"}],
        "tool_choice": {"type": "web_search"},
    }
    assert API.encode_request(API.decode_request(body)) == body


def test_request_contains_instructions_and_settings() -> None:
    body = API.encode_request(
        ChatRequest(
            (Message("system", (TextPart("A"),)), Message("system", (TextPart("B"),)), USER),
            model="m",
            stream=True,
            max_tokens=5,
            temperature=1.0,
            top_p=0.5,
            stop=("x",),
            provider=KIND,
            extra={"store": False, "include": ["reasoning.encrypted_content"]},
        ),
        notes=(notes := Notes()),
    )
    assert body == {
        "model": "m",
        "instructions": "A\n\nB",
        "input": [{"role": "user", "content": "hi"}],
        "stream": True,
        "max_output_tokens": 5,
        "temperature": 1.0,
        "top_p": 0.5,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    assert [note.where for note in notes] == ["stop"]
    instructions = API.decode_request({"instructions": "A", "input": [{"role": "developer", "content": "B"}]}).messages
    assert [message.role for message in instructions] == ["system", "system"]


CALLED = Message(
    "assistant",
    (
        REASONING,
        TextPart("Let me see."),
        ToolCall("get_weather", {"city": "Rome"}, "a"),
        ToolCall("sql", {"input": "S"}, "b"),
    ),
)


def test_calls_and_results_are_items() -> None:
    image = ImagePart("QUJD", "image/png")
    results = Message(
        "tool", (ToolResult("b", "sql", error="no table"), ToolResult("a", "get_weather", "sun", images=(image,)))
    )
    body = API.encode_request([USER, CALLED, results], tools=[WEATHER, SQL])
    assert body["input"][1:] == [
        THOUGHT,
        {"role": "assistant", "content": "Let me see."},
        {"type": "function_call", "call_id": "a", "name": "get_weather", "arguments": '{"city": "Rome"}'},
        {"type": "custom_tool_call", "call_id": "b", "name": "sql", "input": "S"},
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": [
                {"type": "input_text", "text": "sun"},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QUJD"},
            ],
        },
        {"type": "custom_tool_call_output", "call_id": "b", "output": "Error: no table"},
    ]
    read = API.decode_request(body)
    assert read.messages[:2] == (USER, CALLED)
    assert read.messages[2].parts[0] == ToolResult("a", "get_weather", "sun", images=(image,))
    assert API.encode_request(read) == body


def test_items_of_the_provider_keep_their_position() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_file", "file_id": "f"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "item_reference", "id": "rs_9"},
        {"role": "assistant", "content": "b"},
        {"type": "tool_search_call", "call_id": "t", "execution": "client", "arguments": {}},
        {"type": "function_call_output", "call_id": "t", "output": "found"},
        {"role": "user", "content": "c"},
    ]
    request = API.decode_request({"input": items})
    assert [message.role for message in request.messages] == ["user", "assistant", "tool", "user"]
    assert API.encode_request(request)["input"] == items
    notes = Notes()
    tw.get_api("openai_chat").encode_request(request, notes=notes)
    dropped = {note.where for note in notes if note.kind == "dropped"}
    assert dropped == {"input_file", "web_search_call", "item_reference", "tool_search_call", "function_call_output"}


def test_file_of_a_result_follows_the_result() -> None:
    file = {"type": "input_file", "file_id": "f"}
    items = [
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": [file]},
    ]
    result = API.encode_request(API.decode_request({"input": items}))["input"]
    assert result[1:] == [
        {"type": "function_call_output", "call_id": "a", "output": "The file follows."},
        {"role": "user", "content": [file]},
    ]


def test_results_of_calls_stored_by_the_provider_are_kept() -> None:
    output = {"type": "function_call_output", "call_id": "a", "output": "sun"}
    parts = {"input": [output], "previous_response_id": "resp_1"}
    assert API.encode_request(API.decode_request(parts)) == parts
    assert API.encode_request(API.decode_request({"input": [output]}))["input"][0]["role"] == "user"


@pytest.mark.parametrize("where", ["previous_response_id", "conversation"])
def test_results_are_paired_behind_the_first_answer_of_a_continued_conversation(where: str) -> None:
    own = {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "a", "output": "sun"}
    body = API.encode_request(API.decode_request({"input": [output, USER_ITEM, own, USER_ITEM], where: "x"}))
    assert body["input"][:3] == [output, USER_ITEM, own]
    (answer, again) = body["input"][3:]
    assert (answer["type"], answer["call_id"], again) == ("function_call_output", "b", USER_ITEM)
    assert "sun" not in answer["output"]


@pytest.mark.parametrize("instructions", ["", None, ["x"], 5])
def test_instructions_that_are_no_text_are_no_message(instructions: Any) -> None:
    request = API.decode_request({"input": "hi", "instructions": instructions})
    assert request.messages == (USER,)
    assert API.decode_request({"input": "hi", "instructions": "Be brief."}).messages == (
        Message("system", (TextPart("Be brief."),)),
        USER,
    )


@pytest.mark.parametrize("texts", [[], ["Be brief."], ["Be brief.", "Be kind."], ["a", "b", "c"]])
def test_system_messages_at_the_start_are_the_instructions(texts: list[str]) -> None:
    later = Message("system", (TextPart("Later."),))
    body = API.encode_request([*(Message("system", (TextPart(text),)) for text in texts), USER, later, USER])
    assert body == {
        **({"instructions": "\n\n".join(texts)} if texts else {}),
        "input": [USER_ITEM, {"role": "system", "content": "Later."}, USER_ITEM],
    }
    assert API.encode_request(API.decode_request(body)) == body


def test_instructions_alone_are_the_input_because_servers_refuse_an_empty_one() -> None:
    messages = [Message("system", (TextPart(text),)) for text in ("Be brief.", "Say hi.")]
    items = [{"role": "system", "content": "Be brief."}, {"role": "system", "content": "Say hi."}]
    assert API.encode_request(messages) == {"input": items}
    assert API.decode_request(API.encode_request(messages)).messages == tuple(messages)


@pytest.mark.parametrize("member", ["previous_response_id", "conversation", "prompt"])
def test_instructions_alone_stay_beside_a_conversation_that_the_server_has(member: str) -> None:
    body = {"instructions": "Be brief.", "input": [], member: "x"}
    assert API.encode_request(API.decode_request(body)) == body


def test_members_of_a_request_that_have_a_meaning_are_no_extra_ones() -> None:
    members = {"model": "m", "instructions": "Be brief.", "parallel_tool_calls": False, "stream": True, "user": "u1"}
    request = API.decode_request({"input": "hi", **members, "other": 1})
    assert request.extra == {"other": 1}
    assert (request.model, request.parallel, request.stream, request.end_user) == ("m", False, True, "u1")


def test_a_failure_in_a_stream_is_an_event_named_error() -> None:
    name, data = API.write_error("Overloaded.").decode().strip().split("\n")
    assert name == "event: error"
    assert json.loads(data.removeprefix("data: ")) == {
        "type": "error", "code": "server_error", "message": "Overloaded.", "param": None, "sequence_number": 0,
    }  # fmt: skip


def test_a_stream_that_fails_ends_with_the_failed_response_too() -> None:
    problem = tw.Problem("provider_error", 0, "", "Too much.", status=429)
    events = [ContentDelta("Half"), ProblemFound(problem), Finish(FinishReason.ERROR)]
    written = b"".join(API.encode_stream(events, model="m", id="abc", created=7))
    name, data = written.decode().strip().split("\n\n")[-1].split("\n")
    response = json.loads(data.removeprefix("data: "))["response"]
    assert (name, response["id"], response["status"]) == ("event: response.failed", "resp_abc", "failed")
    assert response["error"] == {"code": "rate_limit_exceeded", "message": "Too much."}
    assert written.count(b"event: error\n") == 1
    decoder = API.stream_decoder()
    read = collect([*decoder.feed(written), *decoder.finish()])
    assert (read.content, [found.message for found in read.problems]) == ("Half", ["Too much."])


@pytest.mark.parametrize("type", ["input_text", "output_text", "text"])
def test_text_is_read_from_blocks_of_all_types(type: str) -> None:
    block = {"type": type, "text": "x", "annotations": [], "logprobs": [{"token": "x", "logprob": 0}]}
    for role in ("user", "assistant"):
        request = API.decode_request({"input": [{"role": role, "content": [block]}]})
        assert request.messages == (Message(role, (TextPart("x"),)),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("members", "reads"),
    [
        ({"file_url": "https://x/a.pdf"}, True),
        ({"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}, True),
        ({"file_data": "data:application/pdf;base64,AA=="}, True),
        ({"file_data": "AA=="}, False),
        ({"file_id": "file_1"}, False),
        ({"file_id": "file_1", "file_url": "https://x/a.pdf"}, False),
        ({"file_url": "https://x/a.pdf", "filename": "a.pdf"}, False),
        ({"file_url": "https://x/a.pdf", "file_data": "data:application/pdf;base64,AA=="}, False),
    ],
)
def test_a_file_is_a_document_where_nothing_of_it_would_be_lost(members: dict[str, Any], reads: bool) -> None:
    block = {"type": "input_file", **members}
    (part,) = API.decode_request({"input": [{"role": "user", "content": [block]}]}).messages[0].parts
    assert isinstance(part, tw.FilePart) is reads
    assert reads or part == OpaquePart(block, KIND)


@pytest.mark.parametrize("type", ["function_call_output", "custom_tool_call_output"])
@pytest.mark.parametrize("between", [[], [{"role": "user", "content": "And?"}]])
def test_results_of_referenced_calls_are_kept(type: str, between: list[Any]) -> None:
    reference, output = {"type": "item_reference", "id": "fc_1"}, {"type": type, "call_id": "a", "output": "sun"}
    own = {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"}
    items = [USER_ITEM, reference, *between, output]
    notes = Notes()
    request = API.decode_request({"input": items})
    assert API.encode_request(request, notes=notes) == {"input": items}
    assert not notes
    later = [USER_ITEM, reference, {"role": "assistant", "content": "Hm"}, output, own]
    assert API.encode_request(API.decode_request({"input": later})) == {"input": later}
    chat = tw.get_api("openai_chat").encode_request(request, notes=notes)
    assert chat["messages"][-1] == {"role": "user", "content": "Result of a tool: sun"}
    assert [note.where for note in notes if note.kind == "dropped"] == ["item_reference"]


def test_results_of_referenced_calls_do_not_answer_other_calls() -> None:
    reference, output = {"type": "item_reference", "id": "fc_1"}, {"type": "function_call_output", "call_id": "a"}
    own = {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"}
    written = API.encode_request(API.decode_request({"input": [reference, own, {**output, "output": "sun"}]}))["input"]
    assert [item.get("call_id") for item in written] == [None, "b", "b", "a"]
    assert written[2]["output"].startswith("Error")


@pytest.mark.parametrize("strict", [{}, {"strict": None}, {"strict": False}, {"strict": True}])
def test_strict_mode_that_a_client_left_open_stays_open(strict: dict[str, Any]) -> None:
    parameters = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    tool = {"type": "function", "name": "f", "description": "", "parameters": parameters, **strict}
    request = API.decode_request({"input": [], "tools": [tool]})
    assert API.encode_request(request)["tools"] == [{k: v for k, v in tool.items() if v is not None}]
    notes = Notes()
    for name in tw.apis():
        tw.get_api(name).encode_request(request, notes=notes)
    assert not [note for note in notes if "strict" in note.where and strict.get("strict") is None]


def test_tools_keep_members_of_this_api() -> None:
    tool = {"type": "function", "name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}
    body = {"input": [], "tools": [{**tool, "strict": False, "defer_loading": True}]}
    assert API.encode_request(API.decode_request(body)) == body
    name = {"type": "function_call", "call_id": "a", "name": "f", "namespace": "n", "arguments": "{}"}
    assert API.encode_request(API.decode_request({"input": [name]}))["input"] == [name]


# -- answers ---------------------------------------------------------------------------------------------------------

USAGE = {
    "input_tokens": 5,
    "input_tokens_details": {"cached_tokens": 1},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 2},
}
SPOKEN = {"type": "reasoning", "id": "rs_2", "summary": [{"text": "one"}, {"text": "two"}]}
OUTPUT = (SPOKEN, message("Sí"), call('{"city":"Rome"}'), call("", "fc_2", "call_2", name="now"))


def test_response_is_decoded() -> None:
    response = API.decode_response(completed(*OUTPUT, usage=USAGE)["response"])
    assert calls(response) == [("get_weather", {"city": "Rome"}, "call_1"), ("now", {}, "call_2")]
    assert (response.content, response.reasoning) == ("Sí", "one\n\ntwo")
    assert response.parts[0] == ReasoningPart("one\n\ntwo", "", KIND, SPOKEN)
    assert (response.finish_reason, response.usage) == (FinishReason.TOOL_CALLS, Usage(5, 3, 1, 2))


@pytest.mark.parametrize(
    ("members", "reason", "problems"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, FinishReason.LENGTH, []),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, FinishReason.CONTENT_FILTER, []),
        (
            {"status": "failed", "error": {"code": "server_error", "message": "m"}},
            FinishReason.ERROR,
            ["provider_error"],
        ),
        ({"status": "failed"}, FinishReason.ERROR, ["provider_error"]),
    ],
)
def test_status_becomes_a_finish_reason(members: dict[str, Any], reason: FinishReason, problems: list[str]) -> None:
    end = completed(message("x"), **members)
    for response in (API.decode_response(end["response"]), decode(stream(end))):
        assert (response.content, response.finish_reason) == ("x", reason)
        assert [problem.kind for problem in response.problems] == problems
    again = API.decode_response(API.encode_response(response))
    assert (again.content, again.finish_reason) == ("x", reason)


@pytest.mark.need(15)
def test_truncated_call_is_never_complete() -> None:
    for arguments in ("", '{"city": "Ro'):
        cut = call(arguments, status="incomplete")
        end = completed(cut, status="incomplete")
        for response in (
            API.decode_response(end["response"]),
            decode(stream(event("output_item.done", item=cut), end)),
        ):
            assert not response.tool_calls
            assert response.problems[0].kind == "truncated"
    for first, delta in (
        (call(), None),
        ({**call(), "type": "custom_tool_call", "input": ""}, event("custom_tool_call_input.delta", delta="DELETE")),
    ):
        response = decode(stream(event("output_item.added", item=first), *([delta] if delta else [])))
        assert not response.tool_calls
        assert response.incomplete[0].name == "get_weather"


STREAM = stream(
    {"type": "response.created", "response": {"status": "in_progress", "output": []}},
    event("output_item.added", 0, item={"type": "reasoning", "id": "rs_2", "summary": []}),
    event("reasoning_summary_text.delta", 0, item_id="rs_2", summary_index=0, delta="o"),
    event("reasoning_summary_text.delta", 0, item_id="rs_2", summary_index=0, delta="ne"),
    event("reasoning_summary_text.done", 0, item_id="rs_2", summary_index=0, text="one"),
    event("reasoning_summary_text.delta", 0, item_id="rs_2", summary_index=1, delta="two"),
    event("output_item.done", 0, item=SPOKEN),
    event("output_item.added", 1, item={**message(""), "content": []}),
    event("output_text.delta", 1, item_id="msg_1", content_index=0, delta="S"),
    event("output_text.delta", 1, item_id="msg_1", content_index=0, delta="í"),
    event("output_item.done", 1, item=message("Sí")),
    event("output_item.added", 2, item=call()),
    event("output_item.added", 3, item=call("", "fc_2", "call_2", name="now")),
    event("function_call_arguments.delta", 2, item_id="fc_1", delta='{"city"'),
    event("function_call_arguments.delta", 3, item_id="fc_2", delta="{"),
    event("function_call_arguments.delta", 2, item_id="fc_1", delta=':"Rome"}'),
    event("function_call_arguments.delta", 3, item_id="fc_2", delta="}"),
    event("function_call_arguments.done", 2, item_id="fc_1", arguments='{"city":"Rome"}'),
    event("output_item.done", 2, item=call('{"city":"Rome"}')),
    completed(*OUTPUT, usage=USAGE),
)


@pytest.mark.parametrize("size", [0, 1, 7])
def test_stream_is_decoded_in_any_split(size: int) -> None:
    full = API.decode_response(completed(*OUTPUT, usage=USAGE)["response"])
    response = decode(STREAM, size)
    assert response == full
    assert response.parts == full.parts


@pytest.mark.parametrize(
    "data",
    [
        stream(*(event("output_item.done", at, item=item) for at, item in enumerate(OUTPUT)), completed()),
        stream(*(event("output_item.done", at, item=item) for at, item in enumerate(OUTPUT)), completed(*OUTPUT)),
        stream(*(event("output_item.added", at, item=item) for at, item in enumerate(OUTPUT)), completed(*OUTPUT)),
        stream(completed(*OUTPUT)),
        stream(*[event("output_item.done", 0, item=OUTPUT[1])] * 2, completed(*OUTPUT), completed(*OUTPUT)),
        json.dumps({"object": "response", **completed(*OUTPUT)["response"]}).encode(),
    ],
    ids=["only done", "done and completed", "added and completed", "only completed", "twice", "no stream"],
)
def test_repeated_items_are_read_once(data: bytes) -> None:
    response = decode(data)
    assert response.content == "Sí"
    assert {*(call.id for call in response.tool_calls)} == {"call_1", "call_2"}
    assert len(response.parts) == 4
    assert not response.problems


def test_items_with_changing_ids_are_matched() -> None:
    data = stream(
        event("output_item.added", 0, item={**message("", "x1"), "content": []}),
        event("output_text.delta", 0, item_id="x2", delta="Hello"),
        event("output_text.done", 0, item_id="x3", text="Hello"),
        event("output_item.done", 0, item=message("Hello", "x4")),
        event("output_item.added", 1, item=call("", "y1")),
        event("function_call_arguments.delta", 1, item_id="y2", delta="{}"),
        event("output_item.done", 1, item=call("{}", "y3")),
        completed(message("Hello", "x5"), call("{}", "y4")),
    )
    response = decode(data)
    assert (response.content, calls(response)) == ("Hello", [("get_weather", {}, "call_1")])


def test_text_input_and_items_of_the_provider_are_read() -> None:
    custom = {"type": "custom_tool_call", "id": "ctc", "call_id": "c", "name": "sql", "input": ""}
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    response = decode(
        stream(
            event("output_item.done", 0, item=search),
            event("output_item.added", 1, item=custom),
            event("custom_tool_call_input.delta", 1, item_id="ctc", delta='4 "+'),
            event("custom_tool_call_input.delta", 1, item_id="ctc", delta=" 4"),
            event("output_item.done", 1, item={**custom, "input": '4 "+ 4'}),
            completed(search, {**custom, "input": '4 "+ 4'}),
        )
    )
    assert calls(response) == [("sql", {"input": '4 "+ 4'}, "c")]
    assert response.parts[0] == OpaquePart(search, KIND)
    assert len(response.parts) == 2


@pytest.mark.parametrize(
    "bad",
    [
        {"type": "error", "code": "server_error", "message": "m"},
        {"type": "error", "error": {"message": "m"}},
        {"error": {"message": "m"}},
        {"type": "response.failed", "response": {"status": "failed", "error": {"message": "m"}}},
    ],
)
def test_error_in_a_stream_becomes_a_problem(bad: dict[str, Any]) -> None:
    response = decode(stream(event("output_text.delta", item_id="m", delta="x"), bad))
    assert (response.content, response.finish_reason) == ("x", FinishReason.ERROR)
    assert response.problems[0].kind == "provider_error"


def test_refusals_are_text() -> None:
    refused = {"type": "message", "id": "m", "content": [{"type": "refusal", "refusal": "No."}]}
    assert API.decode_response(completed(refused)["response"]).content == "No."
    data = stream(event("refusal.delta", item_id="m", delta="No."), event("output_item.done", item=refused))
    assert decode(data).content == "No."


# -- writing answers -------------------------------------------------------------------------------------------------

ANSWER = ParsedResponse(
    content="Let me see.",
    reasoning="hm",
    tool_calls=(ToolCall("get_weather", {"city": "Rome"}, "a"), ToolCall("now", {}, "b")),
    finish_reason=FinishReason.TOOL_CALLS,
    usage=Usage(5, 3, 1, 2),
    parts=(
        ReasoningPart("hm"),
        REASONING,
        TextPart("Let me "),
        TextPart("see."),
        ToolCall("get_weather", {"city": "Rome"}, "a"),
        ToolCall("now", {}, "b"),
    ),
)


def test_encoded_response_is_decoded_again() -> None:
    body = API.encode_response(ANSWER, model="m", id="1", created=9)
    assert [item["id"] for item in body["output"]] == ["rs_1_0", "rs_1", "msg_1_2", "fc_1_3", "fc_1_4"]
    assert (body["status"], body["created_at"], body["usage"]["total_tokens"]) == ("completed", 9, 8)
    again = API.decode_response(body)
    assert again == ANSWER
    assert again.parts[:2] == ANSWER.parts[:2]
    data = b"".join(API.encode_stream(replay(ANSWER), model="m", id="1", created=9))
    for size in (0, 1):
        assert decode(data, size) == ANSWER


def test_written_events_are_in_the_documented_order() -> None:
    lines = [part for part in b"".join(API.encode_stream(replay(ANSWER), id="1")).decode().split("\n\n") if part]
    events = [json.loads(line.partition("data: ")[2]) for line in lines]
    assert [line.split("\n")[0] for line in lines] == [f"event: {event['type']}" for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    names = [event["type"].removeprefix("response.") for event in events]
    assert names[:3] == ["created", "in_progress", "output_item.added"]
    assert names[-1] == "completed"
    at = [at for at, event in enumerate(events) if event.get("output_index") == 2]
    assert [names[item] for item in at] == [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    finished = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert events[-1]["response"]["output"] == finished


def test_interleaved_calls_become_consecutive_items() -> None:
    mixed = [
        CallStart(0, "a", "1"),
        CallStart(1, "b", "2"),
        ArgumentsDelta(1, '{"y": 2}'),
        ArgumentsDelta(0, '{"x": 1}'),
        CallEnd(1, ToolCall("b", {"y": 2}, "2"), True),
        CallEnd(0, ToolCall("a", {"x": 1}, "1"), True),
        Finish(FinishReason.TOOL_CALLS),
    ]
    data = b"".join(API.encode_stream(mixed))
    assert calls(decode(data)) == [("a", {"x": 1}, "1"), ("b", {"y": 2}, "2")]
    assert data.index(b'"output_index":1') > data.rindex(b'"output_index":0')


@pytest.mark.parametrize(
    "part",
    [
        ReasoningPart("hm", "S", "anthropic_messages"),
        ReasoningPart("", "S", "gemini"),
        ReasoningPart("", "", "anthropic_messages", {"type": "redacted_thinking", "data": "X"}),
        ReasoningPart("hm"),
        REASONING,
        ReasoningPart("one\n\ntwo", "", KIND, SPOKEN),
    ],
    ids=lambda part: f"{part.provider or 'none'}-{part.text[:3]}",
)
def test_sealed_reasoning_of_any_api_survives_a_client(part: ReasoningPart) -> None:
    item = reasoning_item(part, "rs_x")
    assert reasoning_part({"type": "reasoning", **item}) == part
    response = ParsedResponse(parts=(part, TextPart("so")))
    assert API.decode_response(API.encode_response(response)).parts == response.parts
    assert decode(b"".join(API.encode_stream(replay(response)))).parts == response.parts


# -- pitfalls --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", ["", " ", "null", None, "{}", {}])
def test_missing_arguments_are_an_empty_object(nothing: Any) -> None:
    item = call(nothing)
    assert calls(API.decode_response(completed(item)["response"])) == [("get_weather", {}, "call_1")]
    request = API.decode_request({"input": [item]})
    assert API.encode_request(request)["input"][0]["arguments"] == "{}"


def test_doubly_encoded_arguments_are_repaired() -> None:
    response = API.decode_response(completed(call(json.dumps('{"city": "1"}')))["response"])
    assert calls(response) == [("get_weather", {"city": "1"}, "call_1")]


@pytest.mark.parametrize("bad", ['{"city": nope}', "[1]", [1], 3])
def test_malformed_arguments_make_an_incomplete_call(bad: Any) -> None:
    response = API.decode_response(completed(call(bad), message("x"))["response"])
    assert (calls(response), response.content) == ([], "x")
    assert response.problems[0].index == 0


def test_long_ids_are_shortened() -> None:
    history = [
        USER,
        Message("assistant", (ToolCall("f", {}, "x" * 65),)),
        Message("tool", (ToolResult("x" * 65, "f", 1),)),
    ]
    name, answered = API.encode_request(history)["input"][1:]
    assert name["call_id"] == answered["call_id"]
    assert len(name["call_id"]) <= 64


def test_calls_are_paired_by_call_id_alone() -> None:
    items = [call("{}"), {"type": "function_call_output", "id": "fco_1", "call_id": "call_1", "output": "sun"}]
    result = API.encode_request(API.decode_request({"input": items}))["input"]
    assert [(item.get("id"), item["call_id"]) for item in result] == [(None, "call_1"), (None, "call_1")]
    body = API.encode_response(ParsedResponse(tool_calls=(ToolCall("f", {}, "call_1"),)))
    assert (body["output"][0]["call_id"], body["output"][0]["id"][:3]) == ("call_1", "fc_")


def test_reasoning_is_sent_back_before_its_call_or_not_at_all() -> None:
    name = ToolCall("f", {}, "a")
    stored = ReasoningPart("", "", KIND, {"type": "reasoning", "id": "rs_2", "summary": []})
    foreign = ReasoningPart("hm", "S", "anthropic_messages")
    request = ChatRequest(
        (USER, Message("assistant", (stored, foreign, REASONING, name, REASONING))),
        provider=KIND,
        extra={"store": False},
    )
    notes = Notes()
    items = API.encode_request(request, notes=notes)["input"]
    assert items[1] == THOUGHT
    assert [item.get("type") for item in items[1:]] == ["reasoning", "function_call"]
    assert [note.where for note in notes if note.kind == "dropped"] == ["reasoning"] * 3
    parts = API.encode_request([USER, Message("assistant", (stored, name))])["input"]
    assert parts[1] == stored.data  # the provider has stored it
    assert API.write_message(Message("assistant", (stored, name)), Notes())[0] == stored.data
    spoken = ReasoningPart("", "", KIND, {**(stored.data or {}), "content": [{"type": "reasoning_text", "text": "x"}]})
    request = ChatRequest((USER, Message("assistant", (spoken, name))), provider=KIND, extra={"store": False})
    assert API.encode_request(request)["input"][1] == spoken.data


def test_unknown_block_of_a_result_is_kept() -> None:
    items = [call("{}"), {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "odd", "x": 1}]}]
    parts = [part for message in API.decode_request({"input": items}).messages for part in message.parts]
    assert OpaquePart({"type": "odd", "x": 1}, KIND) in parts


@pytest.mark.parametrize(
    "body", [{"input": [1]}, {"input": [{}]}, {"input": [{"type": "function_call"}]}, {"input": [], "tools": [3]}]
)
def test_invalid_request_is_refused(body: Any) -> None:
    with pytest.raises(tw.DefinitionError):
        API.decode_request(body)


@pytest.mark.parametrize("body", [{}, {"output": 3}, {"output": [None, {}]}, {"status": "failed", "error": 3}])
def test_invalid_response_becomes_a_problem(body: Any) -> None:
    assert not API.decode_response(body).tool_calls
    assert not decode(stream({"type": "response.completed", "response": body})).tool_calls


@pytest.mark.parametrize("bad", [{}, {"type": "response.output_item.done"}, event("output_item.added", item=None)])
def test_unreadable_event_does_not_affect_the_others(bad: Any) -> None:
    response = decode(stream(bad, completed(message("x"))))
    assert response.content == "x"


def test_parts_of_an_item_are_looked_up_in_constant_time() -> None:
    count = 3000

    class Counted(tuple[str, int]):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return tuple.__eq__(self, other)

        __hash__ = tuple.__hash__

    builder = ResponseBuilder("openai_responses")
    reader = OutputReader(builder)
    item = reader._new("message", "m")
    for at in range(count):
        reader._add(item, Counted(("x", at)), "x")
        reader._add(item, Counted(("x", at)), "y")
    assert Counted.compared < 10 * count


@pytest.mark.parametrize("arguments", ["", "null"])
@pytest.mark.parametrize("streams", [True, False])
def test_item_that_is_called_completed_in_a_cut_response_is_no_proof(arguments: str, streams: bool) -> None:
    item = call(arguments, status="completed")
    details = {"incomplete_details": {"reason": "max_output_tokens"}}
    body = {"object": "response", "status": "incomplete", **details, "output": [item]}
    event = {"type": "response.incomplete", "response": body}
    response = decoded(API, sse_stream(event)) if streams else API.decode_response(body)
    assert response.tool_calls == ()
    assert [cut.name for cut in response.incomplete] == [item["name"]]
    body["output"] = [item, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}]
    assert [one.arguments for one in API.decode_response(body).tool_calls] == [{}]


@pytest.mark.parametrize("event", ["response.function_call_arguments.done", "response.output_item.done"])
@pytest.mark.parametrize("final", ['{"city": "Rome"}', "{}", "no JSON"])
@pytest.mark.parametrize("size", [0, 1])
def test_arguments_at_the_end_that_contradict_the_pieces_are_a_problem(event: str, final: str, size: int) -> None:
    item = call("")
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    delta = {"type": "response.function_call_arguments.delta", "item_id": item["id"], "delta": '{"city": "Paris"}'}
    done = {"type": event, "output_index": 0, "item_id": item["id"], "arguments": final, "item": call(final)}
    end = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    response = decoded(API, sse_stream(added, delta, done, end), size)
    assert response.tool_calls == ()
    assert response.incomplete[0].arguments == {"city": "Paris"}
    assert response.problems[0].kind == "malformed"
    assert "differ" in response.problems[0].message


@pytest.mark.parametrize("final", ['{"city":"Paris"}', ' {"city" : "Paris"}\n', ""])
def test_arguments_at_the_end_in_another_spelling_are_no_problem(final: str) -> None:
    item = call("")
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    delta = {"type": "response.function_call_arguments.delta", "item_id": item["id"], "delta": '{"city": "Paris"}'}
    done = {"type": "response.function_call_arguments.done", "item_id": item["id"], "arguments": final}
    whole = {"type": "response.output_item.done", "output_index": 0, "item": call(final)}
    end = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    response = decoded(API, sse_stream(added, delta, done, whole, end))
    assert [one.arguments for one in response.tool_calls] == [{"city": "Paris"}]
    assert not response.problems


@pytest.mark.parametrize(
    ("status", "reason"),
    [("completed", FinishReason.STOP), ("failed", FinishReason.ERROR), ("cancelled", FinishReason.ERROR)],
)
def test_status_of_a_response_is_its_finish_reason(status: str, reason: FinishReason) -> None:
    response = {"object": "response", "status": status, "output": []}
    events = sse_stream({"type": f"response.{status}", "response": response})
    assert decoded("openai_responses", events).finish_reason is reason


def test_items_of_a_written_stream_have_ids_of_their_kinds() -> None:
    parts = (ReasoningPart("r"), TextPart("t"), ToolCall("f", {}, "c"))
    data = b"".join(tw.get_api("openai_responses").encode_stream(replay(ParsedResponse(parts=parts)), id="77"))
    values = [json.loads(line[6:]) for line in data.splitlines() if line.startswith(b"data: ")]
    items = [value["item"] for value in values if value["type"] == "response.output_item.added"]
    assert [(item["type"], item["id"].partition("_")[0]) for item in items] == [
        ("reasoning", "rs"),
        ("message", "msg"),
        ("function_call", "fc"),
    ]


@pytest.mark.parametrize(
    ("streamed", "final", "free", "same"),
    [
        ('{"a":1}', '{"a": 1}', False, True),
        ('{"a":1}', '{"a": 2}', False, False),
        ('{"a":1}', "", False, True),
        ('{"a"', '{"a": 1}', False, False),
        ("a patch", "a  patch", True, False),
        ("a patch", "a patch", True, True),
    ],
)
def test_arguments_at_the_end_are_compared_by_their_values(streamed: str, final: str, free: bool, same: bool) -> None:
    assert same_arguments(streamed, final, free=free) is same


def test_token_counts_have_their_details() -> None:
    body = API.encode_response(ParsedResponse("a", usage=Usage(9, 5, 4, 2)), model="m")
    assert body["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 14,
    }

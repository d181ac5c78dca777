from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.providers.parsing import parse
from toolwire.reparse.answer_rows import answer_row

TOOLS = [{"name": "f", "parameters": {"type": "object"}}]
CHAT = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
LOGGED = [{"function": {"name": "f", "arguments": '{"a": 1}'}}, {"name": "g", "arguments": {"b": 2}}]


def row_of(value: Any) -> Any:
    return answer_row(json.dumps(value).encode())


@pytest.mark.parametrize("key", ["text", "output", "completion", "raw", "response"])
def test_texts(key: str) -> None:
    row = row_of({key: "x", "model": "m", "format": "hermes", "tools": TOOLS, "calls": LOGGED})
    assert (row.text, row.model, row.format, row.tools) == ("x", "m", "hermes", TOOLS)
    assert row.calls == [("f", {"a": 1}), ("g", {"b": 2})]
    assert row_of({key: "x"}).calls is None
    assert row_of({key: "x", "tool_calls": []}).calls == []


@pytest.mark.parametrize(
    "value",
    [
        CHAT,
        {"response": CHAT},
        {"custom_id": "1", "response": {"status_code": 200, "body": CHAT}, "error": None},
        {"request": {"tools": TOOLS}, "response": CHAT},
        {"request": {"body": {"tools": TOOLS}}, "response": {"body": CHAT}},
    ],
)
def test_responses(value: dict[str, Any]) -> None:
    row = row_of(value)
    assert (row.response, row.text, row.model) == (CHAT, None, "m")
    assert row.tools == (TOOLS if "request" in value else None)


def test_lists_may_be_json_in_a_text() -> None:
    calls, tools = json.dumps(LOGGED), json.dumps(TOOLS)
    row = row_of({"text": "x", "calls": calls, "tools": tools})
    assert (row.calls, row.tools) == ([("f", {"a": 1}), ("g", {"b": 2})], TOOLS)
    answer = {"role": "assistant", "content": "x", "tool_calls": json.dumps(LOGGED[:1])}
    response = row_of({"messages": [answer]}).response
    assert response is not None
    assert [call.name for call in parse(response).tool_calls] == ["f"]
    for text in ("null", "no JSON", "[" * 100_000):
        row = row_of({"text": "x", "calls": text, "tools": text})
        assert (row.calls, row.tools) == (None, None)


def test_a_conversation_ends_with_the_answer() -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": None, "tool_calls": LOGGED[:1]}]
    row = row_of({"messages": messages, "tools": TOOLS, "model": "m"})
    assert row.response is not None
    assert (row.text, row.model, row.tools) == (None, "m", TOOLS)
    assert [(call.name, call.arguments) for call in parse(row.response).tool_calls] == [("f", {"a": 1})]
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    row = row_of({"messages": [{"role": "assistant", "content": parts}]})
    assert (row.text, row.calls) == ("ab", None)


def test_the_text_of_a_row_is_the_answer_to_its_messages() -> None:
    messages = [{"role": "user", "content": "Call f."}]
    row = row_of({"messages": messages, "output": "<tool_call>", "calls": []})
    assert (row.text, row.calls) == ("<tool_call>", [])


@pytest.mark.parametrize("error", [None, "too long", {"code": "length"}])
def test_a_text_beside_an_error_is_an_answer(error: Any) -> None:
    # Logs of programs have a member for the error of a call, beside the text that contains the call.
    row = answer_row(json.dumps({"text": "<tool_call>", "error": error}).encode())
    assert row.text == "<tool_call>"


def test_arguments_that_a_server_could_not_read_stay_text() -> None:
    row = row_of({"text": "x", "calls": [{"name": "f", "arguments": "{broken"}]})
    assert row.calls == [("f", "{broken")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "it is not JSON: Expecting"),
        (b"{\xff}", "it is not UTF-8: byte 0xff at position 1; convert the file first"),
        (b"[1]", "a JSON array, and not an object"),
        (b"[" * 100_000, "levels"),
        ('{"text": "京"}\n'.encode("utf-16"), "it is not UTF-8: byte 0xff at position 0"),
        (b"\x00" + '{"text": "x"}'.encode("utf-16-le"), "it has NUL bytes, as files in UTF-16 do"),
        (b"{}", "no text"),
        (b'{"messages": [{"role": "user", "content": "<tool_call>"}]}', "has the role 'user', and is not an answer"),
        (b'{"messages": [{"role": "tool", "content": "<tool_call>"}]}', "has the role 'tool', and is not an answer"),
        (b'{"text": 3}', "no text"),
        (b'{"custom_id": "1", "response": null, "error": {"code": "expired"}}', "it is an error"),
        (
            b'{"response": {"status_code": 429, "body": {"error": {"message": "slow down"}}}, "error": null}',
            "slow down",
        ),
        (b'{"text": "x", "calls": [{"arguments": {}}]}', "has no name"),
    ],
)
def test_rows_that_are_not_answers_say_why(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        answer_row(line)

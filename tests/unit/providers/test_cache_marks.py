"""Cache marks of one API become those of another, in messages, system prompts, results and tools."""

from typing import Any

import pytest

from toolwire import Notes, get_api

MARK = {"cache_control": {"type": "ephemeral"}}
LONG = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
POINT = {"cachePoint": {"type": "default"}}
LONG_POINT = {"cachePoint": {"type": "default", "ttl": "1h"}}
SCHEMA = {"type": "object", "properties": {}}
ANTHROPIC: dict[str, Any] = {
    "max_tokens": 9,
    "system": [{"type": "text", "text": "Be brief.", **LONG}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Rain?", **MARK}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "rain", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "No.", **MARK}]},
    ],
    "tools": [{"name": "rain", "input_schema": SCHEMA, **MARK}],
}


def translated(source: str, body: dict[str, Any], target: str) -> tuple[dict[str, Any], set[str]]:
    notes = Notes()
    request = get_api(source).decode_request(body)
    return get_api(target).encode_request(request, notes=notes), {note.where for note in notes}


def test_from_anthropic_to_bedrock_and_back() -> None:
    body, wheres = translated("anthropic_messages", ANTHROPIC, "bedrock_converse")
    assert body["system"] == [{"text": "Be brief."}, LONG_POINT]
    assert body["messages"][0]["content"] == [{"text": "Rain?"}, POINT]
    assert body["messages"][2]["content"][1] == POINT
    assert body["toolConfig"]["tools"][1] == POINT
    assert not {where for where in wheres if "cache" in where}
    back, wheres = translated("bedrock_converse", body, "anthropic_messages")
    assert back == ANTHROPIC
    assert not {where for where in wheres if "cache" in where}


def test_openrouter_has_marks_and_openai_has_none() -> None:
    body, wheres = translated("anthropic_messages", ANTHROPIC, "openrouter")
    assert body["messages"][0]["content"] == [{"type": "text", "text": "Be brief.", **LONG}]
    assert body["tools"][0]["cache_control"] == MARK["cache_control"]
    assert "cache_control" not in wheres
    body, wheres = translated("anthropic_messages", ANTHROPIC, "openai_chat")
    assert "cache" not in str(body)
    assert wheres >= {"cache_control", "rain/cache_control"}


def test_a_mark_behind_blank_text_is_on_the_text_before() -> None:
    content = [{"text": "Rain?"}, {"text": "\n"}, POINT]
    body, _ = translated("bedrock_converse", {"messages": [{"role": "user", "content": content}]}, "anthropic_messages")
    assert body["messages"][0]["content"] == [{"type": "text", "text": "Rain?", **MARK}]


def test_a_mark_behind_nothing_is_noted() -> None:
    content = [POINT, {"text": "Rain?"}]
    body, wheres = translated(
        "bedrock_converse", {"messages": [{"role": "user", "content": content}]}, "anthropic_messages"
    )
    assert "cache" not in str(body)
    assert "cachePoint" in wheres


@pytest.mark.parametrize("target", ["anthropic_messages", "bedrock_converse"])
def test_own_members_beside_a_mark_are_noted(target: str) -> None:
    tool = {"type": "function", "function": {"name": "rain", "description": "", "parameters": SCHEMA}, **MARK, "x": 1}
    body, wheres = translated(
        "openrouter", {"messages": [{"role": "user", "content": "Rain?"}], "tools": [tool]}, target
    )
    assert "cache" in str(body)
    assert "rain/x" in wheres
    assert "rain/cache_control" not in wheres

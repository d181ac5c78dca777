"""Messages of which an API can take no part, conversations without a beginning, and calls without tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.providers.conftest import USER, WEATHER

import toolwire as tw
from toolwire import Message, Notes, OpaquePart, ReasoningPart, TextPart, ToolCall, ToolResult

FOREIGN = OpaquePart({"type": "container_upload", "file_id": "f"}, "some_api")
CALLED = (
    Message("assistant", (ToolCall("weather", {"city": "Rome"}, "a"),)),
    Message("tool", (ToolResult("a", "weather", "sun"),)),
)
APIS = pytest.mark.parametrize("api", list(tw.apis()))
ANTHROPIC = ("anthropic_messages", "anthropic_bedrock", "anthropic_vertex")
STRICT = ("bedrock_converse", "gemini", "gemini_openapi", "gemini_interactions")
"""APIs whose conversations begin with the user."""
LISTS = {
    "openai_responses": "input",
    "gemini": "contents",
    "gemini_openapi": "contents",
    "gemini_interactions": "input",
}


def messages_of(api: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = body[LISTS.get(api, "messages")]
    return messages


def encoded(api: str, *messages: Message, notes: Notes | None = None) -> list[dict[str, Any]]:
    return messages_of(api, tw.get_api(api).encode_request(messages, notes=notes))


@APIS
@pytest.mark.parametrize(
    "dropped",
    [
        Message("assistant", (FOREIGN,)),
        Message("assistant", (ReasoningPart("Hm", "signed", "some_api", {"item": 1}),)),
        Message("system", (FOREIGN,)),
    ],
)
def test_message_of_which_nothing_is_left_is_left_out(api: str, dropped: Message) -> None:
    notes = Notes()
    assert encoded(api, USER, dropped, USER, notes=notes) == encoded(api, USER, USER)
    assert [note.kind for note in notes if note.kind == "dropped"]


@APIS
@pytest.mark.parametrize("parts", [(FOREIGN,), (ReasoningPart("Hm", "signed", "some_api", {"item": 1}), FOREIGN)])
def test_message_of_the_user_of_which_nothing_is_left_says_so(api: str, parts: tuple[Any, ...]) -> None:
    (message,) = encoded(api, Message("user", parts))
    assert "container_upload: it cannot be shown here." in str(message)
    assert "container_upload: it" not in str(encoded(api, Message("user", (*parts, TextPart("hi")))))


@APIS
def test_empty_text_of_the_user_is_not_called_a_lost_part(api: str) -> None:
    assert "cannot be shown" not in str(encoded(api, Message("user", "")))


@APIS
@pytest.mark.parametrize(
    ("messages", "begun"),
    [
        ((Message("system", "Be brief."),), (*ANTHROPIC, *STRICT)),
        ((), ()),
        ((Message("system", "Be brief."), *CALLED), STRICT),
        ((Message("system", "Be brief."), Message("user", " ")), (*ANTHROPIC, *STRICT)),
        ((Message("user", ""), Message("assistant", "Hello."), USER), STRICT),
        ((Message("assistant", "Hello."), USER), STRICT),
        ((USER, *CALLED), ()),
    ],
)
def test_conversation_begins_with_the_user_where_it_has_to(
    api: str, messages: tuple[Message, ...], begun: tuple[str, ...]
) -> None:
    provider, notes = tw.get_api(api), Notes()
    written = messages_of(api, provider.encode_request(messages, tools=[WEATHER], notes=notes))
    assert [note.where.partition("/")[0] for note in notes if "first" in note.message] == ["messages"] * (api in begun)
    if api in begun:
        assert "user" in (written[0].get("role"), str(written[0].get("type")).partition("_")[0])
        own = tw.get_api(api).decode_request({LISTS.get(api, "messages"): written[1:]})
        assert messages_of(api, provider.encode_request(own))[:1] == written[1:2]


@pytest.mark.parametrize("api", ["anthropic_messages", "bedrock_converse"])
@pytest.mark.parametrize(
    "request_",
    [
        tw.ChatRequest((USER, *CALLED)),
        tw.ChatRequest((USER, *CALLED), provider="openai_chat", provider_tools=({"type": "web_search"},)),
        tw.ChatRequest((USER, *CALLED), (tw.ToolDefinition("f", parameters={"type": "no type"}),)),
    ],
)
def test_called_tools_are_offered_if_no_other_is(api: str, request_: tw.ChatRequest) -> None:
    provider, notes = tw.get_api(api), Notes()
    body = provider.encode_request(request_, notes=notes)
    assert [tool.name for tool in provider.decode_request(body).tools] == ["weather"]
    assert [note.where for note in notes if note.kind == "added" and note.where.startswith("tools/")] == [
        "tools/weather"
    ]


@pytest.mark.parametrize("name", ["get weather", "<tool>", "\udc00", "", "n" * 300])
@pytest.mark.parametrize("api", ["anthropic_messages", "bedrock_converse"])
def test_called_tools_have_the_names_of_the_calls_if_no_tool_could_have_them(api: str, name: str) -> None:
    messages = [tw.Message("user", "Hi."), tw.Message("assistant", (tw.ToolCall(name, {}, "c1"),))]
    body = json.dumps(tw.get_api(api).encode_request([*messages, tw.Message("user", "And now?")]))
    fitted = tw.get_api(api).names.fit(name)
    assert body.count(f'"name": "{fitted}"') == 2  # that of the call, and that of the tool


@pytest.mark.parametrize("api", ["anthropic_messages", "bedrock_converse"])
def test_tools_that_are_not_available_cannot_be_required(api: str) -> None:
    provider = tw.get_api(api)
    request = tw.ChatRequest((USER, *CALLED), provider="other", provider_tools=({"type": "x"},))
    body = provider.encode_request(request, tool_choice="required")
    assert "any" not in json.dumps(body.get("tool_choice") or body.get("toolConfig", {}).get("toolChoice") or "")

"""The parts of a prompt, and the first one that differs from the request before."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import CLIENTS
from tests.unit.inspector.recorded_exchanges import ask, inspected, question

from toolwire.inspector.prompt_parts import prefix_change, prompt_parts

SYSTEM = {"type": "text", "text": "You are careful. " * 20}


def body(*texts: str, tools: Any = (), system: Any = SYSTEM, mark: bool = False) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [
        {"role": "user" if at % 2 == 0 else "assistant", "content": [{"type": "text", "text": text}]}
        for at, text in enumerate(texts)
    ]
    if mark:
        messages[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    return {"model": "m", "system": [system], "tools": list(tools), "messages": messages}


def change(before: Any, after: Any) -> Any:
    return prefix_change(prompt_parts(before), prompt_parts(after))


@pytest.mark.parametrize("api", CLIENTS)
def test_the_parts_of_each_api_are_its_tools_and_messages(api: str) -> None:
    _, asked = question(api, "m")
    parts = prompt_parts(asked)
    assert [(part.kind, part.label) for part in parts] == [("tool", "get_weather"), ("message", "user")]
    assert all(part.tokens > 0 for part in parts)


def test_a_conversation_that_goes_on_keeps_its_prefix() -> None:
    result = change(body("a", "b", "c"), body("a", "b", "c", "d", "e"))
    assert result.place == "" and 0 < result.shared < result.total


def test_marks_of_a_cache_move_and_change_nothing() -> None:
    result = change(body("a", "b", "c", mark=True), body("a", "b", "c", "d", "e", mark=True))
    assert result.place == ""


@pytest.mark.parametrize(
    ("after", "place", "excerpt"),
    [
        (body("a", "other", "c"), "messages[1]", "other"),
        (
            body("a", "b", "c", system={"type": "text", "text": "You are careful. " * 20 + "Today: 5"}),
            "system[0]",
            "Today",
        ),
        (body("a", "b", "c", tools=[{"name": "new"}]), "tools[0]", "new"),
    ],
    ids=["message", "system", "tool"],
)
def test_the_first_difference_is_found(after: Any, place: str, excerpt: str) -> None:
    result = change(body("a", "b", "c"), after)
    assert result.place == place and excerpt in result.after and excerpt not in result.before
    assert result.shared < result.total


def test_a_shorter_conversation_says_what_is_missing() -> None:
    result = change(body("a", "b", "c"), body("a"))
    assert result.place == "messages[1]" and result.after == "" and '"b"' in result.before


@pytest.mark.parametrize(
    "value", [None, "text", 7, {"messages": 3, "tools": {"a": 1}, "system": 0}, {"messages": [1, None]}]
)
def test_a_body_that_is_wrong_gives_what_it_has(value: Any) -> None:
    assert [part.label for part in prompt_parts(value)] == (["", ""] if value == {"messages": [1, None]} else [])


def test_the_view_compares_with_the_request_before_in_the_same_session() -> None:
    gateway, inspector = inspected()
    for session, text in (("s1", "one"), ("s2", "two"), ("s1", "three")):
        ask(gateway, "messages", "api", text=text, headers={"x-claude-code-session-id": session})
    first, other, last = (inspector.view(id) for id in inspector.ids())
    assert first and other and last
    assert first["prefix"] is None and other["prefix"] is None
    assert last["prefix"]["number"] == 1 and last["prefix"]["place"] == "messages[0]"
    assert "three" in last["prefix"]["after"] and last["prefix"]["before"] != last["prefix"]["after"]

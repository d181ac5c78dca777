"""Tests of grammars as structural tags: what the engine looks for itself, and what is an expression."""

from __future__ import annotations

import json
from typing import Any

from tests.property.grammar_engines import engine

from toolwire import ToolCall, render_calls
from toolwire.grammars.message_grammar import grammar
from toolwire.tools import ToolDefinition

PING, PONG = ToolDefinition("ping"), ToolDefinition("pong")


def tag(format: str, tool_choice: str, **options: Any) -> dict[str, Any]:
    """Return the format of a structural tag."""
    text = grammar([PING, PONG], format=format, tool_choice=tool_choice, syntax="structural_tag", **options).text
    written: dict[str, Any] = json.loads(text)
    assert written["type"] == "structural_tag"
    content: dict[str, Any] = written["format"]
    return content


def test_an_opener_in_text_triggers_the_rest_of_the_calls() -> None:
    content = tag("hermes", "auto")
    (triggered,) = content.pop("tags")
    assert content == {
        "type": "triggered_tags",
        "triggers": ["<tool_call>"],
        "stop_after_first": True,
        "excludes": ["<tools>"],
    }
    assert (triggered["type"], triggered["begin"], triggered["end"]) == ("tag", "<tool_call>", "")
    assert triggered["content"]["type"] == "grammar"
    assert triggered["content"]["grammar"].startswith('root ::= t0? r0 t0? "</tool_call>"')


def test_required_calls_are_one_expression() -> None:
    content = tag("hermes", "required")
    assert content["type"] == "grammar"
    assert content["grammar"].startswith("root ::= r0 (t0? r0)*\n")


def test_the_engine_keeps_the_markers_out_of_text_without_calls() -> None:
    assert tag("hermes", "none") == {"type": "any_text", "excludes": ["<tool_call>", "<tools>"]}


def test_text_that_may_not_begin_as_a_call_is_an_expression() -> None:
    assert tag("bare_json", "none")["type"] == "grammar"
    content = tag("bare_json", "auto")
    assert content["type"] == "or"
    assert [each["type"] for each in content["elements"]] == ["grammar", "grammar"]


def test_reasoning_comes_first() -> None:
    content = tag("hermes", "auto", reasoning="allowed")
    assert content["type"] == "sequence"
    assert [each["type"] for each in content["elements"]] == ["grammar", "triggered_tags"]


def test_a_call_that_the_prompt_has_begun_is_not_taken_for_text() -> None:
    """The prompt of Beam ends inside the opener, which an engine would therefore not see."""
    content = tag("beam", "auto")
    assert content["type"] == "grammar"
    real = engine("llama.cpp")
    call = render_calls([ToolCall("ping", {})], format="beam", tools=[PING]).removeprefix("<|start|>assistant")
    assert call.startswith(" to=ping<|channel|>")
    assert real.match(content["grammar"], call, "gbnf").complete
    assert real.match(content["grammar"], " Hello.", "gbnf").complete
    assert not real.match(content["grammar"], call[:20], "gbnf").complete

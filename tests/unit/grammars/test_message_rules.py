"""Tests of the rules of messages: where calls and text may stand, and which markers text cannot contain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from toolwire.errors import DefinitionError
from toolwire.grammars.algebra import NOTHING, can_be_empty, without_prefix
from toolwire.grammars.free_text import FreeText, Opener
from toolwire.grammars.message_grammar import grammar
from toolwire.grammars.message_rules import MessageRules, message_rules
from toolwire.grammars.value_rules import Rules
from toolwire.tools import ToolDefinition
from toolwire.wire.format_registry import get_format
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import WireFormat

PING, PONG = ToolDefinition("ping"), ToolDefinition("pong")
HERMES_CALL = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
WITH_CALLS = [pytest.param(wire, id=wire.name) for wire in FORMATS if wire.blocks]


def rules(format: str, tools: Any = (PING, PONG), **options: Any) -> MessageRules:
    wire = get_format(format)
    defaults: dict[str, Any] = {"choice_of": "auto", "parallel": True, "reasoning": "none", "primed": wire.primed}
    return message_rules(wire, tools, **{**defaults, **options})[0]


def accepts(message: MessageRules, text: str) -> bool:
    """Return whether a text is a whole message."""
    return can_be_empty(without_prefix(message.root, text, message.rules), message.rules)


@pytest.mark.parametrize(
    ("choice_of", "text", "expected"),
    [
        ("auto", "Hello.", True),
        ("auto", "", True),
        ("auto", HERMES_CALL, True),
        ("auto", f"Well: {HERMES_CALL}\n{HERMES_CALL}", True),
        ("auto", f"{HERMES_CALL} Done.", False),
        ("auto", "<tool_call>\nHello.", False),
        ("auto", "a < b <tool", True),
        ("auto", HERMES_CALL.replace("ping", "pang"), False),
        ("required", HERMES_CALL, True),
        ("required", f"{HERMES_CALL}\n{HERMES_CALL}", True),
        ("required", "Hello.", False),
        ("required", "", False),
        ("required", f"Well: {HERMES_CALL}", False),
        ("none", "Hello.", True),
        ("none", "", True),
        ("none", HERMES_CALL, False),
        ("none", f"Well: {HERMES_CALL}", False),
        ("none", "<tool_call>", False),
    ],
)
def test_the_choice_decides_where_calls_and_text_stand(choice_of: str, text: str, expected: bool) -> None:
    assert accepts(rules("hermes", choice_of=choice_of), text) is expected


def test_calls_that_are_not_parallel_come_alone() -> None:
    alone = rules("hermes", choice_of="required", parallel=False)
    assert accepts(alone, HERMES_CALL)
    assert not accepts(alone, f"{HERMES_CALL}\n{HERMES_CALL}")


@pytest.mark.parametrize(
    ("reasoning", "text", "expected"),
    [
        ("none", "<think>Hm.</think>\n" + HERMES_CALL, False),
        ("allowed", "<think>Hm.</think>\n" + HERMES_CALL, True),
        ("allowed", HERMES_CALL, True),
        ("open", "Hm. <tool_call></think>\n" + HERMES_CALL, True),
        ("open", HERMES_CALL, False),
    ],
)
def test_reasoning_comes_before_everything_else(reasoning: str, text: str, expected: bool) -> None:
    assert accepts(rules("hermes", choice_of="required", reasoning=reasoning), text) is expected


def test_what_the_prompt_has_begun_is_not_written_again() -> None:
    primed = rules("hermes", choice_of="required", primed="<tool_call>\n")
    assert accepts(primed, HERMES_CALL.removeprefix("<tool_call>\n"))
    assert not accepts(primed, HERMES_CALL)


def test_text_does_not_begin_as_a_call_without_markers() -> None:
    message = rules("bare_json")
    assert accepts(message, "Hello {you}.")
    assert accepts(message, '{"name": "ping", "arguments": {}}')
    assert not accepts(message, '{"name": "pang"}')


@pytest.mark.parametrize("wire", WITH_CALLS)
def test_no_call_is_offered_where_none_may_be_written(wire: Any) -> None:
    message = rules(wire.name, choice_of="none")
    assert message.calls == NOTHING
    assert message.openers == {}
    assert accepts(message, "Hello.")


def test_without_tools_there_is_only_text() -> None:
    message = rules("hermes", ())
    assert message.calls == NOTHING
    assert accepts(message, "Hello.")
    assert not accepts(message, HERMES_CALL)


def test_text_may_follow_calls_where_that_is_asked_for() -> None:
    message = rules("hermes", choice_of="required", text_after=True)
    for text, expected in ((" Done.", True), ("", True), (" <tool_call>", False), ("<b>", False), ("{", False)):
        assert accepts(message, HERMES_CALL + text) is expected, text


MANY = [ToolDefinition(f"tool_number_{number}") for number in range(300)]


@pytest.mark.parametrize("format", ["beam", "functionary_v3_2", "glimmer", "inkling", "pythonic", "tool_tags"])
def test_text_before_calls_of_many_tools_has_an_expression(format: str) -> None:
    """The names of these tools are what tells a call from text."""
    assert accepts(rules(format, MANY), "Hello.")


@pytest.mark.parametrize(
    ("format", "text", "is_text"),
    [
        ("glimmer", "user<|message|>Hello.", True),
        ("glimmer", "pi<|message|>Hello.", True),
        ("glimmer", "pin", True),
        ("glimmer", "ping<", False),
        ("glimmer", " ping<", False),
        ("glimmer", "pingo<|message|>Hello.", True),
        ("glimmer", "user<|start|>assistant to=pong<", False),
        ("glimmer", "pon<|start|>assistant to=pong<", False),
    ],
)
def test_a_marker_that_a_name_has_to_follow_is_text_without_one(format: str, text: str, is_text: bool) -> None:
    """A model that answers writes the same beginning of a message as one that calls."""
    for choice_of in ("auto", "none"):
        message = rules(format, choice_of=choice_of)
        rest = without_prefix(message.root, f" to={text}", message.rules)
        assert can_be_empty(rest, message.rules) is is_text


@pytest.mark.parametrize("text", ["[ping()]", "Well: [ping()]", "[[ping()]", "[ ping()]", "[1] [pon] [pong()]"])
def test_text_holds_no_python_call_where_none_may_be_written(text: str) -> None:
    assert not accepts(rules("pythonic", choice_of="none"), text)
    assert accepts(rules("pythonic", choice_of="none"), text.replace("(", ""))
    assert accepts(rules("pythonic"), text) is (" ping" not in text)


@pytest.mark.parametrize(
    ("format", "marker"),
    [("qwen3_coder", "<function="), ("cohere_json", "Action:\n```\n"), ("kimi_k2", "<|tool_call_begin|>")],
)
def test_text_contains_no_marker_by_which_a_call_may_begin_too(format: str, marker: str) -> None:
    """A model may leave out the marker before it, or write a shorter one."""
    assert accepts(rules(format), "Hello.")
    assert not accepts(rules(format), f"Hello. {marker}")


def test_text_may_end_with_blanks_behind_a_marker() -> None:
    assert accepts(rules("pythonic", choice_of="none"), "[ ")


def test_a_longer_marker_that_no_expression_excludes_is_permitted() -> None:
    text = FreeText(Opener("<", ("ping>",)), ["<", "<tool>", "<a!!", "!!"], "", Rules())
    assert text.banned == ("<tool>", "<a!!", "!!")
    assert text.permitted == ("<tool>",)


def test_a_marker_that_overlaps_with_itself_is_found_wherever_it_ends() -> None:
    message = rules("functionary_v3_2", choice_of="none", primed="")
    assert accepts(message, ">>>all\nHello >>>>pin")
    assert not accepts(message, ">>>>ping\n{}")
    assert not accepts(message, ">>>a>>>>>ping\n{}")


@pytest.mark.parametrize("syntax", ["lark", "gbnf"])
def test_markers_that_text_may_contain_are_named(syntax: Any) -> None:
    assert grammar([PING], format="hermes", syntax=syntax).widened == ()
    widened = grammar([PING], format="gemma4", syntax=syntax).widened
    assert widened == ("text may contain '```tool_code', a marker of calls",)
    assert grammar([PING], format="gemma4", syntax=syntax, tool_choice="required").widened == ()


def test_an_engine_that_excludes_markers_itself_widens_nothing() -> None:
    assert grammar([PING], format="gemma4", syntax="structural_tag").widened == ()
    followed = grammar([PING], format="gemma4", syntax="structural_tag", text_after=True)
    assert followed.widened == ("text may contain '```tool_code', a marker of calls",)


@pytest.mark.parametrize("wire", WITH_CALLS)
def test_text_contains_no_marker_that_is_not_named(wire: Any) -> None:
    message = rules(wire.name)
    permitted = message.permitted_markers()
    for marker in (*message.text.banned, *message.text.inside_opener):
        if marker not in permitted:
            assert not accepts(message, f"a {marker} b"), marker


def refuse(wire: WireFormat, message: str, **options: Any) -> None:
    defaults: dict[str, Any] = {"choice_of": "auto", "parallel": True, "reasoning": "none", "primed": ""}
    with pytest.raises(DefinitionError, match=message):
        message_rules(wire, [PING], **{**defaults, **options})


def test_a_contradiction_is_an_error_that_names_the_tool_and_the_place_once() -> None:
    parameters = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 5, "maximum": 3}}}
    tool = ToolDefinition("f", parameters={**parameters, "required": ["n"]})
    with pytest.raises(DefinitionError, match=r"^tool 'f' at /properties/n: no value fits this schema"):
        rules("hermes", [tool])


def test_a_format_that_lacks_what_is_needed_has_no_grammar() -> None:
    hermes = get_format("hermes")
    refuse(replace(hermes, spans=()), "has no reasoning", reasoning="allowed")
    refuse(replace(hermes, blocks=()), "has no calls")


def test_a_tool_whose_name_a_format_cannot_write_is_named() -> None:
    written = grammar([PING, ToolDefinition("get/weather")], format="tool_tags", tool_choice="required")
    assert written.widened == ("get/weather: no call of it can be written in this format",)
    assert grammar([PING], format="tool_tags").widened == ()


def test_a_name_with_a_hyphen_is_written_in_calls_of_python() -> None:
    tool = ToolDefinition("get-weather", parameters={"type": "object", "properties": {"x-id": {"type": "integer"}}})
    written = grammar([tool], format="pythonic", tool_choice="required", syntax="gbnf")
    assert '"get-weather("' in written.text
    assert '"x-id="' in written.text
    assert not written.widened


def test_a_json_schema_has_effects_that_other_grammars_lack() -> None:
    schema = {"type": "string", "pattern": "^x$", "maxLength": 500}
    tool = ToolDefinition("f", parameters={"type": "object", "properties": {"a": schema}})
    written = grammar([tool], format="bare_json", tool_choice="required", syntax="json_schema")
    assert '"pattern": "^x$"' in written.text
    assert '"maxLength": 500' in written.text
    assert not written.widened
    assert len(grammar([tool], format="bare_json", tool_choice="required").widened) == 2

"""Tests of the rules of calls: values that are written without quotes, and names that a format cannot write."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import ToolCall, render_calls
from toolwire.errors import DefinitionError
from toolwire.grammars.algebra import can_be_empty, without_prefix
from toolwire.grammars.message_grammar import grammar
from toolwire.grammars.message_rules import message_rules
from toolwire.tools import ToolDefinition
from toolwire.wire.format_registry import get_format

TEXT = {"type": "string"}
HOLE = "HOLE"


def tool(properties: dict[str, Any], **keywords: Any) -> ToolDefinition:
    return ToolDefinition("f", parameters={"type": "object", "properties": properties, **keywords})


def accepts(format: str, definition: ToolDefinition, text: str) -> bool:
    """Return whether a text is a whole message of calls."""
    wire = get_format(format)
    message, _ = message_rules(
        wire, [definition], choice_of="required", parallel=True, reasoning="none", primed=wire.primed
    )
    return can_be_empty(without_prefix(message.root, text, message.rules), message.rules)


def template(format: str) -> str:
    """Return a call in which a text for the parameter `q` replaces `HOLE`."""
    return render_calls([ToolCall("f", {"q": HOLE})], format=format, tools=[tool({"q": TEXT})])


@pytest.mark.parametrize(
    ("format", "value", "expected"),
    [
        ("qwen3_coder", "a < b > c", True),
        ("qwen3_coder", "a</b>", True),
        ("qwen3_coder", "a</parameter>", False),
        ("qwen3_coder", "a</function>", False),
        ("qwen3_coder", "a<parameter=", False),
        ("minicpm5", "a<param ", False),
    ],
)
def test_a_raw_value_contains_no_marker_of_its_call(format: str, value: str, expected: bool) -> None:
    text = template(format).replace(HOLE, value)
    assert accepts(format, tool({"q": TEXT, "r": TEXT}), text) is expected


@pytest.mark.parametrize("constant", ["a<b", "a<b]]>c", "a]]>c"])
def test_a_constant_is_written_as_the_renderer_writes_it(constant: str) -> None:
    definition = tool({"q": {"enum": [constant]}})
    for format in ("forge_xml", "minicpm5"):
        text = render_calls([ToolCall("f", {"q": constant})], format=format, tools=[definition])
        assert accepts(format, definition, text), text


@pytest.mark.parametrize("format", ["forge_xml", "minicpm5"])
def test_a_constant_that_would_end_its_section_is_in_none(format: str) -> None:
    assert "CDATA" not in grammar([tool({"q": {"enum": ["a<b]]>c"]}})], format=format).text
    assert "CDATA" in grammar([tool({"q": {"enum": ["a<b"]}})], format=format).text


@pytest.mark.parametrize(
    ("constant", "is_bare"), [("x", True), (" x", False), ("[x", False), ("{x", False), ("a<b", False), ("", False)]
)
def test_a_constant_without_quotes_is_one_that_is_read_as_itself(constant: str, is_bare: bool) -> None:
    definition = tool({"q": {"enum": ["y", constant]}})
    text = render_calls([ToolCall("f", {"q": "y"})], format="langchain_xml", tools=[definition])
    assert accepts("langchain_xml", definition, text)
    assert accepts("langchain_xml", definition, text.replace(">y<", f">{constant}<")) is is_bare


def test_a_member_whose_name_cannot_be_written_is_left_out() -> None:
    inner = {"type": "object", "properties": {"a b": TEXT, "c": TEXT}}
    written = grammar([tool({"o": inner})], format="forge_xml")
    assert "a b" not in written.text
    assert written.widened == ("f: /: the name 'a b' cannot be written in this format",)


def test_a_tool_with_a_required_name_that_cannot_be_written_has_no_call() -> None:
    with pytest.raises(DefinitionError, match="cannot write a call of any of these tools"):
        grammar([tool({"a b": TEXT}, required=["a b"])], format="forge_xml", tool_choice="required")

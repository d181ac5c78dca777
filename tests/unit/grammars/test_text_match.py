"""The part of a text that a grammar allows, by llguidance."""

from __future__ import annotations

import pytest

from toolwire import Grammar, ToolCall, ToolDefinition, grammar, render_calls
from toolwire.errors import DefinitionError
from toolwire.grammars.text_match import TextMatch, match_text

pytest.importorskip("llguidance", exc_type=ImportError)

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
HEAD = '<tool_call>\n{"name": "get_weather", "arguments": {'


def match(text: str, *, tool_choice: str = "required") -> TextMatch:
    tools = [ToolDefinition("get_weather", parameters=SCHEMA)]
    return match_text(grammar(tools, format="hermes", tool_choice=tool_choice), text)


def test_a_whole_message_is_complete() -> None:
    text = HEAD + '"city": "Zürich", "days": 3}}\n</tool_call>'
    assert match(text) == TextMatch(len(text), True, "\n <", False)
    assert match("Grüezi.", tool_choice="auto").complete


@pytest.mark.parametrize(
    ("text", "allowed", "following", "others"),
    [
        (HEAD + '"x": 1}}', len(HEAD) + 1, "c", False),
        (HEAD + '"city": "Zürich"', len(HEAD) + 16, "\t\n ,}", False),
        (HEAD + '"city": "a", "days": "é"}}', len(HEAD) + 21, "\t\n -0123456789", False),
        ("é", 0, "<", False),
        ("", 0, "<", False),
    ],
    ids=["unknown key", "unfinished", "wrong type", "first character", "empty"],
)
def test_a_text_is_allowed_up_to_a_character(text: str, allowed: int, following: str, others: bool) -> None:
    assert match(text) == TextMatch(allowed, False, following, others)


def test_a_character_of_several_bytes_is_allowed_or_not_as_a_whole() -> None:
    tool = ToolDefinition("f", parameters={"type": "object", "properties": {"a": {"enum": ["ä"]}}, "required": ["a"]})
    head = '<tool_call>\n{"name": "f", "arguments": {"a": "'
    # "ö" begins with the same byte as "ä".
    result = match_text(grammar([tool], format="hermes", tool_choice="required"), head + "ö")
    assert result == TextMatch(len(head), False, "", True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ax", TextMatch(1, False, "b", False)),  # the grammar may end before the character that it refuses
        ("cü", TextMatch(1, False, "d", True)),  # the first byte of "ü" is allowed, because "é" has it too
    ],
)
def test_a_refused_character_does_not_count(text: str, expected: TextMatch) -> None:
    assert match_text(Grammar('start: "a" "b"? | "c" /[éd]/\n', "lark"), text) == expected


def test_a_grammar_that_is_too_large_is_an_error_and_not_a_refused_text() -> None:
    deep = [f'r{number}: "a{number}" (r0? r1? "b{number}")? "c{number}"? "d"? "e"?' for number in range(7000)]
    wide = [f'r{number}: "a" "b"' for number in range(2500)]
    for rules, between in ((deep, " "), (wide, " | ")):
        start = between.join(f"r{number}" for number in range(len(rules)))
        with pytest.raises(DefinitionError, match=r"cannot read the grammar: .*offer fewer tools") as caught:
            match_text(Grammar("\n".join([f"start: {start}", *rules, ""]), "lark"), "ab")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("format", ["hermes", "forge_xml"])
def test_a_grammar_of_1000_tools_is_read(format: str) -> None:
    tools = [ToolDefinition(f"tool_{number}", parameters=SCHEMA) for number in range(1000)]
    written = grammar(tools, format=format)
    for name in ("tool_0", "tool_77", "tool_999"):
        text = render_calls([ToolCall(name, {"city": "Paris", "days": 3})], format=format, tools=tools)
        assert match_text(written, text).complete
    unknown = render_calls([ToolCall("tool_1000", {"city": "Paris"})], format=format)
    assert not match_text(written, unknown).complete


@pytest.mark.parametrize("format", ["pythonic", "react", "functionary_v3_1"])
def test_names_that_begin_alike_are_told_from_text(format: str) -> None:
    tools = [ToolDefinition(f"tool_{number}", parameters=SCHEMA) for number in range(3)]
    text = render_calls([ToolCall("tool_1", {"city": "Paris"})], format=format, tools=tools)
    assert match_text(grammar(tools, format=format), text).complete


def test_other_grammars_are_refused() -> None:
    tools = [ToolDefinition("get_weather", parameters=SCHEMA)]
    with pytest.raises(DefinitionError, match="syntax lark, not gbnf"):
        match_text(grammar(tools, format="hermes", syntax="gbnf"), "")


@pytest.mark.parametrize("format", ["glm4", "qwen3_coder", "minimax_m2", "seed_oss"])
def test_a_value_does_not_contain_a_marker_with_a_blank_in_it(format: str) -> None:
    tools = [ToolDefinition("get_weather", parameters=SCHEMA)]
    text = render_calls([ToolCall("get_weather", {"city": "Paris", "days": 3})], format=format, tools=tools)
    written = grammar(tools, format=format, tool_choice="required")
    assert match_text(written, text).complete
    end = text.index("Paris") + len("Paris")
    # Another closing marker with a blank before its bracket would be text, and the value would have no end.
    last = text.rindex("</")
    wrong = text[last : text.index(">", last)]
    assert not text[end:].startswith(wrong)
    result = match_text(written, text[:end] + wrong + " >")
    assert end < result.allowed < end + len(wrong)

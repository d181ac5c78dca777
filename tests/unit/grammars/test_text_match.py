"""The part of a text that a grammar allows, by llguidance."""

from __future__ import annotations

import pytest

from toolwire import ToolDefinition, grammar
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


def test_other_grammars_are_refused() -> None:
    tools = [ToolDefinition("get_weather", parameters=SCHEMA)]
    with pytest.raises(DefinitionError, match="syntax lark, not gbnf"):
        match_text(grammar(tools, format="hermes", syntax="gbnf"), "")

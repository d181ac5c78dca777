"""ReAct without its name: messages in which thought, tool and input are below headings."""

from __future__ import annotations

import pytest
from tests.streams import parsed

from toolwire import ContentDelta, StreamParser

TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": {key: {"type": "string"} for key in keys}}}
    for name, keys in (("search", ["query"]), ("write", ["path", "text"]))
]
_SEARCH = "Action: search\nAction Input: "


@pytest.mark.parametrize(
    ("text", "arguments", "reasoning"),
    [
        (_SEARCH + '"snow"', {"query": "snow"}, ""),
        (_SEARCH + "snow in Rome", {"query": "snow in Rome"}, ""),
        ("Thought: I look.\n" + _SEARCH + '{"query": "snow"}', {"query": "snow"}, "I look."),
        ("\n Thought: I look.\n\n" + _SEARCH + "snow\n", {"query": "snow"}, "I look."),
        ('Thought:\nAction: write\nAction Input: {"path": "a", "text": "b"}', {"path": "a", "text": "b"}, ""),
    ],
)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_message_of_thought_tool_and_input_is_a_call(
    text: str, arguments: dict[str, str], reasoning: str, size: int
) -> None:
    read = parsed(text, size, tools=TOOLS)
    (call,) = read.tool_calls
    assert (call.arguments, call.format, "fallback" in call.repairs) == (arguments, "react", True)
    assert (read.reasoning.strip(), read.content.strip(), read.problems) == (reasoning, "", ())


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_result_that_the_model_made_up_is_content_and_no_call_behind_it_counts(size: int) -> None:
    invented = "Observation: 3 cm\nThought: more\n" + _SEARCH + "ice\nObservation: none"
    read = parsed("Thought: I look.\n" + _SEARCH + "snow\n" + invented, size, tools=TOOLS)
    assert [call.arguments for call in read.tool_calls] == [{"query": "snow"}]
    assert (read.content.lstrip(), read.problems) == (invented, ())


@pytest.mark.parametrize(
    "text",
    [
        "Thought: I know it.\nFinal Answer: 42",
        "Thought: none of the tools fits.\nAction: None",
        "Action: dance\nAction Input: a",
        "Action: dance\nAction Input: a\nObservation: none",
        "Action: write\nAction Input: a",
        "Action: search",
        _SEARCH + '{"query": "sn',
        "Actions: search",
        "I call it.\n" + _SEARCH + "snow",
    ],
)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_other_messages_below_headings_stay_content(text: str, size: int) -> None:
    read = parsed(text, size, tools=TOOLS)
    assert (read.tool_calls, read.content, read.reasoning) == ((), text, "")


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_text_behind_a_call_that_is_no_result_leaves_the_message_content(size: int) -> None:
    text = _SEARCH + '{"query": "snow"} would find it.'
    read = parsed(text, size, tools=TOOLS)
    assert (read.tool_calls, read.content) == ((), text)


def test_headings_are_not_read_where_no_fallback_is_asked_for() -> None:
    assert parsed(_SEARCH + "snow", 1000, tools=TOOLS, fallback="none").tool_calls == ()


def test_prose_is_passed_on_at_its_first_character_that_no_heading_has() -> None:
    parser = StreamParser(tools=TOOLS)
    assert list(parser.feed("Thought")) == []
    assert (
        "".join(event.text for event in parser.feed(" is free") if isinstance(event, ContentDelta)) == "Thought is free"
    )

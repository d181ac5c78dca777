"""ReAct without its name: messages in which thought, tool and input are below headings."""

from __future__ import annotations

from time import process_time

import pytest
from tests.streams import parsed

from toolwire import ContentDelta, StreamParser
from toolwire.wire.only_calls import Headings

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


def test_a_message_of_headings_that_is_not_a_call_is_given_up_at_the_first_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A megabyte of headings once took time that grew with the square of its length."""
    pieces: list[str] = []
    take_content = Headings._take_content

    def counted(self: Headings, text: str) -> None:
        pieces.append(text)
        take_content(self, text)

    monkeypatch.setattr(Headings, "_take_content", counted)
    for size in (5, 100_000):
        assert parsed("Action: " * 1000, size, tools=TOOLS).tool_calls == ()
    assert len(pieces) <= 2


def test_white_space_behind_the_calls_is_not_compared_again_with_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = 0
    take_content = Headings._take_content

    def measured(self: Headings, text: str) -> None:
        nonlocal longest
        take_content(self, text)
        longest = max(longest, len(self._may_observe))

    monkeypatch.setattr(Headings, "_take_content", measured)
    blanks = " \n" * 3000
    read = parsed(_SEARCH + "snow\n" + blanks + "Observation: 3 cm", 4, tools=TOOLS)
    assert [call.arguments for call in read.tool_calls] == [{"query": "snow"}]
    assert read.content == "\n" + blanks + "Observation: 3 cm"
    assert 0 < longest < 50


def test_white_space_behind_the_calls_costs_time_in_proportion() -> None:
    """Each piece was once compared together with all those before it, which took seconds here."""
    headings = Headings(lambda: pytest.fail("nothing is read"), ["search"])
    began = process_time()
    headings._take([ContentDelta(" ")] * 30_000)
    headings._take([ContentDelta("Observation: 3 cm")])
    assert headings.alive
    assert process_time() - began < 1

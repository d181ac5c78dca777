"""Where calls amid prose begin and end, and which texts make them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from toolwire.tools import definitions
from toolwire.wire.dialects import ReadCall
from toolwire.wire.embedded import FormatCall, find_calls
from toolwire.wire.prepared_tools import KnownTools

TEXT = {"type": "string"}
TOOLS = KnownTools(
    definitions(
        [
            {"name": "search", "parameters": {"type": "object", "properties": {"query": TEXT}, "required": ["query"]}},
            {"name": "get_time", "parameters": {"type": "object", "properties": {}}},
        ]
    )
)
CALL = "search(query='a')"
OBJECT = '{"name": "search", "arguments": {"query": "a"}}'


def places(text: str) -> list[str]:
    """Return the pieces of the text that are calls, whether the text makes them or not."""
    return [text[place.start : place.end] for place in find_calls(text, TOOLS)]


def test_many_calls_of_formats_before_long_prose_take_linear_time() -> None:
    text = "a " * 100_000
    call = ReadCall("get_time", {}, text="a")
    start = time.process_time()
    calls = [FormatCall(at, at + 1, call) for at in range(0, 2000, 2)]
    assert len(list(find_calls(text, TOOLS, calls))) == len(calls)
    assert time.process_time() - start < 4  # where all of the text is searched behind each call, it takes 10


def rest(text: str) -> str:
    """Return the text without its only calls."""
    (place,) = find_calls(text, TOOLS)
    return text[: place.start] + text[place.end :]


@pytest.mark.parametrize("call", [CALL, OBJECT, f"[{CALL}, get_time()]", "Search('a')", f"print({CALL})"])
def test_a_call_is_found_wherever_it_is_in_the_text(call: str) -> None:
    for text in (call, f"{call} it is", f"It is {call}", f"It (as I said, {call}) is.", f"[1] {{x}} f(1) {call}"):
        assert places(text) == [call]
    assert places(f"{call} and {call}") == [call, call]


def test_the_calls_of_one_expression_are_found_together() -> None:
    (first, second) = find_calls(f"Now [{CALL}, get_time()] and get_time().", TOOLS)
    assert [call.name for call in first.calls] == ["search", "get_time"]
    assert [call.name for call in second.calls] == ["get_time"]
    assert [call.text for call in first.calls] == [CALL, "get_time()"]


def test_a_call_without_a_text_of_its_own_has_that_of_its_expression() -> None:
    ((call,),) = [place.calls for place in find_calls(f"Now {OBJECT} then.", TOOLS)]
    assert call.text == OBJECT
    named = 'search\n{"query": "a"}'
    ((call,),) = [place.calls for place in find_calls(f"Now:\n{named} then.", TOOLS)]
    assert (call.text, call.dialect) == (named, "name_then_json")


@pytest.mark.parametrize(
    "text",
    [
        "find(query='a')",
        "x.y$search(query='a')",
        "research(query='a')",
        "search (query='a')",
        "search(query='a'",
        "{'name': 'find', 'arguments': {}}",
        "search it: {'query': 'a'}",
        "",
    ],
)
def test_nothing_else_is_a_call(text: str) -> None:
    assert places(text) == places(f"Well, {text} it is.") == []


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("search\n", ""),
        ("search: ", ""),
        ("**search**\n", ""),
        ("> `search`:\n", ""),
        ("  search\n```json\n", "\n```"),
        ("- search ", ""),
    ],
)
def test_a_name_on_the_line_before_an_object_belongs_to_the_call(before: str, behind: str) -> None:
    for start in ("", "Let me see.\n"):
        (place,) = find_calls(f'{start}{before}{{"query": "a"}}{behind} and so on', TOOLS)
        assert [(call.name, call.arguments) for call in place.calls] == [("search", {"query": "a"})]
        assert place.start == len(start) + before.index("search")


def test_a_name_far_before_an_object_does_not_belong_to_it() -> None:
    object = '{"query": "a"}'
    assert places(f"search\n{' ' * 393}{object}") == [f"search\n{' ' * 393}{object}"]
    assert places(f"search\n{' ' * 394}{object}") == []
    assert places("I search\n" + object) == places("find\n" + object) == []
    assert places(f"get_time\n[{object}]") == []


@pytest.mark.parametrize("fence", ["```", "~~~", "`````"])
@pytest.mark.parametrize("info", ["", "python", "c++ ", "tool-code"])
def test_a_fence_around_nothing_but_the_call_belongs_to_it(fence: str, info: str) -> None:
    assert rest(f"{fence}{info}\n{CALL}\n{fence}") == ""
    assert rest(f"So:\n\n{fence}{info}\n  {CALL}\n\n  {fence}\nthen") == "So:\n\nthen"
    assert rest(f"So:\n1. {fence}{info}\n  {CALL}\n  {fence}\nthen") == "So:\n1. then"


def test_a_fence_far_before_a_call_does_not_belong_to_it() -> None:
    assert rest(f"```\n{' ' * 396}{CALL}\n```") == ""
    text = f"```\n{' ' * 397}{{}}\n```"
    assert rest(text.format(CALL)) == text.format("")


@pytest.mark.parametrize(
    "text",
    [
        "```\n# first\n{}\n```",
        "```\n{}\nx = 1\n```",
        "```\n{}",
        "{}\n```",
        "`{}`",
        "So ```\n{}\n``` then",
        "```\n{}\n```x",
        "``` two words\n{}\n```",
    ],
)
def test_any_other_fence_is_text(text: str) -> None:
    assert rest(text.format(CALL)) == text.format("")


def doubts(text: str) -> list[str]:
    return [place.doubt for place in find_calls(text, TOOLS)]


def test_a_refusal_anywhere_is_against_all_calls_of_a_text() -> None:
    far = "Well. " * 200
    assert doubts(f"Sorry, no. {far} {CALL} {far} {CALL}") == ["Sorry", "Sorry"]
    assert doubts(f"{CALL} {far} {CALL} {far} Unfortunately not.") == ["Unfortunately", "Unfortunately"]
    assert [place.is_meant for place in find_calls(f"Sorry: {CALL}", TOOLS)] == [False]


def test_an_explanation_is_against_the_calls_next_to_it() -> None:
    far = "Well. " * 200
    assert doubts(f"For instance {CALL}. {far} I run {CALL}") == ["For instance", ""]
    assert doubts(f"I run {CALL} {far}. {CALL} is the usage.") == ["", "usage"]
    assert [place.is_meant for place in find_calls(f"I run {CALL}", TOOLS)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "I would not call {}.",
        "I could not decide on {}.",
        "{} is only there for illustration.",
        "Do not call {}.",
        "None of these tools fits, not even {}.",
        "Should I call {}?",
        "I have already called {}.",
    ],
)
def test_a_call_that_the_text_does_not_make_is_not_meant(text: str) -> None:
    (place,) = find_calls(text.format(CALL), TOOLS)
    assert not place.is_meant


def test_a_call_behind_much_that_is_no_call_is_found() -> None:
    assert places("[1, 2, 3, 4, 5] " * 1000 + CALL) == [CALL]


def test_the_search_gives_up_before_nested_brackets_make_it_quadratic() -> None:
    for levels, expected in ((5, [CALL]), (60, [])):
        nested = "[" * levels + "1" + "]" * levels
        assert places(f"{nested} " * 100 + CALL) == expected


def test_a_text_is_searched_only_as_far_as_its_calls_are_taken() -> None:
    calls: Any = find_calls(f"{CALL} {CALL}", TOOLS)
    assert next(calls).start == 0
    assert next(calls).start == len(CALL) + 1
    assert next(calls, None) is None

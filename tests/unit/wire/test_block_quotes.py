"""A block quote of Markdown shows calls and makes none, as a code fence does."""

from __future__ import annotations

import pytest
from tests.property.laws import check_chunking

from toolwire import ParsedResponse, ToolCall, formats, get_format, parse, render_calls

RUN = {"name": "run", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}
CALL = '<tool_call>{"name": "run", "arguments": {"query": "a"}}</tool_call>'
SECOND = '<tool_call>{"name": "run", "arguments": {"query": "b"}}</tool_call>'
CODER = "<tool_call>\n<function=run>\n<parameter=query>\na\n</parameter>\n</function>\n</tool_call>"


def read(text: str, format: str = "auto") -> ParsedResponse:
    return check_chunking(text, format=format, tools=[RUN]).response


def quoted(text: str) -> str:
    return "".join(f"> {line}" for line in text.splitlines(keepends=True))


@pytest.mark.parametrize("format", ["auto", "hermes", "qwen3_coder", "tool_tags"])
@pytest.mark.parametrize(
    "before",
    ["", "Like so:\n", "Like so:\n\n  ", "\t", "> So:\n", "So.\n>\n", "- so\n   ", "- ", "So:\n 1. ", f"{SECOND}\n"],
)
def test_a_call_in_a_quoted_line_is_content(before: str, format: str) -> None:
    shown = f"{before}> {CALL}\n"
    made = len(read(before, format).tool_calls)
    response = read(shown, format)
    assert len(response.tool_calls) == made
    assert f"> {CALL}\n" in response.content
    assert [problem.kind for problem in response.problems] == ["call_in_prose"] * (format == "auto")
    assert len(read(shown + SECOND).tool_calls) == len(read(before).tool_calls) + 1


@pytest.mark.parametrize("format", [name for name in formats() if name not in ("auto", "plain")])
def test_a_quoted_call_of_each_format_is_content(format: str) -> None:
    call = render_calls([ToolCall("run", {"query": "a"})], format=format, tools=[RUN])
    if get_format(format).fences:
        for named in (format, "auto"):
            assert parse(f"So:\n{quoted(call)}\n", format=named, tools=[RUN]).tool_calls == ()


def test_the_lines_of_a_call_may_be_quoted_one_by_one() -> None:
    for text in (quoted(CODER), f"So:\n\n> {quoted(CODER)}\nDone."):
        response = read(text)
        assert (response.tool_calls, response.content) == ((), text)
        assert [problem.kind for problem in response.problems] == ["call_in_prose"]


@pytest.mark.parametrize(
    "before",
    [
        "a > ",
        "a>",
        "1 <\n2 > ",
        "> So:\n",
        "-> ",
        f"{SECOND}>",
        f"{SECOND} > ",
        ">\n",
        "a\n" + " " * 13 + "> ",
        "a - > ",
        "1 > ",
        "=>\n",
    ],
)
def test_other_signs_hide_nothing(before: str) -> None:
    made = len(read(before).tool_calls)
    assert len(read(f"{before}{CALL}").tool_calls) == made + 1


def test_a_quote_is_no_whole_message_of_calls() -> None:
    assert [problem.kind for problem in read("> run(query='a')").problems] == ["call_in_prose"]
    assert read("> run(query='a')").tool_calls == ()


def test_white_space_may_arrive_in_any_pieces_before_the_sign() -> None:
    for indent in ("", " ", "  \t ", " " * 12):
        assert read(f"a\n\n{indent}> {CALL}\n").tool_calls == ()
        assert read(f"{indent}> {CALL}\n").tool_calls == ()
        assert len(read(f"a{indent or ' '}> {CALL}\n").tool_calls) == 1


def test_an_event_is_not_split_at_a_sign_that_begins_no_line() -> None:
    events = check_chunking("a -> b > c\n d => e", format="auto", tools=[RUN]).events
    assert len(events) == 2  # the content, and the end


@pytest.mark.parametrize("between", ["", " ", "\n", "\n  "])
def test_a_quote_right_behind_the_reasoning_is_one_in_every_chunking(between: str) -> None:
    response = read(f"<think>Hm.</think>{between}> {CALL}\n{SECOND}", "hermes")
    assert [call.arguments["query"] for call in response.tool_calls] == ["b"]
    assert f"> {CALL}" in response.content

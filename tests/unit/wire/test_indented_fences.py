"""A code fence that is indented, as one in an item of a list, shows calls and makes none."""

from __future__ import annotations

import pytest
from tests.property.laws import check_chunking

from toolwire import ParsedResponse, ToolCall, formats, get_format, parse, render_calls

RUN = {"name": "run", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}
CALL = '<tool_call>{"name": "run", "arguments": {"query": "a"}}</tool_call>'


def read(text: str, format: str = "auto") -> ParsedResponse:
    return check_chunking(text, format=format, tools=[RUN]).response


@pytest.mark.parametrize("format", [name for name in formats() if name not in ("auto", "plain")])
def test_a_call_of_each_format_in_an_indented_fence_is_content(format: str) -> None:
    call = render_calls([ToolCall("run", {"query": "a"})], format=format, tools=[RUN])
    shown = f"1. So:\n   ```xml\n   {call}\n   ```\nThat is all."
    assert parse(shown, format="auto", tools=[RUN]).tool_calls == ()
    if get_format(format).fences:
        assert parse(shown, format=format, tools=[RUN]).tool_calls == ()


@pytest.mark.parametrize("format", ["auto", "hermes"])
@pytest.mark.parametrize("run", ["```", "~~~~"])
@pytest.mark.parametrize("indent", [" ", "  ", "   ", "\t", " " * 12])
def test_an_indented_fence_ends_at_an_indented_run(indent: str, run: str, format: str) -> None:
    fence = f"So:\n{indent}{run}xml\n{indent}{CALL}\n{indent}{run}\n"
    assert read(fence, format).tool_calls == ()
    response = read(fence + CALL, format)
    assert (len(response.tool_calls), response.content) == (1, fence)


@pytest.mark.parametrize("more", ["", " ", "   "])
def test_the_closing_run_may_be_indented_a_little_further(more: str) -> None:
    assert len(read(f"So:\n  ```\n{CALL}\n  {more}```\n{CALL}").tool_calls) == 1


@pytest.mark.parametrize("line", ["      ```", "\t\t```", "  ``", "x ```", "  ~~~", "  ``` x"])
def test_a_line_of_the_code_does_not_end_the_fence(line: str) -> None:
    """A program in a fence may write fences itself, which are indented as its other lines are."""
    response = read(f"So:\n  ```\n  {CALL}\n{line}\n{CALL}\n  ```\n")
    assert response.tool_calls == ()
    assert read(f"So:\n```\n{line}\n{CALL}\n```\nDone.").tool_calls == ()


@pytest.mark.parametrize("before", ["a ", "a  ", " " * 13, "- x"])
def test_a_run_inside_a_line_opens_no_fence(before: str) -> None:
    assert len(read(f"So:\n{before}``` {CALL}", "hermes").tool_calls) == 1

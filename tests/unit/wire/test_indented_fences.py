"""A code fence in an item of a list, indented or behind the item's marker, shows calls and makes none."""

from __future__ import annotations

import pytest
from tests.property.laws import check_chunking

from toolwire import ParsedResponse, ToolCall, formats, get_format, parse, render_calls

RUN = {"name": "run", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}
CALL = '<tool_call>{"name": "run", "arguments": {"query": "a"}}</tool_call>'
MARKERS = ("- ", "* ", "+ ", "1. ", "12) ", "  -\t", "- 1. ", "-    ")
"""Markers of items of lists, with the blanks around them."""


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


def fences(marker: str, run: str, call: str) -> tuple[str, str]:
    """Return a call in a fence behind the marker of an item, and in one on a line of its own."""
    indent = " " * len(marker.expandtabs(4))
    lines = f"{run}xml\n{call}\n{run}\n".splitlines(keepends=True)
    return marker + indent.join(lines), indent.join(["", *lines])


@pytest.mark.parametrize("format", [name for name in formats() if name not in ("auto", "plain")])
@pytest.mark.parametrize("run", ["```", "~~~"])
def test_a_fence_behind_the_marker_of_an_item_shows_calls_of_each_format(run: str, format: str) -> None:
    """Its closing run once opened a fence, which hid the call behind it."""
    call, real = (render_calls([ToolCall("run", {"query": it})], format=format, tools=[RUN]) for it in ("a", "b"))
    shown, alone = (f"So:\n{fence}So I go on.\n{real}" for fence in fences("1. ", run, call))
    for named in (format, "auto") if get_format(format).fences else ("auto",):
        response = parse(shown, format=named, tools=[RUN])
        expected = parse(alone, format=named, tools=[RUN])
        assert response.tool_calls == expected.tool_calls
        assert [call.arguments for call in response.tool_calls] in ([], [{"query": "b"}])
        assert [problem.kind for problem in response.problems] == [problem.kind for problem in expected.problems]


@pytest.mark.parametrize("format", ["auto", "hermes"])
@pytest.mark.parametrize("run", ["```", "~~~~"])
@pytest.mark.parametrize("marker", MARKERS)
def test_a_fence_may_be_behind_the_marker_of_an_item(marker: str, run: str, format: str) -> None:
    start = "So:\n"
    fence = f"{start}{fences(marker, run, CALL)[0]}"
    texts = [fence, f"{CALL}\n{fence}", f"<think>Hm.</think>{fence}"]
    if format == "hermes":  # to `auto`, a message that is nothing but a call in an item is a call
        texts += [fence.removeprefix(start), f"<think>Hm.</think>{fence.removeprefix(start)}"]
    for text in texts:
        calls_before = text.startswith(CALL)
        assert len(read(text, format).tool_calls) == calls_before
        response = read(text + CALL, format)
        assert len(response.tool_calls) == calls_before + 1
        assert fence.removeprefix(start) in response.content
        assert "hidden_by_fence" not in [problem.kind for problem in response.problems]


@pytest.mark.parametrize("line", ["```", "   ```"])
def test_the_lines_of_such_a_fence_need_no_indentation(line: str) -> None:
    """Models write them as if no list were around them."""
    response = read(f"So:\n1. ```xml\n{CALL}\n{line}\n{CALL}")
    assert (len(response.tool_calls), response.content) == (1, f"So:\n1. ```xml\n{CALL}\n{line}\n")


@pytest.mark.parametrize(
    "before", ["a - ", "-", "1 ", "a1. ", "1234567890. ", ". ", "-- ", "- a ", "**1.** ", f"{CALL}- "]
)
def test_other_text_before_a_run_opens_no_fence(before: str) -> None:
    calls_before = before.startswith(CALL)
    assert (
        len(read(f"So:\n{before}``` {CALL}".removeprefix("So:\n" * calls_before), "hermes").tool_calls)
        == calls_before + 1
    )


@pytest.mark.parametrize("marker", ["", "  ", "- ", "1. "])
def test_an_indented_fence_that_might_have_been_the_format_s_own_hides_calls_too(marker: str) -> None:
    """In `gemma4` a fence may be around a call; one that is around something else is a fence as any other."""
    call = render_calls([ToolCall("run", {"query": "b"})], format="gemma4", tools=[RUN])
    for language in ("tool_code", "python", ""):
        fence = f"So:\n{marker}```{language}\n{marker}x = {CALL}{call}\n{' ' * len(marker)}```\n"
        for format in ("gemma4", "auto"):
            assert read(fence, format).tool_calls == ()
            assert [call.arguments for call in read(fence + call, format).tool_calls] == [{"query": "b"}]


@pytest.mark.parametrize("format", ["auto", "hermes"])
@pytest.mark.parametrize("marker", ["- ", "1. ", "- 1. "])
def test_a_fence_does_not_end_where_its_item_does(marker: str, format: str) -> None:
    """Markdown ends it there, but models write what they show at the margin: those calls would run."""
    text = f"So:\n{marker}```xml\n{' ' * len(marker)}<example>\n{CALL}\n2. Next.\n\nThen:\n{CALL}"
    response = read(text, format)
    assert (response.tool_calls, response.content) == ((), text)
    assert [problem.kind for problem in response.problems] == ["hidden_by_fence"]

"""A message in one format: what markers around content become where a block with the same marker fails."""

from __future__ import annotations

from typing import Any

import pytest
from tests.property.laws import check_chunking, read

from toolwire import collect

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]


@pytest.mark.parametrize(
    ("format", "marker"),
    [
        ("functionary_v3_2", ">>>"),
        ("harmony", "<|start|>"),
        ("harmony", "<|start|>assistant"),
        ("glimmer", "<|start|>assistant"),
        ("beam", "<|start|>assistant"),
        ("inkling", "<|message_model|>"),
    ],
)
def test_a_marker_around_content_is_dropped_also_if_a_call_can_begin_with_it(format: str, marker: str) -> None:
    for before in ("", "Well, "):
        response = check_chunking(f"{before}{marker}hello", format=format, tools=TOOLS).response
        assert (response.content, response.tool_calls, response.problems) == (f"{before}hello", (), ())


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("functionary_v3_2", '>>>f\n{"a": 1 1}'),
        ("functionary_v2", '<|from|>assistant\n<|recipient|>f\n<|content|>{"a": 1 1}'),
        ("harmony", '<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"a": 1 1}'),
        ("inkling", '<|message_model|>f<|content_invoke_tool_json|>{"name": "f", "args": {"a": 1 1}}'),
    ],
)
def test_a_broken_call_stays_whole_in_the_content(format: str, text: str) -> None:
    for before in ("", "Well, "):
        response = check_chunking(before + text, format=format, tools=TOOLS).response
        assert (response.content, response.tool_calls) == (before + text, ())
        assert [(problem.kind, problem.position) for problem in response.problems] == [("malformed", len(before))]
        assert [call.name for call in response.incomplete] == ["f"]


@pytest.mark.parametrize(
    ("format", "fence", "call"),
    [
        ("smolagents_code", "```py\nx = 1", "<code>\nf(a=1)\n</code>"),
        ("smolagents_code", "```python\nprint('f')", "<code>\nf(a=1)\n</code>"),
        ("gemma4", "```tool_code\nx = 1", "<|tool_call>call:f{a:1}<tool_call|>"),
        ("gemma4", "```tool_code\nf(x)", "<|tool_call>call:f{a:1}<tool_call|>"),
        ("gemma_tool_code", "```tool_code\nx = 1", "```tool_code\nf(a=1)\n```"),
    ],
)
@pytest.mark.parametrize("before", ["", "See:\n"])
def test_a_fence_that_shows_something_else_than_a_call_hides_calls(
    format: str, fence: str, call: str, before: str
) -> None:
    options: dict[str, Any] = {"format": format, "tools": TOOLS, "fallback": "none"}
    if not call.startswith("```"):
        shown = check_chunking(f"{before}{fence}\n{call}\n```\n", **options).response
        assert (shown.tool_calls, shown.content) == ((), f"{before}{fence}\n{call}\n```\n")
        in_line = check_chunking(f"See: {fence}\n{call}", **options).response
        assert [made.arguments for made in in_line.tool_calls] == [{"a": 1}]
    behind = check_chunking(f"{before}{fence}\n```\nNow:\n{call}", **options).response
    assert [made.arguments for made in behind.tool_calls] == [{"a": 1}]
    assert behind.content == f"{before}{fence}\n```\nNow:\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [('<tool_call>{"name": "f", "argu', "inside the call to 'f'"), ('<tool_call>{"na', "before its name")],
)
def test_the_problem_of_a_cut_call_names_the_call_if_its_name_was_read(text: str, named: str) -> None:
    (problem,) = check_chunking(text, format="hermes", tools=TOOLS).response.problems
    assert problem.kind == "truncated"
    assert named in problem.message


def test_a_backslash_that_waits_for_the_next_piece_counts_as_scanned_twice() -> None:
    begin = '<tool_call>\n{"name": "f", "arguments": {"a": "x'
    end = '"}}\n</tool_call>'
    whole = read([begin, "abc", "\\nabc", end], format="hermes", tools=TOOLS)
    halved = read([begin, "abc\\", "nabc", end], format="hermes", tools=TOOLS)
    assert collect(whole.events) == collect(halved.events)
    assert halved.scanned == whole.scanned + 1

"""Detection of a format: what a block that turns out to be none leaves behind, and text that waits."""

from __future__ import annotations

import re

import pytest
from tests.property.laws import check_chunking

import toolwire
from toolwire import StreamParser
from toolwire.messages import ParsedResponse

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
CODE = "```tool_code\nf(a=1)\n```"


def read(text: str) -> ParsedResponse:
    """Return the reading of a text whose format is not named; it is the same in pieces of any size."""
    return check_chunking(text, format="auto", tools=TOOLS, fallback="none").response


@pytest.mark.parametrize("before", ["", "See:\n", "See:\n\n"])
@pytest.mark.parametrize(
    ("fence", "is_problem"),
    [('```json\n{"x": 1}\n```', False), ("```tool_code\n1 + 2\n```", True), ("```py\nx = 1\n```", False)],
)
@pytest.mark.parametrize("call", [CALL, CODE])
def test_a_call_behind_a_fence_that_shows_something_else_is_read(
    before: str, fence: str, is_problem: bool, call: str
) -> None:
    response = read(f"{before}{fence}\nNow:\n{call}")
    assert [made.arguments for made in response.tool_calls] == [{"a": 1}]
    assert response.content == f"{before}{fence}\nNow:\n"
    assert [problem.kind for problem in response.problems] == ["malformed"] * is_problem


@pytest.mark.parametrize("fence", ['```json\n{"x": 1}', "```json\n[]", "```tool_code\n1 + 2", "```python\nx = 1"])
@pytest.mark.parametrize("before", ["", "See:\n"])
def test_a_call_inside_a_fence_that_shows_something_else_is_content(before: str, fence: str) -> None:
    text = f"{before}{fence}\n{CALL}\n```\n"
    assert (read(text).tool_calls, read(text).content) == ((), text)
    assert read(text + CALL).tool_calls
    unclosed = read(f"{before}{fence}\n{CALL}")
    assert unclosed.tool_calls == ()
    assert unclosed.problems[-1].kind == "hidden_by_fence"


@pytest.mark.parametrize("text", [f"{{'x': 'see {CALL}'}}", f'{{"x": [1, "{CALL}"]}}', f'{{"name": "g", "x": "{CALL}'])
def test_a_string_of_an_object_that_is_no_call_hides_calls(text: str) -> None:
    response = read(text)
    assert (response.tool_calls, response.content) == ((), text)


def test_backticks_inside_a_line_hide_nothing_behind_them() -> None:
    text = 'See ```json\n{"x": 1}\n'
    assert [call.arguments for call in read(text + CALL).tool_calls] == [{"a": 1}]


@pytest.mark.parametrize("text", ["```\nnothing", "```\n<tool_call>", '```\n{"name": "f"}'])
def test_an_unclosed_fence_without_a_call_is_no_problem(text: str) -> None:
    response = read(text)
    assert (response.content, response.problems) == (text, ())


@pytest.mark.parametrize("text", ["see [tool_calls] x", "<FUNCTION=f> is", "a [Tool_Calls][] b "])
def test_a_spelling_that_no_format_allows_is_content(text: str) -> None:
    response = read(text + CALL)
    assert (len(response.tool_calls), response.content, response.problems) == (1, text, ())


@pytest.mark.parametrize("call", [CALL, CODE, '<tool_call><name>f</name><arguments>{"a": 1}</arguments></tool_call>'])
def test_content_before_an_opener_is_read_once_wherever_the_text_is_split(call: str) -> None:
    text = f"Hello.\n{call}"
    splits = [[text[:at], text[at:]] for at in range(1, len(text))]
    response = check_chunking(text, splits, format="auto", tools=TOOLS, fallback="none").response
    assert ([made.arguments for made in response.tool_calls], response.content) == ([{"a": 1}], "Hello.\n")


@pytest.mark.parametrize(("opener", "reads"), [("<TOOL_CALL>", True), ("<Tool_Call>", True), ("[tool_calls]", False)])
def test_only_formats_that_ignore_case_are_tried_for_another_case(opener: str, reads: bool) -> None:
    text = f"{opener}<name>f</name></tool_call>"
    response = read(text)
    assert (bool(response.tool_calls), response.content) == (reads, "" if reads else text)


def test_text_that_begins_like_a_marker_waits_no_longer_than_it_may_be_one() -> None:
    parser = StreamParser(tools=TOOLS, fallback="none")
    emitted = [
        "".join(event.text for event in parser.feed(piece) if isinstance(event, toolwire.ContentDelta))
        for piece in ("a <tool", "_", "box", " is", " here <tool_", "call", "> b")
    ]
    # Any name may go on to that of a tool's result, such as `<tool_box_result>`.
    assert emitted == ["a ", "", "", "<tool_box is", " here ", "", ""]


@pytest.mark.parametrize("opener", ["<think>", "<|channel|>analysis<|message|>"])
def test_words_that_some_formats_drop_stay_behind_reasoning_that_others_have_too(opener: str) -> None:
    closer = "</think>" if opener == "<think>" else "<|end|>"
    response = read(f"{opener}x{closer}Write <response> and <answer>.")
    assert (response.reasoning, response.content) == ("x", "Write <response> and <answer>.")


@pytest.mark.parametrize("opener", ["[TOOL_CALLS]", "Action: f", "```json"])
def test_openers_in_reasoning_are_part_of_it(opener: str) -> None:
    response = read(f"<think>I write {opener} here.</think>{CALL}")
    assert (response.reasoning, len(response.tool_calls)) == (f"I write {opener} here.", 1)


def test_an_unclosed_fence_that_hides_a_call_is_a_problem_without_tools_too() -> None:
    text = '```\n<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    assert [problem.kind for problem in toolwire.parse(text).problems] == ["hidden_by_fence"]


@pytest.mark.parametrize("opener", ["<|START_RESPONSE|>", "<|channel|>final<|message|>"])
def test_only_a_call_with_markers_is_one_in_the_answer(opener: str) -> None:
    assert len(read(f"{opener}{CALL}").tool_calls) == 1
    assert read(f"{opener}<f><a>1</a></f>").tool_calls == ()


@pytest.mark.parametrize("format", ["forge_xml", "autobyteus_xml"])
def test_tags_count_in_any_case_where_a_format_reads_them_so(format: str) -> None:
    text = toolwire.render_calls([toolwire.ToolCall("f", {"a": 1})], format=format, tools=TOOLS)
    upper = re.sub(r"</?\w+", lambda tag: tag[0].upper() if tag[0] not in ("<a", "</a") else tag[0], text)
    assert upper != text
    (call,) = read(f"So:\n{upper}").tool_calls
    assert (call.format, call.arguments) == (format, {"a": 1})


@pytest.mark.parametrize(
    "answer",
    ["<|START_RESPONSE|>", "<|START_TEXT|>", "<|channel|>final<|message|>", "<|open|>response<|sep|>"],
)
@pytest.mark.parametrize("call", ["[f(a=1)]", '{"name": "f", "arguments": {"a": 1}}'])
def test_a_call_without_markers_is_part_of_an_answer_that_has_begun(call: str, answer: str) -> None:
    response = read(f"{answer}{call}")
    assert (response.tool_calls, response.content) == ((), call)


@pytest.mark.parametrize(("tag", "is_call"), [("think", True), ("thinking", False)])
def test_a_call_ends_reasoning_only_between_the_markers_of_its_own_format(tag: str, is_call: bool) -> None:
    call = '<｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter></｜DSML｜invoke>'
    response = read(f"<{tag}>maybe {call}</{tag}>No.")
    assert bool(response.tool_calls) is is_call
    assert response.reasoning == ("maybe " if is_call else f"maybe {call}")

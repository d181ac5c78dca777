"""Tags around the results of tools, in whatever spelling, and tools that are named as such tags are."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from toolwire import ParsedResponse, StreamParser, ToolCall, collect, formats, get_format, parse, render_calls
from toolwire.wire.result_tags import RESULT_TAG, closing_tags, result_name

RUN = {
    "name": "run",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
OBSERVATION, TOOL_OUTPUT = ({**RUN, "name": name} for name in ("observation", "tool_output"))
CALL = '<tool_call>{"name": "run", "arguments": {"query": "a"}}</tool_call>'
FORMATS = [name for name in formats() if name not in ("auto", "plain")]


def read(text: str, format: str = "auto", tools: Sequence[object] = (RUN,), **options: object) -> ParsedResponse:
    """Return the reading of a text, which is the same in every chunking."""
    whole = parse(text, format=format, tools=tools, **options)  # type: ignore[arg-type]
    for size in (1, 2, 7):
        parser = StreamParser(format=format, tools=tools, **options)  # type: ignore[arg-type]
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        events = [event for piece in pieces for event in parser.feed(piece)]
        in_pieces = collect([*events, *parser.finish()], raw=text)
        assert in_pieces.tool_calls == whole.tool_calls, size
        assert in_pieces.problems == whole.problems, size
        assert in_pieces.content == whole.content, size
    return whole


NAMES = [
    *("tool_result", "TOOL_RESULT", "Tool_Result", "toolResult", "tool-result", "tOOl_rEsUlts", "tool_result_1"),
    *("function_response", "FunctionCallOutput", "tool_use_result", "call_output", "mcp:tool_result", "tool_output3"),
    *("web_search_tool_result", "tool_execution_output", "observation", "Observations", "OBSERVATION"),
]
OTHER_NAMES = ["result", "response", "output", "toolbox_output", "observation_deck", "my_observation", "recall_output"]


@pytest.mark.parametrize("name", NAMES)
def test_these_are_names_of_results(name: str) -> None:
    assert result_name(f"a <{name}>", 2) == result_name(f"<{name}\t") == name
    assert result_name(f"</{name}>") == result_name(f"<{name}") == result_name(f"<{name}/>") == ""
    assert re.fullmatch(RESULT_TAG, f"<{name} id='1'>", re.IGNORECASE)


@pytest.mark.parametrize("name", [*OTHER_NAMES, "tool_result_end", "tool", "function_call"])
def test_these_are_not(name: str) -> None:
    assert result_name(f"<{name}>") == ""


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_elements_of_other_names_hide_nothing(name: str) -> None:
    assert len(read(f"<{name}>{CALL}</{name}>", "hermes").tool_calls) == 1


@pytest.mark.parametrize("format", ["auto", "hermes", "qwen3_coder"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("behind", ["", "\n", "\t", " id='1'", '\n  id="1"\n  tool="run"\n', ' about="a > b"'])
def test_a_call_between_such_tags_is_content_in_any_spelling(name: str, behind: str, format: str) -> None:
    text = f"<{name}{behind}>\n{CALL}\n</{name}>"
    assert (read(text, format).tool_calls, read(text, format).content) == ((), text)
    assert len(read(text + CALL, format).tool_calls) == 1


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("tag", ["tool_result", "Function_Response\n", "OBSERVATION id='1'"])
def test_a_call_of_each_format_between_such_tags_is_content(format: str, tag: str) -> None:
    call = render_calls([ToolCall("run", {"query": "a"})], format=format, tools=[RUN])
    if not get_format(format).markers and "<" not in call:
        call = f"\n{call}"
    text = f"So:\n<{tag}>\n{call}\n</{tag.split()[0]}>\n"
    for named in (format, "auto"):
        assert read(text, named).tool_calls == (), named


@pytest.mark.parametrize("format", ["auto", "hermes"])
@pytest.mark.parametrize(
    "tag", ["<tool_result/>", "<tool_result id='1'/>", '<TOOL_RESULT\nid="1" />', "<observation />"]
)
def test_an_empty_element_hides_nothing(tag: str, format: str) -> None:
    assert [call.arguments for call in read(f"{tag}\n{CALL}", format).tool_calls] == [{"query": "a"}]


@pytest.mark.parametrize("format", ["auto", "hermes"])
@pytest.mark.parametrize("tag", [f"<tool_result {'x' * 500}", "<tool_result <b>"])
def test_a_tag_that_is_too_long_or_contains_one_opens_a_result(tag: str, format: str) -> None:
    assert read(f"{tag}>{CALL}</tool_result>", format).tool_calls == ()


@pytest.mark.parametrize("format", ["auto", "hermes"])
@pytest.mark.parametrize(
    ("text", "hides"),
    [
        ("The tag <tool_result> begins it. ", False),
        ("The tag <tool_result id='1'> begins it. ", False),
        ("`<Tool_Result>` begins it. ", False),
        ("It is:\n<tool_result id='1'> this. ", True),
        ("It is: <tool_result id='1'>\n", True),
        ("It is: <tool_result>{", True),
        ("It is: <tool_result>[", True),
    ],
)
def test_prose_may_mention_the_tag_with_attributes_or_without(text: str, hides: bool, format: str) -> None:
    assert len(read(text + CALL, format).tool_calls) == (0 if hides else 1)
    assert [problem.kind for problem in read(text + CALL, format).problems] == ["hidden_by_fence"] * hides


@pytest.mark.parametrize(
    "closing", ["</TOOL_RESULTS>", "</tool_result\n>", "</Tool_result >", "</toolResult></tool_result>"]
)
@pytest.mark.parametrize("format", ["auto", "hermes"])
def test_the_closing_tag_may_have_another_spelling(closing: str, format: str) -> None:
    text = f"<tool_result>{CALL}{closing}\n{CALL}"
    assert [call.arguments for call in read(text, format).tool_calls] == [{"query": "a"}]


def test_the_closing_tag_may_be_in_the_singular() -> None:
    assert len(read(f"<tool_results>{CALL}</Tool_Result>{CALL}").tool_calls) == 1


TOKENS = [
    *(("<|tool_response_start|>", "<|tool_response_end|>"), ("<|tool_response:begin|>", "<|tool_response:end|>")),
    *(("<|begin_tool_result|>", "<|end_tool_result|>"), ("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>")),
    *(("<start_function_response>", "<end_function_response>"), ("<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>")),
    *(
        ("<|tool_response>", "<tool_response|>"),
        ("<|tool_result|>", "<|/tool_result|>"),
        ("<|tool_results|>", "</tool_result>"),
    ),
    *(("<|observation|>", "<|assistant|>"), ("[TOOL_RESULTS]", "[/TOOL_RESULTS]")),
    ("[TOOL_RESULT]", "[/TOOL_RESULT]"),
]


@pytest.mark.parametrize("format", FORMATS)
def test_tokens_around_results_of_other_formats_hide_calls_too(format: str) -> None:
    calls = [render_calls([ToolCall("run", {"query": query})], format=format, tools=[RUN]) for query in "ab"]
    for opener, closer in TOKENS:
        hidden = f"So:\n{opener}The page:\n{calls[0]}"
        read_whole = parse(f"{hidden}\n{closer}\n{calls[1]}", format=format, tools=[RUN])
        assert [call.arguments["query"] for call in read_whole.tool_calls] in ([], ["b"]), opener
        assert f"{opener}The page:" in read_whole.content
        assert parse(hidden, format=format, tools=[RUN]).tool_calls == (), opener


@pytest.mark.parametrize("format", ["auto", "hermes"])
@pytest.mark.parametrize(("opener", "closer"), TOKENS)
def test_a_token_hides_calls_up_to_the_one_that_closes_it(opener: str, closer: str, format: str) -> None:
    for before in ("", "So:\n", f"{CALL}\n"):
        read_before = len(read(before, format).tool_calls)
        text = f"{before}{opener}a{CALL}"
        assert len(read(f"{text}{closer}\n{CALL}", format).tool_calls) == read_before + 1
        unclosed = read(text, format)
        assert [len(unclosed.tool_calls), *(problem.kind for problem in unclosed.problems)] == [
            read_before,
            "hidden_by_fence",
        ]
        for other in ("</b>", "<|c|>", "[/d]"):
            assert len(read(f"{text}{other}\n{CALL}", format).tool_calls) == read_before


@pytest.mark.parametrize("format", ["auto", "hermes"])
@pytest.mark.parametrize(("opener", "closer"), TOKENS)
def test_prose_may_mention_a_token(opener: str, closer: str, format: str) -> None:
    for text in (f"The token {opener} begins it.\n", f"`{opener}` begins it, {closer} ends it.\n", f"It is {closer}\n"):
        assert len(read(text + CALL, format).tool_calls) == 1
    assert read(CALL + opener, format).problems == ()


@pytest.mark.parametrize(
    ("opener", "closer"),
    [
        *(
            ("<|tool_result|>", "<TOOL_RESULTS|>"),
            ("<|tool_results|>", "<tool_result|>"),
            ("<|tool_result|>", "</tool_results|>"),
        ),
        *(
            ("<|kickstart_tool_result|>", "</kickstart_tool_result>"),
            ("<|tool_result_starter|>", "<tool_result_starter|>"),
        ),
    ],
)
def test_a_token_may_be_closed_in_another_spelling(opener: str, closer: str) -> None:
    assert len(read(f"{opener}a{CALL}{closer}{CALL}", "hermes").tool_calls) == 1


@pytest.mark.parametrize("closer", ["<|assistant|>", "<tool_result|>", "<|/tool_result|>"])
def test_an_element_is_not_closed_as_a_token_is(closer: str) -> None:
    assert read(f"<tool_result>{CALL}{closer}{CALL}", "hermes").tool_calls == ()


def test_the_last_of_several_tokens_at_the_end_of_a_turn_decides() -> None:
    assert read(f"So.<|im_end|><|tool_response>\n{CALL}", "hermes").tool_calls == ()
    assert len(read(f"So.<|tool_response><|im_end|>\n{CALL}", "hermes").tool_calls) == 1
    assert len(read(f"So.<|im_end|>\n{CALL}", "hermes").tool_calls) == 1


def test_the_tags_of_another_element_close_nothing() -> None:
    assert closing_tags("tool_results").match("</tool_output>", 0, True) == ("", False)
    assert read(f"<tool_result></tool_output>{CALL}</tool_result>").tool_calls == ()


# -- known tools that are named like results --------------------------------------------------------------------------

SHAPES = ["<{}><query>a</query></{}>", '<{}>{{"query": "a"}}</{}>', "<{}>\nquery: a\n</{}>", '<{} query="a"/>']


@pytest.mark.parametrize("named", [OBSERVATION, TOOL_OUTPUT, {**RUN, "name": "Tool_Result"}])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("before", ["", "I call it:\n", "<think>b</think>\n"])
def test_a_call_in_the_tag_of_a_tool_that_is_named_like_a_result_is_read(
    named: object, shape: str, before: str
) -> None:
    name = str(named["name"])  # type: ignore[index]
    text = before + shape.format(name, name)
    for format in ("auto", "tool_tags"):
        calls = read(text, format, [named, RUN]).tool_calls
        assert [(call.name, call.arguments) for call in calls] == [(name, {"query": "a"})], format
    assert len(read(text + "\n" + text, "tool_tags", [named]).tool_calls) == 2


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "tool_tags"])
def test_other_formats_read_such_a_message_or_report_it(format: str) -> None:
    text = "<observation><query>a</query></observation>"
    response = read(text, format, [OBSERVATION], fallback="whole_message")
    assert [call.name for call in response.tool_calls] == ["observation"]
    response = read(f"Now:\n{text}", format, [OBSERVATION], fallback="whole_message")
    assert response.tool_calls or response.problems


@pytest.mark.parametrize("format", ["auto", "tool_tags", "hermes"])
@pytest.mark.parametrize("inside", ["It is: ", "\n", "<b>", '{"a": 1}', "<query>a", "<query>a</query> and "])
def test_a_result_stays_one_if_a_tool_is_named_like_it(format: str, inside: str) -> None:
    for call in (CALL, "<run><query>a</query></run>"):
        text = f"<observation>{inside}{call}</observation>"
        response = read(text, format, [OBSERVATION, RUN])
        assert "run" not in {call.name for call in response.tool_calls}, text


@pytest.mark.parametrize("tools", [[RUN], [RUN, OBSERVATION]])
def test_a_result_in_an_answer_hides_calls(tools: list[object]) -> None:
    text = f"<observation>{CALL}</observation>"
    response = read(f"<|START_RESPONSE|>{text}<|END_RESPONSE|>", tools=tools)
    assert (response.tool_calls, response.content) == ((), text)


def test_results_of_other_names_hide_calls_of_such_a_tool() -> None:
    text = "<tool_result>\n<observation><query>a</query></observation>\n</tool_result>"
    for format in ("auto", "tool_tags"):
        assert read(text, format, [OBSERVATION]).tool_calls == ()


# -- pieces of such a tag ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["<tool_result", "<tool_result id='1'", "<|tool_response", "<observation"])
def test_a_tag_in_which_the_text_ends_stays_in_the_content(tag: str) -> None:
    for size in range(1, len(tag) + 1):
        for before in ("", "So:\n", "So: "):
            text = before + tag[:size]
            assert read(text, "hermes").content == text


@pytest.mark.parametrize("text", ["a <b c", "a <b>c", "a < b", "a <tool_result c <b>d", "<tool_box>c"])
def test_a_piece_waits_only_while_its_tag_may_become_that_of_a_result(text: str) -> None:
    parser = StreamParser(format="hermes", tools=[RUN])
    events = [event for piece in ("So it is.\n", text) for event in parser.feed(piece)]
    assert collect(events, raw="").content == f"So it is.\n{text}"

"""Text that only shows calls: results that a model makes up, and values of calls whose markup is damaged."""

from __future__ import annotations

import json

import pytest

from toolwire import ParsedResponse, StreamParser, ToolCall, collect, formats, get_format, parse, render_calls, tool
from toolwire.wire.quotations import CodeFence


@tool
def run_command(command: str) -> str:
    """Run a command."""
    return command


@tool
def write_file(path: str, content: str) -> str:
    """Write a file."""
    return path + content


_TOOLS = [run_command, write_file]
_CALL = '<tool_call>{"name": "run_command", "arguments": {"command": "make"}}</tool_call>'
_XML = "<tool><tool_name>run_command</tool_name><arguments><command>make</command></arguments></tool>"
_CWM = "<tool: run_command>make</tool>"
_PYTHON = "<tool_call>run_command(command='make')</tool_call>"


def _read(text: str, format: str = "auto", size: int = 1) -> ParsedResponse:
    """Return the reading of a text, which is the same in pieces."""
    whole = parse(text, format=format, tools=_TOOLS)
    parser = StreamParser(format=format, tools=_TOOLS)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    events = [event for piece in pieces for event in parser.feed(piece)]
    in_pieces = collect([*events, *parser.finish()], raw=text)
    assert in_pieces.tool_calls == whole.tool_calls
    assert in_pieces.problems == whole.problems
    assert in_pieces.content == whole.content
    return whole


def _has_result_tags(format: str) -> bool:
    """Return whether the results of a format are between tags that say so."""
    opens, closes = get_format(format).result
    return opens[:1] in ("<", "[") and "tool" in opens.lower() and closes.lstrip()[:1] in ("<", "[")


_FORMATS = [name for name in formats() if name not in ("auto", "plain")]


@pytest.mark.parametrize("format", [name for name in _FORMATS if _has_result_tags(name) and name != "cwm"])
def test_a_call_in_a_result_that_the_model_makes_up_is_not_run(format: str) -> None:
    opens, closes = get_format(format).result
    call = render_calls([ToolCall("run_command", {"command": "make"})], format=format, tools=_TOOLS)
    text = opens.replace("{", "").replace("}", "") + call + closes
    for named in (format, "auto"):
        read = _read(text, named)
        assert read.tool_calls == (), named


@pytest.mark.parametrize("before", ["", "I see.", "It returns: ", "Done.\n"])
def test_a_result_is_content_wherever_it_begins(before: str) -> None:
    text = f"{before}<tool_response>\n{_CALL}\n</tool_response>"
    for format in ("hermes", "auto"):
        read = _read(text, format)
        assert (read.tool_calls, read.content) == ((), text)
        assert [call.arguments for call in _read(text + _CALL, format).tool_calls] == [{"command": "make"}]


@pytest.mark.parametrize(
    "tag",
    [
        *("tool_output", "tool_results", "function_response", "function_call_output", "tool_call_response"),
        *("observation", 'tool_result id="1"', 'function_response name="write_file"'),
    ],
)
@pytest.mark.parametrize("format", ["auto", "hermes", "mistral_args", "pythonic"])
def test_elements_around_results_of_tools_quote_in_every_format(tag: str, format: str) -> None:
    call = "[run_command(command='make')]" if format == "pythonic" else _CALL
    text = f"<{tag}>\n{call}\n</{tag.partition(' ')[0]}>"
    if format == "mistral_args":
        text = text.replace(_CALL, '[TOOL_CALLS]run_command[ARGS]{"command": "make"}')
    read = _read(text, format)
    assert (read.tool_calls, read.problems, read.content) == ((), (), text)


@pytest.mark.parametrize("tag", ["output", "response", "result", "toolbox_output", "observations_of"])
def test_elements_that_are_not_the_results_of_tools_hide_nothing(tag: str) -> None:
    assert len(_read(f"<{tag}>{_CALL}</{tag}>", "hermes").tool_calls) == 1


@pytest.mark.parametrize(
    "text",
    ["The tag <tool_response> is for results. ", "`<tool_response>` and ", "An <observation> is ", "('<arg_key>') "],
)
def test_a_tag_that_is_mentioned_hides_nothing(text: str) -> None:
    read = _read(text + _CALL)
    assert (len(read.tool_calls), read.content) == (1, text)


def test_a_call_in_an_open_result_is_a_problem() -> None:
    read = _read(f"So: <tool_response>\n{_CALL}", "hermes")
    assert read.tool_calls == ()
    assert [(problem.kind, problem.position) for problem in read.problems] == [("hidden_by_fence", 4)]


@pytest.mark.parametrize(
    "opener", ["<tool bash>\n", "tool: write_file>\n", "<tool>write_file</tool><tool_input", "Use "]
)
@pytest.mark.parametrize("quoted", [_XML, _CWM, _PYTHON, "<function=run_command>{}</function>"])
def test_a_string_of_json_behind_a_damaged_opener_quotes(opener: str, quoted: str) -> None:
    for quote in ('"', "'") if "'" not in quoted else ('"',):
        text = opener + f"{{'path': 5, 'content': 'see {quoted} here', 'x': [1]}}".replace("'", quote)
        if "'" in quoted:
            text = opener + json.dumps({"path": 5, "content": f"see {quoted} here", "x": [1]})
        for format in ("auto", "cwm", "langchain_xml", "qwen3_coder", "forge_xml"):
            read = _read(text + "</tool>", format)
            assert (read.tool_calls, read.content) == ((), text + "</tool>"), format


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "b"} QUOTED',
        '{"a": "b", QUOTED}',
        '{"a": "b"\nQUOTED',
        '{"a": "5" screen"} QUOTED',
        '{"a": "\\"", "b": [true, 1.5, "x"]} QUOTED',
        '{"a": b\nThen: "no, QUOTED',
        "{x: 'it's QUOTED",
        "(see it's 'here, QUOTED",
        '{ QUOTED "',
        '{"a": don\'t QUOTED',
        'f(="QUOTED")',
        'f(see "QUOTED")',
        'f(a, b="QUOTED")',
    ],
)
def test_outside_the_strings_of_json_a_call_is_read(text: str) -> None:
    for quoted in (_CALL, _CWM):
        read = _read(f"So {text}".replace("QUOTED", quoted))
        assert [call.arguments for call in read.tool_calls] == [{"command": "make"}], text


@pytest.mark.parametrize("inner", ['{"b": 1}', '[{"b": [1]}, {}]', '{"b": "c"}', "[[]]"])
def test_a_string_behind_closed_brackets_quotes_up_to_the_last_one(inner: str) -> None:
    text = f'So {{"a": {inner}, "content": "see {_CWM}"}}'
    assert (_read(text).tool_calls, _read(text).content) == ((), text)
    assert len(_read(f'So {{"a": {inner}}}, "see {_CWM}"').tool_calls) == 1


@pytest.mark.parametrize("text", ['{"a":\n1, "b": "see QUOTED"}', '{"a": "say \\", QUOTED"}', '{"a":\n["QUOTED"]}'])
def test_in_the_strings_of_json_no_call_is_read(text: str) -> None:
    for size in (1, 3):
        assert _read(f"So {text}".replace("QUOTED", _CWM), size=size).tool_calls == ()


@pytest.mark.parametrize(
    "text", ['{"a": "see QUOTED', '{"a": "say "hi" QUOTED', '{"a": "b\\" QUOTED', '{"a": ["x", "QUOTED']
)
def test_a_call_in_an_open_string_is_a_problem(text: str) -> None:
    for size in (1, 3):
        read = _read(f"So {text}".replace("QUOTED", _CWM), size=size)
        assert read.tool_calls == ()
        assert [problem.kind for problem in read.problems] == ["hidden_by_fence"]


@pytest.mark.parametrize("call", ["write_file", "an_unknown_tool"])
def test_a_string_of_python_amid_prose_quotes(call: str) -> None:
    text = f'I call {call}(path="a", content="see {_CWM}") now.'
    assert _read(text).tool_calls == ()
    assert len(_read(f'I call {call}(path="a") and {_CWM} now.').tool_calls) == 1
    assert len(_read(f'I call {call}(path) = "a, {_CWM} now.').tool_calls) == 1


@pytest.mark.parametrize(
    ("format", "header"),
    [
        ("qwen3_coder", "<functio=write_file>\n<parameter=content>\n"),
        ("glm4", "<tool_cal>write_file\n<arg_key>content</arg_key>\n<arg_value>"),
        ("glm4", "<tool_call>write_file\n<arg_key>content</ar_key>\n<arg_value>"),
        ("gemma4", 'call:write_file{content:<|"|>'),
        ("functiongemma", "<start_function_cal>call:write_file{content:<escape>"),
        ("minimax_m3", "<tool_call>\n]<]minimax[>[<content>"),
        ("anthropic_xml", '<function_calls>\n<invke name="write_file">\n<parameter name="content">'),
    ],
)
def test_a_value_behind_a_damaged_header_quotes(format: str, header: str) -> None:
    for quoted in (_XML, _CWM):
        read = _read(f"{header}see {quoted} here")
        assert read.tool_calls == (), format
        assert read.problems


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("```\na\n```\nrest", "rest"),
        ("````\n```\n````\nrest", "rest"),
        ("```py\n````\nrest", "rest"),
        ("```\n``` a\n\n    ```\n```  \nrest", "rest"),
        ("~~~\n```\n~~~\nrest", "rest"),
        ("~~~a~`b\n~~~\nrest", "rest"),
        ("```a```rest", "rest"),
        ("```a`rest", "rest"),
        ("```\na``` ```\nrest", None),
        ("```\n``\nrest", None),
        ("```\n``", None),
        ("```", None),
    ],
)
def test_a_code_fence_ends_at_a_line_of_as_many_characters(text: str, rest: str | None, size: int) -> None:
    fence = CodeFence(text[0])
    unread = ""
    for at in range(0, len(text), size):
        unread += text[at : at + size]
        unread = unread if fence.over else unread[fence.read(unread, 0, False) :]
    assert (fence.over, unread) == (rest is not None, rest or "")
    assert fence.unclosed() == ("" if fence.over else text)


@pytest.mark.parametrize("text", ["```\na\n```", "```\n```  ", "~~~\n~~~~", "```a`"])
def test_a_closing_fence_may_end_the_text(text: str) -> None:
    fence = CodeFence(text[0])
    assert (fence.read(text, 0, False), fence.unclosed()) == (len(text), "")


@pytest.mark.parametrize("inner", ["(1)", "(1, (2))", "[(1), {}]", "((1), b=2)"])
def test_a_string_behind_closed_parentheses_quotes(inner: str) -> None:
    assert _read(f'I call write_file(path={inner}, content="see {_CWM}") now.').tool_calls == ()


def test_a_marker_that_begins_with_a_bracket_ends_an_object() -> None:
    call = '[TOOL_CALLS][{"name": "run_command", "arguments": {"command": "make"}}]'
    for text in (f'So {{"a": {call}', f'So {{"a": 1, {call}', f"So f(a=1, {call}"):
        assert [made.arguments for made in _read(text).tool_calls] == [{"command": "make"}], text


@pytest.mark.parametrize("closing", ["</tool_result>", "</tool_results>", "</Tool_Result>", "</TOOL_RESULT>"])
def test_a_result_that_is_closed_in_another_spelling_hides_nothing_behind_it(closing: str) -> None:
    for format in ("hermes", "auto"):
        read = _read(f"<tool_result>{_CALL}{closing}\n{_CALL}", format)
        assert [call.arguments for call in read.tool_calls] == [{"command": "make"}], format

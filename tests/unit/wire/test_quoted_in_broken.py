"""Broken calls whose values quote other calls: these are text, whatever is wrong with the call around them."""

from __future__ import annotations

import json
import re

import pytest

from toolwire import ParsedResponse, StreamParser, ToolCall, collect, formats, get_format, parse, render_calls, tool


@tool
def run_command(command: str) -> str:
    """Run a command."""
    return command


@tool
def write_file(path: str, content: str, mode: str = "") -> str:
    """Write a file."""
    return path + content + mode


_TOOLS = [run_command, write_file]
_QUOTED = ToolCall("run_command", {"command": "make clean"})
_OUTER = ToolCall("write_file", {"path": "notes", "content": "see QUOTED here", "mode": "a"})
_FIRST_PARAMETER = re.compile(
    r"""["']?path["']?\s*[:=]\s*["']notes["'],\s*|<[^<>]*path[^<>]*>\s*notes\s*<[^<>]*>\s*""", re.VERBOSE
)
_XML = "<tool><tool_name>run_command</tool_name><arguments><command>make</command></arguments></tool>"


def _read(text: str, format: str) -> ParsedResponse:
    """Return the reading of a text, which is the same in pieces of one character."""
    whole = parse(text, format=format, tools=_TOOLS)
    parser = StreamParser(format=format, tools=_TOOLS)
    events = [event for character in text for event in parser.feed(character)]
    in_pieces = collect([*events, *parser.finish()], raw=text)
    assert in_pieces.tool_calls == whole.tool_calls
    assert in_pieces.problems == whole.problems
    assert in_pieces.content == whole.content
    return whole


def _texts(name: str) -> list[str]:
    """Return the outer call in a format, with its first parameter twice, once around each quoted call."""
    outer = render_calls([_OUTER], format=name, tools=_TOOLS)
    parameter = _FIRST_PARAMETER.search(outer)
    if parameter is None:
        return []
    outer = outer[: parameter.start()] + parameter[0] + outer[parameter.start() :]
    quoted = [render_calls([_QUOTED], format=name, tools=_TOOLS), _XML]
    if '"see QUOTED' in outer:
        quoted = [json.dumps(text)[1:-1] for text in quoted]
    return [outer.replace("QUOTED", text) for text in quoted]


_NAMED = [name for name in formats() if name not in ("auto", "plain") and _texts(name)]
# A list of Python calls counts under detection as a whole, and after an error in it nothing tells it from a link.
_DETECTED = [name for name in _NAMED if get_format(name).detected and name != "pythonic"]


@pytest.mark.parametrize(
    ("name", "format"), [*((name, name) for name in _NAMED), *((name, "auto") for name in _DETECTED)]
)
def test_a_call_with_a_parameter_twice_runs_nothing_that_it_quotes(name: str, format: str) -> None:
    for text in _texts(name):
        read = _read(text, format)
        assert [call.name for call in read.tool_calls if call.name == "run_command"] == []
        assert "make" in read.content + "".join(problem.raw for problem in read.problems)


@pytest.mark.parametrize(
    "members",
    [
        '"arguments": {"path": "a", "path": "b", "content": "QUOTED"}, "name": "write_file"',
        '"name": "write_file", "name": "x", "arguments": {"content": "QUOTED"}',
        '"name": "write_file" "arguments": {"content": "QUOTED"}',
        '"name": "write_file", "arguments": {"path": NaN, "content": "QUOTED"}',
        '"name": "write_file", "arguments": {"path": 007, "content": "it\'s \\" QUOTED"}',
        """'name': 'write_file', 'arguments': {'path': 'a', 'path': 'b', 'content': 'QUOTED'}""",
    ],
)
@pytest.mark.parametrize("format", ["hermes", "auto"])
def test_strings_of_broken_json_stay_strings(members: str, format: str) -> None:
    in_single_quotes = '<tool_call>{"name": "run_command", "arguments": {"command": "make"}}</tool_call>'
    quoted = in_single_quotes if "'name'" in members else _XML
    text = "<tool_call>{" + members.replace("QUOTED", quoted) + "}</tool_call> Done."
    read = _read(text, format)
    assert read.tool_calls == ()
    assert read.problems[0].kind == "malformed"
    assert read.content == text


@pytest.mark.parametrize("broken", ['"path": "a", "path": "b"', '"path": NaN', '"path": "a" "content": "b"'])
@pytest.mark.parametrize("end", ["}}</tool_call>", "}", ""])
def test_a_call_after_a_broken_one_is_read(broken: str, end: str) -> None:
    text = '<tool_call>{"name": "write_file", "arguments": {' + broken + end
    text += '\n<tool_call>{"name": "run_command", "arguments": {"command": "make"}}</tool_call>'
    read = _read(text, "hermes")
    assert [call.arguments for call in read.tool_calls] == [{"command": "make"}]
    assert [problem.kind for problem in read.problems][:1] == ["malformed"]


def _with_damaged_headers(name: str) -> list[str]:
    """Return a call whose value quotes another one in a CDATA section, each time without some characters before it."""
    quoted = render_calls([_QUOTED], format=name, tools=_TOOLS)
    outer = ToolCall("write_file", {"path": "notes", "content": f"see:\n{quoted}\nhere & there <<<<<"})
    text = render_calls([outer], format=name, tools=_TOOLS)
    header = text.index("<![CDATA[") if "<![CDATA[" in text else 0
    return [text[:at] + text[at + size :] for at in range(header) for size in (1, 4) if at + size <= header]


_WITH_CDATA = ["forge_xml", "autobyteus_xml", "minicpm5", "tool_tags"]


@pytest.mark.parametrize("format", ["named", "auto"])
@pytest.mark.parametrize("name", _WITH_CDATA)
def test_a_damaged_header_runs_nothing_that_a_cdata_section_quotes(name: str, format: str) -> None:
    texts = _with_damaged_headers(name)
    assert texts
    for text in texts:
        read = parse(text, format=name if format == "named" else "auto", tools=_TOOLS)
        assert [call.name for call in read.tool_calls if call.name == "run_command"] == [], text


def test_a_cdata_section_outside_a_call_is_text_in_any_chunking() -> None:
    text = f"Write it so: <![CDATA[{_XML}]]> Now: {_XML}"
    read = _read(text, "forge_xml")
    assert [call.arguments for call in read.tool_calls] == [{"command": "make"}]
    assert read.content == f"Write it so: <![CDATA[{_XML}]]> Now: "


def test_a_call_in_an_open_cdata_section_is_a_problem() -> None:
    read = _read(f"<text><![CDATA[{_XML}]] >", "forge_xml")
    assert read.tool_calls == ()
    assert [problem.kind for problem in read.problems] == ["hidden_by_fence"]
    assert "CDATA" in read.problems[0].message


@pytest.mark.parametrize("text", ["a{'path': 'b", 'a {"path": [1', 'a```b", "content"{"path": "c'])
def test_a_call_that_only_the_end_breaks_is_content_to_its_end(text: str) -> None:
    tool = {"name": "write_file", "parameters": {"properties": {"path": {"type": "string"}, "content": {}}}}
    message = f"Action: write_file\nAction Input: {text}"
    for size in (1, 5, len(message)):
        parser = StreamParser(format="react", tools=[tool])
        pieces = (message[at : at + size] for at in range(0, len(message), size))
        read = collect([*(event for piece in pieces for event in parser.feed(piece)), *parser.finish()])
        assert (read.tool_calls, read.content) == ((), message)
        assert [problem.kind for problem in read.problems] == ["malformed"]

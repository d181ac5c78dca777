"""Names of known tools that are written in another way, in formats with markers of their own."""

from __future__ import annotations

import json

import pytest
from tests import streams

from toolwire import ToolCall, formats, get_format, render_calls

PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = [{"name": name, "parameters": PATH} for name in ("read_file", "get", "Get")]
WRITTEN = ["functions.read_file", "default_api.read_file", "fs__read_file", "Read-File", "READ_FILE"]
MARKED = [name for name in formats() if get_format(name).markers and get_format(name).blocks]


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("format", MARKED)
def test_a_name_stands_for_the_one_tool_that_it_can_mean(format: str, written: str) -> None:
    text = render_calls([ToolCall(written, {"path": "a"})], format=format)
    for size in (0, 1):
        (call,) = streams.parsed(text, size, format=format, tools=TOOLS).tool_calls
        assert (call.name, call.arguments) == ("read_file", {"path": "a"})
        assert call.raw in text
        # The prefix `functions.` belongs to some formats.
        assert "name_resolved" in call.repairs or written == "functions.read_file"


@pytest.mark.parametrize("written", ["GET", "files.gEt", "write_file", "read_files"])
def test_a_name_that_can_mean_two_tools_or_none_is_left_as_it_is(written: str) -> None:
    text = f"<tool_call>{json.dumps({'name': written, 'arguments': {}})}</tool_call>"
    (call,) = streams.parsed(text, format="hermes", tools=TOOLS).tool_calls
    assert (call.name, call.repairs) == (written, ())


def test_a_name_is_left_as_it_is_without_repairs() -> None:
    text = '<tool_call>{"name": "READ_FILE", "arguments": {"path": "a"}}</tool_call>'
    (call,) = streams.parsed(text, format="hermes", tools=TOOLS, repair="none").tool_calls
    assert call.name == "READ_FILE"


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder", "glm4", "auto"])
def test_a_name_in_a_foreign_shape_is_resolved_too(format: str) -> None:
    text = '<tool_call>functions.read_file(path="a")</tool_call>'
    assert streams.called(streams.parsed(text, format=format, tools=TOOLS)) == [("read_file", {"path": "a"})]


@pytest.mark.parametrize(
    "text",
    ['<function=get(path="a")></function>', '<function=get,{"path": "a"}</function>', "<function=path=a>\n</function>"],
)
@pytest.mark.parametrize("format", ["auto", "functionary_v3_1", "qwen3_coder"])
def test_a_name_with_arguments_in_it_is_malformed(text: str, format: str) -> None:
    for size in (0, 1):
        response = streams.parsed(text, size, format=format, tools=TOOLS)
        assert response.tool_calls == ()
        assert [problem.kind for problem in response.problems] == ["malformed"]


@pytest.mark.parametrize(
    "text",
    [
        '<function=get{"path": "a > b"}</function>',
        '<function=get {"path": "a > b"}></function>',
        '<function=get{"path": "a > b"}',
    ],
)
def test_the_sign_behind_a_name_in_a_tag_may_be_missing_or_behind_the_arguments(text: str) -> None:
    for format in ("auto", "functionary_v3_1"):
        for size in (0, 1):
            response = streams.parsed(text, size, format=format, tools=TOOLS)
            assert [(call.name, call.arguments) for call in response.tool_calls] == [("get", {"path": "a > b"})]
            assert (response.content, response.problems) == ("", ())


@pytest.mark.parametrize("text", ['<function=get{"path": "a', "<function=get{path}</function>", "<function={}>"])
def test_what_is_not_an_object_behind_such_a_name_is_not_a_call(text: str) -> None:
    assert streams.parsed(text, 1, format="auto", tools=TOOLS).tool_calls == ()

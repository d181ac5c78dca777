"""Tags in values that are not written right."""

from __future__ import annotations

import pytest

import toolwire
from toolwire.wire.damaged_tags import damaged_closer, damaged_header

CLOSE = "</parameter>"
TOOL = {
    "name": "f",
    "parameters": {"type": "object", "properties": {"s": {"type": "string"}, "i": {"type": "integer"}}},
}


@pytest.mark.parametrize(
    "tag",
    ["</parameter", "</ parameter>", "</parameter >", "</parameters>", "</PARAMETER>", "</paramter>", "<parameter>",
     "<\\parameter>", "<//parameter>", "<parame>", "</parameter=s>", "</s>", "</arg>", "<parameter",
     "\N{FULLWIDTH LESS-THAN SIGN}/parameter>"],
)  # fmt: skip
def test_a_closing_tag_that_is_not_written_right_is_found(tag: str) -> None:
    assert damaged_closer(f"The <b>city of light</b> is Paris{tag}\n", CLOSE) == tag


@pytest.mark.parametrize(
    "text",
    ["", "Paris", "<b>Paris</b>", "a < b", "a </parameter> b", "<parameters> and <functions> tokens", "1 < </", "x/>",
     "<param>", f"<{'-' * 40} parameter>"],
)  # fmt: skip
def test_other_values_end_where_they_end(text: str) -> None:
    assert damaged_closer(text, CLOSE) == ""


@pytest.mark.parametrize(
    "header", ["< parameter=i>", "<PARAMETER=i>", '<parameter name="i">', "<paramter=i>", "<<parameter=i>"]
)
def test_a_header_that_is_not_written_right_is_found(header: str) -> None:
    assert damaged_header(f"a</parameter>\n{header}\n3", CLOSE, ["<parameter="]) == header


@pytest.mark.parametrize(
    "text",
    ["", "a</parameter>", "a</parameter></parameter>", "a</parameter> b", "a</parameter><p>b", "< parameter=i>",
     "a</parameter>parameter=i", f"a</parameter>{'-' * 50} parameter=i"],
)  # fmt: skip
def test_other_text_behind_a_closing_marker_is_no_header(text: str) -> None:
    assert damaged_header(text, CLOSE, ["<parameter=", "<"]) == ""


@pytest.mark.parametrize("format", [n for n in toolwire.formats() if toolwire.get_format(n).blocks])
def test_no_format_makes_damaged_tags_parts_of_a_value(format: str) -> None:
    calls = [toolwire.ToolCall("f", {"s": "Paris", "i": 3}, "call00001")]
    text = toolwire.render_calls(calls, format=format, tools=[TOOL])
    head, value, tail = text.partition("Paris")
    if not tail.lstrip("\n").startswith(("<", "]<]")) or format in {"functiongemma", "gemma4", "forge_xml"}:
        return  # a token or a quote ends the value, or the tags of all elements have to match
    for damaged in ("</ ", "<\\", "<//"):
        for call in toolwire.parse(
            head + value + tail.replace("</", damaged, 1), format=format, tools=[TOOL]
        ).tool_calls:
            assert call.arguments == calls[0].arguments


def test_a_section_of_cdata_contains_no_damaged_tags() -> None:
    call = toolwire.ToolCall("f", {"s": 'a</param><param name="i">3</param>'}, "call00001")
    text = toolwire.render_calls([call], format="minicpm5", tools=[TOOL])
    assert [read.arguments for read in toolwire.parse(text, format="minicpm5", tools=[TOOL]).tool_calls] == [
        call.arguments
    ]

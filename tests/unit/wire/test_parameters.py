"""Arguments that are written one by one: in tags of their own, or as XML elements, streamed or read at their end."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.property.laws import check_chunking

import toolwire
from toolwire.messages import ParsedResponse
from toolwire.text.limits import MAX_DEPTH

TEXT = {"type": "string"}
PROPERTIES = {
    "a": {"type": "integer"},
    "b": TEXT,
    "list": {"type": "array", "items": {"type": "integer"}},
    "texts": {"type": "array", "items": TEXT},
    "object": {"type": "object"},
    "any": {},
}
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": PROPERTIES}}]
ARGUMENTS: dict[str, Any] = {
    "a": 1,
    "b": "x & <y>",
    "list": [1, 2],
    "object": {"p": {"q": "r"}},
    "texts": ["1", "</parameter>"],
    "any": "text",
}
FORMATS = [
    *("qwen3_coder", "forge_xml", "autobyteus_xml", "anthropic_xml", "deepseek_dsml", "glimmer", "glm4", "kimi_k3"),
    *("hunyuan_v3", "minimax_m2", "minimax_m3", "mimo", "seed_oss", "step3", "tool_tags"),
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("keys", [["b"], ["object"], ["texts", "b"], ["a", "list", "b", "any"], list(ARGUMENTS)])
def test_parameters_of_all_types_are_read_and_their_deltas_join(format: str, keys: list[str]) -> None:
    arguments = {key: ARGUMENTS[key] for key in keys}
    text = toolwire.render_calls([toolwire.ToolCall("f", arguments)], format=format, tools=TOOLS)
    response = check_chunking(text, format=format, tools=TOOLS, fallback="none").response
    assert [call.arguments for call in response.tool_calls] == [arguments]
    assert (response.content.strip(), response.problems) == ("", ())


@pytest.mark.parametrize("format", FORMATS)
def test_text_is_streamed_and_other_values_wait_for_their_end(format: str) -> None:
    for key, value, streams in (("b", "a long text", True), ("list", [11, 22, 33], False)):
        call = toolwire.ToolCall("f", {key: value})
        text = toolwire.render_calls([call], format=format, tools=TOOLS)
        parser = toolwire.StreamParser(format=format, tools=TOOLS)
        half = text.index("long" if streams else "22") + 5
        events = [event for character in text[:half] for event in parser.feed(character)]
        deltas = "".join(event.text for event in events if isinstance(event, toolwire.ArgumentsDelta))
        assert ("long" in deltas) is streams
        assert "22" not in deltas


def read(*parameters: str) -> ParsedResponse:
    """Return the reading of a call in Qwen3-Coder's format with these parameters."""
    text = f"<tool_call>\n<function=f>\n{''.join(parameters)}</function>\n</tool_call>"
    return check_chunking(text, format="qwen3_coder", tools=TOOLS, fallback="none").response


def parameter(key: str, value: str, close: str = "</parameter>") -> str:
    """Return one parameter as text."""
    return f"<parameter={key}>{value}{close}"


@pytest.mark.parametrize(
    ("parameters", "arguments", "repairs"),
    [
        ([("a", "x")], {"a": "x"}, ()),
        ([("b", "5")], {"b": "5"}, ()),
        ([("any", "5")], {"any": "5"}, ()),
        ([("texts", '["</parameter></function>"]')], {"texts": ["</parameter></function>"]}, ()),
        ([("object", '{"x": "</parameter></function>"}')], {"object": {"x": "</parameter></function>"}}, ()),
        ([("texts", "x"), ("texts", "y")], {"texts": ["x", "y"]}, ()),
        ([("texts", '["x"]'), ("texts", "y")], {"texts": ["x", "y"]}, ()),
        ([("texts", '["x"]'), ("a", "1")], {"texts": ["x"], "a": 1}, ()),
        ([("texts", "x"), ("a", "1"), ("texts", "y")], {"texts": ["x", "y"], "a": 1}, ()),
        ([("b", "see <parameter=b> x")], {"b": "see <parameter=b> x"}, ()),
        ([("a", "1"), ("b", "see <parameter=a> x")], {"a": 1, "b": "see <parameter=a> x"}, ()),
        ([("b", "x", "\n"), ("a", "1")], {"b": "x", "a": 1}, ("missing_close",)),
        ([("b", "x", "\n"), ("other", "y")], {"b": "x", "other": "y"}, ("missing_close",)),
        ([("texts", "x", "\n"), ("texts", "y")], {"texts": ["x", "y"]}, ("missing_close",)),
    ],
)
def test_the_schema_and_what_came_before_decide_where_a_value_ends(
    parameters: list[tuple[str, ...]], arguments: dict[str, Any], repairs: tuple[str, ...]
) -> None:
    response = read(*(parameter(*each) for each in parameters))
    assert [(call.arguments, call.repairs) for call in response.tool_calls] == [(arguments, repairs)]
    assert response.problems == ()


@pytest.mark.parametrize(
    ("key", "value"), [("b", '["'), ("texts", '["</parameter></function></tool_call>"]'), ("any", '["')]
)
def test_a_closing_marker_in_a_string_is_text_only_where_the_value_is_json(key: str, value: str) -> None:
    response = read(parameter(key, '["</parameter></function></tool_call>"]'))
    (call,) = response.tool_calls
    assert call.arguments == {key: value if value == '["' else ["</parameter></function></tool_call>"]}


@pytest.mark.parametrize(
    "parameters",
    [
        [("b", "x"), ("b", "y")],
        [("a", "1"), ("b", "x"), ("a", "2")],
        [("texts", '["x"]'), ("a", "1"), ("texts", "y")],
        [("b", "x", "\n"), ("b", "y")],
    ],
)
def test_a_parameter_that_is_given_twice_makes_no_call(parameters: list[tuple[str, ...]]) -> None:
    response = read(*(parameter(*each) for each in parameters))
    assert response.tool_calls == ()
    assert "is given twice" in response.problems[0].message
    first = {key: value for key, value, *_ in reversed(parameters)}
    (call,) = response.incomplete
    assert {key: str(value).strip("[']") for key, value in call.arguments.items()} == {
        key: value.strip('[]"') for key, value in first.items()
    }


@pytest.mark.parametrize(
    ("mark", "key", "text", "value", "repairs"),
    [
        ("true", "b", "5", "5", ()),
        ("true", "any", "[1]", "[1]", ()),
        ("true", "a", "5", 5, ("coerced",)),
        ("true", "a", "x", "x", ()),
        ("false", "a", "5", 5, ()),
        ("false", "any", '"5"', "5", ()),
        ("false", "b", "5", 5, ()),
        ("false", "b", "[1]", [1], ()),
        ("false", "a", '"5"', 5, ("coerced",)),
        ("false", "b", "no JSON", "no JSON", ()),
    ],
)
def test_a_mark_says_how_a_value_is_written_and_the_schema_refines_it(
    mark: str, key: str, text: str, value: Any, repairs: tuple[str, ...]
) -> None:
    opener = f'<｜DSML｜invoke name="f"><｜DSML｜parameter name="{key}" string="{mark}">'
    call = f"{opener}{text}</｜DSML｜parameter></｜DSML｜invoke>"
    (made,) = check_chunking(call, format="deepseek_dsml", tools=TOOLS).response.tool_calls
    assert (made.arguments, made.repairs) == ({key: value}, repairs)


@pytest.mark.parametrize(("attribute", "reads"), [("", True), (' x="1"', False), (' name="a"', False)])
def test_an_attribute_of_an_element_that_has_none_makes_no_call(attribute: str, reads: bool) -> None:
    """It may be the name of the parameter, whose element is then not named after it."""
    call = f"<invoke><tool_name>f</tool_name><parameters><b{attribute}>y</b></parameters></invoke>"
    text = f"<function_calls>{call}</function_calls>"
    response = check_chunking(text, format="anthropic_xml", tools=TOOLS).response
    assert [made.arguments for made in response.tool_calls] == ([{"b": "y"}] if reads else [])
    assert reads or "the element <b> has attributes" in response.problems[0].message


@pytest.mark.parametrize(
    ("cut", "arguments"),
    [
        ("<a>", {}),
        ("<a>1</a>", {"a": 1}),
        ("<a>1</a>\n<b>x", {"a": 1}),
        ("<texts>x</texts>", {"texts": ["x"]}),
        ("<texts><item>x</item></texts><a>2</a><b", {"texts": ["x"], "a": 2}),
    ],
)
def test_elements_of_a_call_that_is_cut_are_shown(cut: str, arguments: dict[str, Any]) -> None:
    text = f"<tool>\n<tool_name>f</tool_name>\n<arguments>\n{cut}"
    response = check_chunking(text, format="forge_xml", tools=TOOLS, fallback="none").response
    assert [call.arguments for call in response.incomplete] == [arguments]
    assert response.tool_calls == ()


@pytest.mark.parametrize("tag", ["b=x", 'b="x"', "b = x", "a=1"])
@pytest.mark.parametrize("format", ["auto", "qwen3_coder", "seed_oss"])
def test_a_value_in_the_tag_of_its_parameter_is_not_lost(tag: str, format: str) -> None:
    outer = "seed:tool_call" if format == "seed_oss" else "tool_call"
    text = f"<{outer}>\n<function=f>\n<parameter={tag}>\n</parameter>\n</function>\n</{outer}>"
    response = check_chunking(text, format=format, tools=TOOLS).response
    assert (response.tool_calls, response.content) == ((), text)
    assert [problem.kind for problem in response.problems] == ["malformed"]


def test_a_parameter_may_have_an_equals_sign_in_its_name() -> None:
    tools = [{"name": "f", "parameters": {"properties": {"b": TEXT, "b=x": TEXT}}}]
    text = "<function=f>\n<parameter=b=x>\n1\n</parameter>\n<parameter=c=d>\n2\n</parameter>\n</function>"
    calls = toolwire.parse(text, format="qwen3_coder", tools=tools).tool_calls
    assert [call.arguments for call in calls] == [{"b=x": "1", "c=d": "2"}]


@pytest.mark.parametrize("format", ["qwen3_coder", "beam"])
@pytest.mark.parametrize("value", ["x", "", "x\r", "\n", "\r\n", "\r\nx\r\n", "a\r\nb", "\r\r"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_the_newlines_around_a_value_may_have_carriage_returns(format: str, value: str, line_end: str) -> None:
    call = toolwire.ToolCall("f", {"s": "VALUE"}, "call_1")
    text = toolwire.render_calls([call], format=format, tools=TOOLS)
    text = text.replace("\n", line_end).replace("VALUE", value)
    response = check_chunking(text, format=format, tools=TOOLS).response
    assert [(call.arguments, call.repairs) for call in response.tool_calls] == [({"s": value}, ())]


@pytest.mark.parametrize("format", ["qwen3_coder", "glm4", "deepseek_dsml", "forge_xml", "autobyteus_xml", "tool_tags"])
@pytest.mark.parametrize(
    "written", ["[x, y]", '["x", ', " [\N{LEFT DOUBLE QUOTATION MARK}x\N{RIGHT DOUBLE QUOTATION MARK}]"]
)
def test_a_list_that_cannot_be_read_is_not_an_item_of_a_list(format: str, written: str) -> None:
    tools = [{"name": "f", "parameters": {"properties": {"l": {"type": "array", "items": TEXT}}}}]
    rendered = toolwire.render_calls([toolwire.ToolCall("f", {"l": ["x"]})], format=format, tools=tools)
    text = re.sub(r'\["x"\]|\s*\S*<item>x</item>\s*', lambda _: written, rendered)
    assert written in text
    response = check_chunking(text, format=format, tools=tools).response
    assert (response.tool_calls, response.content) == ((), text)
    assert ["begins as a list" in problem.message for problem in response.problems] == [True]


def test_a_list_in_yaml_that_cannot_be_read_is_not_an_item_of_a_list() -> None:
    tools = [{"name": "f", "parameters": {"properties": {"l": {"type": "array", "items": TEXT}}}}]
    response = check_chunking("<f>\nl: '[x'\n</f>", format="tool_tags", tools=tools).response
    assert response.tool_calls == ()
    assert ["begins as a list" in problem.message for problem in response.problems] == [True]


@pytest.mark.parametrize("format", ["deepseek_dsml", "kimi_k3", "k2_horizon"])
def test_a_mark_that_is_not_known_leaves_the_type_to_the_schema_and_is_reported(format: str) -> None:
    tools = [{"name": "f", "parameters": {"properties": {"s": TEXT}}}]
    text = toolwire.render_calls([toolwire.ToolCall("f", {"s": "7"}, "functions.f:0")], format=format, tools=tools)
    mark = "true" if format == "deepseek_dsml" else "string"
    for spelling in (mark, mark.upper()):
        response = toolwire.parse(text.replace(mark, spelling), format=format, tools=tools)
        assert ([call.arguments for call in response.tool_calls], response.problems) == ([{"s": "7"}], ())
    response = check_chunking(text.replace(mark, "wrong"), format=format, tools=tools).response
    assert [call.arguments for call in response.tool_calls] == [{"s": "7"}]
    assert [problem.kind for problem in response.problems] == ["unread_members"]


# -- values and tags that no call can have ----------------------------------------------------------------------------

_DEEP = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
_QWEN = "<tool_call><function=f><parameter=KEY>\nVALUE\n</parameter></function></tool_call>"
_DSML = (
    '<｜DSML｜invoke name="f"><｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter></｜DSML｜invoke>'
)


@pytest.mark.parametrize(
    ("format", "text", "key", "reads"),
    [
        *(("qwen3_coder", _QWEN, key, key in ("b", "any")) for key in ("a", "b", "object", "any", "list")),
        *(("deepseek_dsml", _DSML, key, True) for key in ("a", "b", "object", "any")),
    ],
)
def test_a_value_beyond_the_limits_is_read_only_as_text(format: str, text: str, key: str, reads: bool) -> None:
    text = text.replace("KEY", key).replace("VALUE", _DEEP)
    response = toolwire.parse(text, format=format, tools=TOOLS)
    assert [call.arguments for call in response.tool_calls] == ([{key: _DEEP}] if reads else [])
    assert reads or "levels of nesting" in response.problems[0].message


def test_a_closing_marker_in_a_string_of_json_is_text_unless_the_mark_says_that_all_is_text() -> None:
    rows = ("false", "any", '["X"]'), ("false", "b", '{"a": "X"}'), ("true", "object", '{"a": "X"}')
    for mark, key, value in rows:
        written = value.replace("X", "</｜DSML｜parameter></｜DSML｜invoke> y")
        text = _DSML.replace("KEY", key).replace("VALUE", written).replace("true", mark)
        response = check_chunking(text, format="deepseek_dsml", tools=TOOLS).response
        is_whole = [call.arguments for call in response.tool_calls] == [{key: json.loads(written)}]
        assert is_whole is (mark == "false"), text


_TOKEN = "]<]minimax[>["
_TAGS = "<b>a", "</b>", "<object>", "<p>", "<q>r", "</q>", "</p>", "</object>"
_IN_TOKENS = "".join(_TOKEN + tag for tag in _TAGS)


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ("</p>", "</c>"),
        ("</q>", "</p>"),
        ("</object>", "</b>"),
        ("q>", "1>"),
        ("<b>a", f"<b>a{_TOKEN}<q>c{_TOKEN}</q>"),
        (f"{_TOKEN}<q>r{_TOKEN}</q>", f"{_TOKEN}<q>" * MAX_DEPTH + "r" + f"{_TOKEN}</q>" * MAX_DEPTH),
    ],
)
def test_tags_behind_a_token_that_do_not_match_make_no_call(written: str, wrong: str) -> None:
    text = f'{_TOKEN}<tool_call>\n{_TOKEN}<invoke name="f">{_IN_TOKENS}{_TOKEN}</invoke>\n{_TOKEN}</tool_call>'
    (call,) = toolwire.parse(text, format="minimax_m3", tools=TOOLS).tool_calls
    assert call.arguments == {"b": "a", "object": {"p": {"q": "r"}}}
    response = toolwire.parse(text.replace(written, wrong), format="minimax_m3", tools=TOOLS)
    assert (response.tool_calls, [problem.kind for problem in response.problems]) == ((), ["malformed"])

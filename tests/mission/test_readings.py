"""Texts that other systems were seen to read wrongly, or that their documents decide about; each in pieces, too."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.rows import outcome, readings

import toolwire
from toolwire import ParsedResponse, ToolCall
from toolwire.wire.syntax import JsonCall, Lit, WireFormat

F = {"name": "f", "parameters": {"type": "object", "properties": {}}}
G = {"name": "g", "parameters": {"type": "object", "properties": {}}}


def read(format: Any, text: str, *tools: dict[str, Any]) -> ParsedResponse:
    """The text whole; in pieces of one and three characters it has to come to the same."""
    found = readings({"format": format, "text": text, "tools": list(tools) or [F, G]})
    assert len({repr(outcome(response)) for response in found.values()}) == 1
    return found["whole"]


def calls(response: ParsedResponse) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in response.tool_calls]


def tool(inside: str, name: str = "f") -> str:
    """A call of Autobyteus."""
    return f'<tool name="{name}"><arguments>{inside}</arguments></tool>'


def value(inside: str) -> Any:
    """What the one argument of such a call is read as."""
    ((_, arguments),) = calls(read("autobyteus_xml", tool(f'<arg name="a">{inside}</arg>')))
    return arguments["a"]


def forge(inside: str, name: str = "f") -> str:
    return f"<tool><tool_name>{name}</tool_name><arguments>{inside}</arguments></tool>"


def openai(*arguments: str) -> str:
    listed = (
        f'{{"function": {{"name": "{name}", "arguments": {one}}}}}' for name, one in zip("fg", arguments, strict=False)
    )
    return f'{{"tool_calls": [{", ".join(listed)}]}}'


# -- JSON without markers --------------------------------------------------------------------------------------------


@pytest.mark.mission("D16")
@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("openai_json", '{"tool_calls": [{"function": {"name": "f", "arguments": "{\\"a\\": 1}"}}]}'),
        ("gemini_json", '{"name": "f", "args": {"a": 1}}'),
        ("autobyteus_json", '{"tool": {"function": "f", "parameters": {"a": 1}}}'),
    ],
)
def test_the_json_shapes_of_three_providers(format: str, text: str) -> None:
    assert toolwire.render_calls([ToolCall("f", {"a": 1})], format=format) == text
    assert calls(read(format, text)) == [("f", {"a": 1})]


@pytest.mark.mission("D19")
def test_fenced_json_is_found_anywhere_in_order() -> None:
    text = 'a\n```json\n{"name": "g", "arguments": {"a": "}```"}}\n```\nb\n```\n{"name": "f", "arguments": {}}\n```\n'
    response = read("json_fence", text)
    assert calls(response) == [("g", {"a": "}```"}), ("f", {})]
    assert response.content.split() == ["a", "b"]
    assert not calls(read("json_fence", 'so: {"name": "f", "arguments": {}}'))


@pytest.mark.mission("D21")
@pytest.mark.parametrize("arguments", ['{"a": [1}}', '{"a": {"b": 1]}', "[1}"])
def test_brackets_of_one_kind_do_not_close_another(arguments: str) -> None:
    assert not read("openai_json", openai(arguments)).tool_calls


@pytest.mark.mission("D22")
@pytest.mark.parametrize(
    ("text", "names"),
    [
        (openai("{}", "{}"), "fg"),
        ('{"tools": [{"function": {"name": "f", "arguments": {}}}]}', "f"),
        ('{"tool": {"function": {"name": "f", "arguments": {}}}}', "f"),
        ('[{"function": {"name": "f", "arguments": {}}}, {"name": "g", "arguments": {}}]', "fg"),
        ('{"function": {"name": "f", "arguments": {}}}', "f"),
        ('{"name": "f", "arguments": {}}', "f"),
    ],
)
def test_every_nesting_of_openais_shape(text: str, names: str) -> None:
    response = read("openai_json", text)
    assert calls(response) == [(name, {}) for name in names]
    assert response.content == ""


@pytest.mark.mission("D23")
@pytest.mark.parametrize("arguments", ["{}", '"{}"', '""', "null"])
def test_empty_arguments_in_any_spelling(arguments: str) -> None:
    assert calls(read("openai_json", openai(arguments, '{"a": 1}'))) == [("f", {}), ("g", {"a": 1})]


@pytest.mark.mission("D24", "D25", "D26", "D30")
@pytest.mark.parametrize(
    "text",
    [
        openai('"no json"', "{}"),
        openai("123", "{}"),
        openai('"[1]"', "{}"),
        '{"tool_calls": [5, {"function": {"name": "g", "arguments": {}}}]}',
        '{"tool_calls": [{"function": {"arguments": {}}}]}',
        '{"tool_calls": [{"function": {"name": 5, "arguments": {}}}]}',
        '{"tool": {oops',
    ],
)
def test_what_is_no_call_stays_text_and_raises_nothing(text: str) -> None:
    response = read("openai_json", text)
    assert (response.tool_calls, response.content, response.problems) == ((), text, ())


@pytest.mark.mission("D27")
@pytest.mark.parametrize("format", ["openai_json", "gemini_json", "autobyteus_json", "bare_json", "auto"])
def test_other_json_is_an_answer(format: str) -> None:
    assert read(format, '{"status": "ok"}').content == '{"status": "ok"}'


@pytest.mark.mission("D28", "E14", "H14")
def test_geminis_shape_alone_and_in_a_list() -> None:
    assert calls(read("gemini_json", '{"name": "f", "args": {"a": 1}}')) == [("f", {"a": 1})]
    both = '[{"name": "f", "args": {}}, {"name": "g", "args": {"b": [1, {"c": 2}]}}]'
    assert calls(read("gemini_json", both)) == [("f", {}), ("g", {"b": [1, {"c": 2}]})]
    for text in ('{"name": "f", "args": "x"}', '{"name": "f"}'):
        assert read("gemini_json", text).content == text


@pytest.mark.mission("D29")
def test_autobyteus_own_json() -> None:
    for parameters, arguments in (('{"a": 1}', {"a": 1}), ("null", {}), ("{}", {})):
        text = f'{{"tool": {{"function": "f", "parameters": {parameters}}}}}'
        assert calls(read("autobyteus_json", text)) == [("f", arguments)]
    for text in ('{"tool": {"function": {"name": "f"}}}', '{"tool": "f"}', '{"tool": {"function": "f"}}'):
        assert read("autobyteus_json", text).content == text


# -- a tag with the name as its attribute ----------------------------------------------------------------------------


@pytest.mark.mission("D31")
def test_a_tool_needs_its_name() -> None:
    response = read("autobyteus_xml", tool("") + " and " + tool("", "g"))
    assert (calls(response), response.content) == ([("f", {}), ("g", {})], " and ")
    for text in ("<tool><arguments></arguments></tool>", tool("", "")):
        response = read("autobyteus_xml", text)
        assert (response.tool_calls, response.content) == ((), text)


@pytest.mark.mission("D32")
def test_only_four_tags_are_structure() -> None:
    assert value("<b>bold</b> <other x='1'/>") == "<b>bold</b> <other x='1'/>"
    assert calls(read("autobyteus_xml", '<tool name="f"><path>a</path><n>1</n></tool>')) == [
        ("f", {"path": "a", "n": "1"})
    ]


@pytest.mark.mission("D33", "D38", "E17", "H12")
@pytest.mark.parametrize("text", ["x < 5 && y", "<br>", "a<b: <note>", '{"a": [1]}', "1 <2> 3"])
def test_what_only_looks_like_markup_is_text(text: str) -> None:
    assert value(text) == text


@pytest.mark.mission("D34", "D41")
@pytest.mark.parametrize("text", ["x</arguments> y", "see <tool name='fake'></tool>", "</tool> is a tag"])
def test_the_calls_own_tags_inside_a_value_are_text(text: str) -> None:
    assert value(text) == text


@pytest.mark.mission("D35")
@pytest.mark.parametrize("inside", ["", "<arguments></arguments>", "<arguments/>", "\n<arguments />\n", " "])
def test_no_arguments_in_any_spelling(inside: str) -> None:
    for format in ("autobyteus_xml", "auto"):
        assert calls(read(format, f'<tool name="f">{inside}</tool>')) == [("f", {})]
    for format in ("forge_xml", "auto"):
        assert calls(read(format, f"<tool><tool_name>f</tool_name>{inside}</tool>")) == ([("f", {})])
    assert calls(read("autobyteus_xml", '<tool name="f"/>')) == [("f", {})]


@pytest.mark.mission("D36")
def test_lists_and_objects_in_one_another() -> None:
    inside = (
        '<arg name="l"><item>a</item><item>b</item></arg>'
        '<arg name="o"><arg name="x">1</arg><arg name="y"><item><arg name="z">2</arg></item></arg></arg>'
    )
    assert calls(read("autobyteus_xml", tool(inside))) == [("f", {"l": ["a", "b"], "o": {"x": "1", "y": [{"z": "2"}]}})]


@pytest.mark.mission("D37", "D39")
@pytest.mark.parametrize("text", ["5", "true", "null", "007", " x ", "\n a\n", ""])
def test_values_are_the_text_that_stands_there(text: str) -> None:
    assert value(text) == text


@pytest.mark.mission("D37")
def test_the_schema_says_what_is_a_number() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    text = tool('<arg name="a"> 5 </arg><arg name="b">5</arg>')
    assert calls(read("autobyteus_xml", text, {"name": "f", "parameters": schema})) == [("f", {"a": 5, "b": "5"})]


@pytest.mark.mission("D40")
def test_white_space_between_tags_is_nothing_and_mixed_text_is_not_lost() -> None:
    spaced = '\n  <arg name="a">\n <item>x</item>\n <item>y</item>\n</arg>\n'
    assert calls(read("autobyteus_xml", tool(spaced))) == [("f", {"a": ["x", "y"]})]
    assert value("text <item>x</item> more") == "text <item>x</item> more"


@pytest.mark.mission("D42", "D43", "D44", "H23")
@pytest.mark.parametrize(
    "broken",
    [
        '<tool name=""><arguments></arguments></tool>',
        '<tool name="f"><arguments>junk</arguments></tool>',
        '<tool name="f"><arguments>\n\nOh, wait.',
    ],
)
def test_a_broken_block_is_left_behind(broken: str) -> None:
    response = read("autobyteus_xml", f"{broken} {tool('', 'g')}")
    assert calls(response) == [("g", {})]
    assert response.content == f"{broken} "
    assert len(response.problems) == 1


@pytest.mark.mission("D43", "H23")
def test_a_call_may_bring_its_id_and_entities_are_decoded_once() -> None:
    response = read("autobyteus_xml", '<tool name="f" id="x1"><arg name="a">1 &lt; 2 &amp;amp; 3</arg></tool>')
    assert [(call.id, call.arguments) for call in response.tool_calls] == [("x1", {"a": "1 < 2 &amp; 3"})]


@pytest.mark.mission("D45", "E10", "E15", "H10", "H17")
def test_cdata_is_read_and_never_part_of_the_value() -> None:
    assert value("<![CDATA[a </tool> && <b>]]>") == "a </tool> && <b>"
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}
    text = tool('<arg name="path">p</arg><arg name="content"><![CDATA[x < y\n]]></arg>', "write_file")
    assert calls(read("autobyteus_xml", text, {"name": "write_file", "parameters": schema})) == [
        ("write_file", {"path": "p", "content": "x < y\n"})
    ]


@pytest.mark.mission("E15")
@pytest.mark.parametrize(
    "inside",
    [
        '<arguments><arg name="a">x &amp; <item</arg></arguments>',
        "<arguments><a>x & <item</a></arguments>",
        "<a>x & <item</a>",
    ],
)
def test_arguments_wrapped_or_not_by_attribute_or_by_tag(inside: str) -> None:
    assert calls(read("autobyteus_xml", f'<tool name="f">{inside}</tool>')) == [("f", {"a": "x & <item"})]


@pytest.mark.mission("E16", "H11")
def test_an_element_that_stands_twice_is_a_list() -> None:
    text = tool("<exclude>a</exclude><exclude>b</exclude>")
    assert calls(read("autobyteus_xml", text)) == [("f", {"exclude": ["a", "b"]})]


@pytest.mark.mission("E4", "E5", "E9", "E11", "H13")
@pytest.mark.parametrize(
    "text",
    [
        '<toolbox name="x"></toolbox>',
        '<write_file path="a">x<!-- c --></write_file>',
        "<run_bash>ls</run_bash>",
        "<tool>",
        "a <tool",
        "__START_CONTENT__\nx\n__END_CONTENT__",
    ],
)
def test_other_tags_are_text_to_the_letter(text: str) -> None:
    for format in ("autobyteus_xml", "auto"):
        response = read(format, text)
        assert (response.tool_calls, response.content) == ((), text)


@pytest.mark.mission("E3", "H16")
def test_case_is_ignored_where_the_format_says_so() -> None:
    for text, format in (
        ('<TOOL NAME="f"><A>x</A></Tool>', "autobyteus_xml"),
        ('<TOOLS>{"name": "f"}</Tools>', "utp_xml"),
    ):
        assert [call.name for call in read(format, text).tool_calls] == ["f"]
    assert not read("hermes", '<TOOL_CALL>{"name": "f"}</TOOL_CALL>').tool_calls


@pytest.mark.mission("E6", "H9")
@pytest.mark.parametrize(
    "cut", ['<tool name="rm"><arguments><arg name="p">/tmp/pa', "<tool><tool_name>rm</tool_name><arguments><p>/tmp/pa"]
)
def test_a_call_that_is_cut_is_shown_and_is_none(cut: str) -> None:
    response = read("auto", cut, {"name": "rm"})
    assert response.tool_calls == ()
    assert [(call.name, call.arguments) for call in response.incomplete] == [("rm", {})]
    assert [(problem.kind, problem.raw) for problem in response.problems] == [("truncated", cut)]


@pytest.mark.mission("E12", "H15")
def test_json_ends_where_it_ends_whatever_closes_the_header() -> None:
    header = WireFormat(name="header", blocks=((Lit("[[SEG_START"), JsonCall(name=("tool_name",)), Lit("|]]")),))
    text = '[[SEG_START {"tool_name": "f", "arguments": {"a": [[1], ["]]", "|]]"]]}}|]]'
    response = toolwire.parse(text, format=header)
    assert (calls(response), response.content) == ([("f", {"a": [[1], ["]]", "|]]"]]})], "")
    assert response.tool_calls[0].repairs == ()


# -- Forge, and the Unified Tool Protocol ----------------------------------------------------------------------------


@pytest.mark.mission("H1", "H4")
@pytest.mark.parametrize("between", [" prose ", "", "\n"])
@pytest.mark.parametrize("format", ["forge_xml", "auto"])
def test_calls_beside_one_another_are_all_read_and_never_mixed(between: str, format: str) -> None:
    response = read(format, forge("<a>1</a>") + between + forge("<b>2</b>", "g"))
    assert calls(response) == [("f", {"a": 1}), ("g", {"b": 2})]
    assert response.content.strip() == between.strip()


@pytest.mark.mission("H2", "H5", "H6", "H7")
@pytest.mark.parametrize(
    ("inside", "arguments", "repairs"),
    [
        ("<q>x & y</q><c><![CDATA[a && b]]></c>", {"q": "x & y", "c": "a && b"}, ("bare_ampersand",)),
        ("<c><![CDATA[a]]]]><![CDATA[>b]]></c>", {"c": "a]]>b"}, ()),
        ("<c>&nbsp; &copy;</c>", {"c": "&nbsp; &copy;"}, ("bare_ampersand",)),
        ("<c>if x < 5</c>", {"c": "if x < 5"}, ("bare_markup",)),
    ],
)
def test_what_stands_bare_is_repaired_outside_cdata_alone(
    inside: str, arguments: dict[str, Any], repairs: tuple[str, ...]
) -> None:
    (call,) = read("forge_xml", forge(inside)).tool_calls
    assert (call.arguments, call.repairs) == (arguments, repairs)


@pytest.mark.mission("H3")
def test_a_closing_tag_in_cdata_closes_nothing() -> None:
    assert calls(read("forge_xml", forge("<c><![CDATA[x </tool> y]]></c>"))) == [("f", {"c": "x </tool> y"})]


@pytest.mark.mission("H8")
def test_a_tag_of_another_dialect_is_told_by_its_shape() -> None:
    found = (tool(""), forge(""), '<tool>{"tool_name": "f", "arguments": {}}</tool>')
    assert [call.format for text in found for call in read("auto", text).tool_calls] == [
        "autobyteus_xml",
        "forge_xml",
        "forge_json",
    ]
    assert read("forge_xml", tool("")).tool_calls == ()


@pytest.mark.mission("F27", "F28", "F34", "H18")
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("<tools>not json</tools>", ""),
        ('<tools>f\n{"a": 1}</tools>', ""),
        ('a<tools>{oops}</tools>b<tools>{"name": "f", "parameters": {"n": 1}}</tools>', "f"),
        ("<tool_use><name>f</name><arguments>oops</arguments></tool_use>", ""),
    ],
)
def test_what_cannot_be_read_stays_in_the_text_and_is_told(text: str, names: str) -> None:
    response = read("utp_xml", text)
    assert [call.name for call in response.tool_calls] == list(names)
    assert response.content == (text if not names else "a<tools>{oops}</tools>b")
    assert [problem.kind for problem in response.problems] == ["malformed"]


@pytest.mark.mission("F15", "F27", "H19")
@pytest.mark.parametrize("tag", ["tool_use", "tools", "function_call", "tool_call"])
@pytest.mark.parametrize(
    "inside",
    [
        '{"name": "f", "arguments": {"a": {"b": [1]}}}',
        '{"name": "f", "parameters": {"a": {"b": [1]}}}',
        '<name>f</name><arguments>{"a": {"b": [1]}}</arguments>',
        '<name>f</name>\n<parameters>{"a": {"b": [1]}}</parameters>',
    ],
)
def test_four_tags_hold_json_or_elements(tag: str, inside: str) -> None:
    assert calls(read("utp_xml", f"so: <{tag}>{inside}</{tag}>")) == [("f", {"a": {"b": [1]}})]


@pytest.mark.mission("F30", "H20")
def test_a_list_in_a_tag_is_several_calls() -> None:
    text = '<tools>[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}]</tools>'
    assert calls(read("utp_xml", text)) == [("f", {}), ("g", {})]


@pytest.mark.mission("F29", "H21")
def test_calls_stand_in_the_order_of_the_text_whatever_their_tags() -> None:
    tags = ("tools", "tool_use", "tools", "function_call", "tool_call")
    text = "".join(f'<{tag}>{{"name": "{name}"}}</{tag}>' for tag, name in zip(tags, "xyzab", strict=True))
    assert [call.name for call in read("utp_xml", text).tool_calls] == list("xyzab")


@pytest.mark.mission("H22")
def test_a_tag_in_itself_is_one_call_without_leftovers() -> None:
    response = read("utp_xml", '<tools><tools>{"name": "f", "arguments": {}}</tools></tools>')
    assert (calls(response), response.content) == ([("f", {})], "")

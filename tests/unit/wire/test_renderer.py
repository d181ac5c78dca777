"""Rendering of calls, definitions, usage instructions and results."""

import pytest

import toolwire
from toolwire import RenderError, ToolCall, ToolResult
from toolwire.wire import syntax
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import WireFormat

TOOL = {
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
}
WITH_CALLS = [wire for wire in FORMATS if wire.blocks]
TWO = [ToolCall("weather", {"city": "Paris"}), ToolCall("weather", {"city": "Rome", "days": 2})]


@pytest.mark.parametrize("wire", WITH_CALLS, ids=lambda wire: wire.name)
def test_several_rendered_calls_parse_back(wire: WireFormat) -> None:
    text = toolwire.render_calls(TWO, format=wire, tools=[TOOL])
    read = toolwire.parse(text, format=wire, tools=[TOOL])
    assert [(call.name, call.arguments) for call in read.tool_calls] == [(call.name, call.arguments) for call in TWO]
    assert not any(call.repairs for call in read.tool_calls)


def test_render_calls_refuses_ambiguous_values() -> None:
    tricky = ToolCall("weather", {"city": "a</parameter>\n</function>\n</tool_call>"})
    with pytest.raises(RenderError, match="cannot write"):
        toolwire.render_calls([tricky], format="qwen3_coder", tools=[TOOL])
    assert toolwire.render_calls([tricky], format="hermes", tools=[TOOL])
    with pytest.raises(RenderError, match="cannot write"):
        toolwire.render_calls([ToolCall("weather", {"n": 5})], format="qwen3_coder")  # untyped: would be text
    with pytest.raises(RenderError, match="has no calls"):
        toolwire.render_calls(TWO, format="plain")
    for value in (float("nan"), float("inf"), "\ud800"):
        with pytest.raises(RenderError):
            toolwire.render_calls([ToolCall("weather", {"city": value})], format="hermes")


@pytest.mark.mission("C1", "C2", "C3")
def test_text_is_escaped_or_in_cdata_never_both() -> None:
    few = toolwire.render_calls([ToolCall("weather", {"city": "a < b"})], format="forge_xml", tools=[TOOL])
    many = toolwire.render_calls([ToolCall("weather", {"city": "<a><b></b></a>"})], format="forge_xml", tools=[TOOL])
    assert "a &lt; b" in few
    assert "<![CDATA[<a><b></b></a>]]>" in many


@pytest.mark.parametrize("format", ["cwm", "langchain_xml"])
@pytest.mark.parametrize(
    ("city", "is_plain"),
    [
        ("Paris", True),
        ("a && b\nc", True),
        ("", False),
        (" Paris", False),
        ("{x", False),
        ("a </tool> b", False),
        ("a </tool_input> b", False),
        ("<tool: weather>", False),
    ],
)
def test_the_only_argument_is_plain_text_where_it_can_be_read_as_nothing_else(
    format: str, city: str, is_plain: bool
) -> None:
    call = ToolCall("weather", {"city": city})
    text = toolwire.render_calls([call], format=format, tools=[TOOL])
    assert ('{"city"' not in text) == is_plain
    read = toolwire.parse(text, format=format, tools=[TOOL])
    assert [call.arguments for call in read.tool_calls] == [{"city": city}]


@pytest.mark.parametrize("wire", WITH_CALLS, ids=lambda wire: wire.name)
def test_an_echoed_result_is_not_a_call(wire: WireFormat) -> None:
    call = toolwire.render_calls(TWO[:1], format=wire, tools=[TOOL])
    shown = toolwire.render_results([ToolResult("1", "weather", f"before {call} after")], format=wire)
    if wire.markers:
        assert toolwire.parse(shown, format=wire, tools=[TOOL]).tool_calls == ()


@pytest.mark.mission("D53")
def test_results_contain_the_error() -> None:
    results = [ToolResult("1", "a", {"n": 1}), ToolResult("2", "b", error="no such file")]
    text = toolwire.render_results(results, format="hermes")
    assert text.index('{"n": 1}') < text.index("Error: no such file")


@pytest.mark.mission("B34", "D3")
@pytest.mark.parametrize("wire", WITH_CALLS, ids=lambda wire: wire.name)
def test_the_example_in_a_prompt_parses(wire: WireFormat) -> None:
    text = toolwire.prompt([TOOL], format=wire, system="Be brief.")
    assert text.startswith("Be brief.")
    assert "The weather in a city." in text
    example = toolwire.render_calls(
        [ToolCall("weather", {"city": "the city"}, "call00001" if wire.markers else "")], format=wire, tools=[TOOL]
    )
    assert example.split("\n")[0] in text


@pytest.mark.mission("D12")
def test_prompt_rejects_invalid_definitions() -> None:
    broken = {"name": "x", "parameters": {"type": "object", "properties": {"a": {"type": "nonsense"}}}}
    with pytest.raises(toolwire.DefinitionError, match="x"):
        toolwire.prompt([broken], format="hermes")
    assert toolwire.prompt([], format="hermes", system="Hello.") == "Hello."


CITY = {"type": "string", "description": "City", "enum": ["Rome", "Paris"]}
SHAPED = {
    "name": "weather",
    "description": "The weather.",
    "parameters": {
        "type": "object",
        "properties": {"city": CITY, "days": {"type": ["integer", "null"], "default": 1}, "l": {"type": "array"}},
        "required": ["city"],
    },
}


@pytest.mark.mission("D8", "D18", "F19")
@pytest.mark.parametrize(
    ("format", "expected"),
    [
        (
            "qwen3_coder",
            "<tools>\n<function>\n<name>weather</name>\n<description>The weather.</description>\n<parameters>\n"
            "<parameter>\n<name>city</name>\n<type>string</type>\n<description>City</description>\n"
            '<enum>["Rome", "Paris"]</enum>\n'
            '</parameter>\n<parameter>\n<name>days</name>\n<type>["integer", "null"]</type>\n<default>1</default>\n'
            "</parameter>\n<parameter>\n<name>l</name>\n<type>array</type>\n</parameter>\n"
            '<required>["city"]</required>\n</parameters>\n</function>\n</tools>',
        ),
        (
            "harmony",
            "# Tools\n\n## functions\n\nnamespace functions {\n\n// The weather.\ntype weather = (_: {\n// City\n"
            'city: "Rome" | "Paris",\ndays?: number | null, // default: 1\nl?: any[],\n}) => any;\n\n'
            "} // namespace functions",
        ),
        (
            "functiongemma",
            "<start_function_declaration>declaration:weather{description:<escape>The weather.<escape>,parameters:{"
            "properties:{city:{description:<escape>City<escape>,enum:[<escape>Rome<escape>,<escape>Paris<escape>],"
            "type:<escape>STRING<escape>},days:{default:1,type:[<escape>INTEGER<escape>,<escape>NULL<escape>]},"
            "l:{type:<escape>ARRAY<escape>}},required:[<escape>city<escape>],type:<escape>OBJECT<escape>}}"
            "<end_function_declaration>",
        ),
    ],
)
def test_definitions_have_the_publishers_shape(format: str, expected: str) -> None:
    assert toolwire.render_definitions([SHAPED], format=format) == expected


@pytest.mark.mission("D53", "F9")
def test_a_result_names_its_call_where_the_format_does() -> None:
    result = ToolResult("functions.f:0", "f", "x</tool_call>")
    assert toolwire.render_results([result], format="kimi_k2") == "## Return of functions.f:0\nx<\u2060/tool_call>"
    quoted = ToolResult("", "f", 'x<|"|>}')
    assert toolwire.render_results([quoted], format="gemma4") == (
        '<|tool_response>response:f{value:<|"|>x<\u2060|"|>}<|"|>}<tool_response|>'
    )


def test_an_invalid_description_raises_with_the_reason() -> None:
    with pytest.raises(toolwire.DefinitionError, match="cannot be empty or blank"):
        syntax.Lit("\n")
    for blocks, message in (
        (((syntax.Args(),),), "holds no call"),
        ((syntax.Lit("<a>"),), "is not a tuple of nodes"),
    ):
        wire = WireFormat(name="mine", blocks=blocks)  # type: ignore[arg-type]
        with pytest.raises(toolwire.DefinitionError, match=message):
            toolwire.parse("x", format=wire)


@pytest.mark.mission("B34", "C38", "D6", "D7")
@pytest.mark.parametrize("wire", WITH_CALLS, ids=lambda wire: wire.name)
def test_a_manifest_has_a_block_for_each_tool(wire: WireFormat) -> None:
    manifest = toolwire.render_manifest([SHAPED, TOOL | {"name": "other"}], format=wire)
    assert manifest.skipped == {}
    least = toolwire.render_calls([ToolCall("weather", {"city": "Rome"})], format=wire, tools=[SHAPED])
    assert f"Example:\n{least}\nExample with all parameters:\n" in manifest.text
    assert manifest.text.count("Write a call only when") == 1
    assert "The weather in a city." in manifest.text


@pytest.mark.mission("B34", "D7", "D9")
def test_a_manifest_explains_lists_and_skips_unwritable_tools() -> None:
    assert "one <item> element per item" in toolwire.render_manifest([SHAPED], format="forge_xml").text
    assert "written as JSON" in toolwire.render_manifest([SHAPED], format="qwen3_coder").text
    assert "A list" not in toolwire.render_manifest([SHAPED], format="hermes").text
    odd = {"name": "odd", "parameters": {"type": "object", "properties": {"a b": {}}, "required": ["a b"]}}
    manifest = toolwire.render_manifest([odd, SHAPED], format="forge_xml")
    assert "'a b'" in manifest.skipped["odd"]
    assert '"odd"' not in manifest.text
    assert toolwire.render_manifest([odd], format="forge_xml").text == ""
    odd["parameters"] = {"type": "object", "properties": {"s": {}, "a b": {}}, "required": ["s"]}
    manifest = toolwire.render_manifest([odd], format="forge_xml")
    assert (manifest.skipped, "Example:" in manifest.text, "Example with all" in manifest.text) == ({}, True, False)
    with pytest.raises(RenderError, match="has no calls"):
        toolwire.render_manifest([SHAPED], format="plain")


MIXED = {
    "name": "f",
    "parameters": {
        "type": "object",
        "properties": {
            "flag": {"type": "boolean"},
            "names": {"type": "array", "items": {"type": "string"}},
            "none": {"type": "null"},
            "place": {"type": "object", "properties": {"city": {"type": "string"}, "empty": {"type": "array"}}},
            "count": {"type": "integer"},
        },
    },
}
VALUES = {"flag": True, "names": ["x", "y"], "none": None, "place": {"city": "Rome", "empty": []}, "count": 2}


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("pythonic", '[f(flag=True, names=["x", "y"], none=None, place={"city": "Rome", "empty": []}, count=2)]'),
        (
            "forge_xml",
            "<tool>\n<server_name>local</server_name>\n<tool_name>f</tool_name>\n<arguments>\n  <flag>true</flag>\n"
            "  <names>\n    <item>x</item>\n    <item>y</item>\n  </names>\n  <none>null</none>\n  <place>\n"
            "    <city>Rome</city>\n    <empty></empty>\n  </place>\n  <count>2</count>\n</arguments>\n</tool>",
        ),
        (
            "kimi_k3",
            '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>'
            '<|open|>argument key="flag" type="boolean"<|sep|>true<|close|>argument<|sep|>'
            '<|open|>argument key="names" type="array"<|sep|>["x", "y"]<|close|>argument<|sep|>'
            '<|open|>argument key="none" type="null"<|sep|>null<|close|>argument<|sep|>'
            '<|open|>argument key="place" type="object"<|sep|>{"city": "Rome", "empty": []}<|close|>argument<|sep|>'
            '<|open|>argument key="count" type="number"<|sep|>2<|close|>argument<|sep|>'
            "<|close|>call<|sep|><|close|>tools<|sep|>",
        ),
    ],
)
def test_values_of_all_types_are_written_as_the_format_does(format: str, expected: str) -> None:
    assert toolwire.render_calls([ToolCall("f", VALUES)], format=format, tools=[MIXED]) == expected


def test_several_objects_are_a_list_and_one_is_not() -> None:
    texts = ['{"name": "weather", "arguments": {"city": "Paris"}}']
    texts += ['{"name": "weather", "arguments": {"city": "Rome", "days": 2}}']
    assert toolwire.render_calls(TWO[:1], format="bare_json", tools=[TOOL]) == texts[0]
    assert toolwire.render_calls(TWO, format="bare_json", tools=[TOOL]) == f"[{', '.join(texts)}]"


def test_line_breaks_around_a_value_survive_where_the_reader_removes_them() -> None:
    call = ToolCall("weather", {"city": "\n Rome & Paris \n"})
    text = toolwire.render_calls([call], format="tool_tags", tools=[TOOL])
    assert "Rome &amp; Paris" in text
    (read,) = toolwire.parse(text, format="tool_tags", tools=[TOOL]).tool_calls
    assert read.arguments == call.arguments


def test_an_example_has_a_value_for_each_kind_of_parameter() -> None:
    properties = {
        "text_of_note": {"type": "string"},
        "whole": {"type": "integer"},
        "part": {"type": "number"},
        "flag": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "integer"}},
        "inside": {"type": "object", "properties": {"n": {"type": "integer"}, "m": {"type": "null"}}},
        "some": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "m": {"type": "boolean"}},
            "required": ["m"],
        },
        "choice": {"enum": ["b", "a"]},
        "fixed": {"const": 7},
        "usual": {"type": "integer", "default": 8},
        "shown": {"type": "integer", "examples": [9, 10]},
    }
    tool = {"name": "f", "parameters": {"type": "object", "properties": properties, "required": list(properties)}}
    text = toolwire.prompt([tool], format="hermes")
    (call,) = toolwire.parse(text[text.index("<tool_call>") :], format="hermes", tools=[tool]).tool_calls
    assert call.arguments == {
        "text_of_note": "the text of note",
        "whole": 1,
        "part": 1.5,
        "flag": True,
        "list": [1],
        "inside": {"n": 1, "m": None},
        "some": {"m": True},
        "choice": "b",
        "fixed": 7,
        "usual": 8,
        "shown": 9,
    }


def test_the_parts_of_a_prompt_are_paragraphs() -> None:
    text = toolwire.prompt([TOOL], format="hermes", system="Be brief.")
    system, intro, definitions, usage, example, rules = text.split("\n\n")
    assert (system, intro) == ("Be brief.", "You can call these tools:")
    assert definitions == toolwire.render_definitions([TOOL], format="hermes")
    assert usage == "To call a tool, write:"
    assert rules.startswith("Rules:\n1. ")
    assert example.startswith("<tool_call>")
    assert toolwire.prompt([TOOL], format="plain").split("\n\n")[0] == "You can call these tools:"


def test_a_manifest_rejects_invalid_definitions() -> None:
    broken = {"name": "x", "parameters": {"type": "object", "properties": {"a": {"type": "nonsense"}}}}
    with pytest.raises(toolwire.DefinitionError, match="x"):
        toolwire.render_manifest([broken], format="hermes")

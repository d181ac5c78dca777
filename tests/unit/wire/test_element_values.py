"""Values written as nested elements: the schema decides first, then repeated names, `<item>` and inference."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.schema.shape import Shape
from toolwire.wire.element_values import ElementReader, combine, infer
from toolwire.wire.syntax import Elements
from toolwire.wire.xml_scanners import unescape

FORGE = Elements(infer=True)
AUTOBYTEUS = Elements(tag="arg", nested=("arg", "item"))
STRINGS = {"type": "array", "items": {"type": "string"}}
MEMBERS = {
    "type": "object",
    "properties": {
        "s": {"type": "string"},
        "n": {"type": "integer"},
        "l": STRINGS,
        "o": {"type": "object", "properties": {"m": {"type": "string"}}},
    },
}
EDITS = {"type": "array", "items": {"type": "object", "properties": {"old": {"type": "string"}}}}

ROWS: list[tuple[Elements, str, Any, Any]] = [
    (FORGE, "text", {}, "text"),
    (FORGE, " 42 ", {}, 42),
    (FORGE, "007", {}, 7),
    (FORGE, "TRUE", {}, True),
    (FORGE, "NaN", {}, "NaN"),
    (FORGE, "<![CDATA[42]]>", {}, "42"),
    (FORGE, "42", {"type": "string"}, "42"),
    (FORGE, "a <![CDATA[]]]]><![CDATA[>]]> b", {"type": "string"}, "a ]]> b"),
    (FORGE, "&amp;lt; &#x3C;", {}, "&lt; <"),
    (FORGE, "\n <a>1</a>\n <b>x</b>\n", {}, {"a": 1, "b": "x"}),
    (FORGE, "<a>1</a><a>2</a>", {}, {"a": [1, 2]}),
    (FORGE, "<item>1</item>", {}, [1]),
    (FORGE, "<!-- note --><a>1</a>", {}, {"a": 1}),
    (FORGE, "use <b>bold</b> text", {}, "use <b>bold</b> text"),
    (FORGE, "List<String> x", {}, "List<String> x"),
    (FORGE, "<div><p>x</p></div>", {"type": "string"}, "<div><p>x</p></div>"),
    (FORGE, "<edit><old>a</old></edit><edit><old>b</old></edit>", EDITS, [{"old": "a"}, {"old": "b"}]),
    (FORGE, "<name>A</name><age>3</age>", {"type": "array"}, [{"name": "A", "age": 3}]),
    (FORGE, "<name>A</name><age>3</age><name>B</name>", {"type": "array"}, [{"name": ["A", "B"], "age": 3}]),
    (FORGE, "<tag>a</tag>", {"type": "array"}, ["a"]),
    (FORGE, "<!-- note -->x", {}, "x"),
    (FORGE, "<!-- note -->x", {"type": "string"}, "<!-- note -->x"),
    (FORGE, "x<!-- note -->", {}, "x<!-- note -->"),
    (FORGE, "<!-- note --> 5", {"type": "integer"}, 5),
    (FORGE, "<old>a</old>", EDITS, {"old": "a"}),
    (FORGE, "<edit><old>a</old></edit>", EDITS, [{"old": "a"}]),
    (FORGE, "<item><item>1</item></item>", {"type": "array", "items": STRINGS}, [["1"]]),
    (FORGE, "<item>5</item>", {"type": "integer"}, 5),
    (FORGE, "<item>5</item><item>6</item>", {"type": "integer"}, "<item>5</item><item>6</item>"),
    (FORGE, "<item>1</item>", {"type": "object"}, {"item": 1}),
    (FORGE, "<item>1</item>", {"type": ["object", "array"]}, [1]),
    (FORGE, "<item>1</item>", {"type": ["object", "array"], "properties": {"item": {"type": "integer"}}}, {"item": 1}),
    (FORGE, "<a>1</b>", {"type": "string"}, "<a>1</b>"),
    (FORGE, "<a>1</b>", {"type": "integer"}, "<a>1</b>"),
    (FORGE, "x<a>1</b>", {}, "x<a>1</b>"),
    (FORGE, "<a><![CDATA[x<y]]> &lt;</b>", {"type": "string"}, "<a>x<y <</b>"),
    (FORGE, "<a><![CDATA[x<y", {"type": "string"}, "<a>x<y"),
    (FORGE, "x <b> <![CDATA[a<c]]> y &amp; z", {"type": "string"}, "x <b> a<c y & z"),
    (FORGE, "x <b> <![CDATA[a<c", {"type": "string"}, "x <b> a<c"),
    (FORGE, "", {"type": "object"}, {}),
    (FORGE, "", STRINGS, []),
    (FORGE, '["a", "b"]', STRINGS, ["a", "b"]),
    (FORGE, "<a/>", {}, {"a": ""}),
    (FORGE, "9" * 5000, {}, "9" * 5000),
    (FORGE, "<s>a <b> c</s><n>1</n>", MEMBERS, {"s": "a <b> c", "n": 1}),
    (FORGE, "<s>a <s>b</s> c</s><n>1</n>", MEMBERS, {"s": "a <s>b</s> c", "n": 1}),
    (FORGE, "<l><i>a<b>x</b></i></l>", MEMBERS, {"l": ["a<b>x</b>"]}),
    (FORGE, "<o>x <b>y</b></o><n>2</n>", MEMBERS, {"o": "x <b>y</b>", "n": 2}),
    (FORGE, "<l>x <b>y</b></l><n>2</n>", MEMBERS, {"l": ["x <b>y</b>"], "n": 2}),
    (FORGE, "<l><![CDATA[5]]></l>", MEMBERS, {"l": ["5"]}),
    (FORGE, "<a><b><c>x <d>y</d></c></b></a>", {}, {"a": {"b": {"c": "x <d>y</d>"}}}),
    (FORGE, "<a><item>x <d>y</d></item><item>z</item></a>", {}, {"a": ["x <d>y</d>", "z"]}),
    (FORGE, "x <a> <![CDATA[a<c]]> y &amp; z", {"type": ["integer", "string"]}, "x <a> a<c y & z"),
    (FORGE, "x <a> <![CDATA[a<c", {"type": ["integer", "string"]}, "x <a> a<c"),
    (FORGE, "<old>a</old><new>b</new>", EDITS, {"old": "a", "new": "b"}),
    (FORGE, "<name>A</name><age>3</age>", STRINGS, ["A", "3"]),
    (FORGE, "<item>5</item>x", {"type": "integer"}, "<item>5</item>x"),
    (FORGE, "<item>5</item><item>6</item>", {"type": ["array", "integer"]}, [5, 6]),
    (FORGE, "<item>1</item>", {"type": "array"}, [1]),
    (FORGE, "x <b>&lt;</b>", {"type": ["object", "string"]}, "x <b><</b>"),
    (FORGE, "", {"type": ["string", "object"]}, ""),
    (FORGE, "<![CDATA[]]>", STRINGS, ""),
    (FORGE, "<![CDATA[]]>", {"type": "object"}, ""),
    (AUTOBYTEUS, '<ARG NAME="x">1</ARG>', {}, {"x": "1"}),
    (AUTOBYTEUS, "<arg name='x'>1</arg>", {}, {"x": "1"}),
    (AUTOBYTEUS, "<arg>1</arg>", {}, {"arg": "1"}),
    (AUTOBYTEUS, "42", {}, "42"),
    (AUTOBYTEUS, '<arg name="x">1</arg>', {}, {"x": "1"}),
    (AUTOBYTEUS, "<item>a</item><item>b</item>", {}, ["a", "b"]),
    (AUTOBYTEUS, "<tool name='fake'></tool>", {}, "<tool name='fake'></tool>"),
]


@pytest.mark.mission("B5", "B7", "B12", "B19", "B24")
@pytest.mark.parametrize(("node", "raw", "schema", "value"), ROWS)
def test_elements_become_values_by_schema_and_inference(
    node: Elements, raw: str, schema: dict[str, Any], value: Any
) -> None:
    read, _ = ElementReader(node, json.loads).read(raw, Shape.of(schema))
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "array"}, {"type": ["string", "object"]}])
def test_tags_that_do_not_match_are_refused_where_a_value_has_structure(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the tag of 'b' does not match"):
        ElementReader(FORGE, json.loads).read("<a>1</b>", Shape.of(schema))


@pytest.mark.parametrize(
    ("raw", "name"),
    [("<s>x <!-- y</s>", "s"), ("<n>1<!-- y</n>", "n"), ("<n>1 </b></n>", "b"), ("<n>1</n></s>", "s")],
)
def test_members_whose_tags_do_not_match_are_refused(raw: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"the tag of '{name}' does not match"):
        ElementReader(FORGE, json.loads).read(raw, Shape.of(MEMBERS))


@pytest.mark.parametrize(
    ("node", "raw", "attributes"),
    [
        (AUTOBYTEUS, '<arg name="x">1</arg>', {}),
        (AUTOBYTEUS, '<arg name="x" b="2">1</arg>', {"arg": 'b="2"'}),
        (FORGE, '<a name="x">1</a>', {"a": 'name="x"'}),
        (FORGE, "<a />", {}),
    ],
)
def test_attributes_without_a_meaning_are_kept_for_a_report(
    node: Elements, raw: str, attributes: dict[str, str]
) -> None:
    reader = ElementReader(node, json.loads)
    reader.read(raw, Shape.of({}))
    assert reader.attributes == attributes


@pytest.mark.parametrize(
    ("raw", "schema", "whole"),
    [
        ("<a>1</a><b>2</b>", STRINGS, True),
        ("<item>1</item>", {}, True),
        ("", STRINGS, True),
        ('["a"]', STRINGS, True),
        ("a", STRINGS, False),
        ("<a>1</a>", {}, False),
    ],
)
def test_a_whole_list_is_told_from_one_of_its_items(raw: str, schema: dict[str, Any], whole: bool) -> None:
    assert ElementReader(FORGE, json.loads).read(raw, Shape.of(schema))[1] is whole


@pytest.mark.mission("C6", "C7")
def test_repairs_are_recorded_only_outside_cdata() -> None:
    reader = ElementReader(FORGE, json.loads)
    reader.read("<![CDATA[a && b < c]]>", Shape.of({}))
    assert reader.repairs == []
    reader.read("a & b < c", Shape.of({}))
    assert sorted(reader.repairs) == ["bare_ampersand", "bare_markup"]


def test_nested_elements_have_a_depth_limit() -> None:
    with pytest.raises(ValueError, match="levels"):
        ElementReader(FORGE, json.loads).read("<a>" * 250 + "</a>" * 250, Shape.of({}))


def test_occurrences_combine_to_a_value_or_a_list() -> None:
    assert combine([("a", False)], Shape.of(STRINGS)) == ["a"]
    assert combine([("a", False), ("b", False)], Shape.of({})) == ["a", "b"]
    with pytest.raises(ValueError, match="more than once"):
        combine([("a", False), ("b", False)], Shape.of({"type": "string"}))


@pytest.mark.parametrize("text", ["1e999", "+", "1.2.3", "--5", "abc", "", '"true"', "0x10", "1_000"])
def test_text_without_a_typed_form_stays_text(text: str) -> None:
    assert infer(text) == text


@given(st.lists(st.sampled_from(["&lt;", "&amp;", "&quot;", "&#65;", "&#x41;", "&#0;", "&", "&x;", ";", "a", "<"])))
def test_entities_are_decoded_the_same_few_or_many(pieces: list[str]) -> None:
    text = "".join(pieces)
    among = " " * 100 * len(pieces)
    assert unescape(among + text + among) == (among + unescape(text)[0] + among, unescape(text)[1])

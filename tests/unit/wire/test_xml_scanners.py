"""Leaves for markup like XML: entities, attributes, and elements inside an element of the same name."""

from __future__ import annotations

import pytest
from tests.unit.wire.test_leaf_scanners import SIZES, scan

from toolwire.wire.marker_sets import MarkerSet
from toolwire.wire.xml_scanners import Attributes, ElementStart, XmlText, read_attributes, unescape


@pytest.mark.parametrize(
    ("text", "decoded", "is_bare"),
    [
        ("plain", "plain", False),
        ("&lt;&gt;&quot;&apos;&amp;", "<>\"'&", False),
        ("&#65;&#x42;&#X43;", "ABC", False),
        ("&#1;&#xD7FF;&#xE000;&#x10FFFF;", "\x01\ud7ff\ue000\U0010ffff", False),
        *((f"&#{code};", f"&#{code};", False) for code in ("0", "x0", "xD800", "xDFFF", "x110000", "9999999")),
        *((text, text, True) for text in ("a & b", "&", "&;", "&nbsp;", "&#;", "&#x;", "&#12345678;", "&amp", "&LT;")),
        ("&amp;lt;", "&lt;", False),
        ("&;amp;&lt;", "&;amp;<", True),
        ("&lt; &amp", "< &amp", True),
    ],
)
def test_entities_are_decoded_once_and_other_ampersands_are_bare(text: str, decoded: str, is_bare: bool) -> None:
    for before in ("", "x" * 10_000):  # where ampersands are rare, each is looked at
        assert unescape(before + text) == (before + decoded, is_bare)
    assert unescape(text * 300) == (decoded * 300, is_bare)


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("", {}),
        ("a=\"1\" b='2' c=3", {"a": "1", "b": "2", "c": "3"}),
        ('a = "x &lt; y"b=1', {"a": "x < y", "b": "1"}),
        ('a="1" A="2"', {"a": "1", "A": "2"}),
        *((text, None) for text in ('a="1" a="2"', "a", '="1"', 'a="1', "1=2", 'a="1" x')),
    ],
)
def test_attributes_are_a_name_and_a_value_each(text: str, attributes: dict[str, str] | None) -> None:
    assert read_attributes(text, nocase=False) == attributes
    lower = None if attributes is None or "A" in attributes else attributes
    assert read_attributes(text.replace("A=", "a="), nocase=True) == lower


@SIZES
@pytest.mark.parametrize(
    ("text", "value", "rest"),
    [
        ('a="1">x', ({"a": "1"}, False), "x"),
        ('a="1>2" />x', ({"a": "1>2"}, True), "x"),
        ("/>", ({}, True), ""),
        ("a='\"<'>", ({"a": '"<'}, False), ""),
    ],
)
def test_a_tag_ends_at_its_bracket_outside_quotes(text: str, value: object, rest: str, size: int) -> None:
    leaf = Attributes()
    assert scan(leaf, text, size) == rest
    assert (leaf.value, leaf.error) == (value, "")


@SIZES
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('a="1" <b>', "a tag is not closed"),
        ("a>", "the attributes of a tag cannot be read"),
        (f'a="{"x" * 400}">', "a tag of more than 400 characters"),
    ],
)
def test_a_tag_that_is_not_closed_is_an_error(text: str, error: str, size: int) -> None:
    leaf = Attributes()
    scan(leaf, text, size)
    assert (leaf.value, leaf.error) == (None, error)


@SIZES
def test_a_bracket_of_several_characters_may_arrive_in_pieces(size: int) -> None:
    leaf = Attributes("<|sep|>")
    assert scan(leaf, 'a="1" b="<|sep|>"<|sep|>x', size) == "x"
    assert leaf.value == ({"a": "1", "b": "<|sep|>"}, False)
    leaf = Attributes("<|sep|>")
    scan(leaf, 'a="1" <|other|>', size)
    assert leaf.error == "a tag is not closed"


def inside(text: str, size: int, *, nocase: bool = False) -> tuple[str, str, str]:
    """Return the inside of an element `b` in `</a>`, the text behind it, and the error."""
    pieces: list[str] = []
    leaf = XmlText("b", MarkerSet(frozenset({"</a>"})), outer={}, nocase=nocase, decode=True, put=pieces.append)
    rest = scan(leaf, text, size)
    return "".join(pieces), rest, leaf.error


@SIZES
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x</b></a>", "x"),
        ("x</b> <c>", "x"),
        ("x</b> <!-- c -->", "x"),
        ("x</b>y</b></a>", "x</b>y"),
        ("x <b>y</b></b></a>", "x <b>y</b>"),
        ("x <b>y</b> <c>z</c></b></a>", "x <b>y</b> <c>z</c>"),
        ('x <b i="1">y</b><c></b></a>', 'x <b i="1">y</b><c>'),
        ("x <b\n>y</b><c></b></a>", "x <b\n>y</b><c>"),
        ("x <bc>y</b><c>", "x <bc>y"),
        ("x <b/>y</b><c>", "x <b/>y"),
        ("<![CDATA[</b></a>]]></b></a>", "</b></a>"),
        ("1 &lt; 2 &amp; <3</b></a>", "1 < 2 & <3"),
    ],
)
def test_an_element_ends_where_something_fitting_follows_and_nothing_inside_is_open(
    text: str, value: str, size: int
) -> None:
    rest = text[text.rindex("</b>") + 4 :].lstrip()
    assert inside(text, size) == (value, rest, "")
    upper, _, _ = inside(text.replace("</b>", "</B>").replace("<b", "<B"), size, nocase=True)
    assert upper == value.replace("</b>", "</B>").replace("<b", "<B")


@SIZES
@pytest.mark.parametrize("text", ["x <b>y</b>", "x <b>y</b></a>", "x <b>y</b>\n</a>", "<b></b><c> <b></b>"])
def test_an_element_inside_which_one_is_open_is_not_closed(text: str, size: int) -> None:
    assert inside(text, size)[2] == "the element <b> is not closed"


@SIZES
@pytest.mark.parametrize(
    ("text", "value", "error"),
    [
        ("<a>", ("a", {}, False), ""),
        (' <a b="1"/>', ("a", {"b": "1"}, True), ""),
        ("<_a>", ("_a", {}, False), ""),
        ("<!----><a>", ("a", {}, False), ""),
        ("<!-- x -- y --> <a.b-c>", ("a.b-c", {}, False), ""),
        ("</x>", None, ""),
        ("x", None, "there is text where an element should begin"),
        ("<1>", None, "an element should begin here"),
        ("</y>", None, "an element should begin here"),
        ("<ä>", None, "an element should begin here"),
        (f"<{'a' * 257}>", None, "a name of more than 256 characters"),
    ],
)
def test_the_start_of_an_element_is_read_up_to_its_bracket(text: str, value: object, error: str, size: int) -> None:
    leaf = ElementStart(MarkerSet(frozenset({"</x>"})))
    scan(leaf, text + " ", size)
    assert (leaf.value, leaf.error) == (value, error)

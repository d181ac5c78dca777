"""Raw values: which closing marker ends one, which is text, and what may stand in for one that is missing."""

from __future__ import annotations

from typing import Literal

import pytest
from tests.unit.wire.test_leaf_scanners import SIZES, scan

from toolwire.wire.leaf_scanners import CDATA, SPACE_LIMIT
from toolwire.wire.marker_sets import MarkerSet
from toolwire.wire.raw_values import HeaderPattern, RawText, ValueEnd
from toolwire.wire.syntax import Key, Lit, Node, OneOf, Tag

_PARAMETER = HeaderPattern((Lit("<v "), Key(), Lit(">")))


def raw_text(
    *,
    newline: bool = True,
    missing: Literal["never", "line", "anywhere"] = "anywhere",
    before: str = "",
    names: str = "",
    unwrapped: bool = False,
) -> tuple[RawText, list[str]]:
    """Return a value in `<block><call><v NAME>...</v></call></block>`, and the list of its text."""
    pieces: list[str] = []
    outside = frozenset({"</block>", "<call>", "<block>"})
    rules = ValueEnd(
        close="</v>",
        follow={
            "</v>": MarkerSet(frozenset({"<v ", "</call>"}) | outside),
            "</call>": MarkerSet(outside),
            "</block>": MarkerSet(outside),
        },
        last=frozenset({"</v>"}),
        call_close=frozenset({"</call>"}),
        openers=frozenset({"<v "}),
        header=_PARAMETER,
        missing=missing,
        calls=frozenset({"<call>", "<block>"}),
        stops=MarkerSet(frozenset({"</v>", "</call>", "<v ", CDATA}) | outside),
        newline=newline,
        edge=newline + 1,
    )
    return RawText(rules, pieces.append, before, is_next=lambda name, _: name in names, unwrapped=unwrapped), pieces


@SIZES
@pytest.mark.parametrize(
    ("text", "value", "rest"),
    [
        ("\nx\n</v></call>", "x", "</call>"),
        ("x</v>\n<v b", "x", "<v b"),
        ("a</v>b</v></call>", "a</v>b", "</call>"),
        ("a</v>\n\nb\n\n</v> </call>", "a</v>\n\nb\n", "</call>"),
        ("x<v b", "x", "<v b"),
        ("x</v>", "x", ""),
        ("x</v> </ca", "x", "</ca"),
        ("x</v> </cx", "x</v> </cx", ""),
        ("a <b> & c</v></call>", "a <b> & c", "</call>"),
        ("\n\n</v></call>", "", "</call>"),
        ("</v></call>", "", "</call>"),
        ("<![CDATA[</v>]]></v></call>", "</v>", "</call>"),
        ("a<![CDATA[<v ]] ]>]]>b</v></call>", "a<v ]] ]>b", "</call>"),
        ("x</v></block>", "x", "</block>"),
        ("x</v>\n<call>", "x", "<call>"),
        ("x </call> y</v></call>", "x </call> y", "</call>"),
        ("x </block> <y></v></call>", "x </block> <y>", "</call>"),
        ("x <call> y</v></call>", "x <call> y", "</call>"),
    ],
)
def test_a_value_ends_at_a_closing_marker_that_something_fitting_follows(
    text: str, value: str, rest: str, size: int
) -> None:
    leaf, pieces = raw_text()
    left = scan(leaf, text, size)
    if value == text:
        assert not leaf.done
        assert value.startswith("".join(pieces))
    else:
        assert leaf.done
        assert ("".join(pieces), left) == (value, rest)


@SIZES
@pytest.mark.parametrize(
    ("text", "value", "closer", "rest"),
    [
        ("\nx\n\n</call></block>", "x", "</call>", "</block>"),
        ("x\n\n\n</call>\n<call>", "x\n", "</call>", "<call>"),
        ("x</call> <block>", "x", "</call>", "<block>"),
        ("x\n</block> <call>", "x", "</block>", "<call>"),
        ("x</block>\n<block>", "x", "</block>", "<block>"),
        ("a </call> b</call></block>", "a </call> b", "</call>", "</block>"),
    ],
)
def test_the_end_of_the_call_or_of_its_wrapper_stands_in_for_the_closing_marker(
    text: str, value: str, closer: str, rest: str, size: int
) -> None:
    leaf, pieces = raw_text()
    assert scan(leaf, text, size) == rest
    assert leaf.done
    assert ("".join(pieces), leaf.closer) == (value, closer)


@SIZES
@pytest.mark.parametrize("text", ["x</call>", "x</call> y", "x</call></blo", "x</block>", "x</v> y</block>"])
def test_the_end_of_a_call_counts_only_where_what_follows_proves_it(text: str, size: int) -> None:
    leaf, _ = raw_text()
    scan(leaf, text, size)
    assert (leaf.done, leaf.error) == (False, "")
    alone, pieces = raw_text(unwrapped=True)
    scan(alone, text, size)
    assert alone.done is (text == "x</call>")
    assert not alone.done or "".join(pieces) == "x"


@SIZES
def test_a_value_with_its_own_closing_marker_inside_and_none_after_it_is_an_error(size: int) -> None:
    leaf, _ = raw_text()
    scan(leaf, "a</v> b</call></block>", size)
    assert leaf.error == "</v> is inside the value of a parameter, and missing after it"


@SIZES
@pytest.mark.parametrize("text", ["x<call><v a>", "x\n<block>\n<call>\n<v a>y</v></call>"])
def test_another_call_inside_a_value_is_an_error(text: str, size: int) -> None:
    leaf, _ = raw_text(missing="never")
    scan(leaf, text, size)
    assert leaf.error == "another call is inside the value of a parameter"
    leaf, pieces = raw_text(missing="never")
    scan(leaf, "the tags <call> and <v x or <v>.</v></call>", size)
    assert leaf.done
    assert "".join(pieces) == "the tags <call> and <v x or <v>."


@SIZES
@pytest.mark.parametrize("missing", ["anywhere", "line", "never"])
def test_a_header_inside_a_line_ends_the_value_where_the_format_or_the_name_allows_it(
    missing: Literal["never", "line", "anywhere"], size: int
) -> None:
    leaf, _ = raw_text(missing=missing)
    scan(leaf, "see <v x>", size)
    assert leaf.done is (missing == "anywhere")
    leaf, pieces = raw_text(missing=missing, names="x")
    assert scan(leaf, "see <v x>", size) == "<v x>"
    assert (leaf.done, "".join(pieces)) == (True, "see ")
    leaf, pieces = raw_text(missing="line")
    assert scan(leaf, "see <v x\n<v b") == "<v b"
    assert leaf.done
    assert "".join(pieces) == "see <v x"


@pytest.mark.parametrize(("blanks", "counts"), [(SPACE_LIMIT, True), (SPACE_LIMIT + 1, False)])
@pytest.mark.parametrize("size", [0, 100])
def test_a_closing_marker_counts_only_if_what_follows_is_near(blanks: int, counts: bool, size: int) -> None:
    leaf, pieces = raw_text()
    scan(leaf, "x</v>" + " " * blanks + "</call>y", size)
    assert leaf.done is counts
    assert "".join(pieces) == ("x" if counts else "x</v>" + " " * blanks + "</call>y")


def test_a_value_goes_on_from_text_that_was_read_before() -> None:
    leaf, pieces = raw_text(before="\nalready ")
    assert scan(leaf, "there</v></call>") == "</call>"
    assert "".join(pieces) == "already there"
    leaf, pieces = raw_text(newline=False, before="\nalready\n")
    scan(leaf, "\n</v></call>")
    assert "".join(pieces) == "\nalready\n\n"


@pytest.mark.parametrize("end", ["\n</v></call>", "</v></call>"])
@pytest.mark.parametrize("plain", ["plain", "<b> & </b>", "\nline\n", "\nline", "\r\n", "a\r"])
@pytest.mark.parametrize("begin", ["", "a", "a\n", "a\r"])
def test_a_piece_in_which_no_marker_begins_is_passed_on_whole(begin: str, plain: str, end: str) -> None:
    whole, pieces = raw_text()
    assert scan(whole, begin + plain + end) == "</call>"
    value = "".join(pieces)
    leaf, pieces = raw_text()
    leaf.scan(begin, 0, False)
    assert leaf.quick is not None
    assert not leaf.quick(plain)
    assert leaf.quick("a<v")
    leaf.pass_on(plain)
    assert scan(leaf, end) == "</call>"
    assert "".join(pieces) == value


@pytest.mark.parametrize(
    ("nodes", "header", "certain"),
    [
        ((Lit("<parameter="), Key(), Lit(">")), "<parameter=k>", False),
        ((Lit("<arg_key>"), Key(), Lit("</arg_key>"), Lit("<arg_value>")), "<arg_key>k</arg_key>\n<arg_value>", True),
        ((Tag("parameter", role="key"),), '<parameter name="k"', False),
        ((Tag("argument", role="key", attribute="key", open="<|open|>"),), "<|open|>argument key='k'", False),
        ((OneOf(((Lit("<v>"), Key(), Lit("</v>")), (Tag("v", role="key"),))), Lit("!")), "<v>k</v>!", True),
        ((OneOf(((Lit("<v>"), Key(), Lit("</v>")), (Tag("v", role="key"),))),), '<v name="k"', False),
    ],
)
def test_the_header_of_a_parameter_is_recognized_in_pieces(nodes: tuple[Node, ...], header: str, certain: bool) -> None:
    pattern = HeaderPattern(nodes)
    assert pattern.match(f"x{header}y", 1) == ("k", certain, False)
    for end in range(1, len(header)):
        assert pattern.match(header[:end], 0) == ("", False, True)
        assert pattern.is_prefix(header[:end])
        assert pattern.match(header[:end] + "\x00", 0) == ("", False, False)
    assert pattern.match(header.replace("k", "k" * 257), 0)[0] == ""


@pytest.mark.parametrize("follow", ["</call></block>", "</block><call>", "</call><call>"])
def test_a_closing_marker_behind_another_call_does_not_end_the_value_without_its_own(follow: str) -> None:
    leaf, _ = raw_text()
    scan(leaf, f"a<call>b{follow}")
    assert (leaf.done, leaf.error) == (False, "another call is inside the value of a parameter")


def test_a_text_that_is_cut_behind_a_call_in_a_value_is_cut_inside_the_value() -> None:
    leaf, _ = raw_text(unwrapped=True)
    scan(leaf, "a<call>b</call>")
    assert (leaf.done, leaf.error) == (False, "")

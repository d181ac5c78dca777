"""Leaf scanners: limits are exact, and text may arrive in any pieces."""

from __future__ import annotations

import re
from typing import Any

import pytest

from toolwire.wire.leaf_scanners import (
    CDATA,
    NAME_LIMIT,
    SPACE_LIMIT,
    Leaf,
    NextMarker,
    RawText,
    RemainingText,
    TextUpToMarker,
    ValueEnd,
    Word,
    WordUpToMarker,
)
from toolwire.wire.marker_sets import MarkerSet


def scan(leaf: Leaf, text: str, size: int = 0) -> str:
    """Scan a text, in pieces of a size (0: at once); return what the leaf leaves unread."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)] if size and text else [text]
    unread = ""
    for number, piece in enumerate(pieces):
        unread += piece
        if leaf.done or leaf.error:
            continue
        unread = unread[leaf.scan(unread, 0, False) :]
        if number == len(pieces) - 1 and not leaf.done and not leaf.error:
            unread = unread[leaf.scan(unread, 0, True) :]
    return unread


SIZES = pytest.mark.parametrize("size", [0, 1, 3, 100])


@SIZES
@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("  get_weather(", "get_weather", "("),
        ("\n\tf=1", "f", "=1"),
        ("a b", "a", " b"),
        ("a<b", "a", "<b"),
        ("f", "f", ""),
        ("", "", ""),
        ("  ", "", ""),
        ("<f", "", "<f"),
        ("x" * NAME_LIMIT + "(", "x" * NAME_LIMIT, "("),
    ],
)
def test_a_name_ends_at_a_character_that_no_name_has(text: str, name: str, rest: str, size: int) -> None:
    word = Word()
    assert scan(word, text, size) == rest
    assert (word.value, word.done, word.error) == (name, True, "")
    assert word.cut == (not rest)


@SIZES
def test_a_phrase_contains_blanks_inside_and_none_at_its_ends(size: int) -> None:
    phrase = Word(phrase=True)
    assert scan(phrase, "  get the weather  <x", size) == "<x"
    assert phrase.value == "get the weather"


@SIZES
@pytest.mark.parametrize("leaf", [Word, lambda: Word(phrase=True), lambda: WordUpToMarker(MarkerSet(frozenset({"("})))])
def test_a_name_of_more_than_the_limit_is_an_error_and_reads_no_further(leaf: Any, size: int) -> None:
    name = leaf()
    rest = scan(name, "x" * (NAME_LIMIT + 50) + "(", size)
    assert name.error == "a name of more than 256 characters"
    assert not name.done
    assert rest == "x" * 49 + "("


@SIZES
@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("get weather<|sep|>x", "get weather", "<|sep|>x"),
        (" f <|sep|>\n", "f", "<|sep|>\n"),
        ("<|sep|>x", "", "<|sep|>x"),
        ("a<|b<|sep|>", "a<|b", "<|sep|>"),
        ("x" * NAME_LIMIT + "<|sep|>", "x" * NAME_LIMIT, "<|sep|>"),
    ],
)
def test_a_name_ends_at_a_marker(text: str, name: str, rest: str, size: int) -> None:
    word = WordUpToMarker(MarkerSet(frozenset({"<|sep|>"})))
    assert scan(word, text, size) == rest
    assert (word.value, word.done, word.error, word.cut) == (name, True, "", False)


@SIZES
def test_a_name_up_to_a_marker_ends_at_its_line(size: int) -> None:
    for text in ("name\n<|sep|>", "\n<|sep|>", "x" * 100 + "\n"):
        word = WordUpToMarker(MarkerSet(frozenset({"<|sep|>"})))
        rest = scan(word, text, size)
        assert word.error == "a name ends at its line", text
        assert rest == text[text.index("\n") :]
    word = WordUpToMarker(MarkerSet(frozenset({"<|sep|>"})))
    scan(word, "name", size)
    assert (word.done, word.cut, word.error) == (True, True, "")


@SIZES
@pytest.mark.parametrize(
    ("text", "marker", "cut", "rest"),
    [
        (" \n</a>x", "</a>", False, "x"),
        ("</ab>x", "</ab>", False, "x"),
        ("x</a>", "", False, "x</a>"),
        ("</", "", True, "</"),
        ("</x", "", False, "</x"),
        ("  ", "", True, ""),
    ],
)
def test_the_next_marker_may_follow_white_space(text: str, marker: str, cut: bool, rest: str, size: int) -> None:
    leaf = NextMarker(MarkerSet(frozenset({"</a>", "</ab>"})))
    assert scan(leaf, text, size) == rest
    assert (leaf.value, leaf.done, leaf.cut) == (marker, True, cut)


def test_the_next_marker_can_stay_unread_or_have_to_come_at_once() -> None:
    markers = MarkerSet(frozenset({"</a>"}))
    assert scan(NextMarker(markers, consume=False), " </a>") == "</a>"
    at_once = NextMarker(markers, skip_space=False)
    assert scan(at_once, " </a>") == " </a>"
    assert at_once.value == ""


def raw_text(*, newline: bool = True, line_start: bool = False, before: str = "") -> tuple[RawText, list[str]]:
    pieces: list[str] = []
    rules = ValueEnd(
        close="</v>",
        stops=MarkerSet(frozenset({"</v>", "<v ", CDATA})),
        follow=MarkerSet(frozenset({"<v ", "</call>"})),
        newline=newline,
        line_start=line_start,
        special=re.compile("<").search,
    )
    return RawText(rules, pieces.append, before), pieces


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


@pytest.mark.parametrize(("line_start", "missing"), [(False, True), (True, False)])
def test_an_opener_inside_a_line_stands_in_for_the_closing_marker_unless_it_needs_a_line(
    line_start: bool, missing: bool
) -> None:
    leaf, _ = raw_text(line_start=line_start)
    scan(leaf, "see <v x")
    assert leaf.missing is missing
    leaf, pieces = raw_text(line_start=True)
    assert scan(leaf, "see <v x\n<v b") == "<v b"
    assert leaf.missing
    assert "".join(pieces) == "see <v x"


@pytest.mark.parametrize(("blanks", "counts"), [(SPACE_LIMIT, True), (SPACE_LIMIT + 1, False)])
@pytest.mark.parametrize("size", [0, 100])
def test_a_closing_marker_counts_only_if_what_follows_is_near(blanks: int, counts: bool, size: int) -> None:
    leaf, pieces = raw_text()
    scan(leaf, "x</v>" + " " * blanks + "</call>", size)
    assert leaf.done is counts
    assert "".join(pieces) == ("x" if counts else "x</v>" + " " * blanks + "</call>")


def test_a_value_goes_on_from_text_that_was_read_before() -> None:
    leaf, pieces = raw_text(before="\nalready ")
    assert scan(leaf, "there</v></call>") == "</call>"
    assert "".join(pieces) == "already there"
    leaf, pieces = raw_text(newline=False, before="\nalready\n")
    scan(leaf, "\n</v></call>")
    assert "".join(pieces) == "\nalready\n\n"


def test_a_piece_without_special_characters_is_passed_on_whole() -> None:
    leaf, pieces = raw_text()
    leaf.scan("a\n", 0, False)
    assert leaf.quick is not None
    assert not leaf.quick("plain")
    leaf.pass_on("plain")
    assert scan(leaf, "\n</v></call>") == "</call>"
    assert "".join(pieces) == "a\nplain"


@SIZES
def test_text_up_to_a_marker_leaves_the_marker_unread(size: int) -> None:
    pieces: list[str] = []
    leaf = TextUpToMarker(MarkerSet(frozenset({"<tool>"})), pieces.append)
    assert scan(leaf, "a <to b <tool>x", size) == "<tool>x"
    assert leaf.done
    assert "".join(pieces) == "a <to b "
    leaf.pass_on("more")
    assert pieces[-1] == "more"


def test_the_remaining_text_ends_with_the_text() -> None:
    leaf = RemainingText()
    assert leaf.scan("abc", 1, False) == 3
    assert not leaf.done
    assert leaf.scan("abc", 0, True) == 3
    assert leaf.done

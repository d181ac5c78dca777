"""Leaf scanners: limits are exact, and text may arrive in any pieces."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.wire.leaf_scanners import (
    NAME_LIMIT,
    Leaf,
    NextMarker,
    RemainingText,
    TextUpToMarker,
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

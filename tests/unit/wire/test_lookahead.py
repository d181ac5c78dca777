"""Openers that other text contains too: what follows decides, or more text is needed."""

from __future__ import annotations

import pytest

from toolwire.wire.leaf_scanners import NAME_LIMIT
from toolwire.wire.lookahead import KnownTags, NextCharacter, known_tags, next_character


@pytest.mark.parametrize(
    ("text", "final", "blank", "opens"),
    [
        ("<{", False, False, True),
        ("< {", False, False, True),
        ("<\n", False, False, True),
        ("<x", False, False, False),
        ("<", False, False, None),
        ("<", True, False, False),
        ("<x", False, True, True),
        ("<", False, True, True),
    ],
)
def test_a_character_has_to_follow_except_at_the_start(text: str, final: bool, blank: bool, opens: bool | None) -> None:
    lookahead = NextCharacter("{[")
    assert lookahead.opens(text, 0, 1, final=final, blank=blank, before="") is opens
    assert not lookahead.is_prefix(text)


TAGS = KnownTags(["read", "read_file", "ls", "no tool"])


@pytest.mark.parametrize(
    ("text", "final", "opens"),
    [
        ("<read>", False, True),
        ("<read/>", False, True),
        ("<read a='b'>", False, True),
        ("<read\n>", False, True),
        ("<read_file>", False, True),
        ("<reads>", False, False),
        ("<Read>", False, False),
        ("<read)", False, False),
        ("<no tool>", False, False),
        ("<>", False, False),
        ("< read>", False, False),
        ("<read", False, None),
        ("<rea", False, None),
        ("<", False, None),
        ("<read_file", False, None),
        ("<read_files", False, False),
        ("<x", False, False),
        ("<read", True, False),
        ("<rea", True, False),
        ("<" + "l" * (NAME_LIMIT + 5), False, False),
    ],
)
def test_the_name_of_a_known_tool_has_to_follow(text: str, final: bool, opens: bool | None) -> None:
    for blank in (False, True):
        assert TAGS.opens(text, 0, 1, final=final, blank=blank, before=" ") is opens
        assert TAGS.opens(f"a{text}", 1, 2, final=final, blank=blank, before="a") is opens
        assert TAGS.opens(text, 0, 1, final=final, blank=blank, before="`") is False


def test_a_name_may_be_as_long_as_names_are() -> None:
    for size, opens in ((NAME_LIMIT, True), (NAME_LIMIT + 1, True), (NAME_LIMIT + 2, False)):
        name = "n" * size
        assert KnownTags([name]).opens(f"<{name}>", 0, 1, final=False, blank=False, before="") is opens


@pytest.mark.parametrize(
    ("text", "prefix"),
    [("<", True), ("<r", True), ("<read", True), ("<read_file", True), ("<l", True), ("<x", False), ("r", False)],
)
def test_the_beginning_of_a_known_name_waits(text: str, prefix: bool) -> None:
    assert TAGS.is_prefix(text) is prefix


def test_parameters_that_are_called_like_tools_are_left_out() -> None:
    assert TAGS.without(["path"]) is TAGS
    without = TAGS.without(["read", "path"])
    assert without.opens("<read>", 0, 1, final=False, blank=False, before="") is False
    assert without.opens("<ls>", 0, 1, final=False, blank=False, before="") is True
    assert not KnownTags([]).is_prefix("<a")


def test_lookaheads_are_made_once_for_the_same_names() -> None:
    assert next_character(("ab", "cd")) is next_character(("ab", "cd"))
    assert [next_character(("ab", "cd")).opens(f"<{c}", 0, 1, final=False, blank=False, before="") for c in "acb"] == [
        True,
        True,
        False,
    ]
    assert known_tags(("ab",)) is known_tags(("ab",))
    assert known_tags(("ab",)).opens("<ab>", 0, 1, final=False, blank=False, before="")

"""Untrusted text is made safe to show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.text.escape import (
    escape_as_json,
    escape_invisible,
    escape_lookalikes,
    is_invisible,
    replace_surrogates,
    strip_invisible,
)

CONTROLS = "\x00\x1b\x7f\x9b\r\u200b\u202e\u2066\ufeff\U000e0041"


def test_invisible_characters_are_escaped_or_stripped() -> None:
    assert escape_invisible(f"a{CONTROLS}b").isprintable()
    assert escape_invisible("a\tb\n\x1b", "\t\n") == "a\tb\n\\x1b"
    assert strip_invisible(f"a{CONTROLS}b\t\u2028c") == "ab\t\nc"
    assert all(map(is_invisible, CONTROLS))
    assert not any(map(is_invisible, "aé中🙂 "))


def test_letters_that_pose_as_latin_ones_are_escaped() -> None:
    assert escape_lookalikes("p\u0430ypal привет") == "p\\u0430ypal привет"
    assert escape_lookalikes("line\nend\x1b") == "line\nend\\x1b"


@given(st.text())
def test_json_escapes_are_printable(text: str) -> None:
    assert escape_as_json(text).isprintable()


@pytest.mark.parametrize(("text", "clean"), [
    ("plain é", "plain é"),
    ("a\ud83d", "a\ufffd"),
    ("\udc80b", "\ufffdb"),
    ("\ud83d\ude00", "😀"),
])  # fmt: skip
def test_lone_surrogates_are_replaced_and_pairs_joined(text: str, clean: str) -> None:
    assert replace_surrogates(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        *(
            "\ua731udo rm",
            "rm \u2212rf /",
            "cat \u2215etc\u2215passwd",
            "examp\u029fe.com",
            "\u2013rf",
            "\u2014force x",
        ),
        *("a\u2236b", "ls \u2223 sh", "\u217bi", "p\u0131ng", "\u017fudo", "ba\u0455h", "\U0001d42cudo", "\uff53udo"),
        *(
            "echo \u02cbid\u02cb",
            "x \u037e rm",
            "a\u2024b",
            "c\u2044d",
            "\u0261it",
            "\u02e2udo",
            "g\u13a5t",
            "\u2c7fit\u0501",
        ),
    ],
)
def test_what_passes_for_ascii_is_an_escape(text: str) -> None:
    shown = escape_lookalikes(text)
    assert "\\u" in shown.lower() or "\\x" in shown
    assert shown != text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay 5\u041e\u041e", "pay 5\\u041e\\u041e"),
        ("id=1\u0417", "id=1\\u0417"),
        ("rm -\u0430", "rm -\\u0430"),
        ("System3\u01a7", "System3\\u01a7"),
        ("C\u16ec\\x", "C\\u16ec\\x"),
        ("\u2053/.ssh", "\\u2053/.ssh"),
        ("https:\u2afdexample.com", "https:\\u2afdexample.com"),
        ("git push -\u2013force", "git push -\\u2013force"),
        ("id\u2e4010", "id\\u2e4010"),
        ("x \u2e40 y", "x \u2e40 y"),
        ("cat /home/\u0440\u0430\u0443", "cat /home/\\u0440\\u0430\\u0443"),
        ("scp \u0425 \u039f \u0585", "scp \\u0425 \\u039f \\u0585"),
        ("\u0441\u043e \u0432\u0441\u0435\u043c \u039f", "\u0441\u043e \u0432\u0441\u0435\u043c \\u039f"),
    ],
)
def test_characters_that_pass_for_ascii_beside_others_are_escaped(text: str, shown: str) -> None:
    assert escape_lookalikes(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "\u0414\u0430/\u041d\u0435\u0442, \u0438/\u0438\u043b\u0438",
        "\u0928\u092e\u0903, \u0926\u0941\u0903\u0916",
        "\u30ab\u30bf\u30ce, \u30ce\u30fc\u30c8PC",
        *(
            "na\xefve caf\xe9, stra\xdfe, \u0142\xf3d\u017a, \xe6\xf8\xe5, \u0130stanbul",
            "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440",
            "\u6771\u4eac Tokyo",
            "T\u30b7\u30e3\u30c4",
        ),
        *(
            "2019\u20132024 \u2014 a range, it\u2019s \u201cso\u201d \u2026",
            "x\xb2 + \xbd",
            "\u2022 item \xb7 other",
            "\u2502 a \u2500",
            "API\u0e02\u0e2d\u0e07",
        ),
        *("\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5", "\u2192 next \u2713", "\U0001f600 ok", "price: 5\u20ac"),
    ],
)
def test_ordinary_text_of_other_languages_stays(text: str) -> None:
    assert escape_lookalikes(text) == text

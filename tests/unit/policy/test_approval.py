"""What somebody is asked is shown whole or says what is not shown; nothing in a call can pass for what is ours."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from toolwire import Tier, ToolCall, ToolDefinition
from toolwire.policy.approval import FIELD_LIMIT, LEAVES, LIMIT, Approval, left_out, present
from toolwire.policy.approval_view import ApprovalView, fold
from toolwire.text.escape import escape_lookalikes

TOOL = ToolDefinition("send", tier=Tier.RUN, server="mail")


def approval(arguments: dict[str, Any], *, preview: str = "", reason: str = "A rule asks.") -> Approval:
    return Approval(ToolCall("send", arguments), TOOL, reason, preview)


def test_a_whole_view() -> None:
    asked = approval({"to": ["a", "b"], "amount": 5, "note": "one\ntwo", "none": None, "empty": ""}, preview="- a\n+ b")
    assert present(asked) == "\n".join(
        [
            "tool    send (RUN)",
            "server  mail",
            "why     A rule asks.",
            "value   to/0",
            "  | a",
            "value   to/1",
            "  | b",
            "value   amount (number)",
            "  | 5",
            "value   note",
            "  | one",
            "  | two",
            "value   none (null)",
            "  | null",
            "value   empty",
            "  (empty)",
            "what it would do",
            "  | - a",
            "  | + b",
            f"all     send; values: 6, characters: 14; {asked.key[:12]}",
        ]
    )
    assert left_out(asked) == 0


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\ntext", "plain\ntext"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\tb\rc", r"a\tb\rc"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("a\u200bb\ufeffc\u2060", r"a\u200bb\ufeffc\u2060"),
        ("a\u00adb", r"a\xadb"),
        ("x\u00a0y\u3000z", r"x\xa0y\u3000z"),
        ("\U000e0041", r"\U000e0041"),
        ("ok\ufe0f", r"ok\ufe0f"),
        ("\u3164\u2800", r"\u3164\u2800"),
        ("\ud800", r"\ud800"),
        ("p\u0430ypal", r"p\u0430ypal"),
        ("\uff52\uff4d", r"\uff52\uff4d"),
        ("\U0001d42b\U0001d426", r"\U0001d42b\U0001d426"),
        ("https://\u0430\u0440\u0440.com", r"https://\u0430\u0440\u0440.com"),
        ("привет Straße 使用Python naïve", "привет Straße 使用Python naïve"),
        ("e\u0301\u0301\u0301", "e\u0301\u0301" + r"\u0301"),
        ("\u0085\u2028", r"\x85\u2028"),
    ],
)
def test_what_cannot_be_seen_or_poses_is_escaped(text: str, seen: str) -> None:
    assert escape_lookalikes(text) == seen


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls" + " " * 500 + "; rm", "ls[500 spaces]; rm"),
        ("ls" + "\n" * 500 + "rm", "ls[500 line ends]\nrm"),
        ("ls" + " \n\t" * 50 + "rm", "ls[50 spaces, 50 line ends, 50 tabs]\nrm"),
        ("a" * 500 + "!", "a[500 times]!"),
        ("#\n" * 500 + "rm\n" + "#\n" * 500, "#\n[this line 500 times]\nrm\n#\n[this line 500 times]\n"),
        ("a\n\nb", "a\n\nb"),
        ("    indented", "    indented"),
    ],
)
def test_padding_is_folded(text: str, shown: str) -> None:
    assert ApprovalView.of(text, LIMIT).start == shown


def test_long_text_is_shown_at_both_ends_and_says_how_much_is_not() -> None:
    text = "begin " + "".join(f"{number} " for number in range(200_000)) + "end"
    asked = approval({"body": text})
    view = present(asked)
    assert "begin 0 1 2" in view
    assert "199998 199999 end" in view.replace("\n  | ", "")
    assert f"({left_out(asked)} characters are left out here: nothing of them is shown)" in view
    assert left_out(asked) == len(text) - LIMIT * 2 // 3 - LIMIT // 3
    assert len(view) < 3 * LIMIT
    assert "100000 100001" in present(asked, whole=True).replace("\n  | ", "")


def test_many_values_are_shown_at_both_ends_too() -> None:
    asked = approval({f"k{number}": "value" for number in range(1000)})
    view = present(asked)
    assert "value   k0\n" in view
    assert "value   k999\n" in view
    assert f"({1000 - LEAVES} values are left out here: nothing of them is shown)" in view
    unseen = range(LEAVES // 2, 1000 - LEAVES // 2)
    assert left_out(asked) == sum(len(f"k{number}value") for number in unseen)
    assert "value   k500\n" in present(asked, whole=True)


def test_keys_are_text_of_the_call() -> None:
    key = "PATH " + "".join(f"{number} " for number in range(500)) + "; LD_PRELOAD=/tmp/evil.so" + "7 8 9 " * 300
    asked = approval({"vars": {key: "1"}})
    assert left_out(asked) > 0
    assert f"({left_out(asked)} characters are left out here" in present(asked)
    assert "LD_PRELOAD" in present(asked, whole=True).replace("\n  | ", "")
    short = present(approval({"vars": {"a key (number)": "1"}}))
    assert 'value   at this key\n  | "vars"/"a key (number)"\n        is\n  | 1\n' in short


@pytest.mark.parametrize("value", ["", [], None])
def test_a_key_without_a_value_is_left_out_too(value: Any) -> None:
    assert left_out(approval({f"k{number}": value for number in range(LEAVES + 1)})) > 0
    assert left_out(approval({"k": [""] * (LEAVES + 1)})) > 0


def test_two_keys_never_look_alike() -> None:
    calls: list[dict[str, Any]] = [
        *({"rm  -rf": "1"}, {"rm\n-rf": "1"}, {"rm -rf": "1"}, {"rm\\n-rf": "1"}, {"rm\t-rf": "1"}),
        *({"a": {"b": "1"}}, {"a/b": "1"}, {'a"/"b': "1"}, {"a": {"0": "1"}}, {"a": ["1"]}, {"a/0": "1"}),
    ]
    views = {present(approval(call)).rpartition("\n")[0] for call in calls}
    assert len(views) == len(calls)


def test_paths_take_no_more_than_the_call() -> None:
    asked = approval({"x": {"K" * 20_000: list(range(5_000))}})
    tracemalloc.start()
    try:
        present(asked)
        left_out(asked)
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()


def test_what_stands_in_a_call_cannot_pass_for_a_line_of_ours() -> None:
    fake = "x\nwhy     The user approved this before.\nall     send"
    shown = present(approval({fake: {fake: fake}}, preview=fake, reason=fake))
    ours = [line for line in shown.splitlines() if not line.startswith("  ")]
    assert [line.split()[0] for line in ours] == ["tool", "server", "why", "value", "what", "all"]


@pytest.mark.parametrize("more", [0, 1])
def test_a_short_line_is_whole_or_says_that_it_is_not(more: int) -> None:
    reason = "x" * (FIELD_LIMIT + more)
    shown = "".join(line[8:] for line in present(approval({}, reason=reason), 80).splitlines())
    assert (reason in shown, "\u2026" in shown) == (True, bool(more))


def test_no_part_of_the_view_poses_as_another_text() -> None:
    pose, shown = "p\u0430ypal\u202e", r"p\u0430ypal\u202e"
    tool = ToolDefinition("send", tier=Tier.RUN, server=pose)
    view = present(Approval(ToolCall("send", {pose: pose, "plain": pose}), tool, pose, pose))
    assert "\u0430" not in view
    assert "\u202e" not in view
    assert view.count(shown) == len(["server", "why", "key", "value", "value", "preview"])


arguments = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.one_of(st.text(max_size=200), st.integers(), st.booleans(), st.none()),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    ),
    max_size=4,
)


@given(arguments, st.text(max_size=300), st.integers(10, 200))
def test_every_line_fits_and_shows_only_what_can_be_seen(given: dict[str, Any], preview: str, width: int) -> None:
    for line in present(approval(given, preview=preview), width).split("\n"):
        assert line.isprintable()
        assert cell_len(line) <= max(width, 30)


padded = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.sampled_from([" " * 40, "\n" * 40, "=" * 40, "same\n" * 9, " \t\n" * 9, "rm -rf /"]),
    ),
    max_size=12,
).map("".join)


@given(padded, st.integers(1, 60))
def test_every_character_is_counted(text: str, limit: int) -> None:
    assert sum(count for _, count in fold(text)) == len(text)
    view = ApprovalView.of(text, limit)
    assert 0 <= view.hidden <= len(text)
    if not view.hidden:
        assert not view.end or text


def test_a_megabyte_of_anything_takes_little_room() -> None:
    for text in ("x" * 2**20, "ab" * 2**19, " \n" * 2**19, "line\n" * 200_000, "\x1b[8m" * 2**18):
        assert len(present(approval({"body": text}))) < 10_000

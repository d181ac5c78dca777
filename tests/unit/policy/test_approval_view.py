"""Text that somebody sees before approving a call: what is left out is counted, and padding hides nothing."""

from __future__ import annotations

import re

import pytest

from toolwire import Tier, ToolCall, ToolDefinition
from toolwire.policy.approval import DEEPEST, LEAVES, LIMIT, Approval, left_out, present
from toolwire.policy.approval_view import (
    MAX_INDENTATION,
    MAX_LINE,
    MAX_LINES,
    MAX_TEXT,
    MIN_RUN,
    ApprovalView,
    fold,
    show_lines,
)


def different(count: int, width: int = 1) -> list[str]:
    return [f"+{number:0{width}}" for number in range(count)]


def test_as_many_lines_as_fit_are_shown_whole() -> None:
    lines = different(MAX_LINES)
    assert show_lines(lines).split("\n") == lines
    assert show_lines([]) == ""


def test_of_too_many_lines_both_ends_are_shown_and_the_rest_is_counted() -> None:
    lines = different(MAX_LINES + 10, width=4)
    notice, *shown = show_lines(lines).split("\n")
    assert notice == f"(NOT ALL OF THIS IS SHOWN: {10 * 6} characters are left out)"
    assert shown == [*lines[:500], "(10 lines are left out here)", *lines[510:]]


def test_lines_are_shown_up_to_the_maximum_of_characters() -> None:
    width = 597
    lines = ["+" + ("ab" * 300)[: width - 4] + f"{number:03}" for number in range(MAX_TEXT // (width + 3) + 1)]
    whole = [f"{line}xx" for line in lines[:-1]]  # 600 characters each, with the line end
    assert sum(len(line) + 1 for line in whole) == MAX_TEXT
    assert show_lines(whole).split("\n") == whole
    view = show_lines([*whole, "+y"])
    assert view.startswith("(NOT ALL OF THIS IS SHOWN: 600 characters are left out)")
    assert "(1 lines are left out here)" in view


def test_lines_that_are_alike_are_shown_thrice_and_counted() -> None:
    assert show_lines(["+x"] * 3) == "+x\n+x\n+x"
    assert show_lines(["+x"] * 4) == "+x\n+x\n+x\n(1 more lines like this one)"
    assert show_lines(["+", "+ ", "+\t", "+  ", "-"]) == "+\n+ \n+\t\n(1 more lines that are blank)\n-"
    assert show_lines(["+a", "-a", "+a"]) == "+a\n-a\n+a"


def test_a_long_line_is_cut_in_its_middle_and_counted() -> None:
    line = "+" + "".join(f"{number} " for number in range(1000))
    view = show_lines([line])
    left = int(re.findall(r"\((\d+) characters are left out\) ", view.replace(",", ""))[0])
    assert view.startswith(f"(NOT ALL OF THIS IS SHOWN: {left:,} characters are left out)\n+0 1 2 ")
    assert view.endswith("998 999 ")
    assert left == len(line) - 1 - MAX_LINE * 2 // 3 - MAX_LINE // 3


@pytest.mark.parametrize(("blanks", "folded"), [(MAX_INDENTATION, False), (MAX_INDENTATION + 1, True)])
def test_an_indentation_of_the_usual_depth_is_not_folded(blanks: int, folded: bool) -> None:
    assert MAX_INDENTATION == 40
    line = "+" + " " * blanks + "x"
    assert show_lines([line]) == (f"+[{blanks} spaces]x" if folded else line)


def test_invisible_characters_are_escaped_and_the_head_comes_first() -> None:
    assert show_lines(["+a\u200bb\tc"], head=["file\x1b"]) == "file\\x1b\n+a\\u200bb\tc"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a" * (MIN_RUN - 1) + "!", "a" * (MIN_RUN - 1) + "!"),
        ("a" * MIN_RUN + "!", f"a[{MIN_RUN} times]!"),
        ("a" + "\r" * 12 + "b", "a[12 carriage returns]b"),
        ("a" + "\t" * 12 + "b", "a[12 tabs]b"),
        ("a\n\n\nb", "a[3 line ends]\nb"),
        ("a" + "\u00a0" * 12 + "b", "a[12 \\xa0]b"),
        ("x\nx\ny", "x\nx\ny"),
        ("x\nx\nx\ny", "x\n[this line 3 times]\ny"),
        ("w\nx\nx\nx", "w\nx\n[this line 3 times]"),
        ("", ""),
    ],
)
def test_runs_are_folded_with_their_length(text: str, shown: str) -> None:
    assert "".join(part for part, _ in fold(text)) == shown
    assert ApprovalView.of(text, None) == ApprovalView(shown)
    assert sum(count for _, count in fold(text)) == len(text)
    assert all(part for part, _ in fold(text))


def test_text_of_exactly_the_limit_is_shown_whole() -> None:
    text = "".join(f"{number} " for number in range(30))[:60]
    assert ApprovalView.of(text, 60) == ApprovalView(text)
    assert ApprovalView.of(text, 59) == ApprovalView(text[:39], 2, text[-19:])
    assert ApprovalView.of(text, None).start == text


def test_a_folded_run_is_shown_whole_or_not_at_all() -> None:
    view = ApprovalView.of("begin " + "=" * 500 + " end of it " + "-" * 500 + "abc", 27)
    assert view == ApprovalView("begin =[500 times]", 511, "abc")


def approval(arguments: dict[str, object]) -> Approval:
    return Approval(ToolCall("send", arguments), ToolDefinition("send", tier=Tier.RUN), "A rule asks.")


def test_as_many_values_as_fit_are_shown_and_of_more_the_middle_is_left_out() -> None:
    values = {f"k{number}": f"v{number}" for number in range(LEAVES)}
    assert "left out" not in present(approval(values))
    assert left_out(approval(values)) == 0
    more = {**values, "last": "value"}
    view = present(approval(more))
    middle = LEAVES // 2
    assert "(1 values are left out here: nothing of them is shown)" in view
    assert f"value   k{middle - 1}\n" in view
    assert f"value   k{middle}\n" not in view
    assert f"value   k{middle + 1}\n" in view
    assert "value   last\n" in view
    assert left_out(approval(more)) == len(f"k{middle}" + f"v{middle}")
    assert f"value   k{middle}\n" in present(approval(more), whole=True)


def test_a_path_is_plain_up_to_a_depth_and_quoted_below_it() -> None:
    value: object = "x"
    for _ in range(DEEPEST - 1):
        value = {"a": value}
    assert DEEPEST == 6
    assert f"value   {'/'.join('a' * DEEPEST)}\n" in present(approval({"a": value}))
    assert 'value   at this key\n  | "a"/' in present(approval({"a": {"a": value}}))


@pytest.mark.parametrize("key", ["two words", "a/b", "7", "", "ab" * 31, "é"])
def test_a_key_that_is_not_a_plain_name_is_quoted(key: str) -> None:
    assert f'value   at this key\n  | "{key}"\n' in present(approval({key: "x"})).replace("\\xe9", "é")


def test_kinds_of_values_that_are_not_text_are_named() -> None:
    view = present(approval({"a": True, "b": 1, "c": 1.5, "d": {}, "e": [], "f": None}))
    for line in ("a (boolean)", "b (number)", "c (number)", "d (object)", "e (array)", "f (null)"):
        assert f"value   {line}\n" in view


def test_something_else_than_an_approval_is_refused() -> None:
    with pytest.raises(TypeError, match="approval must be an Approval"):
        present("send")  # type: ignore[arg-type]


def test_a_reason_of_the_maximum_length_is_not_marked_as_cut() -> None:
    from toolwire.policy.approval import FIELD_LIMIT

    def reason(length: int) -> str:
        call, tool = ToolCall("send"), ToolDefinition("send", tier=Tier.RUN)
        return present(Approval(call, tool, "x" * length), width=10_000)

    assert "…" not in reason(FIELD_LIMIT)
    assert "…" in reason(FIELD_LIMIT + 1)


def test_a_long_value_says_what_is_hidden_between_its_ends() -> None:
    text = "".join(f"{number} " for number in range(LIMIT))
    view = present(approval({"body": text}))
    assert f"({left_out(approval({'body': text}))} characters are left out here: nothing of them is shown)" in view
    assert left_out(approval({"body": text})) == len(text) - LIMIT * 2 // 3 - LIMIT // 3


@pytest.mark.parametrize(
    ("long", "literal"),
    [
        ("z" * 2000, "z[2000 times]"),
        ("a" + " " * 30 + "b", "a[30 spaces]b"),
        ("a" + "\t" * 30 + "b", "a[30 tabs]b"),
        ("same\n" * 4, "same\n[this line 4 times]\n"),
    ],
)
def test_text_that_looks_like_a_count_is_not_shown_like_one(long: str, literal: str) -> None:
    folded, shown = (ApprovalView.of(text, None).start for text in (long, literal))
    assert folded != shown
    assert "\\[" in shown
    assert "\\[" not in folded

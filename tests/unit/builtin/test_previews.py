"""What somebody sees before agreeing: everything, or that something is missing."""

import random
import re

import pytest

from toolwire.builtin import previews
from toolwire.builtin.previews import command, diff
from toolwire.errors import ToolError
from toolwire.policy.approval_view import MAX_TEXT, show_lines
from toolwire.text.escape import escape_invisible


def test_invisible_characters_are_escaped() -> None:
    assert escape_invisible("a\x1b]0;x\x07\u202eb\u200b é 中") == "a\\x1b]0;x\\x07\\u202eb\\u200b é 中"
    assert escape_invisible("\u3164\u115f\u2800\ufe0f\U000e0100\u034f\u00a0") == (
        "\\u3164\\u115f\\u2800\\ufe0f\\U000e0100\\u034f\\xa0"
    )


def test_a_diff_is_unified() -> None:
    old = "".join(f"{number}\n" for number in range(20))
    new = old.replace("3\n", "three\n", 1).replace("19\n", "19")
    assert diff("a/b.txt", old, new) == "\n".join(
        [
            "--- a/b.txt",
            "+++ a/b.txt",
            *("@@ -1,7 +1,7 @@", " 0", " 1", " 2", "-3", "+three", " 4", " 5", " 6"),
            *("@@ -17,4 +17,4 @@", " 16", " 17", " 18", "-19", "+19", "(no newline at the end)"),
        ]
    )
    assert diff("x", None, "a\n") == "--- (no such file)\n+++ x\n@@ -0,0 +1,1 @@\n+a"
    assert diff("x", "a\n", "") == "--- x\n+++ x\n@@ -1,1 +0,0 @@\n-a"
    assert diff("x", "a", "a") == "--- x\n+++ x\n(nothing changes)"
    assert "(nothing changes)" not in diff("x", None, "")
    assert diff("x", "a\r\nb\n", "a\nb\n") == "--- x\n+++ x\n@@ -1,2 +1,2 @@\n-a\\r\n+a\n b"


def test_diffs_apply_to_the_old_text() -> None:
    draw = random.Random(3)
    for _ in range(500):
        old = "".join(f"{draw.randint(0, 9)}\n" for _ in range(draw.randint(0, 30)))
        new = "".join(
            draw.choice((line, line, line, line, f"x{draw.randint(0, 99)}\n", ""))
            for line in old.splitlines(keepends=True)
        )
        if old != new:
            shown = diff("x", old, new)
            assert _patched(old.split("\n")[:-1], shown.split("\n")[2:]) == new.split("\n")[:-1]


def _patched(lines: list[str], hunks: list[str]) -> list[str]:
    """Lines as a unified diff changes them; each hunk has to stand where it says, and be as long as it says."""
    made, done, at = list[str](), 0, 0
    while at < len(hunks):
        numbers = re.fullmatch(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@", hunks[at])
        assert numbers
        start, count, new_start, new_count = map(int, numbers.groups())
        begin = start - (count > 0)
        made += lines[done:begin]
        assert len(made) == new_start - (new_count > 0)
        body = []
        at += 1
        while at < len(hunks) and not hunks[at].startswith("@@"):
            body.append(hunks[at])
            at += 1
        assert [line[1:] for line in body if line[0] in "- "] == lines[begin : begin + count]
        after = [line[1:] for line in body if line[0] in "+ "]
        assert len(after) == new_count
        made += after
        done = begin + count
    return made + lines[done:]


def test_text_of_a_file_cannot_pass_for_the_preview_itself() -> None:
    content = "(NOT ALL)\n@@ -1 +1 @@\n--- x\n(3 more lines like this one)\n\x1b[2J\x1b[H\r-nothing\n\u202egnp.exe\n"
    shown = diff("p\n+++ q\x1b[2K", None, content)
    lines = shown.split("\n")
    assert lines[:3] == ["--- (no such file)", "+++ p\\n+++ q\\x1b[2K", "@@ -0,0 +1,6 @@"]
    assert all(line.startswith("+") for line in lines[3:])
    assert shown.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "padding",
    ["\n" * 100_000, " " * 1_000_000, "\t" * 100_000, "x\n" * 100_000, ("\n" * 50 + " " * 500) * 200, "\u3164" * 50],
)
def test_padding_pushes_nothing_out_of_sight(padding: str) -> None:
    shown = diff("x", None, f"begin{padding}rm -rf /{padding}end\n")
    assert "rm -rf /" in shown
    assert not shown.startswith("(NOT ALL")
    assert len(shown) < 10_000
    assert len(shown.split("\n")) < 200


def test_the_first_line_says_how_much_is_left_out() -> None:
    lines = "".join(f"line {number}\n" for number in range(100_000))
    shown = diff("x", None, lines)
    assert len(shown) < MAX_TEXT + 500
    first, *rest = shown.split("\n")
    left_out = re.fullmatch(r"\(NOT ALL OF THIS IS SHOWN: ([\d,]+) characters are left out\)", first)
    assert left_out
    (cut,) = re.findall(r"\(([\d,]+) lines are left out here\)", shown)
    assert int(cut.replace(",", "")) == 100_000 + 1 - (len(rest) - 3)
    assert "+line 0" in rest
    assert rest[-1] == "+line 99999"
    long = diff("x", None, f"{'ab' * 500_000}\n")
    assert long.startswith("(NOT ALL OF THIS IS SHOWN: 999,001 characters are left out)\n--- ")
    assert len(long) < 2_000


def test_of_very_many_lines_only_the_ends_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previews, "_MAX_RUN", 3_000)
    monkeypatch.setattr(previews, "_EFFORT", 3_000)
    count = previews._MAX_RUN + 6_000
    old = "".join(f"{number:06}\n" for number in range(count))
    new = "".join(f"{500_000 + number}\n" for number in range(count))
    for shown, marks in ((diff("x", None, old), "+"), (diff("x", old, new), "-+")):
        lines = shown.split("\n")
        first = re.fullmatch(r"\(NOT ALL OF THIS IS SHOWN: ([\d,]+) characters are left out\)", lines[0])
        assert first
        cut = [int(number.replace(",", "")) for number in re.findall(r"\(([\d,]+) lines are left out here\)", shown)]
        whole = [line for line in lines if re.fullmatch(r"[-+][0-9]{6}", line)]
        assert sum(cut) + len(whole) == count * len(marks)
        assert int(first[1].replace(",", "")) == sum(cut) * 8  # a mark, six characters and a line end
        assert lines[4] == f"{marks[0]}000000"
    assert whole[-1] == f"+{500_000 + count - 1}"


def test_equal_lines_beyond_the_limit_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previews, "_MAX_RUN", 3_000)
    shown = diff("x", None, "x\n" * (previews._MAX_RUN + 5) + "end\n")
    assert shown.split("\n")[-1] == "+end"
    assert "(6 lines are left out here)" in shown
    assert shown.startswith("(NOT ALL OF THIS IS SHOWN: 18 characters are left out)")


def test_a_path_is_never_cut() -> None:
    path = "d" * 200 + "/" + "e" * 3_000 + "/important"
    assert f"+++ {path}\n" in diff(path, None, "x\n" * 5_000)


def test_texts_that_differ_everywhere_are_compared_fast() -> None:
    shown = diff("x", "same\n" * 50_000 + "a\n", "b\n" + "same\n" * 50_000)
    assert "+b" in shown
    assert show_lines(["+x"] * 10) == "+x\n+x\n+x\n(7 more lines like this one)"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["git", "log"], '  "git"\n  "log"'),
        (["a b", ""], '  "a b"\n  ""'),
        (['"; rm', "\\n\n\x1b[8m"], '  "\\"; rm"\n  "\\\\n\\n\\x1b[8m"'),
        ([f"a{' ' * 3000}b"], '  "a" + 3,000 spaces + "b"'),
        (["p\u0430ypal"], '  "p\u0430ypal"  (not ASCII: U+0430 CYRILLIC SMALL LETTER A)'),
        (["\u202egnp"], '  "\\u202egnp"'),
        (["\u2800x"], '  "\\u2800x"'),
    ],
)
def test_words_of_a_command_are_quoted(words: list[str], shown: str) -> None:
    assert command(words) == shown


def test_a_command_too_long_to_show_is_refused() -> None:
    for words in (["x" * 10_000], ["x"] * 1_000):
        with pytest.raises(ToolError, match="cannot be shown"):
            command(words)


def test_a_comparison_that_takes_too_long_ends_in_one_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = "".join(f"{block}\n" + f"same {block}\n" * 3 for block in range(100))
    new = "".join(f"new {block}\n" + f"same {block}\n" * 3 for block in range(100))
    whole = previews.diff("f", old, new)
    monkeypatch.setattr(previews, "_EFFORT", 1_000)
    less = previews.diff("f", old, new)
    for shown in (whole, less):
        assert "-99" in shown and "+new 99" in shown
    assert less.count("\n-") > whole.count("\n-")

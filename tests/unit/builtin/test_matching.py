"""Where edits fit: exactly, or by a rule, and in one place."""

import random
from typing import Any

import pytest

from toolwire.builtin import matching
from toolwire.builtin.matching import Edit, applied
from toolwire.errors import ToolError


def edit(text: str, *edits: tuple[str, str]) -> tuple[str, list[str]]:
    return applied("f", text, [Edit(search=search, replace=replace) for search, replace in edits])


@pytest.mark.parametrize(
    ("text", "search", "replace", "expected", "rule"),
    [
        ("a b c", "b", "x", "a x c", ""),
        ("a\nb\nc\n", "b\n", "", "a\nc\n", ""),
        ("a\nb\nc\n", "b", "x\ny", "a\nx\ny\nc\n", ""),
        ("é$1\\1", "$1", "\\g<0>", "é\\g<0>\\1", ""),
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n", ""),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n", ""),
        ("a\r\nb\nc\n", "c", "x\ny", "a\r\nb\nx\ny\n", ""),
        ("a  \nb\t\nc\n", "a\nb", "x", "x\nc\n", "white space at the ends"),
        ("a  \nb\t\nc\n", "a\nb\n", "x\n", "x\nc\n", "white space at the ends"),
        ("a\nb\n", "a \nb ", "x", "x\n", "white space at the ends"),
        ("  def f():\n      x\n", "def f():\n    x", "def g():\n\n    y", "  def g():\n\n      y\n", 'by "  " more'),
        ("\tif a:\n\t\tb\n", "if a:\n\tb", "if c:\n\td", "\tif c:\n\t\td\n", 'by "\\t" more'),
        ("def f():\n  x\n", "    def f():\n      x", "    def g():\n      y", "def g():\n  y\n", 'by "    " less'),
        ("  a\n\n  b", "a\n\nb\n", "c\n", "  c\n", "more"),
        ("a", "a", "", "", ""),
    ],
)
def test_edits_fit_by_the_first_rule(text: str, search: str, replace: str, expected: str, rule: str) -> None:
    got, notes = edit(text, (search, replace))
    assert got == expected
    assert len(notes) == bool(rule)
    assert rule in "".join(notes)


@pytest.mark.parametrize(
    ("text", "search", "replace", "message"),
    [
        ("a\na\n", "a", "x", "fits in several places (lines 1, 2)"),
        ("aaa", "aa", "x", "several places (lines 1)"),
        ("a\n" * 9, "a", "x", "(lines 1, 2, 3, 4, 5 and more)"),
        ("a \nb\na \nb\n", "a\nb", "x", "(lines 1, 3)"),
        ("  a(1)\n      a(1)\n", "\ta(1)", "x", "fits nowhere"),
        ("    a\n  b\n", "a\nb", "x", "fits nowhere"),
        ("abc", "x", "x", "changes nothing"),
        ("abc", "", "x", "no search text"),
        ("one\ntwo\nthree\nfour\n", "thre\nfive", "x", "nearest lines are\n1: one\n2: two\n3: three\n4: four"),
        ("def f(a):\n    return a\n", "def f(b):\n    return b", "x", "1: def f(a):"),
        ("hello world", "hello there", "hello world", "is in the file already"),
        ("x" * 10, "unlike", "y", "nothing in the file is like it"),
        ("", "a", "x", "fits nowhere"),
    ],
)
def test_edits_that_fit_nowhere_or_in_several_places_are_errors(
    text: str, search: str, replace: str, message: str
) -> None:
    with pytest.raises(ToolError) as caught:
        edit(text, (search, replace))
    assert message in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_all_edits_are_applied_or_none() -> None:
    assert edit("a b c", ("c", "3"), ("a", "1"), ("b", "2"))[0] == "1 2 3"
    with pytest.raises(ToolError, match="edit 2 fits nowhere"):
        edit("a b c", ("a", "1"), ("x", "2"))
    with pytest.raises(ToolError, match="edit 2 overlaps"):
        edit("abcdef", ("abc", "1"), ("cde", "2"))
    with pytest.raises(ToolError, match="there is no edit"):
        edit("abc")
    with pytest.raises(ToolError, match="edit 2 fits nowhere"):  # in what the first one wrote
        edit("a b c", ("a", "new"), ("new", "2"))
    with pytest.raises(ToolError, match=r"f was not changed(.|\n)*\(2 more were not tried\)"):
        edit("abc", *((f"no{number}", "x") for number in range(5)))


def test_edges_of_edits_may_touch() -> None:
    assert edit("abcd", ("ab", "1"), ("cd", "2"))[0] == "12"
    assert edit("a\nb\n", ("a\n", ""), ("b\n", ""))[0] == ""


def test_random_unique_lines_are_replaced_exactly() -> None:
    draw = random.Random(5)
    for _ in range(300):
        lines = [f"{draw.choice(('', '  ', chr(9)))}line {number}{draw.choice(('', ' '))}" for number in range(20)]
        at = sorted(draw.sample(range(20), 3))
        text = "\n".join(lines)
        chosen = [(f"{lines[one]}\n" if one < 19 else lines[one]) for one in at]
        got, notes = edit(text, *((old, f"new {one}\n") for one, old in zip(at, chosen, strict=True)))
        expected = "".join(
            f"new {one}\n" if one in at else f"{line}\n" if one < 19 else line for one, line in enumerate(lines)
        )
        assert got == expected
        assert not notes


def test_large_texts_take_time_in_proportion() -> None:
    text = "same line\n" * 200_000 + "last\n"
    assert edit(text, ("same line\nlast ", "x"))[0].endswith("same line\nx\n")
    with pytest.raises(ToolError, match="fits nowhere"):
        edit(text, ("  same line\n    last", "x"))


def test_the_nearest_lines_are_searched_only_if_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def near(word: str, *_: object) -> list[str]:
        looked.append(word)
        return []

    monkeypatch.setattr("toolwire.builtin.matching.closest", near)
    edits = [Edit(search=f"missing {number}\n", replace="") for number in range(20)]
    with pytest.raises(ToolError, match="17 more were not tried"):
        applied("f", "a\n" * 100, edits)
    assert len(looked) == 3


def test_the_work_for_edits_is_bounded() -> None:
    with pytest.raises(ToolError, match="at most 1,000"):
        applied("f", "a\n", [Edit(search="a", replace="b")] * 1_001)
    crafted = [Edit(search="x\n" * 4_999 + "\t x\n", replace="")]
    with pytest.raises(ToolError, match="too many places"):
        applied("f", "x\n" * 20_000, crafted)


def test_many_edits_of_a_long_file_are_fast() -> None:
    """A line is looked up, and not searched for, where its white space differs; three misfits end the search."""
    lines = [f"word {number} of a line" for number in range(20_000)]
    searched: list[int] = []

    class Text(str):
        def find(self, *arguments: Any) -> int:
            searched.append(1)
            return super().find(*arguments)

    edits = [Edit(search=f"{lines[at]}  \n{lines[at + 1]} ", replace=f"x{at}") for at in range(0, 20_000, 100)]
    _, notes = applied("f", Text("\n".join(lines)), edits)
    assert len(notes) == len(edits) == len(searched)
    searched.clear()
    with pytest.raises(ToolError, match="997 more were not tried"):
        applied("f", Text("\n".join(lines)), [Edit(search=f"no {at}", replace="x") for at in range(1_000)])
    assert len(searched) == 3


def test_edits_of_a_preview_have_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "thread_time", iter(range(100)).__next__)
    edits = [Edit(search=letter, replace="x") for letter in "abcdef"]
    assert applied("f", "abcdef", edits)[0] == "xxxxxx"
    with pytest.raises(ToolError, match="6 edits of 6 characters take too long"):
        applied("f", "abcdef", edits, seconds=3)


def test_lines_that_occur_often_are_found_in_one_place() -> None:
    text = "a\nb\n" * 200 + "b\na\n" * 200
    assert edit(text, ("b \nb ", "c"))[0] == text.replace("b\nb\n", "c\n", 1)

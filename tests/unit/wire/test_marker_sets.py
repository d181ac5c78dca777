"""Marker sets: the earliest marker, the longest one, and partial ones that have to wait."""

import pytest

from toolwire.wire.marker_sets import MarkerSet

TAGS = MarkerSet(frozenset({"<tool", "<tool_call>", "[ARGS]"}))


@pytest.mark.parametrize(
    ("text", "final", "found"),
    [
        ("abc", False, (3, 3, "")),
        ("a<tool_call>b", False, (1, 12, "<tool_call>")),
        ("a<toolbox", False, (1, 6, "<tool")),
        ("a<tool", False, (1, 1, "")),  # a longer one is possible
        ("a<tool", True, (1, 6, "<tool")),
        ("a<tool_ca", False, (1, 1, "")),
        ("a<tool_ca", True, (1, 6, "<tool")),
        ("a<to", False, (1, 1, "")),
        ("a<to", True, (4, 4, "")),
        ("x [AR", False, (2, 2, "")),
        ("<<<tool>", False, (2, 7, "<tool")),
    ],
)
def test_search_finds_the_next_or_partial_marker(text: str, final: bool, found: tuple[int, int, str]) -> None:
    assert TAGS.search(text, 0, final) == found


def test_match_reports_when_it_needs_more_text() -> None:
    assert TAGS.match("<tool_call>", 0, False) == ("<tool_call>", False)
    assert TAGS.match("<tool", 0, False) == ("", True)
    assert TAGS.match("<tx", 0, False) == ("", False)
    assert TAGS.is_prefix("<too")
    assert not TAGS.is_prefix("<tool_call>")


def test_case_is_ignored_only_on_request_and_only_in_ascii() -> None:
    folded = MarkerSet(frozenset({"<Tools>"}), nocase=True)
    assert folded.search("x<TOOLS>", 0, True) == (1, 8, "<Tools>")
    assert folded.search("x<TOOL\u017f>", 0, True)[2] == ""  # a long s is no s
    assert MarkerSet(frozenset({"<tools>"})).search("<TOOLS>", 0, True)[2] == ""


@pytest.mark.parametrize("final", [False, True])
def test_a_search_finds_both_spellings_of_a_marker_that_begins_with_a_letter(final: bool) -> None:
    folded = MarkerSet(frozenset({"keep", "éa", "<x"}), nocase=True)

    assert folded.search("a kEeP.", 0, final) == (2, 6, "keep")
    assert folded.search("a KEEP.", 0, final) == (2, 6, "keep")
    assert folded.search("a éA.", 0, final) == (2, 4, "éa")
    assert folded.search("\N{KELVIN SIGN}eep Éa", 0, final)[2] == ""


def test_an_empty_set_finds_nothing() -> None:
    empty = MarkerSet(frozenset())
    assert empty.search("abc", 0, False) == (3, 3, "")
    assert empty.find_any("abc") is None


def test_any_search_sees_markers_and_beginnings_of_them_at_the_end() -> None:
    markers = MarkerSet(frozenset({"</v>", "<v "}))
    assert all(map(markers.find_any, ("a</v>b", "a<v ", "a<", "a</", "<v")))
    assert not any(map(markers.find_any, ("", "a<b", "a</b>", "< /v>", "v>")))

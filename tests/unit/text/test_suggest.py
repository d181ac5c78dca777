"""Suggestions: the nearest known names, and how a message words them."""

from toolwire.text.suggest import closest, did_you_mean


def test_the_nearest_names_come_first_whatever_their_case() -> None:
    assert closest("hermess", ["pythonic", "Hermes", "hermes_2"], limit=2) == ["Hermes", "hermes_2"]
    assert closest("README", ["readme", "ReadMe"], limit=2) == ["readme", "ReadMe"]
    assert closest("xyz", ["hermes"]) == []


def test_a_higher_similarity_gives_fewer_suggestions() -> None:
    assert closest("deleet", ["delete_file"]) == ["delete_file"]
    assert closest("deleet", ["delete_file"], similarity=0.8) == []


def test_a_hint_ends_the_sentence_or_is_empty() -> None:
    assert did_you_mean(["a", "b"]) == "; did you mean a or b?"
    assert did_you_mean([]) == ""

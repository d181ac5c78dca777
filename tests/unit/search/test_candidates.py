"""The pattern that ripgrep gets, so that it names every file in which RE2 finds something."""

import pytest

from toolwire.search.candidates import wider_pattern


@pytest.mark.parametrize(
    ("pattern", "wider"),
    [
        ("abc", "abc"),
        ("é-_", r"\x{E9}\x{2D}\x{5F}"),
        (r"a\.b\-", r"a[\x{2E}]b[\x{2D}]"),
        (r"\d+", "[0-9]+"),
        (r"[\d-]", r"[0-9\x{2D}]"),
        (r"[]a-z&&[]", r"[\x{5D}a-z\x{26}\x{26}\x{5B}]"),
        ("[[:alpha:]_]", r"[[:alpha:]\x{5F}]"),
        ("(a|b){2,3}?", "(?:a|b){2,3}?"),
        ("(?P<x>a)(?i:b)", "(?:a)(?i:b)"),
        ("a{,3}", r"a\x{7B}\x{2C}3\x{7D}"),
        ("a$", r"a(?:\r?$)"),
        (r"\x41\x{e9}", r"[\x{41}][\x{E9}]"),
        *(
            (odd, None)
            for odd in (r"\pL", r"\Ba", r"\Aa", r"a\z", r"\Qa\E", r"\n", "(?s).", "(?-m)^a", r"\012", "a\nb")
        ),
        (r"[\x0a]", None),
    ],
)
def test_ripgrep_gets_a_pattern_that_matches_no_less(pattern: str, wider: str | None) -> None:
    assert wider_pattern(pattern) == wider

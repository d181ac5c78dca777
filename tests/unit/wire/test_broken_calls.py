"""The rest of a broken call: up to the bracket that closes it, or to a marker outside its strings."""

import pytest

from toolwire.wire.broken_calls import RestOfBrokenCall

MARKERS = frozenset({"<c>", "</c>", "{"})  # a bracket never ends the call by itself


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize(
    ("before", "text", "rest"),
    [
        ('{"a": ', "1} x", " x"),
        ('{"a": ', "[{}] } x", " x"),
        ("f(a=[", "1]) x", " x"),
        ('{"a": ', '"}" } x', " x"),
        ('{"a": ', "1 </c> x", "</c> x"),
        ('{"a": ', "1 <c> x", "<c> x"),
        ('{"a": ', '"</c>" x } y', " y"),
        # the text before the error ends inside a string, or behind a backslash in it
        ('{"a": "x', ' } \\" } " } z', " z"),
        ('{"a": "x\\', '" } " } z', " z"),
        ('{"a": "x\\\\', '" } z', " z"),
        # a quote begins a string only behind a bracket, a comma, a colon or an equals sign
        ("f(", "'a)' ) x", " x"),
        ("f(x = ", "'a)' ) x", " x"),
        ("f(x, ", "'a)' ) x", " x"),
        ("{a: ", "'a} ' } z", " z"),
        ("[", "'a] ' ] z", " z"),
        ("f(a", "'s ) x", " x"),
        ("f(a ", "'s ) x", " x"),
        ("f('a'", "'s ) x", " x"),
        ("f(a", '"s )" ) x', '" ) x'),
        ("f(a=", '"s )" ) x', " x"),
        # and only between brackets
        ("call ", '"a <c>', "<c>"),
        ("call ", "'a <c>", "<c>"),
        ("f(x=", '"""a" ) """ ) z', " z"),
        ("f(x=", "'''a' ) ''' ) z", " z"),
        # no bracket is open
        ("", "} x <c>", "<c>"),
        ("}", "} x </c>", "</c>"),
        # brackets and markers in the text before the error end nothing
        ("<c>{} {", "1 } x", " x"),
    ],
)
def test_the_rest_ends_with_the_call_or_before_a_marker(before: str, text: str, rest: str, size: int) -> None:
    leaf = RestOfBrokenCall(before, MARKERS)
    pos, end = 0, 0
    while not leaf.done:
        assert end < len(text), f"it reads on to {text[pos:]!r}"
        end = min(end + size, len(text))
        pos += leaf.scan(text[pos:end], 0, False)
    assert text[pos:] == rest


@pytest.mark.parametrize(("before", "inside"), [('{"a": ', True), ("f(", True), ("", False), ("{}", False)])
def test_a_call_continues_if_a_bracket_is_open(before: str, inside: bool) -> None:
    assert RestOfBrokenCall(before, MARKERS).is_inside is inside


@pytest.mark.parametrize(("final", "read", "done"), [(False, 2, False), (True, 4, True)])
def test_half_of_a_marker_waits_for_more_text(final: bool, read: int, done: bool) -> None:
    leaf = RestOfBrokenCall('{"a": ', MARKERS)
    assert leaf.scan("1 </", 0, final) == read
    assert leaf.done is done


def test_the_end_of_the_text_ends_the_call() -> None:
    leaf = RestOfBrokenCall('{"a": "', MARKERS)
    assert leaf.scan("x", 0, False) == 1
    assert not leaf.done
    assert leaf.scan("", 0, True) == 0
    assert leaf.done


def test_without_markers_a_bracket_ends_nothing() -> None:
    leaf = RestOfBrokenCall('{"a": ', frozenset())
    assert leaf.scan("1} x", 0, False) == 4
    assert not leaf.done

"""The JSON scanner: values, repairs and refusals are the same in chunks as at once."""

import json
from typing import Any

import pytest

from toolwire.text.json_reading import read_json
from toolwire.text.json_scanner import JsonScanner
from toolwire.text.json_text import FastJsonReader, JsonError, within_limits
from toolwire.text.limits import MAX_DEPTH, MAX_DIGITS

PLAIN: list[str] = [
    '{"a": 1, "b": [1, 2, {"c": "x\\n\\u00e9\\ud83d\\ude00"}], "d": {}, "e": [], "f": -1.5e3, "g": true}',
    "[]",
    '"text"',
    "-0.5",
    "null",
    ' {"deep": ' + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "} ",
    "9" * MAX_DIGITS,
]

REPAIRED: list[tuple[str, Any, list[str]]] = [
    ("{'a': 'b\"c'}", {"a": 'b"c'}, ["single_quotes"]),
    ('{"a": True, "b": None}', {"a": True, "b": None}, ["python_literal"]),
    ("[1, 2, ]", [1, 2], ["trailing_comma"]),
    ('{"a": 1,}', {"a": 1}, ["trailing_comma"]),
    ('"one\ntwo\t"', "one\ntwo\t", ["raw_control"]),
    ('"C:\\path \\d"', "C:\\path \\d", ["invalid_escape"]),
    ('{"a": """print("x", """, "b": ""}', {"a": 'print("x", ', "b": ""}, ["triple_quotes"]),
    ('{"a": """x\ny\\n\\""" """}', {"a": 'x\ny\n""" '}, ["triple_quotes", "raw_control"]),
    ('{"a": """"""}', {"a": ""}, ["triple_quotes"]),
    ('["""""a"""]', ['""a'], ["triple_quotes"]),
    ('"""a" b"""', 'a" b', ["triple_quotes"]),
    ("{'a': '''it's'''}", {"a": "it's"}, ["single_quotes", "triple_quotes"]),
]

REFUSED: list[tuple[str, str]] = [
    ('{"a": 1, "a": 2}', "given twice"),
    ('{"a": {"b": 1, "b": 2}}', "given twice"),
    ("{a: 1}", "a key in double quotes"),
    ("[1,, 2]", "a value is missing"),
    ('{"""a""": 1}', "a colon is missing"),
    ("[,]", "a value is missing"),
    ("NaN", "not a JSON value"),
    ("Infinity", "not a JSON value"),
    ("1e999", "out of range"),
    ("007", "not a JSON value"),
    ('"\\ud800"', "surrogate"),
    ('"\\udc00\\ud800"', "surrogate"),
    ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "levels of nesting"),
    ("9" * (MAX_DIGITS + 1), "digits"),
    ('{"a" 1}', "colon"),
    ("[1 2]", "a comma or the closing bracket"),
    ('{"a": 1', "ends inside"),
    ("", "ends inside"),
    ("{} x", "text follows"),
]


def in_pieces(text: str, size: int) -> tuple[str, str, bool, int, list[str]]:
    """Let-through text, error, completeness, characters used and repairs of one value fed in pieces."""
    scanner = JsonScanner()
    tail, used = "", 0
    for at in range(0, len(text), size):
        piece = tail + text[at : at + size]
        stop = scanner.scan(piece, 0, False)
        used += stop
        tail = piece[stop:]
        if scanner.done or scanner.error:
            break
    else:
        used += scanner.scan(tail, 0, True)
        scanner.finish()
    return "".join(scanner.ready), scanner.error, scanner.done, used, scanner.repairs


@pytest.mark.parametrize("text", PLAIN)
def test_valid_json_is_read_as_the_json_module_reads_it(text: str) -> None:
    assert read_json(text) == (json.loads(text), [])


@pytest.mark.need(4)
@pytest.mark.parametrize(("text", "value", "repairs"), REPAIRED)
def test_repairs_are_applied_and_named(text: str, value: Any, repairs: list[str]) -> None:
    assert read_json(text) == (value, repairs)
    with pytest.raises(JsonError):
        read_json(text, repair=False)


@pytest.mark.need(4)
@pytest.mark.parametrize(("text", "why"), REFUSED)
@pytest.mark.parametrize("padding", ["", " " * 100], ids=["incremental", "whole"])
def test_invalid_json_is_refused_with_the_reason(text: str, why: str, padding: str) -> None:
    with pytest.raises(JsonError, match=why):
        read_json(text + padding)


@pytest.mark.mission("E13")
@pytest.mark.parametrize("text", PLAIN + [row[0] for row in REPAIRED] + [row[0] for row in REFUSED])
def test_chunks_of_any_size_give_the_same_result(text: str) -> None:
    outcomes = {repr(in_pieces(text + " ", size)) for size in (1, 2, 3, 7, len(text) + 1)}
    assert len(outcomes) == 1


def test_the_fast_reader_applies_the_same_rules() -> None:
    fast = FastJsonReader()
    padded = " " * 100
    assert fast.read('{"a": [1, 2]}' + padded, 0) == ({"a": [1, 2]}, 13)
    for text in ('{"a": 1, "a": 2}', "NaN", "1e999", '"\\ud800"', "[" * 201 + "]" * 201):
        assert fast.read(text + padded, 0) is None


def test_the_fast_reader_takes_no_two_of_three_quotes_for_an_empty_text() -> None:
    assert read_json(f'"""{"x" * 300}"""') == ("x" * 300, ["triple_quotes"])


def test_the_fast_reader_gives_up_after_some_failures() -> None:
    fast = FastJsonReader()
    for _ in range(20):
        fast.read("{" + " " * 100, 0)
    assert fast.read('{"a": 1}' + " " * 100, 0) is None


def test_values_beyond_the_limits_are_recognised() -> None:
    deep: Any = []
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    assert within_limits(deep)
    assert not within_limits([deep])
    assert not within_limits({"\ud800": 1})
    assert not within_limits(["\ud800"])


@pytest.mark.parametrize(
    ("piece", "is_passed_on"),
    [
        ("abc", True),
        ("a\\n", True),
        ('\\"\\\\', True),
        ("a\\", False),
        ("\\u00e9", False),
        ("\\d", False),
        ('a"', False),
        ("a\n", False),
    ],
)
def test_pieces_inside_a_string_that_are_passed_on(piece: str, is_passed_on: bool) -> None:
    scanner = JsonScanner()
    scanner.scan('"text', 0, False)
    assert (scanner.quick(piece) is None or scanner.plain_length(piece) == len(piece)) is is_passed_on


@pytest.mark.parametrize(
    ("piece", "length"), [("ab\\", 2), ("\\n\\", 2), ("\\", 0), ("ab\\u", 0), ('a"b\\', 0), ("a\\d\\", 0)]
)
def test_a_backslash_at_the_end_of_a_piece_waits_for_the_next_one(piece: str, length: int) -> None:
    scanner = JsonScanner()
    scanner.scan('"text', 0, False)
    assert scanner.quick(piece) is not None
    assert scanner.plain_length(piece) == length


@pytest.mark.parametrize("operator", ["+", " + ", "%", "*", " & ", ".", " || ", "||", "+\n"])
def test_an_expression_of_two_strings_is_not_read_as_one_string(operator: str) -> None:
    for text in (f'{{"a": "b"{operator}"c"}}', f'["b"{operator}"c", "d"]', f'{{"a": "b"{operator}\'c\'}}'):
        for size in (1, 2, len(text)):
            scanner = JsonScanner()
            position = 0
            fed = ""
            for at in range(0, len(text), size):
                fed += text[at : at + size]
                position = scanner.scan(fed, position, at + size >= len(text))
            assert scanner.error == "an expression is in the place of a string"
            assert text[position] == '"'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "find "b" + "c" here"}', 'find "b" + "c" here'),
        ('{"a": "5" - 6" pipe"}', '5" - 6" pipe'),
        ('{"a": "b" + c"}', 'b" + c'),
        ('{"a": "b"c" + "d"}', 'b"c" + "d'),
    ],
)
def test_other_inner_quotes_are_part_of_the_string(text: str, value: str) -> None:
    scanner = JsonScanner()
    scanner.scan(text, 0, True)
    assert (json.loads("".join(scanner.ready)), scanner.repairs) == ({"a": value}, ["inner_quote"])


def test_each_string_is_looked_at_for_itself() -> None:
    scanner = JsonScanner()
    scanner.scan('{"a": "b "c" d", "e": "f" + "g"}', 0, True)
    assert scanner.error == "an expression is in the place of a string"

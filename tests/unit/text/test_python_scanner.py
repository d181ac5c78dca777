"""Python literals are read in the spellings that models write, and never evaluated."""

import json
from typing import Any

import pytest

from toolwire.text.python_scanner import KeywordScanner, PythonScanner

READ: list[tuple[str, Any]] = [
    ("'it\\'s'", "it's"),
    ('"a\\tb\\\\"', "a\tb\\"),
    ('"""code "x"\nmore"""', 'code "x"\nmore'),
    ("'''it''s'''", "it''s"),
    ("''", ""),
    ("'\\x41\\u00e9\\U0001F600\\101'", "Aé😀A"),
    ("'\\d+'", "\\d+"),
    ("'a\\\nb'", "ab"),
    (r"r'\d+\n'", r"\d+\n"),
    (r'R"C:\new\"x"', r"C:\new\"x"),
    (r"r'\\'", "\\\\"),
    ('r"""a\\n"b"\nc"""', 'a\\n"b"\nc'),
    (r"[r'a \'b\'', r'say \"c\" \t', u'\t']", [r"a \'b\'", r"say \"c\" \t", "\t"]),
    ("r''", ""),
    ("(1, 2,)", [1, 2]),
    ("()", []),
    ("[None, True, False, null, true]", [None, True, False, None, True]),
    ("{'a': {'b': (1,)}}", {"a": {"b": [1]}}),
    ("07", 7),
    ("1_000", 1000),
    ("0x1f", 31),
    ("-0o17", -15),
    ("+5", 5),
    (".5", 0.5),
    ("1.", 1.0),
    ("-2.5e-3", -0.0025),
]

REFUSED = [
    "(,)",
    "[1 2]",
    "nan",
    "inf",
    "__import__('os')",
    "1 + 1x",
    "{1: 2}",
    "'\\ud800'",
    "{'a': 1, 'a': 2}",
    "1e999",
    "f'x'",
    "b'x'",
    "rb'x'",
    "r",
]


def scanned(text: str, size: int) -> PythonScanner:
    scanner = PythonScanner()
    tail = ""
    for at in range(0, len(text), size):
        piece = tail + text[at : at + size]
        tail = piece[scanner.scan(piece, 0, False) :]
        if scanner.done or scanner.error:
            return scanner
    scanner.scan(tail, 0, True)
    scanner.finish()
    return scanner


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(("text", "value"), READ)
def test_python_literals_become_json_in_any_chunking(text: str, value: Any, size: int) -> None:
    scanner = scanned(text + " ", size)
    assert scanner.done, scanner.error
    read = json.loads("".join(scanner.ready))
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("text", REFUSED)
def test_invalid_literals_are_refused(text: str, size: int) -> None:
    scanner = scanned(text + " ,", size)
    rest_is_left = scanner.done and text == "1 + 1x"  # the literal is 1; what follows is the caller's to refuse
    assert scanner.error or rest_is_left


@pytest.mark.parametrize(
    ("begin", "piece", "length"),
    [
        ('"ab', "c\\nd", 4),
        ('"ab', "cd\\", 2),
        ('"ab', "c\\/d", 0),  # in Python, the backslash is a character of the string
        ("'ab", "c\\'d", 0),  # in JSON, the quote would not be escaped
        ("r'ab", "c\\nd", 0),
        ("r'ab", "cd\\", 0),
    ],
)
def test_pieces_inside_a_string_are_passed_on_up_to_what_python_reads_in_another_way(
    begin: str, piece: str, length: int
) -> None:
    scanner = PythonScanner()
    scanner.scan(begin, 0, False)
    assert scanner.quick("cd") is None
    assert scanner.quick(piece) is not None
    assert scanner.plain_length(piece) == length


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("text", ['"a\\/b"', "'a\\/b'", "r'a\\/b'"])
def test_a_slash_is_not_escaped_in_python(text: str, size: int) -> None:
    scanner = scanned(text + " ,", size)
    assert json.loads("".join(scanner.ready)) == "a\\/b"


def test_the_backslash_before_the_last_quote_keeps_a_raw_string_open() -> None:
    scanner = scanned(r"r'C:\new\' ", 1)
    assert not scanner.done


def arguments(text: str, size: int) -> KeywordScanner:
    """Return a scanner that was fed the arguments of a call in pieces of this size."""
    scanner = KeywordScanner()
    position, fed = 0, ""
    for at in range(0, len(text), size):
        fed += text[at : at + size]
        position = scanner.scan(fed, position, at + size >= len(text))
    return scanner


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    "command",
    [
        "sed -n '360,450p' /testbed/a.py",
        "grep -rn 'def f' /src | head -5",
        "ls 'a' -l",
        "cat 'a' & wait",
        "find 'a' | grep 'x' || echo 'c' && echo 'd' -n",
        "git log 'HEAD'^ 'x'~ 'c'@ 'd'$ 'e'` g",
    ],
)
def test_quotes_before_operators_of_a_shell_are_part_of_the_string(command: str, size: int) -> None:
    scanner = arguments(f"(command='{command}', n=3)", size)
    assert json.loads("".join(scanner.ready)) == {"command": command, "n": 3}
    assert scanner.repairs == ["inner_quote"]


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize("operator", ["+", " + ", " % ", " & ", " || ", "||", " == ", "[0]", ".x", " * "])
def test_an_expression_of_two_strings_is_not_one_string(operator: str, size: int) -> None:
    assert arguments(f"(command='a'{operator}'xyz', n='c')", size).error

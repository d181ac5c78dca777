"""Arguments with delimited strings, and keyword arguments, become JSON text in any chunking."""

import json
from typing import Any

import pytest

from toolwire.text.delimited_scanner import MAX_WORD, DelimitedScanner
from toolwire.text.json_scanner import JsonScanner
from toolwire.text.python_scanner import KeywordScanner

QUOTE = '<|"|>'


def read(scanner: JsonScanner, text: str, size: int) -> tuple[Any, str]:
    """The value, or None, and the error."""
    tail = ""
    for at in range(0, len(text), size):
        tail += text[at : at + size]
        stop = scanner.scan(tail, 0, False)
        tail = tail[stop:]
        if scanner.done or scanner.error:
            break
    if not (scanner.done or scanner.error):
        scanner.scan(tail, 0, True)
    return (json.loads("".join(scanner.ready)) if scanner.done else None), scanner.error


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        ("{ }", {}),
        ("{a:1}", {"a": 1}),
        ('{a:<|"|>x<|"|>}', {"a": "x"}),
        ('{a:<|"|><|"|>,b:<|"|>}}<|"|>}', {"a": "", "b": "}}"}),
        ('{a:<|"|>say "hi" \\ \n <| <|" <|"|>}', {"a": 'say "hi" \\ \n <| <|" '}),
        ('{<|"|>key with blanks<|"|>:true}', {"key with blanks": True}),
        ('{"a":"b"}', {"a": "b"}),
        ('{a:[<|"|>x<|"|>,1,null,{b:-2.5e3}], c : d e }', {"a": ["x", 1, None, {"b": -2500}], "c": "d e"}),
        ("{a:True,b:[None],c:not False}", {"a": "True", "b": ["None"], "c": "not False"}),
        ("{word:hello,flag:false,date:2024-01-02}", {"word": "hello", "flag": False, "date": "2024-01-02"}),
    ],
)
def test_delimited_arguments_become_json_in_any_chunking(text: str, value: Any, size: int) -> None:
    assert read(DelimitedScanner(QUOTE), text, size) == (value, "")


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{a:1,a:2}", "the key 'a' is given twice"),
        ("{:1}", "a key is missing"),
        ("{a}", "a colon is missing after a key"),
        ("{a:,b:1}", "a value is missing"),
        ("{a:" + "x" * (MAX_WORD + 1), f"a word of more than {MAX_WORD} characters"),
        ("{" + "x" * 300, "a key of more than 256 characters"),
        ("{a:" + "9" * 4400, f"a word of more than {MAX_WORD} characters"),
    ],
)
def test_invalid_delimited_arguments_are_refused(text: str, error: str, size: int) -> None:
    assert read(DelimitedScanner(QUOTE), text, size) == (None, error)


def test_a_truncated_value_is_not_complete() -> None:
    for text in ('{a:<|"|>x', '{a:<|"|>x<|', "{a:1", "{a", '{a:<|"|>x<|"|>'):
        scanner = DelimitedScanner(QUOTE)
        scanner.scan(text, 0, True)
        assert (scanner.done, scanner.error) == (False, "")


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("()", {}),
        ("( )", {}),
        ("(a=1)", {"a": 1}),
        ("(a = 1 , b='x',)", {"a": 1, "b": "x"}),
        ("(a=[1, (2, 3)], b={'c': None}, d=07)", {"a": [1, [2, 3]], "b": {"c": None}, "d": 7}),
        ("(a='''x\n'y' ''', b=True, c=false)", {"a": "x\n'y' ", "b": True, "c": False}),
        ("(a='(=)', b=\"),\")", {"a": "(=)", "b": "),"}),
    ],
)
def test_keyword_arguments_become_json_in_any_chunking(text: str, value: Any, size: int) -> None:
    assert read(KeywordScanner(), text, size) == (value, "")


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("(1)", "= is missing after a key"),
        ("(a)", "= is missing after a key"),
        ("(a=)", "a value is missing"),
        ("(a=1 b=2)", "a comma or the closing bracket is missing after an argument"),
        ("(a=1, a=2)", "the key 'a' is given twice"),
        ("(a={b=1})", "a key in double quotes is missing"),
        ("{a=1}", "( is missing"),
    ],
)
def test_invalid_keyword_arguments_are_refused(text: str, error: str, size: int) -> None:
    assert read(KeywordScanner(), text, size) == (None, error)


@pytest.mark.parametrize("size", [1, 1000])
def test_a_colon_for_the_equals_sign_is_a_repair(size: int) -> None:
    scanner = KeywordScanner()
    assert read(scanner, "(a:1, b : {'c': 2}, d=3)", size) == ({"a": 1, "b": {"c": 2}, "d": 3}, "")
    assert scanner.repairs == ["bare_key"]
    assert read(KeywordScanner(repair=False), "(a:1)", size) == (None, "= is missing after a key")

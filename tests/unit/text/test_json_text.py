"""JSON text is written as prompts have it and decoded strictly."""

from __future__ import annotations

import json

import pytest

from toolwire.text.json_text import (
    DuplicateKeyError,
    JsonError,
    NumberError,
    decode,
    equal_json,
    json_excerpt,
    json_text,
    refuse_constant,
    standard_json,
    unique_members,
)


def test_json_is_written_without_ascii_escapes() -> None:
    assert json_text({"ü": [1, None]}) == '{"ü": [1, null]}'
    with pytest.raises(ValueError, match="Out of range"):
        json_text(float("nan"))


def test_a_value_is_shown_as_json() -> None:
    assert json_excerpt({"a": "\u00e9", "b": {1}}) == '{"a": "\u00e9", "b": "{1}"}'
    loop: list[object] = []
    loop.append(loop)
    assert json_excerpt(loop) == "<class 'list'>"
    assert json_excerpt({(1, 2): 3}) == "<class 'dict'>"


def test_a_duplicate_key_is_named() -> None:
    assert json.loads('{"a": {"b": 1}}', object_pairs_hook=unique_members) == {"a": {"b": 1}}
    with pytest.raises(DuplicateKeyError, match="the key 'b' is given twice") as caught:
        json.loads('{"a": {"b": 1, "c": 2, "b": 3}}', object_pairs_hook=unique_members)
    assert caught.value.key == "b"


def test_constants_and_lone_surrogates_are_refused() -> None:
    with pytest.raises(NumberError, match="NaN is not a number of JSON"):
        json.loads("[NaN]", parse_constant=refuse_constant)
    with pytest.raises(NumberError, match="-1e400 is out of range"):
        standard_json(b'{"a": -1e400}')
    assert standard_json(b"[1e-400, 1.5, 2]") == [0.0, 1.5, 2]
    with pytest.raises(JsonError, match="surrogate"):
        decode('"\ud83d"')


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ([True, 1], [1, True], False),
        ({"a": [1, True]}, {"a": [1, True]}, True),
        (1, 1.0, True),
        (0, False, False),
        ("1", 1, False),
        (None, False, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1], [1, 2], False),
    ],
)
def test_equal_distinguishes_booleans_from_numbers(one: object, other: object, *, equal: bool) -> None:
    assert equal_json(one, other) is equal
    assert equal_json(other, one) is equal

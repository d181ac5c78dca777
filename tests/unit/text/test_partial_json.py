"""A lenient view on JSON that is still being written."""

import json

import pytest

from toolwire.text import partial_json
from toolwire.text.partial_json import PartialJson


def views(text: str, size: int = 1) -> list[object]:
    """The values that are seen while a text arrives."""
    reader = PartialJson()
    return [reader.value for at in range(0, len(text), size) if reader.feed(text[at : at + size])]


def test_value_grows() -> None:
    seen = views('{"a": "xy", "b": [1, true]}')
    assert seen == [
        {},
        {"a": ""},
        {"a": "x"},
        {"a": "xy"},
        {"a": "xy", "b": []},
        {"a": "xy", "b": [1]},
        {"a": "xy", "b": [1, True]},
    ]


@pytest.mark.parametrize("text", ['```json\n{"a": 1}\n```', '  \n{"a": 1}', '```\n{"a": 1}\n```\nDone.'])
def test_fence_and_white_space_before_a_value(text: str) -> None:
    assert views(text)[-1] == {"a": 1}


@pytest.mark.parametrize("text", ["The answer is {}.", '"text"', "42", "", "``", "`[1]`"])
def test_other_text_has_no_value(text: str) -> None:
    assert views(text) == []


def test_text_after_a_value_changes_nothing() -> None:
    assert views("[1] and [2, 3]") == [[], [1]]


def test_work_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"items": ["word"] * 4_000})
    read = 0

    def from_json(piece: str, **options: object) -> object:
        nonlocal read
        read += len(piece)
        return {"length": len(piece)}

    monkeypatch.setattr(partial_json, "from_json", from_json)
    reader = PartialJson()
    for character in text:
        reader.feed(character)
    assert read < 40 * len(text)

"""Results of tools become JSON values as pydantic writes them, or an error names the place."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from toolwire import ToolError
from toolwire.schema.serialization import to_json_value


class Colour(Enum):
    RED = "red"


class Order(BaseModel):
    item: str = Field(alias="itemName")
    when: date = date(2026, 1, 2)


@dataclass
class Row:
    when: datetime
    tags: set[str] = field(default_factory=set)
    handle: Any = None


class Endless(BaseModel):
    rows: Iterable[int]


NOON = datetime(2026, 1, 2, 12)
ORDER = Order(itemName="tea")


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (NOON, "2026-01-02T12:00:00"),
        (timedelta(hours=1), "PT1H"),
        (Colour.RED, "red"),
        ({1}, [1]),
        (frozenset(), []),
        (Decimal("1.50"), "1.50"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("a/b"), "a/b"),
        (b"text", "text"),
        (Row(NOON, {"a"}), {"when": "2026-01-02T12:00:00", "tags": ["a"], "handle": None}),
        (ORDER, {"item": "tea", "when": "2026-01-02"}),
        ([{"order": ORDER, "colour": Colour.RED}], [{"order": {"item": "tea", "when": "2026-01-02"}, "colour": "red"}]),
        ({date(2026, 1, 2): 1}, {"2026-01-02": 1}),
    ],
)
def test_values_that_pydantic_writes_become_json_values(value: Any, form: Any) -> None:
    assert to_json_value(value) == form


@pytest.mark.parametrize("value", [None, "a", True, 1, 1.5, {"a": [1, {"b": None}]}, [], {1: 2}])
def test_json_values_are_returned_as_the_same_object(value: Any) -> None:
    assert to_json_value(value) is value


LOOP: list[Any] = []
LOOP.append({"again": LOOP})
DEEP: list[Any] = []
for _ in range(5_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (object(), "it is of the type object. Return text"),
        ({"rows": [1, {"a/b": object()}]}, "at /rows/1/a~1b it is of the type object."),
        ([Row(NOON, handle=len)], "at /0/handle it is of the type builtin_function_or_method."),
        ({"x": float("inf")}, "at /x it is inf, a number that JSON does not have."),
        ({"x": {object(): 1}}, "at /x it is a dict with a key of the type object."),
        ([10**5000], "at /0 it is a number of too many digits"),
        ([b"\xff"], "at /0 it is of the type bytes."),
        ((n for n in [1]), "it is a generator. Return a list"),
        ({"rows": (n for n in count())}, "at /rows it is a generator. Return a list"),
        ([Row(NOON, handle=map(str, count()))], "at /0/handle it is an iterator, map. Return a list"),
        (Endless(rows=count()), "at /rows it is an iterator, "),
        ([deque([count()])], "at /0 it is of the type collections.deque."),
        ({count(): 1}, "it is a dict with a key of the type itertools.count."),
        (LOOP, "at /0/again it contains itself."),
        (DEEP, "it is nested too deeply."),
    ],
)
def test_an_error_names_the_place_that_cannot_be_converted(value: Any, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        to_json_value(value)
    assert said in str(caught.value)


def test_lone_surrogates_are_replaced_wherever_they_are() -> None:
    assert to_json_value("\ud800") == "\ufffd"
    assert to_json_value(["\ud800", {"a": ("\ud800",)}]) == ["\ufffd", {"a": ["\ufffd"]}]
    assert to_json_value({"\ud800": 1, 2: "\ud800"}) == {"\ufffd": 1, 2: "\ufffd"}
    assert to_json_value({"emoji": "\U0001f600"}) == {"emoji": "\U0001f600"}
    assert to_json_value([NOON, "\ud800"]) == ["2026-01-02T12:00:00", "\ufffd"]
    assert to_json_value([NOON, "\U0001f600"]) == ["2026-01-02T12:00:00", "\U0001f600"]


@pytest.mark.parametrize("value", [2**63 - 1, 2**63, -(2**63), 2**200, False])
def test_integers_of_any_usual_size_are_json_values(value: int) -> None:
    assert to_json_value(value) is value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "it is nan, a number that JSON does not have. Return null or text there."),
        pytest.param(10**5000, "it is a number of too many digits to be written.", id="long number"),
        ({object(): 1}, "it is a dict with a key of the type object. Use keys of text."),
        (iter([1]), "it is an iterator, list_iterator. Return a list of its items."),
        ((n for n in [1]), "it is a generator. Return a list of its items."),
        (object(), "it is of the type object. Return text, numbers, lists, dicts, dataclasses or pydantic models."),
        ({"a": {1, object()}}, "it is of the type object"),
        ([(1, object())], "at /0/1 it is of the type object"),
    ],
)
def test_an_error_says_what_to_return_instead(value: Any, message: str) -> None:
    with pytest.raises(ToolError) as caught:
        to_json_value(value)
    assert message in str(caught.value)


def test_a_value_in_two_places_does_not_contain_itself() -> None:
    shared = {NOON}
    assert to_json_value([shared, shared]) == [["2026-01-02T12:00:00"]] * 2


def nested(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = [value]
    return value


def test_the_place_is_named_down_to_the_search_depth() -> None:
    with pytest.raises(ToolError, match="of the type object"):
        to_json_value(nested(object(), 50))
    with pytest.raises(ToolError, match="nested too deeply"):
        to_json_value(nested(object(), 80))
    assert to_json_value(nested(NOON, 240)) == nested("2026-01-02T12:00:00", 240)


def test_no_iterator_is_advanced() -> None:
    numbers = iter([1, 2])
    for value in (numbers, [numbers], {"a": (numbers,)}, {"a": deque([numbers])}):
        with pytest.raises(ToolError):
            to_json_value(value)
    assert list(numbers) == [1, 2]

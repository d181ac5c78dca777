from __future__ import annotations

from typing import Any

import pytest

from toolwire.evaluation.call_scoring import AcceptableCall, ExpectedCalls, answer_fault
from toolwire.messages import ToolCall

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "scale": {"type": "number"},
        "exact": {"type": "boolean"},
        "places": {"type": "array", "items": {"type": "string"}},
        "person": {"type": "object", "properties": {"age": {"type": "integer"}}},
    },
    "required": ["city"],
}


def fault_kind(expected: ExpectedCalls, *calls: tuple[str, dict[str, Any]]) -> str:
    fault = answer_fault([ToolCall(name, arguments) for name, arguments in calls], expected, {"weather": SCHEMA})
    return "" if fault is None else fault.kind


def one(**arguments: list[Any]) -> ExpectedCalls:
    return ExpectedCalls("calls", (AcceptableCall("weather", {"city": ["Paris"], **arguments}),))


@pytest.mark.parametrize(
    ("acceptable", "given", "kind"),
    [
        ({}, {}, ""),
        ({}, {"city": "paris"}, ""),
        ({}, {"city": " PARIS."}, ""),
        ({}, {"city": "Rome"}, "value"),
        ({}, {"city": ["Paris"]}, "type"),
        ({}, {"other": 1}, "unexpected"),
        ({"days": [3]}, {}, "missing"),
        ({"days": [3, ""]}, {}, ""),
        ({"days": [3, ""]}, {"days": 4}, "value"),
        ({"days": [3]}, {"days": 3}, ""),
        ({"days": [3]}, {"days": 3.0}, "type"),
        ({"days": [3]}, {"days": "3"}, "type"),
        ({"days": [1]}, {"days": True}, "type"),
        ({"days": ["n"]}, {"days": "n"}, ""),
        ({"scale": [2.0]}, {"scale": 2}, ""),
        ({"scale": [2, 3]}, {"scale": 3.0}, ""),
        ({"exact": [True]}, {"exact": True}, ""),
        ({"exact": [True]}, {"exact": 1}, "type"),
        ({"places": [["a b", "C"]]}, {"places": ["AB", "c"]}, ""),
        ({"places": [["a", "b"]]}, {"places": ["b", "a"]}, "value"),
        ({"places": [["a", "b"]]}, {"places": ["a"]}, "value"),
        ({"person": [{"age": [5], "name": ["x", ""]}]}, {"person": {"age": 5}}, ""),
        ({"person": [{"age": [5], "name": ["x", ""]}]}, {"person": {"age": 5, "name": "y"}}, "value"),
        ({"person": [{"age": [5]}]}, {"person": {}}, "value"),
        ({"person": [{"age": [5]}]}, {"person": {"age": 5, "more": 1}}, "value"),
        ({"person": [{"age": [5]}]}, {"person": {"age": 5.0}}, "value"),
    ],
)
def test_arguments(acceptable: dict[str, list[Any]], given: dict[str, Any], kind: str) -> None:
    assert fault_kind(one(**acceptable), ("weather", {"city": "Paris", **given})) == kind


def test_required_argument_may_not_be_omitted_even_if_the_empty_text_is_acceptable() -> None:
    expected = ExpectedCalls("calls", (AcceptableCall("weather", {"city": ["Paris", ""]}),))
    assert fault_kind(expected, ("weather", {})) == "missing"


def test_name_and_number_of_calls() -> None:
    assert fault_kind(one()) == "no_call"
    assert fault_kind(one(), ("forecast", {"city": "Paris"})) == "wrong_tool"
    assert fault_kind(one(), ("weather", {"city": "Paris"}), ("weather", {"city": "Paris"})) == "call_count"


def test_the_number_of_calls_is_in_the_message() -> None:
    two = ExpectedCalls("calls", one().calls * 2)
    fault = answer_fault([ToolCall("weather", {"city": "Paris"})], two, {"weather": SCHEMA})
    assert fault is not None and fault.message == "it makes 1 call instead of 2"


def test_calls_may_be_in_any_order_unless_the_order_counts() -> None:
    paris, rome = (AcceptableCall("weather", {"city": [city]}) for city in ("Paris", "Rome"))
    swapped = [("weather", {"city": "Rome"}), ("weather", {"city": "Paris"})]
    assert fault_kind(ExpectedCalls("calls", (paris, rome)), *swapped) == ""
    assert fault_kind(ExpectedCalls("calls", (paris, rome), ordered=True), *swapped) == "value"
    assert fault_kind(ExpectedCalls("calls", (paris, rome)), swapped[0], swapped[0]) == "call_count"


def test_a_call_that_fits_two_places_leaves_the_other_call_its_own() -> None:
    either = AcceptableCall("weather", {"city": ["Paris", "Rome"]})
    paris = AcceptableCall("weather", {"city": ["Paris"]})
    calls = [("weather", {"city": "Paris"}), ("weather", {"city": "Rome"})]
    assert fault_kind(ExpectedCalls("calls", (either, paris)), *calls) == ""


def test_questions_that_no_tool_or_any_tool_fits() -> None:
    assert fault_kind(ExpectedCalls("no_call")) == ""
    assert fault_kind(ExpectedCalls("no_call"), ("weather", {})) == "unwanted_call"
    assert fault_kind(ExpectedCalls("any_call")) == "no_call"
    assert fault_kind(ExpectedCalls("any_call"), ("weather", {})) == ""
    assert fault_kind(ExpectedCalls("any_call"), ("unknown", {})) == "wrong_tool"


def test_the_nearest_fault_is_reported() -> None:
    calls = (AcceptableCall("weather", {"city": ["Paris"]}), AcceptableCall("time", {"city": ["Rome"]}))
    fault = answer_fault(
        [ToolCall("weather", {"city": "Oslo"}), ToolCall("time", {"city": "Rome"})],
        ExpectedCalls("calls", calls),
        {"weather": SCHEMA},
    )
    assert fault is not None
    assert fault.message == "the argument city is 'Oslo'; acceptable: ['Paris']"

"""Controls of probes: what a model copies as text separates its own mistakes from those of its server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from toolwire.messages import ParsedResponse, ToolCall
from toolwire.probes.controls import check_model_copies, control_if_changed, without_controls
from toolwire.probes.probe import RuleNotShown
from toolwire.probes.probe_exchange import ProbeExchange, ProbeRequest
from toolwire.probes.probe_requests import CALL_STREAM, PARIS, RESULT_CONTROL, WEATHER
from toolwire.providers.api_registry import get_api


def exchange(
    request: ProbeRequest, *, arguments: Mapping[str, Any] | None = None, text: str = "", **fields: Any
) -> ProbeExchange:
    calls = () if arguments is None else (ToolCall(WEATHER.name, arguments, "1", **fields),)
    return ProbeExchange(request, get_api("openai_chat"), response=ParsedResponse(text, tool_calls=calls))


CHANGED = exchange(CALL_STREAM, arguments={**PARIS, "days": 3.0})


def control(text: str) -> ProbeExchange:
    request = control_if_changed([CHANGED])
    assert request is not None
    return exchange(request, text=text)


@pytest.mark.parametrize(
    ("answer", "has_control"),
    [
        (exchange(CALL_STREAM, arguments=PARIS), False),
        (CHANGED, True),
        (exchange(CALL_STREAM, arguments=PARIS, repairs=("quotes",)), True),
        (exchange(CALL_STREAM), False),
        (exchange(RESULT_CONTROL, arguments={}), False),
    ],
    ids=["the same", "a fraction", "repaired", "no call", "no arguments"],
)
def test_changed_arguments_of_a_call_have_a_control(answer: ProbeExchange, has_control: bool) -> None:
    request = control_if_changed([answer])
    assert (request is not None) is has_control
    if request is not None:
        assert (request.id, request.arguments, request.is_control) == ("call-control", PARIS, True)


def test_controls_are_known_by_their_field_and_not_by_the_end_of_their_ids() -> None:
    named = exchange(RESULT_CONTROL, text="no JSON")
    assert without_controls([CHANGED, named, control("")]) == [CHANGED, named]
    check_model_copies([CHANGED, named], "days")


@pytest.mark.parametrize("text", ['{"city": "Paris", "days": 3}', 'Yes:\n```json\n{"days": 3, "city": "Paris"}\n```'])
def test_model_that_copies_the_arguments_is_not_blamed(text: str) -> None:
    check_model_copies([CHANGED, control(text)])


@pytest.mark.parametrize("text", ['{"city": "Paris", "days": 3.0}', '{"city": "Paris"}', "[3]", ""])
def test_model_that_changes_an_argument_as_text_too_is_blamed(text: str) -> None:
    with pytest.raises(RuleNotShown, match="does not copy the argument days as text"):
        check_model_copies([CHANGED, control(text)], "days")


def test_only_the_named_arguments_count() -> None:
    check_model_copies([CHANGED, control('{"city": "Rome", "days": 3}')], "days")
    with pytest.raises(RuleNotShown, match="city"):
        check_model_copies([CHANGED, control('{"city": "Rome", "days": 3}')])

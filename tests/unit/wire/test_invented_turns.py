"""A call behind a turn that the model makes up in plain words does not run unasked."""

from __future__ import annotations

from time import process_time

import pytest
from tests.property.laws import check_chunking

from toolwire import ContentDelta, formats, get_format
from toolwire.events import call_events
from toolwire.messages import ToolCall
from toolwire.policy.policy import HEURISTIC
from toolwire.wire.invented_turns import InventedTurns
from toolwire.wire.renderer import render_calls

RUN = {"name": "run", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}
CALL = '<tool_call>{"name": "run", "arguments": {"query": "a"}}</tool_call>'


def confidences(text: str, format: str = "auto") -> list[float]:
    response = check_chunking(text, format=format, tools=[RUN]).response
    return [call.confidence for call in response.tool_calls]


@pytest.mark.parametrize("format", ["auto", "hermes"])
@pytest.mark.parametrize(
    "turn",
    [
        "Observation: It is not there.\n",
        "OBSERVATION: none\nThought: So.\n",
        "Observation 1: none\n",
        "Tool result: none\n",
        "**Tool Output:** none\n",
        "[Function response]: none\n",
        "Tool_call_result : none\n",
        "Tool: none\n",
        "Good.\n\nUser: Yes.\n",
        "### Human:\nYes.\n\n### Assistant:\n",
    ],
)
def test_a_call_behind_another_s_turn_behind_a_call_does_not_run_unasked(turn: str, format: str) -> None:
    assert confidences(f"{CALL}\n{turn}{CALL}{CALL}", format) == [1.0, 0.4, 0.4]
    assert confidences(f"I look.\n{CALL}{turn}Then:\n{CALL}", format) == [1.0, 0.4]
    assert confidences(f"{turn}{CALL}", format) == [0.4 if "Assistant" in turn else 1.0]
    assert HEURISTIC > 0.4


@pytest.mark.parametrize("format", ["auto", "hermes"])
@pytest.mark.parametrize("model", ["Assistant: ", "**AI:**\n", "Model:\nSo.\n"])
@pytest.mark.parametrize("user", ["User: Yes.\n", "\n\nHuman: Yes.\n\n", "HUMAN:\n"])
def test_a_call_behind_an_invented_dialog_does_not_run_unasked(user: str, model: str, format: str) -> None:
    assert confidences(f"Shall I?\n{user}{model}{CALL}", format) == [0.4]


@pytest.mark.parametrize("format", [name for name in formats() if name not in ("auto", "plain")])
def test_the_calls_of_every_format_count(format: str) -> None:
    call = render_calls(get_format(format), [ToolCall("run", {"query": "b"})], {})
    expected = [0.4 for _ in confidences(f"Shall I?\nYes.\nSo: \n{call}\n", format)]
    assert confidences(f"Shall I?\nUser: Yes.\nAssistant: \n{call}\n", format) == expected


@pytest.mark.parametrize(
    "text",
    [
        f"User: Ada\nStatus: active\n{CALL}",
        f"Observation: The file is missing, so I look.\n{CALL}",
        f"Tool: run\n{CALL}",
        f"Assistant: I look.\n{CALL}",
        f"Assistant: I look.\nUser: Ada\n{CALL}",
        f"{CALL}\nI made an observation: none\n{CALL}",
        f"{CALL}\nThe user: Ada\n{CALL}",
        f"{CALL}\nobservation: none\n{CALL}",
        f"{CALL}\nUsers: Ada\n{CALL}",
        f"{CALL}\nToolbox: none\n{CALL}",
        f"{CALL}\n    User: Ada\n{CALL}",
        f"{CALL}\n```\nUser: Yes.\nAssistant: So.\n```\n{CALL}",
        f"{CALL}\n> User: Yes.\n> Assistant: So.\n{CALL}",
        f"<think>User: Yes.\nAssistant: So.</think>{CALL}",
        f"{CALL}{CALL}\nObservation: none",
    ],
)
def test_a_label_in_other_text_costs_no_confidence(text: str) -> None:
    assert set(confidences(text)) == {1.0}


def test_a_broken_call_is_not_one_that_a_result_follows() -> None:
    broken = CALL.replace('"a"', '"a" + "b"')
    assert confidences(f"{broken}\nObservation: none\n{CALL}\n", "hermes") == [1.0]


def test_content_is_read_once() -> None:
    turns = InventedTurns()
    turns.filter([ContentDelta("User: Yes.\n")])
    turns.filter([ContentDelta("So.\n"), *call_events(0, ToolCall("run", {}))])
    assert turns.content == []


def test_a_guess_stays_one() -> None:
    text = "I look: run(query='a')\nUser: Yes.\nAssistant: run(query='b')"
    response = check_chunking(text, format="auto", tools=[RUN], fallback="embedded").response
    assert {call.confidence for call in response.tool_calls} == {0.4}


def test_a_long_run_of_backticks_before_a_call_costs_time_in_proportion() -> None:
    turns = InventedTurns()
    turns.filter([ContentDelta("a:\n" + "`" * 100_000)])
    began = process_time()
    turns.filter(list(call_events(0, ToolCall("run", {}, "1"))))
    assert process_time() - began < 1

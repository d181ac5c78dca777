"""Conversations of several turns: how they are read, and when an answer to one is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.evaluation.small_leaderboard import LATER, ROW, leaderboard

from toolwire import ConfigurationError
from toolwire.evaluation.bfcl_services import BfclServices
from toolwire.evaluation.bfcl_suite import load_bfcl
from toolwire.evaluation.conversations import MAX_STEPS, conversation_fault
from toolwire.evaluation.model_answer import ModelAnswer, answer_from_json
from toolwire.evaluation.suite import SuiteQuestion
from toolwire.evaluation.verdicts import question_from_json, question_to_json, verdicts

__all__ = ["leaderboard"]
OPEN: Any = ("open_ticket", {"title": "lamp"})
LIST: Any = ("list_tickets", {})


def question(category: str = "multi_turn_base") -> SuiteQuestion:
    (found,) = load_bfcl([category]).questions
    return found


def fault(turns: Any, category: str = "multi_turn_base") -> str:
    """Return the kind of the fault of a conversation, "" if it is right."""
    conversation = question(category).conversation
    assert conversation is not None
    reason = conversation_fault(conversation, turns, BfclServices(conversation), BfclServices(conversation))
    return reason.kind if reason is not None else ""


@pytest.mark.parametrize(
    ("turns", "kind"),
    [
        ([[[OPEN]], [[LIST]]], ""),
        ([[[OPEN], []], [[LIST, LIST]]], ""),
        ([[[LIST], [OPEN]], [[LIST]]], ""),  # a call more that changes nothing
        ([[[("open_ticket", {"title": "lamp", "priority": 1})]], [[LIST]]], ""),  # the default
        ([[[OPEN, ("no_such_tool", {})]], [[LIST]]], ""),  # it reads the error
        ([[[OPEN]], []], "no_call"),
        ([[[OPEN]], [[]]], "no_call"),
        ([[[OPEN, OPEN]], [[LIST]]], "state"),
        ([[[("open_ticket", {"title": "Lamp"})]], [[LIST]]], "state"),
        ([[[("open_ticket", {})]], [[LIST]]], "state"),
        ([[[OPEN]], [[OPEN]]], "state"),
        ([[[OPEN]], [[("no_such_tool", {})]]], "result"),
        ([[[OPEN]]], "call_count"),
    ],
)
def test_a_conversation_is_right_if_the_services_are_as_after_the_right_calls(
    leaderboard: Path, turns: Any, kind: str
) -> None:
    assert fault(turns) == kind


def test_a_turn_without_right_calls_is_right_whatever_the_model_did(leaderboard: Path) -> None:
    right = ("open_ticket", {"title": "lamp", "priority": 2})
    assert fault([[], [[right]]], "multi_turn_miss_func") == ""
    assert fault([[[LIST]], [[right]]], "multi_turn_miss_func") == ""
    assert fault([[[right]], [[right]]], "multi_turn_miss_func") == "state"


def test_tools_are_those_of_the_services_and_some_come_later(leaderboard: Path) -> None:
    assert [tool.name for tool in question().tools] == ["open_ticket", "list_tickets"]
    later = question("multi_turn_miss_func")
    assert [tool.name for tool in later.tools] == ["list_tickets", "close_ticket"]
    assert later.conversation is not None
    assert [tool.name for tool in later.conversation.turns[1].tools] == ["open_ticket"]
    assert set(later.parameters) == {"list_tickets", "close_ticket", "open_ticket"}
    (text,) = (message.parts[0].text for message in later.conversation.turns[1].messages)  # type: ignore[union-attr]
    assert "more functions" in text


@pytest.mark.parametrize("name", ["_load_scenario", "__init__", "__class__", "tickets"])
def test_only_public_methods_are_tools(leaderboard: Path, name: str) -> None:
    conversation = question().conversation
    assert conversation is not None
    services = BfclServices(conversation)
    assert services.run(name, {}) == f"Error during execution: name '{name}' is not defined"


def test_setups_and_arguments_are_not_shared(leaderboard: Path) -> None:
    conversation = question().conversation
    assert conversation is not None
    first, second = BfclServices(conversation), BfclServices(conversation)
    title = ["lamp"]
    first.run("open_ticket", {"title": title})
    title.append("door")
    assert first.state()["TicketAPI"]["tickets"]["2"]["title"] == ["lamp"]
    assert list(second.state()["TicketAPI"]["tickets"]) == ["1"]
    assert list(first.state()["TicketAPI"]) == ["tickets"]


@pytest.mark.parametrize("text", ["open_ticket(", "x", "open_ticket(title=name)", "unknown('a')", "open_ticket(a=1)"])
def test_a_row_whose_right_calls_cannot_be_read_is_reported(leaderboard: Path, text: str) -> None:
    path = leaderboard / "possible_answer" / "BFCL_v4_multi_turn_base.json"
    path.write_text(json.dumps({"id": ROW["id"], "ground_truth": [[text], []]}), "utf-8")
    (broken,) = load_bfcl(["multi_turn_base"]).broken
    assert broken.place.endswith("BFCL_v4_multi_turn_base.json, line 1")


def test_a_service_that_is_not_installed_is_named(leaderboard: Path, tmp_path: Path) -> None:
    services = tmp_path / "leaderboard" / "bfcl_eval" / "eval_checker" / "multi_turn_eval" / "func_source_code"
    (services / "ticket_api.py").write_text("import no_such_package", "utf-8")
    with pytest.raises(ConfigurationError, match="the service TicketAPI needs no_such_package"):
        load_bfcl(["multi_turn_base"])


def test_a_logged_conversation_is_judged_again(leaderboard: Path) -> None:
    asked = question_from_json(json.loads(json.dumps(question_to_json(question("multi_turn_miss_func")))))
    assert asked == question("multi_turn_miss_func")
    assert (asked.id, asked.group) == (LATER["id"], "multi_turn_miss_func")
    call = ("open_ticket", {"title": "lamp", "priority": 2})
    answer = ModelAnswer("answered", "hermes", text="x", turns=((), ((call,),)))
    answer = answer_from_json(json.loads(json.dumps(answer.to_json())))
    (verdict,) = verdicts(asked, answer)
    assert (verdict.right, verdict.usable, verdict.reading) == (True, True, "whole_message")
    (verdict,) = verdicts(asked, ModelAnswer("answered", turns=((), ())))
    assert (verdict.right, verdict.reading) == (False, "native")
    assert verdict.fault is not None and verdict.fault.kind == "no_call"
    assert MAX_STEPS == 20

"""Runs that end with pending approvals, and are resumed with decisions."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolwire
from toolwire import (
    Agent,
    ApprovalAnswer,
    ConfigurationError,
    JournalError,
    ParsedResponse,
    Policy,
    Rule,
    RunFailed,
    Session,
    Tier,
    ToolCall,
    ToolRegistry,
)
from toolwire.agent import AgentConfig, AgentEvent, AgentTeam, Member, PendingApprovals, RunEnded, ToolFinished
from toolwire.testing import ScriptedBackend

V1 = Path(__file__).with_name("pending_v1.json")
"""Written by the first version of the form; must stay readable."""


def registry(ran: list[str], *, description: str = "Delete a file.", preview: Any = None) -> ToolRegistry:
    @toolwire.tool(tier=Tier.CRAWL, idempotent=False)
    def look(name: str) -> str:
        """Look at a file."""
        ran.append(f"look {name}")
        return f"{name} is old"

    @toolwire.tool(destructive=True, preview=preview, description=description)
    def delete(name: str) -> str:
        """Delete a file."""
        ran.append(f"delete {name}")
        return f"{name} is gone"

    return ToolRegistry([look, delete])


def calls(*named: tuple[str, str]) -> ParsedResponse:
    return ParsedResponse(
        "", tool_calls=tuple(ToolCall(name, {"name": file}, f"{name}-{file}") for name, file in named)
    )


def agent(ran: list[str], *answers: ParsedResponse | str, **options: Any) -> Agent:
    tools = {key: options.pop(key) for key in ("description", "preview") if key in options}
    return Agent(ScriptedBackend(answers), registry(ran, **tools), confirm="defer", telemetry=False, **options)


def end_of(events: Any) -> RunEnded:
    *_, end = events
    assert isinstance(end, RunEnded)
    return end


def pending_of(events: Any) -> PendingApprovals:
    end = end_of(events)
    assert (end.reason, end.good) == ("pending", False)
    assert end.pending is not None
    return PendingApprovals.from_json(end.pending.to_json())


def outcomes(events: list[AgentEvent]) -> list[str]:
    return [event.outcome.result.marked_text for event in events if isinstance(event, ToolFinished)]


def test_run_ends_with_what_waits_and_runs_the_other_calls() -> None:
    ran: list[str] = []
    first = agent(ran, calls(("look", "a"), ("delete", "a"), ("delete", "b")))
    events = list(first.run_sync("Clean up."))
    pending = pending_of(events)
    assert ran == ["look a"]
    assert outcomes(events) == ["a is old"]
    assert [(question.id, question.approval.call.arguments) for question in pending.approvals] == [
        ("delete-a", {"name": "a"}),
        ("delete-b", {"name": "b"}),
    ]
    assert "delete" in toolwire.present(pending.approvals[0].approval)
    assert end_of(events).detail == "delete waits for an approval"
    # The messages are a valid history all the same: each call has a result.
    results = end_of(events).messages[-1].parts
    assert [getattr(result, "call_id", "") for result in results] == ["look-a", "delete-a", "delete-b"]


def test_decisions_resume_the_run_and_nothing_runs_twice() -> None:
    ran: list[str] = []
    pending = pending_of(agent(ran, calls(("look", "a"), ("delete", "a"), ("delete", "b"))).run_sync("Clean up."))
    second = agent(ran, "a is gone, b stays.")
    refusal = ApprovalAnswer(False, reason="b is needed")
    events = list(second.resume_sync(pending, {"delete-a": True, "delete-b": refusal}))
    assert ran == ["look a", "delete a"]
    refused = "Error: The user refused this call of delete: b is needed"
    assert sorted(outcomes(events)) == sorted(["a is old", "a is gone", refused])
    end = end_of(events)
    assert (end.reason, end.answer) == ("answered", "a is gone, b stays.")
    assert (end.rounds, end.calls, end.pending) == (2, 3, None)
    assert [message.role for message in end.messages] == ["user", "assistant", "tool", "assistant"]
    with pytest.raises(JournalError, match="was resumed from these pending approvals already"):
        list(agent(ran).resume_sync(pending, {"delete-a": True, "delete-b": True}))
    assert ran == ["look a", "delete a"]


def test_answer_of_a_resumed_run() -> None:
    ran: list[str] = []
    with pytest.raises(RunFailed, match=r"no answer \(pending\): delete waits for an approval") as failed:
        agent(ran, calls(("delete", "a"))).ask_sync("Delete a.")
    pending = failed.value.end.pending
    assert agent(ran, "Done.").ask_resumed_sync(pending, {"delete-a": True}) == "Done."
    assert ran == ["delete a"]


PROGRAM = """
import sys, toolwire
from toolwire.agent import Agent, PendingApprovals
from toolwire.testing import ScriptedBackend

@toolwire.tool
def look(name: str) -> str:
    "Look at a file."
    print("look", name)
    return name

@toolwire.tool(destructive=True)
def delete(name: str) -> str:
    "Delete a file."
    print("delete", name)
    return name

agent = Agent(ScriptedBackend(["Done."]), [look, delete], confirm="defer", telemetry=False)
pending = PendingApprovals.from_json(sys.stdin.read())
print(agent.ask_resumed_sync(pending, {question.id: True for question in pending.approvals}))
"""


def test_another_process_resumes_the_run() -> None:
    pending = end_of(agent([], calls(("look", "a"), ("delete", "a"))).run_sync("Clean up.")).pending
    assert pending is not None
    text = json.loads(json.dumps(pending.to_json()))
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=text, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("delete a\nDone.\n", "")


def test_run_may_wait_again_and_again() -> None:
    ran: list[str] = []
    pending = pending_of(agent(ran, calls(("delete", "a"))).run_sync("Delete a and b."))
    pending = pending_of(agent(ran, calls(("delete", "b"))).resume_sync(pending, {"delete-a": True}))
    assert [question.id for question in pending.approvals] == ["delete-b"]
    end = end_of(agent(ran, "Done.").resume_sync(pending, {"delete-b": True}))
    assert (ran, end.rounds, end.calls, end.answer) == (["delete a", "delete b"], 3, 2, "Done.")


def test_changed_tool_is_shown_again_before_it_runs() -> None:
    ran: list[str] = []
    pending = pending_of(agent(ran, calls(("delete", "a"))).run_sync("Delete a."))
    again = pending_of(agent(ran, description="Delete all files.").resume_sync(pending, {"delete-a": True}))
    (question,) = again.approvals
    assert question.approval.definition.description == "Delete all files."
    assert question.approval.reason.startswith("This was approved, but the tool or what the call would do has changed")
    assert ran == []
    end = end_of(agent(ran, "Done.", description="Delete all files.").resume_sync(again, {"delete-a": True}))
    assert (ran, end.reason) == (["delete a"], "answered")


def test_changed_preview_is_shown_again_before_the_call_runs() -> None:
    ran: list[str] = []
    first = agent(ran, calls(("delete", "a")), preview=lambda arguments: "3 lines are lost")
    pending = pending_of(first.run_sync("Delete a."))
    assert pending.approvals[0].approval.preview == "3 lines are lost"
    changed = agent(ran, preview=lambda arguments: "900 lines are lost")
    (question,) = pending_of(changed.resume_sync(pending, {"delete-a": True})).approvals
    assert question.approval.preview == "900 lines are lost"
    assert ran == []


def test_refusal_is_valid_for_a_changed_tool() -> None:
    ran: list[str] = []
    pending = pending_of(agent(ran, calls(("delete", "a"))).run_sync("Delete a."))
    events = list(agent(ran, "I did not.", description="Delete all.").resume_sync(pending, {"delete-a": False}))
    assert outcomes(events) == ["Error: The user refused this call of delete."]
    assert ran == []


@pytest.mark.parametrize("decision", [True, False])
def test_decision_counts_though_the_policy_allows_the_call_by_now(decision: bool) -> None:
    ran: list[str] = []
    allows = Policy((Rule("allow", "delete", confirm=False),))
    pending = pending_of(agent(ran, calls(("delete", "a"))).run_sync("Delete a."))
    end_of(agent(ran, "Done.", policy=allows).resume_sync(pending, {"delete-a": decision}))
    assert ran == ["delete a"] * decision


def test_changed_tool_does_not_run_though_the_policy_allows_it_by_now() -> None:
    ran: list[str] = []
    allows = Policy((Rule("allow", "delete", confirm=False),))
    pending = pending_of(agent(ran, calls(("delete", "a"))).run_sync("Delete a."))
    pending_of(agent(ran, policy=allows, description="Delete all.").resume_sync(pending, {"delete-a": True}))
    assert ran == []


def test_approval_does_not_overrule_a_policy_that_denies_by_now() -> None:
    ran: list[str] = []
    denies = Policy((Rule("deny", "delete", reason="Nothing is deleted on Fridays."),))
    pending = pending_of(agent(ran, calls(("delete", "a"))).run_sync("Delete a."))
    events = list(agent(ran, "It is Friday.", policy=denies).resume_sync(pending, {"delete-a": True}))
    assert outcomes(events) == ["Error: Nothing is deleted on Fridays."]
    assert ran == []


def test_tool_that_is_gone_is_told_to_the_model() -> None:
    pending = pending_of(agent([], calls(("delete", "a"))).run_sync("Delete a."))
    other = Agent(ScriptedBackend(["Then not."]), [], confirm="defer", telemetry=False)
    events = list(other.resume_sync(pending, {"delete-a": True}))
    assert "delete" in outcomes(events)[0]
    assert end_of(events).answer == "Then not."


def test_decisions_name_each_pending_call() -> None:
    pending = pending_of(agent([], calls(("delete", "a"), ("delete", "b"))).run_sync("Clean up."))
    resumed = agent([])
    with pytest.raises(JournalError, match="a decision about delete-b is missing"):
        resumed.resume(pending, {"delete-a": True})
    with pytest.raises(
        JournalError, match="no call with the id delete-c waits for an approval, only delete-a, delete-b"
    ):
        resumed.resume(pending, {"delete-a": True, "delete-b": True, "delete-c": True})
    with pytest.raises(TypeError, match="'delete-b'"):
        resumed.resume(pending, {"delete-a": True, "delete-b": "yes"})  # type: ignore[dict-item]


def test_unanswered_decision_leaves_the_call_pending() -> None:
    ran: list[str] = []
    pending = pending_of(agent(ran, calls(("delete", "a"), ("delete", "b"))).run_sync("Clean up."))
    later = ApprovalAnswer(False, unanswered=True)
    again = pending_of(agent(ran).resume_sync(pending, {"delete-a": True, "delete-b": later}))
    assert (ran, [question.id for question in again.approvals]) == (["delete a"], ["delete-b"])


def test_calls_with_one_id_are_told_apart() -> None:
    ran: list[str] = []
    same = ParsedResponse("", tool_calls=tuple(ToolCall("delete", {"name": name}, "x") for name in "ab"))
    pending = pending_of(agent(ran, same).run_sync("Clean up."))
    assert [question.id for question in pending.approvals] == ["x.1", "x.2"]
    end_of(agent(ran, "Done.").resume_sync(pending, {"x.1": False, "x.2": True}))
    assert ran == ["delete b"]


def changed(pending: PendingApprovals, old: str, new: str) -> dict[str, Any]:
    text = pending.to_json()
    assert old in text
    data: dict[str, Any] = json.loads(text.replace(old, new))
    return data


def test_changed_value_is_refused() -> None:
    pending = pending_of(agent([], calls(("delete", "a"))).run_sync("Delete a."))
    with pytest.raises(JournalError, match="were changed since they were written"):
        PendingApprovals.from_json(json.dumps(changed(pending, '"a"', '"z"')))


@pytest.mark.parametrize("place", ["approvals", "records"])
def test_call_that_differs_from_what_was_shown_does_not_run(place: str) -> None:
    ran: list[str] = []
    pending = pending_of(agent(ran, calls(("delete", "a"))).run_sync("Delete a."))
    data = json.loads(pending.to_json())
    data[place] = changed(pending, '"a"', '"z"')[place]
    del data["toolwire_pending"], data["digest"]
    data = {"toolwire_pending": 1, "digest": toolwire.messages.digest(data), **data}
    again = pending_of(agent(ran).resume_sync(PendingApprovals.from_json(json.dumps(data)), {"delete-a": True}))
    assert again.approvals[0].approval.reason.startswith("This was approved, but")
    assert ran == []


def test_decisions_are_bound_to_the_value_that_was_shown() -> None:
    ran: list[str] = []
    pending = pending_of(agent(ran, calls(("delete", "a"))).run_sync("Delete a."))
    other = pending_of(agent(ran, calls(("delete", "a"))).run_sync("Delete a."))
    with pytest.raises(JournalError, match="not the pending approvals that the decisions are about"):
        agent(ran).resume(other, {"delete-a": True}, digest=pending.digest)
    assert end_of(agent(ran, "Done.").resume_sync(pending, {"delete-a": True}, digest=pending.digest)).good


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "not the text of pending approvals"),
        ("{", "is not JSON"),
        ('{"toolwire_pending": 2}', "version 2 cannot be read, only of version 1"),
    ],
)
def test_other_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(JournalError, match=message):
        PendingApprovals.from_json(text)


def test_value_of_an_earlier_version_is_resumed() -> None:
    ran: list[str] = []
    pending = PendingApprovals.from_json(V1.read_text("utf-8"))
    events = list(agent(ran, "a is gone, b stays.").resume_sync(pending, {"delete-a": True, "delete-b": False}))
    assert ran == ["delete a"]
    assert "a is old" in outcomes(events)
    assert end_of(events).messages[0].parts == (toolwire.TextPart("Earlier."),)


def test_state_of_the_session_survives() -> None:
    ran: list[str] = []
    session = Session(untrusted=True)
    session.record_decision("somebody approved this", approved=True)
    pending = pending_of(agent(ran, calls(("look", "a"), ("delete", "a"))).run_sync("Clean up.", session=session))
    later = Session()
    end_of(agent(ran, "Done.").resume_sync(pending, {"delete-a": ApprovalAnswer(False)}, session=later))
    assert later.untrusted
    assert later._approved == {"somebody approved this"}
    assert later._declined == {pending.approvals[0].approval.key}
    assert later._counts == {"look": 1}


def test_history_and_dependencies_are_there_again() -> None:
    ran: list[str] = []
    history = (toolwire.Message("user", "Earlier."), toolwire.Message("assistant", "Yes?"))
    pending = pending_of(agent(ran, calls(("delete", "a"))).run_sync("Delete a.", history=history))
    second = agent(ran, "Done.")
    end = end_of(second.resume_sync(pending, {"delete-a": True}, settings={"temperature": 0.5}))
    assert end.messages[:2] == history
    assert len(second.backend.requests[0].messages) == 5  # type: ignore[attr-defined]


def team(ran: list[str], coordinator: tuple[Any, ...], member: tuple[Any, ...], **options: Any) -> AgentTeam:
    inner = Agent(ScriptedBackend(member), registry(ran), AgentConfig(name="cleaner"), telemetry=False, **options)
    outer = Agent(ScriptedBackend(coordinator), [], AgentConfig(name="boss"), confirm="defer", telemetry=False)
    return AgentTeam(outer, [Member(inner, "Cleans up.")])


@pytest.mark.parametrize("options", [{}, {"confirm": "defer"}])
def test_member_of_a_team_waits_too(options: dict[str, Any]) -> None:
    ran: list[str] = []
    order = ParsedResponse("", tool_calls=(ToolCall("cleaner", {"task": "Clean."}, "c1"),))
    asked = calls(("look", "a"), ("delete", "a"))
    pending = pending_of(team(ran, (order,), (asked,), **options).run_sync("Clean up."))
    assert [question.id for question in pending.approvals] == ["delete-a"]
    resumed = team(ran, ("All clean.",), ("a is gone.",), **options)
    assert resumed.ask_resumed_sync(pending, {"delete-a": True}) == "All clean."
    assert ran == ["look a", "delete a"]


def test_member_cannot_defer_alone() -> None:
    member = Member(agent([]), "Cleans up.")
    with pytest.raises(ConfigurationError, match="its coordinator needs it too"):
        AgentTeam(Agent(ScriptedBackend([]), telemetry=False), [member])


def test_wrong_agents_are_refused() -> None:
    pending = pending_of(agent([], calls(("delete", "a"))).run_sync("Delete a."))
    with pytest.raises(ConfigurationError, match='only an agent with confirm="defer"'):
        Agent(ScriptedBackend([]), telemetry=False).resume(pending, {"delete-a": True})
    with pytest.raises(JournalError, match="a run of the agent 'agent', and not of 'other'"):
        agent([], config=AgentConfig(name="other")).resume(pending, {"delete-a": True})
    with pytest.raises(ConfigurationError, match="records its runs itself"):
        agent([]).run("x", journal=toolwire.agent.journal.MemoryJournal())
    with pytest.raises(TypeError, match="confirm"):
        Agent(ScriptedBackend([]), confirm="ask")  # type: ignore[arg-type]


def test_observers_see_both_halves_of_a_run() -> None:
    seen: list[tuple[str, str]] = []

    class Observer:
        def begin(self, run: Any, /) -> None:
            seen.append(("begin", run.task))

        def turn(self, turn: Any, /) -> None:
            pass

        def end(self, end: Any, /) -> None:
            seen.append(("end", end.reason))

    pending = pending_of(agent([], calls(("delete", "a")), observers=[Observer()]).run_sync("Delete a."))
    end_of(agent([], "Done.", observers=[Observer()]).resume_sync(pending, {"delete-a": True}))
    assert seen == [("begin", "Delete a."), ("end", "pending"), ("begin", "Delete a."), ("end", "answered")]


@pytest.mark.parametrize("decisions", [(True, True), (True, False), (False, True)])
def test_equal_calls_are_decided_one_by_one(decisions: tuple[bool, bool]) -> None:
    ran: list[str] = []
    same = ParsedResponse("", tool_calls=tuple(ToolCall("delete", {"name": "a"}, id) for id in ("x", "y")))
    pending = pending_of(agent(ran, same).run_sync("Delete a, twice."))
    end_of(agent(ran, "Done.").resume_sync(pending, dict(zip(("x", "y"), decisions, strict=True))))
    # A refusal is valid for the same call until the user's next question, so the second one does not run after it.
    assert len(ran) == (sum(decisions) if decisions[0] else 0)


def test_budgets_count_both_halves_of_a_run() -> None:
    pending = pending_of(agent([], calls(("delete", "a"))).run_sync("Delete a."))
    config = AgentConfig(budget=toolwire.agent.Budget(calls=1, rounds=2))
    end = end_of(agent([], "Done.", config=config).resume_sync(pending, {"delete-a": True}))
    # The budgets count the whole run: its one call is used up, so the model is asked for a last answer.
    assert (end.reason, end.calls, end.rounds, end.answer) == ("budget", 1, 2, "Done.")


def test_run_that_is_refused_can_be_resumed_still() -> None:
    ran: list[str] = []
    pending = pending_of(agent(ran, calls(("delete", "a"))).run_sync("Delete a."))
    with pytest.raises(JournalError, match="is missing"):
        agent(ran).resume(pending, {})
    agent(ran).resume(pending, {"delete-a": True})  # its iterator is never read, so nothing begins
    assert ran == []
    assert end_of(agent(ran, "Done.").resume_sync(pending, {"delete-a": True})).good


def test_value_in_which_nothing_was_decided_can_be_resumed_again() -> None:
    ran: list[str] = []
    first = pending_of(agent(ran, calls(("delete", "a"))).run_sync("Delete a."))
    second = pending_of(agent(ran).resume_sync(first, {"delete-a": ApprovalAnswer(False, unanswered=True)}))
    assert second.digest != first.digest
    assert end_of(agent(ran, "Done.").resume_sync(second, {"delete-a": True})).good
    assert ran == ["delete a"]


def test_session_gets_the_state_of_the_run_in_place_of_its_own() -> None:
    pending = pending_of(agent([], calls(("delete", "a"))).run_sync("Delete a."))
    session = Session(untrusted=True)
    session.record_decision("of another conversation", approved=True)
    end_of(agent([], "Done.").resume_sync(pending, {"delete-a": True}, session=session))
    assert (session.untrusted, session._approved, session._counts) == (False, set(), {"delete": 1})

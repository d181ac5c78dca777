"""Deferred approvals: decisions that were made elsewhere answer the questions of a run, and other questions stay open.

A run that defers is always recorded, in memory. While a question is open, the call that it is about has no recorded
outcome, so the run that is resumed asks about it again, and then there is a decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from toolwire.agent.codec import dumps, loads
from toolwire.agent.journal import MemoryJournal
from toolwire.agent.parent_run import CURRENT_CALL
from toolwire.agent.pending import PendingApproval, PendingApprovals, shown_digest
from toolwire.agent.session_record import SessionRecord
from toolwire.agent.task import more_than_text
from toolwire.errors import JournalError
from toolwire.messages import Message
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.policy.session import Session

DEFER: Final = "defer"
Defer = Literal["defer"]
CHANGED: Final = (
    "This was approved, but the tool or what the call would do has changed since it was shown, so it did not run."
)
ASKED: Final = "A person was asked about this call."

_resumed: Final[set[str]] = set()
"""Digests of the values that this process has resumed."""
_UNANSWERED: Final = ApprovalAnswer(approved=False, unanswered=True)


class Deferral:
    """A `Confirm` without a person: it answers with decisions made elsewhere, and collects the other questions.

    Args:
        pending: the run that is resumed; None for a new run.
        decisions: decisions by the id of their question.

    Attributes:
        journal: records the run.
        open: the questions without an answer so far.
    """

    name = "deferred"

    def __init__(self, pending: PendingApprovals | None, decisions: Mapping[str, ApprovalAnswer]) -> None:
        records = {} if pending is None else pending.records
        self.journal = MemoryJournal({name: dumps(record) for name, record in records.items()})
        self.open: list[PendingApproval] = []
        # The journal is kept here and not in the run, since runs nested in its calls share the questions.
        self._pending = pending
        questions = () if pending is None else pending.approvals
        self._decided = {question.place: (question, decisions[question.id]) for question in questions}
        self._session = {} if pending is None else pending.session

    async def __call__(self, approval: Approval) -> ApprovalAnswer:
        """Return the decision about a call; without one, the question stays open."""
        parent = CURRENT_CALL.get()
        assert parent is not None  # the executor asks only while it runs a call
        question, decision = self._decided.get(parent.place, (None, _UNANSWERED))
        # A refusal is valid however the tool has changed. An approval is valid only for what was shown.
        if question is None or decision.unanswered:
            self.open.append(PendingApproval(approval.call.id, approval, parent.place))
            return _UNANSWERED
        if decision.approved and question.shown != shown_digest(approval):
            approval = replace(approval, reason=f"{CHANGED} {approval.reason}")
            self.open.append(PendingApproval(approval.call.id, approval, parent.place))
            return _UNANSWERED
        return decision

    def reason_to_ask(self, place: str) -> str:
        """Return why a call is asked about even where the policy allows it by now: a decision about it exists."""
        return ASKED if place in self._decided else ""

    def is_open(self, place: str) -> bool:
        """Return whether a call, or one in a run nested in it, waits for an approval."""
        return any(question.place == place or question.place.startswith(f"{place}.") for question in self.open)

    def waiting(self, place: str) -> list[str]:
        """Return the names of the tools of such calls, each once."""
        return list(dict.fromkeys(at.approval.call.name for at in self.open if at.place.startswith(f"{place}.")))

    def claim(self) -> None:
        """Claim the run that is resumed for this process; its calls must not run twice.

        Raises:
            JournalError: this process has resumed it already.
        """
        if self._pending is None:
            return
        digest = self._pending.digest
        if digest in _resumed:
            raise JournalError(f"the run {self._pending.run_id} was resumed from these pending approvals already")
        _resumed.add(digest)

    def begin(self, session: Session, clock: Callable[[], float]) -> None:
        """Record the state of the session before the run, or restore that of the run that is resumed."""
        # The state before the run: replaying the records repeats all later changes, so a later state would count twice.
        record = SessionRecord(session, clock)
        if self._pending is None:
            self._session = record.changes()
        else:
            record.reset()
            record.restore([self._session])

    def pending(self, agent: str, run_id: str, task: Message, history: Sequence[Message]) -> PendingApprovals:
        """Return the run as a value, with the questions that are open."""
        records = {name: loads(text) for name, text in self.journal.records.items()}
        questions = tuple(_with_unique_ids(self.open))
        parts = more_than_text(task)
        return PendingApprovals(agent, run_id, task.text, questions, tuple(history), self._session, records, parts)


def _with_unique_ids(questions: Sequence[PendingApproval]) -> Iterator[PendingApproval]:
    """Yield the questions with ids that name one question each: models may use the id of a call twice, or none."""
    counts = Counter(question.id for question in questions)
    ids = set(counts)
    for question in questions:
        id = question.id
        if not id or counts[id] > 1:
            number = 1
            while (id := f"{question.id}.{number}") in ids:
                number += 1
            ids.add(id)
        yield replace(question, id=id)

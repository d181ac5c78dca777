"""Pending approvals: a run that waits for a person, as a value that another process can resume hours later.

The value contains the records of the run, so it is resumed like a run that was interrupted: recorded answers are not
asked for again, and recorded calls do not run again. A decision is bound to what was shown by a digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from toolwire._surface import check_type
from toolwire.agent.codec import dumps, from_data, loads, to_data
from toolwire.errors import JournalError
from toolwire.messages import Content, Message, Part, digest
from toolwire.policy.approval import Approval, ApprovalAnswer

VERSION: Final = 1
_MARK: Final = "toolwire_pending"
_DIGEST: Final = "digest"


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A call that waits for an approval.

    Attributes:
        id: name of the question in the decisions: the id of the call, with a number behind it if another pending call
            has the same id.
        approval: the question, with the call, the tool and the preview; `present` shows it.
        place: name of the call that is unique among all runs.
    """

    id: str
    approval: Approval
    place: str

    @property
    def shown(self) -> str:
        """The SHA-256 hex digest of what was shown: the tool's definition, the arguments and the preview."""
        return shown_digest(self.approval)


def shown_digest(approval: Approval) -> str:
    """Return the SHA-256 hex digest of what a person approves; the reason for the question is not part of it."""
    return digest([approval.key, approval.preview])


@dataclass(frozen=True, slots=True)
class PendingApprovals:
    """A run that ended with the reason "pending", to be resumed with `Agent.resume`.

    Attributes:
        agent: name of the agent.
        run_id: name of the run.
        task: the user's request.
        approvals: the calls that wait for an approval, in the order in which they were asked about.
        history: the conversation before the task.
        session: state of the session before the run.
        records: the records of the run by name: answers, calls that ran with their results, changes of the session.
        parts: the parts of the user's request, if it is more than text.
    """

    agent: str
    run_id: str
    task: str
    approvals: tuple[PendingApproval, ...]
    history: tuple[Message, ...] = ()
    session: dict[str, Any] = field(default_factory=dict)
    records: dict[str, Any] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()

    @property
    def content(self) -> Content:
        """The whole request of the user."""
        return self.parts or self.task

    @property
    def digest(self) -> str:
        """The SHA-256 hex digest of the whole value, for a form that binds decisions to it."""
        return digest(to_data(self))

    def to_json(self) -> str:
        """Return the value as JSON text, with its version and its digest.

        It contains the conversation. A change of it changes what runs, so store it where users cannot write.

        Raises:
            JournalError: it contains a value that JSON does not have.
        """
        data = to_data(self)
        # The digest finds damage. Who can write the text can also write another digest, so it is not a signature.
        return dumps({_MARK: VERSION, _DIGEST: digest(data), **data})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the value that `to_json` wrote.

        Raises:
            JournalError: the text is not such a value, was changed since, or has an unknown version.
            TypeError: it is not text.
        """
        check_type("text", text, str, "the text of PendingApprovals.to_json()")
        data = loads(text)
        if not isinstance(data, dict) or _MARK not in data:
            raise JournalError("this is not the text of pending approvals")
        version, expected = data.pop(_MARK), data.pop(_DIGEST, None)
        if version != VERSION:
            raise JournalError(
                f"pending approvals of version {version!r:.20} cannot be read, only of version {VERSION}"
            )
        if digest(data) != expected:
            raise JournalError("these pending approvals were changed since they were written")
        return from_data(cls, data)

    def check_decisions(self, decisions: Mapping[str, bool | ApprovalAnswer]) -> dict[str, ApprovalAnswer]:
        """Return the decisions by the id of their question.

        Raises:
            JournalError: a decision is missing, or there is no question with its id.
            TypeError: a decision is neither a boolean nor an `ApprovalAnswer`.
        """
        check_type("decisions", decisions, Mapping, "a dict of decisions by call id, such as {'call_1': True}")
        ids = [question.id for question in self.approvals]
        unknown, missing = sorted(set(map(str, decisions)) - set(ids)), [id for id in ids if id not in decisions]
        if unknown:
            raise JournalError(f"no call with the id {', '.join(unknown)} waits for an approval, only {', '.join(ids)}")
        if missing:
            raise JournalError(f"a decision about {', '.join(missing)} is missing")
        for id in ids:
            check_type(f"decisions[{id!r}]", decisions[id], (bool, ApprovalAnswer), "True, False or an ApprovalAnswer")
        return {id: _answer(decisions[id]) for id in ids}


def _answer(decision: bool | ApprovalAnswer) -> ApprovalAnswer:
    return decision if isinstance(decision, ApprovalAnswer) else ApprovalAnswer(decision)

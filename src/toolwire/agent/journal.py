"""What an agent's run records so that another process can go on with it: each answer of the model, each call.

A record is written before anything builds on it, one after the other, so what is there is always a beginning of what
happened. Of a call there are two: that it begins, written when it may run and right before it does, and what became of
it. A call with the first and without the second was running when the process ended.

Each record holds, besides, what the run has come to: seconds, tokens, and what changed in its session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from toolwire.agent.budget import Spending
from toolwire.agent.codec import SessionRecord, dumps, loads, read, written
from toolwire.agent.run_events import AgentEvent, ToolFinished, ToolStarted, TurnStarted
from toolwire.errors import JournalError
from toolwire.events import replay
from toolwire.execution.executor import Outcome
from toolwire.execution.registry import Registered
from toolwire.messages import ParsedResponse, ToolCall, ToolResult, Usage
from toolwire.policy.session import Session

UNKNOWN = (
    "The program was stopped while this call was running. It may or may not have done its work; its result is lost: "
    "look before you make it again."
)
NOT_RECORDABLE = "The tool ran, but what it gave back is no JSON."


class Journal(Protocol):
    """Where the records of one run are kept, as text by name. A run without one records nothing.

    A record that is written again replaces the one before.
    """

    def names(self) -> Iterable[str]:
        """The names of the records that were there when the journal was opened."""
        ...

    def read(self, name: str) -> str | None:
        """One of them; None if there is none of this name."""
        ...

    async def write(self, name: str, text: str) -> None:
        """Keep a record; it is safe when this returns.

        Raises:
            JournalError: it cannot be kept, or the run belongs to another process by now.
        """
        ...


class MemoryJournal:
    """A journal in a dict: for tests, or for a program that keeps the dict itself."""

    def __init__(self, records: dict[str, str] | None = None) -> None:
        self.records = {} if records is None else records
        self._known = dict(self.records)

    def names(self) -> Iterable[str]:
        """See `Journal`."""
        return self._known

    def read(self, name: str) -> str | None:
        """See `Journal`."""
        return self._known.get(name)

    async def write(self, name: str, text: str) -> None:
        """See `Journal`."""
        self.records[name] = text


class _Inner:
    """The part of a journal that belongs to a run inside a call."""

    def __init__(self, whole: Journal, prefix: str) -> None:
        self._whole = whole
        self._prefix = prefix

    def names(self) -> Iterable[str]:
        return [name.removeprefix(self._prefix) for name in self._whole.names() if name.startswith(self._prefix)]

    def read(self, name: str) -> str | None:
        return self._whole.read(self._prefix + name)

    async def write(self, name: str, text: str) -> None:
        await self._whole.write(self._prefix + name, text)


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An answer of the model, as the run goes on with it.

    Attributes:
        response: through all steps of its chain.
        used_up: the budget that was used up when it was asked for; "" if none was.
        format: the wire format that was asked for.
        untrusted: the model had read text of strangers.
    """

    response: ParsedResponse
    used_up: str = ""
    format: str = ""
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class RecordedStart:
    """A call that was let through.

    Attributes:
        call: exactly as it ran.
        key: its approval key.
        idempotent: it may run again.
    """

    call: ToolCall
    key: str
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """What became of a call.

    Attributes:
        outcome: the call as it ran, and its result.
        seconds: how long it took.
        stepped: the result is as the steps of its chain made it; not, if one of them failed.
    """

    outcome: Outcome
    seconds: float = 0.0
    stepped: bool = True


class RunRecorder:
    """Writes the records of one run, and knows those of its earlier lives.

    Args:
        journal: where they are.
        session: the run's; what was recorded of it is restored at once.
        clock: seconds, as the session's limits count them.
        spending: the run's; restored likewise.
        elapsed: seconds that the run has taken so far, earlier lives included.

    Attributes:
        resumed: there was an earlier life.
        seconds: that the earlier lives took.

    Raises:
        JournalError: the records cannot be read.
    """

    def __init__(
        self,
        journal: Journal,
        session: Session,
        clock: Callable[[], float],
        spending: Spending,
        elapsed: Callable[[], float],
    ) -> None:
        self._journal = journal
        self._spending = spending
        self._elapsed = elapsed
        self._session = SessionRecord(session, clock)
        self._known = known(journal)
        self._writing = asyncio.Lock()
        self.resumed = bool(self._known)
        past = sorted(self._known.values(), key=lambda record: record.get("at", 0))
        self._session.restore([record.get("session", {}) for record in past])
        last = past[-1] if past else {}
        self._at: int = last.get("at", 0)
        self.seconds: float = last.get("seconds", 0.0)
        spending.usage = read(Usage, last.get("usage", {}))
        spending.money = float(last.get("money", 0.0))

    def answer(self, round: int) -> RecordedAnswer | None:
        """What the model answered in an earlier life."""
        record = self._known.get(f"answer.{round}")
        return None if record is None else read(RecordedAnswer, record["answer"])

    async def answered(self, round: int, answer: RecordedAnswer) -> RecordedAnswer:
        """Record an answer; the run goes on with what is given back, as a later life would.

        Raises:
            JournalError: see `Journal.write`.
        """
        text = dumps(written(answer))
        await self._write(f"answer.{round}", "answer", text)
        return read(RecordedAnswer, loads(text))

    def call(self, round: int, index: int) -> CallRecorder:
        """The record of a call, by its place."""
        return CallRecorder(self, f"{round}.{index}")

    async def _write(self, name: str, key: str, text: str, settle: Callable[[], None] | None = None) -> None:
        async with self._writing:
            if settle is not None:
                settle()
            self._at += 1
            changes = self._session.changes()
            state = {
                "at": self._at,
                "seconds": round(self._elapsed(), 6),
                "usage": written(self._spending.usage),
                "money": self._spending.money,
                "session": changes,
            }
            kept = False
            try:
                await self._journal.write(name, f'{{"{key}":{text},{dumps(state)[1:]}')
                kept = True
            finally:
                if not kept:
                    self._session.unkept(changes)


class CallRecorder:
    """What is recorded of one call.

    Attributes:
        done: what became of it in an earlier life.
        begun: it was let through in an earlier life.
    """

    def __init__(self, recorder: RunRecorder, place: str) -> None:
        self._recorder = recorder
        self._place = place
        known = recorder._known
        done, begun = known.get(f"done.{place}"), known.get(f"begun.{place}")
        self.done = None if done is None else read(RecordedOutcome, done["done"])
        self.begun = None if begun is None else read(RecordedStart, begun["begun"])

    @property
    def lost(self) -> Outcome | None:
        """What the model is told of a call that was running when the process ended, and that must not run again."""
        if self.done is not None or self.begun is None or self.begun.idempotent:
            return None
        call = self.begun.call
        return Outcome(call, ToolResult(call.id, call.name, error=UNKNOWN))

    @property
    def permitted(self) -> str:
        """The approval key of a call that was let through."""
        return "" if self.begun is None else self.begun.key

    def inner(self) -> Journal:
        """For a run inside this call."""
        return _Inner(self._recorder._journal, f"{self._place}/")

    async def noted(self, call: ToolCall, tool: Registered, key: str) -> None:
        """Record that the call begins; see `ToolExecutor.run`.

        Raises:
            JournalError: see `Journal.write`.
        """
        begun = RecordedStart(call, key, tool.idempotent)
        if self.begun != begun:
            await self._recorder._write(f"begun.{self._place}", "begun", dumps(written(begun)))

    async def finish(
        self,
        outcome: Outcome,
        seconds: float,
        *,
        stepped: bool = True,
        settle: Callable[[], None] | None = None,
    ) -> Outcome:
        """Record what became of the call; what is given back is what a later life would read.

        Raises:
            JournalError: see `Journal.write`.
        """
        done = RecordedOutcome(outcome, round(seconds, 6), stepped)
        try:
            text = dumps(written(done))
        except JournalError:
            result = ToolResult(outcome.call.id, outcome.call.name, error=NOT_RECORDABLE)
            text = dumps(written(replace(done, outcome=replace(outcome, result=result))))
        await self._recorder._write(f"done.{self._place}", "done", text, settle)
        return read(RecordedOutcome, loads(text)).outcome


def known(journal: Journal) -> dict[str, dict[str, Any]]:
    """The records of a run itself, without those of runs inside its calls.

    Raises:
        JournalError: they cannot be read.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in journal.names():
        if "/" not in name:
            record = loads(journal.read(name) or "")
            if not isinstance(record, dict):
                raise JournalError(f"the record {name!r} is none of a run")
            found[name] = record
    return found


def told(journal: Journal) -> Iterator[AgentEvent]:
    """The events that the records tell of, in the order in which it happened; more records add to its end.

    Raises:
        JournalError: they cannot be read.
    """
    records = known(journal)
    for name, record in sorted(records.items(), key=lambda one: one[1].get("at", 0)):
        kind, _, place = name.partition(".")
        if kind == "answer":
            yield TurnStarted(int(place))
            yield from replay(read(RecordedAnswer, record["answer"]).response)
        elif kind == "begun":
            yield ToolStarted(read(RecordedStart, record["begun"]).call)
        elif kind == "done":
            done = read(RecordedOutcome, record["done"])
            if f"begun.{place}" not in records:  # it was refused, or a step answered it
                yield ToolStarted(done.outcome.call)
            yield ToolFinished(done.outcome, done.seconds)

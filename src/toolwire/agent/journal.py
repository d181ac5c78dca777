"""The journal of a run, by which another process can continue it: each answer of the model, and each call.

A record is written before anything builds on it, and records are written one after the other, so those that exist are
always a beginning of what happened. A call has two: its start, written when the call may run and right before it does,
and its outcome. A call with a start and no outcome was running when the process ended.

Each record also contains the state of the run at its time: seconds, tokens, and changes of the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from toolwire.agent.budget import Spending
from toolwire.agent.codec import dumps, from_data, loads, to_data
from toolwire.agent.run_events import AgentEvent, Compacted, ToolFinished, ToolStarted, TurnStarted
from toolwire.agent.session_record import SessionRecord
from toolwire.errors import JournalError
from toolwire.events import replay
from toolwire.execution.outcomes import Outcome
from toolwire.execution.registry import Registered
from toolwire.messages import ParsedResponse, ToolCall, ToolResult, Usage
from toolwire.policy.session import Session

T = TypeVar("T")

UNKNOWN = (
    "The program was stopped while this call was running. It may or may not have done its work; its result is lost: "
    "look before you make it again."
)
NOT_RECORDABLE = "The tool ran, but its result is not JSON."


@runtime_checkable
class Journal(Protocol):
    """The records of one run, as text by name. A run without a journal records nothing.

    A record replaces an earlier one of the same name.
    """

    def names(self) -> Iterable[str]:
        """Return the names of the records that existed when the journal was opened."""
        ...

    def read(self, name: str) -> str | None:
        """Return one of these records; None if there is none of this name."""
        ...

    async def write(self, name: str, text: str) -> None:
        """Write a record. It is durable when this returns.

        Raises:
            JournalError: it cannot be written, or the run belongs to another process by now.
        """
        ...


class MemoryJournal:
    """A journal in a dict: for tests, or for a program that stores the dict itself."""

    def __init__(self, records: dict[str, str] | None = None) -> None:
        self.records = {} if records is None else records
        self._earlier = dict(self.records)

    def names(self) -> Iterable[str]:
        """See `Journal`."""
        return self._earlier

    def read(self, name: str) -> str | None:
        """See `Journal`."""
        return self._earlier.get(name)

    async def write(self, name: str, text: str) -> None:
        """See `Journal`."""
        self.records[name] = text


class _NestedJournal:
    """The part of a journal that belongs to runs inside one call: its records have a prefix."""

    def __init__(self, journal: Journal, prefix: str) -> None:
        self._journal = journal
        self._prefix = prefix

    def names(self) -> Iterable[str]:
        return [name.removeprefix(self._prefix) for name in self._journal.names() if name.startswith(self._prefix)]

    def read(self, name: str) -> str | None:
        return self._journal.read(self._prefix + name)

    async def write(self, name: str, text: str) -> None:
        await self._journal.write(self._prefix + name, text)


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An answer of the model, as the run continues with it.

    Attributes:
        response: the answer, changed by the response hooks.
        exhausted: the budget that was used up when the model was asked; "" if none was.
        format: the wire format in which the model was asked to write.
        untrusted: whether the model had read untrusted content.
    """

    response: ParsedResponse
    exhausted: str = ""
    format: str = ""
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class RecordedStart:
    """A call that was permitted to run.

    Attributes:
        call: the call exactly as it runs.
        key: its approval key.
        idempotent: whether it may run again.
    """

    call: ToolCall
    key: str
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """The outcome of a call.

    Attributes:
        outcome: the call as it ran, and its result.
        seconds: duration of the call.
        hooks_applied: whether the result was changed by the result hooks; False if one of them failed.
    """

    outcome: Outcome
    seconds: float = 0.0
    hooks_applied: bool = True


class RunRecorder:
    """Writes the records of one run, and reads those of earlier processes.

    Args:
        journal: contains the records.
        session: session of the run. Its recorded state is restored at once.
        clock: returns seconds, as the session's limits count them.
        spending: resources that the run has used. Restored likewise.
        elapsed: returns the duration of the run in seconds, earlier processes included.

    Attributes:
        resumed: whether an earlier process recorded something.
        seconds: duration of the run in earlier processes.

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
        self.journal = journal
        self.records = own_records(journal)
        self._spending = spending
        self._elapsed = elapsed
        self._session = SessionRecord(session, clock)
        self._writing = asyncio.Lock()
        self.resumed = bool(self.records)
        # Calls of one turn end in any order, so the number in a record says which of them came first.
        earlier = sorted(self.records.values(), key=_position)
        self._session.restore([record.get("session", {}) for record in earlier])
        last = earlier[-1] if earlier else {}
        self._position = _position(last)
        self.seconds: float = last.get("seconds", 0.0)
        spending.usage = from_data(Usage, last.get("usage", {}))
        spending.money = float(last.get("money", 0.0))

    def answer(self, round: int) -> RecordedAnswer | None:
        """Return the answer of a round that an earlier process recorded; None if it recorded none."""
        return self._recorded(RecordedAnswer, "answer", round)

    async def record_answer(self, round: int, answer: RecordedAnswer) -> RecordedAnswer:
        """Record an answer, and return it as a later process would read it.

        Raises:
            JournalError: see `Journal.write`.
        """
        return await self._record("answer", round, answer)

    def compaction(self, round: int) -> Compacted | None:
        """Return the compaction before a round that an earlier process recorded; None if it recorded none."""
        return self._recorded(Compacted, "compaction", round)

    async def record_compaction(self, round: int, compacted: Compacted) -> Compacted:
        """Record a compaction, and return it as a later process would read it.

        Raises:
            JournalError: see `Journal.write`.
        """
        return await self._record("compaction", round, compacted)

    def _recorded(self, kind: type[T], key: str, round: int) -> T | None:
        record = self.records.get(f"{key}.{round}")
        return None if record is None else from_data(kind, record[key])

    async def _record(self, key: str, round: int, value: T) -> T:
        # Written and read back, so that a run that is resumed continues with exactly the same values.
        text = dumps(to_data(value))
        await self.write(f"{key}.{round}", key, text)
        return from_data(type(value), loads(text))

    async def record_pause(self) -> None:
        """Record the state of the run at a pause, which may have changed since its last record.

        Raises:
            JournalError: see `Journal.write`.
        """
        await self.write(f"pause.{self._position + 1}", "pause", "true")

    def call(self, round: int, index: int) -> CallRecorder:
        """Return the recorder of the call at this place."""
        return CallRecorder(self, f"{round}.{index}")

    async def write(self, name: str, key: str, text: str, settle: Callable[[], None] | None = None) -> None:
        """Write a record, with the state of the run.

        Args:
            name: name of the record.
            key: key of its own data, beside the state.
            text: this data as JSON.
            settle: called right before the state is read, when no other record is being written.

        Raises:
            JournalError: see `Journal.write`.
        """
        # One at a time: a record has only the changes of the session since the one before it, so none may be stored
        # while that one can still fail.
        async with self._writing:
            if settle is not None:
                settle()
            self._position += 1
            changes = self._session.changes()
            state = {
                "at": self._position,
                "seconds": round(self._elapsed(), 6),
                "usage": to_data(self._spending.usage),
                "money": self._spending.money,
                "session": changes,
            }
            written = False
            try:
                # Put together from texts: an answer is long, and was encoded already.
                await self.journal.write(name, f'{{"{key}":{text},{dumps(state)[1:]}')
                written = True
            finally:
                if not written:  # also when the time limit of the run cancels this
                    self._session.forget(changes)


class CallRecorder:
    """Writes the records of one call, and reads those of earlier processes.

    Attributes:
        outcome: the outcome that an earlier process recorded; None if it recorded none.
        start: the start that an earlier process recorded; None if it recorded none.
    """

    def __init__(self, recorder: RunRecorder, place: str) -> None:
        self._recorder = recorder
        self._place = place
        # By the place in the run and not by the id of the call, which a model may use twice.
        outcome, start = recorder.records.get(f"done.{place}"), recorder.records.get(f"begun.{place}")
        self.outcome = None if outcome is None else from_data(RecordedOutcome, outcome["done"])
        self.start = None if start is None else from_data(RecordedStart, start["begun"])

    @property
    def lost(self) -> Outcome | None:
        """The outcome of a call that was running when the process ended, and must not run again; None for others."""
        if self.outcome is not None or self.start is None or self.start.idempotent:
            return None
        call = self.start.call
        return Outcome(call, ToolResult(call.id, call.name, error=UNKNOWN))

    @property
    def approval_key(self) -> str:
        """The approval key of a call that an earlier process permitted; "" for others."""
        return "" if self.start is None else self.start.key

    def nested_journal(self) -> Journal:
        """Return the journal for runs inside this call."""
        return _NestedJournal(self._recorder.journal, f"{self._place}/")

    async def record_start(self, call: ToolCall, tool: Registered, key: str) -> None:
        """Record that the call starts; see `ToolExecutor.run`.

        Raises:
            JournalError: see `Journal.write`.
        """
        start = RecordedStart(call, key, tool.behavior.idempotent)
        # An idempotent call that runs again is recorded already, unless it is approved in another form.
        if self.start != start:
            await self._recorder.write(f"begun.{self._place}", "begun", dumps(to_data(start)))

    async def record_outcome(
        self,
        outcome: Outcome,
        seconds: float,
        *,
        hooks_applied: bool = True,
        settle: Callable[[], None] | None = None,
    ) -> Outcome:
        """Record the outcome of the call, and return it as a later process would read it.

        Args:
            outcome: the outcome.
            seconds: duration of the call.
            hooks_applied: whether the result was changed by the result hooks.
            settle: see `RunRecorder.write`.

        Raises:
            JournalError: see `Journal.write`.
        """
        recorded = RecordedOutcome(outcome, round(seconds, 6), hooks_applied)
        try:
            text = dumps(to_data(recorded))
        except JournalError:
            # The call ran, which matters more than its result.
            result = ToolResult(outcome.call.id, outcome.call.name, error=NOT_RECORDABLE)
            text = dumps(to_data(replace(recorded, outcome=replace(outcome, result=result))))
        await self._recorder.write(f"done.{self._place}", "done", text, settle)
        return from_data(RecordedOutcome, loads(text)).outcome


def own_records(journal: Journal) -> dict[str, dict[str, Any]]:
    """Return the records of a run by name, without those of runs nested in its calls.

    Raises:
        JournalError: they cannot be read.
    """
    records: dict[str, dict[str, Any]] = {}
    for name in journal.names():
        if "/" not in name:  # the prefix of a nested run ends with it
            record = loads(journal.read(name) or "")
            if not isinstance(record, dict):
                raise JournalError(f"the record {name!r} is not a JSON object")
            records[name] = record
    return records


def recorded_events(journal: Journal) -> Iterator[AgentEvent]:
    """Yield the events that the records describe, in the order in which they happened; later records add to the end.

    Raises:
        JournalError: the records cannot be read.
    """
    records = own_records(journal)
    for name, record in sorted(records.items(), key=lambda entry: _position(entry[1])):
        kind, _, place = name.partition(".")
        if kind == "answer":
            yield TurnStarted(int(place))
            yield from replay(from_data(RecordedAnswer, record["answer"]).response)
        elif kind == "compaction":
            yield from_data(Compacted, record["compaction"]).event
        elif kind == "begun":
            yield ToolStarted(from_data(RecordedStart, record["begun"]).call)
        elif kind == "done":
            recorded = from_data(RecordedOutcome, record["done"])
            if f"begun.{place}" not in records:  # it was refused, or a hook answered it
                yield ToolStarted(recorded.outcome.call)
            yield ToolFinished(recorded.outcome, recorded.seconds)


def _position(record: dict[str, Any]) -> int:
    """Return the number of a record in the order in which they were written."""
    position: int = record.get("at", 0)
    return position

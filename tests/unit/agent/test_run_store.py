"""The records of a run that goes on, told bit by bit."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("dbos")

from toolwire import ParsedResponse, ToolCall, ToolResult
from toolwire.agent.codec import dumps, to_data
from toolwire.agent.journal import MemoryJournal, RecordedAnswer, RecordedOutcome, RecordedStart, recorded_events
from toolwire.agent.run_store import RunTail
from toolwire.execution.outcomes import Outcome


class Records(dict[str, str]):
    """Counts how often one is read."""

    reads = 0

    def __getitem__(self, name: str) -> str:
        """A record."""
        self.reads += 1
        return super().__getitem__(name)


def records() -> dict[str, str]:
    """Of rounds with a call that runs, and one that is refused."""
    found: list[tuple[str, str, Any]] = []
    for at in range(1, 20):
        runs, refused = ToolCall("t", {"a": at}, f"c{at}"), ToolCall("u", {}, f"d{at}")
        found += [
            (f"answer.{at}", "answer", RecordedAnswer(ParsedResponse("Well.", tool_calls=(runs, refused)))),
            (f"done.{at}.1", "done", RecordedOutcome(Outcome(refused, ToolResult(refused.id, "u", error="no")))),
            (f"begun.{at}.0", "begun", RecordedStart(runs, "key")),
            (f"begun.{at}.0/begun.1.0", "begun", RecordedStart(runs, "key")),
            (f"done.{at}.0", "done", RecordedOutcome(Outcome(runs, ToolResult(runs.id, "t", "x")), 0.5)),
        ]
    return {name: f'{{"{key}":{dumps(to_data(one))},"at":{at}}}' for at, (name, key, one) in enumerate(found)}


@pytest.mark.parametrize("step", [1, 2, 7, 100])
def test_only_new_records_are_loaded_and_reported(step: int) -> None:
    whole = records()
    tail = RunTail(None, "run")  # type: ignore[arg-type]  # nothing is loaded
    tail.records = kept = Records()
    heard = []
    for at, (name, text) in enumerate(whole.items()):
        kept[name] = text
        if at % step == 0:
            heard += list(tail.new_events())
    heard += list(tail.new_events())
    assert heard == list(recorded_events(MemoryJournal(whole)))
    assert kept.reads <= 2 * len(whole)

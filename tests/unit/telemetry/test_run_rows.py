"""The rows of runs that are being recorded: how many are remembered at the same time."""

import pytest

from toolwire.telemetry import EndRecord, run_rows
from toolwire.telemetry.run_rows import OpenRuns


def test_the_oldest_run_is_forgotten_when_too_many_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_rows, "MAX_OPEN_RUNS", 3)
    ends = [EndRecord(str(number), "answered", good=True) for number in range(4)]
    open_runs = OpenRuns()
    rows = [open_runs.of(end) for end in ends]
    assert [open_runs.of(end) is row for end, row in zip(ends[1:], rows[1:], strict=True)] == [True] * 3
    assert open_runs.of(ends[0]) is not rows[0]

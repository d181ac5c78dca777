"""Agents over connections that do all that connections do; `benchmarks/chaos.py` has more of them."""

from benchmarks import chaos


def test_every_run_ends_and_nothing_is_left() -> None:
    figures = chaos.measured(50, seed=50)
    assert figures["failures"] == []
    assert figures["ended in an answer or a clear error"] == 50
    assert figures["faults"] > 50

"""The fuzzer tries the same two thousand texts each time, and finds a broken engine."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.__main__ import Fuzzer
from tests.property import laws

from toolwire.wire.marker_sets import MarkerSet
from toolwire.wire.message_reader import MessageReader

ROOT = Path(__file__).resolve().parents[2]


TURNS = 2_000


def _fuzz(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fuzz", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)


@pytest.mark.need(9, 16)
def test_two_thousand_texts_break_no_law() -> None:
    process = _fuzz("--seed", "1", "--turns", str(TURNS))
    assert process.returncode == 0, process.stdout + process.stderr
    assert f"{TURNS} texts" in process.stderr


def test_equal_seeds_give_equal_texts() -> None:
    tried = []
    for _ in range(2):
        fuzzer = Fuzzer("auto", random.Random(7))
        tried.append([fuzzer.turn() for _ in range(10)])
    assert tried[0] == tried[1]


def test_the_fuzzer_reports_failed_round_trips_as_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise AssertionError

    monkeypatch.setattr(laws, "check_round_trip", broken)
    fuzzer = Fuzzer("hermes", random.Random(1))
    for _ in range(50):
        try:
            fuzzer.turn()
        except AssertionError:
            break
    assert fuzzer.last.keys() == {"format", "calls"}
    assert fuzzer.last["calls"][0]["name"] == "write_file"


def _tries(name: str) -> int:
    """Return the number of turns until a law fails, or 0."""
    fuzzer = Fuzzer(name, random.Random(1))
    for turn in range(1, 500):
        try:
            fuzzer.turn()
        except AssertionError:
            return turn
    return 0


@pytest.mark.mission("E3")
def test_the_fuzzer_finds_partial_markers_that_are_not_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _tries("kimi_k2")
    search = MarkerSet.search

    def hasty(self: MarkerSet, text: str, pos: int, final: bool) -> tuple[int, int, str]:
        start, stop, marker = search(self, text, pos, final)
        return (start, stop, marker) if marker else (len(text), len(text), "")

    monkeypatch.setattr(MarkerSet, "search", hasty)
    assert _tries("kimi_k2")


def test_the_fuzzer_finds_lost_text(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = MessageReader.feed
    monkeypatch.setattr(MessageReader, "feed", lambda self, text: feed(self, text.replace("x", "")))
    assert _tries("hermes")

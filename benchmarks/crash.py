"""Kill a recorded run at a random moment, resume it, and look whether anything was lost or done twice.

    python -m benchmarks.crash [--kills 100] [--seed 1] [--database URL] [--json]

Each run makes twelve calls that append a line to a file, alone or several at once. It lives in a process of its own,
which is killed with SIGKILL at a random moment, up to three times; then another process takes it to its end. The model
is a function of what it is asked: where it is told that a call may or may not have done its work, it looks before it
calls again. What the processes did stands in a file that they append to, and is compared with what they had recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rich.progress import Progress

from toolwire import FinishReason, ParsedResponse, Tier, ToolCall, ToolResult, Usage
from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.agent.codec import from_data, from_json, to_json
from toolwire.agent.durable import run_durably
from toolwire.agent.journal import UNKNOWN
from toolwire.agent.run_events import RunEnded
from toolwire.agent.run_store import RunStore
from toolwire.events import Event, replay
from toolwire.execution.registry import ToolRegistry
from toolwire.models.backends import NO_OPTIONS, StreamOptions
from toolwire.providers.request import ChatRequest

TURNS = ((1,), (2, 3), (4,), (5, 6, 7), (8,), (9, 10), (11,), (12,))
"""The calls of each turn."""
CALLS = sum(map(len, TURNS))
ANSWER = "All twelve are there."
PAUSE = 0.002
"""Seconds that the model and the tools take, so that there is time to be killed in them."""
LONGEST = 120.0
"""Seconds after which a process counts as hanging."""
CONTEXT = multiprocessing.get_context("forkserver")
"""Makes processes of one that has imported everything, so that most of their time is that of a run."""
CONTEXT.set_forkserver_preload(["toolwire.agent.durable"])


class World:
    """What the tools change, and what the processes of a run did."""

    def __init__(self, folder: Path) -> None:
        self.ledger = folder / "ledger"
        self.log = folder / "log"

    def note(self, **what: Any) -> None:
        """One line, written at once; it stays when the process is killed."""
        _append(self.log, json.dumps({"life": os.getpid(), **what}))

    def noted(self) -> list[dict[str, Any]]:
        """All lines."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def lines(self) -> list[int]:
        """What was appended."""
        return [int(line) for line in self.ledger.read_text().splitlines()] if self.ledger.exists() else []

    async def append(self, number: int) -> str:
        """Append a number."""
        self.note(begun=number)
        await asyncio.sleep(PAUSE)
        _append(self.ledger, str(number))
        await asyncio.sleep(PAUSE)
        self.note(finished=number)
        return f"{number} is there"

    def look(self, number: int) -> bool:
        """Whether a number is there."""
        return number in self.lines()


def _append(path: Path, line: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{line}\n".encode())
    os.close(file)


class Planned:
    """The model: what it answers depends on nothing but what it is asked."""

    model, api, format = "planned", "", ""

    def __init__(self, world: World) -> None:
        self._world = world

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        """The next turn."""
        self._world.note(asked=options.id_seed)
        for event in replay(self._planned(request)):
            await asyncio.sleep(PAUSE / 8)
            yield event

    def _planned(self, request: ChatRequest) -> ParsedResponse:
        seen = [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
        told = {result.call_id: result for result in seen}
        lost = [number for number in range(1, CALLS + 1) if _asks(told, number)]
        if lost:
            return _calling([ToolCall("look", {"number": one}, f"look {one} {_looks(told, one)}") for one in lost])
        again = [number for number in range(1, CALLS + 1) if _again(told, number)]
        if again:
            return _calling([ToolCall("append", {"number": one}, f"{one} {_tries(told, one)}") for one in again])
        for turn in TURNS:
            if not all(_tries(told, number) for number in turn):
                return _calling([ToolCall("append", {"number": number}, f"{number} 0") for number in turn])
        return ParsedResponse(ANSWER, usage=Usage(100, 10))


def _tries(told: dict[str, ToolResult], number: int) -> int:
    """How often the call was made."""
    return sum(key.startswith(f"{number} ") for key in told)


def _looks(told: dict[str, ToolResult], number: int) -> int:
    return sum(key.startswith(f"look {number} ") for key in told)


def _unknown(told: dict[str, ToolResult], number: int) -> int:
    return sum(key.startswith(f"{number} ") and result.error == UNKNOWN for key, result in told.items())


def _asks(told: dict[str, ToolResult], number: int) -> bool:
    """What became of the last try is not known, and was not looked at."""
    return _unknown(told, number) > _looks(told, number)


def _again(told: dict[str, ToolResult], number: int) -> bool:
    """It was looked at, and is not there."""
    looks = [result for key, result in told.items() if key.startswith(f"look {number} ")]
    return bool(looks) and looks[-1].result is False and _tries(told, number) == len(looks)


def _calling(calls: list[ToolCall]) -> ParsedResponse:
    return ParsedResponse(tool_calls=tuple(calls), finish_reason=FinishReason.TOOL_CALLS, usage=Usage(100, 10))


def agent_of(world: World) -> Agent:
    """The agent of all processes."""
    registry = ToolRegistry()
    registry.register(world.append, tier=Tier.RUN)
    registry.register(world.look, idempotent=True)
    config = AgentConfig(name="crash", tier=Tier.RUN, budget=Budget(rounds=60))
    return Agent(Planned(world), registry, config, telemetry=False)


def live(folder: Path, database: str, run_id: str, told: Connection) -> None:
    """One life, in a process of its own: it says when it has begun, and how the run ended."""

    async def go() -> None:
        begun = False
        async for event in run_durably(agent_of(World(folder)), "Append all.", run_id=run_id, database=database):
            if not begun:
                told.send("begun")
                begun = True
            if isinstance(event, RunEnded):
                told.send(to_json(event))

    asyncio.run(go())


@dataclass
class Trial:
    """One run, killed and resumed.

    Attributes:
        kills: that came before it had ended.
        failures: what is wrong.
        unknown: calls that were running when it was killed, and that the model was told of.
    """

    kills: int = 0
    unknown: int = 0
    failures: list[str] = field(default_factory=list)


class Process:
    """A process that has begun a run, or gone on with it."""

    def __init__(self, folder: Path, database: str, run_id: str) -> None:
        self._told, told = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=live, args=(folder, database, run_id, told))
        self._process.start()
        told.close()
        self.id = self._process.pid
        if self.said(LONGEST) != "begun":
            raise RuntimeError("a process did not begin")

    def said(self, seconds: float) -> str:
        """What it says within so many seconds; "" if it says nothing."""
        try:
            return str(self._told.recv()) if self._told.poll(seconds) else ""
        except EOFError:
            return ""

    def kill(self, seconds: float) -> None:
        """Kill it after so many seconds."""
        self._process.join(seconds)
        self._process.kill()
        self._process.join()

    def ended(self) -> str:
        """How the run ended, as JSON; "" if it did not."""
        end = self.said(LONGEST)
        self._process.join(LONGEST)
        well = self._process.exitcode == 0
        self._process.kill()
        self._process.join()
        return end if well else ""


def trial(folder: Path, database: str, rng: random.Random, longest: float, *, kills: int) -> Trial:
    """Kill a run so many times, if it does not end before, and take it to its end."""
    made, world, run_id = Trial(), World(folder), f"crash_{folder.name}"
    recorded: list[dict[str, str]] = []
    lives: list[int | None] = []
    for _ in range(kills):
        child = Process(folder, database, run_id)
        lives.append(child.id)
        child.kill(rng.uniform(0, longest))
        with RunStore(database) as store:
            recorded.append(store.records(run_id)[0])
            if store.info(run_id).state == "ended":
                break
        made.kills += 1
    child = Process(folder, database, run_id)
    lives.append(child.id)
    text = child.ended()
    if not text:
        made.failures.append("it was not resumed")
        return made
    end = from_json(RunEnded, text)
    made.failures += _failures(world, end, recorded, lives)
    made.unknown = sum(result.error == UNKNOWN for result in _results(end))
    return made


def _results(end: RunEnded) -> list[ToolResult]:
    return [part for message in end.messages for part in message.parts if isinstance(part, ToolResult)]


def _failures(world: World, end: RunEnded, recorded: list[dict[str, str]], lives: list[int | None]) -> list[str]:
    """What is wrong with a run that was killed and resumed."""
    found: list[str] = []
    if (end.reason, end.answer) != ("answered", ANSWER):
        found.append(f"it ended with {end.reason}: {end.detail or end.answer}")
    if sorted(world.lines()) != list(range(1, CALLS + 1)):
        found.append(f"it wrote {world.lines()}")
    results = Counter(result.call_id for result in _results(end))
    calls = [part.id for message in end.messages for part in message.parts if isinstance(part, ToolCall)]
    if results != Counter(calls):
        found.append("not every call has one result")
    told = {result.call_id: result for result in _results(end)}
    for at, records in enumerate(recorded):
        later = [line for line in world.noted() if line["life"] in lives[at + 1 :]]
        asked = {line["asked"].rpartition(".")[2] for line in later if "asked" in line}
        if again := asked & {name.removeprefix("answer.") for name in records if name.startswith("answer.")}:
            found.append(f"the model was asked again in the rounds {sorted(again)}")
        for name, text in records.items():
            if not name.startswith("done."):
                continue
            result = from_data(ToolResult, json.loads(text)["done"]["outcome"]["result"])
            if told.get(result.call_id) != result:
                found.append(f"the result of {result.call_id!r} was lost")
    runs = Counter(line["begun"] for line in world.noted() if "begun" in line)
    finished = Counter(line["finished"] for line in world.noted() if "finished" in line)
    for number, times in finished.items():
        if times > 1:
            found.append(f"the call {number} did its work {times} times")
    tries = Counter(int(key.partition(" ")[0]) for key in told if not key.startswith("look"))
    found += [f"the call {number} ran {runs[number]} times, and {tries[number]} were told" for number in runs
              if runs[number] > tries[number]]  # fmt: skip
    return found


def whole(folder: Path, database: str) -> float:
    """Seconds from the beginning to the end of a run that nobody kills."""
    child = Process(folder, database, f"crash_{folder.name}")
    begun = time.perf_counter()
    text = child.said(LONGEST)
    taken = time.perf_counter() - begun
    child.kill(LONGEST)
    if ANSWER not in text:
        raise RuntimeError("a run that nobody killed did not end well")
    return taken


def measured(kills: int, seed: int, database: str = "", *, shown: bool = False) -> dict[str, Any]:
    """Runs that were killed so many times in all."""
    rng = random.Random(seed)
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory() as top, Progress(disable=not shown) as progress:
        bar = progress.add_task("kills", total=kills)
        store = database or str(Path(top) / "runs.sqlite3")
        folder = Path(top, f"whole{seed}_{os.getpid()}")
        folder.mkdir()
        longest = whole(folder, store)
        while (left := kills - sum(one.kills for one in trials)) > 0:
            folder = Path(top, f"{len(trials)}_{seed}_{os.getpid()}")
            folder.mkdir()
            trials.append(trial(folder, store, rng, longest, kills=min(left, rng.choice((1, 1, 2, 3)))))
            progress.update(bar, completed=sum(one.kills for one in trials))
    failures = [failure for one in trials for failure in one.failures]
    killed = [one for one in trials if one.kills]
    return {
        "kills": sum(one.kills for one in trials),
        "runs killed": len(killed),
        "resumed to the same state": sum(one.kills for one in killed if not one.failures),
        "finished calls that ran twice": sum("times" in failure for failure in failures),
        "lost results": sum("lost" in failure for failure in failures),
        "calls told to the model as unknown": sum(one.unknown for one in trials),
        "seconds of a whole run": longest,
        "failures": failures,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="how often to kill a process")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--database", default="", help="an address of PostgreSQL; else a temporary SQLite file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures = measured(options.kills, options.seed, options.database, shown=not options.json and sys.stderr.isatty())
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name}: {value if not isinstance(value, float) else f'{value:.3g}'}")
    return 1 if figures["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""What the agent's loop costs beside the model, and how many runs one process carries.

    python -m benchmarks.agent_loop [--json]

A round is: ask, read an answer with one call from text in pieces, run the call, tell the result. The model is a script
that answers at once, so all that is measured is ours. Ways of keeping records take turns in one run; the figures are
processor time of the whole process, with the thread that writes records, and of the least disturbed runs. Then 500 runs
go on at the same time, in a process of their own for its peak of memory. How much of the time is reading text is told
twice: by the parser alone on the same pieces, and by a profiler.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any

import toolwire
from toolwire import ContentDelta, Event, Finish, FinishReason, Message
from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.models.backends import TextBackend
from toolwire.telemetry import Observer, Recorder

ROUNDS = 20
"""Rounds of a run; the last is an answer in prose."""
RUNS = 20
"""Runs of each way."""
TOGETHER = 500
PIECE = 12
PROSE = "Let me look at the next file; it should say more about the matter than the one before did. "
CALL = (
    '<tool_call>\n{"name": "note", "arguments": {"path": "src/part.py", "line": %d, "text": "what was found there"}}\n'
)
ANSWER = "That is all there is to say about it. " * 10
PARSING = ("reading.py", "fallback.py", "jsontext.py", "events.py", "tokentext.py", "pytext.py")
"""Modules that read text, besides those of `wire`."""


@toolwire.tool
async def note(path: str, line: int, text: str) -> str:
    """Notes something."""
    return f"noted line {line} of {path}"


def texts(rounds: int) -> list[list[str]]:
    """What a model writes in a run, in pieces."""
    whole = [PROSE + CALL % at + "</tool_call>" for at in range(rounds - 1)] + [ANSWER]
    return [[text[at : at + PIECE] for at in range(0, len(text), PIECE)] for text in whole]


def agent(script: list[list[str]], observers: Iterable[Observer], *, waits: bool = False) -> Agent:
    left = iter(script)

    async def source(messages: list[Message]) -> AsyncGenerator[Event]:
        for piece in next(left):
            if waits:
                await asyncio.sleep(0)
            yield ContentDelta(piece)
        yield Finish(FinishReason.STOP)

    backend = TextBackend(source, format="hermes", model="scripted")
    config = AgentConfig(system="You note what you find.", budget=Budget(rounds=len(script) + 1))
    return Agent(backend, [note], config, observers=observers, telemetry=False)


async def run(one: Agent) -> int:
    end: Any = None
    async for event in one.run("Note what you find."):
        end = event
    assert end.reason == "answered", end
    return int(end.rounds)


def rounds(folder: Path) -> dict[str, dict[str, float]]:
    """Milliseconds a round, by way of keeping records: on the wall, and of the processor in all threads."""
    recorder, figures = Recorder(folder / "all.db"), Recorder(folder / "figures.db", content=False)
    ways: dict[str, list[Observer]] = {"no records": [], "figures alone": [figures], "all records": [recorder]}
    try:
        from opentelemetry.sdk.trace import TracerProvider

        from toolwire.telemetry.otel import Tracing

        ways["OpenTelemetry, not exported"] = [Tracing(TracerProvider())]
    except ImportError:
        pass
    script = texts(ROUNDS)
    wall: dict[str, list[float]] = {name: [] for name in ways}
    cpu: dict[str, list[float]] = {name: [] for name in ways}
    for at in range(RUNS + 2):
        for name, observers in ways.items():
            one = agent(script, observers)
            gc.collect()
            begun, used = time.perf_counter(), time.process_time()
            asyncio.run(run(one))
            taken = time.perf_counter() - begun
            for observer in observers:
                if isinstance(observer, Recorder):
                    observer.flush()
            if at >= 2:
                wall[name].append(taken / ROUNDS * 1e3)
                cpu[name].append((time.process_time() - used) / ROUNDS * 1e3)
    recorder.close()
    figures.close()
    return {name: {"wall ms": min(wall[name]), "processor ms": min(cpu[name])} for name in ways}


def together(folder: Path) -> dict[str, float]:
    """Many runs at once, recorded; in a process of its own."""
    recorder = Recorder(folder / "together.db")
    script = texts(ROUNDS)

    async def main() -> tuple[float, float]:
        begun, used = time.perf_counter(), time.process_time()
        done = await asyncio.gather(*(run(agent(script, [recorder], waits=True)) for _ in range(TOGETHER)))
        assert sum(done) == TOGETHER * ROUNDS
        recorder.flush(60)
        return time.perf_counter() - begun, time.process_time() - used

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    taken, used = asyncio.run(main())
    lost = recorder.lost
    recorder.close()
    return {
        "runs": TOGETHER,
        "rounds": TOGETHER * ROUNDS,
        "seconds": taken,
        "processor ms a round": used / TOGETHER / ROUNDS * 1e3,
        "MB before": before,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "records lost": lost,
    }


def parsing() -> dict[str, float]:
    """The share of the loop's time that reading text takes; by a profiler, which makes small functions look bigger."""
    script = texts(ROUNDS)
    profile = cProfile.Profile()

    async def main() -> None:
        await asyncio.gather(*(run(agent(script, [], waits=True)) for _ in range(TOGETHER // 25)))

    profile.enable()
    asyncio.run(main())
    profile.disable()
    own = 0.0
    whole = 0.0
    for (file, _, _), (_, _, taken, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        whole += taken
        path = Path(file)
        if path.parent.name == "wire" or (path.name in PARSING and path.parent.name == "toolwire"):
            own += taken
    characters = sum(len(piece) for text in script for piece in text)
    alone: list[float] = []
    for _ in range(40):
        used = time.process_time()
        for text in script:
            parser = toolwire.StreamParser(format="hermes", tools=[note], fallback="whole_message")
            for piece in text:
                list(parser.feed(piece))
            list(parser.finish())
        alone.append((time.process_time() - used) / ROUNDS * 1e3)
    return {
        "share by profiler": own / whole,
        "parser alone ms a round": min(alone),
        "characters a round": characters / ROUNDS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--together", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if options.together:
            print(json.dumps(together(Path(name))))
            return
        alone = rounds(Path(name))
    share = parsing()
    again = [sys.executable, "-m", "benchmarks.agent_loop", "--together"]
    many = json.loads(subprocess.run(again, capture_output=True, check=True, text=True, env=os.environ).stdout)
    if options.json:
        print(json.dumps({"rounds": alone, "parsing": share, "together": many}))
        return
    reading = share["parser alone ms a round"]
    print(f"{'a round, in ms':30}{'processor':>10}{'but reading':>13}{'records add':>13}")
    none = alone["no records"]["processor ms"]
    for way, figures in alone.items():
        used = figures["processor ms"]
        print(f"{way:30}{used:10.3f}{used - reading:13.3f}{used - none:13.3f}")
    print(
        f"reading {share['characters a round']:.0f} characters in pieces of {PIECE}: {reading:.3f} ms a round,", end=" "
    )
    print(f"{reading / none:.0%} of the loop; {share['share by profiler']:.0%} by a profiler")
    print(", ".join(f"{name}: {value:.4g}" for name, value in many.items()))


if __name__ == "__main__":
    main()

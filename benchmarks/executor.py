"""What running a call costs beside running the function: look-up, repair, validation, decision, result.

    python -m benchmarks.executor [--json]

All figures come from one run, the measured things taking turns: microseconds above awaiting the function itself, and
how many empty awaits that is. The last part starts 10,000 calls of a tool that waits 10 ms, in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from toolwire import Tier, ToolCall
from toolwire.execution.executor import Session, ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.policy.policy import Limit, PathGlob, Policy, Rule

ROUNDS = 40
CALLS = 500
TOGETHER = 10_000
SECONDS = 0.010

ARGUMENTS = {"path": "src/a.py", "line": 3, "ratio": 0.5, "deep": True, "words": ["one", "two"]}


async def asynchronous(path: str, line: int, ratio: float, deep: bool, words: list[str]) -> int:
    """Does nothing."""
    return line


def plain(path: str, line: int, ratio: float, deep: bool, words: list[str]) -> int:
    """Does nothing, in a thread."""
    return line


async def empty() -> None:
    """Nothing at all."""


def measured() -> dict[str, dict[str, float]]:
    registry = ToolRegistry([asynchronous, plain])
    rules = tuple(Rule("deny", "*", {"path": PathGlob(f"/etc/{at}/**")}) for at in range(10))
    ruled = Policy(rules=(*rules, Rule("allow", "a*")), limits=(Limit(10**9, 60.0),))
    bare, strict = ToolExecutor(registry), ToolExecutor(registry, policy=ruled)
    timed = ToolExecutor(registry, timeout=60.0)

    def through(executor: ToolExecutor, name: str) -> Callable[[], Awaitable[Any]]:
        call, session = [ToolCall(name, ARGUMENTS, "call_1")], Session(tier=Tier.RUN)
        return lambda: executor.execute(call, session)

    kinds: dict[str, Callable[[], Awaitable[Any]]] = {
        "empty await": empty,
        "the function": lambda: asynchronous(**ARGUMENTS),  # type: ignore[arg-type]
        "executor": through(bare, "asynchronous"),
        "executor, 11 rules and a limit": through(strict, "asynchronous"),
        "executor, with a timeout": through(timed, "asynchronous"),
        "a thread's hop": lambda: asyncio.to_thread(plain, **ARGUMENTS),  # type: ignore[arg-type]
        "executor, plain function": through(bare, "plain"),
    }
    times = asyncio.run(_taken(kinds))
    floor, nothing = times["the function"], times["empty await"]
    hop = times["a thread's hop"]
    return {
        name: {
            "microseconds": taken,
            "above": taken - (hop if "plain" in name else floor),
            "empty awaits": taken / nothing,
        }
        for name, taken in times.items()
    }


async def _taken(kinds: dict[str, Callable[[], Awaitable[Any]]]) -> dict[str, float]:
    """Microseconds of each, the median of rounds in which they take turns."""
    rounds: dict[str, list[float]] = {name: [] for name in kinds}
    for at in range(ROUNDS + 2):
        for name, make in kinds.items():
            begun = time.perf_counter()
            for _ in range(CALLS):
                await make()
            if at >= 2:
                rounds[name].append((time.perf_counter() - begun) / CALLS * 1e6)
    return {name: statistics.median(taken) for name, taken in rounds.items()}


def together() -> dict[str, float]:
    """Many calls at once; run in a process of its own, for its peak of memory."""

    async def wait(number: int) -> int:
        """Waits."""
        await asyncio.sleep(SECONDS)
        return number

    async def main() -> tuple[float, bool]:
        executor = ToolExecutor(ToolRegistry([wait]), concurrency=TOGETHER)
        calls = [ToolCall("wait", {"number": at}, str(at)) for at in range(TOGETHER)]
        begun = time.perf_counter()
        results = await executor.execute(calls, Session(tier=Tier.RUN))
        taken = time.perf_counter() - begun
        return taken, [result.result for result in results] == list(range(TOGETHER))

    taken, ordered = asyncio.run(main())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"calls": TOGETHER, "seconds": taken, "peak MB of the process": peak, "in order": float(ordered)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--together", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.together:
        print(json.dumps(together()))
        return
    alone = measured()
    again = [sys.executable, "-m", "benchmarks.executor", "--together"]
    many = json.loads(subprocess.run(again, capture_output=True, check=True, text=True).stdout)
    if options.json:
        print(json.dumps({"alone": alone, "together": many}))
        return
    print(f"{'':32}{'us':>9}{'us above':>10}{'empty awaits':>14}")
    for name, figures in alone.items():
        print(f"{name:32}{figures['microseconds']:9.2f}{figures['above']:10.2f}{figures['empty awaits']:14.0f}")
    print("above: the function awaited by itself; a plain function's is above a thread's hop by itself")
    print(", ".join(f"{name}: {value:.4g}" for name, value in many.items()))


if __name__ == "__main__":
    main()

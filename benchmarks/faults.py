"""Break the machine under tools, writes and records, and count what survives.

    python -m benchmarks.faults [--tries 5] [--seed 1] [--only NAME] [--json]

Each fault is tried in processes of its own. A try survives if nothing hangs, every file is as before or as after (never
half written), no process of a tool is left, and the next process can work with what is there. The table shows tries,
survivors, and what was lost in the others.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from toolwire.telemetry import Archive

LONGEST = 60.0
"""Seconds after which a process counts as hanging."""
PRELUDE = """
import asyncio, os, resource, signal, sys, time
from pathlib import Path
from toolwire import ParsedResponse, Tier, ToolCall
from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.builtin.editing import Editing
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.policy.session import Session
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.runtime.process_groups import run_program
from toolwire.telemetry import Recorder
from toolwire.testing import ScriptedBackend
folder = Path(sys.argv[1])

def ready():
    print("ready", flush=True)
"""

WRITES = """
editing = Editing(AllowedRoots(str(folder)))
ready()
for number in range(100_000):
    editing.write_file("file", str(number % 10) * 200_000)
"""
COMMAND = """
ready()
run_program(["sh", "-c", f"sleep 300 & echo $! $$ >> {folder}/pids; wait"], seconds=200, max_output=1000)
"""
RECORDS = """
registry = ToolRegistry()
registry.register(lambda: "x" * 2_000, name="read")
recorder = Recorder(folder / "turns.db")
ready()
count = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
for number in range(count):
    call = ParsedResponse("", tool_calls=(ToolCall("read", {}, "1"),))
    agent = Agent(ScriptedBackend([call, ParsedResponse("done")]), registry, observers=[recorder])
    for _ in agent.run_sync("task"):
        pass
print("flushed", recorder.flush(), recorder.lost, flush=True)
"""


@dataclass
class Fault:
    """The figures of one fault.

    Attributes:
        name: its name.
        tries: number of tries.
        survived: tries after which everything was as it has to be.
        lost: what was wrong in the others.
    """

    name: str
    tries: int
    survived: int
    lost: list[str]


class Started:
    """A process that runs a script."""

    def __init__(self, code: str, folder: Path, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + textwrap.dedent(code), str(folder), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # a buffer would contain output that `communicate` does not see
            env={**os.environ, "TOOLWIRE_STATE": str(folder / "state"), **environment},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line != b"ready\n":
            raise RuntimeError(f"it did not start: {self.end()}")

    def end(self) -> str:
        """Wait for the end, and return what it wrote; a process that hangs is killed."""
        try:
            out, err = self.process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            return "it hangs"
        return (out + err[-300:]).decode("utf-8", "replace")

    def signal_later(self, number: int, chance: random.Random, most: float = 0.3) -> str:
        """Send a signal at a random moment, and return what the process wrote."""
        time.sleep(chance.uniform(0, most))
        self.process.send_signal(number)
        return self.end()


def broken_write(number: int) -> Callable[[Path, random.Random], str]:
    """Return a try that sends a signal while a file is written again and again."""

    def attempt(folder: Path, chance: random.Random) -> str:
        output = Started(WRITES, folder).signal_later(number, chance)
        if "hangs" in output:
            return output
        path = folder / "file"
        text = path.read_text() if path.exists() else ""
        if text and (len(text) != 200_000 or len(set(text)) != 1):
            return "a file is half written"
        return ""

    return attempt


def broken_command(number: int) -> Callable[[Path, random.Random], str]:
    """Return a try that sends a signal while a command with a child in the background runs."""

    def attempt(folder: Path, chance: random.Random) -> str:
        started = Started(COMMAND, folder)
        pids = folder / "pids"
        until = time.monotonic() + LONGEST
        while not pids.exists() or not pids.read_text().endswith("\n"):
            if time.monotonic() > until:
                return "the command did not start"
            time.sleep(0.01)
        output = started.signal_later(number, chance, 0.1)
        if "hangs" in output:
            return output
        return left_over([int(pid) for pid in pids.read_text().split()])

    return attempt


def left_over(pids: list[int], seconds: float = 5.0) -> str:
    """Return which processes are left after a while; "" if there is none. Those that are left are killed."""
    until = time.monotonic() + seconds
    alive = pids
    while alive and time.monotonic() < until:
        alive = [pid for pid in alive if is_running(pid)]
        time.sleep(0.02)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    return f"{len(alive)} processes are left" if alive else ""


def is_running(pid: int) -> bool:
    """Return whether a process runs, and is not only waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def broken_record(number: int) -> Callable[[Path, random.Random], str]:
    """Return a try that sends a signal while runs are recorded."""

    def attempt(folder: Path, chance: random.Random) -> str:
        output = Started(RECORDS, folder).signal_later(number, chance, 0.6)
        return output if "hangs" in output else check_archive(folder)

    return attempt


def check_archive(folder: Path, least: int = 0) -> str:
    """Return what is wrong with recorded runs, and whether another process can record more."""
    path = folder / "turns.db"
    if path.exists() and path.stat().st_size:
        with sqlite3.connect(path) as connection:
            (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
        connection.close()
        if verdict != "ok":
            return f"the database is broken: {verdict}"
    output = Started(RECORDS, folder, "1").end()
    if "flushed True 0" not in output:
        return f"nothing can be recorded after it: {output[-200:]}"
    count = len(Archive(path).runs(100_000))
    return f"{least - count} of {least} runs are lost" if count < least else ""


def full_disk(folder: Path, chance: random.Random) -> str:
    """Write files and records where no file can grow beyond a size, as on a full disk."""
    limit = chance.randrange(20_000, 150_000)
    code = f"""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    ready()
    editing = Editing(AllowedRoots(str(folder)))
    (folder / "file").write_text("before")
    try:
        editing.write_file("file", "x" * 200_000)
        print("no error")
    except Exception as error:
        print("error", type(error).__name__, error)
    """
    output = Started(code, folder).end()
    if (folder / "file").read_text() != "before":
        return "a file is half written"
    if "error ToolError" not in output and "error OSError" not in output:
        return f"no error says so: {output[-200:]}"
    rest = [entry.name for entry in folder.iterdir() if entry.name not in ("file", "state")]
    if rest:
        return f"temporary files are left: {rest}"
    limited = RECORDS.replace(
        "ready()",
        f"""
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
ready()""",
    )
    output = Started(limited, folder, "20").end()
    return f"a run failed: {output[-200:]}" if "flushed" not in output else check_archive(folder)


def read_only_home(folder: Path, _: random.Random) -> str:
    """Record runs where nothing can be written. (Root may write everywhere, so a file is in the directory's place.)"""
    state = folder / "place"
    state.write_text("a file")
    code = RECORDS.replace('folder / "turns.db"', 'folder / "place" / "turns.db"')
    output = Started(code, folder, "3", TOOLWIRE_STATE=str(state / "x")).end()
    return "" if "flushed" in output else f"a run failed: {output[-200:]}"


def clock_jumps(folder: Path, chance: random.Random) -> str:
    """Record runs while the time of day jumps: by days in both directions, and by years into the future."""
    code = f"""
    import random
    chance, real = random.Random({chance.random()}), time.time
    time.time = lambda: real() + chance.choice([chance.uniform(-2e6, 2e6), 1e9])
    """
    output = Started(textwrap.dedent(code) + RECORDS, folder, "10").end()
    return check_archive(folder, 10) if "flushed True 0" in output else f"records are lost: {output[-200:]}"


def two_writers(folder: Path, _: random.Random) -> str:
    """Record runs of two processes in one database."""
    started = [Started(RECORDS, folder, "15") for _ in range(2)]
    outputs = [process.end() for process in started]
    if not all("flushed True 0" in output for output in outputs):
        return f"records are lost: {outputs}"
    return check_archive(folder, 30)


def two_resumers(folder: Path, _: random.Random) -> str:
    """Resume one durable run in two processes: each call may run once."""
    code = """
    from toolwire.agent.durable import run_durably
    registry = ToolRegistry()
    def act() -> str:
        "Acts."
        with (folder / "acts").open("a") as file:
            file.write("act\\n")
        time.sleep(0.05)
        return "done"
    registry.register(act)
    call = ParsedResponse("", tool_calls=(ToolCall("act", {}, "1"),))
    agent = Agent(ScriptedBackend([call, ParsedResponse("end")]), registry)
    ready()
    async def main():
        async for event in run_durably(agent, "task", database=str(folder / "runs.db"), run_id="r"):
            pass
    try:
        asyncio.run(main())
        print("ended")
    except Exception as error:
        print("refused", type(error).__name__, error)
    """
    started = [Started(code, folder) for _ in range(2)]
    outputs = [process.end() for process in started]
    acts = (folder / "acts").read_text().count("act") if (folder / "acts").exists() else 0
    if acts != 1 or not any("ended" in output for output in outputs):
        return f"{acts} acts: {outputs}"
    return ""


def large_output(folder: Path, _: random.Random) -> str:
    """Run a command with a gigabyte of output in a process of at most 400 MB."""
    code = """
    ready()
    begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run_program(["sh", "-c", "yes 0123456789abcdef | head -c 1000000000"], seconds=50, max_output=1 << 20)
    print("grew", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begin, result.left_out > 900_000_000)
    """
    output = Started(code, folder).end()
    words = output.split()
    if "grew" not in words or "True" not in words:
        return f"not read to its end: {output[-200:]}"
    grown = int(words[words.index("grew") + 1])
    return f"the memory grew by {grown >> 10} MB" if grown > 100 << 10 else ""


def daemons(folder: Path, _: random.Random) -> str:
    """Run a command that leaves children behind, in its group and with its output open."""
    code = """
    ready()
    script = f"for i in 1 2 3; do sleep 300 & echo $! >> {folder}/pids; done; echo started"
    begin = time.monotonic()
    result = run_program(["sh", "-c", script], seconds=20, max_output=1000)
    print("took", time.monotonic() - begin < 15)
    """
    output = Started(code, folder).end()
    left = left_over([int(pid) for pid in (folder / "pids").read_text().split()])
    return left or ("" if "took True" in output else f"it waited for the children: {output[-200:]}")


FAULTS: dict[str, Callable[[Path, random.Random], str]] = {
    **{f"write, {signal.Signals(number).name}": broken_write(number) for number in (2, 15, 9)},
    **{f"command, {signal.Signals(number).name}": broken_command(number) for number in (2, 15, 9)},
    **{f"record, {signal.Signals(number).name}": broken_record(number) for number in (2, 15, 9)},
    "full disk": full_disk,
    "read-only home": read_only_home,
    "clock jumps": clock_jumps,
    "two writers": two_writers,
    "two resumers": two_resumers,
    "1 GB of output": large_output,
    "daemons": daemons,
}


def measure(name: str, tries: int, seed: int) -> Fault:
    """Try one fault."""
    chance = random.Random(f"{seed} {name}")
    lost: list[str] = []
    for _ in range(tries):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            if wrong := FAULTS[name](Path(folder), chance):
                lost.append(wrong)
    return Fault(name, tries, tries - len(lost), lost)


def main() -> int:
    """Try all faults, and print the table; the status is 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="faults whose name contains this")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    faults = [measure(name, options.tries, options.seed) for name in FAULTS if options.only in name]
    if options.json:
        print(json.dumps([vars(fault) for fault in faults]))
    else:
        table = Table("fault", "tries", "survived", "lost")
        for fault in faults:
            table.add_row(fault.name, str(fault.tries), str(fault.survived), "; ".join(sorted(set(fault.lost))))
        Console().print(table)
    return 1 if any(fault.lost for fault in faults) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Break the machine under tools, writes and records, and count what survives.

    python -m benchmarks.faults [--tries 5] [--seed 1] [--only NAME] [--json] [--record]

Each fault is tried in processes of its own. A try survives if nothing hangs, every file is as before or as after (never
half written), no process of a tool is left, and the next process can work with what is there. Daemons with sessions of
their own are not followed, so they may be left. The table shows tries, survivors, and what was lost in the others.
`--record` stores the figures for the documentation.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
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

from benchmarks.ended_commands import ENDED_COMMANDS, LONGEST, left_over
from rich.console import Console
from rich.table import Table

from toolwire.telemetry import Archive

RECORD = Path(__file__).with_suffix(".json")
"""The figures that the documentation shows."""
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL)
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


GIGABYTE = "yes 0123456789abcdef | head -c 1000000000"
LARGE = {
    "program": """
    result = run_program(["sh", "-c", command], seconds=150, max_output=1 << 20)
    whole = result.left_out > 900_000_000
    """,
    "execute_command": """
    settings = CommandSettings(seconds=150, most_seconds=150)
    tools = command_tools(str(folder), settings=settings)
    executor = ToolExecutor(ToolRegistry(tools), timeout=150, confirm=lambda request: True)
    call = ToolCall("execute_command", {"command": ["sh", "-c", command]})
    text = asyncio.run(executor.execute([call], Session(tier=Tier.RUN)))[0].text
    whole = "left out" in text and "exit status 0" in text
    """,
    "isolated tool": """
    async def call(function):
        return await run_isolated(function, {}, Isolation(seconds=150, memory=8 << 30, cpu_seconds=150))
    try:
        asyncio.run(call(large_result))
        whole = False
    except ToolError as error:
        whole = "returned more than 16 MB" in str(error)
        print(error)
    """,
}


def large_result() -> str:
    """Return a gigabyte of text, for a try in a process of its own."""
    return "x" * 1_000_000_000


def large_output(kind: str) -> Callable[[Path, random.Random], str]:
    """Return a try in which a tool gives a gigabyte, and the process that runs it may grow by 100 MB."""

    def attempt(folder: Path, _: random.Random) -> str:
        code = f"""
    from benchmarks.faults import large_result
    from toolwire import CommandSettings, Isolation, ToolError, command_tools
    from toolwire.runtime.isolation.isolated_call import run_isolated
    command = {GIGABYTE!r}
    begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ready()
    {LARGE[kind].strip()}
    print("grew", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begin, whole)
    """
        output = Started(code, folder).end()
        words = output.split()
        if "grew" not in words or "True" not in words:
            return f"not read to its end: {output[-200:]}"
        grown = int(words[words.index("grew") + 1])
        return f"the memory grew by {grown >> 10} MB" if grown > 100 << 10 else ""

    return attempt


def daemons(script: str, *, are_ended: bool) -> Callable[[Path, random.Random], str]:
    """Return a try with a command that leaves children behind, whose output stays open.

    Args:
        script: the command.
        are_ended: whether the children have to end with the command.
    """

    def attempt(folder: Path, _: random.Random) -> str:
        code = f"""
    ready()
    script = {script!r}.replace("PIDS", f"{{folder}}/pids")
    begin = time.monotonic()
    result = run_program(["sh", "-c", script], seconds=20, max_output=1000)
    print("took", time.monotonic() - begin < 15, result.out.joined())
    """
        output = Started(code, folder).end()
        pids = [int(pid) for pid in (folder / "pids").read_text().split()]
        left = left_over(pids, 5.0 if are_ended else 0.1)
        if left and are_ended:
            return left
        return "" if "took True b'started" in output else f"it waited for the children: {output[-200:]}"

    return attempt


def full_disk_of_a_run(folder: Path, chance: random.Random) -> str:
    """Run durably where no file can grow beyond a size; the run resumes when there is room."""
    limit = chance.randrange(30_000, 200_000)
    code = """
    from toolwire.agent.durable import run_durably
    resumes = len(sys.argv) > 2
    registry = ToolRegistry()
    def act(number: int) -> str:
        "Acts."
        with (folder / "acts").open("a") as file:
            file.write(f"{number}\\n")
        return "x" * 20_000
    registry.register(act)
    def answers():
        done = (folder / "acts").read_text().count("\\n") if resumes and (folder / "acts").exists() else 0
        for number in range(done, 20):
            yield ParsedResponse("", tool_calls=(ToolCall("act", {"number": number}, str(number)),))
        yield ParsedResponse("end")
    agent = Agent(ScriptedBackend(answers()), registry, AgentConfig(budget=Budget(rounds=50)))
    async def main():
        async for event in run_durably(agent, "task", database=str(folder / "runs.db"), run_id="r"):
            pass
    LIMIT
    ready()
    try:
        asyncio.run(main())
        print("ended")
    except ToolwireError as error:
        print("refused", type(error).__name__, error)
    """.replace("\\\\n", "\\n")
    code = "from toolwire.errors import ToolwireError\n" + textwrap.dedent(code)
    limited = "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limited += f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    output = Started(code.replace("LIMIT", limited), folder).end()
    if "refused" not in output:
        return f"no error says so: {output[-300:]}"
    output = Started(code.replace("LIMIT", ""), folder, "resume").end()
    if "ended" not in output:
        return f"the run cannot be resumed: {output[-300:]}"
    acts = (folder / "acts").read_text().split()
    return "" if sorted(set(acts)) == sorted(acts) else f"calls ran twice: {acts}"


IN_GROUP = "for i in 1 2 3; do sleep 300 & echo $! >> PIDS; done; echo started"
IN_SESSIONS = "for i in 1 2 3; do setsid sh -c 'echo $$ >> PIDS; exec sleep 300' & done; sleep 0.5; echo started"

FAULTS: dict[str, Callable[[Path, random.Random], str]] = {
    **{f"write, {signal.Signals(number).name}": broken_write(number) for number in ENDING},
    **{f"command, {signal.Signals(number).name}": broken_command(number) for number in ENDING},
    **{f"record, {signal.Signals(number).name}": broken_record(number) for number in ENDING},
    **ENDED_COMMANDS,
    "full disk": full_disk,
    "read-only home": read_only_home,
    "clock jumps": clock_jumps,
    "two writers": two_writers,
    "two resumers": two_resumers,
    "full disk, durable run": full_disk_of_a_run,
    **{f"1 GB from {kind}": large_output(kind) for kind in LARGE},
    "daemons in the group": daemons(IN_GROUP, are_ended=True),
    "daemons with sessions": daemons(IN_SESSIONS, are_ended=False),
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


def record(fault: Fault) -> None:
    """Store the figures of one fault, and the machine that they are of."""
    stored = json.loads(RECORD.read_text()) if RECORD.exists() else {"faults": {}}
    stored["machine"] = (
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}"
    )
    stored["faults"][fault.name] = {
        "tries": fault.tries,
        "survived": fault.survived,
        "lost": sorted(set(fault.lost)),
        "load": round(os.getloadavg()[0]),
    }
    RECORD.write_text(json.dumps(stored, indent=1) + "\n")


def main() -> int:
    """Try all faults, and print the table; the status is 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="faults whose name contains this")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--record", action="store_true", help=f"store the figures in {RECORD.name}")
    options = parser.parse_args()
    # A shell lets programs in the background ignore these, and the processes that are tried would ignore them too.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    faults = []
    for name in FAULTS:
        if options.only in name:
            faults.append(measure(name, options.tries, options.seed))
            # All faults take an hour: what was measured is shown although the run may be stopped.
            print(f"{name}: {faults[-1].survived} of {options.tries} survived", file=sys.stderr, flush=True)
            if options.record:
                record(faults[-1])
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

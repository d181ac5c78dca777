"""Signals for commands that run a tool: which programs are left, and whether the next process can work.

`benchmarks.faults` counts the tries. Each command runs `execute_command`, whose program ignores signals and has a
child. The signal comes at a random moment: while the command starts, when its program does, or while the program runs.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import toolwire
from toolwire import FinishReason, ParsedResponse, ToolCall

LONGEST = 180.0
"""Seconds after which a process counts as hanging."""
PROGRAM = """
trap '' HUP INT QUIT TERM
sleep 300 &
echo $$ $! >> pids
wait
"""
CALL = {"command": ["sh", "program.sh"]}
DURABLE = """
import asyncio, os, sys
from toolwire import ParsedResponse, ToolCall, builtin_tools
from toolwire.agent import Agent
from toolwire.agent.durable import run_durably
from toolwire.execution.registry import ToolRegistry
from toolwire.testing import ScriptedBackend

async def main():
    call = ParsedResponse("", tool_calls=(ToolCall("execute_command", {"command": ["sh", "program.sh"]}, "1"),))
    backend = ScriptedBackend([ParsedResponse("end")] if "resume" in sys.argv else [call, ParsedResponse("end")])
    agent = Agent(backend, ToolRegistry(builtin_tools(".")), confirm=lambda request: True)
    async for event in run_durably(agent, "task", database="runs.db", run_id="r"):
        pass
    print("ended", flush=True)

asyncio.run(main())
"""
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "faults", "version": "0"}}
MCP = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "execute_command", "arguments": CALL}},
)
REMOTE = ("--tier", "run", "--yes", "--model", "m", "--base-url")
COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "call": (("-m", "toolwire", "call", "execute_command", json.dumps(CALL), "--root", ".", "--tier", "RUN", "-y"), ""),
    "ask": (("-m", "toolwire", "ask", "Run it.", "--root", ".", *REMOTE, "{url}"), ""),
    "chat": (("-m", "toolwire", "chat", "--root", ".", *REMOTE, "{url}"), "Run it.\n"),
    "mcp serve": (
        ("-m", "toolwire", "mcp", "serve", "--root", ".", "--tier", "RUN", "--yes"),
        "".join(json.dumps(message) + "\n" for message in MCP),
    ),
    "durable run": (("-c", DURABLE), ""),
}
"""The arguments of the interpreter, and the input, which stays open."""
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL)


@contextmanager
def model_server() -> Iterator[str]:
    """Yield the address of a model that calls the tool, and answers when it reads the result."""
    api = toolwire.get_api("openai_chat")
    calls = (ToolCall("execute_command", CALL, "1"),)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            is_answered = any(message["role"] == "tool" for message in body["messages"])
            answer = (
                ParsedResponse("Done.", finish_reason=FinishReason.STOP)
                if is_answered
                else ParsedResponse("", tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS)
            )
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.writelines(api.encode_stream(toolwire.replay(answer), model="m"))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def ended_command(name: str, number: int) -> Callable[[Path, random.Random], str]:
    """Return a try that sends a signal to a command at a random moment."""

    def attempt(folder: Path, chance: random.Random) -> str:
        (folder / "program.sh").write_text(PROGRAM)
        with model_server() as url:
            process = _start(name, folder, url)
            _wait_for_moment(process, folder / "pids", chance)
            process.send_signal(number)
            try:
                process.communicate(timeout=LONGEST)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return "it hangs"
        time.sleep(0.2)  # a program that was left would write its number by now
        return left_over(_pids(folder)) or _unusable(name, folder)

    return attempt


def _start(name: str, folder: Path, url: str) -> subprocess.Popen[bytes]:
    arguments, given = COMMANDS[name]
    process = subprocess.Popen(
        [sys.executable, *(url if word == "{url}" else word for word in arguments)],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, "TOOLWIRE_STATE": str(folder / "state"), "TMPDIR": str(folder)},
    )
    assert process.stdin is not None
    process.stdin.write(given.encode())
    return process


def _wait_for_moment(process: subprocess.Popen[bytes], pids: Path, chance: random.Random) -> None:
    if chance.random() < 0.3:  # while the command starts
        time.sleep(chance.uniform(0, 2))
        return
    until = time.monotonic() + LONGEST
    while not pids.exists():
        if process.poll() is not None or time.monotonic() > until:
            output = b"".join(process.communicate(timeout=1)) if process.poll() is not None else b"it hangs"
            raise RuntimeError(f"the tool's program did not start: {output.decode('utf-8', 'replace')[-500:]}")
        time.sleep(0.001)
    if chance.random() < 0.5:
        time.sleep(chance.uniform(0, 0.1))


def _pids(folder: Path) -> list[int]:
    pids = folder / "pids"
    return [int(pid) for pid in pids.read_text().split()] if pids.exists() else []


def _unusable(name: str, folder: Path) -> str:
    """Return what is wrong with what the command left: temporary files, its databases, and a run that cannot resume."""
    if rest := [entry.name for entry in folder.glob("toolwire-*")]:
        return f"temporary directories are left: {rest}"
    for path in (*folder.glob("state/*.sqlite3"), *folder.glob("state/*.db"), *folder.glob("runs.db")):
        with sqlite3.connect(path) as connection:
            (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
        connection.close()
        if verdict != "ok":
            return f"{path.name} is broken: {verdict}"
    if name != "durable run" or not (pids := _pids(folder)):
        return ""
    resumed = subprocess.run(
        [sys.executable, "-c", DURABLE, "resume"], cwd=folder, capture_output=True, timeout=LONGEST, check=False
    )
    if b"ended" not in resumed.stdout:
        return f"the run cannot be resumed: {resumed.stderr[-300:].decode('utf-8', 'replace')}"
    return "the call ran a second time" if _pids(folder) != pids else ""


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


ENDED_COMMANDS: dict[str, Callable[[Path, random.Random], str]] = {
    f"{name}, {number.name}": ended_command(name, number) for name in COMMANDS for number in SIGNALS
}
"""The tries, by the command and the signal."""

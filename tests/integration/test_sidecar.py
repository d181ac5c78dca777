"""The sidecar as a process: standard input, a Unix socket, and the examples for Node.js and Go."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIDECAR = [sys.executable, "-m", "toolwire", "serve", "--sidecar"]
REQUESTS = [{"id": 1, "do": "parse", "text": '<tool_call>{"name": "f"}</tool_call>', "format": "hermes"}, {"do": "x"}]


def test_standard_input() -> None:
    lines = "\n\n".join(map(json.dumps, REQUESTS))
    done = subprocess.run(SIDECAR, input=lines, capture_output=True, text=True, timeout=60, check=True)
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["result"]["calls"][0]["name"] == "f"
    assert "do must be one of" in second["error"]["message"]


def test_a_line_of_standard_input_above_the_limit_is_answered_by_an_error() -> None:
    code = "import toolwire.cli.sidecar as s; s.MAX_LINE = 1 << 20; s.serve_lines()"
    long = (b'{"do": "' + (size << 20) * b"x" + b'"}\n' for size in (1, 3))
    lines = b'{"id": 3, "do": "hello"}\n'.join([b"", *long, (1 << 20) * b" " + b"\n", (2 << 20) * b"x"])
    done = subprocess.run([sys.executable, "-c", code], input=lines, capture_output=True, timeout=120, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [3, None, 3, None, 3, 3, None]
    assert all("1 MiB" in answer["error"]["message"] for answer in answers if answer["id"] is None)


def _wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise TimeoutError


def test_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "toolwire.sock"
    process = subprocess.Popen([*SIDECAR, "--socket", str(path)])
    try:
        _wait_for(path.exists)
        assert path.stat().st_mode & 0o777 == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall("".join(json.dumps(request) + "\n" for request in REQUESTS).encode())
            answers = client.makefile()
            assert json.loads(answers.readline())["id"] == 1
            assert "error" in json.loads(answers.readline())
    finally:
        process.terminate()
        process.wait(30)


def test_a_long_request_leaves_other_clients_their_answers(tmp_path: Path) -> None:
    path = tmp_path / "toolwire.sock"
    process = subprocess.Popen([*SIDECAR, "--socket", str(path)])
    try:
        _wait_for(path.exists)
        with socket.socket(socket.AF_UNIX) as slow, socket.socket(socket.AF_UNIX) as other:
            slow.connect(str(path))
            other.connect(str(path))
            request = {"id": 1, "do": "parse", "format": "auto", "text": "<tool_call>{" * 30_000}  # several seconds
            slow.sendall(json.dumps(request).encode() + b"\n")
            time.sleep(0.5)
            other.sendall(b'{"id": 2, "do": "parse", "format": "hermes", "text": "a"}\n')
            other.settimeout(120)
            assert json.loads(other.makefile().readline())["id"] == 2
            slow.setblocking(False)
            with pytest.raises(BlockingIOError):
                slow.recv(1)
    finally:
        process.kill()
        process.wait(30)


def test_a_line_above_the_limit_is_answered_by_an_error(tmp_path: Path) -> None:
    path = tmp_path / "toolwire.sock"
    code = "import sys, toolwire.cli.sidecar as s; s.MAX_LINE = 1 << 20; s.serve_socket(s.Path(sys.argv[1]))"
    process = subprocess.Popen([sys.executable, "-c", code, str(path)])
    try:
        _wait_for(path.exists)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.settimeout(120)
            answers = client.makefile()
            # The end of the second line arrives together with its beginning: asyncio reports these in two ways.
            for length in (9 << 20, (1 << 20) + 9):
                client.sendall(b'{"do": "' + length * b"x" + b'"}\n{"id": 3, "do": "hello"}\n')
                refused, answered = json.loads(answers.readline()), json.loads(answers.readline())
                assert refused["id"] is None and "1 MiB" in refused["error"]["message"]
                assert answered["id"] == 3 and "result" in answered
            client.sendall((2 << 20) * b"x")
            client.shutdown(socket.SHUT_WR)
            assert "1 MiB" in answers.readline() and answers.readline() == ""
    finally:
        process.kill()
        process.wait(30)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_process_and_leaves_the_socket_of_another_one(tmp_path: Path, stop: signal.Signals) -> None:
    path = tmp_path / "toolwire.sock"
    first = subprocess.Popen([*SIDECAR, "--socket", str(path)], stderr=subprocess.PIPE)
    second = None
    try:
        _wait_for(path.exists)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b'{"do": "hello"}\n')
            assert client.recv(10)
            inode = path.stat().st_ino
            second = subprocess.Popen([*SIDECAR, "--socket", str(path)])
            _wait_for(lambda: path.exists() and path.stat().st_ino != inode)
            first.send_signal(stop)
            assert first.communicate(timeout=60)[1] == b""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            second.send_signal(stop)
            assert second.wait(60) == 0 and not path.exists()
    finally:
        for process in filter(None, (first, second)):
            process.kill()
            process.wait(30)


@pytest.mark.parametrize("options", [("--socket", "a"), ("--sidecar", "--model", "m"), ("--sidecar", "--port", "1")])
def test_options_that_do_not_belong_together(options: tuple[str, ...]) -> None:
    done = subprocess.run([*SIDECAR[:-1], *options], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "sidecar" in done.stderr


def _example(program: tuple[str, ...], command: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "TOOLWIRE": str(command), "GOCACHE": str(cache), "GOTOOLCHAIN": "local"}
    return subprocess.run(program, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, marks=pytest.mark.skipif(shutil.which(program[0]) is None, reason=f"needs {program[0]}"))
        for program in (("node", "examples/sidecar.mjs"), ("go", "run", "examples/sidecar.go"))
    ],
)
def test_the_examples_in_other_languages(tmp_path: Path, program: tuple[str, ...]) -> None:
    command = tmp_path / "toolwire"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m toolwire "$@"\n')
    command.chmod(0o755)
    done = _example(program, command, tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    *deltas, last = done.stdout.splitlines()
    assert json.loads(deltas[0]) == {"content": "Let me look. "}
    texts = [call["function"]["arguments"] for delta in deltas[1:] for call in json.loads(delta)["tool_calls"]]
    assert json.loads("".join(texts)) == {"city": "Paris"}
    assert last == "finish tool_calls"
    assert _example(program, tmp_path / "missing", tmp_path / "cache").returncode != 0
    command.write_text("#!/bin/sh\nread request\n")  # it ends without an answer
    ended = _example(program, command, tmp_path / "cache")
    assert ended.returncode == 1 and ("the sidecar has ended" in ended.stderr or "EOF" in ended.stderr)

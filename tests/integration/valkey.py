"""A Valkey or Redis server of a test's own, on a socket in its own folder."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

STARTS_IN = 30.0
"""Seconds after which a server that does not start counts as broken."""


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server; the test is skipped where there is none that could be started."""
    program = shutil.which("valkey-server") or shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no valkey-server or redis-server on this machine")
    with tempfile.TemporaryDirectory() as top:
        path = Path(top, "socket")
        started = [program, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", top]
        with subprocess.Popen(started, cwd=top, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                _wait(path, server)
                yield f"redis+unix://{path}"
            finally:
                server.terminate()


def _wait(path: Path, server: "subprocess.Popen[bytes]") -> None:
    """Wait until the server takes connections."""
    until = time.monotonic() + STARTS_IN
    while True:
        assert server.poll() is None, "the server has ended"
        with socket.socket(socket.AF_UNIX) as client:
            if path.exists() and client.connect_ex(str(path)) == 0:
                return
        assert time.monotonic() < until, "the server does not start"
        time.sleep(0.02)

"""A PostgreSQL server of a test's own, on a socket in its own folder."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

STARTS_IN = 60.0
"""Seconds after which a server that does not start counts as broken."""


@contextmanager
def serving() -> Iterator[str]:
    """The address of a database; the test is skipped where there is no server that could be started."""
    initdb, postgres = _program("initdb"), _program("postgres")
    if initdb is None or postgres is None:
        pytest.skip("there is no PostgreSQL server (initdb, postgres) on this machine")
    with tempfile.TemporaryDirectory() as top:
        user = _owned(Path(top))
        data = Path(top, "data")
        made = [initdb, "-D", str(data), "-A", "trust", "-U", "postgres", "--no-sync"]
        subprocess.run(made, cwd="/", check=True, capture_output=True, user=user)
        started = [postgres, "-D", str(data), "-k", top, "-c", "listen_addresses=", "-c", "fsync=off"]
        with subprocess.Popen(started, cwd="/", stderr=subprocess.DEVNULL, user=user) as server:
            try:
                _wait(data / "postmaster.pid", server)
                yield f"postgresql://postgres@/toolwire?host={top}"
            finally:
                server.terminate()


def _program(name: str) -> str | None:
    """The path of a program of PostgreSQL: Debian installs those of the server in a directory for each version."""
    newest_first = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, newest_first)))


def _owned(top: Path) -> str | None:
    """The user that the server runs as: it refuses to run as root."""
    if os.getuid() != 0:
        return None
    try:
        shutil.chown(top, "postgres")
    except LookupError:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    top.chmod(0o755)
    return "postgres"


def _wait(standing: Path, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server's own file, in which it says how it stands, says that it takes connections."""
    until = time.monotonic() + STARTS_IN
    while not standing.exists() or "ready" not in standing.read_text():
        assert server.poll() is None, "the server has ended"
        assert time.monotonic() < until, "the server does not start"
        time.sleep(0.02)

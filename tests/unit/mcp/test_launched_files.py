"""Files of code that the command of an MCP server names, and those that are data."""

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from toolwire import ToolRegistry
from toolwire.mcp import Approvals, McpRouter, McpServer
from toolwire.mcp.servers import Launch
from toolwire.runtime import file_digests, launched_files


def launched(folder: Path, command: str, *args: str, **env: str) -> Launch:
    return McpServer(name="a", command=command, args=args, env=env, cwd=str(folder)).launch()


CODE = [
    # command, arguments, the file that changes, its first bytes
    ("tool", ("serve.py",), "serve.py", b""),
    ("tool", ("--require=hook.cjs",), "hook.cjs", b""),
    ("tool", ("run",), "run", b"#!/bin/sh\n"),
    ("tool", ("run",), "run", b"\x7fELF\x02"),
    ("tool", ("run",), "run", b"\xcf\xfa\xed\xfe"),
    ("tool", ("run",), "run", b"MZ\x90"),
    ("python3", ("serve",), "serve", b"print(1)"),
    ("/opt/bin/python3.13", ("-I", "serve"), "serve", b"print(1)"),
    ("uv", ("run", "python", "serve"), "serve", b"print(1)"),
    ("python3", ("serve",), "serve/__main__.py", b""),
    ("node", ("serve",), "serve/index.js", b""),
    ("node", ("serve",), "serve/package.json", b"{}"),
    ("python3", ("-m", "serve"), "serve.py", b""),
    ("python3", ("-m", "my.serve"), "my/serve.py", b""),
    ("python3", ("-m", "serve"), "serve/__main__.py", b""),
    ("python3", ("-m", "serve"), "src/serve/__init__.py", b""),
    ("uv", ("run", "-m", "serve"), "serve/__main__.py", b""),
    ("python3", ("-mserve",), "serve.py", b""),
    ("python3", ("-Im", "my.serve"), "my/serve.py", b""),
    ("python3", ("-umserve",), "serve/__main__.py", b""),
    ("npm", ("run", "serve"), "package.json", b"{}"),
    ("make", ("serve",), "Makefile", b"serve:"),
    ("tool", ("--", "/usr/bin/make"), "Makefile", b"serve:"),
    ("make", ("-f", "rules.mk"), "rules.mk", b"serve:"),
    ("make", ("-frules",), "rules", b"serve:"),
    ("tool", ("-frules.mk",), "rules.mk", b"serve:"),
    ("python3", ("-mpytest",), "conftest.py", b""),
    ("env", ("A=1", "./run"), "run", b"echo"),
    ("timeout", ("9", "./run"), "run", b"echo"),
    ("sh", ("-c", "nohup ./run"), "run", b"echo"),
    ("sh", ("-c", "bash<run"), "run", b"#!/bin/sh\n"),
    ("sh", ("-c", "bash -c 'cd sub && make'"), "sub/Makefile", b"serve:"),
]
DATA = [
    ("tool", ("notes.db",), "notes.db", b"SQLite format 3\0"),
    ("tool", ("--db=notes.db",), "notes.db", b""),
    ("python3", ("serve.py", "notes"), "notes", b"one"),
    ("python3", ("-m", "serve", "notes"), "notes", b"one"),
    ("node", ("serve", "notes"), "notes/index.html", b""),
    ("tool", ("notes",), "notes/index.js", b""),
    ("tool", ("serve",), "Makefile", b"serve:"),
    ("env", ("./serve", "notes"), "notes", b"one"),
]


@pytest.mark.parametrize(
    ("command", "args", "changed", "start", "is_code"), [(*row, True) for row in CODE] + [(*row, False) for row in DATA]
)
def test_change_of_code_needs_a_new_approval_and_of_data_none(
    command: str, args: tuple[str, ...], changed: str, start: bytes, is_code: bool, tmp_path: Path
) -> None:
    for name in ("serve.py",) if "serve.py" in args or args[:2] == ("-m", "serve") else ("serve",):
        if not changed.startswith(f"{name}/"):
            (tmp_path / name).write_bytes(b"")
    file = tmp_path / changed
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(start)
    file.chmod(0o755)  # data is executable too on some file systems
    before = launched(tmp_path, command, *args, PYTHONPATH="lib:src")
    file.write_bytes(start + b"more")
    after = launched(tmp_path, command, *args, PYTHONPATH="lib:src")
    assert (before.hash != after.hash) is is_code


def test_file_is_read_again_only_if_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "serve.py"
    script.write_text("print(1)")
    clock = os.stat(script).st_mtime + 10
    monkeypatch.setattr(file_digests.time, "time", lambda: clock)
    reads: list[str] = []
    digest = file_digests.hashlib.file_digest

    def counted(file: Any, kind: str) -> Any:
        reads.append(file.name)
        return digest(file, kind)

    monkeypatch.setattr(file_digests.hashlib, "file_digest", counted)
    first = launched(tmp_path, "tool", "serve.py").hash
    assert launched(tmp_path, "tool", "serve.py").hash == first
    assert reads == [str(script)]
    status = os.stat(script)
    script.write_text("print(2)")  # as long as before, and its time is set back
    os.utime(script, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert launched(tmp_path, "tool", "serve.py").hash != first


def test_file_that_has_just_changed_is_read_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two changes within one tick of the file system's clock have the same time."""
    script = tmp_path / "serve.py"
    script.write_text("print(1)")
    now = os.stat(script)
    monkeypatch.setattr(file_digests.time, "time", lambda: now.st_mtime + 0.5)
    monkeypatch.setattr(file_digests, "_state", lambda _: (now.st_mtime_ns, now.st_ctime_ns, 8, 1, 1))
    first = launched(tmp_path, "tool", "serve.py").hash
    script.write_text("print(2)")
    assert launched(tmp_path, "tool", "serve.py").hash != first


def test_files_are_read_in_a_thread_and_not_for_a_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "serve.py").write_text("raise SystemExit")
    server = McpServer(name="a", command=sys.executable, args=("serve.py",), cwd=str(tmp_path))
    threads: list[threading.Thread] = []
    digests = launched_files.code_digests

    def watched(*arguments: object) -> dict[str, str]:
        threads.append(threading.current_thread())
        return digests(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("toolwire.mcp.servers.code_digests", watched)

    async def main() -> None:
        async with McpRouter([server], ToolRegistry(), approvals=Approvals(), approve=lambda _: False) as router:
            (status,) = await router.connect()
            assert status.state == "not approved"
            assert router.servers()[0].launch == status.launch != ""

    asyncio.run(main())
    assert threads
    assert threading.main_thread() not in threads

"""Programs behind a gate: they start only when their group is watched, and are otherwise as without a gate."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolwire import ToolError
from toolwire.runtime import processes
from toolwire.runtime.process_groups import run_program
from toolwire.runtime.start_gate import gate

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")

KILLED_BETWEEN = """
import asyncio, os, signal
from contextlib import contextmanager
from toolwire.runtime import processes

@contextmanager
def die(group):
    print(group, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    yield

processes.watch_group = die
asyncio.run(processes.run(
    ["sh", "-c", "echo started > started"],
    directory=".", env=processes.environment(), seconds=300, max_output=1, stdin={stdin!r},
))
"""


def run(*argv: str, directory: str | int = "/", stdin: bytes = b"", **variables: str) -> str:
    env = processes.environment() | variables
    ended = asyncio.run(processes.run(argv, directory=directory, env=env, seconds=20, max_output=10_000, stdin=stdin))
    return ended.out.joined().decode()


PLAIN = """
import os, signal, subprocess
from contextlib import contextmanager
from toolwire.runtime import process_groups

@contextmanager
def die(group):
    print(group, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    yield

process_groups.watch_group = die
process_groups.run_program(
    ["sh", "-c", "echo started > started"], seconds=300, max_output=1, stdin={stdin}
)
"""


@pytest.mark.parametrize(
    "script",
    [
        KILLED_BETWEEN.format(stdin=b""),
        KILLED_BETWEEN.format(stdin=b"input\n"),
        PLAIN.format(stdin="None"),
        PLAIN.format(stdin="subprocess.DEVNULL"),
    ],
)
def test_no_program_starts_if_its_parent_is_killed_before_it_is_watched(script: str, tmp_path: Path) -> None:
    process = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert process.returncode == -signal.SIGKILL
    group = int(process.stdout)
    deadline = time.monotonic() + 10
    while is_running(group):
        assert time.monotonic() < deadline
    assert not (tmp_path / "started").exists()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")  # a process that ended may still be waiting to be collected
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_the_environment_and_the_input_are_those_without_a_gate() -> None:
    expected = {**processes.environment(), "OWN": "a b"}
    printed = dict(line.split("=", 1) for line in run("env", OWN="a b").splitlines())
    printed.pop("_", None)  # some shells set it
    assert printed == expected
    assert run("cat", stdin=b"\nfirst\\n\nlast") == "\nfirst\\n\nlast"
    assert run("cat") == ""


def test_a_program_without_asyncio_reads_the_given_input(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("first\nlast")
    descriptor = os.open(tmp_path / "input", os.O_RDONLY)
    try:
        os.lseek(descriptor, 6, os.SEEK_SET)
        for stdin, expected in ((descriptor, b"last"), (subprocess.DEVNULL, b"")):
            ended = run_program(["cat"], seconds=20, max_output=100, stdin=stdin)
            assert (ended.status, ended.out.joined()) == (0, expected)
        listed = run_program(["ls", "/dev/fd/"], seconds=20, max_output=100, stdin=descriptor).out.joined().split()
        assert set(listed) <= {b"0", b"1", b"2", b"3"}  # the last is the listing itself
    finally:
        os.close(descriptor)


def test_a_closed_standard_input_is_an_empty_one() -> None:
    script = "from toolwire.runtime.process_groups import run_program as run\n"
    script += "print(run(['cat'], seconds=20, max_output=9).out.size)"
    closed = subprocess.run(["sh", "-c", f'exec "{sys.executable}" -c "{script}" <&-'], capture_output=True, check=True)
    assert closed.stdout == b"0\n"


def test_a_name_that_a_shell_would_drop_reaches_the_program() -> None:
    assert "dotted.name=value\n" in run("env", **{"dotted.name": "value"})


def test_arguments_are_not_interpreted() -> None:
    words = ["$HOME", "a b", "*", "`id`", "-x", "--", "'", '"', "\\", ""]
    assert run("printf", "%s|", *words) == "|".join(words) + "|"


def test_a_program_may_have_a_name_like_an_option(tmp_path: Path) -> None:
    shutil.copy("/bin/echo", tmp_path / "-c")
    assert run("-c", "hello", PATH=f"{tmp_path}:/usr/bin:/bin") == "hello\n"


def test_programs_in_a_directory_are_found_from_it(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("#!/bin/sh\necho here\n")
    (tmp_path / "own").chmod(0o700)
    (tmp_path / "text").write_text("")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        for directory in (str(tmp_path), descriptor):
            assert run("./own", directory=directory) == "here\n"
            for name, reason in (("./text", "Permission denied"), ("./", "Permission denied"), ("./no", "no such")):
                with pytest.raises(ToolError, match=reason):
                    run(name, directory=directory)
    finally:
        os.close(descriptor)


def test_the_shell_becomes_the_program_only_after_a_line(tmp_path: Path) -> None:
    argv, opening = gate(["sh", "-c", "echo $0; cat"], {"PATH": os.defpath}, "/", source=0)
    assert opening == b"\n"
    for given, status, printed in ((b"", 1, b""), (b"\nrest", 0, b"sh\nrest")):
        ended = subprocess.run(argv, input=given, capture_output=True, check=False)
        assert (ended.returncode, ended.stdout) == (status, printed)


def test_the_program_is_named_as_it_was(tmp_path: Path) -> None:
    shutil.copy("/bin/echo", tmp_path / "-c")
    path = f"{tmp_path}:/usr/bin:/bin"
    for name, expected in (("echo", "echo"), ("-c", str(tmp_path / "-c")), ("/bin/echo", "/bin/echo")):
        argv, _ = gate([name, "$1", ""], {"PATH": path}, "/", source=None)
        assert argv[0] == "/bin/sh"
        assert "unset PWD OLDPWD SHLVL; exec" in argv[2]  # variables that shells set
        assert argv[3:] == ("sh", expected, "$1", "")  # the name that the shell gives itself in its errors is "sh"


def test_variables_that_shells_set_are_kept_if_they_are_given() -> None:
    for given, unset in (("PWD", "OLDPWD SHLVL"), ("OLDPWD", "PWD SHLVL"), ("SHLVL", "PWD OLDPWD")):
        argv, _ = gate(["env"], {"PATH": os.defpath, given: "x"}, "/", source=0)
        assert argv[2] == f'read -r line || exit 1; unset {unset}; exec "$@"'


def test_what_a_shell_cannot_pass_on_has_no_gate() -> None:
    path = {"PATH": os.defpath}
    for name in ("_", "a", "A1", "lower_case"):
        assert gate(["env"], path | {name: "x"}, "/", source=None).opening
    for name in ("dotted.name", "1A", "", "A-B"):
        assert gate(["env"], path | {name: "x"}, "/", source=None) == (("env",), b"")
    assert [bool(gate(["env"], path, "/", source=source).opening) for source in (None, 0, 3, 9, 10)] == [True] * 4 + [
        False
    ]


def test_without_a_shell_there_is_no_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.runtime.start_gate._SHELL", "/no/such/shell")
    assert gate(["env"], {}, "/", source=None) == (("env",), b"")
    assert "OWN=1" in run("env", OWN="1")

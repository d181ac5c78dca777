"""Commands: words and never a shell, in a directory below the roots, with an end."""

import asyncio
import os
import select
import subprocess
from pathlib import Path
from typing import Any

import pytest

from toolwire.builtin.run_command import Commands, CommandSettings, words
from toolwire.builtin.toolsets import command_tools
from toolwire.errors import ToolError
from toolwire.runtime import processes
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.tools import Tier


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "allowed"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "file").write_text("x")
    return root


def run(root: Path, command: Any, *, settings: CommandSettings | None = None, **arguments: Any) -> str:
    return asyncio.run(Commands(AllowedRoots(root), settings).execute_command(command, **arguments))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("git log -3", ["git", "log", "-3"]),
        ("  a\tb  ", ["a", "b"]),
        ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
        ("""a'b'"c"d ''""", ["abcd", ""]),
        ("grep 'a|b;$x`\\' f", ["grep", "a|b;$x`\\", "f"]),
        ('echo "it\'s; > fine"', ["echo", "it's; > fine"]),
        ("git show HEAD~1 a#b x=1", ["git", "show", "HEAD~1", "a#b", "x=1"]),
        ("a\u00a0b é", ["a\u00a0b", "é"]),
    ],
)
def test_text_of_plain_words_is_split(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("a; b", "a && b", "a | b", "a & b", "a > b", "a < b", "a $(b)", "a `b`", "a $b", "a *", "a ?", "a [b]"),
        *("a\nb", "a\rb", "a\0b", "a \x1b", "a 'b", 'a "b', "a\\ b", '"$a"', '"`a`"', '"\\a"', '"!"', "(a)", "! a"),
        *("a !b", "a {b,c}", "~/x", "a ~b", "# a", "a #b"),
        *("A=b c", "PATH=/x ls", "A+=b c", "", "  ", "''", "'a\nb'", '"a\tb"'),
    ],
)  # fmt: skip
def test_text_with_shell_syntax_is_refused(root: Path, text: str) -> None:
    with pytest.raises(ToolError):
        words(text)
    with pytest.raises(ToolError):
        run(root, text)


def test_words_are_split_as_a_shell_splits_them() -> None:
    """What is taken as words is what `sh` makes of it."""
    script = 'for word do printf "%s\\0" "$word"; done'
    for text in ("a 'b c' d\"e f\"g ''", "x=1 a#b HEAD~1 %1 a,b @x +y -- -z", "é\u00a0ü 'a|b' \"a;b>c&d\""):
        argv = ["sh", "-c", f"set -- x {text}; shift; {script}"]
        said = subprocess.run(argv, capture_output=True, check=True).stdout.decode().split("\0")[:-1]
        if not text.startswith("x="):
            assert words(text) == said
        else:
            with pytest.raises(ToolError):
                words(text)


def test_output_and_exit_status_are_returned(root: Path) -> None:
    assert run(root, ["printf", "a\\nb"]) == "a\nb\n(exit status 0)"
    assert run(root, ["true"]) == "(exit status 0)"
    assert run(root, ["sh", "-c", "echo out; echo err >&2; exit 3"]) == "out\nerr\n(exit status 3)"
    assert run(root, ["sh", "-c", "kill -9 $$"]) == "(ended by the signal SIGKILL)"
    assert run(root, ["printf", "\\377"]) == "\ufffd\n(exit status 0)"
    assert run(root, ["cat"]) == "(exit status 0)"  # nothing to read, and nobody waits
    for command in (["no-such-program"], ["./sub/file"], ["sub"], [], [""], ["a\0b"], ["x" * 300_000]):
        with pytest.raises(ToolError):
            run(root, command)


def test_the_directory_must_be_below_the_roots(root: Path) -> None:
    assert run(root, ["pwd"], cwd="sub").startswith(f"{root}/sub\n")
    assert run(root, ["ls"], cwd=f"{root}/sub").startswith("file\n")
    (root / "out").symlink_to("/")
    for cwd in ("..", "/", "out", "none", "sub/file"):
        with pytest.raises(ToolError):
            run(root, ["pwd"], cwd=cwd)


def test_the_directory_is_entered_without_proc(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.path.isdir
    monkeypatch.setattr(os.path, "isdir", lambda path: path != "/proc/self/fd" and real(path))
    assert run(root, ["pwd"], cwd="sub").startswith(f"{root}/sub\n")


def test_the_environment_contains_no_keys(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("PASSED", "passed")
    monkeypatch.setenv("PATH", f".::bin:{os.environ['PATH']}")
    settings = CommandSettings(environment={"OWN": "own", "PAGER": "less"}, passed_on=("PASSED", "UNSET"))
    env = dict(line.split("=", 1) for line in run(root, ["env"], settings=settings).splitlines()[:-1])
    assert "SOME_API_KEY" not in env
    assert (env["OWN"], env["PASSED"], env["PAGER"], env["TERM"]) == ("own", "passed", "less", "dumb")
    assert all(entry.startswith("/") for entry in env["PATH"].split(":"))


def test_long_output_is_truncated_in_the_middle(root: Path) -> None:
    settings = CommandSettings(output=1_000)
    shown = run(root, ["seq", "100000"], settings=settings)
    assert shown.startswith("1\n2\n3\n")
    assert shown.endswith("99999\n100000\n(exit status 0)")
    assert "… (587,895 bytes left out)" in shown
    assert len(shown) < 1_100


def test_time_is_limited_and_the_whole_group_is_killed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.2)
    script = "echo begun; (sleep 60 & echo $! > child; wait) & trap '' TERM; while :; do sleep 1; done"
    with pytest.raises(ToolError, match=r"sh was stopped after 0.3 seconds; it wrote: begun"):
        run(root, ["sh", "-c", script], seconds=0.3)
    child = int((root / "child").read_text())
    assert ends(child)
    with pytest.raises(ToolError, match="up to 600 seconds"):
        run(root, ["true"], seconds=601)
    with pytest.raises(ToolError, match="up to 600 seconds"):
        run(root, ["true"], seconds=-1)


def ends(pid: int) -> bool:
    """Whether a process has ended, or does so now that it was killed."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 10)[0])
    finally:
        os.close(descriptor)


def test_what_a_command_leaves_running_is_killed(root: Path) -> None:
    assert run(root, ["sh", "-c", "sleep 60 & echo $! > child; echo done"]) == "done\n(exit status 0)"
    assert ends(int((root / "child").read_text()))


def test_cancellation_kills_the_command(root: Path) -> None:
    async def main() -> None:
        os.mkfifo(root / "fifo")
        reader = os.open(root / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        tool = Commands(AllowedRoots(root))
        task = asyncio.create_task(tool.execute_command(["sh", "-c", "echo $$ > fifo; exec sleep 60"]))
        loop, told = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(reader, told.set)
        await told.wait()
        loop.remove_reader(reader)
        pid = int(os.read(reader, 100) or b"0")
        os.close(reader)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ends(pid)

    asyncio.run(main())


def test_a_shell_is_used_only_if_configured(root: Path) -> None:
    settings = CommandSettings(shell="/bin/sh")
    assert run(root, "echo a | tr a b; exit 4", settings=settings) == "b\n(exit status 4)"
    assert run(root, ["echo", "a | tr a b"], settings=settings) == "a | tr a b\n(exit status 0)"
    tool = Commands(AllowedRoots(root), settings)
    assert tool.preview({"command": "ls | cat\x1b"}) == (
        'have a shell run this in ., for at most 120 seconds:\n  "/bin/sh"\n  "-c"\n  "ls | cat\\x1b"'
    )
    assert tool.preview({"command": "ls 'a b'"}).startswith('run in ., for at most 120 seconds:\n  "ls"\n  "a b"')
    with pytest.raises(ToolError):
        run(root, "a;\0b", settings=settings)


def test_the_preview_shows_exactly_what_runs(root: Path) -> None:
    tool = Commands(AllowedRoots(root))
    shown = tool.preview({"command": ["rm", "-rf", "a b", "\n"], "cwd": "sub", "seconds": 5})
    assert shown == 'run in sub, for at most 5 seconds:\n  "rm"\n  "-rf"\n  "a b"\n  "\\n"'
    for arguments in ({"command": "a;b"}, {"command": ["a"], "cwd": ".."}, {"command": ["x" * 10_000]}):
        with pytest.raises(ToolError):
            tool.preview(arguments)


def test_the_definition_of_execute_command(root: Path) -> None:
    assert command_tools() == ()
    (tool,) = command_tools(root)
    assert (tool.definition.name, tool.definition.tier) == ("execute_command", Tier.RUN)
    assert tool.definition.requires_confirmation
    assert tool.definition.untrusted


def test_text_that_is_too_long_is_refused_at_once(tmp_path: Path) -> None:
    (tool,) = command_tools(tmp_path, settings=CommandSettings(shell="/bin/sh"))
    assert tool.behavior.preview is not None
    with pytest.raises(ToolError, match="at most 100,000 are read"):
        tool.behavior.preview({"command": "a" * 100_001})

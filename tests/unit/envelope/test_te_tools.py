"""The tool `te_run`: what it gives, whatever the command does."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.envelope.tree import wait_until_gone

from toolwire import Tier, Tool
from toolwire.envelope.envelope import Envelope
from toolwire.envelope.grammar import read_envelope
from toolwire.envelope.settings import Settings
from toolwire.envelope.te_tools import TE, read_handle, te_run
from toolwire.errors import ToolError


def command(code: str) -> list[str]:
    """A stand-in for `te`."""
    return [sys.executable, "-c", f"import json, os, sys\n{code}"]


def call(tool: Tool[..., Any], args: list[str]) -> dict[str, Any]:
    """What the tool gives for a command."""
    told: dict[str, Any] = asyncio.run(tool(args))
    return told


ECHO = command("print(json.dumps({'ok': True, 'echo': sys.argv[-1]}))")


@pytest.mark.mission("G29")
def test_te_run_returns_data_and_meta() -> None:
    assert call(te_run(command=ECHO), ["run", "echo", "hello"]) == {
        "data": {"ok": True, "echo": "hello"},
        "meta": {"returncode": 0},
    }


@pytest.mark.parametrize("module", ["toolwire", "json", "shlex", "subprocess", "sqlite3"])
def test_modules_of_the_working_directory_do_not_run(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    (tmp_path / "a.txt").write_text("tea")
    monkeypatch.chdir(tmp_path)
    assert call(te_run(), ["grep", "tea"])["meta"]["returncode"] == 0
    assert not (tmp_path / "ran").exists()


@pytest.mark.mission("G29")
def test_te_run_passes_the_json_option_first() -> None:
    told = call(te_run(command=command("print(json.dumps(sys.argv[1:]))")), ["run", "x", "--json"])
    assert told["data"] == ["--json", "run", "x", "--json"]


@pytest.mark.mission("G29")
def test_the_agent_is_passed_under_both_names(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("TE_AGENT_ID", "LLMC_TE_AGENT_ID", "TE_SESSION_ID", "LLMC_TE_SESSION_ID")
    shown = command(f"print(json.dumps([os.environ.get(name) for name in {names}]))")
    assert call(te_run(agent="me", session="s", command=shown), [])["data"] == ["me", "me", "s", "s"]
    assert call(te_run(command=shown), [])["data"] == [None] * 4
    monkeypatch.setenv("LLMC_TE_SESSION_ID", "old")
    assert call(te_run(command=shown), [])["data"] == [None, None, "old", "old"]


@pytest.mark.mission("G29")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print('no json')", {"data": {"raw": "no json\n"}, "meta": {"returncode": 0}}),
        ("sys.exit(3)", {"data": {"raw": ""}, "meta": {"returncode": 3}}),
        ("sys.exit('why')", {"data": {"raw": ""}, "meta": {"returncode": 1, "stderr": "why"}}),
        ("print('[' * 100000)", {"data": {"raw": "[" * 100_000 + "\n"}, "meta": {"returncode": 0}}),
    ],
)
def test_output_that_is_not_json_is_returned_raw(code: str, expected: dict[str, Any]) -> None:
    assert call(te_run(command=command(code)), ["x"]) == expected


def test_a_missing_program_is_reported_in_meta() -> None:
    for argv, args in (["/no/such/program"], ["x"]), (list(TE), ["a\0b"]):
        told = call(te_run(command=argv), args)
        assert told["data"] is None
        assert told["meta"]["returncode"] == -1
        assert told["meta"]["error"] is True
        assert told["meta"]["message"]


def test_a_timeout_is_reported_in_meta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.envelope.te_tools._SLACK", 0.0)
    told = call(te_run(seconds=0.2, command=command("sys.stdin.read(); import time; time.sleep(60)")), ["x"])
    assert (told["meta"]["returncode"], told["meta"]["error"]) == (-1, True)


@pytest.mark.parametrize("why", ["cancelled", "late"])
def test_a_timeout_kills_everything_that_was_started(tmp_path: Path, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.envelope.te_tools._SLACK", 0.0)
    script = "trap '' TERM; sh -c 'echo $$ > child; exec sleep 60'; sleep 60"
    run = te_run(root=str(tmp_path), seconds=60 if why == "cancelled" else 1)

    async def go() -> int:
        task = asyncio.create_task(run(["sh", "-c", script]))
        while not (tmp_path / "child").is_file() or not (tmp_path / "child").read_text().endswith("\n"):
            await asyncio.sleep(0)
        if why == "cancelled":
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() is (why == "cancelled")
        return int((tmp_path / "child").read_text())

    wait_until_gone(asyncio.run(go()))


def test_commands_see_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    shown = command("print(json.dumps(os.environ.get('SOME_API_KEY')))")
    assert call(te_run(command=shown), [])["data"] is None
    assert call(te_run(command=shown, passed_on=["SOME_API_KEY"]), [])["data"] == "secret"


def test_commands_see_no_keys_with_names_like_those_of_te(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = ("TOOLWIRE_MCP_TOKEN", "TE_TOKEN", "TOOLWIRE_STATE")
    for name in names[:2]:
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path))
    shown = command(f"print(json.dumps([os.environ.get(name) for name in {names}]))")
    assert call(te_run(command=shown), [])["data"] == [None, None, str(tmp_path)]


@pytest.mark.parametrize(
    "options", [["--timeout", "9"], ["--tim=9"], ["-i"], ["--chunk", "1", "--raw"], ["--handle=x", "-i"]]
)
def test_a_model_may_not_change_limits(options: list[str]) -> None:
    with pytest.raises(ToolError, match="is not allowed"):
        call(te_run(command=ECHO), [*options, "echo"])


def test_a_model_may_use_options_that_read(tmp_path: Path) -> None:
    assert call(te_run(command=ECHO), ["--handle", "-i", "--chunk=2", "-h"])["meta"] == {"returncode": 0}
    assert call(te_run(command=ECHO), ["echo", "--timeout"])["data"]["echo"] == "--timeout"


def test_a_handle_belongs_to_its_agent(tmp_path: Path) -> None:
    settings = Settings(state=str(tmp_path), agent="me", session="s")
    mine = Envelope(settings=settings)
    handle = mine.store.put("mine", cmd="x", agent="me", session="s")
    free = mine.store.put("free", cmd="x")
    for other, shown in (
        (mine, True),
        (Envelope(settings=replace(settings, session="")), True),
        (Envelope(settings=replace(settings, session="t")), False),
        (Envelope(settings=replace(settings, agent="you")), False),
    ):
        read = read_handle(other).function
        assert "free" in read(handle=free)
        if shown:
            assert "mine" in read(handle=handle)
        else:
            with pytest.raises(ToolError, match="nothing is stored under"):
                read(handle=handle)
        other.store.close()


def test_te_run_runs_te(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def found():\n    pass\n")
    run = te_run(agent="qwen-local", root=str(tmp_path))
    told = call(run, ["grep", "found"])
    assert told["meta"] == {"returncode": 0}
    assert told["data"]["meta"]["matches"] == 1
    assert told["data"]["content"] == "a.py:1: def found():"
    assert call(run, ["cat", "/etc/hostname"])["data"]["meta"]["error"] == "not_readable"
    passed = call(run, [sys.executable, "-c", "print('x' * 100000)"])
    assert passed["data"]["truncated"] is True
    assert len(json.dumps(passed["data"])) <= 28_000
    page = call(run, ["--handle", passed["data"]["handle"]])
    assert read_envelope(f"# TE_BEGIN_META\n{json.dumps(page['data']['meta'])}\n# TE_END_META").header.lines == 1


def test_te_run_needs_approval() -> None:
    made = te_run()
    definition = made.definition
    assert definition.untrusted
    assert made.behavior.preview is not None
    assert made.behavior.preview({"args": ["rm", "-rf", "a b"]}) == '  "te"\n  "rm"\n  "-rf"\n  "a b"'
    assert (definition.name, definition.tier, definition.requires_confirmation) == ("te_run", Tier.RUN, True)
    assert definition.parameters["properties"]["args"]["items"] == {"type": "string"}


def test_te_run_is_bound_to_the_scripts_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("print(1)")
    run = te_run(root=str(tmp_path), command=ECHO)
    args = ["run", "python3", "x.py"]
    assert run.behavior.preview is not None
    preview = run.behavior.preview({"args": args})
    assert preview.startswith(
        f"(code in a directory that tools may change: {tmp_path.resolve() / 'x.py'}; SHA-256 begins"
    )
    assert call(run, args)["meta"]["returncode"] == 0
    run.behavior.preview({"args": args})
    (tmp_path / "x.py").write_text("print(2)")
    with pytest.raises(ToolError, match="a file of code that the command names has changed since this was approved"):
        call(run, args)
    assert run.behavior.preview({"args": args}) != preview

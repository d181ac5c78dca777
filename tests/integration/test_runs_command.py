"""`toolwire runs`: recorded runs listed, shown and resumed from the command line."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.test_durable import agent_of, file, heard, written

from toolwire.agent.durable import DurableRuns
from toolwire.agent.run_events import ToolFinished
from toolwire.agent.run_store import RunStore
from toolwire.cli import run

PROGRAM = """
from pathlib import Path
from toolwire.agent import AgentTeam
from tests.integration.test_durable import agent_of

agent = agent_of(Path({folder!r}))
changed = agent_of(Path({folder!r}), system="Be brief.")
number = 3


def make():
    return agent


class Holder:
    team = AgentTeam(agent_of(Path({folder!r})), [])
"""


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run that has ended and one that was stopped, and the program of their agent."""
    monkeypatch.setenv("TOOLWIRE_RUNS", file(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"program_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(PROGRAM.format(folder=str(tmp_path)))

    async def main() -> None:
        async with DurableRuns(agent_of(tmp_path), database=file(tmp_path)) as runs:
            await heard(runs.run("Write\neverything.", run_id="whole"))
            await heard(runs.run("Write it\x1b[31m.", run_id="half", session=None), ToolFinished)

    asyncio.run(main())
    (tmp_path / "written").unlink()
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[list[str], str]:
    """What a command prints: lines on standard output, and standard error."""
    capsys.readouterr()
    try:
        assert run(["runs", *arguments]) == status
    except SystemExit as ended:  # typer.Exit, outside of main
        assert ended.code == status
    captured = capsys.readouterr()
    return captured.out.splitlines(), captured.err


def objects(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(capsys, *arguments, "--json", status=status)[0]]


def test_list(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split("\t") for line in lines(capsys, "list")[0]]
    assert [(row[0], row[1], *row[3:]) for row in rows] == [
        ("half", "stopped", "writer", "Write it\\x1b[31m."),
        ("whole", "ended: answered", "writer", "Write everything."),
    ]
    assert [row["id"] for row in objects(capsys, "list", "--state", "ended")] == ["whole"]
    (newest,) = objects(capsys, "list", "-n", "1")
    assert (newest["id"], newest["state"], newest["task"]) == ("half", "stopped", "Write it\x1b[31m.")


def test_list_without_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path))
    assert lines(capsys, "list") == ([], "No runs.\n")
    assert objects(capsys, "list") == []
    assert "no run has been recorded in" in lines(capsys, "show", status=1)[1]
    assert "not in mysql" in lines(capsys, "list", "--database", "mysql://a/b", status=1)[1]


def test_show(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown, _ = lines(capsys, "show", "wh")
    assert shown[0] == "whole  ended: answered"
    assert shown[2:5] == ["task    Write", "        everything.", 'call    write {"number": 1}']
    assert shown[5] == "result  write: wrote 1"
    assert shown[-2] == "text    Done."
    assert shown[-1].startswith("ended   answered (4 rounds, 3 calls, ")
    shown, hint = lines(capsys, "show", "last")
    assert shown[0] == "half  stopped"
    assert "`toolwire runs resume half --agent MODULE:NAME` resumes it." in hint
    events = objects(capsys, "show", "whole")
    assert [one["event"] for one in events if one["event"] in ("run", "turn", "result", "end")] == [
        *("run", "turn", "result", "turn", "result", "turn", "result", "turn", "end")
    ]
    assert events[0]["task"] == "Write\neverything."
    assert (events[-1]["answer"], events[-1]["reason"]) == ("Done.", "answered")
    assert "no run 'nothing'" in lines(capsys, "show", "nothing", status=1)[1]


def test_resume(recorded: Path, capsys: pytest.CaptureFixture[str], program: str) -> None:
    said, told = lines(capsys, "resume", "half", "--agent", f"{program}:agent")
    assert said == ["Done."]
    assert (
        told.index("result  wrote 1")
        < told.index("now     the run continues from here")
        < told.index("result  wrote 3")
    )
    assert written(recorded)[-1] == "3"
    events = objects(capsys, "resume", "whole", "--agent", f"{program}:make")
    assert events[0] == {"event": "resumed"}
    assert events[-1]["answer"] == "Done."


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("", "name the agent: --agent MODULE:NAME"),
        ("nothing", "'nothing' is not of the form MODULE:NAME"),
        ("no_such_module:agent", "'no_such_module' cannot be imported"),
        ("{}:nobody", "has no 'nobody'"),
        ("{}:number", "is a int, not an agent or a team"),
        ("{}:changed", "its prompts or other settings differ"),
    ],
)
def test_resume_refuses_unusable_agents(
    recorded: Path, capsys: pytest.CaptureFixture[str], program: str, agent: str, message: str
) -> None:
    status = 1 if "changed" in agent else 2
    given = ["--agent", agent.format(program)] if agent else []
    assert message in lines(capsys, "resume", "half", *given, status=status)[1]


def test_resume_with_a_changed_agent_and_with_a_team(
    recorded: Path, capsys: pytest.CaptureFixture[str], program: str
) -> None:
    assert lines(capsys, "resume", "half", "--agent", f"{program}:Holder.team")[0]
    assert lines(capsys, "resume", "half", "--agent", f"{program}:changed", "--changed")[0]


@pytest.fixture
def program(recorded: Path) -> str:
    """The module of the agent."""
    return f"program_{recorded.name.replace('-', '_')}"


def test_delete(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "name the runs" in lines(capsys, "delete", status=2)[1]
    assert objects(capsys, "delete", "--older-than", "1") == []
    assert objects(capsys, "delete", "--older-than", "0") == [{"deleted": "whole"}]
    assert [row["id"] for row in objects(capsys, "list")] == ["half"]
    assert lines(capsys, "delete", "half")[0] == ["half  deleted"]
    assert "no run 'half'" in lines(capsys, "delete", "half", status=1)[1]
    with RunStore(file(recorded)) as store:
        assert store.records("half") == ({}, 0)

"""Durable runs with DBOS: recorded, stopped, killed, taken over and gone on with."""

import asyncio
import json
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, closing
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psycopg
import pytest
from benchmarks import crash
from tests.integration.postgres import serving

import toolwire
from toolwire import FinishReason, Message, ParsedResponse, Tier, ToolCall, ToolResult, Usage
from toolwire.agent import Agent, AgentConfig, Budget, Prices, durable, process_locks
from toolwire.agent.durable import DurableRuns, run_durably
from toolwire.agent.hooks import Hooks, TurnInfo
from toolwire.agent.journal import UNKNOWN
from toolwire.agent.process_locks import FileLiveProcesses, PostgresLiveProcesses
from toolwire.agent.run_events import (
    AgentEvent,
    ReplayEnded,
    RunEnded,
    RunResumed,
    TaskStarted,
    ToolFinished,
    ToolStarted,
)
from toolwire.agent.run_store import HERE, RunStore, database_url
from toolwire.errors import ConfigurationError, DefinitionError, JournalError
from toolwire.events import Event, replay
from toolwire.execution.registry import ToolRegistry
from toolwire.models.backends import NO_OPTIONS, StreamOptions
from toolwire.policy.session import Session
from toolwire.providers.request import ChatRequest


class Counting:
    """A model that calls `write` with 1, 2 and 3, one after the other, and then answers."""

    model, api, format = "counting", "", ""

    def __init__(self) -> None:
        self.asked: list[ChatRequest] = []

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        self.asked.append(request)
        seen = sum(isinstance(part, ToolResult) for message in request.messages for part in message.parts)
        call = ToolCall("write", {"number": seen + 1}, str(seen + 1))
        more = ParsedResponse(tool_calls=(call,), finish_reason=FinishReason.TOOL_CALLS, usage=Usage(10, 1))
        for event in replay(more if seen < 3 else ParsedResponse("Done.", usage=Usage(10, 1))):
            yield event


def agent_of(folder: Path, name: str = "writer", *, waits: int = 0, **config: Any) -> Agent:
    """An agent whose tool appends to a file; with one number it waits for ever."""

    async def write(number: int) -> str:
        """Writes."""
        with (folder / "written").open("a") as file:
            file.write(f"{number}\n")
        if number == waits:
            await asyncio.Event().wait()
        return f"wrote {number}"

    registry = ToolRegistry()
    registry.register(write, tier=Tier.RUN)
    return Agent(Counting(), registry, AgentConfig(name=name, tier=Tier.RUN, **config))


def written(folder: Path) -> list[str]:
    return (folder / "written").read_text().split()


def file(folder: Path) -> str:
    return str(folder / "runs.sqlite3")


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with serving() as url:
        yield url


async def heard(events: AsyncGenerator[AgentEvent], until: type[Any] | None = None) -> list[AgentEvent]:
    """All events, or those up to the first of a kind."""
    found = []
    async with aclosing(events):
        async for event in events:
            found.append(event)
            if until is not None and isinstance(event, until):
                break
    return found


def ended(events: list[AgentEvent]) -> RunEnded:
    assert isinstance(events[-1], RunEnded)
    return events[-1]


def results(events: list[AgentEvent]) -> list[str]:
    return [event.outcome.result.text for event in events if isinstance(event, ToolFinished)]


def test_run_is_recorded_and_replayed(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)

    async def main() -> None:
        async with DurableRuns(agent, database=file(tmp_path)) as runs:
            events = await heard(runs.run("Write.", run_id="one"))
            (info,) = await runs.all()
            assert (info.id, info.state, info.agent, info.task) == ("one", "ended", "writer", "Write.")
            assert (info.reason, info.rounds, info.calls) == ("answered", 4, 3)
            again = await heard(runs.resume("one"))
            assert again[0] == RunResumed()
            told = [event for event in events if not isinstance(event, ToolFinished | TaskStarted)]
            assert [event for event in again[1:] if not isinstance(event, ToolFinished)] == told
            assert results(again) == results(events) == ["wrote 1", "wrote 2", "wrote 3"]
            assert await heard(runs.watch("one")) == again[1:]
            assert await runs.ask("Write.", run_id="one") == "Done."
        assert await asyncio.to_thread(lambda: 3) == 3, "DBOS has given back the loop's threads"

    asyncio.run(main())
    assert written(tmp_path) == ["1", "2", "3"]
    assert len(agent.backend.asked) == 4  # type: ignore[attr-defined]
    assert [thread.name for thread in threading.enumerate() if "dbos" in thread.name.lower()] == []


def test_records_are_json_that_only_the_user_may_read(tmp_path: Path) -> None:
    asyncio.run(heard(run_durably(agent_of(tmp_path), "Write.", run_id="one", database=file(tmp_path))))
    path = Path(file(tmp_path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with closing(sqlite3.connect(path)) as database:
        kinds = set(database.execute("SELECT serialization FROM operation_outputs").fetchall())
        kinds |= set(database.execute("SELECT serialization FROM workflow_status").fetchall())
        texts = database.execute("SELECT output FROM operation_outputs").fetchall()
        texts += database.execute("SELECT output FROM workflow_output").fetchall()
    assert kinds == {("portable_json",)}
    assert all(json.loads(text) for (text,) in texts), texts
    assert not list(tmp_path.glob("runs.sqlite3.locks/*.lock")), "no process lives"


def test_run_whose_reader_leaves_is_stopped_and_can_be_resumed(tmp_path: Path) -> None:
    async def main() -> None:
        async with DurableRuns(agent_of(tmp_path, waits=2), database=file(tmp_path)) as runs:
            await heard(runs.run("Write.", run_id="one", history=[Message("user", "Hello.")]), ToolFinished)
            (info,) = await runs.all()
            assert info.state == "stopped"
        async with DurableRuns(agent_of(tmp_path), database=file(tmp_path)) as runs:
            session = Session()
            events = await heard(runs.run("Write.", run_id="one", session=session))
            assert (await runs.all())[0].state == "ended"
        assert results(events)[0] == "wrote 1"
        assert results(events)[2] == "wrote 3"
        assert ended(events).messages[0] == Message("user", "Hello.")
        assert session._counts == {"write": 3}
        assert session.tier is Tier.RUN

    asyncio.run(main())


def test_session_of_a_resumed_run_is_restored(tmp_path: Path) -> None:
    session, again = Session(), Session(untrusted=True)
    session.record_decision("somewhere", approved=True)
    session.record_call("other", 5.0)

    async def main() -> None:
        async with DurableRuns(agent_of(tmp_path), database=file(tmp_path)) as runs:
            await heard(runs.run("Write.", run_id="one", session=session), ToolFinished)
            await heard(runs.resume("one", session=again))

    asyncio.run(main())
    assert again._approved == {"somewhere"}
    assert {name: len(times) for name, times in again._call_times.items()} == {"other": 1, "write": 3}
    assert again.untrusted is False


class Recorded(Counting):
    """The same model, which remembers the settings of the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.settings: list[Any] = []

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        self.settings.append((request.temperature, request.stop, options.extra_body))
        async for event in super().stream(request, options):
            yield event


def agent_with_dependencies(model: Counting) -> Agent:
    def write(context: toolwire.ToolContext[list[int]], number: int) -> str:
        """Writes."""
        context.deps.append(number)
        return f"wrote {number}"

    return Agent(model, [toolwire.tool(tier=Tier.RUN)(write)], AgentConfig(name="writer"))


def test_settings_of_a_run_are_recorded_and_dependencies_are_those_of_each_process(tmp_path: Path) -> None:
    first, second = Recorded(), Recorded()
    begun: list[int] = []
    resumed: list[int] = []
    options: Any = {"run_id": "r", "settings": {"temperature": 0.5, "stop": ["."]}, "extra_body": {"mirostat": 2}}

    async def begin() -> None:
        async with (
            DurableRuns(agent_with_dependencies(first), database=file(tmp_path)) as runs,
            aclosing(runs.run("Write.", deps=begun, **options)) as events,
        ):
            async for event in events:
                if isinstance(event, ToolFinished):
                    break

    async def resume() -> str:
        async with DurableRuns(agent_with_dependencies(second), database=file(tmp_path), deps=resumed) as runs:
            with pytest.raises(JournalError, match="with other settings"):
                await runs.ask("Write.", run_id="r", settings={"temperature": 0.6})
            with pytest.raises(TypeError, match="did you mean temperature"):
                await runs.submit("Write.", settings={"temprature": 0.6})  # type: ignore[typeddict-unknown-key]
            return await runs.ask("Write.", **options)

    asyncio.run(begin())
    assert asyncio.run(resume()) == "Done."
    assert (begun, resumed) == ([1], [2, 3])
    assert first.settings[0] == (0.5, (".",), {"mirostat": 2})
    assert {str(settings) for settings in second.settings} == {str(first.settings[0])}


@pytest.mark.parametrize("by_model", [False, True])
def test_budget_of_a_run_is_recorded_and_holds_when_it_is_resumed(tmp_path: Path, by_model: bool) -> None:
    first, second = agent_of(tmp_path, budget=Budget(rounds=5)), agent_of(tmp_path, budget=Budget(rounds=50))
    prices = Prices(input=1e6, cached=0.5)
    budget = Budget(money=25.0, seconds=1_000, prices=MappingProxyType({"counting": prices}) if by_model else prices)

    async def begin() -> None:
        async with DurableRuns(first, database=file(tmp_path)) as runs:
            await heard(runs.run("Write.", run_id="r", budget=budget), until=ToolFinished)

    async def resume() -> RunEnded:
        async with DurableRuns(second, database=file(tmp_path)) as runs:
            for other in (None, Budget(money=26.0, prices=prices)):
                with pytest.raises(JournalError, match="with another budget"):
                    await runs.ask("Write.", run_id="r", budget=other)
            return ended(await heard(runs.resume("r")))

    asyncio.run(begin())
    end = asyncio.run(resume())
    # Each answer reads ten tokens: after three of them more than 25 is spent, and the fourth is the last.
    assert (end.reason, end.detail, end.rounds) == ("budget", "the budget of 25 money is used up", 4)
    assert end.money == pytest.approx(40)


def test_durable_run_whose_budget_cannot_be_counted_does_not_begin(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)

    async def main() -> None:
        async with DurableRuns(agent, database=file(tmp_path)) as runs:
            for begin in (runs.ask, runs.submit):
                with pytest.raises(ConfigurationError, match="none are published for 'counting'"):
                    await begin("Write.", budget=Budget(money=1.0))
            with pytest.raises(JournalError, match="cannot be recorded as JSON"):
                await runs.ask("Write.", budget=Budget(tokens=10, seconds=float("inf")))
            with pytest.raises(TypeError, match="a Budget or None"):
                await runs.ask("Write.", budget=5)  # type: ignore[arg-type]
            assert await runs.all() == []

    asyncio.run(main())


def test_durable_run_without_the_dependencies_of_its_tools_does_not_begin(tmp_path: Path) -> None:
    model = Counting()

    async def main() -> None:
        async with DurableRuns(agent_with_dependencies(model), database=file(tmp_path)) as runs:
            with pytest.raises(ConfigurationError, match=r"the tool write needs dependencies, list\[int\]"):
                await runs.ask("Write.")
            assert await runs.all() == []

    asyncio.run(main())
    assert model.asked == []


def test_unknown_and_ambiguous_names_are_refused(tmp_path: Path) -> None:
    async def refused(runs: DurableRuns, match: str, **options: Any) -> None:
        with pytest.raises(JournalError, match=match):
            await heard(runs.run(**{"task": "Write.", **options}))

    async def main() -> None:
        first, second = agent_of(tmp_path), agent_of(tmp_path, "other")
        async with DurableRuns(first, second, database=file(tmp_path)) as runs:
            await refused(runs, "name the agent; here are writer, other")
            await refused(runs, "'third', which is not here; here are writer, other", agent="third")
            await heard(runs.run("Write.", agent="other", run_id="one"))
            of_other = "a run 'one' already, of other with another task: 'Write.'"
            await refused(runs, of_other, task="Read.", agent="other", run_id="one")
            await refused(runs, of_other, agent="writer", run_id="one")
            await refused(runs, "cannot be called", agent="other", run_id="a\nb")
            with pytest.raises(JournalError, match=r"no run 'ona'; did you mean one\?"):
                await heard(runs.resume("ona"))
            with pytest.raises(JournalError, match="durable runs open already"):
                await heard(run_durably(first, "x", database=file(tmp_path)))
            (info,) = await runs.all()
            assert info.id == "one"
            await heard(runs.run("Write.", agent="other"))
            assert (await runs.all())[0].id.startswith("run_")

    asyncio.run(main())
    with pytest.raises(DefinitionError, match="two agents are called 'writer'"):
        DurableRuns(agent_of(tmp_path), agent_of(tmp_path))
    with pytest.raises(JournalError, match="not open"):
        asyncio.run(heard(DurableRuns(agent_of(tmp_path)).run("x")))


def test_changed_agent_is_refused_unless_it_is_intended(tmp_path: Path) -> None:
    def other() -> Agent:
        agent = agent_of(tmp_path, system="Be brief.")
        agent.backend.model = "larger"
        agent.registry.register(lambda: 1, name="more", description="More.")
        agent.registry.remove("write")
        agent.registry.register(lambda number: f"wrote {number}", name="write", description="Writes more.")
        return agent

    async def main() -> None:
        async with DurableRuns(agent_of(tmp_path), database=file(tmp_path)) as runs:
            await heard(runs.run("Write.", run_id="one"), ToolFinished)
        async with DurableRuns(other(), database=file(tmp_path)) as runs:
            with pytest.raises(JournalError) as caught:
                await heard(runs.resume("one"))
            assert "the model was 'counting' and is 'larger'" in str(caught.value)
            assert "tool more is new" in str(caught.value)
            assert "its prompts or other settings differ" in str(caught.value)
            assert "the tool write is described in another way" in str(caught.value)
            assert ended(await heard(runs.resume("one", changed=True))).answer == "Done."
        async with DurableRuns(database=file(tmp_path)) as runs:
            with pytest.raises(JournalError, match="'writer', which is not here"):
                await heard(runs.resume("one"))

    asyncio.run(main())


def test_run_that_a_bug_stopped_can_be_resumed_once_it_is_fixed(tmp_path: Path) -> None:
    class Step:
        broken = True

        def __call__(self, response: ParsedResponse, turn: TurnInfo) -> ParsedResponse:
            if self.broken and turn.round == 2:
                raise KeyError("a bug")
            return response

    async def main() -> None:
        step = Step()
        agent = agent_of(tmp_path, hooks=Hooks(response=(step,)))
        async with DurableRuns(agent, database=file(tmp_path)) as runs:
            with pytest.raises(KeyError, match="a bug"):
                await heard(runs.run("Write.", run_id="one"))
            (info,) = await runs.all()
            assert (info.state, info.reason) == ("stopped", "KeyError: 'a bug'")
            with pytest.raises(JournalError, match="was stopped: KeyError: 'a bug'"):
                await heard(runs.watch("one"))
            step.broken = False
            assert ended(await heard(runs.resume("one"))).answer == "Done."

    asyncio.run(main())
    assert written(tmp_path) == ["1", "2", "3"]


def test_closing_stops_runs_which_can_be_resumed(tmp_path: Path) -> None:
    async def main() -> None:
        left: list[BaseException] = []

        async def listen(runs: DurableRuns) -> None:
            try:
                await heard(runs.run("Write.", run_id="one"))
            except JournalError as error:
                left.append(error)

        async with DurableRuns(agent_of(tmp_path, waits=2), database=file(tmp_path)) as runs:
            listening = asyncio.create_task(listen(runs))
            while not (tmp_path / "written").exists() or len(written(tmp_path)) < 2:
                await asyncio.sleep(0.01)
        await listening
        assert "can be resumed" in str(left)
        with RunStore(file(tmp_path)) as store:
            assert [one.state for one in store.all()] == ["interrupted"]
        async with DurableRuns(agent_of(tmp_path), database=file(tmp_path)) as runs:
            events = await heard(runs.resume("one"))
        assert results(events) == ["wrote 1", UNKNOWN, "wrote 3"]

    asyncio.run(main())


# -- other processes


def _lived(folder: Path, database: str, told: Connection, worker: bool) -> None:
    """What another process does: its run never ends."""

    async def main() -> None:
        async with DurableRuns(agent_of(folder, waits=2), database=database, worker=worker) as runs:
            told.send("open")
            if worker:
                await runs.serve()
            async for event in runs.run("Write.", run_id="one"):
                if isinstance(event, ToolStarted):
                    told.send(event.call.id)

    asyncio.run(main())


class Other:
    """Another process, which begins a run or works for others."""

    def __init__(self, folder: Path, database: str, *, worker: bool = False) -> None:
        self.told, told = crash.CONTEXT.Pipe(duplex=False)
        self._process = crash.CONTEXT.Process(target=_lived, args=(folder, database, told, worker), daemon=True)
        self._process.start()
        told.close()

    def says(self, what: str) -> None:
        """Wait until it says so."""
        assert self.told.poll(60), "it says nothing"
        assert self.told.recv() == what

    def kill(self) -> None:
        """As if the power went out."""
        self._process.kill()
        self._process.join()
        self.told.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_run_of_a_running_process_cannot_be_taken_over(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    database = file(tmp_path) if kind == "sqlite" else request.getfixturevalue("postgres")
    other = Other(tmp_path, database)
    for said in ("open", "1", "2"):
        other.says(said)

    async def main() -> None:
        async with DurableRuns(agent_of(tmp_path), database=database) as runs:
            assert [one.state for one in await runs.all()] == ["running"]
            with pytest.raises(JournalError, match="is with another process"):
                await heard(runs.resume("one"))
            other.kill()
            assert [one.state for one in await runs.all()] == ["interrupted"]
            events = await heard(runs.resume("one"))
            assert results(events) == ["wrote 1", UNKNOWN, "wrote 3"]
            assert [one.state for one in await runs.all()] == ["ended"]

    asyncio.run(main())
    assert written(tmp_path) == ["1", "2", "3"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_workers_take_submitted_runs_and_runs_of_dead_processes(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "RESCUE_SECONDS", 0.1)
    database = file(tmp_path) if kind == "sqlite" else request.getfixturevalue("postgres")
    other = Other(tmp_path, database, worker=True)
    other.says("open")

    async def main() -> None:
        async with DurableRuns(agent_of(tmp_path), database=database) as runs:
            name = await runs.submit("Write them.", run_id="two")
            assert await runs.submit("Write them.", run_id="two") == name
            begun = [event async for event in _first(runs.watch("two"), 2)]
            assert [event.call.id for event in begun] == ["1", "2"]
            other.kill()
        async with DurableRuns(agent_of(tmp_path), database=database, worker=True) as runs:
            assert results(await heard(runs.watch("two"))) == ["wrote 1", UNKNOWN, "wrote 3"]
            with pytest.raises(JournalError, match="with another task"):
                await runs.submit("Write others.", run_id="two")
            assert not [one.name for one in runs.store.client.list_queues() if one.name.startswith(HERE)][1:]

    asyncio.run(main())
    assert written(tmp_path) == ["1", "2", "3"]


async def _first(events: AsyncGenerator[AgentEvent], calls: int) -> AsyncGenerator[ToolStarted]:
    async with aclosing(events):
        async for event in events:
            if isinstance(event, ToolStarted):
                yield event
                calls -= 1
                if not calls:
                    return


def test_process_that_lost_its_run_writes_nothing_more(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def wait(number: int) -> str:
        """Waits."""
        await go_on.wait()
        return "late"

    async def main() -> None:
        agent = Agent(Counting(), config=AgentConfig(name="writer"))
        agent.registry.register(wait, name="write", description="Waits.")
        async with DurableRuns(agent, database=file(tmp_path)) as runs:
            events = runs.run("Write.", run_id="one")
            async for event in events:
                if isinstance(event, ToolStarted):
                    break
            runs.store.suspend("one")
            go_on.set()
            with pytest.raises(JournalError, match="was stopped, or is with another process"):
                await heard(events)
            assert [name for name in runs.store.records("one")[0] if name.startswith("done")] == []

    asyncio.run(main())


def test_killed_runs_are_resumed() -> None:
    figures = crash.measured(3, seed=3)
    assert figures["failures"] == []
    assert (figures["kills"], figures["finished calls that ran twice"], figures["lost results"]) == (3, 0, 0)
    assert figures["resumed to the same state"] == 3


def test_process_renews_its_lock_when_its_connection_breaks(postgres: str) -> None:
    mine = PostgresLiveProcesses(postgres.replace("/toolwire?", "/postgres?"))
    mine.begin("me")
    try:
        with mine.takeover():
            assert mine.running(["me", "somebody else"]) == {"me"}
        mine.renew()
        with psycopg.connect(postgres.replace("/toolwire?", "/postgres?"), autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
            while connection.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'").fetchone():
                pass
        assert not mine.running(["me"])
        mine.renew()
        assert mine.running(["me"])
    finally:
        mine.end()
    assert not mine.running(["me"])


def test_only_one_process_takes_over_runs_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_locks, "TAKEOVER_SECONDS", 0.05)
    one, other = FileLiveProcesses(tmp_path / "lives"), FileLiveProcesses(tmp_path / "lives")
    one.begin("one")
    assert other.running(["one", "two"]) == {"one"}
    with one.takeover(), pytest.raises(JournalError, match="another process holds it"), other.takeover():
        pass
    with pytest.raises(JournalError, match="cannot be locked"):
        other.begin("one")
    one.end()
    assert not other.running(["one"])
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="file"):
        FileLiveProcesses(tmp_path / "file")


# -- where it is kept


def test_urls_of_databases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path))
    assert database_url() == f"sqlite:///{tmp_path}/runs.sqlite3"
    assert database_url("sqlite:////a/b") == "sqlite:////a/b"
    assert database_url("postgres://me@there/runs") == "postgresql://me@there/runs"
    with pytest.raises(JournalError, match="not in mysql"):
        database_url("mysql://me@there/runs")
    with pytest.raises(JournalError, match="not the URL"):
        database_url("postgresql://me@there:port/runs")
    with pytest.raises(toolwire.ToolwireError, match="no such file yet"):
        RunStore()
    (tmp_path / "runs.sqlite3").write_text("something else, long enough not to be taken for an empty file")
    with pytest.raises(toolwire.ToolwireError, match="not a database"):
        RunStore(make=True)
    with pytest.raises(toolwire.ToolwireError, match="not a database"):
        asyncio.run(heard(run_durably(agent_of(tmp_path), "x")))
    with pytest.raises(JournalError, match="cannot be"):
        RunStore(f"postgresql://nobody@/none?host={tmp_path}", make=True)


def test_program_that_uses_dbos_itself_is_refused(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from dbos import DBOS\n"
        "from toolwire.agent import Agent\n"
        "from toolwire.agent.durable import run_durably\n"
        "from toolwire.testing import ScriptedBackend\n"
        "from toolwire.errors import JournalError\n"
        "DBOS(config={'name': 'mine', 'system_database_url': 'sqlite:///' + sys.argv[1], 'log_level': 'ERROR'})\n"
        "DBOS.launch()\n"
        "async def main():\n"
        "    async for event in run_durably(Agent(ScriptedBackend([])), 'x', database=sys.argv[2]):\n"
        "        pass\n"
        "try:\n"
        "    asyncio.run(main())\n"
        "except JournalError as error:\n"
        "    print(error)\n"
        "print(DBOS.list_workflows())\n"
        "DBOS.destroy()\n"
    )
    given = [sys.executable, "-c", code, str(tmp_path / "mine.sqlite3"), file(tmp_path)]
    output = subprocess.run(given, capture_output=True, text=True, check=True, timeout=120).stdout
    assert output.splitlines() == ["this program uses DBOS itself: give durable runs a process of their own", "[]"]


def test_replay_of_a_run_that_ended_has_its_marks_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with DurableRuns(agent_of(tmp_path), database=file(tmp_path)) as runs:
            events = await heard(runs.run("Write.", run_id="one"))
            assert ReplayEnded() not in events
            await heard(runs.run("Write again.", run_id="two"), ToolFinished)
            again = await heard(runs.resume("two"))
            assert again.count(RunResumed()) == again.count(ReplayEnded()) == 1

    asyncio.run(main())

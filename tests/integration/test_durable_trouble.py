"""Durable runs where something breaks: the database, the provider, whoever listens."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from dbos import DBOSClient
from tests.integration.test_durable import agent_of, ended, file, heard, results, written

from toolwire import FinishReason, ParsedResponse, Tier, ToolCall
from toolwire.agent import Agent, AgentConfig, Budget, dbos_workflow, durable
from toolwire.agent.durable import DurableRuns
from toolwire.agent.process_locks import FileLiveProcesses
from toolwire.agent.run_events import AgentEvent, ToolFinished, ToolStarted
from toolwire.agent.run_store import RunStore, RunTail
from toolwire.errors import JournalError, ProviderError, RunFailed
from toolwire.testing import ScriptedBackend


@contextmanager
def broken(database: str) -> Iterator[None]:
    """Meanwhile the database has none of its tables."""

    def rename(old: str, new: str) -> None:
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            for table in ("operation_outputs", "workflow_status"):
                connection.execute(f"ALTER TABLE {old}{table} RENAME TO {new}{table}")

    rename("", "gone_")
    try:
        yield
    finally:
        rename("gone_", "")


def test_reader_of_a_run_gets_errors_of_the_database(tmp_path: Path) -> None:
    async def main() -> None:
        async with DurableRuns(agent_of(tmp_path), database=file(tmp_path)) as runs:
            events = runs.run("Write.", run_id="one")
            await anext(events)
            with broken(file(tmp_path)), pytest.raises(JournalError, match="cannot be recorded"):
                async with asyncio.timeout(30):
                    await heard(events)
            assert ended(await heard(runs.resume("one"))).answer == "Done."

    asyncio.run(main())


def test_end_is_reported_though_the_database_does_not_store_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dbos_workflow, "SETTLES_IN", 0.1)

    async def main() -> None:
        async with DurableRuns(agent_of(tmp_path), database=file(tmp_path)) as runs:
            events = runs.run("Write.", run_id="one")
            await anext(events)
            with closing(sqlite3.connect(file(tmp_path), isolation_level=None)) as connection:
                full = "SELECT RAISE(ABORT, 'the disk is full')"
                connection.execute(f"CREATE TRIGGER full BEFORE UPDATE OF status ON workflow_status BEGIN {full}; END")
                async with asyncio.timeout(30):
                    assert ended(await heard(events)).answer == "Done."
                connection.execute("DROP TRIGGER full")
            assert [one.state for one in await runs.all()] == ["running"]
            assert ended(await heard(runs.resume("one"))).answer == "Done."
            assert [one.state for one in await runs.all()] == ["ended"]

    asyncio.run(main())


def test_run_after_an_outage_of_the_provider_can_be_resumed(tmp_path: Path) -> None:
    call = ToolCall("write", {"number": 1}, "1")
    model = ScriptedBackend(
        [
            ParsedResponse(tool_calls=(call,), finish_reason=FinishReason.TOOL_CALLS),
            ProviderError("503: overloaded"),
            ProviderError("503: still overloaded"),
            ParsedResponse("Done."),
        ]
    )
    agent = Agent(model, agent_of(tmp_path).registry, AgentConfig(name="writer", tier=Tier.RUN))

    async def main() -> None:
        async with DurableRuns(agent, database=file(tmp_path)) as runs:
            end = ended(await heard(runs.run("Write.", run_id="one")))
            assert (end.reason, end.detail) == ("error", "503: overloaded")
            (info,) = await runs.all()
            assert (info.state, info.reason) == ("stopped", "error: 503: overloaded")
            with pytest.raises(JournalError, match="was stopped: error: 503: overloaded"):
                await heard(runs.watch("one"))
            with pytest.raises(RunFailed, match="still overloaded"):
                await runs.ask("Write.", run_id="one")
            again = await heard(runs.resume("one"))
            assert results(again) == ["wrote 1"]
            assert (ended(again).answer, ended(again).rounds) == ("Done.", 2)
            (info,) = await runs.all()
            assert (info.state, info.reason) == ("ended", "answered")

    asyncio.run(main())
    assert len(model.requests) == 4
    assert written(tmp_path) == ["1"]


def test_answer_that_a_filter_stopped_is_final(tmp_path: Path) -> None:
    filtered = ParsedResponse("I", finish_reason=FinishReason.CONTENT_FILTER)
    agent = Agent(ScriptedBackend([filtered]), config=AgentConfig(name="writer"))

    async def main() -> None:
        async with DurableRuns(agent, database=file(tmp_path)) as runs:
            end = ended(await heard(runs.run("Write.", run_id="one")))
            assert ended(await heard(runs.resume("one"))) == end
            assert [(one.state, one.reason) for one in await runs.all()] == [("ended", "error")]

    asyncio.run(main())


def test_budget_may_grow_until_the_run_has_ended(tmp_path: Path) -> None:
    def budget(rounds: int, waits: int = 0) -> Agent:
        return agent_of(tmp_path, waits=waits, budget=Budget(rounds=rounds))

    async def main() -> None:
        async with DurableRuns(budget(3, waits=2), database=file(tmp_path)) as runs:
            await heard(runs.run("Write.", run_id="one"), ToolFinished)
        async with DurableRuns(budget(3), database=file(tmp_path)) as runs:
            assert ended(await heard(runs.run("Write.", run_id="two"))).reason == "budget"
        async with DurableRuns(budget(9), database=file(tmp_path)) as runs:
            assert ended(await heard(runs.resume("one"))).reason == "answered"
            end = ended(await heard(runs.resume("two")))
            assert end.reason == "budget"
            assert ended(await heard(runs.run("Go on.", history=end.messages))).reason == "answered"

    asyncio.run(main())


def test_run_that_is_cancelled_while_it_begins_is_stopped(tmp_path: Path) -> None:
    async def left(events: AsyncGenerator[AgentEvent], after: int) -> None:
        first = asyncio.ensure_future(anext(events))
        for _ in range(after):
            await asyncio.sleep(0)
        first.cancel()
        with suppress(asyncio.CancelledError):
            await first
        await events.aclose()

    async def main() -> None:
        async with DurableRuns(agent_of(tmp_path, waits=1), database=file(tmp_path)) as runs:
            for after in (1, 2, 5, 20):
                await left(runs.run("Write.", run_id=f"after-{after}"), after)
                await left(runs.resume(f"after-{after}"), after)
            assert {one.state for one in await runs.all()} == {"stopped"}
        async with DurableRuns(agent_of(tmp_path), database=file(tmp_path)) as runs:
            for one in await runs.all():
                assert ended(await heard(runs.resume(one.id))).answer == "Done."

    asyncio.run(main())


def test_search_for_dead_processes_continues_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(durable, "RESCUE_SECONDS", 0.01)
    kept: list[Exception | None] = [psycopg.OperationalError("the connection is lost"), OSError("no route"), None]
    tried = threading.Event()

    def renew(_: FileLiveProcesses) -> None:
        if (failure := kept.pop(0)) is not None:
            raise failure
        tried.set()
        kept.append(None)

    monkeypatch.setattr(FileLiveProcesses, "renew", renew)

    async def main() -> None:
        async with DurableRuns(agent_of(tmp_path), database=file(tmp_path), worker=True):
            assert await asyncio.to_thread(tried.wait, 30)

    asyncio.run(main())
    assert "the connection is lost" in caplog.text
    assert "no route" in caplog.text


def test_workers_that_close_do_not_count_as_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "RESCUE_SECONDS", 0.05)
    monkeypatch.setattr(durable, "RESCUES", 1)

    async def main() -> None:
        for life in ("1", "2", "3"):
            agent = agent_of(tmp_path, waits=int(life))
            async with DurableRuns(agent, database=file(tmp_path), worker=True) as runs:
                await runs.submit("Write.", run_id="one")
                async with aclosing(runs.watch("one")) as events:
                    async for event in events:
                        if isinstance(event, ToolStarted) and event.call.id == life:
                            break
                assert runs.store.info("one").state == "running"

    asyncio.run(main())


def test_opening_does_not_block_the_event_loop(tmp_path: Path) -> None:
    with RunStore(file(tmp_path), make=True) as store:

        async def main() -> None:
            runs = DurableRuns(agent_of(tmp_path), database=file(tmp_path))
            with store.processes.takeover():
                opening = asyncio.create_task(runs.__aenter__())
                for _ in range(100):
                    await asyncio.sleep(0)
            await opening
            await runs.__aexit__()
            with store.processes.takeover():
                opening = asyncio.create_task(runs.__aenter__())
                await asyncio.sleep(0)
                opening.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await opening
            async with runs:
                assert await runs.all() == []

        asyncio.run(main())


def test_looking_at_running_processes_takes_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[int] = []
    load = DBOSClient.list_workflow_steps

    def counted(self: DBOSClient, run_id: str, **options: Any) -> Any:
        steps = load(self, run_id, **options)
        loaded.append(len(steps))
        return steps

    def neighbour(folder: FileLiveProcesses) -> Any:
        raise AssertionError("locked")

    async def main() -> None:
        async with DurableRuns(agent_of(tmp_path), database=file(tmp_path)) as runs:
            with RunStore(file(tmp_path)) as other:
                monkeypatch.setattr(FileLiveProcesses, "takeover", neighbour)
                await heard(runs.run("Write.", run_id="one"))
                assert [one.state for one in other.all()] == ["ended"]
                tail = RunTail(other, "one")
                monkeypatch.setattr(DBOSClient, "list_workflow_steps", counted)
                assert tail.load()
                assert not tail.load()
                assert (tail.records, tail.last) == other.records("one")
            assert loaded == [tail.last, 0, tail.last]
            runs._rescue()

    asyncio.run(main())

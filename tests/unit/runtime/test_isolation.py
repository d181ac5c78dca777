"""Tools in processes of their own: what they give back, what stops them, and how that is told."""

import asyncio
import importlib.util
import json
import os
import select
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.unit.runtime import isolated_tools as tools

from toolwire import DefinitionError, Tier, ToolCall, ToolError, tool
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.policy.session import Session
from toolwire.runtime.isolation.isolated_call import importable, run_isolated
from toolwire.tools import Isolation

LIMITS = Isolation(seconds=20, cpu_seconds=5, memory=1 << 30, file_size=1 << 20, open_files=32)


def run(function: Callable[..., Any], limits: Isolation = LIMITS, /, **arguments: Any) -> Any:
    return asyncio.run(run_isolated(function, arguments, limits))


def test_a_result_is_returned_whatever_the_tool_prints() -> None:
    assert run(tools.add, a=2) == 3
    assert run(tools.later, seconds=0.0) == "done"
    assert run(tools.Counter.one) == 1


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -1,
        1.5,
        "",
        "é\ud83d\ude00\u2028\0\x1b",
        [1, [2]],
        {"a": {"__class__": "x", "lc": 1, "$type": []}},
        10**40,
    ],
)
def test_values_travel_as_json(value: Any) -> None:
    value = value.encode("utf-16", "surrogatepass").decode("utf-16") if isinstance(value, str) else value
    assert run(tools.echo, value=value) == value


@pytest.mark.parametrize(
    ("function", "limits", "message"),
    [
        (tools.burn, Isolation(cpu_seconds=1), "burn used more than 1 s of processor time"),
        (tools.burn, Isolation(seconds=0.5), "burn took longer than 0.5 seconds"),
        (partial(tools.later, seconds=60), Isolation(seconds=0.5), "later took longer than 0.5 seconds"),
        (partial(tools.eat, size=1 << 31), LIMITS, "eat needed more than 1024 MB of memory"),
        (partial(tools.fill, size=2 << 20), LIMITS, "fill wrote a file of more than 1,048,576 bytes"),
        (partial(tools.open_many, count=100), LIMITS, "open_many opened more than 32 files"),
    ],
    ids=["cpu", "wall", "asleep", "memory", "file size", "open files"],
)
def test_each_limit_has_its_own_error(function: Any, limits: Isolation, message: str) -> None:
    called, arguments = (function.func, function.keywords) if isinstance(function, partial) else (function, {})
    with pytest.raises(ToolError, match=f"^{message}"):
        run(called, limits, **arguments)


def test_within_its_limits_a_tool_runs() -> None:
    assert run(tools.eat, size=1 << 26) == 1 << 26
    assert run(tools.fill, size=1 << 20) == 1 << 20
    assert run(tools.open_many, count=10) == 10


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing limits the processes of root")
def test_processes_are_limited() -> None:
    with pytest.raises(ToolError, match="BlockingIOError"):
        run(tools.fork, Isolation(processes=1), count=2)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("bad", "ValueError: bad"),
        ("leave", "SystemExit: 3"),
        ("exit", "fail ended its process (exit status 5) before it returned anything."),
        ("abort", "fail was killed (SIGABRT)."),
        ("killed", "fail was killed (SIGKILL, perhaps by the system because memory ran out)."),
        ("object", "fail ran, but its result is not JSON: it is of the type object."),
        ("nan", "fail ran, but its result is not JSON: at /0 it is nan, a number that JSON does not have."),
        ("deep", "fail ran, but its result is not JSON: at /0/0/0"),
        ("big", "fail returned more than 16 MB."),
    ],
)
def test_failures_are_errors_without_a_trace(how: str, message: str) -> None:
    with pytest.raises(ToolError) as caught:
        run(tools.fail, how=how)
    assert str(caught.value).startswith(message)
    assert "Traceback" not in str(caught.value)


def test_a_tool_error_keeps_its_message() -> None:
    with pytest.raises(ToolError, match=r"^not so$"):
        run(tools.fail_by_itself)


def test_an_isolated_tool_starts_in_an_empty_directory_with_few_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")
    told = run(tools.where)
    assert told["files"] == []
    assert told["env"]["HOME"] == told["env"]["TMPDIR"]
    assert set(told["env"]) <= {"PATH", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "HOME", "TMPDIR"}
    assert not Path(told["cwd"]).exists()


def test_arguments_are_converted_to_the_signature() -> None:
    assert run(tools.typed, day="2026-03-01") == "date 2026-03-01"
    with pytest.raises(ToolError, match="/day: "):
        run(tools.typed, day="2026-02-31")


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


def test_processes_that_a_tool_leaves_running_are_killed() -> None:
    assert ends(run(tools.leave_running))


def test_cancellation_kills_the_process(tmp_path: Path) -> None:
    async def main() -> int:
        os.mkfifo(tmp_path / "fifo")
        reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        task = asyncio.create_task(run_isolated(tools.wait, {"path": str(tmp_path / "fifo")}, LIMITS))
        told = asyncio.Event()
        asyncio.get_running_loop().add_reader(reader, told.set)
        await told.wait()
        asyncio.get_running_loop().remove_reader(reader)
        pid = int(os.read(reader, 100) or b"0")
        os.close(reader)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pid

    assert ends(asyncio.run(main()))


def test_functions_that_cannot_be_imported_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def inner() -> int:
        return 1

    def replaced() -> int:
        return 2

    replaced.__qualname__ = "add"
    replaced.__module__ = tools.__name__
    in_script = partial(tools.add)
    odd: list[Any] = [inner, lambda: 1, tools.Counter().many, replaced, in_script]
    for function in odd:
        with pytest.raises(DefinitionError, match="cannot be isolated"):
            importable(function)
        with pytest.raises(DefinitionError, match="cannot be isolated"):
            run(function)
    monkeypatch.setattr(tools.add, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    with pytest.raises(DefinitionError, match="is in the script itself"):
        importable(tools.add)


def test_a_registry_refuses_functions_that_cannot_be_imported() -> None:
    for function in (tools.Counter().many, lambda: 1):
        with pytest.raises(DefinitionError, match="tool 'one': cannot be isolated"):
            ToolRegistry([tool(isolated=True, name="one")(function)])
    registry = ToolRegistry()
    registry.register(tools.add, isolated=True)
    assert "add" in registry


def test_the_executor_runs_isolated_tools() -> None:
    registry = ToolRegistry()
    registry.register(tools.add, isolated=True)
    registry.register(tools.fail, isolated=LIMITS, tier=Tier.RUN)
    calls = [ToolCall("add", {"a": "4"}, "1"), ToolCall("fail", {"how": "bad"}, "2"), ToolCall("add", {"a": "x"}, "3")]
    results = asyncio.run(ToolExecutor(registry).execute(calls, Session(tier=Tier.RUN)))
    assert [result.result for result in results] == [5, None, None]
    assert results[1].error == "ValueError: bad"
    assert "/a" in (results[2].error or "")
    assert json.dumps(results[0].result) == "5"


def test_a_module_that_another_process_finds_elsewhere_is_refused(tmp_path: Path) -> None:
    """A name says less than a file: here `calendar` would be the standard library's."""
    file = tmp_path / "calendar.py"
    file.write_text("def isleap(year):\n    return 'mine'\n")
    spec = importlib.util.spec_from_file_location("calendar", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "calendar", module)
        with pytest.raises(ToolError, match="module calendar is another one"):
            run(module.isleap, year=2000)

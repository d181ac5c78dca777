"""Assertions about calls, forbidden requests, and the plugin for pytest."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from toolwire import Client, ParsedResponse, RealRequestError, ToolCall, tool
from toolwire.agent import Agent, RunEnded
from toolwire.models import ApiBackend
from toolwire.testing import (
    RecordingTransport,
    ReplayTransport,
    ScriptedBackend,
    ScriptedTransport,
    assert_called,
    assert_not_called,
    calls_in,
    forbid_real_requests,
)

PLUGIN = "toolwire.testing.pytest_plugin"


@tool
def stock(item: str, where: list[str] | None = None) -> int:
    """Returns how much of an item there is."""
    return 12


@pytest.fixture
def end() -> RunEnded:
    tea, salt = ToolCall("stock", {"item": "tea", "where": ["a", "b"]}), ToolCall("stock", {"item": "salt"})
    model = ScriptedBackend([ParsedResponse(tool_calls=(tea,)), ParsedResponse(tool_calls=(salt,)), "Enough."])
    *_, last = Agent(model, [stock]).run_sync("Is there enough?")
    assert isinstance(last, RunEnded)
    return last


def test_a_call_is_found_by_some_of_its_arguments(end: RunEnded) -> None:
    assert assert_called(end, "stock").arguments["item"] == "tea"
    assert assert_called(end, "stock", item="salt") is calls_in(end)[1]
    assert assert_called(end.messages, "stock", where=["a", "b"], times=1).arguments["item"] == "tea"
    assert_called(end, "stock", times=2)
    assert_not_called(end, "order")


def test_a_failure_lists_the_calls_of_the_run(end: RunEnded) -> None:
    listed = 'The calls of the run:\n  1. stock(item="tea", where=["a", "b"])\n  2. stock(item="salt")'
    for expect, message in (
        (lambda: assert_called(end, "stock", item="coffee"), 'a call stock(item="coffee"); there was none\n'),
        (lambda: assert_called(end, "stok"), "a call stok(); there was none; did you mean stock?\n"),
        (lambda: assert_called(end, "stock", times=3), "a call stock() 3 times; there were 2\n"),
        (lambda: assert_not_called(end, "stock"), "no call of stock.\n"),
    ):
        with pytest.raises(AssertionError) as caught:
            expect()
        assert str(caught.value) == f"expected {message}{listed}"
    with pytest.raises(AssertionError, match=r"The run made no calls\."):
        assert_called([], "stock")
    with pytest.raises(TypeError, match="the end of a run, or a list of messages"):
        calls_in("stock")  # type: ignore[arg-type]


# -- real requests ---------------------------------------------------------------------------------------------------


async def ask(client: Client) -> str:
    async with client:
        return await Agent(ApiBackend(client)).ask("?")


def test_a_real_request_is_an_error_that_no_agent_hides() -> None:
    with forbid_real_requests():
        with pytest.raises(RealRequestError, match=r"a request to api\.openai\.com/v1/.* is forbidden in this test"):
            asyncio.run(ask(Client("openai", "m", key="k")))
        scripted = ScriptedTransport("openai", [ParsedResponse("hi")])
        assert asyncio.run(ask(Client("openai", "m", transport=scripted))) == "hi"


def test_a_request_that_differs_from_the_recording_says_where(tmp_path: Path) -> None:
    path = tmp_path / "hi.jsonl"
    recording = RecordingTransport(ScriptedTransport("openai", [ParsedResponse("hi")]), path)
    assert asyncio.run(ask(Client("openai", "m", key="sk-secret", transport=recording))) == "hi"
    assert "sk-secret" not in path.read_text()

    async def replayed(model: str) -> RunEnded:
        async with Client("openai", model, transport=ReplayTransport(path)) as client:
            return [event async for event in Agent(ApiBackend(client)).run("?") if isinstance(event, RunEnded)][-1]

    assert asyncio.run(replayed("m")).answer == "hi"
    end = asyncio.run(replayed("other"))
    assert (end.reason, "the most similar one differs in model: record it anew" in end.detail) == ("error", True)


# -- the plugin ------------------------------------------------------------------------------------------------------

TESTS = """
    import asyncio

    import pytest

    from toolwire import Client, ParsedResponse
    from toolwire.agent import Agent
    from toolwire.models import ApiBackend

    @pytest.mark.forbid_real_requests
    def test_forbidden():
        Agent(ApiBackend(Client("openai", "m", key="k"))).ask_sync("?")

    @pytest.mark.forbid_real_requests
    def test_scripted(scripted_model):
        assert Agent(scripted_model("one", "two")).ask_sync("?") == "one"

    @pytest.mark.forbid_real_requests
    def test_recorded(recorded_transport):
        assert Agent(ApiBackend(Client("openai", "m", key="k", transport=recorded_transport))).ask_sync("?") == "hi"
"""


def run_pytest(folder: Path, *options: str) -> str:
    installed = any(entry.value == PLUGIN for entry in entry_points(group="pytest11"))
    load = [] if installed else ["-p", PLUGIN]
    command = [sys.executable, "-m", "pytest", *load, "-p", "no:cacheprovider", "-q"]
    completed = subprocess.run(
        [*command, "--strict-markers", "-rA", *options, str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env=dict(os.environ),
    )
    return completed.stdout + completed.stderr


def test_the_plugin_forbids_scripts_and_replays(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(textwrap.dedent(TESTS))
    shown = run_pytest(tmp_path)
    assert "FAILED test_it.py::test_forbidden - toolwire.errors.RealRequestError" in shown
    assert "PASSED test_it.py::test_scripted" in shown
    assert "run this test once with --record-requests" in shown
    recording = tmp_path / "recordings" / "test_it" / "test_recorded.jsonl"
    recording.parent.mkdir(parents=True)
    transport = RecordingTransport(ScriptedTransport("openai", [ParsedResponse("hi")]), recording)
    asyncio.run(ask(Client("openai", "m", key="k", transport=transport)))
    assert json.loads(recording.read_text())["status"] == 200
    assert "PASSED test_it.py::test_recorded" in run_pytest(tmp_path)


def test_the_plugin_is_registered_and_imports_little() -> None:
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\ntoolwire = "toolwire.testing.pytest_plugin"' in project
    program = (
        "import sys, toolwire.testing.pytest_plugin; print([m for m in ('pydantic', 'httpx') if m in sys.modules])"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "[]"

"""MCP servers behind a router: real processes and real HTTP, of the SDK and of a script in the older protocol."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.mcp_parts import HERE, Desk, at, calls, heard, raw, serving, starts, tool
from tests.integration.models import calling, scripted

from toolwire import (
    Agent,
    Client,
    ConfigurationError,
    ParsedResponse,
    Session,
    Tier,
    ToolCall,
    ToolExecutor,
    ToolRegistry,
    ToolResult,
)
from toolwire.agent import RunEnded
from toolwire.mcp import McpRouter, McpService, ServerQuestion, connection, router
from toolwire.mcp.approvals import Approvals
from toolwire.mcp.server_status import ToolProgress
from toolwire.mcp.servers import McpServer, ToolSettings
from toolwire.models import ApiBackend
from toolwire.policy import Approval
from toolwire.runtime.blocking import run_blocking
from toolwire.testing import ScriptedBackend

SDK = (str(HERE / "sdk_mcp.py"),)
OLDER = os.environ.get("TOOLWIRE_TEST_MCP1_PYTHON", "")
"""An interpreter with the SDK 1.x."""


@contextmanager
def over_http() -> Iterator[McpServer]:
    process = subprocess.Popen([sys.executable, *SDK, "http"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield McpServer(name="probe", url=f"http://127.0.0.1:{port}/mcp")
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def patiently(desk: Desk) -> None:
    """Connect to a server that still starts."""
    for _ in range(200):
        if (await desk.router.connect())[0].state == "ready":
            return
    raise AssertionError(desk.router.servers())


@pytest.mark.parametrize("kind", ["stdio", "http"])
def test_sdk_servers_are_used(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAUSES", (0.05,) * 300)
    progress: list[ToolProgress] = []

    async def main(server: McpServer) -> None:
        changes = asyncio.Queue[str]()
        async with at(server, connect=False, progress=progress.append, changed=changes.put_nowait) as desk:
            await patiently(desk)
            (status,) = desk.router.servers()
            assert status.protocol >= "2026"
            tiers = {tool_status.name: (tool_status.tier, tool_status.confirm) for tool_status in status.tools}
            assert tiers == {
                **dict.fromkeys(("add", "weather", "picture", "mixed", "slow", "grow"), (Tier.RUN, False)),
                "boom": (Tier.RUN, True),
            }
            assert (await desk.call("add", a=1, b="2")).result == {"result": 3}
            assert (await desk.call("weather", city="Oslo")).result == {"city": "Oslo", "degrees": 21.5}
            assert (await desk.call("boom", x="y")).error
            assert [item.call.name for item in desk.asked] == ["boom"]
            (image,) = (await desk.call("picture")).images
            assert image.media_type == "image/png"
            mixed = await desk.call("mixed")
            assert mixed.text == "a\n[a link to a resource, which was not opened: file:///x (x)]"
            assert mixed.extra is not None
            assert (await desk.call("slow", steps=3)).result == {"result": "done"}
            assert [(item.done, item.total, item.message) for item in progress] == [
                (at, 3.0, f"step {at:.0f}") for at in (1.0, 2.0, 3.0)
            ]
            assert "not valid" in ((await desk.call("add", a="x", b=2)).error or "")
            while changes.qsize():
                changes.get_nowait()
            await desk.call("grow")
            await asyncio.wait_for(changes.get(), 20)
            assert desk.states("probe")["grown"] == "new"
            assert (await desk.call("grown")).result == {"result": "grown"}
            await desk.call("add", a=1, b=1)
            assert desk.session.untrusted

    if kind == "http":
        with over_http() as server:
            asyncio.run(main(server))
    else:
        asyncio.run(main(McpServer(name="probe", command=sys.executable, args=(*SDK, "stdio"))))


@pytest.mark.skipif(not OLDER, reason="TOOLWIRE_TEST_MCP1_PYTHON names no interpreter with the MCP SDK 1.x")
@pytest.mark.parametrize("kind", ["stdio", "streamable-http", "sse"])
def test_servers_of_the_older_sdk_are_used(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAUSES", (0.05,) * 300)

    async def main(server: McpServer) -> None:
        async with at(server, connect=False) as desk:
            await patiently(desk)
            assert desk.router.servers()[0].protocol == "2025-11-25"
            assert (await desk.call("add", a=1, b=2)).result == {"result": 3}
            assert (await desk.call("weather", city="Oslo")).result == {"city": "Oslo", "degrees": 21.5}
            assert "bad" in ((await desk.call("boom", x="bad")).error or "")
            assert (await desk.call("slow", steps=2)).result == {"result": "done"}

    program = str(HERE / "sdk1_mcp.py")
    if kind == "stdio":
        asyncio.run(main(McpServer(name="probe", command=OLDER, args=(program, kind))))
        return
    process = subprocess.Popen([OLDER, program, kind], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        path, transport = ("sse", "sse") if kind == "sse" else ("mcp", "http")
        asyncio.run(main(McpServer(name="probe", url=f"http://127.0.0.1:{port}/{path}", transport=transport)))
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


RESULTS: list[tuple[dict[str, Any], Any]] = [
    ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
    ({"content": [], "structuredContent": {"k": [1]}}, {"k": [1]}),
    ({"content": [{"type": "text", "text": "both"}], "structuredContent": {"k": 1}}, "both"),
    ({"content": [{"type": "text", "text": "why"}], "isError": True}, "Error: why"),
    ({"content": [], "isError": True}, "Error: The tool failed, and gave no reason."),
    ({"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]}, None),
    ({"content": [{"type": "nonsense"}]}, "Error: The MCP server raw returned an invalid result"),
    ({"odd": 1}, "Error: The MCP server raw returned an invalid result"),
]


@pytest.mark.parametrize("protocol", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_results_of_the_older_protocol_are_read(protocol: str, tmp_path: Path) -> None:
    names = [f"t{at}" for at in range(len(RESULTS))]
    steps = {name: [{"result": result}] for name, (result, _) in zip(names, RESULTS, strict=True)}
    server = raw(tmp_path, tools=[tool(name) for name in names], calls=steps, protocol=protocol)

    async def main() -> None:
        async with at(server) as desk:
            assert desk.router.servers()[0].protocol == protocol
            for name, (content, expected) in zip(names, RESULTS, strict=True):
                result = await desk.call(name)
                text = result.result if result.success else f"Error: {result.error}"
                assert text == expected or str(text).startswith(str(expected)), (content, text)

    asyncio.run(main())


def test_protocol_errors_and_noise_are_reported(tmp_path: Path) -> None:
    steps = {
        "refused": [{"error": {"code": -32602, "message": "no \x1b[31mway\u202e"}}],
        "noisy": [{"line": "this is no JSON"}, {"text": "fine"}],
    }
    server = raw(tmp_path, tools=[tool(name) for name in steps], calls=steps)

    async def main() -> None:
        async with at(server) as desk:
            assert (await desk.call("refused")).error == "The MCP server raw refused: no [31mway."
            assert (await desk.call("noisy")).result == "fine"

    asyncio.run(main())


def test_an_answer_that_cannot_be_read_is_an_error_at_once(tmp_path: Path) -> None:
    line = '{"jsonrpc": "2.0", "id": %s, "result": null}'
    server = raw(tmp_path, tools=[tool("t")], calls={"t": [{"answer": line}, {"text": "late"}]}, timeout=600)

    async def main() -> None:
        async with at(server) as desk, asyncio.timeout(60):
            error = (await desk.call("t")).error
            assert "is not one of JSON-RPC (result: Input should be a valid dictionary)" in error
            assert (await desk.call("t")).error == error  # the server is still there

    asyncio.run(main())


def test_an_error_without_an_id_ends_the_only_open_call(tmp_path: Path) -> None:
    line = '{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no JSON"}}'
    steps = {"t": [{"line": line}], "u": [{"text": "fine"}], "never": []}
    server = raw(tmp_path, tools=[tool(name) for name in steps], calls=steps, timeout=600)

    async def main() -> None:
        async with at(server) as desk, asyncio.timeout(60):
            waiting = asyncio.ensure_future(desk.call("never"))
            await asyncio.sleep(0.3)
            waiting.cancel()  # a call that was given up is not open
            await asyncio.sleep(0.3)
            assert (await desk.call("t")).error == "The MCP server raw refused: no JSON."
            assert (await desk.call("u")).result == "fine"

    asyncio.run(main())


def test_a_result_that_is_too_deep_is_an_error_of_the_server(tmp_path: Path) -> None:
    deep = '{"a":' * 300 + "1" + "}" * 300
    line = '{"jsonrpc": "2.0", "id": %s, "result": {"content": [], "structuredContent": ' + deep + "}}"
    server = raw(tmp_path, tools=[tool("t"), tool("u")], calls={"t": [{"answer": line}]})

    async def main() -> None:
        async with at(server) as desk:
            error = (await desk.call("t")).error
            assert error is not None
            assert error.startswith("The MCP server raw returned an invalid result: ")
            assert (await desk.call("u")).success

    asyncio.run(main())


def test_a_server_that_takes_no_cursor_has_each_tool_once(tmp_path: Path) -> None:
    page = [tool("t"), tool("u")]

    async def main() -> None:
        async with at(raw(tmp_path, pages=[page, page])) as desk:
            assert desk.states() == {"t": "approved", "u": "approved"}

    asyncio.run(main())


def test_all_pages_of_a_listing_are_read(tmp_path: Path) -> None:
    pages = [[tool(f"t{at}")] for at in range(5)]

    async def main() -> None:
        async with at(raw(tmp_path, pages=pages)) as desk:
            assert list(desk.states()) == [f"t{at}" for at in range(5)]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("script", "limit", "value", "why"),
    [
        ({"endless": True}, "MAX_PAGES", 6, "they fill more than 6 pages"),
        ({}, "MAX_LISTING", 200, "their descriptions have more than 200 bytes"),
        ({"mute": 1}, "LIST_SECONDS", 0.2, "that took longer than 0.2 seconds"),
    ],
)
def test_listing_is_bounded(
    script: dict[str, Any], limit: str, value: Any, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = raw(tmp_path, pages=[[tool(f"t{at}")] for at in range(5)], **script)

    async def main() -> None:
        async with at(server, connect=False) as desk:
            with monkeypatch.context() as patched:
                patched.setattr(connection, limit, value)
                (status,) = await desk.router.connect()
                assert (status.state, status.tools) == ("failed", ())
                assert status.reason == f"it was asked for its tools, but {why}"
            if "mute" not in script:
                (status,) = await desk.router.connect()  # it is asked again, not started again
                assert (status.state, len(status.tools)) == (("failed", 0) if script else ("ready", 5))

    asyncio.run(main())
    assert starts(tmp_path) == 1
    if limit == "MAX_PAGES":
        assert sum(item.get("method") == "tools/list" for item in heard(tmp_path)) == 6 + connection.MAX_PAGES


def test_too_long_message_ends_the_connection(tmp_path: Path) -> None:
    limit = 1 << 19
    calls = {
        "endless": [{"forever": "x" * 65_536}],
        "long": [{"text": "y" * limit}],
        "fits": [{"text": "z" * (limit - 200)}],
    }
    server = raw(tmp_path, tools=[tool(name) for name in calls], calls=calls, max_message=limit)

    async def main() -> None:
        async with at(server) as desk:
            for name in ("endless", "long"):
                error = (await desk.call(name)).error or ""
                assert f"raw went away while the call ran (it sent a message of more than {limit} bytes)" in error
            assert len((await desk.call("fits")).text) == limit - 200
            assert (await desk.call("fits")).success

    asyncio.run(main())
    assert starts(tmp_path) == 3


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_hooks_for_questions_may_be_async_or_plain(kind: str, tmp_path: Path) -> None:
    server = raw(tmp_path, tools=[tool("turn")], calls={"turn": [{"ask": "Your name?"}]})
    heard_of: list[tuple[str, str]] = []
    threads: set[int] = set()

    def approve(question: ServerQuestion) -> bool:
        threads.add(threading.get_ident())
        return question.server == "raw"

    def asked(name: str, question: str) -> None:
        threads.add(threading.get_ident())
        heard_of.append((name, question))

    async def approve_async(question: ServerQuestion) -> bool:
        return approve(question)

    async def asked_async(name: str, question: str) -> None:
        asked(name, question)

    async def main() -> None:
        hooks: Any = {"approve": approve, "asked": asked}
        if kind == "async":
            hooks = {"approve": approve_async, "asked": asked_async}
        async with McpRouter([server], registry := ToolRegistry(), **hooks) as own:
            assert [status.state for status in await own.connect()] == ["ready"]
            executor = ToolExecutor(registry, confirm=lambda _: True)
            outcome = await executor.run(ToolCall("turn", {}, "1", "raw"), Session(tier=Tier.RUN))
            assert '"decline"' in outcome.result.text

    asyncio.run(main())
    assert heard_of == [("raw", "Your name?")]
    assert (threading.get_ident() in threads) is (kind == "async")


@pytest.mark.parametrize("told", ["told", "untold"])
def test_refused_listing_is_requested_again(told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "PAUSES", (0.0, 0.0) if told == "told" else (0.0,))
    calls = {"turn": [{"change": "told"}, {"text": "done"}]}
    server = raw(tmp_path, tools=[tool("turn")], after=[[tool("turn"), tool("next")]], calls=calls, refused=[2])
    heard_of: asyncio.Queue[str] = asyncio.Queue()

    async def main() -> None:
        async with at(server, changed=heard_of.put_nowait) as desk:
            assert await heard_of.get() == "raw"
            assert (await desk.call("turn")).result == "done"
            if told == "told":
                assert await asyncio.wait_for(heard_of.get(), 20) == "raw"
            else:
                refresh = desk.router._entries["raw"].refresh
                assert refresh is not None
                await refresh
                assert desk.router.servers()[0].reason == "The MCP server raw refused: not now."
                assert (await desk.call("turn")).result == "done"
            assert desk.states() == {"turn": "approved", "next": "new"}
            assert (desk.router.servers()[0].state, desk.router.servers()[0].reason) == ("ready", "")

    asyncio.run(main())


def test_invalid_tool_is_quarantined_and_others_work(tmp_path: Path) -> None:
    bad = [
        {"name": "noschema", "description": "x"},
        {"name": 5, "inputSchema": {"type": "object"}},
        tool("array", inputSchema={"type": "array"}),
        tool("reference", inputSchema={"type": "object", "properties": {"a": {"$ref": "https://x.example/s"}}}),
        tool("pattern", inputSchema={"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
        tool("twice"),
        tool("twice", "again"),
        tool("se\u200bcret"),
        tool("\uff54ool"),
        tool("p\u0430ste"),
        tool("output", outputSchema={"type": "object", "properties": {"a": {"type": "wrong"}}}),
        tool("other.read"),
        "no tool",
    ]
    server = raw(tmp_path, tools=[tool("good"), *bad, tool("with space")])

    async def main() -> None:
        async with at(server, raw(tmp_path, "other", tools=[tool("read")])) as desk:
            (status,) = (status_entry for status_entry in desk.router.servers() if status_entry.name == "raw")
            assert {tool_status.name for tool_status in status.tools if tool_status.state == "approved"} == {
                "good",
                "with space",
            }
            reasons = {
                tool_status.name: tool_status.reason
                for tool_status in status.tools
                if tool_status.state == "quarantined"
            }
            assert all(reasons.values())
            assert {"noschema", "array", "reference", "pattern", "twice", "output", "other.read"} <= set(reasons)
            assert len([tool_status for tool_status in status.tools if tool_status.state == "quarantined"]) == len(bad)
            assert (await desk.call("good")).result == "good"
            assert (await desk.call("with%20space")).result == "with space"

    asyncio.run(main())
    assert calls(tmp_path) == ["good", "with space"]


@pytest.mark.mission("A3", "A19")
def test_calls_are_routed_by_server_name(tmp_path: Path) -> None:
    servers = [raw(tmp_path, name, tools=[tool("same"), tool(f"only_{name}")]) for name in ("a", "b")]

    async def main() -> None:
        async with at(*servers) as desk:
            names = [definition.name for definition in desk.registry]
            assert names == ["a.same", "only_a", "b.same", "only_b"]
            await desk.call("a.same")
            await desk.call("same", "b")
            await desk.call("b.same")
            await desk.call("only_a")
            assert "Several tools are called 'same'" in ((await desk.call("same")).error or "")

    asyncio.run(main())
    assert (calls(tmp_path, "a"), calls(tmp_path, "b")) == (["same", "only_a"], ["same", "same"])


def test_approved_server_is_started_by_the_first_call(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path / "state.sqlite3")
    server = raw(tmp_path, tools=[tool("t")])

    async def main() -> None:
        async with at(server, approvals=approvals) as desk:
            assert starts(tmp_path) == 1
        async with at(server, approvals=approvals, connect=False) as desk:
            assert [definition.name for definition in desk.registry] == ["t"]
            assert desk.router.servers()[0].state == "waiting"
            assert starts(tmp_path) == 1
            results = await asyncio.gather(*(desk.call("t") for _ in range(5)))
            assert [item.result for item in results] == ["t"] * 5
            assert (starts(tmp_path), len(desk.questions)) == (2, 0)
        assert len(desk.registry) == 0

    asyncio.run(main())


def test_dead_server_is_restarted_and_no_call_is_repeated(tmp_path: Path) -> None:
    steps = {"die": [{"progress": [1, 2, "working"]}, {"die": 7}]}
    server = raw(tmp_path, tools=[tool("die"), tool("t")], calls=steps)

    async def main() -> None:
        async with at(server) as desk:
            both = await asyncio.gather(desk.call("die"), desk.call("die"))
            assert all(
                "may or may not have done its work. It was not called again" in (item.error or "") for item in both
            )
            assert (await desk.call("t")).result == "t"

    asyncio.run(main())
    assert calls(tmp_path) in (["die", "t"], ["die", "die", "t"])
    assert starts(tmp_path) == 2


def test_failed_start_is_reported_with_stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAUSES", (0.0, 0.01, 0.01))
    server = raw(tmp_path, tools=[tool("t")], fails=2)

    async def main() -> None:
        async with at(server, connect=False) as desk:
            (status,) = await desk.router.connect()
            why = "it closed the connection before it answered as an MCP server does"
            assert (status.state, status.reason) == ("failed", f"{why}; it said: [31mno luck")
            assert (await desk.router.connect())[0].state == "failed"
            assert (await desk.router.connect())[0].state == "ready"

    asyncio.run(main())
    assert starts(tmp_path) == 3


def test_server_that_keeps_failing_is_not_started_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAUSES", (0.0, 0.0, 0.0))
    server = raw(tmp_path, fails=100)

    async def main() -> None:
        async with at(server, connect=False) as desk:
            reasons = [(await desk.router.connect())[0].reason for _ in range(6)]
            assert "3 times in a row" in reasons[-1]

    asyncio.run(main())
    assert starts(tmp_path) == 3


def test_unsupported_protocol_version_is_reported(tmp_path: Path) -> None:
    async def main() -> None:
        async with at(raw(tmp_path, tools=[tool("t")], protocol="2099-01-01")) as desk:
            (status,) = desk.router.servers()
            assert status.state == "failed"
            assert status.reason.startswith("Unsupported protocol version from the server: 2099-01-01")

    asyncio.run(main())


def test_silent_server_times_out(tmp_path: Path) -> None:
    silent = McpServer(
        name="silent", command=sys.executable, args=("-c", "import sys; sys.stdin.read()"), start_timeout=0.3
    )

    async def main() -> None:
        async with at(silent, raw(tmp_path, tools=[tool("t")])) as desk:
            status, other = desk.router.servers()
            assert (status.state, status.reason) == ("failed", "it did not answer within 0.3 seconds")
            assert other.state == "ready"
            assert (await desk.call("t")).result == "t"

    asyncio.run(main())


def test_timed_out_and_cancelled_calls_are_cancelled_on_the_server(tmp_path: Path) -> None:
    steps: dict[str, Any] = {"never": []}
    server = raw(tmp_path, tools=[tool("never"), tool("t")], calls=steps, timeout=0.2)

    async def main() -> None:
        async with at(server) as desk:
            assert (await desk.call("never")).error == (
                "The MCP server raw did not answer within 0.2 seconds; the call was cancelled."
            )
            task = asyncio.create_task(desk.call("never"))
            while calls(tmp_path) != ["never"] * 2:
                await asyncio.sleep(0.005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await desk.call("t")).result == "t"  # it read the cancellation before this

    asyncio.run(main())
    messages = heard(tmp_path)
    requests = [item["id"] for item in messages if item.get("params", {}).get("name") == "never"]
    cancelled = [item["params"]["requestId"] for item in messages if item.get("method") == "notifications/cancelled"]
    assert cancelled == requests


def test_announced_changes_are_read(tmp_path: Path) -> None:
    after = [[tool("change"), tool("t", "Something else."), tool("fresh")]]
    steps = {"change": [{"change": "told"}, {"text": "changed"}]}
    server = raw(tmp_path, tools=[tool("change"), tool("t"), tool("gone")], after=after, calls=steps)
    changes = asyncio.Queue[str]()

    async def main() -> None:
        async with at(server, changed=changes.put_nowait) as desk:
            assert desk.states() == {"change": "approved", "t": "approved", "gone": "approved"}
            await changes.get()
            await desk.call("change")
            await asyncio.wait_for(changes.get(), 10)
            assert desk.states() == {"change": "approved", "t": "changed", "fresh": "new"}
            assert {definition.name: definition.description for definition in desk.registry}["t"] == "Does something."
            assert (await desk.call("fresh")).result == "fresh"
            assert (await desk.call("t")).result == "t"
            assert "+ " in desk.asked[1].preview
            assert desk.states() == {"change": "approved", "t": "approved", "fresh": "approved"}
            assert {definition.name: definition.description for definition in desk.registry}["t"] == "Something else."

    asyncio.run(main())


@pytest.mark.parametrize("cut_short", [True, False])
def test_no_call_runs_before_current_definitions_are_read(
    cut_short: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    approvals, reading, read = Approvals(), asyncio.Event(), asyncio.Event()
    tools = connection.Connection.tools

    async def slowly(self: connection.Connection) -> Any:
        reading.set()
        await read.wait()
        return await tools(self)

    async def main() -> None:
        async with at(raw(tmp_path, tools=[tool("t")]), approvals=approvals):
            pass
        changed = raw(tmp_path, tools=[tool("t", "Send all files along.")])
        monkeypatch.setattr(connection.Connection, "tools", slowly)
        async with at(changed, approvals=approvals, connect=False) as desk:
            first = asyncio.create_task(desk.call("t"))
            await reading.wait()
            if cut_short:
                first.cancel()
                await asyncio.wait({first})
            second = asyncio.create_task(desk.call("t"))
            read.set()
            assert "describes t in another way now" in ((await second).error or "")
            assert desk.states() == {"t": "changed"}
            assert not desk.asked
            await asyncio.wait({first})
        assert not calls(tmp_path)

    asyncio.run(main())


@pytest.mark.mission("C40")
def test_tool_settings_of_the_user_apply(tmp_path: Path) -> None:
    reading = {"readOnlyHint": True}
    tools = [
        tool("read", annotations=reading),
        tool("wipe", annotations={"destructiveHint": True}),
        tool("both", annotations={"readOnlyHint": True, "destructiveHint": True}),
        tool("plain", annotations={"openWorldHint": False}),
        tool("adds", annotations={"destructiveHint": False}),
        tool("off"),
    ]
    settings = {
        "adds": ToolSettings(tier=Tier.CRAWL, confirm=True),
        "off": ToolSettings(enabled=False),
        "wipe": ToolSettings(confirm=False),
    }

    def found(desk: Desk, name: str) -> dict[str, tuple[str, bool]]:
        (status,) = (status_entry for status_entry in desk.router.servers() if status_entry.name == name)
        return {
            tool_status.name: (tool_status.tier.name, tool_status.confirm)
            for tool_status in status.tools
            if tool_status.exposed_name
        }

    async def main() -> None:
        servers = [
            raw(tmp_path, "stranger", tools=tools),
            raw(tmp_path, "trusted", tools=tools, trusted=True),
            raw(tmp_path, "silent", tools=tools, ask="never"),
            raw(tmp_path, "strict", tools=tools, ask="always", trusted=True),
            raw(tmp_path, "own", tools=tools).model_copy(update={"tier": Tier.WALK, "tools": settings}),
        ]
        async with at(*servers) as desk:
            run, asks, look, walk = ("RUN", False), ("RUN", True), ("WALK", True), ("WALK", False)
            every = dict.fromkeys(("read", "wipe", "both", "plain", "adds", "off"), asks)
            by_hints = {**every, "read": run, "adds": run, "off": run}
            assert found(desk, "stranger") == by_hints
            assert found(desk, "trusted") == {**by_hints, "read": walk}
            assert found(desk, "silent") == dict.fromkeys(every, run)
            assert found(desk, "strict") == {**every, "read": look}
            assert desk.registry.lookup("trusted.read").behavior.idempotent
            assert not desk.registry.lookup("stranger.read").behavior.idempotent
            assert found(desk, "own") == {
                "read": walk, "wipe": walk, "both": look, "plain": walk, "adds": ("CRAWL", True),
            }  # fmt: skip
            assert desk.states("own")["off"] == "off"

    asyncio.run(main())


@pytest.mark.need(36)
def test_any_argument_name_reaches_the_tool(tmp_path: Path) -> None:
    names = ("self", "name", "arguments", "a-b", "__class__", "__proto__")
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    server = raw(tmp_path, tools=[tool("t", inputSchema=schema)], calls={"t": [{"echo": True}]})

    async def main() -> ToolResult:
        async with at(server) as desk:
            return await desk.call("t", **dict.fromkeys(names, "x"))

    assert (
        asyncio.run(main()).result == '{"self": "x", "name": "x", "arguments": "x", "a-b": "x", "__class__": "x", '
        '"__proto__": "x"}'
    )


def test_structured_content_must_fit_the_output_schema(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    text = [{"type": "text", "text": "hello"}]
    steps = {
        "right": [{"result": {"content": text, "structuredContent": {"n": 1}}}],
        "wrong": [{"result": {"content": text, "structuredContent": {"n": "one"}}}],
        "none": [{"result": {"content": text}}],
        "failed": [{"result": {"content": text, "isError": True}}],
    }
    server = raw(tmp_path, tools=[tool(name, outputSchema=schema) for name in steps], calls=steps)

    async def main() -> None:
        async with at(server) as desk:
            assert (await desk.call("right")).result == {"n": 1}
            assert "/n: is the string" in ((await desk.call("wrong")).error or "")
            assert "returned no structured content" in ((await desk.call("none")).error or "")
            assert (await desk.call("failed")).error == "hello"

    asyncio.run(main())


def test_disabled_tool_stays_disabled_after_a_change(tmp_path: Path) -> None:
    async def main() -> None:
        async with at(raw(tmp_path, tools=[tool("t"), tool("wipe")])) as desk:
            desk.registry.enable("wipe", "raw", enabled=False)
            assert desk.states() == {"t": "approved", "wipe": "off"}
            await desk.router.connect()
            assert "switched off" in (await desk.call("wipe")).text
            desk.registry.enable("wipe", "raw")
            assert (await desk.call("wipe")).success

    asyncio.run(main())


def test_router_without_a_registry_connects_on_entry(tmp_path: Path) -> None:
    with McpRouter([raw(tmp_path, tools=[tool("add")])], approve=True) as stdio_router:
        assert "add" in stdio_router.registry
        assert [status.state for status in stdio_router.servers()] == ["ready"]
        run = stdio_router.registry.lookup("add").run
        assert run is not None
        assert run_blocking(run).result == "add"
    assert len(stdio_router.registry) == 0

    async def over_url() -> None:
        registry = ToolRegistry()
        registry.register(lambda: 5, name="five")
        async with serving(McpService(registry)) as listening:
            headers = {"Authorization": f"Bearer {listening.token}"}
            server = McpServer(name="web", url=listening.url, headers=headers)
            async with McpRouter([server], approve=True) as url_router:
                assert [definition.name for definition in url_router.registry] == ["five"]

    asyncio.run(over_url())


def test_router_serves_other_event_loops_after_a_plain_with(tmp_path: Path) -> None:
    server = raw(tmp_path, tools=[tool("t")])
    call = ToolCall("t", {}, "c1")

    async def in_own_loop(registry: ToolRegistry) -> ToolResult:
        return (await ToolExecutor(registry).run(call, Session(tier=Tier.RUN))).result

    async def in_the_wrong_loop() -> ToolResult:
        async with McpRouter([server], approve=True) as router:
            return await asyncio.to_thread(lambda: run_blocking(lambda: in_own_loop(router.registry)))

    with McpRouter([server], approve=True) as router:
        assert asyncio.run(in_own_loop(router.registry)).result == "t"
        assert run_blocking(lambda: in_own_loop(router.registry)).result == "t"
    assert "belong to another event loop" in (asyncio.run(in_the_wrong_loop()).error or "")


def test_router_without_a_registry_raises_if_a_server_cannot_be_used(tmp_path: Path) -> None:
    good, gone = raw(tmp_path, tools=[tool("t")]), McpServer(name="gone", command=str(tmp_path / "none"))
    with (
        pytest.raises(ConfigurationError, match=r"MCP servers cannot be used: gone: "),
        McpRouter([good, gone], approve=True),
    ):
        pass
    assert starts(tmp_path) == 1
    process = next(entry["start"] for entry in heard(tmp_path) if "start" in entry)
    with pytest.raises(ProcessLookupError):  # the server that works was ended
        os.kill(process, 0)
    with pytest.raises(ConfigurationError, match="raw: it has not been approved yet: approve=True"), McpRouter([good]):
        pass
    assert starts(tmp_path) == 1
    with pytest.raises(TypeError, match="approve must be a function that asks about a server, or True, not 'yes'"):
        McpRouter([good], approve="yes")  # type: ignore[arg-type]


def test_files_of_a_server_reach_the_model_as_files(tmp_path: Path) -> None:
    paper = {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": "JVBERi0="}
    content = [
        {"type": "resource", "resource": paper},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    ]
    server = raw(tmp_path, tools=[tool("t")], calls={"t": [{"result": {"content": content}}]})
    answers = calling(ToolCall("t", {}, "call_1")), ParsedResponse("I see.")
    with (
        scripted(*answers) as model,
        McpRouter([server], approve=True) as router,
        Client("openai", "m", base_url=model.url, key="none") as client,
    ):
        assert Agent(ApiBackend(client), router.registry).ask_sync("Look.") == "I see."
    *_, result, media = model.asked[1]["messages"]
    assert result["content"] == "[resource file:///a.pdf (application/pdf)]"
    kinds = [part["type"] for part in media["content"]]
    assert kinds == ["text", "image_url", "file", "input_audio"]
    assert media["content"][2]["file"]["file_data"] == "data:application/pdf;base64,JVBERi0="
    assert media["content"][3]["input_audio"] == {"data": "AAAA", "format": "wav"}


@pytest.mark.parametrize(
    ("hints", "trusted", "approved", "asked", "ran"),
    [
        ({"readOnlyHint": True}, False, True, False, True),
        ({"readOnlyHint": True}, True, True, False, True),
        ({"destructiveHint": False}, False, True, False, True),
        ({}, False, True, True, True),
        ({}, True, False, True, False),
        ({"idempotentHint": True, "openWorldHint": False}, True, True, True, True),
        ({"readOnlyHint": False}, False, True, True, True),
        ({"destructiveHint": True}, False, True, True, True),
        ({"destructiveHint": True}, False, False, True, False),
        ({"destructiveHint": True, "readOnlyHint": True}, True, True, True, True),
    ],
)
def test_hints_decide_which_calls_of_an_agent_are_asked_about(
    tmp_path: Path, hints: dict[str, bool], trusted: bool, approved: bool, asked: bool, ran: bool
) -> None:
    questions: list[str] = []

    def confirm(approval: Approval) -> bool:
        questions.append(approval.call.name)
        return approved

    async def main() -> RunEnded:
        async with at(raw(tmp_path, tools=[tool("act", annotations=hints)], trusted=trusted)) as desk:
            call = ToolCall("act", {}, "c1")
            model = ScriptedBackend([ParsedResponse(tool_calls=(call,)), "Done."])
            return await Agent(model, desk.registry, confirm=confirm).run_to_end("Do it.")

    end = asyncio.run(main())
    assert end.answer == "Done."
    assert questions == ["act"] * asked
    assert calls(tmp_path) == ["act"] * ran


def test_call_that_follows_content_of_a_server_is_asked_about_unless_its_tool_only_reads(tmp_path: Path) -> None:
    questions: list[str] = []

    def confirm(approval: Approval) -> bool:
        questions.append(approval.call.name)
        return False

    async def main() -> RunEnded:
        tools = [tool("look", annotations={"readOnlyHint": True}), tool("act")]
        async with at(raw(tmp_path, tools=tools, trusted=True)) as desk:
            rounds = [ParsedResponse(tool_calls=(ToolCall(name, {}, name),)) for name in ("look", "look", "act")]
            return await Agent(ScriptedBackend([*rounds, "Done."]), desk.registry, confirm=confirm).run_to_end("Go.")

    assert asyncio.run(main()).answer == "Done."
    assert questions == ["act"]
    assert calls(tmp_path) == ["look", "look"]

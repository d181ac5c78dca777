"""Our registry as an MCP server: the SDK's own client, in both protocols, over HTTP and standard input."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult, InputRequiredResult, TextContent
from tests.integration.mcp_parts import client, serving

import toolwire
from toolwire import FilePart, ImagePart, OpaquePart, Tier, ToolCall, ToolDefinition, ToolError, ToolResult
from toolwire.builtin.toolsets import editing_tools
from toolwire.envelope.grammar import read_envelope
from toolwire.execution.registry import ToolRegistry
from toolwire.mcp.client_context import current_caller, log, report_progress
from toolwire.mcp.router import McpRouter
from toolwire.mcp.server import MAX_QUESTION, McpService
from toolwire.mcp.servers import McpServer
from toolwire.policy.policy import Limit, Policy, Rule

MODES = ("auto", "legacy")
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"when": {"type": "string", "format": "date"}},
    "properties": {"when": {"$ref": "#/$defs/when"}, "odd": {"not": {"const": 3}}},
    "additionalProperties": False,
}

modes = pytest.mark.parametrize("mode", MODES)


class Shop:
    """Tools that write down what they were called with."""

    def __init__(self) -> None:
        self.wiped: list[str] = []
        self.ended = asyncio.Event()
        self.registry = ToolRegistry()
        add = self.registry.register
        add(lambda: {"a": [1, None]}, name="structured")
        add(lambda: [1, 2], name="numbers")
        add(lambda: "text", name="text")
        add(lambda: None, name="nothing")
        add(lambda: ImagePart("aGk=", "image/png"), name="picture")
        add(self.fail, name="fail")
        add(self.native, name="native")
        add(self.steps, name="steps")
        add(self.forever, name="forever")
        add(ToolDefinition("dates", "Takes dates.", SCHEMA), run=lambda **arguments: json.dumps(arguments))
        add(
            self.wipe,
            name="wipe",
            tier=Tier.RUN,
            requires_confirmation=True,
            preview=lambda arguments: f"rm {arguments['path']}",
        )

    def fail(self) -> str:
        """Fails."""
        raise ToolError("not today")

    def native(self) -> ToolResult:
        """Says it in MCP's words."""
        sound = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
        return ToolResult("", "", "a sound", extra=OpaquePart({"content": [sound]}, "mcp"))

    async def steps(self) -> str:
        """Tells how far it is."""
        for at in (1, 2):
            await report_progress(at, 2, f"step {at}")
        await log("told")
        return "done"

    async def forever(self) -> str:
        """Never ends."""
        try:
            await report_progress(1, 2)
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        return ""

    def wipe(self, path: str) -> str:
        """Removes something."""
        self.wiped.append(path)
        return "gone"


def answers(action: str, *, approve: bool = True, seen: list[str] | None = None) -> Any:
    """Somebody behind a client."""

    async def elicit(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        if seen is not None:
            seen.append(params.message)
        return ElicitResult(action=action, content={"approve": approve} if action == "accept" else None)

    return elicit


@modes
def test_tools_are_listed_with_schema_and_hints(mode: str) -> None:
    async def main() -> None:
        async with serving(McpService(Shop().registry)) as at, client(at, mode=mode) as mcp_client:
            tools = {listed_tool.name: listed_tool for listed_tool in (await mcp_client.list_tools()).tools}
            assert "wipe" not in tools
            assert tools["dates"].input_schema == SCHEMA
            hints = tools["dates"].annotations
            assert hints is not None
            assert (hints.read_only_hint, hints.destructive_hint) == (True, False)
        async with serving(McpService(Shop().registry, tier=Tier.RUN)) as at, client(at, mode=mode) as mcp_client:
            hints = {listed_tool.name: listed_tool for listed_tool in (await mcp_client.list_tools()).tools}[
                "wipe"
            ].annotations
            assert hints is not None
            assert (hints.read_only_hint, hints.destructive_hint) == (False, True)

    asyncio.run(main())


def test_long_listings_are_paged() -> None:
    registry = ToolRegistry(ToolDefinition(f"t{at}") for at in range(450))

    async def main() -> None:
        async with serving(McpService(registry)) as at, client(at) as mcp_client:
            names, cursor = list[str](), None
            while True:
                page = await mcp_client.list_tools(cursor=cursor)
                names += [listed_tool.name for listed_tool in page.tools]
                if (cursor := page.next_cursor) is None:
                    break
            assert names == [f"t{at}" for at in range(450)]
            with pytest.raises(MCPError, match="no such page"):
                await mcp_client.list_tools(cursor="-1")

    asyncio.run(main())


@modes
def test_results_are_sent_as_mcp_content(mode: str) -> None:
    expected: dict[str, Any] = {
        "structured": ([{"type": "text", "text": '{"a": [1, null]}'}], {"a": [1, None]}, False),
        "numbers": ([{"type": "text", "text": "[1, 2]"}], None, False),
        "text": ([{"type": "text", "text": "text"}], None, False),
        "nothing": ([], None, False),
        "picture": ([{"type": "image", "data": "aGk=", "mimeType": "image/png"}], None, False),
        "fail": ([{"type": "text", "text": "not today"}], None, True),
        "native": ([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}], None, False),
    }

    async def main() -> None:
        async with serving(McpService(Shop().registry)) as at, client(at, mode=mode) as mcp_client:
            for name, (content, structured, failed) in expected.items():
                result = await mcp_client.call_tool(name)
                assert [block.model_dump(by_alias=True, exclude_none=True) for block in result.content] == content
                assert (result.structured_content, result.is_error) == (structured, failed)
            wrong = await mcp_client.call_tool("dates", {"when": "2026-01-01", "extra": 1})
            assert wrong.is_error
            assert isinstance(wrong.content[0], TextContent)
            assert "extra" in wrong.content[0].text
            with pytest.raises(MCPError, match="There is no tool 'nope'"):
                await mcp_client.call_tool("nope")

    asyncio.run(main())


REFUSED = "The user refused this call of wipe"
DECLINED = "The client refused this call of wipe: it declined the question that this server asked"
UNANSWERED = "Nobody has approved this call of wipe, so it did not run"
ANSWERS: list[tuple[Any, bool, str]] = [
    (answers("accept"), True, "gone"),
    (answers("accept", approve=False), False, REFUSED),
    (answers("decline"), False, DECLINED),
    (answers("cancel"), False, UNANSWERED),
    (None, False, "wipe needs an approval each time. Nobody is there to approve it, so it did not run"),
]


@modes
def test_approval_is_requested_through_the_client(mode: str) -> None:
    async def main() -> None:
        shop = Shop()
        async with serving(McpService(shop.registry, tier=Tier.RUN)) as at:
            for elicit, executed, output in ANSWERS:
                shop.wiped.clear()
                async with client(at, mode=mode, elicitation_callback=elicit) as mcp_client:
                    result = await mcp_client.call_tool("wipe", {"path": "a"})
                assert shop.wiped == (["a"] if executed else [])
                if mode == "auto" and output in (
                    REFUSED,
                    DECLINED,
                ):  # there is no visit in which it could be remembered
                    output = f"{UNANSWERED}: the question was declined"
                assert (result.content[0].model_dump()["text"].rstrip("."), result.is_error) == (output, not executed)

    asyncio.run(main())


@modes
def test_question_shows_the_exact_call(mode: str) -> None:
    async def main() -> None:
        shop, questions = Shop(), list[str]()
        service, elicit = McpService(shop.registry, tier=Tier.RUN), answers("accept", seen=questions)
        async with serving(service) as at, client(at, mode=mode, elicitation_callback=elicit) as mcp_client:
            await mcp_client.call_tool("wipe", {"path": "a\u202e\x1b[2J\n\n\n\nb"})
            long = await mcp_client.call_tool("wipe", {"path": "".join(map(str, range(MAX_QUESTION)))})
        assert len(questions) == 1
        assert "\\u202e\\x1b[2J" in questions[0]
        assert "rm a" in questions[0]
        assert "which is too many" in long.content[0].model_dump()["text"]
        assert len(shop.wiped) == 1

    asyncio.run(main())


@modes
@pytest.mark.parametrize(("action", "approve"), [("cancel", True), ("accept", None)])
def test_closed_question_is_not_a_refusal(action: Any, approve: bool | None, mode: str) -> None:
    arguments = [
        ElicitResult(action=action, content=None if approve else {}),
        ElicitResult(action="accept", content={"approve": True}),
    ]

    async def elicit(*_: Any) -> ElicitResult:
        return arguments.pop(0)

    async def main() -> None:
        shop = Shop()
        async with (
            serving(McpService(shop.registry, tier=Tier.RUN)) as at,
            client(at, mode=mode, elicitation_callback=elicit) as mcp_client,
        ):
            assert (await mcp_client.call_tool("wipe", {"path": "a"})).is_error
            assert not shop.wiped
            assert not (await mcp_client.call_tool("wipe", {"path": "a"})).is_error
            assert shop.wiped == ["a"]

    asyncio.run(main())


@modes
def test_refusal_applies_to_its_session(mode: str) -> None:
    async def main() -> None:
        shop, questions = Shop(), list[str]()
        async with serving(McpService(shop.registry, tier=Tier.RUN)) as at:
            async with client(at, mode=mode, elicitation_callback=answers("decline", seen=questions)) as mcp_client:
                for _ in range(2):
                    assert (await mcp_client.call_tool("wipe", {"path": "a"})).is_error
            assert len(questions) == (1 if mode == "legacy" else 2)  # the newer protocol knows no visits
            async with client(at, mode=mode, elicitation_callback=answers("accept")) as mcp_client:
                assert not (await mcp_client.call_tool("wipe", {"path": "a"})).is_error
        assert shop.wiped == ["a"]

    asyncio.run(main())


@modes
def test_stdio_process_is_one_session(mode: str, tmp_path: Path) -> None:
    tools = tmp_path / "own.py"
    tools.write_text(
        "import asyncio\n"
        "from toolwire import Tier\nfrom toolwire.mcp.server import McpService\n"
        "from toolwire.execution.registry import ToolRegistry\n"
        "registry = ToolRegistry()\n"
        "registry.register(lambda: 'gone', name='wipe', tier=Tier.RUN, requires_confirmation=True)\n"
        "asyncio.run(McpService(registry, tier=Tier.RUN).stdio())\n"
    )

    async def main() -> None:
        source, questions = str(Path(toolwire.__file__).parents[1]), list[str]()
        started = StdioServerParameters(command=sys.executable, args=[str(tools)], env={"PYTHONPATH": source})
        elicit = answers("decline", seen=questions)
        async with Client(started, mode=mode, elicitation_callback=elicit) as mcp_client:
            output = [(await mcp_client.call_tool("wipe")).content[0].model_dump()["text"] for _ in range(2)]
        assert len(questions) == 1
        assert "was refused before" in output[1]

    asyncio.run(main())


def test_answer_applies_once_to_the_call_that_was_shown() -> None:
    async def main() -> None:
        shop = Shop()
        service = McpService(shop.registry, tier=Tier.RUN)
        async with serving(service) as at, client(at, elicitation_callback=answers("accept")) as mcp_client:
            session = mcp_client.session

            async def call(path: str, **more: Any) -> Any:
                return await session.call_tool("wipe", {"path": path}, allow_input_required=True, **more)

            yes = {"approve": ElicitResult(action="accept", content={"approve": True})}
            first = await call("a")
            assert isinstance(first, InputRequiredResult)
            assert not shop.wiped
            other = await call("b", input_responses=yes, request_state=first.request_state)
            assert isinstance(other, InputRequiredResult)
            again = await call("a", input_responses=yes, request_state=first.request_state)
            assert isinstance(again, InputRequiredResult)  # the answer was used up
            forged = await call("a", input_responses=yes, request_state="x" * 32)
            assert isinstance(forged, InputRequiredResult)
            assert not shop.wiped
            outcome = await call("a", input_responses=yes, request_state=again.request_state)
            assert not isinstance(outcome, InputRequiredResult)
            assert shop.wiped == ["a"]

    asyncio.run(main())


def test_an_approval_does_not_cover_a_file_that_has_changed_since(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("old\n")
    service = McpService(ToolRegistry(editing_tools(tmp_path)), tier=Tier.RUN)

    async def main() -> None:
        async with serving(service) as at, client(at, elicitation_callback=answers("accept")) as mcp_client:
            session = mcp_client.session

            async def call(**more: Any) -> Any:
                arguments = {"path": "notes", "content": "new\n"}
                return await session.call_tool("write_file", arguments, allow_input_required=True, **more)

            yes = {"approve": ElicitResult(action="accept", content={"approve": True})}
            first = await call()
            assert isinstance(first, InputRequiredResult), first
            (tmp_path / "notes").write_text("of somebody else\n")
            second = await call(input_responses=yes, request_state=first.request_state)
            assert isinstance(second, InputRequiredResult)
            assert "-of somebody else" in str(second)
            assert (tmp_path / "notes").read_text() == "of somebody else\n"
            await call(input_responses=yes, request_state=second.request_state)
            assert (tmp_path / "notes").read_text() == "new\n"

    asyncio.run(main())


@modes
def test_general_approval_asks_no_questions(mode: str) -> None:
    async def main() -> None:
        shop = Shop()
        async with (
            serving(McpService(shop.registry, tier=Tier.RUN, approve=True)) as at,
            client(at, mode=mode) as mcp_client,
        ):
            assert not (await mcp_client.call_tool("wipe", {"path": "a"})).is_error
        assert shop.wiped == ["a"]

    asyncio.run(main())


@modes
def test_tiers_rules_and_limits_apply_to_clients(mode: str) -> None:
    policy = Policy((Rule("deny", "numbers", reason="no numbers"),), limits=(Limit(2, tool="text"),))

    async def main() -> None:
        service = McpService(Shop().registry, policy=policy)
        async with serving(service) as at, client(at, mode=mode) as mcp_client:

            async def said(name: str, arguments: dict[str, Any] | None = None) -> str:
                result = await mcp_client.call_tool(name, arguments)
                return result.content[0].model_dump()["text"]

            assert await said("numbers") == "no numbers"
            assert "needs the tier RUN" in await said("wipe", {"path": "a"})
            assert [await said("text") for _ in range(3)][:2] == ["text", "text"]
            assert "may run 2 times" in await said("text")

    asyncio.run(main())


@modes
def test_progress_and_log_lines_reach_the_client(mode: str) -> None:
    async def main() -> None:
        received, logged = list[Any](), list[Any]()

        async def progress(*told: Any) -> None:
            received.append(told)

        async def logging(params: Any) -> None:
            logged.append(params.data)

        service = McpService(Shop().registry)
        async with serving(service) as at, client(at, mode=mode, logging_callback=logging) as mcp_client:
            await mcp_client.call_tool("steps", progress_callback=progress)
        assert received == [(1.0, 2.0, "step 1"), (2.0, 2.0, "step 2")]
        assert logged == (["told"] if mode == "legacy" else [])

    asyncio.run(main())


@modes
def test_cancelled_call_cancels_its_tool(mode: str) -> None:
    async def main() -> None:
        shop, started = Shop(), asyncio.Event()

        async def progress(*_: Any) -> None:
            started.set()

        async with serving(McpService(shop.registry)) as at, client(at, mode=mode) as mcp_client:
            task = asyncio.create_task(mcp_client.call_tool("forever", progress_callback=progress))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(shop.ended.wait(), 10)

    asyncio.run(main())


def test_router_uses_the_served_tools() -> None:
    shop = Shop()

    async def main() -> None:
        async with serving(McpService(shop.registry, tier=Tier.RUN, approve=True)) as at:
            headers = {"Authorization": f"Bearer {at.token}"}
            registry = ToolRegistry()

            async def approve(_: Any) -> bool:
                return True

            server = McpServer(name="shop", url=at.url, headers=headers)
            async with McpRouter([server], registry, approve=approve) as router:
                assert (await router.connect())[0].state == "ready"
                run = registry.lookup("native").run
                assert run is not None
                result = await run()
                assert result.files == (FilePart("AAAA", "audio/wav"),)
                assert {definition.name for definition in registry} >= {"wipe", "text", "dates"}

    asyncio.run(main())


def test_clients_receive_shaped_results() -> None:
    def shape(_: ToolCall, result: ToolResult) -> ToolResult:
        return replace(result, result=f"in short: {result.result}")

    async def main() -> None:
        async with serving(McpService(Shop().registry, shape=shape)) as at, client(at) as mcp_client:
            assert [block.model_dump()["text"] for block in (await mcp_client.call_tool("native")).content] == [
                "in short: a sound"
            ]

    asyncio.run(main())


def test_progress_without_a_client_does_nothing() -> None:
    assert asyncio.run(Shop().steps()) == "done"
    assert current_caller() is None


def test_process_serves_on_standard_input(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember")
    arguments = ["-m", "toolwire", "mcp", "serve", "--root", str(tmp_path)]

    async def main() -> None:
        source = str(Path(toolwire.__file__).parents[1])  # where this runs from a checkout
        started = StdioServerParameters(command=sys.executable, args=arguments, env={"PYTHONPATH": source})
        async with Client(started) as mcp_client:
            assert [listed_tool.name for listed_tool in (await mcp_client.list_tools()).tools] == [
                "list_dir",
                "read_file",
                "search_files",
            ]
            result = await mcp_client.call_tool("read_file", {"path": "notes.txt"})
            assert "remember" in result.content[0].model_dump()["text"]
            outside = await mcp_client.call_tool("read_file", {"path": "/etc/passwd"})
            assert outside.is_error

    asyncio.run(main())


def test_process_serves_results_in_envelopes(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("".join(f"line {at}\n" for at in range(4_000)))
    tools = tmp_path / "own.py"
    tools.write_text('import toolwire\n\n\n@toolwire.tool\ndef long() -> str:\n    return "some words\\n" * 9_000\n')
    arguments = ["-m", "toolwire", "mcp", "serve", "--root", str(tmp_path), "--tools", str(tools)]
    arguments += ["--envelope", "qwen-local", "--tier", "RUN", "--yes"]

    async def main() -> None:
        source = str(Path(toolwire.__file__).parents[1])
        environment = {"PYTHONPATH": source, "TOOLWIRE_STATE": str(tmp_path / "state")}
        started = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
        async with Client(started) as mcp_client:
            assert {"te_run", "read_handle"} <= {
                listed_tool.name for listed_tool in (await mcp_client.list_tools()).tools
            }
            text = (await mcp_client.call_tool("long", {})).content[0].model_dump()["text"]
            assert len(text) <= 28_000
            header = read_envelope(text).header
            assert (header.lines, header.truncated) == (9_000, True)
            more = await mcp_client.call_tool("read_handle", {"handle": header.handle, "chunk": 2})
            assert "some words" in more.content[0].model_dump()["text"]
            executed = await mcp_client.call_tool("te_run", {"args": ["run", "echo", "hello"]})
            assert executed.structured_content is not None
            assert executed.structured_content["meta"] == {"returncode": 0}

    asyncio.run(main())


def test_serving_no_tools_is_an_error() -> None:
    process = subprocess.run([sys.executable, "-m", "toolwire", "mcp", "serve"], capture_output=True, text=True)
    assert (process.returncode, process.stdout) == (2, "")
    assert "there are no tools to serve" in process.stderr


def test_identical_calls_wait_for_one_question_without_occupying_slots() -> None:
    requests, go, running = list[str](), asyncio.Event(), asyncio.Event()

    async def elicit(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        requests.append(params.message)
        running.set()
        await go.wait()
        return ElicitResult(action="accept", content={"approve": True})

    async def main() -> None:
        shop = Shop()
        async with (
            serving(McpService(shop.registry, tier=Tier.RUN, concurrency=1)) as where,
            client(where, elicitation_callback=elicit, mode="legacy") as item,
        ):
            twice = [asyncio.create_task(item.call_tool("wipe", {"path": "a"})) for _ in range(2)]
            await running.wait()
            assert not (await asyncio.wait_for(item.call_tool("text"), 20)).is_error
            go.set()
            assert not any(outcome.is_error for outcome in await asyncio.wait_for(asyncio.gather(*twice), 20))
        assert (len(requests), shop.wiped) == (2, ["a", "a"])

    asyncio.run(main())


def test_waiting_questions_occupy_no_slots_of_running_calls() -> None:
    requests = asyncio.Event()

    async def never(_: ClientRequestContext, __: ElicitRequestParams) -> ElicitResult:
        requests.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def main() -> None:
        registry = ToolRegistry()
        registry.register(lambda: "ran", name="danger", tier=Tier.RUN, requires_confirmation=True)
        registry.register(lambda: "pong", name="ping")
        async with (
            serving(McpService(registry, tier=Tier.RUN, concurrency=1)) as where,
            client(where, elicitation_callback=never, mode="legacy") as item,
            client(where) as other,
        ):
            waiting = asyncio.create_task(item.call_tool("danger", {}))
            await requests.wait()
            async with asyncio.timeout(20):
                assert not (await other.call_tool("ping", {})).is_error
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    asyncio.run(main())

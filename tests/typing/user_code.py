"""Programs as users write them: every line passes `mypy --strict` and pyright in strict mode. Nothing of it is run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, assert_type

from pydantic import BaseModel

import toolwire
from toolwire import (
    Agent,
    AllowedRoots,
    Approval,
    ApprovalAnswer,
    CallEnd,
    CallStart,
    Client,
    ContentDelta,
    Event,
    FinishReason,
    Isolation,
    Limit,
    Message,
    ParsedResponse,
    Policy,
    Rule,
    Session,
    StreamParser,
    TextPart,
    Tier,
    Tool,
    ToolCall,
    ToolDefinition,
    ToolExecutor,
    ToolRegistry,
    ToolResult,
    builtin_tools,
    tool,
    tool_options,
    tools_from,
)
from toolwire.agent import (
    AgentConfig,
    AgentEvent,
    AgentTeam,
    Budget,
    ConversationStore,
    DurableRuns,
    Member,
    PartialOutput,
    PendingApprovals,
    Prices,
    RunEnded,
    load_agent,
    load_team,
)
from toolwire.mcp import McpRouter, McpServer, McpService
from toolwire.models import ApiBackend, Backend, HttpTransport, Retry, TextBackend, Transport, client_source
from toolwire.openapi import OpenApi
from toolwire.policy import PolicyTable
from toolwire.telemetry import Archive, Recorder, standard_archive
from toolwire.testing import RecordingTransport, ReplayTransport, ScriptedBackend, ScriptedTransport
from toolwire.wire import Args, Call, Lit, Many, Name, WireFormat


@tool
def add(first: int, second: int = 0) -> int:
    """Add two numbers."""
    return first + second


@tool(name="files.write", tier=Tier.RUN, requires_confirmation=True, isolated=Isolation(seconds=5))
async def write(path: str, text: str) -> str:
    """Write a file."""
    return f"{len(text)} characters are in {path}"


def tools_keep_their_signatures() -> None:
    assert_type(add(1, second=2), int)
    assert_type(add.definition, ToolDefinition)
    assert_type(add.definition.tier, Tier)


def parse_text(text: str) -> ParsedResponse:
    response = toolwire.parse(text, format="hermes", tools=[add], repair="none", fallback="whole_message")
    assert_type(response.tool_calls, tuple[ToolCall, ...])
    assert_type(response.finish_reason, FinishReason)
    return response


def parse_a_response(response: dict[str, object]) -> str:
    return toolwire.parse(response, api="anthropic", tools=[add]).content


def parse_a_stream(pieces: Iterable[str]) -> list[ToolCall]:
    parser = StreamParser(format="auto", tools=[add], id_seed="turn 1")
    calls: list[ToolCall] = []
    for piece in pieces:
        for event in parser.feed(piece):
            match event:
                case CallStart(index=index, name=name):
                    print(index, name)
                case CallEnd(call=call, complete=True):
                    calls.append(call)
                case ContentDelta(text):
                    print(text, end="")
                case _:
                    pass
    print(list(parser.finish()))
    return calls


def follow(events: Iterable[Event]) -> str:
    return "".join(toolwire.watch(events, "text", tool="files.write", deltas=True))


def write_prompts() -> str:
    prompt = toolwire.prompt([add], format="qwen3_coder", system="Be brief.")
    results = toolwire.render_results([ToolResult("1", "add", 3)], format="hermes")
    calls = toolwire.render_calls([ToolCall("add", {"first": 1})], format="hermes", tools=[add])
    return prompt + results + calls


def encode_a_request() -> dict[str, object]:
    history = [Message("user", "Add 1 and 2."), Message("assistant", (TextPart("3"),))]
    api = toolwire.get_api("openai")
    return api.encode_request(history, tools=[add], model="m", tool_choice="required", max_tokens=100, stop=["\n"])


async def ask_an_api(transport: Transport) -> str:
    async with Client("openai_chat", "m", base_url="http://localhost:8000/v1", key="k", transport=transport) as client:
        response = await client.ask([Message("user", "Hello.")], tools=[add], temperature=0.0)
        async for event in client.stream([Message("user", "Hello.")], max_tokens=10):
            print(event)
        return response.content


async def confirm(approval: Approval) -> ApprovalAnswer | bool:
    return approval.call.name != "files.write"


def confirm_in_a_thread(approval: Approval) -> bool:
    return approval.call.name != "files.write"


async def run_calls(calls: list[ToolCall]) -> list[ToolResult]:
    registry = ToolRegistry([add, write, *builtin_tools("docs", tier=Tier.WALK)])
    registered = registry.register(lambda: "now", name="now", description="Tell the time.", tier=Tier.CRAWL)
    print(registered, "now" in registry, len(registry))
    policy = Policy((Rule("deny", tool="execute_command"),), (Limit(3, seconds=60, tool="files.write"),))
    executor = ToolExecutor(registry, policy=policy, confirm=confirm, timeout=30.0)
    plain = ToolExecutor(registry, confirm=confirm_in_a_thread)
    return [*await executor.execute(calls, Session(tier=Tier.RUN)), *await plain.execute(calls, Session())]


async def run_an_agent(backend: Backend, events: list[AgentEvent]) -> str:
    config = AgentConfig(name="reader", system="Read.", budget=Budget(rounds=5, money=1.0, prices=Prices(1.0, 2.0)))
    agent = Agent(backend, [add, write], config, confirm=confirm, telemetry=False)
    async for event in agent.run("Read docs.", history=[Message("user", "Hello.")], session=Session()):
        events.append(event)
        if isinstance(event, RunEnded):
            assert_type(event.messages, tuple[Message, ...])
    return await agent.ask("Add 1 and 2.")


class Report(BaseModel):
    title: str


class Refusal(BaseModel):
    reason: str


async def return_values(backend: Backend, client: Client, schema: dict[str, Any]) -> None:
    assert_type(await Agent(backend).ask("Report."), str)
    assert_type(await Agent(backend, [add], output_type=Report).ask("Report."), Report)
    assert_type(await Agent(backend, output_type=list[Report]).ask("Report."), list[Report])
    assert_type(await Agent(backend, output_type=int, telemetry=False).ask("Count."), int)
    assert_type(await Agent(backend, output_type=schema).ask("Report."), Any)
    either = Agent(backend, output_type=Report | Refusal)
    assert_type(await either.ask("Report."), Report | Refusal)
    assert_type(await AgentTeam(either, [Member(either, "Reports.")]).ask("Report."), Report | Refusal)
    async for event in either.run("Report."):
        if isinstance(event, PartialOutput):
            print(event.value)
    assert_type(await client.extract(Report, "A report."), Report)
    assert_type(await client.extract(Report | None, "A report.", retries=1), Report | None)
    assert_type(await client.extract(schema, [Message("user", "A report.")]), Any)


async def approve_later(backend: Backend, store: ConversationStore) -> None:
    agent = Agent(backend, [write], confirm="defer", output_type=int)
    conversation = store.open("ada")
    async for event in agent.run("Write.", conversation=conversation):
        if isinstance(event, RunEnded) and event.pending is not None:
            text = event.pending.to_json()
            pending = PendingApprovals.from_json(text)
            decisions = {question.id: ApprovalAnswer(approved=True) for question in pending.approvals}
            assert_type(await agent.ask_resumed(pending, decisions, digest=pending.digest), int)
            assert_type(agent.ask_resumed_sync(pending, {"call_1": True}, conversation=conversation), int)
    assert_type(toolwire.load_messages(toolwire.dump_messages(conversation.messages)), tuple[Message, ...])


async def run_a_team(backend: Backend) -> str:
    reader = Agent(backend, [], AgentConfig(name="reader"))
    return await AgentTeam(Agent(backend), [Member(reader, "Reads.", Tier.WALK)]).ask("Read docs.")


async def load_from_a_file() -> None:
    async with load_agent("toolwire.toml", "reader", tier=Tier.RUN, confirm=confirm, tools=[add]) as agent:
        assert_type(agent, Agent)
    async with load_team(Path("toolwire.toml"), folder=".") as team:
        assert_type(team, AgentTeam)


async def run_durably(agent: Agent) -> str:
    async with DurableRuns(agent, database="runs.db", worker=True) as runs:
        return await runs.ask("Read docs.", run_id="nightly")


def choose_a_backend(client: Client) -> list[Backend]:
    return [
        ApiBackend(client, settings={"temperature": 0.2, "reasoning_effort": "low"}, extra_headers={"x-team": "a"}),
        TextBackend(client_source(client, settings={"max_tokens": 500}), format="hermes", model="m"),
        ScriptedBackend(["Hello.", ParsedResponse("Bye.")]),
    ]


def test_without_a_network() -> list[Transport]:
    scripted = ScriptedTransport("openai", [ParsedResponse("Hello."), (429, b"{}"), OSError("gone")])
    recording = RecordingTransport(HttpTransport(retry=Retry(attempts=2)), "exchanges.jsonl")
    return [scripted, recording, ReplayTransport("exchanges.jsonl", piece=1)]


async def connect_servers(registry: ToolRegistry) -> McpService:
    async with McpRouter([McpServer(name="files", command="files-server")], registry):
        return McpService(registry)


def read_records() -> list[object]:
    archive: Archive = standard_archive()
    recorder = Recorder("runs.db", content=False)
    print(Agent(ScriptedBackend([]), observers=[recorder]))
    return [dict(run) for run in archive.runs()]


def read_a_policy(table: dict[str, object]) -> PolicyTable:
    return PolicyTable.model_validate(table)


def describe_a_format() -> WireFormat:
    call = (Lit("<call>"), Name(), Args(), Lit("</call>"))
    return WireFormat(name="mine", title="Mine", models="none", blocks=((Many((Call(call),)),),))


async def count(backend: Backend) -> AsyncIterator[Event]:
    async for event in backend.stream(toolwire.ChatRequest((Message("user", "Count."),))):
        yield event


class Orders:
    @tool_options(destructive=True)
    def cancel(self, number: int) -> str:
        return f"{number} is cancelled"


def use_methods(orders: Orders) -> list[Tool[..., Any]]:
    assert_type(orders.cancel(5), str)
    return tools_from(orders, only=["cancel"], options={"cancel": {"tier": Tier.WALK}})


def use_http_api(model: Backend) -> str:
    api = OpenApi("shop.json", base_url="https://shop.example.com", options={"readOrder": {"tier": Tier.CRAWL}})
    return Agent(model, [*api.tools, *use_methods(Orders())]).ask_sync("Where is my order?")


def use_server(model: Backend) -> str:
    with McpRouter([McpServer(name="files", command="files-server")], approve=True) as router:
        return Agent(model, router.registry).ask_sync("Which files are there?")


def guard_files() -> tuple[Tool[..., object], ...]:
    return builtin_tools(AllowedRoots("docs", "src"))

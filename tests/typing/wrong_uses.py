"""Mistakes that a type checker must find. Each `expect` names mypy's error code and pyright's rule. Nothing is run."""

from __future__ import annotations

import toolwire
from toolwire import (
    Agent,
    Client,
    Message,
    Policy,
    Rule,
    Session,
    StreamParser,
    Tier,
    ToolCall,
    ToolExecutor,
    ToolRegistry,
)
from toolwire.agent import AgentConfig, AgentTeam, Budget, Member, load_agent
from toolwire.models import ApiBackend, TextBackend, client_source
from toolwire.testing import ScriptedBackend, ScriptedTransport

backend = ScriptedBackend(["Hello."])
client = Client("openai", "m")
agent = Agent(backend)
registry = ToolRegistry()
question = [Message("user", "Hello.")]


wrong = {"a": {"tierr": Tier.RUN}}
toolwire.tools_from(5, options=wrong)  # expect: arg-type | reportArgumentType


@toolwire.tool
def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


async def mistakes() -> None:
    toolwire.parse("x", formt="hermes")  # expect: call-arg | reportCallIssue
    toolwire.parse("x", tools=3)  # expect: arg-type | reportArgumentType
    toolwire.parse("x", repair="all")  # expect: arg-type | reportArgumentType
    toolwire.parse("x", fallback=3)  # expect: arg-type | reportArgumentType
    toolwire.parse("x", api=3)  # expect: arg-type | reportArgumentType
    toolwire.merge_text([], foramt="hermes")  # expect: call-arg | reportCallIssue
    StreamParser(formt="hermes")  # expect: call-arg | reportCallIssue
    StreamParser("hermes")  # expect: call-arg | reportCallIssue
    StreamParser().feed(b"x")  # expect: arg-type | reportArgumentType
    toolwire.collect("x")  # expect: arg-type | reportArgumentType
    toolwire.watch([], 3)  # expect: arg-type | reportArgumentType
    toolwire.render_calls(["add"], format="hermes")  # expect: list-item | reportArgumentType
    toolwire.render_results([3], format="hermes")  # expect: list-item | reportArgumentType
    toolwire.render_definitions([add])  # expect: call-arg | reportCallIssue
    toolwire.prompt([add], format=None)  # expect: arg-type | reportArgumentType
    toolwire.get_format(3)  # expect: arg-type | reportArgumentType
    toolwire.get_api(3)  # expect: arg-type | reportArgumentType
    toolwire.get_api("openai").encode_request(question, temprature=1.0)  # expect: call-arg | reportCallIssue
    toolwire.get_api("openai").encode_request(3)  # expect: arg-type | reportArgumentType
    toolwire.tool(tier="run")  # expect: call-overload | reportArgumentType
    toolwire.tool(names="add")  # expect: call-overload | reportCallIssue
    add("1", second=2)  # expect: arg-type | reportArgumentType
    add(1)  # expect: call-arg | reportCallIssue
    add.no_such_name  # expect: attr-defined | reportAttributeAccessIssue
    Message("robot", "Hello.")  # expect: arg-type | reportArgumentType
    Message("user", [{"type": "text"}])  # expect: list-item | reportArgumentType
    ToolCall("add", "{}")  # expect: arg-type | reportArgumentType
    Client("openai")  # expect: call-arg | reportCallIssue
    Client("openai", "m", api_key="k")  # expect: call-arg | reportCallIssue
    await client.ask(3)  # expect: arg-type | reportArgumentType
    await client.ask(question, max_token=3)  # expect: call-arg | reportCallIssue
    client.stream(question, temperature="warm")  # expect: arg-type | reportArgumentType
    ApiBackend(client, temprature=0.1)  # expect: call-arg | reportCallIssue
    client_source(client, top_k=3)  # expect: call-arg | reportCallIssue
    Client("openai", "m", settings={"temprature": 0.1})  # expect: arg-type | reportArgumentType
    ApiBackend(client, settings={"reasoning_effort": "hard"})  # expect: arg-type | reportArgumentType
    TextBackend(client_source(client))  # expect: call-arg | reportCallIssue
    Agent(backend, [add], Budget())  # expect: call-overload | reportArgumentType
    Agent(backend, policy=[Rule("deny")])  # expect: call-overload | reportArgumentType
    Agent(backend, confirm=True)  # expect: call-overload | reportArgumentType
    Agent(backend, confirm=input)  # expect: arg-type | reportArgumentType
    agent.run("x", history=[{"role": "user"}])  # expect: list-item | reportArgumentType
    agent.run("x", session="new")  # expect: arg-type | reportArgumentType
    await agent.ask([b"x"])  # expect: list-item | reportArgumentType
    AgentConfig(tier="run")  # expect: arg-type | reportArgumentType
    AgentConfig(budget=20)  # expect: arg-type | reportArgumentType
    AgentTeam(agent, [agent])  # expect: list-item | reportArgumentType
    Member(agent)  # expect: call-arg | reportCallIssue
    Budget(rounds="many")  # expect: arg-type | reportArgumentType
    load_agent("f.toml", tierr=Tier.RUN)  # expect: call-arg | reportCallIssue
    load_agent("f.toml", tier="run")  # expect: arg-type | reportArgumentType
    Rule("forbid")  # expect: arg-type | reportArgumentType
    Policy(Rule("deny"))  # expect: arg-type | reportArgumentType
    Session("run")  # expect: arg-type | reportArgumentType
    ToolExecutor([add])  # expect: arg-type | reportArgumentType
    ToolExecutor(registry, timeout="3 s")  # expect: arg-type | reportArgumentType
    await ToolExecutor(registry).execute([ToolCall("add")])  # expect: call-arg | reportCallIssue
    registry.register(add, tier="run")  # expect: arg-type | reportArgumentType
    registry.definitions(tier="run")  # expect: arg-type | reportArgumentType
    ScriptedBackend([3])  # expect: list-item | reportArgumentType
    ScriptedTransport("openai", ["Hello."])  # expect: list-item | reportArgumentType
    toolwire.no_such_name  # expect: attr-defined | reportAttributeAccessIssue

"""Values of a wrong type at the public surface: one line that names the argument, where the user's call is."""

from __future__ import annotations

import asyncio
import inspect
import re
import traceback
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from toolwire import (
    Agent,
    AllowedRoots,
    ApprovalAnswer,
    Client,
    CommandSettings,
    ConfigurationError,
    DefinitionError,
    Disclosure,
    Envelope,
    FilePart,
    FormatNegotiator,
    ImagePart,
    Isolation,
    Limit,
    Message,
    ParsedResponse,
    Policy,
    Rule,
    Session,
    StreamParser,
    Tier,
    TierGate,
    ToolCall,
    ToolDefinition,
    ToolExecutor,
    ToolRegistry,
    ToolResult,
    UnknownFormat,
    attach,
    builtin_tools,
    collect,
    count_tokens,
    detect_from_template,
    get_api,
    get_format,
    grammar,
    load_configuration,
    parse,
    present,
    profile,
    prompt,
    read_arguments,
    read_envelope,
    render_calls,
    render_definitions,
    render_results,
    replay,
    tool,
    watch,
)
from toolwire.agent import (
    AgentConfig,
    AgentKeywords,
    AgentTeam,
    Budget,
    DurableRuns,
    Hooks,
    Member,
    Prices,
    Summarize,
    load_agent,
)
from toolwire.mcp import McpRouter, McpServer, McpService, ToolSettings
from toolwire.models import ApiBackend, CircuitBreaker, Retry, Route, TextBackend, local_source
from toolwire.policy import AnyOf, Command, Host, Number, PathGlob, Text
from toolwire.telemetry import Archive, Recorder
from toolwire.testing import RecordingTransport, ReplayTransport, ScriptedBackend, ScriptedTransport
from toolwire.web import ag_ui_stream, vercel_stream


@tool
def stock(item: str) -> int:
    "How much there is of an item."
    return 3


async def later(*arguments: object) -> str:
    "Answer where nothing waits for the answer."
    return "m"


class Later:
    "An object that is called like `later`."

    async def __call__(self, *arguments: object) -> str:
        return "m"


MISSING = "/no/such/folder/toolwire.toml"
api: Any = get_api("openai")
backend: Any = ScriptedBackend(["Hello."])
client: Any = Client("openai", "m", key="k", transport=ScriptedTransport("openai", []))
agent: Any = Agent(backend, telemetry=False)
registry: Any = ToolRegistry([stock])


def use(make: Callable[[], Any]) -> None:
    """Make a call; await what has to be awaited."""
    value = make()
    if inspect.isawaitable(value):

        async def wait() -> None:
            await value

        asyncio.run(wait())
    elif hasattr(value, "__aenter__"):

        async def enter() -> None:
            async with value:
                pass

        asyncio.run(enter())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: parse(b"x"), "text_or_response must be text, or a response as a dict or a client's object, not bytes"),
        (lambda: parse(None), "text_or_response must be text, or a response as a dict or a client's object, not None"),
        (lambda: parse("x", format=3), "format must be a format's name or a WireFormat, not 3"),
        (lambda: parse("x", formt="hermes"), "parse() has no argument 'formt'; did you mean format?"),
        (lambda: StreamParser(formt="hermes"), "StreamParser() has no argument 'formt'; did you mean format?"),
        (lambda: parse("x", fallback=3), "fallback must be 'none', 'whole_message' or 'embedded', not 3"),
        (lambda: parse("x", id_seed=3), "id_seed must be text, not 3"),
        (lambda: parse("x", primed=b"x"), "primed must be text or None, not bytes"),
        (lambda: parse("x", reasoning_started="no"), "reasoning_started must be True or False, not 'no'"),
        (lambda: parse({}, api=3), "api must be an API's name or a ProviderApi, not 3"),
        (lambda: StreamParser().feed(b"x"), "text must be text, not bytes"),
        (lambda: collect("x"), "events must be an iterable of events, not list of str"),
        (lambda: collect(3), "events must be an iterable of events, not 3"),
        (lambda: collect([{}]), "events must be an iterable of events, not list of dict"),
        (lambda: replay("x"), "response must be a ParsedResponse, not 'x'"),
        (lambda: render_calls(["add"], format="hermes"), "calls must be an iterable of ToolCall, not list of str"),
        (lambda: render_calls(ToolCall("add"), format="hermes"), "calls must be an iterable of ToolCall, not ToolCall"),
        (
            lambda: render_results(ToolResult("1", "add", 3), format="hermes"),
            "results must be an iterable of ToolResult, not ToolResult",
        ),
        (lambda: render_results(["3"], format="hermes"), "results must be an iterable of ToolResult, not list of str"),
        (lambda: render_definitions([stock], format=None), "format must be a format's name or a WireFormat, not None"),
        (lambda: prompt([stock], format=3), "format must be a format's name or a WireFormat, not 3"),
        (lambda: prompt([stock], format="hermes", system=3), "system must be text, not 3"),
        (lambda: get_format(3), "format must be a format's name or a WireFormat, not 3"),
        (lambda: get_api(3), "api must be an API's name or a ProviderApi, not 3"),
        (lambda: api.encode_request(3), "conversation must be messages, text or a ChatRequest, not 3"),
        (
            lambda: api.encode_request("x", temprature=1),
            "encode_request() has no argument 'temprature'; did you mean temperature?",
        ),
        (lambda: api.encode_response("x"), "response must be a ParsedResponse, not 'x'"),
        (lambda: api.encode_results("x"), "results must be a sequence of ToolResult, not 'x'"),
        (lambda: api.encode_results([3]), "results must be a sequence of ToolResult, not list of int"),
        (lambda: read_arguments(b"{}"), "text must be text, not bytes"),
        (lambda: tool(tier="run"), "tier must be a Tier, such as Tier.RUN, not 'run'"),
        (lambda: tool("add"), "function must be a function; a name is written @tool(name=...), not 'add'"),
        (lambda: tool(name=3), "name must be text, not 3"),
        (lambda: tool(isolated=3)(stock.function), "isolated must be a bool or an Isolation, not 3"),
        (lambda: tool(preview="x")(stock.function), "preview must be a function of the arguments, not 'x'"),
        (
            lambda: ToolDefinition("x", parameters=[]),
            "parameters must be a dict, the JSON Schema of the arguments, not list",
        ),
        (lambda: ToolDefinition("x", tier="run"), "tier must be a Tier, such as Tier.RUN, not 'run'"),
        (
            lambda: ToolCall("add", "{}"),
            "arguments must be a dict of JSON values (json.loads makes one of text), not '{}'",
        ),
        (lambda: ToolCall(None), "name must be text, not None"),
        (lambda: client.ask("x", temperature="hot"), "temperature must be a number, not 'hot'"),
        (lambda: client.ask("x", max_tokens=1.5), "max_tokens must be a whole number, not 1.5"),
        (lambda: client.ask("x", stop=3), "stop must be text, or a list of texts, not 3"),
        (lambda: client.ask("x", stop=["a", 3]), "stop must be text, or a list of texts, not list of int"),
        (lambda: client.ask("x", parallel="no"), "parallel must be True or False, not 'no'"),
        (lambda: client.ask("x", end_user=3), "end_user must be text, not 3"),
        (
            lambda: client.ask("x", output={"type": "object"}),
            "output must be an OutputSchema; Client.extract takes types and JSON Schemas, not dict",
        ),
        (lambda: ApiBackend(client, settings={"top_p": "1"}), "top_p must be a number, not '1'"),
        (lambda: Message(3, "x"), "role must be 'system', 'user', 'assistant' or 'tool', not 3"),
        (
            lambda: Message("user", [{"type": "text"}]),
            "parts must be text, or an iterable of text and parts, such as ImagePart, not tuple of dict",
        ),
        (
            lambda: Message("user", None),
            "parts must be text, or an iterable of text and parts, such as ImagePart, not None",
        ),
        (lambda: ImagePart(data=b"x"), "data must be text in base64, not bytes"),
        (lambda: Client(3, "m"), "api must be an API's name or a ProviderApi, not 3"),
        (lambda: Client("openai", 3), "model must be the model's name, not 3"),
        (lambda: Client("openai", "m", key=b"secret"), "key must be text or None, not bytes"),
        (
            lambda: Client("openai", "m", transport="https://x"),
            "transport must be a Transport, such as HttpTransport(), not 'https://x'",
        ),
        (lambda: Client("openai", "m", base_url=3), "base_url must be text, not 3"),
        (lambda: client.ask(3), "conversation must be messages, text or a ChatRequest, not 3"),
        (lambda: client.ask({"messages": []}), "conversation must be messages, text or a ChatRequest, not dict"),
        (
            lambda: api.encode_request({"messages": []}),
            "conversation must be messages, text or a ChatRequest, not dict",
        ),
        (lambda: Agent(3), 'backend must be a Backend, a Client, or text such as "openai:gpt-5-mini", not 3'),
        (lambda: Agent(backend, stock), "tools must be a ToolRegistry or a list of tools, not Tool"),
        (lambda: Agent(backend, config={}), "config must be an AgentConfig or None, not dict"),
        (lambda: Agent(backend, policy=[Rule("deny")]), "policy must be a Policy or None, not list of Rule"),
        (
            lambda: Agent(backend, confirm=True),
            "confirm must be a function of an Approval that returns True or False, or 'defer', not True",
        ),
        (
            lambda: Agent(backend, confirm="later"),
            "confirm must be a function of an Approval that returns True or False, or 'defer', not 'later'",
        ),
        (lambda: Agent(backend, observers=3), "observers must be an iterable of observers, not 3"),
        (
            lambda: Agent(backend, observers=[print]),
            "observers must be an iterable of observers, with the methods of an Observer, "
            "not list of builtin_function_or_method",
        ),
        (
            lambda: Agent(backend, McpRouter([])),
            "tools must be a ToolRegistry (McpRouter.registry is one) or a list of tools, not McpRouter",
        ),
        (
            lambda: agent.run("x", temperature=0.2),
            "run() has no argument 'temperature': it is a setting of the model, settings={'temperature': ...}",
        ),
        (
            lambda: agent.ask_sync("x", max_tokens=9),
            "run() has no argument 'max_tokens': it is a setting of the model, settings={'max_tokens': ...}",
        ),
        (
            lambda: Agent(backend, executor=ToolExecutor(registry)),
            "executor must be a function that makes a ToolExecutor of a registry and `confirm`, not ToolExecutor",
        ),
        (
            lambda: agent.run(3),
            "task must be text, or a list of text, images and files (attach(path) reads one), not 3",
        ),
        (
            lambda: agent.run(["Look", Path("a.png")]),
            "task must be text, or a list of text, images and files (attach(path) reads one), not list of PosixPath",
        ),
        (
            lambda: agent.run(b"Look"),
            "task must be text, or a list of text, images and files (attach(path) reads one), not bytes",
        ),
        (lambda: agent.run("x", history=[{"role": "user"}]), "history must be a sequence of Message, not list of dict"),
        (lambda: agent.run("x", history="Hello."), "history must be a sequence of Message, not 'Hello.'"),
        (lambda: agent.run("x", session="new"), "session must be a Session or None, not 'new'"),
        (lambda: AgentConfig(tier="run"), "tier must be a Tier, such as Tier.RUN, or None, not 'run'"),
        (lambda: AgentConfig(budget=20), "budget must be a Budget, not 20"),
        (lambda: AgentConfig(system=3), "system must be text, not 3"),
        (lambda: AgentTeam(backend, []), "coordinator must be an Agent, not ScriptedBackend"),
        (
            lambda: AgentTeam(agent, [agent]),
            "members must be a sequence of Member(agent, description), not list of Agent",
        ),
        (
            lambda: AgentTeam(agent, Member(agent, "x")),
            "members must be a sequence of Member(agent, description), not Member",
        ),
        (lambda: Member(backend, "x"), "agent must be an Agent, not ScriptedBackend"),
        (lambda: Member(agent, 3), "description must be text, not 3"),
        (lambda: Budget(rounds="many"), "rounds must be a number of rounds, not 'many'"),
        (lambda: Budget(prices=3, money=1.0), "prices must be Prices, a dict of Prices by model, or None, not 3"),
        (lambda: ToolRegistry(stock), "tools must be an iterable of tools, not Tool"),
        (lambda: ToolRegistry("add"), "tools must be an iterable of tools, not 'add'"),
        (
            lambda: registry.register(lambda: 1, name="now", tier="run"),
            "tier must be a Tier, such as Tier.RUN, not 'run'",
        ),
        (
            lambda: registry.register(lambda: 1, name="now", teir=Tier.RUN),
            "register() has no argument 'teir'; did you mean tier?",
        ),
        (lambda: registry.definitions(tier="run"), "tier must be a Tier, such as Tier.RUN, or None, not 'run'"),
        (lambda: ToolExecutor([stock]), "registry must be a ToolRegistry, not list of Tool"),
        (
            lambda: ToolExecutor(registry, policy={}),
            "policy must be a Policy or None (PolicyTable.model_validate(...).to_policy() reads a dict), not dict",
        ),
        (lambda: ToolExecutor(registry, timeout="3 s"), "timeout must be a number of seconds or None, not '3 s'"),
        (
            lambda: ToolExecutor(registry).execute(ToolCall("stock"), Session()),
            "calls must be a sequence of ToolCall, not ToolCall",
        ),
        (
            lambda: ToolExecutor(registry).execute([{"name": "stock"}], Session()),
            "calls must be a sequence of ToolCall, not list of dict",
        ),
        (lambda: ToolExecutor(registry).execute([ToolCall("stock")], None), "session must be a Session, not None"),
        (lambda: Policy(Rule("deny")), "rules must be a tuple of Rule, not Rule"),
        (lambda: Policy([Rule("deny"), 3]), "rules must be a tuple of Rule, not list of int"),
        (lambda: Policy(limits=[3]), "limits must be a tuple of Limit, not list of int"),
        (lambda: Rule(Tier.RUN), "effect must be 'allow', 'ask' or 'deny', not <Tier.RUN: 2>"),
        (lambda: Rule("deny", tool=stock), "tool must be a glob over tools' names, not Tool"),
        (
            lambda: Rule("deny", arguments=["path"]),
            "arguments must be a mapping from arguments to matchers, not list of str",
        ),
        (lambda: Limit("3"), "calls must be a number of calls or None, not '3'"),
        (lambda: Limit(3, seconds="60"), "seconds must be a number of seconds, not '60'"),
        (lambda: Session("run"), "tier must be a Tier, such as Tier.RUN, not 'run'"),
        (lambda: Session(tier=2), "tier must be a Tier, such as Tier.RUN, not 2"),
        (lambda: load_agent(3), "path must be a path, not 3"),
        (lambda: load_agent(MISSING, tierr="run"), "load_agent() has no argument 'tierr'; did you mean tier?"),
        (lambda: load_agent(MISSING, tier="run"), "tier must be a Tier, such as Tier.RUN, or None, not 'run'"),
        (lambda: load_configuration(3), "path must be a path, not 3"),
        (lambda: builtin_tools(3), "roots must be paths of directories, not list of int"),
        (lambda: builtin_tools(".", tier="run"), "tier must be a Tier, such as Tier.RUN, not 'run'"),
        (lambda: builtin_tools(".", commands={}), "commands must be CommandSettings or None, not dict"),
        (lambda: AllowedRoots(["."]), "roots must be paths of directories, not list of list"),
        (
            lambda: ScriptedBackend("Hello."),
            "answers must be an iterable of responses, texts, lists of events, or errors, not 'Hello.'",
        ),
        (
            lambda: ScriptedBackend([3]),
            "answers must be an iterable of responses, texts, lists of events, or errors, not list of int",
        ),
        (
            lambda: ScriptedTransport("openai", ["Hello."]),
            "answers must be an iterable of responses, bytes, tuples of a status and bytes, or errors, not list of str",
        ),
        (
            lambda: ScriptedTransport("openai", [3]),
            "answers must be an iterable of responses, bytes, tuples of a status and bytes, or errors, not list of int",
        ),
        (lambda: RecordingTransport("x", "f"), "inner must be a Transport, such as HttpTransport(), not 'x'"),
        (lambda: ReplayTransport(3), "path must be a path, not 3"),
        (lambda: ApiBackend("openai"), "client must be a Client, not 'openai'"),
        (
            lambda: ApiBackend(client, setings={}),
            "ApiBackend() has no argument 'setings'; did you mean settings?",
        ),
        (
            lambda: ApiBackend(client, settings={"temprature": 0.1}),
            "there is no setting 'temprature'; did you mean temperature?",
        ),
        (
            lambda: Client("ollama", "m", settings=0.1),
            "settings must be a dict of settings or None, not 0.1",
        ),
        (lambda: TextBackend("x", format="hermes"), "source must be a source, such as client_source(client), not 'x'"),
        (
            lambda: local_source("1.5b"),
            "model must be a model in this process, such as open_model() returns, not '1.5b'",
        ),
        (lambda: McpRouter(registry, []), "servers must be an iterable of McpServer, not list of ToolDefinition"),
        (lambda: McpRouter([3], registry), "servers must be an iterable of McpServer, not list of int"),
        (lambda: McpService([stock]), "registry must be a ToolRegistry, not list of Tool"),
        (lambda: Recorder(3), "path must be a path, not 3"),
        (lambda: Archive(3), "path must be a path, not 3"),
        (lambda: count_tokens(b"x"), "text must be text, not bytes"),
        (lambda: present("x"), "approval must be an Approval, not 'x'"),
        (lambda: FormatNegotiator(3), "config must be a ToolsConfig or None, not 3"),
        (lambda: Disclosure([stock], format="hermes"), "registry must be a ToolRegistry, not list of Tool"),
        (lambda: Envelope(agent=3), "agent must be an agent's name or None, not 3"),
        (lambda: TierGate(max_tier="run"), "max_tier must be a Tier, such as Tier.RUN, not 'run'"),
        (lambda: Rule("deny", "f", {"path": "x"}), "arguments['path'] must be a matcher, such as Text(...), not 'x'"),
        (lambda: Command("git push"), 'words must be a tuple of words, such as ("git", "push"), not \'git push\''),
        (lambda: Command(("git",), options="-v"), "options must be a tuple of globs, not '-v'"),
        (lambda: AnyOf("rm"), "values must be a tuple of values, not 'rm'"),
        (lambda: Text(3), "glob must be text, not 3"),
        (lambda: PathGlob(["src/**"]), "glob must be text, not list of str"),
        (lambda: PathGlob("src/**", base=Path("/project")), "base must be text, not PosixPath"),
        (lambda: Host(["example.org"]), "glob must be text, not list of str"),
        (lambda: Number("3"), "at_least must be a number or None, not '3'"),
        (lambda: Number(at_most="3"), "at_most must be a number or None, not '3'"),
        (lambda: Prices(input="3"), "input must be a price of a million tokens, not '3'"),
        (lambda: Prices(cached="3"), "cached must be a price of a million tokens or None, not '3'"),
        (lambda: Hooks(prompt=str.upper), "prompt must be a tuple of functions, not method_descriptor"),
        (lambda: Hooks(result=["shorten"]), "result must be a tuple of functions, not list of str"),
        (lambda: Hooks(messages=(later,)), "messages must be plain functions, and later is async"),
        (lambda: Hooks(prompt=(Later(),)), "prompt must be plain functions, and Later is async"),
        (lambda: Route({"m": ScriptedBackend(["x"])}, later), "choose must be a plain function, and later is async"),
        (lambda: DurableRuns("clerk"), "agents must be agents and teams, not 'clerk'"),
        (lambda: agent.run("x", run_id=3), "run_id must be text, not 3"),
        (lambda: agent.run("x", journal={}), "journal must be a Journal, such as MemoryJournal(), or None, not dict"),
        (lambda: registry.lookup(3), "name must be text, not 3"),
        (lambda: ToolExecutor(registry).run({"name": "stock"}, Session()), "call must be a ToolCall, not dict"),
        (
            lambda: vercel_stream([]),
            "events must be an iterator of events, such as agent.run(task) returns, not list",
        ),
        (
            lambda: ag_ui_stream("x"),
            "events must be an iterator of events, such as agent.run(task) returns, not 'x'",
        ),
        (lambda: Envelope(preview="3"), "preview must be a number of lines or None, not '3'"),
        (lambda: read_envelope(b"x"), "text must be the text of an envelope, not bytes"),
        (lambda: attach(3), "path must be a path, not 3"),
        (lambda: profile(None), "name must be text, not None"),
        (lambda: detect_from_template(None), "template must be text, not None"),
        (lambda: list(watch([], 3)), "argument must be the name of an argument, not 3"),
        (
            lambda: ToolResult("1", "stock", error=KeyError("tea")),
            "error must be text or None (str() makes text of an exception), not KeyError",
        ),
        (lambda: ApprovalAnswer("no"), "approved must be True or False, not 'no'"),
        (lambda: ApprovalAnswer(True, remember="no"), "remember must be True or False, not 'no'"),
        (lambda: ApprovalAnswer(False, unanswered=None), "unanswered must be True or False, not None"),
        (
            lambda: TierGate("words"),
            "detect must be a function of a question, such as IntentDetector(), not 'words'",
        ),
        (
            lambda: Disclosure(registry, format="hermes", budget_tokens="2k"),
            "budget_tokens must be a number of tokens, not '2k'",
        ),
        (lambda: Isolation(memory="512MB"), "memory must be a number of bytes, not '512MB'"),
        (lambda: Isolation(cpu_seconds=1.5), "cpu_seconds must be a whole number of seconds, not 1.5"),
        (lambda: Isolation(processes=True), "processes must be a number of processes or None, not True"),
        (lambda: CommandSettings(seconds="30"), "seconds must be a number of seconds, not '30'"),
        (
            lambda: CommandSettings(passed_on="HOME"),
            "passed_on must be a tuple of names, such as (\"VIRTUAL_ENV\",), not 'HOME'",
        ),
        (
            lambda: Agent(backend, output_type="City"),
            "output_type must be a type, such as City, or a JSON Schema, not 'City'",
        ),
        (
            lambda: McpRouter(McpServer(name="x", command="y")),
            "servers must be an iterable of McpServer, not McpServer",
        ),
    ],
)
def test_a_wrong_type_is_named_with_its_argument(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        use(make)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (
            lambda: parse(3),
            DefinitionError,
            "a response must be a dict or an object with model_dump, not int",
        ),
        (lambda: parse("x", tools=3), DefinitionError, "int is not a tool"),
        (lambda: McpServer(name="x"), ValueError, "McpServer: a server has either a command or a url"),
        (
            lambda: McpServer(name="x", comand="y"),
            ValueError,
            "McpServer: comand: there is no such key; did you mean command?",
        ),
        (lambda: ToolSettings(tier="big"), ValueError, "ToolSettings: tier: a tier is one of CRAWL, WALK, RUN"),
        (
            lambda: Agent(backend, [lambda text: text]),
            DefinitionError,
            "a lambda has no name of its own; use tool(name=...)",
        ),
        (
            lambda: ImagePart("https://example.org/a.png"),
            ValueError,
            "the data of this ImagePart is an address and not base64: pass it as url=",
        ),
        (
            lambda: FilePart("data:application/pdf;base64,AAAA"),
            ValueError,
            "the data of this FilePart is an address and not base64: pass it as url=",
        ),
        (ImagePart, ValueError, "an empty ImagePart shows a model nothing: give it data or url"),
        (
            lambda: FilePart(name="a.pdf"),
            ValueError,
            "an empty FilePart shows a model nothing: give it data or url",
        ),
        (lambda: parse("x", repair="all"), ValueError, "repair is 'all'; it can be 'safe' or 'none'"),
        (lambda: StreamParser(tools="add"), DefinitionError, "str is not a tool"),
        (lambda: render_definitions([3], format="hermes"), DefinitionError, "int is not a tool"),
        (
            lambda: api.encode_request([{"role": "user", "content": "x"}]),
            DefinitionError,
            "message 0: a dict is not a toolwire.Message; messages of an API are read with decode_request",
        ),
        (lambda: api.encode_request([Message("user", "x")], tools=3), DefinitionError, "int is not a tool"),
        (
            lambda: api.decode_response(b"{}"),
            DefinitionError,
            "a response must be a dict or an object with model_dump, not bytes",
        ),
        (lambda: read_arguments("{}", 3), DefinitionError, "int is not a tool"),
        (lambda: ToolDefinition(3), DefinitionError, "a tool's name must be text that is not empty, not 3"),
        (
            lambda: client.ask([{"role": "user"}]),
            DefinitionError,
            "message 0: a dict is not a toolwire.Message; messages of an API are read with decode_request",
        ),
        (lambda: registry.register(3), DefinitionError, "int is not a tool"),
        (
            lambda: Message("asistant", "x"),
            ValueError,
            "unknown role 'asistant'; expected 'system', 'user', 'assistant' or 'tool'",
        ),
        (
            lambda: Client("openai_chat", "m", base_url="127.0.0.1:1/v1"),
            ConfigurationError,
            "base_url must begin with http:// or https://, not '127.0.0.1:1/v1'",
        ),
        (
            lambda: Client("openai_chat", "m", base_url="user:sk-SECRET@host/v1"),
            ConfigurationError,
            "base_url must begin with http:// or https://, not 'host/v1'",
        ),
        (lambda: Rule("forbid"), ValueError, "effect must be 'allow', 'ask' or 'deny', not 'forbid'"),
        (
            lambda: api.decode_request("x"),
            DefinitionError,
            "a request must be a dict or an object with model_dump, not str",
        ),
        (
            lambda: api.decode_request({"messages": "hi"}),
            DefinitionError,
            "the body is not a request of openai_chat: messages cannot be read: a value has another type than",
        ),
        (
            lambda: api.decode_request({"messages": [], "tools": {"name": "stock"}}),
            DefinitionError,
            "the body is not a request of openai_chat: tools cannot be read: a value has another type than",
        ),
        (
            lambda: api.decode_request({"messages": [{"content": "hi"}]}),
            DefinitionError,
            "the body is not a request of openai_chat: messages cannot be read: 'role' is missing",
        ),
        (
            lambda: api.decode_request(
                {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": ""}}]}]}
            ),
            DefinitionError,
            "the body is not a request of openai_chat: messages cannot be read: an empty ImagePart shows",
        ),
        (
            lambda: api.decode_request({"model": "m"}),
            DefinitionError,
            "the body is not a request of openai_chat: 'messages' is missing",
        ),
        (
            lambda: TextBackend(later, format="hermse"),
            UnknownFormat,
            "unknown wire format 'hermse'; did you mean hermes",
        ),
        (
            lambda: grammar([stock], format="hermes", tool_choice="any"),
            DefinitionError,
            "tool_choice is auto, required, none or a tool's name (stock), not 'any'",
        ),
        (lambda: Isolation(seconds=-1), ValueError, "seconds must be at least 0, not -1"),
    ],
)
def test_a_value_that_cannot_be_used_says_what_can(
    make: Callable[[], Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught:
        use(make)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


NAN = float("nan")


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Budget(rounds=0), ValueError, "rounds must be at least 1, not 0"),
        (lambda: Budget(rounds=True), TypeError, "rounds must be a number of rounds, not True"),
        (lambda: Budget(rounds=2.5), TypeError, "rounds must be a number of rounds, not 2.5"),
        (lambda: Budget(money=NAN), ValueError, "money must be at least 0, not nan"),
        (lambda: Budget(seconds=-1), ValueError, "seconds must be at least 0, not -1"),
        (lambda: Budget(last_seconds=-1), ValueError, "last_seconds must be at least 0, not -1"),
        (lambda: AgentConfig(timeout=-3), ValueError, "timeout must be at least 0, not -3"),
        (lambda: AgentConfig(silence=NAN), ValueError, "silence must be at least 0, not nan"),
        (lambda: AgentConfig(context=0), ValueError, "context must be at least 1, not 0"),
        (lambda: AgentConfig(output_retries=-1), ValueError, "output_retries must be at least 0, not -1"),
        (lambda: AgentConfig(definitions=None), TypeError, "definitions must be a number of tokens, not None"),
        (lambda: Summarize(keep=0), ValueError, "keep must be at least 1, not 0"),
        (lambda: ToolExecutor(registry, concurrency=0), ValueError, "concurrency must be at least 1, not 0"),
        (lambda: ToolExecutor(registry, timeout=NAN), ValueError, "timeout must be at least 0, not nan"),
        (lambda: ToolExecutor(registry, confirm_timeout=-1), ValueError, "confirm_timeout must be at least 0, not -1"),
        (lambda: DurableRuns(concurrency=0), ValueError, "concurrency must be at least 1, not 0"),
        (lambda: Limit(calls=-1), ValueError, "calls must be at least 0, not -1"),
        (lambda: Limit(running=NAN), ValueError, "running must be at least 0, not nan"),
        (lambda: Retry(attempts=0), ValueError, "attempts must be at least 1, not 0"),
        (lambda: Retry(wait=-1), ValueError, "wait must be at least 0, not -1"),
        (lambda: CircuitBreaker(failures=0), ValueError, "failures must be at least 1, not 0"),
        (lambda: client.extract(str, "x", retries=-1), ValueError, "retries must be at least 0, not -1"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(make: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        use(make)
    assert str(caught.value).startswith(message)


def test_a_wrong_type_is_raised_where_the_call_is() -> None:
    with pytest.raises(TypeError) as caught:
        agent.run("x", history=[{"role": "user"}])  # before anything is awaited
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert Path(frames[0].filename) == Path(__file__)
    assert len(frames) <= 4, "the call, the function, and the check"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Budget(round=3), "Budget() has no argument 'round'; did you mean rounds?"),
        (lambda: replace(Budget(), token=3), "Budget() has no argument 'token'; did you mean tokens?"),
        (lambda: AgentConfig(sytem="x"), "AgentConfig() has no argument 'sytem'; did you mean system?"),
        (lambda: Agent(backend, tool=[]), "Agent() has no argument 'tool'; did you mean tools?"),
        (lambda: Client("openai", "m", url="x"), "Client() has no argument 'url'; did you mean base_url?"),
        (lambda: Rule("deny", tols="x"), "Rule() has no argument 'tols'; did you mean tool?"),
        (lambda: Policy(rule=[]), "Policy() has no argument 'rule'; did you mean rules?"),
        (lambda: Retry(attempt=3), "Retry() has no argument 'attempt'; did you mean attempts?"),
        (lambda: Prices(inputs=1), "Prices() has no argument 'inputs'; did you mean input?"),
    ],
)
def test_a_misspelt_setting_gets_a_suggestion(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Agent(tools=[stock], model="gpt-4o"), "Agent() has no argument 'model'; did you mean backend?"),
        (lambda: Agent(), 'backend must be a Backend, a Client, or text such as "openai:gpt-5-mini", not None'),
        (
            lambda: Agent(backend, instructions="x"),
            "Agent() has no argument 'instructions': it is a setting, config=AgentConfig(system=...)",
        ),
        (
            lambda: Agent(backend, system_prompt="x"),
            "Agent() has no argument 'system_prompt': it is a setting, config=AgentConfig(system=...)",
        ),
        (
            lambda: Agent(backend, max_steps=3),
            "Agent() has no argument 'max_steps': it is part of the budget, "
            "config=AgentConfig(budget=Budget(rounds=...))",
        ),
        (
            lambda: Agent(backend, temperature=0.2),
            "Agent() has no argument 'temperature': "
            "it is a setting of the model, config=AgentConfig(settings={'temperature': ...})",
        ),
        (
            lambda: Agent(backend, deps_type=int),
            "Agent() has no argument 'deps_type': it is an option of a run, agent.ask(task, deps=...)",
        ),
        (
            lambda: Agent(backend, handoffs=[agent]),
            "Agent() has no argument 'handoffs': it belongs to a team, AgentTeam(agent, handoffs=[...])",
        ),
        (lambda: Agent(backend, result_type=int), "Agent() has no argument 'result_type'; did you mean output_type?"),
        (lambda: Agent(backend, mcp_servers=[]), "Agent() has no argument 'mcp_servers'; did you mean tools?"),
        (
            lambda: agent.run("x", max_turns=3),
            "run() has no argument 'max_turns': it is part of the budget, budget=Budget(rounds=...)",
        ),
        (lambda: agent.run("x", usage_limits=3), "run() has no argument 'usage_limits'; did you mean budget?"),
        (lambda: agent.run("x", context=stock), "run() has no argument 'context'; did you mean deps?"),
        (lambda: agent.run("x", message_history=[]), "run() has no argument 'message_history'; did you mean history?"),
        (lambda: agent.run("x", thread_id="1"), "run() has no argument 'thread_id'; did you mean conversation?"),
        (
            lambda: agent.run("x", output_type=int),
            "run() has no argument 'output_type': it belongs to the agent, Agent(..., output_type=...)",
        ),
        (
            lambda: agent.run("x", instructions="y"),
            "run() has no argument 'instructions': it is a setting of the agent, AgentConfig(system=...)",
        ),
        (
            lambda: agent.run("x", max_completion_tokens=9),
            "run() has no argument 'max_completion_tokens': it is a setting of the model, settings={'max_tokens': ...}",
        ),
        (lambda: AgentConfig(instructions="x"), "AgentConfig() has no argument 'instructions'; did you mean system?"),
        (
            lambda: AgentConfig(max_turns=3),
            "AgentConfig() has no argument 'max_turns': it is part of the budget, budget=Budget(rounds=...)",
        ),
        (
            lambda: AgentConfig(temperature=1),
            "AgentConfig() has no argument 'temperature': it is a setting of the model, settings={'temperature': ...}",
        ),
        (lambda: Budget(max_turns=3), "Budget() has no argument 'max_turns'; did you mean rounds?"),
        (
            lambda: tool(needs_approval=True),
            "tool() has no argument 'needs_approval'; did you mean requires_confirmation?",
        ),
        (lambda: tool(return_direct=True), "tool() has no argument 'return_direct'; did you mean ends_turn?"),
    ],
)
def test_a_name_of_another_framework_is_explained(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value) == message


def test_places_of_arguments_exist() -> None:
    arguments = {*inspect.signature(Agent).parameters, *AgentKeywords.__annotations__}
    missing = "it belongs to the agent, Agent(..., {name}=...)"
    for name in arguments - {"config", "options"}:
        with pytest.raises(TypeError, match=re.escape(missing.format(name=name))):
            AgentConfig(**{name: 1})


@pytest.mark.parametrize("kind", ["prompt", "messages", "response", "invocation", "result"])
def test_hook_that_returns_nothing_is_named(kind: Any) -> None:
    def forgetful(*_: Any) -> Any:
        """Return nothing."""

    call = ParsedResponse(tool_calls=(ToolCall("f", {}, "c1"),))
    config = AgentConfig(system="Be kind.", hooks=Hooks(**{kind: (forgetful,)}))
    agent = Agent(ScriptedBackend([call, "x"]), [tool(name="f")(lambda: 1)], config)
    with pytest.raises(TypeError, match=rf"what the {kind} hook .*forgetful returns must be .*, not None"):
        agent.ask_sync("x")


def test_events_that_are_taken_for_an_answer_are_explained() -> None:
    async def wait() -> None:
        await agent.run("x")  # type: ignore[misc]

    with pytest.raises(TypeError, match=r"a run cannot be awaited: .* await ask\(\) for the answer"):
        asyncio.run(wait())
    with pytest.raises(AttributeError, match=r"no attribute 'output': .* ask_sync\(\) returns the answer"):
        _ = agent.run_sync("x").output  # type: ignore[attr-defined]
    assert "await ask() for the answer" in repr(agent.run("x"))
    with pytest.raises(TypeError, match=r"`for` those of run_sync\(\)"):
        list(agent.run("x"))  # type: ignore[call-overload]

    async def read() -> None:
        async for _ in agent.run_sync("x"):  # type: ignore[attr-defined]
            pass

    with pytest.raises(TypeError, match=r"`async for` those of run\(\)"):
        asyncio.run(read())


def test_settings_keep_their_signatures() -> None:
    assert [*inspect.signature(Budget).parameters] == [field.name for field in fields(Budget)]


def test_a_secret_is_never_shown() -> None:
    with pytest.raises(TypeError) as caught:
        Client("openai", "m", key=b"sk-secret")  # type: ignore[arg-type]
    assert "sk-secret" not in str(caught.value)

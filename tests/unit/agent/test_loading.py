"""Agents and teams from TOML and from values: their models, tools, tiers and budgets; and what a file may get wrong."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import ConfigurationError, FinishReason, Message, ParsedResponse, Tier, ToolCall
from toolwire.agent import AgentTable, AgentTeamConfig, Environment, load_agent, load_team, open_agent
from toolwire.agent.model_pool import Models, local_name
from toolwire.agent.run_events import MemberEvent, ToolFinished
from toolwire.config.tables import Configuration, ModelProfile, load_configuration
from toolwire.events import Finish
from toolwire.mcp.server_status import ServerQuestion
from toolwire.models.backends import ApiBackend, TextBackend
from toolwire.models.model_group import single_models
from toolwire.policy.policy import Policy, Rule
from toolwire.telemetry import CoachedBackend

API = toolwire.get_api("openai_chat")


class Small:
    """A model in this process."""

    loaded: list[str]

    def __init__(self) -> None:
        self.loaded = []

    def __call__(self, name: str) -> "Small":
        self.loaded.append(name)
        return self

    def stream(self, messages: Any, /, **options: Any) -> Generator[str | Finish]:
        yield "I am small."
        yield Finish(FinishReason.STOP)


def scripted(*answers: ParsedResponse) -> tuple[Callable[[Asked], Answer], list[dict[str, Any]]]:
    """A server that answers so, and what it was asked."""
    left, asked = list(answers), list[dict[str, Any]]()

    def answer(request: Asked) -> Answer:
        asked.append(json.loads(request.body))
        made = b"".join(API.encode_stream(toolwire.replay(left.pop(0)), model="m"))
        return Answer(made, content_type="text/event-stream")

    return answer, asked


def calling(*calls: ToolCall) -> ParsedResponse:
    return ParsedResponse("", tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS)


def write(folder: Path, text: str) -> Path:
    path = folder / "toolwire.toml"
    path.write_text(text)
    return path


def test_agent_of_a_file_works(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("42\n")
    (tmp_path / "own.py").write_text(
        'import toolwire\n\n\n@toolwire.tool\ndef double(n: int) -> int:\n    """Twice."""\n    return 2 * n\n'
    )
    calls = calling(ToolCall("read_file", {"path": "a.txt"}, "1"), ToolCall("double", {"n": 21}, "2"))
    answer, asked = scripted(calls, ParsedResponse("Both say 42."))
    with serving(answer) as url:
        path = write(
            tmp_path,
            f"""
            [profiles.one]
            provider = "openai"
            model = "m"
            url = "{url}"
            key_env = "A_KEY_OF_MINE"

            [agents.reader]
            system = "Read."
            tier = "walk"
            tools = {{ builtin = ["files"], python = ["own.py"] }}
            budget = {{ rounds = 3, tokens = 1000, prices = {{ input = 1.0, output = 2.0 }} }}
            settings = {{ temperature = 0.5, max_tokens = 99 }}
            timeout = 20
            """,
        )

        async def main() -> tuple[str, list[Any]]:
            async with load_agent(path) as agent:
                assert agent.config.name == "reader"
                assert agent.config.budget.prices.output == 2.0
                events = [event async for event in agent.run("What do they say?")]
                return events[-1].answer, [
                    event.outcome.result.result for event in events if isinstance(event, ToolFinished)
                ]

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("A_KEY_OF_MINE", "secret")
            said, results = asyncio.run(main())
    assert said == "Both say 42."
    assert sorted(map(str, results)) == ["42", "42"]
    assert [tool["function"]["name"] for tool in asked[0]["tools"]] == [
        "list_dir",
        "read_file",
        "search_files",
        "double",
    ]
    assert (asked[0]["messages"][0]["content"], asked[0]["temperature"]) == ("Read.", 0.5)


def test_team_of_a_file_works(tmp_path: Path) -> None:
    answer, asked = scripted(
        calling(ToolCall("counter", {"task": "count"}, "1")),
        ParsedResponse("three"),
        ParsedResponse("There are three."),
    )
    with serving(answer) as url:
        path = write(
            tmp_path,
            f"""
            [profiles.one]
            model = "m"
            url = "{url}"

            [agents.lead]
            [agents.counter]
            system = "Count."

            [teams.office]
            coordinator = "lead"
            members = {{ counter = "Counts things." }}
            """,
        )

        async def main() -> list[Any]:
            async with load_team(path, "office", confirm="defer") as team:
                assert [agent.defers for agent in (team.coordinator, team.members[0].agent)] == [True, True]
                return [event async for event in team.run("How many?")]

        events = asyncio.run(main())
    assert events[-1].answer == "There are three."
    assert any(isinstance(event, MemberEvent) for event in events)
    assert asked[0]["tools"][0]["function"]["description"] == "Counts things."
    assert asked[1]["messages"][0]["content"] == "Count."


def test_handoff_compaction_and_output_of_a_file_work(tmp_path: Path) -> None:
    answer, asked = scripted(
        calling(ToolCall("transfer_to_counter", {}, "1")),
        ParsedResponse('{"number": 3}'),
        ParsedResponse("They counted."),
        ParsedResponse("{}"),
        ParsedResponse('{"number": 4}'),
    )
    (tmp_path / "number.json").write_text(
        '{"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}'
    )
    with serving(answer) as url:
        path = write(
            tmp_path,
            f"""
            [profiles.one]
            model = "m"
            url = "{url}"

            [profiles.writer]
            model = "w"
            url = "{url}"

            [agents.lead]
            profile = "one"

            [agents.counter]
            profile = "one"
            system = "Count."
            output = "number.json"
            context = 500
            compaction = {{ profile = "writer", keep = 1, instructions = "Shorten." }}

            [teams.office]
            coordinator = "lead"
            handoffs = {{ counter = "Counts things." }}
            """,
        )

        async def main() -> tuple[Any, Any]:
            async with load_team(path) as team:
                events = [event async for event in team.run("How many?")]
            history = [Message("user", f"Note {number}: " + "tea, " * 60) for number in range(20)]
            async with load_agent(path, "counter") as agent:
                return events[-1].answer, await agent.ask("And now?", history=history)

        assert asyncio.run(main()) == ('{"number": 3}', {"number": 4})
    assert [body["model"] for body in asked] == ["m", "m", "w", "m", "m"]
    assert asked[1]["messages"][0]["content"] == "Count."
    assert asked[2]["messages"][0]["content"] == "Shorten."
    assert "They counted." in str(asked[3]["messages"])


def test_writer_of_summaries_has_the_fallback_of_its_profile(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [profiles.one]
        model = "m"
        url = "http://127.0.0.1:9"

        [profiles.writer]
        model = "w"
        url = "http://127.0.0.1:9"
        fallback = ["one"]

        [agents.a]
        profile = "one"
        context = 500
        compaction = { profile = "writer" }
        """,
    )

    async def models() -> list[str]:
        async with load_agent(path) as agent:
            assert agent.config.compaction is not None
            return [backend.model for backend in single_models(agent.config.compaction.backend)]

    assert asyncio.run(models()) == ["w", "m"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"agents.a.output: schema.json cannot be read: Expecting value"),
        ("[]", r"agents.a.output: schema.json contains no JSON Schema"),
        (None, r"agents.a.output: schema.json cannot be read: .*No such file"),
    ],
)
def test_file_that_is_no_schema_is_refused(text: str | None, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, BASE + 'url = "http://127.0.0.1:9"\n[agents.a]\noutput = "schema.json"\n')
    if text is not None:
        (tmp_path / "schema.json").write_text(text)

    async def main() -> None:
        async with load_agent(path):
            pass

    with pytest.raises(ConfigurationError, match=message):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ('builtin = ["nowhere"]', r"toolwire.toml: agents.a.tools: the root .*nowhere does not exist"),
        ('python = ["nowhere.py"]', r"toolwire.toml: agents.a.tools: cannot read .*nowhere.py: no Python file"),
        (
            'python = ["mine.py", "same.py"]',
            r"toolwire.toml: agents.a.tools: tool 'stock': this registry has a tool of this name already$",
        ),
        (
            'python = ["mine.py"]',
            r"toolwire.toml: agents.a.tools: tool 'stock': this registry has a tool of this name already; "
            r"the program that opens the agent adds it too",
        ),
    ],
)
def test_tools_that_cannot_be_used_are_reported_with_their_place(tools: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, BASE + f'url = "http://127.0.0.1:9"\n[agents.a]\ntools = {{ {tools} }}\n')
    for name in ("mine.py", "same.py"):
        (tmp_path / name).write_text("import toolwire\n\n@toolwire.tool\ndef stock() -> int:\n    return 3\n")

    @toolwire.tool
    def stock() -> int:
        return 4

    async def main() -> None:
        async with load_agent(path, tools=[stock]):
            pass

    with pytest.raises(ConfigurationError, match=message):
        asyncio.run(main())


@pytest.mark.mission("D58")
@pytest.mark.parametrize(
    ("team", "agent", "profile", "format"),
    [
        (None, None, None, ""),
        (None, True, None, "autobyteus_xml"),
        (None, None, True, "autobyteus_xml"),
        (None, False, True, ""),
        (True, False, None, "autobyteus_xml"),
        (True, None, None, "autobyteus_xml"),
        (False, True, True, ""),
    ],
)
def test_xml_setting_of_the_team_overrides_that_of_the_agent(
    team: bool | None, agent: bool | None, profile: bool | None, format: str
) -> None:
    tools = {} if profile is None else {"use_xml_tool_format": profile}
    made = ModelProfile.model_validate({"provider": "openai", "model": "gpt-5", "url": "http://x", "tools": tools})

    async def main() -> str:
        async with Models() as models:
            return (await models.open(made, use_xml_tool_format=agent, team=team)).format

    assert asyncio.run(main()) == format


@pytest.mark.mission("D57", "D58")
def test_xml_setting_of_the_team_overrides_the_format_of_the_agent() -> None:
    async def main() -> str:
        async with Models() as models:
            profile = ModelProfile(provider="openai", model="gpt-5")
            return (await models.open(profile, format="hermes", team=True)).format

    assert asyncio.run(main()) == "autobyteus_xml"


@pytest.mark.mission("F24")
@pytest.mark.parametrize(
    ("profile", "kind", "api", "format"),
    [
        ({"provider": "anthropic", "model": "claude-sonnet-4-5"}, ApiBackend, "anthropic_messages", ""),
        ({"url": "http://x", "model": "own"}, ApiBackend, "openai_chat", ""),
        ({"model": "gpt-5"}, ApiBackend, "openai_chat", ""),
        (
            {"provider": "vllm", "model": "own", "tools": {"definition_format": "qwen3_coder"}},
            TextBackend,
            "vllm",
            "qwen3_coder",
        ),
        ({"provider": "vllm", "model": "own", "tools": {"definition_format": "qwen"}}, TextBackend, "vllm", "utp_xml"),
        ({"provider": "vllm", "model": "own", "tools": {"call_parser": "hermes"}}, ApiBackend, "vllm", ""),
        ({"model": "local:1.5b"}, TextBackend, "", "forge_xml"),
        ({"provider": "local"}, TextBackend, "", "forge_xml"),
        ({"model": "some/Qwen3-8B-Q4.gguf"}, TextBackend, "", "hermes"),
        ({"model": "some/own.gguf"}, TextBackend, "", "forge_xml"),
        ({"model": "some/Qwen2.5-Coder-1.5B-Instruct-Q8_0.gguf"}, TextBackend, "", "forge_xml"),
        (
            {"model": "qwen2.5-coder-1.5b-instruct.gguf", "tools": {"definition_format": "pythonic"}},
            TextBackend,
            "",
            "pythonic",
        ),
        ({"model": "local:0.5b", "tools": {"definition_format": "anthropic"}}, TextBackend, "", "anthropic_xml"),
    ],
)
def test_profile_decides_how_its_model_is_asked(profile: dict[str, Any], kind: type, api: str, format: str) -> None:
    made = ModelProfile.model_validate(profile)
    small = Small()

    async def main() -> Any:
        async with Models(load=small) as models:
            await models.open(made)
            return await models.open(made)

    backend = asyncio.run(main())
    assert isinstance(backend, kind)
    assert (backend.api, backend.format) == (api, format)  # type: ignore[attr-defined]
    assert small.loaded == ([local_name(made)] if local_name(made) else []), "loaded once for two"


@pytest.mark.parametrize(
    ("model", "tools", "template", "format"),
    [
        ("some/own.gguf", {}, "{{ '[TOOL_CALLS]' + name + '[ARGS]' + arguments }}", "mistral_args"),
        ("some/own.gguf", {}, "{{ content }}", "forge_xml"),
        ("some/own.gguf", {"definition_format": "pythonic"}, "{{ '[TOOL_CALLS]' + name + '[ARGS]' }}", "pythonic"),
        # What is known of a family counts more than the template.
        ("some/Qwen2.5-Coder-7B-Instruct.gguf", {}, "{{ '[TOOL_CALLS]' + name + '[ARGS]' }}", "hermes"),
    ],
)
def test_format_of_an_unknown_local_model_is_that_of_its_chat_template(
    model: str, tools: dict[str, str], template: str, format: str
) -> None:
    class Templated(Small):
        chat_template = template

    async def main() -> Any:
        async with Models(load=Templated()) as models:
            return await models.open(ModelProfile.model_validate({"model": model, "tools": tools}))

    assert asyncio.run(main()).format == format


@pytest.mark.parametrize(
    ("profile", "format", "why"),
    [
        ({}, None, "names no model"),
        ({"model": "own"}, None, "the provider of 'own' is unknown"),
        ({"model": "local:1.5b"}, "openai", "its tools are in the text"),
        ({"url": "http://x", "model": "m", "tools": {"result_format": "hermes"}}, None, "do not go together"),
        ({"provider": "azure", "model": "m"}, None, "has no public endpoint"),
        ({"provider": "vllm", "model": "m", "constrain": "auto"}, None, "an API with strict tools, or calls in"),
        ({"model": "local:1.5b", "constrain": "auto"}, "coach", "in one wire format"),
        (
            {"provider": "groq", "model": "m", "constrain": "auto"},
            "hermes",
            r"field for grammars is known \(llama_cpp, vllm, .*; 'groq' is not one",
        ),
    ],
)
def test_unusable_profile_is_refused_with_a_reason(profile: dict[str, Any], format: str | None, why: str) -> None:
    async def main() -> None:
        async with Models(load=Small()) as models:
            await models.open(ModelProfile.model_validate(profile), format=format)

    with pytest.raises(ConfigurationError, match=why):
        asyncio.run(main())


@pytest.mark.parametrize("mode", ["auto", "required", None])
@pytest.mark.parametrize("profile", [{"provider": "vllm", "model": "m"}, {"model": "local:1.5b"}])
def test_profile_constrains_its_model(profile: dict[str, Any], mode: str | None) -> None:
    class Constrainable(Small):
        def stream(self, messages: Any, /, *, grammar: str = "") -> Generator[str | Finish]:
            yield grammar

    async def main() -> Any:
        async with Models(load=Constrainable()) as models:
            return await models.open(ModelProfile.model_validate({**profile, "constrain": mode}), format="hermes")

    constraint = asyncio.run(main()).constraint
    assert (constraint and constraint.mode) == mode


def test_profile_makes_the_tools_of_an_api_strict() -> None:
    async def main() -> Any:
        async with Models() as models:
            return await models.open(ModelProfile(provider="openai", model="m", constrain="auto"))

    assert asyncio.run(main()).constraint.mode == "auto"


def test_misspelt_provider_is_not_replaced_by_the_one_of_the_model(tmp_path: Path) -> None:
    file = tmp_path / "toolwire.toml"
    file.write_text("[profiles.p]\nprovider = 'opnai'\nmodel = 'claude-sonnet-4-5'\n[agents.a]\n")

    async def main() -> None:
        async with load_agent(file):
            pass

    with pytest.raises(ConfigurationError, match=r"toolwire.toml:2: profiles.p.provider: .*; did you mean openai"):
        asyncio.run(main())
    assert ModelProfile(provider="local").provider == "local"


@pytest.mark.parametrize(("format", "formats"), [(None, ["", ""]), ("hermes", ["hermes"] * 2), ("openai", ["", ""])])
def test_a_format_keeps_the_models_that_answer_where_the_first_fails(format: str | None, formats: list[str]) -> None:
    profiles = [ModelProfile(provider=provider, model="m") for provider in ("openai", "anthropic")]

    async def main() -> Any:
        async with Models() as models:
            return await models.open_chain(profiles, format=format)

    backend = asyncio.run(main())
    assert [(inner.api, inner.format) for inner in backend.backends] == [
        ("openai_chat", formats[0]),
        ("anthropic_messages", formats[1]),
    ]


BASE = "[profiles.p]\nmodel = 'm'\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[agents.a]\n", ":1: agents.a: it names no profile, and there is none"),
        (BASE + "[profiles.q]\n[agents.a]\n", ":4: agents.a: it names no profile, and there are several"),
        (BASE + "[agents.a]\nprofile = 'x'\n", ":4: agents.a.profile: there is no profile 'x'; there are p"),
        (BASE + "[agents.a]\ntier = 'fly'\n", ":4: agents.a.tier: a tier is one of crawl, walk, run, not 'fly'"),
        (BASE + "[agents.a]\ntier = 'run'\ngate = {}\n", ":3: agents.a: an agent has a tier or a gate, not both"),
        (BASE + "[agents.a]\ngate = {min = 'run', max = 'walk'}\n", "min is run, above max"),
        (BASE + "[agents.a]\nformat = 'hermess'\n", ":4: agents.a.format: unknown wire format 'hermess'"),
        (BASE + "[agents.a]\ntools = {builtins = ['.']}\n", ":4: agents.a.tools.builtins: there is no such key"),
        (BASE + "[agents.a.tools]\nmcp = ['x']\n", ":4: agents.a.tools.mcp: there is no MCP server 'x'; there is none"),
        (BASE + "[agents.a.budget]\nrounds = 0\n", ":4: agents.a.budget.rounds: Input should be greater than or equal"),
        (BASE + "[agents.a]\nenvelope = 3\n", ":4: agents.a.envelope: a table or an object is expected"),
        (
            BASE + "[agents.a]\n[teams.t]\ncoordinator = 'b'\nmembers = {a = 'x'}",
            ":5: teams.t.coordinator: there is no",
        ),
        (BASE + "[agents.a]\n[teams.t]\ncoordinator = 'a'\nmembers = {b = 'x'}", ":6: teams.t.members: there is no"),
        (
            BASE + "[agents.a]\n[teams.t]\ncoordinator = 'a'\nmembers = {a = 'x'}",
            "a coordinates, so it cannot be a member",
        ),
        (
            BASE + "[agents.a]\n[teams.t]\ncoordinator = 'a'\nmembers = {}",
            ":4: teams.t: a team needs members or handoffs",
        ),
        (
            BASE + "[agents.a]\n[teams.t]\ncoordinator = 'a'\nhandoffs = {a = 'x'}",
            ":6: teams.t.handoffs: a coordinates, so it cannot be handed over to",
        ),
        (BASE + "[agents.a]\n[teams.t]\ncoordinator = 'a'\nhandoffs = {b = 'x'}", ":6: teams.t.handoffs: there is no"),
        (BASE + "[agents.a]\ncompaction = true\n", ":3: agents.a: compaction needs context"),
        (
            BASE + "[agents.a]\ncontext = 1000\n[agents.a.compaction]\nprofile = 'x'\n",
            ":6: agents.a.compaction.profile: there is no profile 'x'; there are p",
        ),
        (
            BASE + "[agents.a]\ncontext = 1000\ncompaction = {kep = 3}\n",
            ":5: agents.a.compaction.kep: there is no such key",
        ),
        (BASE + "[agents.a]\n[teams.t]\ncoordinator = 'a'\nmembers = {b = ''}", "teams.t.members.b.description"),
    ],
)
def test_mistake_in_a_file_is_reported_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(path)
    assert str(caught.value).startswith(f"{path}:")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [("", "name the agent: there are a, b"), ("c", "there is no agent 'c'; there are a, b"), ("t", "t is a team")],
)
def test_unknown_agent_is_refused(name: str, said: str, tmp_path: Path) -> None:
    team = "[teams.t]\ncoordinator = 'a'\nmembers = {b = 'x'}\n"
    path = write(tmp_path, f"{BASE}[agents.a]\n[agents.b]\n{team}")

    async def main() -> None:
        async with load_agent(path, name):
            pass

    with pytest.raises(ConfigurationError, match=said):
        asyncio.run(main())


def test_file_without_agents_says_what_to_add(tmp_path: Path) -> None:
    path = write(tmp_path, "")

    async def main() -> None:
        async with load_agent(path):
            pass

    with pytest.raises(ConfigurationError, match=r"there is no agent: add a table agents\.NAME"):
        asyncio.run(main())


def test_agent_can_be_made_from_values() -> None:
    @toolwire.tool(tier=Tier.RUN)
    def wipe() -> str:
        """Wipes."""
        return "gone"

    configuration = Configuration(
        profiles={"small": ModelProfile(model="local:1.5b")},
        agents={"lead": AgentTable(tier=Tier.RUN, budget={"rounds": 2}), "other": AgentTable()},  # type: ignore[arg-type]
        teams={"both": AgentTeamConfig(coordinator="lead", members={"other": "Helps."})},  # type: ignore[dict-item]
    )

    async def main() -> tuple[str, Any]:
        async with Models(load=Small()) as models:
            given = Environment(models=models, tools=[wipe], policy=Policy((Rule("deny", "wipe", reason="Never."),)))
            async with open_agent(configuration, "lead", given) as agent:
                executor = agent._executor(agent.registry, None)
                outcome = await executor.run(ToolCall("wipe", {}, "1"), toolwire.policy.session.Session(tier=Tier.RUN))
                return await agent.ask("Who are you?"), outcome.result.error

    said, error = asyncio.run(main())
    assert said == "I am small."
    assert "Never." in error


def test_connections_are_closed_after_an_error(tmp_path: Path) -> None:
    """A warning about a connection that was left open would fail this."""
    answer, _ = scripted(ParsedResponse("one"))
    with serving(answer) as url:
        path = write(tmp_path, f"[profiles.p]\nmodel = 'm'\nurl = '{url}'\n[agents.a]\n")

        async def main() -> None:
            async with load_agent(path) as agent:
                await agent.ask("?")
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            asyncio.run(main())


def test_unusable_python_file_of_tools_is_refused(tmp_path: Path) -> None:
    for text, said in (
        ("1 / 0\n", "cannot be run: ZeroDivisionError"),
        ("x = 1\n", "makes no tool"),
        (None, "no Python"),
    ):
        if text is not None:
            (tmp_path / "own.py").write_text(text)
        else:
            (tmp_path / "own.py").unlink()
        path = write(tmp_path, BASE.replace("'m'", "'local:1.5b'") + "[agents.a]\ntools = {python = ['own.py']}\n")

        async def main(path: Path = path) -> None:
            async with load_agent(path, models=Models(load=Small())):
                pass

        with pytest.raises(toolwire.ToolwireError, match=said):
            asyncio.run(main())


def test_servers_of_a_file_provide_tools_once_they_are_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    program = Path(__file__).parents[2] / "integration" / "sdk_mcp.py"
    path = write(
        tmp_path,
        f"""
        [profiles.p]
        model = "local:1.5b"

        [agents.a]
        tier = "run"
        tools = {{ mcp = ["probe"] }}

        [mcp.servers.probe]
        command = {json.dumps(sys.executable)}
        args = [{json.dumps(str(program))}, "stdio"]
        """,
    )
    asked: list[str] = []

    async def yes(question: ServerQuestion) -> bool:
        asked.append(question.server)
        return True

    async def main(approve: Any) -> Any:
        async with Models(load=Small()) as models, load_agent(path, models=models, approve=approve) as agent:
            session = toolwire.policy.session.Session(tier=Tier.RUN)
            outcome = await agent._executor(agent.registry, None).run(ToolCall("add", {"a": 1, "b": 2}, "1"), session)
            return outcome.result.text, len(agent.registry)

    with pytest.raises(
        toolwire.ToolError, match=r"probe cannot be used: .* `toolwire mcp approve probe` asks about it"
    ):
        asyncio.run(main(None))
    text, tools = asyncio.run(main(yes))
    assert "3" in text
    assert tools > 3
    assert asyncio.run(main(None))[0] == text, "it was approved"
    assert asked == ["probe"]


def test_result_in_an_envelope_has_a_handle_for_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("".join(f"line {at}\n" for at in range(2_000)))
    path = write(
        tmp_path,
        BASE.replace("'m'", "'local:1.5b'")
        + "[agents.a]\ntier = 'walk'\ntools = { builtin = ['.'] }\nenvelope = { budget = 1000 }\n",
    )

    async def main() -> tuple[str, str]:
        async with Models(load=Small()) as models, load_agent(path, models=models) as agent:
            executor = agent._executor(agent.registry, None)
            session = toolwire.policy.session.Session(tier=Tier.WALK)
            first = (await executor.run(ToolCall("read_file", {"path": "long.txt"}, "1"), session)).result.text
            handle = re.search(r"res_[0-9a-f]{12}", first)
            assert handle
            call = ToolCall("read_handle", {"handle": handle[0], "chunk": 2}, "2")
            return first, (await executor.run(call, session)).result.text

    first, second = asyncio.run(main())
    assert len(first) <= 1000
    assert "line 0" in first
    assert "chunk 2" in second


def test_coach_can_choose_the_format(tmp_path: Path) -> None:
    path = write(tmp_path, BASE.replace("'m'", "'local:1.5b'") + "[agents.a]\nformat = 'coach'\n")

    async def main() -> tuple[str, Any]:
        async with Models(load=Small()) as models, load_agent(path, models=models) as agent:
            return await agent.ask("Who are you?"), agent.backend

    said, backend = asyncio.run(main())
    assert said == "I am small."
    assert isinstance(backend, CoachedBackend)
    assert "forge_xml" in backend.coach.formats


FALLBACK = """
[profiles.main]
provider = "openai_chat"
model = "large"
url = "{url}/broken"
fallback = ["spare"]
retry = {{ attempts = 2, wait = 0.0 }}

[profiles.spare]
provider = "openai_chat"
model = "small"
url = "{url}"

[agents.a]
profile = "main"
"""


def test_profile_falls_back_to_another(tmp_path: Path) -> None:
    paths: list[str] = []
    answer, _ = scripted(ParsedResponse("From the spare."))

    def serve(request: Asked) -> Answer:
        paths.append(request.path)
        return Answer(b'{"error": "down"}', status=503) if request.path.startswith("/broken") else answer(request)

    async def main() -> str:
        async with load_agent(file) as agent:
            return await agent.ask("Who are you?")

    with serving(serve) as url:
        file = tmp_path / "toolwire.toml"
        file.write_text(FALLBACK.format(url=url), "utf-8")
        assert asyncio.run(main()) == "From the spare."
    assert paths == ["/broken/chat/completions"] * 2 + ["/chat/completions"]


@pytest.mark.parametrize(
    ("fallback", "message"),
    [
        ('["other"]', "there is no profile 'other'"),
        ('["main"]', "cannot fall back to itself"),
        ('["spare"]\n[profiles.spare]\nfallback = ["third"]\n[profiles.third]', "a fallback of its own"),
    ],
)
def test_wrong_fallback_is_an_error_of_the_file(tmp_path: Path, fallback: str, message: str) -> None:
    file = tmp_path / "toolwire.toml"
    file.write_text(f"[profiles.main]\nfallback = {fallback}\n", "utf-8")
    with pytest.raises(ConfigurationError, match=message):
        load_configuration(file)


# -- servers without a name ------------------------------------------------------------------------------------------


def test_facts_of_a_server_change_its_requests(tmp_path: Path) -> None:
    answer, asked = scripted(ParsedResponse("Hello."))
    path = tmp_path / "toolwire.toml"
    with serving(answer) as base:
        path.write_text(
            f"""
[profiles.mine]
provider = "openai_compatible"
model = "m"
url = "{base}/v1"
settings = {{ max_tokens = 9 }}
server = {{ max_tokens = "max_completion_tokens", reasoning = "thoughts", id_length = 16 }}

[agents.a]
profile = "mine"
""",
            encoding="utf-8",
        )

        async def run() -> None:
            async with load_agent(path, "a") as agent:
                parts = (toolwire.ReasoningPart("hm"), toolwire.TextPart("Hi."), ToolCall("f", {}, "c" * 20))
                history = [Message("user", "Hi."), Message("assistant", parts)]
                await agent.ask("Go on.", history=history)

        asyncio.run(run())
    (body,) = asked
    assert body["max_completion_tokens"] == 9
    message = body["messages"][1]
    assert message["thoughts"] == "hm"
    assert len(message["tool_calls"][0]["id"]) == 16


def test_facts_of_a_server_need_an_api_of_chat_completions(tmp_path: Path) -> None:
    path = tmp_path / "toolwire.toml"
    path.write_text(
        """
[profiles.mine]
provider = "anthropic"
model = "m"
server = { strict = true }

[agents.a]
profile = "mine"
""",
        encoding="utf-8",
    )

    async def run() -> None:
        async with load_agent(path, "a"):
            pass

    with pytest.raises(ConfigurationError, match="anthropic_messages is not an API of Chat Completions"):
        asyncio.run(run())

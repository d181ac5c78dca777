"""Names in a policy that name nothing are said, and those that let calls run are refused."""

import asyncio
import warnings
from pathlib import Path
from typing import Any

import pytest

from toolwire import ParsedResponse, Tier, ToolCall, ToolDefinition
from toolwire.agent import Agent, load_agent
from toolwire.builtin.toolsets import builtin_tools
from toolwire.cli import run
from toolwire.errors import ConfigurationError, PolicyWarning
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.policy.lint import BUILTIN, checked, misnomers
from toolwire.policy.policy import Limit, Policy, Rule, Text
from toolwire.policy.session import Session
from toolwire.testing import ScriptedBackend


def delete_file(path: str, force: bool = False) -> str:
    """Deletes."""
    return path


TOOLS = [
    *ToolRegistry([delete_file]),
    ToolDefinition("create_issue", server="github", parameters={"type": "object", "properties": {"title": {}}}),
    ToolDefinition("anything"),
]
ANY = Text("*")


@pytest.mark.parametrize(
    ("one", "near", "certain"),
    [
        (Rule("deny", "delet_file"), "delete_file", True),
        (Rule("ask", "deleteFile"), "delete_file", True),
        (Rule("allow", "delet_file"), "delete_file", False),
        (Rule("deny", "delet_fil*"), "delete_file", False),
        (Rule("deny", "remove*"), None, None),
        (Rule("deny", "launch"), "", False),
        (Rule("deny", "DELETE_FILE"), None, None),
        (Rule("deny", "write_file"), None, None),
        (Rule("deny", "mail.send"), None, None),
        (Rule("deny", "github.create_isue"), "github.create_issue", False),
        (Rule("deny", "creat_issue"), "create_issue", False),
        (Limit(3, tool="creat_issue"), "create_issue", False),
        (Rule("deny", "github.close"), "", False),
        (Rule("deny", "create_issue"), None, None),
        (Rule("allow", "create_issue"), "github.create_issue", False),
        (Rule("deny", "delete_file", {"pth": ANY}), "path", True),
        (Rule("deny", "delete_file", {"url": ANY}), "", True),
        (Rule("allow", "delete_file", {"url": ANY}), "", False),
        (Rule("deny", "create_issue", {"body": ANY}), "", False),
        (Rule("deny", "anything", {"url": ANY}), None, None),
        (Rule("deny", "delete_file", {"path": ANY}), None, None),
        (Rule("deny", "delete_*", {"url": ANY}), None, None),
        (Rule("deny", "delete_*", {"pth": ANY}), "path", False),
        (Limit(3, tool="delet_file"), "delete_file", True),
        (Limit(3), None, None),
        (Rule("allow", "github.create_issue", confirm=False), "", False),
        (Rule("allow", "*", confirm=False), None, None),
    ],
)
def test_what_names_nothing(one: Rule | Limit, near: str | None, certain: bool | None) -> None:
    policy = Policy((one,)) if isinstance(one, Rule) else Policy(limits=(one,))
    found = misnomers(policy, TOOLS)
    assert [(each.near, each.certain) for each in found] == ([] if near is None else [(near, certain)])
    for each in found:
        assert str(each).startswith("policy.") and (near or "") in str(each)


def test_the_built_in_tools_may_be_named_anywhere(tmp_path: Path) -> None:
    assert {one.definition.name for one in builtin_tools(tmp_path)} == BUILTIN


def test_an_executor_refuses_what_would_deny_nothing() -> None:
    with pytest.raises(ConfigurationError) as caught:
        ToolExecutor(ToolRegistry([delete_file]), policy=Policy((Rule("allow"), Rule("deny", "delet_file"))))
    said = "policy.rules.1: no tool is called 'delet_file', so it denies nothing; did you mean delete_file?"
    assert str(caught.value) == said
    for check in (False, "warn"):
        ToolExecutor(ToolRegistry([delete_file]), policy=Policy((Rule("deny", "delet_file"),)), check=check)


def test_a_tool_that_cannot_be_used_is_known_by_its_name_alone() -> None:
    broken = {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}
    registry = ToolRegistry([ToolDefinition("odd", parameters=broken), delete_file])
    ToolExecutor(registry, policy=Policy((Rule("deny", "odd", {"b": ANY}),)))
    with pytest.raises(ConfigurationError, match="did you mean delete_file"):
        ToolExecutor(registry, policy=Policy((Rule("deny", "delet_file"),)))


def test_a_tool_that_is_switched_off_may_be_named() -> None:
    registry = ToolRegistry([delete_file, ToolDefinition("delete_files")])
    registry.enable("delete_file", enabled=False)
    ToolExecutor(registry, policy=Policy((Rule("deny", "delete_file"),)))


def test_a_tool_that_comes_later_hinders_no_run() -> None:
    registry = ToolRegistry([delete_file])
    agent = Agent(
        ScriptedBackend([ParsedResponse("hi")]), registry, policy=Policy((Rule("deny", "send_mail"),)), telemetry=False
    )
    registry.register(lambda: "", name="send_mails", description="Does.")
    assert asyncio.run(agent.ask("hello")) == "hi"


def test_a_warning_that_is_an_error_is_a_result() -> None:
    executor = ToolExecutor(ToolRegistry([delete_file]), policy=Policy((Rule("allow", "delet_file"),)))
    call, session = ToolCall("delete_file", {"path": "a"}, "1"), Session(tier=Tier.RUN)
    outcome = asyncio.run(executor.run(call, session))  # in tests warnings are errors
    assert outcome.issue is not None
    assert "PolicyWarning: policy.rules.0: no tool is called 'delet_file'" in outcome.result.text
    assert asyncio.run(executor.run(call, session)).issue is None


def test_one_tool_in_place_of_another_is_compared_too() -> None:
    registry = ToolRegistry([delete_file])
    executor = ToolExecutor(registry, policy=Policy((Rule("deny", "delete_file"),)))
    call, session = ToolCall("removed", {}, "1"), Session(tier=Tier.RUN)
    asyncio.run(executor.run(call, session))
    registry.remove("delete_file")
    registry.register(lambda: "", name="delete_files", description="Does.")
    with pytest.warns(PolicyWarning, match="did you mean delete_files"):
        asyncio.run(executor.run(call, session))


def test_an_executor_warns_once_the_tools_are_there() -> None:
    registry = ToolRegistry()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        executor = ToolExecutor(registry, policy=Policy((Rule("deny", "launch"), Rule("deny", "anything"))))
        registry.register(delete_file)
        assert not heard
        for _ in range(2):
            asyncio.run(executor.run(ToolCall("delete_file", {"path": "a"}), Session(tier=Tier.RUN)))
        registry.register(lambda: "", name="anything", description="Does.")
        asyncio.run(executor.run(ToolCall("delete_file", {"path": "a"}), Session(tier=Tier.RUN)))
    assert [str(one.message).split(",")[0] for one in heard] == [
        "policy.rules.0: no tool is called 'launch'",
        "policy.rules.1: no tool is called 'anything'",
    ]
    assert {one.category for one in heard} == {PolicyWarning}


TOOL_FILE = '''
import toolwire

@toolwire.tool
def fetch(url: str) -> str:
    """Fetch a page."""
    return url
'''


@pytest.mark.parametrize(
    ("tool", "status", "said"),
    [("launch", 0, "policy.rules.0: no tool is called 'launch'"), ("fetchh", 2, "did you mean fetch?")],
)
def test_commands_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str], tool: str, status: int, said: str) -> None:
    (tmp_path / "tools.py").write_text(TOOL_FILE)
    (tmp_path / "rules.toml").write_text(f'[[policy.rules]]\neffect = "deny"\ntool = "{tool}"\n')
    given = ["call", "fetch", '{"url": "a"}', "--tools", str(tmp_path / "tools.py")]
    assert run([*given, "--policy", str(tmp_path / "rules.toml")]) == status
    assert said in capsys.readouterr().err


def test_agents_of_a_file_are_compared_with_its_policy(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOL_FILE)
    agent = '[agents.{}]\nprofile = "p"\ntools = {{ python = ["tools.py"] }}\n'
    text = '[profiles.p]\nprovider = "ollama"\nmodel = "m"\n[[policy.rules]]\neffect = "deny"\ntool = "fetchh"\n'
    path = tmp_path / "toolwire.toml"

    async def opened(name: str) -> None:
        async with load_agent(path, name):
            pass

    path.write_text(text + agent.format("a"))
    with pytest.raises(ConfigurationError, match=r"toolwire\.toml: policy\.rules\.0: .*did you mean fetch\?"):
        asyncio.run(opened("a"))
    path.write_text(text + agent.format("a") + agent.format("b"))
    with pytest.warns(PolicyWarning, match="did you mean fetch"):
        asyncio.run(opened("b"))


def closed(name: str, *arguments: str, server: str = "", **more: Any) -> ToolDefinition:
    properties = {argument: {} for argument in arguments}
    parameters = {"type": "object", "properties": properties, "additionalProperties": False, **more}
    return ToolDefinition(name, server=server, parameters=parameters)


def test_an_unknown_argument_is_certain_only_if_all_of_the_meant_tools_are_closed_and_ours() -> None:
    ours, open_ended = closed("send", "to"), closed("send", "to", server="mail", additionalProperties=None)
    rule = Policy((Rule("deny", "send", {"url": ANY}),))
    assert [each.certain for each in misnomers(rule, [ours])] == [True]
    assert [each.certain for each in misnomers(rule, [ours, closed("send", "to", server="mail")])] == [False]
    assert [each.certain for each in misnomers(rule, [ours, open_ended])] == [False]
    half_open = ToolDefinition("send", parameters={"type": "object", "properties": {"to": {}}})
    assert [each.certain for each in misnomers(rule, [half_open])] == [False]
    assert [each.certain for each in misnomers(rule, [ours, half_open])] == [False]


def test_arguments_of_a_tool_that_takes_others_are_not_misspelled() -> None:
    rule = Policy((Rule("deny", "send", {"url": ANY}),))
    for more in ({"patternProperties": {"^u": {}}}, {"additionalProperties": True}, {"additionalProperties": {}}):
        expected = [] if more != {"additionalProperties": {}} else [False]
        assert [each.certain for each in misnomers(rule, [closed("send", "to", **more)])] == expected


def test_checked_returns_what_is_not_certain_and_raises_for_the_rest() -> None:
    uncertain = Policy((Rule("allow", "delet_file"),))
    assert [each.name for each in checked(uncertain, TOOLS)] == ["delet_file"]
    with pytest.raises(ConfigurationError, match=r"policy\.rules\.1: no tool is called 'delet_file', so it denies"):
        checked(Policy((Rule("allow"), Rule("deny", "delet_file"))), TOOLS)


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (Rule("allow", "delet_file"), "policy.rules.0: no tool is called 'delet_file', so it allows nothing"),
        (Rule("ask", "delet_file"), "policy.rules.0: no tool is called 'delet_file', so it asks about nothing"),
        (Limit(3, tool="delet_file"), "policy.limits.0: no tool is called 'delet_file', so it limits nothing"),
        (
            Rule("deny", "delete_file", {"url": ANY}),
            "policy.rules.0: delete_file has no argument 'url', so it denies nothing (there are force, path)",
        ),
    ],
)
def test_a_misnomer_says_what_the_rule_then_does(one: Rule | Limit, message: str) -> None:
    policy = Policy((one,)) if isinstance(one, Rule) else Policy(limits=(one,))
    assert str(misnomers(policy, TOOLS)[0]).startswith(message)

"""Rules about commands: five hundred hostile ones and more, of which none slips through a rule that allows."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.security.hostile_commands import ALLOWED, DENIED, HARMLESS, ORDINARY, VARIANTS, hostile

from toolwire import Tier, ToolCall, ToolDefinition
from toolwire.builtin.run_command import CommandSettings
from toolwire.builtin.toolsets import command_tools
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.policy.policy import Allow, Command, Context, Deny, Policy, Rule
from toolwire.policy.session import Session

RUN = ToolDefinition("execute_command", tier=Tier.RUN)
CONTEXT = Context(tier=Tier.RUN)
LINES = list(hostile())


def policy(name: str) -> Policy:
    rule = Rule("allow", "execute_command", {"command": ALLOWED[name]})
    return Policy((rule,), ask_by_default=frozenset({Tier.RUN}))


def test_there_are_many_of_many_kinds() -> None:
    distinct = {(allowed, repr(line)) for allowed, _, line in LINES}
    assert len(distinct) >= 1_500
    assert len({family for _, family, _ in LINES}) >= 15


@pytest.mark.mission("C37")
def test_no_hostile_command_slips_through_a_rule_that_allows() -> None:
    slipped = [
        (allowed, family, line)
        for allowed, family, line in LINES
        if isinstance(policy(allowed).decide(ToolCall("execute_command", {"command": line}), RUN, CONTEXT), Allow)
    ]
    assert slipped == []


@pytest.mark.parametrize(("name", "line"), ORDINARY)
def test_ordinary_commands_are_allowed(name: str, line: Any) -> None:
    assert ALLOWED[name].surely(line)


@pytest.mark.parametrize(
    "line",
    [
        *("npm rum x", "npm urn x", "npm t", "npm c set script-shell ./x", "npm exe x", "yarn x", "pnpm x", "yarn t"),
        *("cargo r", "bundle e x", "bundle exe x", "pipenv run x", "conda run x", "pdm run x"),
    ],
)
def test_other_names_of_what_runs_code_have_to_be_named_too(line: str) -> None:
    program, subcommand, *_ = line.split()
    assert not Command((program,)).surely(line)
    assert Command((program, subcommand)).surely(line)


@pytest.mark.parametrize("line", ["npm ls", "npm i x", "yarn add x", "pnpm install", "cargo build", "bundle list"])
def test_other_subcommands_do_not(line: str) -> None:
    assert Command((line.split()[0],)).surely(line)


def test_none_of_them_runs(tmp_path: Path) -> None:
    """The same through the executor and the tool itself, even with a shell; whatever runs leaves a trace."""
    programs, root = tmp_path / "programs", tmp_path / "root"
    programs.mkdir()
    root.mkdir()
    names = {words.split()[0] for words in ALLOWED} | {"touch", "rm", "curl", "sudo", "sh", "bash"}
    for name in names:
        (programs / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/ran\n")
        (programs / name).chmod(0o755)
    settings_ = CommandSettings(shell=str(programs / "sh"), environment={"PATH": str(programs)})
    (tool,) = command_tools(root, settings=settings_)

    async def run() -> list[Any]:
        results = []
        for allowed, _, line in LINES:
            registry = ToolRegistry()
            registry.register(tool, requires_confirmation=False)
            executor = ToolExecutor(registry, policy=policy(allowed))
            calls = [ToolCall("execute_command", {"command": line}, "1")]
            results += await executor.execute(calls, Session(tier=Tier.RUN))
        return results

    assert not any(result.success for result in asyncio.run(run()))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", VARIANTS)
def test_rules_that_deny_catch_variants(name: str) -> None:
    denying = Policy((Rule("deny", "execute_command", {"command": DENIED[name]}),))
    missed = [
        line
        for line in VARIANTS[name]
        if not isinstance(denying.decide(ToolCall("execute_command", {"command": line}), RUN, CONTEXT), Deny)
    ]
    assert missed == []


@pytest.mark.parametrize(("name", "line"), HARMLESS)
def test_rules_that_deny_leave_others_alone(name: str, line: Any) -> None:
    assert not DENIED[name].maybe(line)


ANY = Command(("*",), options=("*",))
_PIECES = st.sampled_from(
    [
        *"ab =-+@.,:%^_/é\t\n\r\"'\\`$(){}[]*?~#!;&|<>",
        "a",
        " ",
        " ",
        "\u00a0",
        "\u200b",
        "$a",
        "=x",
        "a=b",
        "~a",
        "#a",
        "-x",
    ]
)


@settings(max_examples=300)
@given(st.lists(_PIECES, min_size=1, max_size=8).map("".join))
def test_what_surely_fits_is_what_a_shell_reads(text: str) -> None:
    """A real shell makes the same words of it, and nothing else."""
    if not ANY.surely(text):
        return
    script = f'show() {{ for word do printf "%s\\0" "$word"; done; }}\nshow {text}\n'
    said = subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout.decode()
    assert said.split("\0")[:-1] == text.split()


@pytest.mark.parametrize(
    "line",
    [
        "rm " * 20_000, "git -x " * 9_000, "a;" * 30_000, "'" * 60_000, "sh -c " * 10_000, "$(" * 30_000,
        '"\\"' * 15_000, ["rm"] * 30_000, ["sh", "-c", "x y " * 10_000], "sh -c '" * 9_000, "(" * 65_000,
    ],
    ids=lambda line: repr(line)[:12],
)  # fmt: skip
def test_long_commands_are_decided_about_in_short_time(line: Any) -> None:
    for rule in (Command(("rm", "-rf")), Command(("git", "push"), exact=True)):
        assert not rule.surely(line)
        rule.maybe(line)

"""A policy in TOML says what code says; what cannot be meant is an error with its place."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.property.test_policy import policies

from toolwire import ConfigurationError, Tier, ToolCall, ToolDefinition
from toolwire.config.tables import load_configuration
from toolwire.policy.policy import (
    Allow,
    AnyOf,
    Ask,
    Command,
    Context,
    Host,
    Limit,
    Matcher,
    Number,
    PathGlob,
    Policy,
    Rule,
    Text,
)
from toolwire.policy.rule_tables import PolicyTable, as_table

WHOLE = """
[policy]
ask_when_untrusted = "walk"

[policy.default]
run = "ask"
crawl = "deny"

[[policy.rules]]
effect = "allow"
tool = "write_file"
arguments = { path = { glob = "src/**", base = "/srv" }, mode = { one_of = ["w", 1, true] } }
reason = "sources are ours"
even_untrusted = true

[[policy.rules]]
effect = "deny"

[policy.rules.arguments]
command = { begins = ["npm", "install"], options = ["-D", "@*"] }
url = { host = "*.Example.org" }

[[policy.rules]]
effect = "ask"
tool = "mail.send_*"
arguments.text = { text = "*password*" }
arguments.exact = { exactly = ["git", "status"] }
arguments.amount = { at_least = 1, at_most = 100.5 }
only_untrusted = true

[[policy.rules]]
effect = "allow"
tool = "pay"
asked_for = ["pay", "transfer to"]
confirm = false

[[policy.limits]]
tool = "send_*"
calls = 5
seconds = 3600

[[policy.limits]]
calls = 100
running = 60.5
"""

POLICY = Policy(
    (
        Rule(
            "allow",
            "write_file",
            {"path": PathGlob("src/**", "/srv"), "mode": AnyOf(("w", 1, True))},
            "sources are ours",
            even_untrusted=True,
        ),
        Rule(
            "deny",
            arguments={"command": Command(("npm", "install"), options=("-D", "@*")), "url": Host("*.example.org")},
        ),
        Rule(
            "ask",
            "mail.send_*",
            {"text": Text("*password*"), "exact": Command(("git", "status"), exact=True), "amount": Number(1, 100.5)},
            only_untrusted=True,
        ),
        Rule("allow", "pay", asked_for=("pay", "transfer to"), confirm=False),
    ),
    (Limit(5, 3600.0, "send_*"), Limit(100, running=60.5)),
    Tier.WALK,
    frozenset({Tier.RUN}),
    frozenset({Tier.CRAWL}),
)


def written(value: Any) -> str:
    """A TOML value; what JSON writes is TOML where nothing is null."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {written(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)


def load(tmp_path: Path, text: str) -> Policy:
    path = tmp_path / "toolwire.toml"
    path.write_text(text, "utf-8")
    return load_configuration(path).policy.made()


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    assert load(tmp_path, WHOLE) == POLICY


def test_nothing_said_is_the_policy_of_code(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Policy()
    assert load(tmp_path, '[policy]\nask_when_untrusted = "never"') == Policy(ask_when_untrusted=None)


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    assert load(tmp_path, f"policy = {written(as_table(POLICY))}") == POLICY
    assert as_table(Policy()) == {}


@given(policies)
def test_any_policy_is_read_back_as_it_decides(policy: Policy) -> None:
    table = as_table(policy)
    again = PolicyTable.model_validate(tomllib.loads(f"policy = {written(table)}")["policy"]).made()
    assert as_table(again) == table


class Own:
    def surely(self, value: Any) -> bool:
        return True

    def maybe(self, value: Any) -> bool:
        return True


@pytest.mark.parametrize("matcher", [Own(), AnyOf((None,))])
def test_what_toml_has_no_words_for_cannot_be_written(matcher: Matcher) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        as_table(Policy((Rule("deny", arguments={"a": matcher}),)))


RULE = '[[policy.rules]]\neffect = "allow"\n'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[policy]\nask_when_untrusted = "high"', 2, "a tier is one of crawl, walk, run, not 'high'"),
        ("[policy]\nask = true", 2, "Extra inputs are not permitted"),
        ('[policy.default]\nrun = "maybe"', 2, "'allow', 'ask' or 'deny' (it is 'maybe')"),
        ('[[policy.rules]]\neffect = "alow"', 2, "'allow', 'ask' or 'deny' (it is 'alow')"),
        ('[[policy.rules]]\neffect = "dney"', 2, "(it is 'dney'); did you mean deny?"),
        ('[[policy.rules]]\nefect = "deny"\neffect = "deny"', 2, "did you mean effect?"),
        ('[policy]\ndefaults = { run = "ask" }', 2, "did you mean default?"),
        ("[policy.default]\nwlak = 1", 2, "did you mean walk?"),
        ("[[policy.limits]]\ncals = 1\ncalls = 1", 2, "did you mean calls?"),
        ('[[policy.rules]]\ntool = "a"', 1, "effect: Field required"),
        (f'{RULE}{RULE}tool = "my tool"', 5, "fits no tool: no name holds ' '"),
        (f'{RULE}tool = "a[b"', 3, "bracket is not closed"),
        (f'{RULE}tool = ""', 3, "not empty"),
        (f'{RULE}arguments = {{ path = {{ globb = "a" }} }}', 3, "unknown matcher 'globb'; did you mean glob?"),
        (f'{RULE}arguments = {{ path = "a" }}', 3, "an argument is described by a table"),
        (f"{RULE}arguments = {{ path = {{}} }}", 3, "an argument is described by a table"),
        (f'{RULE}arguments = {{ path = {{ base = "/" }} }}', 3, "unknown matcher 'base'"),
        (f'{RULE}arguments = {{ a = {{ glob = "x", text = "y" }} }}', 3, "glob and text do not go together"),
        (f'{RULE}arguments = {{ a = {{ text = "x", base = "/" }} }}', 3, "text and base do not go together"),
        (f"{RULE}arguments = {{ a = {{ text = 5 }} }}", 3, "text is text, not 5"),
        (f'{RULE}arguments = {{ a = {{ glob = "" }} }}', 3, "the glob is empty"),
        (f'{RULE}arguments = {{ a = {{ glob = "src/../x" }} }}', 3, "'..'"),
        (f'{RULE}arguments = {{ a = {{ glob = "~/x" }} }}', 3, "fits no path"),
        (f'{RULE}arguments = {{ a = {{ glob = "C:\\\\x" }} }}', 3, "fits no path"),
        (f'{RULE}arguments = {{ a = {{ glob = "x", base = "srv" }} }}', 3, "no absolute path"),
        (f'{RULE}arguments = {{ a = {{ begins = "npm" }} }}', 3, "a list of its words"),
        (f"{RULE}arguments = {{ a = {{ begins = [] }} }}", 3, "a list of its words"),
        (f'{RULE}arguments = {{ a = {{ begins = ["npm install"] }} }}', 3, "each is an item of its own: ['npm', 'ins"),
        (f'{RULE}arguments = {{ a = {{ exactly = ["a", "&&", "b"] }} }}', 3, "'&&' is the shell's"),
        (f'{RULE}arguments = {{ a = {{ begins = ["a"], options = "-x" }} }}', 3, "a list of globs"),
        (f'{RULE}arguments = {{ a = {{ begins = ["a"], options = ["x"] }} }}', 3, "'x' is no option"),
        (f'{RULE}arguments = {{ a = {{ exactly = ["a"], options = ["-x"] }} }}', 3, "do not go together"),
        (f'{RULE}arguments = {{ a = {{ options = ["-x"] }} }}', 3, "unknown matcher 'options'"),
        (f'{RULE}arguments = {{ a = {{ host = "https://x.org/" }} }}', 3, "write only the host"),
        (f'{RULE}arguments = {{ a = {{ host = "x.org:80" }} }}', 3, "write only the host"),
        (f'{RULE}arguments = {{ a = {{ host = "[::1]" }} }}', 3, "write only the host"),
        (f'{RULE}arguments = {{ a = {{ host = "x.org." }} }}', 3, "leave the last dot out"),
        (f"{RULE}arguments = {{ a = {{ one_of = [] }} }}", 3, "a list of values that is not empty"),
        (f'{RULE}arguments = {{ a = {{ at_least = "1" }} }}', 3, "are numbers"),
        (f"{RULE}arguments = {{ a = {{ at_least = 2, at_most = 1 }} }}", 3, "no number is at least 2 and at most 1"),
        (f"{RULE}only_untrusted = true", 1, "only_untrusted is for rules that ask or deny"),
        ('[[policy.rules]]\neffect = "ask"\neven_untrusted = true', 1, "even_untrusted is for rules that allow"),
        ('[[policy.rules]]\neffect = "deny"\nasked_for = ["a"]', 1, "asked_for is for rules that allow"),
        ('[[policy.rules]]\neffect = "ask"\nconfirm = false', 1, "confirm = false is for rules that allow"),
        (f'{RULE}asked_for = ["--"]', 3, "'--' is no word"),
        ('[[policy.limits]]\ntool = "a"', 1, "a limit needs calls, running, or both"),
        ("[[policy.limits]]\nrunning = 1\nseconds = 1", 1, "called running"),
        ("[[policy.limits]]\ncalls = -1", 2, "greater than or equal to 0"),
        ("[[policy.limits]]\ncalls = 10000\nseconds = 1", 1, "at most 9999 calls"),
        ("[[policy.limits]]\ncalls = 1\n\n[[policy.limits]]\ncalls = 1\nseconds = nan", 6, "finite number"),
        (f"{RULE}\n[policy.rules.arguments.path]\nglobb = 1", 4, "unknown matcher 'globb'"),
    ],
)
def test_what_cannot_be_meant_is_said_with_its_place(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'toolwire.toml'}:{line}: policy.")
    assert message in said


def test_a_policy_from_a_file_decides(tmp_path: Path) -> None:
    tool = ToolDefinition("send_mail", tier=Tier.RUN, server="mail")
    call = ToolCall("send_mail", {"text": "my password", "exact": ["git", "status"], "amount": 7})
    assert isinstance(load(tmp_path, WHOLE).decide(call, tool, Context(Tier.RUN, untrusted=True)), Ask)


COMMANDS = """
[[policy.rules]]
effect = "allow"
tool = "execute_command"
arguments = { command = { begins = ["npm", "test"] } }
{}
"""


@pytest.mark.parametrize(
    ("more", "command", "untrusted", "server", "effect"),
    [
        ("", "npm test", False, "", Ask),
        ("confirm = true", "npm test", False, "", Ask),
        ("confirm = false", "npm test", False, "", Allow),
        ("confirm = false", "npm publish", False, "", Ask),
        ("confirm = false", "npm test", True, "", Ask),
        ("confirm = false\neven_untrusted = true", "npm test", True, "", Allow),
        ('confirm = false\n[[policy.rules]]\neffect = "ask"', "npm test", False, "", Ask),
        (
            'confirm = false\n[[policy.rules]]\neffect = "allow"\ntool = "s.*"\nconfirm = false',
            "npm test",
            False,
            "s",
            Ask,
        ),
    ],
)
def test_a_rule_may_say_that_a_tool_which_asks_need_not(
    tmp_path: Path, more: str, command: str, untrusted: bool, server: str, effect: type
) -> None:
    policy = load(tmp_path, COMMANDS.replace("{}", more))
    tool = ToolDefinition("execute_command", tier=Tier.RUN, requires_confirmation=True, server=server)
    call = ToolCall("execute_command", {"command": command}, server=server)
    assert type(policy.decide(call, tool, Context(tier=Tier.RUN, untrusted=untrusted))) is effect

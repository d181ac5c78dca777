"""A policy in TOML says what code says; what cannot be meant is an error with its place."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError
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
from toolwire.policy.rule_tables import LimitTable, PolicyTable, RuleTable, as_table

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
    return load_configuration(path).policy.to_policy()


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
    again = PolicyTable.model_validate(tomllib.loads(f"policy = {written(table)}")["policy"]).to_policy()
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


@pytest.mark.parametrize(
    ("table", "matcher"),
    [
        ({"text": ""}, Text("")),
        ({"glob": "a"}, PathGlob("a", "/")),
        ({"glob": "/"}, PathGlob("/", "/")),
        ({"glob": "..a/b..", "base": "/srv"}, PathGlob("..a/b..", "/srv")),
        ({"begins": ["npm"]}, Command(("npm",))),
        ({"begins": ["a"], "options": ["-x", "+x", "@x", "*x", "?x", "[x]", "x=1"]},
            Command(("a",), options=("-x", "+x", "@x", "*x", "?x", "[x]", "x=1"))),
        ({"exactly": ["a", "b c", ";;"]}, Command(("a", "b c", ";;"), exact=True)),
        ({"host": "private"}, Host("private")),
        ({"host": "*.EXAMPLE.org"}, Host("*.example.org")),
        ({"host": "FE80:*:?.0"}, Host("fe80:*:?.0")),
        ({"host": "bücher.example"}, Host("bücher.example")),
        ({"one_of": [None, False]}, AnyOf((None, False))),
        ({"at_least": 1}, Number(1, None)),
        ({"at_most": 0.5}, Number(None, 0.5)),
        ({"at_least": 2, "at_most": 2}, Number(2, 2)),
        ({"at_most": 3, "at_least": 2}, Number(2, 3)),
    ],
)  # fmt: skip
def test_an_argument_is_described_by_a_table(table: dict[str, Any], matcher: Matcher) -> None:
    rule = RuleTable.model_validate({"effect": "deny", "arguments": {"a": table}}).to_rule()
    assert rule == Rule("deny", arguments={"a": matcher})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"glob": "//"}, "the glob is empty; `**` is every path"),
        ({"glob": ".."}, "'..' leaves its own place with '..'"),
        ({"glob": "a\0"}, "fits no path"),
        ({"glob": "a", "base": ""}, "the base '' is no absolute path"),
        ({"glob": "a", "base": 5}, "base is text, not 5"),
        ({"glob": "a", "options": []}, "glob and options do not go together"),
        ({"begins": ["a", ""]}, "a command is a list of its words"),
        ({"begins": ["a", 5]}, "a command is a list of its words"),
        ({"exactly": ["a\tb"]}, "is several words; each is an item of its own: ['a', 'b']"),
        ({"exactly": [" a b"]}, "is several words"),
        ({"begins": ["a"], "options": ["-x", ""]}, "options are a list of globs"),
        ({"begins": ["a"], "options": [5]}, "options are a list of globs"),
        ({"begins": ["a"], "options": ["-x", "b"]}, "'b' is no option"),
        ({"host": ""}, "'' fits no host: write only the host"),
        ({"host": "a b"}, "write only the host"),
        ({"host": "me@a.org"}, "write only the host"),
        ({"host": "fe80::1%eth0"}, "write only the host"),
        ({"host": "a..org"}, "'a..org' fits no host: "),
        ({"host": "a" * 64 + ".org"}, "fits no host: "),
        ({"one_of": "ab"}, "one_of is a list of values"),
        ({"at_least": True}, "at_least and at_most are numbers"),
        ({"at_most": "1"}, "at_least and at_most are numbers"),
        ({"at_least": 1, "at_most": False}, "at_least and at_most are numbers"),
        ({"colour": "red"}, "(known are text, glob, begins, exactly, host, one_of, at_least, at_most)"),
        ({"text": "a", "hots": "b"}, "unknown matcher 'hots'; did you mean host?"),
        ([], 'described by a table such as { text = "a*" }; known are text, glob, begins'),
        *(
            ({"begins": ["a", operator, "b"]}, f"{operator!r} is the shell's, and no part of a command")
            for operator in (";", "&", "&&", "|", "||", ">", ">>", "<", "<<", "2>")
        ),
    ],
)  # fmt: skip
def test_a_table_that_describes_no_argument_says_why(table: Any, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        RuleTable.model_validate({"effect": "deny", "arguments": {"a": table}})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "tier"),
    [("run", Tier.RUN), ("Walk", Tier.WALK), ("NEVER", None), (Tier.CRAWL, Tier.CRAWL)],
)
def test_a_tier_is_given_by_name_in_any_case_or_as_itself(value: Any, tier: Tier | None) -> None:
    assert PolicyTable.model_validate({"ask_when_untrusted": value}).to_policy() == Policy(ask_when_untrusted=tier)


@pytest.mark.parametrize("value", [2, None, True, "", ["run"]])
def test_nothing_else_is_a_tier(value: Any) -> None:
    with pytest.raises(ValidationError, match="a tier is one of crawl, walk, run, not "):
        PolicyTable.model_validate({"ask_when_untrusted": value})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (5, "a tool is named by text that is not empty"),
        *((f"a{character}b", f"no name holds {character!r}") for character in "\t\0\x7f\x9f<>{}()\"'=,"),
        ("a]b", "its bracket is not closed"),
    ],
)
def test_a_glob_that_no_name_of_a_tool_fits_is_an_error(name: Any, message: str) -> None:
    for table, rest in ((RuleTable, {"effect": "deny"}), (LimitTable, {"calls": 1})):
        with pytest.raises(ValidationError) as caught:
            table.model_validate({"tool": name, **rest})
        assert message in str(caught.value)


def test_tables_cannot_be_changed() -> None:
    table = RuleTable(effect="deny")
    with pytest.raises(ValidationError, match="frozen"):
        table.effect = "allow"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("table", "limit"),
    [
        ({"calls": 0}, Limit(0)),
        ({"running": 0}, Limit(running=0.0)),
        ({"calls": 9_999, "seconds": 1}, Limit(9_999, 1.0)),
        ({"calls": 10_000}, Limit(10_000)),
        ({"calls": 1, "running": 2, "tool": "a", "seconds": 0}, Limit(1, 0.0, "a", 2.0)),
    ],
)
def test_a_limit_is_described_by_a_table(table: dict[str, Any], limit: Limit) -> None:
    assert LimitTable.model_validate(table).to_limit() == limit


@pytest.mark.parametrize(
    "table",
    [
        {"calls": -1},
        {"calls": 1, "seconds": -1},
        {"calls": 1, "seconds": float("inf")},
        {"running": float("nan")},
        {"running": -1},
        {"running": float("inf")},
        {"seconds": 5},
    ],
)
def test_a_limit_that_cannot_be_meant_is_an_error(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LimitTable.model_validate(table)


def test_what_is_written_leaves_out_what_holds_anyway() -> None:
    rules = (
        Rule("deny", only_untrusted=True, even_untrusted=True, asked_for=("pay",), confirm=False),
        Rule("allow", "pay", only_untrusted=True, even_untrusted=True, asked_for=("pay",), confirm=False, reason="why"),
        Rule("ask", arguments={"a": PathGlob("b"), "c": Command(("d",), exact=True), "e": Number(None, None)}),
        Rule("ask", arguments={"a": PathGlob("b", "/c"), "c": Command(("d",)), "e": Number(None, 1)}),
    )
    limits = (Limit(None), Limit(None, 5.0, "a"), Limit(0), Limit(None, 5.0, "b", 0.0), Limit(3, 5.0))
    policy = Policy(rules, limits, None, frozenset({Tier.RUN, Tier.WALK}), frozenset({Tier.WALK}))
    assert as_table(policy) == {
        "ask_when_untrusted": "never",
        "default": {"walk": "deny", "run": "ask"},
        "rules": [
            {"effect": "deny", "tool": "*", "only_untrusted": True},
            {
                "effect": "allow",
                "tool": "pay",
                "reason": "why",
                "even_untrusted": True,
                "asked_for": ["pay"],
                "confirm": False,
            },
            {
                "effect": "ask",
                "tool": "*",
                "arguments": {"a": {"glob": "b"}, "c": {"exactly": ["d"]}, "e": {"at_least": float("-inf")}},
            },
            {
                "effect": "ask",
                "tool": "*",
                "arguments": {"a": {"glob": "b", "base": "/c"}, "c": {"begins": ["d"]}, "e": {"at_most": 1}},
            },
        ],
        "limits": [{"tool": "*", "calls": 0}, {"tool": "b", "running": 0.0}, {"tool": "*", "calls": 3, "seconds": 5.0}],
    }
    assert as_table(Policy(ask_when_untrusted=Tier.CRAWL)) == {"ask_when_untrusted": "crawl"}


@pytest.mark.parametrize(("default", "asks", "denies"), [
    ({}, set(), set()),
    ({"crawl": "ask", "walk": "deny", "run": "allow"}, {Tier.CRAWL}, {Tier.WALK}),
    ({"run": "deny", "walk": "ask"}, {Tier.WALK}, {Tier.RUN}),
])  # fmt: skip
def test_the_default_of_each_tier_is_its_own(default: dict[str, str], asks: set[Tier], denies: set[Tier]) -> None:
    policy = PolicyTable.model_validate({"default": default}).to_policy()
    assert (policy.ask_by_default, policy.deny_by_default) == (asks, denies)


RULE = '[[policy.rules]]\neffect = "allow"\n'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[policy]\nask_when_untrusted = "high"', 2, "a tier is one of crawl, walk, run, not 'high'"),
        ("[policy]\nask = true", 2, "there is no such key"),
        ('[policy.default]\nrun = "maybe"', 2, "'allow', 'ask' or 'deny' (it is 'maybe')"),
        ('[[policy.rules]]\neffect = "alow"', 2, "'allow', 'ask' or 'deny' (it is 'alow')"),
        ('[[policy.rules]]\neffect = "dney"', 2, "(it is 'dney'); did you mean deny?"),
        ('[[policy.rules]]\nefect = "deny"\neffect = "deny"', 2, "did you mean effect?"),
        ('[policy]\ndefaults = { run = "ask" }', 2, "did you mean default?"),
        ("[policy.default]\nwlak = 1", 2, "did you mean walk?"),
        ("[[policy.limits]]\ncals = 1\ncalls = 1", 2, "did you mean calls?"),
        ('[[policy.rules]]\ntool = "a"', 1, "effect: this key is missing"),
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

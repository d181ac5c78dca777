"""What may run: rules that allow fit only what they surely describe, rules that deny all that they may describe."""

from typing import Any

import pytest

from toolwire import Tier, ToolCall, ToolDefinition
from toolwire.policy.fingerprint import approval_key
from toolwire.policy.policy import (
    Allow,
    AnyOf,
    Ask,
    Command,
    Context,
    Deny,
    Host,
    Limit,
    Number,
    PathGlob,
    Policy,
    Rule,
    Text,
)

READ = ToolDefinition("read_file", tier=Tier.WALK)
RUN = ToolDefinition("execute_command", tier=Tier.RUN)
ALL = Context(tier=Tier.RUN)


def decide(policy: Policy, call: ToolCall, definition: ToolDefinition = RUN, context: Context = ALL) -> type:
    return type(policy.decide(call, definition, context))


def run(command: Any) -> ToolCall:
    return ToolCall("execute_command", {"command": command})


@pytest.mark.need(27)
def test_the_tier_decides_where_nothing_else_does() -> None:
    assert decide(Policy(), run("ls")) is Allow
    denied = Policy().decide(run("ls"), RUN, Context())
    assert denied == Deny("execute_command needs the tier RUN, and this session is at CRAWL.")
    assert decide(Policy((Rule("allow"),)), run("ls"), RUN, Context(tier=Tier.WALK)) is Deny


@pytest.mark.need(27)
def test_deny_beats_ask_beats_allow_in_any_order() -> None:
    rules = (Rule("allow"), Rule("ask", reason="why"), Rule("deny", "execute_*", reason="no"))
    assert Policy(rules).decide(run("ls"), RUN, ALL) == Deny("no")
    assert Policy(rules[::-1]).decide(run("ls"), RUN, ALL) == Deny("no")
    assert Policy(rules[:2]).decide(run("ls"), RUN, ALL) == Ask("why")
    assert Policy(rules[:2][::-1]).decide(run("ls"), RUN, ALL) == Ask("why")
    assert decide(Policy(rules[:1]), run("ls")) is Allow


def test_confirmation_is_asked_whatever_a_rule_allows() -> None:
    tool = ToolDefinition("f", requires_confirmation=True)
    assert decide(Policy((Rule("allow"),)), ToolCall("f"), tool) is Ask


def test_a_tier_may_be_denied_unless_a_rule_allows() -> None:
    policy = Policy((Rule("allow", "read_*"), Rule("ask", "execute_*")), deny_by_default=frozenset(Tier))
    assert decide(policy, ToolCall("read_file"), READ) is Allow
    assert decide(policy, run("ls")) is Deny


def test_a_call_that_was_guessed_is_asked_about() -> None:
    guessed, tool = ToolCall("f", confidence=0.3), ToolDefinition("f")
    assert decide(Policy((Rule("allow"),)), guessed, tool) is Ask
    assert decide(Policy(), guessed, tool, Context(agreed=frozenset({approval_key(guessed, tool)}))) is Ask


@pytest.mark.need(28)
def test_text_of_strangers_makes_tools_ask() -> None:
    met = Context(tier=Tier.RUN, untrusted=True)
    assert decide(Policy(), run("ls"), RUN, met) is Ask
    assert decide(Policy(), ToolCall("read_file"), READ, met) is Allow
    assert decide(Policy(ask_when_untrusted=Tier.WALK), ToolCall("read_file"), READ, met) is Ask
    assert decide(Policy(ask_when_untrusted=None), run("ls"), RUN, met) is Allow


def test_a_rule_allows_after_text_of_strangers_only_if_it_says_so() -> None:
    met, calm = Context(tier=Tier.RUN, untrusted=True), Context(tier=Tier.RUN)
    assert decide(Policy((Rule("allow"),)), run("ls"), RUN, met) is Ask
    assert decide(Policy((Rule("allow", even_untrusted=True),)), run("ls"), RUN, met) is Allow
    rules = (Rule("allow", "other", even_untrusted=True), Rule("allow"))
    assert decide(Policy(rules), run("ls"), RUN, met) is Ask
    for effect, stricter in (("ask", Ask), ("deny", Deny)):
        policy = Policy((Rule(effect, "read_*", only_untrusted=True),))  # type: ignore[arg-type]
        assert decide(policy, ToolCall("read_file"), READ, calm) is Allow
        assert decide(policy, ToolCall("read_file"), READ, met) is stricter


def test_a_planned_call_may_run_as_often_as_it_was_planned() -> None:
    key = approval_key(run("ls"), RUN)
    planned = Context(tier=Tier.RUN, untrusted=True, planned={key: 2}, spent={key: 1})
    assert Policy().decide(run("ls"), RUN, planned) == Allow(
        "it was planned before untrusted content was read", once=True
    )
    assert decide(Policy(), run("ls -a"), RUN, planned) is Ask
    used = Context(tier=Tier.RUN, untrusted=True, planned={key: 2}, spent={key: 2})
    assert decide(Policy(), run("ls"), RUN, used) is Ask
    assert decide(Policy(ask_by_default=frozenset({Tier.RUN})), run("ls"), RUN, planned) is Ask
    assert decide(Policy((Rule("deny"),)), run("ls"), RUN, planned) is Deny


def test_a_tier_may_ask_unless_a_rule_allows() -> None:
    policy = Policy(
        (Rule("allow", arguments={"command": Command(("git", "status"))}),), ask_by_default=frozenset({Tier.RUN})
    )
    assert decide(policy, run("git status src")) is Allow
    assert decide(policy, run("git status -s")) is Ask
    assert decide(policy, run("git push")) is Ask


def test_what_was_agreed_to_is_bound_to_the_arguments_and_to_the_definition() -> None:
    call, tool = run("make"), ToolDefinition("execute_command", "Runs.", tier=Tier.RUN, requires_confirmation=True)
    agreed = Context(tier=Tier.RUN, agreed=frozenset({approval_key(call, tool)}))
    assert decide(Policy(), call, tool, agreed) is Allow
    assert decide(Policy(), run("make install"), tool, agreed) is Ask
    changed = ToolDefinition("execute_command", "Runs!", tier=Tier.RUN, requires_confirmation=True)
    assert decide(Policy(), call, changed, agreed) is Ask
    assert decide(Policy((Rule("deny"),)), call, tool, agreed) is Deny
    refused = Context(tier=Tier.RUN, refused=frozenset({approval_key(call, tool)}))
    assert decide(Policy(), call, tool, refused) is Deny


@pytest.mark.mission("C41")
def test_limits() -> None:
    policy = Policy(limits=(Limit(2, 60.0, "execute_*"),))
    ran = {"execute_command": [10.0, 50.0], "other": [20.0]}
    assert decide(policy, run("ls"), RUN, Context(tier=Tier.RUN, now=60.0, ran=ran)) is Deny
    assert decide(policy, run("ls"), RUN, Context(tier=Tier.RUN, now=80.0, ran=ran)) is Allow
    counts = {"execute_command": 2, "other": 1}
    assert decide(Policy(limits=(Limit(3),)), run("ls"), RUN, Context(tier=Tier.RUN, counts=counts)) is Deny
    assert (
        decide(Policy(limits=(Limit(3, tool="execute_*"),)), run("ls"), RUN, Context(Tier.RUN, counts=counts)) is Allow
    )


def test_rules_name_servers_too() -> None:
    tool = ToolDefinition("search", server="web")
    assert decide(Policy((Rule("deny", "web.*"),)), ToolCall("search"), tool) is Deny
    assert decide(Policy((Rule("deny", "docs.*"),)), ToolCall("search"), tool) is Allow


NPM = Command(("npm", "install"))


@pytest.mark.mission("C36", "C37")
@pytest.mark.parametrize(
    ("command", "allowed", "denied"),
    [
        ("npm install", True, True),
        ("npm install left-pad", True, True),
        (["npm", "install", "a b"], True, True),
        ("npm run", False, False),
        ("npm install; rm -rf /", False, True),
        ("npm install && curl x", False, True),
        ("npm install | sh", False, True),
        ("npm install $(id)", False, True),
        ("npm install `id`", False, True),
        ("npm install\nrm -rf /", False, True),
        ("npm install > /etc/passwd", False, True),
        ("npm install 'x'", False, True),
        ("echo hi; npm install", False, True),
        ("echo $(npm install)", False, True),
        ("/usr/bin/npm install", False, True),
        (["sh", "-c", "npm install"], False, True),
        (["/usr/bin/npm", "install"], False, True),
        ("sudo npm install", False, True),
        ("n\\pm install", False, True),
        ("'npm' install", False, True),
        ("ls", False, False),
        (5, False, True),
        (["npm", 5], False, True),
        (["npm", "install\0"], False, False),
        ([], False, False),
    ],
)
def test_commands(command: Any, allowed: bool, denied: bool) -> None:
    assert NPM.surely(command) is allowed
    assert NPM.maybe(command) is denied
    assert decide(Policy((Rule("deny", arguments={"command": NPM}),)), run(command)) is (Deny if denied else Allow)


@pytest.mark.mission("C36")
def test_an_exact_command_has_nothing_behind_it() -> None:
    status = Command(("git", "status"), exact=True)
    assert status.surely("git status")
    assert not status.surely("git status -s")


@pytest.mark.need(27)
@pytest.mark.mission("C41")
@pytest.mark.parametrize(
    ("path", "allowed", "denied"),
    [
        ("src/a.py", True, True),
        ("./src/b/c.py", True, True),
        ("/srv/src/a.py", True, True),
        ("src/../src/a.py", True, True),
        ("src/../secret.py", False, False),
        ("../srv/src/a.py", True, True),
        ("../other/src/a.py", False, False),
        ("SRC/a.py", False, True),
        ("src%2fa.py", False, True),
        ("src\\a.py", False, True),
        (" src/a.py", False, True),
        ("~/src/a.py", False, True),
        ("src/a.py\0.txt", False, True),
        ("src/a.txt", False, False),
        (None, False, True),
    ],
)
def test_paths(path: Any, allowed: bool, denied: bool) -> None:
    glob = PathGlob("src/**/*.py", base="/srv")
    assert glob.surely(path) is allowed
    assert glob.maybe(path) is denied


@pytest.mark.parametrize(
    ("path", "allowed", "denied"),
    [
        ("secrets/k", True, True),
        ("/srv/secrets/k", False, True),
        ("a/../secrets/k", True, True),
        ("sub/SECRETS/k", False, True),
        ("../secrets/k", True, True),
        ("public/k", False, False),
    ],
)
def test_a_relative_pattern_without_a_base_denies_at_any_depth(path: str, allowed: bool, denied: bool) -> None:
    glob = PathGlob("secrets/**")
    assert (glob.surely(path), glob.maybe(path)) == (allowed, denied)
    assert not PathGlob("/secrets/**").maybe("/srv/secrets/k")


def test_path_patterns_take_time_in_proportion() -> None:
    glob = PathGlob("/".join(["**", "a"] * 60))
    assert not glob.surely("/".join(["a"] * 400) + "/b")
    assert glob.surely("/".join(["a"] * 400))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://localhost:80", "http://LOCALHOST./", "http://2130706433/", "http://0x7f.1/",
        "http://0177.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://169.254.169.254/latest",
        "http://metadata.google.internal/", "http://10.0.0.1", "http://192.168.1.1", "http://100.64.0.1", "http://0/",
        "http://127.1", "http://[fe80::1]/", "http://printer/", "http://x.local/", "http://[2002:7f00:1::]/",
        "ftp://example.com", "file:///etc/passwd", "http://user@example.com/", "http://exa mple.com", "http://%31/",
        "gopher://x", "http://example.com:99999/", 5,
    ],
)  # fmt: skip
def test_addresses_that_are_not_on_the_open_internet(url: Any) -> None:
    assert Host("private").maybe(url)
    assert not Host("*.example.com").surely(url)
    assert not Host("*").surely(url)


def test_hosts() -> None:
    assert Host("*.example.com").surely("https://api.example.com/x?y#z")
    assert not Host("*.example.com").surely("https://example.com.evil.org/")
    assert not Host("*.example.com").surely("https://evil.org/?api.example.com")
    assert Host("private").surely("http://127.0.0.1/")
    assert not Host("private").maybe("https://8.8.8.8/")
    assert not Host("private").maybe("https://api.example.com/")
    assert Host("8.8.8.8").surely("https://8.8.8.8/")
    assert Host("169.254.*").maybe("http://2852039166/")
    assert Host("*.M\u00fcnchen.de").surely("https://www.m\u00fcnchen.de/")
    assert Host("*.m\u00fcnchen.de").surely("https://www.xn--mnchen-3ya.de/")
    assert Host("*.Example.com").maybe("https://API.example.com./")
    assert not Host("*").surely("https://" + "a." * 200 + "com/")


def test_values_and_numbers() -> None:
    one = AnyOf(("read", 1, True))
    assert [one.surely(value) for value in ("read", 1, True, 1.0, "READ", 0, False, "1")] == [
        *(True, True, True, True, False, False, False, False),
    ]
    assert [one.maybe(value) for value in (" READ", 2, False, [], {})] == [True, False, False, True, True]
    assert not AnyOf((1,)).surely(True)
    amount = Number(at_most=100)
    assert [amount.surely(value) for value in (100, -5, 100.5, True, "5", float("nan"))] == [
        *(True, True, False, False, False, False),
    ]
    assert [amount.maybe(value) for value in (100, 101, True, "5", float("nan"))] == [True, False, True, True, True]


def test_text() -> None:
    assert Text("a*").surely("abc")
    assert not Text("a*").surely("ABC")
    assert Text("a*").maybe("ABC")
    assert Text("a*").maybe(5)
    assert not Text("a*").surely(5)
    rule = Rule("allow", arguments={"missing": Text("*")})
    assert not rule.fits(ToolCall("f"), ToolDefinition("f"))

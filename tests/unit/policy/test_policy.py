"""What may run: rules that allow fit only what they surely describe, rules that deny all that they may describe."""

import shlex
import time
from dataclasses import replace
from typing import Any

import pytest

from toolwire import Tier, ToolCall, ToolDefinition
from toolwire.policy.commands import MAX_DEPTH, MAX_LENGTH
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
    assert decide(Policy(), guessed, tool, Context(approved=frozenset({approval_key(guessed, tool)}))) is Ask


@pytest.mark.need(28)
def test_untrusted_content_makes_tools_ask() -> None:
    met = Context(tier=Tier.RUN, untrusted=True)
    assert decide(Policy(), run("ls"), RUN, met) is Ask
    assert decide(Policy(), ToolCall("read_file"), READ, met) is Allow
    assert decide(Policy(ask_when_untrusted=Tier.WALK), ToolCall("read_file"), READ, met) is Ask
    assert decide(Policy(ask_when_untrusted=None), run("ls"), RUN, met) is Allow


def test_after_untrusted_content_a_call_without_markers_asks_at_any_tier() -> None:
    met, calm = Context(tier=Tier.RUN, untrusted=True), Context(tier=Tier.RUN)
    for tier in Tier:
        tool = ToolDefinition("f", tier=tier)
        for repairs, expected in (((), Allow if tier < Tier.RUN else Ask), (("coerced", "fallback"), Ask)):
            call = ToolCall("f", repairs=repairs, confidence=0.8)
            assert decide(Policy(), call, tool, calm) is Allow
            assert decide(Policy(), call, tool, met) is expected
            assert decide(Policy(ask_when_untrusted=None), call, tool, met) is Allow
            assert decide(Policy((Rule("allow"),)), call, tool, met) is expected
            assert decide(Policy((Rule("allow", even_untrusted=True),)), call, tool, met) is Allow
            approved = Context(tier=Tier.RUN, untrusted=True, approved=frozenset({approval_key(call, tool)}))
            assert decide(Policy(), call, tool, approved) is Allow
    decision = Policy().decide(ToolCall("f", repairs=("fallback",)), ToolDefinition("f"), met)
    assert isinstance(decision, Ask)
    assert "without its format's markers" in decision.reason


def test_a_rule_allows_after_untrusted_content_only_if_it_says_so() -> None:
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


def test_approval_is_bound_to_the_arguments_and_to_the_definition() -> None:
    call, tool = run("make"), ToolDefinition("execute_command", "Runs.", tier=Tier.RUN, requires_confirmation=True)
    approved = Context(tier=Tier.RUN, approved=frozenset({approval_key(call, tool)}))
    assert decide(Policy(), call, tool, approved) is Allow
    assert decide(Policy(), run("make install"), tool, approved) is Ask
    changed = ToolDefinition("execute_command", "Runs!", tier=Tier.RUN, requires_confirmation=True)
    assert decide(Policy(), call, changed, approved) is Ask
    assert decide(Policy((Rule("deny"),)), call, tool, approved) is Deny
    refused = Context(tier=Tier.RUN, refused=frozenset({approval_key(call, tool)}))
    assert decide(Policy(), call, tool, refused) is Deny


@pytest.mark.mission("C41")
def test_limits() -> None:
    policy = Policy(limits=(Limit(2, 60.0, "execute_*"),))
    ran = {"execute_command": [10.0, 50.0], "other": [20.0]}
    assert decide(policy, run("ls"), RUN, Context(tier=Tier.RUN, now=60.0, call_times=ran)) is Deny
    assert decide(policy, run("ls"), RUN, Context(tier=Tier.RUN, now=80.0, call_times=ran)) is Allow
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
    decision = decide(Policy((Rule("deny", arguments={"command": NPM}),)), run(command))
    # `npm run` may run `npm install` from a script.
    assert decision is (Deny if denied else Ask if NPM.is_unclear(command) else Allow)


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
        ("src/$HOME/a.py", False, True),
        ("src/${HOME}/a.py", False, True),
        ("src/$1/a.py", True, True),
        ("src/%2e%2e/%2e%2e/etc/a.py", False, True),
        ("src/%61.py", True, True),
        ("file:///srv/src/a.py", False, True),
        ("FILE:/srv/src/a.py", False, True),
        ("file://localhost/srv/src/%61.py", False, True),
        ("file:///srv/other/a.py", False, False),
        ("%66ile:///srv/src/a.py", False, True),
        ("file:\\\\\\srv\\src\\a.py", False, True),
        ("src%5ca.py", False, True),
        ("%20src/a.py", False, True),
        ("src/%24HOME/a.py", False, True),
        ("%7e/src/a.py", False, True),
        ("src/a.py%00", False, True),
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
    "path", [" /etc/passwd", "%20/etc/passwd", "file:///etc/passwd", "%66ile:/etc/passwd", "..%5c..%5cetc%5cpasswd"]
)
def test_path_is_allowed_only_if_no_spelling_leads_out(path: str) -> None:
    assert not PathGlob("/srv/**", base="/srv").surely(path)
    assert PathGlob("/etc/**", base="/srv").maybe(path)


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


@pytest.mark.parametrize("path", ["caf\u00e9/k", "cafe\u0301/k", "CAFE\u0301/k", "ca\u200bf\u00e9/k", "caf\u00e9/./k"])
@pytest.mark.parametrize("glob", ["caf\u00e9/*", "cafe\u0301/*"], ids=["composed", "decomposed"])
def test_a_path_is_denied_in_every_spelling_that_a_file_system_takes_for_it(glob: str, path: str) -> None:
    assert PathGlob(glob).maybe(path)
    assert PathGlob(glob).surely(path) is (path.replace("/./", "/").startswith(glob[:-1]))
    assert not PathGlob(glob).maybe("cafe/k")


def test_marks_without_end_in_a_name_take_linear_time() -> None:
    start = time.process_time()
    assert not PathGlob("secrets/**").maybe("a" + "\u0300\u0316" * 150_000)
    assert time.process_time() - start < 5  # sorted by insertion, they take a minute


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
    with pytest.raises(TypeError, match="values must be a tuple of values, not 'read'"):
        AnyOf("read")  # type: ignore[arg-type]
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


SAID = ("please run build.sh now",)
SCRIPT = ToolDefinition(
    "execute_command", tier=Tier.RUN, parameters={"type": "object", "properties": {"command": {"type": "string"}}}
)
CONFIRMED = ToolDefinition("execute_command", tier=Tier.RUN, parameters=SCRIPT.parameters, requires_confirmation=True)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_rule_about_the_users_words_leaves_other_rules_as_they_are(reverse: bool) -> None:
    rules = (
        Rule("allow", reason="asked", asked_for=("run",), confirm=False),
        Rule("allow", reason="plain", confirm=False, even_untrusted=True),
    )
    for untrusted in (False, True):
        context = Context(tier=Tier.RUN, untrusted=untrusted, user_sentences=SAID)
        decision = Policy(rules[::-1] if reverse else rules).decide(run("build.sh"), CONFIRMED, context)
        assert decision == Allow("plain")
        assert decide(Policy(rules[:1]), run("build.sh"), CONFIRMED, context) is Ask
    assert decide(Policy(rules[:1]), run("build.sh"), SCRIPT, Context(tier=Tier.RUN, user_sentences=SAID)) is Allow


def test_a_tool_of_a_server_that_wants_confirmation_asks_in_spite_of_rules() -> None:
    of_server = replace(CONFIRMED, server="web")
    allow_server = Rule("allow", "web.*", confirm=False)
    assert decide(Policy((allow_server,)), run("build.sh"), of_server, Context(tier=Tier.RUN)) is Ask


@pytest.mark.parametrize(("seconds", "decision"), [(8, Deny), (8.5, Allow), (3, Deny)])
def test_a_limit_of_running_time_counts_calls_that_still_run(seconds: float, decision: type) -> None:
    context = Context(
        tier=Tier.RUN,
        now=100.0,
        running={"execute_command": 2.0, "other": 50.0},
        busy={"execute_command": (2, 194.0), "other": (1, 1.0)},
    )
    policy = Policy(limits=(Limit(running=seconds, tool="execute_*"),))
    assert decide(policy, run("ls"), RUN, context) is decision


def test_a_limit_says_how_often_or_how_long() -> None:
    context = Context(
        tier=Tier.RUN, now=9.0, counts={"execute_command": 2}, call_times={"execute_command": [8.0, 9.0]},
        running={"execute_command": 5.0},
    )  # fmt: skip
    for limit, words in (
        (Limit(2), "may run 2 times in this session"),
        (Limit(2, 60), "may run 2 times in 60 seconds"),
        (Limit(running=5), "may run for 5 seconds in this session"),
    ):
        decision = Policy(limits=(limit,)).decide(run("ls"), RUN, context)
        assert isinstance(decision, Deny)
        assert words in decision.reason
    for limit in (Limit(3), Limit(3, 60), Limit(running=5.5), Limit(1, tool="other"), Limit(running=0, tool="other")):
        assert decide(Policy(limits=(limit,)), run("ls"), RUN, context) is Allow


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: Limit("2"), "calls"),
        (lambda: Limit(2, "60"), "seconds"),
        (lambda: Limit(2, 60, 5), "tool"),
        (lambda: Limit(running="5"), "running"),
        (lambda: Rule(5), "effect"),
        (lambda: Rule("allow", 5), "tool"),
        (lambda: Rule("allow", arguments=[1]), "arguments"),
        (lambda: Policy(rules=[5]), "rules"),
        (lambda: Policy(limits=[5]), "limits"),
        (lambda: Policy(ask_when_untrusted="run"), "ask_when_untrusted"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_by_its_name(build: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name} must be "):
        build()


def test_an_argument_that_is_left_out_is_its_default_for_rules_that_deny() -> None:
    tool = ToolDefinition(
        "f", parameters={"type": "object", "properties": {"mode": {"type": "string", "default": "wipe"}, "x": {}}}
    )
    for effect, decision in (("deny", Deny), ("ask", Ask)):
        policy = Policy((Rule(effect, arguments={"mode": Text("wipe")}),))  # type: ignore[arg-type]
        assert decide(policy, ToolCall("f"), tool) is decision
        assert decide(policy, ToolCall("f", {"mode": "show"}), tool) is Allow
    policy = Policy((Rule("allow", arguments={"mode": Text("wipe")}),), deny_by_default=frozenset(Tier))
    assert decide(policy, ToolCall("f"), tool) is Deny
    odd = ToolDefinition("f", parameters={"type": "object"})
    assert decide(Policy((Rule("deny", arguments={"mode": Text("*")}),)), ToolCall("f"), odd) is Allow


def test_a_rule_that_allows_has_to_name_the_server() -> None:
    tool = ToolDefinition("search", server="web")
    for glob, decision in (("search", Deny), ("web.*", Allow), ("*", Allow), ("WEB.search", Deny), ("s*", Deny)):
        policy = Policy((Rule("allow", glob),), deny_by_default=frozenset(Tier))
        assert decide(policy, ToolCall("search"), tool) is decision, glob
    for glob in ("search", "web.search", "*", "WEB.Search", "SEARCH"):
        assert decide(Policy((Rule("deny", glob),)), ToolCall("search"), tool) is Deny, glob
        assert decide(Policy(limits=(Limit(0, tool=glob),)), ToolCall("search"), tool) is Deny, glob


def test_a_guessed_call_is_asked_about_below_half_confidence_only() -> None:
    tool = ToolDefinition("f")
    assert decide(Policy(), ToolCall("f", confidence=0.5), tool) is Allow
    assert decide(Policy(), ToolCall("f", confidence=0.49), tool) is Ask


@pytest.mark.parametrize(
    "command",
    [
        *("uv run x", "uv tool x", "pdm run x", "poetry run x", "hatch run x", "rye run x", "pixi run x"),
        *("pipenv run x", "conda run x", "mamba run x", "micromamba run x", "bundle exec x", "bundle exe x"),
        *("go run x", "go generate x", "cargo run x", "cargo test x", "kubectl exec x", "docker run x"),
        *("podman exec x", "git bisect x", "git submodule x", "npm run x", "npm exec x", "npm tes x"),
        *("yarn build x", "pnpm build x"),
    ],
)
def test_a_rule_for_a_program_does_not_allow_what_runs_other_programs(command: str) -> None:
    program, subcommand, _ = command.split()
    assert not Command((program,)).surely(command)
    assert not Command((program, "*")).surely(command)
    assert Command((program, subcommand)).surely(command)


@pytest.mark.parametrize(
    ("command", "denied"),
    [
        *(("rm --recursive x", True), ("rm --recur x", True), ("rm --recursive=yes x", True), ("rm -rf x", True)),
        *(("rm -fr x", True), ("rm x -r", True), ("rm -f x", False), ("rm --force x", False), ("rm x", False)),
        *(("rm -$X x", True), ("rm $X", True), ("rm -- x", False)),
        *(("sudo rm -r x", True), ("xargs rm -r", True), ("'rm' \"-r\" x", True), ("r\\\nm -r x", True)),
        *(("sh -c 'rm -r x'", True), ("echo 'rm -r x'", True), ("echo rm", False), ("$X -r", True)),
    ],
)
def test_an_option_is_recognized_in_all_of_its_spellings(command: str, denied: bool) -> None:
    assert Command(("rm", "-r")).maybe(command) is denied


@pytest.mark.parametrize(
    ("path", "allowed"), [("a/b", True), ("a", True), ("a/b/c", True), ("b/a", False), ("", False), ("a/..", False)]
)
def test_two_stars_are_any_number_of_names(path: str, allowed: bool) -> None:
    assert PathGlob("a/**").surely(path) is allowed
    assert PathGlob("**/a/**").surely(f"x/y/{path}" if path else "x") is ("a" in path.split("/") and ".." not in path)


def test_both_ends_of_a_range_belong_to_it() -> None:
    assert [Number(1, 3).surely(value) for value in (0.9, 1, 3, 3.1)] == [False, True, True, False]
    assert [Number(1, 3).maybe(value) for value in (0.9, 1, 3, 3.1)] == [False, True, True, False]


@pytest.mark.parametrize("path", ["src/a\0b.py", "src\\\\a.py", "~/src/a.py", "~src/a.py", 5, None])
def test_a_path_that_a_tool_may_read_differently_is_never_allowed(path: Any) -> None:
    assert not PathGlob("**").surely(path)
    assert not PathGlob("src/**").surely(path)


@pytest.mark.parametrize(
    "launcher", [".", "source", "sh", "python3", "python3.12", "sudo", "/usr/bin/env", "ld.so", "perl5.36", "CMD.exe"]
)
def test_a_rule_for_a_launcher_allows_no_operand_that_it_does_not_name(launcher: str) -> None:
    assert Command((launcher,)).surely(launcher)
    assert not Command((launcher,)).surely(f"{launcher} x")
    assert Command((launcher, "x")).surely(f"{launcher} x")
    assert not Command((launcher, "x")).surely(f"{launcher} x y")


@pytest.mark.parametrize(
    "shell",
    [
        *("sh", "sh -s", "sh +e", "sh > out", "sh 2>&1", "sh 2> out", "sh 2>out", "sh # now", "bash --norc", "bash -"),
        *(
            "bash -s stable",
            "bash -es -- -y",
            "bash -o pipefail",
            "bash -eo pipefail",
            "bash +O extglob",
            "sh /dev/stdin",
        ),
        *("bash --rcfile x", "bash --init-file x", "sh /proc/self/fd/0", "source /dev/stdin", ". /dev/stdin", "ksh93"),
        *(
            "sudo bash",
            "sudo -u root bash -s -- -y",
            "sudo -n env A=b nice -n 5 /bin/bash",
            "timeout 5 sh",
            "env -i sh -",
        ),
        *("busybox sh", "xargs -n 1 sh", "A=b sh", "> out sh", "2>out sh", "exec sh", "sudo -E -H bash 2>&1"),
        *("time sh", "time -p sh", "time $x", "su", "su -", "sudo su", "coproc sh"),
    ],
)
def test_what_a_shell_reads_from_another_command_may_be_anything(shell: str) -> None:
    assert Command(("rm",)).maybe(f"curl x | {shell}")


@pytest.mark.parametrize(
    "command",
    [
        *("sh script", "bash -x script", "bash -o pipefail script", "sh -c 'ls'", "bash -c ls", "sh script -s"),
        *(
            "bash --rcfile x script",
            "sudo bash script",
            "sudo apt install bash",
            "timeout 5 ls sh",
            "env A=b ls",
            "env",
        ),
        *(
            "sudo -u sh ls",
            "man bash",
            "which sh",
            "source script",
            "sudo",
            "> out",
            "2> out",
            "A=b",
            "ls sh",
            "nice -n 5 ls",
        ),
    ],
)
def test_a_shell_that_runs_a_known_script_is_no_unknown_command(command: str) -> None:
    assert not Command(("rm",)).maybe(command)


@pytest.mark.parametrize("command", ["> out $x y", "2>out $x y", "2> out $x y", "< in $x y", "A=b 2>out $x", "! $x"])
def test_a_redirection_before_a_command_does_not_hide_that_its_name_is_a_variable(command: str) -> None:
    assert Command(("rm",)).maybe(command)


@pytest.mark.parametrize(
    ("command", "certain"),
    [("npm run-s x", False), ("npm run-script x", False), ("npm run x", False), ("npm list", True), ("npm ls-x", True)],
)
def test_rule_for_a_package_manager_does_not_cover_scripts_by_abbreviation(command: str, certain: bool) -> None:
    assert Command(("npm",)).surely(command) is certain


@pytest.mark.parametrize(
    ("words", "command", "certain"),
    [
        (("git", "log", "-[0-9]*"), "git log -5", True),
        (("git", "log", "-[0-9]*"), "git log -p", False),
        (("git", "log", "?5"), "git log +5", False),
        (("git", "log", "*"), "git log main", True),
        (("git", "log", "*"), "git log -p", False),
        (("git", "log", "*"), "git log +p", False),
        (("git", "log", "*"), "git log @file", False),
        (("git", "log", "*"), "git log A=b", False),
        (("make", "A=*"), "make A=b", True),
        (("make", "*"), "make A[0]+=b", False),
        (("make", "*"), "make a-b=c", True),
        (("make", "*"), "make 1=2", True),
        (("cat", "src/*"), "cat src/a/../../b", False),
        (("cat", "*"), "cat a:..", False),
        (("cat", "*"), "cat ...", True),
        (("cat", ".."), "cat ..", True),
        (("a*",), "ab", True),
        (("a*",), "a/b", False),
        (("a/*",), "a/b", True),
        (("a/*",), "a/../b", False),
        (("../a",), "../a", True),
        (("*",), "-a", False),
        (("*",), "+a", False),
        (("*",), "@a", False),
        (("*",), "a=b", False),
        (("-a",), "-a", True),
        ((), "a", False),
        (("",), [""], False),
        (("a", "b"), "a", False),
        (("a",), " a\t", True),
    ],
)
def test_a_glob_in_a_rule_that_allows_fits_plain_words_alone(
    words: tuple[str, ...], command: Any, certain: bool
) -> None:
    assert Command(words).surely(command) is certain


@pytest.mark.parametrize(
    ("words", "command", "possible"),
    [
        (("git", "branch", "-d"), "git branch --delete x", True),
        (("git", "branch", "--delete"), "git branch -d x", True),
        (("git", "branch", "--delete"), "git branch -vd x", True),
        (("git", "branch", "--delete"), "git branch --del x", True),
        (("git", "branch", "--delete"), "git branch -v x", False),
        (("git", "branch", "-a"), "git branch --all", True),
        (("git", "branch", "-a"), "git branch --allow", False),
        (("rm", "-f"), "rm --force=yes x", True),
        (("rm", "-f"), "rm -- x", False),
        (("tar", "-xf"), "tar -x -v -f a", True),
        (("tar", "-xf"), "tar -x -v a", False),
        (("tar", "--x*"), "tar --xz a", True),
        (("tar", "--x*"), "tar --to=--x a", False),
        (("tar", "--xz=?"), "tar --xz=1 a", True),
        (("tar", "-x"), "tar $options a", True),
        (("tar", "-x"), "tar `options` a", True),
        (("tar", "-x"), "tar {-x,-v} a", True),
        (("tar", "-x"), "tar -[v] a", True),
        (("tar", "-x"), "tar a$b", False),
        (("tar", "-x"), ["tar", "$options", "a"], False),
        (("rm", "-R"), "RM -r x", True),
    ],
)
def test_a_rule_that_denies_knows_an_option_by_its_other_names(
    words: tuple[str, ...], command: Any, possible: bool
) -> None:
    assert Command(words).maybe(command) is possible


@pytest.mark.parametrize(
    ("command", "possible"),
    [
        ("git -C x push", True),
        ("git -C x -c a=b push", True),
        ("git x push", False),
        ("git -C x y push", False),
        ("git log push", False),
        ("git pushx", False),
        ("git", False),
        ("xgit push", False),
        ("/usr/bin/git push", True),
        ("git pu$x", True),
        ("git log; echo push", False),
        (["git", "pu$x"], False),
        (["git", "-C", "x", "push"], True),
        (["echo", "git", "push"], True),
        (["echo", "git push"], True),
        (["echo", "git"], False),
        (["sh", "-c", "pu'sh'"], False),
        (["sh", "-c", "g'it' push"], True),
        (["ls", "g'it'"], False),
    ],
)
def test_a_rule_that_denies_skips_options_and_their_values(command: Any, possible: bool) -> None:
    assert Command(("git", "push")).maybe(command) is possible


@pytest.mark.parametrize(
    ("command", "possible"),
    [
        ("git" + " -x" * 20, False),
        ("git" + " -x" * 21, True),
        ("git" + " -x" * 19 + " push", True),
        ("git" + " -x" * 19 + " log", False),
        ("git" + " -x y" * 10, False),
        ("git" + " -x y" * 11, True),
        ("l" * MAX_LENGTH, False),
        ("l" * (MAX_LENGTH + 1), True),
        (["l" * MAX_LENGTH], False),
        (["l" * MAX_LENGTH, "l"], True),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_too_long_to_analyze_may_be_anything(command: Any, possible: bool) -> None:
    assert Command(("git", "push")).maybe(command) is possible


def test_a_rule_that_allows_fits_no_text_that_is_too_long_to_analyze() -> None:
    assert Command(("l*",)).surely("l" * MAX_LENGTH)
    assert not Command(("l*",)).surely("l" * (MAX_LENGTH + 1))


def test_a_command_quoted_in_too_many_others_may_be_anything() -> None:
    command, possible = "ls a", []
    for _ in range(MAX_DEPTH):
        possible.append(Command(("rm",)).maybe(command))
        command = f"sh -c {shlex.quote(command)}"
    assert possible == [False] * MAX_DEPTH
    assert Command(("rm",)).maybe(command)

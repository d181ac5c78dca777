"""The laws of policies: decisions are total, never loosened by a stricter rule, and bound to their call."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire import Tier, ToolCall, ToolDefinition
from toolwire.policy.fingerprint import approval_key
from toolwire.policy.policy import (
    HEURISTIC,
    Allow,
    AnyOf,
    Ask,
    Command,
    Context,
    Deny,
    Host,
    Limit,
    Matcher,
    Number,
    PathGlob,
    Policy,
    Rule,
    Text,
)
from toolwire.policy.provenance import vouching_sentences

STRICTNESS = {Allow: 0, Ask: 1, Deny: 2}

globs = st.sampled_from(["*", "a", "a*", "b", "*b", "s.*", "s.a", "A", "?"])
texts = st.sampled_from(
    [
        "",
        "a",
        "npm install x",
        "npm install; rm",
        "/src/a.py",
        "../x",
        "http://a.org/",
        "http://127.0.0.1",
        "Alice",
        "\0",
    ]
)
values: st.SearchStrategy[Any] = st.one_of(
    texts, st.integers(-3, 3), st.booleans(), st.none(), st.floats(), st.lists(texts, max_size=2)
)
arguments = st.dictionaries(st.sampled_from(["p", "q"]), values, max_size=2)
matchers: st.SearchStrategy[Matcher] = st.one_of(
    st.builds(Text, globs),
    st.builds(PathGlob, st.sampled_from(["/src/**", "**", "*"]), st.sampled_from(["/", "/src"])),
    st.builds(Command, st.sampled_from([("npm",), ("npm", "install"), ("*",)]), st.booleans()),
    st.builds(Host, st.sampled_from(["*", "private", "*.org", "a.org"])),
    st.builds(AnyOf, st.sampled_from([(1,), (True,), ("a", 2)])),
    st.builds(Number, st.sampled_from([None, -1]), st.sampled_from([None, 1])),
)


def rules_of(*effects: str) -> st.SearchStrategy[Rule]:
    return st.builds(
        Rule,
        st.sampled_from(effects),
        globs,
        st.dictionaries(st.sampled_from(["p", "q"]), matchers, max_size=2),
        st.sampled_from(["", "why"]),
        st.booleans(),
        st.booleans(),
        st.sampled_from([(), ("send",), ("send", "npm")]),
        st.booleans(),
    )


limits = st.builds(
    Limit,
    st.sampled_from([None, 0, 1, 3]),
    st.sampled_from([0.0, 5.0]),
    globs,
    st.sampled_from([None, 0.0, 2.0]),
)
tiers = st.sampled_from(list(Tier))
policies = st.builds(
    Policy,
    st.lists(rules_of("allow", "ask", "deny"), max_size=4).map(tuple),
    st.lists(limits, max_size=2).map(tuple),
    st.none() | tiers,
    st.frozensets(tiers),
    st.frozensets(tiers),
)
SCHEMA = {"type": "object", "properties": {"p": {"default": "a"}, "q": {}}}
definitions = st.builds(
    ToolDefinition,
    st.sampled_from(["a", "b", "ab"]),
    st.sampled_from(["", "Does."]),
    st.just(SCHEMA),
    tiers,
    st.booleans(),
    st.sampled_from(["", "s", "t"]),
)
confidences = st.sampled_from([1.0, 0.9, HEURISTIC, 0.3])
said = st.sampled_from(["", "Send npm install x to Alice.", "Do not send Alice."]).map(vouching_sentences)
ran = st.dictionaries(
    st.sampled_from(["a", "b", "s.a"]), st.lists(st.floats(0, 10), max_size=4).map(sorted), max_size=2
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[ToolCall, ToolDefinition, Context]:
    definition = draw(definitions)
    call = ToolCall(definition.name, draw(arguments), confidence=draw(confidences))
    key = approval_key(call, definition)
    keys = st.sampled_from([key, "other"])
    context = Context(
        draw(tiers),
        draw(st.booleans()),
        10.0,
        draw(ran),
        draw(st.frozensets(keys, max_size=2)),
        draw(st.frozensets(keys, max_size=1)),
        draw(said),
        draw(st.dictionaries(keys, st.integers(0, 2), max_size=1)),
        draw(st.dictionaries(keys, st.integers(0, 2), max_size=1)),
        draw(st.dictionaries(st.sampled_from(["a", "b", "s.a"]), st.integers(0, 4), max_size=2)),
        draw(st.dictionaries(st.sampled_from(["a", "b"]), st.floats(0, 4), max_size=2)),
    )
    return call, definition, context


def strictness(policy: Policy, case: tuple[ToolCall, ToolDefinition, Context]) -> int:
    return STRICTNESS[type(policy.decide(*case))]


@given(policies, cases(), rules_of("ask", "deny"))
def test_a_rule_that_asks_or_denies_makes_nothing_more_allowed(
    policy: Policy, case: tuple[ToolCall, ToolDefinition, Context], rule: Rule
) -> None:
    stricter = replace(policy, rules=(*policy.rules, rule))
    assert strictness(stricter, case) >= strictness(policy, case)


@given(policies, cases(), rules_of("allow"))
def test_a_rule_that_allows_makes_nothing_stricter(
    policy: Policy, case: tuple[ToolCall, ToolDefinition, Context], rule: Rule
) -> None:
    assert strictness(replace(policy, rules=(*policy.rules, rule)), case) <= strictness(policy, case)


@given(policies, cases(), limits)
def test_a_limit_makes_nothing_more_allowed(
    policy: Policy, case: tuple[ToolCall, ToolDefinition, Context], limit: Limit
) -> None:
    assert strictness(replace(policy, limits=(*policy.limits, limit)), case) >= strictness(policy, case)


@given(policies, cases())
def test_the_order_of_rules_does_not_matter(policy: Policy, case: tuple[ToolCall, ToolDefinition, Context]) -> None:
    decisions = set()
    for rules in itertools.permutations(policy.rules):
        decision = replace(policy, rules=rules).decide(*case)
        decisions.add((type(decision), isinstance(decision, Allow) and decision.once))
    assert len(decisions) == 1


@given(policies, cases())
def test_no_tier_is_exceeded(policy: Policy, case: tuple[ToolCall, ToolDefinition, Context]) -> None:
    call, definition, context = case
    if definition.tier > context.tier:
        assert isinstance(policy.decide(call, definition, context), Deny)


@given(policies, cases())
def test_a_call_with_low_confidence_never_runs_without_approval(
    policy: Policy, case: tuple[ToolCall, ToolDefinition, Context]
) -> None:
    call, definition, context = case
    guessed = replace(call, confidence=HEURISTIC / 2)
    assert not isinstance(policy.decide(guessed, definition, context), Allow)


@given(policies, cases(), definitions, arguments)
def test_an_approval_or_plan_allows_no_other_call(
    policy: Policy,
    case: tuple[ToolCall, ToolDefinition, Context],
    definition: ToolDefinition,
    other: dict[str, Any],
) -> None:
    call, agreed_to, context = case
    key = approval_key(call, agreed_to)
    with_it = replace(context, approved=frozenset({key}), planned={key: 1}, refused=frozenset(), spent={})
    without = replace(with_it, approved=frozenset(), planned={})
    different = ToolCall(definition.name, other)
    if approval_key(different, definition) != key:
        assert policy.decide(different, definition, with_it) == policy.decide(different, definition, without)


@pytest.mark.need(27)
@given(policies, cases())
def test_a_denial_is_stronger_than_approvals(policy: Policy, case: tuple[ToolCall, ToolDefinition, Context]) -> None:
    call, definition, context = case
    refused = replace(context, refused=frozenset({approval_key(call, definition)}))
    assert isinstance(policy.decide(call, definition, refused), Deny)


@pytest.mark.need(28)
@given(policies, cases())
def test_untrusted_content_makes_nothing_more_allowed(
    policy: Policy, case: tuple[ToolCall, ToolDefinition, Context]
) -> None:
    call, definition, context = case
    before = strictness(policy, (call, definition, replace(context, untrusted=False)))
    assert strictness(policy, (call, definition, replace(context, untrusted=True))) >= before


@given(policies, cases())
def test_after_untrusted_content_only_settled_calls_run_without_approval(
    policy: Policy, case: tuple[ToolCall, ToolDefinition, Context]
) -> None:
    call, definition, context = case
    bare = replace(context, untrusted=True, approved=frozenset(), planned={}, user_sentences=())
    least = policy.ask_when_untrusted
    lifting = any(rule.even_untrusted for rule in policy.rules if rule.effect == "allow")
    if least is not None and definition.tier >= least and not lifting:
        assert not isinstance(policy.decide(call, definition, bare), Allow)
    unmarked = replace(call, repairs=("fallback",))
    if least is not None and not lifting:
        assert not isinstance(policy.decide(unmarked, definition, bare), Allow)


@given(policies, cases())
def test_a_one_time_permission_is_used_up(policy: Policy, case: tuple[ToolCall, ToolDefinition, Context]) -> None:
    call, definition, context = case
    decision = policy.decide(call, definition, context)
    if isinstance(decision, Allow) and decision.once:
        key = approval_key(call, definition)
        spent = {key: max([context.planned.get(key, 0), context.spent.get(key, 0) + 1])}
        again = policy.decide(call, definition, replace(context, spent=spent))
        assert not (isinstance(again, Allow) and again.once)

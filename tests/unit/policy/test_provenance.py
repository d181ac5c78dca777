"""Whose words a call is made of: the user's alone, in one sentence, whole."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from toolwire import Tier, ToolCall, ToolDefinition
from toolwire.policy.policy import Ask, Context, Deny, Policy, Rule
from toolwire.policy.provenance import MAX_VALUE, stands_in, vouching_sentence, vouching_sentences

PAY = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "amount": {"type": "number"},
        "urgent": {"type": "boolean", "default": False},
        "tags": {"type": "array", "items": {"type": "string"}},
        "more": {"type": "object"},
    },
}


def vouched(arguments: dict[str, Any], parameters: dict[str, Any], said: Sequence[str], asking: Sequence[str]) -> bool:
    return bool(vouching_sentence(arguments, parameters, said, asking))


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("", ()),
        ("One. Two! Three.", ("One", "Two", "Three")),
        ("See www.a.org. Then go", ("See www.a.org", "Then go")),
        ("version 1.2.3 is out", ("version 1.2.3 is out",)),
        ("a\nb\r\nc\u2028d", ("a", "b", "c", "d")),
        ("…!!! !", ("…!!",)),
        ("Four?\nFive.\n\nSix. Seven", ("Six", "Seven")),
        ("By no means:\n\nSix.\n \r\nSeven", ("Seven",)),
    ],
)
def test_sentences(text: str, cut: tuple[str, ...]) -> None:
    assert vouching_sentences(text) == cut


@pytest.mark.parametrize(
    ("value", "sentence", "stands"),
    [
        ("Alice", "Write to Alice", True),
        ("Alice", "Write to Alice, please", True),
        ("Alice", "Write to 'Alice'", True),
        ("Alice", "Write to alice", False),
        ("Alice", "Write to Alice2", False),
        ("Alice", "Write to Malice", False),
        ("Alice", "Write to Alice-Maria", False),
        ("Alice", "Write to Alice Maria", True),
        ("bob@x.org", "Ask bob@x.org.", True),
        ("bob@x.org", "Ask bob@x.org.evil", False),
        ("x.org", "Ask bob@x.org", False),
        ("example.com", "Read www.example.com", False),
        ("/etc", "Read path/etc now", False),
        ("/etc", "Read /etc now", True),
        ("/etc", "Read /etc/passwd now", False),
        ("rm -rf /", "Run rm -rf /home", False),
        ("build", "Delete build* now", False),
        ("cafe", "Go to the cafe\u0301", False),
        ("Alice", "Write to Alice\u200bB", False),
        ("", "anything", False),
        ("a", "a b c", False),
        ("...", "wait ... there", False),
        ("Al", "Write to Al", False),
        (98.7, "Pay 98.70 now", True),
        (100, "Pay 100 now", True),
        (100.0, "Pay $100.", True),
        (100, "Pay 1000 now", False),
        (100, "Pay 100,000 now", False),
        (100, "Pay 5100-7 now", False),
        (10, "Pay -10 now", False),
        (20, "On 2024-05-20", False),
        (5, "Pay 5 now", False),
        (True, "Make it True", False),
        (None, "None at all", False),
        ("x" * (MAX_VALUE + 1), "x" * (MAX_VALUE + 1), False),
    ],
)
def test_a_value_stands_in_a_sentence_as_a_whole_or_not(value: Any, sentence: str, stands: bool) -> None:
    assert stands_in(value, sentence) is stands


@pytest.mark.parametrize(
    ("arguments", "said", "ok"),
    [
        ({"to": "Alice", "amount": 100}, "Pay 100 to Alice.", True),
        ({"to": "Alice"}, "PAY Alice.", True),
        ({"to": "Alice", "amount": 100}, "Pay Alice. It was 100.", False),
        ({"to": "Alice"}, "Alice is nice. Pay Bob.", False),
        ({"to": "Alice"}, "Repay Alice.", False),
        ({"to": "Alice"}, "Do not pay Alice.", False),
        ({"to": "Alice"}, "Don't pay Alice.", False),
        ({"to": "Alice"}, "Don’t pay Alice.", False),
        ({"to": "Alice"}, "Never pay Alice.", False),
        ({"to": "Alice", "urgent": False}, "Pay Alice.", True),
        ({"to": "Alice", "urgent": True}, "Pay Alice.", False),
        ({"to": "Alice", "urgent": 0}, "Pay Alice.", False),
        ({"to": "Alice", "tags": ["rent"]}, "Pay Alice the rent.", True),
        ({"to": "Alice", "tags": ["rent", "evil"]}, "Pay Alice the rent.", False),
        ({"to": "Alice", "tags": []}, "Pay Alice the rent.", False),
        ({"to": "Alice", "tags": [["rent"]]}, "Pay Alice the rent.", False),
        ({"to": "Alice", "more": {"rent": "rent"}}, "Pay Alice the rent.", False),
        ({"to": "Alice", "rent": "rent"}, "Pay Alice the rent.", False),
        ({}, "Pay Alice.", False),
        ({"urgent": False}, "Pay Alice.", False),
    ],
)
def test_one_sentence_has_to_ask_and_to_hold_everything(arguments: dict[str, Any], said: str, ok: bool) -> None:
    assert vouched(arguments, PAY, vouching_sentences(said), ("pay", "transfer to")) is ok


@pytest.mark.parametrize(
    "said",
    [
        "Please do not\npay 500 euros to Mallory Inc",
        "Whatever you do, do not, as Mr. Smith asked, pay 500 euros to Mallory Inc",
        "I decline, as Mr. Smith asked, to pay 500 euros to Mallory Inc",
        "dont pay 500 euros to Mallory Inc",
        "don\u00b4t pay 500 euros to Mallory Inc",
        "don`t pay 500 euros to Mallory Inc",
        "DON\uff07T pay 500 euros to Mallory Inc",
        "don t pay 500 euros to Mallory Inc",
        "Did I pay 500 euros to Mallory Inc?",
        "Did I pay 500 euros to Mallory Inc",
        "Did Mr. Smith pay 500 euros to Mallory Inc?",
        "If it rains, pay 500 euros to Mallory Inc",
        "I refuse to pay 500 euros to Mallory Inc",
        "Cancel the order to pay 500 euros to Mallory Inc",
        "Please pay 500 euros to Mallory Inc. No, do not.",
        "By no means:\n\npay 500 euros to Mallory Inc",
        "Pay 500 euros to Mallory Inc. Scratch that.",
        "Ignore this: pay 500 euros to Mallory Inc",
        "Hold off and wait before you pay 500 euros to Mallory Inc",
        "Mallory wants me to pay 500 euros to Mallory Inc; decline it",
    ],
)
def test_what_may_not_be_wanted_is_not_asked_for(said: str) -> None:
    wanted = {"to": "Mallory Inc", "amount": 500}
    assert not vouched(wanted, PAY, vouching_sentences(said), ("pay",))
    assert vouched(wanted, PAY, vouching_sentences(f"{said}.\n\nPlease pay 500 euros to Mallory Inc"), ("pay",))


def test_what_a_rule_asks_by_is_no_refusal() -> None:
    assert vouched({"to": "Alice"}, PAY, vouching_sentences("Please cancel Alice"), ("cancel",))


def test_a_phrase_asks_too() -> None:
    assert vouched({"to": "Alice"}, PAY, ["Transfer to Alice"], ("transfer to",))
    assert not vouched({"to": "Alice"}, PAY, ["Transfer it to Alice"], ("transfer to",))


def test_the_question_quotes_the_user_and_no_words_replace_the_answer() -> None:
    pay = ToolDefinition("pay", parameters=PAY, tier=Tier.RUN)
    policy = Policy((Rule("allow", "pay", asked_for=("pay",), confirm=False),))
    said = vouching_sentences("Pay 100 to Alice, and tell me what Bob wrote.")
    wanted = ToolCall("pay", {"to": "Alice", "amount": 100})
    for definition in (pay, replace(pay, requires_confirmation=True)):
        decision = policy.decide(wanted, definition, Context(Tier.RUN, untrusted=True, user_sentences=said))
        assert isinstance(decision, Ask)
        assert decision.reason.endswith(f'The user\'s message says: "{said[0].removesuffix(".")}"')
        other = ToolCall("pay", {"to": "Eve", "amount": 100})
        decision = policy.decide(other, definition, Context(Tier.RUN, untrusted=True, user_sentences=said))
        assert isinstance(decision, Ask)
        assert "message says" not in decision.reason


@pytest.mark.parametrize("text", ["Pay 100 to Alice.", "A mail from Eve:\n\nDear all,\nplease pay 100 to Alice today."])
@pytest.mark.parametrize("default", ["ask_by_default", "deny_by_default"])
def test_words_ask_where_another_call_would_be_denied(default: str, text: str) -> None:
    pay = ToolDefinition("pay", parameters=PAY, tier=Tier.RUN)
    policy = Policy((Rule("allow", "pay", asked_for=("pay",)),), **{default: frozenset({Tier.RUN})})  # type: ignore[arg-type]
    context = Context(Tier.RUN, user_sentences=vouching_sentences(text))
    assert isinstance(policy.decide(ToolCall("pay", {"to": "Alice", "amount": 100}), pay, context), Ask)
    other = policy.decide(ToolCall("pay", {"to": "Eve", "amount": 100}), pay, context)
    assert isinstance(other, Deny if default == "deny_by_default" else Ask)


def test_a_value_of_the_maximum_length_is_vouched_for_and_a_longer_one_is_not() -> None:
    longest = "x" * 2_000
    assert stands_in(longest, f"send {longest} now")
    assert not stands_in(f"{longest}x", f"send {longest}x now")


@pytest.mark.parametrize("apostrophe", "'`\u2019\u2018\u00b4\u02bc\u2032\uff07\u02b9")
def test_a_negation_counts_with_any_apostrophe(apostrophe: str) -> None:
    assert vouching_sentences(f"You needn{apostrophe}t pay alice 500.") == ()


@pytest.mark.parametrize("sentence", ["pay \u201calice\u201d now", "pay \u2014alice\u2014 now", "pay alice\u2026"])
def test_punctuation_of_any_script_ends_a_word(sentence: str) -> None:
    assert stands_in("alice", sentence)


@pytest.mark.parametrize("joining", ["\u0301", "\u200b", "\u200d", "é", "_", "-", "@"])
def test_what_joins_words_hides_no_longer_word(joining: str) -> None:
    assert not stands_in("alice", f"pay alice{joining}bob now")
    assert not stands_in("alice", f"pay bob{joining}alice now")


def test_marks_without_end_in_a_question_take_linear_time() -> None:
    start = time.process_time()
    assert len(vouching_sentences("Pay 5" + "\u0300\u0316" * 150_000)) == 1
    assert time.process_time() - start < 5  # sorted by insertion, they take a minute

"""Decide whether a call may run: a pure function of a call that was parsed, repaired and validated.

`Deny` beats `Ask` beats `Allow`. The tier of a tool and its request for confirmation always count. Rules add to that;
without a rule that fits, the tier decides alone. Rules that allow fit only calls that they certainly describe; rules
that deny or ask fit all calls that they may describe.

Once untrusted content is in the conversation, its author may have dictated the call. Tools of a high tier then ask, and
so does every call that was read without its format's markers, whatever its tier. There are two exceptions: the call was
planned before, or a rule allows it in spite of such content. Untrusted content never makes a call more likely to run.
If the call contains no more than the user said (see `provenance`), the question quotes the user. The call asks all the
same, because no rule about language knows what a person means.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from types import NoneType
from typing import Any, Literal, get_args

from toolwire._surface import check_items, check_number, check_type, wrong_type
from toolwire.messages import ToolCall
from toolwire.policy.commands import Command as Command
from toolwire.policy.fingerprint import approval_key
from toolwire.policy.hosts import Host as Host
from toolwire.policy.matchers import AnyOf as AnyOf
from toolwire.policy.matchers import Matcher
from toolwire.policy.matchers import Number as Number
from toolwire.policy.matchers import PathGlob as PathGlob
from toolwire.policy.matchers import Text as Text
from toolwire.policy.provenance import vouching_sentence
from toolwire.text.suggest import suggests_keywords
from toolwire.text.truncate import shorten
from toolwire.tools import TIER, Tier, ToolDefinition

HEURISTIC = 0.5
"""Minimum confidence of a call that may run unasked; one below it was guessed from prose, or follows a made-up turn."""
UNMARKED = "fallback"
"""The repair of a call that was read without its format's markers, which any quoted text may look like."""
REMEMBERED = 10_000
"""Number of calls of a tool whose times a session remembers; a limit per time span cannot count more."""


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run.

    Attributes:
        reason: why, where a rule says so.
        once: the permission is used up by this; see `Context.spent`.
    """

    reason: str = ""
    once: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """The call may run once a person has approved exactly this call.

    Attributes:
        reason: for the person who is asked.
        preview: what the call would do. A decision looks at nothing and leaves it empty; the executor has the tool
            show it before anybody is asked, and where it cannot, the call is denied.
    """

    reason: str
    preview: str = ""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not run; the reason is for the model."""

    reason: str


Decision = Allow | Ask | Deny
"""A decision about a call."""

Effect = Literal["allow", "ask", "deny"]
"""The effect of a rule on a call."""


@suggests_keywords
@dataclass(frozen=True, slots=True)
class Rule:
    """An effect for some calls.

    Attributes:
        effect: "allow", "ask" or "deny".
        tool: a glob over the tool's name, with its server before a dot where it has one; "*" is any tool of any server.
            A rule that allows has to name the server; one that asks or denies need not, and does not look at case.
        arguments: what each of these arguments has to be; all have to fit. One that is left out is its default for
            rules that ask or deny, and fits no rule that allows.
        reason: for the person who is asked, and for the model.
        only_untrusted: for rules that ask or deny: they apply only once untrusted content is in the conversation.
        even_untrusted: for rules that allow: untrusted content raises no question either.
        asked_for: for rules that allow: if one sentence of the user contains one of these words and every value of the
            call, the call asks, and the question quotes the sentence; see `provenance`. Such a rule lifts no question.
        confirm: for rules that allow: False: the tool's own request for confirmation raises no question. Tools of
            servers ask all the same: how they describe themselves may change, and what they ask is said with the
            server.
    """

    effect: Effect
    tool: str = "*"
    arguments: Mapping[str, Matcher] = field(default_factory=dict)
    reason: str = ""
    only_untrusted: bool = False
    even_untrusted: bool = False
    asked_for: tuple[str, ...] = ()
    confirm: bool = True

    def __post_init__(self) -> None:
        """Check the effect, and the types that are easily mistaken.

        Raises:
            TypeError: a value is of another type.
            ValueError: there is no such effect.
        """
        check_type("effect", self.effect, str, "'allow', 'ask' or 'deny'")
        if self.effect not in get_args(Effect):
            raise ValueError(f"effect must be 'allow', 'ask' or 'deny', not {self.effect!r:.60}")
        check_type("tool", self.tool, str, "a glob over tools' names")
        check_type("arguments", self.arguments, Mapping, "a mapping from arguments to matchers")
        for name, matcher in self.arguments.items():
            if not hasattr(matcher, "maybe"):
                raise wrong_type(f"arguments[{name!r}]", matcher, "a matcher, such as Text(...)")

    def fits(self, call: ToolCall, definition: ToolDefinition) -> bool:
        """Return whether the rule describes this call; the session is not considered."""
        if not self.names(definition):
            return False
        arguments = call.arguments
        if self.effect == "allow":
            return all(key in arguments and matcher.surely(arguments[key]) for key, matcher in self.arguments.items())
        # A tool runs with its defaults. Without them, a model could evade a rule by leaving the argument out.
        if not self.arguments.keys() <= arguments.keys():
            arguments = {**_defaults(definition), **arguments}
        return all(key in arguments and matcher.maybe(arguments[key]) for key, matcher in self.arguments.items())

    def may_be_hidden_in(self, call: ToolCall, definition: ToolDefinition) -> bool:
        """Return whether a command that the rule describes may be run by a call that does not name it."""
        commands = {key: matcher for key, matcher in self.arguments.items() if isinstance(matcher, Command)}
        if not commands or not self.names(definition):
            return False
        arguments = {**_defaults(definition), **call.arguments}
        return all(
            key in arguments
            and (commands[key].is_unclear(arguments[key]) if key in commands else matcher.maybe(arguments[key]))
            for key, matcher in self.arguments.items()
        )

    def names(self, definition: ToolDefinition) -> bool:
        """Return whether the rule describes calls of this tool."""
        if self.tool == "*":
            return True
        name = full_name(definition)
        if self.effect != "allow":
            return _may_be(name, self.tool)
        # A server chooses its tools' names, so "read_*" must not allow the `read_all` of a server added tomorrow.
        return fnmatchcase(name, self.tool) and ("." in self.tool or not definition.server)


def _defaults(definition: ToolDefinition) -> dict[str, Any]:
    """Return the default values that a schema declares."""
    declared = definition.parameters.get("properties")
    if not isinstance(declared, Mapping):
        return {}
    return {
        key: schema["default"]
        for key, schema in declared.items()
        if isinstance(schema, Mapping) and "default" in schema
    }


def full_name(definition: ToolDefinition) -> str:
    """Return a tool's name with its server's name before it, independent of the name that models see."""
    name, server = definition.name, definition.server
    return name if not server or name.startswith(f"{server}.") else f"{server}.{name}"


@lru_cache(maxsize=4096)
def _may_be(name: str, glob: str) -> bool:
    """Return whether a glob fits a full name, or the name without its server; case is ignored."""
    name, glob = name.casefold(), glob.casefold()
    while not fnmatchcase(name, glob):
        _, dot, name = name.partition(".")
        if not dot:
            return False
    return True


@suggests_keywords
@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on the calls of a session; calls that were allowed count, also if they failed.

    Attributes:
        calls: maximum number of calls; None for no maximum.
        seconds: length of the window, in seconds; 0 for the whole session.
        tool: a glob over the tool's name, with or without its server; all tools that it fits count together.
        running: maximum running time in the whole session, in seconds; None for no maximum. The time of calls that run
            now is included, and they are not stopped.
    """

    calls: int | None = None
    seconds: float = 0.0
    tool: str = "*"
    running: float | None = None

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            TypeError: a value is of another type.
            ValueError: a limit is below zero.
        """
        check_number("calls", self.calls, "a number of calls", whole=True, optional=True)
        check_number("seconds", self.seconds, "a number of seconds")
        check_type("tool", self.tool, str, "a glob over tools' names")
        check_number("running", self.running, "a number of seconds", optional=True)

    def names(self, definition: ToolDefinition) -> bool:
        """Return whether calls of this tool count."""
        return self.concerns(full_name(definition))

    def concerns(self, name: str) -> bool:
        """Return whether calls of the tool with this full name count."""
        return self.tool == "*" or _may_be(name, self.tool)


@dataclass(slots=True)  # one for each call; frozen it takes three times as long to make
class Context:
    """The state of a session, as far as decisions depend on it.

    Attributes:
        tier: the highest tier that the session may use.
        untrusted: untrusted content (a web page, a file, a server's answer) was in the conversation when the model
            wrote the call.
        now: seconds on any clock.
        call_times: by a tool's full name, when its calls ran lately, on that clock and in order.
        approved, refused: approval keys of calls that were approved or refused for the session; see `approval_key`.
        user_sentences: the user's sentences of this question; see `provenance.sentences`.
        planned: by approval key, how often the model planned the call before it read any untrusted content.
        spent: by approval key, how often a permission for once was used.
        counts: by a tool's full name, its calls in the whole session.
        running: by a tool's full name, the seconds that those of its calls ran which are over.
        busy: by a tool's full name, how many of its calls run now, and the sum of the times when they began.
    """

    tier: Tier = Tier.CRAWL
    untrusted: bool = False
    now: float = 0.0
    call_times: Mapping[str, Sequence[float]] = field(default_factory=dict)
    approved: Collection[str] = frozenset()
    refused: Collection[str] = frozenset()
    user_sentences: Sequence[str] = ()
    planned: Mapping[str, int] = field(default_factory=dict)
    spent: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    running: Mapping[str, float] = field(default_factory=dict)
    busy: Mapping[str, tuple[int, float]] = field(default_factory=dict)


@suggests_keywords
@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a program.

    Attributes:
        rules: in any order; the strictest that fits counts.
        limits: how much a session may use.
        ask_when_untrusted: the tier from which tools ask once untrusted content is in the conversation; a call that was
            read without its format's markers asks then at any tier. None: never.
        ask_by_default: tiers whose tools ask where no rule allows them.
        deny_by_default: tiers whose tools are denied where no rule allows them.
    """

    rules: tuple[Rule, ...] = ()
    limits: tuple[Limit, ...] = ()
    ask_when_untrusted: Tier | None = Tier.RUN
    ask_by_default: frozenset[Tier] = frozenset()
    deny_by_default: frozenset[Tier] = frozenset()

    def __post_init__(self) -> None:
        """Check the rules and the limits.

        Raises:
            TypeError: one of them is of another type.
        """
        check_items("rules", self.rules, Rule, "a tuple of Rule")
        check_items("limits", self.limits, Limit, "a tuple of Limit")
        check_type("ask_when_untrusted", self.ask_when_untrusted, (Tier, NoneType), f"{TIER}, or None")

    def decide(self, call: ToolCall, definition: ToolDefinition, context: Context) -> Decision:
        """Decide whether the call may run.

        Args:
            call: repaired and validated; exactly this call would run.
            definition: the tool, as it is registered.
            context: the state of the session.
        """
        return _Case(self, call, definition, context).decision()


class _Case:
    """One decision."""

    __slots__ = ("_call", "_context", "_definition", "_key", "_policy")

    def __init__(self, policy: Policy, call: ToolCall, definition: ToolDefinition, context: Context) -> None:
        self._policy, self._call, self._definition, self._context = policy, call, definition, context
        self._key = ""

    def decision(self) -> Decision:
        call, context = self._call, self._context
        # Denials come first: nothing that is decided below may overrule one.
        reason = self._denied()
        if reason:
            return Deny(reason)
        allowing, lifting, settling = self._allowing() if self._policy.rules else (None, None, None)
        # Only now, because an allowing rule lifts the default of a tier, but none of the denials above.
        if allowing is None and self._definition.tier in self._policy.deny_by_default and not self._user_sentence():
            return Deny(f"No rule allows this call of {call.name}.")
        # Before any permission: rules and approvals are meant for calls that the model made, and prose may quote one.
        if call.confidence < HEURISTIC:
            return self._question(
                "The call was guessed from prose, or is behind another's turn that the model made up."
            )
        # An approval covers rules that ask and untrusted content, too: the person has seen exactly this call.
        if context.approved and self.key in context.approved:
            return Allow("it was approved before")
        reason = self._asked(allowing, settling)
        if reason:
            return self._question(reason)
        chosen = allowing if settling is None else settling
        # Last, because a plan answers only this question, and none of those above.
        if self._is_suspect():
            if lifting is None and self._is_planned():
                return Allow("it was planned before untrusted content was read", once=True)
            if lifting is None:
                return self._question(f"Untrusted content is in the conversation, and {self._doubt}.")
            chosen = lifting
        return Allow("" if chosen is None else chosen.reason)

    def _question(self, reason: str) -> Ask:
        """Return the question for a person, with the user's words if they ask for this call."""
        sentence = self._user_sentence()
        return Ask(f'{reason} The user\'s message says: "{shorten(sentence)}"' if sentence else reason)

    def _user_sentence(self) -> str:
        """Return the user's sentence that asks for this call by a rule with `asked_for`; "" if there is none."""
        sentences = self._context.user_sentences
        for rule in self._policy.rules if sentences else ():
            if rule.asked_for and rule.effect == "allow" and rule.fits(self._call, self._definition):
                parameters = self._definition.parameters
                if sentence := vouching_sentence(self._call.arguments, parameters, sentences, rule.asked_for):
                    return sentence
        return ""

    @property
    def key(self) -> str:
        """The approval key, to which approvals and plans are bound; computed on first use."""
        if not self._key:
            self._key = approval_key(self._call, self._definition)
        return self._key

    def _denied(self) -> str:
        """Return why the call must not run; "" if only the default of its tier could deny it."""
        call, definition, context = self._call, self._definition, self._context
        # Whether there is anything to look up is checked first: the key is a digest, and most calls never need it.
        if context.refused and self.key in context.refused:
            return f"{call.name} with these arguments was refused before. Do not ask again."
        if definition.tier > context.tier:
            needed, now = definition.tier.name, context.tier.name
            return f"{call.name} needs the tier {needed}, and this session is at {now}."
        rule = self._rule("deny")
        if rule is not None:
            return rule.reason or f"A rule forbids this call of {call.name}."
        for limit in self._policy.limits:
            if reason := _met(limit, full_name(definition), context):
                return reason
        return ""

    def _asked(self, allowing: Rule | None, settling: Rule | None) -> str:
        """Return why an approval is needed, apart from untrusted content; "" if none is."""
        name = self._call.name
        rule = self._rule("ask")
        if rule is not None:
            return rule.reason or f"A rule asks before {name} runs."
        if self._is_unclear(allowing):
            return f"A rule is about some commands, and this call of {name} may run one of them without naming it."
        if self._definition.requires_confirmation and settling is None:
            return f"{name} needs an approval each time."
        if allowing is None and self._definition.tier in self._policy.ask_by_default | self._policy.deny_by_default:
            return f"No rule allows this call of {name}."
        return ""

    def _is_unclear(self, allowing: Rule | None) -> bool:
        """Return whether a rule that denies or asks is about commands, and it cannot be known what this call runs.

        A rule that allows exactly such commands has been written for them, so it counts.
        """
        if not self._policy.rules:
            return False
        if allowing is not None and any(isinstance(matcher, Command) for matcher in allowing.arguments.values()):
            return False
        untrusted = self._context.untrusted
        return any(
            rule.effect != "allow"
            and (untrusted or not rule.only_untrusted)
            and rule.may_be_hidden_in(self._call, self._definition)
            for rule in self._policy.rules
        )

    def _rule(self, effect: Effect) -> Rule | None:
        """Return the first rule with this effect that applies to the call."""
        if not self._policy.rules:
            return None
        untrusted = self._context.untrusted
        for rule in self._policy.rules:
            holds = rule.effect == effect and (untrusted or not rule.only_untrusted)
            if holds and rule.fits(self._call, self._definition):
                return rule
        return None

    def _allowing(self) -> tuple[Rule | None, Rule | None, Rule | None]:
        """Return rules that allow the call: at all, in spite of untrusted content, and without confirmation."""
        allowing: Rule | None = None
        lifting: Rule | None = None
        settling: Rule | None = None
        # A server may change its tools' definitions after the rule was written, so its request stays.
        unasked = self._definition.requires_confirmation and not self._definition.server
        for rule in self._policy.rules:
            # The user's words may be a quotation, or be taken back in a way that no rule recognizes.
            if rule.effect != "allow" or rule.asked_for or not rule.fits(self._call, self._definition):
                continue
            if allowing is None:
                allowing = rule
            if rule.even_untrusted and lifting is None:
                lifting = rule
            if unasked and not rule.confirm and settling is None:
                settling = rule
        return allowing, lifting, settling

    def _is_suspect(self) -> bool:
        """Return whether untrusted content may have dictated the call."""
        least = self._policy.ask_when_untrusted
        if least is None or not self._context.untrusted:
            return False
        # A tool that only reads does no harm by itself. A call without markers may be a quotation of the untrusted
        # content, so it asks at any tier.
        return self._definition.tier >= least or UNMARKED in self._call.repairs

    @property
    def _doubt(self) -> str:
        """Why untrusted content makes this call ask."""
        name = self._call.name
        if UNMARKED in self._call.repairs:
            return f"this call of {name} was read without its format's markers: the model may have quoted it"
        return f"{name} can change things"

    def _is_planned(self) -> bool:
        context = self._context
        # Counts, not sets: a call that was planned twice may run twice, and not a third time.
        return bool(context.planned) and context.planned.get(self.key, 0) > context.spent.get(self.key, 0)


def _met(limit: Limit, tool: str, context: Context) -> str:
    """Return why a limit forbids one more call of a tool; "" if it does not."""
    concerns = limit.concerns
    if not concerns(tool):
        return ""
    if limit.calls is not None:
        if limit.seconds:
            # The times are in order, so the calls within the span are counted without a look at each.
            since = context.now - limit.seconds
            calls = sum(
                len(times) - bisect_left(times, since) for name, times in context.call_times.items() if concerns(name)
            )
        else:
            # Not the times: only the latest are remembered, and a long session would never reach the limit.
            calls = sum(count for name, count in context.counts.items() if concerns(name))
        if calls >= limit.calls:
            span = f" in {limit.seconds:g} seconds" if limit.seconds else " in this session"
            return f"{limit.tool} may run {limit.calls} times{span}, and did."
    if limit.running is not None:
        seconds_used = sum(seconds for name, seconds in context.running.items() if concerns(name))
        # Calls that still run count with their time so far, or calls started together would all be within the limit.
        seconds_used += sum(
            count * context.now - since for name, (count, since) in context.busy.items() if concerns(name)
        )
        if seconds_used >= limit.running:
            return f"{limit.tool} may run for {limit.running:g} seconds in this session, and did."
    return ""

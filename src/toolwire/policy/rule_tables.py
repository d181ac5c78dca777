"""Policies in a TOML file, with all features that policies in code have.

    [policy]
    ask_when_untrusted = "run"        # the tier from which tools ask after untrusted content; or "never"
    default = { run = "ask" }         # by tier, where no rule allows a call: "allow", "ask" or "deny"

    [[policy.rules]]
    effect = "allow"                  # or "ask", "deny"
    tool = "execute_command"          # a glob; "server.name" for tools of servers
    arguments = { command = { begins = ["npm", "install"] } }
    confirm = false                   # not even because the tool itself asks each time

    [[policy.limits]]
    tool = "send_*"
    calls = 5
    seconds = 3600                    # without it: in the whole session

A value that has no effect is an error: a glob that never fits anything, a key that a rule of this effect ignores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, field_validator, model_validator

from toolwire.errors import ConfigurationError
from toolwire.policy.matchers import Matcher
from toolwire.policy.policy import REMEMBERED, AnyOf, Command, Effect, Host, Limit, Number, PathGlob, Policy, Rule, Text
from toolwire.text.suggest import closest, did_you_mean
from toolwire.tools import Tier

_TIERS = {tier.name.lower(): tier for tier in Tier}
_NEVER_IN_NAMES = re.compile(r"""[\s\x00-\x1f\x7f-\x9f<>{}()"'=,]""")
_OPERATORS = frozenset({";", "&", "&&", "|", "||", ">", ">>", "<", "<<", "2>"})


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _tier(value: Any) -> Any:
    tier = _TIERS.get(value.lower()) if isinstance(value, str) else value if isinstance(value, Tier) else None
    if tier is None:
        raise ValueError(f"a tier is one of {', '.join(_TIERS)}, not {value!r:.40}")
    return tier


def _tier_or_never(value: Any) -> Any:
    return None if isinstance(value, str) and value.lower() == "never" else _tier(value)


TierName = Annotated[Tier, PlainValidator(_tier)]
"""A tier by its name, in any case."""
_TierOrNever = Annotated[Tier | None, PlainValidator(_tier_or_never)]


def _tool(value: Any) -> Any:
    if not isinstance(value, str) or not value:
        raise ValueError("a tool is named by text that is not empty")
    if match := _NEVER_IN_NAMES.search(value):
        raise ValueError(f"{value!r} fits no tool: no name holds {match.group()!r}")
    # Such a glob would be compared as plain text and fit nothing, and the rule would silently have no effect.
    if value.count("[") != value.count("]"):
        raise ValueError(f"{value!r} fits no tool: its bracket is not closed")
    return value


_ToolGlob = Annotated[str, BeforeValidator(_tool)]


# -- what an argument has to be ------------------------------------------------------------------------------------


def _text(table: Mapping[str, Any]) -> Matcher:
    return Text(_string(table, "text"))


def _path(table: Mapping[str, Any]) -> Matcher:
    glob = _string(table, "glob")
    if not glob.strip("/") and glob != "/":
        raise ValueError("the glob is empty; `**` is every path")
    # A path is compared after each ".." in it is resolved, so such a pattern would fit nothing.
    if ".." in glob.split("/"):
        raise ValueError(f"{glob!r} leaves its own place with '..'; write where it leads")
    if "\\" in glob or "\0" in glob or glob.startswith("~"):
        raise ValueError(f"{glob!r} fits no path: write '/' between names, and homes by their full path")
    base = _string(table, "base") if "base" in table else "/"
    if not base.startswith("/"):
        raise ValueError(f"the base {base!r} is no absolute path")
    return PathGlob(glob, base)


def _begins(table: Mapping[str, Any]) -> Matcher:
    return Command(_words(table["begins"]), options=_options(table))


def _exactly(table: Mapping[str, Any]) -> Matcher:
    return Command(_words(table["exactly"]), exact=True)


def _options(table: Mapping[str, Any]) -> tuple[str, ...]:
    value = table.get("options", [])
    if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value):
        raise ValueError('options are a list of globs, such as ["-v", "--depth=*"]')
    # An operand in this list is probably meant as a restriction, but operands are not restricted by it.
    if odd := next((word for word in value if word[0] not in "-+@*?[" and "=" not in word), ""):
        raise ValueError(
            f"{odd!r} is no option: those begin with -, + or @, or set a variable; all else is let in anyway"
        )
    return tuple(value)


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):
        raise ValueError('a command is a list of its words, such as ["npm", "install"]')
    # A command as one text would never equal the first word of a call, so the rule would fit nothing.
    if " " in value[0].strip() or "\t" in value[0]:
        raise ValueError(f"{value[0]!r} is several words; each is an item of its own: {value[0].split()}")
    # A line with operators is taken apart, and each of its commands is compared by itself.
    if operator := next((word for word in value if word in _OPERATORS), ""):
        raise ValueError(
            f"{operator!r} is the shell's, and no part of a command that a rule fits; write a rule for each"
        )
    return tuple(value)


def _host(table: Mapping[str, Any]) -> Matcher:
    glob = _string(table, "host")
    if not glob or re.search(r"[\s/@\[\]%]", glob) or (":" in glob and not re.fullmatch(r"[0-9a-fA-F:.*?]+", glob)):
        raise ValueError(f'{glob!r} fits no host: write only the host, such as "*.example.org", or "private"')
    try:
        glob.encode("idna")
    except UnicodeError as error:
        raise ValueError(f"{glob!r} fits no host: {error}") from error
    if glob.endswith("."):
        raise ValueError(f"{glob!r} fits no host: leave the last dot out")
    return Host(glob.lower())


def _one_of(table: Mapping[str, Any]) -> Matcher:
    values = table["one_of"]
    if not isinstance(values, list) or not values:
        raise ValueError("one_of is a list of values that is not empty")
    return AnyOf(tuple(values))


def _number(table: Mapping[str, Any]) -> Matcher:
    ends = [table.get("at_least"), table.get("at_most")]
    # `True` is an int in Python, and `at_least = true` is a mistake.
    if any(end is not None and (isinstance(end, bool) or not isinstance(end, int | float)) for end in ends):
        raise ValueError("at_least and at_most are numbers")
    low, high = ends
    if low is not None and high is not None and low > high:
        raise ValueError(f"no number is at least {low} and at most {high}")
    return Number(low, high)


_MATCHERS: dict[str, tuple[frozenset[str], Callable[[Mapping[str, Any]], Matcher]]] = {
    "text": (frozenset({"text"}), _text),
    "glob": (frozenset({"glob", "base"}), _path),
    "begins": (frozenset({"begins", "options"}), _begins),
    "exactly": (frozenset({"exactly"}), _exactly),
    "host": (frozenset({"host"}), _host),
    "one_of": (frozenset({"one_of"}), _one_of),
    "at_least": (frozenset({"at_least", "at_most"}), _number),
    "at_most": (frozenset({"at_least", "at_most"}), _number),
}
"""By the key that identifies a matcher: the keys that may be combined, and the function that builds it."""


def _matcher(value: Any) -> Any:
    names = ", ".join(_MATCHERS)
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f'an argument is described by a table such as {{ text = "a*" }}; known are {names}')
    kinds = [key for key in value if key in _MATCHERS]
    unknown = [key for key in value if key not in _MATCHERS and key not in ("base", "options")]
    if unknown or not kinds:
        key = str((unknown or list(value))[0])
        hint = did_you_mean(closest(key, _MATCHERS))
        raise ValueError(f"unknown matcher {key!r}{hint} (known are {names})")
    together, make = _MATCHERS[kinds[0]]
    # Two conditions in one table could mean "and" or "or". Two rules say which.
    if odd := [key for key in value if key not in together]:
        raise ValueError(f"{kinds[0]} and {odd[0]} do not go together; write a rule for each")
    return make(value)


def _string(table: Mapping[str, Any], key: str) -> str:
    value = table[key]
    if not isinstance(value, str):
        raise ValueError(f"{key} is text, not {value!r:.40}")
    return value


_Matcher = Annotated[Any, PlainValidator(_matcher)]


# -- the tables ----------------------------------------------------------------------------------------------------


class RuleTable(_Strict):
    """One of `[[policy.rules]]`; see `Rule`."""

    effect: Effect
    tool: _ToolGlob = "*"
    arguments: dict[str, _Matcher] = Field(default_factory=dict)
    reason: str = ""
    only_untrusted: bool = False
    even_untrusted: bool = False
    asked_for: tuple[str, ...] = ()
    confirm: bool = True

    @field_validator("asked_for")
    @classmethod
    def _has_words(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if empty := [word for word in value if not any(map(str.isalnum, word))]:
            raise ValueError(f"{empty[0]!r} is no word")
        return value

    @model_validator(mode="after")
    def _is_meant(self) -> RuleTable:
        if self.effect == "allow" and self.only_untrusted:
            raise ValueError("only_untrusted is for rules that ask or deny")
        for key in ("even_untrusted", "asked_for"):
            if self.effect != "allow" and getattr(self, key):
                raise ValueError(f"{key} is for rules that allow")
        if self.effect != "allow" and not self.confirm:
            raise ValueError("confirm = false is for rules that allow; others ask or deny whatever the tool wants")
        return self

    def to_rule(self) -> Rule:
        """Return the rule."""
        return Rule(
            self.effect,
            self.tool,
            dict(self.arguments),
            self.reason,
            self.only_untrusted,
            self.even_untrusted,
            self.asked_for,
            self.confirm,
        )


class LimitTable(_Strict):
    """One of `[[policy.limits]]`; see `Limit`."""

    calls: int | None = Field(default=None, ge=0)
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    tool: _ToolGlob = "*"
    running: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _is_meant(self) -> LimitTable:
        if self.calls is None and self.running is None:
            raise ValueError("a limit needs calls, running, or both")
        if self.seconds and self.calls is None:
            raise ValueError("seconds is the span of calls; seconds of running are called running")
        if self.seconds and self.calls is not None and self.calls >= REMEMBERED:
            raise ValueError(f"at most {REMEMBERED - 1} calls can be counted in a span of seconds")
        return self

    def to_limit(self) -> Limit:
        """Return the limit."""
        return Limit(self.calls, self.seconds, self.tool, self.running)


class Defaults(_Strict):
    """The table `policy.default`: the effect where no rule allows a call, by tier.

    Attributes:
        crawl: for tools that look around.
        walk: for tools that read.
        run: for tools that change something.
    """

    crawl: Effect = "allow"
    walk: Effect = "allow"
    run: Effect = "allow"


class PolicyTable(_Strict):
    """The table `[policy]`; `to_policy` returns the policy.

    Attributes:
        ask_when_untrusted: the tier from which tools ask once untrusted content is in the conversation, or "never".
        default: the effect where no rule allows a call, by tier.
        rules: rules in any order; the strictest that matches a call counts.
        limits: how much a session may use.
    """

    ask_when_untrusted: _TierOrNever = Tier.RUN
    default: Defaults = Field(default_factory=Defaults)
    rules: tuple[RuleTable, ...] = ()
    limits: tuple[LimitTable, ...] = ()

    def to_policy(self) -> Policy:
        """Return the policy that the table describes."""
        effects = {tier: getattr(self.default, name) for name, tier in _TIERS.items()}
        return Policy(
            tuple(rule.to_rule() for rule in self.rules),
            tuple(limit.to_limit() for limit in self.limits),
            self.ask_when_untrusted,
            frozenset(tier for tier, effect in effects.items() if effect == "ask"),
            frozenset(tier for tier, effect in effects.items() if effect == "deny"),
        )


# -- the other way -------------------------------------------------------------------------------------------------


def as_table(policy: Policy) -> dict[str, Any]:
    """Return the table `[policy]` of a policy, in plain values of TOML and JSON.

    Raises:
        ConfigurationError: a rule has a custom matcher, or contains null, which TOML does not have.
    """
    table: dict[str, Any] = {}
    if policy.ask_when_untrusted is not Tier.RUN:
        least = policy.ask_when_untrusted
        table["ask_when_untrusted"] = "never" if least is None else least.name.lower()
    default: dict[str, Literal["ask", "deny"]] = {}
    for name, tier in _TIERS.items():
        if tier in policy.deny_by_default:
            default[name] = "deny"
        elif tier in policy.ask_by_default:
            default[name] = "ask"
    if default:
        table["default"] = default
    if policy.rules:
        table["rules"] = [_rule_table(rule) for rule in policy.rules]
    limits = [limit for limit in policy.limits if limit.calls is not None or limit.running is not None]
    if limits:
        table["limits"] = [_limit_table(limit) for limit in limits]
    return table


def _rule_table(rule: Rule) -> dict[str, Any]:
    table: dict[str, Any] = {"effect": rule.effect, "tool": rule.tool}
    if rule.arguments:
        table["arguments"] = {name: _matcher_table(matcher) for name, matcher in rule.arguments.items()}
    if rule.reason:
        table["reason"] = rule.reason
    if rule.only_untrusted and rule.effect != "allow":
        table["only_untrusted"] = True
    if rule.even_untrusted and rule.effect == "allow":
        table["even_untrusted"] = True
    if rule.asked_for and rule.effect == "allow":
        table["asked_for"] = list(rule.asked_for)
    if not rule.confirm and rule.effect == "allow":
        table["confirm"] = False
    return table


def _matcher_table(matcher: Matcher) -> dict[str, Any]:
    match matcher:
        case Text(glob):
            return {"text": glob}
        case PathGlob(glob, base):
            return {"glob": glob} if base == "/" else {"glob": glob, "base": base}
        case Command(words, exact=True):
            return {"exactly": list(words)}
        case Command(words, options=options):
            return {"begins": list(words)} | ({"options": list(options)} if options else {})
        case Host(glob):
            return {"host": glob}
        case AnyOf(values) if None not in values:
            return {"one_of": list(values)}
        case Number(low, high):
            ends = {"at_least": low, "at_most": high}
            return {name: end for name, end in ends.items() if end is not None} or {"at_least": float("-inf")}
    raise ConfigurationError(f"a matcher of the program's own, or one of null, cannot be written: {matcher!r:.80}")


def _limit_table(limit: Limit) -> dict[str, Any]:
    table: dict[str, Any] = {"tool": limit.tool}
    if limit.calls is not None:
        table["calls"] = limit.calls
    if limit.calls is not None and limit.seconds:
        table["seconds"] = limit.seconds
    if limit.running is not None:
        table["running"] = limit.running
    return table

"""May this call run? A pure decision about a call that was read, repaired and validated.

`Deny` beats `Ask` beats `Allow`. What a tool's definition asks for always counts: its tier, and confirmation. Rules add
to that; without a rule that fits, the tier decides alone. Rules that allow fit only what they surely describe; rules
that deny or ask fit everything that they may describe.

Once text of strangers is in the conversation, whoever wrote it may have written the call. Then tools from a tier on
ask, unless what is called was settled before (a plan), a rule allows it whatever was read, or it says no more than the
user said (`provenance`). What such text holds never makes a call more likely to run.
"""

from __future__ import annotations

import ipaddress
import posixpath
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol
from urllib.parse import unquote, urlsplit

from toolwire.hashing import approval_key
from toolwire.messages import ToolCall
from toolwire.provenance import vouched
from toolwire.tools import Tier, ToolDefinition

HEURISTIC = 0.5
"""Calls read with less confidence were guessed from prose: they never run without confirmation."""
REMEMBERED = 10_000
"""Calls that a session remembers with their times: what a limit per so many seconds can count."""


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
    """The call may run once somebody has agreed to exactly this.

    Attributes:
        reason: for whoever is asked.
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


class Matcher(Protocol):
    """Whether a rule fits an argument."""

    def surely(self, value: Any) -> bool:
        """It certainly does: for rules that allow."""
        ...

    def maybe(self, value: Any) -> bool:
        """It cannot be ruled out: for rules that deny or ask."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """Text that a glob fits: `*` any characters, `?` one."""

    glob: str

    def surely(self, value: Any) -> bool:
        """The whole text fits."""
        return isinstance(value, str) and fnmatchcase(value, self.glob)

    def maybe(self, value: Any) -> bool:
        """The text fits, case aside; or it is no text."""
        return not isinstance(value, str) or fnmatchcase(value.casefold(), self.glob.casefold())


@dataclass(frozen=True, slots=True)
class PathGlob:
    """Paths below a place: `*` is any name, `**` any number of them. Links are the executor's to resolve.

    Attributes:
        glob: the pattern, `/` between names.
        base: what relative paths begin at.
    """

    glob: str
    base: str = "/"

    def surely(self, value: Any) -> bool:
        """The path fits, and says plainly where it leads."""
        if not isinstance(value, str) or "\0" in value or "\\" in value or value.startswith("~"):
            return False
        return _path_fits(self._names(value), self._pattern())

    def maybe(self, value: Any) -> bool:
        """The path fits in some spelling; or it is no path."""
        if not isinstance(value, str) or "\0" in value or value.startswith("~"):
            return True
        spellings = {value, value.replace("\\", "/"), unquote(value), value.strip()}
        pattern = [name.casefold() for name in self._pattern()]
        return any(_path_fits([name.casefold() for name in self._names(one)], pattern) for one in spellings)

    def _names(self, path: str) -> list[str]:
        return [name for name in posixpath.normpath(posixpath.join(self.base, path)).split("/") if name]

    def _pattern(self) -> list[str]:
        return self._names(self.glob)


@dataclass(frozen=True, slots=True)
class OneOf:
    """Values that are equal to one of these; 1 is not true, and text is no number."""

    values: tuple[Any, ...]

    def surely(self, value: Any) -> bool:
        """It is one of them."""
        return any(_same(value, one) for one in self.values)

    def maybe(self, value: Any) -> bool:
        """It is one of them, case aside; or it holds other values."""
        return isinstance(value, list | dict) or any(_same(_folded(value), _folded(one)) for one in self.values)


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)


def _folded(value: Any) -> Any:
    return value.strip().casefold() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Number:
    """Numbers in a range, its ends included; None: it has no such end."""

    at_least: float | None = None
    at_most: float | None = None

    def surely(self, value: Any) -> bool:
        """A number in the range."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def maybe(self, value: Any) -> bool:
        """A number in the range, or no number."""
        return self.surely(value) or isinstance(value, bool) or not isinstance(value, int | float)


def _path_fits(names: list[str], pattern: list[str]) -> bool:
    """Whether names fit a pattern in which `**` is any number of names; in time of their product."""
    reached = {0}
    for name in [*names, None]:
        closed = set(reached)
        for at in sorted(reached):
            while at < len(pattern) and pattern[at] == "**":
                at += 1
                closed.add(at)
        if name is None:
            return len(pattern) in closed
        reached = {at for at in closed if at < len(pattern) and pattern[at] == "**"}
        reached |= {
            at + 1 for at in closed if at < len(pattern) and pattern[at] != "**" and fnmatchcase(name, pattern[at])
        }
    return False


_SHELL = re.compile(r"[;&|<>`$(){}\[\]*?!#~\n\r\0\\'\"]")
_SEPARATORS = re.compile(r"&&|\|\||[;&|\n\r`(){}]|\$\(")


@dataclass(frozen=True, slots=True)
class Command:
    """Commands that begin with these words, each a glob; words are compared after they were parsed.

    `Command(("npm", "install"))` fits `npm install left-pad` and never `npm install; rm -rf /`.

    Attributes:
        words: the first words.
        exact: nothing may follow them.
    """

    words: tuple[str, ...]
    exact: bool = False

    def surely(self, value: Any) -> bool:
        """One plain command without anything that a shell would read."""
        if isinstance(value, str):
            if _SHELL.search(value):
                return False
            words = value.split()
        elif isinstance(value, list) and all(isinstance(word, str) and "\0" not in word for word in value):
            words = value
        else:
            return False
        return self._fits(words)

    def maybe(self, value: Any) -> bool:
        """Any command in it, or none that can be read."""
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            inner = [word for word in value if any(character.isspace() for character in word)]
            return self._begins(value) or any(self.maybe(word) for word in inner)
        if not isinstance(value, str):
            return True
        for part in _SEPARATORS.split(value):
            try:
                words = shlex.split(part)
            except ValueError:  # quotes that are not closed: it depends on the shell
                words = part.replace('"', "").replace("'", "").split()
            if any(self._begins(words[at:]) for at in range(len(words))):
                return True
        return False

    def _begins(self, words: list[str]) -> bool:
        return self._fits([posixpath.basename(words[0]), *words[1:]]) or self._fits(words) if words else False

    def _fits(self, words: list[str]) -> bool:
        enough = len(words) == len(self.words) if self.exact else len(words) >= len(self.words)
        return enough and all(fnmatchcase(word, glob) for word, glob in zip(words, self.words, strict=False))


_PRIVATE_NAMES = ("localhost", "*.localhost", "*.local", "*.internal", "*.home.arpa", "metadata", "metadata.*")


@dataclass(frozen=True, slots=True)
class Host:
    """URLs of hosts that a glob fits; `private` is every address that is not on the open internet.

    Names are compared as they are written. Whoever fetches has to look again at the address that a name leads to.
    """

    glob: str

    def surely(self, value: Any) -> bool:
        """An http URL of such a host, written plainly. A wildcard never means a private one."""
        host = _host(value)
        if not host:
            return False
        if self.glob == "private":
            return _is_private(host)
        return host == self.glob or (not _is_private(host) and _address(host) is None and fnmatchcase(host, self.glob))

    def maybe(self, value: Any) -> bool:
        """A URL that may lead there, or none that can be read."""
        host = _host(value)
        if not host:
            return True
        return _is_private(host) if self.glob == "private" else fnmatchcase(host, self.glob.casefold())


def _host(value: Any) -> str:
    """The host of an http URL, in small letters; "" if it is none or is written to mislead."""
    if not isinstance(value, str) or re.search(r"[\s\\\0]", value):
        return ""
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or "%" in host:
        return ""
    return host.rstrip(".").casefold()


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is, in any spelling that C libraries read: `2130706433`, `0x7f.1`, `0177.0.0.1`."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    numbers: list[int] = []
    for part in host.split("."):
        if not re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}", part):
            return None
        base = 16 if part[:2] in ("0x", "0X") else 8 if part.startswith("0") and part != "0" else 10
        try:
            numbers.append(int(part, base))
        except ValueError:
            return None
    if len(numbers) > 4 or any(number > 255 for number in numbers[:-1]) or numbers[-1] >= 256 ** (5 - len(numbers)):
        return None
    value = numbers[-1]
    for at, number in enumerate(numbers[:-1]):
        value += number << (8 * (3 - at))
    return ipaddress.IPv4Address(value)


def _is_private(host: str) -> bool:
    address = _address(host)
    if address is None:
        return "." not in host or any(fnmatchcase(host, name) for name in _PRIVATE_NAMES)
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is not None:
            address = inner
    return not address.is_global or address.is_multicast


Effect = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for some calls.

    Attributes:
        effect: "allow", "ask" or "deny".
        tool: a glob over the tool's name, with its server before a dot where it has one; "*" is any tool of any server.
            A rule that allows has to name the server; one that asks or denies need not, and does not look at case.
        arguments: what each of these arguments has to be; all have to fit. One that is left out is its default for
            rules that ask or deny, and fits no rule that allows.
        reason: for those who are asked, and for the model.
        only_untrusted: for rules that ask or deny: they hold only once text of strangers is in the conversation.
        even_untrusted: for rules that allow: nobody is asked because of such text either.
        asked_for: for rules that allow: the user asked for this call, with one of these words and every value of it in
            one sentence; see `provenance`. Such a rule holds even then, and once for each call.
    """

    effect: Effect
    tool: str = "*"
    arguments: Mapping[str, Matcher] = field(default_factory=dict)
    reason: str = ""
    only_untrusted: bool = False
    even_untrusted: bool = False
    asked_for: tuple[str, ...] = ()

    def fits(self, call: ToolCall, definition: ToolDefinition) -> bool:
        """Whether the rule is about this call; what was said and read aside."""
        if not self._names(definition):
            return False
        given = call.arguments
        if self.effect == "allow":
            return all(key in given and one.surely(given[key]) for key, one in self.arguments.items())
        if not self.arguments.keys() <= given.keys():
            given = {**_defaults(definition), **given}
        return all(key in given and one.maybe(given[key]) for key, one in self.arguments.items())

    def _names(self, definition: ToolDefinition) -> bool:
        if self.tool == "*":
            return True
        name = full_name(definition)
        if self.effect != "allow":
            return _may_be(name, self.tool)
        return fnmatchcase(name, self.tool) and ("." in self.tool or not definition.server)


def _defaults(definition: ToolDefinition) -> dict[str, Any]:
    """What arguments are that a call leaves out."""
    declared = definition.parameters.get("properties")
    if not isinstance(declared, Mapping):
        return {}
    return {key: one["default"] for key, one in declared.items() if isinstance(one, Mapping) and "default" in one}


def full_name(definition: ToolDefinition) -> str:
    """A tool's name with its server's before it, however models know it."""
    name, server = definition.name, definition.server
    return name if not server or name.startswith(f"{server}.") else f"{server}.{name}"


def _may_be(name: str, glob: str) -> bool:
    """Whether a glob fits a full name, case aside, or what is left of it without a server."""
    name, glob = name.casefold(), glob.casefold()
    while not fnmatchcase(name, glob):
        _, dot, name = name.partition(".")
        if not dot:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Limit:
    """How much a session may use: calls that were allowed count, whatever became of them.

    Attributes:
        calls: so many calls; None: any number,
        seconds: in so many seconds; 0: in the whole session.
        tool: a glob over the tool's name, with or without its server; all that it fits count together.
        running: so many seconds of running, in the whole session; None: any. A call that runs already is not stopped.
    """

    calls: int | None = None
    seconds: float = 0.0
    tool: str = "*"
    running: float | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What a decision may know of the session.

    Attributes:
        tier: how far the session is unlocked.
        untrusted: text of strangers (a web page, a file, a server's answer) was in the conversation when the model
            wrote the call.
        now: seconds on any clock.
        ran: the calls that ran lately: full names, each with its time on that clock, in the order of these times.
        agreed, refused: approval keys that somebody has decided about for the session; see `approval_key`.
        said: the user's sentences of this question; see `provenance.sentences`.
        planned: by approval key, how often the model wrote that it would make the call, before it read any text of
            strangers.
        spent: by approval key, how often a permission for once was used.
        counts: by a tool's full name, its calls in the whole session.
        running: by a tool's full name, the seconds that its calls ran.
    """

    tier: Tier = Tier.CRAWL
    untrusted: bool = False
    now: float = 0.0
    ran: Sequence[tuple[str, float]] = ()
    agreed: Collection[str] = frozenset()
    refused: Collection[str] = frozenset()
    said: Sequence[str] = ()
    planned: Mapping[str, int] = field(default_factory=dict)
    spent: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    running: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a program.

    Attributes:
        rules: in any order; the strictest that fits counts.
        limits: how much a session may use.
        ask_when_untrusted: the tier from which tools ask once text of strangers is in the conversation; None: never.
        ask_by_default: tiers whose tools ask where no rule allows them.
        deny_by_default: tiers whose tools are denied where no rule allows them.
    """

    rules: tuple[Rule, ...] = ()
    limits: tuple[Limit, ...] = ()
    ask_when_untrusted: Tier | None = Tier.RUN
    ask_by_default: frozenset[Tier] = frozenset()
    deny_by_default: frozenset[Tier] = frozenset()

    def decide(self, call: ToolCall, definition: ToolDefinition, context: Context) -> Decision:
        """Whether the call may run.

        Args:
            call: repaired and validated; exactly this would run.
            definition: the tool's, as it is registered.
            context: what is known of the session.
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
        reason = self._denied()
        if reason:
            return Deny(reason)
        allowing, lifting = self._allowing()
        if allowing is None and self._definition.tier in self._policy.deny_by_default:
            return Deny(f"No rule allows this call of {call.name}.")
        if call.confidence < HEURISTIC:
            return Ask("The call was guessed from prose.")
        if context.agreed and self.key in context.agreed:
            return Allow("it was agreed to before")
        reason = self._asked(allowing)
        if reason:
            return Ask(reason)
        chosen = allowing
        if self._is_suspect():
            if lifting is None and self._is_planned():
                return Allow("it was planned before text of strangers was read", once=True)
            if lifting is None:
                return Ask(f"Text of strangers is in the conversation, and {call.name} can change things.")
            chosen = lifting
        return Allow("" if chosen is None else chosen.reason, once=chosen is not None and bool(chosen.asked_for))

    @property
    def key(self) -> str:
        """What agreements and plans are bound to; made when it is first needed."""
        if not self._key:
            self._key = approval_key(self._call, self._definition)
        return self._key

    def _denied(self) -> str:
        """Why the call must not run; "" if nothing says so but the tier's default may."""
        call, definition, context = self._call, self._definition, self._context
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

    def _asked(self, allowing: Rule | None) -> str:
        """Why somebody is asked, whatever was read; "" if nothing says so."""
        name = self._call.name
        rule = self._rule("ask")
        if rule is not None:
            return rule.reason or f"A rule asks before {name} runs."
        if self._definition.requires_confirmation:
            return f"{name} wants to be agreed to each time."
        if allowing is None and self._definition.tier in self._policy.ask_by_default:
            return f"No rule allows this call of {name}."
        return ""

    def _rule(self, effect: Effect) -> Rule | None:
        """A rule that asks or denies and holds for this call."""
        untrusted = self._context.untrusted
        for rule in self._policy.rules:
            holds = rule.effect == effect and (untrusted or not rule.only_untrusted)
            if holds and rule.fits(self._call, self._definition):
                return rule
        return None

    def _allowing(self) -> tuple[Rule | None, Rule | None]:
        """A rule that allows the call, and one that allows it whatever was read; rules without conditions first."""
        allowing: Rule | None = None
        lifting: Rule | None = None
        for rule in self._policy.rules:
            if rule.effect != "allow" or not rule.fits(self._call, self._definition):
                continue
            if rule.asked_for and not self._is_asked_for(rule):
                continue
            if allowing is None or not rule.asked_for:
                allowing = rule
            if rule.even_untrusted or (rule.asked_for and lifting is None):
                lifting = rule
        return allowing, lifting

    def _is_asked_for(self, rule: Rule) -> bool:
        said = self._context.said
        if not said or not vouched(self._call.arguments, self._definition.parameters, said, rule.asked_for):
            return False
        return self.key not in self._context.spent

    def _is_suspect(self) -> bool:
        """Whether a stranger may be behind the call."""
        least = self._policy.ask_when_untrusted
        return self._context.untrusted and least is not None and self._definition.tier >= least

    def _is_planned(self) -> bool:
        context = self._context
        return bool(context.planned) and context.planned.get(self.key, 0) > context.spent.get(self.key, 0)


def _met(limit: Limit, tool: str, context: Context) -> str:
    """Why a limit forbids one more call of a tool; "" if it does not."""

    def concerns(name: str) -> bool:
        return limit.tool == "*" or _may_be(name, limit.tool)

    if not concerns(tool):
        return ""
    if limit.calls is not None:
        if limit.seconds:
            done = 0
            for name, at in reversed(context.ran):
                if context.now - at > limit.seconds:
                    break
                done += concerns(name)
        else:
            done = sum(count for name, count in context.counts.items() if concerns(name))
        if done >= limit.calls:
            span = f" in {limit.seconds:g} seconds" if limit.seconds else " in this session"
            return f"{limit.tool} may run {limit.calls} times{span}, and did."
    if limit.running is not None:
        used = sum(seconds for name, seconds in context.running.items() if concerns(name))
        if used >= limit.running:
            return f"{limit.tool} may run for {limit.running:g} seconds in this session, and did."
    return ""

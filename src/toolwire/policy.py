"""May this call run? A pure decision about a call that was read, repaired and validated.

`Deny` beats `Ask` beats `Allow`. What a tool's definition asks for always counts: its tier, and confirmation. Rules add
to that; without a rule that fits, the tier decides alone. Rules that allow fit only what they surely describe; rules
that deny or ask fit everything that they may describe.
"""

from __future__ import annotations

import ipaddress
import posixpath
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol
from urllib.parse import unquote, urlsplit

from toolwire.commandlines import Command as Command
from toolwire.hashing import approval_key
from toolwire.messages import ToolCall
from toolwire.tools import Tier, ToolDefinition

HEURISTIC = 0.5
"""Calls read with less confidence were guessed from prose: they never run without confirmation."""


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """The call may run once somebody has agreed to exactly this."""

    reason: str


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
        return _is_private(host) if self.glob == "private" else fnmatchcase(host, self.glob)


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


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for some calls.

    Attributes:
        effect: "allow", "ask" or "deny".
        tool: a glob over the tool's name, with its server before a dot where it has one.
        arguments: what each of these arguments has to be; all have to fit.
        reason: for those who are asked, and for the model.
    """

    effect: Literal["allow", "ask", "deny"]
    tool: str = "*"
    arguments: Mapping[str, Matcher] = field(default_factory=dict)
    reason: str = ""

    def fits(self, call: ToolCall, definition: ToolDefinition) -> bool:
        """Whether the rule is about this call."""
        full = f"{definition.server}.{call.name}" if definition.server else call.name
        if not (fnmatchcase(call.name, self.tool) or fnmatchcase(full, self.tool)):
            return False
        if self.effect == "allow":
            return all(key in call.arguments and one.surely(call.arguments[key]) for key, one in self.arguments.items())
        return all(key in call.arguments and one.maybe(call.arguments[key]) for key, one in self.arguments.items())


@dataclass(frozen=True, slots=True)
class Limit:
    """How often calls may run.

    Attributes:
        calls: this many,
        seconds: in so many seconds; 0: in the whole session.
        tool: a glob over the tool's name.
    """

    calls: int
    seconds: float = 0.0
    tool: str = "*"


@dataclass(frozen=True, slots=True)
class Context:
    """What a decision may know of the session.

    Attributes:
        tier: how far the session is unlocked.
        untrusted: text of strangers (a web page, a file, a server's answer) has entered the conversation.
        now: seconds on any clock.
        ran: the calls that ran before, each with its time on that clock.
        agreed, refused: approval keys that somebody has decided about for the session; see `approval_key`.
    """

    tier: Tier = Tier.CRAWL
    untrusted: bool = False
    now: float = 0.0
    ran: Collection[tuple[str, float]] = ()
    agreed: Collection[str] = frozenset()
    refused: Collection[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a program.

    Attributes:
        rules: in any order; the strictest that fits counts.
        limits: how often calls may run.
        ask_when_untrusted: the tier from which tools ask once text of strangers is in the conversation; None: never.
        ask_by_default: tiers whose tools ask where no rule allows them.
    """

    rules: tuple[Rule, ...] = ()
    limits: tuple[Limit, ...] = ()
    ask_when_untrusted: Tier | None = Tier.RUN
    ask_by_default: frozenset[Tier] = frozenset()

    def decide(self, call: ToolCall, definition: ToolDefinition, context: Context) -> Decision:
        """Whether the call may run.

        Args:
            call: repaired and validated; exactly this would run.
            definition: the tool's, as it is registered.
            context: what is known of the session.
        """
        key = approval_key(call, definition) if context.agreed or context.refused else ""
        if key and key in context.refused:
            return Deny(f"{call.name} with these arguments was refused before. Do not ask again.")
        if denied := self._denied(call, definition, context):
            return denied
        if key and key in context.agreed:
            return Allow("it was agreed to before")
        return self._asked(call, definition, context) or Allow(self._allowed(call, definition) or "")

    def _denied(self, call: ToolCall, definition: ToolDefinition, context: Context) -> Deny | None:
        if definition.tier > context.tier:
            needed, now = definition.tier.name, context.tier.name
            return Deny(f"{call.name} needs the tier {needed}, and this session is at {now}.")
        for rule in self.rules:
            if rule.effect == "deny" and rule.fits(call, definition):
                return Deny(rule.reason or f"A rule forbids this call of {call.name}.")
        for limit in self.limits:
            if fnmatchcase(call.name, limit.tool):
                since = context.now - limit.seconds if limit.seconds else float("-inf")
                done = sum(fnmatchcase(name, limit.tool) and at >= since for name, at in context.ran)
                if done >= limit.calls:
                    span = f" in {limit.seconds:g} seconds" if limit.seconds else " in this session"
                    return Deny(f"{limit.tool} may run {limit.calls} times{span}, and did.")
        return None

    def _asked(self, call: ToolCall, definition: ToolDefinition, context: Context) -> Ask | None:
        if call.confidence < HEURISTIC:
            return Ask("The call was guessed from prose.")
        for rule in self.rules:
            if rule.effect == "ask" and rule.fits(call, definition):
                return Ask(rule.reason or f"A rule asks before {call.name} runs.")
        if definition.requires_confirmation:
            return Ask(f"{call.name} wants to be agreed to each time.")
        if context.untrusted and self.ask_when_untrusted is not None and definition.tier >= self.ask_when_untrusted:
            return Ask(f"Text of strangers is in the conversation, and {call.name} can change things.")
        if definition.tier in self.ask_by_default and self._allowed(call, definition) is None:
            return Ask(f"No rule allows this call of {call.name}.")
        return None

    def _allowed(self, call: ToolCall, definition: ToolDefinition) -> str | None:
        for rule in self.rules:
            if rule.effect == "allow" and rule.fits(call, definition):
                return rule.reason
        return None

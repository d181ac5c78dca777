"""What a conversation has come to: how far it is unlocked, what was read, said, planned, agreed to, and used up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from toolwire.policy import REMEMBERED, Context
from toolwire.provenance import sentences
from toolwire.tools import Tier


@dataclass(slots=True)
class Session:
    """What a conversation has come to; kept by its program from call to call.

    Attributes:
        tier: how far it is unlocked.
        untrusted: text of strangers has entered it.
    """

    tier: Tier = Tier.CRAWL
    untrusted: bool = False
    _ran: dict[str, list[float]] = field(default_factory=dict)
    _agreed: set[str] = field(default_factory=set)
    _refused: set[str] = field(default_factory=set)
    _said: tuple[str, ...] = ()
    _planned: Counter[str] = field(default_factory=Counter)
    _spent: Counter[str] = field(default_factory=Counter)
    _counts: Counter[str] = field(default_factory=Counter)
    _running: dict[str, float] = field(default_factory=dict)

    def context(self, *, now: float, untrusted: bool | None = None) -> Context:
        """What a decision may know; for this moment, and for calls that the model wrote when it had read so much."""
        return Context(
            self.tier,
            self.untrusted if untrusted is None else untrusted,
            now,
            self._ran,
            self._agreed,
            self._refused,
            self._said,
            self._planned,
            self._spent,
            self._counts,
            self._running,
        )

    def said(self, text: str) -> None:
        """The user asks this: their own words, nothing that was pasted or quoted. Earlier ones and plans are over."""
        self._said = sentences(text)
        self._planned.clear()
        self._spent.clear()

    def planned(self, key: str) -> None:
        """The model wrote that it would make a call, before it had read any text of strangers."""
        self._planned[key] += 1

    def spent(self, key: str) -> None:
        """A permission for once is used up."""
        self._spent[key] += 1

    def ran(self, name: str, at: float) -> None:
        """A call runs now."""
        times = self._ran.setdefault(name, [])
        times.append(at)
        if len(times) >= 2 * REMEMBERED:
            del times[:REMEMBERED]
        self._counts[name] += 1

    def ended(self, name: str, seconds: float) -> None:
        """A call ran for so long."""
        self._running[name] = self._running.get(name, 0.0) + seconds

    def decided(self, key: str, *, agreed: bool) -> None:
        """Somebody has decided for the session."""
        (self._agreed if agreed else self._refused).add(key)

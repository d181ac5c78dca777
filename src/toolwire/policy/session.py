"""What a conversation has come to: how far it is unlocked, what was read, said, planned, agreed to, and used up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from toolwire._surface import check_type
from toolwire.policy.policy import REMEMBERED, Context
from toolwire.policy.provenance import vouching_sentences
from toolwire.tools import TIER, Tier

_NONE = 0, 0.0


@dataclass(slots=True)
class Session:
    """What a conversation has come to; kept by its program from call to call.

    Attributes:
        tier: how far it is unlocked.
        untrusted: text of strangers has entered it.
        handed_on: its tasks are a model's words; see `hand_on`.
        ceiling: no words of a task unlock more.
    """

    tier: Tier = Tier.CRAWL
    untrusted: bool = False
    handed_on: bool = False
    ceiling: Tier = Tier.RUN
    _ran: dict[str, list[float]] = field(default_factory=dict)
    _agreed: set[str] = field(default_factory=set)
    _refused: set[str] = field(default_factory=set)
    _declined: set[str] = field(default_factory=set)
    _said: tuple[str, ...] = ()
    _planned: Counter[str] = field(default_factory=Counter)
    _spent: Counter[str] = field(default_factory=Counter)
    _counts: Counter[str] = field(default_factory=Counter)
    _running: dict[str, float] = field(default_factory=dict)
    _busy: dict[str, tuple[int, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the tier.

        Raises:
            TypeError: it is none.
        """
        check_type("tier", self.tier, Tier, TIER)

    def __repr__(self) -> str:
        """Return the public state; nothing that the user said."""
        state = [f"tier {self.tier.name}", "untrusted" * self.untrusted, "handed on" * self.handed_on]
        calls = sum(self._counts.values())
        return f"<Session: {', '.join(filter(None, state))}, {calls} calls>"

    def context(self, *, now: float, untrusted: bool | None = None) -> Context:
        """What a decision may know; for this moment, and for calls that the model wrote when it had read so much."""
        return Context(
            self.tier,
            self.untrusted if untrusted is None else untrusted,
            now,
            self._ran,
            self._agreed,
            self._refused | self._declined if self._declined else self._refused,
            self._said,
            self._planned,
            self._spent,
            self._counts,
            self._running,
            self._busy,
        )

    def hand_on(self) -> Session:
        """A session for a task that a model hands on.

        What the user said and what was read hold there. Both sessions are of one user: what is agreed to, refused and
        used up in one is so in the other, and calls of both count against one limit. The task itself is a model's
        words: they vouch for nothing, and unlock no more than is unlocked here.
        """
        return Session(
            untrusted=self.untrusted,
            handed_on=True,
            ceiling=min(self.tier, self.ceiling),
            _ran=self._ran,
            _agreed=self._agreed,
            _refused=self._refused,
            _declined=self._declined,
            _said=self._said,
            _spent=self._spent,
            _counts=self._counts,
            _running=self._running,
            _busy=self._busy,
        )

    def said(self, text: str) -> None:
        """The user asks this: their own words, nothing that was pasted or quoted.

        Earlier words, plans, and refusals that were not for the whole session are over.
        """
        self._said = vouching_sentences(text)
        self._declined.clear()
        self._planned.clear()
        self._spent.clear()

    def planned(self, key: str) -> None:
        """The model wrote that it would make a call, before it had read any text of strangers."""
        self._planned[key] += 1

    def spent(self, key: str) -> None:
        """A permission for once is used up."""
        self._spent[key] += 1

    def ran(self, name: str, at: float) -> None:
        """A call may run now, and counts."""
        times = self._ran.setdefault(name, [])
        times.append(at)
        if len(times) >= 2 * REMEMBERED:
            del times[:REMEMBERED]
        self._counts[name] += 1

    def began(self, name: str, at: float) -> None:
        """A call that was counted begins to run."""
        count, since = self._busy.get(name, _NONE)
        self._busy[name] = count + 1, since + at

    def ended(self, name: str, at: float, now: float) -> None:
        """A call that began then runs no more."""
        count, since = self._busy.pop(name, (1, at))
        if count > 1:
            self._busy[name] = count - 1, since - at
        self._running[name] = self._running.get(name, 0.0) + now - at

    def declined(self, key: str) -> None:
        """Somebody has refused a call; the same one is not asked about again before the user asks something else."""
        self._declined.add(key)

    @property
    def account(self) -> int:
        """The same for sessions of one user; see `hand_on`."""
        return id(self._declined)

    def decided(self, key: str, *, agreed: bool) -> None:
        """Somebody has decided for the session."""
        (self._agreed if agreed else self._refused).add(key)

"""The state of a conversation that decisions depend on: tier, taint, approvals, plans and use of limits."""

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
    """The state of a conversation; the program keeps it from call to call.

    Attributes:
        tier: the highest tier that its calls may use.
        untrusted: untrusted content has entered it.
        delegated: a model wrote its tasks; see `delegate`.
        ceiling: the highest tier that a task can unlock.
    """

    tier: Tier = Tier.CRAWL
    untrusted: bool = False
    delegated: bool = False
    ceiling: Tier = Tier.RUN
    _call_times: dict[str, list[float]] = field(default_factory=dict)
    _approved: set[str] = field(default_factory=set)
    _refused: set[str] = field(default_factory=set)
    _declined: set[str] = field(default_factory=set)
    _user_sentences: tuple[str, ...] = ()
    _planned: Counter[str] = field(default_factory=Counter)
    _spent: Counter[str] = field(default_factory=Counter)
    _counts: Counter[str] = field(default_factory=Counter)
    _running: dict[str, float] = field(default_factory=dict)
    _busy: dict[str, tuple[int, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the tier.

        Raises:
            TypeError: it is not a `Tier`.
        """
        check_type("tier", self.tier, Tier, TIER)

    def __repr__(self) -> str:
        """Return the public state; nothing that the user said."""
        state = [f"tier {self.tier.name}", "untrusted" * self.untrusted, "delegated" * self.delegated]
        calls = sum(self._counts.values())
        return f"<Session: {', '.join(filter(None, state))}, {calls} calls>"

    def context(self, *, now: float, untrusted: bool | None = None) -> Context:
        """Return the state for a decision; `untrusted`, if given, is the taint from when the model wrote the call."""
        return Context(
            self.tier,
            # Content that arrived after the model wrote the call cannot have dictated it.
            self.untrusted if untrusted is None else untrusted,
            now,
            self._call_times,
            self._approved,
            self._refused | self._declined if self._declined else self._refused,
            self._user_sentences,
            self._planned,
            self._spent,
            self._counts,
            self._running,
            self._busy,
        )

    def delegate(self) -> Session:
        """Return a session for a task that a model delegates.

        The user's sentences and the taint apply there too. Both sessions share approvals, refusals and limits. The
        task itself is written by a model: it vouches for nothing, and unlocks no tier above this session's.
        """
        # The collections are shared, not copied. With a fresh budget and no refusals in each delegated task, a model
        # could evade both by delegating again. Plans are not shared, because the other model did not make them.
        return Session(
            untrusted=self.untrusted,
            delegated=True,
            ceiling=min(self.tier, self.ceiling),
            _call_times=self._call_times,
            _approved=self._approved,
            _refused=self._refused,
            _declined=self._declined,
            _user_sentences=self._user_sentences,
            _spent=self._spent,
            _counts=self._counts,
            _running=self._running,
            _busy=self._busy,
        )

    def record_question(self, text: str) -> None:
        """Record the user's question: their own words, nothing that was pasted or quoted.

        Earlier words, plans, and refusals that were not for the whole session expire.
        """
        self._user_sentences = vouching_sentences(text)
        # A refusal was about what the user wanted then. The next question may ask for just this call.
        self._declined.clear()
        self._planned.clear()
        self._spent.clear()

    def record_plan(self, key: str) -> None:
        """Record that the model planned a call before it had read any untrusted content."""
        self._planned[key] += 1

    def record_use(self, key: str) -> None:
        """Record that a permission for one call was used."""
        self._spent[key] += 1

    def record_call(self, name: str, at: float) -> None:
        """Record that a call was allowed; it counts from now on."""
        times = self._call_times.setdefault(name, [])
        times.append(at)
        # Half of the list goes at once, so that the cost of a deletion is spread over as many calls.
        if len(times) >= 2 * REMEMBERED:
            del times[:REMEMBERED]
        self._counts[name] += 1

    def record_start(self, name: str, at: float) -> None:
        """Record that a call that was counted begins to run."""
        # The sum of the start times is enough to know the time of all running calls: count * now - sum.
        count, since = self._busy.get(name, _NONE)
        self._busy[name] = count + 1, since + at

    def record_end(self, name: str, at: float, now: float) -> None:
        """Record that a call that began at `at` has ended."""
        count, since = self._busy.pop(name)
        if count > 1:
            self._busy[name] = count - 1, since - at
        self._running[name] = self._running.get(name, 0.0) + now - at

    def record_refusal(self, key: str) -> None:
        """Record a refusal; the same call is not asked about again before the user's next question."""
        self._declined.add(key)

    @property
    def account(self) -> int:
        """Identifier shared by a session and the sessions delegated from it; see `delegate`."""
        return id(self._declined)

    def record_decision(self, key: str, *, approved: bool) -> None:
        """Record a decision that a person made for the whole session."""
        (self._approved if approved else self._refused).add(key)

"""Health of backends, by the outcome of their answers: those that fail or ask for a pause are not asked for a while."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic, time

from toolwire.client.transport import retry_after
from toolwire.errors import ProviderError
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.model_table import ServedModel
from toolwire.gateway.questions import Answer, Question, Upstream, WrappedUpstream
from toolwire.providers.failure_kinds import RATE_LIMIT, UNAVAILABLE

FAILURES = 5
"""Failures in a row after which a backend is not asked for a while."""
FIRST_REST = 5.0
"""Seconds for which it is not asked; doubled each time it fails again."""
LONGEST_REST = 60.0
"""Maximum length of such a rest, in seconds."""
LONGEST_PAUSE = 3600.0
"""Maximum length of a pause that a backend asks for with `Retry-After`, in seconds."""
TRIAL_SECONDS = 10.0
"""Seconds for which other requests wait, after a rest, for the outcome of the first one."""
MAX_REMEMBERED = 1_000
"""Maximum number of backends and models that are remembered: clients may choose the names of models."""


@dataclass(slots=True)
class _Record:
    """The recent outcomes of one model at one backend.

    Attributes:
        failures: failures since the last success.
        rests_until: the time until which it is not asked.
        is_limited: whether it asked for the pause itself.
    """

    failures: int = 0
    rests_until: float = 0.0
    is_limited: bool = False


class UpstreamHealth:
    """Remembers the outcomes of all backends.

    Args:
        clock: returns the time in seconds.
        failures: failures in a row after which a backend is not asked for a while; infinity to ask it always.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, *, failures: float = FAILURES) -> None:
        self._clock = clock
        self._failures = failures
        self._records: OrderedDict[tuple[str, str], _Record] = OrderedDict()

    def in_order(self, served: ServedModel, model: str) -> Iterator[Upstream]:
        """Yield the backends that may be asked now, in the order in which they are; their outcomes are remembered.

        Args:
            served: the model.
            model: its name, as the client wrote it.

        Raises:
            GatewayFailure: none may be asked now; it says when.
        """
        resting: list[_Record] = []
        has_any = False
        for upstream in served.in_order():
            record = self._record(upstream, model)
            if self._admits(record):
                has_any = True
                yield _Watched(upstream, self, record)
            else:
                resting.append(record)
        if not has_any and resting:
            first = min(resting, key=lambda record: record.rests_until)
            seconds = max(math.ceil(first.rests_until - self._clock()), 1)
            kind = RATE_LIMIT if first.is_limited else UNAVAILABLE
            reason = "asked for a pause" if first.is_limited else "failed several times in a row"
            raise GatewayFailure(
                kind, f"each backend of {model!r:.200} {reason}: ask again in {seconds} s", retry_after=str(seconds)
            )

    def _record(self, upstream: Upstream, model: str) -> _Record:
        key = upstream.name, model
        record = self._records.setdefault(key, _Record())
        self._records.move_to_end(key)
        if len(self._records) > MAX_REMEMBERED:
            self._records.popitem(last=False)
        return record

    def _admits(self, record: _Record) -> bool:
        now = self._clock()
        if now < record.rests_until:
            return False
        if record.failures >= self._failures:
            # One request finds out whether it answers again; the others go elsewhere meanwhile.
            record.rests_until, record.is_limited = now + TRIAL_SECONDS, False
        return True

    def succeeded(self, record: _Record) -> None:
        """Remember an answer that arrived as a whole."""
        record.failures, record.rests_until, record.is_limited = 0, 0.0, False

    def failed(self, record: _Record, failure: GatewayFailure | None) -> None:
        """Remember a failure; None for an answer that was cut off."""
        now = self._clock()
        pause = (
            0.0
            if failure is None
            else min(retry_after({"retry-after": failure.retry_after}, time) or 0.0, LONGEST_PAUSE)
        )
        if pause:
            record.rests_until, record.is_limited = max(record.rests_until, now + pause), True
        if failure is not None and failure.status < 500:
            if not pause and not record.is_limited:
                record.failures, record.rests_until = 0, 0.0  # it does answer
            return
        record.failures += 1
        if record.failures >= self._failures:
            rest = min(FIRST_REST * 2 ** min(record.failures - self._failures, 10), LONGEST_REST)
            record.rests_until, record.is_limited = max(record.rests_until, now + rest), bool(pause)


class _Watched(WrappedUpstream):
    """A backend whose outcomes are remembered."""

    def __init__(self, upstream: Upstream, health: UpstreamHealth, record: _Record) -> None:
        super().__init__(upstream)
        self._health = health
        self._record = record

    @asynccontextmanager
    async def open(self, question: Question) -> AsyncGenerator[Answer]:
        try:
            async with self._upstream.open(question) as answer:
                yield answer
        except GatewayFailure as failure:
            if not failure.is_own:
                self._health.failed(self._record, failure)
            raise
        except ProviderError:
            self._health.failed(self._record, None)
            raise
        else:
            self._health.succeeded(self._record)

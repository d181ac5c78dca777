"""Probes: one rule each that an endpoint has to follow, and how its answers are compared with the rule."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from toolwire.errors import ProviderError
from toolwire.probes.probed_model import ProbedModel

_Check = Callable[[ProbedModel], Awaitable[None]]
_NOT_AN_ENDPOINT = frozenset((0, 401, 403, 404))
"""HTTP statuses of a first answer after which no other request can succeed; 0 if no server answered."""


class ProbeFailed(Exception):
    """The endpoint breaks the rule; the message says how."""


class ProbeSkipped(Exception):
    """The rule does not apply to this endpoint, or cannot be examined; the message says why."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One rule.

    Attributes:
        id: its name, which does not change.
        title: the rule as a sentence.
        source: the page that states the rule.
        check: asks the endpoint; raises `ProbeFailed` or `ProbeSkipped`, or a `ProviderError` of the client.
        smoke: whether it is one of the few that `toolwire check --smoke` sends.
    """

    id: str
    title: str
    source: str
    check: _Check
    smoke: bool = False


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a probe.

    Attributes:
        probe: the id of the probe.
        title: its rule.
        status: whether the endpoint follows the rule; "skipped" if that was not examined.
        reason: why it failed or was skipped; "" if it passed.
        source: the page that states the rule.
    """

    probe: str
    title: str
    status: Literal["passed", "failed", "skipped"]
    reason: str
    source: str


async def run_probes(model: ProbedModel, probes: Iterable[Probe]) -> AsyncGenerator[ProbeResult]:
    """Run probes one after the other, and yield their results.

    If the first one shows that there is no such endpoint or that it refuses the key, the others are skipped.

    Raises:
        ConfigurationError: no key is set.
    """
    unreachable = False
    for number, probe in enumerate(probes):
        status: Literal["passed", "failed", "skipped"] = "passed"
        reason = ""
        try:
            if unreachable:
                raise ProbeSkipped("the first request failed")
            await probe.check(model)
        except ProbeSkipped as error:
            status, reason = "skipped", str(error)
        except ProbeFailed as error:
            status, reason = "failed", str(error)
        except ProviderError as error:
            status, reason = "failed", f"the request failed: {error}"
            unreachable = number == 0 and error.status in _NOT_AN_ENDPOINT
        yield ProbeResult(probe.id, probe.title, status, reason, probe.source)

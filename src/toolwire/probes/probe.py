"""Probes: one rule each that an endpoint has to follow, the requests that show it, and the judge of the answers.

A model is random, and may be weak. So a judge that sees no evidence for either side says that the rule was not shown,
and one that sees a fault which the model could have made says that it suspects one: only if the same happens each time
has the endpoint failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from toolwire.errors import ConfigurationError
from toolwire.probes.probe_exchange import ProbeExchange, ProbeRequest
from toolwire.probes.probed_model import ProbedModel

Step = ProbeRequest | Callable[[Sequence[ProbeExchange]], ProbeRequest | None]
"""A request of a probe; or a function that returns it for the exchanges so far, or None to leave it out."""
Status = Literal["passed", "failed", "not shown"]
STATUSES: tuple[Status, ...] = get_args(Status)
_NOT_AN_ENDPOINT = frozenset((0, 401, 403, 404, 405))
"""HTTP statuses of a first answer after which no other request can succeed; 0 if no server answered."""
_WHITE_SPACE = b"\xef\xbb\xbf \t\r\n"
"""White space, and the byte order mark that some web servers begin a page with."""
_BUSY = frozenset((429, 529))
"""HTTP statuses of a server that has no time for the request."""


class ProbeFailed(Exception):
    """The endpoint breaks the rule; the message says how."""


class FaultSuspected(Exception):
    """The endpoint breaks the rule, or the model did not do its part; the message says what happened."""


class RuleNotShown(Exception):
    """The rule does not apply to this endpoint, or the answers do not show whether it is followed; it says why."""


class EndpointUnreachable(ConfigurationError):
    """The first request shows that no probe can be answered: the address or the key is wrong."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One rule.

    Attributes:
        id: its name, which does not change.
        theme: the part of the API that it belongs to.
        title: the rule as a sentence.
        source: the page that states the rule.
        requests: its requests, in order.
        judge: reads the exchanges; raises `ProbeFailed`, `FaultSuspected` or `RuleNotShown`.
        apis: the kinds of the APIs that have the rule; empty for all.
        smoke: whether it is one of the few that `toolwire check --smoke` sends.
        at_once: whether its requests are sent at the same time; then none depends on the exchanges before it.
    """

    id: str
    theme: str
    title: str
    source: str
    requests: tuple[Step, ...]
    judge: Callable[[Sequence[ProbeExchange]], None]
    apis: frozenset[str] = frozenset()
    smoke: bool = False
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a probe.

    Attributes:
        probe: the probe.
        status: whether the endpoint follows the rule; "not shown" if that is not known.
        reason: why it failed or was not shown; "" if it passed.
        exchanges: the requests and answers of the last try.
    """

    probe: Probe
    status: Status
    reason: str = ""
    # Not in the repr: Python 3.11 forms that of the results when an event loop ends, and answers may be bombs.
    exchanges: tuple[ProbeExchange, ...] = field(default=(), repr=False)


async def run_probes(model: ProbedModel, probes: Iterable[Probe], *, tries: int = 2) -> AsyncGenerator[ProbeResult]:
    """Run probes one after the other, and yield their results.

    Args:
        model: the model behind the endpoint.
        probes: the probes.
        tries: maximum number of times that the requests of a probe are sent while the rule is not shown.

    Raises:
        EndpointUnreachable: the first request shows that no other can succeed.
        ConfigurationError: no key is set.
    """
    for probe in probes:
        yield await _run(model, probe, tries)


async def _run(model: ProbedModel, probe: Probe, tries: int) -> ProbeResult:
    if probe.apis and model.api.kind not in probe.apis:
        return ProbeResult(probe, "not shown", f"the rule is not one of {model.api.name}")
    result = ProbeResult(probe, "not shown")
    suspicions = 0
    for attempt in range(tries):
        exchanges: list[ProbeExchange] = []
        try:
            await _ask(model, probe, attempt, exchanges)
            probe.judge(exchanges)
        except RuleNotShown as error:
            result = ProbeResult(probe, "not shown", str(error), tuple(exchanges))
        except FaultSuspected as error:
            suspicions += 1
            result = ProbeResult(probe, "not shown", f"{error}; more --tries would show more", tuple(exchanges))
            if suspicions == tries > 1:
                return ProbeResult(probe, "failed", f"{error}, {tries} times in a row", tuple(exchanges))
        except ProbeFailed as error:
            return ProbeResult(probe, "failed", str(error), tuple(exchanges))
        else:
            return ProbeResult(probe, "passed", "", tuple(exchanges))
    return result


async def _ask(model: ProbedModel, probe: Probe, attempt: int, exchanges: list[ProbeExchange]) -> None:
    """Send the requests of a probe, and add the exchanges to a list.

    Raises:
        ProbeFailed, RuleNotShown: a request failed that must not, or cannot be sent.
        EndpointUnreachable: it is the first one, and no other can succeed.
    """
    for steps in (probe.requests,) if probe.at_once else zip(probe.requests, strict=True):
        requests = (step if isinstance(step, ProbeRequest) else step(exchanges) for step in steps)
        await _ask_at_once(model, [request for request in requests if request is not None], attempt, exchanges)


async def _ask_at_once(
    model: ProbedModel, requests: Sequence[ProbeRequest], attempt: int, exchanges: list[ProbeExchange]
) -> None:
    """Send requests at the same time, and add the exchanges to a list; see `_ask`."""
    for request in requests:
        if reason := model.unsendable(request):
            raise RuleNotShown(reason)
    # A wrong request, or one to another path, may be refused although the endpoint is right.
    is_first = not model.has_answered and all(request.is_sound for request in requests)
    answers = await asyncio.gather(*(model.answer(request, attempt) for request in requests))
    exchanges.extend(answers)
    for exchange in answers:
        if is_first and (fault := _endpoint_fault(exchange)):
            raise EndpointUnreachable(fault)
        if exchange.error and exchange.status in _BUSY:
            raise RuleNotShown(f"the server is busy: {exchange.error}")
        if exchange.error and not exchange.request.may_fail:
            raise ProbeFailed(f"the request failed: {exchange.error}")


def _endpoint_fault(exchange: ProbeExchange) -> str:
    """Return why no request to this endpoint can succeed; "" if one may."""
    # A web server, a proxy or a login page answers at the address, often with the status of a success.
    if exchange.body.lstrip(_WHITE_SPACE)[:1] == b"<" and exchange.api.kind not in exchange.media_type:
        return (
            f"{exchange.url} answered with a page of HTML or XML (HTTP {exchange.status}), not with JSON: the address "
            "is probably not that of an API; it often ends in /v1"
        )
    # A server that sends headers and then nothing would do so each time, and each request would wait for its timeout.
    is_silent = 200 <= exchange.status < 300 and not exchange.body.strip()
    is_redirect = 300 <= exchange.status < 400
    if exchange.error and (is_silent or is_redirect or exchange.status in _NOT_AN_ENDPOINT):
        return f"the first request failed: {exchange.error}"
    return ""

"""Health of backends: failures, pauses, trials, and which backend is asked meanwhile."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import CLIENTS, Scripted, asked, gateway, request, run

from toolwire import ContentDelta, Finish, FinishReason
from toolwire.errors import ProviderError
from toolwire.gateway.client_apis import CHAT
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.model_table import ServedModel
from toolwire.gateway.questions import Question
from toolwire.gateway.upstream_health import (
    FAILURES,
    FIRST_REST,
    LONGEST_PAUSE,
    LONGEST_REST,
    MAX_REMEMBERED,
    TRIAL_SECONDS,
    UpstreamHealth,
)
from toolwire.providers.failure_kinds import INVALID, NO_KEY, RATE_LIMIT, UNREACHABLE
from toolwire.providers.request import ChatRequest

GONE = GatewayFailure(UNREACHABLE, "gone")
GOOD = [ContentDelta("x"), Finish(FinishReason.STOP)]


class Backends:
    """Models behind a clock that the test moves."""

    def __init__(self, *upstreams: Scripted) -> None:
        self.now = 0.0
        self.health = UpstreamHealth(lambda: self.now)
        self.served = ServedModel("m", upstreams[:1], fallbacks=upstreams[1:])

    def ask(self, *, model: str = "m") -> str:
        """Ask as the gateway does; return the name of the backend that answers."""

        async def ask() -> str:
            question = Question("1", CHAT, {}, ChatRequest(), {}, model, stream=True)
            for upstream in self.health.in_order(self.served, model):
                with suppress(GatewayFailure, ProviderError):
                    async with upstream.open(question) as answer:
                        async for _ in answer.events:  # type: ignore[union-attr]
                            pass
                        return upstream.name
            return ""

        return asyncio.run(ask())

    def refused(self, **options: Any) -> GatewayFailure:
        with pytest.raises(GatewayFailure) as caught:
            self.ask(**options)
        return caught.value


def test_a_backend_that_fails_again_and_again_is_not_asked_for_a_while() -> None:
    broken, spare = Scripted(opens=GONE, name="broken"), Scripted(GOOD, name="spare")
    backends = Backends(broken, spare)
    for _ in range(FAILURES + 3):
        assert backends.ask() == "spare"
    assert len(broken.questions) == FAILURES
    backends.now = FIRST_REST
    assert backends.ask() == "spare"
    assert len(broken.questions) == FAILURES + 1  # the trial failed: it rests twice as long
    backends.now += FIRST_REST * 2 - 0.1
    backends.ask()
    assert len(broken.questions) == FAILURES + 1


def test_one_success_ends_the_rest() -> None:
    broken, spare = Scripted(GOOD, opens=GONE, name="broken"), Scripted(GOOD, name="spare")
    backends = Backends(broken, spare)
    for _ in range(FAILURES):
        backends.ask()
    broken._opens = None
    backends.now = FIRST_REST
    assert [backends.ask() for _ in range(2)] == ["broken", "broken"]


def test_only_one_request_tries_a_backend_after_its_rest() -> None:
    broken, spare = Scripted(opens=GONE, name="broken"), Scripted(GOOD, name="spare")
    backends = Backends(broken, spare)
    for _ in range(FAILURES):
        backends.ask()
    backends.now = FIRST_REST
    orders = [backends.health.in_order(backends.served, "m") for _ in range(3)]
    assert [next(order).name for order in orders] == ["broken", "spare", "spare"]
    backends.now += TRIAL_SECONDS  # whoever tried never came back: the next one tries
    assert next(backends.health.in_order(backends.served, "m")).name == "broken"


def test_a_rest_has_a_longest_length() -> None:
    backends = Backends(Scripted(opens=GONE))
    for _ in range(60):
        with suppress(GatewayFailure):
            backends.ask()
        backends.now += LONGEST_REST
    backends.ask()
    assert int(backends.refused().retry_after) <= LONGEST_REST


@pytest.mark.parametrize(
    ("asked_for", "seconds"), [("7", 7), ("0.5", 1), ("999999", LONGEST_PAUSE), ("inf", LONGEST_PAUSE)]
)
def test_a_backend_is_not_asked_before_the_pause_that_it_asks_for_is_over(asked_for: str, seconds: float) -> None:
    limited = Scripted(opens=GatewayFailure(RATE_LIMIT, "busy", retry_after=asked_for))
    backends = Backends(limited)
    assert backends.ask() == ""
    failure = backends.refused()
    assert (failure.status, failure.retry_after) == (429, str(round(seconds)))
    assert "asked for a pause" in str(failure)
    assert len(limited.questions) == 1
    backends.now = seconds
    backends.ask()
    assert len(limited.questions) == 2


def test_a_pause_is_for_one_model_alone() -> None:
    backends = Backends(Scripted(opens=GatewayFailure(RATE_LIMIT, "busy", retry_after="7")))
    backends.ask(model="m")
    assert backends.ask(model="other") == ""
    assert backends.refused(model="other").status == 429


@pytest.mark.parametrize(
    "failure",
    [GatewayFailure(INVALID, "bad"), GatewayFailure(NO_KEY, "key"), GatewayFailure(RATE_LIMIT, "busy")],
    ids=str,
)
def test_a_backend_that_refuses_does_not_rest(failure: GatewayFailure) -> None:
    upstream = Scripted(opens=failure)
    backends = Backends(upstream)
    for _ in range(FAILURES + 2):
        backends.ask()
    assert len(upstream.questions) == FAILURES + 2


def test_answers_that_are_cut_off_are_failures() -> None:
    cut = Scripted([ContentDelta("x")], ProviderError("cut off"), name="cut")
    backends = Backends(cut)
    for _ in range(FAILURES):
        assert backends.ask() == ""
    assert backends.refused().status == 503


def test_clients_cannot_fill_the_memory_with_names() -> None:
    backends = Backends(Scripted(GOOD))
    for number in range(MAX_REMEMBERED + 5):
        next(backends.health.in_order(backends.served, str(number)))
    assert len(backends.health._records) == MAX_REMEMBERED


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_clients_are_told_when_to_ask_again(api: str, stream: bool) -> None:
    app = gateway(Scripted(opens=GatewayFailure(RATE_LIMIT, "busy", retry_after="30")))
    path, body = asked(api, stream=stream)
    assert run(app, path, body).headers["retry-after"] == "30"
    got = run(app, path, body)
    assert (got.status, b"asked for a pause" in got.body) == (429, True)
    assert 1 <= int(got.headers["retry-after"]) <= 30


def test_a_client_that_leaves_is_no_failure_of_the_backend() -> None:
    slow = Scripted(3600.0)
    app = gateway(slow)
    path, body = asked("chat", stream=True)

    async def leave() -> None:
        for _ in range(FAILURES + 1):
            await request(app, path, body, leaves_after=0.001)

    asyncio.run(leave())
    assert len(slow.questions) == FAILURES + 1


def test_a_backend_without_a_limit_of_failures_is_always_asked() -> None:
    cut = Scripted([ContentDelta("x")], ProviderError("cut off"), name="cut")
    backends = Backends(cut)
    backends.health = UpstreamHealth(failures=math.inf)
    for _ in range(3 * FAILURES):
        assert backends.ask() == ""

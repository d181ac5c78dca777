"""The spending of each key: reserved before a model is asked, and corrected when the answer has ended.

The expected use of a request counts at once, in the store that all gateways share. So requests that run at the same
time cannot use the same rest of an allowance, and a gateway that is killed leaves too much counted rather than nothing.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from toolwire.agent.budget import ANSWER_TOKENS
from toolwire.agent.prices import ModelPrices
from toolwire.errors import StateError
from toolwire.gateway.allowances import FOREVER, MICRO, Allowance
from toolwire.gateway.answer_meter import AnswerMeter
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.log_records import LOG
from toolwire.gateway.model_table import ServedModel
from toolwire.gateway.questions import Question, tokens_of
from toolwire.gateway.state_store import StateStore, failure_for_operators
from toolwire.gateway.virtual_keys import VirtualKey
from toolwire.messages import Usage
from toolwire.providers.failure_kinds import FORBIDDEN, NO_BUDGET, RATE_LIMIT
from toolwire.providers.request import ChatRequest

_DAY = 86_400
"""Seconds for which a counter outlives its window, for clocks that differ and answers that end late."""


@dataclass(slots=True)
class _Reserved:
    """An amount that one counter has for one answer."""

    allowance: Allowance
    counter: str
    seconds: float
    amount: int


def amount_of(allowance: Allowance, usage: Usage, money: float) -> int:
    """Return what an answer uses of an allowance, as its counter counts it; parts of a millionth count as one."""
    match allowance.quantity:
        case "requests":
            return 1
        case "tokens":
            return usage.input_tokens + usage.output_tokens
        case "money":
            return math.ceil(money * MICRO)


class KeySpending:
    """Counts how much of its allowances each key uses.

    Args:
        store: the store with the counters.
        clock: returns the time in seconds since 1970.
    """

    def __init__(self, store: StateStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    async def used(self, key: VirtualKey, allowance: Allowance) -> float:
        """Return how much of an allowance is used in the present window.

        Raises:
            StateError: the store cannot be used.
        """
        counter, seconds = self._counter(key, allowance)
        count = max(await self._store.add(counter, 0, seconds=seconds), 0)
        return count / MICRO if allowance.quantity == "money" else count

    @asynccontextmanager
    async def charged(
        self, key: VirtualKey, question: Question, served: ServedModel, meter: AnswerMeter
    ) -> AsyncIterator[None]:
        """Reserve what the answer to a question is expected to use, and charge what it did use at the end.

        Args:
            key: the key of the client.
            question: the question.
            served: the model that it is for.
            meter: has the figures of the answer at the end.

        Raises:
            GatewayFailure: an allowance is used up, or cannot be counted for this model.
            StateError: the store cannot be used.
        """
        expected = Usage(meter.input_tokens, question.request.max_tokens or ANSWER_TOKENS)
        prices = {upstream.name: served.prices_of(upstream, question.model) for upstream in served.every_upstream()}
        if any(allowance.quantity == "money" for allowance in key.allowances) and None in prices.values():
            unknown = ", ".join(name for name, price in prices.items() if price is None)
            raise GatewayFailure(
                FORBIDDEN,
                f"this key is limited in money, and the price of {question.model!r:.200} at {unknown} is unknown",
            )
        reserved = await self._reserve(key, expected, _most(prices, expected))

        def used() -> tuple[Usage, float]:
            answered_by, usage = question.answered_by, meter.usage
            return usage, _cost(None if answered_by is None else prices.get(answered_by.name), usage)

        async def reserve(request: ChatRequest) -> None:
            following = Usage(tokens_of(request), request.max_tokens or ANSWER_TOKENS)
            # Nothing is known yet of an answer that waits for its end: what was reserved for it stays.
            so_far = None if meter.first_at is None else used()
            await self._reserve_more(reserved, so_far, (following, _most(prices, following)))
            meter.next_request(following.input_tokens)

        question.reserve = reserve
        try:
            yield
        finally:
            settling = asyncio.create_task(self._settle(reserved, *used(), question.id))
            # The client may have left, or the server may end: what was used counts nevertheless.
            await asyncio.shield(settling)

    async def _reserve(self, key: VirtualKey, expected: Usage, money: float) -> list[_Reserved]:
        reserved: list[_Reserved] = []
        for allowance in key.allowances:
            amount = amount_of(allowance, expected, money)
            counter, seconds = self._counter(key, allowance)
            total = await self._store.add(counter, amount, seconds=seconds)
            reserved.append(_Reserved(allowance, counter, seconds, amount))
            if total - amount >= allowance.maximum:
                for entry in reserved:
                    await self._store.add(entry.counter, -entry.amount, seconds=entry.seconds)
                raise self._refused(allowance)
        return reserved

    async def _reserve_more(
        self, reserved: list[_Reserved], used: tuple[Usage, float] | None, following: tuple[Usage, float]
    ) -> None:
        """Charge what an answer has used so far, and reserve what its next request is expected to use.

        Raises:
            GatewayFailure: an allowance is used up.
        """
        for entry in reserved:
            if entry.allowance.quantity == "requests":  # those of clients are counted
                continue
            present = entry.amount if used is None else amount_of(entry.allowance, *used)
            more = amount_of(entry.allowance, *following)
            total = await self._store.add(entry.counter, present + more - entry.amount, seconds=entry.seconds)
            entry.amount = present + more
            if total - more >= entry.allowance.maximum:
                raise self._refused(entry.allowance)

    def _refused(self, allowance: Allowance) -> GatewayFailure:
        left = allowance.window(self._clock())[1]
        retry_after = str(math.ceil(left)) if allowance.period else ""
        kind = RATE_LIMIT if allowance.period in ("minute", "hour") else NO_BUDGET
        message = f"this key may use {allowance}, which is used up or reserved by requests that are running"
        return GatewayFailure(kind, message, retry_after=retry_after, is_own=True)

    async def _settle(self, reserved: list[_Reserved], usage: Usage, money: float, id: str) -> None:
        try:
            for entry in reserved:
                difference = amount_of(entry.allowance, usage, money) - entry.amount
                if difference:
                    await self._store.add(entry.counter, difference, seconds=entry.seconds)
        except StateError as error:
            LOG.error("the request %s stays charged with what was expected of it: %s", id, failure_for_operators(error))

    def _counter(self, key: VirtualKey, allowance: Allowance) -> tuple[str, float]:
        window, left = allowance.window(self._clock())
        # Two allowances of one quantity and period share their counter, so each counts under its own amount.
        return f"{key.id}:{allowance.quantity}:{allowance.text}:{window}", min(left + _DAY, FOREVER)


def _most(prices: Mapping[str, ModelPrices | None], usage: Usage) -> float:
    """Return what tokens cost at most, whichever backend answers."""
    return max((_cost(price, usage) for price in prices.values()), default=0.0)


def _cost(prices: ModelPrices | None, usage: Usage) -> float:
    return 0.0 if prices is None else prices.cost_of(usage)

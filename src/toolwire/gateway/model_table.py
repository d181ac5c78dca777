"""The models that the gateway offers: which backends answer for which name, and in which order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from toolwire.agent.prices import ModelPrices
from toolwire.errors import ConfigurationError, ProviderError
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.log_records import LOG
from toolwire.gateway.name_patterns import fits
from toolwire.gateway.questions import Upstream
from toolwire.providers.failure_kinds import UNKNOWN_MODEL
from toolwire.text.suggest import closest, did_you_mean

LIST_SECONDS = 5.0
"""Seconds in which a backend must list its models."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model by the name that clients ask for.

    Attributes:
        name: the name; `*` stands for any text in it.
        upstreams: the backends that answer; one of them is chosen by weight.
        weights: the weight of each backend; empty for equal ones.
        fallbacks: the backends that are asked one after the other where none of those answers.
        context: the number of tokens that fit into the model; 0 if it is not known.
        prices: the prices of its tokens; None for those that each backend's provider publishes.
    """

    name: str
    upstreams: tuple[Upstream, ...]
    weights: tuple[float, ...] = ()
    fallbacks: tuple[Upstream, ...] = ()
    context: int = 0
    prices: ModelPrices | None = None

    def every_upstream(self) -> tuple[Upstream, ...]:
        """Return all backends that may answer."""
        return (*self.upstreams, *self.fallbacks)

    def prices_of(self, upstream: Upstream, model: str) -> ModelPrices | None:
        """Return the prices of a model at a backend; None if they are not known."""
        return upstream.prices_of(model) if self.prices is None else self.prices

    @property
    def is_pattern(self) -> bool:
        """True if the name stands for many."""
        return "*" in self.name

    def in_order(self, random_number: float | None = None) -> Iterator[Upstream]:
        """Yield the backends in the order in which they are asked.

        Args:
            random_number: decides the first one, from 0 up to 1; None to draw it.
        """
        number = random.random() if random_number is None else random_number
        weights = self.weights or (1.0,) * len(self.upstreams)
        threshold, first = number * sum(weights), 0
        for at, weight in enumerate(weights):
            first = at
            if threshold < weight:
                break
            threshold -= weight
        yield self.upstreams[first]
        yield from (upstream for at, upstream in enumerate(self.upstreams) if at != first)
        yield from self.fallbacks


class ModelTable:
    """All models of a gateway; names without `*` come first, then patterns in their order.

    Args:
        models: the models.
        checks: return why a backend cannot be asked, by its name; "" if it can.

    Attributes:
        rejected: why newer models are not used, in words for everybody; "" if there are none.
    """

    def __init__(self, models: Sequence[ServedModel], checks: Mapping[str, Callable[[], str]] | None = None) -> None:
        self.rejected = ""
        self._checks = dict(checks or {})
        self._count = len(self._checks)
        self._exact: Mapping[str, ServedModel] = {model.name: model for model in models if not model.is_pattern}
        self._patterns = [model for model in models if model.is_pattern]

    def replace(self, other: ModelTable) -> None:
        """Offer the models of another table from now on."""
        self._exact, self._patterns, self.rejected = other._exact, other._patterns, ""
        self._checks, self._count = other._checks, other._count

    async def unready(self) -> dict[str, str]:
        """Return why backends cannot be asked, by their names; a backend that could once is not looked at again."""
        checks = self._checks
        # Credentials of a cloud may be looked for on the network.
        reasons = await asyncio.to_thread(lambda: {name: check() for name, check in checks.items()})
        for name, reason in reasons.items():
            if not reason:
                checks.pop(name, None)
        return {name: reason for name, reason in reasons.items() if reason}

    @property
    def backend_count(self) -> int:
        """The number of backends that `unready` looks at."""
        return self._count

    async def list(self) -> list[ServedModel]:
        """Return the models that clients can choose: those with a name, else those that the backends have.

        Backends that cannot be reached are left out: a list should not fail because of one of them.
        """
        if self._exact:
            return list(self._exact.values())
        sources = [(pattern, upstream) for pattern in self._patterns for upstream in pattern.upstreams]
        listed = await asyncio.gather(*(_names_at(upstream) for _, upstream in sources))
        names: dict[str, ServedModel] = {}
        for (pattern, _), listed_names in zip(sources, listed, strict=True):
            for name in listed_names:
                if fits(name, pattern.name):
                    names.setdefault(name, replace(pattern, name=name))
        return list(names.values())

    def without_tag(self, name: str) -> str:
        """Return a name without the tag of Ollama's clients for the newest version, if only that is the name here."""
        short = name.removesuffix(":latest")
        return short if name not in self._exact and short in self._exact else name

    def find(self, name: str) -> ServedModel:
        """Return the model that answers for a name.

        Raises:
            GatewayFailure: there is none; the message names the nearest ones.
        """
        if (model := self._exact.get(self.without_tag(name))) is not None:
            return model
        for model in self._patterns:
            if fits(name, model.name):
                return model
        near = closest(name, self._exact, limit=3)
        names = ", ".join(list(self._exact)[:10]) or "none"
        raise GatewayFailure(UNKNOWN_MODEL, f"there is no model {name!r:.200}{did_you_mean(near)} (there are: {names})")


async def _names_at(upstream: Upstream) -> list[str]:
    """Return the names of a backend's models; none, and a line in the log, if it does not list them in time."""
    try:
        async with asyncio.timeout(LIST_SECONDS):
            return await upstream.list_models()
    except TimeoutError:
        LOG.warning("%s did not list its models within %g seconds", upstream.name, LIST_SECONDS)
    except (ProviderError, ConfigurationError) as error:
        LOG.warning("the models of %s cannot be listed: %s", upstream.name, error)
    return []

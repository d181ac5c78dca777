"""Prices of models: those that a program passes, or those that providers publish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolwire._surface import check_number, needs_extra
from toolwire.client.endpoints import ENDPOINTS
from toolwire.errors import ConfigurationError, MissingExtra
from toolwire.messages import Usage
from toolwire.models.backends import Backend
from toolwire.models.model_group import single_models
from toolwire.text.suggest import suggests_keywords


class ModelPrices(Protocol):
    """Prices of one model's tokens."""

    def cost_of(self, usage: Usage) -> float:
        """Return the cost of one answer's tokens."""
        ...


@suggests_keywords
@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a million tokens, in any currency.

    Attributes:
        input: price of tokens that are read.
        output: price of tokens that are written.
        cached: price of tokens read from the provider's cache; None for the price of `input`.
    """

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None

    def __post_init__(self) -> None:
        """Check the prices.

        Raises:
            TypeError: a price is not a number.
            ValueError: a price is less than 0.
        """
        check_number("input", self.input, "a price of a million tokens")
        check_number("output", self.output, "a price of a million tokens")
        check_number("cached", self.cached, "a price of a million tokens", optional=True)

    def cost_of(self, usage: Usage) -> float:
        """Return the cost of one answer's tokens."""
        # Cached tokens are a part of the input, so more of them than that must not make the answer cost less.
        from_cache = min(usage.cached_tokens, usage.input_tokens)
        fresh = usage.input_tokens - from_cache
        cached = self.input if self.cached is None else self.cached
        return (fresh * self.input + from_cache * cached + usage.output_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class PublishedPrices:
    """The prices that a provider publishes for a model, in US dollars, as the package `genai-prices` lists them.

    Attributes:
        provider: the provider's name in that list.
        model: the model's name.
    """

    provider: str
    model: str

    def cost_of(self, usage: Usage) -> float:
        """Return the cost of one answer's tokens, with the surcharges for long requests.

        Raises:
            LookupError: the list does not have the model.
        """
        # Imported here: the list is large, and most programs limit no money.
        genai_prices: Any
        with needs_extra("Published prices"):
            import genai_prices
        tokens = genai_prices.Usage(
            input_tokens=usage.input_tokens,
            cache_read_tokens=min(usage.cached_tokens, usage.input_tokens),
            output_tokens=usage.output_tokens,
        )
        return float(genai_prices.calc_price(tokens, self.model, provider_id=self.provider).total_price)


FREE = Prices()


def check_prices(backend: Backend, prices: Prices | Mapping[str, Prices] | None, *, limited: bool) -> None:
    """Check that each model that may answer has prices; see `prices_of`."""
    for model in single_models(backend):
        prices_of(model, prices, limited=limited)


def prices_of(
    backend: Backend, prices: Prices | Mapping[str, Prices] | None, *, limited: bool, observed: bool = False
) -> ModelPrices:
    """Return the prices by which a run counts money: those that are passed, else those that the provider publishes.

    Args:
        backend: a single model.
        prices: the prices of the budget, if it has any: of each model, or of models by their names.
        limited: whether money is limited, so that it must be counted.
        observed: whether the run has observers of the cost. Then it is counted if published prices are known here;
            otherwise nothing is looked up.

    Raises:
        ConfigurationError: money is limited, and the prices of the model are not known.
        MissingExtra: prices have to be looked up, and `genai-prices` is not installed.
    """
    if isinstance(prices, Mapping):
        prices = prices.get(backend.model)
    if prices is not None:
        return prices
    if not limited:
        return (_known_here(backend) if observed else None) or FREE
    published = published_prices(backend)
    if published is None:
        raise ConfigurationError(
            f"a budget of money needs prices, and none are published for {backend.model or 'this model'!r}: "
            "pass Budget(prices=Prices(input=..., output=...)), or Prices() if the model costs nothing"
        )
    return published


def _known_here(backend: Backend) -> PublishedPrices | None:
    """Return the published prices of a model if the package that lists them is installed."""
    try:
        return published_prices(backend)
    except MissingExtra:
        return None


def published_prices(backend: Backend) -> PublishedPrices | None:
    """Return the prices that the provider of a model publishes; None if there are none, as for a server of one's own.

    Raises:
        MissingExtra: `genai-prices` is not installed.
    """
    endpoint = ENDPOINTS.get(backend.api)
    # A client knows whether it asks the provider itself; a server of one's own has other prices, or none.
    provider = getattr(backend, "price_provider", endpoint.prices if endpoint else "")
    return published_prices_at(provider, backend.model)


def published_prices_at(provider: str, model: str) -> PublishedPrices | None:
    """Return the prices that a provider publishes for a model; None if there are none.

    Args:
        provider: the provider's name in the list of prices; "" for none.
        model: the model's name.

    Raises:
        MissingExtra: `genai-prices` is not installed.
    """
    if not provider:
        return None
    prices = PublishedPrices(provider, model)
    # The list says only when it is asked for a price whether it has the model.
    try:
        prices.cost_of(Usage(1, 1))
    except LookupError:
        return None
    return prices

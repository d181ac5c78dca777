"""Allowances of a key: a number of requests or tokens, or an amount of money, in each period or altogether."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from toolwire.errors import ConfigurationError

Quantity = Literal["requests", "tokens", "money"]
Period = Literal["minute", "hour", "day", "month", ""]

MICRO = 1_000_000
"""Money is counted in millionths, because counters are integers."""
FOREVER = 3650 * 86_400
"""Seconds after which the counter of an allowance without a period may be forgotten."""
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)(?:\s*/\s*(\w+))?")
_FORMATS: dict[Period, str] = {"minute": "%Y%m%d%H%M", "hour": "%Y%m%d%H", "day": "%Y%m%d", "month": "%Y%m", "": ""}
"""The name of the window that a moment is in; windows follow the calendar of UTC."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """A limit of the requests, tokens or money of a key in each period.

    Attributes:
        quantity: what is counted.
        amount: how much of it; money in the currency of the models' prices.
        period: the period; "" for altogether.
    """

    quantity: Quantity
    amount: float
    period: Period = ""

    def __str__(self) -> str:
        """Return the allowance in words, such as "60 requests a minute"."""
        unit = {"money": "in money"}.get(self.quantity, self.quantity)
        return f"{self.amount:,.12g} {unit} {f'a {self.period}' if self.period else 'altogether'}".replace(
            "a h", "an h"
        )

    @property
    def text(self) -> str:
        """The amount and the period as they are written in options and files."""
        return f"{self.amount:.12g}/{self.period}" if self.period else f"{self.amount:.12g}"

    @property
    def maximum(self) -> int:
        """The amount as a counter counts it."""
        return round(self.amount * MICRO) if self.quantity == "money" else int(self.amount)

    def window(self, now: float) -> tuple[str, float]:
        """Return the name of the window that a moment is in, and the seconds that are left of it.

        Args:
            now: the moment, in seconds since 1970.
        """
        moment = datetime.fromtimestamp(now, UTC)
        begin = moment.replace(second=0, microsecond=0)
        match self.period:
            case "minute":
                end = begin + timedelta(minutes=1)
            case "hour":
                end = begin.replace(minute=0) + timedelta(hours=1)
            case "day":
                end = begin.replace(hour=0, minute=0) + timedelta(days=1)
            case "month":
                end = (begin.replace(day=1, hour=0, minute=0) + timedelta(days=32)).replace(day=1)
            case _:
                end = begin + timedelta(seconds=FOREVER)
        return f"{self.period}{moment.strftime(_FORMATS[self.period])}", (end - moment).total_seconds()


def parse_allowances(quantity: Quantity, texts: str | Iterable[str]) -> Iterator[Allowance]:
    """Yield the allowances that texts such as "60/minute" or "25.50/month" stand for.

    Raises:
        ConfigurationError: a text cannot be read.
    """
    for text in [texts] if isinstance(texts, str) else texts:
        match = _AMOUNT.fullmatch(text.strip())
        period = next((period for period in get_args(Period) if match and period == (match[2] or "")), None)
        if match is None or period is None:
            raise ConfigurationError(
                f"{quantity}: {text!r:.60} is not an amount such as 1000, 60/minute, 5000/hour, 20/day or 25.50/month"
            )
        amount = float(match[1])
        if quantity != "money" and amount != int(amount):
            raise ConfigurationError(f"{quantity}: {text!r:.60} must be a whole number")
        yield Allowance(quantity, amount, period)

"""Limits on JSON values, the same on every Python."""

from __future__ import annotations

import math

MAX_DEPTH = 200
"""Maximum levels of nesting, of values and of schemas."""

MAX_DIGITS = 4300
"""Maximum digits of an integer."""


def number_over_limit(text: str, *, integer: bool) -> str:
    """Return which limit a JSON number exceeds, in words; "" if it exceeds none."""
    if integer:
        # The digits are counted before any conversion: Python takes quadratic time to convert long integers.
        return f"an integer of more than {MAX_DIGITS} digits" if len(text.lstrip("-")) > MAX_DIGITS else ""
    return "a number out of range" if math.isinf(float(text)) else ""

"""Limits on JSON values, the same on every Python."""

from __future__ import annotations

MAX_DEPTH = 200
"""Maximum levels of nesting, of values and of schemas."""

MAX_DIGITS = 4300
"""Maximum digits of an integer."""

"""Members of nested objects by their paths, with dots between the names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Paths = Mapping[str, Any]
"""Values by their paths: `{"thinking.type": "enabled"}`."""

MISSING = object()
"""The value of a member that does not exist."""


def member(body: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path, or `MISSING`."""
    value: Any = body
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return MISSING
        value = value[name]
    return value


def with_member(body: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy of a body with a value at a path."""
    name, _, rest = path.partition(".")
    if rest:
        before = body.get(name)
        value = with_member(before if isinstance(before, Mapping) else {}, rest, value)
    return {**body, name: value}


def without_member(body: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return a copy of a body without the member at a path, and without the objects that this leaves empty."""
    name, _, rest = path.partition(".")
    shorter = dict(body)
    if rest and isinstance(body.get(name), Mapping) and (inner := without_member(body[name], rest)):
        shorter[name] = inner
    else:
        shorter.pop(name, None)
    return shorter

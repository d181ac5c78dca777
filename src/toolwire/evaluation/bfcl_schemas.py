"""The schemas of the leaderboard's tools as JSON Schema."""

from __future__ import annotations

from typing import Any, Final

_TYPES: Final = {"dict": "object", "float": "number", "tuple": "array"}
_NO_TYPE: Final = "any"
"""The leaderboard's type of a parameter that takes any value."""


def json_schema(value: Any) -> Any:
    """Return a schema with the types of JSON Schema in place of the leaderboard's."""
    if isinstance(value, list):
        return [json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema: dict[str, Any] = {}
    for key, inner in value.items():
        if key == "properties" and isinstance(inner, dict):
            schema[key] = {name: json_schema(property_) for name, property_ in inner.items()}
        elif key in ("items", "additionalProperties", "anyOf", "oneOf"):
            schema[key] = json_schema(inner)
        elif key != "type" or not isinstance(inner, str):
            schema[key] = inner
        elif inner != _NO_TYPE:
            schema[key] = _TYPES.get(inner, inner)
    return schema

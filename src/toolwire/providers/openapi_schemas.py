"""Schemas of the OpenAPI subset, as Gemini's older members spell them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolwire.errors import DefinitionError
from toolwire.providers.gemini_stream import camel
from toolwire.text.limits import MAX_DEPTH

_TYPES = ("", "string", "number", "integer", "boolean", "array", "object")
"""Types by their numbers in the protocol-buffer interface, which some clients write."""


def read_openapi_schema(schema: Any, depth: int = 0) -> Any:
    """Return a schema of the OpenAPI subset as JSON Schema: types in lower case, `null` as a type, numeric counts."""
    if depth > MAX_DEPTH:
        raise DefinitionError("the schema is nested too deeply")
    if not isinstance(schema, Mapping):
        return schema
    plain: dict[str, Any] = {}
    for key, value in camel(schema).items():
        match key, value:
            case "type", str():
                plain[key] = value.lower()
            case "type", int() if 0 < value < len(_TYPES):
                plain[key] = _TYPES[value]
            case "properties", Mapping():
                plain[key] = {name: read_openapi_schema(inner, depth + 1) for name, inner in value.items()}
            case "anyOf", list():
                plain[key] = [read_openapi_schema(inner, depth + 1) for inner in value]
            case (("items" | "additionalProperties"), Mapping()):
                plain[key] = read_openapi_schema(value, depth + 1)
            case (("minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties"), str()):
                plain[key] = int(value) if re.fullmatch(r"[0-9]{1,18}", value) else value
            case _:
                plain[key] = value
    if plain.get("nullable") is True and isinstance(plain.get("type"), str):
        plain["type"] = [plain["type"], "null"]
        del plain["nullable"]
        if isinstance(plain.get("enum"), list) and None not in plain["enum"]:
            plain["enum"] = [*plain["enum"], None]
    return plain

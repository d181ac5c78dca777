"""Members of objects that a schema mentions only in keywords without effect on a grammar, such as `then`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from toolwire.schema.pointer import resolve

_CONDITIONS = ("if", "then", "else")
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_DEPENDENCIES = ("dependentSchemas", "dependentRequired", "dependencies")
_ABOUT_OTHERS = ("unevaluatedProperties", "propertyNames", "$dynamicRef", "$recursiveRef")
"""Keywords by which members may be possible that an object does not name."""


def mentions_others(schema: Mapping[str, Any], ignored: Collection[tuple[int, str]]) -> bool:
    """Return whether a schema says something about members that it does not name.

    Args:
        schema: the schema.
        ignored: keywords without effect, each with the identity of its schema.
    """
    return any(schema.get(key) not in (None, False) for key in _ABOUT_OTHERS) or (id(schema), "$ref") in ignored


def conditional_members(schema: Mapping[str, Any], root: Any, ignored: Collection[tuple[int, str]]) -> Iterator[str]:
    """Yield the names in keywords without effect: an object that meets a condition may need these members.

    Args:
        schema: the schema.
        root: the whole schema, for references.
        ignored: keywords without effect, each with the identity of its schema.
    """
    waiting = _in_place(schema)
    waiting += [schema.get(keyword) for keyword in _ALTERNATIVES if (id(schema), keyword) in ignored]
    visited: set[int] = set()
    while waiting:
        inner = waiting.pop(0)
        if isinstance(inner, list):
            yield from (name for name in inner if isinstance(name, str))
            waiting += inner
        elif isinstance(inner, Mapping) and id(inner) not in visited:
            visited.add(id(inner))
            properties = inner.get("properties")
            waiting += [
                list(properties) if isinstance(properties, Mapping) else None,
                inner.get("required"),
                *map(inner.get, _ALTERNATIVES),
            ]
            waiting += _in_place(inner)
            if isinstance(reference := inner.get("$ref"), str):
                waiting.append(resolve(root, reference))


def _in_place(schema: Mapping[str, Any]) -> list[Any]:
    """Return the schemas and lists of names that apply to the same value under a condition."""
    dependencies = map(schema.get, _DEPENDENCIES)
    inner = (part for each in dependencies if isinstance(each, Mapping) for part in each.values())
    return [*map(schema.get, _CONDITIONS), *inner]

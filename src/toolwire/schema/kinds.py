"""The kinds of JSON value that one node of a schema admits, and how such facts combine.

`Facts` say which kinds a place admits. None stands for a node that says nothing about its type, and `LOOP` for one
whose references only lead back to itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

KINDS = frozenset({"string", "integer", "number", "boolean", "null", "object", "array"})
"""The kinds of JSON value, as `Shape.kinds` names them."""

Facts = dict[str, frozenset[Any] | None]
"""The kinds that a place admits, each with the only values that are allowed, or None for any value."""

LOOP: Facts = {}
"""Facts of a node that refers only to itself; compared by identity, as no other facts are this object."""

TYPE_NAMES: dict[str, str] = {kind: kind for kind in sorted(KINDS)} | {
    "dict": "object",
    "list": "array",
    "tuple": "array",
    "int": "integer",
    "float": "number",
    "double": "number",
    "str": "string",
    "bool": "boolean",
    "none": "null",
}
"""Type names by lower-case spelling: JSON Schema's own, and those that data sets and some APIs write instead."""


def declared_kinds(node: Mapping[str, Any]) -> list[str]:
    """Return the kinds that `type` names, without names that are not understood."""
    declared = node.get("type")
    names = declared if isinstance(declared, list | tuple) else (declared,)
    return [TYPE_NAMES[name.lower()] for name in names if isinstance(name, str) and name.lower() in TYPE_NAMES]


def own_facts(node: Mapping[str, Any]) -> Facts | None:
    """Return the facts that `type`, `enum` and `const` of a node itself state."""
    facts: Facts | None = None
    if kinds := declared_kinds(node):
        facts = dict.fromkeys(kinds)
        if "number" in facts:
            facts["integer"] = None
    listed = node.get("enum")
    values = listed if isinstance(listed, list | tuple) and listed else [node["const"]] if "const" in node else None
    if values is None:
        return facts
    by_kind: dict[str, set[Any] | None] = {}
    for value in values:
        for kind in kinds_of(value):
            if kind in ("object", "array"):
                by_kind[kind] = None  # not hashable; validation compares them
            elif (allowed := by_kind.setdefault(kind, set())) is not None:
                allowed.add(value)
    only: Facts = {kind: None if allowed is None else frozenset(allowed) for kind, allowed in by_kind.items()}
    return only if facts is None else meet(facts, only)


def conclude(node: Mapping[str, Any], parts: list[Facts | None]) -> Facts | None:
    """Return the facts of a node whose parts must all be met; loops and parts without facts do not count."""
    stated = [part for part in parts if part is not None and part is not LOOP]
    facts = reduce(meet, stated) if stated else _implied_facts(node)
    if facts is None:
        return LOOP if any(part is LOOP for part in parts) else None
    return {**facts, "null": None} if node.get("nullable") is True else facts


def _implied_facts(node: Mapping[str, Any]) -> Facts | None:
    """Return the facts that the keywords of a node without a type imply."""
    if isinstance(node.get("properties"), Mapping):
        return {"object": None}
    if isinstance(node.get("items"), Mapping | list) or isinstance(node.get("prefixItems"), list):
        return {"array": None}
    return None


def kinds_of(value: Any) -> tuple[str, ...]:
    """Return the kinds that a JSON value belongs to, the most exact one first; none for any other value."""
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean",)
        case str():
            return ("string",)
        case int():
            return ("integer",)
        case float():
            return ("number", "integer") if value.is_integer() else ("number",)
        case list() | tuple():
            return ("array",)
        case dict():
            return ("object",)
        case _:
            return ()


def admits(facts: Facts, kind: str, value: Any) -> bool:
    """Return whether a value of a kind is allowed."""
    if kind not in facts:
        return False
    listed = facts[kind]
    return listed is None or value in listed


def meet(left: Facts, right: Facts) -> Facts:
    """Return what both admit."""
    both: Facts = {}
    for kind, allowed in left.items():
        if kind in right:
            other = right[kind]
            common = other if allowed is None else allowed if other is None else allowed & other
            if common is None or common:
                both[kind] = common
    return both


def join(left: Facts | None, right: Facts | None) -> Facts | None:
    """Return what either admits; a branch that is a loop adds nothing."""
    if left is LOOP or right is LOOP:
        return right if left is LOOP else left
    if left is None or right is None:
        return None
    union = dict(left)
    for kind, allowed in right.items():
        other = union.get(kind, frozenset())
        union[kind] = None if other is None or allowed is None else other | allowed
    return union

"""JSON pointers (RFC 6901) and local references: written for messages, followed in schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote


def json_pointer(steps: Iterable[object]) -> str:
    """Return the pointer that leads through these keys and indices; "" is the whole document."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def follow_pointer(root: Any, pointer: str) -> Any:
    """Return the node of a document that a pointer leads to, or None."""
    node = root
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isascii() and key.isdigit() and len(key) < 7 and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node


def resolve(root: Any, reference: Any) -> Any:
    """Return the node that a local `$ref` (`#` or `#/...`) points at, or None."""
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    return follow_pointer(root, unquote(reference[1:]))

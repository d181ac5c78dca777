"""JSON pointers are written with escapes and followed through keys and indices."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.schema.pointer import follow_pointer, json_pointer, resolve

DOCUMENT = {"a/b": [{"~": 1}], "": {"": 2}, "% ": 3, "null": None}


@pytest.mark.parametrize(("steps", "pointer", "node"), [
    ((), "", DOCUMENT),
    (("a/b", 0, "~"), "/a~1b/0/~0", 1),
    (("", ""), "//", 2),
])  # fmt: skip
def test_a_pointer_leads_back_to_its_node(steps: tuple[object, ...], pointer: str, node: Any) -> None:
    assert json_pointer(steps) == pointer
    assert follow_pointer(DOCUMENT, pointer) == node


@pytest.mark.parametrize("pointer", ["/x", "/a~1b/1", "/a~1b/-1", "/a~1b/x", "/a~1b/²", "/a~1b/0000000", "/null/x"])
def test_a_pointer_to_no_node_gives_none(pointer: str) -> None:
    assert follow_pointer(DOCUMENT, pointer) is None


def test_only_local_references_are_resolved() -> None:
    assert resolve(DOCUMENT, "#") is DOCUMENT
    assert resolve(DOCUMENT, "#/%25%20") == 3
    assert [resolve(DOCUMENT, reference) for reference in ("#a", "x#/null", None, 1)] == [None] * 4

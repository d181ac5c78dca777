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


def test_a_pointer_without_a_leading_slash_ignores_its_first_part() -> None:
    assert follow_pointer(DOCUMENT, "x/% ") == 3
    assert follow_pointer(DOCUMENT, "/x/% ") is None


def test_text_and_numbers_have_no_nodes_inside() -> None:
    assert follow_pointer({"text": "abc"}, "/text/0") is None
    assert follow_pointer({"text": "abc"}, "/text/b") is None
    assert follow_pointer({"number": 5}, "/number/0") is None


def test_elements_are_found_by_an_index_of_at_most_six_digits() -> None:
    assert follow_pointer(["a", "b"], "/000001") == "b"
    assert follow_pointer(["a", "b"], "/0000001") is None
    assert follow_pointer(["a", "b"], "/" + "9" * 5000) is None
    assert follow_pointer(["a", "b"], "/2") is None
    assert follow_pointer(["a", "b"], "/") is None


def test_an_escaped_tilde_before_a_digit_stays_what_it_is() -> None:
    document = {"~1": "tilde", "/": "slash"}
    assert follow_pointer(document, json_pointer(["~1"])) == "tilde"
    assert follow_pointer(document, json_pointer(["/"])) == "slash"

"""YAML as models write arguments: values that have one reading, and refusals of the rest."""

from typing import Any

import pytest

from toolwire.text.yaml_mapping import PlainText, YamlError, read_mapping

READ: list[tuple[str, dict[str, Any]]] = [
    ("a: x\nb: 3\n", {"a": "x", "b": "3"}),
    ("\n  a: x\n  b: y", {"a": "x", "b": "y"}),
    ("a:\n  x\nb:\n", {"a": "x", "b": ""}),
    ("a: x\n  y\n\n  z\n", {"a": "x y\nz"}),
    ("a: to: be\n", {"a": "to: be"}),
    ("a:\n  - x\n  - y: 1\n    z: 2\n  -\n    - w\n", {"a": ["x", {"y": "1", "z": "2"}, ["w"]]}),
    ("a:\n- x\n- y\nb: z\n", {"a": ["x", "y"], "b": "z"}),
    ("a:\n  b:\n    c: d\n", {"a": {"b": {"c": "d"}}}),
    ('a: [1, "x"]\nb: {"c": null}\nd: [x, y z]', {"a": [1, "x"], "b": {"c": None}, "d": ["x", "y z"]}),
    ("a: |\n  x\n    y\n\n  z\n\n\nb: c\n", {"a": "x\n  y\n\nz\n", "b": "c"}),
    ("a: |-\n  x\n\n", {"a": "x"}),
    ("a: |+\n  x\n\n\n", {"a": "x\n\n\n"}),
    ("a: |2\n    x\n  y\n", {"a": "  x\ny\n"}),
    ("a: |\n  x", {"a": "x"}),
    ("a: >\n  x\n  y\n\n  z\n    w\n  v\n", {"a": "x y\nz\n  w\nv\n"}),
    ("a: >-\n\n  x\n", {"a": "\nx"}),
    ('a: "x\n  y\n\n  z\\n\\t\\u00e9\\x41 \\"q\\""\n', {"a": "x y\nz\n\té" + 'A "q"'}),
    ("a: 'it''s\n  b'\n", {"a": "it's b"}),
    ("'a b': x\n\"c\": y\n", {"a b": "x", "c": "y"}),
    ("a: x\r\nb: y\r\n", {"a": "x", "b": "y"}),
]

REFUSED = [
    "", "text", "- a", "a: x\na: y", "a: x\n   b: y", "a:\n\t- x", "a: &b x", "a: *b", "a: !t x", "a: x # note",
    "a: %x", 'a: "x', "a: 'x", 'a: "x" y', 'a: "\\q"', 'a: "\\UFFFFFFFF"', 'a: "x\\\n  y"', "a: {b: 1}", "a: [x",
    "a: |x\n  y", "a: |\n  x\n y\n", "a: x\nb", "? a", "a: ---", "a: - x", "<<: x",
    "\n".join(" " * n + "a:" for n in range(30)), "a:\n  " + "- " * 30 + "x",
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), READ)
def test_a_mapping_is_read(text: str, value: dict[str, Any]) -> None:
    assert read_mapping(text) == value


@pytest.mark.parametrize("text", REFUSED)
def test_text_without_one_certain_reading_is_refused(text: str) -> None:
    with pytest.raises(YamlError):
        read_mapping(text)


def test_only_scalars_without_quotes_are_plain() -> None:
    mapping = read_mapping('a: 1\nb: "1"\nc: |\n  1\n')
    assert [type(value) is PlainText for value in mapping.values()] == [True, False, False]

"""Descriptions as a JSON document, and its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from toolwire.wire import EXPORT_VERSION, FORMATS, WireFormat, export_formats, export_schema

SPEC = Path(__file__).parents[3] / "spec"


def document() -> Any:
    return json.loads(json.dumps(export_formats(FORMATS)))


def test_the_document_fits_its_schema() -> None:
    jsonschema_rs.validator_for(export_schema()).validate(document())


@pytest.mark.parametrize(
    ("member", "value"), [("at", "middle"), ("blocks", [[{"node": "Word"}]]), ("markers", "yes"), ("more", 1)]
)
def test_the_schema_refuses_other_documents(member: str, value: Any) -> None:
    changed = document()
    changed["formats"][1][member] = value
    assert not jsonschema_rs.validator_for(export_schema()).is_valid(changed)


def test_every_format_and_every_member_is_written() -> None:
    exported = document()
    assert exported["version"] == EXPORT_VERSION == 1
    assert [wire["name"] for wire in exported["formats"]] == [wire.name for wire in FORMATS]
    hermes = next(wire for wire in exported["formats"] if wire["name"] == "hermes")
    assert hermes["blocks"][0][0]["node"] == "Lit"
    assert hermes["spans"] == [{"open": "<think>", "close": "</think>", "prose": False}]


def test_other_formats_can_be_exported() -> None:
    (own,) = export_formats([WireFormat(name="own")])["formats"]
    assert own["name"] == "own" and own["blocks"] == []


def test_the_schema_in_the_specification_is_fresh() -> None:
    assert json.loads((SPEC / "formats.schema.json").read_text("utf-8")) == export_schema()


def test_the_specification_describes_every_node() -> None:
    text = (SPEC / "README.md").read_text("utf-8")
    for name in export_schema()["$defs"]:
        assert f"`{name}`" in text, name

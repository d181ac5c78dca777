"""Formats that are read from descriptions as data, and their registration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import toolwire
from toolwire.errors import DefinitionError, UnknownFormat
from toolwire.wire import (
    FORMATS,
    Args,
    Call,
    Lit,
    Many,
    Name,
    WireFormat,
    export_formats,
    format_registry,
    import_formats,
    register_formats,
)
from toolwire.wire.format_registry import all_formats, get_format

LINES = {
    "name": "call_lines",
    "blocks": [
        [
            {
                "node": "Many",
                "nodes": [
                    {"node": "Call", "nodes": [{"node": "Lit", "text": "CALL"}, {"node": "Name"}, {"node": "Args"}]},
                    {"node": "Lit", "text": "END", "need": "forgiven"},
                ],
            }
        ]
    ],
}


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the formats that a test registers."""
    monkeypatch.setattr(format_registry, "_registered", [])
    yield
    for cached in (all_formats, format_registry._by_name, format_registry._by_spelling):
        cached.cache_clear()


def test_every_format_survives_the_way_through_json() -> None:
    assert import_formats(json.loads(json.dumps(export_formats(FORMATS)))) == FORMATS


def test_a_description_by_hand_says_only_what_is_special() -> None:
    call = Call((Lit("CALL"), Name(), Args()))
    assert import_formats(LINES) == (
        WireFormat(name="call_lines", blocks=((Many((call, Lit("END", need="forgiven"))),),)),
    )


def nested(levels: int) -> Any:
    node: Any = {"node": "Name"}
    for _ in range(levels):
        node = {"node": "Many", "nodes": [node]}
    return node


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "the format: WireFormat needs the member 'name'"),
        ({"nme": "x"}, "the format: WireFormat has no member 'nme'; did you mean name?"),
        ({"name": 3}, "the format.name: 3 is not text"),
        ({"name": "x", "fences": 1}, "the format.fences: 1 is not true or false"),
        ({"name": "x", "confidence": "1"}, "the format.confidence: '1' is not a number"),
        ({"name": "x", "confidence": True}, "the format.confidence: True is not a number"),
        (
            {"name": "x", "at": "middle"},
            "the format.at: 'middle' is not one of 'anywhere', 'start', 'mixed', 'markers'",
        ),
        ({"name": "x", "result": ["a"]}, "the format.result: it has 1 items, not 2"),
        ({"name": "x", "stop": "end"}, "the format.stop: 'end' is not a list"),
        ({"name": "x", "spans": [["a", "b"]]}, "the format.spans.0: ['a', 'b'] is not an object"),
        ({"name": "x", "blocks": [["a"]]}, "the format.blocks.0.0: 'a' is not a node"),
        ({"name": "x", "blocks": [[{"node": "Litt"}]]}, "did you mean Lit?"),
        ({"name": "x", "blocks": [[{"node": ["Lit"]}]]}, "is not a node"),
        ({"name": "x", "blocks": [[{"node": "Lit"}]]}, "the format.blocks.0.0: Lit needs the member 'text'"),
        ({"name": "x", "blocks": [[{"node": "Lit", "text": " "}]]}, "the format.blocks.0.0: a marker cannot be empty"),
        (
            {"name": "x", "blocks": [[{"node": "Tag", "name": "a", "role": "key", "mark": {"node": "Lit"}}]]},
            "the format.blocks.0.0.mark: {'node': 'Lit'} is not a node, an object such as {\"node\": \"Mark\", ...}",
        ),
        ({"name": "x", "blocks": [[nested(100)]]}, "it has more than 64 levels"),
        ({"version": 2, "formats": []}, "version: 2 is not 1, the one that is read"),
        ({"version": 1, "formats": {}}, "formats: {} is not a list"),
        ({"version": 1, "formats": [LINES, {"name": 3}]}, "formats.1.name: 3 is not text"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(document: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        import_formats(document)
    assert message in str(caught.value)


CALL = {"node": "Call", "nodes": [{"node": "Lit", "text": "CALL"}, {"node": "Name"}, {"node": "Args"}]}
KEY, VALUE = {"node": "Lit", "text": "-"}, {"node": "Value", "close": ";"}


def called(*nodes: Any) -> Any:
    return [[{**CALL, "nodes": [{"node": "Lit", "text": "CALL"}, {"node": "Name"}, *nodes]}]]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"name": " "}, "the format.name: it is empty"),
        ({"blocks": [[]]}, "the format.blocks.0: it is empty"),
        ({"blocks": [[{"node": "Many", "nodes": []}]]}, "blocks.0.0.nodes: it is empty"),
        ({"blocks": [[{"node": "OneOf", "options": [[CALL], []]}]]}, "blocks.0.0.options.1: it is empty"),
        ({"blocks": [[{"node": "AnyOrder", "groups": []}]]}, "blocks.0.0.groups: it is empty"),
        ({"blocks": [[{"node": "Name"}]]}, "blocks.0.0: Name belongs in a Call, not outside a Call"),
        ({"blocks": called({"node": "Value", "close": ";"})}, "Value belongs in Params, not in a Call"),
        ({"blocks": [[{"node": "Call", "nodes": [CALL]}]]}, "Call belongs outside a Call, not in a Call"),
        (
            {"blocks": called({"node": "Tag", "name": "p", "role": "key"})},
            "a Tag with the role 'key' does not belong in a Call",
        ),
        ({"blocks": called({"node": "TokenArgs", "token": ""})}, "blocks.0.0.nodes.2.token: it is empty"),
        ({"blocks": [[{"node": "JsonCall", "name": []}]]}, "blocks.0.0.name: it is empty"),
        (
            {"blocks": [[{"node": "Call", "nodes": [{"node": "Lit", "text": "CALL"}, {"node": "Args"}]}]]},
            "blocks.0.0: a Call needs a Name, a Tag with the role 'name' or a ToolTag",
        ),
        (
            {"blocks": [[{"node": "Call", "nodes": CALL["nodes"][1:]}]]},
            "blocks.0.0.nodes.0: a marker has to come first",
        ),
        (
            {
                "blocks": [
                    [{"node": "Lit", "text": "A", "need": "optional"}, {"node": "Call", "nodes": CALL["nodes"][1:]}]
                ]
            },
            "blocks.0.1.nodes.0: a marker has to come first",
        ),
        (
            {"blocks": called({"node": "Params", "nodes": [KEY, {"node": "Key"}]})},
            "Params end with a Value, the only one",
        ),
        ({"blocks": called({"node": "Params", "nodes": [KEY, VALUE, VALUE]})}, "Params end with a Value, the only one"),
        ({"blocks": called({"node": "Params", "nodes": [{"node": "Key"}, VALUE]})}, "a marker has to come first"),
        (
            {"blocks": called({"node": "Params", "nodes": [KEY, {"node": "Key"}, {"node": "Key"}, VALUE]})},
            "Params have one Key or one Tag",
        ),
        ({"blocks": [[KEY]]}, "blocks.0: it contains no call: no Call, JsonCall or PyCalls"),
        ({"stop": [" "]}, "the format.stop.0: a marker cannot be empty or blank"),
        ({"spans": [{"open": "", "close": "x"}]}, "the format.spans.0: a span needs both markers"),
    ],
)
def test_a_description_that_no_reader_understands_is_refused(members: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        import_formats({"name": "x", **members})
    assert message in str(caught.value)


def test_a_format_of_a_document_is_refused_by_its_place() -> None:
    with pytest.raises(DefinitionError, match=r"^formats\.1\.blocks\.0: it is empty$"):
        import_formats({"version": 1, "formats": [LINES, {"name": "x", "blocks": [[]]}]})


def test_a_registered_format_is_known_by_name_and_in_auto() -> None:
    text = 'I look. CALL f {"x": 1} END'
    assert not toolwire.parse(text).tool_calls
    register_formats(import_formats(LINES))
    register_formats(import_formats(LINES))  # again, which is no mistake
    assert [wire.name for wire in all_formats()].count("call_lines") == 1
    for format in ("call_lines", "Call-Lines", "auto"):
        (call,) = toolwire.parse(text, format=format).tool_calls
        assert (call.name, call.arguments, call.format) == ("f", {"x": 1}, "call_lines")


def test_a_name_that_is_taken_registers_nothing() -> None:
    (lines,) = import_formats(LINES)
    for other in (WireFormat(name="HERMES"), WireFormat(name="own", aliases=("auto",)), WireFormat(name="call_lines")):
        with pytest.raises(DefinitionError, match="has a name that is taken"):
            register_formats([lines, other])
    with pytest.raises(UnknownFormat):
        get_format("call_lines")

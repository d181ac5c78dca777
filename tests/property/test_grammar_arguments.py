"""A grammar offers all arguments that a schema admits, in every format, and lists what it offers beyond them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.property.grammar_engines import PAIRS, engine
from tests.property.grammar_samples import Sampler
from tests.property.test_grammars import WITH_CALLS

import toolwire
from toolwire.errors import DefinitionError, RenderError
from toolwire.grammars.message_grammar import grammar
from toolwire.grammars.message_rules import message_rules
from toolwire.messages import ToolCall
from toolwire.tools import ToolDefinition
from toolwire.wire.syntax import WireFormat

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
CHOSEN = {"properties": {"k": {"enum": ["x", "y"]}}}
IF, THEN = {"properties": {"k": {"const": "x"}}}, {"properties": {"more": TEXT}, "required": ["more"]}
MANY = [{"properties": {"b": {"const": f"value {at}"}}, "required": ["b"]} for at in range(300)]
ROWS: list[tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = [
    ({"properties": {"a": {"type": "string", "pattern": "^x$"}}}, [{"a": "x"}], [{"a": "y"}]),
    ({"properties": {"a": {"enum": ["x", "y"], "pattern": "^x$"}}}, [{"a": "x"}], [{"a": "y"}]),
    ({"properties": {"a": {"type": "string", "maxLength": 0}}}, [{"a": ""}], [{"a": "y"}]),
    ({"properties": {"a": {"type": "string", "maxLength": 300}}}, [{"a": "y" * 250}], [{"a": "y" * 301}]),
    (
        {"properties": {"a": {"type": "array", "items": NUMBER, "maxItems": 300}}},
        [{"a": [1] * 210}],
        [{"a": [1] * 301}],
    ),
    (
        {"properties": {"a": {"type": "array", "items": NUMBER, "minItems": 203}}},
        [{"a": [1] * 204}],
        [{"a": [1] * 201}],
    ),
    (
        {"properties": {"a": {"type": "array", "prefixItems": [TEXT, NUMBER], "items": False, "minItems": 1}}},
        [{"a": ["x"]}, {"a": ["x", 1]}],
        [{"a": ["x", 1, 1]}, {"a": []}],
    ),
    ({"enum": [{"a": 1}, {"a": 2, "b": "x"}]}, [{"a": 1}, {"a": 2, "b": "x"}], [{"a": 2}]),
    ({"properties": {"a": NUMBER}, "const": {"a": 1}}, [{"a": 1}], [{"a": 2}]),
    (
        {"anyOf": [{"properties": {"a": NUMBER}, "additionalProperties": False}, {"additionalProperties": TEXT}]},
        [{"a": 1}, {"a": "x"}, {"b": "x"}],
        [{"a": 1, "b": "x"}],
    ),
    ({**CHOSEN, "if": IF, "then": THEN}, [{"k": "x", "more": "z"}, {"k": "y"}], [{"k": "x"}]),
    ({"properties": {"o": {"type": "object", **CHOSEN, "if": IF, "then": THEN}}}, [{"o": {"k": "x", "more": "z"}}], []),
    ({**CHOSEN, "if": IF, "then": {"$ref": "#/$defs/t"}, "$defs": {"t": THEN}}, [{"k": "x", "more": "z"}], []),
    ({**CHOSEN, "dependentSchemas": {"k": {"allOf": [THEN]}}}, [{"k": "x", "more": "z"}], [{"k": "x"}]),
    ({**CHOSEN, "dependentRequired": {"k": ["more"]}}, [{"k": "x", "more": "z"}], [{"k": "x"}]),
    ({**CHOSEN, "dependencies": {"k": ["more"]}}, [{"k": "x", "more": "z"}], [{"k": "x"}]),
    ({**CHOSEN, "unevaluatedProperties": TEXT}, [{"k": "x", "more": "z"}], []),
    ({**CHOSEN, "propertyNames": {"maxLength": 4}}, [{"k": "x", "more": "z"}], []),
    ({**CHOSEN, "$ref": "#/nowhere"}, [], []),
    ({"properties": {"a": NUMBER}, "anyOf": MANY}, [{"a": 1, "b": "value 299"}], [{"a": 1}]),
    ({"properties": {"a": TEXT}}, [{"a": "\x7f"}, {"a": "\x00\x1f"}, {"a": "\u2028\x85\ufeff"}], []),
    ({"additionalProperties": TEXT}, [{"Content-Type": "x"}, {"日本": "x"}, {"a.b": "x"}], []),
    ({"properties": {"h": {"type": "object", "additionalProperties": TEXT}}}, [{"h": {"X-Id": "x"}}], []),
    ({"properties": {"a": {"enum": ["a</parameter>b", "</arg_value>", "c"]}}}, [{"a": "a</parameter>b"}], [{"a": "d"}]),
    ({"properties": {"a": {"enum": [" a ", "\nb\n", "", "1", None]}}}, [{"a": " a "}, {"a": "\nb\n"}, {"a": ""}], []),
]
"""Parameters, arguments that they admit, and arguments that they refuse."""
TOOLS = [
    ToolDefinition(f"tool_{at}", parameters={"type": "object", **schema}) for at, (schema, _, _) in enumerate(ROWS)
]
UNUSUAL = ("get-weather", "a.b", "a.b/c", "日本", "a b", 'q"q', "a'b", "a>b", "a<b", "a&b", "a\\b", "a:b", "a=b",
           "a(b", "a\nb", "</tool_call>", "<|x|>", "class", "1a", "a,b", "a{b", "a|b", "｜", "é" * 70)  # fmt: skip


def rendered(wire: WireFormat, tool: ToolDefinition, arguments: dict[str, Any]) -> str | None:
    """Return a call as the format writes it after the prompt's end; None if it cannot."""
    try:
        text = toolwire.render_calls([ToolCall(tool.name, arguments)], format=wire, tools=[tool])
    except RenderError:
        return None
    return text.removeprefix(wire.primed)


@pytest.mark.parametrize("wire", WITH_CALLS)
def test_all_arguments_are_offered_and_what_is_offered_beyond_them_is_listed(wire: WireFormat) -> None:
    check_rows(wire, "llama.cpp", "gbnf")


@pytest.mark.parametrize(("name", "syntax"), PAIRS)
@pytest.mark.parametrize(
    "format", ["hermes", "qwen3_coder", "forge_xml", "pythonic", "gemma4", "minimax_m3", "kimi_k3"]
)
def test_all_engines_offer_the_same(format: str, name: str, syntax: str) -> None:
    check_rows(toolwire.get_format(format), name, syntax)


def check_rows(wire: WireFormat, name: str, syntax: Any) -> None:
    real = engine(name)
    for tool, (_, admitted, refused) in zip(TOOLS, ROWS, strict=True):
        try:
            written = grammar([tool], format=wire, tool_choice="required", syntax=syntax)
        except DefinitionError:
            assert not any(rendered(wire, tool, arguments) for arguments in admitted), tool
            continue
        for arguments in admitted:
            if (text := rendered(wire, tool, arguments)) is not None:
                assert real.match(written.text, text, syntax).complete, text
        for arguments in refused:
            text = rendered(wire, tool, arguments)
            assert text is None or written.widened or not real.match(written.text, text, syntax).complete, text


@pytest.mark.parametrize("wire", WITH_CALLS)
def test_a_name_is_offered_if_the_format_can_write_it(wire: WireFormat) -> None:
    real = engine("llama.cpp")
    for name in UNUSUAL:
        parameters = ToolDefinition("f", parameters={"type": "object", "properties": {name: TEXT, "z": NUMBER}})
        check_name(wire, real, parameters, {name: "x"})
        try:
            tool = ToolDefinition(name, parameters={"type": "object", "properties": {"a": TEXT}})
        except DefinitionError:
            continue
        check_name(wire, real, tool, {"a": "x"})


def check_name(wire: WireFormat, real: Any, tool: ToolDefinition, arguments: dict[str, Any]) -> None:
    text = rendered(wire, tool, arguments)
    try:
        written = grammar([tool], format=wire, tool_choice="required", syntax="gbnf")
    except DefinitionError:
        assert text is None, tool
        return
    if text is None:
        assert any("cannot be written" in line for line in written.widened), (tool, arguments)
    else:
        assert real.match(written.text, text, "gbnf").complete, text


@pytest.mark.parametrize("names", [("a",), ('q"q', "a\\b", "1a", "a\nb")], ids=["plain", "escaped"])
@pytest.mark.parametrize("wire", WITH_CALLS)
def test_arguments_without_a_name_in_the_schema_are_read_under_their_names(
    wire: WireFormat, names: tuple[str, ...]
) -> None:
    named = {"type": "object", "properties": dict.fromkeys(names, TEXT), "additionalProperties": TEXT}
    tool = ToolDefinition("f", parameters={**named, "properties": {"h": named, **named["properties"]}})
    rules, reading = message_rules(
        wire, [tool], choice_of="required", parallel=False, reasoning="none", primed=wire.primed
    )
    if any("closing tags" in line for line in reading.rules.widened):
        pytest.skip("closing tags may have any name")
    for seed in range(12):
        text = Sampler(rules.rules, seed).text(rules.root)
        read = toolwire.parse(text, format=wire, tools=[tool])
        # No grammar can keep a name from being written twice.
        if not any("twice" in problem.message for problem in read.problems) and text.count('"":') < 2:
            assert len(read.tool_calls) == 1, text
            assert not read.problems

"""Law L7: a grammar accepts rendered calls, rejects damaged ones, and offers nothing that the parser cannot read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property import texts
from tests.property.grammar_engines import PAIRS, engine
from tests.property.grammar_samples import Sampler

import toolwire
from toolwire.grammars.message_grammar import grammar
from toolwire.grammars.message_rules import message_rules
from toolwire.messages import ToolCall
from toolwire.schema.validation import validate
from toolwire.tools import definitions
from toolwire.wire.format_registry import get_format
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import Value, WireFormat, as_written

WITH_CALLS = [pytest.param(wire, id=wire.name) for wire in FORMATS if wire.blocks]
ENGINES = [pytest.param(name, syntax, id=f"{name}-{syntax}") for name, syntax in PAIRS]
PROPERTIES: dict[str, Any] = {name: schema for name, schema in texts.PROPERTIES.items() if name != "any"}
PROPERTIES["e"] = {"enum": ["red", "dark green", "1", "a\nb"]}
TOOLS = (texts.tool("f", PROPERTIES), *texts.TOOLS[1:], texts.tool("ping_all", {"city": {"type": "string"}}))
KNOWN = definitions(TOOLS)
OTHERS = (
    texts.tool("nobody", PROPERTIES),
    texts.tool(
        "f", {"i": {"type": "string"}, "sss": {"type": "string"}, "n": {"type": "array", "items": {"type": "string"}}}
    ),
    texts.tool("get_weather", {"city": {"type": "string"}, "days": {"type": "string"}}),
)
"""Tools under which the damaged calls are well-formed."""
PROSE = "Let me see: a < b.\n"


@dataclass(frozen=True, slots=True)
class Case:
    """A rendered message, with its format."""

    wire: WireFormat
    calls: list[ToolCall]
    text: str


def in_schema_order(call: ToolCall) -> ToolCall:
    """Return a call with its arguments, and the objects in them, in the order of the schema."""
    schema = KNOWN[call.name].parameters
    return ToolCall(call.name, _ordered(call.arguments, schema))


def _ordered(value: Any, schema: dict[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    return {name: _ordered(value[name], properties[name]) for name in properties if name in value}


@st.composite
def cases(draw: st.DrawFn, wire: WireFormat, *, most: int = 3) -> Case:
    """Draw a message without markup in its values, as the format's model would write it after the prompt's end."""
    drawn = draw(st.lists(texts.calls_of(wire.name, lambda _: texts.harmless()), min_size=1, max_size=most))
    calls = [in_schema_order(ToolCall(call.name, {**call.arguments, **_enum(call)})) for call in drawn]
    return Case(wire, calls, render(wire, calls))


def _enum(call: ToolCall) -> dict[str, Any]:
    return {"e": "dark green"} if "e" in call.arguments else {}


def render(wire: WireFormat, calls: list[ToolCall], tools: Any = TOOLS) -> str:
    return toolwire.render_calls(calls, format=wire, tools=tools).removeprefix(wire.primed)


def written(wire: WireFormat, syntax: str, tool_choice: str) -> str:
    return grammar(TOOLS, format=wire, tool_choice=tool_choice, syntax=syntax).text  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "syntax"), ENGINES)
@pytest.mark.parametrize("wire", WITH_CALLS)
def test_rendered_calls_are_accepted(wire: WireFormat, name: str, syntax: str) -> None:
    real = engine(name)
    required, auto = written(wire, syntax, "required"), written(wire, syntax, "auto")

    @settings(max_examples=max(2, settings().max_examples // 20))
    @given(cases(wire))
    def check(case: Case) -> None:
        assert real.match(required, case.text, syntax).complete, case.text
        assert real.match(auto, case.text, syntax).complete, case.text
        if wire.markers and wire.at == "anywhere":
            text = PROSE + wire.primed + case.text
            assert real.match(auto, text, syntax).complete, text
        only = written(wire, syntax, case.calls[0].name)
        alone = render(wire, case.calls[:1])
        assert real.match(only, alone, syntax).complete, alone

    check()


@pytest.mark.parametrize(("name", "syntax"), ENGINES)
@pytest.mark.parametrize("wire", WITH_CALLS)
def test_prose_alone_is_accepted_where_calls_are_not_required(wire: WireFormat, name: str, syntax: str) -> None:
    real = engine(name)
    for tool_choice in ("auto", "none"):
        assert real.match(written(wire, syntax, tool_choice), PROSE, syntax).complete
    assert not real.match(written(wire, syntax, "required"), PROSE, syntax).complete


@pytest.mark.parametrize("wire", WITH_CALLS)
def test_no_call_is_accepted_where_none_may_be_written(wire: WireFormat) -> None:
    real = engine("llguidance")
    none = written(wire, "lark", "none")
    permitted = message_rules(
        wire, list(KNOWN.values()), choice_of="none", parallel=True, reasoning="none", primed=wire.primed
    )[0].permitted_markers()
    # What the prompt has begun may be followed by the call itself, or by text and a whole call.
    befores = st.sampled_from(["", "\n", PROSE, "Well: ", wire.primed, f"\n{wire.primed}", PROSE + wire.primed])

    @settings(max_examples=max(4, settings().max_examples // 10))
    @given(cases(wire, most=1), befores)
    def check(case: Case, before: str) -> None:
        text = before + case.text
        if toolwire.parse(text, format=wire, tools=TOOLS).tool_calls:
            is_named = any(marker in wire.primed + text for marker in permitted)  # `widened` lists them
            assert is_named or not real.match(none, text, "lark").complete, text

    check()


def damaged(case: Case) -> list[str]:
    """Return a message of one call with the standard damages."""
    wrong = [
        ToolCall("nobody", {"s": "a"}),
        ToolCall("f", {"i": "many"}),
        ToolCall("f", {"sss": "a"}),
        ToolCall("get_weather", {"city": "Paris", "days": "three"}),
        ToolCall("f", {"n": ["a"]}),
    ]
    return [
        *(case.text[:at].rstrip() for at in range(1, len(case.text) - 1, 1 + len(case.text) // 5)),
        *(render(case.wire, [call], OTHERS) for call in wrong),
        f"{case.text}\nIt is",
        f"Well: {case.text}",
    ]


@pytest.mark.parametrize(("name", "syntax"), ENGINES)
@pytest.mark.parametrize("wire", WITH_CALLS)
def test_damaged_calls_are_rejected(wire: WireFormat, name: str, syntax: str) -> None:
    real = engine(name)
    required = written(wire, syntax, "required")

    @settings(max_examples=max(1, settings().max_examples // 20))
    @given(cases(wire, most=1))
    def check(case: Case) -> None:
        assert real.match(required, case.text, syntax).complete
        for text in damaged(case):
            assert not real.match(required, text, syntax).complete, text

    check()


RAW = [
    pytest.param(wire, id=wire.name)
    for wire in FORMATS
    if wire.blocks and any(isinstance(node, Value) for node, _ in as_written(wire.blocks[0]))
]


@pytest.mark.parametrize("wire", RAW)
def test_a_raw_value_without_its_closing_marker_does_not_go_on_in_the_next_parameter(wire: WireFormat) -> None:
    real = engine("llguidance")
    call = ToolCall("write_file", {"path": "PATH", "content": "CONTENT"})
    text = render(wire, [call])
    start = text.index("PATH") + len("PATH")
    close = next(node.close for node, _ in as_written(wire.blocks[0]) if isinstance(node, Value))
    at = text.index(close, start)
    required = written(wire, "lark", "required")
    assert real.match(required, text, "lark").complete
    for position in range(at, at + len(close)):
        assert not real.match(required, text[:position] + text[position + 1 :], "lark").complete, position


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("harmony", "<|channel|>commentary to=functons.ping <|constrain|>json<|message|>{}<|call|>"),
        ("deepseek_v3", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>ping\n```json\n{}\n```<｜tool▁call▁end｜>"),
        ("kimi_k2", "<|tool_call_begin|>functions.ping:0<|tool_call_argument_begin|>{}<|tool_call_end|>"),
    ],
)
def test_text_contains_no_call_that_begins_with_a_shorter_marker(name: str, text: str) -> None:
    auto = written(get_format(name), "lark", "auto")
    assert not engine("llguidance").match(auto, f"{text}{text}", "lark").complete
    assert toolwire.parse(f"{text}{text}", format=name, tools=TOOLS).tool_calls


@pytest.mark.parametrize("wire", WITH_CALLS)
def test_the_parser_reads_whatever_a_grammar_offers(wire: WireFormat) -> None:
    rules, _ = message_rules(
        wire, list(KNOWN.values()), choice_of="required", parallel=True, reasoning="none", primed=wire.primed
    )

    @settings(max_examples=max(10, settings().max_examples // 4))
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        text = Sampler(rules.rules, seed).text(rules.root)
        read = toolwire.parse(text, format=wire, tools=TOOLS)
        assert read.tool_calls, text
        assert not read.problems, (text, read.problems)
        assert not read.content.strip(), (text, read.content)
        for call in read.tool_calls:
            assert not [repair for repair in call.repairs if repair != "coerced"], (text, call)
            assert not validate(call.arguments, KNOWN[call.name].parameters), (text, call)

    check()


@pytest.mark.parametrize(("name", "syntax"), ENGINES)
@pytest.mark.parametrize("wire", WITH_CALLS)
def test_engines_accept_whatever_a_grammar_offers(wire: WireFormat, name: str, syntax: str) -> None:
    real = engine(name)
    rules, _ = message_rules(
        wire, list(KNOWN.values()), choice_of="auto", parallel=True, reasoning="none", primed=wire.primed
    )
    auto = written(wire, syntax, "auto")

    @settings(max_examples=max(2, settings().max_examples // 20))
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        text = Sampler(rules.rules, seed).text(rules.root)
        assert real.match(auto, text, syntax).complete, text

    check()


@pytest.mark.parametrize(("name", "syntax"), ENGINES)
@pytest.mark.parametrize("wire", WITH_CALLS)
def test_text_may_follow_calls_only_where_that_is_asked_for(wire: WireFormat, name: str, syntax: Any) -> None:
    real = engine(name)
    text = render(wire, [ToolCall("get_weather", {"city": "Paris"}), ToolCall("ping")])
    for tool_choice in ("auto", "required"):
        followed = grammar(TOOLS, format=wire, tool_choice=tool_choice, syntax=syntax, text_after=True).text
        for after in ("", "\n", "\nIt rains.", " " * 9 + "It\n\n  rains."):
            assert real.match(followed, text + after, syntax).complete, text + after
    assert not real.match(written(wire, syntax, "required"), f"{text}\nIt rains.", syntax).complete


@pytest.mark.parametrize(("name", "syntax"), ENGINES)
@pytest.mark.parametrize("wire", [wire for wire in WITH_CALLS if wire.values[0].spans])
@pytest.mark.parametrize("reasoning", ["allowed", "open"])
def test_calls_behind_reasoning_begin_anew(wire: WireFormat, reasoning: Any, name: str, syntax: Any) -> None:
    """The end of the prompt is continued by the reasoning, and not by the calls behind it."""
    calls = toolwire.render_calls([ToolCall("get_weather", {"city": "Paris"})], format=wire, tools=TOOLS)
    span = wire.spans[0]
    opener = span.open.removeprefix(wire.primed) if reasoning == "allowed" else ""
    text = f"{opener}Hm.{span.close}{calls}"
    before = wire.primed if reasoning == "allowed" else span.open
    assert toolwire.parse(before + text, format=wire, tools=TOOLS).tool_calls
    for tool_choice in ("auto", "required"):
        options: Any = {"tool_choice": tool_choice, "syntax": syntax, "reasoning": reasoning}
        reasoned = grammar(TOOLS, format=wire, **options).text
        assert engine(name).match(reasoned, text, syntax).complete, tool_choice
        if reasoning == "allowed":
            assert engine(name).match(reasoned, calls.removeprefix(wire.primed), syntax).complete, tool_choice


@pytest.mark.parametrize("wire", [wire for wire in WITH_CALLS if wire.values[0].spans])
def test_reasoning_contains_no_call_that_is_read_and_no_grammar_describes(wire: WireFormat) -> None:
    """Where a reader takes a call inside reasoning for text, a grammar may offer it."""
    nobody = toolwire.render_calls([ToolCall("nobody", {"s": "a"})], format=wire, tools=OTHERS)
    ping = toolwire.render_calls([ToolCall("ping")], format=wire, tools=TOOLS)
    span = wire.spans[0]
    text = f"{span.open.removeprefix(wire.primed)}Hm. {nobody}\n{span.close}{ping}"
    allowed = grammar(TOOLS, format=wire, tool_choice="required", syntax="gbnf", reasoning="allowed").text
    if engine("llama.cpp").match(allowed, text, "gbnf").complete:
        read = toolwire.parse(wire.primed + text, format=wire, tools=TOOLS)
        assert [call.name for call in read.tool_calls] == ["ping"]


@pytest.mark.parametrize("format", ["hermes", "forge_xml", "anthropic_xml", "mistral_json", "deepseek_v3", "pythonic"])
def test_a_marker_of_calls_in_reasoning_is_text_for_a_lexer_too(format: str) -> None:
    wire = get_format(format)
    ping = toolwire.render_calls([ToolCall("ping")], format=wire, tools=TOOLS)
    text = f"{wire.spans[0].open}I write {ping}, or not.{wire.spans[0].close}{ping}"
    allowed = grammar(TOOLS, format=wire, tool_choice="auto", syntax="lark", reasoning="allowed")
    assert engine("llguidance").match(allowed.text, text, "lark").complete
    assert not any(wire.spans[0].open in line for line in allowed.widened)

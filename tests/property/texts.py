"""Texts of models: random ones made of the formats' markup, well-formed ones, and damaged ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from tests.property.nodes import fragments_of, wire_formats

import toolwire
from toolwire import tools
from toolwire.messages import ToolCall
from toolwire.tools import ToolDefinition
from toolwire.wire.syntax import END_OF_SEQUENCE

OWN_ROWS = Path(__file__).resolve().parents[1] / "conformance" / "own.jsonl"

PROPERTIES: dict[str, Any] = {
    "s": {"type": "string"},
    "i": {"type": "integer"},
    "x": {"type": "number"},
    "b": {"type": "boolean"},
    "z": {"type": "null"},
    "e": {"enum": ["red", "green", "</parameter>", "1"]},
    "m": {"type": ["string", "null"]},
    "u": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "l": {"type": "array", "items": {"type": "string"}},
    "n": {"type": "array", "items": {"type": "integer"}},
    "o": {
        "type": "object",
        "properties": {
            "s": {"type": "string"},
            "i": {"type": "integer"},
            "l": {"type": "array", "items": {"type": "number"}},
        },
        "required": ["s"],
    },
    "any": {},
}


def tool(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Return an OpenAI-style definition."""
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "description": f"{name}.", "parameters": parameters}}


TOOLS = (
    tool("f", PROPERTIES),
    tool("get_weather", {"city": {"type": "string"}, "days": {"type": "integer"}}),
    tool("write_file", {"path": {"type": "string"}, "content": {"type": "string"}}),
    tool("ping", {}),
)


@cache
def definitions() -> dict[str, ToolDefinition]:
    """Return `TOOLS` as definitions, by name."""
    return tools.definitions(TOOLS)


# -- what texts are made of ------------------------------------------------------------------------------------------

_GENERAL = (
    *END_OF_SEQUENCE[:4], "<think>", "</think>", "```", "```\n", "\n```\n", "```json\n", "~~~", "\n~~~~\n", "`", "\n",
    "\r\n", "\n\n", " ", "\t", "    ", "{", "}", "[", "]", "{}", "[]", ",", ":", ": ", ", ", '"', "'", '"""', "\\",
    '\\"', "\\u00e9", "\\ud83d", "\\ud83d\\ude00", "\\u12", "\\x", "<", ">", "</", "/>", "&", "&amp;", "&lt;",
    "&#65;", "&#x1F600;", "&#xD800;", "&am", "]]>", "]]", "<![CDATA[", "<!--", "-->", "=", "(", ")", "true", "True",
    "null", "None", "NaN", "Infinity", "-", "0", "07", "12", "-1.5e3", "1e999", "f", "ping", "get_weather", "nobody",
    "functions.", ":0", "s", "i", "city", "Paris", "é", "日本", "😀", "\u2028", "\x00", "\x85",
    '{"name": "f", "arguments": {"s": "a"}}', '"name": "f"', '"arguments": {', '{"s": "a", "i": 1}',
    '"arguments": "{\\"s\\": 1}"', '{"name": "ping", "arguments": {}}', '"s": "a"', "<s>a</s>", '[f(s="a")]',
    "f(s='a', i=1)", "ping()", "x" * 300, "\n" * 50, "9" * 40,
)  # fmt: skip

_EXTREMES = ("9" * 5000, "[" * 250, "{" * 250, "\n" * 4100, "x" * 4100, '{"a":' * 250, "<a>" * 250)


def characters() -> st.SearchStrategy[str]:
    """Draw text of every Unicode plane, sometimes with half of a surrogate pair."""
    return st.one_of(
        st.text(max_size=20),
        st.text(st.characters(min_codepoint=0x10000), max_size=5),
        st.text(st.characters(), max_size=5),
        st.sampled_from(("\ud83d", "\ude00", "a\udfffb")),
    )


@cache
def fragments(name: str) -> tuple[str, ...]:
    """Return the parts of texts in this format."""
    return tuple(sorted({fragment for wire in wire_formats(name) for fragment in fragments_of(wire)}))


def texts(name: str) -> st.SearchStrategy[str]:
    """Draw texts that are mostly misplaced markup."""
    format_fragments = st.sampled_from(fragments(name) or ("<think>",))
    piece = st.one_of(
        format_fragments,
        format_fragments,
        format_fragments,
        st.sampled_from(_GENERAL),
        st.sampled_from(_GENERAL),
        characters(),
    )
    return st.lists(piece, max_size=14).map("".join)


# -- well-formed messages --------------------------------------------------------------------------------------------


@cache
def own_rows() -> tuple[dict[str, Any], ...]:
    """Return the project's own conformance rows."""
    return tuple(json.loads(line) for line in OWN_ROWS.read_text(encoding="utf-8").splitlines() if line.strip())


@cache
def samples(name: str) -> tuple[str, ...]:
    """Return well-formed messages written by hand."""
    sample_texts = [row["text"] for row in own_rows() if row["format"] == name and row["kind"] == "complete"]
    return tuple(text for text in sample_texts if len(text) < 2000)


def messages(name: str) -> st.SearchStrategy[str]:
    """Draw well-formed messages in this format: samples, and rendered calls between content."""
    strategies: list[st.SearchStrategy[str]] = []
    if samples(name):
        strategies.append(st.sampled_from(samples(name)))
    targets = [wire.name for wire in wire_formats(name) if wire.blocks]
    if targets:
        strategies.append(st.sampled_from(targets).flatmap(_rendered_messages))
    return st.one_of(strategies) if strategies else texts(name)


@st.composite
def _rendered_messages(draw: st.DrawFn, name: str) -> str:
    wire = wire_formats(name)[0]
    calls = draw(st.lists(calls_of(name), min_size=1, max_size=3))
    try:
        text: str = toolwire.render_calls(calls, format=name, tools=TOOLS)
    except toolwire.RenderError:
        text = toolwire.render_calls([ToolCall("ping")], format=name, tools=TOOLS)
    if not wire.markers or wire.at == "start":
        return text
    before = draw(st.sampled_from(("", "Let me see.\n", "<think>hm</think>\n", "a < b & c\n")))
    after = draw(st.sampled_from(("", "\n", "<|im_end|>", "\nDone.")))
    return before + text + after


@st.composite
def mutated(draw: st.DrawFn, name: str) -> str:
    """Draw a well-formed message with some damage: cut, doubled, swapped, with markup inserted."""
    text = draw(messages(name))
    format_fragments = st.sampled_from((*fragments(name), *_GENERAL))
    for _ in range(draw(st.integers(1, 3))):
        a = draw(st.integers(0, len(text)))
        b = min(len(text), a + draw(st.integers(0, 12)))
        match draw(st.sampled_from(("insert", "delete", "double", "cut", "replace", "move"))):
            case "insert":
                text = text[:a] + draw(format_fragments) + text[a:]
            case "delete":
                text = text[:a] + text[b:]
            case "double":
                text = text[:b] + text[a:]
            case "cut":
                text = text[:a]
            case "replace":
                text = text[:a] + draw(characters()) + text[b:]
            case _:
                text = text[:a] + text[b:] + text[a:b]
    return text


def extremes(name: str) -> st.SearchStrategy[str]:
    """Draw very long pieces among markup: limits of names, nesting, digits and white space."""
    format_fragments = st.sampled_from(fragments(name) or ("<think>",))
    piece = st.one_of(format_fragments, st.sampled_from(_GENERAL), st.sampled_from(_EXTREMES))
    return st.lists(piece, max_size=6).map("".join)


# -- calls that schemas type -----------------------------------------------------------------------------------------


def strings(name: str) -> st.SearchStrategy[str]:
    """Draw values of any characters but half surrogates, with the format's own markup inserted."""
    plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    tricky = st.sampled_from((*fragments(name), *(f for f in _GENERAL if f.isascii() or "\ud83d" not in f)))
    return st.one_of(
        plain,
        st.sampled_from(
            ("", " ", "\n", "\n\n", " a ", "\na\n", "null", "true", "1", "[1]", '{"a": 1}', "</s>", "]]>", "&lt;")
        ),
        st.lists(st.one_of(tricky, plain), max_size=4).map("".join),
    )


def harmless() -> st.SearchStrategy[str]:
    """Draw values that no format can mistake for markup."""
    return st.text(st.characters(codec="utf-8", categories=("L", "N", "So")), min_size=1, max_size=12)


_INTEGERS = st.one_of(st.integers(-9, 9), st.integers(), st.sampled_from((2**63, -(2**64), 10**30)))
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def json_values(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    leaf = st.one_of(st.none(), st.booleans(), _INTEGERS, _FLOATS, text)
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        ),
        max_leaves=5,
    )


def _values(text: st.SearchStrategy[str]) -> dict[str, st.SearchStrategy[Any]]:
    return {
        "s": text,
        "i": _INTEGERS,
        "x": _FLOATS,
        "b": st.booleans(),
        "z": st.none(),
        "e": st.sampled_from(PROPERTIES["e"]["enum"]),
        "m": st.none() | text.filter(lambda value: value.strip() not in ("null", "None")),
        "u": st.none() | _INTEGERS,
        "l": st.lists(text, max_size=4),
        "n": st.lists(_INTEGERS, max_size=4),
        "o": st.fixed_dictionaries({"s": text}, optional={"i": _INTEGERS, "l": st.lists(_FLOATS, max_size=2)}),
    }


def calls_of(name: str, text: Callable[[str], st.SearchStrategy[str]] = strings) -> st.SearchStrategy[ToolCall]:
    """Draw calls to `TOOLS` with arguments that the schemas type."""
    value = text(name)
    wide = st.fixed_dictionaries({}, optional=_values(value)).map(lambda arguments: ToolCall("f", arguments))
    file = st.fixed_dictionaries({"path": value, "content": value}).map(
        lambda arguments: ToolCall("write_file", arguments)
    )
    return st.one_of(wide, wide, file, st.just(ToolCall("ping")))


def untyped_calls(name: str) -> st.SearchStrategy[ToolCall]:
    """Draw calls with arguments that no schema types."""
    keys = st.sampled_from(("a", "b", "any", "key with blanks", "é", "</tool_call>", '"'))
    return st.dictionaries(keys, json_values(strings(name)), max_size=3).map(
        lambda arguments: ToolCall("nobody", arguments)
    )

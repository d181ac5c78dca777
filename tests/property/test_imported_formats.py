"""Descriptions with random changes: each is refused, or it is a format that works without an error nobody expects."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import toolwire
from toolwire.errors import DefinitionError, RenderError
from toolwire.wire import FORMATS, WireFormat, export_formats, import_formats

DESCRIPTIONS = json.loads(json.dumps(export_formats(FORMATS)))["formats"]
NODES = (
    "Name",
    "Args",
    "KeywordArgs",
    "Elements",
    "JsonCall",
    "ToolBody",
    "ToolTag",
    "Key",
    "Ident",
    "Header",
    "Value",
)
WORDS = ("", " ", "<", ">", "{", "a", "\n", "```", "forgiven", "optional", "anywhere")
TOOLS = [
    {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    }
]
CALL = toolwire.ToolCall("get_weather", {"city": "Paris", "days": 2}, "call_1")


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container with the key of each of its items."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from places(item)


def change(description: dict[str, Any], random: Random) -> None:
    container, key = random.choice(list(places(description)))
    value = container[key]
    if isinstance(value, bool):
        container[key] = not value
    elif isinstance(value, str):
        container[key] = random.choice((*WORDS, value + value, value[:1]))
    elif isinstance(value, list) and value:
        item = random.choice(value)
        container[key] = random.choice(([], value[1:], value[:-1], [*value, item], [item, *value], value[::-1]))
    elif isinstance(value, dict):
        container[key] = {"node": random.choice(NODES)}
    else:
        container[key] = None


def use(wire: WireFormat, text: str) -> None:
    """Read, write and describe calls in a format; errors that say what cannot be written are expected."""
    toolwire.parse(text, format=wire, tools=TOOLS)
    for write in (
        lambda: toolwire.parse(toolwire.render_calls([CALL, CALL], format=wire, tools=TOOLS), format=wire, tools=TOOLS),
        lambda: toolwire.prompt(TOOLS, format=wire),
        lambda: toolwire.grammar(TOOLS, format=wire, tool_choice="required"),
    ):
        with suppress(RenderError, DefinitionError):
            write()


@given(st.sampled_from(range(len(FORMATS))), st.randoms(use_true_random=False), st.integers(1, 2))
def test_a_changed_description_is_refused_or_works(at: int, random: Random, changes: int) -> None:
    description = copy.deepcopy(DESCRIPTIONS[at])
    for _ in range(changes):
        change(description, random)
    try:
        (wire,) = import_formats(description)
    except DefinitionError:
        return
    try:
        text = toolwire.render_calls([CALL], format=FORMATS[at], tools=TOOLS)
    except RenderError:
        text = "none"
    use(wire, f"I look. {text} bye")

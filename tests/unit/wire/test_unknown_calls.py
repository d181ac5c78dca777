"""A message that is nothing but a call of a tool that does not exist is reported, so that the model can correct it."""

from __future__ import annotations

from typing import Any

import pytest

import toolwire
from toolwire.wire.fallback import FallbackLevel

TOOLS: list[dict[str, Any]] = [
    {"name": "list_files", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
    {"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}},
]


def kinds(text: str, format: str = "auto", fallback: FallbackLevel = "whole_message") -> list[tuple[str, str]]:
    read = toolwire.parse(text, format=format, tools=TOOLS, fallback=fallback)
    assert read.tool_calls == ()
    assert read.content == text
    return [(problem.kind, problem.raw) for problem in read.problems]


@pytest.mark.parametrize("format", ["auto", "pythonic", "hermes", "llama3_json"])
@pytest.mark.parametrize(
    "text",
    [
        '[list_directory(path="/")]',
        "[next_page()]",
        '[ls(), open_page(url="y", numbers=[1, 2])]',
        '{"name": "list_directory", "arguments": {"path": "/"}}',
        '{"id": "1", "type": "function", "function": "list_directory", "parameters": {}}',
        '{"tool": "ls", "args": {}}\n{"tool": "cat", "args": {}}',
        '[{"name": "ls", "arguments": {}}]',
        '{"tool_calls": [{"name": "ls", "arguments": {}}]}',
        '```json\n{"name": "ls", "arguments": {}}\n```',
        "```\n[ls()]\n```",
        'list_filse(path="/")',
    ],
)
def test_a_call_of_an_unknown_tool_is_a_problem(text: str, format: str) -> None:
    assert kinds(text, format) == [("unknown_tool", text)]
    assert kinds(text, format, "none") == []


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2, 3]",
        "[]",
        "{}",
        '{"name": "Ada", "age": 36}',
        '{"name": "Ada Lovelace", "parameters": {}}',
        '{"action": "approve", "input": "yes"}',
        '{"name": "ls", "arguments": {}, "price": 3}',
        '{"name": "ls", "function": "cat", "arguments": {}}',
        '{"tool_calls": [{"name": "ls", "arguments": {}, "price": 3}]}',
        '{"name": "ls", "arguments": {"type": "object", "properties": {}}}',
        '[{"name": "ls", "arguments": {}}, 7]',
        "[date(2024, 1, 1), f(x)]",
        "[f(a=x)]",
        "[f(**{})]",
        '["ls()"]',
        'print(end="")',
        'open_page(url="y")',
        'See [list_directory(path="/")]',
        '[list_directory(path="/")] would list them.',
        '{"name": "ls", "arguments": {',
        '{"name": "ls", "arguments": {}}' * 1000,
    ],
)
def test_answers_are_no_calls_of_unknown_tools(text: str) -> None:
    assert "unknown_tool" not in [kind for kind, _ in kinds(text)]


def test_the_message_names_what_may_be_meant_and_what_there_is() -> None:
    many = [*TOOLS, *({"name": f"tool_{number}"} for number in range(30))]
    (problem,) = toolwire.parse("[list_file()]", tools=many).problems
    assert problem.message == (
        "There is no tool 'list_file', so nothing ran; did you mean list_files? There are: list_files, search, "
        + ", ".join(f"tool_{number}" for number in range(18))
        + " and 12 more."
    )


def test_it_is_reported_in_any_pieces_and_behind_reasoning() -> None:
    text = '<think>I list them.</think>\n[list_directory(path="/")]\n'
    for size in (1, 3, len(text)):
        parser = toolwire.StreamParser(tools=TOOLS)
        pieces = (text[at : at + size] for at in range(0, len(text), size))
        read = toolwire.collect([*(event for piece in pieces for event in parser.feed(piece)), *parser.finish()])
        assert [(problem.kind, problem.position) for problem in read.problems] == [("unknown_tool", 28)]


def test_text_beside_a_call_is_no_call_of_an_unknown_tool() -> None:
    read = toolwire.parse('<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>[ls()]', tools=TOOLS)
    assert (len(read.tool_calls), read.content, read.problems) == (1, "[ls()]", ())


def test_without_tools_nothing_is_unknown() -> None:
    assert toolwire.parse("[ls()]").problems == ()

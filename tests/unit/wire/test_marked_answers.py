"""Text that a format marks as the answer: a call in it without markers of its own is shown, and not read."""

from __future__ import annotations

import pytest
from tests import streams

TOOLS = [{"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}]
ANSWERS = {
    "harmony": "<|channel|>final<|message|>",
    "cohere_action": "<|START_RESPONSE|>",
    "kimi_k3": "<|open|>response<|sep|>",
}
CALLS = (
    '{"name": "search", "arguments": {"query": "x"}}',
    'search(query="x")',
    '[search(query="x")]',
    "<search><query>x</query></search>",
    'Like this: [search(query="x")]',
    '```json\n{"name": "search", "arguments": {"query": "x"}}\n```',
)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("format", ANSWERS)
@pytest.mark.parametrize("level", ["whole_message", "embedded"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_call_in_a_marked_answer_is_content(format: str, call: str, level: str, size: int) -> None:
    for name in (format, "auto"):
        response = streams.parsed(ANSWERS[format] + call, size, format=name, tools=TOOLS, fallback=level)
        assert (response.tool_calls, response.content) == ((), call)


def test_a_call_between_markers_counts_behind_an_answer() -> None:
    call = '<|start|>assistant<|channel|>commentary to=functions.search<|message|>{"query": "x"}<|call|>'
    response = streams.parsed(f"{ANSWERS['harmony']}I search.<|end|>{call}", format="auto", tools=TOOLS)
    assert (streams.called(response), response.content) == ([("search", {"query": "x"})], "I search.")


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("call", CALLS[:3])
def test_a_marked_answer_is_no_call_in_a_format_without_that_marker(call: str, size: int) -> None:
    text = f"<|START_RESPONSE|>{call}<|END_RESPONSE|>"
    response = streams.parsed(text, size, format="hermes", tools=TOOLS, fallback="whole_message")
    assert (response.tool_calls, response.content) == ((), text)

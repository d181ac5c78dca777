from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.reparse.reread_answers import SAMPLES, ReparseOptions, reread
from toolwire.tools import definitions

TOOL = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
TOOLS = tuple(definitions([TOOL]).values())
JSON = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
HERMES = f"<tool_call>\n{JSON}\n</tool_call>"
PARIS = [{"name": "get_weather", "arguments": {"city": "Paris"}}]
ROME = [{"name": "get_weather", "arguments": {"city": "Rome"}}]


def kinds(*rows: Any, **options: Any) -> list[str]:
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    result = reread(lines, ReparseOptions(**{"format": "hermes", "tools": TOOLS, **options}))
    return [kind for (_, kind), count in result.counts.items() for _ in range(count)]


def chat(content: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    tool_calls = [
        {
            "id": f"c{at}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for at, call in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, **({"tool_calls": tool_calls} if calls else {})}
    return {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("text", "calls", "kind"),
    [
        (HERMES, PARIS, "same"),
        ("No.", [], "none"),
        (HERMES, [], "gained"),
        ("No.", PARIS, "lost"),
        (HERMES, ROME, "changed"),
        (HERMES, [*PARIS, *PARIS], "changed"),
        (HERMES, [{"name": "get_weather", "arguments": "{broken"}], "changed"),
        (HERMES, None, "read"),
        ("No.", None, "none"),
    ],
)
def test_classes(text: str, calls: list[Any] | None, kind: str) -> None:
    row = {"text": text, **({} if calls is None else {"calls": calls})}
    assert kinds(row) == [kind]


@pytest.mark.parametrize(
    ("content", "calls", "kind"),
    [
        (HERMES, [], "gained"),
        ("", PARIS, "same"),
        ("Hello.", [], "none"),
        (HERMES, PARIS, "same"),
        (HERMES, ROME, "changed"),
    ],
)
def test_calls_that_a_server_left_in_the_text(content: str, calls: list[Any], kind: str) -> None:
    assert kinds(chat(content, calls)) == [kind]
    assert kinds({"custom_id": "1", "response": {"status_code": 200, "body": chat(content, calls)}}) == [kind]


def test_an_earlier_format_takes_the_place_of_the_calls() -> None:
    assert kinds({"text": HERMES, "calls": ROME}, earlier_format="hermes") == ["same"]
    assert kinds({"text": HERMES, "calls": ROME}, earlier_format="pythonic") == ["gained"]
    assert kinds({"text": JSON, "calls": ROME}, earlier_format="hermes", fallback="whole_message") == ["same"]


def test_the_format_of_the_row_counts_without_an_option() -> None:
    assert kinds({"text": HERMES, "format": "pythonic"}, format="") == ["none"]
    assert kinds({"text": HERMES}, format="") == ["read"]


def test_broken_rows_are_counted_and_named_and_empty_lines_are_not() -> None:
    lines = [b"\n", b"{", json.dumps({"text": HERMES, "tools": [{"none": 1}], "model": "m"}).encode(), b'{"text": "x"}']
    result = reread(lines, ReparseOptions(format="hermes"))
    assert dict(result.counts) == {("", "broken"): 2, ("", "none"): 1}
    assert [position for position, _ in result.broken] == [1, 2]


def test_an_unknown_format_in_a_row_breaks_only_the_row() -> None:
    assert kinds({"text": HERMES, "format": "herms"}, {"text": HERMES}, format="") == ["broken", "read"]


def test_repairs_are_counted_by_model() -> None:
    options = ReparseOptions(format="hermes", tools=TOOLS, fallback="whole_message")
    result = reread([json.dumps({"text": JSON, "model": "m"}).encode()] * 2, options)
    assert dict(result.repairs) == {("m", "fallback"): 2}


def test_samples_and_problems() -> None:
    rows = [{"text": HERMES, "calls": [], "model": "m"}] * (SAMPLES + 3)
    rows += [{"text": "<tool_call>{]", "calls": PARIS, "model": "m"}]
    result = reread([json.dumps(row).encode() for row in rows], ReparseOptions(format="hermes", tools=TOOLS))
    assert len([sample for sample in result.samples if sample[2] == "gained"]) == SAMPLES
    assert len([row for row in result.different if row[2] == "gained"]) == SAMPLES + 3
    assert dict(result.problems) == {("m", "malformed"): 1}
    position, model, kind, before, now, text = result.samples[0]
    assert (position, model, kind, before, text) == (0, "m", "gained", "[]", HERMES)
    assert json.loads(now) == [["get_weather", {"city": "Paris"}]]

"""Names of tools on lines of their own, with the elements of their parameters below."""

from __future__ import annotations

from typing import Any

import pytest
from tests.property.laws import check_chunking, check_never_half

from toolwire.events import CallEnd, ContentDelta
from toolwire.tools import definitions
from toolwire.wire.block_reader import ReadOptions
from toolwire.wire.named_elements import NamedElements

LIST = {"name": "list_dir", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
READ = {"name": "read", "parameters": {"type": "object", "properties": {"path": {}, "limit": {"type": "integer"}}}}


def read(text: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """Return the calls and the content, which every chunking gives."""
    response = check_chunking(text, format="auto", tools=[LIST, READ]).response
    return [(call.name, call.arguments) for call in response.tool_calls], response.content


@pytest.mark.parametrize(
    ("text", "calls", "content"),
    [
        ("list_dir\n<path>a</path>", [("list_dir", {"path": "a"})], ""),
        ("\n list_dir:\n\n  <path>a</path>\nThanks", [("list_dir", {"path": "a"})], "\nThanks"),
        ("list_dir\n<path>a</path>\n</list_dir>\n", [("list_dir", {"path": "a"})], ""),
        ("read\n<path>a</path>\n</read>", [("read", {"path": "a"})], ""),
        ("read\n<path>a</path>\n\nlist_dir\n<path>b</path>",
         [("read", {"path": "a"}), ("list_dir", {"path": "b"})], ""),
        ("read\n<path>a</path><limit>2</limit>", [("read", {"path": "a", "limit": 2})], ""),
    ],
)  # fmt: skip
def test_a_name_and_elements_are_a_call(text: str, calls: list[tuple[str, dict[str, Any]]], content: str) -> None:
    assert read(text) == (calls, content)


@pytest.mark.parametrize(
    "text",
    [
        "read\n<path>a</path>",
        "list_dir <path>a</path>",
        "list_dirs\n<path>a</path>",
        "list\n<path>a</path>",
        "Use list_dir\n<path>a</path>",
        "list_dir\n<path>a</path><other>b</other>",
        "list_dir\n<path>a</path> or\nread\n<path>b</path><limit>2</limit>",
        "list_dir\n<path>a",
        "list_dir\n<b>bold</b>",
        "list_dir\n",
        "list_dir" + "\n" * 150 + "<path>a</path>",
    ],
)
def test_other_text_and_calls_that_may_be_cut_are_content(text: str) -> None:
    assert read(text) == ([], text)


def test_a_cut_call_never_completes() -> None:
    check_never_half("read\n<path>a</path>\n<limit>20</limit>\n</read>", format="auto", tools=[READ])


def test_such_calls_are_less_certain_and_show_their_text() -> None:
    text = "list_dir\n<path>a</path>\nThanks"
    (call,) = check_chunking(text, format="auto", tools=[LIST]).response.tool_calls
    assert (call.raw, call.format, call.repairs) == ("list_dir\n<path>a</path>", "tool_tags", ("fallback",))
    assert call.confidence < 0.9


def test_each_call_has_a_text_of_its_own() -> None:
    text = "read\n<path>a</path>\n\n list_dir\n<path>b</path>\n"
    calls = check_chunking(text, format="auto", tools=[LIST, READ]).response.tool_calls
    assert [call.raw for call in calls] == ["read\n<path>a</path>", " list_dir\n<path>b</path>"]
    assert len({call.id for call in calls}) == 2


@pytest.mark.parametrize(
    ("before", "calls"),
    [
        ("read\n<path>a</path>\n", [("read", {"path": "a"})]),
        ("list_dir\n<path>a</path>\nread\n<limit>2</limit>\n",
         [("list_dir", {"path": "a"}), ("read", {"limit": 2})]),
        ("list_dir\n<path>a</path>\nor rather ", []),
        ("Use list_dir\n<path>a</path>\n", []),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "call",
    ["<list_dir><path>b</path></list_dir>", '<tool_call>{"name": "list_dir", "arguments": {"path": "b"}}</tool_call>'],
)
def test_such_calls_may_come_before_a_call_in_a_format(before: str, calls: list[Any], call: str) -> None:
    expected = [*calls, ("list_dir", {"path": "b"})]
    assert read(before + call) == (expected, "" if calls else before)


@pytest.mark.parametrize(
    ("text", "alive", "events"),
    [
        ("list_dir\n<path>a</path>", True, [CallEnd]),
        ("list_dir\n<path>a</path>\nThanks", True, [CallEnd, ContentDelta]),
        ("list_dir\n<path>a</path> or\nread\n<path>b</path><limit>2</limit>", True, []),
        ("list_dir\n<b>bold</b>", True, []),
        ("list_dir\n", True, []),
        ("list_dirs\n<path>a</path>", False, []),
        ("Use list_dir\n<path>a</path>", False, []),
    ],
)
def test_the_reader_has_events_of_calls_or_none(text: str, alive: bool, events: list[type]) -> None:
    reader = NamedElements(ReadOptions(definitions([LIST, READ])))
    reader.feed(text[:4])
    reader.feed(text[4:])
    assert reader.alive is alive
    found = reader.finish()
    assert isinstance(found, list)
    assert [type(event) for event in found if isinstance(event, CallEnd | ContentDelta)] == events
    assert reader.alive or not found


def test_a_message_that_began_inside_reasoning_does_not_change_the_calls() -> None:
    reader = NamedElements(ReadOptions(definitions([LIST]), reasoning_started=True))
    reader.feed("list_dir\n<path>a</path>")
    (call,) = [event.call for event in reader.finish() if isinstance(event, CallEnd)]
    assert (call.name, call.arguments) == ("list_dir", {"path": "a"})


def test_a_broken_call_beside_another_one_is_content_and_a_problem() -> None:
    broken, whole = "list_dir\n<path>a</path><other>b</other>\n", "read\n<path>b</path>\n</read>"
    for text, position in ((broken + whole, 0), (f"{whole}\n{broken}", len(whole) + 1)):
        response = check_chunking(text, format="auto", tools=[LIST, READ]).response
        assert [(call.name, call.arguments) for call in response.tool_calls] == [("read", {"path": "b"})]
        assert response.content.strip() == broken.strip()
        assert [(problem.kind, problem.position) for problem in response.problems] == [("malformed", position)]
    assert read(f"Name:\n{broken}{whole}")[0] == []

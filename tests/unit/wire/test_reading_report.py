"""Reports on how a text is read: the markers in it, and why it is or is not a call to a known tool."""

from __future__ import annotations

import pytest

from toolwire.tools import ToolDefinition
from toolwire.wire.format_registry import get_format
from toolwire.wire.formats import FORMATS
from toolwire.wire.reading_report import ReadingReport, report_reading

TOOLS = {
    name: ToolDefinition(name, "", {"type": "object", "properties": {"city": {"type": "string"}}})
    for name in ("get_weather", "add")
}
HERMES = get_format("hermes")
DIALECTS = "python_calls, call_strings, call_list, call_objects, name_as_key, name_then_json"


def report(text: str) -> ReadingReport:
    return report_reading(text, [HERMES], TOOLS)


def test_formats_and_dialects_are_listed() -> None:
    assert report("").looked_for == f"markers of hermes; {DIALECTS} for 2 known tools"
    assert report_reading("", [HERMES] * 5, {}).looked_for == (
        "markers of hermes, hermes, hermes, hermes, hermes; no dialects, because no tools are known"
    )
    shown = ", ".join(wire.name for wire in FORMATS[:5])
    assert report_reading("", FORMATS, {}).looked_for.startswith(f"markers of {shown} and {len(FORMATS) - 5} more; ")


def test_each_opener_that_was_looked_for_is_listed_once() -> None:
    assert report("").openers == ["<tool_call>", "<tools>", "[Calling tool:"]
    openers = report_reading("", [HERMES, get_format("minicpm5")], {}).openers
    assert openers == ["<function", "<tool_call>", "<tools>", "[Calling tool:"]


def test_markers_are_listed_with_their_places_and_formats() -> None:
    assert report("x <tool_call>{} <tool_call>").markers == [
        "'<tool_call>' at 2: hermes",
        "'<tool_call>' at 16: hermes",
    ]
    assert len(report("<tool_call>" * 7).markers) == 5
    assert report("no marker").markers == []
    both = report_reading("<tool_call>", [HERMES, get_format("qwen3_coder")], {})
    assert both.markers == ["'<tool_call>' at 0: hermes, qwen3_coder"]
    assert report_reading("[1]", FORMATS, {}).markers == [], "a single bracket is the marker of no format"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('get_weather(city="a")', "yes: get_weather (python_calls)"),
        ('[get_weather(city="a"), add(city="b")]', "yes: get_weather (call_list), add (call_list)"),
        ('get_weather(city="a', "no: the text ends inside a call: 'get_weather(city=\"a'"),
        ("", "no: it has no call"),
        ('get_weather(city="a") so', "no: it has no call"),
        (
            '{"name": "get_weather", "arguments": {"city": "a"}}\n\nI cannot call it.',
            "no: the text behind the calls declines to call a tool",
        ),
        ("Then I call it.", "no: no call begins here, at 5: 'Then I call it.'"),
        ("call" + "y" * 30 + " " + "z" * 80, f"no: no call begins here, at 35: '{'y' * 29} {'z' * 29}…'"),
    ],
)
def test_a_message_is_nothing_but_calls_or_the_report_says_where_it_stops_being_that(text: str, verdict: str) -> None:
    assert report(text).whole_message == verdict


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (
            'Now I call get_weather(city="a").',
            ['get_weather (python_calls) at 11: would be a call with fallback="embedded"'],
        ),
        (
            'For example, get_weather(city="a").',
            ["get_weather (python_calls) at 13: only mentioned, because the text says 'example'"],
        ),
        (
            "get_weather(city='a'). " * 7,
            [f'get_weather (python_calls) at {at * 23}: would be a call with fallback="embedded"' for at in range(5)],
        ),
        ("Nothing.", []),
    ],
)
def test_calls_amid_prose_are_listed_with_the_reason(text: str, places: list[str]) -> None:
    assert report(text).amid_prose == places


def test_without_tools_no_calls_are_looked_for() -> None:
    without = report_reading('get_weather(city="a")', [HERMES], {})
    assert (without.whole_message, without.amid_prose) == ("not tried, because no tools are known", [])

"""Laws L4 and L5 without a clock, on adversarial texts: work and held text stay bounded, and nothing raises."""

from __future__ import annotations

import pytest
from tests.property import laws, texts
from tests.property.floods import flood, in_values, prefixes, units
from tests.property.nodes import names

import toolwire

SIZE = 6000
"""Length of a flood in characters: more than the white space, names and nesting that the parser waits for."""
PAIRS = 45
"""Number of floods per format."""
PREFIXES = 20
"""Number of prefixes before each value."""


@pytest.mark.mission("D20")
@pytest.mark.need(14, 32)
@pytest.mark.parametrize("name", names())
def test_work_and_held_text_stay_bounded_in_floods(name: str) -> None:
    longest = 0
    all_units, starts = units(name), prefixes(name)
    # Not every pair: each unit after some prefixes, each prefix before some units, never the same few.
    step = 1 + len(all_units) * len(starts) // PAIRS
    for at, (prefix, unit) in enumerate((prefix, unit) for unit in all_units for prefix in starts):
        if at % step:
            continue
        text = flood(prefix, unit, SIZE)
        reading = laws.read(laws.pieces(text, 4), format=name, tools=texts.TOOLS)
        # A marker that comes in pieces is looked at with each of them.
        laws.check_work(text, reading, name, factor=laws.SCANS + laws.longest_marker(name) // 8)
        longest = max(longest, reading.held)
        whole_reading = laws.read([text], format=name, tools=texts.TOOLS)
        laws.check_work(text, whole_reading, name)
        assert laws.outcome(whole_reading.response) == laws.outcome(reading.response), (prefix, unit)
        laws.check_positions(text, whole_reading.response)
    assert longest <= laws.longest_marker(name) + laws.HOLD


@pytest.mark.mission("F33", "F45")
@pytest.mark.parametrize("name", [name for name in names() if name != "plain"])
@pytest.mark.parametrize(
    "value",
    [
        pytest.param("[" * 20_000, id="brackets"),
        pytest.param("[" * 10_000 + "]" * 10_000, id="closed-brackets"),
        pytest.param('{"a":' * 2_500, id="objects"),
        pytest.param("9" * 10_000, id="digits"),
        pytest.param("-" + "9" * 10_000 + "e1", id="huge-float"),
        pytest.param("1" + "0" * 400 + ".0", id="float-out-of-range"),
        pytest.param("<a>" * 8_000, id="elements"),
        pytest.param("(" * 20_000, id="parentheses"),
    ],
)
def test_values_beyond_the_limits_give_problems(name: str, value: str) -> None:
    all_prefixes = in_values(name)
    for prefix in all_prefixes[:: 1 + len(all_prefixes) // PREFIXES]:  # detection has those of all formats
        text = prefix + value
        response = toolwire.parse(text, format=name, tools=texts.TOOLS)
        laws.check_positions(text, response)
        assert response.tool_calls in ((), toolwire.parse(prefix, format=name, tools=texts.TOOLS).tool_calls)
        for problem in response.problems:
            assert len(problem.message) <= 1200


_JSON_CALLS = {
    "hermes": '<tool_call>{"name": "f", "arguments": {"a": VALUE}}</tool_call>',
    "mistral_args": '[TOOL_CALLS]f[ARGS]{"a": VALUE}',
    "kimi_k2": '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": VALUE}<|tool_call_end|>',
    "forge_xml": "<tool><tool_name>f</tool_name><arguments><n>VALUE</n></arguments></tool>",
    "qwen3_coder": "<function=f><parameter=n>VALUE</parameter></function>",
}


@pytest.mark.parametrize("name", sorted(set(_JSON_CALLS) & set(names())))
@pytest.mark.parametrize("value", ["[" * 50_000 + "]" * 50_000, "[" * 201 + "]" * 201, "9" * 10_000, "9" * 4301])
def test_values_beyond_the_limits_never_reach_a_call(name: str, value: str) -> None:
    text = _JSON_CALLS[name].replace("VALUE", value)
    response = toolwire.parse(text, format=name, tools=texts.TOOLS)
    laws.check_positions(text, response)
    if name in ("forge_xml", "qwen3_coder"):  # raw values: text that is no JSON within the limits stays text
        assert [call.arguments for call in response.tool_calls] in ([{"n": value}], [{"n": [value]}], [])
    else:
        assert not response.tool_calls
        assert [problem.kind for problem in response.problems] == ["malformed"]
        assert response.problems[0].raw in response.content


@pytest.mark.parametrize("name", sorted(set(_JSON_CALLS) & set(names())))
def test_values_within_the_limits_reach_the_call(name: str) -> None:
    for value in ("[" * 150 + "]" * 150, "9" * 4300):
        text = _JSON_CALLS[name].replace("VALUE", f"[{value}]")
        response = toolwire.parse(text, format=name, tools=texts.TOOLS)
        assert len(response.tool_calls) == 1
        assert not response.problems

"""Calls that appear in a result are never read, whatever their values contain; other results change nothing."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property import texts

import toolwire
from toolwire import StreamParser
from toolwire.messages import ToolCall
from toolwire.wire.formats import FORMATS
from toolwire.wire.result_text import inert
from toolwire.wire.syntax import WireFormat

WITH_CALLS = st.sampled_from([wire for wire in FORMATS if wire.blocks])


def rendered(wire: WireFormat, calls: list[ToolCall]) -> str:
    """Return the text of calls; "" if the format cannot write them."""
    try:
        return toolwire.render_calls(calls, format=wire, tools=texts.TOOLS)
    except toolwire.RenderError:
        return ""


@settings(max_examples=settings().max_examples * 4)
@given(wire=WITH_CALLS, data=st.data())
def test_no_call_of_a_result_is_read(wire: WireFormat, data: st.DataObject) -> None:
    text = rendered(wire, data.draw(st.lists(texts.calls_of(wire.name), min_size=1, max_size=3)))
    shown = data.draw(st.sampled_from((text, inert(wire, text), json.dumps(text), text.replace(" ", "\n"))))
    results = [f"{data.draw(st.text(max_size=5))}{shown}{data.draw(st.text(max_size=5))}", "Another result."]
    response = toolwire.parse(text, format=wire, tools=texts.TOOLS, primed="", results=results)
    assert response.tool_calls == ()
    size = data.draw(st.integers(1, 20))
    parser = StreamParser(format=wire, tools=texts.TOOLS, primed="", results=results)
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    assert toolwire.collect([*events, *parser.finish()]) == response
    for problem in response.problems:
        assert text[problem.position :].startswith(problem.raw)


@settings(max_examples=settings().max_examples * 4)
@given(wire=WITH_CALLS, data=st.data())
def test_results_without_the_call_change_nothing(wire: WireFormat, data: st.DataObject) -> None:
    text = rendered(wire, data.draw(st.lists(texts.calls_of(wire.name), min_size=1, max_size=3)))
    response = toolwire.parse(text, format=wire, tools=texts.TOOLS, primed="")
    results = ["ping, write_file and f are tools.", data.draw(st.text(max_size=20))]
    assert toolwire.parse(text, format=wire, tools=texts.TOOLS, primed="", results=results) == response

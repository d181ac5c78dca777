"""Laws of reading reasoning and calls apart, as engines do: together both parsers read what one reads."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property import laws, texts

import toolwire
from toolwire import ReasoningPart, TextPart
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import END_OF_SEQUENCE, WireFormat

WITH_CALLS = [pytest.param(wire, id=wire.name) for wire in FORMATS if wire.blocks]
ANY = [pytest.param(wire, id=wire.name) for wire in FORMATS]
THOUGHT = "Let me look.\nI compare 1 < 2, and {think}."


def _read_apart(text: str, size: int, **options: object) -> toolwire.ParsedResponse:
    """Read reasoning first, then calls in the rest, as two parsers of an engine do."""
    first = laws.read(laws.pieces(text, size), only="reasoning", **options).response
    assert not first.tool_calls and not first.problems and not first.incomplete
    options.pop("reasoning_started", None)
    second = laws.read(laws.pieces(first.content, size), only="calls", **options).response
    assert not second.reasoning
    return toolwire.ParsedResponse(
        content=second.content, reasoning=first.reasoning, tool_calls=second.tool_calls, problems=second.problems
    )


def _message(wire: WireFormat, calls: list[toolwire.ToolCall], *, closed: bool) -> str | None:
    try:
        text = toolwire.render_calls(calls, format=wire, tools=texts.TOOLS)
    except toolwire.RenderError:
        return None
    span = wire.spans[0]
    return f"{span.open}{THOUGHT}{span.close if closed else ''}\n{text}"


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "unclosed"])
@pytest.mark.parametrize("wire", WITH_CALLS)
def test_two_parsers_read_what_one_reads(wire: WireFormat, closed: bool, size: int) -> None:
    call = toolwire.ToolCall("get_weather", {"city": "Paris", "days": 3})
    message = _message(wire, [call], closed=closed)
    assert message is not None
    whole = toolwire.parse(message, format=wire, tools=texts.TOOLS)
    apart = _read_apart(message, size, format=wire, tools=texts.TOOLS)
    assert bool(whole.tool_calls) == (closed or wire.ends_reasoning)
    assert [(call.name, call.arguments) for call in apart.tool_calls] == [
        (call.name, call.arguments) for call in whole.tool_calls
    ]
    assert apart.reasoning == whole.reasoning
    assert apart.content.strip() == whole.content.strip()


@pytest.mark.parametrize("wire", ANY)
def test_the_rest_of_a_message_stays_as_it_was_written(wire: WireFormat) -> None:
    markers = {marker for span in wire.spans for marker in (span.open, span.close)} | {*END_OF_SEQUENCE}
    dropped = re.compile("|".join((*map(re.escape, sorted(markers, key=len, reverse=True)), r"\s")))

    @settings(max_examples=settings().max_examples // 4)
    @given(texts.mutated(wire.name), st.lists(st.integers(0, 1000), max_size=5), st.booleans())
    def check(text: str, cuts: list[int], started: bool) -> None:
        options = {"format": wire, "tools": texts.TOOLS, "only": "reasoning", "reasoning_started": started}
        response = laws.check_chunking(text, [laws.cut_at(text, cuts)], **options).response
        assert not response.tool_calls and not response.problems and not response.incomplete
        # Markers at the end of a sequence are dropped from the middle of a part too.
        texts_of_parts = [part.text for part in response.parts if isinstance(part, TextPart | ReasoningPart)]
        assert len(texts_of_parts) == len(response.parts)
        read = "".join(texts_of_parts)
        assert _without(dropped, read) == _without(dropped, text)

    check()


def _without(dropped: re.Pattern[str], text: str) -> str:
    """Return a text without markers, and without those that are there only when others between them are gone."""
    while (shorter := dropped.sub("", text)) != text:
        text = shorter
    return text


@pytest.mark.parametrize("wire", WITH_CALLS)
def test_a_text_with_a_call_may_contain_one(wire: WireFormat) -> None:
    @settings(max_examples=settings().max_examples // 4)
    @given(texts.mutated(wire.name))
    def check(text: str) -> None:
        response = toolwire.parse(text, format=wire, tools=texts.TOOLS)
        has_call = bool(response.tool_calls or response.incomplete)
        assert toolwire.may_contain_call(text, format=wire) or not has_call

    check()


@pytest.mark.parametrize("wire", ANY)
def test_without_reasoning_its_markers_are_content(wire: WireFormat) -> None:
    @settings(max_examples=settings().max_examples // 4)
    @given(texts.mutated(wire.name), st.lists(st.integers(0, 1000), max_size=5))
    def check(text: str, cuts: list[int]) -> None:
        options = {"format": wire, "tools": texts.TOOLS, "only": "calls"}
        assert not laws.check_chunking(text, [laws.cut_at(text, cuts)], **options).response.reasoning

    check()

"""Losses of encoded answers: the places at which an answer and its encoding differ, each noted once."""

from dataclasses import replace
from typing import Any

import pytest

from toolwire import (
    CitationPart,
    CitedSource,
    FinishReason,
    Notes,
    OpaquePart,
    ParsedResponse,
    ReasoningPart,
    TextPart,
    ToolCall,
    Usage,
)
from toolwire.providers.answer_losses import note_losses

CALL = ToolCall("look", {"a": 1}, "c1", server="shop", extra=OpaquePart({"caller": "x"}, "openai_responses"))
SEAL = ReasoningPart("Hm.", "signed", "anthropic_messages", {"id": "1", "kind": "seal"})
CITED = CitationPart(
    (CitedSource("https://example.org", "A page", "snow"),),
    start=0,
    end=4,
    extra=OpaquePart({"type": "web_location", "index": "7"}, "anthropic_messages"),
)

OTHER_PAGE = replace(CITED, sources=(CitedSource("https://example.com", "Another", "snow"),))


def answer(*parts: Any, **changes: Any) -> ParsedResponse:
    """Return an answer of these parts."""
    calls = tuple(part for part in parts if isinstance(part, ToolCall))
    content = "".join(part.text for part in parts if isinstance(part, TextPart))
    known: dict[str, Any] = {"finish_reason": FinishReason.STOP, "usage": Usage(3, 2, cached_tokens=1)}
    return ParsedResponse(content, tool_calls=calls, parts=parts, **{**known, **changes})


TEXT = TextPart("It snows.")
ROWS: dict[str, tuple[ParsedResponse, ParsedResponse, list[str]]] = {
    "nothing": (answer(TEXT, SEAL, CALL, CITED), answer(TEXT, SEAL, CALL, CITED), []),
    "finish": (answer(TEXT, finish_reason=FinishReason.ERROR), answer(TEXT), ["finish_reason"]),
    "usage": (answer(TEXT), answer(TEXT, usage=Usage(3, 2)), ["usage/cached_tokens"]),
    "no usage": (answer(TEXT), answer(TEXT, usage=None), [f"usage/{n}_tokens" for n in ("input", "output", "cached")]),
    "text": (answer(TEXT), answer(), ["content"]),
    "white space": (answer(TEXT), answer(TextPart("It  snows.\n")), []),
    "reasoning": (answer(ReasoningPart("Hm.")), answer(), ["reasoning"]),
    "arguments": (answer(CALL), answer(replace(CALL, arguments={"a": 2})), ["call c1"]),
    "missing call": (answer(CALL, CALL), answer(CALL), ["call c1"]),
    "call without id": (answer(replace(CALL, id="")), answer(), ["call look"]),
    "name": (answer(CALL), answer(replace(CALL, name="see")), ["call c1"]),
    "member of a call": (answer(CALL), answer(replace(CALL, extra=None)), ["caller"]),
    "call of the provider": (
        answer(replace(CALL, of_provider=True)),
        answer(replace(CALL, of_provider=True, extra=None)),
        [],
    ),
    "server": (answer(CALL), answer(replace(CALL, server="")), ["namespace"]),
    "server as a member": (
        answer(replace(CALL, extra=None)),
        answer(replace(CALL, server="", extra=OpaquePart({"namespace": "shop"}, "openai_responses"))),
        [],
    ),
    "seal": (answer(SEAL), answer(replace(SEAL, signature="", data=None)), ["reasoning"]),
    "other data of a seal": (answer(SEAL), answer(replace(SEAL, data={"id": "1", "kind": "other"})), ["reasoning"]),
    "other id of a seal": (answer(SEAL), answer(replace(SEAL, data={"id": "2", "kind": "seal"})), []),
    "citation": (answer(CITED), answer(), ["citation/url, title, quote, start, end, index, web_location"]),
    "citation of another page": (
        answer(CITED, OTHER_PAGE),
        answer(CITED),
        ["citation/url, title, quote, start, end, index, web_location"],
    ),
    "place of a citation": (answer(CITED), answer(replace(CITED, start=None, end=None)), ["citation/start, end"]),
    "member of a citation": (answer(CITED), answer(replace(CITED, extra=None)), ["citation/index, web_location"]),
}


@pytest.mark.parametrize("name", ROWS)
def test_differences_are_noted(name: str) -> None:
    response, written, places = ROWS[name]
    notes = Notes()
    note_losses(response, written, "an API", notes)
    assert [note.where for note in notes] == places


def test_a_place_that_is_noted_already_is_not_noted_again() -> None:
    notes = Notes()
    notes.dropped("content", "it is too long")
    note_losses(answer(TEXT), answer(), "an API", notes)
    assert [note.message for note in notes] == ["it is too long"]

"""Citations as annotations of a text: ranges are counted from the text's beginning, and every source has one."""

from typing import Any

import pytest

from toolwire import CitationPart, CitedSource, OpaquePart, TextPart
from toolwire.providers.citations import (
    content_of,
    own_item,
    place_of,
    range_in,
    read_annotation,
    write_annotation,
    write_annotations,
)

PAGE = CitedSource("https://example.org", "A page")
WRITTEN = {"type": "url_citation", "url": "https://example.org", "title": "A page", "start_index": 2, "end_index": 6}


def test_an_annotation_has_the_range_from_the_beginning_of_its_text() -> None:
    part = CitationPart((PAGE,), 12, 16)
    assert write_annotation(part, 10, "openai_chat") == WRITTEN
    back = read_annotation(WRITTEN, 10, "openai_chat")
    assert (back.sources, back.start, back.end) == ((PAGE,), 12, 16)
    assert back.extra is not None and back.extra.data == {"type": "url_citation"}


@pytest.mark.parametrize(
    ("start", "end", "members"),
    [
        (10, 10, {"a": 0, "b": 0}),
        (10, 14, {"a": 0, "b": 4}),
        (9, 14, {}),
        (14, 12, {}),
        (None, 14, {}),
        (12, None, {}),
    ],
)
def test_a_range_elsewhere_is_left_out(start: int | None, end: int | None, members: dict[str, int]) -> None:
    assert range_in(CitationPart((PAGE,), start, end), 10, ("a", "b")) == members


@pytest.mark.parametrize(("value", "place"), [(0, 7), (3, 10), (-1, None), (True, None), ("3", None), (None, None)])
def test_a_place_is_a_number_from_zero_on(value: Any, place: int | None) -> None:
    assert place_of(value, 7) == place


def test_members_of_another_api_are_not_written() -> None:
    own = CitationPart((PAGE,), extra=OpaquePart({"type": "file_citation", "index": 3}, "openai_chat"))
    assert write_annotation(own, 0, "openai_chat") == {
        "type": "file_citation",
        "index": 3,
        "url": "https://example.org",
        "title": "A page",
    }
    assert own_item(own, "anthropic_messages") is None
    assert write_annotation(own, 0, "anthropic_messages") == {
        "type": "url_citation",
        "url": "https://example.org",
        "title": "A page",
    }


def test_a_member_that_has_the_address_already_is_not_repeated() -> None:
    own = CitationPart((PAGE,), extra=OpaquePart({"uri": "https://example.org"}, "gemini_interactions"))
    assert write_annotation(own, 0, "gemini_interactions") == {"uri": "https://example.org", "title": "A page"}


def test_each_source_with_an_address_has_an_annotation() -> None:
    part = CitationPart((PAGE, CitedSource("", "No address"), CitedSource("https://example.com", "B")), 0, 4)
    assert [item["url"] for item in write_annotations(part, 0, "openai_chat")] == [
        "https://example.org",
        "https://example.com",
    ]
    assert write_annotation(CitationPart(()), 0, "openai_chat") is None


def test_values_of_other_types_are_no_address() -> None:
    part = read_annotation({"url": 5, "title": None, "start_index": 1}, 0, "openai_chat")
    assert (part.sources, part.start, part.end) == ((CitedSource(),), 1, None)


def test_ranges_refer_to_the_text_alone() -> None:
    assert content_of((TextPart("It "), CitationPart((PAGE,)), TextPart("snows."))) == "It snows."

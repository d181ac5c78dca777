"""Citations as several APIs write them: a statement of the answer, its place in the text, and its sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolwire.messages import CitationPart, CitedSource, OpaquePart, Part, TextPart
from toolwire.providers.message_parts import Json, members_except

URL_CITATION = "url_citation"
_READ = frozenset(("url", "title", "start_index", "end_index"))


def place_of(value: Any, offset: int) -> int | None:
    """Return a place in the text of an answer, given its place behind an offset; None if it is not a number."""
    return offset + value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def range_in(part: CitationPart, offset: int, names: tuple[str, str]) -> Json:
    """Return the members for the range of a statement in text that begins at an offset; none if it is elsewhere."""
    if part.start is None or part.end is None or not offset <= part.start <= part.end:
        return {}
    return {names[0]: part.start - offset, names[1]: part.end - offset}


def read_annotation(annotation: Mapping[str, Any], offset: int, kind: str) -> CitationPart:
    """Parse an annotation of text, such as OpenAI's; members other than address, title and range are kept for its API.

    Args:
        annotation: the annotation.
        offset: the beginning of the text in the answer, in code points.
        kind: the API.
    """
    source = CitedSource(_text(annotation.get("url")), _text(annotation.get("title")))
    start, end = (place_of(annotation.get(name), offset) for name in ("start_index", "end_index"))
    return CitationPart((source,), start, end, members_except(annotation, _READ, kind))


def write_annotation(part: CitationPart, offset: int, kind: str) -> Json | None:
    """Return the annotation for a citation with one source; None if it has no address and is not of this API."""
    source = part.sources[0] if part.sources else CitedSource()
    private = own_item(part, kind)
    place = range_in(part, offset, ("start_index", "end_index"))
    if private is None:
        return {"type": URL_CITATION, "url": source.url, "title": source.title, **place} if source.url else None
    members = {"url": source.url, "title": source.title}
    members = {name: value for name, value in members.items() if value and value not in private.values()}
    return {**private, **members, **place}


def write_annotations(part: CitationPart, offset: int, kind: str) -> list[Json]:
    """Return the annotations for a citation: one for each of its sources that can be written."""
    each = (CitationPart((source,), part.start, part.end, part.extra) for source in part.sources)
    return [written for single in each if (written := write_annotation(single, offset, kind)) is not None]


def content_of(parts: Iterable[Part]) -> str:
    """Return the text of an answer, which the ranges of its citations refer to."""
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def own_item(part: CitationPart, kind: str) -> Json | None:
    """Return the members of a citation that only an API of this kind has; None if it is of another API."""
    extra: OpaquePart | None = part.extra
    return dict(extra.data) if extra is not None and extra.provider == kind else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

"""Losses of an encoded answer: what the answer has and its encoding has not, found by comparing the two.

The encoding is decoded again by its own API, so that no module of an API needs to know what the others have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from toolwire.events import response_parts
from toolwire.messages import (
    CitationPart,
    OpaquePart,
    ParsedResponse,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    Usage,
    digest,
)
from toolwire.providers.answer_shapes import joined, put_members
from toolwire.providers.message_parts import SIGNATURES, Json, answer_members, note_dropped
from toolwire.providers.request import Notes


def put_answer_members(body: Json, parts: Iterable[Part], kind: str, notes: Notes) -> None:
    """Put the members of an answer that only an API of this kind has into a body of it, and note all others."""
    members: Any = {}
    for part in parts:
        if not answer_members(part):
            continue
        if isinstance(part, OpaquePart) and part.provider == kind:
            members = joined(members, answer_members(part))
        else:
            note_dropped(part, kind, notes)
    for path, rest in put_members(body, members).items():
        notes.dropped(", ".join(rest), f"{path} is not in this answer")


_COUNTS = tuple(field.name for field in fields(Usage) if field.name != "estimated")


def note_losses(response: ParsedResponse, written: ParsedResponse, api: str, notes: Notes) -> None:
    """Note what an answer has and its encoding has not, each once.

    Args:
        response: the answer.
        written: its encoding, decoded again.
        api: the name of the API that it is encoded for.
        notes: the notes so far. What one of them names already is not noted again.
    """
    losses = Notes()
    _compare_usage(response.usage or Usage(), written.usage or Usage(), api, losses)
    _compare_text(response, written, api, losses)
    _compare_calls(response.all_calls, written.all_calls, api, losses)
    _compare_seals(response, written, api, losses)
    _compare_citations(response, written, api, losses)
    _compare_opaque(response, written, api, losses)
    if response.finish_reason is not written.finish_reason:
        losses.changed("finish_reason", f"{api} has no word for {response.finish_reason.value} here")
    places = {note.where for note in notes}
    for note in losses:
        if note.where not in places:
            places.add(note.where)
            notes.append(note)


def _compare_usage(response: Usage, written: Usage, api: str, notes: Notes) -> None:
    for name in _COUNTS:
        count = getattr(response, name)
        if count != getattr(written, name):
            notes.dropped(f"usage/{name}", f"{api} has no place for the count of {count}")


def _compare_text(response: ParsedResponse, written: ParsedResponse, api: str, notes: Notes) -> None:
    for name, kind in (("content", TextPart), ("reasoning", ReasoningPart)):
        before, after = _text(response, kind), _text(written, kind)
        if before.split() != after.split():
            notes.changed(name, f"{api} has no place for all of it")


def _text(response: ParsedResponse, kind: type[TextPart | ReasoningPart]) -> str:
    return "".join(part.text for part in response_parts(response) if isinstance(part, kind))


def _compare_calls(response: Iterable[ToolCall], written: Iterable[ToolCall], api: str, notes: Notes) -> None:
    left = list(written)
    for call in response:
        match = next((other for other in left if other.arguments == call.arguments), None)
        if match is None:
            notes.changed(f"call {call.id or call.name}", f"{api} changes the arguments of {call.name}")
            continue
        left.remove(match)
        if match.name != call.name:
            notes.changed(f"call {call.id or call.name}", f"{api} spells the name {call.name} as {match.name}")
        members = match.extra.data if match.extra is not None else {}
        for name in call.extra.data if call.extra is not None else ():
            if name not in members and not (call.of_provider and match.of_provider):
                notes.dropped(name, f"only {call.extra.provider if call.extra else ''} has it on a call")
        if call.server and call.server not in (match.server, members.get("namespace")):
            notes.dropped("namespace", f"{api} has no place for the server of a call")


def _compare_seals(response: ParsedResponse, written: ParsedResponse, api: str, notes: Notes) -> None:
    for part in _lost(map(_seal, response.parts), map(_seal, written.parts)):
        notes.dropped("reasoning", f"{api} has no place for what {part[0]} wants back with it")


def _seal(part: object) -> tuple[str, str, str] | None:
    if not isinstance(part, ReasoningPart) or not (part.signature or part.data):
        return None
    data = part.data or {}
    return part.provider, part.signature, digest({name: data[name] for name in data if name not in ("id", "text")})


def _compare_citations(response: ParsedResponse, written: ParsedResponse, api: str, notes: Notes) -> None:
    left = [part for part in written.parts if isinstance(part, CitationPart)]
    lost: dict[str, None] = {}
    for part in (part for part in response.parts if isinstance(part, CitationPart)):
        matches = [other for other in left if _titles(other) & _titles(part)]
        members = set(part.extra.data) if part.extra is not None else set[str]()
        if not matches:
            lost |= dict.fromkeys((*(name for name in _FIELDS if _values(name, [part])), *_named(part, members)))
            continue
        for other in matches:
            written_members = other.extra.data if other.extra is not None else {}
            members -= {
                name
                for name in members
                if part.extra is not None and written_members.get(name) == part.extra.data[name]
            }
        lost |= dict.fromkeys(name for name in _FIELDS if not _values(name, [part]) <= _values(name, matches))
        lost |= dict.fromkeys(_named(part, members))
    if lost:
        notes.dropped(f"citation/{', '.join(lost)}", f"{api} has no place for it")


_FIELDS = ("url", "title", "quote", "start", "end")


def _equal_members(part: CitationPart, other: CitationPart) -> set[str]:
    """Return the names of members that two citations have with the same value."""
    if part.extra is None or other.extra is None:
        return set()
    return {name for name, value in part.extra.data.items() if other.extra.data.get(name) == value}


def _named(part: CitationPart, members: Iterable[str]) -> list[str]:
    """Return the names of members, with the type of the citation by its value."""
    data = part.extra.data if part.extra is not None else {}
    return [str(data[name]) if name == "type" else name for name in sorted(members)]


def _titles(part: CitationPart) -> set[tuple[str, str]]:
    keys = {(name, text) for source in part.sources for name, text in (("url", source.url), ("title", source.title))}
    return {key for key in keys if key[1]} or {("", "")}


def _values(name: str, parts: Iterable[CitationPart]) -> set[Any]:
    values: set[Any] = set()
    for part in parts:
        if name in ("start", "end"):
            values.add(getattr(part, name))
        else:
            values.update(getattr(source, name) for source in part.sources)
    return values - {"", None}


def _compare_opaque(response: ParsedResponse, written: ParsedResponse, api: str, notes: Notes) -> None:
    items = [part for part in response.parts if isinstance(part, OpaquePart) and not answer_members(part)]
    counts = Counter(digest(part.data) for part in written.parts if isinstance(part, OpaquePart))
    members = {name for part in written.parts if isinstance(part, OpaquePart) for name in _names(part)}
    for part in items:
        if counts[digest(part.data)]:
            counts[digest(part.data)] -= 1
        elif not _names(part) <= members:
            note_dropped(part, api, notes)
            if not SIGNATURES.isdisjoint(part.data):
                notes.dropped("reasoning", f"{api} has no place for the signature of {part.provider}")


def _names(part: OpaquePart) -> set[str]:
    """Return the names of the members of a message; a stream reports them in pieces."""
    message = part.data.get("message")
    return set(message) if isinstance(message, dict) and len(part.data) == 1 else {""}


def _lost(response: Iterable[Any], written: Iterable[Any]) -> Iterable[Any]:
    rest = Counter(filter(None, response)) - Counter(filter(None, written))
    return rest.elements()

"""Members inside the messages of a body that our values have no place for, so that no other API gets them.

Members of the body itself, and most members of messages, are part of the request that a body stands for, and noted when
it is written for another API. The places here are those from which only the members listed are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MAX_NAMED = 50
"""Maximum number of members that are named: a body can have as many as it has bytes."""
_NO_VALUE: tuple[Any, ...] = (None, "", [], {})


@dataclass(frozen=True, slots=True)
class _Place:
    """Objects of a body.

    Attributes:
        path: the names of the members that lead to them, with dots in between; lists on the way have no names.
        read: the names of the members that are read.
        of: if it is not empty, the types, or names of members, one of which an object has.
    """

    path: tuple[str, ...]
    read: frozenset[str]
    of: frozenset[str] = frozenset()


def _place(path: str, read: str, of: str = "") -> _Place:
    return _Place(tuple(path.split(".")), frozenset(read.split()), frozenset(of.split()))


def _spelled_twice(path: str, read: str, of: str = "") -> _Place:
    """Return a place of an API whose members may be written in camel case or in snake case."""
    return _place(path, f"{read} {_snake(read)}", f"{of} {_snake(of)}")


def _snake(names: str) -> str:
    return re.sub("[A-Z]", lambda match: "_" + match[0].lower(), names)


_SOURCE = "type media_type data url file_id content"
_PLACES: Mapping[str, tuple[_Place, ...]] = {
    "openai_chat": (
        _place("messages.tool_calls.function", "name arguments"),
        _place("messages.tool_calls.custom", "name input"),
        _place("messages.content.image_url", "url detail"),
        _place("messages.content.input_audio", "data format"),
        _place("messages.content.file", "file_id file_data filename"),
    ),
    "anthropic_messages": (
        _place("messages", "role content"),
        _place("messages.content", "type thinking signature data", "thinking redacted_thinking"),
        _place("messages.content.source", _SOURCE),
        _place("messages.content.content", "type text cache_control citations", "text"),
        _place("messages.content.content.source", _SOURCE),
    ),
    "gemini": (
        _spelled_twice("systemInstruction", "role parts"),
        _spelled_twice("systemInstruction.parts", "text"),
        _spelled_twice("contents", "role parts"),
        _spelled_twice(
            "contents.parts",
            "text thought thoughtSignature functionCall functionResponse",
            "text functionCall functionResponse",
        ),
        _spelled_twice("contents.parts.functionCall", "id name args"),
        _spelled_twice("contents.parts.functionResponse", "id name response parts"),
    ),
    "ollama": (_place("messages.tool_calls.function", "name arguments index"),),
}


def unread_members(body: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield the paths of members with a value that are not read, each once, without the positions in lists.

    After `MAX_NAMED` of them, "further members" is the last one.

    Args:
        body: the body of a request.
        kind: the API that it belongs to.
    """
    paths: set[str] = set()
    for place in _PLACES.get(kind, ()):
        for item in _objects(body, place.path):
            type = item.get("type")
            if place.of and not (isinstance(type, str) and type in place.of) and place.of.isdisjoint(item):
                continue
            for name in item:
                path = f"{'.'.join(place.path)}.{name}"
                if name in place.read or item[name] in _NO_VALUE or path in paths:
                    continue
                if len(paths) == MAX_NAMED:
                    yield "further members"
                    return
                paths.add(path)
                yield path


def _objects(value: Any, path: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from _objects(item, path)
    elif isinstance(value, Mapping):
        if not path:
            yield value
            return
        name, rest = path[0], path[1:]
        yield from _objects(value.get(name, value.get(_snake(name))), rest)

"""Parts of messages that several APIs read and write alike: text, images, arguments, reasoning, token counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic_core import to_json

from toolwire.messages import (
    CitationPart,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from toolwire.providers.request import Notes
from toolwire.text.json_reading import read_json
from toolwire.text.json_text import JsonError, json_text
from toolwire.tools import ToolDefinition

Json = dict[str, Any]


def text_of(parts: Iterable[Part]) -> str:
    """Return all text of some parts."""
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def parsed_text(content: Any) -> Any:
    """Return content, as JSON text if a server has parsed the structured output that it is."""
    return json_text(dict(content)) if isinstance(content, Mapping) else content


def calls_of(parts: Iterable[Part]) -> list[ToolCall]:
    """Return all calls of some parts."""
    return [part for part in parts if isinstance(part, ToolCall)]


def object_of(arguments: Any) -> Json:
    """Return the arguments of a call in a history, given as an object or as JSON; other text becomes `input`."""
    if isinstance(arguments, Mapping):
        return dict(arguments)
    text = arguments if isinstance(arguments, str) else ""
    if text.strip() in ("", "null"):
        return {}
    try:
        value, _ = read_json(text, repair=False)
    except JsonError:
        return {"input": text}
    return value if isinstance(value, dict) else {"input": text}


def role_of(word: Any) -> Role:
    """Return the role that a message of a request has, unless it contains a result; a word of no API is the user's.

    Raises:
        ValueError: it is not text.
    """
    if not isinstance(word, str):
        raise ValueError(f"the role of a message must be text, not {type(word).__name__}")
    return "system" if word in ("system", "developer") else "assistant" if word == "assistant" else "user"


def note_dropped(part: Part, api: str, notes: Notes) -> None:
    """Note a part that the API has no place for."""
    match part:
        case ReasoningPart():
            notes.dropped("reasoning", f"{part.provider or 'another API'}'s reasoning cannot be used by {api}")
        case OpaquePart():
            notes.dropped(_kind(part), f"only {part.provider} understands it")
        case ImagePart():
            notes.dropped("image", f"{api} takes no image here")
        case CitationPart():
            notes.dropped("citation", f"{api} takes no sources here")
        case FilePart():
            notes.dropped(part.kind, f"{api} takes no file here")
        case _:
            notes.dropped(type(part).__name__, f"{api} has no place for it here")


SIGNATURES = frozenset(("thoughtSignature", "thought_signature"))
"""Members of Gemini's parts with a signature of the thought before them."""


def _kind(part: OpaquePart) -> str:
    if members := message_members(part, part.provider):
        return ", ".join(members)
    if objects := answer_members(part):
        return ", ".join(name for members in objects.values() for name in members)
    return str(part.data.get("type") or next((name for name in part.data if name not in SIGNATURES), "an item"))


def system_text(message: Message, api: str, notes: Notes) -> str:
    """Return the text of a system message, for an API that takes only text there; note its other parts."""
    for part in message.parts:
        if not isinstance(part, TextPart):
            kind = _kind(part) if isinstance(part, OpaquePart) else type(part).__name__
            notes.dropped(f"system message/{kind}", f"{api} takes only text here")
    return text_of(message.parts)


def without_seal(part: Part, api: str, notes: Notes, kind: str | None = None) -> Part:
    """Return reasoning of another API than `kind` as plain text; return any other part unchanged."""
    if not isinstance(part, ReasoningPart) or part.provider == kind:
        return part
    if part.signature or part.data:
        notes.dropped("reasoning", f"{api} has no place for what {part.provider} wants back with it")
    return ReasoningPart(part.text)


_MESSAGE = "message"
_ANSWER = "answer"
ORIGINAL = "content"
"""The member of a result's own API for content that our values do not have all of."""
_NO_VALUE: tuple[Any, ...] = (None, "", [], {})


def members_except(item: Mapping[str, Any], read: frozenset[str], kind: str, **defaults: Any) -> OpaquePart | None:
    """Return the members of an item that only an API of this kind has; None if there are none.

    Args:
        item: a message, a block, a call or a result.
        read: the members that have a place of their own in our values.
        kind: the API.
        defaults: members that mean nothing with this value.
    """
    rest = {
        name: value
        for name, value in item.items()
        if name not in read and value not in _NO_VALUE and not (name in defaults and value == defaults[name])
    }
    return OpaquePart(rest, kind) if rest else None


def original_content(result: ToolResult, kind: str, read: Callable[[Any], ToolResult]) -> Json:
    """Return the members of a result that only an API of this kind has; not its original content if that is outdated.

    The content of a result is kept as it was if our values do not have all of it. If the result is another one now,
    the original must not come back.

    Args:
        result: the result.
        kind: the API.
        read: parses content of a result.
    """
    members = dict(own_members(result, kind))
    if ORIGINAL in members:
        before = read(members[ORIGINAL])
        if (before.text, before.media) != (result.text, result.media):
            del members[ORIGINAL]
    return members


def own_members(part: TextPart | ImagePart | FilePart | ToolCall | ToolResult, kind: str) -> Json:
    """Return the members of a part that only an API of this kind has."""
    return part.extra.data if part.extra is not None and part.extra.provider == kind else {}


def members_part(message: Mapping[str, Any], read: frozenset[str], kind: str) -> tuple[OpaquePart, ...]:
    """Return a part for the members of a message that only an API of this kind has; see `members_except`.

    It precedes the message's other parts, so that an answer can report it before the text has arrived.
    """
    extra = members_except(message, read, kind)
    return () if extra is None else (OpaquePart(members_item(extra.data), kind),)


def members_item(members: Mapping[str, Any]) -> Json:
    """Return the item of a part of `members_part`."""
    return {_MESSAGE: dict(members)}


def message_members(part: Part, kind: str) -> Json:
    """Return the members that a part of `members_part` stands for; none for any other part."""
    if isinstance(part, OpaquePart) and part.provider == kind and part.data.keys() == {_MESSAGE}:
        members = part.data[_MESSAGE]
        return dict(members) if isinstance(members, Mapping) else {}  # an item of the provider may look like one
    return {}


def answer_item(members: Mapping[str, Json]) -> Json:
    """Return the item of a part that has the members of an answer, by the paths of their objects."""
    return {_ANSWER: dict(members)}


def answer_members(part: Part) -> Mapping[str, Json]:
    """Return the members of an answer that a part of `answer_item` has; none for any other part.

    They describe the answer and not the message, so that requests do not contain them.
    """
    members = part.data[_ANSWER] if isinstance(part, OpaquePart) and part.data.keys() == {_ANSWER} else None
    return members if isinstance(members, Mapping) else {}


def split_members(parts: Iterable[Part], kind: str) -> tuple[Json, list[Part]]:
    """Return the members that only an API of this kind has, for a message with these parts, and its other parts."""
    members: Json = {}
    rest: list[Part] = []
    for part in parts:
        if not (additions := message_members(part, kind)):
            rest.append(part)
        for name, value in additions.items():
            # A stream reports a list, such as that of images, in pieces.
            earlier = members.get(name)
            members[name] = [*earlier, *value] if isinstance(earlier, list) and isinstance(value, list) else value
    return members, rest


def stand_in(parts: Sequence[Part]) -> str:
    """Return text that stands for the parts of a message of the user none of which an API could take.

    Servers refuse messages without content, and a conversation without the message would have another meaning. It is ""
    for parts that contain text, even if that is empty.
    """
    if not parts or any(isinstance(part, TextPart) for part in parts):
        return ""
    kinds = dict.fromkeys(_kind(part) if isinstance(part, OpaquePart) else "reasoning" for part in parts)
    return f"{', '.join(kinds)}: it cannot be shown here."


_ToolReader = Callable[[Json], ToolDefinition | None]
_MAX_TOOLS, _MAX_TOOL_SIZE = 1024, 16_384
"""Tools whose definitions are kept, and the maximum size of each in bytes."""


def read_tools(tools: Iterable[Json] | None, read: _ToolReader) -> Json:
    """Return the fields `tools` and `provider_tools` of a `ChatRequest`; `read` returns None for a provider's tool."""
    pairs = [(tool, _definition_of(tool, read)) for tool in tools or ()]
    return {
        "tools": tuple(definition for _, definition in pairs if definition is not None),
        "provider_tools": tuple(tool for tool, definition in pairs if definition is None),
    }


def _definition_of(tool: Json, read: _ToolReader) -> ToolDefinition | None:
    """Return what `read` makes of a tool.

    Each request of a conversation brings the same tools again. Equal ones have the same definition, so that what is
    derived from it, such as the names and types that parsers look for, is derived once.
    """
    try:
        content = to_json(tool)
    except (TypeError, ValueError, RecursionError):  # not JSON, or too deep for it
        return read(tool)
    return read(tool) if len(content) > _MAX_TOOL_SIZE else _definition_of_json(content, read)


@lru_cache(_MAX_TOOLS)
def _definition_of_json(content: bytes, read: _ToolReader) -> ToolDefinition | None:
    return read(json.loads(content))


_MAX_TOKENS = 10**12
"""Maximum number of tokens of one answer that is believed."""


class UsageReader:
    """Reads token counts of one API.

    Args:
        counts: for input, output, cached and reasoning tokens in this order: the members to add up, separated by
            blanks. A dot leads into a member's object; a bar separates names of one count, of which the first is read
            that a body has.
    """

    def __init__(self, *counts: str) -> None:
        self._counts = [
            [[tuple(name.split(".")) for name in names.split("|")] for names in members.split()] for members in counts
        ]

    def read(self, usage: Mapping[str, Any]) -> Usage:
        """Return the counts, zero for each that is missing.

        Raises:
            ValueError: a count cannot be one: it is negative, say, and would be subtracted from what a run has used.
        """
        counts = [sum(_count(usage, names) for names in members) for members in self._counts]
        read, written, cached, reasoning = (*counts, 0, 0)[:4]  # some APIs do not count cached tokens or reasoning
        return Usage(read, written, cached, reasoning)


def uncached_tokens(usage: Usage) -> int:
    """Return the input tokens beside those of a cache, for an API that counts the two apart."""
    return max(usage.input_tokens - usage.cached_tokens, 0)


def _count(usage: Mapping[str, Any], paths: Sequence[tuple[str, ...]]) -> int:
    value: Any = None
    path: tuple[str, ...] = ()
    for path in paths:
        value = usage
        for name in path:
            value = (value or {}).get(name)
        if value is not None:
            break
    count = int(value or 0)
    if not 0 <= count <= _MAX_TOKENS:
        raise ValueError(f"{'.'.join(path)} is {value!r:.40}, which is no number of tokens")
    return count

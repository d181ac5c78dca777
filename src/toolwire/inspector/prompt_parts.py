"""The parts of a request in the order in which a model reads them: their sizes, and the first that has changed.

Providers and inference servers reuse what they have computed for a prompt as far as it begins like an earlier one. The
first difference between two requests of a session therefore says which part of the prompt has to be paid for again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolwire.text.tokens import estimate_tokens

INSTRUCTIONS = ("system", "systemInstruction", "system_instruction", "instructions")
CONVERSATION = ("messages", "input", "contents")
EXCERPT = 160
"""Maximum length of an excerpt at a difference, in characters."""
_CACHE_MARKS = frozenset({"cache_control", "cachePoint"})
"""Members that say where a provider's cache may end; they move with each request, and are not read by the model."""


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a request.

    Attributes:
        place: its place in the body, such as `messages[3]`.
        kind: "tool", "instructions" or "message".
        label: the tool's name, or the role of the message.
        text: the part as JSON text.
    """

    place: str
    kind: str
    label: str
    text: str

    @property
    def tokens(self) -> int:
        """About how many tokens it has."""
        return estimate_tokens(len(self.text))


@dataclass(frozen=True, slots=True)
class PrefixChange:
    """The first difference between two requests.

    Attributes:
        place: the place of the first part that differs; "" if the earlier request is a prefix of the later one.
        label: the label of that part.
        before: the earlier request from the difference on, truncated; "" if it has nothing there.
        after: the later request from the difference on, truncated; "" if it has nothing there.
        shared: about how many tokens both begin with.
        total: about how many tokens the later request has.
    """

    place: str
    label: str
    before: str
    after: str
    shared: int
    total: int


def prompt_parts(body: Any) -> list[PromptPart]:
    """Return the parts of a request's body in any API: tools, instructions, then the conversation."""
    if isinstance(body, list):
        body = {"messages": body}
    if not isinstance(body, dict):
        return []
    return [*_tools(body), *_instructions(body), *_conversation(body)]


def prefix_change(before: list[PromptPart], after: list[PromptPart]) -> PrefixChange:
    """Return the first difference between two requests."""
    total = sum(part.tokens for part in after)
    shared = 0
    for at, part in enumerate(after):
        earlier = before[at] if at < len(before) else None
        if earlier is None:
            return PrefixChange("", "", "", "", shared, total)
        if earlier.text == part.text and earlier.kind == part.kind:
            shared += part.tokens
            continue
        start = _first_difference(earlier.text, part.text)
        begin = max(0, start - EXCERPT // 4)
        return PrefixChange(
            part.place,
            part.label,
            earlier.text[begin : begin + EXCERPT],
            part.text[begin : begin + EXCERPT],
            shared + estimate_tokens(start),
            total,
        )
    if len(before) > len(after):
        dropped = before[len(after)]
        return PrefixChange(dropped.place, dropped.label, dropped.text[:EXCERPT], "", shared, total)
    return PrefixChange("", "", "", "", shared, total)


def _first_difference(before: str, after: str) -> int:
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[:middle] == after[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _tools(body: dict[str, Any]) -> Iterator[PromptPart]:
    tools = body.get("tools")
    if not isinstance(tools, list):
        return
    for at, tool in enumerate(tools):
        declared = tool.get("functionDeclarations") if isinstance(tool, dict) else None
        for number, definition in enumerate(declared if isinstance(declared, list) else [tool]):
            place = f"tools[{at}]" + (f".functionDeclarations[{number}]" if isinstance(declared, list) else "")
            yield PromptPart(place, "tool", _tool_name(definition), _text(definition))


def _tool_name(definition: Any) -> str:
    if not isinstance(definition, dict):
        return ""
    function = definition.get("function")
    name = definition.get("name") or (function.get("name") if isinstance(function, dict) else "")
    return str(name or definition.get("type") or "")


def _instructions(body: dict[str, Any]) -> Iterator[PromptPart]:
    for key in INSTRUCTIONS:
        value = body.get(key)
        if isinstance(value, list):
            for at, block in enumerate(value):
                yield PromptPart(f"{key}[{at}]", "instructions", "system", _text(block))
        elif value:
            yield PromptPart(key, "instructions", "system", _text(value))


def _conversation(body: dict[str, Any]) -> Iterator[PromptPart]:
    for key in CONVERSATION:
        value = body.get(key)
        if isinstance(value, str):
            yield PromptPart(key, "message", "user", value)
        elif isinstance(value, list):
            for at, message in enumerate(value):
                label = message.get("role") or message.get("type") if isinstance(message, dict) else ""
                yield PromptPart(f"{key}[{at}]", "message", str(label or ""), _text(message))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(_without_marks(value), ensure_ascii=False)


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(item) for key, item in value.items() if key not in _CACHE_MARKS}
    return [_without_marks(item) for item in value] if isinstance(value, list) else value

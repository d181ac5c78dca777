"""Compaction by the server: from some number of tokens on, it replaces the older conversation by a summary of its own.

The summary is a part of the answer that only this API can read. It is sent back with the rest of the conversation, and
the server then ignores the older messages.

Sources: https://platform.claude.com/docs/en/build-with-claude/compaction and
https://developers.openai.com/api/docs/guides/compaction
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from toolwire.messages import OpaquePart

MEMBER: Final = "context_management"
"""The member of a body that asks for it, in each API that can be asked."""


ITEM: Final = "compaction"
"""The type of the part that is such a summary."""


def is_summary(part: OpaquePart) -> bool:
    """Return whether a part of an answer is the summary of an older conversation."""
    return part.data.get("type") == ITEM


@dataclass(frozen=True, slots=True)
class ServerCompaction:
    """The words in which an API is asked for compaction.

    Attributes:
        write: returns the member for a number of tokens.
        read: returns the number of tokens of a member; None if it has other settings too.
        least: the smallest number of tokens that the API takes.
    """

    write: Callable[[int], Any]
    read: Callable[[Any], int | None]
    least: int


def _anthropic_member(tokens: int) -> Any:
    return {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": tokens}}]}


def _anthropic_tokens(value: Any) -> int | None:
    match value:
        case {"edits": [{"trigger": {"value": int(tokens)}}]} if value == _anthropic_member(tokens):
            return tokens
    return None


def _responses_member(tokens: int) -> Any:
    return [{"type": "compaction", "compact_threshold": tokens}]


def _responses_tokens(value: Any) -> int | None:
    match value:
        case [{"compact_threshold": int(tokens)}] if value == _responses_member(tokens):
            return tokens
    return None


ANTHROPIC: Final = ServerCompaction(_anthropic_member, _anthropic_tokens, 50_000)
RESPONSES: Final = ServerCompaction(_responses_member, _responses_tokens, 1_000)

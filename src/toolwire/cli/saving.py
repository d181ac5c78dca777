"""A conversation in a file of JSON, and back exactly; what the file holds is checked, whoever made it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from toolwire.cli.screen import CliError
from toolwire.cli.source import read_json
from toolwire.messages import ImagePart, Message, OpaquePart, Part, ReasoningPart, TextPart, ToolCall, ToolResult

VERSION: Final = 1
_MARK: Final = "toolwire_conversation"
_KINDS: Final[dict[str, TypeAdapter[Any]]] = {
    kind.__name__: TypeAdapter(kind) for kind in (TextPart, ReasoningPart, ImagePart, ToolCall, ToolResult, OpaquePart)
}
_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})


def save(path: str, messages: Sequence[Message], model: str) -> None:
    """Write a conversation; only its user may read the file. One that is there is replaced at once.

    Raises:
        CliError: it cannot be written.
    """
    said = [{"role": message.role, "parts": [_saved(part) for part in message.parts]} for message in messages]
    text = json.dumps({_MARK: VERSION, "model": model, "messages": said}, ensure_ascii=False, indent=1)
    target = Path(path).expanduser()
    fresh = target.with_name(f".{target.name}.new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text + "\n")
        fresh.replace(target)
    except (OSError, UnicodeEncodeError) as error:
        raise CliError(f"{path} cannot be written: {error}") from error


def _saved(part: Part) -> dict[str, Any]:
    kind = type(part).__name__
    body: dict[str, Any] = _KINDS[kind].dump_python(part, mode="json", exclude_defaults=True)
    return {"is": kind, **body}


def load(path: str) -> tuple[Message, ...]:
    """Read a conversation.

    Raises:
        CliError: the file cannot be read, or holds none.
    """
    data = read_json(os.path.expanduser(path))
    if not isinstance(data, dict) or _MARK not in data or not isinstance(data.get("messages"), list):
        raise CliError(f"{path} holds no conversation that was saved with /save")
    if data[_MARK] != VERSION:
        raise CliError(f"{path} was saved by another version of Toolwire ({data[_MARK]!r:.20})")
    try:
        return tuple(_message(one) for one in data["messages"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else repr(error)
        raise CliError(f"{path} is damaged: {why:.200}") from error


def _message(data: dict[str, Any]) -> Message:
    if data["role"] not in _ROLES:
        raise ValueError(f"no role {data['role']!r:.40}")
    parts = [
        _KINDS[part["is"]].validate_python({key: value for key, value in part.items() if key != "is"})
        for part in data["parts"]
    ]
    return Message(data["role"], tuple(parts))

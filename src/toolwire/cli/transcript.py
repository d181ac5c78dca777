"""A conversation in a file of JSON, and back exactly; what the file holds is checked, whoever made it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from toolwire.cli.console import CliError
from toolwire.cli.input_files import read_json
from toolwire.messages import ImagePart, Message, OpaquePart, Part, ReasoningPart, TextPart, ToolCall, ToolResult
from toolwire.runtime.state_dir import state_folder
from toolwire.telemetry.defaults import keeps_content

VERSION: Final = 1
_MARK: Final = "toolwire_conversation"
_KINDS: Final[dict[str, TypeAdapter[Any]]] = {
    kind.__name__: TypeAdapter(kind) for kind in (TextPart, ReasoningPart, ImagePart, ToolCall, ToolResult, OpaquePart)
}
LAST: Final = "last"
"""Stands for the conversation that was kept last."""
KEPT: Final = 20
"""Conversations that copies are kept of."""
MOST_BYTES: Final = 8 << 20
"""Of one copy; a longer conversation is not copied any more."""
_FOLDER: Final = "conversations"
_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})


@dataclass(frozen=True, slots=True)
class Copy:
    """A conversation that is kept as it goes on, without being asked to; of older ones the last few are.

    Attributes:
        path: the file; only its user may read it.
    """

    path: Path

    @classmethod
    def standard(cls) -> Copy | None:
        """A new one; None where nothing is to be kept of what is said."""
        if not keeps_content():
            return None
        return cls(_folder() / f"{time.time_ns()}-{os.getpid()}.json")

    def save(self, messages: Sequence[Message], model: str) -> None:
        """Write the conversation, and take away the oldest of too many.

        Raises:
            CliError: it cannot be written, or is too long to be.
        """
        text = _text(messages, model)
        if len(text) > MOST_BYTES:
            raise CliError(f"it has more than {MOST_BYTES >> 20} MB; /save FILE keeps it")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CliError(f"{self.path.parent} cannot be made: {error}") from error
        _write(str(self.path), text)
        for old in _copies()[:-KEPT]:
            with suppress(OSError):  # another conversation took it away
                old.unlink()

    def forget(self) -> None:
        """Take it away, if it is there.

        Raises:
            CliError: it cannot be.
        """
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise CliError(f"{self.path} cannot be taken away: {error}") from error


def newest() -> Copy:
    """The conversation that was kept last.

    Raises:
        CliError: there is none.
    """
    found = _copies()
    if not found:
        raise CliError(f"no conversation is kept in {_folder()}; --resume FILE goes on with one that /save kept")
    return Copy(found[-1])


def _folder() -> Path:
    return state_folder() / _FOLDER


def _copies() -> list[Path]:
    """All copies, the last written last."""
    found: list[tuple[int, Path]] = []
    for path in _folder().glob("[0-9]*.json"):
        with suppress(OSError):
            found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def save(path: str, messages: Sequence[Message], model: str) -> None:
    """Write a conversation; only its user may read the file. One that is there is replaced at once.

    Raises:
        CliError: it cannot be written.
    """
    _write(path, _text(messages, model))


def _text(messages: Sequence[Message], model: str) -> str:
    said = [{"role": message.role, "parts": [_saved(part) for part in message.parts]} for message in messages]
    return json.dumps({_MARK: VERSION, "model": model, "messages": said}, ensure_ascii=False, indent=1)


def _write(path: str, text: str) -> None:
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

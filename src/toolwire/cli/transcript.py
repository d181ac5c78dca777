"""Save and load a conversation as a JSON file without loss; the content of a loaded file is validated."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolwire.agent.conversation_json import messages_of_data, messages_to_data
from toolwire.cli.console import CliError
from toolwire.cli.input_files import read_json
from toolwire.errors import ConversationError
from toolwire.messages import Message
from toolwire.runtime.state_dir import state_folder
from toolwire.telemetry.defaults import keeps_content

LAST: Final = "last"
"""Name of the most recently saved conversation."""
MAX_COPIES: Final = 20
"""Maximum number of conversations that are saved automatically."""
MAX_COPY_BYTES: Final = 8 << 20
"""Maximum size of an automatically saved conversation, in bytes."""
_FOLDER: Final = "conversations"


@dataclass(frozen=True, slots=True)
class AutosavedChat:
    """The file of an automatically saved conversation.

    Attributes:
        path: the file; only its user may read it.
    """

    path: Path

    @classmethod
    def standard(cls) -> AutosavedChat | None:
        """Return a new file; None if the settings of telemetry keep no content."""
        if not keeps_content():
            return None
        return cls(_folder() / f"{time.time_ns()}-{os.getpid()}.json")

    def save(self, messages: Sequence[Message], model: str) -> None:
        """Write the conversation, and delete the oldest files above the maximum.

        Raises:
            CliError: it cannot be written, or is too long.
        """
        text = _text(messages, model)
        if len(text) > MAX_COPY_BYTES:
            raise CliError(f"it has more than {MAX_COPY_BYTES >> 20} MB; /save FILE saves it")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CliError(f"{self.path.parent} cannot be created: {error}") from error
        _write(str(self.path), text)
        for old in _saved_copies()[:-MAX_COPIES]:
            with suppress(OSError):  # another process deleted it
                old.unlink()

    def forget(self) -> None:
        """Delete the file if it exists.

        Raises:
            CliError: it cannot be deleted.
        """
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise CliError(f"{self.path} cannot be deleted: {error}") from error


def newest() -> AutosavedChat:
    """Return the most recently saved conversation.

    Raises:
        CliError: there is no such conversation.
    """
    copies = _saved_copies()
    if not copies:
        raise CliError(
            f"no conversation is saved in {_folder()}; --resume FILE continues one that was saved with /save"
        )
    return AutosavedChat(copies[-1])


def _folder() -> Path:
    return state_folder() / _FOLDER


def _saved_copies() -> list[Path]:
    """Return all files, the most recent one last."""
    dated: list[tuple[int, Path]] = []
    for path in _folder().glob("[0-9]*.json"):
        with suppress(OSError):
            dated.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(dated)]


def save(path: str, messages: Sequence[Message], model: str) -> None:
    """Write a conversation to a file that only its user may read; replace an existing file atomically.

    Raises:
        CliError: it cannot be written.
    """
    _write(path, _text(messages, model))


def _text(messages: Sequence[Message], model: str) -> str:
    return json.dumps({"model": model, **messages_to_data(messages)}, ensure_ascii=False, indent=1)


def _write(path: str, text: str) -> None:
    target = Path(path).expanduser()
    try:
        # A name that nobody can predict, created here: no link of that name is followed.
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".new", dir=target.parent)
        fresh = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)
    except (OSError, UnicodeEncodeError) as error:
        raise CliError(f"{path} cannot be written: {error}") from error


def load(path: str) -> tuple[Message, ...]:
    """Read a conversation.

    Raises:
        CliError: the file cannot be read, or does not contain a conversation.
    """
    data = read_json(os.path.expanduser(path))
    try:
        return messages_of_data(data)
    except ConversationError as error:
        raise CliError(f"{path}: {error}") from error

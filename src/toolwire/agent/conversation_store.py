"""Conversations that are stored by name, so that any process can continue them.

Each change has to be of the version that was opened. If another run was faster, nothing of either is lost: what
cannot be stored under its name is stored as a branch, and an error names it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from toolwire._surface import check_type
from toolwire.agent.conversation_database import Rows, database_of
from toolwire.agent.conversation_json import dump_messages, dump_session, load_messages, load_session
from toolwire.agent.pending import PendingApprovals
from toolwire.agent.stored_names import MAX_NAME, name_fault
from toolwire.errors import ConversationError
from toolwire.messages import Message, ToolCall
from toolwire.policy.session import Session
from toolwire.text.suggest import closest, did_you_mean


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """A conversation in a list.

    Attributes:
        name: its name.
        length: number of messages.
        version: number of changes so far.
        updated_at: time of the last change.
        pending: whether calls wait for an approval.
    """

    name: str
    length: int
    version: int
    updated_at: datetime
    pending: bool


@dataclass(frozen=True, slots=True)
class _Content:
    """The content of a conversation, as it is stored."""

    length: int
    messages: str
    session: str
    pending: str

    @classmethod
    def of(cls, messages: Sequence[Message], session: Session, pending: PendingApprovals | None) -> _Content:
        text = "" if pending is None else pending.to_json()
        return cls(len(messages), dump_messages(messages), dump_session(session), text)


class ConversationStore:
    """Conversations by name, in an SQLite file or in PostgreSQL.

        store = ConversationStore("sqlite:///chats.sqlite3")
        await agent.ask("Hello!", conversation=store.open("ada"))

    Args:
        database: `sqlite:///path`, a path, or `postgresql://server/database`, which needs the extra `durable`; "" for
            the user's own file.

    Raises:
        ConversationError: the database is of another kind; the other methods raise it if it cannot be used.
        MissingExtra: the extra is not installed.
    """

    def __init__(self, database: str = "") -> None:
        check_type("database", database, str, "a URL or a path, as text")
        self._database = database_of(database)

    def open(self, name: str) -> Conversation:
        """Return the conversation of this name, or a new one; a new one is stored when it is first saved.

        Raises:
            ConversationError: the name is unusable, or what is stored cannot be read.
        """
        check_name(name)
        with self._database.open() as rows:
            stored = rows.execute(
                "SELECT version, messages, session, pending FROM toolwire_conversations WHERE name = ?", (name,)
            )
        if not stored:
            return Conversation(self, name)
        version, messages, session, pending = stored[0]
        return Conversation(
            self,
            name,
            version,
            load_messages(messages),
            load_session(session),
            PendingApprovals.from_json(pending) if pending else None,
        )

    def all(self) -> list[ConversationInfo]:
        """Return what is stored, the most recently changed conversation first."""
        with self._database.open() as rows:
            stored = rows.execute(
                "SELECT name, length, version, updated_at, pending <> '' FROM toolwire_conversations "
                "ORDER BY updated_at DESC, name"
            )
        return [
            ConversationInfo(name, length, version, datetime.fromtimestamp(at, UTC), bool(pending))
            for name, length, version, at, pending in stored
        ]

    def delete(self, name: str) -> None:
        """Delete a conversation.

        Raises:
            ConversationError: there is none of this name.
        """
        with self._database.open() as rows:
            if not rows.execute("DELETE FROM toolwire_conversations WHERE name = ? RETURNING name", (name,)):
                raise self._missing(rows, name)

    def branch(self, name: str, new_name: str, at: int | None = None) -> Conversation:
        """Copy a conversation under another name, with its session but without pending approvals.

        Args:
            name: the conversation.
            new_name: name of the copy.
            at: number of messages to copy, from the beginning; None for all.

        Raises:
            ConversationError: there is no such conversation, the new name is in use, or the copy would end with calls
                whose results follow.
        """
        original = self.open(name)
        if not original.version:
            with self._database.open() as rows:
                raise self._missing(rows, name)
        if at is not None and not 0 <= at <= len(original.messages):
            raise ConversationError(f"{name!r} has {len(original.messages)} messages, so it has no branch at {at}")
        messages = original.messages[:at]
        if messages and any(isinstance(part, ToolCall) for part in messages[-1].parts):
            raise ConversationError(f"message {len(messages)} calls tools: branch before it or behind their results")
        copy = Conversation(self, new_name, 0, messages, original.session)
        content = _Content.of(messages, original.session, None)
        with self._database.open() as rows:
            if not self._insert(rows, check_name(new_name), content):
                raise ConversationError(f"there is a conversation {new_name!r} already")
        copy.version = 1
        return copy

    def _missing(self, rows: Rows, name: str) -> ConversationError:
        names = [stored for (stored,) in rows.execute("SELECT name FROM toolwire_conversations")]
        return ConversationError(f"there is no conversation {name!r}{did_you_mean(closest(name, names))}")

    def _insert(self, rows: Rows, name: str, content: _Content) -> bool:
        """Store a new conversation; return False if there is one of this name."""
        inserted = rows.execute(
            "INSERT INTO toolwire_conversations (name, version, length, messages, session, pending, updated_at) "
            "VALUES (?, 1, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING name",
            (name, content.length, content.messages, content.session, content.pending, time.time()),
        )
        return bool(inserted)

    def _update(self, rows: Rows, name: str, version: int, content: _Content) -> bool:
        """Replace the content of a conversation; return False if its version is another one by now."""
        updated = rows.execute(
            "UPDATE toolwire_conversations SET version = version + 1, length = ?, messages = ?, session = ?, "
            "pending = ?, updated_at = ? WHERE name = ? AND version = ? RETURNING name",
            (content.length, content.messages, content.session, content.pending, time.time(), name, version),
        )
        return bool(updated)

    def write(self, conversation: Conversation, content: _Content) -> None:
        """Store the content of a conversation; see `Conversation.save`."""
        name, version = conversation.name, conversation.version
        with self._database.open() as rows:
            # In one transaction, so that what cannot be stored under its name is stored as a branch or not at all.
            if self._update(rows, name, version, content) if version else self._insert(rows, name, content):
                return
            number = 2
            while not self._insert(rows, branch := _numbered(name, number), content):
                number += 1
        raise ConversationError(
            f"the conversation {name!r} was changed since it was opened: what was said here is stored as {branch!r}",
            branch=branch,
        )

    def claim(self, conversation: Conversation) -> None:
        """Raise the version of a stored conversation, and drop its pending approvals; see `Conversation.claim`."""
        name, version = conversation.name, conversation.version
        with self._database.open() as rows:
            claimed = rows.execute(
                "UPDATE toolwire_conversations SET version = version + 1, pending = '' "
                "WHERE name = ? AND version = ? RETURNING name",
                (name, version),
            )
        if not claimed:
            raise ConversationError(f"the conversation {name!r} was changed since it was opened: open it again")

    def check(self, conversation: Conversation) -> None:
        """Check that a conversation was not changed; see `Conversation.check`."""
        name, version = conversation.name, conversation.version
        with self._database.open() as rows:
            versions = rows.execute("SELECT version FROM toolwire_conversations WHERE name = ?", (name,))
        if (versions[0][0] if versions else 0) != version:
            raise ConversationError(f"the conversation {name!r} was changed since it was opened: open it again")


class Conversation:
    """A conversation of a store, to be passed to a run: `agent.run(task, conversation=...)`.

    The run continues it, and saves it before its last event. A run that is stopped, that fails with an exception, or
    whose model cannot be asked at all saves nothing.

    Attributes:
        name: its name.
        version: number of changes so far; 0 if it is not stored yet.
        messages: the messages.
        session: state of the session, such as approvals and whether it is untrusted.
        pending: the run that waits for approvals; None if there is none.
    """

    def __init__(
        self,
        store: ConversationStore,
        name: str,
        version: int = 0,
        messages: Sequence[Message] = (),
        session: Session | None = None,
        pending: PendingApprovals | None = None,
    ) -> None:
        self._store = store
        self.name = name
        self.version = version
        self.messages = tuple(messages)
        self.session = Session() if session is None else session
        self.pending = pending

    def __repr__(self) -> str:
        """Return the name, the version and the number of messages; nothing that was said."""
        return f"<Conversation {self.name!r}: version {self.version}, {len(self.messages)} messages>"

    def save(self, messages: Sequence[Message], *, pending: PendingApprovals | None = None) -> None:
        """Store other messages in place of those so far, with the state of the session.

        Args:
            messages: the whole conversation, such as `RunEnded.messages`.
            pending: what waits for approvals.

        Raises:
            ConversationError: it was changed elsewhere since it was opened. The messages are stored under the
                name in the attribute `branch` of the error.
        """
        self._store.write(self, _Content.of(messages, self.session, pending))
        self.version += 1
        self.messages, self.pending = tuple(messages), pending

    def check(self) -> None:
        """Check that it was not changed elsewhere since it was opened.

        Raises:
            ConversationError: it was.
        """
        self._store.check(self)

    def claim(self) -> None:
        """Claim what is pending for this process: others cannot resume it any more.

        Raises:
            ConversationError: the conversation was changed elsewhere since it was opened.
        """
        self._store.claim(self)
        self.version += 1
        self.pending = None


def _numbered(name: str, number: int) -> str:
    """Return the name of a branch; a long name is truncated, so that the branch can be opened by its name."""
    suffix = f" ({number})"
    return f"{name[: MAX_NAME - len(suffix)]}{suffix}"


def check_name(name: str) -> str:
    """Return the name of a conversation.

    Raises:
        ConversationError: it is empty, too long or not printable.
        TypeError: it is not text.
    """
    check_type("name", name, str, "text")
    if fault := name_fault("a conversation", name):
        raise ConversationError(fault)
    return name

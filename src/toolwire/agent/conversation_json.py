"""Conversations and sessions as JSON text: versioned, with every part of every message, and back without loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, Final, get_args

from toolwire._surface import check_items, check_type
from toolwire.agent.codec import TAG, dumps, from_data, loads, to_data
from toolwire.agent.session_record import SessionRecord
from toolwire.errors import ConversationError, JournalError
from toolwire.messages import Message, OpaquePart, Part
from toolwire.policy.session import Session

VERSION: Final = 1
MESSAGES_MARK: Final = "toolwire_conversation"
"""The member of the JSON object that has the version."""
SESSION_MARK: Final = "toolwire_session"
UNKNOWN: Final = "toolwire"
"""The provider of an opaque part that a newer version wrote; its data are written again unchanged."""
_KINDS: Final = frozenset(kind.__name__ for kind in get_args(Part))
_OPAQUE: Final = OpaquePart.__name__


def dump_messages(messages: Iterable[Message]) -> str:
    """Return a conversation as JSON text, in ASCII.

    Raises:
        ConversationError: it contains a value that JSON does not have.
        TypeError: a message is of another type.
    """
    try:
        return dumps(messages_to_data(messages))
    except JournalError as error:
        raise ConversationError(str(error)) from error


def load_messages(text: str) -> tuple[Message, ...]:
    """Return the conversation that `dump_messages` wrote.

    A part of a kind that only a newer version knows becomes an `OpaquePart`, which no provider gets.

    Raises:
        ConversationError: the text is not a conversation, or has an unknown version.
        TypeError: it is not text.
    """
    return messages_of_data(_read(text, "the text of dump_messages"))


def dump_session(session: Session, *, clock: Callable[[], float] = monotonic) -> str:
    """Return the state of a session as JSON text, such as approvals, refusals and whether it is untrusted.

    Args:
        session: the session.
        clock: returns seconds, as the session's limits count them.
    """
    check_type("session", session, Session, "a Session")
    return dumps({SESSION_MARK: VERSION, **SessionRecord(session, clock).changes()})


def load_session(text: str, *, clock: Callable[[], float] = monotonic) -> Session:
    """Return a session with the state that `dump_session` wrote.

    It contains approvals: who can change the text can approve calls.

    Args:
        text: the state.
        clock: returns seconds, as the limits of the new session count them.

    Raises:
        ConversationError: the text is not a session, or has an unknown version.
        TypeError: it is not text.
    """
    data = _checked(_read(text, "the text of dump_session"), SESSION_MARK, "session")
    session = Session()
    try:
        SessionRecord(session, clock).restore([{name: data[name] for name in data if name != SESSION_MARK}])
    except JournalError as error:
        raise ConversationError(str(error)) from error
    return session


def messages_to_data(messages: Iterable[Message]) -> dict[str, Any]:
    """Return a conversation as dicts and lists, with its version.

    Raises:
        TypeError: a message is of another type.
    """
    messages = tuple(messages)
    check_items("messages", messages, Message, "a sequence of Message")
    return {MESSAGES_MARK: VERSION, "messages": [_written(to_data(message)) for message in messages]}


def messages_of_data(data: Any) -> tuple[Message, ...]:
    """Return the conversation that `messages_to_data` took apart.

    Raises:
        ConversationError: the data is not a conversation, or has an unknown version.
    """
    entries = _checked(data, MESSAGES_MARK, "conversation").get("messages")
    if not isinstance(entries, list):
        raise ConversationError("this is not a conversation: it has no list of messages")
    try:
        return tuple(from_data(Message, _readable(entry), strict=True) for entry in entries)
    except JournalError as error:
        raise ConversationError(f"the conversation cannot be read: {error}") from error


def _read(text: str, expected: str) -> Any:
    check_type("text", text, str, expected)
    try:
        return loads(text)
    except JournalError as error:
        raise ConversationError(str(error)) from error


def _checked(data: Any, mark: str, kind: str) -> dict[str, Any]:
    """Return data as a dict of the version that is known here."""
    if not isinstance(data, dict) or mark not in data:
        raise ConversationError(f"this is not a {kind}: it is not a JSON object with {mark!r}")
    if data[mark] != VERSION:
        raise ConversationError(f"the {kind} is of another version, {data[mark]!r:.20}; only {VERSION} can be read")
    return data


def _readable(entry: Any) -> Any:
    """Return a message with parts of unknown kinds as opaque parts."""
    if not isinstance(entry, dict) or not isinstance(entry.get("parts"), list):
        return entry
    return {**entry, "parts": [_part_readable(part) for part in entry["parts"]]}


def _part_readable(part: Any) -> Any:
    # What is not even a part stays as it is, and is refused where parts are read.
    newer = isinstance(part, dict) and isinstance(part.get(TAG), str) and part[TAG] not in _KINDS
    return {TAG: _OPAQUE, "data": part, "provider": UNKNOWN} if newer else part


def _written(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a message with parts that a newer version wrote as they were."""
    parts = [
        part["data"] if part[TAG] == _OPAQUE and part.get("provider") == UNKNOWN else part
        for part in entry.get("parts", ())
    ]
    return {**entry, "parts": parts}

"""Sessions of `ask` and `chat`: conversations that are stored by name, and continued by it."""

from __future__ import annotations

from collections.abc import Sequence

from toolwire.agent.conversation_store import Conversation, ConversationStore, check_name
from toolwire.cli.console import CliError, say
from toolwire.errors import ConversationError
from toolwire.messages import Message
from toolwire.policy.session import Session


def open_session(name: str) -> Conversation:
    """Return the conversation of a session, or a new one.

    Raises:
        CliError: the name is unusable; or a run in it waits for approvals, which neither `ask` nor `chat` can give.
        ConversationError: what is stored cannot be read.
    """
    try:
        check_name(name)
    except ConversationError as error:
        raise CliError(f"--session: {error}") from error
    conversation = ConversationStore().open(name)
    if conversation.pending is not None:
        raise CliError(f"a run in the session {name} waits for approvals: the program that began it has to resume it")
    return conversation


class NamedSession:
    """The session of a chat, which is saved after each answer.

    Args:
        name: its name.

    Raises:
        CliError, ConversationError: see `open_session`.
    """

    def __init__(self, name: str) -> None:
        self._conversation = open_session(name)

    @property
    def name(self) -> str:
        """Its name."""
        return self._conversation.name

    @property
    def messages(self) -> tuple[Message, ...]:
        """Its messages, as they were saved last."""
        return self._conversation.messages

    @property
    def session(self) -> Session:
        """The approvals and the trust that belong to the conversation."""
        return self._conversation.session

    def save(self, messages: Sequence[Message], model: str) -> None:
        """Store the conversation; as a branch, if another process has continued it in the meantime.

        Raises:
            CliError: it cannot be stored.
        """
        try:
            self._conversation.save(messages)
        except ConversationError as error:
            if not error.branch:
                raise CliError(str(error)) from error
            # Nothing of either is lost, and the next answer belongs to what was said here.
            session = self._conversation.session
            self._conversation = ConversationStore().open(error.branch)
            self._conversation.session = session
            say(f"toolwire: {error}; this chat continues there", "yellow")

    def forget(self) -> None:
        """Store that nothing has been said; a session that was never stored stays so.

        Raises:
            CliError: it cannot be stored.
        """
        if self._conversation.version:
            self.save((), "")

"""The request with which a durable run began: all that another process needs to begin it, as a value to store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolwire.agent.codec import dumps, loads
from toolwire.agent.run_context import SubmitOptions
from toolwire.agent.task import more_than_text
from toolwire.messages import Content, Message, Part
from toolwire.providers.model_settings import RequestAdditions


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request with which a run began.

    Attributes:
        agent: name of the agent.
        task: the user's request.
        history: the conversation before it.
        session: state of the session, as `SessionRecord.changes` returns it.
        configuration: description of the agent; see `compatibility.configuration`.
        parts: the parts of the user's request, if it is more than text.
        settings, extra_body: additions to the requests to the model, as plain JSON data.
    """

    agent: str
    task: str
    history: tuple[Message, ...] = ()
    session: dict[str, Any] = field(default_factory=dict)
    configuration: dict[str, Any] = field(default_factory=dict)
    # Beside the text, which queries find: a list of runs must not read their images.
    parts: tuple[Part, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    extra_body: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        task: Message,
        agent: str,
        options: SubmitOptions,
        session: dict[str, Any],
        configuration: dict[str, Any],
    ) -> RunRequest:
        """Return the request with a task; see the attributes for the other arguments.

        Raises:
            DefinitionError: a setting has an invalid value.
            JournalError: a setting is a value that JSON does not have.
            TypeError: a setting is misspelt or of another type.
        """
        additions = RequestAdditions.of(options.get("settings"), options.get("extra_body"))
        settings, body = loads(dumps([additions.settings, additions.extra_body]))
        history = tuple(options.get("history", ()))
        return cls(agent, task.text, history, session, configuration, more_than_text(task), settings, body)

    @property
    def content(self) -> Content:
        """The whole request of the user."""
        return self.parts or self.task

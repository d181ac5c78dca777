"""The request with which a durable run began: all that another process needs to begin it, as a value to store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from toolwire.agent.budget import Budget
from toolwire.agent.codec import dumps, loads
from toolwire.agent.prices import Prices
from toolwire.agent.run_context import SubmitOptions
from toolwire.agent.task import more_than_text
from toolwire.errors import JournalError
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
        budget_data: the budget of this run, as plain JSON data; empty if it has the agent's budget.
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
    budget_data: dict[str, Any] = field(default_factory=dict)

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
            JournalError: a setting, or a limit of the budget, is a value that JSON does not have.
            TypeError: a setting is misspelt or of another type.
        """
        additions = RequestAdditions.of(options.get("settings"), options.get("extra_body"))
        budget = options.get("budget")
        if budget is not None and isinstance(budget.prices, Mapping):
            budget = replace(budget, prices=dict(budget.prices))  # `asdict` copies other mappings as they are
        limits = {} if budget is None else asdict(budget)
        settings, body, limits = loads(dumps([additions.settings, additions.extra_body, limits]))
        history = tuple(options.get("history", ()))
        return cls(agent, task.text, history, session, configuration, more_than_text(task), settings, body, limits)

    @property
    def content(self) -> Content:
        """The whole request of the user."""
        return self.parts or self.task

    @property
    def budget(self) -> Budget | None:
        """The budget of this run; None if it has the agent's budget.

        Raises:
            JournalError: it was recorded by another version that knows other limits.
        """
        if not self.budget_data:
            return None
        try:
            budget, prices = Budget(**self.budget_data), self.budget_data.get("prices")
            if prices is None:
                return budget
            by_model = all(isinstance(value, dict) for value in prices.values())
            read = {name: Prices(**value) for name, value in prices.items()} if by_model else Prices(**prices)
            return replace(budget, prices=read)
        except (AttributeError, TypeError, ValueError) as error:
            raise JournalError(f"the recorded budget of the run cannot be read: {error}") from error

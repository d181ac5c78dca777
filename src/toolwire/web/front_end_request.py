"""Requests of front ends: the body is checked, the last message becomes the task, and the others the history."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from toolwire._surface import check_type
from toolwire.agent.agent import Agent
from toolwire.agent.run_context import RunOptions
from toolwire.agent.run_events import AgentEvent
from toolwire.agent.team import AgentTeam
from toolwire.errors import DefinitionError
from toolwire.messages import Message

Body = Mapping[str, Any] | bytes | str
"""The body of a request: JSON, or the dict that was read from it."""


class CamelCase(BaseModel):
    """A value whose JSON has names such as `mediaType`; other members of the JSON are ignored."""

    model_config = ConfigDict(alias_generator=to_camel)


class FrontEndRequest(CamelCase):
    """The body of a request.

    Attributes:
        title: the name of such a body, for messages.
    """

    title: ClassVar[str]

    def conversation(self) -> Iterator[Message]:
        """Yield the messages that the model reads.

        Raises:
            ValueError: an image or a file cannot be used.
        """
        raise NotImplementedError


_RequestT = TypeVar("_RequestT", bound=FrontEndRequest)


def run_request(
    agent: Agent[Any] | AgentTeam[Any], body: Body, kind: type[_RequestT], options: RunOptions
) -> tuple[_RequestT, AsyncGenerator[AgentEvent]]:
    """Read the body of a request and run an agent on it; return the request and the events.

    Args:
        agent: the agent or the team.
        body: the body.
        kind: the kind of body.
        options: options of the run; the history of the request is used if they have neither a history nor a
            conversation.

    Raises:
        DefinitionError: the body is of another kind, or its last message is not the user's.
        ConfigurationError, TypeError: see `Agent.run`.
    """
    check_type("agent", agent, (Agent, AgentTeam), "an Agent or an AgentTeam")
    check_type("body", body, (Mapping, bytes, str), "the body of the request, as JSON or as a dict")
    try:
        request = kind.model_validate(body) if isinstance(body, Mapping) else kind.model_validate_json(body)
        messages = list(request.conversation())
    except ValidationError as error:
        # Of content that is neither text nor a list of parts, the issue inside of a part says most.
        issue = max(error.errors(include_url=False), key=lambda issue: len(issue["loc"]))
        where = ".".join(str(step) for step in issue["loc"] if "[" not in str(step))  # names of unions are ours
        raise DefinitionError(f"the body is not {kind.title}: {where and where + ': '}{issue['msg']}") from None
    except ValueError as error:
        raise DefinitionError(f"a part of a message cannot be used: {error}") from error
    if not messages or messages[-1].role != "user" or not messages[-1].parts:
        raise DefinitionError(f"the last message of {kind.title} must be the user's, and not empty")
    if "history" not in options and options.get("conversation") is None:
        options = {**options, "history": messages[:-1]}
    return request, agent.run(messages[-1].parts, **options)

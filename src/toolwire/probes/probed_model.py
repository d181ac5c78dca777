"""A model whose endpoint is examined: it answers each question once, for all probes that ask it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolwire.errors import ProviderError
from toolwire.events import collect
from toolwire.messages import Message, ParsedResponse
from toolwire.providers.request import Note, Notes
from toolwire.tools import ToolDefinition

if TYPE_CHECKING:
    from toolwire.client.client import Client  # not imported at run time: help on probes needs no HTTP

SEED = "probe"
"""The `id_seed` of each request, by which ids that the server did not send are recognized."""


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A request to the model.

    Attributes:
        id: its name; a question is asked once.
        messages: the conversation.
        tools: the tools that are offered.
        stream: whether the answer is streamed.
        options: keywords of `Client.ask`, such as `tool_choice`.
    """

    id: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    stream: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the model.

    Attributes:
        response: the answer, with the calls that the API has fields for; calls in the text stay text.
        notes: what could not be written in the request.
    """

    response: ParsedResponse
    notes: tuple[Note, ...]


class ProbedModel:
    """A model behind an API.

    Args:
        client: asks the model; without a `text_format`, because calls in the text break the rules of an API.
        wrong_client: the same with a key that is wrong; None if the server has no keys.
        no_wrong_key: the reason why there is none.
    """

    def __init__(
        self, client: Client, wrong_client: Client | None = None, *, no_wrong_key: str = "no key is set"
    ) -> None:
        self.client = client
        self.wrong_client = wrong_client
        self.no_wrong_key = no_wrong_key
        self._answers: dict[str, Answer | ProviderError] = {}

    async def answer(self, question: ProbeRequest) -> Answer:
        """Return the answer to a question, which is asked if no probe asked it before.

        Raises:
            ProviderError: the server cannot be reached or refuses.
            ConfigurationError: no key is set.
        """
        answer = self._answers.get(question.id)
        if answer is None:
            try:
                answer = await ask(self.client, question)
            except ProviderError as error:
                answer = error
            self._answers[question.id] = answer
        if isinstance(answer, ProviderError):
            raise answer
        return answer


async def ask(client: Client, question: ProbeRequest) -> Answer:
    """Ask a question.

    Raises:
        ProviderError: the server cannot be reached or refuses.
        ConfigurationError: no key is set.
    """
    notes = Notes()
    options = dict(question.options)
    if question.stream:
        stream = client.stream(question.messages, tools=question.tools, notes=notes, id_seed=SEED, **options)
        response = collect([event async for event in stream])
    else:
        response = await client.ask(question.messages, tools=question.tools, notes=notes, id_seed=SEED, **options)
    return Answer(response, tuple(notes))

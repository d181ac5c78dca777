"""A client's request, as the gateway passes it on, and the answer of a backend as it arrives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolwire.events import Event
from toolwire.gateway.client_apis import ClientApi
from toolwire.providers.request import ChatRequest, Notes


@dataclass(slots=True)
class Question:
    """One request of a client.

    Attributes:
        id: the gateway's id of the request.
        client_api: the API that the client speaks.
        body: the body as the client sent it.
        request: the request that the body stands for.
        headers: the headers of the request, in lower case.
        model: the model's name as the client wrote it.
        stream: whether the client asked for a stream.
        created: the time of the request, in seconds since 1970.
        notes: collects what could not be translated.
    """

    id: str
    client_api: ClientApi
    body: dict[str, Any]
    request: ChatRequest
    headers: Mapping[str, str] = field(repr=False)
    model: str
    stream: bool
    created: int = 0
    notes: Notes = field(default_factory=Notes)


@dataclass(slots=True)
class PassedAnswer:
    """An answer in the client's own API, whose bytes are passed on as they are.

    Attributes:
        media_type: the media type of the body.
        body: the bytes, as they arrive.
    """

    media_type: str
    body: AsyncIterator[bytes]


@dataclass(slots=True)
class EventAnswer:
    """An answer that is encoded for the client.

    Attributes:
        events: the events, in the groups in which they arrive.
        model: the model that answers; "" to name the model that the client asked for.
    """

    events: AsyncIterator[Sequence[Event]]
    model: str = ""


Answer = PassedAnswer | EventAnswer


class Upstream(Protocol):
    """A model behind the gateway.

    Attributes:
        name: the name of the backend, for messages.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    def open(self, question: Question) -> AbstractAsyncContextManager[Answer]:
        """Ask the model; leaving the context cancels the request.

        Raises:
            GatewayFailure: the backend cannot be reached, or refuses; nothing of an answer has been read then.
        """
        ...

    async def list_models(self) -> list[str]:
        """Return the names of the models that the backend has.

        Raises:
            ProviderError: the backend cannot be reached, or refuses.
        """
        ...

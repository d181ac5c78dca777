"""A request to a provider API and its answer, as bytes, and the protocol of what carries them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from toolwire.client.response_body import MAX_BODY, limited

TIMEOUT = 120.0
"""Default of the seconds without any byte after which a request has failed."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request; its headers may hold secrets, so they are not shown."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    method: str = "POST"


@dataclass(slots=True)
class HttpAnswer:
    """An answer whose body is still arriving."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]

    @property
    def good(self) -> bool:
        """True if the request succeeded; a redirection is not a success."""
        return 200 <= self.status < 300

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            ProviderError: it has more than 64 MiB.
        """
        return b"".join([piece async for piece in limited(self.body, MAX_BODY, self.status)])


class Transport(Protocol):
    """Carries requests. One with `offline = True` reaches no server, so it needs no key."""

    def open(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpAnswer]:
        """Send a request; the answer's body can be read until the context ends, which also cancels the request."""
        ...

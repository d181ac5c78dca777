"""An exchange with an endpoint: the request of a probe, the bytes of its answer, and the answer as it was read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolwire.client.response_body import json_of
from toolwire.events import Event
from toolwire.messages import ParsedResponse
from toolwire.providers.base import ProviderApi
from toolwire.providers.framing import Frame
from toolwire.providers.request import ChatRequest, Note

SEED = "probe"
"""The `id_seed` of each request, by which ids that the server did not send are recognized."""


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A request of a probe.

    Attributes:
        id: its name; all probes share the answer to a request of one name.
        chat: the request, which each API writes in its own words.
        change: turns the body of the API into another JSON value or into bytes, for requests that no client sends.
        path: the path of the server that is asked, in place of that of the API; "" for that.
        wrong_key: whether the key is wrong.
        arguments: the arguments of the call that the request asks for; None if it asks for none, or for several.
        is_control: whether it asks for these arguments as text, which shows what the model can write by itself.
        may_fail: whether the judge also reads an answer that is an error.
        enough_tokens: the tokens that are enough for the answer of a model that does not reason; None for the default
            of `ProbedModel`. If the request itself has a maximum length, that counts for all models.
    """

    id: str
    chat: ChatRequest
    change: Callable[[dict[str, Any]], Any] | None = field(default=None, compare=False)
    path: str = ""
    wrong_key: bool = False
    may_fail: bool = False
    arguments: Mapping[str, Any] | None = field(default=None, compare=False)
    is_control: bool = False
    enough_tokens: int | None = None

    @property
    def is_sound(self) -> bool:
        """True if the server has to answer it without an error."""
        return not (self.change or self.path or self.wrong_key or self.may_fail)


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of an answer that arrived together.

    Attributes:
        seconds: time since the request was sent.
        data: the bytes.
    """

    seconds: float
    data: bytes


@dataclass(frozen=True, slots=True)
class ProbeExchange:
    """A request and its answer.

    Attributes:
        request: the request.
        api: the API.
        url: the address; "" if no request was sent.
        sent: the body of the request.
        status: the HTTP status of the answer; 0 if there is none.
        headers: the headers of the answer, with names in lower case.
        pieces: the body of the answer as it arrived.
        response: the answer; calls in the text stay text. Empty after an error.
        events: the events of a stream.
        notes: parts of the request that the API has no words for.
        error: why the request failed; "" if it did not.
    """

    request: ProbeRequest
    api: ProviderApi
    url: str = ""
    sent: bytes = b""
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: tuple[Piece, ...] = ()
    response: ParsedResponse = field(default_factory=ParsedResponse)
    events: tuple[Event, ...] = ()
    notes: tuple[Note, ...] = ()
    error: str = ""

    @property
    def body(self) -> bytes:
        """The body of the answer."""
        return b"".join(piece.data for piece in self.pieces)

    @property
    def json(self) -> Any:
        """The body of the answer as a JSON value; None if it is not JSON."""
        return json_of(self.body)

    @property
    def media_type(self) -> str:
        """The media type of the answer, without parameters; "" if it has none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def frames(self) -> list[Frame]:
        """The objects of a streamed answer."""
        framing = self.api.framing()
        return [*framing.feed(self.body), *framing.finish()]

    @property
    def place(self) -> str:
        """The words for the way in which the answer was sent."""
        return " in a stream" if self.request.chat.stream else ""

    def lost(self, *fields: str) -> bool:
        """Return whether the API has no words for one of these parts of the request."""
        return any(name in note.where for note in self.notes for name in fields)

    def as_json(self, hidden: Callable[[str], str]) -> dict[str, Any]:
        """Return the exchange for a report.

        Args:
            hidden: returns a text without the secrets in it, as short as the report needs it.
        """
        return {
            "request": self.request.id,
            "url": hidden(self.url),
            "sent": hidden(self.sent.decode("utf-8", "replace")),
            "status": self.status,
            "answer": hidden(self.body.decode("utf-8", "replace")),
            "seconds": round(self.pieces[-1].seconds, 3) if self.pieces else 0,
            "error": hidden(self.error),
        }


def json_bytes(value: Any) -> bytes:
    """Return a value as the body of a request."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def first_with_calls(exchanges: Iterable[ProbeExchange]) -> ProbeExchange | None:
    """Return the first exchange in whose answer the model calls a tool."""
    return next((exchange for exchange in exchanges if exchange.response.tool_calls), None)

"""A model whose endpoint is examined: it answers each request once, for all probes that send it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolwire.client.exchange import HttpAnswer, HttpRequest, Transport
from toolwire.errors import ProviderError
from toolwire.events import Event, collect
from toolwire.messages import FinishReason, ParsedResponse
from toolwire.probes.probe_exchange import SEED, Piece, ProbeExchange, ProbeRequest, json_bytes
from toolwire.providers.base import ProviderApi
from toolwire.providers.request import Notes

if TYPE_CHECKING:
    from toolwire.client.client import Client  # not imported at run time: help on probes needs no HTTP

MAX_TOKENS = 1_000
"""Maximum length of an answer whose request names none, in tokens: reasoning counts too."""
_WITHOUT_REASONING = 0.3
"""Share of this length that a model needs which does not reason. A weak model may write to the limit without end."""
_ENOUGH = 300
"""Tokens that are always enough for the answers without reasoning."""
MAX_SECONDS = 600.0
"""Maximum duration of an answer: a router may send white space for ever, which no limit of silence ends."""

Connect = Callable[[Transport, bool], "Client"]
"""Returns a client of the model that sends its requests with a transport; with a wrong key if that is asked for.

It has no `text_format`, because calls in the text break the rules of an API.
"""


class ProbedModel:
    """A model behind an API.

    Args:
        api: the API.
        connect: opens clients of the model.
        transport: carries the requests.
        no_wrong_key: the reason why no request with a wrong key can be sent; "" if one can.
        signed: whether requests are signed, so that none can be changed after the client wrote it.
        max_tokens: maximum length of an answer whose request names none, in tokens; a model that shows no reasoning
            gets three tenths of it, or 300 tokens if that is more, or the tokens that are enough for the answer.

    Attributes:
        api: the API.
        has_answered: whether any request was sent yet.
    """

    def __init__(
        self,
        api: ProviderApi,
        connect: Connect,
        transport: Transport,
        *,
        no_wrong_key: str = "",
        signed: bool = False,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self.api = api
        self.has_answered = False
        self._connect = connect
        self._transport = transport
        self._no_wrong_key = no_wrong_key
        self._signed = signed
        self._max_tokens = max_tokens
        self._limit_without_reasoning = min(max_tokens, max(_ENOUGH, int(max_tokens * _WITHOUT_REASONING)))
        self._reasons = False
        self._exchanges: dict[tuple[str, int], ProbeExchange] = {}

    @property
    def exchanges(self) -> list[ProbeExchange]:
        """All exchanges so far, in the order in which they took place."""
        return list(self._exchanges.values())

    def unsendable(self, request: ProbeRequest) -> str:
        """Return why a request cannot be sent; "" if it can."""
        if request.wrong_key:
            return self._no_wrong_key
        if self._signed and (request.change is not None or request.path):
            return "requests are signed, so only whole ones can be sent"
        return ""

    async def answer(self, request: ProbeRequest, attempt: int = 0) -> ProbeExchange:
        """Return the exchange of a request, which is sent if no probe sent it before.

        Args:
            request: the request.
            attempt: the number of the try; each try is another exchange.

        Raises:
            ConfigurationError: no key is set.
        """
        key = request.id, attempt
        if key not in self._exchanges:
            may_be_longer = request.chat.max_tokens is None and self._limit(request) < self._max_tokens
            exchange = await self._send(request)
            if may_be_longer and _is_cut_before_the_answer(exchange):
                self._reasons = True
                exchange = await self._send(request)
            self._exchanges[key] = exchange
            self.has_answered = True
        return self._exchanges[key]

    def _limit(self, request: ProbeRequest) -> int:
        """Return the maximum length of the answer to a request that names none, in tokens."""
        if self._reasons:
            return max(self._max_tokens, request.enough_tokens or 0)
        return request.enough_tokens or self._limit_without_reasoning

    async def _send(self, request: ProbeRequest) -> ProbeExchange:
        capture = _Capture(self._transport, request)
        # A client for each request, because the transport keeps the bytes of one.
        client = self._connect(capture, request.wrong_key)
        chat, notes = request.chat, Notes()
        if chat.max_tokens is None:
            chat = replace(chat, max_tokens=self._limit(request))
        response, events, error = ParsedResponse(), list[Event](), ""
        try:
            async with asyncio.timeout(MAX_SECONDS):
                if chat.stream:
                    events = [event async for event in client.stream(chat, notes=notes, id_seed=SEED)]
                    response = collect(events)
                else:
                    response = await client.ask(chat, notes=notes, id_seed=SEED)
        except ProviderError as failure:
            error = str(failure)
        except TimeoutError:
            error = f"there was no complete answer within {MAX_SECONDS:g} seconds"
        return ProbeExchange(
            request,
            self.api,
            capture.url,
            capture.sent,
            capture.status,
            capture.headers,
            tuple(capture.pieces),
            response,
            tuple(events),
            tuple(notes),
            error,
        )


def _is_cut_before_the_answer(exchange: ProbeExchange) -> bool:
    """Return whether an answer reached its maximum length in reasoning, which a server may hide."""
    response = exchange.response
    if response.finish_reason is not FinishReason.LENGTH:
        return False
    reports_reasoning = response.usage is not None and response.usage.reasoning_tokens > 0
    is_empty = not (response.content.strip() or response.tool_calls or response.incomplete)
    return is_empty or bool(response.reasoning) or reports_reasoning


class _Capture:
    """Carries one request, changes it as its probe says, and keeps the bytes of both sides."""

    def __init__(self, transport: Transport, request: ProbeRequest) -> None:
        self._transport = transport
        self._request = request
        self.offline: bool = getattr(transport, "offline", False)
        self.url = ""
        self.sent = b""
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.pieces: list[Piece] = []

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        """Send the request; what it is answered is kept while it is read."""
        request = self._changed(request)
        # A user with a password, or a key in the query, is not part of a report.
        address = urlsplit(request.url)
        self.url = address._replace(netloc=address.netloc.rpartition("@")[2], query="").geturl()
        self.sent = request.body
        began = monotonic()
        async with self._transport.open(request) as answer:
            self.status = answer.status
            self.headers = {name.lower(): value for name, value in answer.headers.items()}
            yield HttpAnswer(answer.status, answer.headers, self._kept(answer.body, began))

    async def _kept(self, body: AsyncIterator[bytes], began: float) -> AsyncIterator[bytes]:
        async for data in body:
            self.pieces.append(Piece(monotonic() - began, data))
            yield data

    def _changed(self, request: HttpRequest) -> HttpRequest:
        if self._request.change is not None:
            request = replace(request, body=json_bytes(self._request.change(json.loads(request.body))))
        if self._request.path:
            address = urlsplit(request.url)
            request = replace(request, url=f"{address.scheme}://{address.netloc}{self._request.path}")
        return request

"""One request of a client, as the handler of its route sees it, and the services that all handlers share."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from toolwire.client.endpoints import is_relative
from toolwire.errors import DefinitionError
from toolwire.gateway.access import Requester
from toolwire.gateway.answer_meter import AnswerMeter
from toolwire.gateway.answering import Receive, Reply, answer_stream, answer_whole, until_gone
from toolwire.gateway.client_apis import ClientApi
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.key_spending import KeySpending
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Question, tokens_of
from toolwire.gateway.request_body import MAX_BODY, beside_loop, object_of, read_body
from toolwire.gateway.upstream_health import UpstreamHealth
from toolwire.inspector.recorded_exchange import Exchange
from toolwire.providers.failure_kinds import FORBIDDEN, INVALID

MAX_MODEL_NAME = 500
"""Maximum length of the name of a model, in characters: names are looked for in patterns, and are remembered."""
_STORED_ELSEWHERE = ("previous_response_id", "conversation")
"""Members of a request that stand for a conversation which its provider has stored."""


if TYPE_CHECKING:
    from toolwire.gateway.gateway_metrics import GatewayMetrics
    from toolwire.gateway.request_spans import RequestSpans
    from toolwire.gateway.stored_responses import StoredResponses


@dataclass(slots=True)
class Services:
    """Services that all requests share.

    Attributes:
        models: the models that are offered.
        max_body: maximum size of a request's body, in bytes.
        spending: counts what keys use; None if no key is limited.
        responses: the stored answers of the Responses API; None if none are stored.
        health: remembers which backends fail.
        metrics: counts the answers.
        spans: writes the answers as spans; None if nothing reads spans.
        keeps_alive: whether streams get keep-alive bytes, which connections need and clients in this process do not.
    """

    models: ModelTable
    max_body: int = MAX_BODY
    spending: KeySpending | None = None
    responses: StoredResponses | None = None
    health: UpstreamHealth = field(default_factory=UpstreamHealth)
    metrics: GatewayMetrics | None = None
    spans: RequestSpans | None = None
    keeps_alive: bool = True


@dataclass(slots=True)
class ClientCall:
    """One request, as the handler of its route sees it.

    Attributes:
        services: the services that all requests share.
        client_api: the API that the path belongs to.
        path: what the path says, by the names of its places.
        headers: the headers, in lower case.
        query: the query of the address.
        receive: receives the body, and then the end of the connection.
        reply: the response.
        id: the id of the request.
        requester: the client that sent it.
        exchange: records the request for the inspector; None if it is off.
        body_size: the size of the body with what it continues, in bytes; 0 before it is read.
    """

    services: Services
    client_api: ClientApi
    path: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    query: str
    receive: Receive = field(repr=False)
    reply: Reply
    id: str
    requester: Requester = field(default_factory=Requester)
    exchange: Exchange | None = field(default=None, repr=False)
    body_size: int = 0

    async def models(self) -> list[ServedModel]:
        """Return the models that the client may ask."""
        return [model for model in await self.services.models.list() if self.requester.admits(model.name)]

    def model(self, name: str) -> ServedModel:
        """Return the model of a name.

        Raises:
            GatewayFailure: there is none, or the client may not ask it.
        """
        if not self.requester.admits(self.services.models.without_tag(name)):
            raise GatewayFailure(FORBIDDEN, f"this key may not ask the model {name!r:.200}")
        return self.services.models.find(name)

    async def body(self) -> dict[str, Any]:
        """Return the body as a JSON object; see `read_body` and `object_of` for the errors."""
        data = await read_body(self.receive, self.headers, self.services.max_body)
        self.body_size = len(data)
        body = await beside_loop(self.body_size, object_of, data)
        if self.exchange is not None:
            self.exchange.asked(body, self.body_size)
        return body

    async def send_json(self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send a JSON value as the whole response."""
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")
        await self.reply.whole(status, data, "application/json", headers)

    async def question(self, body: dict[str, Any], *, model: str = "", stream: bool | None = None) -> Question:
        """Return what the client asks.

        Args:
            body: the body.
            model: the model, where the path names it.
            stream: whether a stream is asked for, where the path says so.

        Raises:
            GatewayFailure: the body is not a request of the API.
        """
        try:
            request = await beside_loop(self.body_size, self.client_api.api.decode_request, body)
        except DefinitionError as error:
            raise GatewayFailure(INVALID, str(error)) from error
        for name in _STORED_ELSEWHERE:
            if request.extra.get(name):
                why = f"{name} names what this server has not stored: send the conversation"
                raise GatewayFailure(INVALID, why, parameter=name)
        model = model or request.model
        if not model:
            raise GatewayFailure(INVALID, "the request names no model")
        if len(model) > MAX_MODEL_NAME:
            raise GatewayFailure(INVALID, f"the name of the model has more than {MAX_MODEL_NAME} characters")
        if not model.isprintable():
            raise GatewayFailure(INVALID, "the name of the model contains characters that cannot be shown")
        if is_relative(model):
            raise GatewayFailure(INVALID, f"the name of the model is a relative path: {model!r}")
        if stream is None:
            stream = request.stream if "stream" in body else self.client_api.streams_by_default
        created = int(time.time())
        question = Question(
            self.id, self.client_api, body, request, self.headers, model, stream, created, self.body_size
        )
        if self.exchange is not None:
            self.exchange.model, self.exchange.stream, self.exchange.notes = model, stream, question.notes
            question.exchange = self.exchange
        return question

    async def answer(self, question: Question) -> None:
        """Send the answer of a model.

        Raises:
            GatewayFailure: no model answers, and nothing has been sent.
        """
        services, key = self.services, self.requester.key
        meter = AnswerMeter()
        question.observers.append(meter.observe)
        async with AsyncExitStack() as stack:
            if services.spans is not None:  # a request for an unknown model is one too
                stack.enter_context(services.spans.answer(question, meter, self.reply))
            served = self.model(question.model)
            upstreams = services.health.in_order(served, question.model)
            if self.exchange is not None:
                stack.callback(_price, self.exchange, question, served)
            if services.metrics is not None:
                stack.enter_context(services.metrics.counted(self.reply, question, served, meter))
            if key is not None and key.allowances and services.spending is not None:
                meter.input_tokens = tokens_of(question.request)
                await stack.enter_async_context(services.spending.charged(key, question, served, meter))
            async with until_gone(self.receive):
                await (answer_stream if question.stream else answer_whole)(question, upstreams, self.reply)


def _price(exchange: Exchange, question: Question, served: ServedModel) -> None:
    """Record where the prices of the answer are found; they are looked up when a user looks."""
    if question.answered_by is not None:
        exchange.prices = partial(served.prices_of, question.answered_by, question.model)

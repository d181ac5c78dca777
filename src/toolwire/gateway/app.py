"""The gateway as an ASGI application: each request is checked, read, passed on, and answered in the client's API."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.routing import Route, Router

from toolwire.errors import StateError
from toolwire.gateway.access import Access
from toolwire.gateway.answering import ClientLeft, Receive, Reply, Send, server_ends, take_back_cancellation
from toolwire.gateway.client_apis import CHAT, ClientApi
from toolwire.gateway.client_calls import ClientCall, Services
from toolwire.gateway.failures import INTERNAL, NOT_FOUND, UNAVAILABLE, GatewayFailure
from toolwire.gateway.key_spending import KeySpending
from toolwire.gateway.model_table import ModelTable
from toolwire.gateway.request_body import MAX_BODY
from toolwire.gateway.routes import ROUTES, Handle
from toolwire.gateway.state_store import StateStore
from toolwire.gateway.stored_responses import StoredResponses
from toolwire.runtime.foreign_code import capture_errors

RESPONSE_SECONDS = 30 * 86_400.0
"""Time for which responses of the Responses API are stored, in seconds."""

LOG = logging.getLogger("toolwire.gateway")


class Gateway:
    """An HTTP server's application that answers in the API of each client, and asks any backend.

    Args:
        models: the models that it offers.
        access: the requests that it answers.
        max_body: maximum size of a request's body, in bytes.
        store: the state that it shares with other gateways; None if no key is limited and no response is stored.
        response_seconds: the time for which responses of the Responses API are stored; 0 to store none.
    """

    def __init__(
        self,
        models: ModelTable,
        *,
        access: Access | None = None,
        max_body: int = MAX_BODY,
        store: StateStore | None = None,
        response_seconds: float = RESPONSE_SECONDS,
    ) -> None:
        self.access = access or Access()
        self.services = Services(models, max_body)
        if store is not None:
            self.services.spending = KeySpending(store)
            self.services.responses = StoredResponses(store, response_seconds) if response_seconds else None
        self._answers: dict[asyncio.Task[Any], Reply] = {}
        routes = [
            Route(path, _Endpoint(self, route.client_api, route.handle), methods=list(route.methods))
            for route in ROUTES
            for path in route.paths
        ]
        self._router = Router(routes, redirect_slashes=False, default=_Endpoint(self, CHAT, _nothing))

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Handle one connection of ASGI."""
        if scope["type"] != "http":
            return
        await self._router(scope, receive, send)

    @contextmanager
    def answering(self, reply: Reply) -> Iterator[None]:
        """Take part in `end_answers` within the block."""
        task = asyncio.current_task()
        assert task is not None
        self._answers[task] = reply
        try:
            yield
        finally:
            del self._answers[task]

    def end_answers(self) -> None:
        """End all running answers with an error, because the server ends."""
        for task, reply in self._answers.items():
            reply.stopping = True
            task.cancel()


async def _nothing(call: ClientCall) -> None:
    raise GatewayFailure(NOT_FOUND, "there is nothing at this address")


class _Endpoint:
    """The application behind one route: access is checked, and failures are reported in the API's own form."""

    def __init__(self, gateway: Gateway, client_api: ClientApi, handle: Handle) -> None:
        self._gateway = gateway
        self._client_api = client_api
        self._handle = handle

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        id = secrets.token_hex(12)
        reply = Reply(send, self._client_api, ((b"x-request-id", id.encode()),))
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        query = scope["query_string"].decode("latin-1")
        path = scope.get("path_params", {})
        call = ClientCall(self._gateway.services, self._client_api, path, headers, query, receive, reply, id)
        with capture_errors() as captured, self._gateway.answering(reply):
            try:
                call.requester = await self._gateway.access.admit(headers, query)
                await self._handle(call)
            except GatewayFailure as failure:
                await self._refuse(reply, failure)
            except StateError as error:
                LOG.error("the request %s to %s failed: %s", id, scope["path"], error)
                await self._refuse(reply, GatewayFailure(UNAVAILABLE, str(error)))
            except (ClientLeft, ConnectionError):
                return
            except asyncio.CancelledError:
                if not take_back_cancellation(reply):
                    raise
                await self._refuse(reply, server_ends())
        if captured.error is not None:
            LOG.error("the request %s to %s failed", id, scope["path"], exc_info=captured.error)
            if not reply.begun:
                await self._refuse(reply, GatewayFailure(INTERNAL, f"the gateway failed; its log names {id}"))

    async def _refuse(self, reply: Reply, failure: GatewayFailure) -> None:
        if reply.begun:
            return
        headers = {"retry-after": failure.retry_after} if failure.retry_after else {}
        body = json.dumps(self._client_api.failure(failure), ensure_ascii=False).encode()
        await reply.whole(failure.status, body, "application/json", headers)

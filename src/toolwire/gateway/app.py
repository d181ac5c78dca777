"""The gateway as an ASGI application: each request is checked, read, passed on, and answered in the client's API."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from starlette.routing import Route, Router

from toolwire.errors import StateError, capture_errors
from toolwire.gateway.access import Access, Requester
from toolwire.gateway.answering import ClientLeft, Receive, Reply, Send, server_ends, take_back_cancellation
from toolwire.gateway.client_apis import CHAT
from toolwire.gateway.client_calls import ClientCall, Services
from toolwire.gateway.failures import NO_METHOD, GatewayFailure, release_frames
from toolwire.gateway.gateway_metrics import GatewayMetrics
from toolwire.gateway.inspection import RESENT, Resending, Resent, recording
from toolwire.gateway.key_spending import KeySpending
from toolwire.gateway.log_records import LOG
from toolwire.gateway.model_table import ModelTable
from toolwire.gateway.request_body import MAX_BODY
from toolwire.gateway.routes import ROUTES, Address, api_at
from toolwire.gateway.state_store import StateStore, failure_for_operators
from toolwire.gateway.stored_responses import StoredResponses
from toolwire.inspector.inspector import Inspector
from toolwire.inspector.inspector_app import ROOT, InspectorApp
from toolwire.providers.failure_kinds import INTERNAL, NOT_FOUND, UNAVAILABLE

RESPONSE_SECONDS = 30 * 86_400.0
"""Time for which responses of the Responses API are stored, in seconds."""

if TYPE_CHECKING:
    from toolwire.gateway.request_spans import RequestSpans


class Gateway:
    """An HTTP server's application that answers in the API of each client, and asks any backend.

    Args:
        models: the models that it offers.
        access: the requests that it answers.
        max_body: maximum size of a request's body, in bytes.
        store: the state that it shares with other gateways; None if no key is limited and no response is stored.
        response_seconds: the time for which responses of the Responses API are stored; 0 to store none.
        inspector: records requests, and shows them at `/inspector`; None for none.
        spans: writes requests as spans; None if nothing reads spans.
    """

    def __init__(
        self,
        models: ModelTable,
        *,
        access: Access | None = None,
        max_body: int = MAX_BODY,
        store: StateStore | None = None,
        response_seconds: float = RESPONSE_SECONDS,
        inspector: Inspector | None = None,
        spans: RequestSpans | None = None,
    ) -> None:
        self.access = access or Access()
        self.inspector = inspector
        self.services = Services(models, max_body, metrics=GatewayMetrics(), spans=spans)
        if store is not None:
            self.services.spending = KeySpending(store)
            self.services.responses = StoredResponses(store, response_seconds) if response_seconds else None
        self._answers: dict[asyncio.Task[Any], Reply] = {}
        routes: list[Route] = []
        # Most requests have a fixed path, for which no pattern need be tried.
        self._fixed: dict[tuple[str, str], _Endpoint] = {}
        for address in ROUTES:
            for path in address.paths:
                endpoint = _Endpoint(self, address, path)
                routes.append(Route(path, endpoint, methods=list(address.methods)))
                for method in address.methods if "{" not in path else ():
                    self._fixed.setdefault((method, path), endpoint)
        # Routes are tried in their order: what comes here has a path of the gateway, and another method.
        paths = dict.fromkeys(path for route in ROUTES for path in route.paths)
        routes += [Route(path, _Endpoint(self, WRONG_METHOD, path)) for path in paths]
        self._router = Router(routes, redirect_slashes=False, default=_Endpoint(self, NOTHING))
        self._inspector_app: InspectorApp | None = None
        if inspector is not None:
            inspector.resend = Resending(self._router).send
            inspector.list_models = self._model_names
            self._inspector_app = InspectorApp(inspector, hosts=self.access.hosts, origins=self.access.origins)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Handle one connection of ASGI."""
        if scope["type"] != "http":
            return
        if self._inspector_app is not None and f"{scope['path']}/".startswith(f"{ROOT}/"):
            await self._inspector_app(scope, receive, send)
            return
        # An application that this one is mounted in has cut nothing off the path.
        fixed = None if scope.get("root_path") else self._fixed.get((scope["method"], scope["path"]))
        await (self._router if fixed is None else fixed)(scope, receive, send)

    async def _model_names(self) -> list[str]:
        return [model.name for model in await self.services.models.list()]

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


async def _wrong_method(call: ClientCall) -> None:
    raise GatewayFailure(NO_METHOD, "this address does not have this method")


NOTHING = Address((), CHAT, _nothing)
WRONG_METHOD = Address((), CHAT, _wrong_method)


_NEVER_TWICE = frozenset(("host", "origin", "sec-fetch-site"))
"""Headers that decide about access: of two with one name, it is unknown which one counts."""


def _headers_of(scope: Any) -> dict[str, str]:
    """Return the headers, in lower case; of those that must not appear twice, "," if they do."""
    headers: dict[str, str] = {}
    for raw_name, value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        headers[name] = "," if name in headers and name in _NEVER_TWICE else value.decode("latin-1")
    return headers


class _Endpoint:
    """The application behind one route: access is checked, and failures are reported in the API's own form.

    Args:
        gateway: the gateway.
        address: the route; for one without paths, the path of a request decides about the API.
        path: the path of the route, with its variable parts in braces; "" if there is none.
    """

    def __init__(self, gateway: Gateway, address: Address, path: str = "") -> None:
        self._gateway = gateway
        self._client_api = address.client_api if address.paths else None
        self._route = path.replace(":path}", "}")
        self._spans = gateway.services.spans if address.has_spans else None
        self._handle = address.handle
        self._needs_key = address.needs_key
        self._is_recorded = gateway.inspector is not None and address.asks_model

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        resent: Resent | None = scope.get(RESENT)
        id = resent.id if resent is not None else secrets.token_hex(12)
        client_api = self._client_api or api_at(scope["path"])
        access = self._gateway.access
        headers = _headers_of(scope)
        reply = Reply(send, client_api, id, access.browser_headers(headers))
        reply.keeps_alive = self._gateway.services.keeps_alive
        call = ClientCall(
            self._gateway.services,
            client_api,
            scope.get("path_params", {}),
            headers,
            scope["query_string"].decode("latin-1"),
            receive,
            reply,
            id,
        )
        if self._spans is None:
            await self._answer(call, scope, resent)
            return
        with self._spans.request(scope, self._route, headers, client_api.name, reply):
            await self._answer(call, scope, resent)

    async def _answer(self, call: ClientCall, scope: Any, resent: Resent | None) -> None:
        """Answer a request, with an error if it fails."""
        id, reply, headers = call.id, call.reply, call.headers
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            # Browsers ask without a key; whether the page is allowed is in the headers.
            await reply.whole(200, b"", "text/plain")
            return
        with capture_errors() as captured, self._gateway.answering(reply):
            try:
                if resent is not None:  # it continues what the client has stored
                    call.requester = Requester(resent.owner)
                else:
                    call.requester = await self._gateway.access.admit(headers, call.query, needs_key=self._needs_key)
                if self._is_recorded:
                    assert self._gateway.inspector is not None
                    with recording(self._gateway.inspector, call, scope["path"], resent):
                        await self._handle(call)
                else:
                    await self._handle(call)
            except GatewayFailure as failure:
                await self._refuse(reply, failure)
                release_frames(failure)
            except StateError as error:
                LOG.error("the request %s to %s failed: %s", id, scope["path"], failure_for_operators(error))
                await self._refuse(reply, GatewayFailure(UNAVAILABLE, str(error)))
                release_frames(error)
            except (ClientLeft, ConnectionError) as error:
                release_frames(error)
            except asyncio.CancelledError:
                if not take_back_cancellation(reply):
                    raise
                await self._refuse(reply, server_ends())
        if captured.error is not None:
            LOG.error("the request %s to %s failed", id, scope["path"], exc_info=captured.error)
            release_frames(captured.error)
            reply.status = INTERNAL.status
            if not reply.begun:
                await self._refuse(reply, GatewayFailure(INTERNAL, f"the gateway failed; its log names {id}"))

    async def _refuse(self, reply: Reply, failure: GatewayFailure) -> None:
        if reply.begun:
            return
        headers = {"retry-after": failure.retry_after} if failure.retry_after else {}
        body = json.dumps(reply.client_api.failure(failure), ensure_ascii=False).encode("utf-8", "backslashreplace")
        await reply.whole(failure.status, body, "application/json", headers)

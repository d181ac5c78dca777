"""Requests of the gateway as its inspector records them, and requests that the inspector sends once more."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from toolwire.gateway.answering import ClientLeft, Receive, Send
from toolwire.gateway.client_calls import ClientCall
from toolwire.gateway.failures import GatewayFailure
from toolwire.inspector.inspector import Inspector
from toolwire.inspector.recorded_exchange import Exchange

RESENT = "toolwire.resent"
"""The key of a scope of ASGI that only the inspector sets."""
_OWN_HEADERS = frozenset({"host", "content-length", "content-encoding", "origin", "accept"})
"""Headers that belong to one connection, and are not repeated."""


class Resent(NamedTuple):
    """A request that the inspector sends once more.

    Attributes:
        id: its new id.
        original: the id of the request that it repeats.
        owner: the name under which what belongs to the client of that request is stored.
    """

    id: str
    original: str
    owner: str


@contextmanager
def recording(inspector: Inspector, call: ClientCall, path: str, resent: Resent | None) -> Iterator[None]:
    """Record a request, which is answered within the block."""
    exchange = inspector.begin(
        call.id, call.client_api.name, path, call.query, call.headers, resent_from=resent.original if resent else ""
    )
    exchange.owner = call.requester.owner
    call.exchange = call.reply.exchange = exchange
    has_left = False
    try:
        yield
    except GatewayFailure as failure:
        exchange.failure, exchange.status = str(failure), failure.status
        raise
    except (ClientLeft, ConnectionError):
        has_left = True
        raise
    finally:
        # An exception that no line above expects is reported by the log; it leaves no status here.
        call.reply.exchange = None
        if not exchange.status and not has_left and not exchange.failure:
            exchange.failure = "the gateway failed; its log names this request"
        inspector.end(exchange, "left" if has_left else "failed" if exchange.failure else "done")


class Resending:
    """Sends the requests of exchanges once more, through the gateway itself.

    Args:
        application: the gateway's routes.
    """

    def __init__(self, application: Callable[[Any, Receive, Send], Awaitable[None]]) -> None:
        self._application = application
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, exchange: Exchange, model: str) -> str:
        """Send the request of an exchange to a model, and return the id of the new exchange."""
        id = secrets.token_hex(12)
        body = {**exchange.body, "model": model} if "model" in exchange.body else exchange.body
        headers = {name: value for name, value in exchange.headers.items() if value and name not in _OWN_HEADERS}
        data = json.dumps(body).encode()
        headers |= {"content-type": "application/json", "content-length": str(len(data))}
        scope = {
            "type": "http",
            "method": "POST",
            "path": _path(exchange.path.partition("?")[0], model),
            "query_string": b"",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
            RESENT: Resent(id, exchange.id, exchange.owner),
        }
        arrived = [{"type": "http.request", "body": data, "more_body": False}]

        async def receive() -> Any:
            if arrived:
                return arrived.pop()
            await asyncio.Event().wait()  # this client never leaves

        async def discard(message: Any) -> None:
            pass

        task = asyncio.ensure_future(self._application(scope, receive, discard))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # The exchange exists once the task has run for the first time.
        await asyncio.sleep(0)
        return id


def _path(path: str, model: str) -> str:
    """Return the path of a request to another model, for the APIs that have the model there."""
    before, is_in_path, rest = path.partition("/models/")
    return f"{before}/models/{model}:{rest.rpartition(':')[2]}" if is_in_path else path

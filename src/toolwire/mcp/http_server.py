"""The MCP server over HTTP: by default on this machine alone, for clients with the token.

A page in a browser can send requests to this machine too, under a host name that resolves to it. So each request must
name this server as its host, must not come from another origin, and must carry the token. No single check is enough.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import uvicorn
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolwire.errors import ConfigurationError
from toolwire.mcp.server import CURRENT_SESSION, McpService, McpSession, has_duplicate_keys
from toolwire.runtime.local_http import header_value, is_foreign, listen, own_hosts, run_server, url_of

PATH = "/mcp"
MAX_BODY = 4 << 20
"""Maximum size of a request's body, in bytes."""
MAX_HEADERS = 32 << 10
"""Maximum size of a request's headers, in bytes."""
HEADER_SECONDS = 10.0
"""Seconds that a client has for the head of a request, and for the rest of a body after the response."""
BODY_SECONDS = 30.0
IDLE_SECONDS = 600.0
MAX_SESSIONS = 100
MAX_CONNECTIONS = 500
MAX_SILENT = 100
"""Maximum number of connections that wait for the head of a request; a further one closes the oldest of them."""
MAX_EVENTS = 200
"""Maximum number of events that are stored for a client that lost its connection."""
MAX_KEPT = 2 << 20
"""Maximum length of these events, in characters."""
RETRY_MILLISECONDS = 1_000

MIN_TOKEN = 16

_SESSION = "mcp-session-id"
_TOKEN = re.compile(rf"[A-Za-z0-9._~+/=-]{{{MIN_TOKEN},}}")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Address and access of the server.

    Attributes:
        host: the address it listens on.
        port: the port; 0 for any that is free.
        token: the secret that clients must send; "" creates one, None requires none.
        hosts: further names, with their ports, that requests may name as the host.
        origins: origins of web pages that may send requests.
        idle_seconds: seconds after which a session without requests ends.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = ""
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    idle_seconds: float = IDLE_SECONDS


@dataclass(frozen=True, slots=True)
class Listening:
    """The address of a running server.

    Attributes:
        url: address for clients.
        token: secret that clients send as `Authorization: Bearer`; None if they need none.
    """

    url: str
    token: str | None


async def serve_http(
    service: McpService, options: HttpOptions | None = None, *, ready: Callable[[Listening], None] | None = None
) -> None:
    """Serve until cancelled, or until the process receives a signal to end.

    Args:
        service: tools to serve.
        options: address and access.
        ready: called with the address once the server listens.

    Raises:
        ConfigurationError: it cannot listen there, or the token is not valid.
    """
    options = options or HttpOptions()
    if options.token and not _TOKEN.fullmatch(options.token):
        raise ConfigurationError(f"a token has at least {MIN_TOKEN} letters, digits or -._~+/=, and nothing else")
    listener = listen(options.host, options.port)
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(32) if options.token == "" else options.token
    hosts = own_hosts(options.host, port) | {host.lower() for host in options.hosts}
    manager = StreamableHTTPSessionManager(
        service.server,
        event_store=_Events(),
        retry_interval=RETRY_MILLISECONDS,
        session_idle_timeout=options.idle_seconds,
        max_sessions=MAX_SESSIONS,
        max_request_body_size=MAX_BODY,
    )
    guard = Guard(manager, service, hosts=hosts, origins=options.origins, token=token)
    config = uvicorn.Config(
        guard,
        http=_DeadlineProtocol,
        log_level="warning",
        access_log=False,
        ws="none",
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=MAX_HEADERS,
    )
    server = uvicorn.Server(config)
    if ready is not None:
        ready(Listening(url_of(options.host, port) + PATH, token))
    try:
        async with manager.run():
            await run_server(server, listener)
    finally:
        listener.close()


class _DeadlineProtocol(H11Protocol):
    """HTTP with a time limit for the head of a request, so that slow or silent clients occupy no connection.

    The server's own limit applies only between two requests, and any byte ends it.
    """

    _deadline: asyncio.TimerHandle | None = None
    _last: object = None
    """The last request before the limit was started; None before the first one."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the limit for the first request, and close a silent connection if there are too many."""
        super().connection_made(transport)
        self._start_deadline()
        # Connections that send nothing need no token. Without this, a crowd of them would lock out the owner.
        silent = [other for other in self.connections if isinstance(other, _DeadlineProtocol) and other.is_silent]
        # Several connections may be made before those that were closed are gone: each has to close another one.
        silent = [other for other in silent if not other.transport.is_closing()]
        if len(silent) > MAX_SILENT:
            min(silent, key=_DeadlineProtocol.order_of_closing).transport.abort()

    @property
    def is_silent(self) -> bool:
        """True until the head of the next request has arrived."""
        return self.cycle is self._last

    def order_of_closing(self) -> tuple[bool, float]:
        """Return the place in which silent connections are closed: first the oldest without any request."""
        return self._last is not None, self._began

    def on_response_complete(self) -> None:
        """Start the limit for the next request."""
        self._start_deadline()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the limit."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _start_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._last, self._began = self.cycle, self.loop.time()
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._expire, self.cycle)

    def _expire(self, last: object) -> None:
        if self.cycle is last:  # no request has come since
            self.transport.abort()


class Guard:
    """ASGI application that refuses requests from elsewhere, and finds each client's session."""

    def __init__(
        self,
        manager: StreamableHTTPSessionManager,
        service: McpService,
        *,
        hosts: Iterable[str],
        origins: Iterable[str] = (),
        token: str | None,
    ) -> None:
        self._manager = manager
        self._service = service
        self._hosts = frozenset(hosts)
        self._origins = frozenset(f"http://{host}" for host in self._hosts) | frozenset(origins)
        self._token = None if token is None else f"Bearer {token}".encode()
        # Weak: the tasks of a session refer to it, so it is dropped when they end.
        self._sessions: WeakValueDictionary[str, McpSession] = WeakValueDictionary()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            return
        headers = list(scope["headers"])
        if (refusal := self._refusal(scope, headers)) is not None:
            await _answer(send, *refusal)
            return
        session_id = header_value(headers, _SESSION)
        protocol = header_value(headers, "mcp-protocol-version")
        client = self._sessions.get(session_id)
        if client is None and not session_id and (not protocol or protocol in HANDSHAKE_PROTOCOL_VERSIONS):
            client = self._service.open_session()
        token = CURRENT_SESSION.set(client)

        async def send_with_session(message: Any) -> None:
            if message["type"] == "http.response.start" and client is not None and not session_id:
                self._sessions[header_value(list(message.get("headers", ())), _SESSION)] = client
            await send(message)

        try:
            receive = _with_deadline(receive)
            if scope["method"] == "POST":
                body, receive = await _buffer_body(receive)
                if has_duplicate_keys(body.decode(errors="replace")):
                    await _answer(send, 400, "A key appears twice in the body.")
                    return
            await self._manager.handle_request(scope, receive, send_with_session)
        except TimeoutError:
            await _answer(send, 408, "The request took too long to arrive.")
        finally:
            CURRENT_SESSION.reset(token)

    def _refusal(self, scope: Any, headers: list[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        if sum(len(key) + len(value) for key, value in headers) > MAX_HEADERS:
            return 431, f"The headers have more than {MAX_HEADERS} bytes."
        if header_value(headers, "host").lower() not in self._hosts:
            return 421, "This server is not the host that the request names."
        if is_foreign(header_value(headers, "origin"), header_value(headers, "sec-fetch-site"), self._origins):
            return 403, "Pages of other origins may not send requests to this server."
        authorization = header_value(headers, "authorization").encode()
        if self._token is not None and not hmac.compare_digest(authorization, self._token):
            return 401, "The token is missing or wrong: send it as Authorization: Bearer."
        if scope["path"] != PATH:
            return 404, f"There is nothing here but {PATH}."
        return None


def _with_deadline(receive: Any) -> Any:
    """Limit the time in which a body arrives; after it, only the end of the connection can come, at any time."""
    deadline = asyncio.get_running_loop().time() + BODY_SECONDS
    arrived = False

    async def timed() -> Any:
        nonlocal arrived
        if arrived:
            return await receive()
        async with asyncio.timeout_at(deadline):
            message = await receive()
        arrived = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    return timed


async def _buffer_body(receive: Any) -> tuple[bytes, Any]:
    """Return a body, and a function that receives it again.

    For a body that is too long, return b"": the manager refuses it when it receives it again.
    """
    messages: list[Any] = []
    size = 0
    while not messages or (messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False)):
        messages.append(await receive())
        size += len(messages[-1].get("body", b""))
        if size > MAX_BODY:
            break
    body = b"" if size > MAX_BODY else b"".join(message.get("body", b"") for message in messages)
    waiting = deque(messages)

    async def replay() -> Any:
        return waiting.popleft() if waiting else await receive()

    return body, replay


async def _answer(send: Any, status: int, text: str) -> None:
    body = text.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
    with suppress(OSError):
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class _Events(EventStore):
    """Events for clients whose connection broke: stored in their session, and deleted with it."""

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        name = secrets.token_hex(8)
        client = CURRENT_SESSION.get()
        if client is not None:
            text = "" if message is None else message.model_dump_json(by_alias=True, exclude_unset=True)
            client.events[name] = stream_id, text
            while len(client.events) > MAX_EVENTS or sum(len(event) for _, event in client.events.values()) > MAX_KEPT:
                client.events.popitem(last=False)
        return name

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        client = CURRENT_SESSION.get()
        if client is None or last_event_id not in client.events:
            return None
        stream = client.events[last_event_id][0]
        names = list(client.events)
        for name in names[names.index(last_event_id) + 1 :]:
            of, text = client.events.get(name, ("", ""))
            if of == stream and text:
                message = jsonrpc_message_adapter.validate_json(text, by_name=False)
                await send_callback(EventMessage(message, name))
        return stream

"""The gateway's HTTP server: uvicorn, on a socket that is open before the first request can come."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from toolwire.config.gateway_tables import PORT
from toolwire.errors import ConfigurationError
from toolwire.gateway.access import Access
from toolwire.gateway.app import RESPONSE_SECONDS, Gateway
from toolwire.gateway.bounded_connections import bounded_protocol
from toolwire.gateway.model_table import ModelTable
from toolwire.gateway.request_body import MAX_BODY
from toolwire.gateway.state_store import IN_MEMORY, StateStore, open_store
from toolwire.gateway.virtual_keys import VirtualKeys
from toolwire.inspector.inspector import Inspector, InspectorOptions
from toolwire.runtime.local_http import is_loopback, listen, own_hosts, own_hosts_without_port, run_server, url_of
from toolwire.telemetry.defaults import uses_opentelemetry

GRACE = 30
"""Seconds that running answers have to finish when the server ends."""


_LAST_WORDS = 5
"""Seconds that answers have, after the grace, to send the error that ends them."""


if TYPE_CHECKING:
    from toolwire.gateway.request_spans import RequestSpans


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Address of the server, and who may use it.

    Attributes:
        host: the address it listens on.
        port: the port; 0 for any that is free.
        reuse_port: whether several servers may listen on the port.
        keys: the keys that clients may send, without limits.
        virtual_keys: whether clients may send the keys in the store. Without these and `keys`, no key is required,
            which only a loopback address allows.
        hosts: further names that requests may give as the host.
        origins: origins of web pages that may send requests.
        max_body: maximum size of a request's body, in bytes.
        response_seconds: the time for which responses of the Responses API are stored; 0 to store none.
        grace: seconds that running answers have to finish when the server ends.
        inspector: what the inspector keeps of each request, and its key; None for no inspector.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    reuse_port: bool = False
    keys: tuple[str, ...] = field(default=(), repr=False)
    virtual_keys: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    max_body: int = MAX_BODY
    response_seconds: float = RESPONSE_SECONDS
    grace: int = GRACE
    inspector: InspectorOptions | None = None


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop: of uvloop where it is installed, because each piece of a stream costs less there."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def serve(
    models: ModelTable,
    options: ServerOptions | None = None,
    *,
    store: StateStore | None = None,
    spans: RequestSpans | None = None,
    ready: Callable[[str], None] | None = None,
) -> signal.Signals | None:
    """Serve until cancelled, or until the process receives a signal to end.

    The caller closes what is open around the server, and then raises the signal again with `signal.raise_signal`, so
    that the process ends as others expect it.

    Args:
        models: the models that are offered.
        options: the address of the server, and who may use it.
        store: the state that it shares with other gateways; its owner closes it. Without it, the state ends with the
            server.
        spans: writes requests as spans; without it, they are written if the program or the environment configures
            OpenTelemetry.
        ready: called with the server's URL once it listens.

    Returns:
        The signal that ended the server; None if something else did.

    Raises:
        ConfigurationError: it cannot listen there, or anyone could use it.
    """
    options = options or ServerOptions()
    needs_key = bool(options.keys) or options.virtual_keys
    if not needs_key and not is_loopback(options.host):
        raise ConfigurationError(
            f"anyone who reaches {options.host} could use this server: set a key in TOOLWIRE_GATEWAY_KEYS, "
            "or listen on 127.0.0.1"
        )
    if options.inspector is not None and not options.inspector.key:
        raise ConfigurationError("the inspector needs a key")
    own_store = open_store(IN_MEMORY) if store is None else None
    store = store or own_store
    assert store is not None
    listener = listen(options.host, options.port, reuse_port=options.reuse_port)
    port = listener.getsockname()[1]
    # With a key, requests may come under any name: a page that has no key gets nothing.
    names = own_hosts(options.host, port)
    further_names = own_hosts_without_port(options.host) | {name.lower() for name in options.hosts}
    hosts = frozenset() if needs_key else names | further_names
    origins = frozenset(f"http://{name}" for name in names) | frozenset(options.origins)
    access = Access(options.keys, hosts, origins, VirtualKeys(store) if options.virtual_keys else None)
    async with opened_spans() if spans is None else nullcontext(spans) as used_spans:
        gateway = Gateway(
            models,
            access=access,
            max_body=options.max_body,
            store=store,
            response_seconds=options.response_seconds,
            inspector=None if options.inspector is None else Inspector(options.inspector),
            spans=used_spans,
        )
        try:
            return await _run(gateway, listener, options, ready)
        finally:
            listener.close()
            if own_store is not None:
                await own_store.close()


@asynccontextmanager
async def opened_spans() -> AsyncIterator[RequestSpans | None]:
    """Open the writer of spans where OpenTelemetry is used and installed; at the end, those that wait are sent."""
    spans: RequestSpans | None = None
    if uses_opentelemetry():
        with suppress(ImportError):
            from toolwire.gateway.request_spans import configured_spans

            spans = configured_spans()
    try:
        yield spans
    finally:
        if spans is not None:
            await asyncio.to_thread(spans.flush)


class _Server(uvicorn.Server):
    """A server that ends its running answers some time after its end was asked for."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway, grace: float) -> None:
        super().__init__(config)
        self._gateway = gateway
        self._grace = grace
        self.signal: signal.Signals | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the server; the base class would raise the signal again while stores and connections are still open."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.signal = signal.Signals(sig)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._gateway.inspector is not None:
            self._gateway.inspector.close()
        timer = asyncio.get_running_loop().call_later(self._grace, self._gateway.end_answers)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()


async def _run(
    gateway: Gateway, listener: socket.socket, options: ServerOptions, ready: Callable[[str], None] | None
) -> signal.Signals | None:
    config = uvicorn.Config(
        gateway,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        http=bounded_protocol(),
        # The gateway itself ends answers after the grace; this only frees what does not end even then.
        timeout_graceful_shutdown=options.grace + _LAST_WORDS,
    )
    if ready is not None:
        ready(url_of(options.host, listener.getsockname()[1]))
    server = _Server(config, gateway, options.grace)
    await run_server(server, listener)
    return server.signal

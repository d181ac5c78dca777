"""The inspector's page for files: a server on this machine that shows them until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import uvicorn

from toolwire.inspector.inspector import Inspector
from toolwire.inspector.inspector_app import ROOT, InspectorApp
from toolwire.runtime.local_http import listen, own_hosts, run_server, url_of

HOST = "127.0.0.1"


class _FileServer(uvicorn.Server):
    """A server that ends the feeds of open pages before it waits for their connections."""

    def __init__(self, config: uvicorn.Config, inspector: Inspector) -> None:
        super().__init__(config)
        self._inspector = inspector

    async def shutdown(self, sockets: Any = None) -> None:
        self._inspector.close()
        await super().shutdown(sockets)


def show_files(inspector: Inspector, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page until the process ends.

    Args:
        inspector: the contents of the files.
        port: the port; 0 for any that is free.
        ready: called with the page's address, key included.

    Raises:
        ConfigurationError: it cannot listen on the port.
    """
    asyncio.run(_serve(inspector, port, ready))


async def _serve(inspector: Inspector, port: int, ready: Callable[[str], None]) -> None:
    listener = listen(HOST, port)
    try:
        bound = listener.getsockname()[1]
        app = InspectorApp(inspector, hosts=own_hosts(HOST, bound))
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", ws="none", server_header=False,
            proxy_headers=False, timeout_graceful_shutdown=5,
        )  # fmt: skip
        ready(f"{url_of(HOST, bound)}{ROOT}?key={inspector.options.key}")
        await run_server(_FileServer(config, inspector), listener)
    finally:
        listener.close()

"""A gateway with an inspector on a real socket, and its page in Chromium."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from tests.unit.inspector.recorded_exchanges import KEY, question

from toolwire.inspector.inspector_app import ROOT
from toolwire.runtime.local_http import listen, run_server

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


class Served:
    """An application that is served in a thread of its own.

    Attributes:
        url: its address.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        """Serve the application that `make` returns; it is called in the server's own event loop."""
        self._make = make
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(30)

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.app = self._make()
        listener = listen("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(self.app, log_level="error", lifespan="off", ws="none", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._ready.set()
        try:
            await run_server(self._server, listener)
        finally:
            listener.close()

    def call(self, function: Callable[[], None]) -> None:
        """Call a function in the server's event loop."""
        self.loop.call_soon_threadsafe(function)

    def ask(self, api: str, model: str, *, headers: dict[str, str] | None = None, **options: Any) -> bytes:
        """Ask a model of the gateway, and return the whole answer; an error of HTTP is an answer too."""
        path, body = question(api, model, **options)
        return self.post(path, body, headers)

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> bytes:
        sent = {
            "content-type": "application/json",
            "user-agent": "claude-cli/2.1.330 (external)",
            **(headers or {}),
        }
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), sent)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return bytes(error.read())

    def stop(self) -> None:
        self.call(self.app.inspector.close)
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield Chromium; skip the test where it, or the package that drives it, is not installed."""
    if shutil.which(CHROMIUM) is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def open_page(
    browser: Any, served: Served, *, width: int = 1440, height: int = 900, scheme: str = "light", key: str = KEY
) -> Any:
    """Open the inspector, and fail at the end of the test if the page has reported an error."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=False, locale="en-GB"
    )
    page = context.new_page()
    page.set_default_timeout(15_000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.errors = errors
    page.goto(f"{served.url}{ROOT}?key={key}")
    return page

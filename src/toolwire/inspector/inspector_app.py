"""The inspector over HTTP: a page, and the JSON that it reads. Every request needs the inspector's own key."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route, Router

from toolwire.errors import ToolwireError, UnknownFormat
from toolwire.inspector.exchange_exports import conformance_row, curl_command
from toolwire.inspector.exchange_search import matching_ids
from toolwire.inspector.exchange_summary import Json
from toolwire.inspector.inspector import Inspector
from toolwire.runtime.local_http import header_value, is_foreign
from toolwire.wire.format_registry import AUTO, formats, get_format

ROOT = "/inspector"
ROWS = 1_000
"""Maximum number of rows in one answer."""
MAX_BODY = 64 << 10
"""Maximum size of a request's body, in bytes."""
QUIET = 15.0
"""Seconds without a change after which the feed sends a sign that it is alive."""
PAUSE = 0.25
"""Seconds between two reports about running exchanges."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript"}
PAGE = Path(__file__).parent / "page"
Handle = Callable[[Request], Awaitable[Response]]


class InspectorApp:
    """An ASGI application below `/inspector`.

    Args:
        inspector: the exchanges, and the key.
        hosts: the names that requests may give as the host; empty for any.
        origins: the origins of its own pages.
        base_url: the gateway's address, for commands that send a request again; "" for the address of the request.

    Attributes:
        inspector: the same.
    """

    def __init__(
        self,
        inspector: Inspector,
        *,
        hosts: frozenset[str] = frozenset(),
        origins: frozenset[str] = frozenset(),
        base_url: str = "",
    ) -> None:
        self.inspector = inspector
        self._hosts = hosts
        self._origins = origins
        self._base_url = base_url
        self._cookie = "toolwire_inspector_" + hashlib.sha256(inspector.options.key.encode()).hexdigest()[:8]
        api, exchange = f"{ROOT}/api", f"{ROOT}/api/exchanges/{{id}}"
        self._router = Router(
            [
                Route(ROOT, self._page),
                Route(f"{ROOT}/", self._page),
                Route(f"{ROOT}/key", self._take_key, methods=["POST"]),
                Route(f"{ROOT}/page/{{name}}", _static),
                Route(f"{api}/about", self._guarded(self._about)),
                Route(f"{api}/rows", self._guarded(self._rows)),
                Route(f"{api}/feed", self._guarded(self._feed)),
                Route(f"{api}/search", self._guarded(self._search)),
                Route(f"{api}/export", self._guarded(self._export)),
                Route(f"{api}/clear", self._guarded(self._clear), methods=["POST"]),
                Route(exchange, self._guarded(self._exchange)),
                Route(f"{exchange}/curl", self._guarded(self._curl)),
                Route(f"{exchange}/row", self._guarded(self._test_row)),
                Route(f"{exchange}/pin", self._guarded(self._pin), methods=["POST"]),
                Route(f"{exchange}/resend", self._guarded(self._resend), methods=["POST"]),
            ],
            redirect_slashes=False,
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request of ASGI."""
        request = Request(scope)
        host = header_value(scope["headers"], "host").lower()
        if self._hosts and host not in self._hosts:
            await _refused(403, "this server is not the host that the request names")(scope, receive, send)
            return
        origin, fetch_site = header_value(scope["headers"], "origin"), header_value(scope["headers"], "sec-fetch-site")
        # A link from elsewhere may open the page itself; it shows nothing without the cookie.
        is_link = request.method == "GET" and not origin and request.headers.get("sec-fetch-mode") == "navigate"
        origins = self._origins | {f"http://{host}", f"https://{host}"}
        if not is_link and is_foreign(origin, fetch_site, origins):
            await _refused(403, "pages of other origins may not use the inspector")(scope, receive, send)
            return
        await self._router(scope, receive, send)

    # -- access -------------------------------------------------------------------------------------------------------

    def _is_key(self, key: str) -> bool:
        return hmac.compare_digest(key.encode("utf-8", "replace"), self.inspector.options.key.encode())

    def _has_key(self, request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_key(token.strip()):
            return True
        return self._is_key(request.cookies.get(self._cookie, ""))

    def _guarded(self, handle: Handle) -> Handle:
        async def guarded(request: Request) -> Response:
            if not self._has_key(request):
                return _refused(401, "the inspector needs its key")
            return await handle(request)

        return guarded

    async def _page(self, request: Request) -> Response:
        if key := request.query_params.get("key"):
            return self._admitted(key)
        return _file("index.html") if self._has_key(request) else _file("locked.html", 401)

    async def _take_key(self, request: Request) -> Response:
        body = await _body_of(request)
        return self._admitted(parse_qs(body.decode("utf-8", "replace")).get("key", [""])[0].strip())

    def _admitted(self, key: str) -> Response:
        """Return the page without the key in its address, and a cookie in its place."""
        if not self._is_key(key):
            return _file("wrong-key.html", 401)
        response = RedirectResponse(ROOT, 303, HEADERS)
        response.set_cookie(self._cookie, key, path=ROOT, httponly=True, samesite="strict")
        return response

    # -- the list -----------------------------------------------------------------------------------------------------

    async def _about(self, request: Request) -> Response:
        inspector = self.inspector
        models = await inspector.list_models() if inspector.list_models is not None else []
        return _json(
            {
                "source": inspector.source,
                "content": inspector.options.content,
                "models": list(models) if inspector.resend is not None else [],
                "formats": [AUTO, *formats()],
                "exchanges": inspector.options.exchanges,
                "memory": inspector.options.memory,
                "evicted": inspector.ring.evicted,
            }
        )

    async def _rows(self, request: Request) -> Response:
        before = _number(request, "before", 1 << 60)
        version = self.inspector.ring.version
        rows = await asyncio.to_thread(self.inspector.rows, before, ROWS)
        return _json({"rows": rows, "version": version, "more": len(rows) == ROWS})

    async def _feed(self, request: Request) -> Response:
        since = _decimal(request.headers.get("last-event-id", ""), _number(request, "since", 0))
        headers = {**HEADERS, "x-accel-buffering": "no"}
        return StreamingResponse(self._changes(since), media_type="text/event-stream", headers=headers)

    async def _changes(self, since: int) -> AsyncIterator[bytes]:
        inspector, ring = self.inspector, self.inspector.ring
        yield b"retry: 1000\n\n"
        while not inspector.is_closing:
            version = ring.version
            rows = await asyncio.to_thread(inspector.rows_since, since)
            since = version
            if rows:
                data = json.dumps({"rows": rows, "oldest": ring.oldest}, ensure_ascii=False)
                yield f"id: {version}\ndata: {data}\n\n".encode()
            else:
                yield b": nothing new\n\n"
            await asyncio.sleep(PAUSE)
            if ring.version == since and not inspector.is_closing and not ring.running():
                await ring.changed(QUIET)

    async def _search(self, request: Request) -> Response:
        text = request.query_params.get("text", "")[:200]
        return _json({"ids": await asyncio.to_thread(matching_ids, self.inspector, text)})

    async def _export(self, request: Request) -> Response:
        chosen = request.query_params.get("id")
        ids = [chosen] if chosen else self.inspector.ids()

        async def lines() -> AsyncIterator[bytes]:
            for id in ids:
                view = await asyncio.to_thread(self.inspector.view, id)
                if view is not None:
                    yield json.dumps(view, ensure_ascii=False).encode() + b"\n"

        name = f"toolwire-{chosen[:12]}" if chosen else "toolwire-exchanges"
        headers = {**HEADERS, "content-disposition": _attachment(f"{name}.jsonl")}
        return StreamingResponse(lines(), media_type="application/x-ndjson", headers=headers)

    async def _clear(self, request: Request) -> Response:
        self.inspector.ring.clear()
        return _json({"cleared": True})

    # -- one exchange -------------------------------------------------------------------------------------------------

    async def _view(self, request: Request, *, start: int = 0, format: str | None = None) -> Json | None:
        return await asyncio.to_thread(self.inspector.view, request.path_params["id"], start=start, format=format)

    async def _exchange(self, request: Request) -> Response:
        format = request.query_params.get("format")
        try:
            if format not in (None, "", AUTO):
                format = get_format(str(format)).name
        except UnknownFormat as error:
            return _refused(400, str(error))
        view = await self._view(request, start=_number(request, "start", 0), format=format)
        return _missing() if view is None else _json(view)

    async def _curl(self, request: Request) -> Response:
        view = await self._view(request)
        if view is None:
            return _missing()
        base = self._base_url or f"{request.url.scheme}://{request.headers.get('host', '')}"
        return Response(curl_command(view, base), media_type="text/plain", headers=HEADERS)

    async def _test_row(self, request: Request) -> Response:
        view = await self._view(request)
        if view is None:
            return _missing()
        headers = {**HEADERS, "content-disposition": _attachment(f"row-{view['row']['id'][:12]}.jsonl")}
        body = json.dumps(conformance_row(view), ensure_ascii=False) + "\n"
        return Response(body, media_type="application/x-ndjson", headers=headers)

    async def _pin(self, request: Request) -> Response:
        exchange = self.inspector.ring.find(request.path_params["id"])
        if exchange is None:
            return _missing()
        exchange.pinned = (await _object_of(request)).get("pinned") is True
        self.inspector.ring.touch(exchange)
        return _json({"pinned": exchange.pinned})

    async def _resend(self, request: Request) -> Response:
        exchange = self.inspector.ring.find(request.path_params["id"])
        if exchange is None or self.inspector.resend is None:
            return _missing()
        if not isinstance(exchange.body, dict):
            return _refused(409, "the body of this request was not kept")
        model = (await _object_of(request)).get("model")
        if not isinstance(model, str) or not model:
            return _refused(400, "name the model in the member `model`")
        try:
            return _json({"id": await self.inspector.resend(exchange, model)})
        except ToolwireError as error:
            return _refused(400, str(error))


def _json(value: Any) -> Response:
    return Response(json.dumps(value, ensure_ascii=False).encode(), media_type="application/json", headers=HEADERS)


def _refused(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status, HEADERS)


def _missing() -> Response:
    return _refused(404, "this request is not kept any more")


def _attachment(name: str) -> str:
    return f'attachment; filename="{"".join(c for c in name if c.isalnum() or c in "-._")}"'


def _number(request: Request, name: str, default: int) -> int:
    return _decimal(request.query_params.get(name, ""), default)


def _decimal(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and len(text) < 19 else default


async def _body_of(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY:
            return b""
    return body


async def _object_of(request: Request) -> Json:
    try:
        value = json.loads(await _body_of(request))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


@lru_cache
def _contents(name: str) -> bytes:
    return (PAGE / name).read_bytes()


@lru_cache
def _names() -> frozenset[str]:
    return frozenset(path.name for path in PAGE.iterdir() if path.suffix in MEDIA_TYPES)


def _file(name: str, status: int = 200) -> Response:
    media_type = MEDIA_TYPES[Path(name).suffix]
    return Response(_contents(name), status, HEADERS, f"{media_type}; charset=utf-8")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    return _file(name) if name in _names() and not name.endswith(".html") else _missing()

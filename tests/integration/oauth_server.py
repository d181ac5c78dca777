"""An MCP server that wants a login, and the place to sign in, both in one process on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

TOKEN = "the-token"


class Place:
    """What the server says, and what it was asked.

    Attributes:
        authorize: where it sends people to sign in, if not to itself.
        elsewhere: where it says that its authorization server is, if not here.
    """

    def __init__(self, *, authorize: str = "", elsewhere: str = "") -> None:
        self.base = ""
        self.authorize = authorize
        self.elsewhere = elsewhere
        self.asked: list[str] = []
        self.codes: dict[str, str] = {}

    def get(self, path: str) -> tuple[int, Any]:
        if path.startswith("/.well-known/oauth-protected-resource"):
            return 200, {"resource": f"{self.base}/mcp", "authorization_servers": [self.elsewhere or self.base]}
        if path.startswith("/.well-known/"):
            return 200, {
                "issuer": self.base,
                "authorization_endpoint": self.authorize or f"{self.base}/authorize",
                "token_endpoint": f"{self.base}/token",
                "registration_endpoint": f"{self.base}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            }
        return 405, {}

    def post(self, path: str, body: bytes, authorization: str) -> tuple[int, Any]:
        if path == "/register":
            given = json.loads(body)
            return 201, {**given, "client_id": "ours", "token_endpoint_auth_method": "none"}
        if path == "/token":
            code = parse_qs(body.decode()).get("code", [""])[0]
            known = code == "the-code"
            return (
                (200, {"access_token": TOKEN, "token_type": "Bearer"}) if known else (400, {"error": "invalid_grant"})
            )
        if authorization != f"Bearer {TOKEN}":
            return 401, {}
        return self.mcp(json.loads(body))

    def mcp(self, message: dict[str, Any]) -> tuple[int, Any]:
        if "id" not in message:
            return 202, None
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "guarded", "version": "1"}}
        results = {
            "initialize": {"protocolVersion": "2025-06-18", **about},
            "tools/list": {"tools": [{"name": "t", "description": "T.", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "inside"}]},
        }
        if message["method"] not in results:
            return 200, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}
        return 200, {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}


@contextmanager
def guarded(place: Place) -> Iterator[str]:
    """The address of the MCP server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass

        def answer(self, status: int, value: Any) -> None:
            body = b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            if status == 401:
                at = f"{place.base}/.well-known/oauth-protected-resource"
                self.send_header("www-authenticate", f'Bearer resource_metadata="{at}"')
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            place.asked.append(f"GET {self.path}")
            self.answer(*place.get(self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            place.asked.append(f"POST {self.path}")
            self.answer(*place.post(self.path, body, self.headers.get("authorization", "")))

        do_DELETE = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    place.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"{place.base}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

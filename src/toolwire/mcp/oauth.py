"""OAuth login to an MCP server: the SDK's flow, a local callback, and a store for the tokens.

The address of the login page comes from the server, so it is untrusted content: it is checked and shown, and the user
opens it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError, TokenStorage
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, ValidationError

from toolwire.mcp.approvals import Store
from toolwire.mcp.definitions import clean
from toolwire.mcp.http_client import HttpAuth
from toolwire.mcp.servers import McpServer, check_url
from toolwire.policy.policy import Host

SECONDS = 300.0
"""Seconds that the user has to sign in."""
MAX_REQUEST = 16 << 10
"""Maximum size of the request that returns from the login page, in bytes."""
MAX_REASON = 300
CALLBACK = "/callback"
REFUSED = "You were not signed in, and can close this page."
DONE = "You are signed in, and can close this page."

_PRIVATE = Host("private")


class Logins(Store):
    """Tokens and registrations, by server; other users of this machine cannot read the file."""

    def get(self, server: McpServer, url: str, kind: str) -> str | None:
        """Return the value that is stored for a server at an address."""
        with self._open() as store:
            rows = store.execute(
                "SELECT value FROM logins WHERE source = ? AND server = ? AND url = ? AND kind = ?",
                (server.source, server.name, url, kind),
            ).fetchall()
        return str(rows[0][0]) if rows else None

    def put(self, server: McpServer, url: str, kind: str, value: str) -> None:
        """Store a value for a server at an address."""
        with self._open() as store:
            store.execute(
                "INSERT OR REPLACE INTO logins (source, server, url, kind, value) VALUES (?, ?, ?, ?, ?)",
                (server.source, server.name, url, kind, value),
            )


class _StoredTokens(TokenStorage):
    def __init__(self, logins: Logins, server: McpServer, url: str, port: int) -> None:
        self._logins, self._server, self._url, self._port = logins, server, url, port

    async def get_tokens(self) -> OAuthToken | None:
        text = self._logins.get(self._server, self._url, "tokens")
        return OAuthToken.model_validate_json(text) if text else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._logins.put(self._server, self._url, "tokens", tokens.model_dump_json(exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        text = self._logins.get(self._server, self._url, "client")
        return OAuthClientInformationFull.model_validate_json(text) if text else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._logins.put(self._server, self._url, "client", client_info.model_dump_json(exclude_none=True))
        self._logins.put(self._server, self._url, "port", str(self._port))


def login(server: McpServer, show: Callable[[str], None], logins: Logins | None = None) -> HttpAuth:
    """Return the authentication of requests to a server, for `McpRouter(auth=...)`.

    Args:
        server: the server.
        show: shows the user the address to open in a browser, which then returns to a port of this machine.
        logins: store for the tokens; in memory alone, if not given.

    Raises:
        ConfigurationError: the server's address cannot be used.
    """
    logins = logins or Logins()
    url = server.launch().url
    port = int(logins.get(server, url, "port") or 0) or _free_port()
    back: asyncio.Queue[AuthorizationCodeResult | OAuthFlowError] = asyncio.Queue()
    listening: list[asyncio.Server] = []
    states: list[str] = []

    async def on_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        result = None
        try:
            async with asyncio.timeout(SECONDS):
                line = (await reader.readuntil(b"\r\n"))[:MAX_REQUEST].decode("latin-1").split(" ")
                result = _result(line[1] if line[0] == "GET" and len(line) == 3 else "", states)
                text = "This is not the answer of a login page." if result is None else DONE
                text = REFUSED if isinstance(result, OAuthFlowError) else text
                status = "200 OK" if result is not None else "400 Bad Request"
                writer.write(
                    f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {len(text)}\r\n"
                    f"connection: close\r\n\r\n{text}".encode()
                )
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()
        if result is not None:
            back.put_nowait(result)

    async def redirect_user(address: str) -> None:
        check_login(address, server=url)
        states[:] = parse_qs(urlsplit(address).query).get("state", [])
        listening.append(await asyncio.start_server(on_request, "127.0.0.1", port, limit=MAX_REQUEST))
        show(address)

    async def wait_for_code() -> AuthorizationCodeResult:
        try:
            async with asyncio.timeout(SECONDS):
                answer = await back.get()
        except TimeoutError as error:
            raise OAuthFlowError(f"the login was not completed within {SECONDS:g} seconds") from error
        finally:
            listening.pop().close()
        if isinstance(answer, OAuthFlowError):
            raise answer
        return answer

    redirect = AnyUrl(f"http://127.0.0.1:{port}{CALLBACK}")
    about = OAuthClientMetadata(client_name="Toolwire", redirect_uris=[redirect])
    return OAuthClientProvider(url, about, _StoredTokens(logins, server, url, port), redirect_user, wait_for_code)


def check_login(address: str, *, server: str) -> None:
    """Refuse a login page that the user should not be sent to.

    Raises:
        OAuthFlowError: it is not a plain http or https URL, it is neither encrypted nor on a private network, or a
            public server names a private address.
    """
    try:
        check_url(address)
    except ValueError as error:
        raise OAuthFlowError(f"the server names a login page that cannot be used: {error}") from error
    inside = _PRIVATE.surely(address)
    if urlsplit(address).scheme != "https" and not inside:
        raise OAuthFlowError("the server names a login page that is not encrypted")
    if inside and not _PRIVATE.surely(server):
        raise OAuthFlowError("the server names a login page at a private address")


def _result(target: str, states: list[str]) -> AuthorizationCodeResult | OAuthFlowError | None:
    """Return the result of the login from the target of the browser's request; None if it contains none.

    Any page can send a browser here. So a refusal counts only with the `state` of the login page's address; for a code,
    the SDK checks that.
    """
    parts = urlsplit(target)
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    if parts.path != CALLBACK:
        return None
    if "error" in query and query.get("state") in states:
        why = " ".join(clean(f"{query['error']}: {query.get('error_description', '')}", MAX_REASON).split())
        return OAuthFlowError(f"the login was refused: {why.rstrip(': ')}")
    if "code" not in query:
        return None
    try:
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))
    except ValidationError:
        return None


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])

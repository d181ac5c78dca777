"""Signing in to a server over OAuth: the SDK's flow, with a user who opens the page and a place for the tokens.

The address to sign in at comes from the server, so it is text like any other: it is looked at, shown, and never opened
from here.
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
from toolwire.mcp.definitions import cleaned
from toolwire.mcp.http_client import HttpAuth
from toolwire.mcp.servers import McpServer, check_url
from toolwire.policy.policy import Host

SECONDS = 300.0
"""How long somebody has to sign in."""
MAX_REQUEST = 16 << 10
MAX_REASON = 300
CALLBACK = "/callback"
REFUSED = "You were not signed in, and can close this page."
DONE = "You are signed in, and can close this page."

_PRIVATE = Host("private")


class Logins(Store):
    """Tokens and registrations, by server; nobody else on this machine may read the file."""

    def get(self, server: McpServer, url: str, kind: str) -> str | None:
        """What is kept for a server at an address."""
        with self._open() as store:
            rows = store.execute(
                "SELECT value FROM logins WHERE source = ? AND server = ? AND url = ? AND kind = ?",
                (server.source, server.name, url, kind),
            ).fetchall()
        return str(rows[0][0]) if rows else None

    def put(self, server: McpServer, url: str, kind: str, value: str) -> None:
        """Keep something for a server at an address."""
        with self._open() as store:
            store.execute(
                "INSERT OR REPLACE INTO logins (source, server, url, kind, value) VALUES (?, ?, ?, ?, ?)",
                (server.source, server.name, url, kind, value),
            )


class _Kept(TokenStorage):
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
    """What signs requests to a server in, for `McpRouter(auth=...)`.

    Args:
        server: the server.
        show: shows somebody the address to open in a browser, which then comes back to a port of this machine.
        logins: where tokens are kept; in memory alone, if not given.

    Raises:
        ConfigurationError: the server's address cannot be used.
    """
    logins = logins or Logins()
    url = server.launch().url
    port = int(logins.get(server, url, "port") or 0) or _free_port()
    back: asyncio.Queue[AuthorizationCodeResult | OAuthFlowError] = asyncio.Queue()
    listening: list[asyncio.Server] = []
    states: list[str] = []

    async def arrived(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        result = None
        try:
            async with asyncio.timeout(SECONDS):
                line = (await reader.readuntil(b"\r\n"))[:MAX_REQUEST].decode("latin-1").split(" ")
                result = _result(line[1] if line[0] == "GET" and len(line) == 3 else "", states)
                text = "This is no answer of a place to sign in." if result is None else DONE
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

    async def opened(address: str) -> None:
        check_login(address, server=url)
        states[:] = parse_qs(urlsplit(address).query).get("state", [])
        listening.append(await asyncio.start_server(arrived, "127.0.0.1", port, limit=MAX_REQUEST))
        show(address)

    async def came() -> AuthorizationCodeResult:
        try:
            async with asyncio.timeout(SECONDS):
                answer = await back.get()
        except TimeoutError as error:
            raise OAuthFlowError(f"nobody signed in within {SECONDS:g} seconds") from error
        finally:
            listening.pop().close()
        if isinstance(answer, OAuthFlowError):
            raise answer
        return answer

    redirect = AnyUrl(f"http://127.0.0.1:{port}{CALLBACK}")
    about = OAuthClientMetadata(client_name="Toolwire", redirect_uris=[redirect])
    return OAuthClientProvider(url, about, _Kept(logins, server, url, port), opened, came)


def check_login(address: str, *, server: str) -> None:
    """Refuse an address that nobody should be sent to.

    Raises:
        OAuthFlowError: it is no plain http or https URL, it is not encrypted and leads out of this machine, or a server
            out in the world sends somebody to a private address.
    """
    try:
        check_url(address)
    except ValueError as error:
        raise OAuthFlowError(f"the server names an address to sign in at that is none: {error}") from error
    inside = _PRIVATE.surely(address)
    if urlsplit(address).scheme != "https" and not inside:
        raise OAuthFlowError("the server names an address to sign in at that is not encrypted")
    if inside and not _PRIVATE.surely(server):
        raise OAuthFlowError("the server names an address to sign in at that is private")


def _result(target: str, states: list[str]) -> AuthorizationCodeResult | OAuthFlowError | None:
    """What the browser came back with; None if it is none of an answer.

    Others can send a browser here too: a refusal counts with the state that the address had alone, and a code is
    checked for it by the SDK.
    """
    parts = urlsplit(target)
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    if parts.path != CALLBACK:
        return None
    if "error" in query and query.get("state") in states:
        why = " ".join(cleaned(f"{query['error']}: {query.get('error_description', '')}", MAX_REASON).split())
        return OAuthFlowError(f"signing in was refused: {why.rstrip(': ')}")
    if "code" not in query:
        return None
    try:
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))
    except ValidationError:
        return None


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])

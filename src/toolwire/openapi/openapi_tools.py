"""Tools from an OpenAPI document: `OpenApi` makes a tool of each operation, and sends its calls with httpx.

The user says where requests go and what authenticates them. The document says neither, unless `trust_servers` is set.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from os import PathLike
from typing import Any, TypedDict
from urllib.parse import urlsplit

import httpx
from typing_extensions import Unpack

from toolwire._surface import check_number, check_type, wrong_type
from toolwire.client.public_addresses import PrivateAddressError, is_private, look_up, proxy_of, send_to_public
from toolwire.errors import ConfigurationError, DefinitionError, ToolError
from toolwire.openapi.api_document import ApiDocument, OperationSource, load_document
from toolwire.openapi.operations import ApiRequest, Operation, operation_name, read_operation
from toolwire.openapi.responses import read_response
from toolwire.text.suggest import check_options, closest, did_you_mean
from toolwire.tools import Tool, ToolBehavior, ToolOptions

_VARIABLE = re.compile(r"\{([^{}]*)\}")


class OpenApiOptions(TypedDict, total=False):
    """Options of `OpenApi`.

    Attributes:
        base_url: the address before the paths of the document, such as "https://api.example.com/v1".
        trust_servers: send requests to the servers that the document names, if there is no `base_url`. With headers,
            they get these too.
        headers: headers of each request, such as `Authorization`; neither document nor model can set them.
        query: names and values in the query of each request, which neither document nor model can set.
        only: names of the operations to use; None for all that can be called.
        options: options of tools by the name of the operation, such as `{"createOrder": {"destructive": True}}`.
        strict: check the whole document against the specification; needs the extra `openapi`.
        client: a client of your own, for connections that stay open, proxies or certificates; by default each call
            makes one.
        timeout: maximum number of seconds of a call.
        max_bytes: maximum size of a response, in bytes; a longer one is an error.
    """

    base_url: str
    trust_servers: bool
    headers: Mapping[str, str]
    query: Mapping[str, str]
    only: Iterable[str] | None
    options: Mapping[str, ToolOptions]
    strict: bool
    client: httpx.AsyncClient | None
    timeout: float
    max_bytes: int


class OpenApi:
    """The operations of an OpenAPI document (3.0 or 3.1) as tools.

    GET has the tier WALK, other methods RUN, and each DELETE needs an approval; `options` changes that. Results count
    as untrusted content. An operation that cannot be called is left out, unless `only` names it.

    Args:
        document: a file, JSON or YAML; or the document as a dict.
        options: see `OpenApiOptions`.

    Attributes:
        tools: the tools, by the names of their operations.
        skipped: the reasons for which operations are not tools, by name.

    Raises:
        ConfigurationError: the document cannot be read, or nobody says where requests go.
        DefinitionError: there is no operation of a name, or it cannot be called.
        TypeError: an argument has another type, or an option is unknown.
    """

    def __init__(self, document: str | PathLike[str] | Mapping[str, Any], **options: Unpack[OpenApiOptions]) -> None:
        check_options("OpenApi", options, OpenApiOptions.__annotations__)
        only = options.get("only")
        if isinstance(only, str):
            raise wrong_type("only", only, "an iterable of names of operations")
        loaded = load_document(document, strict=options.get("strict", False))
        self._sender = _Sender(options)
        self.tools: list[Tool[..., Any]] = []
        self.skipped: dict[str, str] = {}
        sources = _named(loaded)
        chosen = set(sources if only is None else only)
        changes = options.get("options") or {}
        for name in (*chosen, *changes):
            if name not in sources:
                hint = did_you_mean(closest(name, sources)) or "."
                raise DefinitionError(f"the document has no operation {name!r:.80}{hint}")
        for name, source in sources.items():
            if name not in chosen:
                continue
            try:
                operation = read_operation(loaded, source, self._sender.fixed, name)
                base_url = self._sender.base_url(loaded, source)
            except DefinitionError as error:
                if only is not None:
                    raise
                self.skipped[name] = str(error)
                continue
            self.tools.append(self._tool(operation, base_url).replace(**changes.get(name, {})))

    def __repr__(self) -> str:
        """Return the number of tools."""
        return f"<OpenApi of {len(self.tools)} tools, {len(self.skipped)} operations skipped>"

    def _tool(self, operation: Operation, base_url: str) -> Tool[..., Any]:
        sender = self._sender

        async def run(**arguments: Any) -> Any:
            return await sender.send(operation.request(arguments), base_url)

        def preview(arguments: dict[str, Any]) -> str:
            # Without what the user adds to the query, which may be a secret.
            request = operation.request(arguments)
            return f"{request.method} {request.url(base_url, {})}"

        run.__name__ = run.__qualname__ = operation.definition.name
        return Tool(run, operation.definition, ToolBehavior(preview=preview, idempotent=operation.method == "get"))


def _named(document: ApiDocument) -> dict[str, OperationSource]:
    """Return the operations by names that differ."""
    named: dict[str, OperationSource] = {}
    for source in document.operations():
        base = name = operation_name(source)
        number = 1
        while name in named:
            number += 1
            name = f"{base[:60]}_{number}"
        named[name] = source
    return named


class _Sender:
    """Sends requests as the user configured it."""

    def __init__(self, options: OpenApiOptions) -> None:
        self._base_url = options.get("base_url", "")
        self._trusts = options.get("trust_servers", False)
        self._headers, self._query = dict(options.get("headers") or {}), dict(options.get("query") or {})
        self._client = options.get("client")
        self._timeout, self._max_bytes = options.get("timeout", 30.0), options.get("max_bytes", 1_000_000)
        try:
            checked = httpx.Headers(self._headers)
        except (UnicodeEncodeError, TypeError, AttributeError) as error:
            raise ConfigurationError("headers= maps names of headers to text in ASCII") from error
        if any("\n" in text or "\r" in text for pair in checked.multi_items() for text in pair):
            raise ConfigurationError("headers= contains a line break")
        check_type("base_url", self._base_url, str, "text, such as 'https://api.example.com'")
        check_number("timeout", self._timeout, "a number of seconds")
        check_number("max_bytes", self._max_bytes, "a number of bytes", whole=True)
        if self._base_url:
            _check_url(self._base_url)
        elif not self._trusts:
            raise ConfigurationError(
                "base_url= says where requests go; trust_servers=True uses the servers that the document names"
            )

    @property
    def fixed(self) -> set[str]:
        """The headers and, with `?` before it, the names in the query that the user sets; in lower case."""
        of_client = (
            () if self._client is None else (*self._client.headers, *(f"?{name}" for name in self._client.params))
        )
        return {name.lower() for name in (*self._headers, *of_client, *(f"?{name}" for name in self._query))}

    def base_url(self, document: ApiDocument, source: OperationSource) -> str:
        """Return the address before the path of an operation.

        Raises:
            DefinitionError: the document names no server, or one that is not on the public internet.
        """
        if self._base_url:
            return self._base_url.rstrip("/")
        owners = (source.operation, source.item, document.root)
        servers = next((listed for owner in owners if (listed := owner.get("servers"))), None)
        try:
            url = _server_url(servers)
            _check_url(url)
        except (ConfigurationError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise DefinitionError("the document names no server with a whole address; pass base_url=") from error
        if is_private(url):
            raise DefinitionError(f"the document names the private server {url:.200}; pass it as base_url=")
        return url.rstrip("/")

    async def send(self, request: ApiRequest, base_url: str) -> Any:
        """Send a request, and return the result of the call.

        Raises:
            ToolError: the server cannot be reached, or its answer is an error or too long.
        """
        url = request.url(base_url, self._query)
        host = urlsplit(base_url).netloc
        # The user's headers come last: nothing that a document or a model wrote stays under their names.
        headers = httpx.Headers({**request.headers, "Accept-Encoding": "identity"})
        headers.update(self._headers)
        try:
            async with asyncio.timeout(self._timeout), self._opened() as client:
                built = client.build_request(request.method, url, headers=headers, content=request.content)
                response = await self._send(client, built)
                try:
                    return await read_response(response, self._max_bytes)
                finally:
                    await response.aclose()
        except TimeoutError as error:
            raise ToolError(f"{host} did not answer within {self._timeout:g} seconds.") from error
        except PrivateAddressError as error:
            raise ToolError(f"{error}; a server there has to be passed as base_url=.") from error
        except (httpx.RequestError, httpx.InvalidURL, OSError, UnicodeError) as error:
            raise ToolError(f"{host} cannot be reached: {type(error).__name__}.") from error

    async def _send(self, client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        """Send a request to the server that the user named; or to a public address of one that the document named.

        A redirect is not followed: it could lead the request, and the user's headers with it, to another server.
        """
        url = request.url
        # A client of the user's own, or a proxy, looks names up itself.
        if self._base_url or self._client is not None or proxy_of(url.scheme, url.host, url.port):
            return await client.send(request, stream=True, follow_redirects=False)
        send = partial(client.send, stream=True, follow_redirects=False)
        return await send_to_public(request, send, (httpx.ConnectError, httpx.ConnectTimeout), look_up, is_private)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[httpx.AsyncClient]:
        if self._client is not None:
            yield self._client
            return
        # Connections belong to one event loop, and a program may use several: each call opens its own.
        async with httpx.AsyncClient(timeout=self._timeout, verify=_certificates()) as client:
            yield client


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Return the certificates that are trusted; reading them takes longer than a call."""
    return httpx.create_ssl_context()


def _server_url(servers: Any) -> str:
    """Return the address of the first server of a list, with the defaults of its variables."""
    server = servers[0]
    variables = server.get("variables", {})
    replace: Callable[[re.Match[str]], str] = lambda match: str(variables[match[1]]["default"])  # noqa: E731
    return _VARIABLE.sub(replace, str(server["url"]))


def _check_url(url: str) -> None:
    """Check the address before the paths.

    Raises:
        ConfigurationError: it is not an http or https address, or names a user, a query or a fragment.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(f"base_url {url!r:.200} is not an address: {error}") from error
    if parts.scheme not in ("http", "https") or not host or not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigurationError(
            f"base_url {url!r:.200} is not the address of a server, such as https://api.example.com"
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigurationError("base_url names no user, query or fragment; secrets belong in headers= or query=")

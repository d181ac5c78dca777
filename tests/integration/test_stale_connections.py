"""Servers that close connections which they kept open, and requests that meet such a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from toolwire import ProviderError
from toolwire.client import transport
from toolwire.client.exchange import HttpRequest
from toolwire.client.transport import HttpTransport
from toolwire.gateway.aiohttp_transport import AiohttpTransport

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok"
TRANSPORTS = pytest.mark.parametrize("make", [HttpTransport, AiohttpTransport])


async def answers(make: Callable[[], Any], served: list[int], *, of_each: int, times: int) -> list[bytes]:
    """Return the answers to requests, one after the other.

    Args:
        make: makes the transport.
        served: gets the number of requests on each connection.
        of_each: answers on each connection; the next request closes it.
        times: the number of requests.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at = len(served)
        served.append(0)
        try:
            while await reader.readuntil(b"\r\n\r\n") and await reader.readexactly(2):
                served[at] += 1
                if served[at] > of_each:
                    break
                writer.write(ANSWER)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    bodies = []
    async with server, make() as http:
        for _ in range(times):
            async with http.open(HttpRequest(f"http://127.0.0.1:{port}/", b"{}")) as answer:
                bodies.append(b"".join([piece async for piece in answer.body]))
    return bodies


@TRANSPORTS
def test_a_request_that_meets_a_closed_connection_is_sent_again(make: Any) -> None:
    served: list[int] = []
    assert asyncio.run(answers(make, served, of_each=1, times=3)) == [b"ok"] * 3
    assert served == [2, 2, 1]


@TRANSPORTS
def test_a_new_connection_that_is_closed_without_an_answer_is_an_error(make: Any) -> None:
    served: list[int] = []
    with pytest.raises(ProviderError):
        asyncio.run(answers(make, served, of_each=0, times=1))
    assert served == [1]


@TRANSPORTS
def test_what_a_server_may_have_read_is_not_sent_again(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "STALE_SECONDS", 0.0)  # as if it had worked on the request for longer
    served: list[int] = []
    with pytest.raises(ProviderError):
        asyncio.run(answers(make, served, of_each=1, times=2))
    assert served == [2]

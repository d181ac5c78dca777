"""The gateway's server on a real socket: bounded heads, and answers that the end of the server interrupts."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from opentelemetry.sdk.trace import TracerProvider
from tests.simulated_time import SimulatedTimeLoop
from tests.unit.gateway.gateway_calls import CLIENTS, Got, Scripted, asked, gateway, request
from uvicorn.server import ServerState

from toolwire import ContentDelta
from toolwire.errors import ConfigurationError
from toolwire.gateway import bounded_connections, request_spans
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.request_spans import RequestSpans
from toolwire.gateway.serving import ServerOptions, serve
from toolwire.runtime.local_http import listen

FOREVER = 3600.0


@asynccontextmanager
async def served(*, grace: int = 0) -> AsyncIterator[tuple[int, asyncio.Task[None], Scripted]]:
    """Serve a model that says one word and then nothing; yield the port, the server's task and the model."""
    upstream = Scripted([ContentDelta("one")], FOREVER)
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    models = ModelTable([ServedModel("*", (upstream,))])
    options = ServerOptions(port=0, grace=grace)
    server = asyncio.create_task(serve(models, options, ready=lambda url: port.set_result(int(url.rsplit(":", 1)[1]))))
    try:
        yield await port, server, upstream
    finally:
        server.cancel()
        await asyncio.wait({server})


def converse(talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]) -> bytes:
    """Return what a client receives that talks to a server of its own."""

    async def run() -> bytes:
        async with served() as (port, _, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                async with asyncio.timeout(20):
                    return await talk(reader, writer)
            finally:
                writer.close()

    return asyncio.run(run())


def test_with_a_writer_of_spans_the_server_opens_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setattr(request_spans, "traces", lambda: opened.append("traces"))

    async def run(spans: RequestSpans | None) -> None:
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = serve(ModelTable([]), ServerOptions(port=0), spans=spans, ready=ready.set_result)
        server = asyncio.create_task(serving)
        await ready
        server.cancel()
        await asyncio.wait({server})

    asyncio.run(run(RequestSpans(TracerProvider())))
    assert opened == []
    asyncio.run(run(None))
    assert opened == ["traces"]


def test_a_head_that_is_too_large_is_refused_before_it_is_complete() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"POST /v1/messages?beta=true HTTP/1.1\r\n")
        writer.write(b"x-a: %s\r\n" % (b"a" * 60_000))
        await writer.drain()
        await asyncio.sleep(0.2)  # The last bytes arrive alone, so that none are unread when the connection ends.
        writer.write(b"x-b: %s\r\n" % (b"b" * 8_000))
        return await reader.read()

    head, _, body = converse(talk).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ")
    assert json.loads(body)["type"] == "error"


def test_a_head_that_arrives_at_once_has_the_same_maximum_size() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"POST /v1/messages HTTP/1.1\r\nx-a: %s\r\n\r\n" % (b"a" * 70_000))
        return await reader.read(12)

    assert converse(talk) == b"HTTP/1.1 431"


@pytest.mark.parametrize("pause", [0.0, 0.2])
def test_a_body_is_no_part_of_a_head(pause: float) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        port = writer.get_extra_info("peername")[1]
        head = b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-length: 100000\r\n\r" % port
        writer.write(head)
        await writer.drain()
        await asyncio.sleep(pause)  # Then the end of the head arrives with the body.
        writer.write(b"\n" + b"{" * 100_000)
        return await reader.read(12)

    assert converse(talk) == b"HTTP/1.1 400"


def test_a_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connections, "READ_SECONDS", 0.2)

    class Transport(asyncio.Transport):
        aborted = 0

        def get_extra_info(self, name: str, default: object = None) -> object:
            return default

        def abort(self) -> None:
            self.aborted += 1

        def is_closing(self) -> bool:
            return bool(self.aborted)

        def close(self) -> None:
            pass

        def pause_reading(self) -> None:
            pass

        def resume_reading(self) -> None:
            pass

    async def run() -> list[int]:
        config = uvicorn.Config(lambda: None, http=bounded_connections.bounded_protocol(), log_level="error")
        config.load()
        aborted: list[int] = []
        for is_read in (False, True):
            transport = Transport()
            connection: Any = config.http_protocol_class(config, ServerState(), {}, asyncio.get_running_loop())
            connection.connection_made(transport)
            connection.pause_writing()
            await asyncio.sleep(0.1)
            if is_read:
                connection.resume_writing()
            await asyncio.sleep(0.2)
            aborted.append(transport.aborted)
            connection.connection_lost(None)
        return aborted

    assert asyncio.run(run()) == [1, 0]


@pytest.mark.parametrize("beginning", [b"", b"GET /health HTTP/1.1\r\nhost: "])
def test_a_connection_without_a_request_is_closed(beginning: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connections, "HEAD_SECONDS", 0.1)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(beginning)
        return await reader.read()

    assert converse(talk) == b""


def test_a_connection_serves_several_requests_within_the_bounds_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connections, "HEAD_SECONDS", 0.3)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        port = writer.get_extra_info("peername")[1]
        answers = b""
        for _ in range(4):
            writer.write(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nx-a: %s\r\n\r\n" % (port, b"a" * 30_000))
            answers += await reader.readuntil(b'"}')
            await asyncio.sleep(0.15)
        return answers

    assert converse(talk).count(b"200 OK") == 4


def test_connections_that_are_too_many_close_the_oldest_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connections, "MAX_CONNECTIONS", 3)

    async def run() -> list[bytes]:
        async with asyncio.timeout(20), served() as (port, _, _):
            pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
            closed = [await reader.read() for reader, _ in pairs[:5]]
            answers = []
            for reader, writer in pairs[5:]:
                writer.write(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n\r\n" % port)
                answers.append(await reader.readline())
            for _, writer in pairs:
                writer.close()
            return [*closed, *answers]

    assert asyncio.run(run()) == [b""] * 5 + [b"HTTP/1.1 200 OK\r\n"] * 3


def test_small_writes_of_a_server_do_not_wait_for_acknowledgements() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_end_of_the_server_ends_a_stream_with_an_error() -> None:
    async def run() -> bytes:
        async with served() as (port, server, upstream):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            path, body = asked("messages", stream=True)
            data = json.dumps(body).encode()
            head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: {len(data)}\r\n\r\n"
            writer.write(head.encode() + data)
            async with asyncio.timeout(20):
                begun = await reader.readuntil(b"one")
                server.cancel()
                rest = await reader.read()
                await asyncio.wait({server})
            assert upstream.closed == 1
            writer.close()
            return begun + rest

    answer = asyncio.run(run())
    assert b"event: error" in answer and b"shutting down" in answer
    assert answer.endswith(b"0\r\n\r\n")
    assert b"message_stop" not in answer


def ended_after(seconds: float, path: str, body: object, *groups: object) -> tuple[Got, Scripted]:
    upstream = Scripted(*groups)  # type: ignore[arg-type]
    app = gateway(upstream)

    async def run() -> Got:
        asyncio.get_running_loop().call_later(seconds, app.end_answers)
        return await request(app, path, body)

    with asyncio.Runner(loop_factory=SimulatedTimeLoop) as runner:
        return runner.run(run()), upstream


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_an_answer_that_has_not_begun_is_refused_when_the_server_ends(api: str, stream: bool) -> None:
    path, body = asked(api, stream=stream)
    got, upstream = ended_after(3, path, body, FOREVER)
    assert got.status == 503
    assert b"shutting down" in got.body
    assert upstream.closed == 1


@pytest.mark.parametrize("api", CLIENTS)
def test_a_stream_that_has_begun_ends_with_the_error_of_its_api(api: str) -> None:
    path, body = asked(api, stream=True)
    got, upstream = ended_after(3, path, body, [ContentDelta("one")], FOREVER)
    assert got.status == 200
    assert b"one" in got.pieces[0][1] + got.pieces[1][1]
    assert b"shutting down" in got.pieces[-2][1] and b"error" in got.pieces[-2][1]
    assert got.pieces[-1][0] == pytest.approx(3)
    assert upstream.closed == 1


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1", "", b"200"),
        ("LocalHost", "", b"200"),
        ("[::1]", "", b"200"),
        ("127.0.0.1", "http://127.0.0.1", b"403"),  # a page of another server on this machine
        ("127.0.0.1:1", "", b"403"),
        ("127.0.0.1.example.org", "", b"403"),
        ("example.org", "", b"403"),
    ],
)
def test_names_of_this_machine_need_no_port_as_hosts(host: str, origin: str, status: bytes) -> None:
    lines = [f"GET /v1/models HTTP/1.1\r\nhost: {host}", *([f"origin: {origin}"] if origin else ())]

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        return await reader.readline()

    assert converse(talk).split()[1] == status


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_an_address_beyond_loopback_needs_a_key(host: str) -> None:
    with pytest.raises(ConfigurationError, match="set a key in TOOLWIRE_GATEWAY_KEYS, or listen on 127"):
        asyncio.run(serve(ModelTable([]), ServerOptions(host, 0)))


def test_a_connection_too_many_closes_none_that_waits_for_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connections, "MAX_CONNECTIONS", 2)
    closed: list[str] = []

    def connection(name: str, began: float, is_answered: bool | None) -> SimpleNamespace:
        cycle = None if is_answered is None else SimpleNamespace(response_complete=is_answered)
        transport = SimpleNamespace(is_closing=lambda: False, abort=lambda: closed.append(name))
        return SimpleNamespace(began=began, cycle=cycle, transport=transport)

    busy, answered, silent = (
        connection("busy", 1, False),
        connection("answered", 2, True),
        connection("silent", 3, None),
    )
    newest = connection("newest", 4, None)
    bounded_connections._close_one_too_many([silent, busy, newest, answered], newest)
    bounded_connections._close_one_too_many([silent, busy, newest], newest)
    bounded_connections._close_one_too_many([busy, connection("busy too", 0, False), newest], newest)
    bounded_connections._close_one_too_many([busy, newest], newest)
    assert closed == ["answered", "silent", "newest"]

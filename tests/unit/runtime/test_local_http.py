"""Servers on this machine: where they listen, how they end, and which requests may not reach them."""

from __future__ import annotations

import asyncio
import resource
import socket
from contextlib import closing

import pytest

from toolwire.errors import ConfigurationError
from toolwire.runtime.local_http import (
    allow_open_files,
    header_value,
    is_foreign,
    is_loopback,
    listen,
    own_hosts,
    own_hosts_without_port,
    run_server,
    url_of,
)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_an_address_of_this_machine_alone_is_loopback(host: str) -> None:
    assert is_loopback(host) is True


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "example.org", "localhost.example.org", ""])
def test_an_address_that_others_reach_is_not_loopback(host: str) -> None:
    assert is_loopback(host) is False


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("127.0.0.1", 8000, {"127.0.0.1:8000", "localhost:8000", "[::1]:8000"}),
        ("::1", 8000, {"127.0.0.1:8000", "localhost:8000", "[::1]:8000"}),
        ("127.0.0.2", 9, {"127.0.0.2:9", "127.0.0.1:9", "localhost:9", "[::1]:9"}),
        ("10.0.0.1", 8000, {"10.0.0.1:8000"}),
        ("fe80::1", 8000, {"[fe80::1]:8000"}),
        ("10.0.0.1", 80, {"10.0.0.1:80", "10.0.0.1"}),
    ],
)
def test_a_request_may_give_only_the_server_s_own_names(host: str, port: int, expected: set[str]) -> None:
    assert own_hosts(host, port) == expected


def test_only_names_of_this_machine_are_its_own_without_a_port() -> None:
    assert own_hosts_without_port("127.0.0.2") == {"127.0.0.2", "127.0.0.1", "localhost", "[::1]"}
    assert own_hosts_without_port("::1") == {"127.0.0.1", "localhost", "[::1]"}
    assert own_hosts_without_port("10.0.0.1") == frozenset()


@pytest.mark.parametrize(
    ("origin", "fetch_site", "expected"),
    [
        ("", "", False),
        ("", "same-origin", False),
        ("", "none", False),
        ("", "same-site", True),
        ("", "cross-site", True),
        ("http://localhost:1", "cross-site", False),
        ("HTTP://LocalHost:1", "", False),
        ("http://localhost:2", "same-origin", True),
        ("null", "", True),
    ],
)
def test_a_page_of_another_origin_is_foreign(origin: str, fetch_site: str, expected: bool) -> None:
    assert is_foreign(origin, fetch_site, {"http://localhost:1"}) is expected


def test_a_header_that_appears_twice_has_no_value_that_could_be_allowed() -> None:
    headers = [(b"Host", b"a"), (b"origin", b"b"), (b"ORIGIN", b"b"), (b"x", b"\xe9")]
    assert [header_value(headers, name) for name in ("host", "origin", "x", "y")] == ["a", ",", "\xe9", ""]


def test_urls_write_addresses_of_ipv6_in_brackets() -> None:
    assert (url_of("::1", 8), url_of("localhost", 8)) == ("http://[::1]:8", "http://localhost:8")


def test_a_socket_listens_and_sends_small_writes_at_once() -> None:
    with closing(listen("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        assert (listener.family, host) == (socket.AF_INET, "127.0.0.1")
        with closing(socket.create_connection((host, port), 5)), closing(listener.accept()[0]) as connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        with pytest.raises(
            ConfigurationError, match=rf"cannot listen on 127\.0\.0\.1 port {port}: .*in use.*; choose another port"
        ):
            listen(host, port)
        with pytest.raises(ConfigurationError, match="in use"):
            listen(host, port, reuse_port=hasattr(socket, "SO_REUSEPORT"))


@pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="the system cannot share ports")
def test_sockets_may_share_a_port() -> None:
    with closing(listen("127.0.0.1", 0, reuse_port=True)) as first:
        port = first.getsockname()[1]
        with closing(listen("127.0.0.1", port, reuse_port=True)) as second:
            assert second.getsockname()[1] == port


def test_a_socket_listens_on_an_address_of_ipv6() -> None:
    try:
        listener = listen("::1", 0)
    except ConfigurationError as error:
        pytest.skip(str(error))
    with closing(listener):
        assert listener.family == socket.AF_INET6


@pytest.mark.parametrize("port", [65_536, -1])
def test_an_impossible_port_is_named_and_no_socket_left_open(port: int) -> None:
    with pytest.raises(ConfigurationError, match=f"port {port}: ports are numbers from 0 to 65535"):
        listen("127.0.0.1", port)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"cannot listen on 192\.0\.2\.1 port 0: \S"):
        listen("192.0.2.1", 0)


class Server:
    """Serves until it should end, and then takes a moment to close its connections."""

    def __init__(self) -> None:
        self.should_exit = False
        self.sockets: list[socket.socket] | None = None
        self.closed = False

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self.sockets = sockets
        while not self.should_exit:
            await asyncio.sleep(0)
        for _ in range(5):
            await asyncio.sleep(0)
        self.closed = True


def test_a_cancelled_server_closes_its_connections_first() -> None:
    server, listener = Server(), socket.socket()

    async def main() -> None:
        running = asyncio.create_task(run_server(server, listener))
        while server.sockets is None:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert server.closed

    with closing(listener):
        asyncio.run(asyncio.wait_for(main(), 5))
        assert server.sockets == [listener]


def test_a_server_ends_by_itself() -> None:
    server = Server()
    server.should_exit = True
    with closing(socket.socket()) as listener:
        asyncio.run(asyncio.wait_for(run_server(server, listener), 5))
    assert server.closed


@pytest.mark.parametrize(
    ("soft", "wanted", "expected"),
    [(512, 600, 600), (700, 600, 700), (512, 1 << 40, None)],
    ids=["more", "enough", "all"],
)
def test_a_process_may_open_as_many_files_as_the_system_permits(soft: int, wanted: int, expected: int | None) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
        allow_open_files(wanted)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1] if expected is None else expected, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

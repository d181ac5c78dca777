"""A connection: questions of a server to the user, and the last words of a server that ended."""

import asyncio
import sys
import threading

import pytest
from mcp_types import ElicitRequestFormParams

from toolwire import ConfigurationError
from toolwire.mcp import McpRouter
from toolwire.mcp.connection import MAX_QUESTIONS, Connection, ServerDown
from toolwire.mcp.servers import Launch, McpServer
from toolwire.mcp.stderr_tail import StderrTail


def test_a_server_that_asks_on_and_on_does_not_fill_the_screen() -> None:
    shown: list[str] = []

    async def asked(question: str) -> None:
        shown.append(question)

    async def main() -> set[str]:
        connection = Connection(McpServer(name="a", command="x"), changed=lambda: None, asked=asked)
        params = [ElicitRequestFormParams(message=f"q{n}", requested_schema={"type": "object"}) for n in range(500)]
        return {(await connection._decline(entry)).action for entry in params}

    assert asyncio.run(main()) == {"decline"}
    assert len(shown) == MAX_QUESTIONS
    assert shown[-1].endswith("(further questions of this server are not shown)")


def test_the_last_words_of_a_server_are_shown_however_late_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    awaited = threading.Event()
    read, drain = StderrTail._read, StderrTail.drain

    def late_read(tail: StderrTail, descriptor: int) -> None:
        awaited.wait()
        read(tail, descriptor)

    async def observed_drain(tail: StderrTail) -> None:
        awaited.set()
        await drain(tail)

    monkeypatch.setattr(StderrTail, "_read", late_read)
    monkeypatch.setattr(StderrTail, "drain", observed_drain)
    command = (sys.executable, "-I", "-S", "-c", "import sys; sys.exit('no luck')")
    connection = Connection(McpServer(name="a", command=command[0], args=command[1:]), changed=lambda: None)

    try:
        with pytest.raises(ServerDown, match="it said: no luck"):
            asyncio.run(connection.start(Launch("stdio", argv=command)))
    finally:
        awaited.set()


def test_arguments_in_the_command_are_explained() -> None:
    router = McpRouter([McpServer(name="shop", command="no-such-program --port 3")], approve=True)
    message = "no-such-program --port 3; arguments of a program belong in args"
    with pytest.raises(ConfigurationError, match=message), router:
        pass

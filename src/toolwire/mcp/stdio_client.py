"""Servers that are started: a program in a process group of its own, with a bound on each message that it sends.

The SDK's own transport looks through all that came of a line again with each piece of it, and has no bound; on Windows,
where groups of processes need more than the standard library has, it is used all the same.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TextIO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import StdioServerParameters, stdio_client
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from toolwire.mcp.servers import Launch
from toolwire.runtime.process_groups import signal_group
from toolwire.runtime.processes import happens

GRACE = 2.0
"""Seconds that a program has to end in once nobody writes to it, and again once it was asked to."""
PIECE = 1 << 16

_Incoming = MemoryObjectSendStream[SessionMessage | Exception]
_Outgoing = MemoryObjectReceiveStream[SessionMessage]


@asynccontextmanager
async def open_program(
    launch: Launch, errors: TextIO, *, limit: int, told: Callable[[str], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a server that is started, which ends with the block.

    Args:
        launch: how.
        errors: where its standard error goes.
        limit: bytes of one message that it sends; one that is longer ends the connection.
        told: hears why the connection ended, if that was the reason.

    Raises:
        OSError: it cannot be started.
    """
    command, *args = launch.argv  # the file that somebody agreed to, if it was there then
    command = launch.program or command
    if os.name == "nt":
        given = StdioServerParameters(command=command, args=args, env=dict(launch.env), cwd=launch.cwd or None)
        async with stdio_client(given, errors) as streams:
            yield streams
        return
    loop = asyncio.get_running_loop()
    transport, program = await loop.subprocess_exec(
        lambda: _Program(limit, loop),
        command,
        *args,
        env={**get_default_environment(), **launch.env},
        cwd=launch.cwd or None,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
    )
    try:
        incoming, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        writing, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        with incoming, reading, writing, outgoing:
            async with anyio.create_task_group() as group:
                group.start_soon(_read, program, incoming, limit, told)
                group.start_soon(_write, program, outgoing, incoming)
                try:
                    yield reading, writing
                finally:
                    reading.close()
                    writing.close()
                    with anyio.CancelScope(shield=True):
                        await _stop(transport, program)
                    group.cancel_scope.cancel()
    finally:
        signal_group(transport.get_pid(), signal.SIGKILL)  # what it left behind in its group
        transport.close()


class _Program(SubprocessStreamProtocol):
    """A program's streams, and word of its end, which its children that hold the streams do not delay."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.ended = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.ended.set()


async def _read(program: _Program, incoming: _Incoming, limit: int, told: Callable[[str], None]) -> None:
    assert program.stdout is not None
    async with incoming:
        with suppress(asyncio.IncompleteReadError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            try:
                while True:
                    await incoming.send(_message(await program.stdout.readuntil(b"\n")))
            except asyncio.LimitOverrunError:
                told(f"it sent a message of more than {limit} bytes")
    with suppress(OSError):
        while await program.stdout.read(PIECE):  # it may want to write before it can end
            pass


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _write(program: _Program, outgoing: _Outgoing, incoming: _Incoming) -> None:
    assert program.stdin is not None
    try:
        async for one in outgoing:
            text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
            program.stdin.write(text.encode() + b"\n")
            await program.stdin.drain()
    except OSError:
        incoming.close()  # nobody reads any more, so nothing is answered either


async def _stop(transport: asyncio.SubprocessTransport, program: _Program) -> None:
    """Let the program end: by itself, then asked to."""
    assert program.stdin is not None
    program.stdin.close()
    if not await happens(program.ended, GRACE):
        signal_group(transport.get_pid(), signal.SIGTERM)
        await happens(program.ended, GRACE)

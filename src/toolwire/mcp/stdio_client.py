"""Client for servers that run as programs: each in a process group of its own, with a bound on its messages.

The SDK's own transport has no such bound, and scans an unfinished line again with each piece that arrives. It is used
on Windows alone, where process groups need more than the standard library offers.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any, TextIO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import StdioServerParameters, stdio_client
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from toolwire.mcp.servers import Launch
from toolwire.runtime.process_groups import signal_group
from toolwire.runtime.processes import happens
from toolwire.runtime.start_gate import gate
from toolwire.runtime.watcher import prepare_watcher, watch_group

GRACE = 2.0
"""Seconds that a program has to end after its input is closed, and again after SIGTERM."""
PIECE = 1 << 16
"""Bytes read at once from a program that is being ended."""

_Incoming = MemoryObjectSendStream[SessionMessage | Exception]
_Outgoing = MemoryObjectReceiveStream[SessionMessage]


@asynccontextmanager
async def open_program(
    launch: Launch, errors: TextIO, *, limit: int, on_refusal: Callable[[str], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a server and yield its streams; it is ended with the block.

    Args:
        launch: command, environment and directory.
        errors: file for its standard error.
        limit: maximum size of one message of the server, in bytes; a longer one ends the connection.
        on_refusal: called with the reason if a message was too long.

    Raises:
        OSError: it cannot be started.
    """
    command, *args = launch.argv  # the approved file, if it existed at that time
    command = launch.program or command
    if os.name == "nt":
        parameters = StdioServerParameters(command=command, args=args, env=dict(launch.env), cwd=launch.cwd or None)
        async with stdio_client(parameters, errors) as streams:
            yield streams
        return
    loop = asyncio.get_running_loop()
    env = {**get_default_environment(), **launch.env}
    start = gate((command, *args), env, launch.cwd or os.curdir, source=0)
    prepare_watcher()
    transport, program = await loop.subprocess_exec(
        lambda: _Program(limit, loop),
        *start.argv,
        env=env,
        cwd=launch.cwd or None,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
    )
    watched = ExitStack()
    try:
        watched.enter_context(watch_group(transport.get_pid()))
        assert program.stdin is not None
        program.stdin.write(start.opening)
        incoming, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        writing, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        with incoming, reading, writing, outgoing:
            async with anyio.create_task_group() as group:
                group.start_soon(_read, program, incoming, limit, on_refusal)
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
        signal_group(transport.get_pid(), signal.SIGKILL)  # processes that it left in its group
        watched.close()
        transport.close()


class _OpenRequests:
    """The requests that a server has not answered yet.

    A server that cannot read a request answers with an error that has no id. Where one request alone is open, the error
    is its answer; without it, the request would wait until its time is up.
    """

    def __init__(self) -> None:
        self._ids: set[str | int] = set()

    def sent(self, message: SessionMessage) -> None:
        """Note a request, or that one was given up."""
        match message.message:
            case JSONRPCRequest(id=id):
                self._ids.add(id)
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": str() | int() as id}):
                self._ids.discard(id)
            case _:
                pass

    def answered(self, message: SessionMessage | Exception) -> SessionMessage | Exception:
        """Note an answer, and return it; an error without an id with that of the only open request."""
        if not isinstance(message, SessionMessage) or not isinstance(message.message, JSONRPCResponse | JSONRPCError):
            return message
        answer = message.message
        if answer.id is None and len(self._ids) == 1:
            answer = answer.model_copy(update={"id": self._ids.pop()})
            return SessionMessage(answer)
        if answer.id is not None:
            self._ids.discard(answer.id)
        return message


class _Program(SubprocessStreamProtocol):
    """A program's streams, and an event for its end; children that still use the streams do not delay it."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.ended = asyncio.Event()
        self.requests = _OpenRequests()

    def process_exited(self) -> None:
        super().process_exited()
        self.ended.set()


async def _read(program: _Program, incoming: _Incoming, limit: int, on_refusal: Callable[[str], None]) -> None:
    assert program.stdout is not None
    async with incoming:
        with suppress(asyncio.IncompleteReadError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            try:
                while True:
                    message = _message(await program.stdout.readuntil(b"\n"))
                    await incoming.send(program.requests.answered(message))
            except asyncio.LimitOverrunError:
                on_refusal(f"it sent a message of more than {limit} bytes")
    with suppress(OSError):
        while await program.stdout.read(PIECE):  # a program that blocks on a full pipe could not end
            pass


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        # The validator's own reader refuses a whole list of tools for one schema that is nested deeply.
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return error
        if isinstance(value, dict) and isinstance(id := value.get("id"), float) and id.is_integer():
            value["id"] = int(id)  # JSON has one kind of number, and some languages write all of them so
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
        except (ValueError, RecursionError):
            return _failed_answer(value) or error


def _failed_answer(value: Any) -> SessionMessage | None:
    """Return the error that takes the place of an answer which is not one of JSON-RPC; None if it answers nothing.

    Without it, the request would wait for its answer until its time is up.
    """
    id = value.get("id") if isinstance(value, dict) and "method" not in value else None
    if not isinstance(id, str | int) or isinstance(id, bool):
        return None
    answer = JSONRPCResponse if value.get("error") is None else JSONRPCError
    try:
        answer.model_validate(value, by_name=False)
        reason = ""
    except (ValidationError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    message = f"its answer is not one of JSON-RPC ({reason}), so that nobody knows what it did"
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=PARSE_ERROR, message=message)))


async def _write(program: _Program, outgoing: _Outgoing, incoming: _Incoming) -> None:
    assert program.stdin is not None
    try:
        async for message in outgoing:
            program.requests.sent(message)
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            program.stdin.write(text.encode() + b"\n")
            await program.stdin.drain()
    except OSError:
        incoming.close()  # a program that reads nothing any more answers nothing either


async def _stop(transport: asyncio.SubprocessTransport, program: _Program) -> None:
    """End the program: close its input, then send SIGTERM."""
    assert program.stdin is not None
    program.stdin.close()
    if not await happens(program.ended, GRACE):
        signal_group(transport.get_pid(), signal.SIGTERM)
        await happens(program.ended, GRACE)

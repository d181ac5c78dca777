"""`toolwire serve` as a process: signals, changed files, and two processes on one port."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from toolwire.gateway.allowances import Allowance
from toolwire.gateway.key_spending import KeySpending
from toolwire.gateway.state_store import opened_store
from toolwire.gateway.virtual_keys import VirtualKeys

SECONDS = 60
"""Seconds after which something that has not happened is a failure."""

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def chunk(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    data = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(data).encode() + b"\n\n"


class Backend:
    """A server of Chat Completions that says one word, and the next one when the test lets it.

    Attributes:
        go_on: lets all answers go on.
        models: the model of each request so far.
    """

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.models: list[str] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        self.models.append(json.loads(await reader.readexactly(length))["model"])
        writer.write(HEAD + chunk("one"))
        await writer.drain()
        await self.go_on.wait()
        writer.write(chunk("two", "stop") + b"data: [DONE]\n\n")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def backend() -> AsyncIterator[Backend]:
    behind = Backend()
    server = await asyncio.start_server(behind.answer, "127.0.0.1", 0)
    behind.port = server.sockets[0].getsockname()[1]
    try:
        yield behind
    finally:
        behind.go_on.set()
        server.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write(file: Path, behind: Backend, *, model: str = "m", gateway: str = "") -> None:
    lines = [
        "[profiles.m]",
        'provider = "openai_compatible"',
        f'model = "{model}"',
        f'url = "http://127.0.0.1:{behind.port}/v1"',
        "[gateway]",
        gateway or "port = 0",
    ]
    file.with_suffix(".new").write_text("\n".join(lines) + "\n")
    file.with_suffix(".new").replace(file)


class Process:
    """A running `toolwire serve`, and the lines of its standard error."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.port = 0

    async def line(self, text: str) -> str:
        """Return the next line with this text."""
        assert self.process.stderr is not None
        before = ""
        while True:
            data = await self.process.stderr.readline()
            assert data, f"the process ended without saying {text!r}; it said {before}"
            if text in (line := data.decode()):
                return line
            before += line


@asynccontextmanager
async def served(file: Path, *options: str, **environment: str) -> AsyncIterator[Process]:
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "toolwire", "serve", "--config", str(file), *options),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TOOLWIRE_STATE": str(file.parent), **environment},
    )
    process = Process(started)
    try:
        line = await process.line("serving at")
        process.port = int(line.split("http://127.0.0.1:")[1].split()[0])
        yield process
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


async def ask(port: int, model: str = "m", *, key: str = "k") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nx-api-key: {key}\r\n"
    head += f"content-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    return reader, writer


async def get(port: int, path: str) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def within_time(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), SECONDS))


def test_a_stream_ends_after_sigterm_before_the_process_does(tmp_path: Path) -> None:
    async def work() -> None:
        async with backend() as behind:
            write(tmp_path / "g.toml", behind)
            async with served(tmp_path / "g.toml") as process:
                reader, writer = await ask(process.port)
                begun = await reader.readuntil(b"one")
                process.process.send_signal(signal.SIGTERM)
                # It takes no more connections, and the stream is still running.
                while True:
                    try:
                        _, other = await asyncio.open_connection("127.0.0.1", process.port)
                        other.close()
                    except ConnectionError:
                        break
                    await asyncio.sleep(0.02)
                assert process.process.returncode is None
                behind.go_on.set()
                rest = await reader.read()
                assert b"two" in rest and b"message_stop" in rest and b"error" not in begun + rest
                assert await process.process.wait() == -signal.SIGTERM
                writer.close()

    within_time(work)


def test_a_changed_file_is_used_from_the_next_request_on(tmp_path: Path) -> None:
    async def work() -> None:
        file = tmp_path / "g.toml"
        async with backend() as behind:
            write(file, behind, model="first")
            async with served(file) as process:
                reader, writer = await ask(process.port)
                await reader.readuntil(b"one")

                write(file, behind, model="second")
                await process.line("its models are used from now on")
                other, other_writer = await ask(process.port)
                await other.readuntil(b"one")
                assert behind.models == ["first", "second"]

                write(file, behind, model="third", gateway='colour = "blue"')
                line = await process.line("is not valid: the one before is used")
                assert "g.toml:6: gateway.colour" in line
                assert "not valid" in (await get(process.port, "/health"))["configuration"]
                third, third_writer = await ask(process.port)
                await third.readuntil(b"one")
                assert behind.models == ["first", "second", "second"]

                write(file, behind, model="fourth", gateway="grace = 5")
                assert "grace, port of [gateway] count after a restart" in await process.line("restart")
                await process.line("its models are used from now on")
                assert await get(process.port, "/health") == {"status": "ok"}

                behind.go_on.set()
                for stream in (reader, other, third):
                    assert b"message_stop" in await stream.readuntil(b"message_stop")
                for open_writer in (writer, other_writer, third_writer):
                    open_writer.close()

    within_time(work)


def test_the_address_of_the_command_line_takes_the_place_of_the_file_s(tmp_path: Path) -> None:
    async def work() -> None:
        file = tmp_path / "g.toml"
        async with backend() as behind:
            write(file, behind, gateway='host = "0.0.0.0"\nport = 1')
            options = ("--host", "127.0.0.1", "--port", str(port := free_port()))
            async with served(file, *options) as process:
                assert process.port == port
                write(file, behind, gateway='host = "0.0.0.0"\nport = 2\ngrace = 5')
                assert ": grace of [gateway] count after a restart" in await process.line("restart")

    within_time(work)


def test_what_only_the_opening_of_the_models_finds_names_the_file_too(tmp_path: Path) -> None:
    async def work() -> None:
        file = tmp_path / "g.toml"
        async with backend() as behind:
            write(file, behind, gateway='port = 0\n[gateway.tools]\nbuiltin = ["reed_file"]\nroot = "."')
            with pytest.raises(AssertionError, match="ended without saying 'serving at'") as ended:
                async with served(file):
                    pass
            assert f"{file}: gateway.tools.builtin: there is no tool 'reed_file'" in str(ended.value)

            write(file, behind)
            async with served(file) as process:
                write(file, behind, gateway='port = 0\n[gateway.models.m]\nprofile = "m"\ntools = true')
                line = await process.line("is not valid: the one before is used")
                assert f": {file}: gateway.models.m: tools: there are none" in line

    within_time(work)


@pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="this system cannot share ports")
def test_a_second_process_takes_over_the_port(tmp_path: Path) -> None:
    async def work() -> None:
        async with backend() as behind:
            file = tmp_path / "g.toml"
            write(file, behind, gateway=f"port = {free_port()}\nreuse_port = true")
            async with served(file) as old, served(file) as new:
                assert old.port == new.port
                streams = [await ask(old.port) for _ in range(8)]
                for reader, _ in streams:
                    await reader.readuntil(b"one")
                old.process.send_signal(signal.SIGTERM)
                behind.go_on.set()
                for reader, writer in streams:
                    assert b"message_stop" in await reader.readuntil(b"message_stop")
                    writer.close()
                assert await old.process.wait() == -signal.SIGTERM
                assert await get(new.port, "/health") == {"status": "ok"}

    within_time(work)


def test_a_process_that_is_killed_leaves_the_spending_of_its_keys(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/keys.sqlite"
    allowance = Allowance("tokens", 100_000)

    async def work() -> None:
        async with backend() as behind, opened_store(url) as store:
            key, virtual_key = await VirtualKeys(store).add("tester", allowances=[allowance])
            write(tmp_path / "g.toml", behind, gateway=f'port = 0\nvirtual_keys = true\nstore = "{url}"')
            async with served(tmp_path / "g.toml") as process:
                reader, ended = await ask(process.port, key=key)
                await reader.readuntil(b"one")
                behind.go_on.set()
                assert b"message_stop" in await reader.readuntil(b"message_stop")
                spent = 0.0
                while not 0 < spent < 1_000:  # the answer has ended, and its reservation is replaced by its use
                    spent = await KeySpending(store).used(virtual_key, allowance)
                    await asyncio.sleep(0.01)
                behind.go_on.clear()
                reader, running = await ask(process.port, key=key)
                await reader.readuntil(b"one")
                process.process.kill()
                assert await process.process.wait() == -signal.SIGKILL
                for writer in (ended, running):
                    writer.close()
            # The answer that had ended is charged, and so is what was expected of the one that was running.
            assert await KeySpending(store).used(virtual_key, allowance) >= spent + 4_096

    within_time(work)


def test_a_key_that_the_environment_lacks_is_reported_at_the_start_and_after_a_change(tmp_path: Path) -> None:
    async def work() -> None:
        async with backend() as behind:
            file = tmp_path / "g.toml"
            write(file, behind)
            text = file.read_text()
            unready = '[profiles.{}]\nprovider = "anthropic"\nmodel = "m"\nkey_env = "GATEWAY_TEST_KEY"\n'
            file.write_text(unready.format("one") + text)
            started = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "toolwire", "serve", "--config", str(file)), stderr=asyncio.subprocess.PIPE
            )
            process = Process(started)
            try:
                warning = await process.line("warning")
                assert "requests to one will fail: " in warning
                assert "set GATEWAY_TEST_KEY in the environment" in warning
                await process.line("serving at")
                file.with_suffix(".new").write_text(unready.format("two") + text)
                file.with_suffix(".new").replace(file)
                assert "requests to two will fail: " in await process.line("warning")
            finally:
                started.kill()
                await started.wait()

    within_time(work)

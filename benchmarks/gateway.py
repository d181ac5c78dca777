"""The gateway under load, between clients and a backend of this program: `python -m benchmarks.gateway CASE`.

    overhead   what it adds to a whole answer and to a paced stream, passed on and translated, beside the backend alone
    memory     its memory while it answers many requests
    streams    many streams at once: their largest gaps, and its memory
    chaos      broken backends and clients: each request ends in the right answer or in an error of its API
    fuzz       bodies with random damage: none is answered with 500
    recorded   recorded requests, from each API of clients to each API of backends; see `gateway_recorded.py`

`--base URL --pid PID` measure another gateway that is running, with `--port` as the port of its backend (Chat
Completions at /v1, any model, any key). The CPU time and the memory are those of the process, from /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import os
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gateway_recorded import ROWS, run_recorded

from toolwire import collect, get_api

APIS = {
    "chat": ("/v1/chat/completions", "openai_compatible"),
    "responses": ("/v1/responses", "openai_responses"),
    "messages": ("/v1/messages", "anthropic_messages"),
    "gemini": ("/v1beta/models/{model}:{method}", "gemini"),
    "ollama": ("/api/chat", "ollama"),
}
WORD = "word "
BROKEN = ("good", "slow", "cut", "reset", "garbage", "wrong", "limited", "failing", "silent-end")
LIMIT = 60.0
"""Seconds in which every request of the chaos must have ended."""


def asked(api: str, model: str, *, stream: bool) -> tuple[str, dict[str, Any]]:
    """Return the path and the body of a question."""
    path = APIS[api][0].format(model=model, method="streamGenerateContent?alt=sse" if stream else "generateContent")
    if api == "gemini":
        return path, {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    body: dict[str, Any] = {"model": model, "stream": stream}
    if api == "responses":
        return path, {**body, "input": "hi", "store": False}
    return path, {**body, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1000}


@dataclass
class Backend:
    """A server of Chat Completions whose models are named after what they do, such as `stream-200-5` or `cut-17`.

    Attributes:
        port: the port that it listens on.
        running: number of its connections.
    """

    port: int = 0
    running: int = 0
    _sizes: dict[int, bytes] = field(default_factory=dict)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        self.running += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
                data = await reader.readexactly(int(length or 0))
                body = json.loads(data) if data else {"model": "good"}
                stays_open = await self._answer(writer, str(body.get("model")), stream=bool(body.get("stream")))
                if not stays_open or b"\r\nconnection: close" in head:
                    break
                await writer.drain()
        self.running -= 1
        writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, model: str, *, stream: bool) -> bool:
        """Write one answer; return whether the connection stays open."""
        kind, *numbers = model.split("-")
        match kind:
            case "limited":
                return _write(writer, b'{"error": {"message": "busy"}}', "429 Too Many Requests", "retry-after: 1\r\n")
            case "failing":
                return _write(writer, b'{"error": {"message": "broken"}}', "500 Internal Server Error")
            case "garbage":
                return _write(writer, os.urandom(200))
            case "wrong":
                return _write(writer, b'{"choices": [{"message": {"content": 5, "tool_calls": "x"}}], "usage": []}')
            case "reset":
                writer.transport.abort()
                return False
        count, pause = (int(numbers[0]), int(numbers[1]) / 1000) if kind == "stream" else (4, 0.2 * (kind == "slow"))
        if not stream:
            await asyncio.sleep(pause)
            message = {"role": "assistant", "content": WORD * count}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": count, "total_tokens": count + 1}
            whole = json.dumps(
                {
                    "id": "c",
                    "object": "chat.completion",
                    "created": 1,
                    "model": model,
                    "choices": [choice],
                    "usage": usage,
                }
            ).encode()
            if kind == "cut":
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n" + whole[:100])
                return False
            return _write(writer, whole)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for number in range(count):
            if kind == "cut" and number == 2:
                writer.write(b'data: {"id": "c", "choices": [{"del')
                writer.transport.abort()
                return False
            writer.write(_chunk(model, WORD))
            await writer.drain()
            if pause:
                await asyncio.sleep(pause)
        if kind != "silent":
            writer.write(_chunk(model, "", "stop") + b"data: [DONE]\n\n")
        return False


def _write(writer: asyncio.StreamWriter, body: bytes, status: str = "200 OK", headers: str = "") -> bool:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    return True


def _chunk(model: str, text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    value = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


@dataclass
class Target:
    """A gateway, or the backend itself.

    Attributes:
        pid: the process; 0 for that of this program.
    """

    port: int
    pid: int = 0
    ready_seconds: float = 0.0

    @property
    def cpu(self) -> float:
        """CPU time of the process so far, in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory(self) -> float:
        """Memory of the process, in MB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000


@dataclass
class Reply:
    """The answer to a request, with the times of its pieces."""

    status: int = 0
    body: bytes = b""
    begun: float = 0.0
    times: list[float] = field(default_factory=list)


async def send(port: int, path: str, body: Any, *, method: str = "POST", leaves_after: float | None = None) -> Reply:
    """Send a request on a connection of its own, and read until the server closes it, or until the client leaves."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    reply = Reply(begun=time.perf_counter())
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer k\r\nconnection: close\r\n"
    writer.write(head.encode() + b"content-length: %d\r\n\r\n" % len(data) + data)
    pieces = []
    with suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(leaves_after):
            while piece := await reader.read(1 << 16):
                reply.times.append(time.perf_counter())
                pieces.append(piece)
    writer.transport.abort()
    received, _, reply.body = b"".join(pieces).partition(b"\r\n\r\n")
    if received:
        reply.status = int(received.split(b" ", 2)[1])
        if b"transfer-encoding: chunked" in received.lower():
            reply.body = _unchunked(reply.body)
    return reply


def _unchunked(data: bytes) -> bytes:
    pieces: list[bytes] = []
    at = 0
    while (end := data.find(b"\r\n", at)) >= 0 and (length := int(data[at:end] or b"0", 16)):
        pieces.append(data[end + 2 : end + 2 + length])
        at = end + 4 + length
    return b"".join(pieces)


async def overhead(gateway: Target, direct: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Measure a whole answer and paced streams."""
    figures: dict[str, Any] = {"ready_seconds": round(gateway.ready_seconds, 2)}
    seconds: dict[str, list[float]] = {name: [] for name in ("direct", "chat", "messages")}
    for number in range(options.requests or 400):
        order = list(seconds)
        random.shuffle(order)
        for name in order:
            path, body = asked("chat" if name == "direct" else name, "good", stream=False)
            reply = await send(direct.port if name == "direct" else gateway.port, path, body)
            assert reply.status == 200, reply
            if number >= 20:
                seconds[name].append(reply.times[-1] - reply.begun)
    for name, values in seconds.items():
        figures[f"whole_{name}_ms"] = _ms(values)
    for api in ("chat", "messages"):
        path, body = asked(api, "stream-200-5", stream=True)
        await send(gateway.port, path, body)
        before = gateway.cpu
        replies = await asyncio.gather(*(send(gateway.port, path, body) for _ in range(16)))
        assert all(reply.body.count(WORD.strip().encode()) >= 200 for reply in replies)
        figures[f"cpu_seconds_per_1000_chunks_16_paced_{api}"] = round((gateway.cpu - before) / 3.2, 3)
    path, body = asked("chat", "stream-20000-0", stream=True)
    began = time.perf_counter()
    replies = await asyncio.gather(*(send(gateway.port, path, body) for _ in range(2)))
    received = sum(reply.body.count(WORD.strip().encode()) for reply in replies)
    figures["chunks_per_second"] = round(received / (time.perf_counter() - began))
    assert received == 40_000, f"{received} of 40000 chunks arrived"
    return figures


def _ms(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "median": round(statistics.median(ordered) * 1000, 2),
        "p99": round(ordered[int(len(ordered) * 0.99)] * 1000, 2),
    }


async def memory(gateway: Target, direct: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the memory during many requests of all APIs."""
    count = options.requests or 10_000
    figures: dict[str, Any] = {"requests": count, "before_mb": round(gateway.memory, 1)}

    async def some(number: int) -> None:
        for at in range(number, count, 16):
            api = list(APIS)[at % 5]
            path, body = asked(api, "good", stream=bool(at // 5 % 2))
            assert (await send(gateway.port, path, body)).status == 200
            if at in (count // 10, count // 2):
                figures[f"after_{at}_mb"] = round(gateway.memory, 1)

    await asyncio.gather(*map(some, range(16)))
    return {**figures, "after_mb": round(gateway.memory, 1)}


async def streams(gateway: Target, direct: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Measure many streams at once, with a piece every 500 ms."""
    count = options.requests or 1_000
    path, body = asked("messages", "stream-20-500", stream=True)

    async def one(number: int) -> Reply:
        await asyncio.sleep(number / count * 2)
        return await send(gateway.port, path, body)

    most = 0.0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, gateway.memory)
            await asyncio.sleep(0.2)

    watching = asyncio.create_task(watch())
    replies = await asyncio.gather(*map(one, range(count)))
    watching.cancel()
    complete = sum(b"message_stop" in reply.body for reply in replies)
    gaps = [
        max(later - sooner for sooner, later in zip(reply.times, reply.times[1:], strict=False)) for reply in replies
    ]
    return {"streams": count, "complete": complete, "largest_gap_s": round(max(gaps), 2), "most_mb": round(most, 1)}


async def chaos(gateway: Target, direct: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Ask broken models, as clients that may leave; count how requests end."""
    count, rng = options.requests or 2_000, random.Random(options.seed)
    ends: Counter[str] = Counter()
    longest = 0.0
    waiting = asyncio.Semaphore(32)

    async def one(number: int) -> None:
        nonlocal longest
        api, kind, stream = rng.choice(list(APIS)), rng.choice(BROKEN), rng.random() < 0.6
        leaves = rng.random() * 0.3 if rng.random() < 0.1 else None
        path, body = asked(api, f"{kind}-{number}", stream=stream)
        async with waiting:
            began = time.perf_counter()
            reply = await asyncio.wait_for(send(gateway.port, path, body, leaves_after=leaves), LIMIT)
            longest = max(longest, time.perf_counter() - began)
        ends["client left" if leaves is not None else _end(api, kind, reply, stream=stream)] += 1

    await asyncio.gather(*map(one, range(count)))
    for _ in range(50):  # a client that has left is noticed within a second
        metrics = (await send(gateway.port, "/metrics", None, method="GET")).body.decode()
        running = [line for line in metrics.splitlines() if line.startswith("toolwire_gateway_running_requests ")]
        if running == ["toolwire_gateway_running_requests 0.0"]:
            break
        await asyncio.sleep(0.1)
    return {"requests": count, **dict(sorted(ends.items())), "longest_s": round(longest, 2), "left_running": running}


def _end(api: str, kind: str, reply: Reply, *, stream: bool) -> str:
    """Return how a request ended, in words; those that should not happen begin with WRONG."""
    codec = get_api(APIS[api][1])
    if reply.status != 200:
        try:
            is_error = "error" in json.loads(reply.body)
        except ValueError:
            is_error = False
        expected = (kind not in ("good", "slow") and reply.status != 500) or kind == "failing"
        return f"error {reply.status}" if is_error and expected else f"WRONG {kind} {api}: {reply.status}"
    if stream:
        decoder = codec.stream_decoder()
        answer = collect([*decoder.feed(reply.body), *decoder.finish()])
    else:
        answer = codec.decode_response(json.loads(reply.body))
    if answer.content == WORD * 4 and kind in ("good", "slow", "silent"):
        return "right answer"
    if any(problem.kind == "provider_error" for problem in answer.problems) or answer.finish_reason == "error":
        return "error in the stream" if kind not in ("good", "slow") else f"WRONG {kind} {api}: error"
    if kind.startswith("silent") and answer.content == WORD * 4:
        return "right answer"
    return f"WRONG {kind} {api} {'stream' if stream else 'whole'}: {reply.body[-200:]!r}"


JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e308,
    "",
    "x" * 50,
    "\ud800",
    [],
    {},
    [[]],
    {"type": []},
    [None],
    {"a": {"b": []}},
)


async def fuzz(gateway: Target, direct: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Send bodies with random damage; count the statuses."""
    count, rng = options.requests or 10_000, random.Random(options.seed)
    statuses: Counter[int] = Counter()
    failed: list[str] = []
    waiting = asyncio.Semaphore(16)

    async def one(number: int) -> None:
        api = rng.choice(list(APIS))
        path, body = asked(api, "good", stream=rng.random() < 0.3)
        tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
        body["tools"] = [{"type": "function", "function": tool, **tool, "input_schema": tool["parameters"]}]
        for _ in range(rng.randint(1, 4)):
            _damage(body, rng)
        data = json.dumps(body).encode()
        if rng.random() < 0.1:
            at = rng.randrange(len(data))
            data = data[:at] + os.urandom(rng.randint(0, 4)) + data[at + rng.randint(0, 4) :]
        async with waiting:
            reply = await send(gateway.port, path, data, leaves_after=LIMIT)
        statuses[reply.status] += 1
        if reply.status in (0, 500):
            failed.append(f"{path} {data[:500]!r}")

    await asyncio.gather(*map(one, range(count)))
    return {"bodies": count, "statuses": dict(sorted(statuses.items())), "failed": failed[:10]}


def _damage(value: Any, rng: random.Random) -> None:
    """Change one place inside of a value."""
    parents = [value]
    for inner in parents:
        items = inner.values() if isinstance(inner, dict) else inner
        parents += [item for item in items if isinstance(item, (dict, list)) and item]
    chosen = rng.choice(parents)
    if not chosen:
        return
    key = rng.choice(list(chosen) if isinstance(chosen, dict) else range(len(chosen)))
    match rng.randrange(3):
        case 0:
            chosen[key] = copy.deepcopy(rng.choice(JUNK))
        case 1:
            del chosen[key]
        case _ if isinstance(chosen, dict):
            chosen[rng.choice(["content", "type", "role", "tool_calls", "parts", "stream", "input", "id"])] = (
                copy.deepcopy(rng.choice(JUNK))
            )
        case _:
            chosen.append(copy.deepcopy(rng.choice(JUNK)))


@asynccontextmanager
async def started(backend: Backend) -> AsyncIterator[Target]:
    """Start a gateway of Toolwire before the backend."""
    began = time.perf_counter()
    command = (sys.executable, "-m", "toolwire", "serve", "--backend", f"http://127.0.0.1:{backend.port}/v1")
    process = await asyncio.create_subprocess_exec(*command, "--port", "0", stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        while "serving at" not in (line := (await process.stderr.readline()).decode()):
            assert line, "the gateway has ended"
        port = int(line.split("http://127.0.0.1:")[1].split()[0])
        yield Target(port, process.pid, time.perf_counter() - began)
    finally:
        process.terminate()
        await process.communicate()


CASES: dict[str, Callable[[Target, Target, argparse.Namespace], Awaitable[dict[str, Any]]]] = {
    case.__name__: case for case in (overhead, memory, streams, chaos, fuzz)
}


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run one case."""
    if options.case == "recorded":
        return await run_recorded(options)
    backend = Backend()
    server = await asyncio.start_server(backend.handle, "127.0.0.1", options.port, backlog=2000)
    backend.port = server.sockets[0].getsockname()[1]
    direct = Target(backend.port)
    if options.base:
        return await CASES[options.case](Target(int(options.base.rpartition(":")[2]), options.pid), direct, options)
    async with started(backend) as gateway:
        return await CASES[options.case](gateway, direct, options)


def main() -> None:
    """Run the case that the arguments name, and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=[*CASES, "recorded"])
    parser.add_argument("--requests", type=int, default=0, help="number of requests; 0 for that of the case")
    parser.add_argument("--rows", type=Path, default=ROWS, help="folder of the recordings")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=0, help="port of the backend; 0 for any")
    parser.add_argument("--base", default="", help="URL of another gateway, such as http://127.0.0.1:4000")
    parser.add_argument("--pid", type=int, default=0, help="process of the other gateway")
    print(json.dumps(asyncio.run(run(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()

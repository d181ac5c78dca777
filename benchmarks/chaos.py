"""Runs of agents over connections that do all that connections do, through the real client and the real decoders.

    python -m benchmarks.chaos [--runs 1000] [--seed 1] [--json]

Each run talks to one of the APIs, or to a model of text behind one. Its answers are what that API would have sent,
cut, garbled, doubled, torn by errors, endless or silent; some come over real sockets. A run is right if it ends, in an
answer or in an error that says what is wrong, has made no more calls than it may, and leaves a conversation that the
API takes. At the end no task, thread, socket or open answer may be left.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, get_args

import httpx
from rich.progress import Progress

import toolwire
from toolwire import FinishReason, Message, ParsedResponse, ProviderError, ToolCall, ToolError, ToolResult, Usage
from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.agent.run_events import EndReason, RunEnded, ToolStarted
from toolwire.client.client import Client
from toolwire.client.exchange import HttpAnswer, HttpRequest, Transport
from toolwire.client.transport import HttpTransport, Retry
from toolwire.events import replay
from toolwire.models.backends import ApiBackend, Backend, TextBackend, client_source
from toolwire.providers.base import ProviderApi
from toolwire.providers.request import ChatRequest
from toolwire.testing import ScriptedTransport
from toolwire.wire.prompts import render_calls

SILENCE = 0.03
"""Seconds without a piece of an answer after which these agents give it up."""
ANSWER_SECONDS = 0.3
READ_SECONDS = 0.01
"""Seconds without a byte after which the connection gives up, where it is one that does."""
HANGS = 600
"""Tenths of a second after which a run counts as hanging; those in which the machine does other things do not count."""
TOGETHER = 20
HUGE = 3_000_000
"""Bytes of an answer that is far too long."""
BUDGET = Budget(rounds=6, calls=12, tokens=100_000, seconds=5.0)
FORMATS = ("hermes", "qwen3_coder", "mistral_json", "forge_xml", "llama3_json", "react")
WITH_ACCOUNTS = ("bedrock_converse", "anthropic_bedrock", "anthropic_vertex", "azure_deployments")
"""APIs whose requests need credentials or an account of a cloud, unless the transport is offline."""

Piece = bytes | float | Exception
"""Bytes that come, seconds that pass, or an error."""


@dataclass
class Reply:
    """What a server answers a request with; `end` is what happens behind the pieces."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)
    endless: bytes = b""
    """Comes again and again, for ever."""
    refused: Exception | None = None
    """There is no answer at all."""

    async def body(self) -> AsyncIterator[bytes]:
        """The bytes as they come."""
        for piece in self.pieces:
            match piece:
                case bytes():
                    yield piece
                case Exception():
                    raise piece
                case _:
                    await asyncio.sleep(piece)
        while self.endless:
            yield self.endless
            await asyncio.sleep(0.001)


# -- what goes wrong -------------------------------------------------------------------------------------------------


def cut(body: bytes, rng: random.Random) -> Reply:
    """The stream ends early, as if it were whole."""
    return Reply(pieces=[body[: rng.randrange(len(body) + 1)]])


def torn(body: bytes, rng: random.Random) -> Reply:
    """The connection breaks."""
    error = rng.choice((httpx.ReadError("reset"), httpx.RemoteProtocolError("peer closed"), httpx.ReadTimeout("slow")))
    return Reply(pieces=[body[: rng.randrange(len(body) + 1)], error])


def garbled(body: bytes, rng: random.Random) -> Reply:
    """Some bytes are others."""
    data = bytearray(body)
    for _ in range(rng.choice((1, 3, 30))):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return Reply(pieces=[bytes(data)])


def garbage(body: bytes, rng: random.Random) -> Reply:
    """Bytes of somebody else stand in it, or in its place."""
    at = rng.randrange(len(body) + 1)
    junk = rng.randbytes(rng.choice((1, 7, 400)))
    return Reply(pieces=[junk] if rng.random() < 0.3 else [body[:at], junk, body[at:]])


def halved(body: bytes, rng: random.Random) -> Reply:
    """A piece of an event is missing."""
    at, to = sorted((rng.randrange(len(body) + 1), rng.randrange(len(body) + 1)))
    return Reply(pieces=[body[:at], body[to:]])


def doubled(body: bytes, rng: random.Random) -> Reply:
    """Events come twice, so ids and calls do too."""
    events = body.split(b"\n\n")
    at = rng.randrange(len(events))
    return Reply(pieces=[b"\n\n".join([*events[: at + 1], *events[rng.randrange(at + 1) :]])])


def shuffled(body: bytes, rng: random.Random) -> Reply:
    """Events come in another order."""
    events = body.split(b"\n\n")
    rng.shuffle(events)
    return Reply(pieces=[b"\n\n".join(events)])


def silent(body: bytes, rng: random.Random) -> Reply:
    """It falls silent until the connection gives up."""
    at = rng.randrange(len(body) + 1)
    return Reply(pieces=[body[:at], READ_SECONDS, httpx.ReadTimeout("")])


def mute(body: bytes, rng: random.Random) -> Reply:
    """It falls silent, and the connection waits for ever."""
    return Reply(pieces=[body[: rng.randrange(len(body) + 1)], 3600.0])


def pinging(body: bytes, rng: random.Random) -> Reply:
    """It says that it lives, for ever, and nothing else."""
    return Reply(pieces=[body[: rng.randrange(len(body) + 1)]], endless=b": ping\n\n")


def endless(body: bytes, rng: random.Random) -> Reply:
    """It says the same for ever."""
    events = body.split(b"\n\n")
    return Reply(pieces=[body[: len(body) // 2]], endless=events[len(events) // 2] + b"\n\n")


def busy(body: bytes, rng: random.Random) -> Reply:
    """Too many requests; it says how long to wait, in one way or another, or nonsense."""
    waits = (
        "0",
        "1",
        "0.5",
        "3600",
        "soon",
        "-3",
        "Wed, 21 Oct 2035 07:28:00 GMT",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "",
    )
    said = {"retry-after": rng.choice(waits)}
    return Reply(429, said, [b'{"error": {"message": "slow down"}}'])


def failing(body: bytes, rng: random.Random) -> Reply:
    """The server is broken, or something in front of it is."""
    said = rng.choice(
        (b"", b"<html>Bad Gateway</html>", b'{"error": "oops"}', b'{"error": {"message": null}}', b"null")
    )
    return Reply(rng.choice((500, 502, 503, 504, 529)), {}, [said])


def refusing(body: bytes, rng: random.Random) -> Reply:
    """The request is refused."""
    said = rng.choice((b'{"error": {"message": "no such model"}}', b'{"message": "no"}', b"[]", b"\xff\xfe"))
    return Reply(rng.choice((400, 401, 403, 404, 422, 301)), {}, [said])


def unreachable(body: bytes, rng: random.Random) -> Reply:
    """There is no connection."""
    return Reply(refused=rng.choice((httpx.ConnectError("refused"), httpx.ConnectTimeout(""), httpx.ReadTimeout(""))))


def strange(body: bytes, rng: random.Random) -> Reply:
    """An answer that is none, said to be one."""
    said = (b"", b"\n", b"data: [DONE]\n\n", b"<html></html>", b"{}", b"[]", b"null", b"data: {}\n\ndata: 7\n\n")
    return Reply(pieces=[rng.choice(said)])


def huge(body: bytes, rng: random.Random) -> Reply:
    """A line without an end, or very many events."""
    events = body.split(b"\n\n")
    longest = max(events, key=len)
    many = (longest + b"\n\n") * min(2_000, 1 + HUGE // (len(longest) + 2))
    return Reply(pieces=[rng.choice((b"data: " + b"x" * HUGE, many)), body])


FAULTS: tuple[Callable[[bytes, random.Random], Reply], ...] = (
    *(cut, torn, garbled, garbage, halved, doubled, shuffled, silent, mute, pinging, endless, busy, busy),
    *(failing, failing, refusing, unreachable, strange, huge),
)


# -- what the model says ---------------------------------------------------------------------------------------------


def said_by_model(rng: random.Random, last: bool) -> ParsedResponse:
    """What a model might answer."""
    usage = rng.choice((None, Usage(rng.randrange(1000), rng.randrange(100)), Usage(10**9, 0)))
    if last or rng.random() < 0.2:
        return ParsedResponse(rng.choice(("Done.", "Fertig. \u00e4\U0001f600", "x" * 100_000)), usage=usage)
    many = rng.choice((1, 1, 2, 3, 4, 100))
    return ParsedResponse(
        rng.choice(("", "Let me see.")),
        tool_calls=tuple(_call(rng, at) for at in range(many)),
        finish_reason=FinishReason.TOOL_CALLS,
        usage=usage,
    )


def _call(rng: random.Random, at: int) -> ToolCall:
    name = rng.choice(("add", "add", "echo", "echo", "fail", "nobody"))
    given: dict[str, Any] = {"add": {"a": rng.randrange(9), "b": at}, "echo": {"text": rng.choice(TEXTS)}}.get(name, {})
    if rng.random() < 0.1:
        given = {"a": "seven"}
    return ToolCall(name, given, rng.choice((f"call_{at}_{rng.randrange(999)}", "same", "call_1")))


TEXTS = ("tea", "a\nb", "</tool_call>", "\u2028\U0001f600\x00", '{"a": [1, 2', "y" * 50_000)


class Answers:
    """The replies of a run, one after another, each with its faults.

    Attributes:
        faults: those that came.
        opened, closed: answers that were begun, and let go of.
    """

    def __init__(self, rng: random.Random, api: ProviderApi, format: str, rate: float) -> None:
        self.faults: Counter[str] = Counter()
        self.opened = self.closed = 0
        self._rng = rng
        self._api = api
        self._format = format
        self._rate = rate
        self._left = rng.randrange(1, 8)

    def next(self) -> Reply:
        """The next reply."""
        rng = self._rng
        self._left -= 1
        response = said_by_model(rng, self._left < 0)
        if self._format and response.tool_calls:
            with suppress(toolwire.RenderError):
                text = render_calls(response.tool_calls, format=self._format)
                response = ParsedResponse(f"{response.content}\n{text}", usage=response.usage)
        body = b"".join(self._api.encode_stream(replay(response)))
        if rng.random() >= self._rate:
            return Reply(pieces=_in_pieces(body, rng))
        fault = rng.choice(FAULTS)
        self.faults[fault.__name__] += 1
        return fault(body, rng)


def _in_pieces(body: bytes, rng: random.Random) -> list[Piece]:
    size = rng.choice((1, 97, 4096)) if len(body) < 5_000 else 4096
    return [body[at : at + size] for at in range(0, len(body), size)]


# -- connections -----------------------------------------------------------------------------------------------------


class _Body(httpx.AsyncByteStream):
    def __init__(self, reply: Reply, answers: Answers) -> None:
        self._reply = reply
        self._answers = answers
        self._answers.opened += 1

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._reply.body()) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        self._answers.closed += 1


class _Wire(httpx.AsyncBaseTransport):
    """Under httpx: everything above it is real, the tries after errors included."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        reply = self._answers.next()
        if reply.refused is not None:
            raise reply.refused
        return httpx.Response(reply.status, headers=reply.headers, stream=_Body(reply, self._answers))


class _Script:
    """In place of HTTP, as tests have it."""

    offline = True

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        """The next reply."""
        json.loads(request.body)
        reply = self._answers.next()
        if reply.refused is not None:
            raise ProviderError(f"cannot be reached: {reply.refused!r}")
        self._answers.opened += 1
        try:
            yield HttpAnswer(reply.status, reply.headers, _told(reply))
        finally:
            self._answers.closed += 1


async def _told(reply: Reply) -> AsyncIterator[bytes]:
    try:
        async for piece in reply.body():
            yield piece
    except httpx.HTTPError as error:
        raise ProviderError(f"the answer was cut off: {error!r}") from error


@asynccontextmanager
async def connection(kind: str, answers: Answers, api: ProviderApi) -> AsyncIterator[tuple[Transport, str]]:
    """What carries the requests of a run, and the server's address."""
    if kind == "script":
        yield _Script(answers), "http://model.invalid"
    elif kind == "scripted":
        replies = [answers.next() for _ in range(20)]
        bodies = [b"".join(piece for piece in one.pieces if isinstance(piece, bytes)) for one in replies]
        yield (
            ScriptedTransport(api, [(one.status, body) for one, body in zip(replies, bodies, strict=True)]),
            "http://x",
        )
    elif kind == "http":
        async with httpx.AsyncClient(transport=_Wire(answers)) as client:
            yield _patient(HttpTransport(client, retry=Retry(3))), "http://model.invalid"
    else:
        async with _server(answers) as url, httpx.AsyncClient(timeout=READ_SECONDS * 2) as client:
            yield _patient(HttpTransport(client, retry=Retry(3))), url


def _patient(transport: HttpTransport) -> HttpTransport:
    """One that does not really wait before it tries again."""

    async def no_time(_: float) -> None:
        await asyncio.sleep(0)

    sleep: Callable[[float], Awaitable[None]] = no_time
    transport._sleep = sleep
    return transport


@asynccontextmanager
async def _server(answers: Answers) -> AsyncIterator[str]:
    """A server on a socket."""
    working: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        working.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            reply = answers.next()
            if reply.refused is None:
                said = "".join(f"{key}: {value}\r\n" for key, value in reply.headers.items())
                writer.write(f"HTTP/1.1 {reply.status} OK\r\n{said}connection: close\r\n\r\n".encode())
                async for piece in reply.body():
                    writer.write(piece)
                    await writer.drain()
        except (OSError, EOFError, httpx.HTTPError, asyncio.CancelledError):  # cancelled when the run has ended
            writer.transport.abort()
        finally:
            writer.close()
            working.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(working):
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
        await server.wait_closed()


# -- runs ------------------------------------------------------------------------------------------------------------


@dataclass
class Ran:
    """What became of a run."""

    number: int
    kind: str
    reason: str = ""
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def tools() -> tuple[list[Any], Counter[str]]:
    """Tools of one run, and how often they ran."""
    ran: Counter[str] = Counter()

    async def add(a: int, b: int) -> int:
        """Adds."""
        ran["add"] += 1
        return a + b

    async def echo(text: str) -> str:
        """Says it again."""
        ran["echo"] += 1
        return text

    async def fail() -> str:
        """Fails."""
        ran["fail"] += 1
        raise ToolError("it failed")

    return [add, echo, fail], ran


async def run_one(number: int, seed: int) -> Ran:
    """One run, and what is wrong with it."""
    rng = random.Random(f"{seed}.{number}")
    kind = rng.choice(("script", "script", "http", "http", "http", "scripted", "socket"))
    names = [name for name in toolwire.apis() if name not in WITH_ACCOUNTS or kind in ("script", "scripted")]
    api = toolwire.get_api(rng.choice(names))
    format = rng.choice(FORMATS) if rng.random() < 0.3 else ""
    answers = Answers(rng, api, format, rng.choice((0.1, 0.5, 0.9)))
    made = Ran(number, f"{kind}, {api.name}{f', {format}' if format else ''}")
    given, ran = tools()
    async with connection(kind, answers, api) as (transport, url):
        client = Client(api, "model", base_url=url, key="secret", transport=transport)
        backend: Backend = TextBackend(client_source(client), format=format) if format else ApiBackend(client)
        config = AgentConfig(
            budget=BUDGET,
            silence=SILENCE,
            answer_seconds=ANSWER_SECONDS,
            context=rng.choice((None, 2_000)),
            require_tool_call=rng.random() < 0.1,
        )
        agent = Agent(backend, given, config, telemetry=False)
        begun = time.perf_counter()
        end, begun_calls = await _ended(agent, made)
        made.seconds = time.perf_counter() - begun
    made.faults = answers.faults
    if end is not None:
        made.reason = end.reason
        made.failures += list(_wrong(end, api, sum(ran.values()), begun_calls, given))
    if answers.opened != answers.closed:
        made.failures.append(f"{answers.opened - answers.closed} answers were not let go of")
    return made


async def _ended(agent: Agent, made: Ran) -> tuple[RunEnded | None, int]:
    """The end of a run, and how many calls went to tools."""
    ends: list[RunEnded] = []
    begun = 0

    async def go() -> None:
        nonlocal begun
        async with aclosing(agent.run("Do it.", run_id=f"chaos{made.number}")) as events:
            async for event in events:
                if ends:
                    made.failures.append(f"{type(event).__name__} came behind the end")
                begun += isinstance(event, ToolStarted)
                if isinstance(event, RunEnded):
                    ends.append(event)

    async def wait() -> None:
        for _ in range(HANGS):
            await asyncio.sleep(0.1)

    running, waiting = asyncio.create_task(go()), asyncio.create_task(wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if not running.done():
        made.failures.append("it hangs")
    for task in (running, waiting):
        task.cancel()
    (error, _) = await asyncio.gather(running, waiting, return_exceptions=True)
    if isinstance(error, Exception):
        made.failures.append(f"it raised {error!r:.300}")
    if not ends and not made.failures:
        made.failures.append("it has no end")
    return (ends[0] if ends else None), begun


def _wrong(end: RunEnded, api: ProviderApi, ran: int, begun: int, given: list[Any]) -> Iterator[str]:
    if end.reason not in get_args(EndReason):
        yield f"the reason {end.reason!r} is none"
    if end.good and not end.answer.strip():
        yield "it has no answer"
    if not end.good and not (end.detail or end.answer):
        yield f"it does not say what is wrong: {end.reason}"
    if end.rounds > BUDGET.rounds:
        yield f"{end.rounds} rounds"
    if BUDGET.calls is not None and max(ran, begun) > BUDGET.calls:
        yield f"{ran} calls ran, {begun} were begun"
    yield from _unpaired(end.messages)
    try:
        request = ChatRequest(messages=end.messages)
        body = api.encode_request(request, tools=given, model="model")
        json.dumps(body, allow_nan=False).encode()
    except Exception as error:
        yield f"the conversation cannot be gone on with: {error!r:.300}"


def _unpaired(messages: tuple[Message, ...]) -> Iterator[str]:
    """Calls without exactly one result right behind them."""
    for at, message in enumerate(messages):
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if not calls:
            continue
        behind = messages[at + 1].parts if at + 1 < len(messages) else ()
        results = [part.call_id for part in behind if isinstance(part, ToolResult)]
        if results != [call.id for call in calls]:
            yield f"the calls {[call.id for call in calls]} got the results {results}"[:2000]


async def _all(runs: int, seed: int, told: Callable[[], None]) -> tuple[list[Ran], list[str]]:
    loop, left = asyncio.get_running_loop(), list[str]()
    loop.set_exception_handler(
        lambda _, context: left.append(f"{context['message']}: {context.get('exception')!r:.200}")
    )
    gate = asyncio.Semaphore(TOGETHER)

    async def one(number: int) -> Ran:
        async with gate:
            made = await run_one(number, seed)
            told()
            return made

    before = _open_files()
    made = await asyncio.gather(*(one(number) for number in range(runs)))
    for _ in range(3):  # callbacks of sockets that were closed just now
        await asyncio.sleep(0)
    gc.collect()
    left += [f"a task is left: {task!r:.200}" for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    left += [f"a file or socket is left: {one}" for one in _open_files() - before]
    return made, left


def _open_files() -> set[str]:
    """Files and sockets of this process that are open, where the system tells."""
    found = set[str]()
    with suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
    return {one for one in found if "/proc/" not in one}


def measured(runs: int, seed: int, *, shown: bool = False) -> dict[str, Any]:
    """Figures of so many runs."""
    threads = set(threading.enumerate())
    with Progress(disable=not shown) as progress:
        bar = progress.add_task("runs", total=runs)
        made, left = asyncio.run(_all(runs, seed, lambda: progress.advance(bar)))
    left += [
        f"a thread is left: {thread.name}"
        for thread in set(threading.enumerate()) - threads
        if "rich" not in thread.name
    ]
    faults: Counter[str] = sum((one.faults for one in made), Counter())
    failures = [f"run {one.number} ({one.kind}): {failure}" for one in made for failure in one.failures]
    return {
        "runs": len(made),
        "ended in an answer or a clear error": sum(bool(one.reason) and not one.failures for one in made),
        "hanging": sum("it hangs" in one.failures for one in made),
        "left over": len(left),
        "faults": sum(faults.values()),
        "longest run in seconds": max(one.seconds for one in made),
        "ends": dict(Counter(one.reason for one in made).most_common()),
        "kinds of faults": dict(faults.most_common()),
        "failures": failures + left,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="how many runs")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures = measured(options.runs, options.seed, shown=not options.json and sys.stderr.isatty())
    if options.json:
        print(json.dumps(figures))
    else:
        failures = figures.pop("failures")
        for name, value in figures.items():
            print(f"{name}: {value if not isinstance(value, float) else f'{value:.3g}'}")
        for failure in failures:
            print(failure)
        return 1 if failures else 0
    return 1 if figures["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())

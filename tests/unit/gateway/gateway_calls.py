"""Requests to a gateway in this process, and backends that answer from a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.simulated_time import SimulatedTimeLoop

from toolwire import Event, ParsedResponse, collect, get_api
from toolwire.agent.prices import ModelPrices
from toolwire.gateway.access import Access
from toolwire.gateway.app import Gateway
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Answer, EventAnswer, Question, Upstream

TOOL = {
    "name": "get_weather",
    "description": "Weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def asked(api: str, *, model: str = "m", stream: bool = False, tools: bool = True) -> tuple[str, dict[str, Any]]:
    """Return the path and the body of one question in an API."""
    schema = TOOL["parameters"]
    question = "Weather in Paris?"
    function = {"type": "function", "function": TOOL}
    match api:
        case "chat":
            body: dict[str, Any] = {"messages": [{"role": "user", "content": question}], "tools": [function]}
            path = "/v1/chat/completions"
        case "responses":
            body = {"input": question, "tools": [{"type": "function", **TOOL}]}
            path = "/v1/responses"
        case "messages":
            tool = {"name": TOOL["name"], "description": "Weather.", "input_schema": schema}
            body = {"max_tokens": 99, "messages": [{"role": "user", "content": question}], "tools": [tool]}
            path = "/v1/messages"
        case "gemini":
            declared = {"name": TOOL["name"], "description": "Weather.", "parametersJsonSchema": schema}
            body = {"contents": [{"role": "user", "parts": [{"text": question}]}]}
            body["tools"] = [{"functionDeclarations": [declared]}]
            method = "streamGenerateContent" if stream else "generateContent"
            if not tools:
                del body["tools"]
            return f"/v1beta/models/{model}:{method}", body
        case _:
            body = {"messages": [{"role": "user", "content": question}], "tools": [function]}
            path = "/api/chat"
    if not tools:
        del body["tools"]
    return path, {"model": model, "stream": stream, **body}


CLIENTS = {
    "chat": "openai_chat",
    "responses": "openai_responses",
    "messages": "anthropic_messages",
    "gemini": "gemini",
    "ollama": "ollama",
}
"""The APIs of clients, with the codec that reads the answers."""


@dataclass
class Got:
    """A response of the gateway.

    Attributes:
        pieces: the pieces of the body, each with the time in which it was sent, in seconds.
    """

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    pieces: list[tuple[float, bytes]] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def request(
    app: Any,
    path: str,
    body: Any = None,
    *,
    method: str = "POST",
    headers: dict[str, str] | None = None,
    repeated: Sequence[tuple[str, str]] = (),
    leaves_after: float | None = None,
) -> Got:
    """Send a request, and return the response; the client leaves after so many seconds.

    The headers `repeated` come before the others, which may have the same names.
    """
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    path, _, query = path.partition("?")
    all_headers = {"host": "127.0.0.1:4100", **(headers or {})}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in (*repeated, *all_headers.items())],
    }
    got = Got()
    done = asyncio.Event()
    arrived = [{"type": "http.request", "body": data, "more_body": False}]

    async def receive() -> Any:
        if arrived:
            return arrived.pop()
        if leaves_after is not None:
            await asyncio.sleep(leaves_after)
        else:
            await done.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            assert not got.status
            got.status = message["status"]
            got.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        assert got.status
        got.pieces.append((asyncio.get_running_loop().time(), message.get("body", b"")))
        if not message.get("more_body"):
            done.set()

    await app(scope, receive, send)
    return got


def run(app: Any, path: str, body: Any = None, **options: Any) -> Got:
    """Send a request in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedTimeLoop) as runner:
        return runner.run(request(app, path, body, **options))


def answer_in(api: str, body: bytes, *, stream: bool) -> ParsedResponse:
    """Return the answer that a client of an API reads."""
    codec = get_api(CLIENTS[api])
    if not stream:
        return codec.decode_response(json.loads(body))
    decoder = codec.stream_decoder()
    return collect([*decoder.feed(body), *decoder.finish()])


def error_of(api: str, body: Any) -> tuple[Any, str]:
    """Return what names the kind of an error in an API, and the message."""
    if api == "ollama":
        return None, body["error"]
    error = body["error"]
    if api == "messages":
        assert body["type"] == "error"
    return error.get("status" if api == "gemini" else "type"), error["message"]


class Scripted:
    """A backend that gives the same events for each question, or fails.

    Attributes:
        questions: the questions so far.
        closed: number of answers that were closed.
    """

    def __init__(self, *groups: Iterable[Event] | float | Exception, name: str = "scripted", opens: Any = None) -> None:
        self.name = name
        self.api = ""
        self.prices: ModelPrices | None = None
        self.questions: list[Question] = []
        self.closed = 0
        self._groups = groups
        self._opens = opens

    async def list_models(self) -> list[str]:
        return ["m"]

    def prices_of(self, model: str) -> ModelPrices | None:
        return self.prices

    @asynccontextmanager
    async def open(self, question: Question) -> AsyncIterator[Answer]:
        self.questions.append(question)
        if isinstance(self._opens, Exception):
            raise self._opens
        if self._opens is not None:
            await asyncio.sleep(self._opens)
        try:
            yield EventAnswer(self._events())
        finally:
            self.closed += 1

    async def _events(self) -> AsyncIterator[list[Event]]:
        for group in self._groups:
            if isinstance(group, Exception):
                raise group
            if isinstance(group, float):
                await asyncio.sleep(group)
            else:
                yield list(group)


def gateway(*upstreams: Upstream, access: Access | None = None, **model: Any) -> Gateway:
    """Return a gateway whose models are all answered by these backends, the later ones as fallbacks."""
    first, *rest = upstreams
    return Gateway(ModelTable([ServedModel("*", (first,), fallbacks=tuple(rest), **model)]), access=access)


Ask = Callable[..., Got]

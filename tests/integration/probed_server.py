"""A server of any API on loopback: a healthy one, and broken ones that differ from it by one planted fault each."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tests.integration.scripted_model import in_pieces, prompt_of, respond
from tests.integration.servers import PIECE, Answer, Asked, serving

import toolwire
from toolwire import ParsedResponse
from toolwire.errors import DefinitionError
from toolwire.providers.base import ProviderApi
from toolwire.providers.request import ChatRequest

KEY = "key-of-the-test"
MODEL = "m"
Body = dict[str, Any]


def _same(value: Any, *_: Any) -> Any:
    return value


@dataclass(frozen=True)
class Fault:
    """A fault of a server, as changes of what passes through it.

    Attributes:
        probes: the probes that have to fail, at least.
        body: changes the body of a request before it is read.
        request: changes a request before the model sees it.
        response: changes the answer of the model.
        whole: changes the body of a whole answer.
        chunks: changes the objects of a stream of server-sent events.
        data: changes the bytes of an answer, of a stream if the second argument is true.
        reply: changes the finished answer to a request.
    """

    probes: frozenset[str] = frozenset()
    body: Callable[[Body], Body] = _same
    request: Callable[[ChatRequest], ChatRequest] = _same
    response: Callable[[ParsedResponse, ChatRequest], ParsedResponse] = _same
    whole: Callable[[Body], Body] = _same
    chunks: Callable[[list[Any]], list[Any]] = _same
    data: Callable[[bytes, bool], bytes] = _same
    reply: Callable[[Answer, Asked], Answer] = _same


HEALTHY = Fault()


@contextmanager
def probed(api_name: str, fault: Fault = HEALTHY) -> Iterator[str]:
    """Yield the address of a server."""
    server = _Server(toolwire.get_api(api_name), fault)
    with serving(lambda asked: fault.reply(server.answer(asked), asked), get=True) as url:
        yield url


class _Server:
    def __init__(self, api: ProviderApi, fault: Fault) -> None:
        self._api = api
        self._fault = fault
        self._numbers = itertools.count(1)

    def answer(self, asked: Asked) -> Answer:
        if asked.method == "GET":
            return _json({"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        if KEY not in "".join(asked.headers.values()):
            return self._error(401, "Incorrect API key provided")
        try:
            body = json.loads(asked.body)
        except ValueError as error:
            return self._error(400, f"the body is not JSON: {error}")
        if not isinstance(body, dict):
            return self._error(400, "the body is not an object")
        body = self._fault.body(body)
        try:
            request = self._api.decode_request(body)
        except DefinitionError as error:
            return self._error(400, str(error))
        if reason := _refusal(request, body):
            return self._error(404 if "model" in reason else 400, reason)
        request = self._fault.request(request)
        if asked.path == "/apply-template":
            return _json({"prompt": prompt_of(request)})
        return self._answered(request, bool(body.get("stream")) or "stream" in asked.path)

    def _answered(self, request: ChatRequest, streams: bool) -> Answer:
        answer = respond(request)
        calls = tuple(replace(call, id=f"call{next(self._numbers):05d}") for call in answer.tool_calls)
        answer = self._fault.response(replace(answer, tool_calls=calls), request)
        if not streams:
            body = self._fault.whole(self._api.encode_response(answer, model=MODEL, created=1_700_000_000))
            return replace(_json(body), body=self._fault.data(json.dumps(body).encode(), False))
        events = in_pieces(toolwire.replay(answer))
        data = b"".join(self._api.encode_stream(events, model=MODEL, created=1_700_000_000))
        if self._fault.chunks is not _same:
            data = _framed(self._fault.chunks(_chunks(data)))
        data = self._fault.data(data, True)
        # The longest answers take long enough that a stream can be told from an answer that arrives at once.
        pause = 0.4 / (len(data) / PIECE) if "1 to 40" in str(request.messages[-1]) else 0.0
        kind = {"ollama": "application/x-ndjson", "bedrock_converse": "application/vnd.amazon.eventstream"}
        return Answer(data, content_type=kind.get(self._api.kind, "text/event-stream"), pause=pause)

    def _error(self, status: int, message: str) -> Answer:
        error: Any = {"message": message, "type": "invalid_request_error"}
        forms = {"ollama": {"error": message}, "mistral": {"object": "error", **error}, "cohere": {"message": message}}
        return _json(forms.get(self._api.kind, {"error": error}), status)


def _refusal(request: ChatRequest, body: Body) -> str:
    """Return why a sound server refuses a request; "" if it does not."""
    conversation = next((body[name] for name in ("messages", "contents", "input") if name in body), None)
    if not request.messages or not isinstance(conversation, list | str):
        return "there are no messages"
    if request.model not in ("", MODEL):
        return f"there is no model {request.model}"
    if any(not tool.name for tool in request.tools) or (body.get("tools") and not request.tools):
        return "a tool has no name"
    return ""


def _json(body: Any, status: int = 200) -> Answer:
    return Answer(json.dumps(body).encode(), status=status)


def _chunks(data: bytes) -> list[Any]:
    """Return the objects of server-sent events; their end marks are texts."""
    parts = [line.removeprefix(b"data:").strip() for line in data.splitlines() if line.startswith(b"data:")]
    return [json.loads(part) if part.startswith(b"{") else part.decode() for part in parts]


def _framed(chunks: list[Any]) -> bytes:
    return b"".join(
        b"data: " + (chunk if isinstance(chunk, str) else json.dumps(chunk)).encode() + b"\n\n" for chunk in chunks
    )

"""Models and transports for tests: scripted answers, and recordings of real ones.

`ScriptedBackend` stands in for a model. `ScriptedTransport` stands in for a server, so that a request and its answer
pass through the whole client. `RecordingTransport` records what a real server answers, and `ReplayTransport` answers
from the recording.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolwire._surface import check_items, check_type, wrong_type
from toolwire.client.exchange import HttpAnswer, HttpRequest, Transport
from toolwire.client.response_body import MAX_STREAM, limited
from toolwire.errors import ConfigurationError, ProviderError
from toolwire.events import Event, replay
from toolwire.messages import ParsedResponse
from toolwire.models.backends import NO_OPTIONS, StreamOptions
from toolwire.providers.api_registry import get_api
from toolwire.providers.base import ProviderApi
from toolwire.providers.request import ChatRequest
from toolwire.text.redaction import REDACTED, is_secret_name, redact_value, secrets_in
from toolwire.text.secret_spellings import secret_spellings

__all__ = ["RecordingTransport", "ReplayTransport", "ScriptedBackend", "ScriptedTransport"]

PIECE = 97
"""Bytes of an answer that arrive at a time by default: few enough to split events and characters."""


_ANSWERS = (ParsedResponse, str, Sequence, ProviderError)
_EXPECTED = "an iterable of responses, texts, lists of events, or errors"


class ScriptedBackend:
    """A model that gives prepared answers.

    Args:
        answers: one answer per request: a response, its text, its events, or an error to raise.
        format: the wire format that the model is taken to write; "" for an API with fields for tools.

    Attributes:
        requests: the requests so far.

    Raises:
        ProviderError: (from `stream`) no answer is left.
    """

    model = "scripted"
    api = ""

    def __init__(
        self, answers: Iterable[ParsedResponse | str | Sequence[Event] | ProviderError], *, format: str = ""
    ) -> None:
        check_type("answers", answers, Iterable, _EXPECTED)
        if isinstance(answers, Collection):  # an iterator is read answer by answer
            check_items("answers", answers, _ANSWERS, _EXPECTED)
        self.format = format
        self.requests: list[ChatRequest] = []
        self._answers = iter(answers)

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        """Yield the events of the next answer."""
        self.requests.append(request)
        answer = next(self._answers, None)
        if answer is None:
            count = len(self.requests)
            raise ProviderError(f"the script has no answer {count}: the model was asked more often than it has answers")
        if isinstance(answer, ProviderError):
            raise answer
        if isinstance(answer, str):
            answer = ParsedResponse(answer)
        for event in replay(answer) if isinstance(answer, ParsedResponse) else answer:
            yield event


class ScriptedTransport:
    """A server that gives prepared answers in the words of an API.

    Args:
        api: the API that answers, or its name.
        answers: one answer per request: a response to encode, the bytes of a body, a status with such bytes, or an
            exception to raise.
        piece: bytes that arrive at a time.

    Attributes:
        requests: the JSON bodies of the requests so far.
    """

    offline = True

    def __init__(
        self,
        api: str | ProviderApi,
        answers: Iterable[ParsedResponse | bytes | tuple[int, bytes] | Exception],
        *,
        piece: int = PIECE,
    ) -> None:
        self._api = get_api(api)
        self._answers = list(answers)
        expected = "an iterable of responses, bytes, tuples of a status and bytes, or errors"
        check_items("answers", self._answers, (ParsedResponse, bytes, tuple, Exception), expected)
        self._piece = piece
        self.requests: list[Any] = []

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        """Give the next answer.

        Raises:
            ProviderError: no answer is left.
        """
        self.requests.append(json.loads(request.body))
        if not self._answers:
            raise ProviderError("the script has no answer left")
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        if isinstance(body, ParsedResponse):
            body = self._encode(body, request)
        yield HttpAnswer(status, {}, _pieces(body, self._piece))

    def _encode(self, response: ParsedResponse, request: HttpRequest) -> bytes:
        if _is_stream(request):
            return b"".join(self._api.encode_stream(replay(response)))
        return json.dumps(self._api.encode_response(response)).encode()


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A request and its answer: a line of a recording.

    Attributes:
        url: without user, password, query and fragment.
        request: the JSON body, redacted.
        status: the HTTP status of the answer.
        answer: the bytes of the answer as Latin-1 text, so that any body can be stored.
    """

    url: str
    request: Any
    status: int
    answer: str


class RecordingTransport:
    """Passes requests to another transport and records the exchanges in a file of JSON lines.

    An answer of more than 128 MiB ends with an error. No header and no query of a URL is recorded. Secrets in a request
    are redacted, as are their copies in the answer.

    Args:
        inner: the transport that carries the requests, such as `toolwire.models.HttpTransport`.
        path: the file; new exchanges are appended.
    """

    def __init__(self, inner: Transport, path: str | PathLike[str]) -> None:
        if not callable(getattr(inner, "open", None)):
            raise wrong_type("inner", inner, "a Transport, such as HttpTransport()")
        self._inner = inner
        self._path = Path(path)

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        """Send a request; the exchange is recorded once its answer was read to the end."""
        async with self._inner.open(request) as answer:
            yield HttpAnswer(answer.status, answer.headers, self._record(request, answer))

    async def _record(self, request: HttpRequest, answer: HttpAnswer) -> AsyncIterator[bytes]:
        pieces: list[bytes] = []
        async for piece in limited(answer.body, MAX_STREAM, answer.status):
            pieces.append(piece)
            yield piece
        body = b"".join(pieces)
        keys = [value.rpartition(" ")[2] for name, value in request.headers.items() if is_secret_name(name)]
        for secret in secret_spellings([*keys, *secrets_in(json.loads(request.body))]):
            body = body.replace(secret.encode(), REDACTED.encode())
        exchange = _Exchange(*_recorded(request), answer.status, body.decode("latin-1"))
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(exchange)) + "\n")


class ReplayTransport:
    """Answers from a recording: a request gets the first answer to an equal request that was not given yet.

    Args:
        path: a file that `RecordingTransport` wrote.
        piece: bytes that arrive at a time.

    Raises:
        ConfigurationError: the file is not a recording; the message names the line.
    """

    offline = True

    def __init__(self, path: str | PathLike[str], *, piece: int = PIECE) -> None:
        check_type("path", path, (str, PathLike), "a path")
        self._exchanges = list(_exchanges(Path(path)))
        self._piece = piece

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        """Give the recorded answer.

        Raises:
            ProviderError: no equal request was recorded, or all of its answers were given.
        """
        url, body = _recorded(request)
        for at, exchange in enumerate(self._exchanges):
            if exchange.url == url and exchange.request == body:
                del self._exchanges[at]
                yield HttpAnswer(exchange.status, {}, _pieces(exchange.answer.encode("latin-1"), self._piece))
                return
        raise ProviderError(self._missing(url, body))

    def _missing(self, url: str, body: Any) -> str:
        """Return a message that says how a request differs from the recorded ones that are left."""
        bodies = [exchange.request for exchange in self._exchanges if exchange.url == url]
        if not bodies:
            others = ", ".join(sorted({exchange.url for exchange in self._exchanges})) or "none"
            return f"no such request to {url} was recorded, or its answers were given; left are requests to: {others}"
        differing = min((_differences(recorded, body) for recorded in bodies), key=len)
        return (
            f"no such request to {url} was recorded; "
            f"the most similar one differs in {', '.join(differing) or 'its type'}: record it anew if that is intended"
        )


def _exchanges(path: Path) -> Iterator[_Exchange]:
    """Yield the exchanges of a recording, read line by line.

    Raises:
        ConfigurationError: a line is not an exchange, or has an answer that is too large to have been recorded.
    """
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                exchange = json.loads(line)
            except (ValueError, RecursionError):
                exchange = None
            match exchange:
                case {"url": str(url), "request": request, "status": int(status), "answer": str(answer)}:
                    if len(answer) > MAX_STREAM:
                        raise ConfigurationError(f"{path}, line {number}: its answer has more than {MAX_STREAM} bytes")
                    yield _Exchange(url, request, status, answer)
                case _:
                    raise ConfigurationError(
                        f"{path}, line {number}: it is not an exchange that RecordingTransport wrote; record it anew"
                    )


def _differences(recorded: Any, body: Any) -> list[str]:
    """Return the members in which two bodies differ, sorted; none if they are not objects."""
    if not isinstance(recorded, dict) or not isinstance(body, dict):
        return []
    missing = object()
    return sorted(name for name in {*recorded, *body} if recorded.get(name, missing) != body.get(name, missing))


def _recorded(request: HttpRequest) -> tuple[str, Any]:
    """Return the URL and the body of a request as they are recorded."""
    url = urlsplit(request.url)
    host = url.netloc.rpartition("@")[2]
    return url._replace(netloc=host, query="", fragment="").geturl(), redact_value(json.loads(request.body))


def _is_stream(request: HttpRequest) -> bool:
    """Return whether a request asks for a stream, in its body or in the last part of its URL."""
    body = json.loads(request.body)
    streams = body.get("stream") if isinstance(body, dict) else None
    return bool(streams) or "stream" in request.url.rpartition("/")[2].lower()


async def _pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]

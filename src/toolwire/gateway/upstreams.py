"""Backends of the gateway: a provider API over HTTP, and a model that reads and writes text alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from toolwire.agent.prices import FREE, ModelPrices, published_prices, published_prices_at
from toolwire.client.client import Client
from toolwire.client.exchange import HttpAnswer
from toolwire.client.hidden_secrets import hidden_by
from toolwire.client.response_body import MAX_ERROR_BODY, MAX_STREAM, beginning, json_of, limited, refusal
from toolwire.errors import ConfigurationError, ProviderError, ToolwireError
from toolwire.events import Event, ProblemFound, collect, replay
from toolwire.gateway.answer_faults import check_all_read
from toolwire.gateway.client_tools import ClientTools
from toolwire.gateway.failures import GatewayFailure, backend_failure, failure_in_answer
from toolwire.gateway.fenced_output import FencedOutput
from toolwire.gateway.questions import Answer, EventAnswer, PassedAnswer, Question, at_once
from toolwire.gateway.request_body import LARGE, beside_loop
from toolwire.gateway.text_prompts import describe_request
from toolwire.gateway.unread_members import unread_members
from toolwire.inspector.recorded_exchange import BackendAttempt
from toolwire.messages import Message, Problem
from toolwire.models.backends import Backend, StreamOptions
from toolwire.providers.base import ProviderApi
from toolwire.providers.failure_kinds import INVALID, UNREACHABLE
from toolwire.providers.parsing import AnswerReader, merge_text
from toolwire.providers.request import ChatRequest, Note, result_texts
from toolwire.wire.format_registry import AUTO
from toolwire.wire.profiles import profile
from toolwire.wire.stream_parser import ParseOptions

_T = TypeVar("_T")

_ERROR = b'"error"'
"""A part of each error in a stream."""
_BEGINNING = 40
"""Length of a line, in bytes, in which an error says that it is one."""
MAX_MESSAGE = 2_000
"""Maximum length of a backend's message in an error, in characters."""
_RESPONSES, _STORE = "openai_responses", "store"
"""The API whose answers this server stores, and the member of its requests that says whether to."""


class _BackendRequest:
    """A question in the form that a backend takes.

    Args:
        question: the question.
        kind: the kind of the backend's API; "" for a model that reads text alone.
        text_format: the format in which calls in the text of the answer are read; None for none.
        hide: removes secrets from what the backend wrote about a problem; None if there are no secrets.

    Attributes:
        request: the request for the backend.
        attempt: records the answer for the inspector; None if it is off.
    """

    def __init__(
        self,
        question: Question,
        kind: str,
        text_format: str | None = None,
        hide: Callable[[str], str] | None = None,
    ) -> None:
        self.question = question
        self._hide = hide
        self.text_format = text_format
        self.attempt: BackendAttempt | None = None
        is_same = question.client_api.api.kind == kind
        self._tools = None if is_same else ClientTools(question.request, question.notes)
        for path in () if is_same else unread_members(question.body, question.client_api.api.kind):
            note = Note("dropped", path, "no other API has a place for it")
            if note not in question.notes:  # a model may be asked more than once
                question.notes.append(note)
        self.request = question.request if self._tools is None else _for_another_api(self._tools.request)
        if question.reading is not None:
            question.reading.tools = self.request.tools
            question.reading.reads_text = text_format is not None or not kind

    def text_options(self) -> ParseOptions:
        """Return the options for reading calls in the text of the answer."""
        return {
            "format": self.text_format or AUTO,
            "tools": self.request.tools,
            "id_seed": self.question.id,
            "results": result_texts(self.request.messages),
        }

    def restore(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events of the backend's answer with calls in the client's own form."""
        if self._hide is not None and any(isinstance(event, ProblemFound) for event in events):
            # Some backends quote the key of a request in an answer whose status is good.
            hide = self._hide
            events = [ProblemFound(hidden_by(e.problem, hide)) if isinstance(e, ProblemFound) else e for e in events]
        if self.question.reading is not None:
            self.question.reading.events += events
        return events if self._tools is None else self._tools.restore(events)


class ApiUpstream:
    """A model behind a provider API.

    A request of a client that speaks the same API is passed on, with what the client of the API adds to it, and so is
    the answer. A whole answer is encoded only if its text contains calls; a stream is always encoded where it may.
    Of several answers to one request, only the first is read.

    Args:
        client: the client of the API; its owner closes it.
        name: the backend's name, for messages.
        model: the model's name at the backend; "" to pass on the name that the client asked for.
        calls_in_text: the format in which calls in the text of an answer are read; "auto" for any, "none" for none, ""
            for the one in which the model is known to write them. Calls of an unknown model are read in any format,
            unless it is one of a provider's own.
    """

    def __init__(self, client: Client, *, name: str = "", model: str = "", calls_in_text: str = "") -> None:
        self.name = name or client.api.name
        self.api = client.api.name
        self._client = client
        self._model = model
        self._calls_in_text = calls_in_text

    async def list_models(self) -> list[str]:
        """See `Upstream`."""
        return [self._model] if self._model else await self._client.list_models()

    def prices_of(self, model: str) -> ModelPrices | None:
        """See `Upstream`."""
        return published_prices_at(self._client.price_provider, self._model or model)

    @asynccontextmanager
    async def open(self, question: Question) -> AsyncGenerator[Answer]:
        """See `Upstream`."""
        model = self._model or question.model
        text_format = self._text_format(question)
        client = self._client
        is_same = question.client_api.api.kind == client.api.kind
        if is_same and question.client_api.path:
            client = client.beside(question.client_api.api, question.client_api.path)
        elif not is_same:
            _check_translates(question, self.name)
        passes = is_same and question.passes
        if not passes:
            _check_one_answer(question, self.name)
        passes_stream = passes and question.stream and text_format is None

        def encoded() -> tuple[_BackendRequest, dict[str, Any]]:
            backend_request = _BackendRequest(question, client.api.kind, text_format, client.without_secrets)
            body = client.encode_request(
                backend_request.request,
                model=model,
                stream=question.stream,
                notes=question.notes,
                body=question.body if passes else None,
                counts_tokens=not passes_stream,  # a client gets what it has asked for
            )
            return backend_request, body

        try:
            backend_request, body = await beside_loop(question.size, encoded)
        except ToolwireError as error:
            raise GatewayFailure(INVALID, str(error), is_own=True) from error
        attempt: BackendAttempt | None = None
        if question.exchange is not None:
            attempt = question.exchange.attempt(self.name, client.api.name, model, text_format or "", body)
            backend_request.attempt = attempt
        try:
            opening = await beside_loop(
                question.size,
                client.open,
                body,
                model=model,
                stream=question.stream,
                extra_headers=question.trace_headers,
            )
            async with opening as answer:
                if attempt is not None:
                    attempt.answered(answer.status, passed=passes_stream and answer.good)
                if not answer.good:
                    raise await self._refused(answer)
                if passes_stream:
                    pieces = limited(answer.body, MAX_STREAM, answer.status)
                    pieces = pieces if attempt is None else attempt.passing(pieces)
                    first = await anext(pieces, b"")
                    self._check_begins(client.api.stream_decoder().feed(first) if _ERROR in first else ())
                    media_type = answer.headers.get("content-type", "")
                    yield PassedAnswer(media_type, self._shown(client.api, first, pieces))
                elif question.stream:
                    async with aclosing(self._streamed(answer, backend_request)) as groups:
                        # An error in place of an answer is waited for here: another backend may answer instead.
                        group = await anext(groups)
                        self._check_begins(group)
                        yield EventAnswer(_preceded(group, groups))
                else:
                    yield await self._whole(answer, client.api, backend_request, passes=passes)
        except ConfigurationError as error:
            raise GatewayFailure(UNREACHABLE, f"{self.name}: {error}") from error
        except ProviderError as error:  # it may quote what the server sent
            raise GatewayFailure(UNREACHABLE, f"{self.name}: {client.without_secrets(str(error))}") from error

    def _check_begins(self, events: Sequence[Event]) -> None:
        """Check that an answer does not begin with an error of the provider in its place.

        Raises:
            GatewayFailure: it does.
        """
        for event in events:
            if not isinstance(event, ProblemFound):
                return
            if _is_error(event):
                raise self._failure(event.problem)

    def _failure(self, problem: Problem) -> GatewayFailure:
        """Return the failure that an error of the provider in place of an answer stands for."""
        return failure_in_answer(hidden_by(problem, self._client.without_secrets), self.name)

    def _check_all_read(self, problem: Problem | None) -> None:
        """See `check_all_read`; the message contains no secrets."""
        check_all_read(None if problem is None else hidden_by(problem, self._client.without_secrets), self.name)

    async def _shown(self, api: ProviderApi, first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the pieces of a stream that is passed on; errors in it contain no secrets."""
        waiting = b""
        async for piece in _preceded(first, pieces):
            waiting += piece
            # An event that is or may become an error is looked at as a whole.
            rest = waiting[waiting.rfind(b"\n") + 1 :]
            if rest and (len(rest) < _BEGINNING or (_ERROR in rest and len(rest) < MAX_ERROR_BODY)):
                continue
            if waiting:
                yield self._without_quoted_secrets(api, waiting)
            waiting = b""
        if waiting:
            yield self._without_quoted_secrets(api, waiting)

    def _without_quoted_secrets(self, api: ProviderApi, data: bytes) -> bytes:
        # Everything else stays as it is: some keys are words, such as "local", that answers contain too.
        if _ERROR not in data or not any(map(_is_error, api.stream_decoder().feed(data + b"\n\n"))):
            return data
        text = data.decode("utf-8", "surrogateescape")
        return self._client.without_secrets(text).encode("utf-8", "surrogateescape")

    async def _streamed(self, answer: HttpAnswer, backend_request: _BackendRequest) -> AsyncGenerator[Sequence[Event]]:
        reads_text = backend_request.text_format is not None
        reader = AnswerReader(self._client.api, reads_text=reads_text, **backend_request.text_options())
        attempt = backend_request.attempt
        async for piece in limited(answer.body, MAX_STREAM, answer.status):
            events = reader.feed(piece)
            if events:
                events = list(backend_request.restore(events))
            if attempt is not None:
                attempt.arrived(piece, events)
            if events:
                yield events
        events = list(backend_request.restore(reader.finish()))
        if attempt is not None:
            attempt.arrived(b"", events)
        # What arrived before is still sent; a failure takes the place of the end.
        yield events[:-1]
        self._check_all_read(reader.problem)
        yield events[-1:]

    async def _whole(
        self, answer: HttpAnswer, api: ProviderApi, backend_request: _BackendRequest, *, passes: bool
    ) -> EventAnswer:
        """Read a whole answer; it is passed on if the client speaks its API and its text contains no calls."""
        body = await answer.read()
        media_type = answer.headers.get("content-type", "application/json")
        return await beside_loop(len(body), self._read, body, media_type, api, backend_request, passes=passes)

    def _read(
        self, body: bytes, media_type: str, api: ProviderApi, backend_request: _BackendRequest, *, passes: bool
    ) -> EventAnswer:
        data = json_of(body, lets_threads_run=len(body) >= LARGE)
        if not isinstance(data, dict):
            raise GatewayFailure(UNREACHABLE, f"{self.name} did not answer with a JSON object")
        response = api.decode_response(data, tools=backend_request.request.tools, id_seed=backend_request.question.id)
        events = list(replay(response))
        if backend_request.text_format is not None:
            events = list(merge_text(events, **backend_request.text_options()))
            passes = passes and collect(events) == response
        attempt = backend_request.attempt
        restored = backend_request.restore(events)
        error = next((problem for problem in response.problems if problem.kind == "provider_error"), None)
        if passes and error is None:
            if attempt is not None:
                attempt.passed_on(body)
            return EventAnswer(at_once(events), body, media_type, len(body))
        if attempt is not None:
            attempt.arrived(body, restored)
        if error is not None:
            raise self._failure(error)
        answer_problem = next((problem for problem in reversed(response.problems) if problem.index is None), None)
        self._check_all_read(answer_problem)
        return EventAnswer(at_once(restored), size=len(body))

    @property
    def may_read_text(self) -> bool:
        """True if there may be a model here whose calls are read in the text of its answers."""
        return self._calls_in_text != "none" and not (self._model and self._format_of(self._model) is None)

    def _text_format(self, question: Question) -> str | None:
        """Return the format in which calls in the text of an answer are read; None for none."""
        if not question.request.tools or self._calls_in_text == "none":
            return None
        return self._format_of(self._model or question.model)

    def _format_of(self, model: str) -> str | None:
        if self._calls_in_text:
            return self._calls_in_text
        model_profile = profile(model)
        if model_profile.known:
            return model_profile.text_format
        return None if self._client.price_provider else AUTO

    async def _refused(self, answer: HttpAnswer) -> GatewayFailure:
        body = await beginning(answer.body, MAX_ERROR_BODY)
        text = refusal(answer.status, answer.headers, body)
        message = self._client.without_secrets(text)[:MAX_MESSAGE] or "no message"
        return backend_failure(self.name, answer.status, body, answer.headers.get("retry-after", ""), message)


def _for_another_api(request: ChatRequest) -> ChatRequest:
    """Return a request without the members that this server has obeyed itself, which no note should call lost."""
    if request.provider != _RESPONSES or _STORE not in request.extra:
        return request
    return replace(request, extra={name: value for name, value in request.extra.items() if name != _STORE})


def _check_translates(question: Question, name: str) -> None:
    if question.client_api.translates:
        return
    message = f"{name} cannot complete a prompt: send a conversation to /v1/chat/completions"
    raise GatewayFailure(INVALID, message, parameter="model", is_own=True)


def _check_one_answer(question: Question, name: str) -> None:
    if question.has_choices:
        parameter = ".".join(question.client_api.choices)
        message = f"{parameter}: {name} gives one answer to a request; ask for 1, several times"
        raise GatewayFailure(INVALID, message, parameter=parameter, is_own=True)


def _is_error(event: Event) -> bool:
    return isinstance(event, ProblemFound) and event.problem.kind == "provider_error"


async def _preceded(first: _T, rest: AsyncIterator[_T]) -> AsyncIterator[_T]:
    """Yield a piece, and then the others."""
    yield first
    async for piece in rest:
        yield piece


class TextUpstream:
    """A model that reads and writes text alone: its calls are read from the text.

    Args:
        backend: the model; see `toolwire.models.TextBackend`.
        name: the backend's name, for messages.
    """

    may_read_text = True

    def __init__(self, backend: Backend, *, name: str = "") -> None:
        self.name = name or backend.model or "the model"
        self.api = backend.api
        self._backend = backend

    async def list_models(self) -> list[str]:
        """See `Upstream`."""
        return [self._backend.model]

    def prices_of(self, model: str) -> ModelPrices | None:
        """See `Upstream`; a model on this machine costs nothing."""
        return published_prices(self._backend) if self._backend.api else FREE

    @asynccontextmanager
    async def open(self, question: Question) -> AsyncGenerator[Answer]:
        """See `Upstream`."""
        _check_translates(question, self.name)
        _check_one_answer(question, self.name)
        written: list[str] | None = None
        prompt: list[Message] | None = None
        attempt: BackendAttempt | None = None
        if question.exchange is not None:
            written, prompt = [], []
            attempt = question.exchange.attempt(self.name, "", self._backend.model, self._backend.format, prompt)
        options = StreamOptions(id_seed=question.id, notes=question.notes, raw_text=written, prompt=prompt)
        try:
            backend_request = _BackendRequest(question, "")
            if question.reading is not None:
                question.reading.format = self._backend.format
            request = backend_request.request
            if self._backend.format:
                request = describe_request(request, self._backend.format)
        except ToolwireError as error:
            raise GatewayFailure(INVALID, str(error), is_own=True) from error
        async with aclosing(self._backend.stream(request, options)) as events:
            # The first event is waited for here: until it is there, another model may answer instead.
            try:
                first = await anext(events)
            except ProviderError as error:
                if not error.status:
                    raise GatewayFailure(UNREACHABLE, f"{self.name}: {error}") from error
                raise backend_failure(self.name, error.status, b"", error.retry_after, str(error)) from error
            except ToolwireError as error:
                raise GatewayFailure(INVALID, str(error), is_own=True) from error

            fenced = FencedOutput() if request.output is not None and self._backend.format else None

            def restored(event: Event) -> Sequence[Event]:
                group = backend_request.restore((event,))
                if fenced is not None:
                    group = fenced.without_fence(group)
                if attempt is not None and written is not None:
                    attempt.wrote(written, group)
                return group

            if attempt is not None:
                attempt.answered(0, passed=False)

            async def grouped() -> AsyncIterator[Sequence[Event]]:
                yield restored(first)
                async for event in events:
                    yield restored(event)

            yield EventAnswer(grouped())

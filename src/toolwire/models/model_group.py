"""Several models as one backend: the next one answers where one fails, or a function chooses one for each request.

    Fallback(["openai:gpt-5", ApiBackend(other), TextBackend(client_source(small), format="hermes")])
    Route({"code": coder, "text": writer}, lambda request: "code" if request.tools else "text")

Each model gets the request in its own format: an agent builds it anew for each of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal, get_args

from toolwire._surface import check_not_async, check_number, check_type, wrong_type
from toolwire.errors import DefinitionError, ProviderError
from toolwire.events import CallStart, ContentDelta, Event, Finish, ReasoningDelta, collect
from toolwire.messages import FinishReason
from toolwire.models.backends import NO_OPTIONS, Attempt, Backend, StreamOptions
from toolwire.models.named_models import as_backend
from toolwire.providers.request import ChatRequest

if TYPE_CHECKING:
    from toolwire.client.client import Client

Failure = Literal["connection", "server", "limit", "request", "refusal", "unreadable"]
"""Why a model did not answer:

- `connection`: it cannot be reached, or the answer broke off;
- `server`: status 5xx, or an error in the answer;
- `limit`: status 402 or 429, after the repetitions of the client;
- `request`: another status 4xx;
- `refusal`: a content filter stopped the answer;
- `unreadable`: the answer has a call that cannot be read, and no other.
"""

FAILURES: Final[tuple[Failure, ...]] = get_args(Failure)
FIRST_CHOICE: Final = "first choice"
"""The reason for which the first model answers."""
_OUTAGES: Final = frozenset[Failure]({"connection", "server", "limit"})
"""Failures of the service, which count for a circuit breaker; the others depend on the request."""
_UNREADABLE: Final = frozenset({"malformed", "missing_name", "truncated"})


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """When a model that keeps failing is skipped.

    Attributes:
        failures: number of successive failures to connect, of the server or by its limits.
        seconds: seconds for which the model is then skipped, unless all models are.
    """

    failures: int = 3
    seconds: float = 60.0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            TypeError: a value is of another type.
            ValueError: a model would be skipped before it has failed, or for less than no time.
        """
        check_number("failures", self.failures, "a number of failures", least=1, whole=True)
        check_number("seconds", self.seconds, "a number of seconds")


@dataclass(slots=True, eq=False)
class _Circuit:
    """One model of a `Fallback`, and its successive failures."""

    backend: Backend
    failures: int = 0
    skipped_until: float = 0.0


@dataclass(slots=True, eq=False)
class _Answer:
    """The answer of one model while it arrives.

    Attributes:
        circuit: the model's place among the others.
        backend: the model itself.
        attempt: what the reader of the answer knows of it.
        stream: yields its events.
        events: those that have arrived.
    """

    circuit: _Circuit
    backend: Backend
    attempt: Attempt
    stream: AsyncGenerator[Event]
    events: list[Event] = field(default_factory=list)

    async def open(self) -> None:
        """Wait until something of the answer has arrived, or its end."""
        async for event in self.stream:
            self.events.append(event)
            if isinstance(event, ContentDelta | ReasoningDelta | CallStart | Finish):
                return

    async def rest(self) -> AsyncGenerator[Event]:
        """Yield all events, those that have arrived first."""
        for event in tuple(self.events):
            yield event
        async for event in self.stream:
            self.events.append(event)
            yield event


class _PlainAttempt:
    """An attempt whose reader has one request for all models, and cannot begin again."""

    def __init__(self, request: ChatRequest, options: StreamOptions) -> None:
        self.request = request
        self.options = options

    def begin(self, reason: str, /) -> None:
        """See `Attempt`."""

    def drop(self, reason: str, events: Sequence[Event], /, *, billed: bool) -> None:
        """See `Attempt`."""


class _Group:
    """Several models that serve as one; the first one stands for all where a request is written.

    Attributes:
        backends: the models, at least one.
    """

    backends: tuple[Backend, ...]

    @property
    def model(self) -> str:
        """The name of the first model."""
        return self.backends[0].model

    @property
    def api(self) -> str:
        """The API of the first model."""
        return self.backends[0].api

    @property
    def format(self) -> str:
        """The wire format of the first model."""
        return self.backends[0].format


class Fallback(_Group):
    """Several models in order of preference: where one fails, the next one answers.

    A model is replaced before anything of its answer was passed on. In an agent it is also replaced afterwards: the
    turn then starts again with `TurnStarted`, and `ModelChosen` says which model answers, and why. Where all fail, the
    last failure is the result.

    Args:
        backends: the models, in any form that an `Agent` accepts; a `Route` among them chooses one for each request.
        on: the failures after which the next model is asked; see `Failure`.
        breaker: when a model that keeps failing is skipped; None for never.
        hedge: seconds without a piece of an answer after which the next model is asked too, and the faster one
            answers; None to wait. Both may have to be paid.
        clock: returns the time in seconds, for the circuit breaker.

    Attributes:
        backends: the models.

    Raises:
        DefinitionError: there is no model, one is a `Fallback` itself, or a failure is unknown.
        TypeError: a value is of another type.
    """

    def __init__(
        self,
        backends: Iterable[Backend | Client | str],
        *,
        on: Collection[Failure] = FAILURES,
        breaker: CircuitBreaker | None = CircuitBreaker(),
        hedge: float | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        check_type("backends", backends, Iterable, "a list of backends")
        check_number("hedge", hedge, "a number of seconds", optional=True)
        if isinstance(backends, str):
            raise wrong_type("backends", backends, "a list of backends")
        self.backends = tuple(as_backend(backend, "backends") for backend in backends)
        if not self.backends:
            raise DefinitionError("a Fallback needs a model")
        for backend in self.backends:
            if any(isinstance(inner, Fallback) for inner in (backend, *_inner(backend))):
                raise DefinitionError("a Fallback cannot contain another: write their models into one list")
        if unknown := sorted(set(on) - set(FAILURES)):
            raise DefinitionError(f"there is no failure {unknown[0]!r}; there are {', '.join(get_args(Failure))}")
        self._circuits = [_Circuit(backend) for backend in self.backends]
        self._on = frozenset(on)
        self._breaker = breaker
        self._hedge = hedge
        self._clock = clock

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        """Yield the events of the first model that answers; see `Backend`.

        Raises:
            ProviderError: no model answers; the message has the reason of each.
        """
        reasons: list[str] = []
        waiting = self._in_order(reasons)
        while True:
            answer = await self._first_answer(request, options, waiting, reasons)
            answer.attempt.begin("; ".join(reasons) or FIRST_CHOICE)
            can_restart = options.attempts is not None and bool(waiting)
            async with aclosing(answer.stream), aclosing(answer.rest()) as events:
                try:
                    async for event in events:
                        # An answer is judged before its end is passed on: until then it can be replaced.
                        if isinstance(event, Finish):
                            if self._failed(answer, reasons):
                                if can_restart:
                                    break
                            else:
                                answer.circuit.failures = 0
                        yield event
                    else:
                        return
                except ProviderError as error:
                    self._note_outage(answer.circuit, _kind_of(error))
                    if not can_restart or _kind_of(error) not in self._on:
                        raise
                    reasons.append(f"{answer.backend.model}: {error}")
                answer.attempt.drop(reasons[-1], answer.events, billed=True)

    def _in_order(self, reasons: list[str]) -> deque[_Circuit]:
        """Return the models to ask, without those to skip unless that is all of them."""
        now = self._clock()
        available = [circuit for circuit in self._circuits if circuit.skipped_until <= now]
        # A model that may have recovered is better than no model.
        if not available:
            return deque(self._circuits)
        reasons += [
            f"{circuit.backend.model} is skipped for {circuit.skipped_until - now:.0f} s, since it kept failing"
            for circuit in self._circuits
            if circuit not in available
        ]
        return deque(available)

    async def _first_answer(
        self, request: ChatRequest, options: StreamOptions, waiting: deque[_Circuit], reasons: list[str]
    ) -> _Answer:
        """Ask one model after the other, or two at once, until one of them begins to answer.

        Raises:
            ProviderError: none does.
        """
        running: dict[asyncio.Task[None], _Answer] = {}
        unread = "it was stopped"

        def ask_next() -> None:
            circuit = waiting.popleft()
            backend = circuit.backend
            while isinstance(backend, Route):
                _, backend = backend.choose(request)
            attempt = _attempt(backend, request, options)
            answer = _Answer(circuit, backend, attempt, backend.stream(attempt.request, attempt.options))
            running[asyncio.create_task(answer.open())] = answer

        try:
            while True:
                if not running:
                    ask_next()
                # One model more at a time, and two at most: each of them may have to be paid.
                hedge = self._hedge if len(running) == 1 and waiting else None
                finished, _ = await asyncio.wait(running, timeout=hedge, return_when=asyncio.FIRST_COMPLETED)
                if not finished:
                    reasons += [f"{slow.backend.model} sent nothing for {hedge:g} s" for slow in running.values()]
                    ask_next()
                for task in [task for task in running if task in finished]:
                    answer = running.pop(task)
                    is_last = not running and not waiting
                    if self._opens(task, answer, reasons, is_last=is_last):
                        unread = "another model was faster"
                        return answer
                    await answer.stream.aclose()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            for slower in running.values():
                await slower.stream.aclose()
                slower.attempt.drop(unread, slower.events, billed=True)

    def _opens(self, task: asyncio.Task[None], answer: _Answer, reasons: list[str], *, is_last: bool) -> bool:
        """Return whether the answer that began to arrive is to be read.

        Raises:
            ProviderError: the model failed, and no other is left or may be asked.
        """
        error = task.exception()
        if error is None:
            ended = not answer.events or isinstance(answer.events[-1], Finish)
            if ended and not is_last and self._failed(answer, reasons):
                answer.attempt.drop(reasons[-1], answer.events, billed=True)
                return False
            return True
        if not isinstance(error, ProviderError):
            raise error
        kind = _kind_of(error)
        self._note_outage(answer.circuit, kind)
        answer.attempt.drop(str(error), answer.events, billed=bool(answer.events))
        if kind not in self._on:
            raise error
        reasons.append(f"{answer.backend.model}: {error}")
        if is_last:
            text = str(error) if len(reasons) == 1 else f"no model answers: {'; '.join(reasons)}"
            raise ProviderError(text, status=error.status) from error
        return False

    def _failed(self, answer: _Answer, reasons: list[str]) -> bool:
        """Return whether an answer that arrived whole is a failure after which the next model is asked."""
        failure = _failure_in(answer.events)
        if failure is None or failure[0] not in self._on:
            return False
        kind, message = failure
        self._note_outage(answer.circuit, kind)
        reasons.append(f"{answer.backend.model}: {message}")
        return True

    def _note_outage(self, circuit: _Circuit, kind: Failure) -> None:
        if self._breaker is None or kind not in _OUTAGES:
            return
        circuit.failures += 1
        if circuit.failures >= self._breaker.failures:
            circuit.skipped_until = self._clock() + self._breaker.seconds


class Route(_Group):
    """Several models, of which a function chooses one for each request.

    Args:
        backends: the models by name, in any form that an `Agent` accepts. The first one's format is that of the request
            which the function gets.
        choose: returns the name of the model for a request. An agent makes a request in each round, so a function that
            looks at the last message may change the model in the middle of a task.

    Attributes:
        backends: the models.

    Raises:
        DefinitionError: there is no model; or (from `choose`) the function returns a name that is not among them.
        TypeError: a value is of another type, or `choose` is async.
    """

    def __init__(self, backends: Mapping[str, Backend | Client | str], choose: Callable[[ChatRequest], str]) -> None:
        check_type("backends", backends, Mapping, "a dict of backends by name")
        if not callable(choose):
            raise wrong_type("choose", choose, "a function of a request that returns a name")
        check_not_async("choose", choose, "a plain function")
        if not backends:
            raise DefinitionError("a Route needs a model")
        self._by_name = {name: as_backend(backend, "backends") for name, backend in backends.items()}
        self.backends = tuple(self._by_name.values())
        self._choose = choose

    def choose(self, request: ChatRequest) -> tuple[str, Backend]:
        """Return the model for a request, with its name in the route."""
        name = self._choose(request)
        if name not in self._by_name:
            names = ", ".join(self._by_name)
            raise DefinitionError(f"the route has no model {name!r}; it has {names}")
        return name, self._by_name[name]

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        """Yield the events of the chosen model; see `Backend`."""
        name, backend = self.choose(request)
        if not isinstance(backend, Fallback | Route):  # those begin an attempt for each of their own models
            attempt = _attempt(backend, request, options)
            attempt.begin(f"the route {name}")
            request, options = attempt.request, attempt.options
        async with aclosing(backend.stream(request, options)) as events:
            async for event in events:
                yield event


def single_models(backend: Backend) -> Iterator[Backend]:
    """Yield the models that a backend may answer with: those of a `Fallback` or a `Route`, or the backend itself."""
    if isinstance(backend, Fallback | Route):
        for inner in backend.backends:
            yield from single_models(inner)
    else:
        yield backend


def _inner(backend: Backend) -> Iterator[Backend]:
    """Yield the backends inside a `Route`, at any depth."""
    for inner in backend.backends if isinstance(backend, Route) else ():
        yield inner
        yield from _inner(inner)


def _attempt(backend: Backend, request: ChatRequest, options: StreamOptions) -> Attempt:
    return _PlainAttempt(request, options) if options.attempts is None else options.attempts(backend)


def _kind_of(error: ProviderError) -> Failure:
    """Return the kind of an error by its status; a status below 400 belongs to an answer that broke off."""
    match error.status:
        case status if status < 400:
            return "connection"
        case 402 | 429:
            return "limit"
        case 408 | 425:
            return "server"
        case status:
            return "server" if status >= 500 else "request"


def _failure_in(events: Sequence[Event]) -> tuple[Failure, str] | None:
    """Return what is wrong with an answer that arrived whole, and a message; None if nothing is."""
    response = collect(events)
    by_kind = {problem.kind: problem.message for problem in response.problems}
    if response.finish_reason is FinishReason.CONTENT_FILTER:
        return "refusal", "a content filter stopped the answer"
    if "provider_error" in by_kind or response.finish_reason is FinishReason.ERROR:
        return "server", by_kind.get("provider_error", "the answer broke off")
    if response.all_calls or response.finish_reason is FinishReason.LENGTH:
        return None
    message = next((text for kind, text in by_kind.items() if kind in _UNREADABLE), "")
    return ("unreadable", f"its call cannot be read: {message}") if message else None

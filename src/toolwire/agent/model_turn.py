"""Turns of the model: a request is built, its answer streamed, and asked for again if the stream breaks off."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from toolwire.agent.config import AgentConfig
from toolwire.agent.history import trim
from toolwire.agent.hooks import TurnInfo
from toolwire.agent.run_context import RunContext
from toolwire.agent.run_events import TranslationNoted, TurnStarted
from toolwire.agent.stream_timeout import StreamTimeout
from toolwire.errors import ProviderError
from toolwire.events import Event, Finish, ProblemFound, UsageCounted, collect, replay
from toolwire.messages import FinishReason, Message, ParsedResponse, Problem, TextPart, Usage
from toolwire.models.backends import Backend, StreamOptions
from toolwire.providers.request import ChatRequest, Note, Notes, ToolChoice
from toolwire.telemetry.coached_backend import CoachedBackend
from toolwire.telemetry.run_observer import PendingTurn
from toolwire.text.identity_cache import IdentityCache
from toolwire.text.tokens import estimate_message_tokens, estimate_tokens

ATTEMPTS = 2
"""Maximum number of requests for one answer, as long as each stream breaks off before a call has run."""


class OutOfTime(Exception):
    """The seconds of the run were used up while the model answered."""


class ModelTurn:
    """Obtains the answers of a run, turn by turn.

    Args:
        context: the run.
        backend: the model. One with a coach may have another format in each turn.
    """

    def __init__(self, context: RunContext, backend: Backend) -> None:
        self._context = context
        self._agent_backend = self._backend = backend
        self._reported: set[Note] = set()
        self._memo = IdentityCache()
        self._choice = ""  # why the coach chose this format; "" without a coach

    def begin(self, round: int, *, last: bool) -> TurnInfo:
        """Begin a turn: choose the format, and the tools that the model can see.

        Args:
            round: number of the round, from 1.
            last: whether the answer may not call anything, since a budget is used up.

        Raises:
            DefinitionError: a tool cannot be used.
        """
        # The last request has tools too, though none may be called: some APIs require those of earlier calls, and a
        # prompt that has not changed is read from the provider's cache.
        self._disclosed = self._context.disclosure.request(self._context.session.tier)
        tools = tuple(self._disclosed.definitions)
        backend = self._agent_backend
        if isinstance(backend, CoachedBackend):
            backend, choice = backend.choose(self._context.run_id, round)
            self._choice = choice.reason
        self._backend = backend
        return TurnInfo(round, tools, backend.model, backend.api, backend.format, last)

    def replay(self, response: ParsedResponse, turn: TurnInfo) -> None:
        """Emit the events of an answer that an earlier process recorded."""
        self._context.emit(TurnStarted(turn.round))
        events = list(replay(response))
        for event in events:
            self._context.emit(event)
        self._pending(turn, 1, again=True).complete(response, events)

    async def answer(self, turn: TurnInfo, messages: Sequence[Message], note: str) -> ParsedResponse:
        """Ask the model, and pass its answer through the response hooks; ask again if the stream breaks off.

        Args:
            turn: the turn that was begun.
            messages: the conversation.
            note: an instruction at the end of this prompt alone.

        Raises:
            OutOfTime: the seconds of the run were used up before the answer was complete.
            ProviderError: the model cannot be asked, or every stream breaks off.
        """
        request = self._request(turn, messages, note)
        for attempt in range(ATTEMPTS):
            self._context.emit(TurnStarted(turn.round))
            pending = self._pending(turn, attempt + 1)
            try:
                response = await self._stream(request, turn, pending)
            except (ProviderError, OutOfTime) as error:
                pending.fail(str(error) or "the time of the run was used up")
                raise
            self._context.limits.spending.add(response.usage)
            failure = next((problem for problem in response.problems if problem.kind == "provider_error"), None)
            if failure is None and response.finish_reason is not FinishReason.ERROR:
                return self._context.config.hooks.change_response(response, turn)
            reason = failure.message if failure else "the answer broke off"
            pending.fail(reason)
            if attempt == ATTEMPTS - 1:
                raise ProviderError(reason)
        raise AssertionError("unreachable")

    def _pending(self, turn: TurnInfo, attempt: int, *, again: bool = False) -> PendingTurn:
        return self._context.observer.begin_turn(
            turn.round,
            attempt,
            model=turn.model,
            api=turn.api,
            format=turn.format,
            tools=turn.tools,
            choice=self._choice,
            again=again,
        )

    async def _stream(self, request: ChatRequest, turn: TurnInfo, pending: PendingTurn) -> ParsedResponse:
        """Ask once, and emit the events of the answer as they arrive."""
        context, notes = self._context, Notes()
        options = StreamOptions(f"{context.run_id}.{turn.round}", pending.raw, notes, self._memo)
        events: list[Event] = []
        timeout = StreamTimeout(context.config.silence, self._answer_seconds(turn))
        try:
            async with timeout, aclosing(self._backend.stream(request, options)) as stream:
                async for event in stream:
                    timeout.reset()
                    if not events:
                        pending.mark_first_event()
                    events.append(event)
                    context.emit(event)
        except ProviderError as error:
            if context.limits.out_of_time and not turn.last:
                # The model was paid for what it has written, though nobody reads it.
                context.limits.spending.add(_partial_usage(request, events))
                raise OutOfTime from error
            if not events:  # the request was refused, and would be again
                raise
            for event in (ProblemFound(Problem("provider_error", 0, "", str(error))), Finish(FinishReason.ERROR)):
                events.append(event)
                context.emit(event)
        self._report(notes)
        response = collect(events)
        pending.complete(response, events)
        return response

    def _answer_seconds(self, turn: TurnInfo) -> float | None:
        limits, seconds = self._context.limits, self._context.config.answer_seconds
        left = limits.seconds_left()
        if left is None:
            return seconds
        # The last answer has seconds of its own, since it is asked for when those of the run are used up.
        left = max(left, limits.budget.last_seconds if turn.last else 0.0)
        return left if seconds is None else min(seconds, left)

    def _report(self, notes: Notes) -> None:
        """Emit notes on the translation of the request that were not emitted before in this run."""
        for note in dict.fromkeys(notes):
            if note not in self._reported:
                self._reported.add(note)
                self._context.emit(TranslationNoted(note))

    def _request(self, turn: TurnInfo, messages: Sequence[Message], note: str) -> ChatRequest:
        config = self._context.config
        system = config.hooks.change_prompt(config.system, turn)
        if config.context is not None:
            definitions = 0 if turn.format else self._disclosed.tokens.tokens
            room = config.context - definitions - estimate_tokens(len(system) + len(note))
            messages = trim(messages, room, estimate_message_tokens)
        prompt = [Message("system", (TextPart(system),)), *messages] if system else list(messages)
        if note:
            prompt.append(Message("user", (TextPart(note),)))
        return ChatRequest(
            messages=tuple(prompt),
            tools=turn.tools,
            tool_choice=_tool_choice(config, turn),
            max_tokens=config.max_tokens,
            temperature=config.temperature,
        )


def _partial_usage(request: ChatRequest, events: Sequence[Event]) -> Usage:
    """Return the usage of an answer that was stopped: as the model reported it so far, else an estimate."""
    counts = [event.usage for event in events if isinstance(event, UsageCounted)]
    if counts:
        return counts[-1]
    answer = Message("assistant", collect(events).parts)
    return Usage(sum(map(estimate_message_tokens, request.messages)), estimate_message_tokens(answer))


def _tool_choice(config: AgentConfig, turn: TurnInfo) -> ToolChoice:
    if not turn.tools:
        return ToolChoice()
    return ToolChoice("none" if turn.last else "required" if config.require_tool_call else "auto")

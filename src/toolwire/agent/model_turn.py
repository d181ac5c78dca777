"""Turns of the model: a request is built, its answer streamed, and asked for again if the stream breaks off."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from toolwire.agent.budget import ANSWER_TOKENS, BudgetUsedUp, ExpectedCost
from toolwire.agent.history import conversation_tokens, trim
from toolwire.agent.hooks import TurnInfo
from toolwire.agent.model_attempt import TurnAttempt
from toolwire.agent.output import AcceptedOutput
from toolwire.agent.prices import ModelPrices, prices_of
from toolwire.agent.recovery import Fault
from toolwire.agent.run_context import RunContext
from toolwire.agent.run_events import ContextReduced, ModelChosen, TranslationNoted, TurnStarted
from toolwire.agent.stream_timeout import StreamTimeout
from toolwire.errors import ProviderError
from toolwire.events import Event, Finish, ProblemFound, collect, replay
from toolwire.messages import FinishReason, Message, ParsedResponse, Problem, TextPart, Usage
from toolwire.models.backends import Backend, StreamOptions
from toolwire.models.model_group import Fallback, Route, single_models
from toolwire.providers.model_settings import RequestAdditions
from toolwire.providers.output_request import FINAL_ANSWER, OutputRequest
from toolwire.providers.request import ChatRequest, Note, Notes, ToolChoice
from toolwire.providers.server_tools import is_from_server_tool
from toolwire.telemetry.coached_backend import CoachedBackend
from toolwire.telemetry.run_observer import PendingTurn
from toolwire.text.identity_cache import IdentityCache
from toolwire.text.tokens import estimate_message_tokens, estimate_tokens

ATTEMPTS = 2
"""Maximum number of requests for one answer, as long as each stream breaks off before a call has run."""


class OutOfTime(BudgetUsedUp):
    """The seconds of the run were used up while the model answered."""


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer of the model in a round that is not the last.

    Attributes:
        turn: the turn to which it belongs.
        response: the answer itself.
        text: its prose.
        faults: what is wrong with it before any of its calls runs.
        untrusted: whether the model had read untrusted content when it wrote the answer.
        output: the valid output that its prose is; None if there is none.
    """

    turn: TurnInfo
    response: ParsedResponse
    text: str
    faults: Sequence[Fault]
    untrusted: bool
    output: AcceptedOutput | None = None


class ModelTurn:
    """Obtains the answers of a run, turn by turn.

    Args:
        context: the run.
        backend: the model, or several. One with a coach may have another format in each turn.
    """

    def __init__(self, context: RunContext, backend: Backend) -> None:
        self._context = context
        self._agent_backend = self._backend = backend
        config = context.config
        self._additions = RequestAdditions.of(config.settings, config.extra_body, config.extra_headers)
        self._reported: set[Note] = set()
        self._memo = IdentityCache()
        self._refusals: dict[Backend, str] = {}  # constraints that servers do not take, by the model
        self._choice = ""  # why the coach chose this format; "" without a coach
        self._output: OutputRequest | None = None
        self._prices: dict[int, ModelPrices] = {}  # by the identity of the model, which the run keeps
        self._attempt: TurnAttempt | None = None  # the one whose events are the answer
        self._is_shown = False  # whether an attempt of this request was
        self._attempts = 0  # in this turn

    def begin(self, round: int, *, last: bool, must_call: bool = False) -> TurnInfo:
        """Begin a turn: choose the format, and the tools that the model can see.

        Args:
            round: number of the round, from 1.
            last: whether the answer may not call anything, since a budget is used up.
            must_call: whether the answer must call a tool.

        Raises:
            ConfigurationError: the model cannot be asked for the output as it is configured.
            DefinitionError: a tool cannot be used.
        """
        # The last request has tools too, though none may be called: some APIs require those of earlier calls, and a
        # prompt that has not changed is read from the provider's cache.
        self._disclosed = self._context.disclosure.request(self._context.session.tier)
        backend = self._agent_backend
        if isinstance(backend, CoachedBackend):
            backend, choice = backend.choose(self._context.run_id, round)
            self._choice = choice.reason
        self._backend = backend
        self._attempts = 0
        return self._turn_of(backend, TurnInfo(round, (), last=last, must_call=must_call, deps=self._context.deps))

    @property
    def output(self) -> OutputRequest | None:
        """The way in which the model is asked for a structured output in this turn; None if it is not."""
        return self._output

    def _turn_of(self, backend: Backend, turn: TurnInfo) -> TurnInfo:
        """Return the turn as one model sees it, which may be asked for a structured output in a way of its own."""
        tools = tuple(self._disclosed.definitions)
        turn = replace(turn, tools=tools, model=backend.model, api=backend.api, format=backend.format)
        output = self._context.output
        if output is None:
            return turn
        self._output = request = output.request(backend.api, backend.format)
        return replace(turn, tools=output.offer(tools, request), output=request.mode)

    def replay(self, response: ParsedResponse, turn: TurnInfo) -> None:
        """Emit the events of an answer that an earlier process recorded."""
        self._context.emit(TurnStarted(turn.round))
        events = list(replay(response))
        for event in events:
            self._context.emit(event)
        pending = self._pending(turn, replayed=True)
        self._context.observer.watch(pending)
        pending.complete(response, events)

    async def answer(self, turn: TurnInfo, messages: Sequence[Message], note: str) -> tuple[ParsedResponse, TurnInfo]:
        """Ask the model, and pass its answer through the response hooks; ask again if the stream breaks off.

        Args:
            turn: the turn that was begun.
            messages: the conversation.
            note: an instruction at the end of this prompt alone.

        Returns:
            The answer, and the turn with the names of the model that gave it.

        Raises:
            BudgetUsedUp: a budget was used up before the model could be asked.
            OutOfTime: the seconds of the run were used up before the answer was complete.
            ProviderError: the model cannot be asked, or every stream breaks off.
        """
        # A backend of several models has asked the others already when the stream breaks off.
        attempts = 1 if isinstance(self._backend, Fallback) else ATTEMPTS
        for left in reversed(range(attempts)):
            async with self._context.limits.room_for(self._expected(messages, note), last=turn.last):
                response, turn, reason = await self._try(turn, messages, note)
            if not reason:
                # Pages that the provider fetched: the model had read them when it wrote the calls of this very answer.
                self._context.session.untrusted |= any(map(is_from_server_tool, response.parts))
                return self._context.config.hooks.change_response(response, turn), turn
            if not left:
                raise ProviderError(reason)
        raise AssertionError("unreachable")

    async def _try(
        self, turn: TurnInfo, messages: Sequence[Message], note: str
    ) -> tuple[ParsedResponse, TurnInfo, str]:
        """Ask once, and pay for the answer.

        Returns:
            The answer, the turn with the names of the model that gave it, and why it broke off; "" if it is complete.

        Raises:
            OutOfTime, ProviderError: see `answer`.
        """
        self._context.emit(TurnStarted(turn.round))
        self._attempt, self._is_shown = None, False
        try:
            attempt = await self._stream(turn, messages, note)
        except (ProviderError, OutOfTime) as error:
            self._fail(str(error) or "the time of the run was used up")
            raise
        response = collect(attempt.events)
        self._context.observer.record_answer(attempt.pending, response, attempt.events)
        attempt.pay(response.usage)
        failure = next((problem for problem in response.problems if problem.kind == "provider_error"), None)
        if failure is None and response.finish_reason is not FinishReason.ERROR:
            return response, attempt.turn, ""
        reason = failure.message if failure else "the answer broke off"
        attempt.pending.fail(reason)
        return response, turn, reason

    def _expected(self, messages: Sequence[Message], note: str) -> ExpectedCost:
        """Return the most that the next answer is expected to use, by the prices of the dearest model."""
        limits, config = self._context.limits, self._context.config
        if not limits.reserves:
            return ExpectedCost()
        read = conversation_tokens(messages) + estimate_tokens(len(config.system) + len(note))
        read += self._disclosed.tokens.tokens
        written = self._additions.settings.get("max_tokens") or ANSWER_TOKENS
        usage = Usage(read if config.context is None else min(read, config.context), written, estimated=True)
        prices = [
            prices_of(model, config.budget.prices, limited=limits.limits_money)
            for model in single_models(self._backend)
        ]
        return ExpectedCost(usage.input_tokens + usage.output_tokens, max(price.cost_of(usage) for price in prices))

    def _fail(self, reason: str) -> None:
        if self._attempt is not None:
            self._attempt.pending.fail(reason)

    def _pending(self, turn: TurnInfo, *, replayed: bool = False) -> PendingTurn:
        self._attempts += 1
        return self._context.observer.pending_turn(
            turn.round,
            self._attempts,
            model=turn.model,
            api=turn.api,
            format=turn.format,
            tools=turn.tools,
            choice=self._choice,
            replayed=replayed,
        )

    async def _stream(self, turn: TurnInfo, messages: Sequence[Message], note: str) -> TurnAttempt:
        """Ask once, and emit the events of the answer as they arrive."""
        context = self._context
        new_attempt = partial(self._new_attempt, turn, messages, note)
        backend = self._backend
        if isinstance(backend, Fallback | Route):  # it begins an attempt for each model that it asks
            request, options = self._prompt(turn, messages, note)[0], StreamOptions(attempts=new_attempt)
        else:
            attempt = new_attempt(backend)
            request, options = attempt.request, attempt.options
            attempt.begin("")
        timeout = StreamTimeout(context.config.silence, self._answer_seconds(turn))
        try:
            async with timeout, aclosing(backend.stream(request, options)) as stream:
                async for event in stream:
                    timeout.reset()
                    self._receive(event)
        except ProviderError as error:
            current = self._attempt
            events = [] if current is None else current.events
            if not events and not context.limits.out_of_time:  # the request was refused, and would be again
                raise
            # The model was paid for what it has written, though nobody reads it.
            if current is not None:
                self._estimate_usage(current)
            if context.limits.out_of_time and not turn.last:
                if current is not None:
                    current.pay(collect(events).usage)
                raise OutOfTime from error
            if current is None or not events:
                raise
            for event in (ProblemFound(Problem("provider_error", 0, "", str(error))), Finish(FinishReason.ERROR)):
                events.append(event)
                context.emit(event)
        assert self._attempt is not None
        self._report(self._attempt.notes)
        return self._attempt

    def _new_attempt(self, turn: TurnInfo, messages: Sequence[Message], note: str, backend: Backend) -> TurnAttempt:
        """Return an attempt of one model, with the request in its format."""
        context, notes = self._context, Notes()
        turn = self._turn_of(backend, turn)
        request, reduced = self._prompt(turn, messages, note)
        pending = self._pending(turn)
        context.observer.record_request(pending, request)
        options = StreamOptions(
            f"{context.run_id}.{turn.round}",
            pending.raw,
            notes,
            self._memo,
            self._additions.extra_body,
            self._additions.extra_headers,
            refusals=self._refusals,
        )
        if id(backend) not in self._prices:
            self._prices[id(backend)] = prices_of(
                backend,
                context.config.budget.prices,
                limited=context.limits.limits_money,
                observed=context.observer.has_observers,
            )
        return TurnAttempt(
            turn=turn,
            request=request,
            options=options,
            notes=notes,
            reduced=reduced,
            output=self._output,
            partial=None if context.output is None else context.output.reader(),
            pending=pending,
            definition_tokens=self._disclosed.tokens.tokens,
            prices=self._prices[id(backend)],
            spending=context.limits.spending,
            on_begin=self._begin_attempt,
            on_drop=self._drop_attempt,
        )

    def _begin_attempt(self, attempt: TurnAttempt, reason: str) -> None:
        emit = self._context.emit
        if self._is_shown:  # what another model wrote was emitted, and is void now
            emit(TurnStarted(attempt.turn.round))
        self._attempt, self._is_shown = attempt, True
        self._output = attempt.output
        self._context.observer.watch(attempt.pending)
        if attempt.reduced is not None:
            emit(attempt.reduced)
        if reason:
            emit(ModelChosen(attempt.turn.model, attempt.turn.api, attempt.turn.format, reason))

    def _drop_attempt(self, attempt: TurnAttempt) -> None:
        if attempt is self._attempt:
            self._attempt = None  # it is paid, and its record is complete
        else:
            self._context.observer.watch(attempt.pending)

    def _receive(self, event: Event) -> None:
        """Take an event of the answer, and emit it."""
        attempt = self._attempt
        assert attempt is not None
        if not attempt.events:
            attempt.pending.mark_first_event()
        if isinstance(event, Finish):
            self._estimate_usage(attempt)
        attempt.events.append(event)
        self._context.emit(event)
        if attempt.partial is not None and (output := attempt.partial.feed(event)) is not None:
            self._context.emit(output)

    def _estimate_usage(self, attempt: TurnAttempt) -> None:
        event = attempt.missing_usage()
        if event is not None:
            attempt.events.append(event)
            self._context.emit(event)

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

    def room(self, turn: TurnInfo, note: str = "") -> int | None:
        """Return the tokens that are left for the conversation in a request; None if there is no limit."""
        config = self._context.config
        if config.context is None:
            return None
        definitions = 0 if turn.format else self._disclosed.tokens.tokens
        system = config.hooks.change_prompt(config.system, turn)
        return config.context - definitions - estimate_tokens(len(system) + len(note))

    def _prompt(
        self, turn: TurnInfo, messages: Sequence[Message], note: str
    ) -> tuple[ChatRequest, ContextReduced | None]:
        """Return the request, and how the conversation was shortened for it, if it was."""
        config, reduced, output = self._context.config, None, self._output
        system = config.hooks.change_prompt(config.system, turn)
        if output is not None:
            system = "\n\n".join(filter(None, (system, output.instruction)))
            note = "\n\n".join(filter(None, (note, output.note)))
        messages = config.hooks.change_messages(messages, turn)
        room = self.room(turn, note)
        if room is not None:
            short = trim(messages, room, estimate_message_tokens)
            if short.left_out or short.shortened:
                before, after = conversation_tokens(messages), conversation_tokens(short.messages)
                reduced = ContextReduced(before, after, short.left_out, short.shortened)
            messages = short.messages
        prompt = [Message("system", (TextPart(system),)), *messages] if system else list(messages)
        if note:
            prompt.append(Message("user", (TextPart(note),)))
        request = ChatRequest(
            messages=tuple(prompt),
            tools=turn.tools,
            tool_choice=_tool_choice(turn, output),
            output=None if output is None else output.schema,
        )
        return request.with_defaults(self._additions.settings), reduced


def _tool_choice(turn: TurnInfo, output: OutputRequest | None) -> ToolChoice:
    if not turn.tools:
        return ToolChoice()
    if turn.last:
        has_output_tool = output is not None and output.tool is not None
        return ToolChoice("required", (FINAL_ANSWER,)) if has_output_tool else ToolChoice("none")
    required = turn.must_call or (output is not None and output.required)
    return ToolChoice("required" if required else "auto")

"""One answer of the model: what it is asked, heard while it comes, asked for again if it breaks off."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from toolwire.agent.config import AgentConfig
from toolwire.agent.history import trim
from toolwire.agent.hooks import TurnInfo
from toolwire.agent.parent_run import Emit
from toolwire.agent.run_events import Noted, TurnBegun
from toolwire.agent.run_limits import Limits
from toolwire.agent.stream_timeout import StreamTimeout
from toolwire.errors import ProviderError
from toolwire.events import Event, Finish, ProblemFound, UsageCounted, collect, replay
from toolwire.execution.disclosure import Disclosure
from toolwire.messages import (
    FinishReason,
    Message,
    ParsedResponse,
    Problem,
    TextPart,
    Usage,
)
from toolwire.models.backends import Backend, StreamOptions
from toolwire.providers.request import ChatRequest, Note, Notes, ToolChoice
from toolwire.telemetry import CoachedBackend
from toolwire.telemetry.run_observer import Asked, Watch
from toolwire.text.identity_cache import Memo
from toolwire.text.tokens import estimate_message_tokens, estimate_tokens
from toolwire.tools import Tier

ATTEMPTS = 2
"""How often an answer is asked for that breaks off before anything of it ran."""


class OutOfTime(Exception):
    """The seconds of the run were used up while the model answered."""


class ModelTurn:
    """The answers of a run.

    Args:
        backend: the model; one with a coach has a format for each turn.
        config: how the agent works.
        run_id: of the run.
        limits: what it may use.
        disclosure: which tools the model is told of.
        watch: hears for those who observe.
        emit: hears for whoever reads the run's events.
    """

    def __init__(
        self,
        backend: Backend,
        config: AgentConfig,
        run_id: str,
        limits: Limits,
        disclosure: Disclosure,
        watch: Watch,
        emit: Emit,
    ) -> None:
        self._given = self._backend = backend
        self._config = config
        self._run_id = run_id
        self._limits = limits
        self._disclosure = disclosure
        self._watch = watch
        self._emit = emit
        self._noted: set[Note] = set()
        self._memo = Memo()
        self._choice = ""  # why the model is asked in this format, where something chose it

    def turn(self, round: int, tier: Tier, *, last: bool) -> TurnInfo:
        """What a turn is about: what may be called in this tier, and how the model is asked.

        Args:
            round: how often the model was asked, this time included.
            tier: of the session.
            last: the answer calls nothing, since a budget is used up.

        Raises:
            DefinitionError: a tool cannot be used.
        """
        # The last answer calls nothing, but the tools stay: some APIs want those of earlier calls, and a prompt that is
        # as it was is read from the cache.
        self._disclosed = self._disclosure.request(tier)
        tools = tuple(self._disclosed.definitions)
        backend = self._given
        if isinstance(backend, CoachedBackend):
            backend, choice = backend.choose(self._run_id, round)
            self._choice = choice.reason
        self._backend = backend
        return TurnInfo(round, tools, backend.model, backend.api, backend.format, last)

    def again(self, response: ParsedResponse, turn: TurnInfo) -> None:
        """Tell again what the model answered in an earlier life."""
        self._emit(TurnBegun(turn.round))
        events = list(replay(response))
        for event in events:
            self._emit(event)
        self._asked(turn, 1, again=True).came(response, events)

    async def answer(self, turn: TurnInfo, messages: Sequence[Message], note: str) -> ParsedResponse:
        """What the model answers, through the steps of its chain; asked for again if it breaks off.

        Args:
            turn: what it is about.
            messages: the conversation.
            note: what the model is told besides, in this prompt alone.

        Raises:
            OutOfTime: the seconds of the run were used up meanwhile.
            ProviderError: it cannot be asked, or breaks off each time.
        """
        request = self._request(turn, messages, note)
        for attempt in range(ATTEMPTS):
            self._emit(TurnBegun(turn.round))
            watched = self._asked(turn, attempt + 1)
            try:
                response = await self._heard(request, turn, watched)
            except (ProviderError, OutOfTime) as error:
                watched.failed(str(error) or "the time of the run was used up")
                raise
            self._limits.spent.add(response.usage)
            broken = next((one for one in response.problems if one.kind == "provider_error"), None)
            if broken is None and response.finish_reason is not FinishReason.ERROR:
                return self._config.hooks.read(response, turn)
            why = broken.message if broken else "the answer broke off"
            watched.failed(why)
            if attempt == ATTEMPTS - 1:
                raise ProviderError(why)
        raise AssertionError("unreachable")

    def _asked(self, turn: TurnInfo, attempt: int, *, again: bool = False) -> Asked:
        return self._watch.asks(
            turn.round,
            attempt,
            model=turn.model,
            api=turn.api,
            format=turn.format,
            tools=turn.tools,
            choice=self._choice,
            again=again,
        )

    async def _heard(self, request: ChatRequest, turn: TurnInfo, watched: Asked) -> ParsedResponse:
        """One answer, told while it comes."""
        notes = Notes()
        options = StreamOptions(f"{self._run_id}.{turn.round}", watched.raw, notes, self._memo)
        events: list[Event] = []
        stream = self._backend.stream(request, options)
        left, whole = self._limits.left(), self._config.answer_seconds
        if left is not None:
            limit = max(left, self._limits.budget.last_seconds if turn.last else 0.0)
            whole = limit if whole is None else min(whole, limit)
        patience = StreamTimeout(self._config.silence, whole)
        try:
            async with patience, aclosing(stream) as answer:
                async for event in answer:
                    patience.heard()
                    if not events:
                        watched.heard()
                    events.append(event)
                    self._emit(event)
        except ProviderError as error:
            if self._limits.out_of_time and not turn.last:
                self._limits.spent.add(_used(request, events))
                raise OutOfTime from error
            if not events:  # it was refused
                raise
            for event in (ProblemFound(Problem("provider_error", 0, "", str(error))), Finish(FinishReason.ERROR)):
                events.append(event)
                self._emit(event)
        for note in dict.fromkeys(notes):
            if note not in self._noted:
                self._noted.add(note)
                self._emit(Noted(note))
        response = collect(events)
        watched.came(response, events)
        return response

    def _request(self, turn: TurnInfo, messages: Sequence[Message], note: str) -> ChatRequest:
        config = self._config
        system = config.hooks.prompted(config.system, turn)
        if config.context is not None:
            definitions = 0 if turn.format else self._disclosed.tokens.tokens
            room = config.context - definitions - estimate_tokens(len(system) + len(note))
            messages = trim(messages, room, estimate_message_tokens)
        asked = [Message("system", (TextPart(system),)), *messages] if system else list(messages)
        if note:
            asked.append(Message("user", (TextPart(note),)))
        return ChatRequest(
            messages=tuple(asked),
            tools=turn.tools,
            tool_choice=_choice(config, turn),
            max_tokens=config.max_tokens,
            temperature=config.temperature,
        )


def _used(request: ChatRequest, events: Sequence[Event]) -> Usage:
    """What an answer cost that was not heard to its end: as the model told so far, else an estimate."""
    told = [event.usage for event in events if isinstance(event, UsageCounted)]
    if told:
        return told[-1]
    answer = Message("assistant", collect(events).parts)
    return Usage(sum(map(estimate_message_tokens, request.messages)), estimate_message_tokens(answer))


def _choice(config: AgentConfig, turn: TurnInfo) -> ToolChoice:
    if not turn.tools:
        return ToolChoice()
    return ToolChoice("none" if turn.last else "required" if config.require_tool_call else "auto")

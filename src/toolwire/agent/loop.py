"""The loop: ask the model, read its calls, run them, tell it the results, until it calls nothing more.

This is the one place where a result becomes part of the next request. Everything else stands to its left: how the model
is asked (`backends`), what may run and how (`executor`), what is wrong with a turn (`recovery`), what it may cost
(`budgets`), what fits (`trimming`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from toolwire.agent.budgets import Budget, Prices, Spent
from toolwire.agent.events import (
    AgentEvent,
    ApprovalAsked,
    CallBegun,
    CallDone,
    CaughtUp,
    Corrected,
    EndReason,
    Resumed,
    RunEnded,
    TaskBegun,
    TurnBegun,
)
from toolwire.agent.journal import JOURNAL, Answer, CallRecord, Done, Journal, Recorder
from toolwire.agent.leading import LEAD, Emit, Lead
from toolwire.agent.patience import Patience
from toolwire.agent.recovery import HIDDEN, OFFENCE, REPEATED, Breaker, Fault, Repeats, advice, faults_of
from toolwire.agent.steps import Chains, Turn
from toolwire.agent.trimming import trim
from toolwire.backends import MEMO, RAW, Backend
from toolwire.consent import Approval
from toolwire.conversation import ChatRequest, ToolChoice
from toolwire.disclosure import BUDGET_TOKENS, Disclosure
from toolwire.errors import JournalError, ProviderError, RenderError, RunFailed
from toolwire.events import Event, Finish, ProblemFound, collect, replay
from toolwire.executor import Confirm, Issue, Outcome, ToolExecutor
from toolwire.failures import Caught
from toolwire.intent import Intent, TierGate
from toolwire.memo import Memo
from toolwire.messages import (
    FinishReason,
    Message,
    ParsedResponse,
    Part,
    Problem,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
)
from toolwire.policy import Policy
from toolwire.prompting import render_calls
from toolwire.reading import parse
from toolwire.registry import ToolRegistry
from toolwire.session import Session
from toolwire.telemetry import CoachedBackend, EndRecord, Observer, standard_observers
from toolwire.telemetry.watch import Asked, Watch, new_run_id
from toolwire.tools import Tier
from toolwire.wire.registry import get_format
from toolwire.wire.renderer import call_example, example_arguments
from toolwire.wire.results import unframed

LAST_ROUND = "No more tool calls now. Answer in plain words, from what you have seen."
OVER = "All the calls that may be made have been made, so this one did not run."
LATE = "The time of the whole run is used up, so this call did not run."
STOPPED = "The time of the whole run is used up, so this call was stopped. Its work may be done, or not, or in part."
FENCED = "json_fence"
"""The format in which calls stand that are only shown."""
ATTEMPTS = 2
"""How often an answer is asked for that breaks off before anything of it ran."""


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """How an agent works; every part has a sensible value of its own.

    Attributes:
        name: what it is called, in a team and in records.
        system: what the model is told beforehand; `{{tools}}` stands for the tools.
        tier: the tier of every task; None: what the gate makes of its words.
        gate: unlocks tiers by what a task asks for.
        definitions: tokens that definitions may cost in a request; if they cost more, the model finds them on demand.
        budget: what a run may use.
        require_tool_call: every answer has to call a tool; a run ends with one that ends the turn.
        silence: seconds without a piece of an answer until it counts as broken off; None: as long as it takes.
        answer_seconds: that one answer may take, likewise.
        after_results: what the model is told behind results, if nothing else is, in that prompt alone; `{task}` is the
            task. Small models lose sight of it.
        after_failures: the same where all calls failed, but for those that somebody refused; "": as after others.
        context: tokens that a request may hold, about, prompt and definitions included; None: all of the conversation
            goes with each.
        chains: what prompts, answers, calls and results pass through.
        temperature, max_tokens: for each answer; None: as the model has it.
    """

    name: str = "agent"
    system: str = ""
    tier: Tier | None = None
    gate: TierGate = field(default_factory=TierGate)
    definitions: int = BUDGET_TOKENS
    budget: Budget = field(default_factory=Budget)
    require_tool_call: bool = False
    silence: float | None = 600.0
    answer_seconds: float | None = 3600.0
    after_results: str = ""
    after_failures: str = ""
    context: int | None = None
    chains: Chains = field(default_factory=Chains)
    temperature: float | None = None
    max_tokens: int | None = None


class Agent:
    """A model with tools.

    Args:
        backend: the model.
        tools: what it may call: a registry, or tools in any shape that one takes.
        config: how it works.
        policy: what may run.
        confirm: asks somebody where the policy asks.
        executor: runs calls, in place of one that is made of the registry, the policy and `confirm`.
        observers: who is told of each run, besides those who always are.
        telemetry: tell those who always are, see `toolwire.telemetry.standard_observers`.

    Raises:
        ConfigurationError: the policy has a misspelt name; see `ToolExecutor`.
    """

    def __init__(
        self,
        backend: Backend,
        tools: ToolRegistry | Iterable[Any] = (),
        config: AgentConfig | None = None,
        *,
        policy: Policy | None = None,
        confirm: Confirm | None = None,
        executor: Callable[[ToolRegistry, Confirm | None], ToolExecutor] | None = None,
        observers: Iterable[Observer] = (),
        telemetry: bool = True,
    ) -> None:
        self.backend = backend
        self.config = config or AgentConfig()
        self.registry = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        self._policy = policy
        self._confirm = confirm
        self._executor = executor or self._usual
        if policy is not None and executor is None:
            self._usual(self.registry, confirm)  # what it refuses is told now
        self._observers = (*observers, *(standard_observers() if telemetry else ()))

    def _usual(self, registry: ToolRegistry, confirm: Confirm | None) -> ToolExecutor:
        return ToolExecutor(registry, policy=self._policy, confirm=confirm)

    async def run(
        self,
        task: str,
        *,
        history: Sequence[Message] = (),
        session: Session | None = None,
        run_id: str = "",
        journal: Journal | None = None,
        lead: Lead | None = None,
    ) -> AsyncGenerator[AgentEvent]:
        """Work on a task; closing the iterator stops the model and the tools.

        Args:
            task: what the user asks.
            history: the conversation so far; `RunEnded.messages` of the run before.
            session: what it has come to; a new one if none, or what `lead` hands on.
            run_id: names it in records, and goes into the ids of calls that come without one; "": a new one.
            journal: records the run. If it holds records the run goes on behind them; then all the rest has to be
                what it was.
            lead: the call of another run that this one works for, see `AgentTeam`.

        Yields:
            The events of the answers and the agent's own, `RunEnded` last.

        Raises:
            JournalError: the run cannot be recorded, or its records cannot be read.
        """
        queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        if session is None:
            session = Session() if lead is None else lead.session.hand_on()
        run = _Run(self, queue.put_nowait, session, run_id or new_run_id(), journal, lead)

        async def work() -> None:
            try:
                queue.put_nowait(await run.go(task, history))
            finally:
                queue.put_nowait(None)

        working = asyncio.create_task(work())
        try:
            while (event := await queue.get()) is not None:
                yield event
            await working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def ask(
        self, task: str, *, history: Sequence[Message] = (), session: Session | None = None, run_id: str = ""
    ) -> str:
        """The answer to a task.

        Raises:
            RunFailed: there is none; it says why, and holds the end of the run.
        """
        return await answer_of(self.run(task, history=history, session=session, run_id=run_id))


async def answer_of(events: AsyncGenerator[AgentEvent]) -> str:
    """The answer at the end of a run's events.

    Raises:
        RunFailed: there is none; it says why, and holds the end of the run.
    """
    end: RunEnded | None = None
    async with aclosing(events):
        async for event in events:
            if isinstance(event, RunEnded):
                end = event
    assert end is not None
    if not end.good:
        said = f"; the model said last: {end.answer[:OFFENCE]}" if end.detail and end.answer else ""
        raise RunFailed(f"no answer ({end.reason}): {end.detail or end.answer}{said}", end)
    return end.answer


@dataclass(frozen=True, slots=True)
class _Due:
    """A call that is to be made.

    Attributes:
        place: names it among all calls of all runs.
        record: where the run is recorded.
        over: why the budget has no room for it; "" if it has.
    """

    call: ToolCall
    place: str
    record: CallRecord | None
    over: str

    def known(self) -> Outcome | None:
        """What becomes of it without running it; None if it may run."""
        if self.record is not None and self.record.lost is not None:
            return self.record.lost
        if self.over:
            result = ToolResult(self.call.id, self.call.name, error=self.over)
            return Outcome(self.call, result, Issue("denied", self.over))
        return None


class _OutOfTime(Exception):
    """The seconds of the run were used up while the model answered."""


class _Run:
    """One run: what it has come to."""

    def __init__(
        self, agent: Agent, emit: Emit, session: Session, run_id: str, journal: Journal | None, lead: Lead | None
    ) -> None:
        self._agent = agent
        self._emit = emit
        self._lead = lead
        self._session = session
        self._run_id = run_id
        self._config = agent.config
        self._backend = agent.backend
        confirm = agent._confirm
        self._executor = agent._executor(agent.registry, None if confirm is None else self._telling(confirm))
        self._spent = Spent(self._config.budget.prices or Prices())
        self._breaker = Breaker()
        self._repeats = Repeats()
        self._begun = monotonic()
        self._messages: list[Message] = []
        self._journal = journal
        self._record: Recorder | None = None
        self._again = False  # what is told has happened before
        self._task = ""
        self._hinted = False  # that a call which is only shown does not run
        self._choice = ""  # why the model is asked in this format, where something chose it
        model = self._backend
        coach = (model.coach,) if isinstance(model, CoachedBackend) else ()  # the model may be another than before
        self._watch = Watch(
            (*coach, *agent._observers),
            run_id,
            agent.config.name,
            model=model.model,
            api=model.api,
            format=model.format,
        )
        told = agent.backend.format or agent.backend.api or "openai_chat"  # how definitions are counted
        self._disclosure = Disclosure(agent.registry, format=told, budget_tokens=self._config.definitions)

    def _telling(self, confirm: Confirm) -> Confirm:
        async def asked(approval: Approval) -> Any:
            self._emit(ApprovalAsked(approval))
            self._watch.asking(approval, getattr(confirm, "name", "user"))
            answer = await confirm(approval)
            self._watch.consented(approval, answer)
            return answer

        return asked

    async def go(self, task: str, history: Sequence[Message]) -> RunEnded:
        """Round after round, to the end; observers hear of all of it, and so does whoever leads."""
        MEMO.set(Memo())
        self._watch.begin(task)
        end: EndRecord | None = None
        lead = self._lead
        try:
            with nullcontext() if lead is None else lead.spent.counting(self._spent):
                ended = await self._rounds(task, history)
            end = _record(self._watch.run, ended)
            return ended
        finally:
            if lead is not None and self._session.untrusted:
                lead.session.untrusted = True
            self._watch.end(end)

    def _exceeded(self) -> str:
        """Which budget is used up, in words: its own, or that of whom it works for; "" if none is."""
        self._spent.seconds = monotonic() - self._begun
        own = self._config.budget.exceeded(self._spent)
        return own or ("" if self._lead is None else self._lead.exceeded())

    def _left_nothing(self) -> bool:
        left = self._left()
        return left is not None and left <= 0

    def _left(self) -> float | None:
        """Seconds that are left, for it and whom it works for; None: no limit."""
        most = self._config.budget.seconds
        own = None if most is None else most - (monotonic() - self._begun)
        theirs = None if self._lead is None else self._lead.left()
        return min(own, theirs) if own is not None and theirs is not None else own if theirs is None else theirs

    async def _rounds(self, task: str, history: Sequence[Message]) -> RunEnded:
        if not self._session.handed_on:
            self._session.said(task)
        self._task = task
        self._messages = [*history, Message("user", (TextPart(task),))]
        self._unlock(task)
        called = (part.name for message in history for part in message.parts if isinstance(part, ToolCall))
        self._disclosure.keep(called)
        self._remind()
        note = ""  # for the next prompt alone
        circling = ""
        while True:
            before = None if self._record is None else self._record.answer(self._spent.rounds + 1)
            used_up = circling or self._exceeded()
            if before is not None:
                used_up = before.used_up
            self._spent.rounds += 1
            turn = self._turn(last=bool(used_up))
            if before is not None:
                turn = replace(turn, format=before.format)
            try:
                note = "\n\n".join(filter(None, (note, LAST_ROUND if used_up else "")))
                response = await self._answer(turn, note, used_up) if before is None else self._told(before, turn)
            except _OutOfTime:  # what was said of the answer is no answer; the round begins anew
                self._spent.rounds -= 1
                continue
            except ProviderError as error:
                if used_up:
                    why = circling or f"{used_up} is used up"
                    return self._ended(
                        "repeats" if circling else "budget", "", f"{why}, and no last answer came: {error}"
                    )
                return self._ended("error", "", str(error))
            said = _said(response, turn)
            if used_up:
                self._messages.append(Message("assistant", (TextPart(said),)))
                return self._ended("repeats" if circling else "budget", said, circling or f"{used_up} is used up")
            faults = faults_of(response, require_call=self._config.require_tool_call) or self._shown_only(
                response, turn
            )
            self._watch.faulty(fault.kind for fault in faults)
            # What these calls give back, the model had not read when it wrote them.
            untrusted = self._session.untrusted if before is None else before.untrusted
            outcomes = await self._called(response.tool_calls, turn, untrusted)
            results = [outcome.result for outcome in outcomes]
            self._remember(response, said, results)
            ending = next((one for one in outcomes if self._ends(one)), None)
            if ending is not None:
                return self._ended("finished", ending.result.text, ending.call.name)
            if not outcomes and not faults:
                if response.finish_reason is FinishReason.LENGTH:
                    return self._ended("length", said, "the answer was cut at the model's limit")
                if response.finish_reason is FinishReason.CONTENT_FILTER:
                    return self._ended("error", said, "the provider's filter stopped the answer")
                return self._ended("answered", said)
            faults += [fault for outcome in outcomes if (fault := _fault(outcome)) is not None]
            succeeded = [outcome.call.name for outcome in outcomes if outcome.result.success]
            if (tripped := self._breaker.turn(faults, succeeded)) is not None:
                return self._ended("failures", said, f"{tripped.kind} again and again: {tripped.message}")
            circle = self._repeats.turn(response.tool_calls, results)
            circling = "the same calls with the same results, again and again" if circle == "end" else ""
            warning = REPEATED if circle == "warn" else ""
            note = "\n\n".join(filter(None, (advice(faults, self._example(turn)), warning)))
            if note:
                self._watch.told(note)
                self._emit(Corrected(note))
            note = note or self._nudge(outcomes)

    def _shown_only(self, response: ParsedResponse, turn: Turn) -> list[Fault]:
        """A call that stands in a code fence among prose; told once, since it may be meant to be looked at.

        Small models write calls like this: "I will call the tool:", the call as JSON, and what it will give.
        """
        if self._hinted or not turn.format or response.tool_calls:
            return []
        shown = parse(response.content, format=FENCED, tools=turn.tools).tool_calls[:1]
        self._hinted = bool(shown)
        return [Fault("malformed", "", f"{HIDDEN} Like this:\n{_written(shown[0], turn)}")] if shown else []

    def _nudge(self, outcomes: Sequence[Outcome]) -> str:
        """What the model is told besides results, if nothing has to be corrected."""
        config = self._config
        failed = all(not one.result.success and (one.issue is None or one.issue.kind != "denied") for one in outcomes)
        told = (failed and config.after_failures) or config.after_results
        return told.replace("{task}", self._task) if outcomes else ""

    def _unlock(self, task: str) -> None:
        fixed, session = self._config.tier, self._session
        if fixed is not None:
            intent = Intent(fixed, why="every task of this agent has this tier")
        else:
            intent = self._config.gate.begin(task, session.tier)
            if intent.tier > session.ceiling:
                intent = replace(intent, tier=session.ceiling, why=f"{intent.why}; but a model wrote the task")
        session.tier = intent.tier
        self._emit(TaskBegun(task, intent))

    # -- recording -----------------------------------------------------------------------------------------------

    def _remind(self) -> None:
        """Take up what the run's earlier lives have come to, if it is recorded."""
        if self._journal is None:
            return
        record = Recorder(
            self._journal, self._session, self._executor.clock, self._spent, lambda: monotonic() - self._begun
        )
        self._begun -= record.seconds
        self._record, self._again = record, record.resumed
        if self._again:
            self._emit(Resumed())

    def _catch_up(self) -> None:
        """From here on things happen."""
        if self._again:
            self._again = False
            self._emit(CaughtUp())

    # -- asking --------------------------------------------------------------------------------------------------

    def _turn(self, *, last: bool) -> Turn:
        # The last answer calls nothing, but the tools stay: some APIs want those of earlier calls, and a prompt that is
        # as it was is read from the cache.
        self._disclosed = self._disclosure.request(self._session.tier)
        tools = tuple(self._disclosed.definitions)
        backend = self._agent.backend
        if isinstance(backend, CoachedBackend):
            backend, choice = backend.choose(self._run_id, self._spent.rounds)
            self._choice = choice.reason
        self._backend = backend
        return Turn(self._spent.rounds, tools, backend.model, backend.api, backend.format, last)

    def _told(self, answer: Answer, turn: Turn) -> ParsedResponse:
        """What the model answered before, told again."""
        self._emit(TurnBegun(turn.round))
        events = list(replay(answer.response))
        for event in events:
            self._emit(event)
        self._asked(turn, 1, again=True).came(answer.response, events)
        return answer.response

    async def _answer(self, turn: Turn, note: str, used_up: str) -> ParsedResponse:
        """What the model answers; asked for again if it breaks off, since nothing of it ran.

        Raises:
            ProviderError: it cannot be asked, or breaks off each time.
        """
        self._catch_up()
        request = self._request(turn, note)
        for attempt in range(ATTEMPTS):
            self._emit(TurnBegun(turn.round))
            watched = self._asked(turn, attempt + 1)
            try:
                response = await self._heard(request, watched, last=turn.last)
            except (ProviderError, _OutOfTime) as error:
                watched.failed(str(error) or "the time of the run was used up")
                raise
            self._spent.add(response.usage)
            broken = next((one for one in response.problems if one.kind == "provider_error"), None)
            if broken is None and response.finish_reason is not FinishReason.ERROR:
                response = self._config.chains.read(response, turn)
                if self._record is None:
                    return response
                whole = Answer(response, used_up, turn.format, self._session.untrusted)
                return (await self._record.answered(turn.round, whole)).response
            why = broken.message if broken else "the answer broke off"
            watched.failed(why)
            if attempt == ATTEMPTS - 1:
                raise ProviderError(why)
        raise AssertionError("unreachable")

    def _asked(self, turn: Turn, attempt: int, *, again: bool = False) -> Asked:
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

    async def _heard(self, request: ChatRequest, watched: Asked, *, last: bool) -> ParsedResponse:
        """One answer, told while it comes."""
        RAW.set(watched.raw)
        events: list[Event] = []
        stream = self._backend.stream(request, id_seed=f"{self._run_id}.{self._spent.rounds}")
        left, whole = self._left(), self._config.answer_seconds
        if left is not None:
            limit = max(left, self._config.budget.last_seconds if last else 0.0)
            whole = limit if whole is None else min(whole, limit)
        patience = Patience(self._config.silence, whole)
        try:
            async with patience, aclosing(stream) as answer:
                async for event in answer:
                    patience.heard()
                    if not events:
                        watched.heard()
                    events.append(event)
                    self._emit(event)
        except ProviderError as error:
            if left is not None and not last and self._left_nothing():
                raise _OutOfTime from error
            if not events:  # it was refused
                raise
            for event in (ProblemFound(Problem("provider_error", 0, "", str(error))), Finish(FinishReason.ERROR)):
                events.append(event)
                self._emit(event)
        response = collect(events)
        watched.came(response, events)
        return response

    def _request(self, turn: Turn, note: str) -> ChatRequest:
        config = self._config
        messages = self._messages
        system = config.chains.prompted(config.system, turn)
        if config.context is not None:
            definitions = 0 if turn.format else self._disclosed.tokens.tokens
            messages = trim(messages, config.context - definitions - (len(system) + len(note)) // 4, _size)
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

    # -- calling -------------------------------------------------------------------------------------------------

    async def _called(self, calls: Sequence[ToolCall], turn: Turn, untrusted: bool) -> list[Outcome]:
        """What became of the calls, in their order; each is told as soon as it is known."""
        limit, made = self._config.budget.calls, self._spent.calls
        self._spent.calls += len(calls)
        late = LATE if self._left_nothing() else ""
        outcomes: dict[int, Outcome] = {}
        left: dict[int, _Due] = {}
        for at, call in enumerate(calls):  # what is known is told before anything happens
            record = None if self._record is None else self._record.call(turn.round, at)
            if record is not None and record.done is not None:
                outcomes[at] = self._called_before(call, record.done, turn)
            else:
                over = OVER if limit is not None and made + at >= limit else late
                left[at] = _Due(call, f"{self._run_id}.{turn.round}.{at}", record, over)
        if left:
            self._catch_up()
        if len(left) == 1:
            ((at, due),) = left.items()
            outcomes[at] = await self._call(due, turn, untrusted)
        else:
            tasks = {at: asyncio.create_task(self._call(due, turn, untrusted)) for at, due in left.items()}
            await _all_done(tasks.values())
            outcomes |= {at: task.result() for at, task in tasks.items()}
        return [outcomes[at] for at in range(len(calls))]

    def _called_before(self, call: ToolCall, done: Done, turn: Turn) -> Outcome:
        """What became of a call before, told again."""
        self._disclosure.answer(call, self._session.tier)  # what it found stays found
        self._emit(CallBegun(done.outcome.call))
        outcome = done.outcome if done.stepped else self._stepped(done.outcome, turn)
        self._emit(CallDone(outcome, done.seconds))
        return outcome

    def _stepped(self, outcome: Outcome, turn: Turn) -> Outcome:
        return replace(outcome, result=self._config.chains.told(outcome.call, outcome.result, turn))

    async def _call(self, due: _Due, turn: Turn, untrusted: bool) -> Outcome:
        chains, call = self._config.chains, due.call
        begun = monotonic()
        outcome, stepped = due.known(), False
        if outcome is None:
            made = self._disclosure.answer(call, self._session.tier) or chains.invoked(call, turn)
            stepped = isinstance(made, ToolResult)
            if isinstance(made, ToolResult):
                outcome = Outcome(call, replace(made, call_id=call.id, tool_name=call.name))
            else:
                self._emit(CallBegun(made))
                outcome = await self._executed(made, due, untrusted)
        elif outcome.issue is None:
            self._emit(CallBegun(outcome.call))  # in an earlier life
        seconds = monotonic() - begun
        with Caught() as caught:
            outcome = self._stepped(outcome, turn)
        if due.record is not None:  # a step that fails is mended; that the call was made stays known
            outcome = await due.record.finish(outcome, seconds, stepped=caught.error is None)
        if caught.error is not None:
            raise caught.error
        self._watch.called(outcome, seconds, stepped=stepped)
        self._emit(CallDone(outcome, seconds))
        return outcome

    async def _executed(self, call: ToolCall, due: _Due, untrusted: bool) -> Outcome:
        record = due.record
        # Runs inside the call are recorded with it, or not at all: never in the journal of a run further out.
        inner = JOURNAL.set(None if record is None else record.inner())
        depth = 1 if self._lead is None else self._lead.depth + 1
        lead = LEAD.set(Lead(due.place, self._emit, self._session, self._spent, self._exceeded, self._left, depth))
        left = self._left()
        try:
            async with asyncio.timeout(left) as scope:
                if record is None:
                    return await self._executor.run(call, self._session, untrusted=untrusted)
                return await self._executor.run(
                    call, self._session, untrusted=untrusted, noted=record.noted, permitted=record.permitted
                )
        except TimeoutError:
            if not scope.expired():
                raise
            return Outcome(call, ToolResult(call.id, call.name, error=STOPPED))
        finally:
            JOURNAL.reset(inner)
            LEAD.reset(lead)

    def _ends(self, outcome: Outcome) -> bool:
        if outcome.issue is not None or not outcome.result.success or outcome.call.name not in self._agent.registry:
            return False
        return self._agent.registry.lookup(outcome.call.name).ends_turn

    # -- afterwards ----------------------------------------------------------------------------------------------

    def _remember(self, response: ParsedResponse, said: str, results: Sequence[ToolResult]) -> None:
        """The turn, as the next requests tell it: what was read, not what was written."""
        parts: list[Part] = []
        if response.parts and response.tool_calls:
            last = max((at for at, part in enumerate(response.parts) if isinstance(part, ToolCall)), default=-1)
            # What a model of text writes behind its calls is made up: it has not seen the results.
            parts = list(response.parts[: last + 1] if self._backend.format else response.parts)
        elif said or response.parts:
            kept: list[Part] = [part for part in response.parts if not isinstance(part, TextPart)]
            parts = [*kept, TextPart(said)] if said else kept
        calls = {id(part) for part in parts if isinstance(part, ToolCall)}
        parts += [call for call in response.tool_calls if id(call) not in calls]
        if parts:
            self._messages.append(Message("assistant", tuple(parts)))
        if results:
            self._messages.append(Message("tool", tuple(results)))

    def _example(self, turn: Turn) -> Callable[[str], str]:
        tools = {tool.name: tool for tool in turn.tools}

        def example(name: str) -> str:
            definition = tools.get(name) if name else next(iter(turn.tools), None)
            if definition is None:
                return ""
            if turn.format:
                return call_example(get_format(turn.format), definition, tools)
            return f"The arguments of {definition.name} look like this: {json.dumps(example_arguments(definition))}"

        return example

    def _ended(self, reason: EndReason, answer: str, detail: str = "") -> RunEnded:
        spent = self._spent
        return RunEnded(
            reason,
            answer,
            detail,
            tuple(self._messages),
            spent.rounds,
            spent.calls,
            spent.whole,
            spent.cost,
            monotonic() - self._begun,
        )


async def _all_done(tasks: Collection[asyncio.Task[Outcome]]) -> None:
    """Wait for all calls of a turn; when nothing can be recorded any more, what is still at work is stopped."""
    left = set(tasks)
    try:
        while left:
            done, left = await asyncio.wait(left, return_when=asyncio.FIRST_EXCEPTION)
            if any(not one.cancelled() and isinstance(one.exception(), JournalError) for one in done):
                break
    finally:
        for one in left:
            one.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _written(call: ToolCall, turn: Turn) -> str:
    """A call as the model was asked to write it; the format's own example, where it cannot be written so."""
    try:
        text = render_calls([call], format=turn.format, tools=turn.tools)
    except RenderError:
        text = ""
    tools = {tool.name: tool for tool in turn.tools}
    return text if 0 < len(text) <= 2 * OFFENCE else call_example(get_format(turn.format), tools[call.name], tools)


def _choice(config: AgentConfig, turn: Turn) -> ToolChoice:
    if not turn.tools:
        return ToolChoice()
    return ToolChoice("none" if turn.last else "required" if config.require_tool_call else "auto")


def _record(run: str, ended: RunEnded) -> EndRecord:
    return EndRecord(
        run,
        ended.reason,
        ended.good,
        ended.detail,
        ended.rounds,
        ended.calls,
        ended.usage,
        ended.money,
        ended.seconds,
    )


def _said(response: ParsedResponse, turn: Turn) -> str:
    """The prose of an answer, without markers of results: a model that has seen some may write them itself."""
    return unframed(get_format(turn.format), response.content).strip() if turn.format else response.content.strip()


def _fault(outcome: Outcome) -> Fault | None:
    """What is wrong with a call that did not succeed; its result tells the model."""
    name, message = outcome.call.name, outcome.result.text
    if outcome.issue is not None:
        match outcome.issue.kind:
            case "unknown_tool" | "invalid_arguments" as kind:
                return Fault(kind, name, message, told=True)
            case "not_runnable":
                return Fault("tool_failed", name, message, told=True)
            case "denied" | "confirmation":
                return Fault("denied", name, message, told=True)
    return None if outcome.result.success else Fault("tool_failed", name, message, told=True)


def _size(message: Message) -> int:
    """About how many tokens a message holds: a quarter of its characters."""
    total = 8
    for part in message.parts:
        match part:
            case TextPart(text):
                total += len(text)
            case ToolCall():
                total += len(part.name) + len(json.dumps(part.arguments))
            case ToolResult():
                total += len(part.text)
            case ReasoningPart(text):
                total += len(text)
            case _:
                total += 400
    return total // 4 + 1

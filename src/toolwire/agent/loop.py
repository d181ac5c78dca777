"""The agent loop: ask the model, run its tool calls and feed the results back, until the model calls nothing more.

This is the only place where a result becomes part of the next request. The loop delegates the rest: `model_turn`
obtains an answer, `tool_calls` runs the calls of one, `recovery` finds what is wrong with a turn, and `budget` says
what the run may still use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolwire.agent.budget import BudgetUsedUp, RunLimits
from toolwire.agent.call_examples import FencedCalls, call_examples
from toolwire.agent.compaction import compact
from toolwire.agent.deferral import Deferral
from toolwire.agent.history import answer_parts, answer_text, called_tools, first_calls, turn_messages
from toolwire.agent.hooks import TurnInfo
from toolwire.agent.journal import RecordedAnswer, RunRecorder
from toolwire.agent.model_turn import JudgedAnswer, ModelTurn
from toolwire.agent.output import TOO_EARLY, AcceptedOutput, RunOutput, check_no_tool
from toolwire.agent.parent_run import enclosing_sessions, spread_taint, with_taint
from toolwire.agent.pending import PendingApprovals
from toolwire.agent.prices import check_prices
from toolwire.agent.recovery import REPEATED, Breaker, Fault, Repeats, advice, call_fault, faults_of
from toolwire.agent.run_context import AgentParts, RunContext, RunOptions
from toolwire.agent.run_events import (
    GOOD_ENDS,
    AgentChanged,
    ApprovalRequested,
    CorrectionAdded,
    Emit,
    EndReason,
    ReplayEnded,
    RunEnded,
    RunResumed,
    TaskStarted,
    end_record,
)
from toolwire.agent.tool_calls import ToolCallRunner
from toolwire.agent.untrusted_history import is_untrusted
from toolwire.errors import ProviderError, UnknownTool
from toolwire.execution.approval_requests import AsyncConfirm
from toolwire.execution.outcomes import Outcome
from toolwire.messages import FinishReason, Message, ParsedResponse, TextPart, ToolCall
from toolwire.models.model_group import single_models
from toolwire.policy.approval import Approval
from toolwire.policy.intent import Intent
from toolwire.policy.session import Session
from toolwire.providers.output_request import FINAL_ANSWER
from toolwire.telemetry.coached_backend import CoachedBackend
from toolwire.telemetry.records import EndRecord
from toolwire.telemetry.run_observer import RunObserver
from toolwire.tools import DEFAULT_BEHAVIOR, Tier, ToolBehavior

LAST_ROUND = "No more tool calls now. Answer in plain words, from what you have seen."
REPETITION = "the same calls with the same results, again and again"
MAX_HANDOVERS = 8
"""Maximum number of hand-offs in a run."""
ONE_HANDOVER = "The conversation can be handed over to one agent only, and your first call does that."
NO_HANDOVER = f"This conversation was handed over {MAX_HANDOVERS} times already: answer yourself."
ALL_TOOLS = Intent(Tier.RUN, why="this agent offers all its tools in every task")


class Run:
    """One run of an agent, from a task to its end.

    Args:
        agent: the parts of the agent that works.
        emit: reports an event to the reader of the run's events.
        session: state of the conversation.
        run_id: name of the run.
        options: options of the run.
    """

    def __init__(
        self,
        agent: AgentParts,
        emit: Emit,
        session: Session,
        run_id: str,
        options: RunOptions,
    ) -> None:
        parent = options.get("parent")
        backend, config = agent.backend, agent.config
        # Seconds are counted by the clock of the event loop, which also stops what takes too long.
        clock = asyncio.get_running_loop().time
        limits = RunLimits(config.budget, None if parent is None else parent.limits, clock)
        check_prices(backend, config.budget.prices, limited=limits.limits_money)
        # The coach observes its own model, which may be another one than in the run before.
        coaches = [model.coach for model in single_models(backend) if isinstance(model, CoachedBackend)]
        observer = RunObserver(
            (*coaches, *agent.observers),
            run_id,
            config.name,
            model=backend.model,
            api=backend.api,
            format=backend.format,
        )
        deps = options.get("deps", None if parent is None else parent.deps)
        self._around = enclosing_sessions(parent)
        emit = with_taint(emit, session, self._around)
        self._context = RunContext(
            config, session, run_id, limits, agent.disclosure(), observer, emit, parent, deps, None
        )
        self._journal = options.get("journal")
        self._confirm = None if parent is None else parent.confirm
        self._handovers = 0
        self._use(agent)
        self._deferral = self._confirm if isinstance(self._confirm, Deferral) else None
        if self._deferral is not None and parent is None:
            self._journal = self._deferral.journal
        self._breaker = Breaker()
        self._repeats = Repeats()
        self._messages: list[Message] = []
        self._recorder: RunRecorder | None = None
        self._replaying = False
        self._task = Message("user")
        self._history: Sequence[Message] = ()
        self._note = ""  # an instruction for the next prompt alone
        self._repetition = ""  # why the next round is the last, if the calls repeat themselves
        self._fenced_calls = FencedCalls()
        self._invalid_outputs = 0
        self._has_result = False  # whether a call of a tool has succeeded; see `RunEnded.has_result`

    def _use(self, agent: AgentParts) -> None:
        """Let an agent work on the conversation: with its settings, model and tools, by its policy."""
        self._agent = agent
        output = None
        if agent.output is not None:
            check_no_tool(agent.registry)  # it may have been registered since the agent was made
            output = RunOutput(agent.output, agent.config.output_mode, has_tools=len(agent.registry) > 0)
        self._context = context = replace(
            self._context, config=agent.config, disclosure=agent.disclosure(), output=output
        )
        self._registry = agent.registry
        self._confirm = confirm = agent.confirm or self._confirm
        self._executor = agent.make_executor(agent.registry, None if confirm is None else self._observed(confirm))
        self._model_turn = ModelTurn(context, agent.backend)
        # Nested runs get the bare function: each of them observes its own questions.
        self._tool_calls = ToolCallRunner(context, self._executor, confirm)

    def _observed(self, confirm: AsyncConfirm) -> AsyncConfirm:
        emit, observer = self._context.emit, self._context.observer

        async def ask(approval: Approval) -> Any:
            emit(ApprovalRequested(approval))
            observer.request_approval(approval, getattr(confirm, "name", "user"))
            answer = await confirm(approval)
            observer.record_approval(approval, answer)
            return answer

        return ask

    async def run(self, task: Message, history: Sequence[Message]) -> RunEnded:
        """Work on a task until the run ends, and report all of it to the observers and to the parent run."""
        context = self._context
        parent, observer = context.parent, context.observer
        observer.begin(task.text)
        record: EndRecord | None = None
        try:
            if parent is not None:
                parent.nested.append(context.limits.spending)
            self._begin(task, history)
            ended = await self._rounds()
            record = end_record(observer.run, ended)
            return ended
        finally:
            # Also when the run is cancelled: its tools may have shown untrusted content to the parent's model by then.
            spread_taint(context.session, self._around)
            observer.end(record)

    # -- beginning -----------------------------------------------------------------------------------------------

    def _begin(self, task: Message, history: Sequence[Message]) -> None:
        session, disclosure = self._context.session, self._context.disclosure
        if self._deferral is not None and self._context.parent is None:
            self._deferral.begin(session, self._executor.clock)
        session.untrusted |= is_untrusted(history, self._agent.owner) or any(outer.untrusted for outer in self._around)
        if not session.delegated:  # the words of a task that a model hands on are not the user's
            session.record_question(task.text)
        self._task, self._history = task, history
        self._messages = [*history, task]
        self._context.emit(self._unlock(task.text))
        disclosure.keep(called_tools(history))
        self._restore()

    def _unlock(self, task: str) -> TaskStarted:
        """Set the session's tier to what the task asks for, and return the event that says so."""
        config, session = self._context.config, self._context.session
        if config.tier is not None:
            intent = Intent(config.tier, why="every task of this agent has this tier")
        else:
            gate = config.tier_gate
            intent = ALL_TOOLS if gate is None else gate.begin(task, session.tier)
            if intent.tier > session.ceiling:
                intent = replace(intent, tier=session.ceiling, why=f"{intent.why}; but a model wrote the task")
        session.tier = intent.tier
        locked = tuple(tool.name for tool in self._registry.definitions() if tool.tier > intent.tier)
        return TaskStarted(task, intent, locked)

    def _restore(self) -> None:
        """Restore what earlier processes recorded of the run."""
        if self._journal is None:
            return
        limits = self._context.limits
        self._recorder = recorder = RunRecorder(
            self._journal, self._context.session, self._executor.clock, limits.spending, lambda: limits.seconds
        )
        limits.add_seconds(recorder.seconds)
        self._replaying = recorder.resumed
        if self._replaying:
            self._context.emit(RunResumed())

    def _catch_up(self) -> None:
        """Report, once, that from here on nothing is replayed."""
        if self._replaying:
            self._replaying = False
            self._context.emit(ReplayEnded())

    # -- rounds --------------------------------------------------------------------------------------------------

    async def _rounds(self) -> RunEnded:
        limits = self._context.limits
        spending = limits.spending
        while True:
            recorded = None if self._recorder is None else self._recorder.answer(spending.rounds + 1)
            # A recorded answer keeps its place in the run, whatever has become of the budgets since.
            exhausted = (self._repetition or limits.exceeded()) if recorded is None else recorded.exhausted
            if recorded is None and (above := limits.parent_exceeded()):  # the last answer is the coordinator's
                return self._ended("budget", "", f"{above} is used up")
            spending.rounds += 1
            turn = self._model_turn.begin(spending.rounds, last=bool(exhausted), must_call=self._must_call())
            if recorded is not None:
                turn = replace(turn, format=recorded.format)
            await self._compact(turn, recorded)
            if exhausted:
                return await self._last_answer(turn, recorded, exhausted)
            try:
                answer = await self._next_answer(turn, recorded)
            except BudgetUsedUp:
                # The pieces that were streamed are not an answer. The round begins anew, now as the last one.
                spending.rounds -= 1
                continue
            except ProviderError as error:
                return self._ended("error", "", str(error))
            outcomes = await self._run_calls(answer)
            ending = next((at for at, outcome in enumerate(outcomes) if self._ends_run(outcome)), None)
            self._remember(answer, outcomes, ending)
            if self._deferral is not None and self._deferral.is_open(self._context.run_id):
                return await self._pause(self._deferral, answer)
            ended = self._finish(answer, outcomes, ending) or self._correct(answer, outcomes)
            if ended is not None:
                return ended
            self._hand_over(outcomes)

    async def _compact(self, turn: TurnInfo, recorded: RecordedAnswer | None) -> None:
        """Replace the older part of a conversation that is too long, if the agent is set up for it."""
        room, recorder = self._model_turn.room(turn, self._note), self._recorder
        saved = None if recorder is None else recorder.compaction(turn.round)
        if recorded is None and saved is None and room is not None:
            saved = await compact(self._messages, room, self._context, self._agent.backend)
            if saved is not None and recorder is not None:
                saved = await recorder.record_compaction(turn.round, saved)
        if saved is not None:
            self._messages = list(saved.messages)
            self._context.emit(saved.event)

    def _hand_over(self, outcomes: Sequence[Outcome]) -> None:
        """Let another agent continue, if a call has handed the conversation over to it."""
        handoffs = self._agent.handoffs
        names = (outcome.call.name for outcome in outcomes if outcome.result.success)
        name = next((name for name in names if name in handoffs), None)
        if name is None:
            return
        previous = self._context.config.name
        self._handovers += 1
        self._use(handoffs[name]())
        self._context.disclosure.keep(called_tools(self._messages))
        # The task unlocks tools anew, since the other agent may have another tier or gate.
        self._note = ""  # it was meant for the agent before
        locked = self._unlock(self._task.text).locked
        self._context.emit(AgentChanged(self._context.config.name, previous, locked))

    async def _last_answer(self, turn: TurnInfo, recorded: RecordedAnswer | None, exhausted: str) -> RunEnded:
        """Ask for an answer without calls, and end the run with it."""
        reason: EndReason = "repeats" if self._repetition else "budget"
        why = self._repetition or f"{exhausted} is used up"
        output, request = self._context.output, self._model_turn.output
        note = "\n\n".join(filter(None, (self._note, LAST_ROUND if request is None else request.last_note)))
        try:
            response, turn = await self._response(turn, recorded, note, exhausted)
        except (BudgetUsedUp, ProviderError) as error:
            return self._ended(reason, "", f"{why}, and no last answer came: {error}")
        text = answer_text(response, turn.format)
        accepted = None if output is None else output.of_last(response, text)
        text = text if accepted is None else accepted.text
        self._messages.append(Message("assistant", (TextPart(text),)))
        why = why if text else f"{why}, and the last answer says nothing"
        return self._ended(reason, text, why, output=accepted)

    async def _next_answer(self, turn: TurnInfo, recorded: RecordedAnswer | None) -> JudgedAnswer:
        """Obtain an answer and find what is wrong with it.

        Raises:
            BudgetUsedUp, ProviderError: see `ModelTurn.answer`.
        """
        response, turn = await self._response(turn, recorded, self._note)
        maximum = self._context.config.calls_per_answer
        faults = faults_of(response, require_call=turn.must_call, max_calls=maximum, hint=self._note)
        response = first_calls(response, maximum)
        # The results of the answer's calls do not count: the model had not read them when it wrote the calls.
        untrusted = self._context.session.untrusted if recorded is None else recorded.untrusted
        text = answer_text(response, turn.format)
        output, request = self._context.output, self._model_turn.output
        if output is None or request is None or self._lacks_result():
            accepted, invalid = None, list[Fault]()
        else:
            accepted, invalid = output.judge(response, text, request)
        faults = [] if accepted else faults or self._fenced_calls.faults(response, turn, self._messages) or invalid
        self._context.observer.add_faults(fault.kind for fault in faults)
        return JudgedAnswer(turn, response, text, faults, untrusted, accepted)

    async def _response(
        self, turn: TurnInfo, recorded: RecordedAnswer | None, note: str, exhausted: str = ""
    ) -> tuple[ParsedResponse, TurnInfo]:
        """Return the recorded response, or ask the model for one and record it; and the turn of its model.

        Raises:
            BudgetUsedUp, ProviderError: see `ModelTurn.answer`.
        """
        if recorded is not None:
            self._model_turn.replay(recorded.response, turn)
            return recorded.response, turn
        self._catch_up()
        response, turn = await self._model_turn.answer(turn, self._messages, note)
        if self._recorder is None:
            return response, turn
        answer = RecordedAnswer(response, exhausted, turn.format, self._context.session.untrusted)
        # The run continues with what a later process would read, so that both have the same conversation.
        return (await self._recorder.record_answer(turn.round, answer)).response, turn

    async def _run_calls(self, answer: JudgedAnswer) -> list[Outcome]:
        calls, handoffs = answer.response.all_calls, self._agent.handoffs
        transfers = [at for at, call in enumerate(calls) if call.name in handoffs]
        refused = transfers[1:] if self._handovers < MAX_HANDOVERS else transfers
        refusals = dict.fromkeys(refused, ONE_HANDOVER if self._handovers < MAX_HANDOVERS else NO_HANDOVER)
        if self._lacks_result() and self._context.output is not None:
            refusals |= {at: TOO_EARLY for at, call in enumerate(calls) if call.name == FINAL_ANSWER}
        return await self._tool_calls.run(
            calls,
            answer.turn,
            refusals=refusals,
            untrusted=answer.untrusted,
            recorder=self._recorder,
            before_first=self._catch_up,
        )

    def _remember(self, answer: JudgedAnswer, outcomes: Sequence[Outcome], ending: int | None) -> None:
        """Add the turn to the conversation: as it was parsed, not as it was written.

        Args:
            answer: the model's answer.
            outcomes: the outcomes of its calls.
            ending: the place of the call that ends the run; None if the run continues.
        """
        parts = answer_parts(answer.response, answer.text, written=bool(answer.turn.format))
        results = [outcome.result for outcome in outcomes]
        if ending is not None and not self._behavior(outcomes[ending].call).gives_answer:
            ending = None
        self._messages += turn_messages(parts, answer.response.all_calls, results, answering=ending)
        self._has_result = self._has_result or any(map(self._is_result, outcomes))

    def _is_result(self, outcome: Outcome) -> bool:
        """Return whether a call brought something that the model did not write itself."""
        call = outcome.call
        gives_output = self._context.output is not None and call.name == FINAL_ANSWER
        is_own = gives_output or call.name in self._agent.handoffs or self._behavior(call).gives_answer
        return outcome.result.success and not is_own

    async def _pause(self, deferral: Deferral, answer: JudgedAnswer) -> RunEnded:
        """End a run in which calls wait for an approval; their results say that they did not run."""
        context = self._context
        if self._recorder is not None:
            await self._recorder.record_pause()
        pending = None
        if context.parent is None:  # a nested run is resumed with the run around it
            pending = deferral.pending(context.config.name, context.run_id, self._task, self._history)
        detail = f"{' and '.join(deferral.waiting(context.run_id))} waits for an approval"
        return self._ended("pending", answer.text, detail, pending=pending)

    def _finish(self, answer: JudgedAnswer, outcomes: Sequence[Outcome], ending: int | None) -> RunEnded | None:
        """Return the end of the run if this turn ends it; None if the run continues."""
        if ending is not None:
            return self._ended("finished", outcomes[ending].result.text, outcomes[ending].call.name)
        output = self._context.output
        accepted = answer.output if output is None else answer.output or output.of_outcomes(outcomes)
        if accepted is not None:
            return self._ended("answered", accepted.text, output=accepted)
        if outcomes or answer.faults:
            return None
        match answer.response.finish_reason:
            case FinishReason.LENGTH:
                return self._ended("length", answer.text, "the answer was cut off at the model's limit")
            case FinishReason.CONTENT_FILTER:
                return self._ended("error", answer.text, "the provider's filter stopped the answer")
        return self._ended("answered", answer.text)

    def _correct(self, answer: JudgedAnswer, outcomes: Sequence[Outcome]) -> RunEnded | None:
        """Write the note for the next prompt, or return the end of a run in which too much has failed."""
        faults = [*answer.faults, *(fault for outcome in outcomes if (fault := call_fault(outcome)) is not None)]
        succeeded = [outcome.call.name for outcome in outcomes if outcome.result.success]
        if (ended := self._count_invalid(faults, answer.text)) is not None:
            return ended
        fatal = self._breaker.turn(faults, succeeded)
        if fatal is not None:
            return self._ended("failures", answer.text, f"{fatal.kind} again and again: {fatal.message}")
        circle = self._repeats.turn(answer.response.all_calls, [outcome.result for outcome in outcomes])
        self._repetition = REPETITION if circle == "end" else ""
        warning = REPEATED if circle == "warn" else ""
        note = "\n\n".join(filter(None, (advice(faults, call_examples(answer.turn)), warning)))
        if note:
            self._context.observer.add_correction(note)
            self._context.emit(CorrectionAdded(note))
        self._note = note or self._reminder(outcomes)
        return None

    def _count_invalid(self, faults: Sequence[Fault], text: str) -> RunEnded | None:
        """Count a turn with an invalid output; return the end of the run if there are too many."""
        invalid = [fault for fault in faults if fault.kind == "invalid_output" or fault.tool == FINAL_ANSWER]
        if self._context.output is None or not invalid:
            return None
        self._invalid_outputs += 1
        if self._invalid_outputs <= self._context.config.output_retries:
            return None
        return self._ended(
            "failures", text, f"no valid output in {self._invalid_outputs} answers: {invalid[0].message}"
        )

    def _must_call(self) -> bool:
        """Return whether the next answer must call a tool."""
        return self._context.config.require_tool_call and (
            not self._has_result
            or any(self._registry.lookup(tool.name).behavior.ends_turn for tool in self._registry.definitions())
        )

    def _lacks_result(self) -> bool:
        """Return whether a call that the agent requires is still missing, so that no output can be accepted."""
        return self._context.config.require_tool_call and not self._has_result

    def _ends_run(self, outcome: Outcome) -> bool:
        return outcome.issue is None and outcome.result.success and self._behavior(outcome.call).ends_turn

    def _behavior(self, call: ToolCall) -> ToolBehavior:
        try:
            return self._registry.lookup(call.name, call.server).behavior
        except UnknownTool:  # a tool that the run itself has
            return DEFAULT_BEHAVIOR

    def _reminder(self, outcomes: Sequence[Outcome]) -> str:
        """Return the configured note for a turn in which nothing has to be corrected."""
        if not outcomes:
            return ""
        config = self._context.config
        failed = all(
            not outcome.result.success and (outcome.issue is None or outcome.issue.kind != "denied")
            for outcome in outcomes
        )
        reminder = (failed and config.after_failures) or config.after_results
        return reminder.replace("{task}", self._task.text)

    def _ended(
        self,
        reason: EndReason,
        answer: str,
        detail: str = "",
        *,
        output: AcceptedOutput | None = None,
        pending: PendingApprovals | None = None,
    ) -> RunEnded:
        limits = self._context.limits
        spending = limits.spending
        text = answer if self._context.output is None and reason in GOOD_ENDS else None
        return RunEnded(
            reason,
            answer,
            detail,
            tuple(self._messages),
            spending.rounds,
            spending.calls,
            spending.total_usage,
            spending.total_money,
            limits.seconds,
            text if output is None else output.value,
            pending,
            self._context.config.name,
            self._has_result,
        )

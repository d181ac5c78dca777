"""The agent loop: ask the model, run its tool calls and feed the results back, until the model calls nothing more.

This is the only place where a result becomes part of the next request. The loop delegates the rest: `model_turn`
obtains an answer, `tool_calls` runs the calls of one, `recovery` finds what is wrong with a turn, and `budget` says
what the run may still use.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolwire.agent.budget import RunLimits
from toolwire.agent.config import AgentConfig
from toolwire.agent.hooks import TurnInfo
from toolwire.agent.journal import Journal, RecordedAnswer, RunRecorder
from toolwire.agent.model_turn import ModelTurn, OutOfTime
from toolwire.agent.parent_run import ParentCall
from toolwire.agent.recovery import HIDDEN, OFFENCE, REPEATED, Breaker, Fault, Repeats, advice, faults_of
from toolwire.agent.run_context import RunContext
from toolwire.agent.run_events import (
    ApprovalRequested,
    CorrectionAdded,
    Emit,
    EndReason,
    ReplayEnded,
    RunEnded,
    RunResumed,
    TaskStarted,
)
from toolwire.agent.tool_calls import ToolCallRunner
from toolwire.errors import ProviderError, RenderError
from toolwire.execution.approval_requests import Confirm
from toolwire.execution.disclosure import Disclosure
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.outcomes import Outcome
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import FinishReason, Message, ParsedResponse, Part, TextPart, ToolCall
from toolwire.models.backends import Backend
from toolwire.policy.approval import Approval
from toolwire.policy.intent import Intent
from toolwire.policy.session import Session
from toolwire.telemetry.coached_backend import CoachedBackend
from toolwire.telemetry.records import EndRecord, Observer
from toolwire.telemetry.run_observer import RunObserver
from toolwire.text.suggest import closest
from toolwire.wire.format_registry import get_format
from toolwire.wire.prompts import render_calls
from toolwire.wire.renderer import call_example, example_arguments
from toolwire.wire.result_text import unframed
from toolwire.wire.stream_parser import parse

LAST_ROUND = "No more tool calls now. Answer in plain words, from what you have seen."
REPETITION = "the same calls with the same results, again and again"
NAME_SIMILARITY = 0.7
"""Minimum similarity of an unknown tool name to a tool's, for an example of that tool to be shown."""
FENCED = "json_fence"
"""The format that finds calls which are only shown, in a code fence."""


@dataclass(frozen=True, slots=True)
class AgentParts:
    """The parts of an agent that its runs use.

    Attributes:
        backend: the model.
        registry: the tools that it may call.
        config: settings of the agent.
        make_executor: makes the executor of a run, from the registry and the function that asks for approval.
        confirm: asks for approval where the policy requires it.
        observers: receive the records of each run.
    """

    backend: Backend
    registry: ToolRegistry
    config: AgentConfig
    make_executor: Callable[[ToolRegistry, Confirm | None], ToolExecutor]
    confirm: Confirm | None
    observers: Sequence[Observer]


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer of the model in a round that is not the last.

    Attributes:
        turn: the turn to which it belongs.
        response: the answer itself.
        text: its prose.
        faults: what is wrong with it before any of its calls runs.
        untrusted: whether the model had read untrusted content when it wrote the answer.
    """

    turn: TurnInfo
    response: ParsedResponse
    text: str
    faults: Sequence[Fault]
    untrusted: bool


class Run:
    """One run of an agent, from a task to its end.

    Args:
        agent: the parts of the agent that works.
        emit: reports an event to the reader of the run's events.
        session: state of the conversation.
        run_id: name of the run.
        journal: records the run; None for a run that is not recorded.
        parent: the call in which this run is nested; None for a run that a program began.
    """

    def __init__(
        self,
        agent: AgentParts,
        emit: Emit,
        session: Session,
        run_id: str,
        journal: Journal | None,
        parent: ParentCall | None,
    ) -> None:
        backend, config = agent.backend, agent.config
        # Seconds are counted by the clock of the event loop, which also stops what takes too long.
        limits = RunLimits(config.budget, None if parent is None else parent.limits, asyncio.get_running_loop().time)
        definitions_format = backend.format or backend.api or "openai_chat"
        # The coach observes its own model, which may be another one than in the run before.
        coach = (backend.coach,) if isinstance(backend, CoachedBackend) else ()
        observer = RunObserver(
            (*coach, *agent.observers), run_id, config.name, model=backend.model, api=backend.api, format=backend.format
        )
        disclosure = Disclosure(agent.registry, format=definitions_format, budget_tokens=config.definitions)
        self._context = RunContext(config, session, run_id, limits, disclosure, observer, emit, parent)
        self._registry = agent.registry
        self._journal = journal
        confirm = agent.confirm
        if confirm is None and parent is not None:
            confirm = parent.confirm
        self._executor = agent.make_executor(agent.registry, None if confirm is None else self._observed(confirm))
        self._model_turn = ModelTurn(self._context, backend)
        # Nested runs get the bare function: each of them observes its own questions.
        self._tool_calls = ToolCallRunner(self._context, self._executor, confirm)
        self._breaker = Breaker()
        self._repeats = Repeats()
        self._messages: list[Message] = []
        self._recorder: RunRecorder | None = None
        self._replaying = False
        self._task = ""
        self._note = ""  # an instruction for the next prompt alone
        self._repetition = ""  # why the next round is the last, if the calls repeat themselves
        self._fence_explained = False

    def _observed(self, confirm: Confirm) -> Confirm:
        emit, observer = self._context.emit, self._context.observer

        async def ask(approval: Approval) -> Any:
            emit(ApprovalRequested(approval))
            observer.request_approval(approval, getattr(confirm, "name", "user"))
            answer = await confirm(approval)
            observer.record_approval(approval, answer)
            return answer

        return ask

    async def run(self, task: str, history: Sequence[Message]) -> RunEnded:
        """Work on a task until the run ends, and report all of it to the observers and to the parent run."""
        context = self._context
        parent, observer = context.parent, context.observer
        observer.begin(task)
        record: EndRecord | None = None
        try:
            if parent is not None:
                parent.nested.append(context.limits.spending)
            self._begin(task, history)
            ended = await self._rounds()
            record = _end_record(observer.run, ended)
            return ended
        finally:
            # Also when the run is cancelled: its tools may have shown untrusted content to the parent's model by then.
            if parent is not None and context.session.untrusted:
                parent.session.untrusted = True
            observer.end(record)

    # -- beginning -----------------------------------------------------------------------------------------------

    def _begin(self, task: str, history: Sequence[Message]) -> None:
        session, disclosure = self._context.session, self._context.disclosure
        if not session.handed_on:  # the words of a task that a model hands on are not the user's
            session.said(task)
        self._task = task
        self._messages = [*history, Message("user", (TextPart(task),))]
        self._unlock(task)
        names = (part.name for message in history for part in message.parts if isinstance(part, ToolCall))
        disclosure.keep(names)
        self._restore()

    def _unlock(self, task: str) -> None:
        """Set the session's tier to what the task asks for."""
        config, session = self._context.config, self._context.session
        if config.tier is not None:
            intent = Intent(config.tier, why="every task of this agent has this tier")
        else:
            intent = config.gate.begin(task, session.tier)
            if intent.tier > session.ceiling:
                intent = replace(intent, tier=session.ceiling, why=f"{intent.why}; but a model wrote the task")
        session.tier = intent.tier
        locked = tuple(tool.name for tool in self._registry.definitions() if tool.tier > intent.tier)
        self._context.emit(TaskStarted(task, intent, locked))

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
            spending.rounds += 1
            turn = self._model_turn.begin(spending.rounds, last=bool(exhausted))
            if recorded is not None:
                turn = replace(turn, format=recorded.format)
            if exhausted:
                return await self._last_answer(turn, recorded, exhausted)
            try:
                answer = await self._next_answer(turn, recorded)
            except OutOfTime:
                # The pieces that were streamed are not an answer. The round begins anew, now as the last one.
                spending.rounds -= 1
                continue
            except ProviderError as error:
                return self._ended("error", "", str(error))
            outcomes = await self._run_calls(answer)
            self._remember(answer, outcomes)
            ended = self._finish(answer, outcomes) or self._correct(answer, outcomes)
            if ended is not None:
                return ended

    async def _last_answer(self, turn: TurnInfo, recorded: RecordedAnswer | None, exhausted: str) -> RunEnded:
        """Ask for an answer without calls, and end the run with it."""
        reason: EndReason = "repeats" if self._repetition else "budget"
        why = self._repetition or f"{exhausted} is used up"
        note = f"{self._note}\n\n{LAST_ROUND}" if self._note else LAST_ROUND
        try:
            response = await self._response(turn, recorded, note, exhausted)
        except ProviderError as error:
            return self._ended(reason, "", f"{why}, and no last answer came: {error}")
        text = _prose(response, turn)
        self._messages.append(Message("assistant", (TextPart(text),)))
        return self._ended(reason, text, why if text else f"{why}, and the last answer says nothing")

    async def _next_answer(self, turn: TurnInfo, recorded: RecordedAnswer | None) -> _Answer:
        """Obtain an answer and find what is wrong with it.

        Raises:
            OutOfTime, ProviderError: see `ModelTurn.answer`.
        """
        response = await self._response(turn, recorded, self._note)
        # The results of the answer's calls do not count: the model had not read them when it wrote the calls.
        untrusted = self._context.session.untrusted if recorded is None else recorded.untrusted
        faults = faults_of(response, require_call=self._context.config.require_tool_call)
        faults = faults or self._fenced_call(response, turn)
        self._context.observer.add_faults(fault.kind for fault in faults)
        return _Answer(turn, response, _prose(response, turn), faults, untrusted)

    async def _response(
        self, turn: TurnInfo, recorded: RecordedAnswer | None, note: str, exhausted: str = ""
    ) -> ParsedResponse:
        """Return the recorded response, or ask the model for one and record it.

        Raises:
            OutOfTime, ProviderError: see `ModelTurn.answer`.
        """
        if recorded is not None:
            self._model_turn.replay(recorded.response, turn)
            return recorded.response
        self._catch_up()
        response = await self._model_turn.answer(turn, self._messages, note)
        if self._recorder is None:
            return response
        answer = RecordedAnswer(response, exhausted, turn.format, self._context.session.untrusted)
        # The run continues with what a later process would read, so that both have the same conversation.
        return (await self._recorder.record_answer(turn.round, answer)).response

    def _fenced_call(self, response: ParsedResponse, turn: TurnInfo) -> list[Fault]:
        """Find a call in a code fence among prose. Reported once in a run, since it may be meant as an illustration.

        Small models write calls like this: "I will call the tool:", the call as JSON, and the result they expect.
        """
        if self._fence_explained or not turn.format or response.tool_calls:
            return []
        calls = parse(response.content, format=FENCED, tools=turn.tools).tool_calls[:1]
        self._fence_explained = bool(calls)
        return [Fault("malformed", "", f"{HIDDEN} Like this:\n{_call_text(call, turn)}") for call in calls]

    async def _run_calls(self, answer: _Answer) -> list[Outcome]:
        return await self._tool_calls.run(
            answer.response.tool_calls,
            answer.turn,
            untrusted=answer.untrusted,
            recorder=self._recorder,
            before_first=self._catch_up,
        )

    def _remember(self, answer: _Answer, outcomes: Sequence[Outcome]) -> None:
        """Add the turn to the conversation: as it was parsed, not as it was written."""
        response, text = answer.response, answer.text
        parts: list[Part] = []
        if response.parts and response.tool_calls:
            last = max((at for at, part in enumerate(response.parts) if isinstance(part, ToolCall)), default=-1)
            # Text that a text-only model writes behind its calls is invented: it has not seen the results.
            parts = list(response.parts[: last + 1] if answer.turn.format else response.parts)
        elif text or response.parts:
            parts = [part for part in response.parts if not isinstance(part, TextPart)]
            parts += [TextPart(text)] if text else []
        # By identity: two calls of one answer may be equal, and both have a result.
        included = {id(part) for part in parts if isinstance(part, ToolCall)}
        parts += [call for call in response.tool_calls if id(call) not in included]
        if parts:
            self._messages.append(Message("assistant", tuple(parts)))
        if outcomes:
            self._messages.append(Message("tool", tuple(outcome.result for outcome in outcomes)))

    def _finish(self, answer: _Answer, outcomes: Sequence[Outcome]) -> RunEnded | None:
        """Return the end of the run if this turn ends it; None if the run continues."""
        ending = next((outcome for outcome in outcomes if self._ends_run(outcome)), None)
        if ending is not None:
            return self._ended("finished", ending.result.text, ending.call.name)
        if outcomes or answer.faults:
            return None
        match answer.response.finish_reason:
            case FinishReason.LENGTH:
                return self._ended("length", answer.text, "the answer was cut off at the model's limit")
            case FinishReason.CONTENT_FILTER:
                return self._ended("error", answer.text, "the provider's filter stopped the answer")
        return self._ended("answered", answer.text)

    def _correct(self, answer: _Answer, outcomes: Sequence[Outcome]) -> RunEnded | None:
        """Write the note for the next prompt, or return the end of a run in which too much has failed."""
        faults = [*answer.faults, *(fault for outcome in outcomes if (fault := _call_fault(outcome)) is not None)]
        succeeded = [outcome.call.name for outcome in outcomes if outcome.result.success]
        fatal = self._breaker.turn(faults, succeeded)
        if fatal is not None:
            return self._ended("failures", answer.text, f"{fatal.kind} again and again: {fatal.message}")
        circle = self._repeats.turn(answer.response.tool_calls, [outcome.result for outcome in outcomes])
        self._repetition = REPETITION if circle == "end" else ""
        warning = REPEATED if circle == "warn" else ""
        note = "\n\n".join(filter(None, (advice(faults, self._example(answer.turn)), warning)))
        if note:
            self._context.observer.add_correction(note)
            self._context.emit(CorrectionAdded(note))
        self._note = note or self._reminder(outcomes)
        return None

    def _ends_run(self, outcome: Outcome) -> bool:
        if outcome.issue is not None or not outcome.result.success or outcome.call.name not in self._registry:
            return False
        return self._registry.lookup(outcome.call.name).behavior.ends_turn

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
        return reminder.replace("{task}", self._task)

    def _example(self, turn: TurnInfo) -> Callable[[str], str]:
        tools = {tool.name: tool for tool in turn.tools}

        def example(name: str) -> str:
            matches = [name] if name in tools else closest(name, tools, similarity=NAME_SIMILARITY)
            definition = tools[matches[0]] if matches else None if name else next(iter(turn.tools), None)
            if definition is None:
                return ""
            if turn.format:
                return call_example(get_format(turn.format), definition, tools)
            return f"The arguments of {definition.name} look like this: {json.dumps(example_arguments(definition))}"

        return example

    def _ended(self, reason: EndReason, answer: str, detail: str = "") -> RunEnded:
        limits = self._context.limits
        spending = limits.spending
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
        )


def _call_text(call: ToolCall, turn: TurnInfo) -> str:
    """Render a call as the model should write it; the format's own example if the call cannot be rendered."""
    try:
        text = render_calls([call], format=turn.format, tools=turn.tools)
    except RenderError:
        text = ""
    tools = {tool.name: tool for tool in turn.tools}
    return text if 0 < len(text) <= 2 * OFFENCE else call_example(get_format(turn.format), tools[call.name], tools)


def _end_record(run: str, ended: RunEnded) -> EndRecord:
    return EndRecord(
        run, ended.reason, ended.good, ended.detail, ended.rounds, ended.calls, ended.usage, ended.money, ended.seconds
    )


def _prose(response: ParsedResponse, turn: TurnInfo) -> str:
    """Return the prose of an answer without result markers: a model that has read some may write them itself."""
    return unframed(get_format(turn.format), response.content).strip() if turn.format else response.content.strip()


def _call_fault(outcome: Outcome) -> Fault | None:
    """Return what is wrong with a call that did not succeed; its result shows it to the model already."""
    name, message = outcome.call.name, outcome.result.text
    if outcome.issue is not None:
        match outcome.issue.kind:
            case "unknown_tool" | "invalid_arguments" as kind:
                return Fault(kind, name, message, reported=True)
            case "not_runnable":
                return Fault("tool_failed", name, message, reported=True)
            case "denied" | "confirmation":
                return Fault("denied", name, message, reported=True)
    return None if outcome.result.success else Fault("tool_failed", name, message, reported=True)

"""The loop: ask the model, read its calls, run them, tell it the results, until it calls nothing more.

This is the one place where a result becomes part of the next request. Everything else stands to its left: how an answer
is got (`answering`), what becomes of its calls (`calling`), what is wrong with a turn (`recovery`), what it may
still use (`limits`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from toolwire.agent.config import AgentConfig
from toolwire.agent.hooks import TurnInfo
from toolwire.agent.journal import Journal, RecordedAnswer, RunRecorder
from toolwire.agent.model_turn import ModelTurn, OutOfTime
from toolwire.agent.parent_run import Emit, ParentCall
from toolwire.agent.recovery import HIDDEN, OFFENCE, REPEATED, Breaker, Fault, Repeats, advice, faults_of
from toolwire.agent.run_events import ApprovalAsked, CaughtUp, Corrected, EndReason, Resumed, RunEnded, TaskBegun
from toolwire.agent.run_limits import Limits
from toolwire.agent.tool_calls import ToolCallRunner
from toolwire.errors import ProviderError, RenderError
from toolwire.execution.disclosure import Disclosure
from toolwire.execution.executor import Confirm, Outcome, ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import FinishReason, Message, ParsedResponse, Part, TextPart, ToolCall, ToolResult
from toolwire.models.backends import Backend
from toolwire.policy.approval import Approval
from toolwire.policy.intent import Intent
from toolwire.policy.session import Session
from toolwire.telemetry import CoachedBackend, EndRecord, Observer
from toolwire.telemetry.run_observer import Watch
from toolwire.text.suggest import closest
from toolwire.wire.format_registry import get_format
from toolwire.wire.prompts import render_calls
from toolwire.wire.renderer import call_example, example_arguments
from toolwire.wire.result_text import unframed
from toolwire.wire.stream_parser import parse

LAST_ROUND = "No more tool calls now. Answer in plain words, from what you have seen."
NEAR = 0.7
"""How alike a name that there is not has to be to a tool's, for that one to be shown."""
FENCED = "json_fence"
"""The format in which calls stand that are only shown."""


class Run:
    """One run: what it has come to.

    Args:
        backend: the model.
        registry: what it may call.
        config: how it works.
        executor: makes what runs calls, of the registry and whoever is asked.
        confirm: asks somebody where the policy asks.
        observers: who is told of it.
        emit: hears its events.
        session: what the conversation has come to.
        run_id: names it.
        journal: records it.
        lead: whom it works for.
    """

    def __init__(
        self,
        backend: Backend,
        registry: ToolRegistry,
        config: AgentConfig,
        executor: Callable[[ToolRegistry, Confirm | None], ToolExecutor],
        confirm: Confirm | None,
        observers: Sequence[Observer],
        emit: Emit,
        session: Session,
        run_id: str,
        journal: Journal | None,
        lead: ParentCall | None,
    ) -> None:
        self._backend = backend
        self._registry = registry
        self._config = config
        self._emit = emit
        self._session = session
        self._journal = journal
        self._lead = lead
        self._limits = limits = Limits(config.budget, lead)
        if confirm is None and lead is not None:
            confirm = lead.confirm
        self._executor = made = executor(registry, None if confirm is None else self._telling(confirm))
        coach = (backend.coach,) if isinstance(backend, CoachedBackend) else ()  # the model may be another than before
        self._watch = watch = Watch(
            (*coach, *observers), run_id, config.name, model=backend.model, api=backend.api, format=backend.format
        )
        told = backend.format or backend.api or "openai_chat"  # how definitions are counted
        self._disclosure = found = Disclosure(registry, format=told, budget_tokens=config.definitions)
        self._answering = ModelTurn(backend, config, run_id, limits, found, watch, emit)
        depth = 1 if lead is None else lead.depth + 1
        self._calling = ToolCallRunner(made, config.hooks, session, run_id, limits, confirm, depth, found, watch, emit)
        self._breaker = Breaker()
        self._repeats = Repeats()
        self._messages: list[Message] = []
        self._record: RunRecorder | None = None
        self._again = False  # what is told has happened before
        self._task = ""
        self._hinted = False  # that a call which is only shown does not run

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
        self._watch.begin(task)
        end: EndRecord | None = None
        lead = self._lead
        try:
            if lead is not None:
                lead.inside.append(self._limits.spent)
            ended = await self._rounds(task, history)
            end = _record(self._watch.run, ended)
            return ended
        finally:
            if lead is not None and self._session.untrusted:
                lead.session.untrusted = True
            self._watch.end(end)

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
        spent = self._limits.spent
        while True:
            before = None if self._record is None else self._record.answer(spent.rounds + 1)
            used_up = circling or self._limits.exceeded() if before is None else before.used_up
            spent.rounds += 1
            turn = self._answering.turn(spent.rounds, self._session.tier, last=bool(used_up))
            if before is not None:
                turn = replace(turn, format=before.format)
            try:
                note = "\n\n".join(filter(None, (note, LAST_ROUND if used_up else "")))
                if before is None:
                    response = await self._answer(turn, note, used_up)
                else:
                    self._answering.again(response := before.response, turn)
            except OutOfTime:  # what was said of the answer is no answer; the round begins anew
                spent.rounds -= 1
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
                why = circling or f"{used_up} is used up"
                silent = "" if said else ", and the last answer says nothing"
                return self._ended("repeats" if circling else "budget", said, why + silent)
            faults = faults_of(response, require_call=self._config.require_tool_call) or self._shown_only(
                response, turn
            )
            self._watch.faulty(fault.kind for fault in faults)
            # What these calls give back, the model had not read when it wrote them.
            untrusted = self._session.untrusted if before is None else before.untrusted
            outcomes = await self._calling.outcomes(
                response.tool_calls, turn, untrusted=untrusted, record=self._record, happening=self._catch_up
            )
            results = [outcome.result for outcome in outcomes]
            self._remember(response, said, results, turn)
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

    def _shown_only(self, response: ParsedResponse, turn: TurnInfo) -> list[Fault]:
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
        held = tuple(one.name for one in self._registry.definitions() if one.tier > intent.tier)
        self._emit(TaskBegun(task, intent, held))

    # -- recording -----------------------------------------------------------------------------------------------

    def _remind(self) -> None:
        """Take up what the run's earlier lives have come to, if it is recorded."""
        if self._journal is None:
            return
        limits = self._limits
        record = RunRecorder(self._journal, self._session, self._executor.clock, limits.spent, lambda: limits.seconds)
        limits.went_on_for(record.seconds)
        self._record, self._again = record, record.resumed
        if self._again:
            self._emit(Resumed())

    def _catch_up(self) -> None:
        """From here on things happen."""
        if self._again:
            self._again = False
            self._emit(CaughtUp())

    async def _answer(self, turn: TurnInfo, note: str, used_up: str) -> ParsedResponse:
        """What the model answers, recorded.

        Raises:
            OutOfTime, ProviderError: see `ModelTurn.answer`.
        """
        self._catch_up()
        response = await self._answering.answer(turn, self._messages, note)
        if self._record is None:
            return response
        whole = RecordedAnswer(response, used_up, turn.format, self._session.untrusted)
        return (await self._record.answered(turn.round, whole)).response

    def _ends(self, outcome: Outcome) -> bool:
        if outcome.issue is not None or not outcome.result.success or outcome.call.name not in self._registry:
            return False
        return self._registry.lookup(outcome.call.name).ends_turn

    # -- afterwards ----------------------------------------------------------------------------------------------

    def _remember(self, response: ParsedResponse, said: str, results: Sequence[ToolResult], turn: TurnInfo) -> None:
        """The turn, as the next requests tell it: what was read, not what was written."""
        parts: list[Part] = []
        if response.parts and response.tool_calls:
            last = max((at for at, part in enumerate(response.parts) if isinstance(part, ToolCall)), default=-1)
            # What a model of text writes behind its calls is made up: it has not seen the results.
            parts = list(response.parts[: last + 1] if turn.format else response.parts)
        elif said or response.parts:
            kept: list[Part] = [part for part in response.parts if not isinstance(part, TextPart)]
            parts = [*kept, TextPart(said)] if said else kept
        calls = {id(part) for part in parts if isinstance(part, ToolCall)}
        parts += [call for call in response.tool_calls if id(call) not in calls]
        if parts:
            self._messages.append(Message("assistant", tuple(parts)))
        if results:
            self._messages.append(Message("tool", tuple(results)))

    def _example(self, turn: TurnInfo) -> Callable[[str], str]:
        tools = {tool.name: tool for tool in turn.tools}

        def example(name: str) -> str:
            near = [name] if name in tools else closest(name, tools, similarity=NEAR)
            definition = tools[near[0]] if near else None if name else next(iter(turn.tools), None)
            if definition is None:
                return ""
            if turn.format:
                return call_example(get_format(turn.format), definition, tools)
            return f"The arguments of {definition.name} look like this: {json.dumps(example_arguments(definition))}"

        return example

    def _ended(self, reason: EndReason, answer: str, detail: str = "") -> RunEnded:
        spent = self._limits.spent
        return RunEnded(
            reason,
            answer,
            detail,
            tuple(self._messages),
            spent.rounds,
            spent.calls,
            spent.whole,
            spent.cost,
            self._limits.seconds,
        )


def _written(call: ToolCall, turn: TurnInfo) -> str:
    """A call as the model was asked to write it; the format's own example, where it cannot be written so."""
    try:
        text = render_calls([call], format=turn.format, tools=turn.tools)
    except RenderError:
        text = ""
    tools = {tool.name: tool for tool in turn.tools}
    return text if 0 < len(text) <= 2 * OFFENCE else call_example(get_format(turn.format), tools[call.name], tools)


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


def _said(response: ParsedResponse, turn: TurnInfo) -> str:
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

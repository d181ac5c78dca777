"""One more chance for a model whose answer has a call with a problem: it reads what is wrong, and is asked again.

Nothing of an answer may have been sent by then. A whole answer is read before it is sent. A stream that begins with a
call waits for its end; one that begins with text or reasoning is sent as it arrives, and is not repeated.
No call runs here: the results that the model is shown only say why a call was not passed on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from toolwire.agent.budget import is_believable
from toolwire.agent.call_examples import call_examples
from toolwire.agent.hooks import TurnInfo
from toolwire.agent.recovery import Fault, advice, call_fault, faults_of
from toolwire.errors import DefinitionError, ProviderError, UnknownTool
from toolwire.events import ContentDelta, Event, Finish, ReasoningDelta, UsageCounted, collect
from toolwire.execution.outcomes import Issue, Outcome, failed_result
from toolwire.execution.prepared_call import fit_arguments
from toolwire.execution.registry import ToolRegistry
from toolwire.gateway.failures import GatewayFailure, release_frames
from toolwire.gateway.questions import (
    Answer,
    BackendReading,
    EventAnswer,
    Question,
    WrappedUpstream,
    at_once,
    next_question,
    tokens_of,
)
from toolwire.messages import FinishReason, Message, ParsedResponse, ToolCall, Usage
from toolwire.text.tokens import estimate_message_tokens

NOT_PASSED_ON = "This call is right, but another one of the same answer is not, so none of them ran. Make it again."
_OF_CALLS = frozenset(("malformed", "missing_name", "unknown_tool", "invalid_arguments"))
"""The kinds of faults that are reported to a model: those of calls that it has made."""
_WHOLE = (FinishReason.STOP, FinishReason.TOOL_CALLS)
"""Ends of answers whose faults are the model's own."""


@dataclass(frozen=True, slots=True)
class JudgedCalls:
    """The calls of an answer, and what is wrong with them.

    Attributes:
        response: the answer, as the backend gave it.
        faults: the faults of its calls.
        outcomes: for each complete call, the outcome that the model is shown if it is asked once more.
    """

    response: ParsedResponse
    faults: tuple[Fault, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def badness(self) -> tuple[bool, bool, int]:
        """Grows with what a client misses: the worst answer is empty, then comes one that lacks a part."""
        response = self.response
        is_empty = not response.all_calls and not response.content.strip() and not self.faults
        lacks_part = response.finish_reason not in _WHOLE or any(not fault.reported for fault in self.faults)
        return is_empty, lacks_part, len(self.faults)


def judge(reading: BackendReading) -> JudgedCalls:
    """Return what is wrong with the calls of an answer; nothing of one that was cut off."""
    response = collect(reading.events)
    if response.finish_reason not in _WHOLE:
        return JudgedCalls(response, (), ())
    written = [fault for fault in faults_of(response) if fault.kind in _OF_CALLS]
    registry = ToolRegistry({tool.name: tool for tool in reading.tools}.values())
    issues = [_issue(call, registry) for call in response.tool_calls]
    outcomes = tuple(
        Outcome(call, failed_result(call, NOT_PASSED_ON if issue is None else issue.message), issue)
        for call, issue in zip(response.tool_calls, issues, strict=True)
    )
    wrong = (call_fault(outcome) for outcome in outcomes if outcome.issue is not None)
    return JudgedCalls(response, (*written, *filter(None, wrong)), outcomes)


def _issue(call: ToolCall, registry: ToolRegistry) -> Issue | None:
    try:
        definition = registry.lookup(call.name, call.server).definition
    except UnknownTool as error:
        return Issue("unknown_tool", str(error))
    except DefinitionError:  # its schema cannot be used here; it may still be right for the client
        return None
    if "custom" in definition.annotations:  # its input is text, however the model has written it
        return None
    issue = fit_arguments(call, definition)
    return issue if isinstance(issue, Issue) else None


class RetriedUpstream(WrappedUpstream):
    """A model that is asked once more if its calls are read in its text, and one of them has a problem."""

    @asynccontextmanager
    async def open(self, question: Question) -> AsyncGenerator[Answer]:
        """See `Upstream`."""
        reading = question.reading or BackendReading()
        async with AsyncExitStack() as stack:
            answer = await stack.enter_async_context(self._upstream.open(replace(question, reading=reading)))
            if not (isinstance(answer, EventAnswer) and reading.reads_text):
                yield answer
                return
            if answer.body:  # its events are there
                events = [event async for group in answer.events for event in group]
                if not judge(reading).faults:
                    yield EventAnswer(at_once(events), answer.body, answer.media_type, answer.size)
                    return
                answer = EventAnswer(at_once(events), size=answer.size)
            yield EventAnswer(self._events(question, reading, answer.events, stack), size=answer.size)

    async def _events(
        self, question: Question, reading: BackendReading, groups: AsyncIterator[Sequence[Event]], stack: AsyncExitStack
    ) -> AsyncIterator[Sequence[Event]]:
        waiting: list[Event] = []
        is_held = None if question.stream else True
        try:
            async for group in groups:
                if is_held is None:
                    is_held = _waits(group)
                if is_held is False:
                    group, waiting = [*waiting, *group], []
                    yield group
                else:
                    waiting += group
            if not waiting:
                return
            judged = judge(reading)
            if judged.faults:
                await stack.aclose()  # a server that answers one request at a time is free for the next one
                waiting = await self._second(question, reading, judged, waiting, stack)
            group, waiting = waiting, []
            yield group
        finally:
            if waiting:  # a client that has left has used what the model has written
                question.observe(waiting)

    async def _second(
        self,
        question: Question,
        reading: BackendReading,
        judged: JudgedCalls,
        first: list[Event],
        stack: AsyncExitStack,
    ) -> list[Event]:
        """Ask once more, and return the events of the better answer."""
        kind = judged.faults[0].kind
        turn = TurnInfo(1, reading.tools, format=reading.format)
        note = advice(judged.faults, call_examples(turn))
        results = tuple(outcome.result for outcome in judged.outcomes)
        again = next_question(question, collect(first), results, note, suffix="retry")
        if question.reserve is not None:
            try:
                await question.reserve(again.request)
            except GatewayFailure:  # the first answer is all that the key may use
                return first
        question.retries.append(kind)
        question.notes.added("retry", f"an answer had a call with a problem ({kind}), so the model was asked once more")
        again.reading = second = BackendReading()
        attempts = [] if question.exchange is None else question.exchange.attempts
        count = len(attempts)
        events: list[Event] = []
        try:
            answer = await stack.enter_async_context(self._upstream.open(again))
            assert isinstance(answer, EventAnswer)  # it is not passed on
            events = [event async for group in answer.events for event in group]
            is_better = judge(second).badness <= judged.badness
        except (GatewayFailure, ProviderError) as error:
            if len(attempts) > count:
                attempts[-1].failure = str(error)
            is_better = False
            release_frames(error)
        if not is_better and len(attempts) > count:  # the last attempt is the one that answers
            attempts.append(attempts.pop(count - 1))
        return _with_usage(events if is_better else first, _used(question, first) + _used(again, events))


def _waits(events: Sequence[Event]) -> bool | None:
    """Return whether an answer that begins so waits for its end, as a call does; None if that is not yet certain."""
    for event in events:
        match event:
            case UsageCounted():
                pass
            case ContentDelta(text) | ReasoningDelta(text):
                if text.strip():
                    return False
            case _:
                return True
    return None


def _used(question: Question, events: Sequence[Event]) -> Usage:
    """Return the tokens of an answer; estimated if the backend reported none, and none without an answer."""
    reported = next((event.usage for event in reversed(events) if isinstance(event, UsageCounted)), None)
    if not events or is_believable(reported):
        return reported or Usage()
    written = estimate_message_tokens(Message("assistant", collect(events).parts))
    return Usage(tokens_of(question.request), written, estimated=True)


def _with_usage(events: Sequence[Event], usage: Usage) -> list[Event]:
    """Return the events with these token counts in place of their own."""
    changed: list[Event] = [event for event in events if not isinstance(event, UsageCounted)]
    at = len(changed) - 1 if changed and isinstance(changed[-1], Finish) else len(changed)
    changed.insert(at, UsageCounted(usage))
    return changed

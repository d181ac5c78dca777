"""Tools of the gateway itself: offered to a model beside the client's, and run here under the policy of the file.

An answer that calls tools of the gateway alone is not the client's: the calls run, the model reads the results, and
answers again. Calls of the client's tools always go to the client. If an answer has calls of both kinds, only the
client's count, because their results come with its next request; the model may then call the others again.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from toolwire.agent.call_examples import call_examples
from toolwire.agent.hooks import TurnInfo
from toolwire.agent.loop import LAST_ROUND
from toolwire.agent.recovery import advice, faults_of
from toolwire.agent.untrusted_history import ToolOwner, is_untrusted
from toolwire.config.gateway_tables import TOOL_ROUNDS
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    ProblemFound,
    ReasoningDelta,
    ReasoningEnd,
    UsageCounted,
    collect,
)
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.outcomes import Shaping, failed_result
from toolwire.execution.registry import ToolRegistry
from toolwire.gateway.client_tools import ClientTools
from toolwire.gateway.questions import (
    Answer,
    BackendReading,
    EventAnswer,
    Question,
    Upstream,
    WrappedUpstream,
    next_question,
)
from toolwire.messages import FinishReason, ParsedResponse, ReasoningPart, ToolCall, ToolResult, Usage
from toolwire.policy.session import Session
from toolwire.providers.request import Notes, ToolChoice
from toolwire.text.truncate import truncate
from toolwire.tools import Tier, ToolDefinition

MAX_CALLS = 100
"""Maximum number of calls of one answer that run."""
SHOWN = 400
"""Maximum length of the arguments of a call that a client is shown, in characters."""


@dataclass(frozen=True, slots=True)
class GatewayTools:
    """Tools of the gateway.

    Attributes:
        registry: the tools.
        executor: runs their calls; what its policy asks about is refused, because there is nobody to ask.
        rounds: maximum number of rounds in which tools run for one answer.
        shows: whether clients see the calls, as reasoning.
    """

    registry: ToolRegistry
    executor: ToolExecutor
    rounds: int = TOOL_ROUNDS
    shows: bool = False
    members: Mapping[str, ToolOwner] = field(default_factory=dict)
    handoffs: Mapping[str, ToolOwner] = field(default_factory=dict)

    def offered(self, question: Question) -> tuple[ToolDefinition, ...]:
        """Return the tools that the model is offered beside those of the client; none that the client has too.

        There are none for a completion of a prompt, nor if the client forces, forbids or limits calls: that is about
        its own tools.
        """
        request = question.request
        choice = request.tool_choice
        if question.client_api.path or choice.mode != "auto" or choice.names:
            return ()
        client_names = ClientTools(request, Notes()).names | {str(tool.get("name")) for tool in request.provider_tools}
        offered: list[ToolDefinition] = []
        for tool in self.registry.definitions():
            if tool.name in client_names:
                question.notes.dropped(f"tools/{tool.name}", "a tool of the gateway; the client has one of this name")
            else:
                offered.append(tool)
        return tuple(offered)


def limited_results(limit: int) -> Shaping:
    """Return what cuts the text of longer results, and says so to the model.

    Args:
        limit: maximum length of the text of a result, and of each text file in it, in characters; the sentence that
            says it comes on top.
    """

    def shape(call: ToolCall, result: ToolResult) -> ToolResult:
        if not result.success:  # messages of errors are short
            return result
        text = result.text
        notes: list[str] = []
        if len(text) > limit:
            text = truncate(text, limit, where="middle")
            notes.append(f"This result has {len(result.text):,} characters, and {limit:,} of them are shown.")
        files = tuple(file for file in result.files if len(file.text or "") <= limit)
        if left_out := len(result.files) - len(files):
            notes.append(f"{left_out} of its files had more than {limit:,} characters, and are left out.")
        if not notes:
            return result
        # The copy in the words of an MCP server is as long as the result.
        note = f"[{' '.join(notes)} Ask for a smaller part.]"
        return replace(result, result=f"{text}\n{note}", files=files, extra=None)

    return shape


class ToolUpstream(WrappedUpstream):
    """A model that is offered the tools of the gateway, whose calls run here.

    Args:
        upstream: the model.
        tools: the tools.
    """

    def __init__(self, upstream: Upstream, tools: GatewayTools) -> None:
        super().__init__(upstream)
        self._tools = tools

    @asynccontextmanager
    async def open(self, question: Question) -> AsyncGenerator[Answer]:
        """See `Upstream`."""
        offered = self._tools.offered(question)
        if not offered:
            async with self._upstream.open(question) as answer:
                yield answer
            return
        request = replace(question.request, tools=(*question.request.tools, *offered))
        first = replace(question, request=request, passes=False, reading=BackendReading())
        async with AsyncExitStack() as stack:
            answer = await stack.enter_async_context(self._upstream.open(first))
            assert isinstance(answer, EventAnswer)  # it is not passed on
            yield EventAnswer(self._events(first, answer, frozenset(tool.name for tool in offered), stack))

    async def _events(
        self, question: Question, answer: EventAnswer, names: frozenset[str], stack: AsyncExitStack
    ) -> AsyncIterator[Sequence[Event]]:
        """Yield the events of all rounds as those of one answer."""
        tools = self._tools
        session = Session(Tier.RUN, untrusted=is_untrusted(question.request.messages, tools))
        clients = tuple(tool.name for tool in question.request.tools if tool.name not in names)
        usage = Usage()
        has_text = False
        for number in range(1, tools.rounds + 2):
            shown = _Round(names, usage, divides=has_text)
            async for group in answer.events:
                if events := shown.read(group):
                    yield events
            response = shown.response
            own_calls = [call for call in response.tool_calls if call.name in names]
            is_whole = response.finish_reason in (FinishReason.STOP, FinishReason.TOOL_CALLS)
            if not (own_calls or shown.has_broken) or shown.calls or not is_whole or number > tools.rounds:
                for call in own_calls:
                    why = "the answer also calls tools of the client" if shown.calls else "no more of these calls run"
                    question.notes.dropped(f"call/{call.name}", f"a call of the gateway's tool did not run: {why}")
                yield shown.end()
                return
            await stack.aclose()  # a server that answers one request at a time is free for the next one
            results = await self._run(question, own_calls, session)
            session.untrusted = True  # from here on the conversation contains what others have written
            question.tool_runs.extend((result.tool_name, result.success) for result in results)
            if tools.shows and own_calls:
                yield _shown_runs(own_calls, results)
            question = self._next(question, response, results, clients, number)
            usage, has_text = shown.usage, has_text or bool(response.content)
            if question.reserve is not None:
                await question.reserve(question.request)
            following = await stack.enter_async_context(self._upstream.open(question))
            assert isinstance(following, EventAnswer)
            answer = following

    async def _run(self, question: Question, calls: Sequence[ToolCall], session: Session) -> tuple[ToolResult, ...]:
        """Return a result for each call; of very many, only the first ones run."""
        results = await self._tools.executor.execute(calls[:MAX_CALLS], session, watching=question.watching)
        why = f"It did not run: at most {MAX_CALLS} calls of one answer do."
        return (*results, *(failed_result(call, why) for call in calls[MAX_CALLS:]))

    def _next(
        self,
        question: Question,
        response: ParsedResponse,
        results: tuple[ToolResult, ...],
        clients: tuple[str, ...],
        number: int,
    ) -> Question:
        """Return the question of the next round; after the last one, no tool of the gateway may be called."""
        reading = question.reading or BackendReading()
        faults = [fault for fault in faults_of(response) if fault.kind != "no_call"]
        notes = [advice(faults, call_examples(TurnInfo(number, reading.tools, format=reading.format)))]
        is_last = number == self._tools.rounds
        if is_last and not clients:
            notes.append(LAST_ROUND)
        following = next_question(question, response, results, "\n\n".join(filter(None, notes)), suffix=str(number + 1))
        if is_last:
            choice = ToolChoice("auto", clients) if clients else ToolChoice("none")
            following.request = replace(following.request, tool_choice=choice)
        following.reading = BackendReading()
        return following


class _Round:
    """The events of one answer of the model, without the calls of the gateway's tools.

    Args:
        names: names of these tools.
        before: tokens of the rounds before.
        divides: whether text of this answer follows text of an earlier one.

    Attributes:
        has_broken: whether a call of the gateway's tools is broken.
        usage: tokens of all rounds so far.
    """

    def __init__(self, names: frozenset[str], before: Usage, *, divides: bool) -> None:
        self._names = names
        self._before = before
        self._divides = divides
        self._events: list[Event] = []
        self._hidden = set[int]()
        self._places: dict[int, int] = {}  # of the calls that the client sees
        self._reasoning: ReasoningEnd | None = None
        self.has_broken = False
        self.usage = before

    @property
    def response(self) -> ParsedResponse:
        """The answer so far, with all of its calls."""
        return collect(self._events)

    def read(self, group: Sequence[Event]) -> list[Event]:
        """Return the events for the client that the next ones make certain."""
        self._events += group
        return [written for event in group for written in self._read(event)]

    def _read(self, event: Event) -> list[Event]:
        before = self._waiting(event)
        match event:
            case ReasoningEnd():
                self._reasoning = event
                return before
            case CallStart(index, name) if name in self._names:
                self._hidden.add(index)
                return before
            case CallStart(index):
                self._places[index] = len(self._places)
                return [*before, replace(event, index=self._places[index])]
            case ArgumentsDelta(index) | CallEnd(index) if index in self._hidden:
                self.has_broken |= isinstance(event, CallEnd) and not event.complete
                return before
            case ArgumentsDelta(index) | CallEnd(index):
                return [*before, replace(event, index=self._places.get(index, index))]
            case ProblemFound(problem) if problem.index in self._hidden:
                return before
            case UsageCounted(usage):
                self.usage = self._before + usage
                return [*before, UsageCounted(self.usage)]
            case ContentDelta(text) if self._divides and text:
                self._divides = False
                return [*before, ContentDelta("\n\n"), event]
            case Finish():
                return before
        return [*before, event]

    def _waiting(self, event: Event) -> list[Event]:
        """Return the end of reasoning that waits for what follows it.

        A provider refuses reasoning of its own without the call that followed it, so of such reasoning the client gets
        the text alone.
        """
        waiting, self._reasoning = self._reasoning, None
        if waiting is None:
            return []
        is_of_hidden = isinstance(event, CallStart) and event.name in self._names
        return [ReasoningEnd(ReasoningPart(waiting.part.text)) if is_of_hidden else waiting]

    @property
    def calls(self) -> int:
        """The number of calls that the client has seen, broken ones included."""
        return len(self._places)

    def end(self) -> list[Event]:
        """Return the end of the answer."""
        reason = self.response.finish_reason
        if reason is FinishReason.TOOL_CALLS and not self.calls:
            reason = FinishReason.STOP
        return [Finish(reason)]


def _shown_runs(calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[Event]:
    """Return calls that ran as reasoning: it is shown to people, and never taken for calls that a client has to run."""
    lines = [
        f"{call.name}({truncate(json.dumps(call.arguments, ensure_ascii=False), SHOWN)}): "
        + (f"{len(result.text)} characters" if result.success else truncate(result.text, SHOWN))
        for call, result in zip(calls, results, strict=True)
    ]
    text = "\n".join(lines) + "\n"
    return [ReasoningDelta(text), ReasoningEnd(ReasoningPart(text))]

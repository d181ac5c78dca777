"""What an agent tells, shown as it comes; nothing that was written is written again, so nothing flickers.

The model's prose goes to standard output, all else to standard error. Where standard output is no terminal, it gets the
answer alone, once it is there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from rich.status import Status

from toolwire.agent.run_events import (
    AgentEvent,
    ApprovalRequested,
    CorrectionAdded,
    MemberEvent,
    ReplayEnded,
    RunEnded,
    RunResumed,
    TaskStarted,
    ToolFinished,
    ToolStarted,
    TranslationNoted,
    TurnStarted,
)
from toolwire.cli.console import call_line, console, emit, event_dict, plain, safe, styled
from toolwire.cli.word_wrap import Wrapped
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    ProblemFound,
    ReasoningDelta,
    UsageCounted,
)
from toolwire.execution.approval_requests import Confirm
from toolwire.messages import ToolCall, ToolResult
from toolwire.policy.approval import Agreement, Approval
from toolwire.text.truncate import truncate

ARGUMENTS = 400
"""Characters of arguments that are shown while they grow."""
LINES = 8
CHARACTERS = 800
"""Of a result that are shown, unless all of it is wanted."""
INDENT = 8
HELD = 4
"""Names of tools above the tier that are told, once."""

_WRAPPED = ("content", "reasoning")

Ends = Callable[[str], bool]
"""Whether a tool of this name ends the turn: its result is the answer."""


class Telling:
    """Shows the events of runs to a reader.

    Args:
        trace: leave nothing out: what was asked of whom, raw calls, repairs, problems, decisions, whole results, usage.
        ends: tells tools whose result is the answer.
    """

    def __init__(self, *, trace: bool = False, ends: Ends = lambda name: False) -> None:
        self.trace = trace
        self._out = console()
        self._notes = console(stderr=True)
        self._ends = ends
        self._status: Status | None = None
        self._at: str = ""  # what stands in the line that is open: "", "content", "reasoning" or a call's index
        self._prose: list[str] = []  # of this turn, where the answer comes at the end
        self._wrapped = Wrapped(self._out.width)
        self._warned = False  # that tools are held back
        self._shown = 0  # characters of the open call's arguments
        self._calls = 0  # of this turn

    def show(self, event: AgentEvent) -> None:
        """Show one event."""
        if not isinstance(event, ArgumentsDelta | ContentDelta | ReasoningDelta):
            self._show(event)
            return
        self._waited()
        match event:
            case ContentDelta(text):
                self._say(text)
            case ReasoningDelta(text):
                self._open("reasoning")
                self._notes.print(styled(self._wrapped.feed(text), "dim italic"), end="")
            case ArgumentsDelta(index, text) if self._at == str(index):
                room = ARGUMENTS - self._shown
                if self.trace or room > 0:
                    self._notes.print(styled(text if self.trace else text[:room], "cyan"), end="")
                if not self.trace and len(text) > room >= 0:
                    self._notes.print(styled("…", "cyan"), end="")
                    self._shown += 1
                self._shown += len(text)

    def _show(self, event: AgentEvent) -> None:
        match event:
            case TurnStarted():
                self._close()
                self._prose.clear()
                self._calls = 0
                if self.trace:
                    self._row("round", str(event.round), "magenta")
                self._wait("the model reads")
            case CallStart(index, name):
                self._called(index, name)
            case CallEnd():
                self._call_ended(event)
            case ToolStarted(call):
                self._close()
                self._wait(f"{call.name} runs")
            case ToolFinished():
                self._waited()
                self._done(event)
            case ApprovalRequested():
                self.aside()
            case CorrectionAdded(text):
                self._row("told", text if self.trace else truncate(text, 200, lines=2), "yellow")
            case TranslationNoted(note) if self.trace or note.kind == "quarantined":
                self._row("note", str(note), "yellow")
            case MemberEvent(member, inner):
                self._member(member, inner)
            case TaskStarted(_, intent, held) if held and not self.trace and not self._warned:
                self._warned = True
                more = f" and {len(held) - HELD} more" if len(held) > HELD else ""
                self._row("held", f"{', '.join(held[:HELD])}{more}: above {intent.tier.name}, see --tier", "dim")
            case ReplayEnded():
                self._row("now", "from here on it goes on", "dim")
            case RunEnded():
                self._ended(event)
            case _ if self.trace:
                self._trace(event)

    def _trace(self, event: AgentEvent) -> None:
        match event:
            case TaskStarted(_, intent, held):
                self._row("tier", f"{intent.tier.name}: {intent.why}", "magenta")
                if held:
                    self._row("held", f"{', '.join(held)}: above {intent.tier.name}", "magenta")
            case ProblemFound(problem):
                self._row("problem", f"{problem.kind}: {problem.message}", "red")
            case UsageCounted(usage):
                self._row("usage", f"{usage.input_tokens} tokens read, {usage.output_tokens} written", "dim")

    def aside(self) -> None:
        """Nothing moves, and a new line begins: somebody else writes."""
        self._waited()
        self._close()

    # -- prose -----------------------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        if not self._out.is_terminal:
            self._prose.append(text)
            return
        if self._at != "content":
            text = text.lstrip("\n")
            if not text:
                return
        self._open("content")
        self._out.print(styled(self._wrapped.feed(text)), end="")

    def _open(self, what: str) -> None:
        if self._at != what:
            self._close()
            self._at = what
            self._wrapped = Wrapped(self._out.width)

    def _close(self) -> None:
        """End the open line."""
        if self._at:
            rest = self._wrapped.finish() if self._at in _WRAPPED else ""
            style = "dim italic" if self._at == "reasoning" else ""
            (self._out if self._at == "content" else self._notes).print(styled(rest, style))
            self._at = ""

    # -- calls -----------------------------------------------------------------------------------------------------

    def _called(self, index: int, name: str) -> None:
        self._waited()
        self._close()
        if self._prose and (said := "".join(self._prose).strip()):
            self._row("said", said, "dim")  # it was not the answer
            self._prose.clear()
        self._calls += 1
        self._notes.print(styled("call    ", "bold"), styled(name, "bold cyan"), " ", sep="", end="")
        self._at, self._shown = str(index), ARGUMENTS if self._ends(name) else 0

    def _call_ended(self, event: CallEnd) -> None:
        if self._at != str(event.index):  # others were announced in between
            self._close()
            self._row("call", call_line(event.call.name, event.call.arguments), "cyan")
        notes = [f"repaired: {', '.join(event.call.repairs)}"] if event.call.repairs else []
        notes += [] if event.complete else ["broken off, and not run"]
        if notes:
            self._notes.print(styled(f"  [{'; '.join(notes)}]", "yellow"), end="")
        self._close()
        if self.trace and event.call.raw:
            self._row("raw", event.call.raw, "dim")

    def _done(self, event: ToolFinished) -> None:
        self._close()
        outcome = event.outcome
        result, seconds = outcome.result, f"  [{event.seconds:.1f} s]" if self.trace else ""
        if result.success and self._ends(outcome.call.name):
            return
        if self.trace and outcome.issue is not None:
            self._row("decided", f"{outcome.issue.kind}: {outcome.issue.message}", "magenta")
        text = shown(result) if self.trace else truncate(shown(result), CHARACTERS, lines=LINES)
        if self._calls > 1:
            text = f"{outcome.call.name}: {text}"
        self._row("result" if result.success else "error", text + seconds, "green" if result.success else "red")
        self._wait("the tools run")

    def _member(self, member: str, inner: AgentEvent) -> None:
        match inner:
            case ToolStarted(call):
                self._row(member, f"calls {call_line(call.name, call.arguments)[:ARGUMENTS]}", "cyan")
            case ToolFinished(outcome):
                colour = "green" if outcome.result.success else "red"
                self._row(member, truncate(shown(outcome.result), 200, lines=2), colour)
            case CorrectionAdded(text):
                self._row(member, f"is told: {truncate(text, 100, lines=1)}", "yellow")
            case ApprovalRequested():
                self.aside()
            case MemberEvent(other, innermost):
                self._member(f"{member}/{other}", innermost)
            case RunEnded():
                self._row(member, f"{inner.reason}: {truncate(inner.answer or inner.detail, 200, lines=2)}", "dim")

    def _ended(self, end: RunEnded) -> None:
        self._waited()
        self._close()
        if end.answer and (end.reason == "finished" or not self._out.is_terminal):
            self._out.print(styled(end.answer))
        if not end.good:
            self._row("ended", f"{end.reason}: {end.detail}".removesuffix(": "), "yellow")
        if self.trace:
            usage = end.usage
            told = f", {usage.input_tokens + usage.output_tokens} tokens" if usage.input_tokens else ""
            money = f", {end.money:.4f}" if end.money else ""
            self._row("all", f"{end.rounds} rounds, {end.calls} calls{told}{money}, {end.seconds:.1f} s", "dim")

    # -- rows ------------------------------------------------------------------------------------------------------

    def _row(self, label: str, text: str, style: str) -> None:
        self._waited()
        self._close()
        indented = safe(text.rstrip("\n")).replace("\n", "\n" + " " * INDENT)
        self._notes.print(styled(f"{label:<{INDENT - 1}} ", "bold"), styled(indented, style), sep="")

    def _wait(self, what: str) -> None:
        """Show on a terminal what is waited for, until something comes."""
        if not self._notes.is_terminal:
            return
        if self._status is None:
            self._status = self._notes.status(styled(what, "dim"))
            self._status.start()
        else:
            self._status.update(styled(what, "dim"))

    def _waited(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


class InTurn:
    """A `Confirm` that asks once everything that happened before the question has been shown.

    A run does not wait for whoever shows its events, so without this the question would stand before the call.

    Args:
        confirm: asks.
    """

    def __init__(self, confirm: Confirm) -> None:
        self._confirm = confirm
        self._shown: dict[int, asyncio.Event] = {}

    def showed(self, event: AgentEvent) -> None:
        """This event has been shown, and all before it."""
        while isinstance(event, MemberEvent):
            event = event.event
        if isinstance(event, ApprovalRequested):
            self._shown.setdefault(id(event.approval), asyncio.Event()).set()

    async def __call__(self, approval: Approval) -> Agreement | bool:
        """The answer."""
        await self._shown.setdefault(id(approval), asyncio.Event()).wait()
        del self._shown[id(approval)]
        return await self._confirm(approval)


def shown(result: ToolResult) -> str:
    """A result for a reader: its text, and how many images came with it."""
    images = f"({len(result.images)} images)" if result.images else ""
    return "\n".join(filter(None, (result.text, images)))


def emit_event(event: AgentEvent) -> None:
    """An event as a line of JSON; the key `event` says which."""
    emit(as_dict(event))


def as_dict(event: AgentEvent) -> dict[str, Any]:
    """An event as a JSON object."""
    match event:
        case TaskStarted(task, intent, held):
            return {"event": "task", "task": task, "tier": intent.tier.name, "why": intent.why, "held": list(held)}
        case TurnStarted():
            return {"event": "turn", "round": event.round}
        case ToolStarted(call):
            return {"event": "call", "call": _call(call)}
        case ApprovalRequested(approval):
            return {"event": "approval", "call": _call(approval.call), "why": approval.reason}
        case ToolFinished(outcome, seconds):
            body = {"event": "result", "call": _call(outcome.call), "seconds": round(seconds, 3)}
            issue = outcome.issue.kind if outcome.issue else None
            return {**body, "result": {**plain(outcome.result), "success": outcome.result.success}, "issue": issue}
        case CorrectionAdded(text):
            return {"event": "correction", "text": text}
        case TranslationNoted(note):
            return {"event": "note", "kind": note.kind, "where": note.where, "message": note.message}
        case MemberEvent(member, inner):
            return {"event": "member", "member": member, "said": as_dict(inner)}
        case RunResumed():
            return {"event": "resumed"}
        case ReplayEnded():
            return {"event": "caught_up"}
        case RunEnded():
            body = {"event": "end", "reason": event.reason, "answer": event.answer, "detail": event.detail}
            spent = {"rounds": event.rounds, "calls": event.calls, "usage": plain(event.usage), "money": event.money}
            return {**body, **spent, "seconds": round(event.seconds, 3)}
    return event_dict(event)


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": json.loads(json.dumps(call.arguments))}

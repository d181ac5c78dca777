"""The events of an agent, shown as they arrive; output is only appended, so nothing flickers.

The model's prose goes to standard output, everything else to standard error. If standard output is not a terminal, only
the final answer goes there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from rich.status import Status

from toolwire.agent.run_events import (
    AgentChanged,
    AgentEvent,
    ApprovalRequested,
    ContextReduced,
    CorrectionAdded,
    MemberEvent,
    ModelChosen,
    PartialOutput,
    ProgressReported,
    ReplayEnded,
    RunEnded,
    RunResumed,
    TaskStarted,
    ToolFinished,
    ToolStarted,
    TranslationNoted,
    TurnStarted,
)
from toolwire.cli.console import call_line, console, emit, event_dict, labelled, plain, styled
from toolwire.cli.word_wrap import WordWrapper
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    ProblemFound,
    ReasoningDelta,
    UsageCounted,
)
from toolwire.execution.approval_requests import AsyncConfirm
from toolwire.messages import ToolCall, ToolResult
from toolwire.models.model_group import FIRST_CHOICE
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.schema.serialization import to_json_value
from toolwire.text.counted import counted
from toolwire.text.truncate import truncate

ARGUMENTS = 400
"""Maximum length of streamed arguments that are shown, in characters."""
LINES = 8
CHARACTERS = 800
"""Maximum length of a result that is shown without `trace`, in characters."""
HIDDEN_NAMES = 4
"""Maximum number of tools above the tier that are named."""

_PROSE_LINES = ("content", "reasoning")
_ASKED_FOR = frozenset(("image", "document", "audio", "video", "constrain"))
"""The first words of notes on options of the command that have no effect: attached files, and a grammar."""

TurnEnders = Callable[[str], bool]
"""A predicate for names of tools that end the turn: their result is the answer."""


class EventPrinter:
    """A printer for the events of runs.

    Args:
        trace: show raw calls, repairs, problems, decisions, whole results and usage as well.
        ends: whether a tool of this name ends the turn.
    """

    def __init__(self, *, trace: bool = False, ends: TurnEnders = lambda name: False) -> None:
        self.trace = trace
        self._answer_console = console()
        self._notes_console = console(stderr=True)
        self._ends = ends
        self._status: Status | None = None
        self._open_line: str = ""  # kind of the unfinished line: "", "content", "reasoning" or a call's index
        self._prose: list[str] = []  # of this turn, if the answer is printed at the end
        self._wrapper = WordWrapper(self._answer_console.width)
        self._warned = False  # whether tools above the tier were reported
        self._shown = 0  # characters of the open call's arguments
        self._call_count = 0  # of this turn

    def show(self, event: AgentEvent) -> None:
        """Show one event."""
        if not isinstance(event, ArgumentsDelta | ContentDelta | ReasoningDelta):
            self._show(event)
            return
        self._stop_spinner()
        match event:
            case ContentDelta(text):
                self._write_prose(text)
            case ReasoningDelta(text):
                self._open_as("reasoning")
                self._notes_console.print(styled(self._wrapper.feed(text), "dim italic"), end="")
            case ArgumentsDelta(index, text) if self._open_line == str(index):
                room = ARGUMENTS - self._shown
                if self.trace or room > 0:
                    self._notes_console.print(styled(text if self.trace else text[:room], "cyan"), end="")
                if not self.trace and len(text) > room >= 0:
                    self._notes_console.print(styled("…", "cyan"), end="")
                    self._shown += 1
                self._shown += len(text)

    def _show(self, event: AgentEvent) -> None:
        match event:
            case TurnStarted():
                self._close()
                self._prose.clear()
                self._call_count = 0
                if self.trace:
                    self._row("round", str(event.round), "magenta")
                self._start_spinner("the model reads")
            case CallStart(index, name):
                self._begin_call(index, name)
            case CallEnd():
                self._end_call(event)
            case ToolStarted() | ProgressReported():
                self._show_running(event)
            case ToolFinished():
                self._stop_spinner()
                self._finish_tool(event)
            case ApprovalRequested():
                self.pause()
            case ModelChosen() | ContextReduced() | AgentChanged() | CorrectionAdded() | TranslationNoted():
                self._show_note(event)
            case MemberEvent(member, inner):
                self._member(member, inner)
            case TaskStarted(_, intent, hidden) if hidden and not self.trace and not self._warned:
                self._warned = True
                more = f" and {len(hidden) - HIDDEN_NAMES} more" if len(hidden) > HIDDEN_NAMES else ""
                self._row(
                    "locked", f"{', '.join(hidden[:HIDDEN_NAMES])}{more}: above {intent.tier.name}, see --tier", "dim"
                )
            case ReplayEnded():
                self._row("now", "the run continues from here", "dim")
            case RunEnded():
                self._end_run(event)
            case _ if self.trace:
                self._show_details(event)

    def _show_note(
        self, event: ModelChosen | ContextReduced | AgentChanged | CorrectionAdded | TranslationNoted
    ) -> None:
        match event:
            case ModelChosen(model, _, _, reason):
                if self.trace or reason != FIRST_CHOICE:
                    self._row("model", f"{model} answers: {reason}", "dim")
            case ContextReduced():
                self._row("context", str(event), "dim")
            case AgentChanged(agent):
                self._row("agent", f"{agent} continues", "dim")
            case CorrectionAdded(text):
                self._row("hint", text if self.trace else truncate(text, 200, lines=2), "yellow")
            case TranslationNoted(note):
                if self.trace or note.kind == "quarantined" or note.where.split(" ")[0] in _ASKED_FOR:
                    self._row("note", str(note), "yellow")

    def _show_running(self, event: ToolStarted | ProgressReported) -> None:
        if isinstance(event, ProgressReported):
            self._row("progress", f"{event.call.name}: {truncate(str(event.value), 200, lines=2)}", "dim")
        else:
            self._close()
        self._start_spinner(f"{event.call.name} runs")

    def _show_details(self, event: AgentEvent) -> None:
        match event:
            case TaskStarted(_, intent, hidden):
                self._row("tier", f"{intent.tier.name}: {intent.why}", "magenta")
                if hidden:
                    self._row("locked", f"{', '.join(hidden)}: above {intent.tier.name}", "magenta")
            case ProblemFound(problem):
                self._row("problem", f"{problem.kind}: {problem.message}", "red")
            case UsageCounted(usage):
                self._row("usage", f"{usage.input_tokens} tokens read, {usage.output_tokens} written", "dim")

    def pause(self) -> None:
        """Stop the spinner and end the open line, so that something else can be printed."""
        self._stop_spinner()
        self._close()

    # -- prose -----------------------------------------------------------------------------------------------------

    def _write_prose(self, text: str) -> None:
        if not self._answer_console.is_terminal:
            self._prose.append(text)
            return
        if self._open_line != "content":
            text = text.lstrip("\n")
            if not text:
                return
        self._open_as("content")
        self._answer_console.print(styled(self._wrapper.feed(text)), end="")

    def _open_as(self, what: str) -> None:
        if self._open_line != what:
            self._close()
            self._open_line = what
            self._wrapper = WordWrapper(self._answer_console.width)

    def _close(self) -> None:
        """End the open line."""
        if self._open_line:
            rest = self._wrapper.finish() if self._open_line in _PROSE_LINES else ""
            style = "dim italic" if self._open_line == "reasoning" else ""
            (self._answer_console if self._open_line == "content" else self._notes_console).print(styled(rest, style))
            self._open_line = ""

    # -- calls -----------------------------------------------------------------------------------------------------

    def _begin_call(self, index: int, name: str) -> None:
        self._stop_spinner()
        self._close()
        if self._prose and (prose := "".join(self._prose).strip()):
            self._row("text", prose, "dim")  # prose before a call is not the answer
            self._prose.clear()
        self._call_count += 1
        self._notes_console.print(styled("call    ", "bold"), styled(name, "bold cyan"), " ", sep="", end="")
        self._open_line, self._shown = str(index), ARGUMENTS if self._ends(name) else 0

    def _end_call(self, event: CallEnd) -> None:
        if self._open_line != str(event.index):  # another call began in between
            self._close()
            self._row("call", call_line(event.call.name, event.call.arguments), "cyan")
        notes = [f"repaired: {', '.join(event.call.repairs)}"] if event.call.repairs else []
        notes += [] if event.complete else ["incomplete, not run"]
        if notes:
            self._notes_console.print(styled(f"  [{'; '.join(notes)}]", "yellow"), end="")
        self._close()
        if self.trace and event.call.raw:
            self._row("raw", event.call.raw, "dim")

    def _finish_tool(self, event: ToolFinished) -> None:
        self._close()
        outcome = event.outcome
        result, seconds = outcome.result, f"  [{event.seconds:.1f} s]" if self.trace else ""
        if result.success and self._ends(outcome.call.name):
            return
        if self.trace and outcome.issue is not None:
            self._row("decided", f"{outcome.issue.kind}: {outcome.issue.message}", "magenta")
        text = result_text(result) if self.trace else truncate(result_text(result), CHARACTERS, lines=LINES)
        if self._call_count > 1:
            text = f"{outcome.call.name}: {text}"
        self._row("result" if result.success else "error", text + seconds, "green" if result.success else "red")
        self._start_spinner("the tools run")

    def _member(self, member: str, inner: AgentEvent) -> None:
        match inner:
            case ToolStarted(call):
                self._row(member, f"calls {call_line(call.name, call.arguments)[:ARGUMENTS]}", "cyan")
            case ToolFinished(outcome):
                colour = "green" if outcome.result.success else "red"
                self._row(member, truncate(result_text(outcome.result), 200, lines=2), colour)
            case CorrectionAdded(text):
                self._row(member, f"hint: {truncate(text, 100, lines=1)}", "yellow")
            case ApprovalRequested():
                self.pause()
            case MemberEvent(other, innermost):
                self._member(f"{member}/{other}", innermost)
            case RunEnded():
                self._row(member, f"{inner.reason}: {truncate(inner.answer or inner.detail, 200, lines=2)}", "dim")

    def _end_run(self, end: RunEnded) -> None:
        self._stop_spinner()
        self._close()
        if end.answer and (end.reason == "finished" or not self._answer_console.is_terminal):
            self._answer_console.print(styled(end.answer))
        if not end.good:
            self._row("ended", f"{end.reason}: {end.detail}".removesuffix(": "), "yellow")
        if self.trace:
            usage = end.usage
            tokens = f", {usage.input_tokens + usage.output_tokens} tokens" if usage.input_tokens else ""
            money = f", {end.money:.4f}" if end.money else ""
            spent = f"{counted(end.rounds, 'round')}, {counted(end.calls, 'call')}"
            self._row("all", f"{spent}{tokens}{money}, {end.seconds:.1f} s", "dim")

    # -- rows ------------------------------------------------------------------------------------------------------

    def _row(self, label: str, text: str, style: str) -> None:
        self._stop_spinner()
        self._close()
        self._notes_console.print(labelled(label, text.rstrip("\n"), style))

    def _start_spinner(self, what: str) -> None:
        """Show a spinner on a terminal until the next event."""
        if not self._notes_console.is_terminal:
            return
        if self._status is None:
            self._status = self._notes_console.status(styled(what, "dim"))
            self._status.start()
        else:
            self._status.update(styled(what, "dim"))

    def _stop_spinner(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


class OrderedPrompt:
    """A `Confirm` that asks after all earlier events have been shown.

    A run does not wait until its events are shown, so without this the question would appear before the call.

    Args:
        confirm: asks the user.
    """

    def __init__(self, confirm: AsyncConfirm) -> None:
        self._confirm = confirm
        self._shown: dict[int, asyncio.Event] = {}

    def mark_shown(self, event: AgentEvent) -> None:
        """Record that this event and all earlier ones have been shown."""
        while isinstance(event, MemberEvent):
            event = event.event
        if isinstance(event, ApprovalRequested):
            self._shown.setdefault(id(event.approval), asyncio.Event()).set()

    async def __call__(self, approval: Approval) -> ApprovalAnswer | bool:
        """Return the answer."""
        await self._shown.setdefault(id(approval), asyncio.Event()).wait()
        del self._shown[id(approval)]
        return await self._confirm(approval)


def result_text(result: ToolResult) -> str:
    """Return the text of a result and its numbers of images and files."""
    media = (("images", result.images), ("files", result.files))
    counts = [f"({len(parts)} {kind})" for kind, parts in media if parts]
    return "\n".join(filter(None, ("" if result.only_media else result.text, *counts)))


def emit_event(event: AgentEvent) -> None:
    """Print an event as a line of JSON, whose key `event` names its kind."""
    emit(event_json(event))


_NAMES = {ModelChosen: "model", ContextReduced: "context", AgentChanged: "agent"}
"""Names of events that are shown as they are."""


def event_json(event: AgentEvent) -> dict[str, Any]:
    """Return an event as a JSON object."""
    match event:
        case TaskStarted(task, intent, locked):
            return {
                "event": "task",
                "task": task,
                "tier": intent.tier.name,
                "reason": intent.why,
                "locked_tools": list(locked),
            }
        case TurnStarted():
            return {"event": "turn", "round": event.round}
        case ToolStarted(call):
            return {"event": "call", "call": _call_json(call)}
        case ProgressReported(call, value):
            return {"event": "progress", "call": _call_json(call), "value": plain(value)}
        case ApprovalRequested(approval):
            return {"event": "approval", "call": _call_json(approval.call), "reason": approval.reason}
        case ToolFinished(outcome, seconds):
            body = {"event": "result", "call": _call_json(outcome.call), "seconds": round(seconds, 3)}
            issue = outcome.issue.kind if outcome.issue else None
            return {**body, "result": {**plain(outcome.result), "success": outcome.result.success}, "issue": issue}
        case CorrectionAdded(text):
            return {"event": "correction", "text": text}
        case PartialOutput(value):
            return {"event": "partial_output", "value": value}
        case TranslationNoted(note):
            return {"event": "note", "kind": note.kind, "where": note.where, "message": note.message}
        case ModelChosen() | ContextReduced() | AgentChanged():
            return {"event": _NAMES[type(event)], **plain(event)}
        case MemberEvent(member, inner):
            return {"event": "member", "member": member, "member_event": event_json(inner)}
        case RunResumed() | ReplayEnded():
            return {"event": "resumed" if isinstance(event, RunResumed) else "replay_ended"}
        case RunEnded():
            body = {"event": "end", "reason": event.reason, "answer": event.answer, "detail": event.detail}
            if event.output is not None:
                body["output"] = to_json_value(event.output)
            spent = {"rounds": event.rounds, "calls": event.calls, "usage": plain(event.usage), "money": event.money}
            return {**body, **spent, "seconds": round(event.seconds, 3)}
    return event_dict(event)


def _call_json(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": json.loads(json.dumps(call.arguments))}

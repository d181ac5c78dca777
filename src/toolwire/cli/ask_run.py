"""One question to an agent, with its events shown as they happen."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field

from toolwire.agent.run_events import AgentEvent, RunEnded, ToolFinished
from toolwire.cli.agent_options import AgentOptions
from toolwire.cli.approval_prompt import ApprovalPrompt
from toolwire.cli.attached_files import read_attachments
from toolwire.cli.console import console, say
from toolwire.cli.event_printer import EventPrinter, OrderedPrompt, TurnEnders, emit_event
from toolwire.cli.named_session import open_session
from toolwire.cli.open_agent import OpenAgent, open_from_options
from toolwire.cli.small_model_prompts import SYSTEM
from toolwire.messages import Content


@dataclass(slots=True)
class RunOutcome:
    """The end of a run and the success of its calls.

    Attributes:
        tools: whether the agent has tools.
        required: whether the agent's settings require a tool call.
        end: the end of the run.
        succeeded: names of the tools whose calls ran and succeeded.
        looked_up: whether one of them did more than end the turn.
        failed: number of calls that were refused, denied, or failed.
    """

    tools: bool = False
    required: bool = False
    end: RunEnded | None = None
    succeeded: set[str] = field(default_factory=set)
    looked_up: bool = False
    failed: int = 0

    def add(self, event: AgentEvent, ends: TurnEnders) -> None:
        """Count a call that has ended, and keep the end of the run."""
        match event:
            case ToolFinished(outcome) if outcome.issue is None and outcome.result.success:
                self.succeeded.add(outcome.call.name)
                self.looked_up = self.looked_up or not ends(outcome.call.name)
            case ToolFinished():
                self.failed += 1
            case RunEnded():
                self.end = event
            case _:
                pass  # no call, and not the end

    @property
    def without_call(self) -> str:
        """That no call succeeded, as the beginning of a message; "" if one did."""
        if self.succeeded:
            return ""
        return f"no tool call succeeded ({self.failed} failed or were denied)" if self.failed else "no tool was run"

    def missing_call(self, required: bool) -> str:
        """Return that a required call is missing, for the user; "" if none is.

        Args:
            required: whether the user asked for a call that does more than end the turn.
        """
        if required and not self.looked_up:
            why = self.without_call or "no tool was run but one that ends the turn"
            return f"{why}, and --require-tool-call asks for one"
        if self.required and self.without_call:
            return f"{self.without_call}, and the agent's require_tool_call asks for one"
        return ""


async def ask_and_show(question: str, options: AgentOptions, *, json: bool) -> RunOutcome:
    """Ask and show the events; return their outcome."""
    task: Content = [question, *read_attachments(options.attach)] if options.attach else question
    conversation = None if options.session is None else open_session(options.session)
    prompt = OrderedPrompt(ApprovalPrompt(approve=options.yes, remember=True))
    async with open_from_options(options, prompt, SYSTEM) as opened_agent:
        agent = opened_agent.agent
        ends = turn_enders(opened_agent)
        outcome = RunOutcome(tools=bool(len(agent.registry)), required=agent.config.require_tool_call)
        if not outcome.tools:
            say("toolwire: no --root and no --tools, so the model cannot look anything up", "yellow")
        if opened_agent.local and not console(stderr=True).is_terminal:
            say("toolwire: the model reads the prompt; on a small machine this takes up to a minute")
        printer = EventPrinter(trace=options.trace, ends=ends)
        run = opened_agent.runner.run(task, conversation=conversation)
        async with aclosing(run) as events:
            async for event in events:
                outcome.add(event, ends)
                if json:
                    emit_event(event)
                elif not (isinstance(event, RunEnded) and event.reason == "error"):
                    printer.show(event)
                prompt.mark_shown(event)
        printer.pause()
        return outcome


def turn_enders(opened_agent: OpenAgent) -> TurnEnders:
    """Return a predicate for the names of tools that end the turn."""
    registry = opened_agent.agent.registry
    return lambda name: name in registry and registry.lookup(name).behavior.ends_turn

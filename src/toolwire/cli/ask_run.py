"""One question to an agent, with its events shown as they happen."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass

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
        failed: number of calls that were refused, denied, or failed.
    """

    tools: bool = False
    required: bool = False
    end: RunEnded | None = None
    failed: int = 0

    def add(self, event: AgentEvent) -> None:
        """Count a call that has failed, and keep the end of the run."""
        match event:
            case ToolFinished(outcome) if outcome.issue is not None or not outcome.result.success:
                self.failed += 1
            case RunEnded():
                self.end = event
            case _:
                pass  # neither a failed call nor the end

    @property
    def without_call(self) -> str:
        """That no call succeeded, as the beginning of a message; "" if one did."""
        if self.end is not None and self.end.has_result:
            return ""
        return f"no tool call succeeded ({self.failed} failed or were denied)" if self.failed else "no tool was run"

    def missing_call(self, required: bool) -> str:
        """Return that a required call is missing, for the user; "" if none is.

        Args:
            required: whether the user asked for one.
        """
        if not self.without_call or not (required or self.required):
            return ""
        rule = "--require-tool-call" if required else "the agent's require_tool_call"
        return f"{self.without_call}, and {rule} asks for one"


async def ask_and_show(question: str, options: AgentOptions, *, json: bool) -> RunOutcome:
    """Ask and show the events; return their outcome."""
    task: Content = [question, *read_attachments(options.attach)] if options.attach else question
    conversation = None if options.session is None else open_session(options.session)
    prompt = OrderedPrompt(ApprovalPrompt(approve=options.yes, remember=True))
    async with open_from_options(options, prompt, SYSTEM) as opened_agent:
        agent = opened_agent.agent
        outcome = RunOutcome(tools=bool(len(agent.registry)), required=agent.config.require_tool_call)
        if not outcome.tools:
            without_effect = "" if options.constrain is None else ", and --constrain has no effect"
            say(f"toolwire: no --root and no --tools, so the model cannot look anything up{without_effect}", "yellow")
        if opened_agent.local and not console(stderr=True).is_terminal:
            say("toolwire: the model reads the prompt; on a small machine this takes up to a minute")
        printer = EventPrinter(trace=options.trace, ends=turn_enders(opened_agent))
        run = opened_agent.runner.run(task, conversation=conversation)
        async with aclosing(run) as events:
            async for event in events:
                outcome.add(event)
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

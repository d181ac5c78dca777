"""One question to an agent, with its events shown as they happen."""

from __future__ import annotations

from contextlib import aclosing

from toolwire.agent.run_events import AgentEvent, RunEnded, ToolFinished
from toolwire.cli.agent_options import AgentOptions
from toolwire.cli.approval_prompt import ApprovalPrompt
from toolwire.cli.console import console, say
from toolwire.cli.event_printer import EventPrinter, OrderedPrompt, TurnEnders, emit_event
from toolwire.cli.open_agent import OpenAgent, open_from_options
from toolwire.cli.small_model_prompts import SYSTEM


async def ask_and_show(question: str, options: AgentOptions, *, json: bool) -> tuple[RunEnded, bool, bool]:
    """Ask and show the events; return the end of the run, whether a tool ran, and whether the agent has tools."""
    prompt = OrderedPrompt(ApprovalPrompt(approve=options.yes, remember=True))
    async with open_from_options(options, prompt, SYSTEM) as opened_agent:
        has_tools = bool(len(opened_agent.agent.registry))
        if not has_tools:
            say("toolwire: no --root and no --tools, so the model cannot look anything up", "yellow")
        if opened_agent.local and not console(stderr=True).is_terminal:
            say("toolwire: the model reads the prompt; on a small machine this takes up to a minute")
        printer = EventPrinter(trace=options.trace, ends=turn_enders(opened_agent))
        tool_ran, end = False, None
        async with aclosing(opened_agent.runner.run(question)) as events:
            async for event in events:
                if isinstance(event, RunEnded):
                    end = event
                tool_ran = tool_ran or _ran(event)
                if json:
                    emit_event(event)
                elif not (isinstance(event, RunEnded) and event.reason == "error"):
                    printer.show(event)
                prompt.mark_shown(event)
        printer.pause()
        assert end is not None
        return end, tool_ran, has_tools


def _ran(event: AgentEvent) -> bool:
    return isinstance(event, ToolFinished) and event.outcome.issue is None and event.outcome.result.success


def turn_enders(opened_agent: OpenAgent) -> TurnEnders:
    """Return a predicate for the names of tools that end the turn."""
    registry = opened_agent.agent.registry
    return lambda name: name in registry and registry.lookup(name).behavior.ends_turn

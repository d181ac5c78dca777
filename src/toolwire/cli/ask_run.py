"""One question to an agent, shown while it is answered."""

from __future__ import annotations

from contextlib import aclosing

from toolwire.agent.run_events import AgentEvent, RunEnded, ToolFinished
from toolwire.cli.agent_options import AgentOptions
from toolwire.cli.approval_prompt import ApprovalPrompt
from toolwire.cli.console import console, say
from toolwire.cli.event_printer import Ends, InTurn, Telling, emit_event
from toolwire.cli.open_agent import Opened, opened
from toolwire.cli.small_model_prompts import SYSTEM


async def answered(question: str, options: AgentOptions, *, json: bool) -> tuple[RunEnded, bool, bool]:
    """Ask, and show what happens: the end of the run, whether a tool ran, and whether there were any."""
    consent = InTurn(ApprovalPrompt(agree=options.yes, remember=True))
    async with opened(options, consent, SYSTEM) as found:
        tooled = bool(len(found.agent.registry))
        if not tooled:
            say("toolwire: no --root and no --tools, so the model cannot look anything up", "yellow")
        if found.local and not console(stderr=True).is_terminal:
            say("toolwire: the model reads the prompt; on a small machine that takes up to a minute")
        telling = Telling(trace=options.trace, ends=ends_of(found))
        ran, end = False, None
        async with aclosing(found.run_by.run(question)) as events:
            async for event in events:
                if isinstance(event, RunEnded):
                    end = event
                ran = ran or _ran(event)
                if json:
                    emit_event(event)
                elif not (isinstance(event, RunEnded) and event.reason == "error"):
                    telling.show(event)
                consent.showed(event)
        telling.aside()
        assert end is not None
        return end, ran, tooled


def _ran(event: AgentEvent) -> bool:
    return isinstance(event, ToolFinished) and event.outcome.issue is None and event.outcome.result.success


def ends_of(found: Opened) -> Ends:
    """Tells the tools of an agent that end the turn."""
    registry = found.agent.registry
    return lambda name: name in registry and registry.lookup(name).behavior.ends_turn

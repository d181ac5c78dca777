"""The end of a run, found among its events: its answer, or the error that there is none."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from toolwire.agent.recovery import OFFENCE
from toolwire.agent.run_events import AgentEvent, RunEnded, TurnStarted
from toolwire.errors import RunFailed
from toolwire.events import ContentDelta


async def end_of(events: AsyncGenerator[AgentEvent]) -> RunEnded:
    """Return the end of a run, whatever its reason."""
    end: RunEnded | None = None
    async with aclosing(events):
        async for event in events:
            if isinstance(event, RunEnded):
                end = event
    assert end is not None
    return end


async def answer_of(events: AsyncGenerator[AgentEvent]) -> str:
    """Return the text of the answer at the end of a run's events.

    Raises:
        RunFailed: the run ended without an answer; the error says why, and contains the end of the run.
    """
    return answered(await end_of(events)).answer


def answered(end: RunEnded) -> RunEnded:
    """Return the end of a run that has an answer.

    Raises:
        RunFailed: the run ended without an answer.
    """
    if not end.good:
        quote = f"; the model said last: {end.answer[:OFFENCE]}" if end.detail and end.answer else ""
        raise RunFailed(f"no answer ({end.reason}): {end.detail or end.answer}{quote}", end)
    return end


async def text_pieces(events: AsyncGenerator[AgentEvent]) -> AsyncGenerator[str]:
    """Yield the text in a run's events, with an empty line before the text of another turn.

    Raises:
        RunFailed: the run ended without an answer; the error says why, and contains the end of the run.
    """
    has_text = new_turn = False
    end: RunEnded | None = None
    async with aclosing(events):
        async for event in events:
            match event:
                case TurnStarted():
                    new_turn = has_text
                case ContentDelta(text) if text:
                    yield f"\n\n{text}" if new_turn else text
                    has_text, new_turn = True, False
                case RunEnded():
                    end = event
                case _:
                    pass
    assert end is not None
    answered(end)

"""Runs that continue a stored conversation, and save it at their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from toolwire.agent.conversation_store import Conversation
from toolwire.agent.run_events import AgentEvent, RunEnded
from toolwire.errors import ConversationError


async def saving_run(
    events: AsyncGenerator[AgentEvent], conversation: Conversation, *, resumes: bool
) -> AsyncGenerator[AgentEvent]:
    """Yield the events of a run, and save the conversation before the last one.

    Args:
        events: the events of the run, which has not begun.
        conversation: has the history and the session of the run.
        resumes: whether the run resumes what is pending in the conversation, which no other process may do then.

    Raises:
        ConversationError: another process has changed the conversation; nothing runs if it did so before the run.
    """
    conflict: ConversationError | None = None
    # Before the model is asked or a call runs: a conflict that is known now should cost nothing.
    # In threads, since a database may be locked by another process for seconds.
    await asyncio.to_thread(conversation.claim if resumes else conversation.check)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, RunEnded):
                try:
                    await asyncio.to_thread(partial(conversation.save, event.messages, pending=event.pending))
                except ConversationError as error:
                    conflict = error  # raised behind the end, whose answer is valid all the same
            yield event
    if conflict is not None:
        raise conflict

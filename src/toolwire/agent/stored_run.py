"""Runs that continue a stored conversation, and save it at their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from copy import copy
from functools import partial

from toolwire.agent.conversation_store import Conversation
from toolwire.agent.run_events import AgentEvent, RunEnded
from toolwire.errors import ConversationError


def saving_run(
    events: AsyncGenerator[AgentEvent], conversation: Conversation, *, resumes: bool
) -> AsyncGenerator[AgentEvent]:
    """Return the events of a run, which saves the conversation before its last one.

    Args:
        events: the events of the run, which has not begun.
        conversation: has the history and the session of the run.
        resumes: whether the run resumes what is pending in the conversation, which no other process may do then.

    Raises:
        ConversationError: something else has changed the conversation; nothing runs if it did so before the run. It is
            raised by the iterator.
    """
    # The version of this moment, to which the history of the run belongs: another run may have the same object.
    return _saving_run(events, conversation, copy(conversation), resumes=resumes)


async def _saving_run(
    events: AsyncGenerator[AgentEvent], conversation: Conversation, opened: Conversation, *, resumes: bool
) -> AsyncGenerator[AgentEvent]:
    conflict: ConversationError | None = None
    # Before the model is asked or a call runs: a conflict that is known now should cost nothing.
    # In threads, since a database may be locked by another process for seconds.
    await asyncio.to_thread(opened.claim if resumes else opened.check)
    if resumes:
        _pass_on(opened, conversation)
    async with aclosing(events):
        async for event in events:
            # A task to which nothing was said would be in the conversation twice when it is asked again.
            if isinstance(event, RunEnded) and not (event.reason == "error" and event.messages[-1].role == "user"):
                try:
                    await asyncio.to_thread(partial(opened.save, event.messages, pending=event.pending))
                    _pass_on(opened, conversation)
                except ConversationError as error:
                    conflict = error  # raised behind the end, whose answer is valid all the same
            yield event
    if conflict is not None:
        raise conflict


def _pass_on(opened: Conversation, conversation: Conversation) -> None:
    """Let the caller's object have what is stored now."""
    conversation.version, conversation.messages, conversation.pending = opened.version, opened.messages, opened.pending

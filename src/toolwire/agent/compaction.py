"""Compaction: the older part of a conversation that became too long is replaced by a summary.

Old results of calls are truncated first, since they are most of a long conversation and matter least. Only if that is
not enough, a model summarises the older steps. A step is an answer of the model with the results of its calls; it is
summarised as a whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import chain
from typing import Final

from toolwire.agent.budget import ANSWER_TOKENS, BudgetUsedUp, ExpectedCost, is_believable
from toolwire.agent.history import conversation_tokens, shorten_old_results, split_steps
from toolwire.agent.prices import prices_of
from toolwire.agent.run_context import RunContext
from toolwire.agent.run_events import Compacted, ContextReduced
from toolwire.agent.stream_timeout import StreamTimeout
from toolwire.agent.summarize import Summarize
from toolwire.errors import ProviderError
from toolwire.events import Event, collect
from toolwire.messages import Message, Part, TextPart, ToolCall, ToolResult, Usage
from toolwire.models.backends import Backend
from toolwire.models.model_group import single_models
from toolwire.providers.request import SUMMARY, ChatRequest
from toolwire.text.tokens import PER_TOKEN, estimate_message_tokens, estimate_tokens
from toolwire.text.truncate import truncate

TARGET: Final = 0.75
"""Share of the room that the conversation has after compaction, so that it is not needed again in the next round."""


@dataclass(frozen=True, slots=True)
class _Division:
    """A conversation, divided into what stays before, what can be summarised, and what stays behind it."""

    before: list[Message]
    older: list[Message]
    behind: list[Message]


async def compact(messages: Sequence[Message], room: int, context: RunContext, backend: Backend) -> Compacted | None:
    """Return the conversation within its room; None if it has enough, or the agent has no compaction.

    Args:
        messages: the conversation.
        room: maximum number of tokens, estimated.
        context: the run, whose budget pays for the summary.
        backend: the agent's model.
    """
    summarize, before = context.config.compaction, conversation_tokens(messages)
    if summarize is None or before <= room:
        return None
    target = int(room * TARGET)
    short = shorten_old_results(messages, target, estimate_message_tokens, keep=summarize.keep)
    remaining, summary, problem, left_out = short.messages, "", "", 0
    if conversation_tokens(short.messages) > target:
        # The summary is written from the results as they were.
        division = _divide(messages, summarize.keep)
        if division.older:
            try:
                # The run's own budget may be used up: its last answer needs a conversation that fits, too.
                expected = _expected(division.older, summarize, context, backend)
                async with context.limits.room_for(expected, last=True):
                    summary = await _summary(division.older, room, summarize, context, backend)
            except (BudgetUsedUp, ProviderError) as error:
                problem = str(error)
        if summary:
            note = Message("user", (TextPart(f"{SUMMARY}\n{summary}"),))
            remaining, left_out = [*division.before, note, *division.behind], len(division.older)
    shortened = 0 if summary else short.shortened
    if not (summary or shortened or problem):
        return None
    event = ContextReduced(before, conversation_tokens(remaining), left_out, shortened, summary, problem)
    return Compacted(tuple(remaining), event)


def _divide(messages: Sequence[Message], keep: int) -> _Division:
    head, steps = split_steps(messages)
    older, newer = steps[:-keep], steps[-keep:]
    last_user = max((at for at, step in enumerate(steps) if step[0].role == "user"), default=-1)
    # The user's last message stays in the user's words, since everything after it is the work on it.
    request = [older.pop(last_user)] if 0 <= last_user < len(older) else []
    return _Division(head, list(chain(*older)), list(chain(*request, *newer)))


def _expected(messages: Sequence[Message], summarize: Summarize, context: RunContext, backend: Backend) -> ExpectedCost:
    """Return the most that a summary is expected to use."""
    model = next(single_models(summarize.backend or backend))
    prices = prices_of(model, context.config.budget.prices, limited=context.limits.limits_money)
    usage = Usage(conversation_tokens(messages), ANSWER_TOKENS, estimated=True)
    return ExpectedCost(usage.input_tokens + usage.output_tokens, prices.cost_of(usage))


async def _summary(
    messages: Sequence[Message], room: int, summarize: Summarize, context: RunContext, agent_backend: Backend
) -> str:
    """Ask for a summary, and count what it costs.

    Raises:
        ProviderError: the model cannot be asked, takes too long, or writes nothing.
    """
    backend = summarize.backend or agent_backend
    # As text without tools, so that any model can write it, and none is tempted to call something.
    transcript = truncate("\n\n".join(map(_transcribed, messages)), room * PER_TOKEN)
    prompt = (Message("system", (TextPart(summarize.instructions),)), Message("user", (TextPart(transcript),)))
    events: list[Event] = []
    limits = context.limits
    left, seconds = limits.seconds_left(), context.config.answer_seconds
    total = seconds if left is None else left if seconds is None else min(left, seconds)
    try:
        async with (
            StreamTimeout(context.config.silence, total),
            aclosing(backend.stream(ChatRequest(messages=prompt))) as stream,
        ):
            async for event in stream:
                events.append(event)  # noqa: PERF401  (what arrives before an error is paid too)
    finally:
        response = collect(events)
        usage = response.usage
        if events and not is_believable(usage):
            written = estimate_tokens(len(response.content))
            usage = Usage(conversation_tokens(prompt), written, estimated=True)
        # The tokens of a summary that failed were paid too.
        # Of several models the first one's prices count: which of them answered is not known here.
        model = next(single_models(backend))
        limits.spending.add(usage, prices_of(model, context.config.budget.prices, limited=limits.limits_money))
    failure = next((problem.message for problem in response.problems if problem.kind == "provider_error"), "")
    if failure or not response.content.strip():
        raise ProviderError(failure or f"{backend.model or 'the model'} wrote no summary")
    return response.content.strip()


def _transcribed(message: Message) -> str:
    """Return a message as text, for a model that only reads it."""
    return "\n".join(filter(None, (_part_text(message.role, part) for part in message.parts)))


def _part_text(role: str, part: Part) -> str:
    match part:
        case TextPart(text):
            return f"{role}: {text}"
        case ToolCall(name, arguments):
            return f"call of {name}: {json.dumps(arguments, ensure_ascii=False)}"
        case ToolResult():
            return f"{'result' if part.success else 'error'} of {part.tool_name}: {part.text}"
    return ""

"""Conversations in Inspect: the model is asked until it makes no more calls, turn by turn, and its calls run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageTool, ModelOutput, get_model

from toolwire.evaluation.conversations import MAX_STEPS, ScriptedConversation, SimulatedServices
from toolwire.evaluation.inspect_values import answer_of, chat_message, tool_info
from toolwire.evaluation.model_answer import ModelAnswer
from toolwire.evaluation.readings import DEFAULT_READING, problem_kinds, read_answer
from toolwire.models.backends import text_of
from toolwire.tools import ToolDefinition

Calls = tuple[tuple[str, dict[str, Any]], ...]


async def have_conversation(
    conversation: ScriptedConversation, services: SimulatedServices, messages: list[ChatMessage]
) -> tuple[ModelOutput, ModelAnswer]:
    """Ask the model each turn of a conversation, and run its calls.

    Args:
        conversation: the conversation.
        services: the services, in their first state.
        messages: the messages before it; those of the conversation are added.

    Returns:
        The last output, and one answer that stands for all: with the calls of each turn, and the sums of the figures.
    """
    tools: list[ToolDefinition] = []
    answers: list[ModelAnswer] = []
    problems: list[str] = []
    turns: list[tuple[Calls, ...]] = []
    output: ModelOutput | None = None
    for turn in conversation.turns:
        messages += [chat_message(message.role, text_of(message)) for message in turn.messages]
        tools += turn.tools
        offered = [tool_info(tool) for tool in tools]
        steps: list[Calls] = []
        while True:
            output = await get_model().generate(list(messages), tools=offered)
            messages.append(output.message)
            answer = answer_of(output)
            answers.append(answer)
            problems += _problems(answer, tools)
            calls = output.message.tool_calls or ()
            if answer.outcome != "answered" or not calls:
                break
            if len(steps) == MAX_STEPS:
                turns.append(tuple(steps))
                return output, _as_one(answers, problems, turns)
            steps.append(tuple((call.function, dict(call.arguments)) for call in calls))
            messages += [
                ChatMessageTool(
                    content=services.run(call.function, call.arguments), tool_call_id=call.id, function=call.function
                )
                for call in calls
            ]
        turns.append(tuple(steps))
        if answers[-1].outcome != "answered":
            break
    assert output is not None  # each conversation has a turn
    return output, _as_one(answers, problems, turns)


def _problems(answer: ModelAnswer, tools: Sequence[ToolDefinition]) -> Sequence[str]:
    """Return the kinds of the parts of an answer that could not be read."""
    if not answer.format:
        return answer.native_problems
    return problem_kinds(read_answer(answer.text, answer.format, tools, DEFAULT_READING))


def _as_one(answers: Sequence[ModelAnswer], problems: Sequence[str], turns: Sequence[tuple[Calls, ...]]) -> ModelAnswer:
    """Return one answer that stands for all of a conversation."""
    prices = [answer.money for answer in answers]
    return replace(
        answers[-1],
        text="\n\n".join(answer.text for answer in answers if answer.text),
        native_calls=None,
        native_problems=tuple(problems),
        seconds=sum(answer.seconds for answer in answers),
        input_tokens=sum(answer.input_tokens for answer in answers),
        output_tokens=sum(answer.output_tokens for answer in answers),
        estimated=any(answer.estimated for answer in answers),
        money=None if None in prices else sum(price or 0.0 for price in prices),
        notes=tuple(dict.fromkeys(note for answer in answers for note in answer.notes)),
        turns=tuple(turns),
    )

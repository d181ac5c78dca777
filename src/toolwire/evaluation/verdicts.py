"""Verdicts: whether an answer contains the right calls, as one of the readings sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from pydantic import TypeAdapter

from toolwire.evaluation.bfcl_services import BfclServices
from toolwire.evaluation.call_scoring import CallFault, ExpectedCalls, answer_fault
from toolwire.evaluation.conversations import ConversationTurn, ScriptedConversation, conversation_fault
from toolwire.evaluation.model_answer import ModelAnswer, Outcome
from toolwire.evaluation.readings import DEFAULT_READING, READINGS, Reading, problem_kinds, read_answer
from toolwire.evaluation.suite import SuiteQuestion, text_message
from toolwire.messages import Message, ToolCall
from toolwire.models.backends import text_of
from toolwire.schema.validation import validate
from toolwire.tools import ToolDefinition

NATIVE: Final = "native"
"""Name of the reading of calls that have fields of their own: their text is not read again."""
ReadingName = Literal["strict", "whole_message", "embedded", "naive", "native"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict on one answer.

    Attributes:
        question: the id of the question.
        group: the group of the question.
        reading: the way in which the answer was read.
        outcome: whether there is an answer; only complete answers are right or wrong.
        expects_calls: whether a right answer contains calls.
        right: whether it contains the right calls, or rightly none.
        well_formed: whether it contains calls, and no part that could not be read as a call.
        usable: whether it is well-formed and each call names a tool of the question, with valid arguments.
        fault: the reason why it is wrong; None if it is right or there is no answer.
        calls: the calls that were read, each as its name and its arguments.
        content: the prose that was read.
        repairs: the repairs of the calls, each once per call.
        problems: the kinds of the parts that could not be read.
    """

    question: str
    group: str
    reading: ReadingName
    outcome: Outcome
    expects_calls: bool
    right: bool
    well_formed: bool
    usable: bool
    fault: CallFault | None
    calls: tuple[tuple[str, Mapping[str, Any]], ...]
    content: str
    repairs: tuple[str, ...]
    problems: tuple[str, ...]


def verdicts(question: SuiteQuestion, answer: ModelAnswer, readings: Sequence[Reading] = READINGS) -> list[Verdict]:
    """Return the verdicts on an answer, one for each reading; a single one if its calls have fields of their own.

    Of a conversation, there is one verdict too: its later answers depend on how the earlier ones were read.
    """
    if question.conversation is not None:
        calls = tuple(ToolCall(name, arguments) for turn in answer.turns for step in turn for name, arguments in step)
        reading = DEFAULT_READING if answer.format else NATIVE
        return [_verdict(question, answer, reading, calls, answer.text, answer.native_problems)]
    if not answer.format:
        calls = tuple(ToolCall(name, arguments) for name, arguments in answer.native_calls or ())
        return [_verdict(question, answer, NATIVE, calls, answer.text, answer.native_problems)]
    judged = []
    for reading in readings:
        response = read_answer(answer.text, answer.format, question.tools, reading)
        kinds = problem_kinds(response)
        judged.append(_verdict(question, answer, reading, response.tool_calls, response.content, kinds))
    return judged


def _verdict(
    question: SuiteQuestion,
    answer: ModelAnswer,
    reading: ReadingName,
    calls: Sequence[ToolCall],
    content: str,
    problems: tuple[str, ...],
) -> Verdict:
    # The beginning of an answer may contain the right call, but nobody knows what would have followed.
    is_complete = answer.outcome == "answered"
    fault = _fault(question, answer, calls) if is_complete else None
    well_formed = is_complete and bool(calls) and not problems
    return Verdict(
        question=question.id,
        group=question.group,
        reading=reading,
        outcome=answer.outcome,
        expects_calls=question.expected.rule != "no_call",
        right=is_complete and fault is None,
        well_formed=well_formed,
        usable=well_formed and all(_is_valid(call, question.parameters) for call in calls),
        fault=fault,
        calls=tuple((call.name, call.arguments) for call in calls),
        content=content,
        repairs=tuple(name for call in calls for name in call.repairs),
        problems=problems,
    )


def _fault(question: SuiteQuestion, answer: ModelAnswer, calls: Sequence[ToolCall]) -> CallFault | None:
    conversation = question.conversation
    if conversation is None:
        return answer_fault(calls, question.expected, question.parameters)
    return conversation_fault(conversation, answer.turns, BfclServices(conversation), BfclServices(conversation))


def _is_valid(call: ToolCall, parameters: Mapping[str, Mapping[str, Any]]) -> bool:
    return call.name in parameters and not validate(call.arguments, dict(parameters[call.name]))


_EXPECTED: Final[TypeAdapter[ExpectedCalls]] = TypeAdapter(ExpectedCalls)


def question_to_json(question: SuiteQuestion) -> dict[str, Any]:
    """Return a question as a JSON object, for logs that can be judged again without the suite."""
    conversation = question.conversation
    return {
        "id": question.id,
        "group": question.group,
        "messages": _messages_to_json(question.messages),
        "tools": _tools_to_json(question.tools),
        "expected": asdict(question.expected),
        **({"conversation": _conversation_to_json(conversation)} if conversation is not None else {}),
    }


def question_from_json(value: Mapping[str, Any]) -> SuiteQuestion:
    """Return the question that `question_to_json` wrote.

    Raises:
        ValueError, KeyError, TypeError: it is not one.
    """
    conversation = value.get("conversation")
    return SuiteQuestion(
        id=value["id"],
        group=value["group"],
        messages=_messages_from_json(value["messages"]),
        tools=_tools_from_json(value["tools"]),
        expected=_EXPECTED.validate_python(value["expected"]),
        conversation=None if conversation is None else _conversation_from_json(conversation),
    )


def _conversation_to_json(conversation: ScriptedConversation) -> dict[str, Any]:
    return {
        "services": list(conversation.services),
        "setups": dict(conversation.setups),
        "long_context": conversation.long_context,
        "turns": [
            {
                "messages": _messages_to_json(turn.messages),
                "tools": _tools_to_json(turn.tools),
                "right_calls": [[name, dict(arguments)] for name, arguments in turn.right_calls],
            }
            for turn in conversation.turns
        ],
    }


def _conversation_from_json(value: Mapping[str, Any]) -> ScriptedConversation:
    turns = tuple(
        ConversationTurn(
            _messages_from_json(turn["messages"]),
            _tools_from_json(turn["tools"]),
            tuple((name, arguments) for name, arguments in turn["right_calls"]),
        )
        for turn in value["turns"]
    )
    return ScriptedConversation(tuple(value["services"]), value["setups"], turns, value["long_context"])


def _messages_to_json(messages: Sequence[Message]) -> list[list[str]]:
    return [[message.role, text_of(message)] for message in messages]


def _messages_from_json(values: Sequence[Sequence[Any]]) -> tuple[Message, ...]:
    return tuple(text_message(role, text) for role, text in values)


def _tools_to_json(tools: Sequence[ToolDefinition]) -> list[list[Any]]:
    return [[tool.name, tool.description, dict(tool.parameters)] for tool in tools]


def _tools_from_json(values: Sequence[Sequence[Any]]) -> tuple[ToolDefinition, ...]:
    return tuple(ToolDefinition(name, description, parameters) for name, description, parameters in values)

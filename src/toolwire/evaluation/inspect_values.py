"""Messages, tools and answers as values of Inspect."""

from __future__ import annotations

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, ModelOutput
from inspect_ai.tool import ToolInfo, ToolParams

from toolwire.evaluation.inspect_model import ANSWER, PARAMETERS
from toolwire.evaluation.model_answer import ModelAnswer, answer_from_json
from toolwire.tools import ToolDefinition


def answer_of(output: ModelOutput) -> ModelAnswer:
    """Return the answer in an output; of a model that is not asked by Toolwire, the calls that Inspect read."""
    stored = (output.metadata or {}).get(ANSWER)
    if stored is not None:
        return answer_from_json(stored)
    message = output.message
    calls = tuple((call.function, call.arguments) for call in message.tool_calls or () if not call.parse_error)
    problems = tuple("malformed_arguments" for call in message.tool_calls or () if call.parse_error)
    return ModelAnswer(
        "answered",
        text=message.text,
        native_calls=calls,
        native_problems=problems,
        finish=output.stop_reason,
        seconds=output.time or 0.0,
    )


def tool_info(tool: ToolDefinition) -> ToolInfo:
    """Return a tool as Inspect describes it, with its exact schema beside."""
    return ToolInfo(
        name=tool.name, description=tool.description, parameters=ToolParams(), options={PARAMETERS: tool.parameters}
    )


def chat_message(role: str, text: str) -> ChatMessage:
    """Return a message of text as one of Inspect's."""
    match role:
        case "system":
            return ChatMessageSystem(content=text)
        case "assistant":
            return ChatMessageAssistant(content=text)
    return ChatMessageUser(content=text)

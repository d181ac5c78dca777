"""Ways to ask a model for a structured output: a schema that its API guarantees, a tool, or JSON in its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolwire.errors import ConfigurationError, OutputError
from toolwire.providers.base import ProviderApi
from toolwire.providers.output_schema import OutputSchema
from toolwire.schema.output_type import OutputType
from toolwire.text.json_text import json_text
from toolwire.tools import ToolDefinition

OutputMode = Literal["auto", "native", "tool", "text"]
"""A schema that the API guarantees, a tool whose arguments are the output, JSON in the text, or the best of these."""

FINAL_ANSWER = "final_answer"
"""Name of the tool whose arguments are the output."""

_DESCRIPTION = "Give your final answer, which ends the task."
_INSTRUCTION = "Your final answer is JSON alone, without any other text, and follows this JSON Schema:\n{schema}"
_OBJECT_INSTRUCTION = "Your final answer is one JSON object alone, without any other text."
_CALL_INSTRUCTION = f"Do not answer in plain words: your final answer is a call of the tool {FINAL_ANSWER}."
_INVALID = "Your final answer is not valid: {issues}."
_AS_TEXT = "Answer with JSON alone, which follows the schema."
_AS_CALL = f"Give your final answer by calling {FINAL_ANSWER}."
_LAST_CALL = f"No more tool calls now, except one of {FINAL_ANSWER}. Call it with what you have seen."
_LAST_TEXT = "No more tool calls now. Give your final answer as JSON, from what you have seen."


def json_instruction(schema: Mapping[str, Any] | None) -> str:
    """Return the words that ask for an answer of JSON alone; None for any JSON object."""
    return _OBJECT_INSTRUCTION if schema is None else _INSTRUCTION.format(schema=json_text(schema))


@dataclass(frozen=True, slots=True)
class OutputRequest:
    """The way in which a model is asked for an output.

    Attributes:
        mode: "native": the API guarantees the schema; "tool": the model calls a tool; "text": it writes JSON.
        tool: the tool that it calls; None where it answers with JSON alone.
        schema: the schema in the request; None without one.
        instruction: text for the end of the system prompt; "" for none.
        note: text for the end of each prompt; "" for none.
        required: whether every answer must call a tool.
    """

    mode: Literal["native", "tool", "text"]
    tool: ToolDefinition | None = None
    schema: OutputSchema | None = None
    instruction: str = ""
    note: str = ""
    required: bool = False

    @property
    def last_note(self) -> str:
        """The instruction for an answer after which there is no other."""
        return _LAST_TEXT if self.tool is None else _LAST_CALL

    def advice(self, error: OutputError) -> str:
        """Return the explanation of an invalid output for the model."""
        return f"{_INVALID.format(issues=error)} {_AS_TEXT if self.tool is None else _AS_CALL}"


def output_request(
    type: OutputType[Any], mode: OutputMode, *, api: ProviderApi | None, format: str, has_tools: bool
) -> OutputRequest:
    """Return the way to ask a model for an output.

    Args:
        type: the type of the output.
        mode: the configured way.
        api: its API; None if that is not known.
        format: the wire format that it writes; "" where calls have fields of their own.
        has_tools: whether the request has other tools.

    Raises:
        ConfigurationError: the configured way is not possible.
    """
    description = "\n\n".join(filter(None, (_DESCRIPTION, type.description)))
    tool = ToolDefinition(FINAL_ANSWER, description, type.schema)
    schema = OutputSchema(type.schema, type.name, type.description, strict=True)
    instruction = json_instruction(type.schema)
    if format:  # everything is text; a tool is one of those in the prompt
        if mode == "native":
            raise ConfigurationError('output_mode="native" needs an API: this model is asked with text alone')
        if has_tools or mode == "tool":
            return OutputRequest("text", tool, note="" if type.takes_text else _CALL_INSTRUCTION)
        mode = "text"  # small models write JSON more reliably than a call, and right after they were asked for it
    if mode == "auto":
        mode = "native" if api is not None and api.guarantees(schema, tools=has_tools) else "tool"
    match mode:
        case "tool":
            return OutputRequest("tool", tool, required=not type.takes_text)
        case "text":
            return OutputRequest("text", note=instruction)
    hidden = api is not None and api.hides_schemas
    return OutputRequest("native", schema=schema, instruction=instruction if hidden else "")

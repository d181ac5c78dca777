"""Tools as a request offers them: with the name and the schema that an API takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.providers.message_parts import Json
from toolwire.tools import ToolDefinition


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as a request offers it.

    Attributes:
        name: the name, spelled for the API.
        schema: the schema of the arguments, in the API's dialect.
        strict: whether the schema is in strict mode; None if the tool does not say.
        definition: the tool itself.
    """

    name: str
    schema: Json
    strict: bool | None
    definition: ToolDefinition

    @property
    def description(self) -> str:
        """The tool's description."""
        return self.definition.description

    @property
    def text_input(self) -> Mapping[str, Any] | None:
        """The members of a tool whose input is text, not JSON; None for other tools."""
        return text_input(self.definition)


def text_input(tool: ToolDefinition) -> Mapping[str, Any] | None:
    """Return what a tool's annotations say about an input that is text, if its parameters can take one."""
    custom = tool.annotations.get("custom")
    # The text becomes the argument `input`.
    properties = tool.parameters.get("properties")
    takes_input = isinstance(properties, Mapping) and "input" in properties and set(tool.shape.required) <= {"input"}
    return custom if isinstance(custom, Mapping) and takes_input else None

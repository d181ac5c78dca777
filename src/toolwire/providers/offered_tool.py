"""Tools as a request offers them: with the name and the schema that an API takes."""

from __future__ import annotations

from dataclasses import dataclass

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

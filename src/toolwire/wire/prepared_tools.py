"""The tools of a message, and what is derived from them, prepared once for all messages with the same tools."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property, lru_cache
from typing import Any

from pydantic_core import to_json

from toolwire.errors import DefinitionError
from toolwire.text.identity_cache import IdentityCache
from toolwire.tools import ToolDefinition, definitions, each_definition
from toolwire.wire.syntax import WireFormat
from toolwire.wire.tool_names import ToolNames

_WORD = re.compile(r"[^\W_]+")
_MAX_PREPARED = 64  # pragma: no mutate - any number keeps the memory bounded
_MAX_EXAMPLES = 64  # pragma: no mutate - as above


class KnownTools:
    """The tools that a message may call.

    Attributes:
        definitions: by name; not to be changed.
    """

    def __init__(self, tools: Mapping[str, ToolDefinition]) -> None:
        self.definitions = tools
        self._examples = IdentityCache(_MAX_EXAMPLES)

    @cached_property
    def names(self) -> ToolNames:
        """The names that may be written for them."""
        return ToolNames(self.definitions)

    @cached_property
    def initials(self) -> frozenset[str]:
        """The first characters of their names."""
        return frozenset(name[0] for name in self.definitions)

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The names of all parameters of all tools."""
        names = (tool.shape.property_names for tool in self.definitions.values())
        return frozenset().union(*names)

    @cached_property
    def _words(self) -> frozenset[str]:
        """The longest word in each of their names, folded."""
        return frozenset(max(_WORD.findall(name.casefold()), key=len, default="") for name in self.definitions)

    @cached_property
    def _by_parameter(self) -> Mapping[str, Sequence[str]]:
        tools: dict[str, list[str]] = {}
        for name in self.definitions:
            for parameter in self.properties(name):
                tools.setdefault(parameter, []).append(name)
        return tools

    def with_parameter(self, parameter: str) -> Sequence[str]:
        """Return the names of the tools that have a parameter of this name."""
        return self._by_parameter.get(parameter, ())

    def exactly(self, written: str) -> str:
        """Return the tool whose name is written as it is, perhaps with a prefix such as `functions.`, or ""."""
        name = written if written in self.definitions else written.rpartition(".")[2]
        return name if name in self.definitions else ""

    def may_be_named_in(self, text: str) -> bool:
        """Return False if a text certainly names none of them, in any spelling."""
        folded = text.casefold()
        return any(word in folded for word in self._words)

    def example(self, wire: WireFormat, tool: ToolDefinition, write: Callable[[], str]) -> str:
        """Return the example of a call to one of them in a format, which `write` writes the first time."""
        return self._examples.get(write, (wire, tool))

    def properties(self, name: str) -> Sequence[str]:
        """Return the declared parameters of a tool, in order."""
        return self.definitions[name].shape.property_names

    def required(self, name: str) -> Sequence[str]:
        """Return the required parameters of a tool, in the order of the declared ones."""
        required = self.definitions[name].shape.required
        return [key for key in self.properties(name) if key in required]


_by_identity = IdentityCache(_MAX_PREPARED)
_DEFINITIONS = {ToolDefinition}


def prepared_tools(tools: Iterable[Any] | Mapping[str, Any] | None) -> KnownTools:
    """Return the tools, in any of the shapes that `definitions` takes; the same object for the same tools.

    Raises:
        DefinitionError: see `definitions`.
    """
    if isinstance(tools, (list, tuple)) and tools:
        if set(map(type, tools)) == _DEFINITIONS:  # which never change
            return _by_identity.get(lambda: KnownTools(definitions(tools)), tools)
        if isinstance(tools[0], dict):
            # Dicts may change between two messages, so they are compared by their content.
            with suppress(TypeError, ValueError, RecursionError):  # not JSON, or too deep for it
                return _of_json(to_json(tools))
    by_name = definitions(tools)
    return _by_identity.get(lambda: KnownTools(by_name), by_name.values())


@lru_cache(_MAX_PREPARED)
def _of_json(content: bytes) -> KnownTools:
    return KnownTools(definitions(json.loads(content)))


def usable_definitions(
    tools: Iterable[Any] | Mapping[str, Any] | None, *, strict: bool = False
) -> tuple[dict[str, ToolDefinition], list[DefinitionError]]:
    """Return the usable tools by name, and the errors of the others, any of which makes other functions raise.

    Equal tools, as dicts or as models of pydantic, have the same definitions, so that what is derived from them is
    derived once.

    Args:
        tools: any number of tools in any shape that is known; one alone; or a mapping from names to tools.
        strict: check the schemas too, which running a tool needs.
    """
    content: bytes | None = None
    if isinstance(tools, (list, tuple)) and all(map(_is_data, tools)):
        with suppress(TypeError, ValueError, RecursionError):  # not JSON, or too deep for it
            content = to_json(tools, by_alias=True)
    if content is None:
        return _separated(tools, strict)
    usable, errors = _separated_json(content, strict)
    return dict(usable), list(map(copy, errors))  # callers may raise theirs, which changes them


def _is_data(tool: Any) -> bool:
    """Return whether a tool is described by its JSON: a dict, or a model of pydantic."""
    return isinstance(tool, dict) or hasattr(type(tool), "model_dump")


def _separated(
    tools: Iterable[Any] | Mapping[str, Any] | None, strict: bool
) -> tuple[dict[str, ToolDefinition], list[DefinitionError]]:
    usable: dict[str, ToolDefinition] = {}
    errors: list[DefinitionError] = []
    for definition in each_definition(tools, strict=strict):
        if isinstance(definition, DefinitionError):
            errors.append(definition)
        else:
            usable.setdefault(definition.name, definition)
    return usable, errors


@lru_cache(_MAX_PREPARED)
def _separated_json(content: bytes, strict: bool) -> tuple[Mapping[str, ToolDefinition], Sequence[DefinitionError]]:
    return _separated(json.loads(content), strict)

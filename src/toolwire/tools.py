"""Tool definitions: what a model may call, made by hand, from a function, or from a provider's dict."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Generic, ParamSpec, TypeVar, overload

from pydantic import BaseModel

from toolwire.errors import DefinitionError
from toolwire.schema import Shape, check_schema
from toolwire.signatures import schema_from_function, schema_from_model

P = ParamSpec("P")
R = TypeVar("R")

MAX_NAME = 256
"""Characters of a tool's name."""

_NOT_IN_NAMES = re.compile(r"""[\s\x00-\x1f\x7f-\x9f\ud800-\udfff<>{}()\[\]"'=,]""")
_SHAPES = (
    'OpenAI {"type": "function", "function": {"name", "description", "parameters"}} or flat {"type": "function", '
    '"name", "parameters"}, Anthropic {"name", "input_schema"}, MCP {"name", "inputSchema"}, '
    'plain {"name", "description", "parameters"}'
)


class Tier(IntEnum):
    """What a tool may do, cumulative: look around, read, change."""

    CRAWL = 0
    WALK = 1
    RUN = 2


def _no_parameters() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as a model may know it.

    Attributes:
        name: what the model calls it; at most `MAX_NAME` characters, none of which is white space or markup.
        description: for the model.
        parameters: JSON Schema of the arguments object; not to be changed afterwards.
        tier: the tier that a session must have reached to run it.
        requires_confirmation: whether somebody must agree to each call.
        server: the MCP server it lives on, or "".
        annotations: hints of its origin, such as MCP's `destructiveHint` or OpenAI's `strict`; never trusted.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=_no_parameters)
    tier: Tier = Tier.CRAWL
    requires_confirmation: bool = False
    server: str = ""
    annotations: dict[str, Any] = field(default_factory=dict)
    _shape: Shape | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the name."""
        if not isinstance(self.name, str) or not self.name:
            raise DefinitionError(f"a tool's name must be text that is not empty, not {self.name!r:.80}")
        if len(self.name) > MAX_NAME:
            raise DefinitionError(f"the name has {len(self.name)} characters, at most {MAX_NAME} are allowed")
        if found := _NOT_IN_NAMES.search(self.name):
            raise DefinitionError(f"the name must not contain {found.group()!r}", tool=self.name, pointer="/name")

    @property
    def shape(self) -> Shape:
        """The view on `parameters` that reads values; made once."""
        shape = self._shape
        if shape is None:
            shape = Shape.of(self.parameters)
            object.__setattr__(self, "_shape", shape)
        return shape


class Tool(Generic[P, R]):
    """A function with the definition that makes it a tool; calling it calls the function.

    Attributes:
        function: the function itself.
        definition: what models are told.
    """

    def __init__(self, function: Callable[P, R], definition: ToolDefinition) -> None:
        """Use the decorator `tool`."""
        self.function = function
        self.definition = definition
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as if it had not been decorated."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        """The tool's name."""
        return f"<Tool {self.definition.name}>"


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str = ...,
    description: str = ...,
    tier: Tier = ...,
    requires_confirmation: bool = ...,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    tier: Tier = Tier.CRAWL,
    requires_confirmation: bool = False,
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool of a function: `@tool`, or `@tool(name=..., ...)`.

    Args:
        function: the function, plain or async; its signature and docstring say the rest.
        name: the tool's name, if not the function's.
        description: what models are told, if not the docstring.
        tier: the tier that a session must have reached.
        requires_confirmation: whether somebody must agree to each call.

    Raises:
        DefinitionError: the function's signature cannot be called by a model, or the name cannot be used.
    """

    def decorate(function: Callable[P, R]) -> Tool[P, R]:
        definition = _from_function(function, name)
        return Tool(
            function,
            replace(
                definition,
                description=description or definition.description,
                tier=tier,
                requires_confirmation=requires_confirmation,
            ),
        )

    return decorate if function is None else decorate(function)


def as_definition(obj: Any, *, strict: bool = False) -> ToolDefinition:
    """The definition that an object stands for.

    Args:
        obj: a `ToolDefinition`, a `Tool`, a function, a pydantic model class, a dict as OpenAI, Anthropic or MCP
            write it (told apart by shape), or an object whose `model_dump` gives such a dict.
        strict: check the parameters schema, which running a tool needs. Without it any schema is taken, however odd:
            that is enough to read and costs nothing.

    Raises:
        DefinitionError: it is none of these, its name cannot be used, or (strict) its schema cannot.
    """
    definition = _read(obj)
    if strict:
        check_schema(definition.parameters, definition.name)
    return definition


def definitions(tools: Iterable[Any] | Mapping[str, Any] | None, *, strict: bool = False) -> dict[str, ToolDefinition]:
    """Tools by name, in order.

    Args:
        tools: any number of what `as_definition` takes; one alone; or a mapping from the name to be used.
        strict: see `as_definition`; also refuses two different tools of the same name, of which the first wins
            otherwise.

    Raises:
        DefinitionError: see `as_definition`.
    """
    known: dict[str, ToolDefinition] = {}
    for definition in [as_definition(one, strict=strict) for one in _each(tools)]:
        earlier = known.setdefault(definition.name, definition)
        if strict and earlier is not definition and earlier != definition:
            raise DefinitionError("two different tools have this name", tool=definition.name)
    return known


def _each(tools: Iterable[Any] | Mapping[str, Any] | None) -> Iterable[Any]:
    match tools:
        case None:
            return ()
        case ToolDefinition() | Tool():
            return (tools,)
        case Mapping():
            if _looks_like_a_tool(tools):
                return (tools,)
            return [_named(name, obj) for name, obj in tools.items()]
        case type():
            return (tools,)
        case Iterable() if not callable(getattr(tools, "model_dump", None)):
            return tools
        case _:  # a function, or an object that stands for one tool or for none
            return (tools,)


def _named(name: str, obj: Any) -> Any:
    """A tool under the name that a mapping gives it."""
    if isinstance(obj, Mapping) and not _looks_like_a_tool(obj):
        return {**obj, "name": name}
    definition = _read(obj)
    return definition if definition.name == name else replace(definition, name=name)


def _looks_like_a_tool(obj: Mapping[Any, Any]) -> bool:
    return isinstance(obj.get("name"), str) or (
        obj.get("type") == "function" and isinstance(obj.get("function"), Mapping)
    )


def _read(obj: Any) -> ToolDefinition:
    match obj:
        case ToolDefinition():
            return obj
        case Tool():
            return obj.definition
        case Mapping():
            return _from_mapping(obj)
        case type() if issubclass(obj, BaseModel):
            description, parameters = schema_from_model(obj)
            return ToolDefinition(obj.__name__, description, parameters)
    if callable(dump := getattr(obj, "model_dump", None)) and not isinstance(obj, type):
        dumped = dump(by_alias=True)
        if isinstance(dumped, Mapping):
            return _from_mapping(dumped)
    elif callable(obj):
        return _from_function(obj, "")
    raise DefinitionError(f"{type(obj).__name__} is no tool; known are functions, pydantic models and dicts: {_SHAPES}")


def _from_function(function: Callable[..., Any], name: str) -> ToolDefinition:
    name = name or getattr(function, "__name__", "")
    if not name:
        raise DefinitionError(f"{type(function).__name__} has no name of its own; use tool(name=...)")
    description, parameters = schema_from_function(function, name)
    return ToolDefinition(name, description, parameters)


def _from_mapping(obj: Mapping[Any, Any]) -> ToolDefinition:
    inner = obj.get("function")
    source: Mapping[Any, Any] = inner if isinstance(inner, Mapping) else obj
    name = source.get("name")
    if not isinstance(name, str):
        keys = ", ".join(str(key) for key in list(obj)[:10])
        raise DefinitionError(f"a dict with the keys {keys or '(none)'} is no tool; known shapes are {_SHAPES}")
    schemas = (source[key] for key in ("parameters", "input_schema", "inputSchema") if source.get(key) is not None)
    parameters = next(schemas, None)
    description, hints = source.get("description"), source.get("annotations")
    annotations = dict(hints) if isinstance(hints, Mapping) else {}
    if isinstance(source.get("strict"), bool):
        annotations["strict"] = source["strict"]
    return ToolDefinition(
        name,
        description if isinstance(description, str) else "",
        dict(parameters) if isinstance(parameters, Mapping) and parameters else _no_parameters(),
        annotations=annotations,
    )

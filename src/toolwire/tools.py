"""Tool definitions: written by hand, made of a function, or read from a provider's dict."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from types import NoneType
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, overload

from pydantic import BaseModel
from typing_extensions import Unpack

from toolwire._surface import check_number, check_type, wrong_type
from toolwire.errors import DefinitionError
from toolwire.schema.shape import Shape
from toolwire.schema.signatures import choose_properties, schema_from_function, schema_from_model
from toolwire.schema.validation import check_schema
from toolwire.text.json_reading import read_json
from toolwire.text.suggest import check_options

P = ParamSpec("P")
R = TypeVar("R")

MAX_NAME = 256
"""Maximum length of a tool's name, in characters."""

_NOT_IN_NAMES = re.compile(r"""[\s\x00-\x1f\x7f-\x9f\ud800-\udfff<>{}()\[\]"'=,]""")
_SHAPES = (
    'OpenAI {"type": "function", "function": {"name", "description", "parameters"}} or flat {"type": "function", '
    '"name", "parameters"}, Anthropic {"name", "input_schema"}, MCP {"name", "inputSchema"}, '
    'plain {"name", "description", "parameters"}'
)
TIER = "a Tier, such as Tier.RUN"


class Tier(IntEnum):
    """Permission tiers, each of which includes those before it: look around, read, change."""

    CRAWL = 0
    WALK = 1
    RUN = 2


Preview = Callable[[dict[str, Any]], str]
"""Describes, in words or as a diff, what a call with these arguments would do; raises if it cannot. Changes nothing."""
Check = Callable[[dict[str, Any]], str | None]
"""Returns, for the model, what is wrong with arguments that the schema admits; None if nothing is."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """Limits of a tool that runs in a process of its own.

    Attributes:
        seconds: wall time.
        cpu_seconds: processor time, in whole seconds.
        memory: address space, in bytes.
        file_size: maximum size of a file that it writes, in bytes.
        open_files: maximum number of files and sockets that are open at a time.
        processes: maximum number of processes of its user, other programs included; None for no limit. Root is not
            limited.
    """

    seconds: float = 30.0
    cpu_seconds: int = 20
    memory: int = 1 << 30
    file_size: int = 64 << 20
    open_files: int = 64
    processes: int | None = None

    def __post_init__(self) -> None:
        """Check that the limits are numbers.

        Raises:
            TypeError, ValueError: one is not, or is negative; see `check_number`.
        """
        check_number("seconds", self.seconds, "a number of seconds")
        check_number("cpu_seconds", self.cpu_seconds, "a whole number of seconds", whole=True)
        check_number("memory", self.memory, "a number of bytes", whole=True)
        check_number("file_size", self.file_size, "a number of bytes", whole=True)
        check_number("open_files", self.open_files, "a number of files", whole=True)
        check_number("processes", self.processes, "a number of processes", whole=True, optional=True)


def _no_parameters() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as models see it.

    Attributes:
        name: the name by which models call it; at most 256 characters, without white space and markup.
        description: for the model.
        parameters: JSON Schema of the arguments object; not to be changed afterwards.
        tier: the tier that a session must have reached to run it.
        requires_confirmation: whether each call needs an approval.
        server: the MCP server that it belongs to, or "".
        annotations: hints of its origin, such as MCP's `destructiveHint` or OpenAI's `strict`; never trusted.
        untrusted: whether its results may contain untrusted content: files, web pages, answers of servers.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=_no_parameters)
    tier: Tier = Tier.CRAWL
    requires_confirmation: bool = False
    server: str = ""
    annotations: dict[str, Any] = field(default_factory=dict)
    untrusted: bool = False
    _shape: Shape | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the name, and the types that are easily mistaken.

        Raises:
            DefinitionError: the name cannot be used.
            TypeError: a value is of another type.
        """
        check_type("parameters", self.parameters, dict, "a dict, the JSON Schema of the arguments")
        check_type("tier", self.tier, Tier, TIER)
        if not isinstance(self.name, str) or not self.name:
            raise DefinitionError(f"a tool's name must be text that is not empty, not {self.name!r:.80}")
        if len(self.name) > MAX_NAME:
            raise DefinitionError(f"the name has {len(self.name)} characters, at most {MAX_NAME} are allowed")
        if forbidden := _NOT_IN_NAMES.search(self.name):
            raise DefinitionError(f"the name must not contain {forbidden.group()!r}", tool=self.name, pointer="/name")

    @property
    def shape(self) -> Shape:
        """The view on `parameters` that reads values; cached."""
        shape = self._shape
        if shape is None:
            shape = Shape.of(self.parameters)
            object.__setattr__(self, "_shape", shape)
        return shape

    def fit(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Coerce arguments to this tool's schema; return the same object if nothing changed.

        A null for an optional parameter whose schema excludes null is dropped: in strict mode, where every parameter
        must be present, models use null to say "not given".
        """
        if None in arguments.values():
            present = {name: value for name, value in arguments.items() if value is not None or self._takes_null(name)}
            arguments = present if len(present) < len(arguments) else arguments
        coerced: dict[str, Any] = self.shape.coerce(arguments, _json_value)
        return coerced

    def _takes_null(self, parameter: str) -> bool:
        shape = self.shape.property(parameter)
        return parameter in self.shape.required or not shape.typed or "null" in shape.kinds


def _json_value(text: str) -> Any:
    return read_json(text)[0]


class BehaviorOptions(TypedDict, total=False):
    """Options of a tool that do not describe it to models; None, like an option left out, changes nothing.

    Attributes:
        tier: the tier that a session must have reached; by default CRAWL, so that the tool runs unasked.
        destructive: whether it changes something that cannot be restored: the tier is RUN and each call needs an
            approval, unless `tier` or `requires_confirmation` says otherwise.
        requires_confirmation: whether each call needs an approval.
        untrusted: whether its results may contain untrusted content.
        preview: shows, to the person who is asked to approve it, what a call would do.
        check: looks at arguments that the schema admits; its message goes to the model, and the call does not run.
        isolated: run in a process of its own, with these limits (True: the default ones); another process must be able
            to import the function by its module and name.
        ends_turn: an agent loop stops after the tool has run, for the user to answer.
        gives_answer: the tool ends the turn, and its result is the model's own answer: text in the conversation.
        idempotent: whether running it twice with the same arguments does no more than running it once; then a call
            that was interrupted may simply run again.
        timeout: maximum number of seconds of a call, in place of the executor's.
    """

    tier: Tier | None
    destructive: bool | None
    requires_confirmation: bool | None
    untrusted: bool | None
    preview: Preview | None
    check: Check | None
    isolated: bool | Isolation | None
    ends_turn: bool | None
    gives_answer: bool | None
    idempotent: bool | None
    timeout: float | None


class ToolOptions(BehaviorOptions, total=False):
    """Options of `tool` and `Tool.replace`: those of `BehaviorOptions`, and those of the definition.

    Attributes:
        name: the tool's name; by default the function's.
        description: the description for models; by default the docstring.
        parameters: names of the parameters that models see, all required ones among them; the others keep their
            defaults.
        annotations: hints for APIs that know them, such as `{"strict": True}`; added to those that the tool has.
    """

    name: str
    description: str
    parameters: Collection[str]
    annotations: dict[str, Any]


_OWN_OPTIONS = ("preview", "check", "ends_turn", "gives_answer", "idempotent", "timeout")
_DEFINITION_OPTIONS = ("tier", "requires_confirmation", "untrusted")


@dataclass(frozen=True, slots=True)
class ToolBehavior:
    """Settings for running a tool; models do not see them.

    Attributes:
        preview: shows beforehand what a call would do.
        check: looks at arguments that the schema admits.
        isolation: the limits of a process of its own; None to run in this one.
        ends_turn: an agent loop stops after the tool has run.
        gives_answer: the result is the model's own answer, so a conversation has it as text; such a tool ends the turn.
        idempotent: an interrupted call may run again.
        timeout: maximum number of seconds of a call; None for the executor's.
    """

    preview: Preview | None = None
    check: Check | None = None
    isolation: Isolation | None = None
    ends_turn: bool = False
    gives_answer: bool = False
    idempotent: bool = False
    timeout: float | None = None

    def replace(self, options: BehaviorOptions) -> ToolBehavior:
        """Return a behavior with these options; others stay as they are.

        Raises:
            DefinitionError: the tool would give the answer, and not end the turn.
            TypeError: an option has another type.
        """
        changes: dict[str, Any] = {name: value for name in _OWN_OPTIONS if (value := options.get(name)) is not None}
        if changes.get("gives_answer", self.gives_answer) and not changes.setdefault("ends_turn", True):
            raise DefinitionError("a tool that gives the answer ends the turn: leave out ends_turn=False")
        for name in ("preview", "check"):
            if not callable(changes.get(name, callable)):
                raise wrong_type(name, changes[name], "a function of the arguments")
        check_type("timeout", options.get("timeout"), (int, float, NoneType), "a number of seconds or None")
        isolated = options.get("isolated")
        check_type("isolated", isolated, (bool, Isolation, NoneType), "a bool or an Isolation")
        if isolated is not None:
            changes["isolation"] = isolated if isinstance(isolated, Isolation) else Isolation() if isolated else None
        return replace(self, **changes) if changes else self


DEFAULT_BEHAVIOR = ToolBehavior()


def definition_changes(options: BehaviorOptions) -> dict[str, Any]:
    """Return the options that are fields of a `ToolDefinition`.

    Raises:
        TypeError: the tier is not a `Tier`.
    """
    check_type("tier", options.get("tier"), (Tier, NoneType), TIER)
    changes: dict[str, Any] = {"tier": Tier.RUN, "requires_confirmation": True} if options.get("destructive") else {}
    return changes | {name: value for name in _DEFINITION_OPTIONS if (value := options.get(name)) is not None}


class Tool(Generic[P, R]):
    """A function with the definition that makes it a tool; calling it calls the function.

    Attributes:
        function: the function itself.
        definition: the definition that models see.
        behavior: how it is run.
    """

    def __init__(
        self, function: Callable[P, R], definition: ToolDefinition, behavior: ToolBehavior = DEFAULT_BEHAVIOR
    ) -> None:
        """Use the decorator `tool`."""
        self.function = function
        self.definition = definition
        self.behavior = behavior
        functools.update_wrapper(self, function)

    def replace(self, **options: Unpack[ToolOptions]) -> Tool[P, R]:
        """Return the same tool with other options.

        Raises:
            DefinitionError: the name cannot be used, or the parameters cannot be chosen so.
            TypeError: an option is unknown.
        """
        check_options("replace", options, ToolOptions.__annotations__)
        changes = definition_changes(options)
        changes |= {name: text for name in ("name", "description") if (text := options.get(name))}
        if (names := options.get("parameters")) is not None:
            changes["parameters"] = choose_properties(self.definition.parameters, names, tool=self.definition.name)
        if annotations := options.get("annotations"):
            changes["annotations"] = {**self.definition.annotations, **annotations}
        return Tool(self.function, replace(self.definition, **changes), self.behavior.replace(options))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as if it had not been decorated."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        """Return the tool's name."""
        return f"<Tool {self.definition.name}>"


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None, /, **options: Unpack[ToolOptions]
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool of a function: `@tool`, or `@tool(name=..., ...)`.

    Args:
        function: a plain or async function; its signature and docstring give the definition.
        options: `name` and `description`, by default the function's name and docstring; `tier`, which a session must
            have reached, by default CRAWL; `destructive`, whether it changes something that cannot be restored (each
            call then needs an approval); `requires_confirmation`, whether each call needs an approval; `timeout`, the
            maximum number of seconds of a call; `untrusted`, whether results may contain untrusted content; `preview`,
            a function of the arguments that shows what a call would do; `check`, a function that returns what is wrong
            with the arguments; `isolated`, True or an `Isolation`, to run in another process; `ends_turn`, whether an
            agent stops after the call; `gives_answer`, whether its result is then the model's own answer; `idempotent`,
            whether an interrupted call may run again; `parameters`, the names of those that models see; `annotations`,
            hints for APIs that know them, such as `{"strict": True}`.

    Raises:
        DefinitionError: a model cannot call the function, the name cannot be used, or options contradict each other.
        TypeError: an option is unknown.
    """
    check_options("tool", options, ToolOptions.__annotations__)
    check_type("name", options.get("name", ""), str, "text")
    check_type("annotations", options.get("annotations", {}), dict, 'a dict, such as {"strict": True}')
    definition_changes(options)
    if function is not None and not callable(function):
        raise wrong_type("function", function, "a function; a name is written @tool(name=...)")

    def decorate(function: Callable[P, R]) -> Tool[P, R]:
        return Tool(function, _from_function(function, options.get("name", ""))).replace(**options)

    return decorate if function is None else decorate(function)


def as_definition(obj: Any, *, name: str = "", strict: bool = False) -> ToolDefinition:
    """Return the definition of a tool in any shape.

    Args:
        obj: a `ToolDefinition`, a `Tool`, a function, a pydantic model class, a dict as OpenAI, Anthropic or MCP
            write it (told apart by shape), or an object whose `model_dump` returns such a dict.
        name: the name to use, if not its own.
        strict: check the schema of the parameters, which running a tool needs. Reading calls does not need the check,
            and works with any schema that is an object.

    Raises:
        DefinitionError: the shape is unknown, the name cannot be used, the schema is not a dict, or (strict) the schema
            cannot be used.
    """
    definition = _named(name, obj) if name else _read(obj)
    if strict:
        check_schema(definition.parameters, definition.name)
    return definition


def definitions(tools: Iterable[Any] | Mapping[str, Any] | None, *, strict: bool = False) -> dict[str, ToolDefinition]:
    """Return tools by name, in order.

    Args:
        tools: any number of tools in shapes that `as_definition` takes; one alone; or a mapping from names to tools.
        strict: see `as_definition`; also refuse two different tools of one name, of which the first is used otherwise.

    Raises:
        DefinitionError: see `as_definition`.
    """
    by_name: dict[str, ToolDefinition] = {}
    for candidate in _each(tools):
        ready = type(candidate) is ToolDefinition and not strict
        definition = candidate if ready else as_definition(candidate, strict=strict)
        earlier = by_name.setdefault(definition.name, definition)
        if strict and earlier is not definition and earlier != definition:
            raise DefinitionError("two different tools have this name", tool=definition.name)
    return by_name


def each_definition(
    tools: Iterable[Any] | Mapping[str, Any] | None, *, strict: bool = False
) -> Iterator[ToolDefinition | DefinitionError]:
    """Yield the definition of each tool, or the error of one that cannot be used; see `definitions`."""
    named = tools.items() if isinstance(tools, Mapping) and not _looks_like_a_tool(tools) else None
    for name, tool in named or (("", tool) for tool in _each(tools)):
        try:
            yield as_definition(tool, name=name, strict=strict)
        except DefinitionError as error:
            yield error


def _each(tools: Iterable[Any] | Mapping[str, Any] | None) -> Iterable[Any]:
    match tools:
        case list() | tuple():
            return tools
        case None:
            return ()
        case ToolDefinition() | Tool():
            return (tools,)
        case Mapping():
            if _looks_like_a_tool(tools):
                return (tools,)
            return [as_definition(obj, name=name) for name, obj in tools.items()]
        case type():
            return (tools,)
        case Iterable() if not callable(getattr(tools, "model_dump", None)):
            return tools
        case _:  # a function, or an object that stands for one tool or for none
            return (tools,)


def _named(name: str, obj: Any) -> ToolDefinition:
    """Return a tool under another name, or one that has no name of its own."""
    if isinstance(obj, Mapping) and not _looks_like_a_tool(obj):
        return _from_mapping({**obj, "name": name})
    if callable(obj) and not isinstance(obj, Tool | type) and not callable(getattr(obj, "model_dump", None)):
        return _from_function(obj, name)
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
    raise DefinitionError(
        f"{type(obj).__name__} is not a tool; known are functions, pydantic models and dicts: {_SHAPES}"
    )


_LAMBDA = "<lambda>"


def _from_function(function: Callable[..., Any], name: str) -> ToolDefinition:
    name = name or getattr(function, "__name__", "")
    if not name or name == _LAMBDA:
        shown = "a lambda" if name else type(function).__name__
        raise DefinitionError(f"{shown} has no name of its own; use tool(name=...)")
    description, parameters = schema_from_function(function, name)
    return ToolDefinition(name, description, parameters)


def _from_mapping(obj: Mapping[Any, Any]) -> ToolDefinition:
    inner = obj.get("function")
    source: Mapping[Any, Any] = inner if isinstance(inner, Mapping) else obj
    name = source.get("name")
    if not isinstance(name, str):
        keys = ", ".join(str(key) for key in list(obj)[:10])
        raise DefinitionError(f"a dict with the keys {keys or '(none)'} is no tool; known shapes are {_SHAPES}")
    schemas = (
        (key, source[key]) for key in ("parameters", "input_schema", "inputSchema") if source.get(key) is not None
    )
    key, parameters = next(schemas, ("", None))
    if parameters and not isinstance(parameters, Mapping):  # PHP writes an empty object as []
        kind = type(parameters).__name__
        raise DefinitionError(f"the parameters schema must be a dict, not {kind}", tool=name, pointer=f"/{key}")
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

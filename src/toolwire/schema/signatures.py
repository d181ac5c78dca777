"""Make the JSON Schema of a Python function or pydantic model, from its signature and docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import docstring_parser
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import JsonSchemaMode

from toolwire._surface import check_items
from toolwire.errors import DefinitionError
from toolwire.schema.pointer import json_pointer, resolve
from toolwire.schema.validation import subschemas
from toolwire.text.suggest import closest, did_you_mean

_MODE: JsonSchemaMode = "validation"
_REFUSED: dict[Any, str] = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only; a model passes arguments by name",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of arguments; a model needs their names",
    inspect.Parameter.VAR_KEYWORD: "takes any keyword; a model needs to know which",
}


_CONTEXT_NAME = re.compile(r"(?:\w+\.)*ToolContext\b")
_CONTEXT_ARGUMENT = re.compile(r"ToolContext\[(.+)\]\s*$", re.DOTALL)
_ADMITS_NONE = re.compile(r"^(?:\w+\.)*(?:Any|object)$|\b(?:None|Optional)\b")

ArgumentConverter = Callable[[dict[str, Any]], dict[str, Any]]
"""A function that converts JSON arguments to those that a signature asks for; raises ValueError if it cannot."""


def schema_from_function(function: Callable[..., Any], name: str = "") -> tuple[str, dict[str, Any]]:
    """Return the description and the parameters schema of a function.

    Types come from the annotations, anything that pydantic understands; an unannotated parameter takes any value. A
    parameter that the executor fills, a `ToolContext`, is left out. Descriptions come from the docstring (Google, NumPy
    or ReST style), unless `Annotated[..., Field(...)]` has one.

    Args:
        function: the function that the tool runs; may be a bound method.
        name: the tool's name, for the message.

    Raises:
        DefinitionError: a parameter cannot be passed by name, or a type has no JSON Schema.
    """
    name = name or getattr(function, "__name__", "")
    if not (inspect.isroutine(function) or isinstance(function, partial | type)):
        function = type(function).__call__.__get__(function)  # an object with `__call__`
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"its signature cannot be read: {error}", tool=name) from None
    for position, (parameter, spec) in enumerate(signature.parameters.items()):
        if reason := _REFUSED.get(spec.kind):
            raise DefinitionError(f"the parameter {parameter!r} {reason}", tool=name)
        if position == 0 and parameter in ("self", "cls") and spec.annotation is spec.empty:
            raise DefinitionError(
                "is a method; make a tool of the bound method, object.method, or use tools_from(object)", tool=name
            )
    context = context_parameter(function)
    # The executor fills this parameter, and its type may have no JSON Schema.
    if context:
        function = _without_parameter(function, context, signature)
        signature = inspect.signature(function)
    try:
        schema = _adapter(_as_function(function)).json_schema(mode=_MODE)
    except (PydanticUserError, NameError, TypeError) as error:
        raise DefinitionError(f"no JSON Schema for its signature: {_reason(error)}{_hint(error)}", tool=name) from None
    if unknown := set(schema.get("properties", {})) ^ set(signature.parameters):
        raise DefinitionError(f"a parameter's alias differs from its name: {sorted(unknown)}", tool=name)
    description, parameters = _read_docstring(inspect.getdoc(function) or "")
    schema = _tidy(schema)
    for parameter, text in parameters.items():
        if parameter in schema["properties"]:
            schema["properties"][parameter].setdefault("description", text)
    return description, schema


def choose_properties(schema: Mapping[str, Any], names: Collection[str], *, tool: str) -> dict[str, Any]:
    """Return an object's schema with some of its properties alone.

    Args:
        schema: the schema.
        names: names of the properties.
        tool: name of the tool whose parameters they are, for the message.

    Raises:
        DefinitionError: there is no property of one of these names, or a required one is missing.
        TypeError: `names` is one text.
    """
    check_items("parameters", names, str, "a list of names of parameters")
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name in names:
        if name not in properties:
            raise DefinitionError(
                f"there is no parameter {name!r:.60}{did_you_mean(closest(name, properties))}", tool=tool
            )
    for name in schema.get("required", ()):
        if name not in names:
            raise DefinitionError(f"the parameter {name!r:.60} is required, so models have to see it", tool=tool)
    return {**schema, "properties": {name: inner for name, inner in properties.items() if name in names}}


def schema_from_model(model: type[BaseModel]) -> tuple[str, dict[str, Any]]:
    """Return the description (its docstring) and the JSON Schema of a pydantic model.

    Raises:
        DefinitionError: a field has no JSON Schema.
    """
    try:
        schema = model.model_json_schema(mode=_MODE)
    except PydanticUserError as error:
        raise DefinitionError(f"no JSON Schema for its fields: {_reason(error)}", tool=model.__name__) from None
    if "$ref" in schema:  # a recursive model
        schema = {**resolve(schema, schema["$ref"]), "$defs": schema["$defs"]}
    schema = _tidy(schema)
    description, fields = _read_docstring(schema.pop("description", ""))
    for field, text in fields.items():
        if field in schema["properties"]:
            schema["properties"][field].setdefault("description", text)
    return description, schema


def schema_from_type(annotation: Any) -> tuple[str, dict[str, Any]]:
    """Return the description (a class's docstring) and the JSON Schema of any type that pydantic understands.

    Raises:
        DefinitionError: it has no JSON Schema.
    """
    try:
        schema = _adapter(annotation).json_schema(mode=_MODE)
    except (PydanticUserError, NameError, TypeError) as error:
        raise DefinitionError(f"no JSON Schema for {annotation!r:.80}: {_reason(error)}") from None
    if set(schema) == {"$ref", "$defs"}:  # a recursive model
        schema = {**resolve(schema, schema["$ref"]), "$defs": schema["$defs"]}
    for _, node in subschemas(schema):
        if isinstance(node.get("title"), str):
            del node["title"]
        node.pop("discriminator", None)  # a hint that JSON Schema does not have
    description, fields = _read_docstring(schema.pop("description", ""))
    for field, text in fields.items():
        if field in schema.get("properties", {}):
            schema["properties"][field].setdefault("description", text)
    return description, schema


def argument_converter(function: Callable[..., Any]) -> ArgumentConverter | None:
    """Return the converter of JSON arguments to those that a function's annotations ask for: models, dates, enums.

    Return None if all of them ask for JSON values, or if the annotations cannot be read.
    """
    try:
        hints = get_type_hints(_annotated(function), include_extras=True)
    except (NameError, TypeError, AttributeError):
        return None
    hints.pop("return", None)
    hints.pop(context_parameter(function), None)
    adapters = {name: _adapter(hint) for name, hint in hints.items() if not _is_json(hint)}
    if not adapters:
        return None

    def convert(arguments: dict[str, Any]) -> dict[str, Any]:
        converted = dict(arguments)
        for name, adapter in adapters.items():
            if name in converted:
                try:
                    converted[name] = adapter.validate_python(converted[name])
                except ValidationError as error:
                    first = error.errors(include_url=False)[0]
                    pointer = json_pointer((name, *first["loc"]))
                    raise ValueError(f"{pointer}: {first['msg']}") from error
        return converted

    return convert


def context_parameter(function: Callable[..., Any]) -> str:
    """Return the name of the parameter that the executor fills with the context of a call; "" if there is none.

    Raises:
        DefinitionError: several parameters ask for it.
    """
    names = [name for name, hint in _hints(function).items() if name != "return" and _is_context(hint)]
    if len(names) > 1:
        raise DefinitionError(f"several parameters ask for the context of the call: {', '.join(names)}")
    return names[0] if names else ""


@dataclass(frozen=True, slots=True)
class DependencyType:
    """The type that a function wants its dependencies to have.

    Attributes:
        name: the type, as the function names it.
        optional: whether the function can do without dependencies.
        annotation: the type; Any if it is not known, because its name cannot be resolved.
    """

    name: str
    optional: bool
    annotation: Any = Any

    def admits(self, value: object) -> bool:
        """Return whether a value can be of the type; True where that cannot be seen, as for most protocols."""
        return _admits(self.annotation, value)


def dependency_type(function: Callable[..., Any]) -> DependencyType | None:
    """Return the type that a function wants its dependencies to have; None if it names none.

    A function names the type as the argument of its context, such as `ToolContext[Database]`.

    Raises:
        DefinitionError: several parameters ask for the context of the call.
    """
    parameter = context_parameter(function)
    hint = _hints(function)[parameter] if parameter else None
    if isinstance(hint, str):
        argument = _CONTEXT_ARGUMENT.search(hint)
        return None if argument is None else DependencyType(argument[1], bool(_ADMITS_NONE.search(argument[1])))
    wanted_type = next(iter(get_args(hint)), Any)
    if isinstance(wanted_type, TypeVar) or wanted_type in (Any, object):
        return None
    is_class = isinstance(wanted_type, type) and not get_args(wanted_type)
    return DependencyType(
        wanted_type.__name__ if is_class else str(wanted_type), _admits(wanted_type, None), wanted_type
    )


def _admits(hint: Any, value: object) -> bool:
    if hint in (Any, object):
        return True
    if hint in (None, NoneType):
        return value is None
    if get_origin(hint) in (Union, UnionType):
        return any(_admits(member, value) for member in get_args(hint))
    if hint is float and isinstance(value, int):  # type checkers accept an int wherever a float is asked for
        return True
    try:
        return isinstance(value, get_origin(hint) or hint)
    except TypeError:  # a protocol or a TypedDict, for example, has no instances that can be recognized
        return value is not None


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    annotated = _annotated(function)
    try:
        return get_type_hints(annotated)
    except (NameError, TypeError, AttributeError):
        # One annotation that cannot be resolved, such as a class inside a function, hides all others.
        return dict(getattr(annotated, "__annotations__", {}))


def _is_context(hint: Any) -> bool:
    if isinstance(hint, str):
        return _CONTEXT_NAME.match(hint) is not None
    return getattr(get_origin(hint) or hint, "filled_by_executor", False) is True


def _annotated(function: Any) -> Any:
    """Return the function that has the annotations of a callable."""
    if isinstance(function, partial):
        return function.func
    if isinstance(function, type):
        return vars(function).get("__init__")
    return function if inspect.isroutine(function) else type(function).__call__


def _without_parameter(function: Callable[..., Any], name: str, signature: inspect.Signature) -> Callable[..., Any]:
    """Wrap a function so that it does not show one of its parameters; pydantic reads the signature and annotations."""

    @wraps(function)
    def reduced(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    shown_parameters = [spec for parameter, spec in signature.parameters.items() if parameter != name]
    reduced.__signature__ = signature.replace(parameters=shown_parameters)  # type: ignore[attr-defined]
    reduced.__annotations__ = {key: hint for key, hint in reduced.__annotations__.items() if key != name}
    return reduced


def _is_json(hint: Any) -> bool:
    """Return whether an annotation asks for JSON values, which need no conversion."""
    if hint in (str, int, float, bool, None, NoneType, Any, object, list, dict):
        return True
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return all(isinstance(item, str | int | bool | NoneType) for item in inner)
    if origin is Annotated:
        return _is_json(inner[0]) and all(isinstance(item, str) for item in inner[1:])
    if origin in (Union, UnionType, list, dict):
        return all(map(_is_json, inner))
    return False


def _as_function(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a bound method in a function: pydantic resolves the names in annotations of functions, not of methods."""
    if not inspect.ismethod(method):
        return method

    @wraps(method)
    def function(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return function


def _adapter(function: Any) -> TypeAdapter[Any]:
    """Return the type adapter of a type or function; pydantic's own annotations do not admit functions."""
    return TypeAdapter(function)


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema as a tool's parameters: with type and properties, without the titles that repeat names."""
    for _, node in subschemas(schema):
        if isinstance(node.get("title"), str):
            del node["title"]
    return {"type": "object", "properties": {}, **schema}


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the description, and the description of each parameter."""
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return text, {}
    parameters = {item.arg_name: item.description for item in parsed.params if item.description}
    paragraphs = [part.strip() for part in (parsed.short_description, parsed.long_description) if part]
    return "\n\n".join(paragraphs), parameters


def _reason(error: Exception) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if not isinstance(error, PydanticSchemaGenerationError):
        return line
    # The advice of pydantic is about its own models, where such a type would still have no JSON Schema.
    unusable = line.partition(". Set ")[0].rpartition("schema for ")[2]
    return f"{unusable} has no form in JSON; use a pydantic model, a dataclass, a TypedDict, or types such as list[str]"


def _hint(error: Exception) -> str:
    is_unusable = isinstance(error, PydanticSchemaGenerationError)
    return "; what the program gives to a tool is `ToolContext.deps`" if is_unusable else ""

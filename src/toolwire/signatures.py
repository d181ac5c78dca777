"""The JSON Schema of a Python function or pydantic model: types from the signature, descriptions from the docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import docstring_parser
from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import JsonSchemaMode

from toolwire.errors import DefinitionError
from toolwire.schema import subschemas
from toolwire.shapes import resolve

_MODE: JsonSchemaMode = "validation"
_REFUSED: dict[Any, str] = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only; a model passes arguments by name",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of arguments; a model needs their names",
    inspect.Parameter.VAR_KEYWORD: "takes any keyword; a model needs to know which",
}


def schema_from_function(function: Callable[..., Any], name: str = "") -> tuple[str, dict[str, Any]]:
    """The description and the parameters schema of a function.

    Types come from the annotations, anything that pydantic understands; an unannotated parameter takes any value.
    Descriptions come from the docstring (Google, NumPy or ReST style), unless `Annotated[..., Field(...)]` has one.

    Args:
        function: what the tool runs; a bound method is fine.
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
        raise DefinitionError(f"has no signature to read: {error}", tool=name) from None
    for position, (parameter, spec) in enumerate(signature.parameters.items()):
        if reason := _REFUSED.get(spec.kind):
            raise DefinitionError(f"the parameter {parameter!r} {reason}", tool=name)
        if position == 0 and parameter in ("self", "cls") and spec.annotation is spec.empty:
            raise DefinitionError("is a method; make a tool of the bound method, object.method", tool=name)
    try:
        schema = _adapter(function).json_schema(mode=_MODE)
    except (PydanticUserError, NameError, TypeError) as error:
        raise DefinitionError(f"no JSON Schema for its signature: {_first_line(error)}", tool=name) from None
    if unknown := set(schema.get("properties", {})) ^ set(signature.parameters):
        raise DefinitionError(f"a parameter's alias differs from its name: {sorted(unknown)}", tool=name)
    description, parameters = _read_docstring(inspect.getdoc(function) or "")
    schema = _tidy(schema)
    for parameter, text in parameters.items():
        if parameter in schema["properties"]:
            schema["properties"][parameter].setdefault("description", text)
    return description, schema


def schema_from_model(model: type[BaseModel]) -> tuple[str, dict[str, Any]]:
    """The description (its docstring) and the JSON Schema of a pydantic model.

    Raises:
        DefinitionError: a field has no JSON Schema.
    """
    try:
        schema = model.model_json_schema(mode=_MODE)
    except PydanticUserError as error:
        raise DefinitionError(f"no JSON Schema for its fields: {_first_line(error)}", tool=model.__name__) from None
    if "$ref" in schema:  # a recursive model
        schema = {**resolve(schema, schema["$ref"]), "$defs": schema["$defs"]}
    schema = _tidy(schema)
    description, fields = _read_docstring(schema.pop("description", ""))
    for field, text in fields.items():
        if field in schema["properties"]:
            schema["properties"][field].setdefault("description", text)
    return description, schema


def _adapter(function: Any) -> TypeAdapter[Any]:
    """Pydantic's view on a function; its own annotations do not say that functions are taken."""
    return TypeAdapter(function)


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as a tool's parameters: always with type and properties, without the titles that repeat names."""
    for _, node in subschemas(schema):
        if isinstance(node.get("title"), str):
            del node["title"]
    return {"type": "object", "properties": {}, **schema}


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description and the description of each parameter."""
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return text, {}
    parameters = {one.arg_name: one.description for one in parsed.params if one.description}
    paragraphs = [part.strip() for part in (parsed.short_description, parsed.long_description) if part]
    return "\n\n".join(paragraphs), parameters


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

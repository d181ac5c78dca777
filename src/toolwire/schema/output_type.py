"""Types of outputs: the JSON Schema that a model sees, and the value that its JSON becomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Union

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypeVar

from toolwire._surface import wrong_type
from toolwire.errors import DefinitionError, OutputError
from toolwire.schema.pointer import json_pointer
from toolwire.schema.shape import Shape
from toolwire.schema.signatures import schema_from_type
from toolwire.schema.validation import MAX_ISSUES, check_schema, subschemas, validate
from toolwire.text.json_reading import read_json
from toolwire.text.json_text import JsonError, json_text
from toolwire.text.limits import MAX_DEPTH

_OutputT = TypeVar("_OutputT", default=str)

WRAPPER = "response"
"""The only property of the object around an output that is not an object itself."""

_FENCE = re.compile(r"^```\w*[ \t]*\n(.*?)\n?^```[ \t]*$", re.MULTILINE | re.DOTALL)
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_DEFINITIONS = ("$defs", "definitions")


@dataclass(frozen=True, slots=True)
class OutputType(Generic[_OutputT]):
    """A type of outputs.

    Attributes:
        name: name of the type; "" if it has none.
        description: its docstring, or the description of its schema.
        schema: JSON Schema of an object: of the output, or of an object around it.
        wrapped: whether the output is the property `response` of that object, since it need not be an object itself.
        adapter: validates the output; None for an output that is JSON data.
    """

    name: str
    description: str
    schema: dict[str, Any]
    wrapped: bool
    adapter: TypeAdapter[_OutputT] | None

    def read(self, data: Any) -> _OutputT:
        """Return the output in JSON data that the schema describes.

        Raises:
            OutputError: it is not valid.
        """
        shape = Shape.of(self.schema)
        fitted = shape.coerce(_without_nulls(data, shape), _json_value)
        if not self.wrapped:
            return self._validated(fitted, fitted)
        if not (isinstance(fitted, dict) and fitted.keys() == {WRAPPER}):
            raise OutputError([f"the answer must be an object with the only property {WRAPPER!r}"])
        return self._validated(fitted[WRAPPER], fitted)

    def read_text(self, text: str) -> _OutputT:
        """Return the output in the text of an answer: JSON, alone or in the only code fence of the text.

        Raises:
            OutputError: there is none, or it is not valid.
        """
        fences = _FENCE.findall(text)
        source = fences[0] if len(fences) == 1 else text
        try:
            data = read_json(source)[0]
        except JsonError as error:
            if not self.takes_text or not text.strip() or text.lstrip().startswith(("{", "[")):
                raise OutputError([f"the answer is not JSON: {error}"]) from None
            data = text.strip()
        if self.wrapped and not (isinstance(data, dict) and data.keys() == {WRAPPER}):
            data = {WRAPPER: data}
        return self.read(data)

    def unwrap(self, data: Any) -> Any:
        """Return the part of JSON data, perhaps incomplete, that belongs to the output; None if there is none."""
        if not self.wrapped or not isinstance(data, dict):
            return data
        return data.get(WRAPPER)

    @property
    def takes_text(self) -> bool:
        """True if an output may be text, so that it can be an answer in prose."""
        return self.wrapped and "string" in Shape.of(self.schema).property(WRAPPER).kinds

    def _validated(self, output: Any, data: Any) -> _OutputT:
        if self.adapter is None:
            issues = list(map(str, validate(data, self.schema)))
            if issues:
                raise OutputError(issues)
            value: _OutputT = output
            return value
        try:
            return self.adapter.validate_json(json_text(output))
        except ValidationError as error:
            # The schema's own words are clearer, where it sees the mistake too.
            issues = list(map(str, validate(data, self.schema)))
            raise OutputError(issues or _issues_of(error)) from error


def output_type_of(annotation: Any) -> OutputType[Any]:
    """Return the output type of a Python type, or of a JSON Schema.

    Args:
        annotation: anything that pydantic understands: a model, a dataclass, a TypedDict, a union, `list[...]`, `int`;
            or a dict, the JSON Schema. A list or tuple of types is their union.

    Raises:
        TypeError: it is text, which names no type here.
        DefinitionError: it has no JSON Schema, or the schema cannot be used.
    """
    if isinstance(annotation, str):
        raise wrong_type("output_type", annotation, "a type, such as City, or a JSON Schema")
    if isinstance(annotation, Mapping):
        schema = dict(annotation)
        name, description = str(schema.get("title") or ""), str(schema.get("description") or "")
        adapter = None
    else:
        if isinstance(annotation, list | tuple):
            if not annotation:
                raise DefinitionError("an output type is one type or several, and this list is empty")
            annotation = Union[tuple(annotation)]  # noqa: UP007 - their number is known only now
        description, schema = schema_from_type(annotation)
        name, adapter = "", TypeAdapter(annotation)
        if isinstance(annotation, type):
            name = annotation.__name__
    wrapped = not _is_object(schema)
    if wrapped:
        schema = _wrapped(schema)
    check_schema(schema, "")
    return OutputType(name, description, schema, wrapped, adapter)


def _is_object(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema is that of one kind of object, as all APIs take it."""
    return not any(key in schema for key in _ALTERNATIVES) and Shape.of(schema).kinds == {"object"}


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    inner = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
    for pointer, node in subschemas(schema):
        reference = node.get("$ref")
        if isinstance(reference, str) and not reference.startswith(("#/$defs/", "#/definitions/")):
            raise DefinitionError(f"a reference can only lead into $defs, not to {reference!r:.80}", pointer=pointer)
    return {
        "type": "object",
        "properties": {WRAPPER: inner},
        "required": [WRAPPER],
        "additionalProperties": False,
        **{key: schema[key] for key in _DEFINITIONS if key in schema},
    }


def _without_nulls(data: Any, shape: Shape, depth: int = 0) -> Any:
    """Return data without nulls for optional properties that exclude them.

    In strict mode, where every property must be present, models use null to say "not given".
    """
    if depth > MAX_DEPTH:
        return data
    if isinstance(data, list):
        return [_without_nulls(item, shape.item(at), depth + 1) for at, item in enumerate(data)]
    if not isinstance(data, dict):
        return data
    required, present = shape.required, {}
    for name, value in data.items():
        inner = shape.property(name)
        if value is not None or name in required or not inner.typed or "null" in inner.kinds:
            present[name] = _without_nulls(value, inner, depth + 1)
    return present


def _issues_of(error: ValidationError) -> list[str]:
    issues = error.errors()[:MAX_ISSUES]
    return [f"{json_pointer(issue['loc']) or 'the answer'}: {issue['msg']}" for issue in issues]


def _json_value(text: str) -> Any:
    return read_json(text)[0]

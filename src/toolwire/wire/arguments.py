"""The JSON arguments of native calls: read, repaired, and coerced to the tool's schema."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import NoneType
from typing import Any

from toolwire._surface import check_type
from toolwire.messages import MESSAGE_LIMIT, Problem, ProblemKind
from toolwire.schema.validation import UNUSABLE, validate
from toolwire.text.json_scanner import JsonScanner
from toolwire.text.json_text import FastJsonReader, JsonError, within_limits
from toolwire.text.python_scanner import PythonScanner
from toolwire.text.truncate import shorten
from toolwire.tools import ToolDefinition, as_definition


@dataclass(frozen=True, slots=True)
class ReadArguments:
    """The result of reading arguments.

    Attributes:
        value: the arguments, or None if they cannot be read with certainty or do not validate.
        repairs: names of the repairs that were necessary.
        problem: the reason why `value` is None.
    """

    value: dict[str, Any] | None
    repairs: tuple[str, ...] = ()
    problem: Problem | None = None


def read_arguments(text: str | None, tool: Any = None) -> ReadArguments:
    """Read the arguments of a call to `tool`.

    Repairs are made only where exactly one reading results. Text that ends inside the arguments is never completed.
    Empty text means no arguments. Arguments of a tool whose schema cannot be used are refused as invalid.

    Args:
        text: the JSON text that the model wrote.
        tool: the tool's definition in any shape; None coerces and validates nothing.

    Raises:
        DefinitionError: `tool` has a shape that is not known.
    """
    check_type("text", text, (str, NoneType), "text")
    definition = as_definition(tool) if tool is not None else None
    text = text or ""
    if not text.strip():
        return _judge({}, text, [], definition)
    repairs: list[str] = []
    reading = text
    try:
        value = _read(reading, repairs)
        # Some models write the object as a JSON string, that is, encoded twice. Only one such layer is removed.
        if isinstance(value, str):
            reading = value
            value = _read(reading, repairs)
            repairs.append("double_encoded")
    except JsonError as error:
        # An error at the very end of the text means that the model was cut off, and did not write it wrongly.
        kind: ProblemKind = "truncated" if error.position >= len(reading.rstrip()) > 0 else "malformed"
        return _refuse(kind, f"the arguments are not a JSON object: {error}", text, repairs)
    if not isinstance(value, dict):
        return _refuse("malformed", "the arguments are not a JSON object", text, repairs)
    return _judge(value, text, repairs, definition)


def _read(text: str, repairs: list[str]) -> Any:
    start = len(text) - len(text.lstrip())
    scanner = JsonScanner(fast=FastJsonReader())
    end = scanner.scan(text, start, True)
    scanner.finish()
    if scanner.error:
        return _read_python(text, start, repairs, JsonError(scanner.error, end))
    rest = text[end:].strip()
    if not scanner.done:
        raise JsonError("the text ends inside them", len(text))
    if rest:
        # Surplus closers cannot change the value. Any other text could belong to it.
        if rest.strip("}]"):
            raise JsonError("text follows them", end)
        repairs.append("extra_close")
    repairs.extend(scanner.repairs)
    # The scanner repairs as it goes, so what it wrote is valid JSON, while the text may not be.
    value = scanner.value if scanner.whole else json.loads("".join(scanner.ready))
    if not within_limits(value):
        raise JsonError("they contain half of a surrogate pair", start)
    return value


def _read_python(text: str, start: int, repairs: list[str], otherwise: JsonError) -> Any:
    """Read the text as a Python dict, which is tried last; raise `otherwise` if it is not one."""
    scanner = PythonScanner()
    end = scanner.scan(text, start, True)
    # The JSON error is reported, because JSON is what the model was asked for.
    if text[start] != "{" or not scanner.done or text[end:].strip():
        raise otherwise
    value = json.loads("".join(scanner.ready))
    if not within_limits(value):
        raise otherwise
    repairs.extend(["python_literal", *scanner.repairs])
    return value


def _judge(value: dict[str, Any], text: str, repairs: list[str], definition: ToolDefinition | None) -> ReadArguments:
    if definition is None:
        return ReadArguments(value, tuple(repairs))
    coerced = definition.fit(value)
    if coerced is not value:
        repairs.append("coerced")
    issues = validate(coerced, definition.parameters)
    if issues and issues[0].keyword == UNUSABLE:
        why = f"the arguments of {definition.name!r} cannot be checked: {issues[0].message}"
        return _refuse("invalid_arguments", why, text, repairs)
    if issues:
        why = "; ".join(map(str, issues))
        return _refuse("invalid_arguments", f"the arguments of {definition.name!r} are not valid: {why}", text, repairs)
    return ReadArguments(coerced, tuple(repairs))


def _refuse(kind: ProblemKind, why: str, text: str, repairs: list[str]) -> ReadArguments:
    message = f"{why[:MESSAGE_LIMIT]}. They were written: {shorten(text, MESSAGE_LIMIT)!r}."
    return ReadArguments(None, tuple(repairs), Problem(kind, 0, text, message[0].upper() + message[1:]))

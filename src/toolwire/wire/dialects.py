"""Dialects: the ways in which models write calls to known tools without the markers of a format.

A dialect is one value of `CallDialect`, and says how calls are read from an expression. The first dialect that reads an
expression wins. Each either reads all of the expression as calls to known tools, or none of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolwire.text.expression_tree import CallExpression, Source
from toolwire.text.expressions import Callee, ExpressionScanner
from toolwire.text.json_reading import read_json
from toolwire.text.json_text import JsonError
from toolwire.wire.definition_text import is_definition
from toolwire.wire.prepared_tools import KnownTools
from toolwire.wire.refusals import declines

NAME_KEYS = frozenset({
    "name", "function", "tool", "toolname", "functionname", "action", "func", "api", "apiname",
    "recipientname",
})  # fmt: skip
"""Keys of an object whose value may be the name of the tool, as `folded_key` returns them."""
ARGUMENT_KEYS = frozenset({
    "arguments", "parameters", "params", "args", "input", "kwargs", "actioninput", "toolinput", "functionargs",
    "functionarguments", "functionparameters", "toolargs", "toolarguments", "toolparameters",
})  # fmt: skip
"""Keys of an object whose value may be the arguments."""
IDENTITY_KEYS = frozenset({"id", "callid", "toolcallid", "type", "index"})
"""Keys of an object of a call that say nothing about the call itself."""
LIST_KEYS = frozenset({"toolcalls", "calls", "tools", "functioncalls", "functions", "actions", "tooluses"})
"""Keys of an object whose value may be a list of calls."""
_HOLDER_KEYS = NAME_KEYS | {"toolcall", "functioncall", "call", "tooluse"}
"""Keys of an object whose value may be the object of a call."""
COMMENT_KEYS = frozenset({
    "thought", "thoughts", "thinking", "reasoning", "reason", "rationale", "explanation", "analysis", "comment",
})  # fmt: skip
"""Keys of an object whose value may be text about the call beside it."""
CALL_KEYS = _HOLDER_KEYS | ARGUMENT_KEYS | IDENTITY_KEYS | LIST_KEYS | COMMENT_KEYS
"""Keys that an object of a call may have, whatever the tools are."""
_SEPARATORS = str.maketrans("", "", "_- ")
WRAPPERS = frozenset({"print"})
"""Functions around a call that change nothing about it."""
_QUOTE = r"""["'`«»\u2018-\u201e]?"""
_MEMBER = re.compile(
    rf"""(?<![^\s{{,;\[/]){_QUOTE}(?P<key>[A-Za-z_][\w.-]{{0,255}}){_QUOTE}\s{{0,9}}[:=\uff1a]>?\s{{0,9}}
    (?:{_QUOTE}(?P<text>[A-Za-z_][\w.$-]{{0,255}})(?![\w.$(-]) | (?P<holds>\{{))""",
    re.VERBOSE,
)
"""A member of an object in any spelling, of which the value is a word or an object."""
_MAX_HEAD = 1000
"""Number of characters of an object in which its tool has to be named."""
_MAX_NESTING = 4
"""Number of objects, one inside the other, that are searched for the name of a call."""


def folded_key(key: str) -> str:
    """Return a key in the spelling of the sets above: `tool_name`, `toolName` and `Tool Name` are one."""
    return key.translate(_SEPARATORS).lower()


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call that a dialect read.

    Attributes:
        name: the name of a known tool.
        arguments: its arguments, not yet coerced to its schema.
        repairs: names of the repairs that the reading needed.
        text: the text of the call; "" while only the whole expression's text is known.
        dialect: the name of the dialect; "" until the whole expression was read.
        unread: keys of members beside the arguments that say something which is not part of the call.
    """

    name: str
    arguments: dict[str, Any]
    repairs: tuple[str, ...] = ()
    text: str = ""
    dialect: str = ""
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallDialect:
    """A way to write calls.

    Attributes:
        name: the name that `ToolCall.format` has.
        example: two calls, as they are written.
        read: return the calls to known tools that an expression is, or None if it is not one in this dialect.
        nearest: the wire format that a model which writes the dialect is nearest to.
    """

    name: str
    example: str
    read: Callable[[Any, KnownTools], list[ReadCall] | None]
    nearest: str


def _all(readings: list[list[ReadCall] | None]) -> list[ReadCall] | None:
    """Return all calls if each of the readings has some."""
    calls: list[ReadCall] = []
    for reading in readings:
        if not reading:
            return None
        calls.extend(reading)
    return calls or None


# -- arguments --------------------------------------------------------------------------------------------------------


def _plain(value: Any, repairs: list[str]) -> Any:
    """Return a JSON value, in which expressions have become their text."""
    if isinstance(value, list):
        return [_plain(item, repairs) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item, repairs) for key, item in value.items()}
    if isinstance(value, Source | CallExpression):
        repairs.append("source_text")
        return value.text
    return value


def _written_arguments(value: Any, repairs: list[str]) -> dict[str, Any] | None:
    """Return an object of arguments, which may be JSON in a string; None if it is not one."""
    if isinstance(value, str):
        try:
            value, more = read_json(value)
        except JsonError:
            return None
        repairs.extend(("double_encoded", *more))
    if value is None or value == []:
        return {}
    return _plain(value, repairs) if isinstance(value, dict) else None


def _positional(name: str, values: list[Any], tools: KnownTools, repairs: list[str]) -> dict[str, Any] | None:
    """Return arguments without names by parameter, or None where it is not certain which is which."""
    properties = tools.properties(name)
    if len(values) == 1 and isinstance(values[0], dict) and (not properties or set(values[0]) <= set(properties)):
        repairs.append("positional")
        return _written_arguments(values[0], repairs)
    required = tools.required(name)
    # Certain only if the required parameters come first, or all are given.
    if len(values) == len(required) and list(properties[: len(required)]) == required:
        order: Sequence[str] = required
    elif len(values) == len(properties):
        order = properties
    else:
        return None
    repairs.append("positional")
    return dict(zip(order, (_plain(value, repairs) for value in values), strict=True))


def _is_signature(expression: CallExpression, properties: Sequence[str]) -> bool:
    """Return whether parameters are named and not values, as where a text describes a tool: `f(a, b)`, `f(a=a)`."""
    values = [*expression.positional, *(value for key, value in expression.keywords.items() if _is_name(value, key))]
    return any(_is_name(value, key) for value in values for key in properties)


def _is_name(value: Any, name: str) -> bool:
    return isinstance(value, Source) and value.is_name and value.text == name


def call_of(expression: CallExpression, tools: KnownTools) -> ReadCall | None:
    """Return the call to a known tool that an expression is, or None where it is not certain."""
    name = tools.names.resolve(expression.name)
    if not name or _is_signature(expression, tools.properties(name)):
        return None
    repairs: list[str] = ["name_resolved"] if name != expression.name else []
    arguments: dict[str, Any] = _plain(expression.keywords, repairs)
    parts = [_written_arguments(value, repairs) for value in expression.unpacked]
    if expression.positional:
        values = expression.positional
        parts.append(_positional(name, values, tools, repairs))
        # With keywords among them it is not certain which parameters the positional ones are for.
        if expression.keywords and len(values) > 1:
            return None
    for part in parts:
        # A parameter that is given twice has no certain value.
        if part is None or set(part) & set(arguments):
            return None
        arguments |= part
    # `f(arguments={"a": 1})` of a tool that has no such parameter.
    if len(arguments) == 1:
        (key,) = arguments
        is_holder = folded_key(key) in ARGUMENT_KEYS and key not in tools.properties(name)
        if is_holder and isinstance(arguments[key], dict):
            arguments = arguments[key]
    return ReadCall(name, arguments, tuple(dict.fromkeys(repairs)), expression.text)


# -- expressions ------------------------------------------------------------------------------------------------------


def _python_calls(value: Any, tools: KnownTools) -> list[ReadCall] | None:
    if not isinstance(value, CallExpression):
        return None
    if value.name in WRAPPERS and value.name not in tools.names and not value.keywords and not value.unpacked:
        return _all([read_expression(inner, tools)[1] for inner in value.positional])
    call = call_of(value, tools)
    return [call] if call is not None else None


def _call_list(value: Any, tools: KnownTools) -> list[ReadCall] | None:
    if not isinstance(value, list):
        return None
    if len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    # One level of nesting is a habit of some models. A list in a list beyond that is data.
    return _all([None if isinstance(item, list) else read_expression(item, tools)[1] for item in value])


def _call_strings(value: Any, tools: KnownTools) -> list[ReadCall] | None:
    texts = value if isinstance(value, list) else [value]
    return _all([_read_call_text(text, tools) if isinstance(text, str) else None for text in texts])


def _read_call_text(text: str, tools: KnownTools) -> list[ReadCall] | None:
    """Return the Python calls that a text consists of, with commas or semicolons between them, or None."""
    calls: list[ReadCall] = []
    pos, end = 0, len(text)
    while pos < end:
        scanner = CallScanner(tools)
        pos = scanner.scan(text, pos, True)  # pragma: no mutate - a call ends with a bracket, wherever its text ends
        call = call_of(scanner.value, tools) if scanner.done and isinstance(scanner.value, CallExpression) else None
        if call is None:
            return None
        calls.append(call)
        while pos < end and text[pos] in " \t\n\r,;":
            pos += 1
    return calls or None


def _call_objects(value: Any, tools: KnownTools) -> list[ReadCall] | None:
    if not isinstance(value, dict):
        return None
    if len(value) == 1 and folded_key(key := next(iter(value))) in LIST_KEYS and isinstance(value[key], list):
        return _all([_call_objects(item, tools) for item in value[key]])
    call = _call_object(value, tools, _MAX_NESTING)
    return [call] if call is not None else None


def _call_object(members: dict[str, Any], tools: KnownTools, depth: int) -> ReadCall | None:
    kinds = {key: folded_key(key) for key in members}
    names = [key for key, kind in kinds.items() if kind in NAME_KEYS and _tool_name(members[key], tools)]
    comments = tuple(key for key, kind in kinds.items() if kind in COMMENT_KEYS and isinstance(members[key], str))
    if any(declines(members[key]) for key in comments):
        return None
    if not names:
        # The object inside has both name and arguments, and nothing but the kind of call is beside it.
        inner = [key for key, kind in kinds.items() if kind in _HOLDER_KEYS and isinstance(members[key], dict)]
        rest = [key for key, kind in kinds.items() if key not in (*inner, *comments) and kind not in IDENTITY_KEYS]
        call = _call_object(members[inner[0]], tools, depth - 1) if len(inner) == 1 and not rest and depth else None
        return replace(call, unread=(*comments, *call.unread)) if call is not None else None
    name = _tool_name(members[names[0]], tools)
    repairs: list[str] = [] if name == members[names[0]] else ["name_resolved"]
    properties = tools.properties(name)
    rest = [key for key in members if key != names[0] and (key not in comments or key in properties)]
    comments = tuple(key for key in comments if key not in rest)
    holders = [key for key in rest if kinds[key] in ARGUMENT_KEYS and key not in properties] or [
        key for key in rest if kinds[key] in ARGUMENT_KEYS and isinstance(members[key], dict)
    ]
    if len(holders) == 1 and all(kinds[key] in IDENTITY_KEYS for key in rest if key != holders[0]):
        arguments = _written_arguments(members[holders[0]], repairs)
        if arguments is None and isinstance(members[holders[0]], str):
            shape = tools.definitions[name].shape
            key = shape.lone_property
            arguments = {key: members[holders[0]]} if key and shape.property(key).keeps_text else None
            repairs.append("positional")
        if arguments is None:
            return None
        return ReadCall(name, arguments, tuple(dict.fromkeys(repairs)), unread=comments)
    flat = {key: members[key] for key in rest if key in properties or kinds[key] not in IDENTITY_KEYS}
    # With undeclared keys, or without any argument, it is more likely an object about the tool than a call of it.
    if holders or not set(flat) <= set(properties) or (not flat and (properties or comments)):
        return None
    if flat:
        repairs.append("flat_arguments")
    return ReadCall(name, _plain(flat, repairs), tuple(dict.fromkeys(repairs)), unread=comments)


def _tool_name(value: Any, tools: KnownTools) -> str:
    text = value.text if isinstance(value, Source) and value.is_name else value
    return tools.names.resolve(text) if isinstance(text, str) else ""


def _name_as_key(value: Any, tools: KnownTools) -> list[ReadCall] | None:
    if not isinstance(value, dict):
        return None
    calls: list[ReadCall] = []
    for key, written in value.items():
        name = tools.names.resolve(key)
        repairs: list[str] = ["name_resolved"] if name != key else []
        arguments = _written_arguments(written, repairs) if name and not isinstance(written, str) else None
        if arguments is None:
            return None
        calls.append(ReadCall(name, arguments, tuple(repairs)))
    return calls or None


def _name_then_json(value: Any, tools: KnownTools) -> list[ReadCall] | None:
    # The reader of messages joins a name and the object behind it to a call with one positional argument.
    if not isinstance(value, NamedObject):
        return None
    name = tools.names.resolve(value.name)
    repairs: list[str] = ["name_resolved"] if name != value.name else []
    members = value.members
    inner = [key for key in members if folded_key(key) in ARGUMENT_KEYS and key not in tools.properties(name)]
    if len(members) == 1 and inner and isinstance(members[inner[0]], dict):
        members = members[inner[0]]
    return [ReadCall(name, _plain(members, repairs), tuple(repairs))] if name else None


@dataclass(frozen=True, slots=True)
class NamedObject:
    """A known tool's name with an object behind it."""

    name: str
    members: dict[str, Any]


DIALECTS = (
    CallDialect("python_calls", 'f(a=1), g(b="x")', _python_calls, "pythonic"),
    CallDialect("call_strings", """['f(a=1)', 'g(b="x")']""", _call_strings, "pythonic"),
    CallDialect("call_list", '[f(a=1), {"name": "g", "arguments": {}}]', _call_list, "pythonic"),
    CallDialect("call_objects", """{'function': 'f', 'params': {'a': 1}}""", _call_objects, "bare_json"),
    CallDialect("name_as_key", '{"f": {"a": 1}}, {"g": {"b": "x"}}', _name_as_key, "bare_json"),
    CallDialect("name_then_json", 'f\n{"a": 1}', _name_then_json, "bare_json"),
)
"""All dialects, in the order in which they are tried."""


def read_expression(value: Any, tools: KnownTools) -> tuple[str, list[ReadCall] | None]:
    """Return the dialect and the calls of an expression, or "" and None if it is not a call to known tools."""
    for dialect in DIALECTS:
        calls = dialect.read(value, tools)
        # Models repeat the definitions that they were given, and the shape of a definition is much like that of a call.
        if calls and not any(is_definition(tools.definitions[call.name], call.arguments) for call in calls):
            return dialect.name, calls
    return "", None


def named_object(text: str, tools: KnownTools) -> str:
    """Return an object, up to the name of a known tool in it, in a text that is not JSON; "" if it names none."""
    start = min((at for at in map(text.find, "[{") if at >= 0), default=-1)
    text = text[start : start + _MAX_HEAD].partition("}")[0] if start >= 0 else ""
    for member in _MEMBER.finditer(text):
        names = member["text"] if folded_key(member["key"]) in NAME_KEYS else member["key"] if member["holds"] else ""
        if names and tools.names.resolve(names):
            return text[: member.end()]
    return ""


class CallScanner(ExpressionScanner):
    """A scanner of an expression that can only be a call to known tools; it stops as soon as it is not."""

    def __init__(self, tools: KnownTools) -> None:
        super().__init__()
        self._tools = tools
        self._wrapped = False

    def on_call(self, name: str) -> Callee:
        """Tell the known tools from the functions around calls, and both from all others."""
        if self._tools.names.resolve(name):
            return "tool"
        if name not in WRAPPERS or self._wrapped:
            return "unknown"
        # One wrapper, such as `print(f(1))`. Deeper nesting is a program and not a call.
        self._wrapped = True
        return "wrapper"

    def calls(self, text: str, name: str = "") -> list[ReadCall]:
        """Return the calls that the expression is, each with its dialect and its text; none if it is not a call.

        Args:
            text: the text of all calls, if one of them has none of its own or was written with escapes.
            name: the known tool's name before the expression, which has to be an object then; "" if there is none.
        """
        value = self.value
        if not self.done or (name and not isinstance(value, dict)):
            return []
        dialect, calls = read_expression(NamedObject(name, value) if name else value, self._tools)
        calls = calls or []
        have_texts = all(call.text and call.text in text for call in calls)
        return [
            replace(
                call, repairs=(*self.repairs, *call.repairs), text=call.text if have_texts else text, dialect=dialect
            )
            for call in calls
        ]

    def on_key(self, key: str) -> bool:
        """Return whether an object of a call can have the key."""
        return folded_key(key) in CALL_KEYS or key in self._tools.parameters or bool(self._tools.names.resolve(key))

    def on_text(self, text: str) -> bool:
        """Return whether a text in a list is the name of a known tool, or begins with it as a call does."""
        return bool(self._tools.names.resolve(text.partition("(")[0]))

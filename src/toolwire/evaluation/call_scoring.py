"""Score the calls of an answer against the acceptable ones, by the rules of the Berkeley Function Calling Leaderboard.

Each acceptable call lists the acceptable values of each argument, and an argument may be left out if the empty string
is one of them. Text is compared without case, white space and the punctuation `, . / - _ * ^`. Calls may be in any
order. The rules are those of https://gorilla.cs.berkeley.edu/blogs/8_berkeley_function_calling_leaderboard.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from toolwire.messages import ToolCall

FaultKind = Literal[
    "no_call", "unwanted_call", "call_count", "wrong_tool", "missing", "unexpected", "type", "value", "state", "result"
]
MAY_BE_OMITTED = ""
"""The acceptable value of an argument that need not be given."""
_IGNORED = re.compile(r"[ ,./\-_*^]")
_KINDS: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class AcceptableCall:
    """A call that an answer should contain.

    Attributes:
        name: the name of the tool.
        arguments: the acceptable values of each argument; "" among them if it may be left out.
    """

    name: str
    arguments: Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class CallFault:
    """The reason why an answer is not right.

    Attributes:
        kind: the kind of the fault.
        message: the fault as a sentence, with the names and values.
    """

    kind: FaultKind
    message: str


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """The calls that a right answer contains.

    Attributes:
        rule: "calls": exactly `calls`; "no_call": none, because no tool fits the question; "any_call": one or more.
        calls: the acceptable calls, for the rule "calls".
        ordered: whether the calls have to be in this order.
    """

    rule: Literal["calls", "no_call", "any_call"] = "calls"
    calls: tuple[AcceptableCall, ...] = ()
    ordered: bool = field(default=False)


def answer_fault(
    calls: Sequence[ToolCall], expected: ExpectedCalls, parameters: Mapping[str, Mapping[str, Any]]
) -> CallFault | None:
    """Return the reason why an answer is not right; None if it is.

    Args:
        calls: the complete calls of the answer.
        expected: the right answer.
        parameters: the JSON Schema of each tool's parameters, by its name.
    """
    if expected.rule == "no_call":
        return CallFault("unwanted_call", f"it calls {calls[0].name}, but no tool fits the question") if calls else None
    if not calls:
        return CallFault("no_call", "it calls no tool")
    if expected.rule == "any_call":
        is_known = any(call.name in parameters for call in calls)
        return None if is_known else CallFault("wrong_tool", f"there is no tool {calls[0].name}")
    if len(calls) != len(expected.calls):
        noun = "call" if len(calls) == 1 else "calls"
        return CallFault("call_count", f"it makes {len(calls)} {noun} instead of {len(expected.calls)}")
    # Each call with each acceptable one: which belong together is only known when all are compared.
    faults = [
        [call_fault(call, acceptable, parameters.get(acceptable.name, {})) for acceptable in expected.calls]
        for call in calls
    ]
    if expected.ordered:
        return next((row[position] for position, row in enumerate(faults) if row[position] is not None), None)
    unmatched = _unmatched(faults)
    return None if unmatched is None else _nearest(faults[unmatched])


def _unmatched(faults: Sequence[Sequence[CallFault | None]]) -> int | None:
    """Return the number of a call that has no acceptable call of its own; None if each has one.

    Augmenting paths find a matching whenever there is one, because a call may fit several acceptable calls.
    """
    owner: dict[int, int] = {}

    def has_place(call: int, visited: set[int]) -> bool:
        for place, fault in enumerate(faults[call]):
            if fault is None and place not in visited:
                visited.add(place)
                if place not in owner or has_place(owner[place], visited):
                    owner[place] = call
                    return True
        return False

    return next((call for call in range(len(faults)) if not has_place(call, set())), None)


_NEARNESS: Sequence[FaultKind] = ("value", "type", "unexpected", "missing", "wrong_tool")


def _nearest(faults: Sequence[CallFault | None]) -> CallFault:
    """Return the fault in the comparison with the most similar acceptable call."""
    present = [fault for fault in faults if fault is not None]
    if not present or len(present) < len(faults):
        return CallFault("call_count", "a call is repeated in place of another one")
    return min(present, key=lambda fault: _NEARNESS.index(fault.kind))


def call_fault(call: ToolCall, acceptable: AcceptableCall, schema: Mapping[str, Any]) -> CallFault | None:
    """Return the reason why a call is not the acceptable one; None if it is.

    Args:
        call: the call.
        acceptable: the acceptable call.
        schema: the JSON Schema of the tool's parameters.
    """
    if call.name != acceptable.name:
        return CallFault("wrong_tool", f"it calls {call.name} instead of {acceptable.name}")
    return next(_argument_faults(call.arguments, acceptable.arguments, schema), None)


def _argument_faults(
    arguments: Mapping[str, Any], acceptable: Mapping[str, Sequence[Any]], schema: Mapping[str, Any]
) -> Iterator[CallFault]:
    properties = schema.get("properties") or {}
    required = frozenset(schema.get("required") or ())
    for name, options in acceptable.items():
        if name not in arguments and (name in required or MAY_BE_OMITTED not in options):
            yield CallFault("missing", f"the argument {name} is missing")
    for name, value in arguments.items():
        if name not in acceptable:
            yield CallFault("unexpected", f"the argument {name} should not be given")
            continue
        options = acceptable[name]
        if any(_is_accepted(value, option, properties.get(name) or {}) for option in options):
            continue
        if not _has_type(value, properties.get(name) or {}, options):
            expected_type = (properties.get(name) or {}).get("type", "another type")
            yield CallFault("type", f"the argument {name} is of type {_kind(value)} instead of {expected_type}")
        else:
            yield CallFault("value", f"the argument {name} is {value!r:.200}; acceptable: {list(options)!r:.200}")


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), type(value).__name__)


def _has_type(value: Any, schema: Mapping[str, Any], options: Sequence[Any]) -> bool:
    """Return whether a value is of the type in the schema, or of the type of an acceptable value."""
    kinds = schema.get("type") or _kind(value)
    kinds = kinds if isinstance(kinds, list) else [kinds]
    kind = _kind(value)
    return kind in kinds or (kind == "integer" and "number" in kinds) or kind in map(_kind, options)


def _is_accepted(value: Any, option: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a value is an acceptable one.

    Args:
        value: the value in the call.
        option: the acceptable value; the members of an object in it are lists of acceptable values.
        schema: the JSON Schema of the value.
    """
    match value, option:
        case bool(), _:
            return value is option
        case _, bool():
            return False
        case str(), str():
            return _comparable(value) == _comparable(option)
        case int() | float(), int() | float():
            # A whole number is a number, but a number with a fraction is not the whole number that was asked for.
            is_whole = schema.get("type") == "integer" and isinstance(option, int)
            return bool(value == option) and not (is_whole and isinstance(value, float))
        case list(), list():
            items = schema.get("items") or {}
            return len(value) == len(option) and all(
                _is_accepted(item, expected, items) for item, expected in zip(value, option, strict=True)
            )
        case dict(), dict():
            return _is_accepted_object(value, option, schema)
    return bool(value == option)


def _is_accepted_object(value: Mapping[str, Any], option: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Return whether an object has only acceptable members, and all that may not be left out."""
    properties = schema.get("properties") or {}
    members = {name: options if isinstance(options, list) else [options] for name, options in option.items()}
    if any(name not in value and MAY_BE_OMITTED not in options for name, options in members.items()):
        return False
    return all(
        name in members
        and any(_is_accepted(item, member, properties.get(name) or {}) for member in [*members[name], option[name]])
        for name, item in value.items()
    )


def _comparable(text: str) -> str:
    """Return text as the leaderboard compares it."""
    return _IGNORED.sub("", text).lower().replace("'", '"')

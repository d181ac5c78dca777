"""The values that a grammar can offer: seven kinds, to which every JSON Schema is reduced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.text.json_text import equal_json, json_type

MAX_EXCLUDED = 64
"""Maximum length of a name that other names are told apart from, in characters: each is a level of an expression."""


@dataclass(frozen=True, slots=True)
class Constants:
    """One of these JSON values."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StringValue:
    """A string.

    Attributes:
        least, most: length in characters; None for no maximum.
        pattern: regular expression that matches somewhere in it; "" for none.
        pointer: place in the schema.
    """

    least: int = 0
    most: int | None = None
    pattern: str = ""
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class NumberValue:
    """A number.

    Attributes:
        integral: it is an integer.
        low, high: bounds, which are included; None for none.
        pointer: place in the schema.
    """

    integral: bool = False
    low: int | float | None = None
    high: int | float | None = None
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list.

    Attributes:
        first: the values of the first items.
        additional: the values of items behind these; None if there are none.
        least, most: number of items; None for no maximum.
        pointer: place in the schema.
    """

    first: tuple[Values, ...] = ()
    additional: Values | None = None
    least: int = 0
    most: int | None = None
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class Members:
    """An object.

    Attributes:
        properties: name and values of the members that are named, in order, and whether each is required.
        additional: the values of other members; None if there are none.
        pointer: place in the schema.
    """

    properties: tuple[tuple[str, Values, bool], ...] = ()
    additional: Values | None = None
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Values of any of several kinds; no value at all if there are no options."""

    options: tuple[Values, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """The values of a part of a schema that has a name, because it may contain itself."""

    name: str


Values = Constants | StringValue | NumberValue | Items | Members | Alternatives | Named
IMPOSSIBLE = Alternatives(())
"""No value at all."""
ANY = Named("any")
"""Any JSON value."""
ANY_VALUES = Alternatives(
    (StringValue(), NumberValue(), Constants((True, False, None)), Items(additional=ANY), Members(additional=ANY))
)


def lookup(values: Iterable[Any]) -> Callable[[Any], bool]:
    """Return whether a JSON value equals any of these, as a function; lists of texts may be long."""
    texts: set[str] = set()
    remaining: list[Any] = []
    for value in values:
        if isinstance(value, str):
            texts.add(value)
        else:
            remaining.append(value)
    return lambda value: (
        value in texts if isinstance(value, str) else any(equal_json(value, other) for other in remaining)
    )


def flat_values(
    values: Values, named: Mapping[str, Values], open_names: frozenset[str] = frozenset()
) -> Iterator[Values]:
    """Yield the kinds of value among these, without names and alternatives."""
    match values:
        case Named(name):
            if name not in open_names:
                yield from flat_values(named[name], named, open_names | {name})
        case Alternatives(options):
            for option in options:
                yield from flat_values(option, named, open_names)
        case _:
            yield values


_TYPES = {StringValue: "string", NumberValue: "number", Items: "array", Members: "object"}


def values_by_type(values: Values, named: Mapping[str, Values]) -> dict[str, Values]:
    """Return values by JSON Schema's name of their type."""
    kinds: dict[str, list[Values]] = {}
    for inner in flat_values(values, named):
        match inner:
            case Constants(constants):
                for constant in constants:
                    kinds.setdefault(json_type(constant), []).append(Constants((constant,)))
            case _:
                kinds.setdefault(_TYPES[type(inner)], []).append(inner)
    return {kind: Alternatives(tuple(options)) for kind, options in kinds.items()}


def joined(members: list[Members]) -> Members:
    """Return one object that offers the members of all."""
    if len(members) == 1:
        return members[0]
    named = [{name: values for name, values, _ in each.properties} for each in members]
    required = set.intersection(*({name for name, _, needed in each.properties if needed} for each in members))
    additional = tuple(each.additional for each in members if each.additional is not None)
    properties: list[tuple[str, Values, bool]] = []
    for name in dict.fromkeys(name for values in named for name in values):
        # An object that does not name a member admits it as an additional one.
        inner = [values.get(name, each.additional) for values, each in zip(named, members, strict=True)]
        options = [values for values in inner if values is not None]
        properties.append((name, alternatives(options), name in required))
    return Members(tuple(properties), alternatives(additional) if additional else None, members[0].pointer)


def alternatives(options: Iterable[Values]) -> Values:
    """Return the values of any of several kinds."""
    flat: list[Values] = []
    for option in options:
        flat += option.options if isinstance(option, Alternatives) else [option]
    return flat[0] if len(flat) == 1 else Alternatives(tuple(flat))


def fixed_members(value: Mapping[str, Any]) -> Members:
    """Return an object that is a constant, with its members."""
    return Members(tuple((name, Constants((item,)), True) for name, item in value.items()))

"""Schemas from functions and pydantic models."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from toolwire.errors import DefinitionError
from toolwire.schema.shape import Shape
from toolwire.schema.signatures import argument_converter, schema_from_function, schema_from_model
from toolwire.schema.validation import check_schema


class Unit(enum.Enum):
    C = "c"
    F = "f"


class Range(TypedDict):
    low: int
    high: int


@dataclasses.dataclass
class Place:
    title: str
    zoom: int = 3


class Node(BaseModel):
    """A node of a tree.

    Attributes:
        label: what it shows.
    """

    label: str
    children: list[Node] = Field(default=[], description="below it")


def everything(
    city: str,
    days: int | None = None,
    unit: Literal["c", "f"] = "c",
    scale: Unit = Unit.C,
    span: Range | None = None,
    place: Place | None = None,
    node: Node | None = None,
    limit: Annotated[int, Field(ge=1, description="from the annotation")] = 3,
    *,
    extra: dict[str, list[float]],
    anything=None,  # type: ignore[no-untyped-def]
) -> str:
    """Get the weather.

    It is only a forecast.

    Args:
        city: the city.
        days (int, optional): how many,
            today included.
        limit: from the docstring.
        nobody: not a parameter.

    Returns:
        The weather.
    """
    return city


def test_schema_of_a_function_has_types_and_descriptions() -> None:
    description, schema = schema_from_function(everything)
    assert description == "Get the weather.\n\nIt is only a forecast."
    check_schema(schema)
    known = schema["properties"]
    assert schema["required"] == ["city", "extra"]
    assert known["city"] == {"type": "string", "description": "the city."}
    assert known["days"]["description"] == "how many,\ntoday included."
    assert known["unit"] == {"default": "c", "enum": ["c", "f"], "type": "string"}
    assert known["limit"]["description"] == "from the annotation"
    assert known["anything"] == {"default": None}
    assert "nobody" not in known
    shape = Shape.of(schema)
    assert shape.property("days").kinds == {"integer", "null"}
    assert shape.property("span").property("low").kinds == {"integer"}
    assert shape.property("node").property("children").items.property("label").kinds == {"string"}
    assert shape.property("place").property("title").kinds == {"string"}, "a property named title is no title"
    assert shape.property("extra").property("any").items.kinds == {"number", "integer"}
    assert shape.property("scale").kinds == {"string"}


def numpy_style(city: str) -> None:
    """Look up.

    Parameters
    ----------
    city : str
        the city
    """


def rest_style(city: str) -> None:
    """Look up.

    :param city: the city
    """


@pytest.mark.parametrize("function", [numpy_style, rest_style])
def test_descriptions_come_from_any_docstring_style(function: Any) -> None:
    description, schema = schema_from_function(function)
    assert description == "Look up."
    assert schema["properties"]["city"]["description"] == "the city"


class Service:
    def look(self, city: str) -> None:
        """Look."""

    def __call__(self, city: str) -> None:
        """Call."""


def test_methods_and_callable_objects_have_schemas() -> None:
    assert schema_from_function(Service().look)[0] == "Look."
    assert schema_from_function(Service(), "service") == (
        "Call.",
        {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "additionalProperties": False,
            "required": ["city"],
        },
    )


class Opaque:
    pass


def takes_opaque(a: Opaque) -> None: ...
def takes_unknown(a: Nonesuch) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def takes_alias(a: Annotated[int, Field(alias="b")]) -> None: ...


@pytest.mark.parametrize(
    "function",
    [
        lambda *a: 1,
        lambda **k: 1,
        lambda a, /: 1,
        Service.look,
        print,
        int,
        takes_opaque,
        takes_unknown,
        takes_alias,
    ],
)
def test_signatures_that_a_model_cannot_call_are_refused(function: Any) -> None:
    with pytest.raises(DefinitionError):
        schema_from_function(function)


def test_schema_of_a_pydantic_model() -> None:
    description, schema = schema_from_model(Node)
    assert description == "A node of a tree."
    assert schema["type"] == "object"
    assert schema["properties"]["label"]["description"] == "what it shows."
    assert schema["properties"]["children"]["description"] == "below it"
    assert "title" not in schema
    check_schema(schema)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda *names: 1, "'names' takes any number of arguments"),
        (lambda **names: 1, "'names' takes any keyword"),
        (lambda name, /: 1, "'name' is positional-only"),
        (Service.look, "is a method; make a tool of the bound method"),
        (lambda cls: 1, "is a method; make a tool of the bound method"),
        (takes_alias, "alias differs from its name: ['a', 'b']"),
        (
            takes_opaque,
            "has no form in JSON; use a pydantic model, a dataclass, a TypedDict, or types such",
        ),
        (takes_opaque, "what the program gives to a tool is `ToolContext.deps`"),
    ],
)
def test_a_refused_signature_is_explained_with_the_name_of_the_tool(function: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        schema_from_function(function)
    assert message in str(caught.value)
    assert caught.value.tool == function.__name__


def test_self_is_an_ordinary_name_behind_the_first_place_or_with_a_type() -> None:
    def second(a: int, self: int) -> None: ...
    def annotated(self: int) -> None: ...
    def second_without_types(a, self): ...  # type: ignore[no-untyped-def]

    for function in (second, annotated, second_without_types):
        assert "self" in schema_from_function(function)[1]["properties"]


def test_a_partial_function_keeps_its_remaining_parameters() -> None:
    def look(city: str, days: int) -> None:
        """Look."""

    schema = schema_from_function(partial(look, days=3), "look")[1]
    assert schema["properties"]["city"]["type"] == "string"


class Meeting(BaseModel):
    title: str
    on: datetime.date


class Diary:
    def __init__(self, day: datetime.date) -> None:
        self.day = day

    def __call__(self, day: datetime.date) -> None: ...


DAY = datetime.date(2026, 1, 2)


def test_arguments_become_what_annotations_ask_for() -> None:
    def book(meeting: Meeting, unit: Unit, days: list[datetime.date], note: str = "") -> None: ...

    convert = argument_converter(book)
    assert convert is not None
    arguments = {"meeting": {"title": "x", "on": "2026-01-02"}, "days": ["2026-01-02"], "note": "n", "unit": "f"}
    assert convert(arguments) == {"meeting": Meeting(title="x", on=DAY), "days": [DAY], "note": "n", "unit": Unit.F}
    assert arguments["unit"] == "f"
    assert convert({"unit": "c"}) == {"unit": Unit.C}
    with pytest.raises(ValueError, match="/meeting/on: "):
        convert({"meeting": {"title": "x", "on": "never"}})


@pytest.mark.parametrize("function", [Diary, Diary(DAY), partial(Diary(DAY).__call__), Diary(DAY).__call__])
def test_callables_of_all_kinds_have_their_arguments_converted(function: Any) -> None:
    convert = argument_converter(function)
    assert convert is not None
    assert convert({"day": "2026-01-02"}) == {"day": DAY}


@pytest.mark.parametrize(
    ("hint", "converted"),
    [
        *((str, False), (int, False), (float, False), (bool, False), (None, False), (Any, False), (object, False)),
        *((list, False), (dict, False), (list[int], False), (dict[str, list[float]], False), (int | None, False)),
        *((Literal["a", 1, None], False), (Literal[Unit.C], True), (list[Unit], True), (dict[str, Unit], True)),
        *((Unit | None, True), (Annotated[int, "a note"], False), (Annotated[int, Field(ge=1)], True)),
        *((Annotated[Unit, "a note"], True), (datetime.date, True), (tuple[int, int], True), (set[int], True)),
    ],
)
def test_only_arguments_that_are_not_json_values_are_converted(hint: Any, converted: bool) -> None:
    def function(a: Any) -> Any: ...

    function.__annotations__ = {"a": hint, "return": Unit}
    assert (argument_converter(function) is not None) is converted


def test_annotations_that_cannot_be_read_convert_nothing() -> None:
    assert argument_converter(takes_unknown) is None


def test_titles_that_repeat_names_are_left_out_of_nested_schemas() -> None:
    _, schema = schema_from_function(everything)
    assert '"title": "' not in str(schema).replace("'", '"')


def test_a_recursive_model_keeps_its_definitions() -> None:
    _, schema = schema_from_model(Node)
    assert set(schema["$defs"]) == {"Node"}
    assert set(schema["properties"]) == {"label", "children"}
    assert schema_from_model(Meeting)[1]["required"] == ["title", "on"]

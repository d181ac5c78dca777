"""Schemas from functions and pydantic models."""

from __future__ import annotations

import dataclasses
import enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from toolwire.errors import DefinitionError
from toolwire.schema.shape import Shape
from toolwire.schema.signatures import schema_from_function, schema_from_model
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

"""Types of outputs: their schemas, and the values that JSON becomes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from toolwire.errors import DefinitionError, OutputError
from toolwire.schema.output_type import output_type_of
from toolwire.schema.validation import MAX_ISSUES
from toolwire.text.limits import MAX_DEPTH


class Colour(Enum):
    RED = "red"


class Cat(BaseModel):
    """A cat.

    Attributes:
        name: how it is called.
    """

    kind: Literal["cat"] = "cat"
    name: str


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    age: int = 0


def _even(number: int) -> int:
    if number % 2:
        raise ValueError("it is odd")
    return number


class Exact(BaseModel):
    model_config = ConfigDict(strict=True)
    born: date
    colour: Colour


class Node(BaseModel):
    value: int
    children: list[Node] = []


@dataclass
class Point:
    x: int


PET = Annotated[Cat | Dog, Field(discriminator="kind")]


def test_schema_of_a_model() -> None:
    output = output_type_of(Cat)
    assert (output.name, output.description, output.wrapped) == ("Cat", "A cat.", False)
    assert output.schema["properties"]["name"] == {"type": "string", "description": "how it is called."}
    assert "title" not in output.schema


@pytest.mark.parametrize("kind", [Cat | Dog, PET, list[Cat], int, Literal["a"], Colour, Cat | None])
def test_other_schemas_are_wrapped(kind: Any) -> None:
    schema = output_type_of(kind).schema
    assert schema["required"] == ["response"]
    assert list(schema["properties"]) == ["response"]
    assert "discriminator" not in str(schema)


def test_recursive_model_is_an_object_at_its_root() -> None:
    output = output_type_of(Node)
    assert output.schema["type"] == "object"
    assert output.read({"value": 1, "children": [{"value": 2}]}) == Node(value=1, children=[Node(value=2)])


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Cat, '{"name": "Tom"}', Cat(name="Tom")),
        (PET, '{"response": {"kind": "dog", "age": "3"}}', Dog(age=3)),
        (PET, '{"kind": "dog"}', Dog()),
        (PET, '{"response": {"kind": "dog", "age": null}}', Dog()),
        (Exact, '{"born": "2001-02-03", "colour": "red"}', Exact(born=date(2001, 2, 3), colour=Colour.RED)),
        (list[Point], '[{"x": 1}]', [Point(1)]),
        (Colour, "red", Colour.RED),
        (Colour, '"red"', Colour.RED),
        (str, "Tom, a cat.", "Tom, a cat."),
        (int | None, "null", None),
        ([Cat, Dog], '{"kind": "dog"}', Dog()),
        ((Cat, str), "Tom, a cat.", "Tom, a cat."),
        ([Cat], '{"name": "Tom"}', Cat(name="Tom")),
        ({"type": "string"}, '{"response": "a"}', "a"),
        ({"title": "Pair", "type": "object", "required": ["a"]}, '{"a": 1}', {"a": 1}),
        (list[Dog], '[{"age": null}, {"age": 2}]', [Dog(), Dog(age=2)]),
    ],
)
def test_text(kind: Any, text: str, value: object) -> None:
    assert output_type_of(kind).read_text(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "issue"),
    [
        (Cat, "{}", "name"),
        (Cat, "Tom", "the answer is not JSON"),
        (Cat, "", "the answer is not JSON"),
        (Colour, "blue", '"blue"'),
        (Cat | str, '{"name": ', "the answer is not JSON"),
        (list[Cat], '[{"name": 1}]', "/response/0/name"),
        (int, '"many"', "/response"),
        ({"type": "array", "items": {"type": "integer"}}, '["a"]', "/response/0"),
        (Cat, '```json\n{"name": 1}\n```', "/name"),
        (Cat, '```\n{"name": "a"}\n```\n```\n{"name": "b"}\n```', "not JSON"),
    ],
)
def test_issues(kind: Any, text: str, issue: str) -> None:
    with pytest.raises(OutputError) as caught:
        output_type_of(kind).read_text(text)
    assert issue in str(caught.value)
    assert caught.value.issues


class Even(BaseModel):
    numbers: list[Annotated[int, AfterValidator(_even)]]


def test_issues_that_only_the_type_sees_name_their_place_and_are_few() -> None:
    with pytest.raises(OutputError) as caught:
        output_type_of(Even).read({"numbers": list(range(40))})
    assert caught.value.issues[0] == "/numbers/1: Value error, it is odd"
    assert len(caught.value.issues) == MAX_ISSUES
    with pytest.raises(OutputError) as caught:
        output_type_of(Annotated[int, AfterValidator(_even)]).read({"response": 3})
    assert list(caught.value.issues) == ["the answer: Value error, it is odd"]


def test_a_wrapper_has_no_other_property() -> None:
    schema = output_type_of(list[int]).schema
    assert (schema["required"], schema["additionalProperties"]) == (["response"], False)


def test_nulls_of_optional_properties_are_left_out_at_any_depth_that_can_be_read() -> None:
    output = output_type_of(
        {"type": "object", "properties": {"name": {"type": "string"}, "inner": {"$ref": "#"}}, "title": "Nested"}
    )

    def nested(levels: int, innermost: dict[str, Any]) -> dict[str, Any]:
        for _ in range(levels):
            innermost = {"inner": innermost}
        return innermost

    for levels in (0, 1, MAX_DEPTH - 1):
        assert output.read(nested(levels, {"name": None})) == nested(levels, {})
    with pytest.raises(OutputError, match="nested deeper"):
        output.read(nested(MAX_DEPTH * 20, {"name": None}))


def test_arguments_without_the_wrapper() -> None:
    with pytest.raises(OutputError, match="only property 'response'"):
        output_type_of(int).read({"value": 1})


def test_parts() -> None:
    assert output_type_of(list[int]).unwrap({"response": [1]}) == [1]
    assert output_type_of(list[int]).unwrap({}) is None
    assert output_type_of(Cat).unwrap({"name": "T"}) == {"name": "T"}


def test_name_and_description_of_a_schema() -> None:
    output = output_type_of({"title": "Pair", "description": "Two.", "type": "object", "properties": {}})
    assert (output.name, output.description) == ("Pair", "Two.")


@pytest.mark.parametrize("kind", [{"type": "objekt"}, {"type": "array", "items": {"$ref": "#"}}, open])
def test_types_that_cannot_be_used(kind: Any) -> None:
    with pytest.raises(DefinitionError):
        output_type_of(kind)


def test_empty_list_of_types_is_refused() -> None:
    with pytest.raises(DefinitionError, match="this list is empty"):
        output_type_of([])

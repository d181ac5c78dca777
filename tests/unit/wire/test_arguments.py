"""Arguments of native calls are read with certainty, or refused with a reason."""

from typing import Any

import pytest

import toolwire

TOOL = {
    "name": "read",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": "array", "items": {"type": "integer"}}},
        "required": ["path"],
    },
}

READ: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ('{"path": "a"}', {"path": "a"}, ()),
    ('{"path": "a", "lines": "[1, \\"2\\"]"}', {"path": "a", "lines": [1, 2]}, ("coerced",)),
    ('"{\\"path\\": \\"a\\"}"', {"path": "a"}, ("double_encoded",)),
    ('{"path": "a"}}', {"path": "a"}, ("extra_close",)),
    ("{'path': 'it\\'s'}", {"path": "it's"}, ("single_quotes",)),
    ("{'path': '''a\"b'''}", {"path": 'a"b'}, ("single_quotes", "triple_quotes")),
]

REFUSED: list[tuple[str | None, str]] = [
    (None, "invalid_arguments"),
    ("", "invalid_arguments"),
    ('{"path": "a"', "truncated"),
    ('{"path": "a', "truncated"),
    ('{"path": "a"} {"path": "b"}', "malformed"),
    ('{"path": "a", "path": "b"}', "malformed"),
    ('"{\\"path\\": \\"a"', "truncated"),
    ('"{\\"path\\": \\"a\\""', "truncated"),
    ('"{\\"path\\": \\"a', "truncated"),
    ('"{\\"path\\": \\"a\\"} x"', "malformed"),
    ('""', "malformed"),
    ("[1]", "malformed"),
    ('{"path": 5}', "invalid_arguments"),
    ('{"lines": [1]}', "invalid_arguments"),
]


@pytest.mark.need(4, 5)
@pytest.mark.parametrize(("text", "value", "repairs"), READ)
def test_read_arguments_repairs_and_coerces(text: str, value: dict[str, Any], repairs: tuple[str, ...]) -> None:
    read = toolwire.read_arguments(text, TOOL)
    assert (read.value, read.repairs, read.problem) == (value, repairs, None)


@pytest.mark.need(4, 40)
@pytest.mark.parametrize(("text", "kind"), REFUSED)
def test_read_arguments_refuses_uncertain_text(text: str | None, kind: str) -> None:
    read = toolwire.read_arguments(text, TOOL)
    assert read.value is None
    assert read.problem is not None
    assert read.problem.kind == kind
    assert read.problem.raw == (text or "")


def test_arguments_without_a_tool_are_not_validated() -> None:
    assert toolwire.read_arguments('{"any": "5"}').value == {"any": "5"}
    assert toolwire.read_arguments("").value == {}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/"}}},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "required": 5},
    ],
)
def test_arguments_of_an_unusable_schema_are_refused(schema: dict[str, Any]) -> None:
    for text in ('{"a": "b"}', ""):
        read = toolwire.read_arguments(text, {"name": "odd", "parameters": schema})
        assert read.value is None
        assert read.problem is not None
        assert read.problem.kind == "invalid_arguments"
        assert "'odd' cannot be checked: the tool's own schema cannot be used" in read.problem.message


def test_a_null_for_an_optional_parameter_is_dropped() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": ["integer", "null"]}, "d": {}},
        "required": ["a"],
    }
    tool = toolwire.ToolDefinition("f", parameters=schema)
    read = toolwire.read_arguments('{"a": "x", "b": null, "c": null, "d": null}', tool)
    assert (read.value, read.repairs) == ({"a": "x", "c": None, "d": None}, ("coerced",))
    assert toolwire.read_arguments('{"a": null}', tool).value is None

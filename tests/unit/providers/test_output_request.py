"""Ways to ask for a structured output, by the API, the format and the other tools of a request."""

from dataclasses import dataclass
from typing import Any

import pytest

from toolwire import ConfigurationError, OutputError, get_api
from toolwire.providers.output_request import FINAL_ANSWER, OutputRequest, json_instruction, output_request
from toolwire.providers.output_schema import OutputSchema
from toolwire.schema.output_type import OutputType, output_type_of


@dataclass
class Receipt:
    """A receipt for one payment."""

    to: str


def asked(mode: Any, api: str = "", format: str = "", *, has_tools: bool = False, type: Any = Receipt) -> OutputRequest:
    output: OutputType[Any] = output_type_of(type)
    return output_request(output, mode, api=get_api(api) if api else None, format=format, has_tools=has_tools)


@pytest.mark.parametrize(
    ("mode", "api", "format", "has_tools", "expected"),
    [
        ("auto", "openai_chat", "", False, "native"),
        ("auto", "openai_chat", "", True, "native"),
        ("auto", "deepseek", "", False, "tool"),
        ("auto", "gemini", "", False, "native"),
        ("auto", "", "", False, "tool"),
        ("tool", "openai_chat", "", False, "tool"),
        ("text", "openai_chat", "", False, "text"),
        ("native", "", "", False, "native"),
        ("auto", "", "hermes", False, "text"),
        ("text", "", "hermes", True, "text"),
        ("tool", "", "hermes", False, "text"),
    ],
)
def test_the_best_way_is_chosen(mode: Any, api: str, format: str, has_tools: bool, expected: str) -> None:
    request = asked(mode, api, format, has_tools=has_tools)
    assert request.mode == expected
    # A model that writes text has the tool in its prompt, beside others or where that is configured.
    has_tool = expected == "tool" or bool(format and (has_tools or mode == "tool"))
    assert (request.tool is not None) is has_tool
    assert (request.schema is not None) is (expected == "native")


def test_a_tool_must_be_called_with_each_answer() -> None:
    request = asked("tool")
    assert (request.required, request.instruction, request.note) == (True, "", "")
    assert request.tool is not None
    assert request.tool.name == FINAL_ANSWER
    assert request.tool.description == ("Give your final answer, which ends the task.\n\nA receipt for one payment.")
    assert request.tool.parameters["required"] == ["to"]
    assert request.last_note.startswith(f"No more tool calls now, except one of {FINAL_ANSWER}.")
    assert request.advice(OutputError(["/to: is missing"])) == (
        f"Your final answer is not valid: /to: is missing. Give your final answer by calling {FINAL_ANSWER}."
    )


def test_a_schema_is_strict_and_has_the_name_of_the_type() -> None:
    schema = asked("native", "openai_chat").schema
    assert schema is not None
    assert (schema.name, schema.description, schema.strict) == ("Receipt", "A receipt for one payment.", True)
    assert asked("native", "openai_chat").instruction == ""


def test_an_api_that_hides_the_schema_gets_it_in_words() -> None:
    request = asked("native", "ollama")
    assert get_api("ollama").hides_schemas
    assert request.instruction == json_instruction(request.schema.schema if request.schema is not None else None)


def test_json_in_the_text_is_asked_for_at_the_end() -> None:
    request = asked("auto", format="hermes")
    assert request.note.startswith(
        "Your final answer is JSON alone, without any other text, and follows this JSON Schema:"
    )
    assert '"to"' in request.note
    assert request.last_note == ("No more tool calls now. Give your final answer as JSON, from what you have seen.")
    assert request.advice(OutputError(["it is not JSON"])) == (
        "Your final answer is not valid: it is not JSON. Answer with JSON alone, which follows the schema."
    )


def test_a_call_in_text_is_asked_for_in_words() -> None:
    request = asked("auto", format="hermes", has_tools=True)
    assert request.note == (f"Do not answer in plain words: your final answer is a call of the tool {FINAL_ANSWER}.")


def test_an_output_that_may_be_text_requires_no_call() -> None:
    optional = Receipt | str
    assert not asked("tool", type=optional).required
    assert asked("auto", format="hermes", has_tools=True, type=optional).note == ""


def test_a_guarantee_needs_an_api() -> None:
    with pytest.raises(ConfigurationError, match='output_mode="native" needs an API'):
        asked("native", format="hermes")


def test_any_object_is_asked_for_without_a_schema() -> None:
    assert json_instruction(None) == "Your final answer is one JSON object alone, without any other text."


@pytest.mark.parametrize(("members", "place"), [({"schema": "x"}, "schema"), ({"schema": None, "name": 5}, "name")])
def test_a_schema_is_a_dict_with_a_name(members: Any, place: str) -> None:
    with pytest.raises(TypeError, match=f"^{place} must be (a dict, the JSON Schema|text, not 5)"):
        OutputSchema(**members)

"""The model behind all adapters, without any framework: faults of answers, and calls that must not run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.integrations.weather_model import PIECES, WeatherModel, cut_off, fail, json_in_a_fence, native_model

from toolwire import DefinitionError, FinishReason, ParsedResponse, Problem, ProviderError
from toolwire.events import ArgumentsDelta, Event
from toolwire.integrations.adapted_model import AdaptedModel, chat_request
from toolwire.testing import ScriptedBackend

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}
QUESTION = [{"role": "user", "content": "Weather?"}]


def arguments(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ArgumentsDelta))


def test_each_answer_has_ids_of_its_own() -> None:
    model = AdaptedModel(WeatherModel(), "hermes")
    answers = [model.ask_blocking(chat_request(QUESTION, tools=[TOOL])) for _ in range(2)]
    ids = [call.id for answer in answers for call in answer.tool_calls]
    assert len(ids) == 4 and len(set(ids)) == 4


def test_a_stream_closes_calls_that_are_cut_off() -> None:
    model = AdaptedModel(cut_off, "hermes")
    events = list(model.stream_blocking(chat_request(QUESTION, tools=[TOOL])))
    assert arguments(events).startswith('{"city": "Par"[')
    assert model.ask_blocking(chat_request(QUESTION, tools=[TOOL])).tool_calls == ()


def test_an_output_comes_without_its_fence() -> None:
    schema = {"type": "object", "properties": {"population": {"type": "integer"}}}
    output = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}
    request = chat_request(QUESTION, response_format=output)
    answer = AdaptedModel(json_in_a_fence, "hermes").ask_blocking(request)
    assert json.loads(answer.content)["population"] == 2_100_000
    fenced = "```json\n{}\n```"  # of a server, which knows the schema itself
    assert AdaptedModel(ScriptedBackend([fenced])).ask_blocking(request).content == fenced


def test_white_space_beside_calls_is_no_content() -> None:
    for model in (WeatherModel(), lambda messages: f"\n{PIECES[0][13:]}{PIECES[1]}{PIECES[2]}{PIECES[3]}\n"):
        answer = AdaptedModel(model, "hermes").ask_blocking(chat_request(QUESTION, tools=[TOOL]))
        assert len(answer.tool_calls) == 2
        assert answer.content == ("Let me look. " if isinstance(model, WeatherModel) else "")


@pytest.mark.parametrize(
    ("model", "format", "name"),
    [
        (fail, "hermes", "fail"),
        (WeatherModel(), "hermes", "toolwire"),
        (native_model(), "", "m"),
        (native_model(), "hermes", "m"),
        ("ollama:qwen3:8b", "hermes", "ollama:qwen3:8b"),
    ],
)
def test_a_model_has_its_own_name(model: Any, format: str, name: str) -> None:
    assert AdaptedModel(model, format).name == name


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("provider_error", FinishReason.STOP), ("truncated", FinishReason.ERROR), ("malformed", FinishReason.STOP)],
)
def test_an_answer_that_failed_is_an_error(kind: Any, reason: FinishReason) -> None:
    problem = Problem(kind, 0, "", "the server is overloaded", status=529)
    failed = ParsedResponse(problems=(problem,), finish_reason=reason)
    with pytest.raises(ProviderError, match="the server is overloaded") as raised:
        AdaptedModel(ScriptedBackend([failed])).ask_blocking(chat_request(QUESTION))
    assert raised.value.status == 529


def test_a_backend_gets_the_request_as_it_is() -> None:
    backend = ScriptedBackend([ParsedResponse("".join(PIECES))])
    model = AdaptedModel(backend)
    assert not model.is_text and AdaptedModel(WeatherModel(), "hermes").is_text
    request = chat_request(QUESTION, tools=[TOOL], temperature=0.5, stop=None)
    assert request.temperature == 0.5 and model.ask_blocking(request).content == "".join(PIECES)
    assert backend.requests == [request]


def test_messages_of_another_shape_are_an_error() -> None:
    with pytest.raises(DefinitionError, match="the body is not a request"):
        chat_request([{"role": "user", "content": 5}])


def test_request_for_several_answers_is_an_error() -> None:
    messages = [{"role": "user", "content": "Hello"}]
    assert chat_request(messages, n=1) and chat_request(messages, n=None)
    with pytest.raises(DefinitionError, match="n: the model gives one answer"):
        chat_request(messages, n=2)

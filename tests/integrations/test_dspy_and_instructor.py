"""DSPy, over the provider for LiteLLM, and instructor, over the transport and over that provider."""

from __future__ import annotations

import importlib
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from tests.integrations.weather_model import PIECES, get_weather

from toolwire import MissingExtra
from toolwire.integrations import ToolwireTransport

pytest.MonkeyPatch().setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it fetches prices from a server otherwise
adapter = pytest.importorskip(
    "toolwire.integrations.litellm", reason="needs scripts/test-frameworks", exc_type=MissingExtra
)
pytestmark = pytest.mark.filterwarnings("ignore")  # of the frameworks


class City(BaseModel):
    name: str
    population: int


def largest_city(messages: Any) -> str:
    return '<tool_call>{"name": "City", "arguments": {"name": "Paris", "population": 2100000}}</tool_call>'


def largest_city_in_a_fence(messages: Any) -> str:
    return '```json\n{"name": "Paris", "population": 2100000}\n```'


def register(monkeypatch: pytest.MonkeyPatch, model: Any) -> Any:
    litellm = importlib.import_module("litellm")
    handler = adapter.ToolwireLiteLLM(model, format="hermes")
    monkeypatch.setattr(litellm, "custom_provider_map", [{"provider": "toolwire", "custom_handler": handler}])
    return litellm


def test_dspy_reads_parallel_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    dspy = pytest.importorskip("dspy", reason="needs scripts/test-frameworks")
    prompts = []

    def model(messages: Any) -> str:
        prompts.append(messages)
        return "".join(PIECES)

    # LiteLLM's table of models says which of them call functions; DSPy asks it.
    facts = {"litellm_provider": "toolwire", "mode": "chat", "supports_function_calling": True}
    register(monkeypatch, model).register_model({"toolwire/any": facts})
    fields = {
        "question": (str, dspy.InputField()),
        "tools": (list[dspy.Tool], dspy.InputField()),
        "outputs": (dspy.ToolCalls, dspy.OutputField()),
    }
    native = dspy.ChatAdapter(use_native_function_calling=True)
    with dspy.context(lm=dspy.LM("toolwire/any", cache=False), adapter=native):
        asked = dspy.Predict(dspy.make_signature(fields))
        outputs = asked(question="Weather?", tools=[dspy.Tool(get_weather)]).outputs
    assert [call.args for call in outputs.tool_calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert "Return the weather in a city." in prompts[0][0]["content"]


@pytest.mark.parametrize(("mode", "model"), [("TOOLS", largest_city), ("JSON_SCHEMA", largest_city_in_a_fence)])
def test_instructor_reads_objects_over_the_transport(mode: str, model: Any) -> None:
    instructor = pytest.importorskip("instructor", reason="it needs an openai older than the other frameworks'")
    http_client = openai.DefaultHttpxClient(transport=ToolwireTransport(model, format="hermes"))
    client = instructor.from_openai(
        openai.OpenAI(api_key="none", http_client=http_client), mode=getattr(instructor.Mode, mode)
    )
    question = [{"role": "user", "content": "The largest city of France?"}]
    city = client.chat.completions.create(model="any", response_model=City, messages=question)
    assert city.model_dump() == {"name": "Paris", "population": 2_100_000}


def test_instructor_reads_objects_over_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    instructor = pytest.importorskip("instructor", reason="it needs an openai older than the other frameworks'")
    client = instructor.from_litellm(register(monkeypatch, largest_city).completion)
    question = [{"role": "user", "content": "The largest city of France?"}]
    city = client.chat.completions.create(model="toolwire/any", response_model=City, messages=question)
    assert city.model_dump() == {"name": "Paris", "population": 2_100_000}

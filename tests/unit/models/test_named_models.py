"""Models in every form in which a program may name them."""

import gc
from typing import Any

import pytest

from toolwire import Agent, Client, ConfigurationError, ParsedResponse
from toolwire.models import ApiBackend, Fallback, Route
from toolwire.models.named_models import as_backend
from toolwire.testing import ScriptedBackend, ScriptedTransport


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")


def test_client_is_a_model_with_fields_for_tools() -> None:
    client = Client("anthropic", "claude-haiku-4-5", transport=ScriptedTransport("anthropic", [ParsedResponse("hi")]))
    agent = Agent(client)
    assert isinstance(agent.backend, ApiBackend)
    assert agent.ask_sync("?") == "hi"


@pytest.mark.parametrize(
    ("text", "api", "model"),
    [
        ("openai:gpt-5-mini", "openai_chat", "gpt-5-mini"),
        ("anthropic:claude-haiku-4-5", "anthropic_messages", "claude-haiku-4-5"),
        ("openai_responses:gpt-5", "openai_responses", "gpt-5"),
        ("ollama:qwen3:8b", "ollama", "qwen3:8b"),
    ],
)
def test_text_names_a_provider_and_its_model(text: str, api: str, model: str) -> None:
    backend = as_backend(text)
    assert isinstance(backend, ApiBackend)
    assert (backend.api, backend.model) == (api, model)
    del backend
    gc.collect()  # a client that nobody closes must not warn: warnings are errors in tests


def test_backend_stays_as_it_is() -> None:
    backend = ScriptedBackend(["hi"])
    assert as_backend(backend) is backend


def test_groups_of_models_take_them_too() -> None:
    client = Client("openai", "gpt-5-mini")
    models = Fallback(["anthropic:claude-haiku-4-5", client, ScriptedBackend([])]).backends
    assert [model.model for model in models] == ["claude-haiku-4-5", "gpt-5-mini", "scripted"]
    assert [model.model for model in Route({"a": "openai:gpt-5", "b": client}, lambda _: "a").backends] == [
        "gpt-5",
        "gpt-5-mini",
    ]


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        ("gpt-5-mini", ConfigurationError, "such as \"openai:gpt-5-mini\", not 'gpt-5-mini'"),
        ("openai:", ConfigurationError, "must name a provider and a model"),
        (":gpt-5", ConfigurationError, "must name a provider and a model"),
        ("opnai:gpt-5", KeyError, "did you mean openai"),
        (
            "local:1.5b",
            ConfigurationError,
            r"has to be loaded first: TextBackend\(local_source\(open_model\('1.5b'\)\)",
        ),
        (None, TypeError, "backend must be a Backend, a Client, or text"),
        (7, TypeError, "backend must be a Backend, a Client, or text"),
        (ScriptedBackend, TypeError, "backend must be a Backend, a Client, or text"),
    ],
)
def test_other_values_are_refused_with_what_to_write(model: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Agent(model)


def test_one_text_is_no_list_of_models() -> None:
    with pytest.raises(TypeError, match="a list of backends"):
        Fallback("openai:gpt-5")  # type: ignore[arg-type]

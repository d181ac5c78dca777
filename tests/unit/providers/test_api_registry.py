"""The table of provider APIs: names, aliases, and the shapes of responses."""

from typing import Any

import pytest

import toolwire
from toolwire.providers.api_registry import api_of, find_api


@pytest.mark.parametrize(
    ("name", "api"),
    [
        ("openai", "openai_chat"),
        ("chat_completions", "openai_chat"),
        ("Chat-Completions", "openai_chat"),
        ("responses", "openai_responses"),
        ("openai-responses", "openai_responses"),
        ("anthropic", "anthropic_messages"),
        ("claude", "anthropic_messages"),
        ("Google", "gemini"),
        ("vertex", "gemini"),
        ("bedrock", "bedrock_converse"),
        ("llama.cpp", "llama_cpp"),
        ("llama-cpp", "llama_cpp"),
        ("mistral", "mistral"),
        ("interactions", "gemini_interactions"),
        ("LMStudio", "lm_studio"),
        ("z.ai", "zai"),
        ("glm", "zai"),
        ("huggingface", "hugging_face"),
        ("ollama-v1", "ollama_chat"),
        ("bedrock_invoke", "anthropic_bedrock"),
        ("vertex_anthropic", "anthropic_vertex"),
        ("ollama", "ollama"),
        ("cohere", "cohere"),
    ],
)
def test_an_api_is_found_by_its_name_or_an_alias_in_any_spelling(name: str, api: str) -> None:
    assert toolwire.get_api(name).name == api
    assert find_api(name) is toolwire.get_api(api)


@pytest.mark.parametrize(
    ("name", "title"),
    [("realtime", "OpenAI's Realtime API"), ("Azure-Realtime", "OpenAI's Realtime API"), ("live", "Gemini's Live API")],
)
def test_an_api_over_an_open_connection_is_named_as_not_supported(name: str, title: str) -> None:
    with pytest.raises(toolwire.UnknownApi, match=f"^{title} is not supported yet"):
        toolwire.get_api(name)


def test_every_api_is_found_by_its_name() -> None:
    names = toolwire.apis()
    assert [toolwire.get_api(name).name for name in names] == list(names)
    own = toolwire.get_api("gemini")
    assert toolwire.get_api(own) is own


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    assert find_api("morse") is None
    with pytest.raises(toolwire.UnknownApi) as caught:
        toolwire.get_api("Gemni")
    message = str(caught.value)
    assert message.startswith("unknown provider API 'Gemni'; did you mean gemini")
    assert message.endswith(f" (known are {', '.join(toolwire.apis())})")
    with pytest.raises(TypeError, match="api must be an API's name or a ProviderApi, not 5"):
        toolwire.get_api(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("response", "api"),
    [
        ({"choices": []}, "openai_chat"),
        ({"candidates": []}, "gemini"),
        ({"promptFeedback": {}}, "gemini"),
        ({"output": {}, "stopReason": "end_turn"}, "bedrock_converse"),
        ({"object": "response", "output": []}, "openai_responses"),
        ({"role": "assistant", "content": [], "stop_reason": None, "id": "1"}, "anthropic_messages"),
        ({"message": {}, "done": True}, "ollama"),
        ({"message": {}, "finish_reason": "COMPLETE"}, "cohere"),
        ({"message": {}, "done": True, "choices": []}, "openai_chat"),
    ],
)
def test_a_response_is_recognised_by_its_members(response: dict[str, Any], api: str) -> None:
    found = api_of(response)
    assert found is not None
    assert found.name == api


def test_other_objects_are_not_responses() -> None:
    responses: list[dict[str, Any]] = [{"output": []}, {"message": {}}, {"role": "assistant", "content": []}]
    for response in ({}, *responses, {"object": "list"}, {"done": True}, {"stopReason": "x"}, {"stop_reason": "x"}):
        assert api_of(response) is None

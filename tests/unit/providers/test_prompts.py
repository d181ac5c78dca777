"""Completions of prompts, of Ollama and of OpenAI: texts in other members than those of a chat."""

import json
from typing import Any

import pytest

from toolwire import DefinitionError, ImagePart, Message, Notes, ParsedResponse, TextPart, Usage, collect, replay
from toolwire.providers.ollama_generate import OllamaGenerate
from toolwire.providers.prompt_completions import PromptCompletions

OLLAMA = OllamaGenerate()
OPENAI = PromptCompletions("openai_compatible")
ANSWER = ParsedResponse("It snows.", "Hm.", usage=Usage(5, 7))


def test_a_prompt_of_ollama_is_a_conversation() -> None:
    body: dict[str, Any] = {
        "model": "m",
        "prompt": "Weather?",
        "system": "Be kind.",
        "images": ["iVBORw=="],
        "options": {"temperature": 0.5},
        "stream": False,
    }
    request = OLLAMA.decode_request(body)
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[0].parts == (TextPart("Be kind."),)
    assert request.messages[1].parts[0] == TextPart("Weather?")
    assert isinstance(request.messages[1].parts[1], ImagePart)
    assert (request.temperature, request.extra) == (0.5, {})
    assert OLLAMA.encode_request(request) == body


def test_a_prompt_of_ollama_alone_has_no_other_members() -> None:
    request = OLLAMA.decode_request({"model": "m", "prompt": "Weather?"})
    assert request.messages == (Message("user", (TextPart("Weather?"),)),)
    assert OLLAMA.encode_request(request).keys() == {"model", "prompt", "stream"}


@pytest.mark.parametrize("members", [{"prompt": 5}, {"prompt": "a", "system": 5}])
def test_a_prompt_of_ollama_is_text(members: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match="must be text"):
        OLLAMA.decode_request({"model": "m", **members})


def test_an_answer_of_ollama_has_its_text_as_response() -> None:
    notes = Notes()
    body = OLLAMA.encode_response(ANSWER, model="m", notes=notes)
    assert (body["response"], body["thinking"], body["done"]) == ("It snows.", "Hm.", True)
    assert not body.keys() & {"message", "role"}
    back = OLLAMA.decode_response({**body, "context": [1, 2], "load_duration": 5})
    assert (back.content, back.reasoning, back.usage, len(back.parts)) == ("It snows.", "Hm.", Usage(5, 7), 2)
    assert not notes


def test_a_stream_of_ollama_has_its_text_as_response() -> None:
    data = b"".join(OLLAMA.encode_stream(replay(ANSWER), model="m"))
    lines = [json.loads(line) for line in data.splitlines()]
    assert [line["response"] for line in lines] == ["", "It snows.", ""]
    assert lines[0]["thinking"] == "Hm."
    assert not any(line.keys() & {"message", "role"} for line in lines)
    decoder = OLLAMA.stream_decoder()
    back = collect([*decoder.feed(data), *decoder.finish()])
    assert (back.content, back.reasoning, back.usage) == ("It snows.", "Hm.", Usage(5, 7))


@pytest.mark.parametrize(
    ("prompt", "texts"),
    [("Weather?", ["Weather?"]), (["a", "b"], ["a", "b"]), ([[1, 2], "b"], ["b"]), ([1, 2], [])],
)
def test_a_prompt_of_openai_is_passed_on_as_it_is(prompt: Any, texts: list[str]) -> None:
    body = {"model": "m", "prompt": prompt, "temperature": 0.5, "echo": True, "stream": True}
    request = OPENAI.decode_request(body)
    assert [message.parts for message in request.messages] == [(TextPart(text),) for text in texts]
    assert (request.temperature, request.extra) == (0.5, {"prompt": prompt, "echo": True})
    assert OPENAI.encode_request(request) == body


def test_an_answer_of_openai_has_its_text_in_the_choice() -> None:
    body = {"id": "cmpl-1", "choices": [{"index": 0, "text": "It snows.", "finish_reason": "stop"}]}
    assert OPENAI.decode_response(body).content == "It snows."
    decoder = OPENAI.stream_decoder()
    events = [event for text in ("It ", "snows.") for event in decoder.feed({"choices": [{"index": 0, "text": text}]})]
    events += decoder.feed({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})
    assert collect([*events, *decoder.finish()]).content == "It snows."
    assert OPENAI.decode_response({"choices": [None]}).content == ""

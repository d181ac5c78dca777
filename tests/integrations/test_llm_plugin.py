"""llm with Toolwire's plug-in: its library and its program, models of other plug-ins, errors, usage."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.weather_model import (
    ANSWER,
    EndlessModel,
    WeatherModel,
    cut_off,
    fail,
    get_weather,
    json_in_a_fence,
    native_model,
)

from toolwire import MissingExtra, ParsedResponse, ProviderError, ToolCall, Usage
from toolwire.testing import ScriptedBackend

plugin = pytest.importorskip(
    "toolwire.integrations.llm_plugin", reason="needs scripts/test-frameworks", exc_type=MissingExtra
)
llm = pytest.importorskip("llm", reason="needs scripts/test-frameworks")
parts = pytest.importorskip("llm.parts", reason="needs scripts/test-frameworks")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework

OTHER_PLUGIN = '''
import llm

class Parrot(llm.Model):
    """A model without support for tools, which reads the prompt alone, as older plug-ins do."""

    model_id = "parrot"

    def execute(self, prompt, stream, response, conversation):
        if "rain in Oslo" in prompt.prompt:
            yield "It rains "
            yield "in Oslo."
        else:
            assert "get_weather" in prompt.system
            yield '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'

@llm.hookimpl
def register_models(register):
    register(Parrot())
'''


def model(answers: Any, format: str = "hermes") -> Any:
    return plugin.ToolwireLlmModel("toolwire/test", lambda: answers, format)


def test_a_chain_runs_parallel_calls() -> None:
    weather = WeatherModel()
    chain = model(weather).chain("Weather?", tools=[get_weather])
    assert chain.text().endswith(ANSWER)
    first, second = chain._responses
    assert [call.arguments for call in first.tool_calls()] == [{"city": "Paris"}, {"city": "Rome"}]
    assert len({call.tool_call_id for call in first.tool_calls()}) == 2
    assert first.output_tokens > 0 and second.input_tokens > 0
    assert "rain in Rome" in weather.prompts[1][-1]["content"]


def test_a_stream_names_a_call_before_its_arguments_are_written() -> None:
    weather = WeatherModel(waits=True)
    response = model(weather).prompt("Weather?", tools=[get_weather])
    for event in response.stream_events():
        if event.type == "tool_call_name":
            weather.named.set()
    calls = [part for part in response.messages()[0].parts if part.to_dict()["type"] == "tool_call"]
    assert [call.arguments for call in calls] == [{"city": "Paris"}, {"city": "Rome"}]


def test_a_program_with_async() -> None:
    async def ask() -> str:
        asked = plugin.AsyncToolwireLlmModel("toolwire/test", WeatherModel, "hermes")
        return await asked.chain("Weather?", tools=[get_weather]).text()

    assert asyncio.run(ask()).endswith(ANSWER)


def test_reasoning_is_apart() -> None:
    response = model(lambda messages: "<think>Paris.</think>It rains.").prompt("Weather?")
    assert response.text() == "It rains."
    assert [part.to_dict()["type"] for part in response.messages()[0].parts] == ["reasoning", "text"]


def test_a_conversation_keeps_its_messages() -> None:
    seen = []

    def answer(messages: list[dict[str, str]]) -> str:
        seen.append([(message["role"], message["content"]) for message in messages])
        return "Yes."

    conversation = model(answer).conversation()
    conversation.prompt("Rain?", system="Be brief.").text()
    conversation.prompt("Sure?").text()
    assert seen[1] == [("system", "Be brief."), ("user", "Rain?"), ("assistant", "Yes."), ("user", "Sure?")]


def test_a_call_that_is_cut_off_is_an_error() -> None:
    with pytest.raises(ProviderError, match="the call of get_weather is incomplete"):
        model(cut_off).prompt("Weather?", tools=[get_weather]).text()


def test_schema_and_options_reach_the_model() -> None:
    seen = []

    def answer(messages: Any, temperature: float = 1.0, max_tokens: int = 0) -> str:
        seen.append((temperature, max_tokens))
        return "".join(json_in_a_fence(messages))

    schema = {"type": "object", "properties": {"population": {"type": "integer"}}}
    response = model(answer).prompt("Paris?", schema=schema, temperature=0.5, max_tokens=50)
    assert json.loads(response.text())["population"] == 2100000 and seen == [(0.5, 50)]


def test_pictures_reach_the_model(tmp_path: Path) -> None:
    client = native_model(ParsedResponse(content="red"))
    picture = tmp_path / "flag.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    assert model(client, "").prompt("Colour?", attachments=[llm.Attachment(path=str(picture))]).text() == "red"
    parts = client._transport.requests[0]["messages"][0]["content"]
    assert parts[1]["image_url"]["url"].startswith("data:image/png;base64,")


def test_messages_of_every_kind_reach_the_model(tmp_path: Path) -> None:
    picture = llm.Attachment(content=b"\x89PNG\r\n\x1a\n", type="image/png")
    address = llm.Attachment(url="http://localhost/a.png", type="image/png")
    call = parts.ToolCallPart(name="look", arguments={"at": "it"}, tool_call_id="c1")
    result = parts.ToolResultPart(name="look", output="a flag", tool_call_id="c1", attachments=[picture])
    failed = parts.ToolResultPart(name="look", output="", tool_call_id="c2", exception="it is dark")
    history = [
        llm.Message(role="user", parts=[parts.TextPart(text="Colour?"), parts.AttachmentPart(attachment=address)]),
        llm.Message(role="assistant", parts=[parts.ReasoningPart(text="Hm."), call]),
        llm.Message(role="tool", parts=[failed]),
        llm.Message(role="tool", parts=[result]),
    ]
    backend = ScriptedBackend([ParsedResponse("Red.")])
    assert model(backend, "").prompt(messages=history).text() == "Red."
    user, assistant, results, shown = backend.requests[0].messages
    assert user.parts[1].url == "http://localhost/a.png"
    reasoning, called = assistant.parts
    assert (reasoning.text, called.name, called.arguments) == ("Hm.", "look", {"at": "it"})
    assert [(part.call_id, part.text) for part in results.parts] == [("c2", "it is dark"), ("c1", "a flag")]
    assert shown.role == "user" and shown.parts[0].media_type == "image/png"


def test_a_model_is_loaded_once() -> None:
    loaded: list[str] = []

    def load() -> Any:
        loaded.append("model")
        return lambda messages: "Yes."

    asked = plugin.ToolwireLlmModel("toolwire/test", load, "hermes")
    assert loaded == []
    for _ in range(2):
        usage = asked.prompt("Rain?").usage()
        assert usage.input > 0 and usage.details is None
    assert loaded == ["model"]


@pytest.mark.parametrize("turns", [1, 2])
def test_a_model_of_another_plug_in_gets_messages_prompt_and_options(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    seen: list[Any] = []

    class Other(llm.Model):
        model_id = "other"

        class Options(llm.Options):
            speed: int = 0

        def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Any:
            texts = [(message.role, message.parts[0].text) for message in prompt.messages]
            seen.append((prompt.prompt, prompt.system, prompt.options.speed, texts))
            yield "Yes."

    monkeypatch.setattr(llm, "get_model", lambda name: Other())
    conversation = model(plugin._other_model("other", {"speed": 5})).conversation()
    for question in ("Rain?", "Sure?")[:turns]:
        assert conversation.prompt(question, system="Be brief.").text() == "Yes."
    prompt, system, speed, texts = seen[-1]
    assert (system, speed) == (texts[0][1], 5) and system.startswith("Be brief.")
    assert texts[1:] == [("user", "Rain?"), ("assistant", "Yes."), ("user", "Sure?")][: 2 * turns - 1]
    assert prompt == ("Rain?" if turns == 1 else "User: Rain?\n\nAssistant: Yes.\n\nUser: Sure?\n\nAssistant:")


def test_errors_of_the_model_are_raised() -> None:
    with pytest.raises(ProviderError, match="out of memory"):
        model(fail).prompt("Weather?").text()


def test_closing_a_stream_stops_the_model() -> None:
    endless = EndlessModel()
    pieces = iter(model(endless).prompt("Weather?"))
    assert next(pieces) == "more "
    pieces.close()
    assert endless.stopped.wait(60)


def test_a_server_is_a_model_too() -> None:
    call = ToolCall("get_weather", {"city": "Oslo"}, id="call_1")
    answer = ParsedResponse(tool_calls=(call,), usage=Usage(100, 20, cached_tokens=30, reasoning_tokens=5))
    response = model(native_model(answer), "").prompt("?", tools=[get_weather])
    assert [(call.tool_call_id, call.arguments) for call in response.tool_calls()] == [("call_1", {"city": "Oslo"})]
    usage = response.usage()
    assert (usage.input, usage.output, usage.details) == (100, 20, {"cached_tokens": 30, "reasoning_tokens": 5})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of llm, without models."""
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path))
    return tmp_path


def registered() -> dict[str, Any]:
    models: dict[str, Any] = {}
    plugin.register_models(lambda *both, **named: models.update({both[0].model_id: both}))
    return models


def test_the_program_gives_tools_to_a_model_that_has_none(folder: Path, tmp_path: Path) -> None:
    (folder / "toolwire.toml").write_text('[models.bird]\nllm_model = "parrot"\nformat = "hermes"\n')
    (tmp_path / "parrot.py").write_text(OTHER_PLUGIN)
    (tmp_path / "run.py").write_text(
        "import llm, llm.plugins, parrot\nllm.plugins.load_plugins()\nllm.plugins.pm.register(parrot)\n"
        "from llm.cli import cli\ncli()\n"
    )
    tool = 'def get_weather(city: str) -> str:\n    "Return the weather."\n    return f"rain in {city}"'
    command = ["-m", "toolwire/bird", "Weather in Oslo?", "--functions", tool, "--no-log", "--td"]
    done = subprocess.run(
        [sys.executable, "run.py", *command], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "It rains in Oslo." and "get_weather" in done.stderr


def test_models_of_the_file_are_registered_for_both_kinds_of_programs(folder: Path) -> None:
    (folder / "toolwire.toml").write_text('[models.q]\nmodel = "ollama:qwen3:8b"\nformat = "hermes"\n')
    (sync, is_async) = registered()["toolwire/q"]
    assert isinstance(sync, llm.Model) and isinstance(is_async, llm.AsyncModel)


def test_without_a_file_there_are_no_models(folder: Path) -> None:
    assert registered() == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[models.q", "toolwire.toml: not TOML: Expected"),
        ("[models.q]\nformt = 'hermes'", "toolwire.toml:2: models.q.formt: there is no such key.*did you mean format"),
        ("[models.q]\nformat = 'hermes'", "models.q: give either model or llm_model"),
        ("[models.q]\nmodel = 'a:b'\nllm_model = 'c'", "models.q: give either model or llm_model"),
        ("[models.q]\nllm_model = 'c'", "models.q: name the wire format"),
        ("[models.q]\nmodel = 'local:1.5b'", "models.q: name the wire format"),
        ("[models.q]\nmodel = 'a:b'\noptions = {x = 1}", "models.q: options belong to llm_model"),
    ],
)
def test_a_broken_file_is_a_warning_that_says_where(folder: Path, text: str, message: str) -> None:
    (folder / "toolwire.toml").write_text(text)
    with pytest.warns(UserWarning, match=message):
        assert registered() == {}


def test_a_model_that_llm_does_not_have_is_named(folder: Path) -> None:
    (folder / "toolwire.toml").write_text('[models.bird]\nllm_model = "parot"\nformat = "hermes"\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (bird, _) = registered()["toolwire/bird"]
    with pytest.raises(Exception, match="llm has no model 'parot'"):
        bird.prompt("?").text()

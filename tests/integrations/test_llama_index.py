"""LlamaIndex with `ToolwireLLM`: agents, streams, structured output, errors, usage, cancellation."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.integrations.weather_model import (
    ANSWER,
    EndlessModel,
    WeatherModel,
    cut_off,
    fail,
    get_weather,
    invented_turns,
    native_model,
)

from toolwire import DefinitionError, MissingExtra, ParsedResponse, ProviderError, ToolCall
from toolwire.testing import ScriptedBackend

adapter = pytest.importorskip(
    "toolwire.integrations.llama_index", reason="needs scripts/test-frameworks", exc_type=MissingExtra
)
prompts_module = pytest.importorskip("llama_index.core.prompts", reason="needs scripts/test-frameworks")
llms = pytest.importorskip("llama_index.core.llms", reason="needs scripts/test-frameworks")
workflows = pytest.importorskip("llama_index.core.agent.workflow", reason="needs scripts/test-frameworks")
tools = pytest.importorskip("llama_index.core.tools", reason="needs scripts/test-frameworks")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework

WEATHER = tools.FunctionTool.from_defaults(get_weather)


class City(BaseModel):
    city: str
    population: int


def llm(model: Any, format: str = "hermes", **settings: Any) -> Any:
    return adapter.ToolwireLLM(model=model, format=format, settings=settings)


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "stream"])
def test_an_agent_runs_parallel_calls(streaming: bool) -> None:
    model = WeatherModel()
    agent = workflows.FunctionAgent(tools=[get_weather], llm=llm(model), streaming=streaming)

    async def ask() -> Any:
        return await agent.run("Weather?")

    answer = asyncio.run(ask())
    assert str(answer) == ANSWER
    assert {call.tool_kwargs["city"]: call.tool_output.content for call in answer.tool_calls} == {
        "Paris": "rain in Paris",
        "Rome": "rain in Rome",
    }
    assert len(model.prompts) == 2 and "get_weather" in model.prompts[0][0]["content"]


def test_a_stream_names_a_call_before_its_arguments_are_written() -> None:
    model = WeatherModel(waits=True)
    chat = llm(model)
    for response in chat.stream_chat_with_tools([WEATHER], "Weather?", allow_parallel_tool_calls=True):
        blocks = [block for block in response.message.blocks if block.block_type == "tool_call"]
        if blocks and not model.named.is_set():
            assert (blocks[0].tool_name, blocks[0].tool_kwargs) == ("get_weather", "")
            assert chat.get_tool_calls_from_response(response, error_on_no_tool_call=False) == []
            model.named.set()
        # LlamaIndex would take calls here for whole ones.
        assert ("tool_calls" in response.message.additional_kwargs) == (response.raw is not None)
    calls = chat.get_tool_calls_from_response(response)
    assert [call.tool_kwargs for call in calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert len({call.tool_id for call in calls}) == 2 and response.message.content.strip() == "Let me look."
    assert response.raw["finish_reason"] == "tool_calls" and response.raw["usage"]["completion_tokens"] > 0


def test_text_and_reasoning_arrive_in_pieces() -> None:
    model = llm(lambda messages: iter(["<think>Pa", "ris.</think>It ", "rains."]))

    async def read() -> list[Any]:
        return [response async for response in await model.astream_chat([llms.ChatMessage("Weather?")])]

    responses = asyncio.run(read())
    assert "".join(response.delta for response in responses) == "It rains."
    assert "".join(response.additional_kwargs.get("thinking_delta", "") for response in responses) == "Paris."
    assert [block.block_type for block in responses[-1].message.blocks] == ["thinking", "text"]
    assert model.complete("Weather?").text == "It rains."
    assert [piece.delta for piece in model.stream_complete("Weather?")][-3:-1] == ["It ", "rains."]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_call_that_is_cut_off_is_no_call(stream: bool) -> None:
    chat = llm(cut_off)
    responses = list(chat.stream_chat_with_tools([WEATHER], "?")) if stream else [chat.chat_with_tools([WEATHER], "?")]
    assert chat.get_tool_calls_from_response(responses[-1], error_on_no_tool_call=False) == []
    assert all(block.block_type != "tool_call" for block in responses[-1].message.blocks)
    assert responses[-1].raw["problems"]
    with pytest.raises(ValueError, match="the model called no tool"):
        chat.get_tool_calls_from_response(responses[-1])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_last_response_has_the_confidence_of_uncertain_calls(stream: bool) -> None:
    chat = llm(invented_turns)
    asked = {"tools": [WEATHER], "user_msg": "?", "allow_parallel_tool_calls": True}
    response = list(chat.stream_chat_with_tools(**asked))[-1] if stream else chat.chat_with_tools(**asked)
    first, *others = [call.tool_id for call in chat.get_tool_calls_from_response(response)]
    assert set(response.raw["call_confidence"]) == set(others) and first not in others


def test_structured_output_is_an_object() -> None:
    seen = []

    def model(messages: Any, temperature: float = 1.0) -> str:
        seen.append(temperature)
        return '<tool_call>{"name": "City", "arguments": {"city": "Paris", "population": 2100000}}</tool_call>'

    structured = llm(model, temperature=0.5).as_structured_llm(City)
    paris = City(city="Paris", population=2100000)
    assert structured.chat([llms.ChatMessage("Paris?")]).raw == paris
    assert list(structured.stream_chat([llms.ChatMessage("Paris?")]))[-1].raw == paris
    assert seen == [0.5, 0.5]
    with pytest.raises(ValueError, match="temperature"):
        adapter.ToolwireLLM(model=model, format="hermes", temperature=0.5)


def test_a_structured_output_must_be_a_call_or_is_json_in_the_text() -> None:
    prompts = []

    def model(messages: Any) -> str:
        prompts.append(messages)
        arguments = '{"city": "Paris", "population": 2100000}'
        is_call = "You must call one of these tools" in messages[0]["content"]
        return f'<tool_call>{{"name": "City", "arguments": {arguments}}}</tool_call>' if is_call else arguments

    template = prompts_module.PromptTemplate("The largest city of {country}?")
    for options in ({}, {"pydantic_program_mode": "llm"}):
        chosen = adapter.ToolwireLLM(model=model, format="hermes", **options)
        assert chosen.structured_predict(City, template, country="France") == City(city="Paris", population=2_100_000)
    assert prompts[0][0]["role"] == "system" and "JSON" in prompts[1][0]["content"]


def test_a_call_alone_has_no_text_beside_it() -> None:
    chat = llm(ScriptedBackend([ParsedResponse(tool_calls=(ToolCall("get_weather", {"city": "Oslo"}, id="c"),))]), "")
    message = chat.chat_with_tools([WEATHER], "Weather?").message
    assert [block.block_type for block in message.blocks] == ["tool_call"]


def test_tools_and_settings_reach_the_model() -> None:
    backend = ScriptedBackend([ParsedResponse("Rain.")] * 3)
    chat = llm(backend, "", max_tokens=50, temperature=0.5)
    assert chat.metadata.num_output == 50 and llm(backend, "").metadata.num_output == -1
    chat.chat([llms.ChatMessage("Weather?")], temperature=0.2)
    chat.chat_with_tools([], "Weather?")
    long = tools.FunctionTool.from_defaults(get_weather, name="weather", description=2000 * "long ")
    chat.chat_with_tools([long], "Weather?")
    first, second, third = backend.requests
    assert (first.max_tokens, first.temperature) == (50, 0.2)
    assert not second.tools and second.parallel is None
    assert third.tools[0].description.startswith("long ") and third.parallel is False


def test_messages_of_every_kind_reach_the_model() -> None:
    backend = ScriptedBackend([ParsedResponse("Yes.")])
    stored = {"id": "c2", "type": "function", "function": {"name": "look", "arguments": '{"at": "her"}'}}
    call = {"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "look", "tool_kwargs": '{"at": "him"}'}
    thought = {"block_type": "thinking", "content": "Hm."}
    llm(backend, "").chat(
        [
            llms.ChatMessage("Be brief.", role="developer"),
            llms.ChatMessage(blocks=[llms.ImageBlock(url="http://localhost/a.png")]),
            llms.ChatMessage(role="assistant", blocks=[thought, call]),
            llms.ChatMessage("a man", role="tool", additional_kwargs={"tool_call_id": "c1"}),
            llms.ChatMessage("", role="assistant", additional_kwargs={"tool_calls": [stored]}),
            llms.ChatMessage("a woman", role="tool", additional_kwargs={"tool_call_id": "c2"}),
        ]
    )
    system, picture, first, _, second, _ = backend.requests[0].messages
    assert (system.role, system.text) == ("system", "Be brief.")
    assert picture.parts[0].url == "http://localhost/a.png"
    reasoning, call = first.parts
    assert reasoning.text == "Hm." and call.arguments == {"at": "him"}
    assert [call.arguments for call in second.parts if isinstance(call, ToolCall)] == [{"at": "her"}]


def test_a_text_alone_is_not_a_list_of_parts() -> None:
    client = native_model(ParsedResponse("Yes."))
    llm(client, "").chat([llms.ChatMessage("Rain?"), llms.ChatMessage(role="assistant", blocks=[])])
    assert [message["content"] for message in client._transport.requests[0]["messages"]] == ["Rain?", ""]


def test_a_message_of_the_model_before_is_sent_back_with_its_calls_once() -> None:
    client = native_model(ParsedResponse(content="It rains."))
    first = llm(WeatherModel()).chat_with_tools([WEATHER], "Weather?", allow_parallel_tool_calls=True).message
    results = [
        llms.ChatMessage("rain", role="tool", additional_kwargs={"tool_call_id": block.tool_call_id})
        for block in first.blocks
        if block.block_type == "tool_call"
    ]
    llm(client, "").chat([llms.ChatMessage("Weather?"), first, *results])
    _, assistant, *_ = client._transport.requests[0]["messages"]
    assert [call["function"]["arguments"] for call in assistant["tool_calls"]] == [
        '{"city": "Paris"}',
        '{"city": "Rome"}',
    ]


def test_pictures_and_earlier_calls_reach_the_model() -> None:
    client = native_model(ParsedResponse(content="It is red."))
    chat = llm(client, "")
    call = {"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "look", "tool_kwargs": {"at": "it"}}
    chat.chat(
        [
            llms.ChatMessage(blocks=[llms.TextBlock(text="Colour?"), llms.ImageBlock(image=b"\x89PNG\r\n\x1a\n")]),
            llms.ChatMessage(role="assistant", blocks=[call]),
            llms.ChatMessage("a flag", role="tool", additional_kwargs={"tool_call_id": "c1"}),
        ]
    )
    user, assistant, tool = client._transport.requests[0]["messages"]
    assert user["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert assistant["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "it"}'}
    assert (tool["tool_call_id"], tool["content"]) == ("c1", "a flag")
    with pytest.raises(DefinitionError, match="a video block of a message cannot be sent"):
        chat.chat([llms.ChatMessage(blocks=[llms.VideoBlock(video=b"x")])])


def test_documents_reach_the_model(tmp_path: Path) -> None:
    backend = ScriptedBackend([ParsedResponse("Yes.")])
    notes = tmp_path / "notes.txt"
    notes.write_text("rain")
    documents = [
        llms.DocumentBlock(data=b"%PDF-1.4 rain", title="rain.pdf"),
        llms.DocumentBlock(path=str(notes)),
        llms.CachePoint(cache_control=llms.CacheControl(type="ephemeral")),
    ]
    llm(backend, "").chat([llms.ChatMessage(blocks=[llms.TextBlock(text="Rain?"), *documents])])
    (message,) = backend.requests[0].messages
    text, pdf, plain = message.parts
    assert text.text == "Rain?"
    assert (pdf.media_type, pdf.name, b64decode(pdf.data)) == ("application/pdf", "rain.pdf", b"%PDF-1.4 rain")
    assert (plain.media_type, b64decode(plain.data)) == ("text/plain", b"rain")


def test_errors_of_the_model_are_raised() -> None:
    with pytest.raises(ProviderError, match="out of memory"):
        llm(fail).chat([llms.ChatMessage("Weather?")])


def test_closing_a_stream_stops_the_model() -> None:
    model = EndlessModel()
    responses = llm(model).stream_chat([llms.ChatMessage("Weather?")])
    assert next(responses).delta == "more "
    responses.close()
    assert model.stopped.wait(60)

    async def read(model: Any) -> None:
        responses = await llm(model).astream_chat([llms.ChatMessage("Weather?")])
        async for _ in responses:
            break
        await responses.aclose()  # of LlamaIndex, which leaves ours to the event loop
        assert await asyncio.to_thread(model.stopped.wait, 60)

    asyncio.run(read(EndlessModel()))


def test_a_server_is_a_model_too() -> None:
    call = ToolCall("get_weather", {"city": "Oslo"}, id="call_1")
    chat = llm(native_model(ParsedResponse(tool_calls=(call,))), "")
    calls = chat.get_tool_calls_from_response(chat.chat_with_tools([WEATHER], "Weather?"))
    assert [(call.tool_id, call.tool_kwargs) for call in calls] == [("call_1", {"city": "Oslo"})]

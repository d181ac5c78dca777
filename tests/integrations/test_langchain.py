"""LangChain with `ChatToolwire` and `ToolCallOutputParser`: calls, streams, structured output, errors, cancellation."""

from __future__ import annotations

import asyncio
import functools
import operator
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import BaseModel
from tests.integrations.weather_model import (
    ANSWER,
    PIECES,
    EndlessModel,
    WeatherModel,
    cut_off,
    cut_off_behind_invented_turns,
    fail,
    fail_in_the_middle,
    get_weather,
    invented_turns,
    json_in_a_fence,
    native_model,
)

from toolwire import DefinitionError, MissingExtra, ParsedResponse, Problem, ProviderError, ToolCall, Usage
from toolwire.testing import ScriptedBackend

adapter = pytest.importorskip(
    "toolwire.integrations.langchain", reason="needs scripts/test-frameworks", exc_type=MissingExtra
)
messages = pytest.importorskip("langchain_core.messages", reason="needs scripts/test-frameworks")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework

CITIES = [{"city": "Paris"}, {"city": "Rome"}]
CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'


class City(BaseModel):
    city: str
    population: int


def chat(model: Any, format: str = "hermes", **settings: Any) -> Any:
    return adapter.ChatToolwire(model=model, format=format, settings=settings)


def test_an_agent_runs_parallel_calls() -> None:
    agents = pytest.importorskip("langchain.agents", reason="needs scripts/test-frameworks")
    model = WeatherModel()
    messages = agents.create_agent(chat(model), [get_weather]).invoke({"messages": "Weather?"})["messages"]
    assert [message.content for message in messages[2:4]] == ["rain in Paris", "rain in Rome"]
    assert messages[-1].content == ANSWER
    assert messages[-1].usage_metadata["input_tokens"] > 0 and messages[-1].usage_metadata["output_tokens"] > 0
    assert [prompt["role"] for prompt in model.prompts[-1]] == ["system", "user", "assistant", "user"]
    assert '"get_weather"' in model.prompts[0][0]["content"]


def test_an_agent_asks_again_for_a_structured_output() -> None:
    agents = pytest.importorskip("langchain.agents", reason="needs scripts/test-frameworks")
    answers = iter(['{"city": "Paris"}', '{"city": "Paris", "population": 2100000}'])
    model = chat(lambda messages: f'<tool_call>{{"name": "City", "arguments": {next(answers)}}}</tool_call>')
    state = agents.create_agent(model, [get_weather], response_format=City).invoke({"messages": "Paris?"})
    assert state["structured_response"] == City(city="Paris", population=2100000)


def test_whole_answers_have_calls_with_ids_of_their_own() -> None:
    model = chat(WeatherModel()).bind_tools([get_weather])
    first, second = model.invoke("Weather?"), asyncio.run(model.ainvoke("Weather?"))
    for message in (first, second):
        assert [call["args"] for call in message.tool_calls] == CITIES and message.content.strip() == "Let me look."
        assert message.response_metadata["finish_reason"] == "tool_calls"
    ids = [call["id"] for message in (first, second) for call in message.tool_calls]
    assert len(set(ids)) == 4


def test_a_stream_names_a_call_before_its_arguments_are_written() -> None:
    model = WeatherModel(waits=True)
    whole: Any = None
    for chunk in chat(model).bind_tools([get_weather]).stream("Weather?"):
        whole = chunk if whole is None else whole + chunk
        if any(call["name"] for call in chunk.tool_call_chunks):
            model.named.set()
    assert [call["args"] for call in whole.tool_calls] == CITIES and not whole.invalid_tool_calls
    assert whole.usage_metadata["output_tokens"] > 0 and whole.response_metadata["finish_reason"] == "tool_calls"


def test_an_asynchronous_stream_does_too() -> None:
    async def ask() -> None:
        model = WeatherModel(waits=True)
        whole: Any = None
        async for chunk in chat(model).bind_tools([get_weather]).astream("Weather?"):
            whole = chunk if whole is None else whole + chunk
            if any(call["name"] for call in chunk.tool_call_chunks):
                model.named.set()
        assert [call["args"] for call in whole.tool_calls] == CITIES

    asyncio.run(ask())


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_a_call_that_is_cut_off_is_invalid(streams: bool) -> None:
    """LangChain completes JSON in streams, so the call would run for the city of Par."""
    model = chat(cut_off).bind_tools([get_weather])
    message: Any = None
    for chunk in model.stream("Weather?") if streams else [model.invoke("Weather?")]:
        message = chunk if message is None else message + chunk
    assert message.tool_calls == []
    (broken,) = message.invalid_tool_calls
    assert broken["name"] == "get_weather" and '{"city": "Par' in broken["args"]
    assert len(message.response_metadata["problems"]) == 1


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_the_metadata_names_calls_behind_a_turn_that_the_model_made_up(streams: bool) -> None:
    """LangChain runs every call, so a program that asks a person first has to know which ones."""
    model = chat(invented_turns).bind_tools([get_weather])
    message: Any = None
    for chunk in model.stream("Weather?") if streams else [model.invoke("Weather?")]:
        message = chunk if message is None else message + chunk
    _, second, third = message.tool_calls
    assert message.response_metadata["call_confidence"] == {second["id"]: 0.4, third["id"]: 0.4}
    certain = list(chat(WeatherModel()).bind_tools([get_weather]).stream("Weather?"))
    assert all("call_confidence" not in chunk.response_metadata for chunk in certain)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_the_metadata_name_no_call_that_is_cut_off(streams: bool) -> None:
    model = chat(cut_off_behind_invented_turns).bind_tools([get_weather])
    message: Any = None
    for chunk in model.stream("Weather?") if streams else [model.invoke("Weather?")]:
        message = chunk if message is None else message + chunk
    _, *uncertain = message.tool_calls
    assert set(message.response_metadata["call_confidence"]) == {call["id"] for call in uncertain}
    assert len(message.invalid_tool_calls) == 1


def test_a_broken_call_comes_with_its_own_problem() -> None:
    broken = ToolCall("get_weather", {}, id="call_1", confidence=0.4)
    raw = '{"city": "Par'
    problems = (
        Problem("malformed", 0, "x", "a part of the answer could not be read"),
        Problem("truncated", 0, raw, "the call is cut off", index=0),
        Problem("too_long", 0, "y", "a problem of another call", index=1),
    )
    answer = ParsedResponse("Hm.", incomplete=(broken,), problems=problems)
    model = chat(ScriptedBackend([answer, answer, ParsedResponse("Hm.", incomplete=(broken,))]), "")
    message = model.invoke("Weather?")
    (call,) = message.invalid_tool_calls
    assert (call["id"], call["args"], call["error"]) == ("call_1", raw, "the call is cut off")
    assert message.response_metadata["problems"] == [problem.message for problem in problems]
    whole: Any = None
    for chunk in model.stream("Weather?"):
        whole = chunk if whole is None else whole + chunk
    assert whole.tool_calls == [] and "call_confidence" not in whole.response_metadata
    (call,) = model.invoke("Weather?").invalid_tool_calls
    assert call["error"] == "the call is incomplete"


@pytest.mark.parametrize("schema", [City, City.model_json_schema()], ids=["class", "schema"])
def test_structured_output_is_json_in_the_text(schema: Any) -> None:
    output = chat(json_in_a_fence).with_structured_output(schema).invoke("The largest city of France?")
    assert output == (City(city="Paris", population=2_100_000) if schema is City else output)
    assert dict(output) == {"city": "Paris", "population": 2_100_000}


def test_arguments_of_structured_output_have_an_effect_or_are_errors() -> None:
    server = native_model(ParsedResponse('{"city": "Paris", "population": 1}'))
    model = adapter.ChatToolwire(model=server)
    model.with_structured_output(City, strict=True).invoke("The largest city?")
    assert server._transport.requests[0]["response_format"]["json_schema"]["strict"] is True
    for method in ("json_schema", "function_calling"):
        with pytest.raises(ValueError, match="takes no tools"):
            model.with_structured_output(City, method=method, tools=[])


@pytest.mark.parametrize("strict", [None, True, False])
def test_tools_are_strict_if_the_program_says_so(strict: bool | None) -> None:
    backend = ScriptedBackend([ParsedResponse("Hello")] * 2)
    model = chat(backend, "")
    model.bind_tools([get_weather], strict=strict).invoke("Weather?")
    model.with_structured_output(City, method="function_calling", strict=strict).invoke("The largest city?")
    for request in backend.requests:
        (tool,) = request.tools
        assert tool.annotations.get("strict") is strict and request.extra == {}


def test_structured_output_can_be_a_call_or_come_with_the_message() -> None:
    def call(messages: Any) -> str:
        return '<tool_call>{"name": "City", "arguments": {"city": "Paris", "population": 5}}</tool_call>'

    by_call = chat(call).with_structured_output(City, method="function_calling")
    assert by_call.invoke("The largest city?") == City(city="Paris", population=5)
    raw = chat(json_in_a_fence).with_structured_output(City, include_raw=True).invoke("The largest city?")
    assert raw["parsed"] == City(city="Paris", population=2_100_000) and "Paris" in raw["raw"].content
    by_call = chat(call).with_structured_output(City.model_json_schema(), method="function_calling")
    assert by_call.invoke("The largest city?") == {"city": "Paris", "population": 5}


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_the_raw_output_comes_with_the_error_of_its_parser(method: str) -> None:
    wrong = '{"city": "Paris"}'
    text = wrong if method == "json_schema" else f'<tool_call>{{"name": "City", "arguments": {wrong}}}</tool_call>'
    output = chat(lambda messages: text).with_structured_output(City, include_raw=True, method=method)
    failed = output.invoke("The largest city?")
    assert failed["parsed"] is None and "population" in str(failed["parsing_error"]) and failed["raw"]


def test_the_choice_of_a_tool_reaches_the_model() -> None:
    def tools_in(model: WeatherModel) -> str:
        return model.prompts[-1][0]["content"]

    def get_time(city: str) -> str:
        """Return the time."""
        return "noon"

    model = WeatherModel()
    for choice in ("any", "required", "get_time", True, {"type": "function", "function": {"name": "get_time"}}):
        chat(model).bind_tools([get_weather, get_time], tool_choice=choice).invoke("Weather?")
        assert "You must call one of these tools" in tools_in(model)
        assert ("get_weather" in tools_in(model)) == (choice in ("any", "required", True))
    for choice in ("auto", None, False):
        chat(model).bind_tools([get_weather, get_time], tool_choice=choice).invoke("Weather?")
        assert "You must call one of these tools" not in tools_in(model) and "get_weather" in tools_in(model)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_reasoning_and_the_details_of_token_counts_arrive(streams: bool) -> None:
    usage = Usage(100, 20, cached_tokens=30, reasoning_tokens=5)
    model = chat(ScriptedBackend([ParsedResponse("Rain.", "Paris.", usage=usage)]), "")
    chunks = list(model.stream("Weather?")) if streams else [model.invoke("Weather?")]
    message = functools.reduce(operator.add, chunks)
    assert message.content == "Rain." and message.additional_kwargs == {"reasoning_content": "Paris."}
    assert message.usage_metadata["total_tokens"] == 120
    assert message.usage_metadata["input_token_details"] == {"cache_read": 30}
    assert message.usage_metadata["output_token_details"] == {"reasoning": 5}
    last = chunks[-1]
    assert last.usage_metadata == message.usage_metadata and last.response_metadata["finish_reason"] == "stop"
    assert not streams or last.chunk_position == "last"


def test_settings_reach_the_model() -> None:
    seen = []

    def model(messages: Any, temperature: float = 1.0, stop: Any = ()) -> str:
        seen.append((temperature, tuple(stop)))
        return "Hello"

    chat(model, temperature=0.5).invoke("Hello", stop=["x"])
    chat(model, temperature=0.5).bind(temperature=0.2).invoke("Hello")
    chat(model, stop=["y"]).invoke("Hello")
    assert seen == [(0.5, ("x",)), (0.2, ()), (1.0, ("y",))]
    with pytest.raises(ValueError, match="temperature"):
        adapter.ChatToolwire(model=model, format="hermes", temperature=0.5)


def test_two_models_share_no_entries_of_a_cache() -> None:
    caches = pytest.importorskip("langchain_core.caches")

    def model_of(answer: str) -> Any:
        def ask_model(messages: Any) -> str:
            return answer

        return ask_model

    class Model:
        def __init__(self, answer: str) -> None:
            self.answer = answer

        def ask(self, messages: Any) -> str:
            return self.answer

    def in_script(answer: str) -> Any:
        model = model_of(answer)
        model.__qualname__, model.__module__ = "ask_model", "__main__"
        return model

    def wrapper_of(answer: str) -> Any:
        return functools.wraps(native_model)(model_of(answer))

    cache, count = caches.InMemoryCache(), 0
    for make in (
        model_of,
        in_script,
        wrapper_of,
        lambda answer: Model(answer).ask,
        lambda answer: lambda messages: answer,
    ):
        for answer in ("yes", "no"):
            model = adapter.ChatToolwire(model=make(answer), format="hermes", cache=cache)
            count += 1
            for _ in range(2):
                assert model.invoke("Well?").content == answer
            assert len(cache._cache) == count

    servers = [native_model(ParsedResponse(answer)) for answer in ("yes", "no")]
    first, second = (chat(server, "")._get_llm_string() for server in servers)
    assert first != second
    assert chat(fail)._get_llm_string() == chat(fail)._get_llm_string() != chat(cut_off)._get_llm_string()
    assert chat(fail, temperature=0.1)._get_llm_string() != chat(fail, temperature=0.2)._get_llm_string()


def test_tokens_are_counted_without_a_download() -> None:
    model = adapter.ChatToolwire(model=fail, format="hermes")
    assert model.get_num_tokens("It rains in Paris.") == 5
    assert 5 <= model.get_num_tokens_from_messages([messages.HumanMessage("It rains in Paris.")]) < 10
    model = adapter.ChatToolwire(model=fail, format="hermes", custom_get_token_ids=lambda text: [1, 2])
    assert model.get_num_tokens("It rains in Paris.") == 2


def test_errors_of_the_model_are_raised() -> None:
    with pytest.raises(ProviderError, match="out of memory"):
        chat(fail).invoke("Weather?")
    chunks = chat(fail_in_the_middle).stream("Weather?")
    assert next(chunks).content == "It is "
    with pytest.raises(ProviderError, match="out of memory"):
        list(chunks)


def test_closing_a_stream_stops_the_model() -> None:
    model = EndlessModel()
    chunks = chat(model).stream("Weather?")
    assert next(chunks).content == "more "
    chunks.close()
    assert model.stopped.wait(60)


def test_cancelling_stops_the_model() -> None:
    async def ask() -> None:
        model = EndlessModel()
        async with aclosing(chat(model).astream("Weather?")) as chunks:
            await anext(chunks)
        assert model.stopped.wait(60)
        model = EndlessModel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(chat(model).ainvoke("Weather?"), 0.1)
        assert model.stopped.wait(60)

    asyncio.run(ask())


def test_reasoning_is_sent_back_with_the_calls_that_it_led_to() -> None:
    call = ToolCall("get_weather", {"city": "Oslo"}, id="call_1")
    backend = ScriptedBackend([ParsedResponse("", "I have to look.", (call,)), ParsedResponse("Rain.")])
    agents = pytest.importorskip("langchain.agents", reason="needs scripts/test-frameworks")
    agents.create_agent(chat(backend, ""), [get_weather]).invoke({"messages": "Weather?"})
    user, assistant, result = backend.requests[1].messages
    reasoning, called = assistant.parts
    assert reasoning.text == "I have to look." and called == call
    assert user.text == "Weather?" and result.parts[0].text == "rain in Oslo"


def test_results_in_a_message_of_the_user_are_messages_of_their_own() -> None:
    backend = ScriptedBackend([ParsedResponse("Rain.")])
    call = {"name": "get_weather", "args": {"city": "Oslo"}, "id": "call_1"}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "rain"}
    text = {"type": "text", "text": "Well?"}
    chat(backend, "").invoke([messages.AIMessage("", tool_calls=[call]), messages.HumanMessage([result, text])])
    assert {message.role for message in backend.requests[0].messages} == {"assistant", "tool", "user"}


def test_a_server_is_a_model_too() -> None:
    call = ToolCall("get_weather", {"city": "Oslo"}, id="call_1")
    server = native_model(ParsedResponse(tool_calls=(call,)), ParsedResponse(PIECES[0] + "".join(PIECES[1:])))
    model = chat(server, "").bind_tools([get_weather])
    (called,) = model.invoke("Weather?").tool_calls
    assert (called["name"], called["args"], called["id"]) == ("get_weather", {"city": "Oslo"}, "call_1")


# -- the parser ------------------------------------------------------------------------------------------------------


def parser(**options: Any) -> Any:
    return adapter.ToolCallOutputParser(tools=[get_weather], **options)


def test_a_parser_reads_calls_in_the_text_of_any_model() -> None:
    models = pytest.importorskip("langchain_core.language_models", reason="needs scripts/test-frameworks")
    fake = models.FakeListChatModel(responses=[f"Let me look. {CALL}"])
    message = (fake | parser()).invoke("Weather?")
    assert message.content.strip() == "Let me look."
    assert "model_name" not in message.response_metadata
    bare = parser(format="hermes").invoke('{"name": "get_weather", "arguments": {"city": "Paris"}}')
    assert [call["args"] for call in bare.tool_calls] == [CITIES[0]]
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [("get_weather", CITIES[0])]
    whole: Any = None
    for chunk in (fake | parser(format="hermes")).stream("Weather?"):  # one letter at a time
        whole = chunk if whole is None else whole + chunk
    assert [call["args"] for call in whole.tool_calls] == [CITIES[0]]


CUT_IN_LIST = CALL.partition('"Paris"')[0] + '["Paris", "Ro'


@pytest.mark.parametrize(
    "text", [CALL[:60], CUT_IN_LIST, CALL.replace('"Paris"', "[1, }")], ids=["cut off", "cut off in a list", "broken"]
)
def test_a_parser_reads_no_good_call_in_a_broken_one(text: str) -> None:
    models = pytest.importorskip("langchain_core.language_models", reason="needs scripts/test-frameworks")
    chain = models.FakeListChatModel(responses=[text]) | parser(format="hermes")

    async def stream() -> Any:
        return functools.reduce(operator.add, [chunk async for chunk in chain.astream("Weather?")])

    streamed = functools.reduce(operator.add, chain.stream("Weather?"))
    for message in (chain.invoke("Weather?"), streamed, asyncio.run(stream())):
        assert message.tool_calls == [] and len(message.invalid_tool_calls) == 1
        assert message.response_metadata["finish_reason"]


def test_a_parser_gives_the_same_call_in_two_messages_two_ids() -> None:
    parser = adapter.ToolCallOutputParser(tools=[get_weather], format="hermes")
    first, second = (message.tool_calls[0] for message in parser.batch([CALL, CALL]))
    assert first["args"] == second["args"] and first["id"] != second["id"]


def test_a_parser_describes_its_tools_for_the_prompt() -> None:
    text = parser(format="hermes").get_format_instructions()
    assert '"get_weather"' in text and "<tool_call>" in text
    with pytest.raises(DefinitionError, match='format="hermes"'):
        parser().get_format_instructions()

"""Frameworks that use the official OpenAI client, each over the transport, with one loop of calls and one stream."""

from __future__ import annotations

import asyncio
import functools
import operator
import os
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from tests.integrations.weather_model import ANSWER, WeatherModel, fail, get_weather, json_in_a_fence

from toolwire.integrations import ToolwireTransport

pytestmark = pytest.mark.filterwarnings("ignore")  # of the frameworks
MISSING = "needs scripts/test-frameworks"
CITIES = ["Paris", "Rome"]


def http_client(model: Any) -> Any:
    return openai.DefaultHttpxClient(transport=ToolwireTransport(model, format="hermes"))


def async_http_client(model: Any) -> Any:
    return openai.DefaultAsyncHttpxClient(transport=ToolwireTransport(model, format="hermes"))


def async_client(model: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="none", max_retries=0, http_client=async_http_client(model))


# -- LangChain -------------------------------------------------------------------------------------------------------


def chat_openai(model: Any) -> Any:
    module = pytest.importorskip("langchain_openai", reason=MISSING)
    clients = {"http_client": http_client(model), "http_async_client": async_http_client(model)}
    return module.ChatOpenAI(model="any", api_key="none", max_retries=0, **clients)


def test_langchain_runs_calls() -> None:
    chat = chat_openai(WeatherModel())
    agents = pytest.importorskip("langchain.agents", reason=MISSING)
    messages = agents.create_agent(chat, [get_weather]).invoke({"messages": "Weather?"})["messages"]
    assert [message.content for message in messages[2:4]] == ["rain in Paris", "rain in Rome"]
    assert messages[-1].content == ANSWER and messages[-1].usage_metadata["output_tokens"] > 0


def test_langchain_streams_names_early() -> None:
    model = WeatherModel(waits=True)
    whole = None
    for chunk in chat_openai(model).bind_tools([get_weather]).stream("Weather?"):
        whole = chunk if whole is None else whole + chunk
        if any(call["name"] for call in chunk.tool_call_chunks):
            model.named.set()
    assert whole is not None and [call["args"]["city"] for call in whole.tool_calls] == CITIES


def test_langchain_completes_no_call_that_was_cut_off() -> None:
    chat = chat_openai(lambda messages: '<tool_call>{"name": "get_weather", "arguments": {"city": ["Paris", "Ro')
    whole = functools.reduce(operator.add, chat.bind_tools([get_weather]).stream("Weather?"))
    assert whole.tool_calls == [] and [call["name"] for call in whole.invalid_tool_calls] == ["get_weather"]


def test_langchain_reads_a_structured_output() -> None:
    schema = {"title": "City", "type": "object", "properties": {"city": {"type": "string"}, "population": {}}}
    output = chat_openai(json_in_a_fence).with_structured_output(schema).invoke("The largest city of France?")
    assert output == {"city": "Paris", "population": 2_100_000}


def test_langchain_raises_the_errors_of_openai() -> None:
    with pytest.raises(openai.InternalServerError, match="out of memory"):
        chat_openai(fail).invoke("Weather?")


# -- Pydantic AI -----------------------------------------------------------------------------------------------------


def pydantic_agent(model: Any, **options: Any) -> Any:
    ai = pytest.importorskip("pydantic_ai", reason=MISSING)
    models = pytest.importorskip("pydantic_ai.models.openai", reason=MISSING)
    providers = pytest.importorskip("pydantic_ai.providers.openai", reason=MISSING)
    provider = providers.OpenAIProvider(openai_client=async_client(model))
    return ai.Agent(models.OpenAIChatModel("any", provider=provider), tools=[get_weather], **options)


def test_pydantic_ai_runs_calls() -> None:
    result = pydantic_agent(WeatherModel()).run_sync("Weather?")
    assert result.output == ANSWER and result.usage.tool_calls == 2 and result.usage.output_tokens > 0


def test_pydantic_ai_streams_names_early() -> None:
    model = WeatherModel(waits=True)

    async def ask() -> None:
        names = []
        async with pydantic_agent(model).run_stream_events("Weather?") as events:
            async for event in events:
                if event.event_kind == "part_start" and event.part.part_kind == "tool-call":
                    names.append(event.part.tool_name)
                    model.named.set()
                last = event
        assert names == ["get_weather", "get_weather"] and last.result.output == ANSWER

    asyncio.run(ask())


def test_pydantic_ai_raises_model_errors() -> None:
    exceptions = pytest.importorskip("pydantic_ai.exceptions", reason=MISSING)
    with pytest.raises(exceptions.ModelHTTPError, match="out of memory"):
        pydantic_agent(fail).run_sync("Weather?")


# -- OpenAI Agents SDK -----------------------------------------------------------------------------------------------


def agents_agent(model: Any) -> tuple[Any, Any]:
    agents = pytest.importorskip("agents", reason=MISSING)
    agents.set_tracing_disabled(True)
    chat = agents.OpenAIChatCompletionsModel("any", async_client(model))
    return agents.Runner, agents.Agent("weather", tools=[agents.function_tool(get_weather)], model=chat)


def test_the_agents_sdk_runs_calls() -> None:
    runner, agent = agents_agent(WeatherModel())
    result = runner.run_sync(agent, "Weather?")
    outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    assert result.final_output == ANSWER and outputs == ["rain in Paris", "rain in Rome"]
    assert result.context_wrapper.usage.output_tokens > 0


def test_the_agents_sdk_streams_names_early() -> None:
    model = WeatherModel(waits=True)

    async def ask() -> None:
        runner, agent = agents_agent(model)
        result = runner.run_streamed(agent, "Weather?")
        async for event in result.stream_events():
            data = event.data if event.type == "raw_response_event" else None
            if data is not None and data.type == "response.output_item.added" and data.item.type == "function_call":
                assert data.item.name == "get_weather"
                model.named.set()
        assert result.final_output == ANSWER

    asyncio.run(ask())


# -- smolagents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_smolagents_runs_calls(stream: bool) -> None:
    smolagents = pytest.importorskip("smolagents", reason=MISSING)
    end = f'<tool_call>{{"name": "final_answer", "arguments": {{"answer": "{ANSWER}"}}}}</tool_call>'
    clients = {"http_client": http_client(WeatherModel(end=(end,)))}
    chat = smolagents.OpenAIModel("any", api_key="none", client_kwargs=clients)
    tool = smolagents.tool(get_weather)
    agent = smolagents.ToolCallingAgent([tool], chat, verbosity_level=0, stream_outputs=stream)
    assert agent.run("Weather?") == ANSWER


# -- LiteLLM ---------------------------------------------------------------------------------------------------------

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
QUESTION: dict[str, Any] = {"messages": [{"role": "user", "content": "Weather?"}], "tools": [TOOL]}


def litellm_completion(model: Any, **options: Any) -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # otherwise its import fetches a list of prices
    litellm = pytest.importorskip("litellm", reason=MISSING)
    client = openai.OpenAI(api_key="none", max_retries=0, http_client=http_client(model))
    return litellm.completion("openai/any", **QUESTION, client=client, **options)


def test_litellm_reads_calls() -> None:
    answer = litellm_completion(WeatherModel())
    arguments = [call.function.arguments for call in answer.choices[0].message.tool_calls]
    assert arguments == ['{"city": "Paris"}', '{"city": "Rome"}'] and answer.usage.completion_tokens > 0


def test_litellm_streams_names_early() -> None:
    model = WeatherModel(waits=True)
    names = []
    for chunk in litellm_completion(model, stream=True):
        for call in chunk.choices[0].delta.tool_calls or ():
            if call.function.name:
                names.append(call.function.name)
                model.named.set()
    assert names == ["get_weather", "get_weather"]


# -- Inspect ---------------------------------------------------------------------------------------------------------


def test_inspect_runs_calls() -> None:
    models = pytest.importorskip("inspect_ai.model", reason=MISSING)
    tools = pytest.importorskip("inspect_ai.tool", reason=MISSING)

    async def execute(city: str) -> str:
        return get_weather(city)

    async def ask() -> None:
        weather_model = WeatherModel()
        temperatures: list[float] = []

        def model(messages: list[dict[str, str]], temperature: float = 1.0) -> Iterator[str]:
            temperatures.append(temperature)
            return weather_model(messages)

        options = {"api_key": "none", "base_url": "http://toolwire/v1", "http_client": async_http_client(model)}
        config = models.GenerateConfig(temperature=0.5)
        chat = models.get_model("openai-api/toolwire/any", memoize=False, config=config, **options)
        weather = tools.ToolDef(execute, name="get_weather", description="Weather.", parameters={"city": "its name"})
        messages, output = await chat.generate_loop("Weather?", tools=[weather])
        assert temperatures == [0.5, 0.5]
        assert output.completion == ANSWER and output.usage.output_tokens > 0
        assert [message.text for message in messages if message.role == "tool"] == ["rain in Paris", "rain in Rome"]

    asyncio.run(ask())


# -- LlamaIndex ------------------------------------------------------------------------------------------------------


def llama_index_model(model: Any) -> tuple[Any, Any]:
    missing = "needs the package llama-index-llms-openai-like, which no extra of Toolwire installs"
    module = pytest.importorskip("llama_index.llms.openai_like", reason=missing)
    tools = pytest.importorskip("llama_index.core.tools", reason=missing)
    clients = {"http_client": http_client(model), "async_http_client": async_http_client(model)}
    flags = {"is_chat_model": True, "is_function_calling_model": True, "max_retries": 0}
    chat = module.OpenAILike(model="any", api_key="none", **flags, **clients)
    return chat, tools.FunctionTool.from_defaults(get_weather)


def test_llama_index_reads_calls() -> None:
    chat, tool = llama_index_model(WeatherModel())
    answer = chat.chat_with_tools([tool], "Weather?", allow_parallel_tool_calls=True)
    assert [call.tool_kwargs["city"] for call in chat.get_tool_calls_from_response(answer)] == CITIES


def test_llama_index_streams_names_early() -> None:
    model = WeatherModel(waits=True)
    chat, tool = llama_index_model(model)
    for answer in chat.stream_chat_with_tools([tool], "Weather?", allow_parallel_tool_calls=True):
        if answer.message.additional_kwargs.get("tool_calls"):
            model.named.set()
    assert [call.tool_kwargs["city"] for call in chat.get_tool_calls_from_response(answer)] == CITIES

"""The official OpenAI client over the transport, with either HTTP library."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import httpx2
import openai
import pytest
from pydantic import BaseModel
from tests.integrations.weather_model import PIECES, EndlessModel, WeatherModel, fail, json_in_a_fence

from toolwire import ConfigurationError, ParsedResponse, ToolCall, UnknownFormat
from toolwire.gateway import answering
from toolwire.integrations import ToolwireTransport, openai_transport
from toolwire.models import Client, TextBackend, function_source
from toolwire.testing import ScriptedBackend, ScriptedTransport

LIBRARIES = pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}
QUESTION: Any = {"model": "any", "messages": [{"role": "user", "content": "Weather?"}], "tools": [TOOL]}


def client(model: Any, library: Any = httpx2, format: str = "hermes") -> openai.OpenAI:
    transport = ToolwireTransport(model, format=format)
    return openai.OpenAI(api_key="none", max_retries=0, http_client=library.Client(transport=transport))


def async_client(model: Any, library: Any = httpx2, format: str = "hermes") -> openai.AsyncOpenAI:
    transport = ToolwireTransport(model, format=format)
    return openai.AsyncOpenAI(api_key="none", max_retries=0, http_client=library.AsyncClient(transport=transport))


def calls_in(message: Any) -> list[tuple[str, str]]:
    return [(call.function.name, call.function.arguments) for call in message.tool_calls]


EXPECTED = [("get_weather", '{"city": "Paris"}'), ("get_weather", '{"city": "Rome"}')]


@LIBRARIES
def test_a_whole_answer_has_both_calls(library: Any) -> None:
    model = WeatherModel()
    answer = client(model, library).chat.completions.create(**QUESTION)
    (choice,) = answer.choices
    assert (choice.message.content or "").strip() == "Let me look." and choice.finish_reason == "tool_calls"
    assert calls_in(choice.message) == EXPECTED
    assert answer.usage is not None and answer.usage.completion_tokens > 0
    (prompt,) = model.prompts
    assert prompt[0]["role"] == "system" and '"get_weather"' in prompt[0]["content"]


@LIBRARIES
def test_a_stream_names_a_call_before_its_arguments_are_written(library: Any) -> None:
    model = WeatherModel(waits=True)
    text, usage = "", None
    calls: dict[int, list[str]] = {}
    for chunk in client(model, library).chat.completions.create(**QUESTION, stream=True):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                assert call.function is not None
                name, arguments = calls.setdefault(call.index, ["", ""])
                calls[call.index] = [name + (call.function.name or ""), arguments + (call.function.arguments or "")]
        if calls:
            model.named.set()
    assert text.strip() == "Let me look." and [tuple(call) for call in calls.values()] == EXPECTED
    assert usage is not None and usage.completion_tokens > 0


@LIBRARIES
def test_the_async_client_reads_both(library: Any) -> None:
    async def ask() -> None:
        model = WeatherModel(waits=True)
        names: list[str] = []
        async for chunk in await async_client(model, library).chat.completions.create(**QUESTION, stream=True):
            for call in chunk.choices[0].delta.tool_calls or () if chunk.choices else ():
                if call.function is not None and call.function.name:
                    names.append(call.function.name)
                    model.named.set()
        assert names == ["get_weather", "get_weather"]
        whole = await async_client(WeatherModel(), library).chat.completions.create(**QUESTION)
        assert calls_in(whole.choices[0].message) == EXPECTED

    asyncio.run(ask())


def test_a_model_without_a_name_is_listed_under_one() -> None:
    assert [model.id for model in client(WeatherModel()).models.list()] == ["toolwire"]
    assert [model.id for model in client(fail).models.list()] == ["fail"]


def test_an_async_function_is_a_model() -> None:
    async def whole(messages: Any, temperature: float = 1.0) -> str:
        return "".join(PIECES) if temperature == 0.5 else ""

    async def in_pieces(messages: Any) -> AsyncIterator[str]:
        for piece in PIECES:
            yield piece

    for model in (whole, in_pieces):
        answer = client(model).chat.completions.create(**QUESTION, temperature=0.5)
        assert calls_in(answer.choices[0].message) == EXPECTED


def test_results_reach_the_model_as_text() -> None:
    model = WeatherModel()
    chat = client(model).chat.completions
    message = chat.create(**QUESTION).choices[0].message
    results: Any = [
        {"role": "tool", "tool_call_id": call.id, "content": f"rain in {city}"}
        for call, city in zip(message.tool_calls or (), ("Paris", "Rome"), strict=True)
    ]
    messages = [*QUESTION["messages"], message, *results]
    assert chat.create(**{**QUESTION, "messages": messages}).choices[0].message.content == "It rains in both."
    assert [prompt["role"] for prompt in model.prompts[-1]] == ["system", "user", "assistant", "user"]


class City(BaseModel):
    city: str
    population: int


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_structured_output_is_asked_for_in_the_prompt_and_read_without_its_fence(stream: bool) -> None:
    question: Any = [{"role": "user", "content": "The largest city of France?"}]
    completions = client(json_in_a_fence).chat.completions
    if stream:
        with completions.stream(model="m", messages=question, response_format=City) as events:
            answer = events.get_final_completion()
    else:
        answer = completions.parse(model="m", messages=question, response_format=City)
    assert answer.choices[0].message.parsed == City(city="Paris", population=2_100_000)


def test_a_failing_model_is_an_error_of_openai_each_time() -> None:
    failing = client(fail)
    for _ in range(7):  # no pause after several failures: there is no other model to ask
        with pytest.raises(openai.InternalServerError, match="ValueError: out of memory") as raised:
            failing.chat.completions.create(**QUESTION)
        assert raised.value.status_code == 502 and raised.value.type == "server_error"


def test_a_model_that_fails_in_the_middle_ends_the_stream_with_an_error() -> None:
    def model(messages: Any) -> Iterator[str]:
        yield "It is "
        raise ValueError("out of memory")

    chunks = iter(client(model).chat.completions.create(**QUESTION, stream=True))
    next(chunk for chunk in chunks if chunk.choices[0].delta.content == "It is ")
    with pytest.raises(openai.APIError, match="out of memory"):
        list(chunks)


@pytest.mark.parametrize("arguments", ['{"city": "Paris"}', '{"city": "Par', '{"city": ["Rome", "Par'])
def test_a_stream_shows_that_a_call_was_cut_off(arguments: str) -> None:
    """The arguments may be whole and the call not, and some clients complete the JSON of others."""
    text = f'<tool_call>{{"name": "get_weather", "arguments": {arguments}'
    http = httpx.Client(transport=ToolwireTransport(lambda messages: text, format="hermes"))
    question = {"model": "any", "max_tokens": 99, "stream": True, "messages": QUESTION["messages"]}
    tools = {"chat/completions": [TOOL], "messages": [{"name": "get_weather", "input_schema": PARAMETERS}]}
    for path, offered in tools.items():
        lines = http.post(f"http://localhost/v1/{path}", json={**question, "tools": offered}).text.splitlines()
        matches = (re.search(r'"(?:arguments|partial_json)":("(?:[^"\\]|\\.)+")', line) for line in lines)
        sent = "".join(json.loads(match.group(1)) for match in matches if match)
        assert sent.startswith(arguments)
        for completed in (sent, sent + "}", sent + '"}', sent + '"]}'):
            with pytest.raises(json.JSONDecodeError):
                json.loads(completed)


@pytest.mark.parametrize(
    "answer",
    [None, 5, b"bytes", [b"bytes"], asyncio.Queue(), {"role": "assistant", "content": "Hello"}],
    ids=["none", "number", "bytes", "pieces of bytes", "object", "message"],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_what_is_not_text_is_an_error(answer: Any, is_async: bool) -> None:
    async def answer_later(messages: Any) -> Any:
        return answer

    model = answer_later if is_async else lambda messages: answer
    with pytest.raises(openai.InternalServerError, match="the answer must be text, or pieces of text, not"):
        client(model).chat.completions.create(**QUESTION)


def test_settings_that_a_function_does_not_take_are_named() -> None:
    answer = client(lambda messages: "Hello").chat.completions.with_raw_response.create(**QUESTION, temperature=0.5)
    assert answer.headers["x-toolwire-notes"].startswith("dropped temperature: ")


def test_wrong_requests_are_errors_of_openai() -> None:
    completions = client(WeatherModel()).chat.completions
    with pytest.raises(openai.BadRequestError, match="body is not a request"):
        completions.create(**{**QUESTION, "messages": "Hello"})
    with pytest.raises(openai.NotFoundError, match="nothing at this address"):
        client(WeatherModel()).embeddings.create(model="m", input="x")


def test_closing_a_stream_stops_the_model() -> None:
    stopped = threading.Event()

    def endless(messages: Any) -> Iterator[str]:
        try:
            while True:
                yield "more "
        finally:
            stopped.set()

    with client(endless).chat.completions.create(**QUESTION, stream=True) as stream:
        next(iter(stream))
    assert stopped.wait(60)


@LIBRARIES
def test_a_stream_that_a_program_leaves_stops_the_model_without_errors(library: Any) -> None:
    errors: list[Any] = []

    async def ask() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        model = EndlessModel()

        async def read() -> None:
            chunks = await async_client(model, library).chat.completions.create(**QUESTION, stream=True)
            assert len(openai_transport._RUNNING) == 1
            async for _ in chunks:
                break

        await read()
        for _ in range(100):
            gc.collect()
            await asyncio.sleep(0.01)
            if model.stopped.is_set():
                break
        assert model.stopped.is_set()
        gc.collect()
        await asyncio.sleep(0.1)

    asyncio.run(ask())
    gc.collect()
    assert not errors and not openai_transport._RUNNING


def test_cancelling_a_request_stops_the_model() -> None:
    async def ask() -> None:
        started, stopped = asyncio.Event(), asyncio.Event()

        async def endless(messages: Any) -> str:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return ""

        request = asyncio.create_task(async_client(endless).chat.completions.create(**QUESTION))
        await started.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert stopped.is_set()

    asyncio.run(ask())


@LIBRARIES
def test_a_time_limit_for_reading_counts_as_with_a_server(library: Any) -> None:
    asked = 0

    def slow(messages: Any) -> Iterator[str]:
        nonlocal asked
        asked += 1
        yield "It rains"
        time.sleep(30)
        yield "."

    completions = client(slow, library).with_options(timeout=0.5, max_retries=1).chat.completions
    with pytest.raises(openai.APITimeoutError):
        completions.create(**QUESTION)
    assert asked == 2
    chunks = iter(completions.create(**QUESTION, stream=True))
    next(chunk for chunk in chunks if chunk.choices[0].delta.content == "It rains")
    with pytest.raises(openai.APITimeoutError):
        list(chunks)


@LIBRARIES
def test_a_time_limit_stops_an_async_model(library: Any) -> None:
    async def ask() -> None:
        stopped: list[str] = []

        async def slow(messages: Any) -> AsyncIterator[str]:
            try:
                yield "It rains"
                await asyncio.sleep(30)
                yield "."
            finally:
                stopped.append("stopped")

        completions = async_client(slow, library).with_options(timeout=0.5).chat.completions
        with pytest.raises(openai.APITimeoutError):
            await completions.create(model="any", messages=QUESTION["messages"])
        assert len(stopped) == 1
        chunks = await completions.create(model="any", messages=QUESTION["messages"], stream=True)
        with pytest.raises(openai.APITimeoutError):
            _ = [chunk async for chunk in chunks]
        assert len(stopped) == 2

    asyncio.run(ask())


def test_a_time_limit_counts_between_pieces_and_not_while_the_program_does_something_else() -> None:
    async def ask() -> None:
        async def steady(messages: Any) -> AsyncIterator[str]:
            for _ in range(5):
                await asyncio.sleep(0.3)
                yield "more "

        completions = async_client(steady).with_options(timeout=2).chat.completions
        chunks = await completions.create(model="any", messages=QUESTION["messages"], stream=True)
        text = ""
        async for chunk in chunks:
            text += chunk.choices[0].delta.content or "" if chunk.choices else ""
            if text == "more ":
                await asyncio.sleep(2.5)
        assert text == 5 * "more "

    asyncio.run(ask())


def test_a_quiet_stream_gets_no_keep_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "SILENCE", 0.05)

    async def slow(messages: Any) -> str:
        await asyncio.sleep(1)
        raise ValueError("out of memory")

    with pytest.raises(openai.InternalServerError, match="out of memory"):  # so the status is still the model's
        client(slow).chat.completions.create(**QUESTION, stream=True)


def test_backends_and_clients_are_models_too() -> None:
    call = ToolCall("get_weather", {"city": "Oslo"}, id="call_1")
    native = ScriptedBackend([ParsedResponse(tool_calls=(call,))])
    answer = client(native, format="").chat.completions.create(**QUESTION)
    assert calls_in(answer.choices[0].message) == [("get_weather", '{"city": "Oslo"}')]
    text = TextBackend(function_source(WeatherModel()), format="hermes")
    assert calls_in(client(text, format="").chat.completions.create(**QUESTION).choices[0].message) == EXPECTED
    server = ScriptedTransport("openai_compatible", [ParsedResponse("".join(PIECES))])
    remote = Client("openai_compatible", "m", base_url="http://127.0.0.1:9", transport=server)
    assert calls_in(client(remote).chat.completions.create(**QUESTION).choices[0].message) == EXPECTED
    assert "tools" not in server.requests[0]


@LIBRARIES
def test_requests_of_another_api_are_answered_at_their_own_path(library: Any) -> None:
    http = library.Client(transport=ToolwireTransport(WeatherModel(), format="hermes"))
    tool = {"name": "get_weather", "input_schema": PARAMETERS}
    body = {"model": "any", "max_tokens": 99, "messages": QUESTION["messages"], "tools": [tool]}
    answer = http.post("http://localhost/v1/messages?beta=true", json=body).json()
    assert [block["input"] for block in answer["content"] if block["type"] == "tool_use"] == [
        {"city": "Paris"},
        {"city": "Rome"},
    ]


def test_a_wrong_model_or_format_is_an_error_at_once() -> None:
    with pytest.raises(ConfigurationError, match='format="hermes"'):
        ToolwireTransport(WeatherModel())
    with pytest.raises(ConfigurationError, match="leave it out"):
        ToolwireTransport(ScriptedBackend(["x"]), format="hermes")
    with pytest.raises(UnknownFormat):
        ToolwireTransport(WeatherModel(), format="hermez")
    for format in ("", "hermes"):
        with pytest.raises(TypeError, match="model must be"):
            ToolwireTransport(5, format=format)  # type: ignore[arg-type]

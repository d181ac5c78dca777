"""Models behind APIs: requests over real connections, and the stand-ins for tests."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import Message, ParsedResponse, ProviderError, TextPart, ToolCall, ToolDefinition, collect, replay
from toolwire.client.client import Client
from toolwire.client.endpoints import ENDPOINTS
from toolwire.client.transport import HttpTransport, Retry, retry_after
from toolwire.testing import RecordingTransport, ReplayTransport, ScriptedTransport

TOOL = ToolDefinition("files.read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})
QUESTION = [Message("user", (TextPart("read a.txt"),))]
CALL = ToolCall("files.read", {"path": "a.txt"}, "call_0123456789")
RESPONSE = ParsedResponse("Reading.", tool_calls=(CALL,), finish_reason=toolwire.FinishReason.TOOL_CALLS)


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await work()

    return asyncio.run(main())


def summary(response: ParsedResponse) -> Any:
    return response.content, [(call.name, call.arguments) for call in response.tool_calls], response.finish_reason


async def streamed(client: Client, **options: Any) -> ParsedResponse:
    return collect([event async for event in client.stream(QUESTION, tools=[TOOL], **options)])


@pytest.mark.mission("A16")
@pytest.mark.parametrize("api", toolwire.apis())
def test_every_api_is_asked_and_answers(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole and streamed, with the tool's own name on both sides."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    known = toolwire.get_api(api)
    transport = ScriptedTransport(known, [RESPONSE, RESPONSE])

    async def work() -> None:
        client = Client(api, "model-1", base_url="https://example.test", key="k", transport=transport)
        assert summary(await client.ask(QUESTION, tools=[TOOL])) == summary(RESPONSE)
        assert summary(await streamed(client)) == summary(RESPONSE)

    run(work)
    assert len(transport.requests) == 2
    assert "files.read" not in json.dumps(transport.requests) or known.names.takes("files.read")


def test_every_api_has_an_address() -> None:
    assert set(toolwire.apis()) <= ENDPOINTS.keys()
    with pytest.raises(toolwire.ConfigurationError, match="base_url"):
        Client("azure", "m")


def test_a_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    seen: list[Asked] = []

    def answer(asked: Asked) -> Answer:
        seen.append(asked)
        return Answer(json.dumps({"error": {"message": f"bad key {asked.headers['authorization']}"}}).encode(), 401)

    async def work(base: str) -> None:
        async with Client("openai_chat", "m", base_url=base, key="sk-secret") as client:
            with pytest.raises(ProviderError, match="answered 401") as caught:
                await client.ask(QUESTION)
            assert caught.value.status == 401
            assert "sk-secret" not in str(caught.value)
            assert "sk-secret" not in repr(client)
            assert "sk-secret" not in repr(client._request({}, client._additions, stream=False))

    with serving(answer) as base:
        asyncio.run(work(base))
    assert seen[0].headers["authorization"] == "Bearer sk-secret"
    with pytest.raises(toolwire.ConfigurationError, match="set OPENAI_API_KEY in the environment, or pass key="):
        run(lambda: Client("openai_chat", "m").ask(QUESTION))


def test_busy_servers_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    answers = [
        Answer(b"{}", 429, headers={"retry-after": "7"}),
        Answer(b"{}", 503),
        Answer(json.dumps(toolwire.get_api("openai_chat").encode_response(RESPONSE)).encode()),
    ]

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def work(base: str) -> ParsedResponse:
        async with HttpTransport(retry=Retry(wait=1.0)) as transport:
            transport._sleep = sleep
            return await Client("openai_chat", "m", base_url=base, transport=transport).ask(QUESTION, tools=[TOOL])

    with serving(lambda _: answers.pop(0)) as base:
        assert summary(asyncio.run(work(base))) == summary(RESPONSE)
    assert waits[0] == 7
    assert 1 <= waits[1] <= 2


@pytest.mark.parametrize(("asked", "attempts"), [("", 3), ("1000", 1)])
def test_there_is_an_end_to_asking(asked: str, attempts: int) -> None:
    seen: list[Asked] = []

    def answer(one: Asked) -> Answer:
        seen.append(one)
        return Answer(b'{"error": "busy"}', 529, headers={"retry-after": asked} if asked else {})

    async def work(base: str) -> None:
        async with HttpTransport(retry=Retry(attempts=3, wait=0.001)) as transport:
            await Client("openai_chat", "m", base_url=base, transport=transport).ask(QUESTION)

    with serving(answer) as base, pytest.raises(ProviderError, match="529: busy"):
        asyncio.run(work(base))
    assert len(seen) == attempts


def test_how_long_a_server_asks_to_wait() -> None:
    assert retry_after({"Retry-After": "2.5"}, lambda: 0.0) == 2.5
    assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, lambda: 20.0) == 40.0
    assert retry_after({"retry-after": "soon"}, lambda: 0.0) is None
    assert retry_after({}, lambda: 0.0) is None


def test_a_wait_as_long_as_the_longest_is_granted_and_a_longer_one_is_not() -> None:
    retry = Retry(longest=60.0)
    assert retry.pause(1, 60.0) == 60.0
    assert retry.pause(1, 60.001) is None


def test_a_server_that_is_not_there_or_goes_away() -> None:
    async def ask(base: str) -> ParsedResponse:
        async with HttpTransport(retry=Retry(attempts=1)) as transport:
            return await streamed(Client("openai_chat", "m", base_url=base, transport=transport))

    with pytest.raises(ProviderError, match=r"^127\.0\.0\.1:9 cannot be reached"):
        asyncio.run(ask("http://127.0.0.1:9"))
    body = b"".join(toolwire.get_api("openai_chat").encode_stream(replay(RESPONSE)))
    cut = Answer(body, content_type="text/event-stream", cut=True)
    with serving(lambda _: cut) as base, pytest.raises(ProviderError, match="cut off"):
        asyncio.run(ask(base))


def test_closing_a_stream_cancels_the_request() -> None:
    closed: list[bool] = []

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self):  # type: ignore[no-untyped-def]
            while True:
                yield b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'

        async def aclose(self) -> None:
            closed.append(True)

    async def work() -> None:
        handler = httpx.MockTransport(lambda _: httpx.Response(200, stream=Endless()))
        async with httpx.AsyncClient(transport=handler) as http:
            client = Client("openai_chat", "m", base_url="http://x", transport=HttpTransport(http))
            events = client.stream(QUESTION)
            assert await anext(events) == toolwire.ContentDelta("x")
            await events.aclose()

    asyncio.run(work())
    assert closed == [True]


@pytest.mark.need(9)
def test_what_a_model_wrote_wrong_is_no_failure_of_the_server() -> None:
    error = {"error": {"message": "failed", "code": "tool_use_failed", "failed_generation": "<function=f{}"}}
    transport = ScriptedTransport(toolwire.get_api("groq"), [(400, json.dumps(error).encode())] * 2)
    client = Client("groq", "m", key="k", transport=transport)

    async def work() -> None:
        for response in (await client.ask(QUESTION), await streamed(client)):
            assert [(problem.kind, problem.raw) for problem in response.problems] == [("malformed", "<function=f{}")]

    run(work)


@pytest.mark.need(26)
def test_calls_in_the_text_are_found_on_the_way() -> None:
    text = 'See: <tool_call>\n{"name": "files.read", "arguments": {"path": "b"}}\n</tool_call>'
    api = toolwire.get_api("ollama")
    transport = ScriptedTransport(api, [ParsedResponse(text)] * 4)

    async def work() -> None:
        found = await streamed(Client("ollama", "m", transport=transport, text_format="auto"))
        assert [(call.arguments, call.format) for call in found.tool_calls] == [({"path": "b"}, "hermes")]
        plain = await streamed(Client("ollama", "m", transport=transport, text_format=None))
        assert plain.content == text
        of_family = await streamed(Client("ollama", "qwen3:8b", transport=transport))
        assert of_family.tool_calls == found.tool_calls
        unknown = await streamed(Client("ollama", "m", transport=transport))
        assert unknown.content == text

    run(work)


def test_what_was_recorded_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "said.jsonl"
    scripted = ScriptedTransport(toolwire.get_api("openai_chat"), [RESPONSE])

    async def work() -> None:
        options = {"base_url": "https://example.test", "key": "sk-secret"}
        first = Client("openai_chat", "m", transport=RecordingTransport(scripted, path), **options)  # type: ignore[arg-type]
        assert summary(await streamed(first)) == summary(RESPONSE)
        again = Client("openai_chat", "m", transport=ReplayTransport(path), **options)  # type: ignore[arg-type]
        assert summary(await streamed(again)) == summary(RESPONSE)
        with pytest.raises(ProviderError, match="no such request"):
            await streamed(again)

    run(work)
    assert "sk-secret" not in path.read_text()


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [(307, b"", "answered 307"), (503, b'{"message": "later"}', "503: later"), (404, b"<html>no</html>", "<html>no")],
)
def test_only_an_answer_counts_as_one(status: int, body: bytes, message: str) -> None:
    transport = ScriptedTransport(toolwire.get_api("openai_chat"), [(status, body)] * 2)
    client = Client("openai_chat", "m", base_url="http://x", transport=transport)

    async def work() -> None:
        for ask in (client.ask(QUESTION), streamed(client)):
            with pytest.raises(ProviderError, match=message):
                await ask

    run(work)


@pytest.mark.parametrize("body", [b"", b"<html>502 bad</html>", b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'])
def test_a_stream_that_is_none_or_breaks_off_is_no_answer(body: bytes) -> None:
    transport = ScriptedTransport(toolwire.get_api("openai_chat"), [body])
    found = run(lambda: streamed(Client("openai_chat", "m", base_url="http://x", transport=transport)))
    assert found.finish_reason is toolwire.FinishReason.ERROR
    assert [problem.kind for problem in found.problems] == ["truncated"]


def test_a_key_stays_with_its_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ENV")
    monkeypatch.setenv("MY_KEY", " sk-MINE\n")
    sent: list[str] = []

    def answer(asked: Asked) -> Answer:
        sent.append(asked.headers.get("authorization", ""))
        return Answer(f'{{"error": "no {sent[-1]}"}}'.encode(), 401)

    async def ask(base: str, **options: Any) -> None:
        async with Client("openai_chat", "m", base_url=base, **options) as client:
            await client.ask(QUESTION)

    with serving(answer) as base:
        for options in ({}, {"key_env": "MY_KEY"}, {"key": "sk-GIVEN\n"}):
            with pytest.raises(ProviderError) as caught:
                asyncio.run(ask(base, **options))
            assert "sk-" not in str(caught.value)
    assert sent == ["", "Bearer sk-MINE", "Bearer sk-GIVEN"]
    for wrong, message in (({"key": "sk-a\nb"}, "characters"), ({"key_env": "NOT_SET"}, "set NOT_SET")):
        with pytest.raises(toolwire.ConfigurationError, match=message):
            asyncio.run(ask("http://127.0.0.1:9", **wrong))


def test_tools_of_a_request_and_of_a_generator_come_back_by_their_names() -> None:
    api = toolwire.get_api("openai_chat")
    transport = ScriptedTransport(api, [RESPONSE] * 2)
    client = Client("openai_chat", "m", base_url="http://x", transport=transport)

    async def work() -> None:
        whole = toolwire.ChatRequest(tuple(QUESTION), tools=(TOOL,))
        for found in (await client.ask(whole), await client.ask(QUESTION, tools=(tool for tool in [TOOL]))):
            assert [call.name for call in found.tool_calls] == ["files.read"]

    run(work)
    assert len(transport.requests[0]["tools"]) == 1


def test_what_was_sent_is_not_sent_again() -> None:
    seen: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        if "slow" in str(request.url):
            raise httpx.ReadTimeout("slow", request=request)
        return httpx.Response(200, headers={"content-encoding": "gzip"}, content=b"no gzip")

    async def work(base: str) -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(handle)) as http:
            client = Client("openai_chat", "m", base_url=base, transport=HttpTransport(http, retry=Retry(wait=0.001)))
            await client.ask(QUESTION)

    for base, message in (
        ("http://slow", "did not answer"),
        ("http://broken", "did not answer|cut off"),
        ("http://x", "no request|did not"),
    ):
        with pytest.raises(ProviderError, match=message):
            asyncio.run(work(base))
    assert len(seen) == 3

"""Tools in the prompt of models that read and write text alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import CLIENTS, TOOL, asked, gateway, run

from toolwire import Client, ContentDelta, DefinitionError, Finish, FinishReason, Message, OutputSchema, ToolDefinition
from toolwire.client.exchange import HttpAnswer, HttpRequest
from toolwire.gateway.text_prompts import REQUIRED, describe_request
from toolwire.gateway.upstreams import TextUpstream
from toolwire.models import TextBackend
from toolwire.models.backends import client_source
from toolwire.providers.request import ChatRequest, ToolChoice

TOOLS = tuple(ToolDefinition(name, f"Do {name}.", TOOL["parameters"]) for name in ("first", "second"))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_a_text_model_is_told_its_tools(api: str, stream: bool) -> None:
    prompts: list[Any] = []

    async def source(messages: Any) -> AsyncIterator[Any]:
        prompts.append(messages)
        yield ContentDelta("It rains.")
        yield Finish(FinishReason.STOP)

    path, body = asked(api, stream=stream)
    assert run(gateway(TextUpstream(TextBackend(source, format="hermes"))), path, body).status == 200
    (messages,) = prompts
    assert [message.role for message in messages] == ["system", "user"]
    assert '"get_weather"' in messages[0].text and "<tool_call>" in messages[0].text


@pytest.mark.parametrize("made_up", [False, True], ids=["own", "behind-made-up-turn"])
@pytest.mark.parametrize("api", CLIENTS)
def test_a_client_learns_which_call_a_person_should_confirm(api: str, made_up: bool) -> None:
    call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'

    async def source(messages: Any) -> AsyncIterator[Any]:
        yield ContentDelta(f"I wait.\nUser: go on\nAssistant: {call}" if made_up else f"I look. {call}")
        yield Finish(FinishReason.STOP)

    path, body = asked(api)
    got = run(gateway(TextUpstream(TextBackend(source, format="hermes"))), path, body)
    assert got.status == 200 and b"Paris" in got.body
    assert ("confidence" in got.headers.get("x-toolwire-notes", "")) is made_up


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_a_text_model_that_is_busy_asks_for_a_pause(api: str, stream: bool) -> None:
    class Busy:
        @asynccontextmanager
        async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
            async def body() -> AsyncIterator[bytes]:
                yield b'{"error": {"message": "busy"}}'

            yield HttpAnswer(429, {"retry-after": "7"}, body())

    client = Client("openai_compatible", "m", base_url="http://127.0.0.1:1", transport=Busy())
    app = gateway(TextUpstream(TextBackend(client_source(client), format="hermes")))
    path, body = asked(api, stream=stream)
    for _ in range(2):  # the second request does not reach the server
        got = run(app, path, body)
        assert (got.status, got.headers["retry-after"]) == (429, "7")


def text_of(request: ChatRequest) -> str:
    return describe_request(request, "hermes").messages[0].text


def test_instructions_stay_before_the_tools() -> None:
    messages = (Message("system", "Be brief."), Message("system", "Be kind."), Message("user", "Hello"))
    described = describe_request(ChatRequest(messages, TOOLS), "hermes")
    assert [message.role for message in described.messages] == ["system", "user"]
    assert described.messages[0].text.startswith("Be brief.\n\nBe kind.\n\n") and described.tools == TOOLS
    assert REQUIRED not in described.messages[0].text


def test_the_choice_of_tools_counts() -> None:
    user = (Message("user", "Hello"),)
    none = describe_request(ChatRequest(user, TOOLS, ToolChoice("none")), "hermes")
    assert none.messages == user and none.tools == ()
    named = describe_request(ChatRequest(user, TOOLS, ToolChoice("required", ("second",))), "hermes")
    assert [tool.name for tool in named.tools] == ["second"]
    assert "first" not in named.messages[0].text and named.messages[0].text.endswith(REQUIRED)
    assert text_of(ChatRequest(user, TOOLS, ToolChoice("required"))).endswith(REQUIRED)
    assert describe_request(ChatRequest(user), "hermes").messages == user
    with pytest.raises(DefinitionError, match=r"names 'secnd'; did you mean second\?"):
        describe_request(ChatRequest(user, TOOLS, ToolChoice("required", ("secnd",))), "hermes")
    with pytest.raises(DefinitionError, match="names 'x'; it is not among the tools"):
        describe_request(ChatRequest(user, (), ToolChoice("required", ("x",))), "hermes")


def test_system_messages_at_the_beginning_become_one_without_tools_too() -> None:
    texts = [("system", "Be brief."), ("system", "Be kind."), ("user", "Hello"), ("system", "Now be loud.")]
    described = describe_request(ChatRequest([Message(*text) for text in texts]), "hermes").messages
    assert [message.role for message in described] == ["system", "user", "system"]
    assert described[0].text == "Be brief.\n\nBe kind."


def test_the_schema_of_an_output_is_asked_for() -> None:
    schema = {"type": "object", "properties": {"town": {"type": "string"}}}
    user = (Message("system", "Be brief."), Message("user", "Hello"))
    described = describe_request(ChatRequest(user, TOOLS, output=OutputSchema(schema)), "hermes")
    assert [message.role for message in described.messages] == ["system", "user"]
    assert '"first"' in described.messages[0].text and '"town"' in described.messages[0].text.splitlines()[-1]
    alone = describe_request(ChatRequest(user[1:], output=OutputSchema(None)), "hermes")
    assert alone.messages[0].text == "Your final answer is one JSON object alone, without any other text."

"""Values extracted by a client: asked for by each API, corrected, and refused with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from toolwire import (
    ChatRequest,
    Client,
    ConfigurationError,
    FinishReason,
    Message,
    OutputError,
    ParsedResponse,
    ProviderError,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
    apis,
    get_api,
)
from toolwire.testing import ScriptedTransport


class City(BaseModel):
    name: str
    people: int


BERN = City(name="Bern", people=130_000)
BERN_JSON = '{"name": "Bern", "people": 130000}'
CALL = ToolCall("final_answer", {"name": "Bern", "people": 130000}, "call_1")
NO_SCHEMAS = ("deepseek", "moonshot", "zai")


def client_of(api: str, answers: Sequence[ParsedResponse]) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(api, answers)
    return Client(api, "m", base_url="https://models.test", transport=transport), transport


def extract(client: Client, output_type: Any, conversation: Any = "Bern has 130,000 people.", **options: Any) -> Any:
    return asyncio.run(client.extract(output_type, conversation, **options))


@pytest.mark.parametrize("api", apis())
def test_value_is_asked_for_as_the_api_allows(api: str) -> None:
    native = api not in NO_SCHEMAS
    answer = ParsedResponse(BERN_JSON) if native else ParsedResponse(tool_calls=(CALL,))
    client, transport = client_of(api, [answer])
    assert extract(client, City) == BERN
    request = get_api(api).decode_request(transport.requests[0])
    assert (request.output is not None) is native
    assert [definition.name for definition in request.tools] == ([] if native else ["final_answer"])


@pytest.mark.parametrize("mode", ["tool", "text"])
def test_other_ways(mode: str) -> None:
    answer = ParsedResponse(tool_calls=(CALL,)) if mode == "tool" else ParsedResponse(f"```json\n{BERN_JSON}\n```")
    client, transport = client_of("openai", [answer])
    assert extract(client, City, mode=mode) == BERN
    body = transport.requests[0]
    assert "response_format" not in body
    assert ("tools" in body) is (mode == "tool")
    assert ('"people"' in body["messages"][-1]["content"]) is (mode == "text")


@pytest.mark.parametrize(
    ("output_type", "text", "value"),
    [
        (list[City], f'{{"response": [{BERN_JSON}]}}', [BERN]),
        (City | int, '{"response": 3}', 3),
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, '{"n": 1}', {"n": 1}),
        (str, '{"response": "Bern"}', "Bern"),
    ],
)
def test_types(output_type: Any, text: str, value: Any) -> None:
    client, _ = client_of("openai", [ParsedResponse(text)])
    assert extract(client, output_type) == value


@pytest.mark.parametrize("mode", ["native", "tool"])
def test_invalid_answers_are_explained(mode: str) -> None:
    wrong = ToolCall("final_answer", {"name": "Bern"}, "call_0")
    answers = (
        [ParsedResponse('{"name": "Bern"}'), ParsedResponse(BERN_JSON)]
        if mode == "native"
        else [ParsedResponse(tool_calls=(wrong,)), ParsedResponse(tool_calls=(CALL,))]
    )
    client, transport = client_of("openai", answers)
    assert extract(client, City, mode=mode) == BERN
    messages = get_api("openai").decode_request(transport.requests[1]).messages
    assert [message.role for message in messages] == ["user", "assistant", "user" if mode == "native" else "tool"]
    (part,) = messages[-1].parts
    assert isinstance(part, TextPart | ToolResult)
    assert "people" in part.text


@pytest.mark.parametrize("retries", [0, 2])
def test_too_many_invalid_answers(retries: int) -> None:
    client, transport = client_of("openai", [ParsedResponse("Bern.")] * 5)
    with pytest.raises(OutputError, match=f"no valid output in {retries + 1} answers") as caught:
        extract(client, City, retries=retries)
    assert caught.value.text == "Bern."
    assert "not JSON" in caught.value.issues[0]
    assert len(transport.requests) == retries + 1


def test_answers_that_are_not_whole_are_not_asked_for_again() -> None:
    for reason, words in ((FinishReason.LENGTH, "cut off"), (FinishReason.CONTENT_FILTER, "filter")):
        client, transport = client_of("openai", [ParsedResponse('{"name": "B', finish_reason=reason)] * 2)
        with pytest.raises(OutputError, match=words):
            extract(client, City)
        assert len(transport.requests) == 1


def test_server_that_refuses() -> None:
    transport = ScriptedTransport("openai", [(400, b'{"error": {"message": "no such model"}}')])
    client = Client("openai", "m", base_url="https://models.test", transport=transport)
    with pytest.raises(ProviderError, match="no such model"):
        extract(client, City)


def test_conversation_and_options_are_those_of_a_request() -> None:
    client, transport = client_of("ollama", [ParsedResponse(BERN_JSON)])
    conversation = ChatRequest((Message("system", "Be exact."), Message("user", "Bern.")), (ToolDefinition("clock"),))
    assert extract(client, City, conversation, temperature=0.0, max_tokens=50) == BERN
    (body,) = transport.requests
    assert body["options"] == {"temperature": 0.0, "num_predict": 50}
    assert "tools" not in body
    assert [message["role"] for message in body["messages"]] == ["system", "system", "user"]


def test_options_that_an_extraction_sets_itself() -> None:
    client, _ = client_of("openai", [])
    with pytest.raises(ConfigurationError, match="tool_choice"):
        extract(client, City, tool_choice="none")
    with pytest.raises(TypeError, match="retrys"):
        extract(client, City, retrys=1)

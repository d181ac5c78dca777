"""Tokens of a request are counted by the API that can, and estimated elsewhere."""

import asyncio
import json
from typing import Any

import pytest
from tests.integration.servers import Answer, Asked, serving

from toolwire import Client, ProviderError, tool


@tool
def find(word: str) -> str:
    """Find a word."""
    return word


def counted(api: str, answer: Answer) -> tuple[Any, list[Asked]]:
    asked: list[Asked] = []

    def serve(request: Asked) -> Answer:
        asked.append(request)
        return answer

    async def main() -> Any:
        async with Client(api, "m", base_url=url, key="k") as client:
            settings: Any = {"temperature": 0.2, "max_tokens": 50}
            return await client.count_tokens("How much tea is there?", tools=[find], settings=settings)

    with serving(serve) as url:
        return asyncio.run(main()), asked


@pytest.mark.parametrize(
    ("api", "path", "member", "names"),
    [
        ("anthropic", "/v1/messages/count_tokens", "input_tokens", {"model", "messages", "tools"}),
        ("openai_responses", "/responses/input_tokens", "input_tokens", {"model", "input", "tools"}),
        ("gemini", "/v1beta/models/m:countTokens", "totalTokens", {"generateContentRequest"}),
    ],
)
def test_api_counts(api: str, path: str, member: str, names: set[str]) -> None:
    count, (request,) = counted(api, Answer(json.dumps({member: 14}).encode()))
    assert (count.tokens, count.estimated) == (14, False)
    body = json.loads(request.body)
    assert request.path == path
    assert names <= set(body)
    assert not {"max_tokens", "max_output_tokens", "stream", "temperature"} & set(body)
    if api == "gemini":
        assert body["generateContentRequest"]["model"] == "models/m"
        assert "contents" in body["generateContentRequest"]


def test_tokens_are_estimated_where_the_api_does_not_count() -> None:
    count, asked = counted("openai_chat", Answer())
    assert count.estimated
    assert 10 < count.tokens < 100
    assert asked == []


@pytest.mark.parametrize("answer", [Answer(b"{}"), Answer(b"no", status=404)])
def test_missing_count_is_an_error(answer: Answer) -> None:
    with pytest.raises(ProviderError):
        counted("anthropic", answer)

"""Token counts: every member that an API counts with is read, and what is written is read again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.streams import streamed

import toolwire as tw
from toolwire import ParsedResponse, Usage, collect, replay

CHAT = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}
CLAUDE = {"type": "message", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
THOUGHT = {"thinking_tokens": 7}
GEMINI = {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}


@pytest.mark.parametrize(
    ("api", "body", "usage"),
    [
        (
            "anthropic_messages",
            {**CLAUDE, "usage": {"input_tokens": 6, "output_tokens": 9, "output_tokens_details": THOUGHT}},
            Usage(6, 9, 0, 7),
        ),
        (
            "gemini",
            {
                **GEMINI,
                "usageMetadata": {
                    "promptTokenCount": 95,
                    "candidatesTokenCount": 66,
                    "thoughtsTokenCount": 132,
                    "toolUsePromptTokenCount": 439,
                },
            },
            Usage(534, 198, 0, 132),
        ),
        ("mistral", {**CHAT, "usage": {"prompt_tokens": 6, "num_cached_tokens": 4}}, Usage(6, 0, 4)),
        ("deepseek", {**CHAT, "usage": {"prompt_tokens": 6, "prompt_cache_hit_tokens": 4}}, Usage(6, 0, 4)),
        ("moonshot", {**CHAT, "usage": {"prompt_tokens": 6, "cached_tokens": 4}}, Usage(6, 0, 4)),
        (
            "openai_chat",
            {**CHAT, "usage": {"prompt_tokens": 6, "prompt_tokens_details": {"cached_tokens": 0}, "cached_tokens": 4}},
            Usage(6),
        ),
        ("openai_compatible", {**CHAT, "usage": {"input_tokens": 6, "output_tokens": 2}}, Usage(6, 2)),
    ],
)  # fmt: skip
def test_all_counts_of_an_answer_are_read(api: str, body: dict[str, Any], usage: Usage) -> None:
    assert tw.get_api(api).decode_response(body).usage == usage


WITHOUT_REASONING = {"bedrock_converse": Usage(20, 9, 8)}
ONLY_TOTALS = {"ollama": Usage(20, 9)}


@pytest.mark.parametrize("api", list(tw.apis()))
def test_written_counts_are_read_again(api: str) -> None:
    provider, usage = tw.get_api(api), Usage(20, 9, 8, 7)
    response = ParsedResponse("hi", usage=usage)
    expected = {**WITHOUT_REASONING, **ONLY_TOTALS}.get(api, usage)
    assert provider.decode_response(provider.encode_response(response)).usage == expected
    assert collect(streamed(api, b"".join(provider.encode_stream(replay(response))), 9)).usage == expected

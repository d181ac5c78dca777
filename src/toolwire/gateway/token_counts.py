"""Token counts of requests: estimated here, at once, because clients ask for them many times a turn."""

from __future__ import annotations

from toolwire.gateway.client_calls import ClientCall
from toolwire.gateway.questions import tokens_of


async def count_tokens(call: ClientCall) -> None:
    """Count the tokens of a request as Anthropic does."""
    question = await call.question(await call.body())
    await call.send_json({"input_tokens": tokens_of(question.request)})


async def count_gemini_tokens(call: ClientCall) -> None:
    """Count the tokens of a request as Gemini does; it may be inside of `generateContentRequest`."""
    body = await call.body()
    inner = body.get("generateContentRequest")
    question = await call.question(
        inner if isinstance(inner, dict) else body, model=call.path["call"].rpartition(":")[0]
    )
    tokens = tokens_of(question.request)
    details = [{"modality": "TEXT", "tokenCount": tokens}]
    await call.send_json({"totalTokens": tokens, "promptTokensDetails": details})

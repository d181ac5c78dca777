"""Pieces of the Chat Completions shape that whole answers and streams share: reasoning, signatures, errors, counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolwire.messages import FinishReason, ReasoningPart, Usage
from toolwire.providers.base import Head, Json
from toolwire.providers.response_builder import Assembler

OPENROUTER = "openrouter"


def is_custom(call: Mapping[str, Any]) -> bool:
    """Whether a call's input is text and no JSON; some servers send an empty `custom` beside the function."""
    custom = call.get("custom")
    return isinstance(custom, dict) and (call.get("type") == "custom" or bool(custom.get("name")))


def failed(body: Mapping[str, Any], assembler: Assembler) -> bool:
    """Whether an error stands for the answer; a problem then."""
    error = body.get("error")
    if not error:
        return False
    facts = error if isinstance(error, dict) else {"message": str(error)}
    said = str(facts.get("failed_generation") or "")
    failed = facts.get("code") == "tool_use_failed"
    assembler.reason = FinishReason.ERROR
    assembler.problem("malformed" if failed else "provider_error", str(facts.get("message") or error), said)
    return True


def content_blocks(content: Any, assembler: Assembler) -> Iterator[Mapping[str, Any]]:
    """Tell the assembler of content, but for blocks of reasoning: those are given back."""
    if not content:
        return iter(())
    if isinstance(content, str):
        assembler.text(content)
        return iter(())
    return _content_blocks(content, assembler)


def _content_blocks(content: Iterable[Any], assembler: Assembler) -> Iterator[Mapping[str, Any]]:
    for block in content:
        if isinstance(block, str):
            assembler.text(block)
        elif block.get("type") == "thinking":
            yield block
        elif "text" in block:
            assembler.text(block["text"])
        else:
            assembler.passed(block)


def thinking_part(block: Mapping[str, Any], kind: str) -> ReasoningPart:
    """A block of reasoning among the content, with its signature if it has one."""
    signature = str(block.get("signature") or "")
    return ReasoningPart(thinking(block), signature, kind if signature else "")


def thinking(block: Mapping[str, Any]) -> str:
    """The text of such a block, which may be cut into blocks itself."""
    inner = block.get("thinking") or ""
    return inner if isinstance(inner, str) else "".join(str(one.get("text") or "") for one in inner)


_REASONING = frozenset(("reasoning_details", "reasoning_content", "reasoning", "reasoning_text"))


def reasoning_parts(message: Mapping[str, Any]) -> Iterator[tuple[str, ReasoningPart]]:
    """The reasoning of a message or a delta, what is signed as one part each; with the text that is new in it."""
    return iter(()) if _REASONING.isdisjoint(message) else _reasoning_parts(message)


def _reasoning_parts(message: Mapping[str, Any]) -> Iterator[tuple[str, ReasoningPart]]:
    details = message.get("reasoning_details")
    text = message.get("reasoning_content") or message.get("reasoning") or message.get("reasoning_text") or ""
    signed = [one for one in details or () if isinstance(one, dict) and (one.get("signature") or one.get("data"))]
    covered = "".join(str(one.get("text") or "") for one in signed)
    if isinstance(text, str) and text and (not covered or covered != text):
        yield text, ReasoningPart(text)
    for one in signed:
        said, provider = str(one.get("text") or ""), str(one.get("provider") or "")
        data = one.get("data") if provider else dict(one)  # `detail` writes the provider
        part = ReasoningPart(
            said,
            str(one.get("signature") or ""),
            provider or OPENROUTER,
            data if isinstance(data, dict) else None,
        )
        yield said if covered == text else "", part


def detail(part: ReasoningPart) -> Json:
    """Reasoning that has to travel back, through clients that keep what they do not know; OpenRouter's as it came."""
    if part.provider == OPENROUTER and part.data is not None:
        return {**part.data, "text": part.text} if part.text else part.data
    made: Json = {"type": "reasoning.text", "text": part.text, "provider": part.provider}
    if part.signature:
        made["signature"] = part.signature
    if part.data is not None:
        made["data"] = part.data
    return made


def is_signature(part: ReasoningPart) -> bool:
    """Whether this is a thought signature of Google's, which stands on the call that follows."""
    return part.provider == "gemini" and bool(part.signature) and not part.text


def with_signature(call: Json, signature: ReasoningPart | None) -> Json:
    """A call with the thought signature that it has to carry."""
    if signature is None:
        return call
    return {**call, "extra_content": {"google": {"thought_signature": signature.signature}}}


def signatures_of(call: Mapping[str, Any]) -> Iterator[ReasoningPart]:
    """The thought signature that Google's own compatible API puts on a call."""
    google = (call.get("extra_content") or {}).get("google") or {}
    if isinstance(signature := google.get("thought_signature"), str):
        yield ReasoningPart("", signature, "gemini")


def read_usage(usage: Any, assembler: Assembler) -> None:
    """Tell the assembler of token counts, if there are any."""
    if not isinstance(usage, dict):
        return
    read = usage.get("prompt_tokens_details") or {}
    written = usage.get("completion_tokens_details") or {}
    assembler.usage(
        Usage(
            int(usage.get("prompt_tokens") or 0),
            int(usage.get("completion_tokens") or 0),
            int(read.get("cached_tokens") or 0),
            int(written.get("reasoning_tokens") or 0),
        )
    )


def write_usage(usage: Usage) -> Json:
    """Token counts in this shape."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def chunk(head: Head, choices: list[Json]) -> Json:
    """A chunk of a stream."""
    return {
        "id": f"chatcmpl-{head.id}",
        "object": "chat.completion.chunk",
        "created": head.created,
        "model": head.model,
        "choices": choices,
    }

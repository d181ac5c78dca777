"""Pieces of Gemini's shape that requests, answers and streams share: calls, signatures, counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolwire.messages import (
    FinishReason,
    ReasoningPart,
    ToolCall,
    Usage,
)
from toolwire.providers.base import Head, Json
from toolwire.providers.finish_reasons import write_reason
from toolwire.providers.response_builder import Assembler


def camel(data: Any) -> Json:
    """An object with its names in camel case; both are taken."""
    if data is None:
        return {}
    return {re.sub(r"_([a-z])", lambda match: match[1].upper(), key): value for key, value in data.items()}


def listed(value: Any) -> list[Any]:
    """The items of a list, which may be left out where there is one."""
    return [value] if isinstance(value, Mapping) else list(value or ())


def signature_part(signature: str, text: Any = None) -> ReasoningPart:
    """A signature as it stands before the part that it is on; one on empty text is a part of its own."""
    return ReasoningPart("", signature, "gemini", {"text": "", "thoughtSignature": signature} if text == "" else None)


def write_call(call: ToolCall, *, own_ids: bool) -> Json:
    """A call as a part holds it; an id that is not Gemini's own only where `own_ids` says so."""
    made: Json = {"name": call.name, "args": call.arguments}
    return {"id": call.id, **made} if call.id and (own_ids or is_theirs(call.id)) else made


def is_theirs(id: str) -> bool:
    """Whether an id may be sent: those that were made up here begin like this."""
    return bool(id) and not id.startswith("call_")


def read_usage(usage: Json, assembler: Assembler) -> None:
    """Tell the assembler of token counts, if there are any."""
    if not usage.keys() & {"promptTokenCount", "candidatesTokenCount"}:
        return
    thoughts = int(usage.get("thoughtsTokenCount") or 0)
    assembler.usage(
        Usage(
            int(usage.get("promptTokenCount") or 0),
            int(usage.get("candidatesTokenCount") or 0) + thoughts,
            int(usage.get("cachedContentTokenCount") or 0),
            thoughts,
        )
    )


def answer_of(head: Head, parts: list[Json], reason: FinishReason | None = None, usage: Usage | None = None) -> Json:
    """An answer, or a piece of one in a stream."""
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = write_reason("gemini", reason)
    made: Json = {"candidates": [candidate]}
    if usage is not None:
        made["usageMetadata"] = {
            "promptTokenCount": usage.input_tokens,
            "candidatesTokenCount": max(usage.output_tokens - usage.reasoning_tokens, 0),
            "thoughtsTokenCount": usage.reasoning_tokens,
            "cachedContentTokenCount": usage.cached_tokens,
            "totalTokenCount": usage.input_tokens + usage.output_tokens,
        }
    return {**made, "modelVersion": head.model, "responseId": head.id}

"""Reasoning of one API in the answers of another: what its provider needs back travels in a member that clients return.

A seal is that member's value: the facts about the reasoning as JSON in base64, because clients expect signatures in
base64. No state is kept between answer and request, so that any process can open a seal.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable, Mapping
from typing import Any

from toolwire.messages import Message, ReasoningPart

_BEGINNING = b64encode(b'{"provider":').decode()
"""The beginning of each seal: twelve bytes, which base64 writes apart from those that follow."""


def seal_of(part: ReasoningPart, *, with_text: bool = False) -> str:
    """Return the seal of reasoning; with its text where clients do not send that back."""
    facts: dict[str, Any] = {"provider": part.provider}
    if with_text:
        facts["text"] = part.text
    if part.signature:
        facts["signature"] = part.signature
    if part.data is not None:
        facts["data"] = part.data
    return b64encode(json.dumps(facts, separators=(",", ":")).encode()).decode()


def signature_in(part: ReasoningPart, kind: str) -> str:
    """Return the signature of reasoning in an answer of this kind of API: its own, or a seal; "" if it needs none."""
    if part.provider == kind:
        return part.signature
    return seal_of(part) if needs_seal(part, kind) else ""


def needs_seal(part: ReasoningPart, kind: str) -> bool:
    """Return whether another API than this kind needs more than the text back."""
    return part.provider != kind and (bool(part.signature) or part.data is not None)


def unsealed(text: str, seal: object) -> ReasoningPart | None:
    """Return the reasoning that a seal stands for; None if the value is not a seal.

    Args:
        text: the text that was shown of it; a text in the seal takes its place.
        seal: the value of the member, which comes from a client.
    """
    if not isinstance(seal, str) or not seal.startswith(_BEGINNING):
        return None
    # A client may write anything into it: it only stands for reasoning, which a client may make up anyway.
    try:
        facts = json.loads(b64decode(seal, validate=True))
    except (Error, ValueError, RecursionError):
        return None
    text, data = str(facts.get("text", text)), facts.get("data")
    signature, provider = str(facts.get("signature") or ""), str(facts.get("provider") or "")
    return ReasoningPart(text, signature, provider, dict(data) if isinstance(data, Mapping) else None)


def has_reasoning_of_others(messages: Iterable[Message], kind: str) -> bool:
    """Return whether a conversation contains signed reasoning that an API of this kind cannot use."""
    return any(
        isinstance(part, ReasoningPart) and part.provider not in ("", kind)
        for message in messages
        for part in message.parts
    )

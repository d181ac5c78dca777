"""Parts of Chat Completions that whole answers and streams share: reasoning, signatures, errors, token counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolwire.messages import CitationPart, FinishReason, OpaquePart, Part, ReasoningPart, Usage
from toolwire.providers.answer_shapes import AnswerShape
from toolwire.providers.citations import URL_CITATION, own_item, read_annotation, write_annotations
from toolwire.providers.finish_reasons import is_cut, read_reason
from toolwire.providers.message_parts import Json, UsageReader, parsed_text
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.text.json_text import json_text

OPENROUTER = "openrouter"


def is_custom(call: Mapping[str, Any]) -> bool:
    """Return whether a call's input is text, not JSON; some servers add an empty `custom` to functions."""
    custom = call.get("custom")
    return isinstance(custom, dict) and (call.get("type") == "custom" or bool(custom.get("name")))


def add_error(body: Mapping[str, Any], builder: ResponseBuilder) -> bool:
    """Report the error that a body contains; return whether there is one."""
    error = body.get("error")
    if not error:
        return False
    if isinstance(error, Mapping) and error.get("code") == "tool_use_failed":
        # Groq refuses a malformed call of the model, and quotes it: the provider did not fail.
        raw = str(error.get("failed_generation") or "")
        builder.fail(str(error.get("message") or error["code"]), "malformed", raw, error=error)
        return True
    return builder.add_error(body)


def read_finish(choice: Mapping[str, Any], kind: str) -> FinishReason | None:
    """Return why an answer ended; None if the choice does not say.

    A router may say that there are calls, and beside it, in the word of the model's own provider, that the answer was
    cut off. The second matters more: the last call may be incomplete.
    """
    reason = read_reason(kind, choice.get("finish_reason"))
    return FinishReason.LENGTH if reason is not None and is_cut(choice.get("native_finish_reason")) else reason


_ANSWERED = ("images", "reasoning_signature")
"""The members of answers, beside those that are read, that can be sent back; servers add many others."""
_ANNOTATIONS = "annotations"
ANSWER = AnswerShape(
    "choices.0.finish_reason",
    """
: id object created model choices usage system_fingerprint service_tier provider request_id obfuscation x_groq timings
choices.0: index message delta finish_reason native_finish_reason stop_reason content_filter_results
choices.0.message: role content refusal reasoning_details reasoning_content reasoning reasoning_text tool_calls \
function_call images annotations reasoning_signature audio padding provider_metadata
choices.0.message.tool_calls[function]: id type index function custom extra_content
choices.0.message.content[text]: type text
""",
)
DELTA = AnswerShape(
    "choices.0.finish_reason",
    """
choices.0: index message delta finish_reason native_finish_reason stop_reason content_filter_results
choices.0.delta: role content refusal reasoning_details reasoning_content reasoning reasoning_text tool_calls \
function_call images annotations reasoning_signature audio padding provider_metadata
""",
)


def add_members(message: Mapping[str, Any], builder: ResponseBuilder) -> None:
    """Report what a message or a delta has beside text and calls, except for sound, to the builder."""
    for name in _ANSWERED:
        if value := message.get(name):
            builder.add_members({name: value})
    for annotation in message.get(_ANNOTATIONS) or ():
        citation = annotation.get(URL_CITATION) if isinstance(annotation, Mapping) else None
        if isinstance(citation, Mapping):
            part = read_annotation(citation, 0, builder.api)
            rest = {name: value for name, value in annotation.items() if name != URL_CITATION}
            members = {**(part.extra.data if part.extra is not None else {}), **rest}
            builder.add_citation(replace(part, extra=OpaquePart(members, builder.api)))
        else:
            builder.add_members({_ANNOTATIONS: [annotation]})


def annotations_of(parts: Iterable[Part], kind: str, *, only_own: bool = False) -> Json:
    """Return the member with the citations of an answer that this shape can express; nothing if there are none.

    Args:
        parts: the parts of the answer.
        kind: the API.
        only_own: without the citations of other APIs, which its requests may not take.
    """
    written: list[Json] = []
    for part in parts:
        if isinstance(part, CitationPart) and not (only_own and own_item(part, kind) is None):
            for item in write_annotations(part, 0, kind):
                type = item.pop("type", URL_CITATION)
                written.append({"type": type, URL_CITATION: item})
    return {_ANNOTATIONS: written} if written else {}


class Sound:
    """The recording that an answer consists of: it comes whole, or in pieces with its text."""

    def __init__(self) -> None:
        self._members: Json = {}
        self._said = 0  # length of its text in the content

    def add(self, message: Mapping[str, Any], builder: ResponseBuilder) -> None:
        """Add the sound of a message or a delta; report what it says as text, unless the answer has other text."""
        audio = message.get("audio")
        if not isinstance(audio, Mapping):
            return
        if builder.content_length == self._said and isinstance(transcript := audio.get("transcript"), str):
            builder.add_text(transcript)
            self._said = builder.content_length
        for name, value in audio.items():
            earlier = self._members.get(name)
            joined = isinstance(earlier, str) and isinstance(value, str) and name in _PIECES
            self._members[name] = earlier + value if joined else value or earlier

    def end(self, builder: ResponseBuilder) -> None:
        """Report the recording to the builder, if there is one."""
        if self._members.get("id"):
            builder.add_members({"audio": self._members})
        self._members = {}


_PIECES = ("data", "transcript")


def without_transcript(message: Json) -> Json:
    """Return a message whose content does not repeat what its recording says."""
    audio, content = message.get("audio"), message.get("content")
    is_repeated = isinstance(audio, Mapping) and content and content == audio.get("transcript")
    return {**message, "content": ""} if is_repeated else message


def content_blocks(content: Any, builder: ResponseBuilder) -> Iterator[Mapping[str, Any]]:
    """Report content to the builder, except for blocks of reasoning: yield these."""
    if not content:
        return iter(())
    if isinstance(content, str):
        builder.add_text(content)
        return iter(())
    if isinstance(content, Mapping):
        builder.add_text(parsed_text(content))
        return iter(())
    return _content_blocks(content, builder)


def _content_blocks(content: Iterable[Any], builder: ResponseBuilder) -> Iterator[Mapping[str, Any]]:
    for block in content:
        if isinstance(block, str):
            builder.add_text(block)
        elif block.get("type") == "thinking":
            yield block
        elif "text" in block:
            builder.add_text(block["text"])
        else:
            builder.add_opaque(block)


def thinking_part(block: Mapping[str, Any], kind: str) -> ReasoningPart:
    """Parse a block of reasoning among the content; its text may be cut into blocks itself."""
    thinking = block.get("thinking") or ""
    if not isinstance(thinking, str):
        thinking = "".join(str(inner.get("text") or "") for inner in thinking)
    signature = str(block.get("signature") or "")
    return ReasoningPart(thinking, signature, kind if signature else "")


_REASONING = frozenset(("reasoning_details", "reasoning_content", "reasoning", "reasoning_text"))
MESSAGE = _REASONING | {"role", "content", "refusal", "tool_calls", "function_call", "tool_call_id"}
"""The members of a message that are read."""


def reasoning_parts(message: Mapping[str, Any], streamed: Sequence[str] = ()) -> Iterator[tuple[str, ReasoningPart]]:
    """Yield the reasoning of a message or a delta, each signed stretch as one part, with the text to show for it.

    Args:
        message: the message or the delta.
        streamed: the reasoning of earlier deltas.
    """
    return iter(()) if _REASONING.isdisjoint(message) else _reasoning_parts(message, streamed)


def _reasoning_parts(message: Mapping[str, Any], streamed: Sequence[str]) -> Iterator[tuple[str, ReasoningPart]]:
    details = message.get("reasoning_details")
    text = message.get("reasoning_content") or message.get("reasoning") or message.get("reasoning_text") or ""
    text = text if isinstance(text, str) and text else "".join(map(_unsigned_text, details or ()))
    signed = [item for item in details or () if isinstance(item, dict) and (item.get("signature") or item.get("data"))]
    texts = [_sealed_text(item, (*streamed, text), alone=len(signed) == 1) for item in signed]
    covered = "".join(texts)
    if text and covered != text:
        yield text, ReasoningPart(text)
    for item, signed_text in zip(signed, texts, strict=True):
        provider, signature = str(item.get("provider") or ""), str(item.get("signature") or "")
        data = item.get("data") if provider else _without_range(item)  # only `detail` writes the provider
        part = ReasoningPart(signed_text, signature, provider or OPENROUTER, data if isinstance(data, dict) else None)
        yield signed_text if covered == text else "", part


def _unsigned_text(item: Any) -> str:
    """Return the text of an item of reasoning that is not sealed; "" for any other."""
    if not isinstance(item, dict) or item.get("signature") or item.get("data"):
        return ""
    return str(item.get("text") or item.get("summary") or "")


_RANGE = "text_range"
"""The member of an item that says which characters of the message's reasoning the item covers: start and end."""


def _sealed_text(item: Mapping[str, Any], reasoning: Sequence[str], *, alone: bool) -> str:
    """Return the text that an item seals: its own, or the part of the message's reasoning that it refers to."""
    match item:
        case {"text": str(text)}:
            return text
        case {"text_range": [int(start), int(end)]}:
            return "".join(reasoning)[start:end] if 0 <= start <= end else ""
        case {"signature": str(), "provider": str(provider)} if alone and provider != "gemini":
            return "".join(reasoning)  # the client has sent back only the members that it knows
    return ""


def _without_range(item: Mapping[str, Any]) -> Json:
    return {name: value for name, value in item.items() if name != _RANGE}


def detail(part: ReasoningPart) -> Json:
    """Return reasoning that must be sent back as an item that clients keep; OpenRouter's items are unchanged."""
    if part.provider == OPENROUTER and part.data is not None:
        return {**part.data, "text": part.text} if part.text else part.data
    item: Json = {"type": "reasoning.text", "text": part.text, "provider": part.provider}
    if part.signature:
        item["signature"] = part.signature
    if part.data is not None:
        item["data"] = part.data
    return item


def detail_of_streamed(part: ReasoningPart, start: int) -> Json:
    """Return the item for reasoning whose text the stream has sent already: it refers to the text.

    A client that shows the text of deltas and of items would show the text twice otherwise.

    Args:
        part: the reasoning.
        start: number of characters of reasoning before its text.
    """
    item = {name: value for name, value in detail(part).items() if name != "text"}
    return {**item, _RANGE: [start, start + len(part.text)]}


def seal_of(part: ReasoningPart) -> str:
    """Return the text by which the seal of reasoning differs from other seals; "" if the reasoning is not sealed."""
    if part.signature or part.data is None:
        return part.signature
    sealed = part.data.get("data")
    return sealed if isinstance(sealed, str) and sealed else json_text(part.data)


def is_signature(part: ReasoningPart) -> bool:
    """Return whether this is a thought signature of Google's, which belongs on the call that follows."""
    return part.provider == "gemini" and bool(part.signature) and not part.text


def with_signature(call: Json, signature: ReasoningPart | None) -> Json:
    """Return a call with its thought signature."""
    if signature is None:
        return call
    return {**call, "extra_content": {"google": {"thought_signature": signature.signature}}}


def signatures_of(call: Mapping[str, Any]) -> Iterator[ReasoningPart]:
    """Yield the thought signature that Google's own compatible API puts on a call."""
    google = (call.get("extra_content") or {}).get("google") or {}
    if isinstance(signature := google.get("thought_signature"), str):
        yield ReasoningPart("", signature, "gemini")


_USAGE = UsageReader(
    "prompt_tokens|input_tokens",
    "completion_tokens|output_tokens",
    # Mistral, DeepSeek and Moonshot have names of their own.
    "prompt_tokens_details.cached_tokens|num_cached_tokens|prompt_cache_hit_tokens|cached_tokens",
    "completion_tokens_details.reasoning_tokens",
)


def add_usage(usage: Any, builder: ResponseBuilder) -> None:
    """Report token counts to the builder, if there are any."""
    if isinstance(usage, dict):
        builder.add_usage(_USAGE.read(usage))


def write_usage(usage: Usage) -> Json:
    """Return token counts in this shape."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }

"""Streams of Anthropic Messages, and the parts that they share with whole answers: thinking, errors, token counts.

CitedSource: https://docs.anthropic.com/en/docs/build-with-claude/streaming
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolwire.events import CallEnd, CallStart
from toolwire.messages import CitationPart, CitedSource, OpaquePart, ReasoningPart, Usage
from toolwire.providers.answer_shapes import AnswerShape, put_members
from toolwire.providers.citations import own_item
from toolwire.providers.content_blocks import BlockWriter
from toolwire.providers.error_bodies import error_in
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import Frame, sse
from toolwire.providers.message_parts import Json, UsageReader, members_except, object_of, uncached_tokens
from toolwire.providers.reasoning_seals import signature_in, unsealed
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.stream_codec import Head

KIND = "anthropic_messages"


ANSWER = AnswerShape(
    "stop_reason",
    """
: type id role model content stop_reason stop_details usage context_management
content[text]: type text citations
content[thinking]: type thinking signature
content[redacted_thinking]: type data
""",
)


class AnthropicStreamReader:
    """Reads the events of one stream."""

    def __init__(self, builder: ResponseBuilder) -> None:
        self._builder = builder
        self._blocks: dict[int, Json] = {}  # open blocks
        self._pieces: dict[int, list[str]] = {}  # of the text of thinking, or of the input of a provider's tool
        self._input_usage: Json = {}
        self._text_start = 0  # of the open text block, in the content
        self._citations: list[Any] = []  # of the open text block
        self._ended: Any = None  # the type of the last block

    def read(self, frame: Frame) -> None:
        """Report the content of the next event to the builder."""
        event = frame.value
        builder = self._builder
        match event.get("type"):
            case "content_block_delta":
                self._delta(event["index"], event["delta"])
            case "content_block_start":
                self._start(event["index"], dict(event["content_block"]))
            case "content_block_stop":
                self._stop(event["index"])
            case "message_start":
                self._input_usage = dict(event["message"].get("usage") or {})
                builder.add_unread(ANSWER, event["message"])
            case "message_delta":
                builder.reason = read_reason(KIND, event["delta"].get("stop_reason")) or builder.reason
                builder.add_unread(ANSWER, event["delta"])
                add_usage(event.get("usage"), self._input_usage, builder)
            case _:
                add_error(event, builder)

    def _start(self, index: int, block: Json) -> None:
        builder = self._builder
        self._blocks[index] = block
        self._pieces[index] = []
        match block.get("type"):
            case "text":
                if self._ended == "text":
                    builder.divide_text()
                self._text_start = builder.content_length
                self._citations = list(block.get("citations") or ())
                builder.add_text(block.get("text"))
            case "tool_use":
                builder.begin_call(index, block.get("name"), block.get("id"), extra=call_extra(block))
                if block.get("input"):
                    builder.add_arguments(index, block["input"])
            case "thinking":
                builder.add_reasoning(block.get("thinking"))
                self._pieces[index].append(block.get("thinking") or "")
            case _:
                pass

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        builder = self._builder
        block = self._blocks.get(index)
        match delta.get("type"):
            case "text_delta":
                builder.add_text(delta["text"])
            case "input_json_delta":
                if block is not None and block.get("type") == "tool_use":
                    builder.add_arguments(index, delta["partial_json"])
                elif block is not None:
                    self._pieces[index].append(delta["partial_json"])
            case "thinking_delta":
                builder.add_reasoning(delta["thinking"])
                self._pieces.setdefault(index, []).append(delta["thinking"])
            case "citations_delta":
                self._citations.append(delta["citation"])
            case "signature_delta" if block is not None:
                block["signature"] = block.get("signature", "") + delta["signature"]
            case "compaction_delta" if block is not None:
                # The server's summary of the earlier conversation comes whole, and has to be sent back as it is.
                block.update({name: value for name, value in delta.items() if name != "type" and value is not None})
            case _:
                pass

    def _stop(self, index: int) -> None:
        builder = self._builder
        block, pieces = self._blocks.pop(index, None), "".join(self._pieces.pop(index, ()))
        self._ended = (block or {}).get("type")
        match block:
            case None:
                return
            case {"type": "tool_use"}:
                builder.end_call(index, extra=call_extra(block))
            case {"type": "thinking"}:
                builder.end_reasoning(thinking_part({**block, "thinking": pieces}))
            case {"type": "redacted_thinking"}:
                builder.end_reasoning(thinking_part(block))
            case {"type": "text"}:
                add_citations(self._citations, self._text_start, builder)
            case _:
                if pieces:
                    block["input"] = object_of(pieces)
                builder.add_opaque(block)


_CALL = frozenset(("type", "id", "name", "input"))
_SOURCE = frozenset(("url", "title", "document_title", "cited_text"))
_SEARCH_RESULT = "web_search_result_location"
_DOCUMENTS = ("char_", "page_", "content_block_")
"""Beginnings of the types of citations that have the title of a document."""
_EMPTY_BLOCKS: dict[str | None, Json] = {
    "text": {"type": "text", "text": ""},
    "reasoning": {"type": "thinking", "thinking": "", "signature": ""},
}
_DELTAS: dict[str | None, tuple[str, str]] = {
    "text": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "call": ("input_json_delta", "partial_json"),
}


class AnthropicStreamWriter(BlockWriter):
    """Writes the events of one stream."""

    def first(self) -> Iterator[bytes]:
        """Yield the message, still empty."""
        yield event_of("message_start", message=message_of(self.head, Usage()))

    def last(self) -> Iterator[bytes]:
        """Yield the stop reason and the token counts."""
        delta = {"stop_reason": write_reason(KIND, self.end.reason), "stop_sequence": None}
        put_members(delta, self.end.members)
        yield event_of("message_delta", delta=delta, usage=_usage_of(self.end.usage or Usage()))
        yield event_of("message_stop")

    def opened(self, call: CallStart | None) -> Iterator[bytes]:
        """Yield the open block, still empty."""
        if call is None:
            block = _EMPTY_BLOCKS[self.block]
        else:
            members = call.extra.data if call.extra is not None and call.extra.provider == KIND else {}
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}, **members}
        yield event_of("content_block_start", index=self.index, content_block=block)

    def piece(self, text: str) -> Iterator[bytes]:
        """Yield a delta of the open block."""
        kind, member = _DELTAS[self.block]
        yield self._delta(kind, **{member: text})

    def closed(self, call: CallEnd | None) -> Iterator[bytes]:
        """Yield the end of the open block."""
        yield event_of("content_block_stop", index=self.index)

    def sealed(self, part: ReasoningPart) -> Iterator[bytes]:
        """Yield the signature; or the whole block, if it has more than text and a signature."""
        if part.provider == KIND and part.data is not None:
            yield from self._whole(part.data)
        elif (signature := signature_in(part, KIND)) and (part.provider == KIND or self.block == "reasoning"):
            yield from self.begin("reasoning")
            yield self._delta("signature_delta", signature=signature)
        elif signature:
            yield from self._whole(thinking_block(part))

    def cited(self, part: CitationPart) -> Iterator[bytes]:
        """Yield the citations of the open block, and end it: they belong to all of its text."""
        for citation in write_citations(part):
            if self.block == "text":
                yield self._delta("citations_delta", citation=citation)
        if self.block == "text":
            yield from self.close()

    def passed(self, part: OpaquePart) -> Iterator[bytes]:
        """Yield a block of this API's own."""
        yield from self._whole(part.data)

    def _whole(self, block: Json) -> Iterator[bytes]:
        yield from self.close()
        self.index += 1
        yield event_of("content_block_start", index=self.index, content_block=block)
        yield from self.closed(None)

    def _delta(self, kind: str, **members: Any) -> bytes:
        return event_of("content_block_delta", index=self.index, delta={"type": kind, **members})


def call_extra(block: Mapping[str, Any]) -> OpaquePart | None:
    """Return the members of a call that only this API has, such as the program that made it."""
    return members_except(block, _CALL, KIND)


def add_citations(citations: Any, start: int, builder: ResponseBuilder) -> None:
    """Report the citations of a block of text that ends here to the builder."""
    for citation in citations or ():
        name = "document_title" if "document_title" in citation else "title"
        source = CitedSource(*(str(citation.get(member) or "") for member in ("url", name, "cited_text")))
        extra = members_except(citation, _SOURCE, KIND)
        builder.add_citation(CitationPart((source,), start, builder.content_length, extra))


def write_citations(part: CitationPart) -> Iterator[Json]:
    """Yield the citations of a block of text: one for each source that has an address, or that this API gave."""
    members = own_item(part, KIND)
    for source in part.sources:
        if members is None and not source.url:
            continue  # this API refers to a document by its number in the request, which other APIs do not have
        kind = members or {"type": _SEARCH_RESULT, "encrypted_index": ""}
        is_document = str(kind.get("type")).startswith(_DOCUMENTS)
        url = {"url": source.url} if source.url else {}
        title = {"document_title" if is_document else "title": source.title or None}
        yield {**kind, **url, **title, "cited_text": source.quote}


def event_of(kind: str, **members: Any) -> bytes:
    """Return an event of a stream as bytes."""
    return sse({"type": kind, **members}, kind)


def message_of(head: Head, usage: Usage) -> Json:
    """Return an answer without content."""
    return {
        "id": f"msg_{head.id}",
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage_of(usage),
    }


def _usage_of(usage: Usage) -> Json:
    counts: Json = {
        "input_tokens": uncached_tokens(usage),
        "output_tokens": usage.output_tokens,
    }
    if usage.cached_tokens:
        counts["cache_read_input_tokens"] = usage.cached_tokens
    if usage.reasoning_tokens:
        counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return counts


def add_error(body: Mapping[str, Any], builder: ResponseBuilder) -> bool:
    """Report the error that takes the place of an answer; return whether there is one."""
    if body.get("type") != "error" and not (body.get("error") and "content" not in body):
        return False
    error = error_in(body) or {}
    builder.fail(f"{error.get('type', 'error')}: {error.get('message', '')}", error=error)
    return True


def thinking_block(part: ReasoningPart) -> Json:
    """Return the block for reasoning: for a seal without a text, one that clients do not show."""
    if part.provider == KIND and part.data:
        return part.data
    signature = signature_in(part, KIND)
    if part.provider != KIND and signature and not part.text:
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": part.text, "signature": signature}


def thinking_part(block: Mapping[str, Any]) -> ReasoningPart:
    """Return thinking as it must be sent back; without a signature it is plain reasoning."""
    text, signature = block.get("thinking") or "", block.get("signature") or ""
    if (part := unsealed(text, signature or block.get("data"))) is not None:
        return part
    if block.get("type") == "redacted_thinking" or block.keys() - {"type", "thinking", "signature"}:
        return ReasoningPart(text, signature, KIND, dict(block))
    return ReasoningPart(text, signature, KIND if signature else "")


_USAGE = UsageReader(
    "input_tokens cache_read_input_tokens cache_creation_input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "output_tokens_details.thinking_tokens",
)


def add_usage(usage: Any, input_usage: Mapping[str, Any], builder: ResponseBuilder) -> None:
    """Report token counts to the builder; a stream gives those of the input at its beginning."""
    if isinstance(usage, Mapping):
        counts = {key: value for key, value in usage.items() if value is not None}
        counts = {**input_usage, **counts}
        # A compaction by the server is paid too, but the counts of the whole answer leave it out.
        compactions = (item for item in counts.get("iterations") or () if item.get("type") == "compaction")
        builder.add_usage(sum(map(_USAGE.read, compactions), start=_USAGE.read(counts)))

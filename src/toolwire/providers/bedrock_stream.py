"""Streams of Bedrock's Converse, and the parts that they share with whole answers: reasoning, citations, token counts.

CitedSource: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolwire.events import CallEnd, CallStart
from toolwire.messages import CitationPart, CitedSource, OpaquePart, ReasoningPart, Usage
from toolwire.providers.answer_shapes import AnswerShape
from toolwire.providers.bedrock_media import KIND, as_base64
from toolwire.providers.citations import own_item
from toolwire.providers.content_blocks import BlockWriter
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import Frame, aws_event
from toolwire.providers.message_parts import Json, UsageReader, object_of, uncached_tokens
from toolwire.providers.response_builder import ResponseBuilder

SERVER_CALL = "server_tool_use"
"""The type of a call that the provider runs itself."""

ANSWER = AnswerShape(
    "stopReason",
    """
: output stopReason usage metrics ResponseMetadata $metadata
output: message
output.message: role content
output.message.content[text]: text
output.message.content[citationsContent]: citationsContent
output.message.content[toolUse]: toolUse
output.message.content[reasoningContent]: reasoningContent
""",
)


class ConverseReader:
    """Reads the events of one stream."""

    def __init__(self, builder: ResponseBuilder) -> None:
        self._builder = builder
        self._last_text = -2  # the index of the last block of text
        self._cited: dict[int, tuple[int, list[Json]]] = {}  # the places where texts begin, and their citations
        self._opaque: dict[int, Json] = {}  # open blocks that the provider uses itself
        self._input: dict[int, list[str]] = {}  # the input of these
        self._thoughts: dict[int, Json] = {}  # open reasoning

    def read(self, frame: Frame) -> None:
        """Report the content of the next event to the builder."""
        builder = self._builder
        event = frame.value
        match frame.event:
            case "contentBlockStart":
                self._start(event["contentBlockIndex"], event["start"])
            case "contentBlockDelta":
                self._delta(event["contentBlockIndex"], event["delta"])
            case "contentBlockStop":
                self._stop(event["contentBlockIndex"])
            case "messageStop":
                builder.reason = read_reason(builder.api, event.get("stopReason"))
                builder.add_unread(ANSWER, event)
            case "metadata":
                add_usage(event.get("usage"), builder)
                builder.add_unread(ANSWER, event)
            case "messageStart":
                pass
            case other if other.endswith(("Exception", "Error")) or (other and "message" in event):
                builder.fail(f"{other}: {event.get('message', '')}", error={"code": other})
            case _:
                pass

    def _start(self, index: int, start: Json) -> None:
        use = start.get("toolUse")
        if use is not None and use.get("type") != SERVER_CALL:
            self._builder.begin_call(index, use.get("name"), use.get("toolUseId"))
        else:
            self._opaque[index] = {key: dict(value) for key, value in start.items() if isinstance(value, Mapping)}
            self._input[index] = []

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        builder = self._builder
        match delta:
            case {"text": text}:
                if index not in self._cited and self._last_text == index - 1:
                    builder.divide_text()
                self._last_text = index
                self._cited.setdefault(index, (builder.content_length, []))
                builder.add_text(text)
            case {"toolUse": {"input": text}}:
                if builder.is_open(index):
                    builder.add_arguments(index, text)
                else:
                    self._input.setdefault(index, []).append(str(text))
            case {"citation": citation}:
                self._cited.setdefault(index, (builder.content_length, []))[1].append(citation)
            case {"reasoningContent": content}:
                thought = self._thoughts.setdefault(index, {"text": [], "signature": ""})
                builder.add_reasoning(content.get("text"))
                thought["text"].append(content.get("text") or "")
                thought["signature"] += content.get("signature") or ""
                if "redactedContent" in content:
                    thought["redactedContent"] = content["redactedContent"]
            case {"toolResult": content} if index in self._opaque:
                self._opaque[index].setdefault("toolResult", {}).setdefault("content", []).extend(content)
            case _:
                pass

    def _stop(self, index: int) -> None:
        builder = self._builder
        if builder.is_open(index):
            builder.end_call(index)
        start, citations = self._cited.pop(index, (0, []))
        for citation in citations:
            builder.add_citation(citation_part(citation, start, builder.content_length))
        if (thought := self._thoughts.pop(index, None)) is not None:
            signed = {"text": "".join(thought.pop("text")), "signature": thought.pop("signature")}
            builder.end_reasoning(reasoning_part({"reasoningContent": {"reasoningText": signed, **thought}}))
        if (block := self._opaque.pop(index, None)) is not None:
            if (text := "".join(self._input.pop(index))) and "toolUse" in block:
                block["toolUse"]["input"] = object_of(text)
            builder.add_opaque(block)


class ConverseWriter(BlockWriter):
    """Writes the events of one stream; frames have no place for a whole block of another kind."""

    def first(self) -> Iterator[bytes]:
        """Yield the beginning of the message."""
        yield aws_event({"role": "assistant"}, "messageStart")

    def last(self) -> Iterator[bytes]:
        """Yield the stop reason and the token counts."""
        yield aws_event({"stopReason": write_reason("bedrock_converse", self.end.reason)}, "messageStop")
        yield aws_event(totals(self.end.usage), "metadata")

    def opened(self, call: CallStart | None) -> Iterator[bytes]:
        """Yield the start of a call."""
        if call is not None:  # other blocks begin with their first delta
            start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
            yield aws_event({"contentBlockIndex": self.index, "start": start}, "contentBlockStart")

    def piece(self, text: str) -> Iterator[bytes]:
        """Yield a delta of the open block."""
        match self.block:
            case "text":
                yield self._delta({"text": text})
            case "reasoning":
                yield self._delta({"reasoningContent": {"text": text}})
            case _:
                yield self._delta({"toolUse": {"input": text}})

    def closed(self, call: CallEnd | None) -> Iterator[bytes]:
        """Yield the end of the open block."""
        yield aws_event({"contentBlockIndex": self.index}, "contentBlockStop")

    def sealed(self, part: ReasoningPart) -> Iterator[bytes]:
        """Yield the signature, or reasoning that is not shown."""
        if part.provider != "bedrock_converse":
            return
        redacted = ((part.data or {}).get("reasoningContent") or {}).get("redactedContent")
        if part.signature or redacted:
            yield from self.begin("reasoning")
            content = {"redactedContent": redacted} if redacted else {"signature": part.signature}
            yield self._delta({"reasoningContent": content})

    def cited(self, part: CitationPart) -> Iterator[bytes]:
        """Yield the citations of the open block, and end it: they belong to all of its text."""
        for citation in write_citations(part):
            if self.block == "text":
                yield self._delta({"citation": citation})
        if self.block == "text":
            yield from self.close()

    def _delta(self, delta: Json) -> bytes:
        return aws_event({"contentBlockIndex": self.index, "delta": delta}, "contentBlockDelta")


def citation_part(citation: Mapping[str, Any], start: int, end: int) -> CitationPart:
    """Return the source of a statement; its place in a document, and what else only this API has, is kept for it."""
    quotes = [str(piece.get("text") or "") for piece in citation.get("sourceContent") or ()]
    location = citation.get("location")
    page = location.get("web") if isinstance(location, Mapping) else None
    url = str(page.get("url") or "") if isinstance(page, Mapping) else ""
    source = CitedSource(url, str(citation.get("title") or ""), "".join(quotes))
    rest = {name: value for name, value in citation.items() if name not in ("title", "sourceContent", "location")}
    if len(quotes) > 1:
        rest["sourceContent"] = citation["sourceContent"]
    if location != {"web": {"url": url}}:
        rest["location"] = location
    return CitationPart((source,), start, end, OpaquePart(rest, KIND))


def write_citations(part: CitationPart) -> Iterator[Json]:
    """Yield the citations of a block of text, one for each source."""
    for source in part.sources:
        citation: Json = {"title": source.title} if source.title else {}
        if source.quote:
            citation["sourceContent"] = [{"text": source.quote}]
        if source.url:
            citation["location"] = {"web": {"url": source.url}}
        if citation := {**citation, **(own_item(part, KIND) or {})}:
            yield citation


def reasoning_part(block: Mapping[str, Any]) -> ReasoningPart:
    """Parse a block of reasoning."""
    content = block["reasoningContent"]
    text = content.get("reasoningText") or {}
    if "redactedContent" in content:
        data = {"reasoningContent": {"redactedContent": as_base64(content["redactedContent"])}}
        return ReasoningPart("", "", "bedrock_converse", data)
    signature = text.get("signature") or ""
    return ReasoningPart(text.get("text") or "", signature, "bedrock_converse" if signature else "")


_USAGE = UsageReader("inputTokens cacheReadInputTokens cacheWriteInputTokens", "outputTokens", "cacheReadInputTokens")


def add_usage(usage: Any, builder: ResponseBuilder) -> None:
    """Report token counts to the builder, if there are any."""
    if isinstance(usage, Mapping):
        builder.add_usage(_USAGE.read(usage))


def totals(usage: Usage | None) -> Json:
    """Return the members with token counts and the latency."""
    usage = usage or Usage()
    total = usage.input_tokens + usage.output_tokens
    counts = {
        "inputTokens": uncached_tokens(usage),
        "outputTokens": usage.output_tokens,
        "totalTokens": total,
    }
    if usage.cached_tokens:
        counts["cacheReadInputTokens"] = usage.cached_tokens
    return {"usage": counts, "metrics": {"latencyMs": 0}}

"""Gemini's answers, whole and streamed: parts, signatures, token counts, and arguments that come in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolwire.messages import CitationPart, CitedSource, FinishReason, Part, ReasoningPart, ToolCall, Usage
from toolwire.providers.answer_shapes import AnswerShape
from toolwire.providers.citations import content_of
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.message_parts import Json, UsageReader, answer_members, object_of
from toolwire.providers.reasoning_seals import unsealed
from toolwire.providers.repeated_frames import RepeatedFrames
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.stream_codec import Head
from toolwire.text.escape import replace_surrogates
from toolwire.text.json_text import json_text
from toolwire.text.limits import MAX_DEPTH

KIND = "gemini"


def camel(data: Any) -> Json:
    """Return an object with its members in camel case; Gemini takes snake case as well."""
    if data is None:
        return {}
    if "_" not in "".join(data.keys()):  # almost always
        return dict(data)
    return {re.sub(r"_([a-z])", lambda match: match[1].upper(), key): value for key, value in data.items()}


def listed(value: Any) -> list[Any]:
    """Return the items of a list; a single item may be given without a list."""
    return [value] if isinstance(value, Mapping) else list(value or ())


# -- writing -----------------------------------------------------------------------------------------------------


class Signer:
    """Puts signatures on the parts that they belong to."""

    def __init__(self) -> None:
        self._signature = ""

    def reasoning(self, part: ReasoningPart, *, streamed: bool = False) -> list[Json]:
        """Return the parts for reasoning; `streamed`: its text was written already."""
        parts = self.rest()
        if part.data is not None:
            parts.append(part.data)
        elif part.text:
            thought: Json = {"text": "" if streamed else part.text, "thought": True}
            parts.append({**thought, "thoughtSignature": part.signature} if part.signature else thought)
        else:
            self._signature = part.signature
        return parts

    def signed(self, part: Json) -> Json:
        """Return the next part, with the pending signature."""
        signed = {**part, "thoughtSignature": self._signature} if self._signature else part
        self._signature = ""
        return signed

    def rest(self) -> list[Json]:
        """Return a part of its own for a pending signature."""
        return [self.signed({"text": ""})] if self._signature else []


def signature_part(signature: str, text: Any = None) -> ReasoningPart:
    """Return a signature as the part before the one that it belongs to; on empty text it is a part of its own."""
    if (part := unsealed("", signature)) is not None:
        return part
    return ReasoningPart("", signature, KIND, {"text": "", "thoughtSignature": signature} if text == "" else None)


def write_call(call: ToolCall, *, own_ids: bool) -> Json:
    """Return a part with a call; an id that Gemini did not give is written only if `own_ids`."""
    written: Json = {"name": call.name, "args": call.arguments}
    return {"id": call.id, **written} if call.id and (own_ids or is_gemini_id(call.id)) else written


def is_gemini_id(id: str) -> bool:
    """Return whether Gemini may have given an id; Toolwire's own begin with `call_`."""
    return bool(id) and not id.startswith("call_")


def grounding_of(parts: Iterable[Part]) -> Json:
    """Return the member of a candidate for the citations of an answer that has not got it already."""
    parts = list(parts)
    citations = [part for part in parts if isinstance(part, CitationPart)]
    if not citations or any(_GROUNDING in members for part in parts for members in answer_members(part).values()):
        return {}
    content = content_of(parts)
    sources = list(dict.fromkeys(source for part in citations for source in part.sources))
    chunks = [{"web": {"uri": source.url, "title": source.title}} for source in sources]
    supports: list[Json] = []
    for part in citations:
        support: Json = {"groundingChunkIndices": [sources.index(source) for source in part.sources]}
        if part.start is not None and part.end is not None:
            cited = content[part.start : part.end]
            start = len(content[: part.start].encode())
            support["segment"] = {"startIndex": start, "endIndex": start + len(cited.encode()), "text": cited}
        supports.append(support)
    return {_GROUNDING: {"groundingChunks": chunks, "groundingSupports": supports}}


def answer_of(head: Head, parts: list[Json], reason: FinishReason | None = None, usage: Usage | None = None) -> Json:
    """Return an answer, or a piece of one in a stream."""
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = write_reason(KIND, reason)
    answer: Json = {"candidates": [candidate]}
    if usage is not None:
        answer["usageMetadata"] = {
            "promptTokenCount": usage.input_tokens,
            "candidatesTokenCount": max(usage.output_tokens - usage.reasoning_tokens, 0),
            "thoughtsTokenCount": usage.reasoning_tokens,
            "cachedContentTokenCount": usage.cached_tokens,
            "totalTokenCount": usage.input_tokens + usage.output_tokens,
        }
    return {**answer, "modelVersion": head.model, "responseId": head.id}


# -- reading -----------------------------------------------------------------------------------------------------

_USAGE = UsageReader(
    "promptTokenCount toolUsePromptTokenCount",
    "candidatesTokenCount thoughtsTokenCount",
    "cachedContentTokenCount",
    "thoughtsTokenCount",
)


ANSWER = AnswerShape(
    "candidates.0.finishReason",
    """
: candidates usageMetadata modelVersion responseId createTime error promptFeedback model
candidates.0: index finishReason finishMessage content safetyRatings tokenCount
candidates.0.content: role parts
candidates.0.content.parts[text]: text thought thoughtSignature
candidates.0.content.parts[functionCall]: functionCall thoughtSignature
""",
)
_GROUNDING = "groundingMetadata"


class GeminiStreamReader:
    """Reads a response, or those of one stream."""

    def __init__(self, builder: ResponseBuilder) -> None:
        self._builder = builder
        self._thought: list[str] = []  # reasoning that has not ended
        self._content: list[str] = []
        self._cited: set[str] = set()  # statements whose sources have been reported; a stream may repeat them
        self._pieces: _Pieces | None = None
        self._repeated = RepeatedFrames(_is_unique_response)

    def piece(self, response: Json) -> None:
        """Report the content of a response of a stream to the builder, unless it is the last one again."""
        if not self._repeated.repeats(response):
            self.answer(response)

    def answer(self, response: Mapping[str, Any], *, whole: bool = False) -> None:
        """Report the content of a response to the builder; `whole`: each of its parts is complete."""
        response = camel(response)
        builder = self._builder
        if response.get("error"):
            builder.add_error(response)
            return
        if camel(response.get("promptFeedback")).get("blockReason"):
            builder.reason = FinishReason.CONTENT_FILTER
        candidates = response.get("candidates") or ()
        first = next((candidate for candidate in candidates if not candidate.get("index")), None)
        if first is not None:
            candidate = camel(first)
            for part in (candidate.get("content") or {}).get("parts") or ():
                self._part(part, camel(part), whole=whole)
            if whole:
                self._end_thought()
            if isinstance(grounding := candidate.get(_GROUNDING), Mapping):
                self._cite(camel(grounding))
            self._finish(candidate)
            if not whole:
                builder.add_unread(ANSWER, {**response, "candidates": [candidate]})
        if not whole and (unread := [candidate for candidate in candidates if candidate is not first]):
            builder.add_answer_members({"": {"candidates": unread}})  # they are not read, but not lost either
        usage = camel(response.get("usageMetadata"))
        if usage.keys() & {"promptTokenCount", "candidatesTokenCount"}:
            builder.add_usage(_USAGE.read(usage))

    def _part(self, raw: Mapping[str, Any], part: Json, *, whole: bool) -> None:
        builder = self._builder
        signature = str(part.get("thoughtSignature") or "")
        text = part.get("text")
        if isinstance(text, str) and part.get("thought"):
            if whole:
                self._end_thought()
            self._thought.append(text)
            builder.add_reasoning(text)
            if signature:
                self._end_thought(signature)
            return
        call = part.get("functionCall")
        signed: ReasoningPart | None = None
        if signature and (isinstance(text, str) or isinstance(call, Mapping)):
            signed = signature_part(signature, text)
            if signed.text == "".join(self._thought):
                self._thought.clear()  # a seal contains the thought
        self._end_thought()
        if signed is not None:
            builder.end_reasoning(signed)
        if isinstance(call, Mapping):
            self._call(camel(call))
        elif isinstance(text, str):
            builder.add_text(text)
            self._content.append(text)
        elif raw.keys() - {"thoughtSignature"}:
            builder.add_opaque(raw)

    def _cite(self, grounding: Json) -> None:
        """Report the sources of statements to the builder; the answer keeps the whole of them for its own API."""
        chunks = [_source(camel(chunk)) for chunk in listed(grounding.get("groundingChunks"))]
        content = "".join(self._content)
        for support in map(camel, listed(grounding.get("groundingSupports"))):
            segment, key = camel(support.get("segment")), json_text(support)
            if key in self._cited:
                continue
            self._cited.add(key)
            places = support.get("groundingChunkIndices") or ()
            sources = tuple(chunks[at] for at in places if isinstance(at, int) and 0 <= at < len(chunks))
            self._builder.add_citation(CitationPart(sources, *_range(segment, content)))

    def _end_thought(self, signature: str = "") -> None:
        if self._thought:
            text = replace_surrogates("".join(self._thought))
            self._builder.end_reasoning(ReasoningPart(text, signature, KIND if signature else ""))
            self._thought.clear()

    def _call(self, call: Json) -> None:
        """Report a whole call, or a piece of a call."""
        builder = self._builder
        continues, partial = bool(call.get("willContinue")), call.get("partialArgs")
        pieces = self._pieces
        if call.get("name") and pieces is not None:
            self._pieces = None
            pieces.end(builder)
            pieces = None
        if pieces is None:
            if not continues and not partial:
                builder.add_call(call.get("name"), call.get("args"), call.get("id"))
                return
            self._pieces = pieces = _Pieces(object_of(call.get("args")))
            builder.begin_call(pieces, call.get("name"), call.get("id"))
            builder.add_arguments(pieces, "{")  # a call whose end never comes is incomplete then
        else:
            pieces.value |= object_of(call.get("args"))
        if not continues:
            self._pieces = None
        pieces.add(partial or ())
        if not continues:
            pieces.end(builder)

    def _finish(self, candidate: Json) -> None:
        word = candidate.get("finishReason")
        reason = read_reason(self._builder.api, word)
        if reason is None:
            return
        builder = self._builder
        builder.reason = reason
        if word == "MALFORMED_FUNCTION_CALL" or (word == "UNEXPECTED_TOOL_CALL" and not builder.call_count):
            raw = str(candidate.get("finishMessage") or "")
            builder.add_problem("malformed", f"the model's call could not be read by its provider: {word}", raw)


def _is_unique_response(response: Json) -> bool:
    """Return whether a response with a call is unique: it has an id, a signature, or a count of tokens."""
    response = camel(response)
    candidates = [camel(candidate) for candidate in listed(response.get("candidates"))]
    parts = [camel(part) for candidate in candidates for part in (candidate.get("content") or {}).get("parts") or ()]
    calls = [part for part in parts if part.get("functionCall")]
    counted = "candidatesTokenCount" in camel(response.get("usageMetadata"))  # of the stream so far, so that it grows
    return bool(calls) and (
        counted or any(part.get("thoughtSignature") or camel(part["functionCall"]).get("id") for part in calls)
    )


def _source(chunk: Json) -> CitedSource:
    page = camel(next((chunk[kind] for kind in ("web", "retrievedContext", "maps") if chunk.get(kind)), None))
    return CitedSource(*(str(page.get(name) or "") for name in ("uri", "title", "text")))


def _range(segment: Json, content: str) -> tuple[int | None, int | None]:
    """Return the range of a statement in code points; Gemini counts bytes of UTF-8, perhaps of one part of several."""
    text = segment.get("text")
    start, end = segment.get("startIndex") or 0, segment.get("endIndex")
    if isinstance(start, int) and isinstance(end, int) and 0 <= start <= end:
        data = content.encode("utf-8", "replace")
        cited = data[start:end].decode("utf-8", "replace")
        if text in (None, "", cited):
            before = len(data[:start].decode("utf-8", "replace"))
            return before, before + len(cited)
    at = content.find(text) if isinstance(text, str) and text else -1
    return (at, at + len(str(text))) if at >= 0 else (None, None)


class _Pieces:
    """The arguments of a call that come in pieces, each with a JSON path."""

    def __init__(self, value: Json) -> None:
        self.value = value
        self._text: dict[str, list[str]] = {}  # texts that continue, by their paths
        self._broken = False

    def add(self, pieces: Iterable[Mapping[str, Any]]) -> None:
        """Put more pieces into the arguments."""
        self._broken, broken = True, self._broken  # stays so if a piece raises
        for piece in map(camel, pieces):
            path = str(piece["jsonPath"])
            kind = next((kind for kind in ("stringValue", "numberValue", "boolValue") if kind in piece), "")
            if kind == "stringValue":
                texts = self._text.setdefault(path, [])
                texts.append(str(piece[kind]))
                if piece.get("willContinue"):
                    if len(texts) == 1:
                        _put(self.value, path, texts[0])
                    continue
                _put(self.value, path, "".join(self._text.pop(path)))
            elif kind or "nullValue" in piece:
                _put(self.value, path, piece[kind] if kind else None)
        self._broken = broken

    def end(self, builder: ResponseBuilder) -> None:
        """End the call; without its arguments, if a piece was unreadable or a text is unfinished."""
        if not self._broken and not self._text:
            builder.add_arguments(self, json_text(self.value)[1:])
        builder.end_call(self)


_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\[(['"])(.*?)\3\]""")


def _put(root: Json, path: str, value: Any) -> None:
    """Put a value at a JSON path.

    Raises:
        ValueError: there is no such place.
    """
    steps: list[str | int] = []
    pos = 1
    while path.startswith("$") and (match := _STEP.match(path, pos)):
        steps.append(int(match[2]) if match[2] else match[1] or match[4] or "")
        pos = match.end()
    if not steps or pos != len(path) or len(steps) > MAX_DEPTH:
        raise ValueError(f"{path!r:.80} is not a path")
    node: Any = root
    for at, step in enumerate(steps, 1):
        last = at == len(steps)
        fresh: Any = value if last else [] if isinstance(steps[at], int) else {}
        if isinstance(step, str) and isinstance(node, dict):
            node[step] = fresh if last else node.get(step, fresh)
        elif isinstance(step, int) and isinstance(node, list) and step <= len(node):
            node[step:] = [fresh if last else node[step] if step < len(node) else fresh, *node[step + 1 :]]
        else:
            raise ValueError(f"{path!r:.80} leads nowhere")
        node = node[step]

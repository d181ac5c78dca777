"""Streams of the Responses API, in both directions.

CitedSource: https://platform.openai.com/docs/api-reference/responses-streaming

The content of an item may arrive three times: in deltas, in the item that is done, and in the response that is
completed. Its first occurrence is read; later ones only add what is missing. Items are told apart by their id, else by
their position.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from toolwire.events import CallEnd, CallStart
from toolwire.messages import CitationPart, OpaquePart, ReasoningPart
from toolwire.providers.answer_shapes import put_members
from toolwire.providers.citations import write_annotations
from toolwire.providers.content_blocks import BlockWriter
from toolwire.providers.finish_reasons import read_reason
from toolwire.providers.framing import Frame, sse
from toolwire.providers.message_parts import Json, UsageReader, members_except, message_members, own_members
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.responses_client_calls import client_call, client_call_item, is_client_call
from toolwire.providers.responses_items import (
    ANSWER,
    CALLS,
    KIND,
    MESSAGE,
    SEPARATOR,
    annotations_in,
    annotations_of,
    call_extra,
    call_item,
    content_block,
    input_text,
    item_id,
    message_item,
    open_body,
    reasoning_item,
    reasoning_part,
    response_body,
    same_arguments,
    sealed_item,
    summary_text,
)
from toolwire.providers.stream_codec import Head, StreamEnd
from toolwire.text.json_text import json_text

_TEXTS = {  # beginnings of the names of text events: the item's type, and the member with the whole text at its end
    "response.output_text.": ("message", "text"),
    "response.refusal.": ("message", "refusal"),
    "response.reasoning_summary_text.": ("reasoning", "text"),
    "response.reasoning_text.": ("reasoning", "text"),
    "response.function_call_arguments.": ("function_call", "arguments"),
    "response.custom_tool_call_input.": ("custom_tool_call", "input"),
}
_CLIENT_CALL = ""
"""Type of the open item, if it is a call of OpenAI's own tools that the client has to run."""
_USAGE = UsageReader(
    "input_tokens", "output_tokens", "input_tokens_details.cached_tokens", "output_tokens_details.reasoning_tokens"
)

# -- reading -----------------------------------------------------------------------------------------------------


class _Item:
    """An item of which at least one event has arrived."""

    __slots__ = ("begun", "call_id", "closed", "first", "id", "matched", "part", "parts", "pieces", "type")

    def __init__(self, type: str, id: Any) -> None:
        self.type = type
        self.id = id
        self.begun = False  # the members of a message have been reported
        self.call_id: Any = None
        self.first: Mapping[str, Any] = {}  # as it was announced
        self.pieces: list[str] = []  # its text
        self.parts: dict[tuple[str, Any], None] = {}  # the parts that the text belongs to, in order
        self.part: tuple[str, Any] = ("", 0)  # the last of them
        self.closed = False
        self.matched = False  # with an item of the whole response


class OutputReader:
    """Reads one answer, streamed or whole."""

    def __init__(self, builder: ResponseBuilder) -> None:
        self._builder = builder
        self._items: list[_Item] = []
        self._by_id: dict[str, _Item] = {}
        self._by_place: dict[int, _Item] = {}
        self._over = False
        self._has_failed = False

    def read(self, frame: Frame) -> None:
        """Report the content of the next event to the builder."""
        event = frame.value
        name = str(event.get("type") or frame.event)
        match name:
            case "response.output_item.added":
                if isinstance(item := event.get("item"), Mapping):
                    self._added(event, item)
            case "response.output_item.done":
                item = event["item"]
                self._close(self._item(event, item["type"], item.get("id")), item)
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                self.response(event["response"])
                self._builder.add_unread(ANSWER, event["response"])
            case _ if event.get("object") == "response" and "output" in event:
                self.response(event)
                self._builder.add_unread(ANSWER, event)
            case _ if name == "error" or event.get("error"):
                self._failed(event.get("error") or event)
            case _:
                start, dot, end = name.rpartition(".")
                if (text_of := _TEXTS.get(start + dot)) and end in ("delta", "done"):
                    self._text(event, text_of, start, done=end == "done")

    def _text(self, event: Mapping[str, Any], text_of: tuple[str, str], name: str, *, done: bool) -> None:
        type, member = text_of
        item = self._item(event, type, event.get("item_id"))
        part = (name, event.get("content_index", event.get("summary_index")))
        text = event.get(member if done else "delta")
        if done and item.pieces:
            self._confirm(item, text)
        elif not item.closed:
            self._add(item, part, text)

    def _item(self, event: Mapping[str, Any], type: str, id: Any) -> _Item:
        """Return the item that an event belongs to; a new one if it is the first event of its item."""
        place = event.get("output_index")
        item = self._by_id.get(id) if isinstance(id, str) else None
        if item is None and isinstance(place, int):
            item = self._by_place.get(place)
            if item is not None and item.closed:
                item = None
        if item is None or item.type != type:
            item = self._new(type, id, place)
        return item

    def _new(self, type: str, id: Any, place: Any = None) -> _Item:
        item = _Item(type, id)
        self._items.append(item)
        if isinstance(id, str) and id:
            self._by_id[id] = item
        if isinstance(place, int):
            self._by_place[place] = item
        if type in CALLS:
            self._builder.begin_call(item, free=type == "custom_tool_call")
        return item

    def _added(self, event: Mapping[str, Any], first: Mapping[str, Any]) -> None:
        type, id = str(first["type"]), first.get("id")
        item = self._by_id.get(id) if isinstance(id, str) else None
        if item is None or item.closed or item.type != type:
            item = self._new(type, id, event.get("output_index"))
        item.first = first
        self._name(item, first)
        self._begin_message(item, first)

    def _begin_message(self, item: _Item, data: Mapping[str, Any]) -> None:
        """Report the members of a message once, before its text."""
        extra = members_except(data, MESSAGE, KIND) if item.type == "message" else None
        if extra is not None and not item.begun and not item.pieces:
            item.begun = True
            self._builder.add_members(extra.data)

    def _name(self, item: _Item, data: Mapping[str, Any]) -> None:
        if item.type in CALLS:
            item.call_id = item.call_id or data.get("call_id")
            if self._builder.is_open(item):
                self._builder.name_call(item, data.get("name"), data.get("call_id") or data.get("id"))

    def _add(self, item: _Item, part: tuple[str, Any], text: Any) -> None:
        if not isinstance(text, str) or not text:
            return
        if part not in item.parts:
            if item.type == "reasoning" and item.parts:
                if item.part[0] != part[0]:
                    return  # the full reasoning and its summary: the first to come is read
                self._add(item, item.part, SEPARATOR)
            item.parts[part] = None
            item.part = part
        item.pieces.append(text)
        match item.type:
            case "message":
                self._builder.add_text(text)
            case "reasoning":
                self._builder.add_reasoning(text)
            case _:
                self._builder.add_arguments(item, text)

    def _rest(self, item: _Item, text: Any) -> None:
        """Add what is missing of the whole text."""
        beginning = "".join(item.pieces)
        if isinstance(text, str) and text.startswith(beginning):
            self._add(item, item.part, text[len(beginning) :])

    def _confirm(self, item: _Item, arguments: Any) -> None:
        """Compare the arguments that the server gives at the end of a call with those that it streamed."""
        if item.type not in CALLS or not isinstance(arguments, str) or not self._builder.is_open(item):
            return
        if not same_arguments("".join(item.pieces), arguments, free=item.type == "custom_tool_call"):
            self._builder.contradict_call(item)

    def _close(self, item: _Item, whole: Mapping[str, Any]) -> None:
        """End an item."""
        if item.closed:
            return
        item.closed = True
        builder = self._builder
        match item.type:
            case "message":
                self._begin_message(item, whole)
                start = builder.content_length - sum(map(len, item.pieces))
                content = whole.get("content") or ()
                blocks = () if isinstance(content, str) else content
                if not isinstance(content, str):
                    content = "".join(str(block.get("text") or block.get("refusal") or "") for block in content)
                self._rest(item, content)
                for block in blocks:
                    for citation in annotations_of(block, start):
                        builder.add_citation(citation)
                    start += len(str(block.get("text") or block.get("refusal") or ""))
            case "reasoning":
                self._rest(item, summary_text(whole))
                builder.end_reasoning(reasoning_part(whole))
            case "function_call" | "custom_tool_call":
                self._name(item, whole)
                arguments = whole.get(CALLS[item.type])
                if isinstance(arguments, str):
                    self._rest(item, arguments)
                    self._confirm(item, arguments)
                elif arguments is not None and not item.pieces:
                    value = arguments if isinstance(arguments, Mapping) else json.dumps(arguments)
                    builder.add_arguments(item, value)
                if builder.is_open(item):
                    # Servers call items completed that an incomplete response cut off: only the other word is proof.
                    builder.end_call(item, truncated=_is_cut(whole) or None, extra=call_extra(whole))
            case _ if (call := client_call(whole)) is not None:
                builder.add_provider_call(call, truncated=_is_cut(whole) or None)
            case _:
                builder.add_opaque(whole)

    def response(self, response: Mapping[str, Any]) -> None:
        """Report the content of a whole response to the builder; a second one is ignored."""
        if self._over:
            return
        self._over = True
        builder = self._builder
        status = response.get("status")
        if status == "incomplete":
            details = response.get("incomplete_details") or {}
            builder.reason = read_reason(KIND, details.get("reason") or "max_output_tokens")
        elif status in ("completed", "failed", "cancelled", "queued", "in_progress"):  # the last two have no answer yet
            builder.reason = read_reason(KIND, status)
        output = [item for item in response.get("output") or () if isinstance(item, Mapping)]
        for item, final in zip(self._matched(output), output, strict=True):
            self._close(item or self._new(str(final.get("type")), final.get("id")), final)
        for item in self._items:
            if item.type in CALLS and not item.closed and not item.pieces:
                self._add(item, ("", 0), item.first.get(CALLS[item.type]))
        if error := response.get("error"):
            self._failed(error)
        elif status == "failed":
            self._failed({"message": "the response failed"})
        if isinstance(usage := response.get("usage"), Mapping):
            builder.add_usage(_USAGE.read(usage))

    def _matched(self, output: list[Mapping[str, Any]]) -> list[_Item | None]:
        """Return the open item of each item of the whole response; None if there is none."""
        by_key: dict[Any, _Item] = {}
        for item in self._items:
            for id in (item.id, item.call_id):
                if isinstance(id, str) and id:
                    by_key[item.type, id] = item
        matches: list[_Item | None] = []
        for final in output:
            type = str(final.get("type"))
            match = by_key.get((type, str(final.get("id")))) or by_key.get((type, str(final.get("call_id"))))
            if match is not None and match.matched:
                match = None
            if match is not None:
                match.matched = True
            matches.append(match)
        unmatched: dict[Any, deque[_Item]] = {}  # some servers give an item another id each time
        for item in self._items:
            if not item.matched:
                unmatched.setdefault((item.type, bool(item.call_id)), deque()).append(item)
        for at, final in enumerate(output):
            if matches[at] is None and (candidates := unmatched.get((str(final.get("type")), False))):
                matches[at] = candidates.popleft()
        return matches

    def _failed(self, error: Any) -> None:
        if self._has_failed:  # an event with the error and the failed response report the same
            return
        self._has_failed = True
        self._builder.add_error(error if isinstance(error, Mapping) else {"error": error})


def _is_cut(item: Mapping[str, Any]) -> bool:
    return item.get("status") == "incomplete"


# -- writing -----------------------------------------------------------------------------------------------------


class ResponsesStreamWriter(BlockWriter):
    """Writes the events of one stream: one item after another."""

    def __init__(self, head: Head, end: StreamEnd) -> None:
        super().__init__(head, end)
        self._number = 0  # of the next event
        self._output: list[Json] = []  # the items that are done
        self._item: Json = {}  # the open item
        self._texts: list[str] = []  # of the open item
        self._seal: ReasoningPart | None = None  # of the open item
        self._members: Json = {}  # of the next message
        self._annotations: list[Any] = []  # of the open message
        self._start = self._length = 0  # of the open message, and of all text

    def first(self) -> Iterator[bytes]:
        """Yield the response, still empty."""
        for name in ("response.created", "response.in_progress"):
            yield self._event(name, response=open_body(self.head, "in_progress", []))

    def last(self) -> Iterator[bytes]:
        """Yield the whole response."""
        body = response_body(self.head, self._output, self.end)
        put_members(body, self.end.members)
        yield self._event(f"response.{body['status']}", response=body)

    def opened(self, call: CallStart | None) -> Iterator[bytes]:
        """Yield the open item, still empty."""
        match self.block:
            case "text":
                self._start = self._length
                yield self._begin({**message_item(self._id("msg"), "", "in_progress"), **self._members})
                part = content_block("")
                yield self._event("response.content_part.added", **self._place(), content_index=0, part=part)
            case "reasoning":
                yield self._begin({"id": self._id("rs"), "type": "reasoning", "summary": []})
                part = {"type": "summary_text", "text": ""}
                yield self._event("response.reasoning_summary_part.added", **self._place(), summary_index=0, part=part)
            case _ if call is not None and is_client_call(call):
                self._item = {"type": _CLIENT_CALL}  # its item is not known before its end
            case _ if call is not None:
                yield self._begin(call_item(self._id("fc"), call.name, call.id, "", "in_progress", free=call.free))
            case _:
                pass

    def piece(self, text: str) -> Iterator[bytes]:
        """Yield a delta of the open item; the input of a call that is text is written at its end."""
        if self._item["type"] in ("custom_tool_call", _CLIENT_CALL):
            return
        self._texts.append(text)
        place = self._place()
        match self.block:
            case "text":
                self._length += len(text)
                yield self._event("response.output_text.delta", **place, content_index=0, delta=text, logprobs=[])
            case "reasoning":
                yield self._event("response.reasoning_summary_text.delta", **place, summary_index=0, delta=text)
            case _:
                yield self._event("response.function_call_arguments.delta", **place, delta=text)

    def closed(self, call: CallEnd | None) -> Iterator[bytes]:
        """Yield the end of the open item."""
        if self._item["type"] == _CLIENT_CALL:
            if call is not None and call.complete and (client_item := client_call_item(call.call)) is not None:
                client_item = {"id": self._id("cc"), **client_item}
                yield self._begin(client_item)
                yield self._done(client_item)
            return
        item, place, text = self._item, self._place(), "".join(self._texts)
        status = "completed" if call is not None and call.complete else "incomplete"
        match item["type"]:
            case "message":
                item = {**message_item(item["id"], text, annotations=self._annotations), **self._members}
                self._members = {}
                yield self._event("response.output_text.done", **place, content_index=0, text=text, logprobs=[])
                yield self._event("response.content_part.done", **place, content_index=0, part=item["content"][0])
            case "reasoning":
                part = {"type": "summary_text", "text": text}
                yield self._event("response.reasoning_summary_text.done", **place, summary_index=0, text=text)
                yield self._event("response.reasoning_summary_part.done", **place, summary_index=0, part=part)
                # Clients have seen this item's id. An item of this API with its own id goes into the seal therefore.
                item = sealed_item(self._seal or ReasoningPart(text), text, item["id"])
            case "custom_tool_call":
                if call is not None:
                    text = input_text(call.call) if call.complete else call.call.raw
                    yield self._event("response.custom_tool_call_input.delta", **place, delta=text)
                yield self._event("response.custom_tool_call_input.done", **place, input=text)
                item = call_item(item["id"], item["name"], item["call_id"], text, status, free=True)
            case _:
                if call is not None and call.complete and not text:
                    text = json_text(call.call.arguments)
                    yield from self.piece(text)
                name = item["name"]
                yield self._event("response.function_call_arguments.done", **place, name=name, arguments=text)
                item = call_item(item["id"], name, item["call_id"], text, status)
        if call is not None:
            item = {**item, **own_members(call.call, KIND)}
        yield self._done(item)

    def sealed(self, part: ReasoningPart) -> Iterator[bytes]:
        """Yield an item of reasoning, unless one is open: that is sealed when it ends."""
        if self.block != "reasoning" and part.text and part.provider != KIND:
            yield from self.begin("reasoning")
            yield from self.piece(part.text)
        if self.block == "reasoning":
            self._seal = part
        elif part != ReasoningPart(""):
            yield from self._whole(reasoning_item(part, self._id("rs")))

    def cited(self, part: CitationPart) -> Iterator[bytes]:
        """Yield the annotations of the open message."""
        if self.block == "text":
            yield from self._annotate(write_annotations(part, self._start, KIND))

    def _annotate(self, annotations: list[Any]) -> Iterator[bytes]:
        name = "response.output_text.annotation.added"
        for annotation in annotations:
            place = {"content_index": 0, "annotation_index": len(self._annotations)}
            self._annotations.append(annotation)
            yield self._event(name, **self._place(), **place, annotation=annotation)

    def passed(self, part: OpaquePart) -> Iterator[bytes]:
        """Yield an item of this API's own, or annotations of the open message; or begin another message."""
        if members := message_members(part, KIND):
            yield from self.close()
            self._members = members
        elif annotations := annotations_in(part):
            yield from self._annotate(annotations if self.block == "text" else [])
        else:
            yield from self._whole(part.data)

    def _whole(self, item: Json) -> Iterator[bytes]:
        yield from self.close()
        yield self._begin(item)
        yield self._done(item)

    def _event(self, type: str, **members: Any) -> bytes:
        data = sse({"type": type, "sequence_number": self._number, **members}, type)
        self._number += 1
        return data

    def _place(self) -> Json:
        """Return the members that say which item an event belongs to."""
        return {"item_id": self._item["id"], "output_index": len(self._output)}

    def _id(self, prefix: str) -> str:
        return item_id(prefix, self.head, len(self._output))

    def _begin(self, item: Json) -> bytes:
        self._item, self._texts, self._seal, self._annotations = item, [], None, []
        return self._event("response.output_item.added", output_index=len(self._output), item=item)

    def _done(self, item: Json) -> bytes:
        data = self._event("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        return data

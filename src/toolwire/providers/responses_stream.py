"""The output of the Responses API: its items, whole and as the events of a stream, in both directions.

Source: https://platform.openai.com/docs/api-reference/responses-streaming

An item is read once, wherever it stands first: deltas, then the item that is done, then the response that is
completed; what came later only adds what is missing. Items are told apart by their id, else by their place.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    Passed,
    ProblemFound,
    ReasoningDelta,
    ReasoningEnd,
    UsageCounted,
)
from toolwire.messages import FinishReason, ParsedResponse, ReasoningPart, TextPart, ToolCall, Usage
from toolwire.providers.base import Head, Json, in_order
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import Frame, compact, sse
from toolwire.providers.response_builder import Assembler
from toolwire.text.json_text import json_text

KIND = "openai_responses"

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_TEXTS = {  # the beginnings of the events of text: the item that it is of, and the member that the end has it in
    "response.output_text.": ("message", "text"),
    "response.refusal.": ("message", "refusal"),
    "response.reasoning_summary_text.": ("reasoning", "text"),
    "response.reasoning_text.": ("reasoning", "text"),
    "response.function_call_arguments.": ("function_call", "arguments"),
    "response.custom_tool_call_input.": ("custom_tool_call", "input"),
}
_BETWEEN = "\n\n"
"""Between the summaries of one item of reasoning."""
_SEAL = '{"provider":'


# -- reasoning ---------------------------------------------------------------------------------------------------


def reasoning_part(item: Mapping[str, Any]) -> ReasoningPart:
    """The reasoning that an item stands for; another API's, if `reasoning_item` made it of that."""
    text = _thought(item)
    sealed = item.get("encrypted_content")
    if isinstance(sealed, str) and sealed.startswith(_SEAL):
        try:
            facts = json.loads(sealed)
        except ValueError:
            facts = None
        if isinstance(facts, Mapping):
            data = facts.get("data")
            signature, provider = str(facts.get("signature") or ""), str(facts.get("provider") or "")
            return ReasoningPart(text, signature, provider, dict(data) if isinstance(data, Mapping) else None)
    return ReasoningPart(text, "", KIND, dict(item))


def _thought(item: Mapping[str, Any]) -> str:
    blocks = item.get("summary") or item.get("content") or ()
    return _BETWEEN.join(str(block.get("text") or "") for block in blocks)


def reasoning_item(part: ReasoningPart, id: str) -> Json:
    """The item that clients send back: this API's own as it came, any other's with what it needs in the seal."""
    if part.provider == KIND and part.data is not None:
        return {"id": id, "summary": [], **part.data}
    return _sealed(part, part.text, id)


def _sealed(part: ReasoningPart, text: str, id: str) -> Json:
    facts: Json = {"provider": part.provider}
    if part.signature:
        facts["signature"] = part.signature
    if part.data is not None:
        facts["data"] = part.data
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"id": id, "type": "reasoning", "summary": summary, "encrypted_content": compact(facts)}


# -- reading -----------------------------------------------------------------------------------------------------


class _Item:
    """An item of which something has come."""

    __slots__ = ("call_id", "came", "closed", "first", "id", "matched", "part", "parts", "type")

    def __init__(self, type: str, id: Any) -> None:
        self.type = type
        self.id = id
        self.call_id: Any = None
        self.first: Mapping[str, Any] = {}  # as it was when it was announced
        self.came: list[str] = []  # its text
        self.parts: dict[tuple[str, Any], None] = {}  # the parts that the text was of, in order
        self.part: tuple[str, Any] = ("", 0)  # the last of them
        self.closed = False
        self.matched = False  # with an item of the whole response


class OutputReader:
    """Tells an assembler of one answer, streamed or whole."""

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._items: list[_Item] = []
        self._by_id: dict[str, _Item] = {}
        self._by_place: dict[int, _Item] = {}
        self._over = False

    def read(self, frame: Frame) -> None:
        """One event of a stream."""
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
            case _ if event.get("object") == "response" and "output" in event:
                self.response(event)
            case _ if name == "error" or event.get("error"):
                self._failed(event.get("error") or event)
            case _:
                start, dot, end = name.rpartition(".")
                if (known := _TEXTS.get(start + dot)) and end in ("delta", "done"):
                    self._text(event, known, start, done=end == "done")

    def _text(self, event: Mapping[str, Any], known: tuple[str, str], name: str, *, done: bool) -> None:
        type, member = known
        item = self._item(event, type, event.get("item_id"))
        part = (name, event.get("content_index", event.get("summary_index")))
        text = event.get(member if done else "delta")
        if not item.closed and not (done and item.came):
            self._say(item, part, text)

    def _item(self, event: Mapping[str, Any], type: str, id: Any) -> _Item:
        """The item that an event is about; a new one if it is the first that is said of it."""
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
        if type in _CALLS:
            self._assembler.begin(item, free=type == "custom_tool_call")
        return item

    def _added(self, event: Mapping[str, Any], first: Mapping[str, Any]) -> None:
        type, id = str(first["type"]), first.get("id")
        item = self._by_id.get(id) if isinstance(id, str) else None
        if item is None or item.closed or item.type != type:
            item = self._new(type, id, event.get("output_index"))
        item.first = first
        self._named(item, first)

    def _named(self, item: _Item, said: Mapping[str, Any]) -> None:
        if item.type in _CALLS:
            item.call_id = item.call_id or said.get("call_id")
            if self._assembler.known(item):
                self._assembler.name(item, said.get("name"), said.get("call_id") or said.get("id"))

    def _say(self, item: _Item, part: tuple[str, Any], text: Any) -> None:
        if not isinstance(text, str) or not text:
            return
        if part not in item.parts:
            if item.type == "reasoning" and item.parts:
                if item.part[0] != part[0]:
                    return  # the same once more, in other words
                self._say(item, item.part, _BETWEEN)
            item.parts[part] = None
            item.part = part
        item.came.append(text)
        match item.type:
            case "message":
                self._assembler.text(text)
            case "reasoning":
                self._assembler.reasoning(text)
            case _:
                self._assembler.arguments(item, text)

    def _rest(self, item: _Item, text: Any) -> None:
        """What has not come yet of the whole text."""
        came = "".join(item.came)
        if isinstance(text, str) and text.startswith(came):
            self._say(item, item.part, text[len(came) :])

    def _close(self, item: _Item, whole: Mapping[str, Any]) -> None:
        """An item is over."""
        if item.closed:
            return
        item.closed = True
        assembler = self._assembler
        match item.type:
            case "message":
                content = whole.get("content") or ()
                if not isinstance(content, str):
                    content = "".join(str(block.get("text") or block.get("refusal") or "") for block in content)
                self._rest(item, content)
            case "reasoning":
                self._rest(item, _thought(whole))
                assembler.reasoned(reasoning_part(whole))
            case "function_call" | "custom_tool_call":
                self._named(item, whole)
                arguments = whole.get(_CALLS[item.type])
                if isinstance(arguments, str):
                    self._rest(item, arguments)
                elif arguments is not None and not item.came:
                    given = arguments if isinstance(arguments, Mapping) else json.dumps(arguments)
                    assembler.arguments(item, given)
                if assembler.known(item):
                    assembler.end(item, cut=whole.get("status") == "incomplete")
            case _:
                assembler.passed(whole)

    def response(self, response: Mapping[str, Any]) -> None:
        """The whole response; a second one says nothing new."""
        if self._over:
            return
        self._over = True
        assembler = self._assembler
        status = response.get("status")
        if status == "incomplete":
            details = response.get("incomplete_details") or {}
            assembler.reason = read_reason(KIND, details.get("reason") or "max_output_tokens")
        elif status in ("completed", "failed", "cancelled"):
            assembler.reason = read_reason(KIND, status)
        output = [item for item in response.get("output") or () if isinstance(item, Mapping)]
        for item, whole in zip(self._matched(output), output, strict=True):
            self._close(item or self._new(str(whole.get("type")), whole.get("id")), whole)
        for item in self._items:
            if item.type in _CALLS and not item.closed and not item.came:
                self._say(item, ("", 0), item.first.get(_CALLS[item.type]))
        if error := response.get("error"):
            self._failed(error)
        elif status == "failed":
            self._failed({"message": "the response failed"})
        _usage(response.get("usage"), assembler)

    def _matched(self, output: list[Mapping[str, Any]]) -> list[_Item | None]:
        """The items that have come already, each with the one of the whole response that it is."""
        known: dict[Any, _Item] = {}
        for item in self._items:
            for id in (item.id, item.call_id):
                if isinstance(id, str) and id:
                    known[item.type, id] = item
        found: list[_Item | None] = []
        for whole in output:
            type = str(whole.get("type"))
            same = known.get((type, str(whole.get("id")))) or known.get((type, str(whole.get("call_id"))))
            if same is not None and same.matched:
                same = None
            if same is not None:
                same.matched = True
            found.append(same)
        left: dict[Any, deque[_Item]] = {}  # some servers give an item another id each time
        for item in self._items:
            if not item.matched:
                left.setdefault((item.type, bool(item.call_id)), deque()).append(item)
        for at, whole in enumerate(output):
            if found[at] is None and (others := left.get((str(whole.get("type")), False))):
                found[at] = others.popleft()
        return found

    def _failed(self, error: Any) -> None:
        message = error.get("message") if isinstance(error, Mapping) else error
        self._assembler.reason = FinishReason.ERROR
        self._assembler.problem("provider_error", str(message or error))


def _usage(usage: Any, assembler: Assembler) -> None:
    if not isinstance(usage, Mapping):
        return
    read = usage.get("input_tokens_details") or {}
    written = usage.get("output_tokens_details") or {}
    assembler.usage(
        Usage(
            int(usage.get("input_tokens") or 0),
            int(usage.get("output_tokens") or 0),
            int(read.get("cached_tokens") or 0),
            int(written.get("reasoning_tokens") or 0),
        )
    )


# -- writing -----------------------------------------------------------------------------------------------------


def response_body(head: Head, output: list[Json], reason: FinishReason, usage: Usage | None, error: str = "") -> Json:
    """A response that is over."""
    word = write_reason(KIND, reason)
    status = word if word in ("completed", "failed") else "incomplete"
    body = _body(head, status, output)
    body["usage"] = _write_usage(usage or Usage())
    if status == "incomplete":
        body["incomplete_details"] = {"reason": word}
    elif status == "failed":
        body["error"] = {"code": "server_error", "message": error or "the response failed"}
    return body


def _body(head: Head, status: str, output: list[Json]) -> Json:
    return {
        "id": f"resp_{head.id}",
        "object": "response",
        "created_at": head.created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": head.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": None,
    }


def _write_usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def output_items(response: ParsedResponse, head: Head) -> list[Json]:
    """The items of a whole response; what only another API understands is left out."""
    made: list[Json] = []
    texts: list[str] = []
    for part in (*response.parts, None):
        if isinstance(part, TextPart):
            texts.append(part.text)
            continue
        if text := "".join(texts):
            made.append(_message(item_id("msg", head, len(made)), text))
        texts = []
        match part:
            case ToolCall(name, arguments, id):
                said = str(arguments.get("input", "")) if part.free else json_text(arguments)
                made.append(_call(item_id("fc", head, len(made)), name, id, said, free=part.free))
            case ReasoningPart() if part != ReasoningPart(""):
                made.append(reasoning_item(part, item_id("rs", head, len(made))))
            case _ if part is not None and getattr(part, "provider", "") == KIND:
                made.append(dict(getattr(part, "data", {})))
    return made


def item_id(kind: str, head: Head, place: int) -> str:
    """The id of an item: by its place in the answer."""
    return f"{kind}_{head.id}_{place}"


def _message(id: str, text: str, status: str = "completed") -> Json:
    content = [_content(text)] if status == "completed" else []
    return {"id": id, "type": "message", "status": status, "role": "assistant", "content": content}


def _content(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call(id: str, name: str, call_id: str, said: str, status: str = "completed", *, free: bool = False) -> Json:
    type = "custom_tool_call" if free else "function_call"
    return {"id": id, "type": type, "status": status, _CALLS[type]: said, "call_id": call_id, "name": name}


def write_stream(events: Iterable[Event], head: Head) -> Iterator[bytes]:
    """The events of a stream, as they go over the wire."""
    writer = _Writer(head)
    usage: Usage | None = None
    reason = FinishReason.STOP
    error = ""
    yield writer.event("response.created", response=_body(head, "in_progress", []))
    yield writer.event("response.in_progress", response=_body(head, "in_progress", []))
    for event in in_order(events):
        match event:
            case ContentDelta(text):
                yield from writer.text(text)
            case ReasoningDelta(text):
                yield from writer.reasoning(text)
            case ReasoningEnd(part):
                yield from writer.reasoned(part)
            case CallStart(_, name, id, free):
                yield from writer.call(name, id, free=free)
            case ArgumentsDelta(_, text):
                yield from writer.arguments(text)
            case CallEnd(_, call, complete):
                yield from writer.end(call, complete=complete)
            case Passed(passed) if passed.provider == KIND:
                yield from writer.whole(passed.data)
            case UsageCounted(usage):
                pass
            case ProblemFound(problem):
                error = error or problem.message
            case Finish(reason):
                pass
            case Passed():  # only another API understands it
                pass
    yield from writer.close("incomplete")
    body = response_body(head, writer.output, reason, usage, error)
    yield writer.event(f"response.{body['status']}", response=body)


class _Writer:
    """Writes one item after another."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._number = 0
        self.output: list[Json] = []  # the items that are done
        self.texts: list[str] = []  # of the item that is open
        self._open: Json | None = None

    def event(self, type: str, **members: Any) -> bytes:
        made = sse({"type": type, "sequence_number": self._number, **members}, type)
        self._number += 1
        return made

    def _place(self) -> Json:
        """What events say of the item that is open."""
        return {"item_id": self._open["id"] if self._open else "", "output_index": len(self.output)}

    def _begin(self, item: Json) -> bytes:
        self._open = item
        self.texts = []
        return self.event("response.output_item.added", output_index=len(self.output), item=item)

    def _id(self, kind: str) -> str:
        return item_id(kind, self._head, len(self.output))

    def _is(self, type: str) -> bool:
        return self._open is not None and self._open["type"] == type

    def text(self, text: str) -> Iterator[bytes]:
        if not self._is("message"):
            yield from self.close()
            yield self._begin(_message(self._id("msg"), "", "in_progress"))
            yield self.event("response.content_part.added", **self._place(), content_index=0, part=_content(""))
        self.texts.append(text)
        yield self.event("response.output_text.delta", **self._place(), content_index=0, delta=text, logprobs=[])

    def reasoning(self, text: str) -> Iterator[bytes]:
        if not self._is("reasoning"):
            yield from self.close()
            yield self._begin({"id": self._id("rs"), "type": "reasoning", "summary": []})
            part = {"type": "summary_text", "text": ""}
            yield self.event("response.reasoning_summary_part.added", **self._place(), summary_index=0, part=part)
        self.texts.append(text)
        yield self.event("response.reasoning_summary_text.delta", **self._place(), summary_index=0, delta=text)

    def reasoned(self, part: ReasoningPart) -> Iterator[bytes]:
        if self._is("reasoning"):
            yield from self._end_reasoning(part)
        elif part != ReasoningPart(""):
            if part.text and part.provider != KIND:
                yield from self.reasoning(part.text)
                yield from self._end_reasoning(part)
            else:
                yield from self.whole(reasoning_item(part, self._id("rs")))

    def call(self, name: str, call_id: str, *, free: bool) -> Iterator[bytes]:
        yield from self.close()
        yield self._begin(_call(self._id("fc"), name, call_id, "", "in_progress", free=free))

    def arguments(self, text: str) -> Iterator[bytes]:
        if not self._is("custom_tool_call"):  # whose input comes with its end
            self.texts.append(text)
            yield self.event("response.function_call_arguments.delta", **self._place(), delta=text)

    def end(self, call: ToolCall, *, complete: bool) -> Iterator[bytes]:
        if self._is("custom_tool_call"):
            text = str(call.arguments.get("input", "")) if complete else call.raw
            self.texts.append(text)
            yield self.event("response.custom_tool_call_input.delta", **self._place(), delta=text)
        elif complete and not self.texts:
            yield from self.arguments(json_text(call.arguments))
        yield from self.close("completed" if complete else "incomplete")

    def whole(self, item: Json) -> Iterator[bytes]:
        yield from self.close()
        yield self._begin(item)
        yield self._done(item)

    def close(self, status: str = "completed") -> Iterator[bytes]:
        """End the item that is open."""
        if self._open is None:
            return
        item, place, text = self._open, self._place(), "".join(self.texts)
        match item["type"]:
            case "message":
                made = _message(item["id"], text)
                yield self.event("response.output_text.done", **place, content_index=0, text=text, logprobs=[])
                yield self.event("response.content_part.done", **place, content_index=0, part=made["content"][0])
                yield self._done(made)
            case "reasoning":
                yield from self._end_reasoning(ReasoningPart(text))
            case "custom_tool_call":
                yield self.event("response.custom_tool_call_input.done", **place, input=text)
                yield self._done(_call(item["id"], item["name"], item["call_id"], text, status, free=True))
            case _:
                name = item["name"]
                yield self.event("response.function_call_arguments.done", **place, name=name, arguments=text)
                yield self._done(_call(item["id"], name, item["call_id"], text, status))

    def _end_reasoning(self, part: ReasoningPart) -> Iterator[bytes]:
        place, text = self._place(), "".join(self.texts)
        block = {"type": "summary_text", "text": text}
        yield self.event("response.reasoning_summary_text.done", **place, summary_index=0, text=text)
        yield self.event("response.reasoning_summary_part.done", **place, summary_index=0, part=block)
        # Its id has been told, so that an item of this API, which has another, goes into the seal as well.
        yield self._done(_sealed(part, text, place["item_id"]))

    def _done(self, item: Json) -> bytes:
        made = self.event("response.output_item.done", output_index=len(self.output), item=item)
        self.output.append(item)
        self._open = None
        return made

"""Streams of the Chat Completions shape: what tells the calls of a stream apart, and how chunks are written."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    UsageCounted,
)
from toolwire.messages import FinishReason, ReasoningPart, Usage
from toolwire.providers.base import Head, Json
from toolwire.providers.chat_parts import (
    chunk,
    content_blocks,
    detail,
    failed,
    is_custom,
    is_signature,
    read_usage,
    reasoning_parts,
    signatures_of,
    thinking_part,
    with_signature,
    write_usage,
)
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import DONE, Frame, sse
from toolwire.providers.response_builder import Assembler


class StreamReader:
    """Reads the chunks of one stream."""

    def __init__(self, kind: str, assembler: Assembler) -> None:
        self._kind = kind
        self._assembler = assembler
        self._keys: dict[Hashable, Hashable] = {}  # of open calls, by the index or id that chunks give
        self._last: Hashable = None
        self._whole: dict[Hashable, None] = {}  # calls whose arguments have closed: the next call ends them
        self._count = 0
        self._thought: list[str] = []  # reasoning that nothing has been said of

    def read(self, frame: Frame) -> None:
        """Tell the assembler what the next chunk says."""
        chunk = frame.value
        assembler = self._assembler
        if failed(chunk, assembler):
            return
        choices = chunk.get("choices")
        if choices:
            choice = choices[0]
            if choice.get("index"):
                choice = next((one for one in choices if not one.get("index")), None)
            if choice is None:  # another choice than the first
                return
            delta = choice.get("delta") or {}
            for shown, part in reasoning_parts(delta):
                self._reasoning(shown, part)
            for block in content_blocks(delta.get("content"), assembler):
                part = thinking_part(block, self._kind)
                self._reasoning(part.text, part)
            if refusal := delta.get("refusal"):
                assembler.text(refusal)
            if calls := delta.get("tool_calls"):
                for at, call in enumerate(calls):
                    self._call(call, at)
            legacy = delta.get("function_call")
            if isinstance(legacy, dict) and (legacy.get("name") or legacy.get("arguments")):
                self._call({"index": "function_call", "function": legacy}, 0)
            if word := choice.get("finish_reason"):
                assembler.reason = read_reason(self._kind, word)
        if usage := chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage"):
            read_usage(usage, assembler)

    def _reasoning(self, shown: str, part: ReasoningPart) -> None:
        self._assembler.reasoning(shown)
        self._thought.append(shown)
        if part.signature or part.data is not None:
            self._reasoned(part)

    def _reasoned(self, part: ReasoningPart) -> None:
        """A seal: on the reasoning so far, unless it stands for itself."""
        text, self._thought = "".join(self._thought), []
        if part.text == text or (part.signature and part.provider != "gemini" and text.endswith(part.text)):
            part = replace(part, text=text)
        elif text:
            self._assembler.reasoned(ReasoningPart(text))
        self._assembler.reasoned(part)

    def _call(self, call: Mapping[str, Any], at: int) -> None:
        assembler = self._assembler
        free = is_custom(call)
        function: Mapping[str, Any] = call.get("custom" if free else "function") or {}
        name, id = function.get("name") or "", call.get("id") or ""
        arguments = function.get("input" if free else "arguments")
        place = self._place(call.get("index"), id, at)
        key = self._keys.get(place)
        if key is None and not name and not id and self._last is not None:
            key = self._last  # its beginning had another index, or none
        if key is not None and self._is_new(key, name, id, arguments):
            key = None
        if key is None or not assembler.known(key):
            for other in self._whole:
                if assembler.known(other) and assembler.is_whole(other):
                    assembler.end(other)
            self._whole.clear()
            for part in signatures_of(call):
                self._reasoned(part)
            key = self._count
            self._count += 1
            assembler.begin(key, name, id, free=free)
        else:
            assembler.name(key, name, id)
        self._keys[place] = self._last = key
        if arguments is not None and arguments != "":
            assembler.arguments(key, arguments)
            if assembler.is_whole(key):
                self._whole[key] = None

    def _place(self, index: Any, id: str, at: int) -> Hashable:
        """What tells the calls of a stream apart: the index, else the id, else the order in the chunk."""
        if isinstance(index, int) or (isinstance(index, str) and index):
            return str(index)
        if id:
            return ("id", id)
        return ("at", at)

    def _is_new(self, key: Hashable, name: str, id: str, arguments: Any) -> bool:
        """Whether a server uses the index of one call for the next one as well."""
        assembler = self._assembler
        if not assembler.known(key):
            return bool(name or id)
        old_id = assembler.named(key)[1]
        if id and old_id and id != old_id:
            return bool(name) or assembler.is_whole(key)
        return bool(name and arguments and not id and assembler.is_whole(key))


class StreamWriter:
    """Writes the chunks of one stream.

    Args:
        kind: the API whose words are written.
        head: what the answer says of itself.
        reasoning: a delta of reasoning.
        whole_calls: calls are written in one piece.
        custom: there are calls whose input is text and no JSON.
    """

    def __init__(
        self, kind: str, head: Head, reasoning: Callable[[str], Json], *, whole_calls: bool, custom: bool
    ) -> None:
        self._kind = kind
        self._head = head
        self._reasoning = reasoning
        self._calls = _CallWriter(whole=whole_calls, custom=custom)
        self._details = 0
        self._usage: Usage | None = None
        self._reason = FinishReason.STOP

    def write(self, events: Iterable[Event]) -> Iterator[bytes]:
        """The chunks of these events, the marker of the end last."""
        yield self._chunk({"role": "assistant", "content": ""})
        for event in events:
            yield from self._event(event)
        for call in self._calls.rest():
            yield self._chunk({"tool_calls": [call]})
        if self._calls.signature is not None:
            yield self._detail(self._calls.signature)
        yield self._chunk({}, write_reason(self._kind, self._reason))
        if self._usage is not None:
            yield sse({**chunk(self._head, []), "usage": write_usage(self._usage)})
        yield b"data: " + DONE + b"\n\n"

    def _event(self, event: Event) -> Iterator[bytes]:
        match event:
            case ContentDelta(text):
                yield self._chunk({"content": text})
            case ReasoningDelta(text):
                yield self._chunk(self._reasoning(text))
            case ReasoningEnd(part) if is_signature(part):
                self._calls.signature = part
            case ReasoningEnd(part) if part.signature or part.data:
                yield self._detail(part)
            case CallStart() | ArgumentsDelta() | CallEnd():
                for call in self._calls.write(event):
                    yield self._chunk({"tool_calls": [call]})
            case UsageCounted(usage):
                self._usage = usage
            case Finish(reason):
                self._reason = reason
            case _:  # a problem, what the provider did itself: nothing stands for them
                pass

    def _chunk(self, delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse(chunk(self._head, [choice]))

    def _detail(self, part: ReasoningPart) -> bytes:
        made = {"index": self._details, **detail(part)}
        self._details += 1
        return self._chunk({"reasoning_details": [made]})


class _CallWriter:
    """Writes the calls of one stream, as it goes or each in one piece."""

    def __init__(self, *, whole: bool, custom: bool) -> None:
        self._whole = whole
        self._custom = custom
        self._free: set[int] = set()  # calls whose input is text, which comes with their end
        self._places: dict[int, int] = {}  # of calls, among the calls
        self._waiting: dict[int, tuple[Json, list[str]]] = {}  # calls that have to be whole, and their arguments
        self.signature: ReasoningPart | None = None  # that the next call carries

    def write(self, event: CallStart | ArgumentsDelta | CallEnd) -> Iterator[Json]:
        index = event.index
        match event:
            case CallStart(_, name, id, True) if self._custom:
                place = self._places[index] = len(self._places)
                call = {"index": place, "id": id, "type": "custom", "custom": {"name": name, "input": ""}}
                yield with_signature(call, self.signature)
                self.signature = None
                self._free.add(index)
            case ArgumentsDelta() if index in self._free:
                pass
            case CallEnd(_, call, complete) if index in self._free:
                input = str(call.arguments.get("input", "")) if complete else call.raw
                yield {"index": self._places[index], "type": "custom", "custom": {"input": input}}
            case CallStart(_, name, id):
                place = self._places[index] = len(self._places)
                function = {"name": name, "arguments": ""}
                call = with_signature(
                    {"index": place, "id": id, "type": "function", "function": function}, self.signature
                )
                self.signature = None
                if self._whole:
                    self._waiting[index] = (call, [])
                else:
                    yield call
            case ArgumentsDelta(_, text):
                if self._whole:
                    self._waiting[index][1].append(text)
                else:
                    yield {"index": self._places[index], "function": {"arguments": text}}
            case CallEnd() if index in self._waiting:
                yield self._joined(*self._waiting.pop(index))
            case CallEnd():
                pass

    def rest(self) -> Iterator[Json]:
        """The calls that were cut."""
        for call, texts in self._waiting.values():
            yield self._joined(call, texts)

    @staticmethod
    def _joined(call: Json, texts: list[str]) -> Json:
        return {**call, "function": {**call["function"], "arguments": "".join(texts)}}

"""Streams of Chat Completions: reading and writing chunks, and distinguishing the calls of a stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    CitationReceived,
    ContentDelta,
    Event,
    OpaquePartReceived,
    ReasoningDelta,
    ReasoningEnd,
)
from toolwire.messages import ReasoningPart
from toolwire.providers.answer_shapes import put_members
from toolwire.providers.chat_parts import (
    DELTA,
    OPENROUTER,
    Sound,
    add_error,
    add_members,
    add_usage,
    annotations_of,
    content_blocks,
    detail,
    detail_of_streamed,
    is_custom,
    is_signature,
    read_finish,
    reasoning_parts,
    seal_of,
    signatures_of,
    thinking_part,
    with_signature,
    write_usage,
)
from toolwire.providers.finish_reasons import is_own_word, write_reason
from toolwire.providers.framing import DONE, Frame, sse
from toolwire.providers.message_parts import Json, message_members
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.stream_codec import WAITING, Head, StreamEnd

_PLAIN = frozenset(("role", "content", "refusal", "reasoning_content", "reasoning", "tool_calls", "function_call"))
"""Members of most deltas."""
_REPEATED = frozenset(("role", "id", "type", "name"))
"""Members that some servers repeat in each delta; the text of others is continued."""
_DELTA, _MESSAGE = "choices.0.delta", "choices.0.message"


class ChatStreamReader:
    """Reads the chunks of one stream."""

    def __init__(self, builder: ResponseBuilder) -> None:
        self._builder = builder
        self._keys: dict[Hashable, Hashable] = {}  # of open calls, by the index or id that chunks give
        self._last: Hashable = None
        self._whole: dict[Hashable, None] = {}  # calls whose arguments have closed: the next call ends them
        self._count = 0
        self._thought: list[str] = []  # reasoning that no seal has covered yet
        self._reasoning: list[str] = []  # all reasoning
        self._seals: set[str] = set()  # those of the reasoning so far
        self._sound = Sound()
        self._others = _OtherChoices(builder)

    def read(self, frame: Frame) -> None:
        """Report the content of the next chunk to the builder."""
        chunk = frame.value
        builder = self._builder
        if add_error(chunk, builder):
            return
        choices = chunk.get("choices") or ()
        for choice in choices:
            if not choice.get("index"):
                self._choice(choice, chunk)
                break
        if len(choices) > 1 or (choices and choices[0].get("index")):
            self._others.add(choice for choice in choices if choice.get("index"))
        if usage := chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage"):
            add_usage(usage, builder)

    def _choice(self, choice: Mapping[str, Any], chunk: Json) -> None:
        """Report the content of the first choice of a chunk."""
        builder = self._builder
        choice = _as_delta(choice)
        delta = choice["delta"]
        if stretches := list(reasoning_parts(delta, self._reasoning)):
            self._reason(stretches)
        for block in content_blocks(delta.get("content"), builder):
            part = thinking_part(block, builder.api)
            self._reason([(part.text, part)])
        builder.add_text(delta.get("refusal"))
        if not delta.keys() <= _PLAIN:
            add_members(delta, builder)
            self._unread({**choice, "delta": delta})
        elif choice.get("logprobs"):
            self._unread(choice)
        self._sound.add(delta, builder)
        if calls := delta.get("tool_calls"):
            for at, call in enumerate(calls):
                self._call(call, at)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict) and (legacy.get("name") or legacy.get("arguments")):
            self._call({"index": "function_call", "function": legacy}, 0)
        if reason := read_finish(choice, builder.api):
            builder.reason = reason
            word, members = DELTA.finish_of(chunk)
            if is_own_word(builder.api, word, reason):
                builder.add_answer_members(members)
            self._sound.end(builder)

    def _unread(self, choice: Mapping[str, Any]) -> None:
        """Report members that are not read, as a whole answer has them."""
        members = DELTA.unread({"choices": [choice]})
        if members:
            self._builder.add_answer_members({path.replace(_DELTA, _MESSAGE): rest for path, rest in members.items()})

    def _reason(self, stretches: Sequence[tuple[str, ReasoningPart]]) -> None:
        """Report the reasoning of a delta, each stretch with the text to show for it.

        The last chunk of some servers repeats the whole reasoning, with seals that earlier chunks had, or with others.
        """
        seals = [seal_of(part) for _, part in stretches]
        is_repeated = any(seals) and "".join(shown for shown, _ in stretches) == "".join(self._reasoning)
        for (shown, part), seal in zip(stretches, seals, strict=True):
            if shown and not is_repeated:
                if not self._builder.in_reasoning:
                    self._thought.clear()
                self._builder.add_reasoning(shown)
                self._thought.append(shown)
                self._reasoning.append(shown)
            if seal and seal not in self._seals:
                self._seals.add(seal)
                self._seal(part)

    def _seal(self, part: ReasoningPart) -> None:
        """End the reasoning so far with a seal; a seal on other text is a part of its own."""
        text, self._thought = "".join(self._thought), []
        if not self._builder.in_reasoning:  # something else followed the text, which is a part already
            part = replace(part, text="") if part.provider == OPENROUTER and part.text == text else part
        elif part.text == text or (part.signature and part.provider != "gemini" and text.endswith(part.text)):
            part = replace(part, text=text)
        elif text:
            self._builder.end_reasoning(ReasoningPart(text))
        self._builder.end_reasoning(part)

    def _call(self, call: Mapping[str, Any], at: int) -> None:
        builder = self._builder
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
        if key is None or not builder.is_open(key):
            for other in self._whole:
                if builder.is_open(other) and builder.is_whole(other):
                    builder.end_call(other)
            self._whole.clear()
            for part in signatures_of(call):
                self._seal(part)
            key = self._count
            self._count += 1
            builder.begin_call(key, name, id, free=free)
        else:
            builder.name_call(key, name, id)
        self._keys[place] = self._last = key
        if arguments is not None and arguments != "":
            builder.add_arguments(key, arguments)
            if builder.is_whole(key):
                self._whole[key] = None

    def _place(self, index: Any, id: str, at: int) -> Hashable:
        """Return the key of a call in a stream: its index, else its id, else its position in the chunk."""
        if isinstance(index, int) or (isinstance(index, str) and index):
            return str(index)
        return ("id", id) if id else ("at", at)

    def _is_new(self, key: Hashable, name: str, id: str, arguments: Any) -> bool:
        """Return whether a chunk begins another call; some servers use the index of one call for the next as well."""
        builder = self._builder
        if not builder.is_open(key):
            return bool(name or id)
        open_id = builder.id_of(key)
        if id and open_id and id != open_id:
            return bool(name) or builder.is_whole(key)
        return bool(name and arguments and not id and builder.is_whole(key))


class _OtherChoices:
    """Choices after the first. They are not read, but kept as a whole answer has them, as members of it.

    The deltas of a choice are joined once, when it ends or the stream does, so that the time is linear.

    Args:
        builder: takes the choices.
    """

    def __init__(self, builder: ResponseBuilder) -> None:
        self._builder = builder
        self._deltas: dict[Any, list[Json]] = {}  # of those that have not ended, by index

    def add(self, choices: Iterable[Mapping[str, Any]]) -> None:
        """Add to the choices that a chunk continues; report those that it ends."""
        if not self._deltas:
            self._builder.before_finish(self._finish)
        for choice in choices:
            index = choice["index"]
            choice = _as_delta(choice)
            delta = dict(choice["delta"])
            # A call that is not an object raises here, where it becomes a problem of this chunk.
            delta["tool_calls"] = [dict(call) for call in delta.get("tool_calls") or ()]
            self._deltas.setdefault(index, []).append(delta)
            if choice.get("finish_reason"):
                self._report(index, {name: value for name, value in choice.items() if name != "delta"})

    def _finish(self) -> None:
        """Report the choices that the stream has not ended."""
        for index in list(self._deltas):
            self._report(index, {"index": index, "finish_reason": None})

    def _report(self, index: Any, members: Mapping[str, Any]) -> None:
        deltas = self._deltas.pop(index)
        pieces: dict[Any, list[Any]] = {}  # of each call, by its index
        for delta in deltas:
            for at, call in enumerate(delta.pop("tool_calls")):
                pieces.setdefault(call.pop("index", at), []).append(call)
        message = _joined(deltas)
        if pieces:
            message["tool_calls"] = [_joined(call) for call in pieces.values()]
        self._builder.add_answer_members({"": {"choices": [{**members, "message": message}]}})


def _joined(pieces: Sequence[Any], name: str = "") -> Any:
    """Return a member of a message from its pieces in several deltas."""
    pieces = [piece for piece in pieces if piece is not None]
    if all(isinstance(piece, Mapping) for piece in pieces):
        names = dict.fromkeys(name for piece in pieces for name in piece)
        return {name: _joined([piece.get(name) for piece in pieces], name) for name in names} if pieces else None
    if name in _REPEATED:
        return next(filter(None, pieces), pieces[0])
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    if all(isinstance(piece, list) for piece in pieces):
        return [item for piece in pieces for item in piece]
    return pieces[-1]


def _in_deltas(choice: Json) -> Json:
    """Return a whole choice as one of a stream, with a delta."""
    if not isinstance(message := choice.get("message"), Mapping):
        return choice
    calls = [{"index": at, **call} for at, call in enumerate(message.get("tool_calls") or ())]
    delta = {**message, "tool_calls": calls} if calls else message
    return {**{name: value for name, value in choice.items() if name != "message"}, "delta": delta}


def _as_delta(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a choice with a delta; some servers answer the request for a stream with a whole message."""
    if choice.get("delta") is not None:
        return choice
    members = {name: value for name, value in choice.items() if name != "message"}
    return {**members, "delta": choice.get("message") or {}}


class ChatStreamWriter:
    """Writes the chunks of one stream.

    Args:
        kind: the API whose vocabulary is used.
        head: identifies the answer.
        reasoning: returns a delta of reasoning.
        whole_calls: whether each call is written in one piece.
        custom: whether there are calls whose input is text.
    """

    def __init__(
        self, kind: str, head: Head, reasoning: Callable[[str], Json], *, whole_calls: bool, custom: bool
    ) -> None:
        self._kind = kind
        self._head = head
        self._reasoning = reasoning
        self._calls = _CallWriter(whole=whole_calls, custom=custom)
        self._details = 0
        self._streamed = 0  # characters of reasoning
        self._unsealed: list[str] = []  # reasoning since the last part of it ended

    def write(self, events: Iterable[Event], end: StreamEnd) -> Iterator[bytes]:
        """Yield the chunks of these events, the end marker last."""
        yield self._delta({"role": "assistant", "content": ""})
        for event in events:
            if event is WAITING:
                yield b""
                continue
            match event:
                case ContentDelta(text):
                    yield self._delta({"content": text})
                case ReasoningDelta(text):
                    self._unsealed.append(text)
                    yield self._delta(self._reasoning(text))
                case ReasoningEnd(part) if is_signature(part):
                    self._calls.signature = part
                case ReasoningEnd(part):
                    if part.signature or part.data:
                        yield self._detail(part)
                    self._streamed += sum(map(len, self._unsealed))
                    self._unsealed.clear()
                case CallStart() | ArgumentsDelta() | CallEnd():
                    for call in self._calls.write(event):
                        yield self._delta({"tool_calls": [call]})
                case CitationReceived(part) | OpaquePartReceived(part):
                    if members := annotations_of((part,), self._kind) or message_members(part, self._kind):
                        yield self._delta(members)
                case _:  # a chunk has no place for other items of the provider
                    pass
        for call in self._calls.rest():
            yield self._delta({"tool_calls": [call]})
        if self._calls.signature is not None:
            yield self._detail(self._calls.signature)
        last = self._chunk([{"index": 0, "delta": {}, "logprobs": None, "finish_reason": None}])
        last["choices"][0]["finish_reason"] = write_reason(self._kind, end.reason)
        put_members(last, {path.replace(_MESSAGE, _DELTA): rest for path, rest in end.members.items()})
        last["choices"] = [_in_deltas(choice) for choice in last["choices"]]
        yield sse(last)
        if end.usage is not None:
            yield sse({**self._chunk([]), "usage": write_usage(end.usage)})
        yield b"data: " + DONE + b"\n\n"

    def _delta(self, delta: Json, finish: str | None = None) -> bytes:
        return sse(self._chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]))

    def _chunk(self, choices: list[Json]) -> Json:
        return {
            "id": f"chatcmpl-{self._head.id}",
            "object": "chat.completion.chunk",
            "created": self._head.created,
            "model": self._head.model,
            "choices": choices,
        }

    def _detail(self, part: ReasoningPart) -> bytes:
        if part.text and part.text == "".join(self._unsealed):
            item = {"index": self._details, **detail_of_streamed(part, self._streamed)}
        else:
            item = {"index": self._details, **detail(part)}
        self._details += 1
        return self._delta({"reasoning_details": [item]})


class _CallWriter:
    """Writes the calls of one stream, in deltas or each in one piece."""

    def __init__(self, *, whole: bool, custom: bool) -> None:
        self._whole = whole
        self._custom = custom
        self._free: set[int] = set()  # calls whose input is text, which is written at their end
        self._places: dict[int, int] = {}  # of calls, among the calls
        self._waiting: dict[int, tuple[Json, list[str]]] = {}  # calls to be written whole, with their arguments
        self.signature: ReasoningPart | None = None  # for the next call

    def write(self, event: CallStart | ArgumentsDelta | CallEnd) -> Iterator[Json]:
        index = event.index
        match event:
            case CallStart(_, name, id, free):
                custom = free and self._custom
                kind, member = ("custom", "input") if custom else ("function", "arguments")
                place = self._places[index] = len(self._places)
                call = {"index": place, "id": id, "type": kind, kind: {"name": name, member: ""}}
                call = with_signature(call, self.signature)
                self.signature = None
                if custom:
                    self._free.add(index)
                if self._whole and not custom:
                    self._waiting[index] = (call, [])
                else:
                    yield call
            case ArgumentsDelta() if index in self._free:
                pass
            case ArgumentsDelta(_, text) if self._whole:
                self._waiting[index][1].append(text)
            case ArgumentsDelta(_, text):
                yield {"index": self._places[index], "function": {"arguments": text}}
            case CallEnd(_, call, complete) if index in self._free:
                text = str(call.arguments.get("input", "")) if complete else call.raw
                yield {"index": self._places[index], "type": "custom", "custom": {"input": text}}
            case CallEnd() if index in self._waiting:
                yield self._joined(*self._waiting.pop(index))
            case CallEnd():
                pass

    def rest(self) -> Iterator[Json]:
        """Yield the calls that have not ended."""
        for call, texts in self._waiting.values():
            yield self._joined(call, texts)

    @staticmethod
    def _joined(call: Json, texts: list[str]) -> Json:
        return {**call, "function": {**call["function"], "arguments": "".join(texts)}}

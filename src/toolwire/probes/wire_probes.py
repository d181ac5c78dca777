"""Probes of the bytes: members of answers, the framing and the order of streams, and the forms of calls in them.

Clients differ in how much they forgive. These rules are those that some of them need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from toolwire.client.response_body import json_of
from toolwire.probes import probe_requests as ask
from toolwire.probes.answer_members import EVENTS, shape_of, value_at
from toolwire.probes.judging import GUIDE, REFERENCE, exchange_with_calls
from toolwire.probes.probe import Probe, ProbeFailed, RuleNotShown
from toolwire.probes.probe_exchange import ProbeExchange
from toolwire.providers.member_paths import MISSING

_STREAM: Final = f"{REFERENCE}-streaming/streaming"
_CHAT: Final = frozenset(("openai_chat", "mistral"))
_SHORT: Final = 0.25
"""Seconds; an answer that takes less may arrive at once."""
_AT_ONCE: Final = 0.1
"""The share of the time of an answer in which most of it arrives if the server, or a proxy, collects it first."""


def _has_members(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    shape, body = shape_of(exchange.api), exchange.json
    if not shape.whole:
        raise RuleNotShown(f"the members of answers of {exchange.api.name} are not known here")
    if exchange.media_type != "application/json":
        raise ProbeFailed(f"the media type of an answer is {exchange.media_type or 'missing'}, not application/json")
    for path, kinds in shape.whole.items():
        value = value_at(body, path)
        if value is MISSING:
            raise ProbeFailed(f"the answer has no {path}")
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise ProbeFailed(f"{path} is {value!r:.80}, which is not of the type {kinds[0].__name__}")
    for path, expected in shape.fixed.items():
        value = value_at(body, path)
        if value != expected:
            raise ProbeFailed(f"{path} is {'missing' if value is MISSING else repr(value)[:80]}, not {expected!r}")


def _adds_up(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        usages = [usage for chunk in objects_of(exchange) if isinstance(usage := chunk.get("usage"), dict)]
        if not usages:
            raise RuleNotShown("no tokens are reported")
        reported = [usages[-1].get(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")]
        parts = [part for part in reported if isinstance(part, int)]
        if len(parts) < len(reported):
            raise ProbeFailed(f"usage{exchange.place} has not all of prompt_tokens, completion_tokens, total_tokens")
        if parts[0] + parts[1] != parts[2]:
            raise ProbeFailed(f"total_tokens{exchange.place} is {parts[2]}, not {parts[0]} + {parts[1]}")


def objects_of(exchange: ProbeExchange) -> list[dict[str, Any]]:
    """Return the objects of an answer: those of a stream, or the whole one."""
    if not exchange.request.chat.stream:
        return [exchange.json] if isinstance(exchange.json, dict) else []
    return [frame.value for frame in exchange.frames if isinstance(frame.value, dict)]


def _is_framed(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        for frame in exchange.frames:
            if frame.error:
                raise ProbeFailed(f"a part of the stream cannot be read: {frame.error}: {frame.raw[:80]!r}")
            if not isinstance(frame.value, dict):
                raise ProbeFailed(f"a part of the stream is not an object: {frame.value!r:.80}")
        if len(exchange.frames) < 2:
            raise ProbeFailed(f"the stream has {len(exchange.frames)} events: it was not streamed")
        expected = shape_of(exchange.api).media_types
        _check_empty_lines(exchange)
        if expected and exchange.media_type not in expected:
            raise ProbeFailed(f"the media type of a stream is {exchange.media_type or 'missing'}, not {expected[0]}")


def _check_empty_lines(exchange: ProbeExchange) -> None:
    """Check that an empty line ends each server-sent event: clients join the data of the lines before it.

    Streams in other forms have no lines of data.

    Raises:
        ProbeFailed: one is missing between two objects; Toolwire reads them by their lines.
    """
    is_complete = False
    for line in exchange.body.splitlines():
        name, _, data = line.partition(b":")
        if not line:
            is_complete = False
        elif name == b"data":
            if is_complete:
                raise ProbeFailed(f"no empty line is between two events of the stream: {line[:80]!r} follows another")
            is_complete = isinstance(json_of(data.strip()), dict)


def _has_end(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        last = shape_of(exchange.api).last
        if not last:
            raise RuleNotShown(f"the end of streams of {exchange.api.name} is not known here")
        text = "".join(exchange.body.decode("utf-8", "replace").split())
        if last not in text:
            raise ProbeFailed(f"the stream ends without {last}")
        # Clients stop reading at this mark, and never see what follows.
        if exchange.media_type == EVENTS and last.startswith("data:") and not text.endswith(last):
            raise ProbeFailed(f"the stream does not end with {last}")


def _arrives_over_time(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    if len(exchange.response.content) < 60:
        raise RuleNotShown(f"the answer is too short: {exchange.response.content!r:.80}")
    total = exchange.pieces[-1].seconds
    if total < _SHORT:
        raise RuleNotShown(f"the answer took {total:.2f} seconds, which is too short for a difference")
    # A stream that is collected arrives in a burst at the end. One third leaves room for a slow first token.
    size, received = len(exchange.body), 0
    for piece in exchange.pieces:
        received += len(piece.data)
        if received > size // 3:
            if piece.seconds > (1 - _AT_ONCE) * total:
                raise ProbeFailed(
                    f"the stream arrives at once, after {piece.seconds:.1f} of {total:.1f} seconds: the server or a "
                    "proxy collects it"
                )
            return


# -- Chat Completions ------------------------------------------------------------------------------------------------


def _deltas(exchange: ProbeExchange) -> Iterator[dict[str, Any]]:
    """Yield the deltas of a stream of Chat Completions."""
    for chunk in objects_of(exchange):
        delta = value_at(chunk, "choices.0.delta")
        if isinstance(delta, dict):
            yield delta


def _call_deltas(exchange: ProbeExchange) -> Iterator[dict[str, Any]]:
    for delta in _deltas(exchange):
        yield from _calls_in(delta.get("tool_calls"), "a delta")


def _whole_calls(exchange: ProbeExchange) -> list[dict[str, Any]]:
    return _calls_in(value_at(exchange.json, "choices.0.message.tool_calls"), "a message")


def _calls_in(value: Any, place: str) -> list[dict[str, Any]]:
    """Return the calls of a message or of a delta; [] if it has none.

    Raises:
        ProbeFailed: they are not a list of objects.
    """
    if value is None or value is MISSING:
        return []
    if not isinstance(value, list):
        raise ProbeFailed(f"the tool_calls of {place} are {value!r:.80}, not a list")
    for call in value:
        if not isinstance(call, dict):
            raise ProbeFailed(f"a call of {place} is {call!r:.80}, not an object")
    return value


def text_or_number(item: Mapping[str, Any], name: str) -> str | int | None:
    """Return a member by which parts of a stream belong together; None if it is missing.

    Raises:
        ProbeFailed: it is neither text nor a whole number.
    """
    value = item.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise ProbeFailed(f"the {name} of a part of a call is {value!r:.80}, neither text nor a number")
    return value


def _calls_have_members(exchanges: Sequence[ProbeExchange]) -> None:
    exchange = exchange_with_calls(exchanges)
    for call in _whole_calls(exchange):
        if value_at(call, "type") not in ("function", MISSING if exchange.api.kind == "mistral" else "function"):
            raise ProbeFailed(f"the type of a call is {call.get('type')!r}, not 'function'")
        _check_id(call)
        arguments = value_at(call, "function.arguments")
        if not isinstance(arguments, str):
            raise ProbeFailed(f"the arguments of a call are {arguments!r:.80}, not JSON in a string")


def _check_id(call: Mapping[str, Any]) -> None:
    """Check that the id of a call is a text, if there is one.

    Raises:
        ProbeFailed: it is another value.
    """
    if not isinstance(id := call.get("id"), str | None):
        raise ProbeFailed(f"the id of a call is {id!r:.80}, not a text")


def _arguments_are_objects(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        exchange_with_calls([exchange])
        calls = _call_deltas(exchange) if exchange.request.chat.stream else _whole_calls(exchange)
        texts: dict[Any, str] = {}
        for at, call in enumerate(calls):
            index = text_or_number(call, "index") if exchange.request.chat.stream else at
            arguments = value_at(call, "function.arguments")
            texts[index] = texts.get(index, "") + (arguments if isinstance(arguments, str) else "")
        for text in texts.values():
            if not isinstance(json_of(text.encode()), dict):
                raise ProbeFailed(
                    f"the arguments of a tool without parameters are {text!r}{exchange.place}, not '{{}}'"
                )


def _content_beside_calls(exchanges: Sequence[ProbeExchange]) -> None:
    exchange = exchange_with_calls(exchanges)
    content = value_at(exchange.json, "choices.0.message.content")
    if content is not None and content is not MISSING and not isinstance(content, str):
        raise ProbeFailed(f"the content beside a call is {content!r:.80}, neither text nor null")
    if content in ("None", "null"):
        raise ProbeFailed(f"the content beside a call is the text {content!r}: the server writes that for null")


def _chunks_belong_together(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        # Azure sends the results of its filters in chunks without a choice, an id and a kind.
        chunks = [chunk for chunk in objects_of(exchange) if chunk.get("choices") != []]
        for chunk in chunks:
            if chunk.get("object") != "chat.completion.chunk":
                raise ProbeFailed(f"the object of a chunk is {chunk.get('object')!r}, not 'chat.completion.chunk'")
            if not isinstance(chunk.get("choices"), list):
                raise ProbeFailed(f"a chunk has no list of choices: {chunk!r:.120}")
            if not isinstance(delta := value_at(chunk, "choices.0.delta"), dict):
                shown = "missing" if delta is MISSING else repr(delta)[:80]
                raise ProbeFailed(f"the delta of a chunk is {shown}, and not an object")
        if len(ids := {str(chunk.get("id")) for chunk in chunks}) > 1 or ids & {"None", ""}:
            raise ProbeFailed(f"the chunks of one stream have {len(ids)} ids, or none")


def _finishes_once(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        reasons = [value_at(chunk, "choices.0.finish_reason") for chunk in objects_of(exchange)]
        final = [reason for reason in reasons if reason not in (None, MISSING, "")]
        if len(final) != 1:
            raise ProbeFailed(f"the stream has {len(final)} finish reasons, not one")
        at = reasons.index(final[0])
        for chunk in objects_of(exchange)[at + 1 :]:
            if value_at(chunk, "choices.0.delta.content") not in (None, MISSING, ""):
                raise ProbeFailed("text follows the finish reason of the stream")
            if value_at(chunk, "choices.0.delta.tool_calls") not in (None, MISSING, []):
                raise ProbeFailed("a part of a call follows the finish reason of the stream")


def _begins_with_role(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        first = next(_deltas(exchange), {})
        if first.get("role") != "assistant":
            raise ProbeFailed(f"the first delta has the role {first.get('role')!r}, not 'assistant'")


def _calls_have_indexes(exchanges: Sequence[ProbeExchange]) -> None:
    exchange = exchange_with_calls(exchanges)
    indexes: list[Any] = []
    for call in _call_deltas(exchange):
        index = text_or_number(call, "index")
        if not isinstance(index, int):
            raise ProbeFailed(f"a delta of a call has the index {index!r}")
        if index not in indexes:
            indexes.append(index)
    # Clients put the deltas of a call together by its index alone.
    count = len(exchange.response.tool_calls) + len(exchange.response.incomplete)
    if indexes != list(range(count)):
        raise ProbeFailed(f"{count} calls have the indexes {indexes}, not {list(range(count))}")


def _begins_calls_once(exchanges: Sequence[ProbeExchange]) -> None:
    exchange = exchange_with_calls(exchanges)
    names: dict[Any, str] = {}
    ids: dict[Any, set[str]] = {}
    for call in _call_deltas(exchange):
        index = text_or_number(call, "index")
        name = value_at(call, "function.name")
        names[index] = names.get(index, "") + (name if isinstance(name, str) else "")
        _check_id(call)
        of_call = ids.setdefault(index, set())
        if identifier := call.get("id"):
            of_call.add(identifier)
    offered = {tool.name for tool in exchange.request.chat.tools}
    # Many clients join the names of all deltas, as they join the arguments.
    for name in names.values():
        if name not in offered:
            raise ProbeFailed(f"the names of a call's deltas join to {name!r}, as many clients join them")
    if any(len(of_call) > 1 for of_call in ids.values()):
        raise ProbeFailed("the deltas of one call have different ids")


def _arguments_join(exchanges: Sequence[ProbeExchange]) -> None:
    exchange = exchange_with_calls(exchanges)
    for call in _call_deltas(exchange):
        arguments = value_at(call, "function.arguments")
        if arguments not in (MISSING, None) and not isinstance(arguments, str):
            raise ProbeFailed(f"the arguments of a delta are {arguments!r:.80}, not a part of JSON text")


def _chat(id: str, title: str, requests: tuple[Any, ...], judge: Callable[[Sequence[ProbeExchange]], None]) -> Probe:
    return Probe(id, "bytes", title, _STREAM, requests, judge, _CHAT)


_SSE: Final = "https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation"

WIRE_PROBES: Final = (
    Probe(
        "answer-members",
        "bytes",
        "An answer has the members of its API.",
        f"{REFERENCE}/object",
        (ask.PLAIN,),
        _has_members,
    ),
    Probe(
        "usage-total",
        "bytes",
        "The total of the tokens is their sum.",
        f"{REFERENCE}/object",
        (ask.PLAIN, ask.CALL_STREAM),
        _adds_up,
        _CHAT,
    ),
    Probe(
        "stream-framing",
        "streams",
        "A stream consists of several events, each with an object.",
        _SSE,
        ask.STREAMS,
        _is_framed,
    ),
    Probe(
        "stream-end",
        "streams",
        "A stream ends with the event that its API has for the end.",
        _STREAM,
        ask.STREAMS,
        _has_end,
    ),
    Probe(
        "stream-over-time",
        "streams",
        "A stream arrives while the model writes, and not at once at the end.",
        _STREAM,
        (ask.COUNT_STREAM,),
        _arrives_over_time,
    ),
    Probe(
        "stream-beside-tools",
        "streams",
        "A stream arrives while the model writes, also if tools are offered.",
        _STREAM,
        (ask.COUNT_BESIDE_TOOLS,),
        _arrives_over_time,
    ),
    Probe(
        "call-members",
        "bytes",
        "A call has the type function and its arguments as text.",
        GUIDE,
        ask.ONE_CALL,
        _calls_have_members,
        _CHAT,
    ),
    Probe(
        "content-beside-call",
        "bytes",
        "The content beside a call is text or null.",
        f"{REFERENCE}/object",
        ask.ONE_CALL,
        _content_beside_calls,
        _CHAT,
    ),
    Probe(
        "empty-arguments-text",
        "bytes",
        "The arguments of a tool without parameters are the text of an object.",
        f"{GUIDE}#handling-function-calls",
        (ask.EMPTY, ask.EMPTY_STREAM),
        _arguments_are_objects,
        _CHAT,
    ),
    _chat(
        "chunk-members",
        "The chunks of a stream have one id and a list of choices.",
        ask.STREAMS,
        _chunks_belong_together,
    ),
    _chat(
        "one-finish", "A stream has one finish reason, and nothing of the answer after it.", ask.STREAMS, _finishes_once
    ),
    _chat("role-first", "A stream begins with the role.", ask.STREAMS, _begins_with_role),
    _chat(
        "call-indexes",
        "The calls of a stream have the indexes 0, 1 and so on.",
        (ask.PARALLEL_STREAM, ask.unless_called(ask.CALL_STREAM), ask.unless_called(ask.FORCED_STREAM)),
        _calls_have_indexes,
    ),
    _chat(
        "call-begins-once",
        "The name and the id of a call are in one delta of the stream.",
        ask.ONE_CALL_STREAM,
        _begins_calls_once,
    ),
    _chat(
        "argument-deltas",
        "The arguments of a call in a stream are parts of a text.",
        ask.ONE_CALL_STREAM,
        _arguments_join,
    ),
)
"""The probes of the bytes and of streams."""

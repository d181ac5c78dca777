"""Probes of the bytes of Messages, Responses and other APIs with items: blocks, indexes, and the inputs of calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from toolwire.probes import probe_requests as ask
from toolwire.probes.answer_members import value_at
from toolwire.probes.judging import exchange_with_calls
from toolwire.probes.probe import Probe, ProbeFailed, RuleNotShown
from toolwire.probes.probe_exchange import ProbeExchange
from toolwire.probes.wire_probes import objects_of, text_or_number
from toolwire.providers.member_paths import MISSING

_MESSAGES: Final = frozenset(("anthropic_messages",))
_RESPONSES: Final = frozenset(("openai_responses",))


def _types(exchange: ProbeExchange) -> list[tuple[str, dict[str, Any]]]:
    return [(str(item.get("type")), item) for item in objects_of(exchange) if item.get("type") != "ping"]


def _blocks_are_paired(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        events = _types(exchange)
        names = [name for name, _ in events]
        if not names or names[0] != "message_start" or names[-1] != "message_stop":
            raise ProbeFailed(f"the stream begins with {names[:1]} and ends with {names[-1:]}")
        opened: list[Any] = []
        closed: list[Any] = []
        for name, event in events:
            index = event.get("index")
            if name == "content_block_start":
                opened.append(index)
            elif name in ("content_block_delta", "content_block_stop") and (index not in opened or index in closed):
                raise ProbeFailed(f"{name} has the index {index!r} of a block that is not open")
            if name == "content_block_stop":
                closed.append(index)
        if opened != closed or opened != list(range(len(opened))):
            raise ProbeFailed(f"blocks {opened} begin and blocks {closed} end")
        if "message_delta" not in names:
            raise ProbeFailed("the stream has no message_delta with the stop reason")


def _inputs_are_objects(exchanges: Sequence[ProbeExchange]) -> None:
    exchange_with_calls(exchanges)
    for exchange in exchanges:
        for value in _inputs(exchange):
            if not isinstance(value, dict):
                raise ProbeFailed(f"the input of a call is {value!r:.80}{exchange.place}, not an object")


def _inputs(exchange: ProbeExchange) -> Iterator[Any]:
    """Yield the inputs of the calls of an answer, as Messages, Gemini and Ollama write them."""
    for item in objects_of(exchange):
        blocks = _list_at(item, "content")
        if item.get("type") == "content_block_start":
            blocks = [item.get("content_block")]
        yield from (value_at(block, "input") for block in blocks if value_at(block, "type") == "tool_use")
        parts = _list_at(item, "candidates.0.content.parts")
        yield from (args for part in parts if (args := value_at(part, "functionCall.args")) is not MISSING)
        yield from (value_at(call, "function.arguments") for call in _list_at(item, "message.tool_calls"))


def _list_at(item: Any, path: str) -> list[Any]:
    value = value_at(item, path)
    return value if isinstance(value, list) else []


def _call_items_have_members(exchanges: Sequence[ProbeExchange]) -> None:
    exchange = exchange_with_calls(exchanges)
    for item in _call_items(value_at(exchange.json, "output")):
        for name in ("call_id", "arguments"):
            value = item.get(name)
            if not isinstance(value, str) or not value:
                raise ProbeFailed(f"the {name} of a call is {value!r:.80}, not a text")


def _call_items(output: Any) -> list[dict[str, Any]]:
    items = output if isinstance(output, list) else []
    return [item for item in items if isinstance(item, dict) and item.get("type") == "function_call"]


def _items_are_in_order(exchanges: Sequence[ProbeExchange]) -> None:
    is_cut = False
    for exchange in exchanges:
        events = _types(exchange)
        names = [name for name, _ in events]
        ends_early = names[-1:] == ["response.incomplete"]
        is_cut = is_cut or ends_early
        if names[:1] != ["response.created"] or not (ends_early or names[-1:] == ["response.completed"]):
            raise ProbeFailed(f"the stream begins with {names[:1]} and ends with {names[-1:]}")
        numbers = [number for _, event in events if isinstance(number := event.get("sequence_number"), int)]
        if len(numbers) < len(events) or any(first >= second for first, second in pairwise(numbers)):
            raise ProbeFailed("the numbers of the events do not rise")
        starts, ends = names.count("response.output_item.added"), names.count("response.output_item.done")
        if starts != ends and not ends_early:
            raise ProbeFailed("an item of the output begins and does not end")
        indexes = [event.get("output_index") for name, event in events if name == "response.output_item.added"]
        if indexes != list(range(len(indexes))):
            raise ProbeFailed(f"the items of the output have the indexes {indexes}, not {list(range(len(indexes)))}")
    if is_cut:
        raise RuleNotShown("an answer was cut off")


def _ends_as_streamed(exchanges: Sequence[ProbeExchange]) -> None:
    exchange = exchange_with_calls(exchanges)
    joined: dict[Any, str] = {}
    for name, event in _types(exchange):
        if name == "response.function_call_arguments.delta":
            id = text_or_number(event, "item_id")
            joined[id] = joined.get(id, "") + str(event.get("delta"))
    for name, event in _types(exchange):
        if name == "response.function_call_arguments.done":
            _check_arguments("event", event, joined.get(text_or_number(event, "item_id"), ""))
        if name == "response.output_item.done":
            for call in _call_items([event.get("item")]):
                _check_arguments("item", call, joined.get(text_or_number(call, "id"), ""))
        if name == "response.completed":
            calls = _call_items(value_at(event, "response.output"))
            # Clients take the calls from this event alone, and never join the deltas.
            if sorted(str(call.get("arguments")) for call in calls) != sorted(joined.values()):
                raise ProbeFailed(
                    f"the response at the end has {len(calls)} of the stream's {len(joined)} calls, or others"
                )


def _check_arguments(place: str, value: dict[str, Any], expected: str) -> None:
    if value.get("arguments") != expected:
        raise ProbeFailed(f"the {place} at the end of a call has other arguments than its deltas")


EVENT_PROBES: Final = (
    Probe(
        "blocks",
        "bytes",
        "Each block of a stream begins once and ends once, in order.",
        "https://docs.claude.com/en/api/messages-streaming#event-types",
        (*ask.STREAMS, ask.PARALLEL_STREAM),
        _blocks_are_paired,
        _MESSAGES,
    ),
    Probe(
        "input-object",
        "bytes",
        "The input of a call is an object.",
        "https://docs.claude.com/en/api/messages",
        (ask.CALL, ask.CALL_STREAM, ask.unless_called(ask.FORCED)),
        _inputs_are_objects,
        frozenset(("anthropic_messages", "gemini", "ollama")),
    ),
    Probe(
        "call-item",
        "bytes",
        "An item for a call has a call_id, and its arguments as text.",
        "https://platform.openai.com/docs/api-reference/responses/object",
        ask.ONE_CALL,
        _call_items_have_members,
        _RESPONSES,
    ),
    Probe(
        "items",
        "bytes",
        "The events of a stream are numbered, and each item begins and ends.",
        "https://platform.openai.com/docs/api-reference/responses-streaming",
        (*ask.STREAMS, ask.PARALLEL_STREAM),
        _items_are_in_order,
        _RESPONSES,
    ),
    Probe(
        "arguments-done",
        "bytes",
        "The arguments at the end of a call and of the stream are those of its deltas.",
        "https://platform.openai.com/docs/api-reference/responses-streaming",
        ask.ONE_CALL_STREAM,
        _ends_as_streamed,
        _RESPONSES,
    ),
)
"""The probes of blocks, items and inputs."""

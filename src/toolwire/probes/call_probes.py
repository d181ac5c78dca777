"""Probes of calls: they arrive as calls, once, with ids, and with the arguments that the model wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolwire.events import ArgumentsDelta
from toolwire.messages import FinishReason, ToolCall
from toolwire.probes import probe_requests as ask
from toolwire.probes.controls import check_model_copies, control_if_changed
from toolwire.probes.judging import (
    FINISH_WORDS,
    GUIDE,
    check_expressed,
    check_finish,
    check_finish_word,
    check_not_in_text,
    check_offered,
    check_readable,
    control_token,
    exchange_with_calls,
    no_call,
    own_ids,
    reported_usage,
    shown,
    shown_call,
    values_at,
)
from toolwire.probes.probe import FaultSuspected, Probe, ProbeFailed, RuleNotShown
from toolwire.probes.probe_exchange import ProbeExchange, ProbeRequest, first_with_calls
from toolwire.text.json_text import json_text

_WITHOUT_IDS: Final = frozenset(("gemini", "ollama"))
"""Kinds of APIs in which calls need no ids."""
_WHOLE_CALLS: Final = frozenset(("gemini", "mistral", "ollama"))
"""Kinds of APIs that stream each call in one piece."""
_TOO_MANY: Final = 1.6
"""The ratio of two calls to their tokens, against the ratio of one call, from which one of the two is a copy."""
_STREAMING: Final = f"{GUIDE}#streaming"
_HANDLING: Final = f"{GUIDE}#handling-function-calls"


def _arrives_as_call(exchanges: Sequence[ProbeExchange]) -> None:
    # The request that requires the call is not examined here: servers read calls in another way when they force them.
    exchange = exchange_with_calls(exchanges[:1])
    check_readable(exchange)
    (call, *more_calls) = check_offered(exchange)
    if more_calls:
        copies = [other for other in more_calls if (other.name, other.arguments) == (call.name, call.arguments)]
        if copies:
            raise FaultSuspected(f"the call {shown_call(call)} arrives {len(copies) + 1} times{exchange.place}")
        raise RuleNotShown(f"the model made {len(more_calls) + 1} calls: {shown(exchange.response)}")
    if call.arguments != ask.PARIS:
        raise RuleNotShown(f"the model made another call: {shown_call(call)}")


def _needs_no_repair(exchanges: Sequence[ProbeExchange]) -> None:
    exchange = exchange_with_calls(exchanges)
    check_readable(exchange)
    for call in exchange.response.tool_calls:
        if "double_encoded" in call.repairs:
            raise ProbeFailed(f"the arguments are JSON inside a JSON string{exchange.place}: {shown_call(call)}")
        if call.repairs:
            check_model_copies(exchanges)
            repairs = ", ".join(call.repairs)
            raise FaultSuspected(f"the arguments are not JSON{exchange.place}: they need the repairs {repairs}")


def _is_not_in_text(exchanges: Sequence[ProbeExchange]) -> None:
    exchange = exchange_with_calls(exchanges)
    check_not_in_text(exchange)
    content = exchange.response.content
    if token := control_token(content):
        raise ProbeFailed(f"the text beside the call contains {token!r}{exchange.place}: {content!r:.100}")


def _reasoning_keeps_no_call(exchanges: Sequence[ProbeExchange]) -> None:
    with_reasoning = [exchange for exchange in exchanges if exchange.response.reasoning]
    if not with_reasoning:
        raise RuleNotShown("the model shows no reasoning")
    for exchange in with_reasoning:
        exchange_with_calls([exchange])


def _has_own_ids(exchanges: Sequence[ProbeExchange]) -> None:
    _check_needs_ids(exchanges)
    with_calls = [exchange for exchange in exchanges if exchange.response.tool_calls]
    if not with_calls:
        raise no_call(exchanges[0])
    for exchange in with_calls:
        ids = own_ids(exchange)
        for call, id in zip(exchange.response.tool_calls, ids, strict=True):
            if not id:
                raise ProbeFailed(f"a call of {call.name} has no id{exchange.place}")
        if len(set(ids)) < len(ids):
            raise ProbeFailed(f"{len(ids)} calls of one answer have the same id{exchange.place}")


def _next_call(exchanges: Sequence[ProbeExchange]) -> ProbeRequest | None:
    """Return the request for another call in the conversation of the first one; None without that."""
    exchange = first_with_calls(exchanges)
    if exchange is None:
        return None
    before = ask.continued(exchange, "Rain.")
    forced = exchange.request.chat.tool_choice
    chat = ask.calling((ask.WEATHER, ask.ROME), tools=ask.TOOLS, before=before, tool_choice=forced)
    # Whether the server takes the result is the rule of another probe.
    return ProbeRequest("next-call", chat, may_fail=True)


def _ids_are_new(exchanges: Sequence[ProbeExchange]) -> None:
    _check_needs_ids(exchanges)
    # Only within one conversation: the ids of Kimi K2 count its calls, so they begin anew with each conversation.
    first = exchange_with_calls(exchanges)
    earlier, later = own_ids(first), own_ids(exchanges[-1]) if exchanges[-1] is not first else []
    if not any(earlier) or not any(later):
        raise RuleNotShown("there are no two calls with ids in one conversation")
    if repeated := next((id for id in later if id and id in earlier), ""):
        raise ProbeFailed(f"a later call of a conversation has the same id {repeated!r}: its results collide")


def _check_needs_ids(exchanges: Sequence[ProbeExchange]) -> None:
    if exchanges[0].api.kind in _WITHOUT_IDS:
        raise RuleNotShown("the calls of this API need no ids")


def _finishes_with_calls(exchanges: Sequence[ProbeExchange]) -> None:
    exchange = exchange_with_calls(exchanges)
    check_finish_word(exchange)
    # OpenAI itself ends a call that the request named with the reason for answers in words.
    named = (FinishReason.STOP,) if exchange.request.chat.tool_choice.name else ()
    check_finish(exchange, FinishReason.TOOL_CALLS, *named)
    # The response that Toolwire makes of an answer corrects this reason, and other clients do not.
    for path, wrong_word, word in FINISH_WORDS:
        if not named and wrong_word in values_at(exchange, path):
            raise ProbeFailed(
                f"the finish reason{exchange.place} is {wrong_word}, not {word}: clients that look at it ignore the "
                "call"
            )


def _has_two_calls(exchanges: Sequence[ProbeExchange]) -> None:
    exchange = exchanges[0]
    exchange_with_calls([exchange])
    check_readable(exchange)
    calls = check_offered(exchange)
    _check_tokens(exchange, exchanges[1])
    if len(calls) == 1:
        raise RuleNotShown(f"the model made one call: {shown_call(calls[0])}")
    if len(calls) == 2 and (calls[0].name, calls[0].arguments) == (calls[1].name, calls[1].arguments):
        raise FaultSuspected(f"the call {shown_call(calls[0])} arrives twice{exchange.place}")
    if sorted(map(_key, calls)) != sorted((_arguments_text(ask.PARIS), _arguments_text(ask.ROME))):
        raise RuleNotShown(f"the model made other calls: {shown(exchange.response)}")


def _again_if_reversed(exchanges: Sequence[ProbeExchange]) -> ProbeRequest | None:
    """Return the request for the stream once more, if its calls have another order than those of the whole answer."""
    orders = [list(map(_key, exchange.response.tool_calls)) for exchange in exchanges]
    return ask.PARALLEL_AGAIN if orders[0] != orders[1] else None


def _streams_in_order(exchanges: Sequence[ProbeExchange]) -> None:
    in_order = [_arguments_text(ask.PARIS), _arguments_text(ask.ROME)]
    for exchange in exchanges:
        keys = list(map(_key, exchange.response.tool_calls))
        is_other = sorted(keys) != sorted(in_order) if exchange.request.chat.stream else keys != in_order
        if is_other:
            raise RuleNotShown(f"the model did not make the two calls in order: {shown(exchange.response)}")
    if all(_key(exchange.response.tool_calls[0]) != in_order[0] for exchange in exchanges[1:]):
        raise FaultSuspected(f"the calls arrive in reversed order in a stream: {shown(exchanges[1].response)}")


def _check_tokens(exchange: ProbeExchange, single: ProbeExchange) -> None:
    """Check that the tokens of an answer account for its calls, by the tokens of an answer with one call.

    Raises:
        FaultSuspected: a call is missing, or is a copy. Reasoning that a server hides and does not count is another
            reason, so one answer does not show it.
    """
    usages = reported_usage(exchange), reported_usage(single)
    lengths = _calls_only(exchange), _calls_only(single)
    if usages[0] is None or usages[1] is None or not lengths[0] or not lengths[1]:
        return
    # Tokenizers differ, but the ratio of one model is about the same for one call and for two.
    ratio = (lengths[0] / usages[0].output_tokens) / (lengths[1] / usages[1].output_tokens)
    calls = exchange.response.tool_calls
    if len(calls) == 1 and ratio < 1 / _TOO_MANY:
        raise FaultSuspected(
            f"one call arrives{exchange.place}, but its {usages[0].output_tokens} tokens are those of more"
        )
    if len(calls) > 1 and ratio > _TOO_MANY:
        raise FaultSuspected(
            f"{len(calls)} calls arrive{exchange.place}, but the {usages[0].output_tokens} tokens are those of fewer"
        )


def _calls_only(exchange: ProbeExchange) -> int:
    """Return the length of the calls of an answer, in characters; 0 for an answer with text or reasoning besides."""
    response = exchange.response
    if response.content.strip() or response.reasoning or (response.usage and response.usage.reasoning_tokens):
        return 0
    return sum(len(call.name) + len(_key(call)) for call in response.tool_calls)


def _key(call: ToolCall) -> str:
    return _arguments_text(call.arguments)


def _arguments_text(arguments: ask.Arguments) -> str:
    return json_text(dict(sorted(arguments.items())))


def _streams_the_same(exchanges: Sequence[ProbeExchange]) -> None:
    at_once, in_stream = exchanges[:2]
    for exchange in (at_once, in_stream):
        exchange_with_calls([exchange])
        check_readable(exchange)
    calls = [[(call.name, _key(call)) for call in exchange.response.tool_calls] for exchange in exchanges[:2]]
    if calls[0] != calls[1]:
        check_model_copies(exchanges)
        raise FaultSuspected(
            f"the same request gives {shown(at_once.response)} as a whole and {shown(in_stream.response)} in a stream"
        )


def _arrives_in_pieces(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    if exchange.api.kind in _WHOLE_CALLS:
        raise RuleNotShown(f"{exchange.api.name} streams each call in one piece")
    exchange_with_calls(exchanges)
    pieces = [event.text for event in exchange.events if isinstance(event, ArgumentsDelta) and event.text]
    length = sum(map(len, pieces))
    if length < 150:
        raise RuleNotShown(f"the arguments are too short: {shown(exchange.response)}")
    # The first piece may be empty or the opening brace alone, and the last one the closing brace.
    if len(pieces) < 3:
        in_pieces = "one piece" if len(pieces) == 1 else f"{len(pieces)} pieces"
        raise ProbeFailed(
            f"the {length} characters of the arguments arrive in {in_pieces}: a client sees nothing until the call is "
            "complete"
        )


def _allows_one_call(exchanges: Sequence[ProbeExchange]) -> None:
    check_expressed(exchanges, "parallel")
    exchange = exchange_with_calls(exchanges)
    if len(exchange.response.tool_calls) > 1:
        raise ProbeFailed(f"{len(exchange.response.tool_calls)} calls arrive although only one is allowed")


CALL_PROBES: Final = (
    Probe(
        "one-call",
        "calls",
        "A call that the model makes arrives as a call, once.",
        GUIDE,
        (ask.CALL,),
        _arrives_as_call,
        smoke=True,
    ),
    Probe(
        "streamed-call",
        "calls",
        "A call in a stream arrives as a call, once.",
        _STREAMING,
        (ask.CALL_STREAM,),
        _arrives_as_call,
        smoke=True,
    ),
    Probe(
        "valid-arguments",
        "calls",
        "The arguments of a call are a JSON object.",
        _HANDLING,
        (*ask.ONE_CALL, control_if_changed),
        _needs_no_repair,
    ),
    Probe(
        "streamed-arguments",
        "calls",
        "The arguments of a call in a stream join to a JSON object.",
        _STREAMING,
        (*ask.ONE_CALL_STREAM, control_if_changed),
        _needs_no_repair,
    ),
    Probe(
        "call-not-in-text",
        "calls",
        "A call is not repeated in the text or in the reasoning.",
        GUIDE,
        ask.ONE_CALL,
        _is_not_in_text,
    ),
    Probe(
        "streamed-not-in-text",
        "calls",
        "A call in a stream is not repeated in the text or in the reasoning.",
        _STREAMING,
        ask.ONE_CALL_STREAM,
        _is_not_in_text,
    ),
    Probe(
        "call-in-reasoning",
        "calls",
        "A call during or after reasoning is not lost in the reasoning.",
        "https://docs.vllm.ai/en/latest/features/reasoning_outputs/#tool-calling",
        (ask.CALL, ask.CALL_STREAM),
        _reasoning_keeps_no_call,
    ),
    Probe(
        "call-ids",
        "calls",
        "Each call has an id of its own.",
        _HANDLING,
        (ask.CALL, ask.CALL_STREAM, ask.PARALLEL, ask.PARALLEL_STREAM, ask.unless_called(ask.FORCED)),
        _has_own_ids,
        smoke=True,
    ),
    Probe(
        "new-ids",
        "calls",
        "Calls of two answers in one conversation have different ids.",
        _HANDLING,
        (*ask.ONE_CALL, _next_call),
        _ids_are_new,
    ),
    Probe(
        "call-reason",
        "calls",
        "An answer with calls says that it ends with calls.",
        _HANDLING,
        ask.ONE_CALL,
        _finishes_with_calls,
    ),
    Probe(
        "streamed-call-reason",
        "calls",
        "A stream with calls says that it ends with calls.",
        _STREAMING,
        ask.ONE_CALL_STREAM,
        _finishes_with_calls,
    ),
    Probe(
        "parallel-calls",
        "parallel calls",
        "Both calls of an answer arrive, once.",
        f"{GUIDE}#parallel-function-calling",
        (ask.PARALLEL, ask.CALL),
        _has_two_calls,
        smoke=True,
    ),
    Probe(
        "streamed-parallel",
        "parallel calls",
        "Both calls of a stream arrive, once.",
        _STREAMING,
        (ask.PARALLEL_STREAM, ask.CALL_STREAM),
        _has_two_calls,
    ),
    Probe(
        "streamed-order",
        "parallel calls",
        "The calls of a stream arrive in the same order as those of a whole answer.",
        _STREAMING,
        (ask.PARALLEL, ask.PARALLEL_STREAM, _again_if_reversed),
        _streams_in_order,
    ),
    Probe(
        "one-call-allowed",
        "parallel calls",
        "No answer has several calls if only one is allowed.",
        f"{GUIDE}#parallel-function-calling",
        (ask.SINGLE,),
        _allows_one_call,
    ),
    Probe(
        "streamed-equals-whole",
        "streams",
        "The same request gives the same call as a whole and in a stream.",
        _STREAMING,
        (ask.CALL, ask.CALL_STREAM, control_if_changed),
        _streams_the_same,
    ),
    Probe(
        "named-equals-whole",
        "streams",
        "A call that is required is the same as a whole and in a stream.",
        _STREAMING,
        (ask.FORCED, ask.FORCED_STREAM, control_if_changed),
        _streams_the_same,
    ),
    Probe(
        "arguments-in-pieces",
        "streams",
        "Long arguments arrive while the model writes them.",
        _STREAMING,
        (ask.LONG_STREAM,),
        _arrives_in_pieces,
    ),
)
"""The probes of calls, of parallel calls and of calls in streams."""

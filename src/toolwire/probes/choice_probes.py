"""Probes of the tool choice: calls that are required, named or forbidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolwire.messages import FinishReason
from toolwire.probes import probe_requests as ask
from toolwire.probes.judging import (
    FINISH_WORDS,
    GUIDE,
    check_expressed,
    check_no_hidden_call,
    check_not_in_text,
    control_token,
    no_call,
    shown,
    values_at,
)
from toolwire.probes.probe import FaultSuspected, Probe, ProbeFailed, RuleNotShown
from toolwire.probes.probe_exchange import ProbeExchange, ProbeRequest
from toolwire.providers.parsing import parse

_SOURCE: Final = f"{GUIDE}#tool-choice"


def _calls(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    check_expressed(exchanges, "tool_choice")
    check_no_hidden_call(exchange)
    response = exchange.response
    if response.tool_calls or response.incomplete:
        check_not_in_text(exchange)
        return
    # Reasoning may use up the maximum length before the call begins.
    if response.finish_reason is FinishReason.LENGTH:
        raise no_call(exchange)
    raise ProbeFailed(f"the model answered {shown(response)}{exchange.place}, although it had to call a tool")


def _calls_the_named(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    _calls(exchanges)
    name = exchange.request.chat.tool_choice.name
    if wrong_names := [call.name for call in exchange.response.tool_calls if call.name != name]:
        raise ProbeFailed(f"the model called {', '.join(wrong_names)}{exchange.place}, although it had to call {name}")


def _calls_nothing(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    check_expressed(exchanges, "tool_choice")
    if exchange.response.tool_calls:
        raise ProbeFailed(f"the answer calls {shown(exchange.response)}{exchange.place}, although no call is allowed")
    for path, _, word in FINISH_WORDS:
        if word in values_at(exchange, path):
            raise ProbeFailed(f"the finish reason{exchange.place} is {word}, but there is no call")
    if not exchange.response.content.strip():
        raise RuleNotShown(f"the answer is empty{exchange.place}")


def _markup(exchange: ProbeExchange) -> str:
    """Return the words for the call, or for the tag of one, in the text of an answer; "" if there is none."""
    text = exchange.response.content
    calls = parse(text, tools=ask.TOOLS).tool_calls if text else ()
    return f"a call in the format {calls[0].format}" if calls else control_token(text)


def _control_if_written(exchanges: Sequence[ProbeExchange]) -> ProbeRequest | None:
    """Return the same question without tools, if an answer so far contains a call as text."""
    return ask.WEATHER_CONTROL if any(map(_markup, exchanges)) else None


def _writes_no_call(exchanges: Sequence[ProbeExchange]) -> None:
    check_expressed(exchanges, "tool_choice")
    for exchange in exchanges[:2]:
        if markup := _markup(exchange):
            if _markup(exchanges[-1]):
                raise RuleNotShown(f"the model writes {markup} although it sees no tools: {shown(exchange.response)}")
            raise FaultSuspected(
                f"the text contains {markup}{exchange.place}, although no call is allowed: the server has to leave the "
                f"tools out of the prompt: {shown(exchange.response)}"
            )
    if not all(exchange.response.content.strip() for exchange in exchanges):
        raise RuleNotShown("an answer is empty")


def _may_answer_in_words(exchanges: Sequence[ProbeExchange]) -> None:
    # A weak model may call a tool by itself, but hardly for each of these requests.
    if all(exchange.response.tool_calls for exchange in exchanges):
        raise FaultSuspected(
            f"tools are called for requests that need none: {shown(exchanges[0].response)}; the server may force calls"
        )
    if not any(exchange.response.content.strip() for exchange in exchanges):
        raise RuleNotShown("the answers are empty")


CHOICE_PROBES: Final = (
    Probe(
        "free-choice",
        "tool choice",
        "A question is answered in words although tools are offered.",
        _SOURCE,
        (ask.COUNTED_TOOLS, ask.COUNT_BESIDE_TOOLS, ask.BRACKETS_BESIDE_TOOLS),
        _may_answer_in_words,
    ),
    Probe("required-choice", "tool choice", "A tool is called if one is required.", _SOURCE, (ask.REQUIRED,), _calls),
    Probe(
        "streamed-required-choice",
        "tool choice",
        "A tool is called in a stream if one is required.",
        _SOURCE,
        (ask.REQUIRED_STREAM,),
        _calls,
    ),
    Probe(
        "named-choice",
        "tool choice",
        "A tool that has to be called is called.",
        _SOURCE,
        (ask.NAMED,),
        _calls_the_named,
        smoke=True,
    ),
    Probe(
        "streamed-named-choice",
        "tool choice",
        "A tool that has to be called is called in a stream.",
        _SOURCE,
        (ask.NAMED_STREAM,),
        _calls_the_named,
    ),
    Probe(
        "no-choice", "tool choice", "No tool is called if calls are forbidden.", _SOURCE, (ask.NONE,), _calls_nothing
    ),
    Probe(
        "streamed-no-choice",
        "tool choice",
        "No tool is called in a stream if calls are forbidden.",
        _SOURCE,
        (ask.NONE_STREAM,),
        _calls_nothing,
    ),
    Probe(
        "no-choice-text",
        "tool choice",
        "No call is written into the text if calls are forbidden.",
        _SOURCE,
        (ask.WEATHER_QUESTION, ask.WEATHER_QUESTION_STREAM, _control_if_written),
        _writes_no_call,
    ),
)
"""The probes of the tool choice."""

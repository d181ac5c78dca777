"""Probes of several requests at the same time: each answer has to be the one to its own request."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from toolwire.probes.judging import REFERENCE
from toolwire.probes.probe import Probe, ProbeFailed, RuleNotShown
from toolwire.probes.probe_exchange import ProbeExchange, ProbeRequest
from toolwire.probes.probe_requests import NOTE, call_request, chat

_PAIRS: Final = (("walnut", "glacier"), ("trumpet", "cactus"), ("lantern", "pigeon"), ("velvet", "anchor"))
"""The words of each answer, which are too rare for a model to write by itself in the answer to another request."""
_ENOUGH_TOKENS: Final = 60
"""Tokens that are enough for an answer: a weak model repeats the words without end."""


def _repeated(number: int, pair: tuple[str, str]) -> ProbeRequest:
    """Return the request for a stream of two words in turn, as text or in the arguments of a call."""
    id, text = f"at-once-{number}", " ".join(pair * 5)
    if number % 2 == 0:
        return ProbeRequest(id, chat(f"Repeat exactly: {text}", stream=True), enough_tokens=_ENOUGH_TOKENS)
    arguments = {"title": pair[0], "text": text}
    request = call_request(id, NOTE, arguments, tool_choice=NOTE.name, stream=True)
    return replace(request, enough_tokens=_ENOUGH_TOKENS)


def _words_of(exchange: ProbeExchange) -> set[str]:
    response = exchange.response
    calls = [json.dumps(dict(call.arguments)) for call in response.all_calls]
    return set(re.findall(r"[a-z]+", " ".join([response.content, *calls]).lower()))


def _do_not_mix(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange, pair in zip(exchanges, _PAIRS, strict=True):
        foreign = {word for other_pair in _PAIRS if other_pair is not pair for word in other_pair}
        if mixed := sorted(_words_of(exchange) & foreign):
            raise ProbeFailed(
                f"the stream for the words {' and '.join(pair)} contains {' and '.join(mixed)}, which another request "
                "at the same time asked for"
            )
    for exchange, pair in zip(exchanges, _PAIRS, strict=True):
        if not _words_of(exchange) & set(pair):
            raise RuleNotShown(f"the model did not repeat the words {' and '.join(pair)}")


LOAD_PROBES: Final = (
    Probe(
        "streams-at-once",
        "streams",
        "Streams at the same time do not mix.",
        f"{REFERENCE}-streaming/streaming",
        tuple(_repeated(number, pair) for number, pair in enumerate(_PAIRS)),
        _do_not_mix,
        at_once=True,
    ),
)
"""The probes of several requests at the same time."""

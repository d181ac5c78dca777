"""Probes of the conversation after a call: ids come back, results, errors and images are accepted and read."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Callable, Sequence
from struct import pack
from typing import Final

from toolwire.messages import FinishReason, ImagePart, ToolCall, ToolResult
from toolwire.probes import probe_requests as ask
from toolwire.probes.judging import GUIDE, calls_in, check_readable, check_taken, shown
from toolwire.probes.probe import FaultSuspected, Probe, ProbeFailed, RuleNotShown, Step
from toolwire.probes.probe_exchange import ProbeExchange, ProbeRequest, first_with_calls

_SOURCE: Final = f"{GUIDE}#handling-function-calls"


def _image_of(color: tuple[int, int, int], size: int = 64) -> ImagePart:
    """Return a PNG of one color."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))

    header = pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    rows = (b"\x00" + bytes(color) * size) * size
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return ImagePart(b64encode(data).decode("ascii"), "image/png")


_PICTURE: Final = ProbeRequest(
    "image-result",
    ask.chat(
        "Which color does the picture in the result have? Answer with one word.",
        *ask.TOOLS,
        before=ask.history(
            (
                ToolCall(ask.WEATHER.name, dict(ask.PARIS), "call_a1"),
                ToolResult("call_a1", ask.WEATHER.name, "The map:", images=(_image_of((255, 0, 0)),)),
            )
        ),
    ),
    may_fail=True,
)


def _own_call_answered(exchanges: Sequence[ProbeExchange]) -> ProbeRequest | None:
    """Return the request that gives the calls of an answer their results; None without calls."""
    exchange = first_with_calls(exchanges)
    if exchange is None:
        return None
    messages = ask.continued(exchange, f"Rain. The code is {ask.CODE}.")
    return ProbeRequest("own-result", ask.chat("Which code is in the result?", *ask.TOOLS, before=messages))


def _accepts_own_ids(exchanges: Sequence[ProbeExchange]) -> None:
    if exchanges[-1].request.id != "own-result":
        raise RuleNotShown(f"the model did not make the call; it answered {shown(exchanges[-1].response)}")
    _accepts(exchanges[-1:])


def _accepts(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        check_readable(exchange)


def _unless_read(exchanges: Sequence[ProbeExchange]) -> ProbeRequest | None:
    return None if ask.CODE in exchanges[0].response.content else ask.RESULT_CONTROL


def _with_control(request: ProbeRequest) -> tuple[Step, ...]:
    """Return the requests of a probe that looks for a code in a result: the second asks for the code in plain text."""
    return (request, _unless_read)


def _reads(what: str) -> Callable[[Sequence[ProbeExchange]], None]:
    """Return the judge of an answer that has to contain the code."""

    def judge(exchanges: Sequence[ProbeExchange]) -> None:
        exchange = exchanges[0]
        check_readable(exchange)
        response = exchange.response
        if ask.CODE in response.content:
            return
        # A model that asks the tool again has not shown that it cannot read the result; the call may still be text.
        asks_again = response.tool_calls or calls_in(response.content, exchange)
        if asks_again or response.finish_reason is FinishReason.LENGTH:
            raise RuleNotShown(f"the model did not answer the question: {shown(response)}")
        if ask.CODE not in exchanges[1].response.content:
            raise RuleNotShown(f"the model does not find the code in plain text either: {shown(response)}")
        raise FaultSuspected(f"the model does not know the code in {what}: {shown(response)}")

    return judge


def _belongs_to_its_call(exchanges: Sequence[ProbeExchange]) -> None:
    first, second, turned = exchanges
    check_taken(turned, "another order of results", refused="the server takes results only in the order of the calls")
    # A model that always names the last code, or is confused by two of them, shows nothing.
    for exchange, code in ((first, ask.OTHER_CODE), (second, ask.CODE)):
        if _codes(exchange) != {code}:
            raise RuleNotShown(f"the model does not tell two results apart: {shown(exchange.response)}")
    if _codes(turned) == {ask.OTHER_CODE}:
        raise FaultSuspected(
            f"the model reads the result of another call if results arrive in another order than their calls: "
            f"{shown(turned.response)}"
        )
    if _codes(turned) != {ask.CODE}:
        raise RuleNotShown(f"the model did not answer the question: {shown(turned.response)}")


def _codes(exchange: ProbeExchange) -> set[str]:
    return {code for code in (ask.CODE, ask.OTHER_CODE) if code in exchange.response.content}


def _takes_image(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    if exchange.error:
        # A model without a picture encoder is not a fault of the server, whatever its status is.
        if exchange.status < 500 or any(word in exchange.error.lower() for word in ("image", "multimodal", "mmproj")):
            raise RuleNotShown(f"the server takes no images: {exchange.error}")
        raise ProbeFailed(f"an image in a result is an error of the server: {exchange.error}")
    if exchange.lost("image", "result"):
        raise RuleNotShown(f"{exchange.api.name} has no words for images in results")
    check_readable(exchange)
    if "red" not in exchange.response.content.lower():
        raise RuleNotShown(f"the image is accepted, but the model does not see its color: {shown(exchange.response)}")


RESULT_PROBES: Final = (
    Probe(
        "own-ids-accepted",
        "results",
        "A call can be sent back as it arrived, with its id.",
        _SOURCE,
        (*ask.ONE_CALL, _own_call_answered),
        _accepts_own_ids,
    ),
    Probe(
        "result-returned",
        "results",
        "The model reads the result of a call.",
        _SOURCE,
        _with_control(ask.RESULT),
        _reads("the result"),
        smoke=True,
    ),
    Probe(
        "two-results",
        "results",
        "The model reads the results of two calls of one answer.",
        _SOURCE,
        _with_control(ask.TWO_RESULTS),
        _reads("the second result"),
    ),
    Probe(
        "result-ids",
        "results",
        "A result belongs to the call with its id, in whatever order the results are.",
        _SOURCE,
        (ask.FIRST_OF_TWO_RESULTS, ask.TWO_RESULTS, ask.RESULTS_REVERSED),
        _belongs_to_its_call,
        frozenset(("openai_chat", "mistral", "anthropic_messages", "openai_responses")),
    ),
    Probe(
        "error-result",
        "results",
        "The model reads the error of a call.",
        _SOURCE,
        _with_control(ask.ERROR_RESULT),
        _reads("the error"),
    ),
    Probe(
        "empty-result", "results", "The result of a call may be an empty text.", _SOURCE, (ask.EMPTY_RESULT,), _accepts
    ),
    Probe(
        "words-and-call",
        "results",
        "A message of the model may contain text and a call.",
        _SOURCE,
        (ask.WORDS_AND_CALL,),
        _accepts,
    ),
    Probe(
        "image-result",
        "results",
        "A result may contain an image, or is refused with a reason.",
        "https://platform.openai.com/docs/guides/images-vision",
        (_PICTURE,),
        _takes_image,
    ),
)
"""The probes of results."""

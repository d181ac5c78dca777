"""Probes of answers in words: their content, their finish reason, their end and their tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from toolwire.messages import FinishReason
from toolwire.probes import probe_requests as ask
from toolwire.probes.judging import (
    REFERENCE,
    check_expressed,
    check_finish,
    check_finish_word,
    check_readable,
    check_taken,
    check_whole_characters,
    control_token,
    reported_usage,
    shown,
)
from toolwire.probes.probe import FaultSuspected, Probe, ProbeFailed, RuleNotShown
from toolwire.probes.probe_exchange import ProbeExchange

_CHARACTERS: Final = 12
"""Characters that a token has at most, on the average of an answer."""
_OBJECT: Final = f"{REFERENCE}/object"
_STREAM: Final = f"{REFERENCE}-streaming/streaming"


def _answers_in_words(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        check_readable(exchange)
        if exchange.response.tool_calls:
            raise ProbeFailed(f"the answer calls a tool{exchange.place} although none is offered")
        if not exchange.response.content.strip():
            if exchange.response.finish_reason is FinishReason.LENGTH:
                raise RuleNotShown("the answer was cut before any text; --max-tokens allows longer ones")
            raise ProbeFailed(f"the answer is empty{exchange.place}")


def _is_as_long_in_a_stream(exchanges: Sequence[ProbeExchange]) -> None:
    unstreamed = exchanges[0].response
    if ask.LAST_NUMBER not in unstreamed.content or unstreamed.finish_reason is not FinishReason.STOP:
        raise RuleNotShown(f"the model did not write all numbers: {shown(unstreamed)}")
    numbers = re.findall(r"\d+", unstreamed.content)
    for streamed in exchanges[1:]:
        content, tools = streamed.response.content, " beside tools" if streamed.request.chat.tools else ""
        if ask.LAST_NUMBER not in content:
            # Beside tools, the prompt is another one, for which a weak model may write less.
            if tools:
                continue
            raise FaultSuspected(f"the stream ends early, and the whole answer does not: {shown(streamed.response)}")
        in_stream = re.findall(r"\d+", content)
        if lost := set(numbers) - set(in_stream):
            raise FaultSuspected(
                f"the stream{tools} lacks {len(lost)} of the {len(set(numbers))} numbers of the whole answer"
            )
        repeated = len(in_stream) - len(set(in_stream))
        if repeated and len(numbers) == len(set(numbers)):
            raise FaultSuspected(f"the stream{tools} repeats {repeated} numbers that the whole answer has once")


def _keeps_line_ends(exchanges: Sequence[ProbeExchange]) -> None:
    at_once, in_stream = (exchange.response.content for exchange in exchanges)
    on_lines = re.compile(r"(?<!\d)" + r"[ \t]*\n\s*".join(ask.LINES))
    if not on_lines.search(at_once):
        raise RuleNotShown(f"the model did not write a number on each line: {shown(exchanges[0].response)}")
    if on_lines.search(in_stream):
        return
    # A model that separates the numbers in another way does not let them run together.
    match = re.search(r"\s*".join(ask.LINES), in_stream)
    if match and len(match[0].split()) < len(ask.LINES):
        raise FaultSuspected(f"line ends are missing in a stream: {shown(exchanges[1].response)}")
    raise RuleNotShown(f"the model wrote something else in a stream: {shown(exchanges[1].response)}")


def _keeps_brackets(exchanges: Sequence[ProbeExchange]) -> None:
    expected = ask.BRACKETS.replace(" ", "")
    at_once, in_stream = ("".join(exchange.response.content.split()) for exchange in exchanges)
    if expected not in at_once:
        raise RuleNotShown(f"the model did not repeat the text: {shown(exchanges[0].response)}")
    streamed = exchanges[1].response
    if streamed.tool_calls:
        raise RuleNotShown(f"the model called a tool: {shown(streamed)}")
    if expected not in in_stream:
        raise FaultSuspected(f"the text arrives whole, but not in a stream: {shown(streamed)}")


def _stops(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        check_finish_word(exchange)
        check_finish(exchange, FinishReason.STOP)


def _has_no_control_tokens(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        if token := control_token(exchange.response.content):
            raise ProbeFailed(f"the text contains {token!r}{exchange.place}: {shown(exchange.response)}")


def _keeps_characters(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    check_whole_characters(exchange)
    content = exchange.response.content
    if "\ufffd" in content and "\ufffd" not in ask.ACCENTS:
        raise ProbeFailed(f"characters arrive as U+FFFD: {shown(exchange.response)}")
    # A server that reads UTF-8 as one of these encodings sends two or three characters for each one.
    for encoding in ("latin-1", "cp1252"):
        for word in ask.ACCENTS.split(", "):
            if word.encode().decode(encoding, "replace") in content:
                raise ProbeFailed(f"the text was decoded as {encoding}, not as UTF-8: {shown(exchange.response)}")
    if not any(word in content for word in ask.ACCENTS.split(", ")):
        raise RuleNotShown(f"the model did not repeat the text: {shown(exchange.response)}")


def _says_that_it_was_cut(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    check_expressed(exchanges, "max_tokens")
    check_finish_word(exchange)
    response, usage = exchange.response, reported_usage(exchange)
    if response.finish_reason is FinishReason.LENGTH:
        return
    # A model may stop by itself before the end of the list. That says nothing about the finish reason.
    if usage is not None and usage.output_tokens < ask.MAX_CUT:
        raise RuleNotShown(f"the model stopped before the maximum length: {shown(response)}")
    if usage is None and len(response.content) < ask.MAX_CUT:
        raise RuleNotShown(f"the model may have stopped before the maximum length: {shown(response)}")
    raise ProbeFailed(
        f"the answer reached its maximum length, but the finish reason{exchange.place} is "
        f"{response.finish_reason.value}"
    )


def _is_not_longer(exchanges: Sequence[ProbeExchange]) -> None:
    check_expressed(exchanges, "max_tokens")
    for exchange in exchanges:
        usage = reported_usage(exchange)
        limit = exchange.request.chat.max_tokens or 0
        if usage is not None and usage.output_tokens > limit:
            raise ProbeFailed(
                f"the answer has {usage.output_tokens} tokens{exchange.place}, although {limit} are allowed"
            )
        if len(exchange.response.content) > _CHARACTERS * limit:
            raise ProbeFailed(
                f"the answer has {len(exchange.response.content)} characters{exchange.place}, although only {limit} "
                "tokens are allowed"
            )


def _is_not_longer_by_other_name(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    other_name = "the other name of the maximum length"
    check_taken(exchange, other_name, refused=f"the server refuses {other_name}")
    name = "max_tokens" if b'"max_tokens"' in exchange.sent else "max_completion_tokens"
    try:
        _is_not_longer(exchanges)
    except ProbeFailed as error:
        raise ProbeFailed(f"{name} is ignored: {error}") from None
    if exchange.response.finish_reason is not FinishReason.LENGTH:
        raise RuleNotShown(f"the model stopped before the maximum length: {shown(exchange.response)}")


def _ends_before_stop_word(exchanges: Sequence[ProbeExchange]) -> None:
    check_expressed(exchanges, "stop")
    for exchange in exchanges:
        if ask.STOP_WORD in exchange.response.content:
            raise ProbeFailed(f"the text contains the word that ends it{exchange.place}: {shown(exchange.response)}")
    for exchange in exchanges:
        if "banana" not in exchange.response.content:
            raise RuleNotShown(f"the model did not repeat the text{exchange.place}: {shown(exchange.response)}")
        check_finish(exchange, FinishReason.STOP)


def _reports_tokens(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        if reported_usage(exchange) is None:
            raise ProbeFailed(f"the tokens of the request or of the answer are missing{exchange.place}")


def _counts_input_equally(exchanges: Sequence[ProbeExchange]) -> None:
    at_once, in_stream = (reported_usage(exchange) for exchange in exchanges)
    if at_once is None or in_stream is None:
        raise RuleNotShown("no tokens are reported")
    # Some templates add a token or two for a stream; whole messages are more.
    if abs(at_once.input_tokens - in_stream.input_tokens) > 2:
        raise ProbeFailed(
            f"the same request has {at_once.input_tokens} input tokens as a whole, and {in_stream.input_tokens} in a "
            "stream"
        )


def _counts_output(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    usage, response = reported_usage(exchange), exchange.response
    if usage is None:
        raise RuleNotShown("no tokens are reported")
    length = len(response.content) + len(response.reasoning)
    if length < 80:
        raise RuleNotShown(f"the answer is too short: {shown(response)}")
    # The lower bound is generous: no tokenizer writes so many characters in a token, and none several tokens for one.
    # Reasoning is counted whole, but some servers show none of it, or a summary.
    is_too_many = not (response.reasoning or usage.reasoning_tokens) and usage.output_tokens > length + 50
    if usage.output_tokens < length / _CHARACTERS or is_too_many:
        raise ProbeFailed(f"the answer has {length} characters, but {usage.output_tokens} tokens are reported")


ANSWER_PROBES: Final = (
    Probe(
        "plain-answer",
        "answers",
        "A question is answered in words.",
        _OBJECT,
        (ask.PLAIN,),
        _answers_in_words,
        smoke=True,
    ),
    Probe(
        "streamed-answer",
        "answers",
        "A question is answered in words in a stream.",
        _STREAM,
        (ask.PLAIN_STREAM,),
        _answers_in_words,
    ),
    Probe(
        "stop-reason",
        "answers",
        "An answer in words says that the model stopped.",
        _OBJECT,
        (ask.PLAIN, ask.PLAIN_STREAM),
        _stops,
    ),
    Probe(
        "clean-text",
        "answers",
        "No control tokens of the model are in the text.",
        _OBJECT,
        (ask.PLAIN, ask.PLAIN_STREAM, ask.COUNT_STREAM),
        _has_no_control_tokens,
    ),
    Probe(
        "text-characters",
        "answers",
        "Characters outside ASCII arrive whole, also where a stream is split.",
        _STREAM,
        (ask.ACCENTS_STREAM,),
        _keeps_characters,
    ),
    Probe(
        "brackets",
        "answers",
        "Text that looks like the beginning of a call arrives in a stream too.",
        _STREAM,
        (ask.BRACKETS_BESIDE_TOOLS, ask.BRACKETS_STREAM),
        _keeps_brackets,
    ),
    Probe(
        "stop-word",
        "answers",
        "The text ends before the word that is to stop it.",
        f"{REFERENCE}/create#chat-create-stop",
        (ask.STOP, ask.STOP_STREAM),
        _ends_before_stop_word,
    ),
    Probe(
        "cut-answer",
        "answers",
        "An answer that reaches the maximum length says so.",
        _OBJECT,
        (ask.CUT,),
        _says_that_it_was_cut,
        smoke=True,
    ),
    Probe(
        "cut-stream",
        "answers",
        "A stream that reaches the maximum length says so.",
        _STREAM,
        (ask.CUT_STREAM,),
        _says_that_it_was_cut,
    ),
    Probe(
        "long-stream",
        "answers",
        "A long answer arrives whole in a stream too.",
        _STREAM,
        (ask.COUNT, ask.COUNT_STREAM, ask.COUNT_BESIDE_TOOLS),
        _is_as_long_in_a_stream,
    ),
    Probe(
        "maximum-length",
        "answers",
        "No answer is longer than the maximum length.",
        f"{REFERENCE}/create#chat-create-max_completion_tokens",
        (ask.CUT, ask.CUT_STREAM),
        _is_not_longer,
    ),
    Probe(
        "both-maximums",
        "answers",
        "The maximum length counts as max_tokens and as max_completion_tokens, or is refused with a reason.",
        f"{REFERENCE}/create#chat-create-max_completion_tokens",
        (ask.CUT_BY_OTHER_NAME,),
        _is_not_longer_by_other_name,
        frozenset(("openai_chat",)),
    ),
    Probe(
        "streamed-lines",
        "answers",
        "The line ends of a text arrive in a stream too.",
        _STREAM,
        (ask.LINES_WHOLE, ask.LINES_STREAM),
        _keeps_line_ends,
    ),
    Probe("usage", "tokens", "An answer reports its tokens.", _OBJECT, (ask.PLAIN,), _reports_tokens, smoke=True),
    Probe(
        "streamed-usage",
        "tokens",
        "A streamed answer reports its tokens.",
        f"{REFERENCE}/create#chat-create-stream_options",
        (ask.CALL_STREAM,),
        _reports_tokens,
        smoke=True,
    ),
    Probe(
        "usage-input",
        "tokens",
        "The same request has the same tokens as a whole and in a stream.",
        _OBJECT,
        (ask.PLAIN, ask.PLAIN_STREAM),
        _counts_input_equally,
    ),
    Probe(
        "usage-output",
        "tokens",
        "The tokens of an answer fit the length of its text.",
        _OBJECT,
        (ask.COUNT_STREAM,),
        _counts_output,
    ),
)
"""The probes of answers and of usage."""

"""Checks that several judges share, and the words in which they quote an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from toolwire.client.response_body import json_of
from toolwire.messages import FinishReason, ParsedResponse, ToolCall, Usage, call_id
from toolwire.probes.answer_members import value_at
from toolwire.probes.probe import FaultSuspected, ProbeFailed, RuleNotShown
from toolwire.probes.probe_exchange import SEED, ProbeExchange, first_with_calls
from toolwire.providers.parsing import parse
from toolwire.text.truncate import shorten
from toolwire.tools import ToolDefinition

GUIDE: Final = "https://platform.openai.com/docs/guides/function-calling"
REFERENCE: Final = "https://platform.openai.com/docs/api-reference/chat"
ERRORS: Final = "https://platform.openai.com/docs/guides/error-codes"
STRUCTURED: Final = "https://platform.openai.com/docs/guides/structured-outputs"
FINISH_WORDS: Final = (
    ("choices.0.finish_reason", "stop", "tool_calls"),
    ("stop_reason", "end_turn", "tool_use"),
    ("delta.stop_reason", "end_turn", "tool_use"),
)
"""The places of finish reasons, the one of an answer in words, and the one of an answer with calls."""
_CHAT_REASONS: Final = frozenset(("stop", "length", "tool_calls", "content_filter", "function_call"))
"""The finish reasons of Chat Completions."""
_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")
_MAX_SHOWN: Final = 200
"""Maximum length of an answer's text in a reason, in characters."""
_TOKENS: Final = re.compile(
    r"<\|[a-z_]{2,30}\|>|</?(?:s|tool_call|tool_response|function_call|think|thinking)>|\[/?(?:INST|TOOL_CALLS)\]"
    r"|<｜[^｜]{2,30}｜>|<(?:start|end)_of_turn>"
)
"""Control tokens of models, and the tags of calls and of reasoning."""


def exchange_with_calls(exchanges: Sequence[ProbeExchange]) -> ProbeExchange:
    """Return the first exchange in whose answer the model calls a tool.

    Raises:
        ProbeFailed: the calls are in the text, or in the reasoning, or cannot be read.
        RuleNotShown: there are none.
    """
    exchange = first_with_calls(exchanges)
    if exchange is not None:
        return exchange
    # Without a call, the reason may be a parser that is not set, which is no weakness of the model.
    for exchange in exchanges:
        check_no_hidden_call(exchange)
        check_readable(exchange)
    raise no_call(exchanges[-1])


def calls_in(text: str, exchange: ProbeExchange) -> tuple[ToolCall, ...]:
    """Return the calls of offered tools in a text of an answer, in any format; none if the request offers no tools."""
    tools = exchange.request.chat.tools  # without any, a call of any name would be one
    return parse(text, tools=tools).tool_calls if text and tools else ()


def check_not_in_text(exchange: ProbeExchange) -> None:
    """Check that no call of an answer is also in its text or in its reasoning.

    Raises:
        ProbeFailed: one is.
    """
    response = exchange.response
    for where, text in (("text", response.content), ("reasoning", response.reasoning)):
        copies = calls_in(text, exchange)
        if any(
            (copy.name, copy.arguments) == (call.name, call.arguments)
            for copy in copies
            for call in response.tool_calls
        ):
            raise ProbeFailed(f"the call is also in the {where}{exchange.place}, in the format {copies[0].format}")
        # Servers that make a model write only the arguments of a named tool may send them as text too.
        if text and json_of(text.encode("utf-8", "replace")) in [call.arguments for call in response.tool_calls]:
            raise ProbeFailed(f"the arguments of the call are also in the {where}{exchange.place}: {text!r:.100}")


def no_call(exchange: ProbeExchange) -> RuleNotShown:
    """Return the error for an answer without the call that was asked for."""
    if exchange.response.finish_reason is FinishReason.LENGTH:
        return RuleNotShown("the answer was cut before the call; --max-tokens allows longer ones")
    return RuleNotShown(f"the model did not make the call{exchange.place}; it answered {shown(exchange.response)}")


def check_no_hidden_call(exchange: ProbeExchange) -> None:
    """Check that no call to an offered tool is left in the text or in the reasoning of an answer without calls.

    Raises:
        ProbeFailed: one is.
    """
    response = exchange.response
    if response.tool_calls:
        return
    for where, text in (("text", response.content), ("reasoning", response.reasoning)):
        if calls := calls_in(text, exchange):
            raise ProbeFailed(
                f"the call is in the {where}{exchange.place}, in the format {calls[0].format}: the server does not "
                "read this model's calls; set its parser of tool calls"
            )


def check_readable(exchange: ProbeExchange) -> None:
    """Check that everything in an answer can be read, and that no call is broken off.

    Raises:
        FaultSuspected: a part cannot be read; models can write broken arguments too.
        ProbeFailed: the call is not complete although nothing stopped the model.
    """
    response = exchange.response
    provider = [problem for problem in response.problems if problem.kind == "provider_error"]
    if provider:
        raise ProbeFailed(f"the answer is an error{exchange.place}: {provider[0].message}")
    if response.finish_reason is FinishReason.LENGTH:
        return
    if response.incomplete:
        name = response.incomplete[0].name or "a tool"
        raise FaultSuspected(f"the call of {name} is not complete{exchange.place}")
    if response.problems:
        raise FaultSuspected(f"a part of the answer cannot be read{exchange.place}: {response.problems[0].message}")


def check_finish(exchange: ProbeExchange, *expected: FinishReason) -> None:
    """Check the finish reason of an answer.

    Raises:
        ProbeFailed: it is another.
        RuleNotShown: the answer was cut.
    """
    actual = exchange.response.finish_reason
    if actual in expected:
        return
    if actual is FinishReason.LENGTH and cut_is_credible(exchange):
        raise RuleNotShown(f"the answer was cut{exchange.place}; --max-tokens allows longer ones")
    raise ProbeFailed(f"the finish reason{exchange.place} is {actual.value}, not {expected[0].value}")


def check_finish_word(exchange: ProbeExchange) -> None:
    """Check that Chat Completions has the finish reason: servers pass on words of engines and of other APIs.

    Raises:
        ProbeFailed: it has not; Toolwire knows many of these words, and other clients do not.
    """
    if exchange.api.kind != "openai_chat":
        return
    for reason in values_at(exchange, "choices.0.finish_reason"):
        if isinstance(reason, str) and reason and reason not in _CHAT_REASONS:
            raise ProbeFailed(f"the finish reason{exchange.place} is {reason!r:.80}, which is none of this API")


def values_at(exchange: ProbeExchange, path: str) -> list[Any]:
    """Return the values at a path of an answer, as the server wrote them; Toolwire corrects some when it reads it."""
    values = [frame.value for frame in exchange.frames] if exchange.request.chat.stream else [exchange.json]
    return [value_at(value, path) for value in values]


def cut_is_credible(exchange: ProbeExchange) -> bool:
    """Return whether an answer is so long that it may have reached its maximum length."""
    usage = reported_usage(exchange)
    limit = exchange.request.chat.max_tokens
    # The maximum of a request without one is the user's, and small ones are common on slow machines.
    return limit is None and (usage is None or usage.output_tokens >= _LONG_ANSWER)


_LONG_ANSWER: Final = 100
"""Tokens from which an answer may have reached a maximum length that the user chose."""


def reported_usage(exchange: ProbeExchange) -> Usage | None:
    """Return the tokens that the server reports; None if it reports none."""
    usage = exchange.response.usage
    if usage is None or usage.estimated or not usage.input_tokens or not usage.output_tokens:
        return None
    return usage


def check_offered(exchange: ProbeExchange) -> tuple[ToolCall, ...]:
    """Check that each call is one of an offered tool, and return the calls.

    Raises:
        ProbeFailed: one is not.
    """
    names = [tool.name for tool in exchange.request.chat.tools]
    for call in exchange.response.tool_calls:
        if call.name not in names:
            raise ProbeFailed(f"the call is one of {call.name!r}{exchange.place}, which is not offered")
    return exchange.response.tool_calls


def own_ids(exchange: ProbeExchange) -> list[str]:
    """Return the ids that the server gave the calls of an answer; "" for a call without one."""
    return [
        "" if call.id == call_id(SEED, index, call.name) else call.id
        for index, call in enumerate(exchange.response.tool_calls)
    ]


def control_token(text: str) -> str:
    """Return the first control token of a model in a text, or ""."""
    match = _TOKENS.search(text)
    return match[0] if match else ""


def definition_of(exchange: ProbeExchange, call: ToolCall) -> ToolDefinition:
    """Return the definition of the tool that is called.

    Raises:
        ProbeFailed: it is not offered.
    """
    for tool in exchange.request.chat.tools:
        if tool.name == call.name:
            return tool
    raise ProbeFailed(f"the call is one of {call.name!r:.80}{exchange.place}, which is not offered")


def shown(response: ParsedResponse) -> str:
    """Return the text of an answer as a quotation of bounded length."""
    if response.tool_calls:
        return ", ".join(map(shown_call, response.tool_calls))
    return shorten(repr(response.content), _MAX_SHOWN)


def shown_call(call: ToolCall) -> str:
    """Return a call as a quotation of bounded length."""
    return shorten(f"{call.name} {call.arguments}", _MAX_SHOWN)


def check_whole_characters(exchange: ProbeExchange) -> None:
    """Check that no piece of a stream ends in the middle of a character.

    Raises:
        ProbeFailed: one does; many clients cannot write such a piece anywhere.
    """
    for frame in exchange.frames if exchange.request.chat.stream else ():
        if half := _HALF_CHARACTER.search(json.dumps(frame.value, ensure_ascii=False)):
            raise ProbeFailed(f"a piece of the stream contains {half[0]!r}, which is half of a character")


def check_taken(exchange: ProbeExchange, what: str, *, refused: str) -> None:
    """Check that a server takes a request that it may refuse with a reason.

    Args:
        exchange: the exchange of a request that may fail.
        what: what is in the request.
        refused: the words for a refusal.

    Raises:
        RuleNotShown: the server refuses it.
        ProbeFailed: it is an error of the server.
    """
    if 400 <= exchange.status < 500:
        raise RuleNotShown(f"{refused}: {exchange.error}")
    if exchange.error:
        raise ProbeFailed(f"{what} is an error of the server: {exchange.error}")


def check_expressed(exchanges: Iterable[ProbeExchange], *fields: str) -> None:
    """Check that the API has words for the parts of the requests that a rule is about.

    Raises:
        RuleNotShown: it has none.
    """
    for exchange in exchanges:
        if exchange.lost(*fields):
            raise RuleNotShown(f"{exchange.api.name} has no words for it")

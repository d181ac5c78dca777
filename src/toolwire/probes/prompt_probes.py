"""Probes of the prompt: every part of a request reaches the model.

The tokens that a server reports show it without the model: a longer part needs more of them. A server that shows its
prompts, as llama.cpp's does, is asked for one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from toolwire.messages import Message, ToolCall, ToolResult
from toolwire.probes import probe_requests as ask
from toolwire.probes.judging import GUIDE, REFERENCE, check_expressed, check_taken, reported_usage
from toolwire.probes.probe import Probe, ProbeFailed, RuleNotShown
from toolwire.probes.probe_exchange import ProbeExchange, ProbeRequest
from toolwire.tools import ToolDefinition

_MARKED_TOOL: Final = ToolDefinition(
    "look_up_word",
    "Mark-of-the-description",
    {
        "type": "object",
        "properties": {"word": {"type": "string", "description": "Mark-of-the-parameter"}},
        "required": ["word"],
    },
)
_MARKS: Final = {
    "the system message": "Mark-of-the-system",
    "the first question": "Mark-of-the-question",
    "the text beside the call": "Mark-of-the-words",
    "the argument of the call": "Mark-of-the-argument",
    "the result": "Mark-of-the-result",
    "the last question": "Mark-of-the-end",
}
"""The parts of the conversation in their order, and the words by which each is recognized in the prompt."""
_TOOL_MARKS: Final = {
    "the name of the tool": _MARKED_TOOL.name,
    "the description of the tool": "Mark-of-the-description",
    "the description of the parameter": "Mark-of-the-parameter",
}
_MARKED: Final = ask.chat(
    _MARKS["the last question"],
    _MARKED_TOOL,
    before=(
        Message("system", _MARKS["the system message"]),
        Message("user", _MARKS["the first question"]),
        Message(
            "assistant",
            (
                _MARKS["the text beside the call"],
                ToolCall(_MARKED_TOOL.name, {"word": _MARKS["the argument of the call"]}, "call_a1"),
            ),
        ),
        Message("tool", (ToolResult("call_a1", _MARKED_TOOL.name, _MARKS["the result"]),)),
    ),
)
PROMPT: Final = ProbeRequest("prompt", _MARKED, path="/apply-template", may_fail=True)
"""The request for a prompt, at the path of llama.cpp's server."""


_ALMOST: Final = 0.9
"""The share of the expected tokens from which a long text counts as whole."""


def _reaches_the_model(part: str, least: int = ask.ADDED) -> Callable[[Sequence[ProbeExchange]], None]:
    """Return the judge of two requests of which the second has a longer part."""

    def judge(exchanges: Sequence[ProbeExchange]) -> None:
        shorter, longer = (reported_usage(exchange) for exchange in exchanges)
        check_expressed(exchanges, "system", "description")
        if shorter is None or longer is None:
            raise RuleNotShown("no tokens are reported")
        # Cached tokens are part of the input here, so that a warm cache does not hide anything.
        if longer.input_tokens - shorter.input_tokens < least:
            raise ProbeFailed(
                f"{part} does not reach the model: with it, the request has {longer.input_tokens} input tokens, and "
                f"{shorter.input_tokens} without it"
            )

    return judge


def _long_result_reaches_the_model(exchanges: Sequence[ProbeExchange]) -> None:
    longest = exchanges[-1]
    long_result = "result of 10,000 characters"
    check_taken(longest, f"a {long_result}", refused=f"the server takes no {long_result}")
    usages = [usage for exchange in exchanges if (usage := reported_usage(exchange))]
    if len(usages) < len(exchanges):
        raise RuleNotShown("no tokens are reported")
    base, some, actual = (usage.input_tokens for usage in usages)
    if some - base < ask.ADDED:
        raise RuleNotShown("shorter results do not reach the model either")
    # The result repeats the same words, so that each repetition has the same tokens.
    expected = base + (some - base) * ask.MANY_REPETITIONS // ask.FEW_REPETITIONS
    if actual < expected * _ALMOST:
        raise ProbeFailed(f"a {long_result} is cut: the request has {actual} input tokens, not about {expected}")


def _parts_reach_the_model(place: str) -> Callable[[Sequence[ProbeExchange]], None]:
    """Return the judge of two requests of which the second has a list of two texts in a message or in a result."""

    def judge(exchanges: Sequence[ProbeExchange]) -> None:
        check_taken(exchanges[1], f"a {place} of two texts", refused=f"the server takes no lists of texts in a {place}")
        _reaches_the_model(f"one of two texts in a {place}")(exchanges)

    return judge


def _prompt_of(exchanges: Sequence[ProbeExchange]) -> str:
    (exchange,) = exchanges
    body = exchange.json
    prompt = body.get("prompt") if isinstance(body, dict) else None
    if not isinstance(prompt, str) or not 200 <= exchange.status < 300:
        raise RuleNotShown("the server does not show its prompts")
    return prompt


def _contains(*parts: str) -> Callable[[Sequence[ProbeExchange]], None]:
    """Return the judge of a prompt that has to contain these parts."""

    def judge(exchanges: Sequence[ProbeExchange]) -> None:
        prompt = _prompt_of(exchanges)
        missing = [part for part in parts if {**_MARKS, **_TOOL_MARKS}[part] not in prompt]
        if missing:
            raise ProbeFailed(f"the prompt does not contain {' and '.join(missing)}")

    return judge


def _is_in_order(exchanges: Sequence[ProbeExchange]) -> None:
    prompt = _prompt_of(exchanges)
    places = {part: prompt.find(mark) for part, mark in _MARKS.items() if mark in prompt}
    # Templates may put the system message before or after the tools, but keep the order of the messages.
    for (before, first), (after, second) in zip(list(places.items()), list(places.items())[1:], strict=False):
        if first > second:
            raise ProbeFailed(f"{after} is before {before} in the prompt")
    repeated = [part for part, mark in _MARKS.items() if prompt.count(mark) > 1]
    if repeated:
        raise ProbeFailed(f"{repeated[0]} is in the prompt {prompt.count(_MARKS[repeated[0]])} times")


def _counted(id: str, part: str, shorter: ProbeRequest, longer: ProbeRequest, source: str) -> Probe:
    title = f"{part[0].upper()}{part[1:]} reaches the model."
    return Probe(id, "prompt", title, source, (shorter, longer), _reaches_the_model(part))


_MESSAGES: Final = f"{REFERENCE}/create#chat-create-messages"
_TOOLS: Final = f"{GUIDE}#defining-functions"
_RESULTS: Final = f"{GUIDE}#handling-function-calls"
_TEMPLATE: Final = (
    "https://github.com/ggml-org/llama.cpp/tree/master/tools/server#post-apply-template-apply-chat-template"
)

PROMPT_PROBES: Final = (
    _counted("system-message", "the system message", ask.COUNTED, ask.COUNTED_SYSTEM, _MESSAGES),
    _counted(
        "system-beside-tools",
        "the system message beside tools",
        ask.COUNTED_TOOLS,
        ask.COUNTED_TOOLS_AND_SYSTEM,
        _MESSAGES,
    ),
    _counted("earlier-messages", "an earlier message", ask.COUNTED, ask.COUNTED_HISTORY, _MESSAGES),
    _counted("tools", "the definition of a tool", ask.COUNTED, ask.COUNTED_TOOLS, _TOOLS),
    _counted("description", "the description of a tool", ask.COUNTED_TOOLS, ask.COUNTED_DESCRIPTIONS, _TOOLS),
    _counted("parameter", "the description of a parameter", ask.COUNTED_TOOLS, ask.COUNTED_PROPERTIES, _TOOLS),
    _counted(
        "nested-parameter", "the description of a nested parameter", ask.COUNTED_TOOLS, ask.COUNTED_MEMBER, _TOOLS
    ),
    _counted("definitions", "a definition that a schema refers to", ask.COUNTED_TOOLS, ask.COUNTED_DEFINITION, _TOOLS),
    _counted("alternatives", "an alternative in a schema", ask.COUNTED_TOOLS, ask.COUNTED_ALTERNATIVE, _TOOLS),
    _counted("last-tool", "the last of 21 tools", ask.COUNTED_MANY, ask.COUNTED_LAST, _TOOLS),
    _counted("allowed-values", "the list of allowed values", ask.COUNTED_TOOLS, ask.COUNTED_VALUES, _TOOLS),
    _counted("result", "the result of a call", ask.COUNTED_RESULT, ask.COUNTED_LONG_RESULT, _RESULTS),
    Probe(
        "long-result",
        "prompt",
        "A result of 10,000 characters reaches the model, or is refused with a reason.",
        _RESULTS,
        (ask.COUNTED_RESULT, ask.COUNTED_LONG_WORDS, ask.COUNTED_LONGEST_RESULT),
        _long_result_reaches_the_model,
    ),
    _counted("error", "the error of a call", ask.COUNTED_RESULT, ask.COUNTED_ERROR, _RESULTS),
    _counted("call", "an earlier call with its arguments", ask.COUNTED_RESULT, ask.COUNTED_ARGUMENTS, _RESULTS),
    _counted("second-call", "the second of two earlier calls", ask.COUNTED_RESULT, ask.COUNTED_SECOND_CALL, _RESULTS),
    _counted("words-beside-call", "the text beside an earlier call", ask.COUNTED_RESULT, ask.COUNTED_WORDS, _RESULTS),
    Probe(
        "text-parts",
        "prompt",
        "Both texts of a message reach the model, or are refused with a reason.",
        _MESSAGES,
        (ask.COUNTED, ask.COUNTED_PARTS),
        _parts_reach_the_model("message"),
        frozenset(("openai_chat", "mistral")),
    ),
    Probe(
        "result-parts",
        "prompt",
        "Both texts of a result reach the model, or are refused with a reason.",
        _RESULTS,
        (ask.COUNTED_RESULT, ask.COUNTED_RESULT_PARTS),
        _parts_reach_the_model("result"),
        frozenset(("openai_chat",)),
    ),
    Probe(
        "template-messages", "prompt", "The prompt contains every message.", _TEMPLATE, (PROMPT,), _contains(*_MARKS)
    ),
    Probe(
        "template-tools",
        "prompt",
        "The prompt contains the tools with their descriptions.",
        _TEMPLATE,
        (PROMPT,),
        _contains(*_TOOL_MARKS),
    ),
    Probe(
        "template-order",
        "prompt",
        "The prompt contains each message once, in order.",
        _TEMPLATE,
        (PROMPT,),
        _is_in_order,
    ),
)
"""The probes of the prompt."""

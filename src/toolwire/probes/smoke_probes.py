"""The probes of `toolwire check --smoke`: a plain answer, calls, streams, results, usage and a wrong key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from toolwire.errors import ProviderError
from toolwire.events import response_parts
from toolwire.messages import FinishReason, Message, ParsedResponse, TextPart, ToolCall, ToolResult, call_id
from toolwire.probes.probe import Probe, ProbeFailed, ProbeSkipped
from toolwire.probes.probed_model import SEED, ProbedModel, ProbeRequest, ask
from toolwire.providers.parsing import parse
from toolwire.text.truncate import shorten
from toolwire.tools import ToolDefinition

SMOKE_PROBES: Final[list[Probe]] = []
"""The probes, in the order in which they run: a later one may use the answer to an earlier one's question."""

_GUIDE: Final = "https://platform.openai.com/docs/guides/function-calling"
_REFERENCE: Final = "https://platform.openai.com/docs/api-reference/chat"
_MAX_SHOWN: Final = 200
"""Maximum length of an answer's text in a reason, in characters."""
_WITHOUT_IDS: Final = frozenset(("gemini", "gemini_openapi", "ollama"))
"""APIs in which calls need no ids."""
_CITY: Final = {"type": "string", "description": "The name of the city."}
WEATHER: Final = ToolDefinition(
    "get_weather",
    "Return the weather forecast for a city.",
    {
        "type": "object",
        "properties": {"city": _CITY, "days": {"type": "integer", "description": "The number of days."}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
)
TIME: Final = ToolDefinition(
    "get_time",
    "Return the local time in a city.",
    {"type": "object", "properties": {"city": _CITY}, "required": ["city"], "additionalProperties": False},
)
_TOOLS: Final = (WEATHER, TIME)
PARIS: Final = {"city": "Paris", "days": 3}
ROME: Final = {"city": "Rome", "days": 5}
CODE: Final = "7419"
"""A number in the result of the call, which no model can guess."""


def _question(id: str, text: str, *, has_tools: bool = True, stream: bool = False, **options: Any) -> ProbeRequest:
    message = Message("user", (TextPart(text),))
    return ProbeRequest(id, (message,), _TOOLS if has_tools else (), stream, {"max_tokens": 2_000, **options})


_CALL_TEXT: Final = "Call get_weather once, with the city Paris and 3 days. Do not answer in words."
PLAIN: Final = _question("plain", "Reply with this one word: blue", has_tools=False)
CALL: Final = _question("call", _CALL_TEXT)
STREAMED: Final = _question("streamed", _CALL_TEXT, stream=True)
PARALLEL: Final = _question(
    "parallel",
    "Call get_weather twice in one answer: with the city Paris and 3 days, and with the city Rome and 5 days. "
    "Do not answer in words.",
)
NAMED: Final = _question("named", "What is the weather in Paris?", tool_choice="get_time")
CUT: Final = _question("cut", "Write the numbers from 1 to 200 in words.", has_tools=False, max_tokens=16)


def _smoke(
    id: str, title: str, source: str
) -> Callable[[Callable[[ProbedModel], Awaitable[None]]], Callable[[ProbedModel], Awaitable[None]]]:
    """Register a function as a smoke probe."""

    def register(check: Callable[[ProbedModel], Awaitable[None]]) -> Callable[[ProbedModel], Awaitable[None]]:
        SMOKE_PROBES.append(Probe(id, title, source, check, smoke=True))
        return check

    return register


@_smoke("plain-answer", "A question is answered in words.", f"{_REFERENCE}/object")
async def _plain_answer(model: ProbedModel) -> None:
    response = (await model.answer(PLAIN)).response
    _check_whole(response)
    _check_finish(response, FinishReason.STOP)
    if "blue" not in response.content.lower():
        raise ProbeFailed(f"the answer is {_shown(response)}, without the word that was asked for")


@_smoke("usage", "An answer reports its tokens.", f"{_REFERENCE}/object")
async def _usage(model: ProbedModel) -> None:
    _check_usage((await model.answer(PLAIN)).response)


@_smoke("cut-answer", "An answer that reaches the maximum length says so.", f"{_REFERENCE}/object")
async def _cut_answer(model: ProbedModel) -> None:
    answer = await model.answer(CUT)
    if any("max_tokens" in note.where for note in answer.notes):
        raise ProbeSkipped("the API has no maximum length")
    _check_finish(answer.response, FinishReason.LENGTH)


@_smoke("one-call", "A call has the name and the arguments that were asked for.", _GUIDE)
async def _one_call(model: ProbedModel) -> None:
    _check_calls((await model.answer(CALL)).response, PARIS)


@_smoke("call-ids", "Each call has an id of its own.", f"{_GUIDE}#handling-function-calls")
async def _call_ids(model: ProbedModel) -> None:
    if model.client.api.name in _WITHOUT_IDS:
        raise ProbeSkipped("the calls of this API need no ids")
    for question in (CALL, STREAMED, PARALLEL):
        calls = (await model.answer(question)).response.tool_calls
        made_up = [call.name for index, call in enumerate(calls) if call.id == call_id(SEED, index, call.name)]
        if made_up:
            raise ProbeFailed(f"a call of {made_up[0]} has no id{_place(question)}")
        if len({call.id for call in calls}) < len(calls):
            raise ProbeFailed(f"{len(calls)} calls of one answer have the same id{_place(question)}")


@_smoke("streamed-call", "A streamed call has the name and the arguments that were asked for.", f"{_GUIDE}#streaming")
async def _streamed_call(model: ProbedModel) -> None:
    _check_calls((await model.answer(STREAMED)).response, PARIS)


@_smoke("streamed-usage", "A streamed answer reports its tokens.", f"{_REFERENCE}/create#chat-create-stream_options")
async def _streamed_usage(model: ProbedModel) -> None:
    _check_usage((await model.answer(STREAMED)).response)


@_smoke("parallel-calls", "An answer can contain two calls.", f"{_GUIDE}#parallel-function-calling")
async def _parallel_calls(model: ProbedModel) -> None:
    _check_calls((await model.answer(PARALLEL)).response, PARIS, ROME)


@_smoke("result-returned", "The model reads the result of its call.", f"{_GUIDE}#handling-function-calls")
async def _result_returned(model: ProbedModel) -> None:
    response = (await model.answer(CALL)).response
    if not response.tool_calls:
        raise ProbeSkipped("the model made no call")
    results = tuple(ToolResult(call.id, call.name, f"Rain. The code is {CODE}.") for call in response.tool_calls)
    messages = (
        *CALL.messages,
        Message("assistant", response_parts(response)),
        Message("tool", results),
        Message("user", (TextPart("Which code does the result contain? Answer with the code."),)),
    )
    answer = (await model.answer(ProbeRequest("result", messages, _TOOLS, options={"max_tokens": 2_000}))).response
    _check_whole(answer)
    if CODE not in answer.content:
        raise ProbeFailed(f"the answer is {_shown(answer)}, without the code in the result")


@_smoke("named-choice", "A tool that has to be called is called.", f"{_GUIDE}#tool-choice")
async def _named_choice(model: ProbedModel) -> None:
    answer = await model.answer(NAMED)
    if any("tool_choice" in note.where for note in answer.notes):
        raise ProbeSkipped("the API cannot name the tool to call")
    _check_whole(answer.response)
    names = [call.name for call in answer.response.tool_calls]
    if names != [TIME.name]:
        actual = f"called {', '.join(names)}" if names else f"answered {_shown(answer.response)}"
        raise ProbeFailed(f"the model {actual} although it had to call {TIME.name}")


@_smoke("wrong-key", "A wrong key is refused.", "https://platform.openai.com/docs/guides/error-codes")
async def _wrong_key(model: ProbedModel) -> None:
    if model.wrong_client is None:
        raise ProbeSkipped(model.no_wrong_key)
    try:
        await ask(model.wrong_client, PLAIN)
    except ProviderError as error:
        # Gemini answers 400 with a message about the key.
        if error.status in (401, 403) or (error.status == 400 and "key" in str(error).lower()):
            return
        raise ProbeFailed(f"a wrong key gives another error: {error}") from error
    raise ProbeFailed("a wrong key is accepted")


def _check_whole(response: ParsedResponse) -> None:
    """Check that everything in an answer could be read."""
    if response.problems:
        raise ProbeFailed(f"a part of the answer cannot be read: {response.problems[0].message}")
    if response.incomplete:
        raise ProbeFailed(f"the call of {response.incomplete[0].name or 'a tool'} is not complete")


def _check_finish(response: ParsedResponse, expected: FinishReason) -> None:
    if response.finish_reason != expected:
        raise ProbeFailed(f"the finish reason is {response.finish_reason.value}, not {expected.value}")


def _check_usage(response: ParsedResponse) -> None:
    usage = response.usage
    if usage is None or usage.estimated or not usage.input_tokens or not usage.output_tokens:
        raise ProbeFailed("the tokens of the request or of the answer are missing")


def _check_calls(response: ParsedResponse, *expected: dict[str, Any]) -> None:
    """Check that an answer has calls of `get_weather` with these arguments, in any order, and no others."""
    _check_whole(response)
    calls = response.tool_calls
    if not calls:
        written = parse(response.content, tools=_TOOLS).tool_calls
        if written:
            raise ProbeFailed(
                f"the call is in the text, in the format {written[0].format}: the server does not read this model's "
                "calls; set its parser of tool calls"
            )
        raise ProbeFailed(f"there is no call; the answer is {_shown(response)}")
    if len(calls) != len(expected):
        raise ProbeFailed(f"there are {len(calls)} calls, not {len(expected)}")
    for call in calls:
        if call.name != WEATHER.name or call.arguments not in expected:
            raise ProbeFailed(f"the call is {_shown_call(call)}, which was not asked for")
    if len(expected) > 1 and any(call.arguments == calls[0].arguments for call in calls[1:]):
        raise ProbeFailed(f"the call {_shown_call(calls[0])} is there twice")
    _check_finish(response, FinishReason.TOOL_CALLS)


def _place(question: ProbeRequest) -> str:
    return " in a stream" if question.stream else ""


def _shown(response: ParsedResponse) -> str:
    return shorten(repr(response.content), _MAX_SHOWN)


def _shown_call(call: ToolCall) -> str:
    return shorten(f"{call.name} {call.arguments}", _MAX_SHOWN)

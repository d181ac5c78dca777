"""The requests of the probes, and the tools that they offer.

A request for a call gives the arguments as JSON, so that a weak model only has to copy them: a difference then shows
what the server does, and not what the model can do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from toolwire.events import response_parts
from toolwire.messages import Message, ToolCall, ToolResult
from toolwire.probes.probe_exchange import ProbeExchange, ProbeRequest
from toolwire.providers.request import ChatRequest, ToolChoice
from toolwire.tools import ToolDefinition

Arguments = Mapping[str, Any]


def closed_tool(name: str, description: str, properties: dict[str, Any], **more: Any) -> ToolDefinition:
    """Return a tool with these properties and no others; all are required but those in `optional`."""
    required = [name for name in properties if name not in more.get("optional", ())]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return ToolDefinition(name, description, {**schema, **more.get("schema", {})}, annotations=more.get("hints", {}))


_CITY: Final = {"type": "string", "description": "The name of the city."}
WEATHER: Final = closed_tool(
    "get_weather",
    "Return the weather forecast for a city.",
    {"city": _CITY, "days": {"type": "integer", "description": "The number of days."}},
)
TIME: Final = closed_tool("get_time", "Return the local time in a city.", {"city": _CITY})
NOTE: Final = closed_tool(
    "save_note",
    "Save a note.",
    {"title": {"type": "string"}, "text": {"type": "string"}},
)
REFRESH: Final = closed_tool("refresh", "Read the mailbox again. It has no parameters.", {})
TOOLS: Final = (WEATHER, TIME)
_NO_PARAMETERS: Final = {"type": "object", "properties": {}}
_ACTIONS: Final = tuple(
    ToolDefinition(f"action_{number}", f"Do action {number}.", _NO_PARAMETERS) for number in range(1, 21)
)
PARIS: Final = {"city": "Paris", "days": 3}
ROME: Final = {"city": "Rome", "days": 5}
CODE: Final = "7419"
"""A number in the conversation, which no model can guess."""
_PHRASE: Final = "The river runs past the old mill and the green hill. "
PHRASES: Final = 6
"""Number of phrases in the longer part of two requests whose input is compared."""
_LONG_TEXT: Final = _PHRASE * PHRASES
_LONG_WORDS: Final = " responsibilities international characteristics environment"


def chat(text: str, *tools: ToolDefinition, before: Sequence[Message] = (), **fields: Any) -> ChatRequest:
    """Return a request that ends with a text of the user."""
    return ChatRequest.of((*before, Message("user", text)), {"tools": tools, **fields})


def calling(
    *calls: tuple[ToolDefinition, Arguments], tools: Sequence[ToolDefinition] = (), **fields: Any
) -> ChatRequest:
    """Return a request that asks for these calls, after the messages `before`."""
    lines = [f"Call {tool.name} with these arguments: {json.dumps(value, ensure_ascii=False)}" for tool, value in calls]
    if len(calls) > 1:
        lines.insert(0, f"Make these {len(calls)} calls in one answer.")
    offered = tools or tuple({tool.name: tool for tool, _ in calls}.values())
    return chat("\n".join([*lines, "Do not answer in words."]), *offered, **fields)


def call_request(id: str, tool: ToolDefinition, arguments: Arguments, **fields: Any) -> ProbeRequest:
    """Return the request for one call, which says what its arguments are."""
    return ProbeRequest(id, calling((tool, arguments), **fields), arguments=arguments)


def streamed(request: ProbeRequest) -> ProbeRequest:
    """Return the same request for a stream."""
    return replace(request, id=f"{request.id}-stream", chat=replace(request.chat, stream=True))


def unless_called(request: ProbeRequest) -> Callable[[Sequence[ProbeExchange]], ProbeRequest | None]:
    """Return a step that sends a request if no answer so far contains a call."""

    def step(exchanges: Sequence[ProbeExchange]) -> ProbeRequest | None:
        return None if any(exchange.response.tool_calls for exchange in exchanges) else request

    return step


# -- answers in words ------------------------------------------------------------------------------------------------

PLAIN: Final = ProbeRequest("plain", chat("Reply with this one word: blue"))
PLAIN_STREAM: Final = streamed(PLAIN)
ACCENTS: Final = "Zürich, 東京, naïve, 🌧"
ACCENTS_STREAM: Final = ProbeRequest("accents-stream", chat(f"Repeat exactly: {ACCENTS}", stream=True))
BRACKETS: Final = "a < b, [c] {d} <e> (f) g"
"""A text with the characters that calls begin with."""
BRACKETS_BESIDE_TOOLS: Final = ProbeRequest("brackets", chat(f"Repeat exactly: {BRACKETS}", *TOOLS))
BRACKETS_STREAM: Final = streamed(BRACKETS_BESIDE_TOOLS)
LAST_NUMBER: Final = "40"
COUNT: Final = ProbeRequest(
    "count", chat(f"Write the numbers from 1 to {LAST_NUMBER}, with a space between two numbers."), enough_tokens=200
)
COUNT_STREAM: Final = streamed(COUNT)
LINES: Final = tuple(map(str, range(1, 13)))
"""The lines of an answer."""
LINES_WHOLE: Final = ProbeRequest(
    "lines", chat(f"Write the numbers from 1 to {LINES[-1]}, one number on each line."), enough_tokens=100
)
LINES_STREAM: Final = streamed(LINES_WHOLE)
MAX_CUT: Final = 16
"""Maximum length of an answer that is to be cut, in tokens."""
# Servers look for calls in the text if tools are offered, and some collect it for that.
COUNT_BESIDE_TOOLS: Final = replace(COUNT_STREAM, id="count-tools-stream", chat=replace(COUNT_STREAM.chat, tools=TOOLS))
CUT: Final = ProbeRequest("cut", chat("Write the numbers from 1 to 200 in words.", max_tokens=MAX_CUT))
CUT_STREAM: Final = streamed(CUT)


def _with_other_maximum(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body of Chat Completions with the maximum length under its other name."""
    names = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
    return {names.get(name, name): value for name, value in body.items()}


CUT_BY_OTHER_NAME: Final = ProbeRequest("cut-by-other-name", CUT.chat, change=_with_other_maximum, may_fail=True)
STOP_WORD: Final = "cherry"
STOP: Final = ProbeRequest(
    "stop", chat(f"Repeat exactly: apple banana {STOP_WORD} date", stop=(STOP_WORD,)), enough_tokens=200
)
STOP_STREAM: Final = streamed(STOP)

# -- calls -----------------------------------------------------------------------------------------------------------

CALL: Final = call_request("call", WEATHER, PARIS, tools=TOOLS)
CALL_STREAM: Final = streamed(CALL)
FORCED: Final = call_request("forced", WEATHER, PARIS, tools=TOOLS, tool_choice="get_weather")
FORCED_STREAM: Final = streamed(FORCED)
ONE_CALL: Final = (CALL, unless_called(FORCED))
"""The steps to an answer with a call: a model that makes none by itself has to make it."""
ONE_CALL_STREAM: Final = (CALL_STREAM, unless_called(FORCED_STREAM))
STREAMS: Final = (PLAIN_STREAM, CALL_STREAM)
PARALLEL: Final = ProbeRequest("parallel", calling((WEATHER, PARIS), (WEATHER, ROME), tools=TOOLS))
PARALLEL_STREAM: Final = streamed(PARALLEL)
PARALLEL_AGAIN: Final = replace(PARALLEL_STREAM, id="parallel-stream-again")
SINGLE: Final = ProbeRequest("single", calling((WEATHER, PARIS), (WEATHER, ROME), tools=TOOLS, parallel=False))
EMPTY: Final = ProbeRequest("empty", calling((REFRESH, {}), tool_choice="refresh"))
EMPTY_STREAM: Final = streamed(EMPTY)
EXACT_ARGUMENTS: Final = {"title": ACCENTS, "text": 'He said "no": C:\\temp\nThe second line {of} <b>two</b>'}
EXACT: Final = call_request("exact", NOTE, EXACT_ARGUMENTS, tool_choice="save_note")
EXACT_STREAM: Final = streamed(EXACT)
# Sentences, because a number has a token for each digit, and a slow model is to answer soon.
LONG_ARGUMENTS: Final = {
    "title": "The harbour",
    "text": (
        "The ships leave the harbour in the morning, when the wind comes from the land. The old men sit on the wall "
        "and repair their nets. At noon the market closes, and the streets become quiet. In the evening the ships "
        "return with fish, and the children wait for them at the bridge."
    ),
}
LONG: Final = call_request("long", NOTE, LONG_ARGUMENTS, tool_choice="save_note")
LONG_STREAM: Final = streamed(LONG)
CUT_CALL: Final = ProbeRequest(
    "cut-call", calling((NOTE, LONG_ARGUMENTS), tool_choice="save_note", max_tokens=2 * MAX_CUT)
)
CUT_CALL_STREAM: Final = streamed(CUT_CALL)

# -- choices ---------------------------------------------------------------------------------------------------------

REQUIRED: Final = ProbeRequest("required", chat("Say hello to me.", *TOOLS, tool_choice="required"))
REQUIRED_STREAM: Final = streamed(REQUIRED)
NAMED: Final = ProbeRequest("named", chat("What is the weather in Paris?", *TOOLS, tool_choice="get_time"))
NAMED_STREAM: Final = streamed(NAMED)
NONE: Final = ProbeRequest("none", replace(CALL.chat, tool_choice=ToolChoice("none")), enough_tokens=100)
NONE_STREAM: Final = streamed(NONE)
# Unlike the requests above, these do not ask for the call: a model writes one only if it sees the tools.
WEATHER_QUESTION: Final = ProbeRequest(
    "no-tool", chat("What is the weather in Paris now?", *TOOLS, tool_choice="none"), enough_tokens=100
)
WEATHER_QUESTION_STREAM: Final = streamed(WEATHER_QUESTION)
WEATHER_CONTROL: Final = replace(
    WEATHER_QUESTION, id="no-tool-control", chat=replace(WEATHER_QUESTION.chat, tools=(), tool_choice=ToolChoice())
)

# -- results ---------------------------------------------------------------------------------------------------------

_QUESTION: Final = "Which code does the result contain? Answer with the code."


def history(*calls: tuple[ToolCall, ToolResult], words: str = "") -> tuple[Message, ...]:
    """Return the messages of a question, of calls that the model made, and of their results."""
    native_calls = tuple(call for call, _ in calls)
    return (
        Message("user", "What is the weather?"),
        Message("assistant", (words, *native_calls) if words else native_calls),
        Message("tool", tuple(result for _, result in calls)),
    )


def continued(exchange: ProbeExchange, result: str) -> tuple[Message, ...]:
    """Return the messages of a request and its answer, and a result for each call of the answer."""
    response = exchange.response
    results = tuple(ToolResult(call.id, call.name, result) for call in response.all_calls)
    return (*exchange.request.chat.messages, Message("assistant", response_parts(response)), Message("tool", results))


def _answered(
    id: str, arguments: Arguments, result: Any = None, error: str | None = None
) -> tuple[ToolCall, ToolResult]:
    return ToolCall(WEATHER.name, dict(arguments), id), ToolResult(id, WEATHER.name, result, error)


RESULT: Final = ProbeRequest(
    "result", chat(_QUESTION, *TOOLS, before=history(_answered("call_a1", PARIS, f"Rain. The code is {CODE}.")))
)
# A model that does not find the code here either cannot show that a server loses results.
RESULT_CONTROL: Final = ProbeRequest("result-control", chat(f"The result is: Rain. The code is {CODE}. {_QUESTION}"))
OTHER_CODE: Final = "2280"


def _two_results(id: str, city: str, **fields: Any) -> ProbeRequest:
    """Return the request for the code in one of the results of two calls."""
    before = history(
        _answered("call_a1", PARIS, f"Rain. The code is {OTHER_CODE}."),
        _answered("call_b2", ROME, f"Sun. The code is {CODE}."),
    )
    question = f"Which code does the result for {city} contain? Answer with the code."
    return ProbeRequest(id, chat(question, *TOOLS, before=before), **fields)


def _with_results_reversed(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body of Chat Completions, Messages or Responses with the two results in reversed order."""
    name = "input" if "input" in body else "messages"
    messages = list(body[name])
    places = [at for at, message in enumerate(messages) if _is_result(message)]
    for at, message in zip(places, [messages[at] for at in reversed(places)], strict=True):
        messages[at] = message
    for at, message in enumerate(messages):
        if isinstance(content := message.get("content"), list) and any(map(_is_result, content)):
            results = [block for block in content if _is_result(block)]
            remaining = [block for block in content if not _is_result(block)]
            messages[at] = {**message, "content": [*reversed(results), *remaining]}
    return {**body, name: messages}


def _is_result(item: Any) -> bool:
    """Return whether a message, or a part of one, is the result of a call."""
    kinds = ("tool_result", "function_call_output")
    return isinstance(item, dict) and (item.get("role") == "tool" or item.get("type") in kinds)


TWO_RESULTS: Final = _two_results("two-results", "Rome")
FIRST_OF_TWO_RESULTS: Final = _two_results("first-of-two-results", "Paris")
RESULTS_REVERSED: Final = _two_results("results-reversed", "Rome", change=_with_results_reversed, may_fail=True)
ERROR_RESULT: Final = ProbeRequest(
    "error-result",
    chat(
        "Which code does the error contain? Answer with the code.",
        *TOOLS,
        before=history(_answered("call_a1", PARIS, error=f"There is no such city. The code is {CODE}.")),
    ),
)
EMPTY_RESULT: Final = ProbeRequest(
    "empty-result",
    chat("Reply with this one word: blue", *TOOLS, before=history(_answered("call_a1", PARIS, ""))),
)
WORDS_AND_CALL: Final = ProbeRequest(
    "words-and-call",
    chat(
        "Reply with this one word: blue",
        *TOOLS,
        before=history(_answered("call_a1", PARIS, "Rain."), words="I look at the forecast."),
    ),
)

# -- the prompt: requests whose input is counted --------------------------------------------------------------------

_WORDS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ONE_WORD: Final = "Reply with this one word: blue"


def _counted(id: str, text: str = _ONE_WORD, *tools: ToolDefinition, before: Sequence[Message] = ()) -> ProbeRequest:
    return ProbeRequest(f"counted-{id}", chat(text, *tools, before=before, max_tokens=MAX_CUT))


COUNTED: Final = _counted("base")
COUNTED_SYSTEM: Final = _counted("system", before=(Message("system", _LONG_TEXT),))
COUNTED_HISTORY: Final = _counted("history", before=(Message("user", _LONG_TEXT), Message("assistant", "Yes.")))
COUNTED_TOOLS: Final = _counted("tools", _ONE_WORD, *TOOLS, NOTE)
COUNTED_TOOLS_AND_SYSTEM: Final = _counted(
    "tools-system", _ONE_WORD, *TOOLS, NOTE, before=(Message("system", _LONG_TEXT),)
)
COUNTED_DESCRIPTIONS: Final = _counted(
    "descriptions",
    _ONE_WORD,
    *TOOLS,
    replace(NOTE, description=_LONG_TEXT),
)


def _counted_title(id: str, schema: Mapping[str, Any] = {}, **keywords: Any) -> ProbeRequest:
    """Return the request of `COUNTED_TOOLS` with more keywords in the schema of the title, and in the whole one."""
    properties = {"title": {"type": "string", **keywords}, "text": {"type": "string"}}
    # The tool that changes is the last one: servers that cache prompts then read the others once.
    return _counted(id, _ONE_WORD, *TOOLS, closed_tool(NOTE.name, NOTE.description, properties, schema=schema))


def _in_two_parts(role: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a change of a body of Chat Completions: the messages of a role have a list of two texts as content."""

    def change(body: dict[str, Any]) -> dict[str, Any]:
        messages = [
            {**message, "content": [{"type": "text", "text": text} for text in (message["content"], _LONG_TEXT)]}
            if message["role"] == role
            else message
            for message in body["messages"]
        ]
        return {**body, "messages": messages}

    return change


COUNTED_PROPERTIES: Final = _counted_title("properties", description=_LONG_TEXT)
COUNTED_VALUES: Final = _counted_title("values", enum=[f"{word} {_PHRASE}" for word in _WORDS])
_DESCRIBED: Final = {"type": "string", "description": _LONG_TEXT}
COUNTED_MEMBER: Final = _counted_title("member", type="object", properties={"main": _DESCRIBED})
COUNTED_DEFINITION: Final = _counted_title(
    "definition", {"$defs": {"heading": _DESCRIBED}}, anyOf=[{"$ref": "#/$defs/heading"}, {"type": "null"}]
)
COUNTED_ALTERNATIVE: Final = _counted_title("alternative", anyOf=[_DESCRIBED, {"type": "null"}])
COUNTED_MANY: Final = _counted("many", _ONE_WORD, *_ACTIONS, NOTE)
COUNTED_LAST: Final = _counted("last", _ONE_WORD, *_ACTIONS, replace(NOTE, description=_LONG_TEXT))
COUNTED_PARTS: Final = ProbeRequest("counted-parts", COUNTED.chat, change=_in_two_parts("user"), may_fail=True)
COUNTED_RESULT: Final = _counted("result", _ONE_WORD, *TOOLS, before=history(_answered("call_a1", PARIS, "Rain.")))
COUNTED_LONG_RESULT: Final = _counted(
    "long-result", _ONE_WORD, *TOOLS, before=history(_answered("call_a1", PARIS, _LONG_TEXT))
)

COUNTED_RESULT_PARTS: Final = ProbeRequest(
    "counted-result-parts", COUNTED_RESULT.chat, change=_in_two_parts("tool"), may_fail=True
)


def _counted_long_words(id: str, repetitions: int) -> ProbeRequest:
    """Return a request with a result of long words, which have many characters for each token."""
    result = _answered("call_a1", PARIS, _LONG_WORDS * repetitions)
    return _counted(id, _ONE_WORD, *TOOLS, before=history(result))


FEW_REPETITIONS: Final = 20
"""Number of times that the shorter result repeats four words."""
MANY_REPETITIONS: Final = 170
"""Number of times that the longest result repeats them: 10,030 characters, and about 700 tokens."""
COUNTED_LONG_WORDS: Final = _counted_long_words("long-words", FEW_REPETITIONS)
COUNTED_LONGEST_RESULT: Final = replace(_counted_long_words("longest-result", MANY_REPETITIONS), may_fail=True)
COUNTED_ERROR: Final = _counted(
    "error-result", _ONE_WORD, *TOOLS, before=history(_answered("call_a1", PARIS, error=_LONG_TEXT))
)
COUNTED_ARGUMENTS: Final = _counted(
    "arguments", _ONE_WORD, *TOOLS, before=history(_answered("call_a1", {"city": _LONG_TEXT, "days": 3}, "Rain."))
)
COUNTED_SECOND_CALL: Final = _counted(
    "second-call",
    _ONE_WORD,
    *TOOLS,
    before=history(_answered("call_a1", PARIS, "Rain."), _answered("call_b2", {"city": _LONG_TEXT, "days": 5}, "Sun.")),
)
COUNTED_WORDS: Final = _counted(
    "words", _ONE_WORD, *TOOLS, before=history(_answered("call_a1", PARIS, "Rain."), words=_LONG_TEXT)
)
ADDED: Final = 6 * PHRASES
"""Tokens that the longer of two prompts has at least more: less than half of the tokens of the added text."""

# -- schemas ---------------------------------------------------------------------------------------------------------


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _schema_request(id: str, tool: ToolDefinition, arguments: Arguments, *others: ToolDefinition) -> ProbeRequest:
    return call_request(id, tool, arguments, tools=(tool, *others), tool_choice=tool.name)


_STRING: Final = {"type": "string"}
_LEG: Final = _object(mode={"type": "string", "enum": ["train", "bus", "on foot"]}, hours={"type": "number"})
_TRIP_ARGUMENTS: Final = {
    "route": {"start": "Paris", "end": "Rome"},
    "legs": [{"mode": "on foot", "hours": 1.5}],
    "direct": False,
}
_TRIP_SCHEMA: Final = {
    "route": _object(start=_STRING, end=_STRING),
    "legs": {"type": "array", "items": _LEG},
    "direct": {"type": "boolean"},
}
NESTED: Final = _schema_request("nested", closed_tool("plan_trip", "Plan a trip.", _TRIP_SCHEMA), _TRIP_ARGUMENTS)
NESTED_STREAM: Final = streamed(NESTED)
STRICT: Final = _schema_request(
    "strict", closed_tool("plan_strictly", "Plan a trip.", _TRIP_SCHEMA, hints={"strict": True}), _TRIP_ARGUMENTS
)
REFERENCES: Final = _schema_request(
    "references",
    closed_tool(
        "send_parcel",
        "Send a parcel from one address to another.",
        {"sender": {"$ref": "#/$defs/address"}, "receiver": {"$ref": "#/$defs/address"}},
        schema={"$defs": {"address": _object(town=_STRING, number={"type": "integer"})}},
    ),
    {"sender": {"town": "Paris", "number": 12}, "receiver": {"town": "Rome", "number": 7}},
)
UNION: Final = _schema_request(
    "union",
    closed_tool(
        "find_customer",
        "Find a customer by name or by number.",
        {
            "customer": {"anyOf": [{"type": "string"}, _object(number={"type": "integer"})]},
            "note": {"type": ["string", "null"]},
        },
    ),
    {"customer": {"number": 42}, "note": None},
)
UNION_STREAM: Final = streamed(UNION)
VALUE_ARGUMENTS: Final[Mapping[str, str | int]] = {
    "postcode": "04109",
    "version": "1.10",
    "answer": "true",
    "remark": "",
    "line": "    return 1",
    "account": 9007199254740993,
}
"""Values that servers change: texts that look like others, white space, and a number between two doubles."""
VALUES: Final = _schema_request(
    "values",
    closed_tool(
        "save_record",
        "Save a record.",
        {name: {"type": "string" if isinstance(value, str) else "integer"} for name, value in VALUE_ARGUMENTS.items()},
    ),
    VALUE_ARGUMENTS,
)
VALUES_STREAM: Final = streamed(VALUES)
OPTIONAL: Final = _schema_request(
    "optional",
    closed_tool("list_files", "List files.", {"folder": _STRING, "limit": {"type": "integer"}}, optional=("limit",)),
    {"folder": "/tmp"},
)
LIMITS: Final = _schema_request(
    "limits",
    closed_tool(
        "order",
        "Order a product.",
        {
            "quantity": {"type": "integer", "minimum": 1, "maximum": 9},
            "code": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{3}$"},
            "tags": {"type": "array", "items": _STRING, "maxItems": 3},
        },
    ),
    {"quantity": 4, "code": "AB123", "tags": ["new"]},
)
LONG_NAME: Final = _schema_request(
    "long-name",
    closed_tool("read-the-temperature-of-the-water_in_the_harbour_of_a_large_city", "Read it.", {"city": _CITY}),
    {"city": "Paris"},
)
MANY: Final = _schema_request(
    "many-tools",
    WEATHER,
    PARIS,
    *_ACTIONS,
)

"""Probes of arguments: characters, long values, no values, values of a schema, and calls that were cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from toolwire.messages import FinishReason, ToolCall
from toolwire.probes import probe_requests as ask
from toolwire.probes.controls import check_model_copies, control_if_changed, without_controls
from toolwire.probes.judging import (
    GUIDE,
    STRUCTURED,
    check_expressed,
    check_offered,
    check_readable,
    check_whole_characters,
    definition_of,
    exchange_with_calls,
    reported_usage,
    shown,
    shown_call,
)
from toolwire.probes.probe import FaultSuspected, Probe, ProbeFailed, RuleNotShown
from toolwire.probes.probe_exchange import ProbeExchange, ProbeRequest
from toolwire.providers.member_paths import MISSING
from toolwire.schema.validation import validate
from toolwire.text.json_reading import read_json
from toolwire.text.json_text import JsonError, json_text

_STREAMING: Final = f"{GUIDE}#streaming"
_HANDLING: Final = f"{GUIDE}#handling-function-calls"
_SCHEMAS: Final = f"{STRUCTURED}#supported-schemas"
_PYTHON_WORDS: Final = {"True": "true", "False": "false", "None": "null"}
"""Values as models write them in Python, and in JSON."""
_ENTITIES: Final = ("&lt;", "&gt;", "&quot;", "&amp;", "&#")


def _the_call(exchanges: Sequence[ProbeExchange]) -> tuple[ProbeExchange, ToolCall]:
    """Return the exchange with a call, and its first call."""
    exchange = exchange_with_calls(exchanges)
    check_readable(exchange)
    return exchange, check_offered(exchange)[0]


def _keeps(member: str) -> Callable[[Sequence[ProbeExchange]], None]:
    """Return the judge of a text in the arguments of the request for exact ones."""

    def judge(exchanges: Sequence[ProbeExchange]) -> None:
        exchange, call = _the_call(exchanges)
        check_whole_characters(exchange)
        expected, actual = ask.EXACT_ARGUMENTS[member], call.arguments.get(member)
        if actual == expected:
            return
        if not isinstance(actual, str):
            raise RuleNotShown(f"the model made another call: {shown_call(call)}")
        if "\ufffd" in actual:
            raise ProbeFailed(f"characters arrive as U+FFFD{exchange.place}: {actual!r:.200}")
        misread = [expected.encode().decode(encoding, "replace")[:6] for encoding in ("latin-1", "cp1252")]
        if not expected[:6].isascii() and any(text in actual for text in misread):
            raise ProbeFailed(f"the text was not decoded as UTF-8{exchange.place}: {actual!r:.200}")
        # Servers that read calls from XML have to undo its references; a model that copies text does not add any.
        if any(entity in actual for entity in _ENTITIES):
            raise ProbeFailed(f"the text contains character references of XML{exchange.place}: {actual!r:.200}")
        if "\\u" in actual:
            check_model_copies(exchanges, member)
            raise FaultSuspected(f"characters arrive as escapes{exchange.place}: {actual!r:.200}")
        if _letters(actual) == _letters(expected):
            check_model_copies(exchanges, member)
            raise FaultSuspected(f"characters are missing or changed{exchange.place}: {actual!r:.200}")
        raise RuleNotShown(f"the model did not copy the text: {actual!r:.200}")

    return judge


def _keeps_values(*names: str) -> Callable[[Sequence[ProbeExchange]], None]:
    """Return the judge of some of the values that servers change, as a whole and in a stream."""

    def judge(exchanges: Sequence[ProbeExchange]) -> None:
        not_shown: list[RuleNotShown] = []
        for exchange in without_controls(exchanges):
            try:
                _, call = _the_call([exchange])
                for name in names:
                    if suspicion := _suspicion(exchange, name, call.arguments):
                        check_model_copies(exchanges, name)
                        raise FaultSuspected(suspicion)
            except RuleNotShown as error:
                not_shown.append(error)
        if not_shown:
            raise not_shown[0]

    return judge


def _suspicion(exchange: ProbeExchange, name: str, arguments: ask.Arguments) -> str:
    """Return how an argument was changed as servers do it; "" if it is the one that the model was asked for.

    Raises:
        RuleNotShown: it is another value.
    """
    expected, actual = (exchange.request.arguments or {})[name], arguments.get(name, MISSING)
    if actual == expected and type(actual) is type(expected):
        return ""
    # A model that wrote the number itself would not round it as a floating-point number is rounded.
    if (
        (actual is MISSING and expected in ("", None))
        or actual is None
        or (isinstance(expected, str) and (not isinstance(actual, str) or actual == expected.strip()))
        or (isinstance(expected, int) and (isinstance(actual, str | float) or actual == int(float(expected))))
        or (expected is None and actual in ("", "null", "None"))
    ):
        became = "is lost" if actual is MISSING else f"arrives as {json_text(actual):.80}"
        return f"the argument {name} with the value {json_text(expected)} {became}{exchange.place}"
    raise RuleNotShown(
        f"the model did not copy the value {json_text(expected)} of {name}{exchange.place}: {actual!r:.80}"
    )


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isascii() and character.isalnum())


def _keeps_long_text(exchanges: Sequence[ProbeExchange]) -> None:
    exchange, call = _the_call(exchanges)
    expected, actual = ask.LONG_ARGUMENTS["text"], call.arguments.get("text")
    if actual == expected:
        return
    if exchange.response.finish_reason is FinishReason.LENGTH:
        raise RuleNotShown("the answer was cut; --max-tokens allows longer ones")
    if isinstance(actual, str) and len(actual) > 100 and expected.startswith(actual):
        check_model_copies(exchanges, "text")
        raise FaultSuspected(f"the argument ends after {len(actual)} of {len(expected)} characters{exchange.place}")
    raise RuleNotShown(f"the model did not copy the text{exchange.place}: {shown_call(call)}")


def _is_empty_object(exchanges: Sequence[ProbeExchange]) -> None:
    exchange = exchange_with_calls(exchanges)
    response = exchange.response
    if response.problems or response.incomplete:
        raise ProbeFailed(f"the call of a tool without parameters cannot be read{exchange.place}")
    (call, *_) = check_offered(exchange)
    if call.arguments:
        raise RuleNotShown(f"the model wrote arguments that the tool does not have: {shown_call(call)}")
    if call.repairs:
        raise ProbeFailed(f"the arguments of a tool without parameters are not the JSON object {{}}{exchange.place}")


def _cut_call_is_not_whole(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    check_expressed(exchanges, "max_tokens")
    response = exchange.response
    if not response.tool_calls and not response.incomplete:
        if response.finish_reason in (FinishReason.LENGTH, FinishReason.ERROR):
            return
        raise RuleNotShown(f"the model did not begin the call{exchange.place}: {shown(response)}")
    usage, limit = reported_usage(exchange), exchange.request.chat.max_tokens or 0
    # Some servers close the JSON of a call that was cut, so that it looks like a whole one.
    is_cut = response.finish_reason is FinishReason.LENGTH or (usage is not None and usage.output_tokens >= limit)
    for call in response.tool_calls:
        if call.arguments.get("text") == ask.LONG_ARGUMENTS["text"]:
            if usage is not None and usage.output_tokens > limit:
                raise ProbeFailed(
                    f"the call has {usage.output_tokens} tokens{exchange.place}, although {limit} are allowed"
                )
            raise RuleNotShown("the whole call fits in the maximum length")
        if is_cut:
            raise ProbeFailed(f"a call that was cut arrives as a whole one{exchange.place}: {shown_call(call)}")
        if validate(call.arguments, definition_of(exchange, call).parameters):
            raise FaultSuspected(f"a part of a call arrives as a whole one{exchange.place}: {shown_call(call)}")
        raise RuleNotShown(f"the model wrote a shorter call{exchange.place}: {shown_call(call)}")
    if response.finish_reason not in (FinishReason.LENGTH, FinishReason.ERROR):
        raise ProbeFailed(
            f"the finish reason of a call that was cut is {response.finish_reason.value}{exchange.place}: a client "
            "takes the answer for a whole one"
        )


def _follows_schema(exchanges: Sequence[ProbeExchange]) -> None:
    exchange, call = _the_call(exchanges)
    definition = definition_of(exchange, call)
    issues = validate(call.arguments, definition.parameters)
    if not issues:
        return
    # A parser of a format without types has to read the schema, or every number is a text.
    for where in _texts_of_values(call.arguments, definition.parameters, definition.parameters):
        check_model_copies(exchanges)
        raise FaultSuspected(f"{where} arrives as text{exchange.place}, not as the value that the schema asks for")
    if definition.annotations.get("strict") is True:
        if exchange.lost("strict"):
            raise RuleNotShown(f"{exchange.api.name} has no strict mode")
        raise ProbeFailed(f"the arguments break the strict schema: {issues[0]}")
    raise RuleNotShown(f"the request is accepted, but the arguments break the schema: {issues[0]}")


def _texts_of_values(value: Any, schema: Any, root: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths of values that arrive as text although the schema asks for the value in this text."""
    if not isinstance(schema, dict):
        return
    if isinstance(value, str):
        # A reference inside the schema of the value needs the definitions of the root.
        scoped = {**schema, **({"$defs": root["$defs"]} if "$defs" in root else {})}
        try:
            inner, _ = read_json(_PYTHON_WORDS.get(value, value), repair=False)
        except JsonError:
            return
        if validate(value, scoped) and not validate(inner, scoped):
            yield path or "the object"
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts_of_values(item, schema.get("properties", {}).get(name), root, f"{path}/{name}")
    elif isinstance(value, list):
        for item in value:
            yield from _texts_of_values(item, schema.get("items"), root, f"{path}/items")


def _omits_optional(exchanges: Sequence[ProbeExchange]) -> None:
    exchange, call = _the_call(exchanges)
    if call.arguments == {"folder": "/tmp"}:
        return
    if call.arguments.get("limit", 0) is None:
        check_model_copies(exchanges)
        raise FaultSuspected(f"an optional parameter that the model left out arrives as null{exchange.place}")
    raise RuleNotShown(f"the model made another call: {shown_call(call)}")


def _schema(id: str, title: str, request: ProbeRequest, source: str = _SCHEMAS) -> Probe:
    return Probe(id, "schemas", title, source, (request, control_if_changed), _follows_schema)


def _values(
    id: str, title: str, *names: str, requests: tuple[ProbeRequest, ...] = (ask.VALUES, ask.VALUES_STREAM)
) -> Probe:
    return Probe(id, "arguments", title, _HANDLING, (*requests, control_if_changed), _keeps_values(*names))


ARGUMENT_PROBES: Final = (
    Probe(
        "characters",
        "arguments",
        "Characters outside ASCII arrive as the model wrote them.",
        _HANDLING,
        (ask.EXACT, control_if_changed),
        _keeps("title"),
    ),
    Probe(
        "streamed-characters",
        "arguments",
        "Characters outside ASCII arrive whole in a stream.",
        _STREAMING,
        (ask.EXACT_STREAM, control_if_changed),
        _keeps("title"),
    ),
    Probe(
        "quotes",
        "arguments",
        "Quotes, backslashes, line ends and tags arrive as the model wrote them.",
        _HANDLING,
        (ask.EXACT, control_if_changed),
        _keeps("text"),
    ),
    Probe(
        "streamed-quotes",
        "arguments",
        "Quotes, backslashes, line ends and tags arrive whole in a stream.",
        _STREAMING,
        (ask.EXACT_STREAM, control_if_changed),
        _keeps("text"),
    ),
    _values(
        "text-values", "Texts that look like numbers and other values stay texts.", "postcode", "version", "answer"
    ),
    _values("empty-text", "An empty text in the arguments arrives as an empty text.", "remark"),
    _values("white-space", "White space at the beginning of a text arrives.", "line"),
    _values("large-number", "A number of 16 digits is not rounded.", "account"),
    _values(
        "whole-number",
        "A whole number does not arrive with a fraction, such as 3.0.",
        "days",
        requests=(ask.CALL, ask.CALL_STREAM),
    ),
    _values("null-argument", "A null in the arguments arrives.", "note", requests=(ask.UNION, ask.UNION_STREAM)),
    Probe(
        "long-arguments",
        "arguments",
        "Long arguments are not cut.",
        _HANDLING,
        (ask.LONG, control_if_changed),
        _keeps_long_text,
    ),
    Probe(
        "streamed-long-arguments",
        "arguments",
        "Long arguments are not cut in a stream.",
        _STREAMING,
        (ask.LONG_STREAM, control_if_changed),
        _keeps_long_text,
    ),
    Probe(
        "empty-arguments",
        "arguments",
        "A call of a tool without parameters has the arguments {}.",
        _HANDLING,
        (ask.EMPTY,),
        _is_empty_object,
    ),
    Probe(
        "streamed-empty-arguments",
        "arguments",
        "A call without arguments is complete in a stream.",
        _STREAMING,
        (ask.EMPTY_STREAM,),
        _is_empty_object,
    ),
    Probe(
        "cut-call",
        "arguments",
        "A call that was cut is not presented as a whole one.",
        f"{STRUCTURED}#handling-edge-cases",
        (ask.CUT_CALL,),
        _cut_call_is_not_whole,
    ),
    Probe(
        "cut-streamed-call",
        "arguments",
        "A call that was cut in a stream is not presented as a whole one.",
        f"{STRUCTURED}#handling-edge-cases",
        (ask.CUT_CALL_STREAM,),
        _cut_call_is_not_whole,
    ),
    _schema("nested-schema", "Nested objects, lists, enums and numbers arrive as such.", ask.NESTED),
    _schema(
        "streamed-nested-schema",
        "Nested objects, lists, enums and numbers arrive as such in a stream.",
        ask.NESTED_STREAM,
    ),
    _schema("strict-schema", "The arguments of a strict tool follow its schema.", ask.STRICT, f"{GUIDE}#strict-mode"),
    _schema(
        "references-in-schema",
        "A schema may contain references to definitions.",
        ask.REFERENCES,
        f"{STRUCTURED}#definitions-are-supported",
    ),
    _schema("union-in-schema", "A schema may contain alternatives and null.", ask.UNION),
    _schema("limits-in-schema", "A schema may contain limits and patterns.", ask.LIMITS),
    Probe(
        "optional-parameter",
        "schemas",
        "A parameter that the model leaves out does not arrive.",
        "https://json-schema.org/understanding-json-schema/reference/object#required",
        (ask.OPTIONAL, control_if_changed),
        _omits_optional,
    ),
    _schema(
        "long-name", "A tool's name may have 64 characters, and hyphens.", ask.LONG_NAME, f"{GUIDE}#defining-functions"
    ),
    _schema("many-tools", "A request may offer 21 tools.", ask.MANY, f"{GUIDE}#best-practices-for-defining-functions"),
)
"""The probes of arguments and of schemas."""

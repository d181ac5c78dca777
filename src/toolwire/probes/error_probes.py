"""Probes of errors: a wrong request is refused with a reason, and the server answers the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from toolwire.messages import Message
from toolwire.probes import probe_requests as ask
from toolwire.probes.answer_members import shape_of, value_at
from toolwire.probes.judging import ERRORS, GUIDE, check_readable
from toolwire.probes.probe import Probe, ProbeFailed, RuleNotShown
from toolwire.probes.probe_exchange import ProbeExchange, ProbeRequest
from toolwire.providers.member_paths import MISSING

Body = dict[str, Any]
_MESSAGES: Final = ("messages", "contents", "input")
"""The member with the conversation, in each API."""
_UNKNOWN_MODEL: Final = "no-such-model-of-toolwire-check"


def _changed(id: str, change: Callable[[Body], Any], base: ProbeRequest = ask.PLAIN) -> ProbeRequest:
    return ProbeRequest(id, base.chat, change=change, may_fail=True)


def _with_messages(value: Any) -> Callable[[Body], Body]:
    return lambda body: {name: value if name in _MESSAGES else item for name, item in body.items()}


def _without_messages(body: Body) -> Body:
    return {name: item for name, item in body.items() if name not in _MESSAGES}


def _without_tool_names(value: Any) -> Any:
    """Return a list of tools in which no tool has a name."""
    if isinstance(value, dict):
        return {name: _without_tool_names(item) for name, item in value.items() if name != "name"}
    return [_without_tool_names(item) for item in value] if isinstance(value, list) else value


NOT_JSON: Final = _changed("not-json", lambda _: b'{"model": "m", "messages": [')
NOT_AN_OBJECT: Final = _changed("not-an-object", lambda _: ["hello"])
NO_MESSAGES: Final = _changed("no-messages", _without_messages)
WRONG_MESSAGES: Final = _changed("wrong-messages", _with_messages({"text": 7}))
NAMELESS_TOOL: Final = _changed(
    "nameless-tool", lambda body: {**body, "tools": _without_tool_names(body.get("tools"))}, ask.CALL
)
UNKNOWN_MODEL: Final = ProbeRequest("unknown-model", replace(ask.PLAIN.chat, model=_UNKNOWN_MODEL), may_fail=True)
WRONG_LENGTH: Final = _changed(
    "wrong-length",
    lambda body: {name: "many" if "max" in name and "token" in name else item for name, item in body.items()},
)
ORPHAN: Final = ProbeRequest(
    "orphan",
    ask.chat("Reply with this one word: blue", *ask.TOOLS, before=(Message("user", "Hello."),)),
    change=lambda body: _orphaned(body),
    may_fail=True,
)
WRONG_KEY: Final = replace(ask.PLAIN, id="wrong-key", wrong_key=True, may_fail=True)
WRONG_KEY_STREAM: Final = replace(ask.PLAIN_STREAM, id="wrong-key-stream", wrong_key=True, may_fail=True)
AFTERWARDS: Final = ProbeRequest("afterwards", ask.PLAIN.chat)
WRONG_STREAM: Final = replace(_changed("wrong-stream", _with_messages({"text": 7}), ask.PLAIN_STREAM))
_WRONG: Final = (NOT_JSON, NOT_AN_OBJECT, NO_MESSAGES, WRONG_MESSAGES, WRONG_LENGTH)


def _orphaned(body: Body) -> Body:
    """Return a body of Chat Completions with the result of a call that nobody made."""
    result = {"role": "tool", "tool_call_id": "call_unknown", "content": "Rain."}
    messages = body.get("messages")
    return {**body, "messages": [*messages, result]} if isinstance(messages, list) else body


def _is_refused(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        _check_sane(exchange)
        if not exchange.error:
            raise ProbeFailed(f"a wrong request ({exchange.request.id}) is answered with HTTP {exchange.status}")


def _check_sane(exchange: ProbeExchange) -> None:
    """Check that a wrong request is not taken for a failure of the server."""
    if exchange.error and not exchange.status:
        raise ProbeFailed(f"a wrong request ({exchange.request.id}) ends the connection: {exchange.error}")
    # Clients repeat a request after such a status, so a mistake of the client becomes a burden of the server.
    if exchange.status >= 500:
        raise ProbeFailed(
            f"a wrong request ({exchange.request.id}) is an error of the server, which clients repeat: {exchange.error}"
        )
    if any(problem.kind == "provider_error" for problem in exchange.response.problems) and exchange.status < 400:
        raise ProbeFailed(f"an error ({exchange.request.id}) has the HTTP status {exchange.status}, that of a success")


def _is_no_crash(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        _check_sane(exchange)


def _gives_reasons(exchanges: Sequence[ProbeExchange]) -> None:
    shape = shape_of(exchanges[0].api)
    errors = [exchange for exchange in exchanges if exchange.error and exchange.status]
    if not errors:
        raise RuleNotShown("no wrong request is refused")
    for exchange in errors:
        body = exchange.json
        if body is None:
            raise ProbeFailed(
                f"an error ({exchange.request.id}) is not JSON: {exchange.body[:80].decode('utf-8', 'replace')!r}"
            )
        # Gemini wraps the error of a stream in a list.
        body = body[0] if isinstance(body, list) and body else body
        message = next((text for path in shape.error if (text := value_at(body, path)) is not MISSING), None)
        if not isinstance(message, str) or not message.strip():
            raise ProbeFailed(f"an error ({exchange.request.id}) has no message in {' or '.join(shape.error)}")


def _refuses_key(exchanges: Sequence[ProbeExchange]) -> None:
    for exchange in exchanges:
        if not exchange.error:
            raise ProbeFailed(f"a wrong key is accepted{exchange.place}")
        # Gemini answers 400 with a message about the key.
        if exchange.status in (401, 403) or (exchange.status == 400 and "key" in exchange.error.lower()):
            continue
        raise ProbeFailed(f"a wrong key gives another error{exchange.place}: {exchange.error}")


def _knows_models(exchanges: Sequence[ProbeExchange]) -> None:
    (exchange,) = exchanges
    _check_sane(exchange)
    if not exchange.error:
        # Servers of one model do this on purpose, so that clients need no configuration.
        raise RuleNotShown("the server answers for every name of a model")
    if exchange.status not in (400, 404, 422, 403):
        raise ProbeFailed(f"an unknown model gives the status {exchange.status}: {exchange.error}")


def _still_answers(exchanges: Sequence[ProbeExchange]) -> None:
    check_readable(exchanges[-1])


ERROR_PROBES: Final = (
    Probe(
        "not-json",
        "errors",
        "A body that is not JSON is refused with a status from 400 to 499.",
        ERRORS,
        (NOT_JSON, NOT_AN_OBJECT),
        _is_refused,
    ),
    Probe(
        "no-messages",
        "errors",
        "A request without messages is refused with a status from 400 to 499.",
        ERRORS,
        (NO_MESSAGES, WRONG_MESSAGES),
        _is_refused,
    ),
    Probe(
        "wrong-stream",
        "errors",
        "A wrong request for a stream is refused before the stream begins.",
        ERRORS,
        (WRONG_STREAM,),
        _is_refused,
    ),
    Probe(
        "nameless-tool",
        "errors",
        "A tool without a name is refused with a status from 400 to 499.",
        f"{GUIDE}#defining-functions",
        (NAMELESS_TOOL,),
        _is_refused,
    ),
    Probe(
        "wrong-setting",
        "errors",
        "A setting of the wrong type is not an error of the server.",
        ERRORS,
        (WRONG_LENGTH,),
        _is_no_crash,
    ),
    Probe(
        "orphan-result",
        "errors",
        "A result without its call is not an error of the server.",
        ERRORS,
        (ORPHAN,),
        _is_no_crash,
        frozenset(("openai_chat", "mistral")),
    ),
    Probe(
        "unknown-model",
        "errors",
        "An unknown model is refused with a status from 400 to 499.",
        ERRORS,
        (UNKNOWN_MODEL,),
        _knows_models,
    ),
    Probe("error-message", "errors", "An error is JSON and has a message.", ERRORS, _WRONG, _gives_reasons),
    Probe(
        "wrong-key",
        "errors",
        "A wrong key is refused.",
        ERRORS,
        (WRONG_KEY, WRONG_KEY_STREAM),
        _refuses_key,
        smoke=True,
    ),
    Probe(
        "after-errors",
        "errors",
        "The server answers after wrong requests.",
        ERRORS,
        (*_WRONG, AFTERWARDS),
        _still_answers,
    ),
)
"""The probes of errors."""

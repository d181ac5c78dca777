"""Errors inside streams: a client learns whether it may ask again, whichever API the error came from."""

import json

import pytest

from toolwire import Problem, get_api
from toolwire.events import Finish, ProblemFound, collect
from toolwire.messages import FinishReason
from toolwire.providers.failure_kinds import (
    BODY_TOO_LARGE,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NO_BUDGET,
    NO_KEY,
    NOT_FOUND,
    RATE_LIMIT,
    TIMED_OUT,
    TOO_LONG,
    UNAVAILABLE,
    UNKNOWN_MODEL,
    UNREACHABLE,
    FailureKind,
    code_of,
    kind_of_problem,
    kind_of_status,
    status_of,
)
from toolwire.providers.framing import aws_event, sse

LASTING = [INVALID, TOO_LONG, NO_KEY, FORBIDDEN, NOT_FOUND, BODY_TOO_LARGE, NO_BUDGET]
TEMPORARY = [RATE_LIMIT, INTERNAL, UNAVAILABLE, TIMED_OUT]
NAMED = ["openai_chat", "openai_responses", "anthropic_messages", "gemini", "gemini_interactions", "bedrock_converse"]
"""APIs whose errors in a stream have more than a text."""

ERRORS = [
    # API, its stream, the status that the error stands for
    ("openai_chat", sse({"error": {"message": "m", "type": "invalid_request_error", "code": "invalid_api_key"}}), 401),
    ("openai_chat", sse({"error": {"message": "m", "type": "insufficient_quota", "code": None}}), 402),
    ("openai_chat", sse({"error": {"message": "m", "code": 502}}), 502),
    ("openai_chat", sse({"error": {"message": "m", "code": "429"}}), 429),
    ("openai_chat", sse({"object": "error", "message": "m", "type": "BadRequestError", "code": 400}), 400),
    ("openai_chat", sse({"error": "the server is away"}), 0),
    ("openai_chat", sse({"error": {"message": "m", "code": 408}}), 408),
    ("openai_chat", sse({"error": {"message": "m", "code": 409}}), 409),
    (
        "openai_responses",
        sse({"type": "response.failed", "response": {"error": {"code": "server_is_overloaded", "message": "m"}}}),
        503,
    ),
    ("openai_responses", sse({"type": "error", "code": "rate_limit_exceeded", "message": "m"}), 429),
    (
        "openai_responses",
        sse({"type": "response.failed", "response": {"error": {"code": "invalid_prompt", "message": "m"}}}),
        400,
    ),
    ("anthropic_messages", sse({"type": "error", "error": {"type": "permission_error", "message": "m"}}), 403),
    ("gemini", sse({"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}), 400),
    ("gemini", sse({"error": {"message": "m", "status": "RESOURCE_EXHAUSTED"}}), 429),
    ("gemini_interactions", sse({"event_type": "error", "error": {"code": "not_found", "message": "m"}}), 404),
    ("bedrock_converse", aws_event({"message": "m"}, "validationException", exception=True), 400),
    ("bedrock_converse", aws_event({"message": "m"}, "throttlingException", exception=True), 429),
]


@pytest.mark.parametrize(("api", "stream", "status"), ERRORS, ids=[f"{api}-{status}" for api, _, status in ERRORS])
def test_an_error_in_a_stream_says_in_every_api_whether_to_ask_again(api: str, stream: bytes, status: int) -> None:
    decoder = get_api(api).stream_decoder()
    events = [*decoder.feed(stream), *decoder.finish()]
    (problem,) = collect(events).problems
    assert (problem.kind, problem.status) == ("provider_error", status)
    written = b"".join(get_api("anthropic_messages").encode_stream(events))
    kind = kind_of_status(status or 500)
    expected = "overloaded_error" if kind.is_temporary else kind.anthropic
    assert json.loads(written.decode().rpartition("data: ")[2])["error"]["type"] == expected


@pytest.mark.parametrize("api", NAMED)
@pytest.mark.parametrize("kind", [*LASTING, *TEMPORARY], ids=lambda kind: kind.openai_code or kind.gemini)
def test_an_error_that_an_api_writes_stays_lasting_or_temporary(api: str, kind: FailureKind) -> None:
    if kind is NO_BUDGET and api.startswith("gemini"):
        pytest.skip("Gemini has one word for an empty budget and for too many requests in a minute")
    decoder = get_api(api).stream_decoder()
    (problem,) = collect([*decoder.feed(get_api(api).write_error("m", kind)), *decoder.finish()]).problems
    assert kind_of_status(problem.status).is_temporary is (kind in TEMPORARY)


@pytest.mark.parametrize("api", [*NAMED, "anthropic_bedrock", "cohere", "ollama"])
def test_an_error_without_a_kind_is_one_of_the_server(api: str) -> None:
    error = ProblemFound(Problem("provider_error", 0, "", "It broke."))
    written = b"".join(get_api(api).encode_stream([error, Finish(FinishReason.ERROR)]))
    decoder = get_api(api).stream_decoder()
    (problem,) = collect([*decoder.feed(written), *decoder.finish()]).problems
    assert "It broke" in problem.message
    assert problem.status in (0, 500, 503)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 4000}, 0),
        ({"code": 200, "type": "not_found_error"}, 404),  # an inner code, which is no HTTP status
        ({"code": None, "status": "UNAVAILABLE"}, 503),
        ({"code": "²²²"}, 0),
        ({"type": ["not_found_error"]}, 0),
        ({"status_code": 429, "type": "server_error"}, 429),
        ({"type": "request_too_large"}, 413),
        ({"type": "timeout_error"}, 504),
        ({"code": "modelTimeoutException"}, 504),
        ({"status": "DEADLINE_EXCEEDED"}, 504),
        ("not_found_error", 0),
        (None, 0),
    ],
)
def test_status_is_read_from_members_that_name_one(error: object, status: int) -> None:
    assert status_of(error) == status


WORDS = [
    # kind, then what the APIs call it: OpenAI's type and code, Gemini's code and status, Bedrock's exception
    (INVALID, "invalid_request_error", None, 400, "INVALID_ARGUMENT", "validationException"),
    (TOO_LONG, "invalid_request_error", "context_length_exceeded", 400, "INVALID_ARGUMENT", "validationException"),
    (NO_KEY, "invalid_request_error", "invalid_api_key", 401, "UNAUTHENTICATED", "validationException"),
    (FORBIDDEN, "invalid_request_error", "permission_denied", 403, "PERMISSION_DENIED", "validationException"),
    (NOT_FOUND, "invalid_request_error", "not_found", 404, "NOT_FOUND", "validationException"),
    (UNKNOWN_MODEL, "invalid_request_error", "model_not_found", 404, "NOT_FOUND", "validationException"),
    (BODY_TOO_LARGE, "invalid_request_error", "request_too_large", 413, "INVALID_ARGUMENT", "validationException"),
    (RATE_LIMIT, "rate_limit_error", "rate_limit_exceeded", 429, "RESOURCE_EXHAUSTED", "throttlingException"),
    (NO_BUDGET, "insufficient_quota", "insufficient_quota", 429, "RESOURCE_EXHAUSTED", "validationException"),
    (INTERNAL, "server_error", None, 500, "INTERNAL", "internalServerException"),
    (UNREACHABLE, "server_error", None, 502, "UNAVAILABLE", "modelStreamErrorException"),
    (UNAVAILABLE, "server_error", None, 503, "UNAVAILABLE", "serviceUnavailableException"),
    (TIMED_OUT, "server_error", None, 504, "DEADLINE_EXCEEDED", "modelStreamErrorException"),
]


def _error(api: str, kind: FailureKind) -> dict[str, object]:
    error: dict[str, object] = json.loads(get_api(api).write_error("m", kind).decode().partition("data: ")[2])["error"]
    return error


@pytest.mark.parametrize(
    ("kind", "type", "code", "status", "word", "exception"),
    WORDS,
    ids=[f"{row[2] or row[4]}-{row[3]}" for row in WORDS],
)
def test_each_api_has_its_own_words_for_a_failure(
    kind: FailureKind, type: str, code: str | None, status: int, word: str, exception: str
) -> None:
    chat, gemini = _error("openai_chat", kind), _error("gemini", kind)
    assert (chat["type"], chat["code"]) == (type, code)
    assert (gemini["code"], gemini["status"]) == (status, word)
    assert exception.encode() in get_api("bedrock_converse").write_error("m", kind)


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (INVALID, "invalid_request_error"),
        (NO_KEY, "authentication_error"),
        (FORBIDDEN, "permission_error"),
        (NOT_FOUND, "not_found_error"),
        (BODY_TOO_LARGE, "request_too_large"),
        (NO_BUDGET, "billing_error"),
        (RATE_LIMIT, "overloaded_error"),  # in a stream, the word after which clients ask again
        (INTERNAL, "overloaded_error"),
        (TIMED_OUT, "overloaded_error"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.status),
)
def test_messages_have_a_word_of_their_own_for_a_lasting_failure(kind: FailureKind, word: str) -> None:
    assert _error("anthropic_messages", kind)["type"] == word


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (402, NO_BUDGET),
        (404, NOT_FOUND),
        (418, INVALID),
        (499, INVALID),
        (500, INTERNAL),
        (529, UNAVAILABLE),
        (599, INTERNAL),
    ],
)
def test_a_status_that_no_kind_has_belongs_to_the_side_that_failed(status: int, kind: FailureKind) -> None:
    assert kind_of_status(status) is kind


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_a_request_may_succeed_later_after_these_statuses(status: int) -> None:
    assert kind_of_status(status).is_temporary


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 415, 422])
def test_a_request_fails_again_after_these_statuses(status: int) -> None:
    assert not kind_of_status(status).is_temporary


STREAMED = [*NAMED, "anthropic_bedrock", "cohere", "ollama"]
OVERFLOWS = [
    # API of the backend, and its stream
    ("openai_chat", sse({"error": {"message": "m", "code": "context_length_exceeded"}})),
    ("openai_chat", sse({"error": {"message": "the request exceeds the available context size", "code": 400}})),
    (
        "openai_responses",
        sse({"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "m"}}}),
    ),
    (
        "anthropic_messages",
        sse({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}}),
    ),
    (
        "gemini",
        sse({"error": {"code": 400, "message": "The input token count (900) exceeds the maximum number of tokens"}}),
    ),
    (
        "bedrock_converse",
        aws_event({"message": "Input is too long for requested model."}, "validationException", exception=True),
    ),
    ("cohere", sse({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "too many tokens: 9000"}})),
    ("ollama", b'{"error": "the input length exceeds the context length"}\n'),
]


@pytest.mark.parametrize("api", STREAMED)
@pytest.mark.parametrize(("backend", "stream"), OVERFLOWS, ids=[f"{row[0]}-{len(row[1])}" for row in OVERFLOWS])
def test_an_overflow_in_a_stream_is_one_in_every_api(backend: str, stream: bytes, api: str) -> None:
    decoder = get_api(backend).stream_decoder()
    written = b"".join(get_api(api).encode_stream([*decoder.feed(stream), *decoder.finish()]))
    decoder = get_api(api).stream_decoder()
    (problem,) = collect([*decoder.feed(written), *decoder.finish()]).problems
    assert kind_of_problem(problem) is TOO_LONG
    if api == "openai_chat":
        assert json.loads(written.decode().rpartition("data: ")[2])["error"]["code"] == "context_length_exceeded"
    if api.startswith("anthropic"):
        assert b"prompt is too long: " in written


@pytest.mark.parametrize("code", ["model_not_found", "invalid_api_key", "insufficient_quota", "rate_limit_exceeded"])
@pytest.mark.parametrize("api", ["openai_chat", "openai_responses"])
def test_a_code_of_openai_stays_what_it_is(api: str, code: str) -> None:
    decoder = get_api("openai_chat").stream_decoder()
    events = [*decoder.feed(sse({"error": {"message": "m", "code": code}})), *decoder.finish()]
    written = json.loads(b"".join(get_api(api).encode_stream(events)).decode().rpartition("data: ")[2])
    written = written.get("response", written)
    assert written.get("error", written)["code"] == code


@pytest.mark.parametrize(
    ("message", "status", "code", "kind"),
    [
        ("Rate limit: too many tokens per minute", 0, "", INTERNAL),
        ("Too many tokens for your quota", 400, "", INVALID),
        ("Too many tokens", 429, "", RATE_LIMIT),
        ("Too many tokens", 400, "", TOO_LONG),
        ("Too many tokens", 0, "", TOO_LONG),
        ("Too many tokens per day", 0, "context_length_exceeded", TOO_LONG),
        ("Nothing that is known", 400, "CONTEXT_LENGTH_EXCEEDED", TOO_LONG),
        ("Too many tokens", 400, "invalid_api_key", NO_KEY),
    ],
)
def test_a_limit_of_time_is_no_overflow(message: str, status: int, code: str, kind: FailureKind) -> None:
    assert kind_of_problem(Problem("provider_error", 0, "", message, None, status, code)) is kind


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"code": "server_is_overloaded", "type": "server_error"}, "server_is_overloaded"),
        ({"code": 429, "status": "RESOURCE_EXHAUSTED"}, "RESOURCE_EXHAUSTED"),
        ({"code": "429", "type": "rate_limit_error"}, "rate_limit_error"),
        ({"code": None, "type": ["x"]}, ""),
        ({"code": "c" * 200}, "c" * 100),
        ("context_length_exceeded", ""),
    ],
)
def test_the_word_of_an_error_is_read_from_members_that_have_one(error: object, code: str) -> None:
    assert code_of(error) == code


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (TOO_LONG, "invalid_request_error"),
        (UNKNOWN_MODEL, "not_found_error"),
        (RATE_LIMIT, "rate_limit_error"),
        (INTERNAL, "api_error"),
        (UNREACHABLE, "api_error"),
        (UNAVAILABLE, "overloaded_error"),
        (TIMED_OUT, "timeout_error"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.status),
)
def test_messages_have_a_word_for_each_failure_outside_of_streams(kind: FailureKind, word: str) -> None:
    assert kind.anthropic == word

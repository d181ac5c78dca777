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
    FailureKind,
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
        ("not_found_error", 0),
        (None, 0),
    ],
)
def test_status_is_read_from_members_that_name_one(error: object, status: int) -> None:
    assert status_of(error) == status

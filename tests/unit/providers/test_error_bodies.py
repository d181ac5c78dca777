"""Errors that take the place of an answer with the status 200, in the ways of many servers and in every API."""

import json
from typing import Any

import pytest

from toolwire import get_api
from toolwire.events import collect
from toolwire.messages import FinishReason, Problem
from toolwire.providers.error_bodies import error_in
from toolwire.providers.framing import aws_event, sse

APIS = [
    *("openai_chat", "openai_responses", "anthropic_messages", "gemini", "gemini_interactions", "bedrock_converse"),
    *("cohere", "mistral", "groq", "ollama"),
]
BODIES: list[tuple[dict[str, Any], str, int]] = [
    # the body, its text, the status that it names
    ({"object": "error", "message": "out of memory", "type": "BadRequestError", "code": 400}, "out of memory", 400),
    ({"object": "error", "message": "out of memory", "type": "invalid_request_error"}, "out of memory", 400),
    ({"detail": "not authenticated"}, "not authenticated", 0),
    ({"detail": [{"loc": ["body", "model"], "msg": "field required"}]}, "field required", 0),
    ({"detail": {"message": "no such model", "code": 404}}, "no such model", 404),
    ({"error": {"message": "too many requests", "code": 429}}, "too many requests", 429),
    ({"error": {"code": "rate_limit_exceeded"}}, "rate_limit_exceeded", 429),
    ({"error": "upstream is away"}, "upstream is away", 0),
    ({"error": "upstream is away", "error_type": "overloaded"}, "upstream is away", 0),
    ({"message": "no route matched"}, "no route matched", 0),
    ({"Message": "user is not authorized"}, "user is not authorized", 0),
    ({"msg": "internal", "code": 500}, "internal", 500),
    ({"error_message": "no quota"}, "no quota", 0),
    ({"error_msg": "invalid key", "error_code": 110}, "invalid key", 0),
    ({"success": False, "result": None, "errors": [{"code": 10000, "message": "no permission"}]}, "no permission", 0),
    ({"type": "https://example.com/p", "title": "Forbidden", "status": 403, "detail": "no access"}, "no access", 403),
    ({"type": "error", "message": "overloaded now"}, "overloaded now", 0),
]
ANSWER_PARTS: dict[str, bytes] = {
    # parts of streams that have such members, and are not errors
    "openai_chat": sse({"object": "chat.completion.chunk", "choices": [], "error": None, "message": "in a queue"}),
    "openai_responses": sse({"type": "response.queued", "message": "in a queue", "response": {}}),
    "anthropic_messages": sse({"type": "ping", "message": "in a queue"}),
    "gemini_interactions": sse({"event_type": "interaction.queued", "message": "in a queue"}),
    "cohere": sse({"type": "queue-position", "message": "in a queue"}),
    "ollama": b'{"model":"m","message":{"role":"assistant","content":""},"done":false}\n',
}


def check(problems: tuple[Problem, ...], finish: FinishReason, text: str, status: int) -> None:
    (problem,) = problems
    assert (problem.kind, problem.status, finish) == ("provider_error", status, FinishReason.ERROR)
    assert text in problem.message.lower() or text in problem.message


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("body", "text", "status"), BODIES, ids=[json.dumps(body)[:40] for body, _, _ in BODIES])
def test_an_error_instead_of_an_answer_is_the_providers(api: str, body: dict[str, Any], text: str, status: int) -> None:
    read = get_api(api).decode_response(body)
    check(read.problems, read.finish_reason, text, status)
    # A server may also answer so where a stream was asked for: as it is, or in the framing of the stream.
    framed = {"ollama": json.dumps(body).encode() + b"\n", "bedrock_converse": aws_event(body, "")}
    for data in (json.dumps(body).encode(), framed.get(api, sse(body))):
        for size in (len(data), 1):
            decoder = get_api(api).stream_decoder()
            pieces = [data[at : at + size] for at in range(0, len(data), size)]
            streamed = collect([*(event for piece in pieces for event in decoder.feed(piece)), *decoder.finish()])
            check(streamed.problems, streamed.finish_reason, text, status)


@pytest.mark.parametrize("error", [{"detail": "no room"}, {"error": "no room"}, {"message": "no room", "code": 500}])
def test_an_answer_with_an_error_inside_does_not_end_as_if_it_were_whole(error: dict[str, Any]) -> None:
    decoder = get_api("openai_chat").stream_decoder()
    begin = sse({"choices": [{"delta": {"content": "a"}}]})
    end = sse({"choices": [{"delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"
    read = collect([*decoder.feed(begin + sse(error) + end), *decoder.finish()])
    assert (read.content, read.finish_reason) == ("a", FinishReason.ERROR)
    assert [problem.kind for problem in read.problems] == ["provider_error"]


@pytest.mark.parametrize(("api", "part"), ANSWER_PARTS.items())
def test_an_event_with_a_member_of_that_name_is_no_error(api: str, part: bytes) -> None:
    assert not [event for event in get_api(api).stream_decoder().feed(part) if type(event).__name__ == "ProblemFound"]


@pytest.mark.parametrize("body", [{}, {"error": None, "detail": None}, {"message": {"content": ""}}, {"errors": []}])
def test_a_body_without_a_text_is_no_error(body: dict[str, Any]) -> None:
    assert error_in(body) is None


@pytest.mark.parametrize("api", APIS)
def test_an_unreadable_body_does_not_end_as_if_it_were_whole(api: str) -> None:
    read = get_api(api).decode_response({"output": 5, "content": 5, "choices": 5, "candidates": 5, "steps": 5})
    assert read.finish_reason is FinishReason.ERROR
    assert [problem.kind for problem in read.problems] == ["malformed"]

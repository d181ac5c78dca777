"""Completions of prompts: passed on to servers that have them, and Ollama's as a conversation for all others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ollama import ChatResponse, GenerateResponse
from tests.unit.gateway.gateway_calls import Scripted, gateway, run

from toolwire import Client, ContentDelta, Finish, FinishReason
from toolwire.events import ReasoningDelta, UsageCounted
from toolwire.gateway.upstreams import ApiUpstream, TextUpstream
from toolwire.messages import Usage
from toolwire.models import TextBackend
from toolwire.testing import ScriptedTransport

WHOLE = (
    b'{"id": "c", "object": "text_completion", "choices": [{"index": 0, "text": " jumps", "logprobs": null, '
    b'"finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}'
)
STREAM = (
    b'data: {"id": "c", "object": "text_completion", "choices": [{"index": 0, "text": " jumps", '
    b'"finish_reason": null}]}\n\ndata: {"id": "c", "choices": [{"index": 0, "text": "", "finish_reason": "stop"}], '
    b'"usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}\n\ndata: [DONE]\n\n'
)
ANSWER = [[ReasoningDelta("hm"), ContentDelta("Rain."), UsageCounted(Usage(7, 5)), Finish(FinishReason.STOP)]]


class Addressed(ScriptedTransport):
    """A scripted server that also notes the addresses of requests."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.urls: list[str] = []

    def open(self, request: Any) -> Any:
        self.urls.append(request.url)
        return super().open(request)


def backend(api: str, answer: bytes, **options: Any) -> tuple[ApiUpstream, Addressed]:
    transport = Addressed(api, [answer])
    return ApiUpstream(Client(api, "m", base_url="http://b", transport=transport, **options)), transport


@pytest.mark.parametrize("prompt", ["The fox", ["The fox", "A dog"], [791, 39935], [[791], [39935]]])
@pytest.mark.parametrize(("stream", "answer"), [(False, WHOLE), (True, STREAM)], ids=["whole", "stream"])
@pytest.mark.parametrize("path", ["/v1/completions", "/completions"])
def test_a_completion_is_passed_on_as_it_is(path: str, stream: bool, answer: bytes, prompt: Any) -> None:
    upstream, transport = backend("openai_compatible", answer)
    body = {"model": "m", "prompt": prompt, "stream": stream, "suffix": "dog", "best_of": 2}
    app = gateway(upstream)
    got = run(app, path, body)
    assert (got.status, got.body) == (200, answer)
    assert (transport.requests, transport.urls) == ([body], ["http://b/completions"])
    metrics = run(app, "/metrics", method="GET").body.decode()
    assert 'toolwire_gateway_tokens_total{backend="openai_compatible",direction="output",model="*"} 2.0' in metrics


def test_the_settings_of_a_profile_are_in_a_completion_too() -> None:
    upstream, transport = backend("openai_compatible", WHOLE, settings={"temperature": 0.5})
    run(gateway(upstream), "/v1/completions", {"model": "m", "prompt": "The fox", "suffix": "dog"})
    assert transport.requests == [{"model": "m", "prompt": "The fox", "suffix": "dog", "temperature": 0.5}]


def test_a_backend_without_completions_refuses_them() -> None:
    text = TextUpstream(TextBackend(lambda messages: iter(["hi"]), format="hermes", model="m"), name="text")
    for upstream in (backend("anthropic_messages", b"{}")[0], text):
        got = run(gateway(upstream), "/v1/completions", {"model": "m", "prompt": "The fox"})
        assert got.status == 400 and "cannot complete a prompt" in got.json["error"]["message"]


@pytest.mark.parametrize("prompt", [None, 5], ids=["none", "number"])
def test_a_completion_without_a_prompt_is_refused(prompt: Any) -> None:
    got = run(gateway(Scripted()), "/v1/completions", {"model": "m", "prompt": prompt})
    assert got.status == 400 and got.json["error"]["type"] == "invalid_request_error"


def test_a_stream_of_a_completion_that_is_cut_off_ends_with_an_error() -> None:
    upstream, _ = backend("openai_compatible", STREAM[:120])
    got = run(gateway(upstream), "/v1/completions", {"model": "m", "prompt": "The fox", "stream": True})
    assert b'"error"' in got.body and b"[DONE]" not in got.body


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_prompt_of_ollama_is_answered_in_the_members_of_a_completion(stream: bool) -> None:
    body = {"model": "m", "prompt": "Weather?", "system": "Be brief.", "images": ["aGk="], "stream": stream}
    upstream = Scripted(*ANSWER)
    got = run(gateway(upstream), "/api/generate", body)
    lines = [GenerateResponse(**json.loads(line)) for line in got.body.splitlines()]
    assert "".join(line.response or "" for line in lines) == "Rain."
    assert "".join(line.thinking or "" for line in lines) == "hm"
    assert (lines[-1].done, lines[-1].done_reason, lines[-1].eval_count) == (True, "stop", 5)
    assert b'"message"' not in got.body
    request = upstream.questions[0].request
    assert [message.role for message in request.messages] == ["system", "user"]
    assert [part.data for part in request.messages[1].parts if hasattr(part, "data")] == ["aGk="]


def test_a_prompt_is_passed_on_to_ollama_itself() -> None:
    answer = b'{"model": "m", "response": "Rain.", "done": true, "done_reason": "stop", "context": [1, 2]}'
    upstream, transport = backend("ollama", answer)
    body = {"model": "m", "prompt": "Weather?", "suffix": "!", "raw": True, "stream": False}
    assert run(gateway(upstream), "/api/generate", body).body == answer
    assert (transport.requests, transport.urls) == ([body], ["http://b/api/generate"])


def test_the_settings_of_a_profile_are_in_a_prompt_of_ollama_too() -> None:
    upstream, transport = backend("ollama", b'{"response": "Rain.", "done": true}', settings={"temperature": 0.5})
    body = {"model": "m", "prompt": "Weather?", "system": "Be brief.", "images": ["aGk="], "raw": True, "stream": False}
    run(gateway(upstream), "/api/generate", body)
    assert transport.requests == [{**body, "options": {"temperature": 0.5}}]


@pytest.mark.parametrize("body", [{}, {"prompt": ""}, {"messages": []}], ids=["nothing", "prompt", "messages"])
@pytest.mark.parametrize(
    ("path", "kind", "member"),
    [("/api/generate", GenerateResponse, "response"), ("/api/chat", ChatResponse, "message")],
    ids=["generate", "chat"],
)
def test_an_empty_request_of_ollama_asks_for_the_model_alone(path: str, kind: Any, member: str, body: Any) -> None:
    upstream = Scripted()
    got = run(gateway(upstream), path, {"model": "m", **body})
    assert kind(**got.json).done_reason == "load" and member in got.json
    assert upstream.questions == []

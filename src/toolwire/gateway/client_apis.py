"""The APIs that the gateway speaks to its clients: one value each, with all that differs between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.stream_pieces import (
    CHAT_PIECES,
    GEMINI_PIECES,
    MESSAGES_PIECES,
    OLLAMA_PIECES,
    RESPONSES_PIECES,
    PieceShape,
)
from toolwire.providers.api_registry import get_api
from toolwire.providers.base import ProviderApi
from toolwire.providers.framing import sse
from toolwire.providers.ollama_generate import OllamaGenerate
from toolwire.providers.prompt_completions import PromptCompletions

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClientApi:
    """An API that clients of the gateway speak.

    Attributes:
        api: reads requests, and writes answers and streams.
        failure: writes the body that reports a failure.
        pieces: the events of a stream that only continue a text.
        stream_type: the media type of streams.
        keep_alive: bytes for a stream in which nothing has happened for a while; b"" if the API knows none.
        streams_by_default: whether a request that does not say so asks for a stream.
        path: the path of the API at a backend of its kind, if it is not that of conversations.
        translates: whether a backend of another kind may answer.
        choices: the names of the members that lead to the number of answers that a request asks for.
        shows_truncated_calls: whether a stream has the arguments of calls in pieces, so that it shows a broken call.
    """

    api: ProviderApi
    failure: Callable[[GatewayFailure], Json]
    pieces: PieceShape
    stream_type: str = "text/event-stream; charset=utf-8"
    keep_alive: bytes = b": waiting\n\n"
    streams_by_default: bool = False
    path: str = ""
    translates: bool = True
    choices: tuple[str, ...] = ()
    shows_truncated_calls: bool = True

    @property
    def name(self) -> str:
        """The name of the API."""
        return self.api.name

    def message(self, failure: GatewayFailure) -> str:
        """Return the message of the body that reports a failure."""
        error: str | Json = self.failure(failure)["error"]
        return error if isinstance(error, str) else str(error["message"])


def _openai_failure(failure: GatewayFailure) -> Json:
    kind = failure.kind
    members = {"type": kind.openai_type, "param": failure.parameter or None, "code": kind.openai_code or None}
    return {"error": {"message": str(failure), **members}}


def _anthropic_failure(failure: GatewayFailure) -> Json:
    # Clients shorten a conversation that is too long only if they recognise these words.
    message = str(failure) if failure.overflow is None else failure.overflow.for_anthropic()
    return {"type": "error", "error": {"type": failure.kind.anthropic, "message": message}}


def _gemini_failure(failure: GatewayFailure) -> Json:
    return {"error": {"code": failure.status, "message": str(failure), "status": failure.kind.gemini}}


def _ollama_failure(failure: GatewayFailure) -> Json:
    return {"error": str(failure)}


CHAT = ClientApi(get_api("openai_compatible"), _openai_failure, CHAT_PIECES, choices=("n",))
COMPLETIONS = replace(CHAT, api=PromptCompletions(CHAT.name), path="/completions", translates=False)
RESPONSES = ClientApi(get_api("openai_responses"), _openai_failure, RESPONSES_PIECES)
MESSAGES = ClientApi(
    get_api("anthropic_messages"), _anthropic_failure, MESSAGES_PIECES, keep_alive=sse({"type": "ping"}, "ping")
)
# Google's SDK for JavaScript fails at the end of a stream with a comment in it; it skips blank lines.
GEMINI = ClientApi(
    get_api("gemini"),
    _gemini_failure,
    GEMINI_PIECES,
    keep_alive=b"\n\n",
    choices=("generationConfig", "candidateCount"),
    shows_truncated_calls=False,
)
OLLAMA = ClientApi(
    get_api("ollama"),
    _ollama_failure,
    OLLAMA_PIECES,
    stream_type="application/x-ndjson",
    keep_alive=b"",
    streams_by_default=True,
    shows_truncated_calls=False,
)
GENERATE = replace(OLLAMA, api=OllamaGenerate(), path="/api/generate")

"""The addresses of the gateway: each with its API, its methods, and the function that answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from toolwire.gateway.client_apis import CHAT, COMPLETIONS, GEMINI, GENERATE, MESSAGES, OLLAMA, RESPONSES, ClientApi
from toolwire.gateway.client_calls import ClientCall
from toolwire.gateway.failures import NO_WEBSOCKET, GatewayFailure
from toolwire.gateway.gateway_metrics import show_metrics
from toolwire.gateway.model_lists import (
    describe_model,
    gemini_model,
    gemini_models,
    list_models,
    ollama_running,
    ollama_show,
    ollama_tags,
    ollama_version,
)
from toolwire.gateway.stored_responses import (
    cancel_response,
    create_response,
    delete_response,
    list_input_items,
    retrieve_response,
)
from toolwire.gateway.token_counts import count_gemini_tokens, count_tokens
from toolwire.providers.failure_kinds import NOT_FOUND, UNAVAILABLE

Handle = Callable[[ClientCall], Awaitable[None]]


class Address(NamedTuple):
    """Paths with one meaning.

    Attributes:
        paths: the paths; places in braces are named.
        client_api: the API that errors are written in, and requests are read in.
        handle: answers a request.
        methods: the methods.
        needs_key: whether a request needs a key, where the gateway has keys.
        has_spans: whether requests are spans of a trace; those that only watch the gateway are not.
    """

    paths: tuple[str, ...]
    client_api: ClientApi
    handle: Handle
    methods: tuple[str, ...] = ("POST",)
    needs_key: bool = True
    has_spans: bool = True

    @property
    def asks_model(self) -> bool:
        """True if requests are answered by a model; only these are shown by the inspector."""
        return self.handle in (generate, generate_gemini, ollama_chat, ollama_generate, create_response)


def with_version(path: str) -> tuple[str, ...]:
    """Return a path with and without `/v1`: the base URL of some clients lacks it."""
    return f"/v1{path}", path


async def generate(call: ClientCall) -> None:
    """Answer a question whose body says everything."""
    await call.answer(await call.question(await call.body()))


async def generate_gemini(call: ClientCall) -> None:
    """Answer a request to one of Gemini's models, whose address names the model and the method."""
    model, _, method = call.path["call"].rpartition(":")
    match method:
        case "generateContent" | "streamGenerateContent" if model:
            streams = method == "streamGenerateContent"
            await call.answer(await call.question(await call.body(), model=model, stream=streams))
        case "countTokens" if model:
            await count_gemini_tokens(call)
        case _:
            raise GatewayFailure(NOT_FOUND, f"there is no method {method or model!r:.100}")


async def ollama_chat(call: ClientCall) -> None:
    """Answer a request of Ollama's chat; one without messages only asks for the model to be loaded."""
    body = await call.body()
    if body.get("messages") == [] or "messages" not in body:
        await _say_loaded(call, body, message={"role": "assistant", "content": ""})
    else:
        await call.answer(await call.question(body))


async def ollama_generate(call: ClientCall) -> None:
    """Answer a request to complete a prompt; one without a prompt only asks for the model to be loaded."""
    body = await call.body()
    if body.get("prompt") or body.get("images"):
        await call.answer(await call.question(body))
    else:
        await _say_loaded(call, body, response="")


async def _say_loaded(call: ClientCall, body: Mapping[str, Any], **empty: Any) -> None:
    model = str(body.get("model") or "")
    call.model(model)
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    await call.send_json({"model": model, "created_at": now, **empty, "done": True, "done_reason": "load"})


async def refuse_websocket(call: ClientCall) -> None:
    """Refuse a connection of the Responses API over a websocket, so that clients use HTTP at once."""
    if call.headers.get("upgrade", "").lower() == "websocket":
        raise GatewayFailure(NO_WEBSOCKET, "this server has no websockets: use HTTP")
    raise GatewayFailure(NOT_FOUND, "there is nothing at this address")


async def say_hello(call: ClientCall) -> None:
    """Answer a client that looks whether anything is here, and say whether the configuration is the newest."""
    rejected = call.services.models.rejected
    await call.send_json({"status": "ok", **({"configuration": rejected} if rejected else {})})


async def say_ready(call: ClientCall) -> None:
    """Answer a client that looks whether models can be asked: the status is 503 if no backend can."""
    models = call.services.models
    unready = await models.unready()
    # Names of backends and of variables are not for everybody.
    count = f"{len(unready)} of {models.backend_count} cannot be asked: the log of the start says why"
    is_ready = len(unready) < models.backend_count or not unready
    answer = {
        "status": "ok" if is_ready else "not ready",
        **({"configuration": models.rejected} if models.rejected else {}),
        **({"backends": count} if unready else {}),
    }
    await call.send_json(answer, 200 if is_ready else UNAVAILABLE.status)


GET = ("GET", "HEAD")
ROUTES: tuple[Address, ...] = (
    Address(with_version("/chat/completions"), CHAT, generate),
    Address(with_version("/completions"), COMPLETIONS, generate),
    Address(with_version("/responses"), RESPONSES, create_response),
    Address(with_version("/responses/{id}"), RESPONSES, retrieve_response, GET),
    Address(with_version("/responses/{id}"), RESPONSES, delete_response, ("DELETE",)),
    Address(with_version("/responses/{id}/cancel"), RESPONSES, cancel_response),
    Address(with_version("/responses/{id}/input_items"), RESPONSES, list_input_items, GET),
    Address(with_version("/responses"), RESPONSES, refuse_websocket, ("GET",)),
    Address(with_version("/messages"), MESSAGES, generate),
    Address(with_version("/messages/count_tokens"), MESSAGES, count_tokens),
    Address(with_version("/models"), CHAT, list_models, GET),
    Address(("/v1beta/models", "/v1/v1beta/models"), GEMINI, gemini_models, GET),
    Address(("/v1beta/models/{call:path}", "/v1/models/{call:path}", "/models/{call:path}"), GEMINI, generate_gemini),
    Address(("/v1beta/models/{model:path}",), GEMINI, gemini_model, GET),
    Address(with_version("/models/{model:path}"), CHAT, describe_model, GET),
    Address(("/api/chat",), OLLAMA, ollama_chat),
    Address(("/api/generate",), GENERATE, ollama_generate),
    Address(("/api/tags",), OLLAMA, ollama_tags, GET),
    Address(("/api/show",), OLLAMA, ollama_show),
    Address(("/api/ps",), OLLAMA, ollama_running, GET),
    Address(("/api/version",), OLLAMA, ollama_version, GET),
    Address(("/", "/api/hello"), CHAT, say_hello, GET),
    Address(("/health",), CHAT, say_hello, GET, needs_key=False, has_spans=False),
    Address(("/ready",), CHAT, say_ready, GET, needs_key=False, has_spans=False),
    Address(("/metrics",), CHAT, show_metrics, GET, has_spans=False),
)


def api_at(path: str) -> ClientApi:
    """Return the API in which a failure at any path is reported: that of the route that begins most like it."""
    fitting = [
        (len(prefix), address.client_api)
        for address in ROUTES
        for prefix in (route.partition("{")[0].rstrip("/") for route in address.paths)
        if prefix and f"{path}/".startswith(f"{prefix}/")
    ]
    return max(fitting, key=lambda fit: fit[0], default=(0, OLLAMA if path.startswith("/api/") else CHAT))[1]

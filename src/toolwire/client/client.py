"""A model behind an API: a conversation goes out, events come back."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Self, Unpack
from urllib.parse import quote, urlsplit

from toolwire._surface import check_type, needs_extra, wrong_type
from toolwire.client.exchange import HttpAnswer, HttpRequest, Transport
from toolwire.client.transport import HttpTransport
from toolwire.errors import ConfigurationError, ProviderError
from toolwire.events import Event, collect, replay
from toolwire.messages import Message, ParsedResponse
from toolwire.providers.api_registry import get_api
from toolwire.providers.base import ProviderApi
from toolwire.providers.message_parts import Json
from toolwire.providers.parsing import Merging, merge_text
from toolwire.providers.request import ChatRequest, Notes, RequestOptions
from toolwire.tools import ToolDefinition, definitions

MAX_ERROR = 500
"""Characters of an error's body that a message shows."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an API is served.

    Attributes:
        base_url: its address; "" if everybody has one of their own.
        path: of a request; `{model}` stands for the model's name.
        stream_path: of one for an answer in pieces, if it is another.
        key: environment variables that may hold the key, the first that is set counts.
        header: the header of the key.
        prefix: written before the key.
        headers: others.
        omit: members of the body that stand in the address.
        signed: requests are signed with AWS credentials.
    """

    base_url: str = ""
    path: str = "/chat/completions"
    stream_path: str = ""
    key: tuple[str, ...] = ()
    header: str = "authorization"
    prefix: str = "Bearer "
    headers: tuple[tuple[str, str], ...] = ()
    omit: tuple[str, ...] = ()
    signed: bool = False


_GEMINI = Endpoint(
    "https://generativelanguage.googleapis.com",
    "/v1beta/models/{model}:generateContent",
    "/v1beta/models/{model}:streamGenerateContent?alt=sse",
    ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    header="x-goog-api-key",
    prefix="",
)
ENDPOINTS = {
    "openai_chat": Endpoint("https://api.openai.com/v1", key=("OPENAI_API_KEY",)),
    "openai_responses": Endpoint("https://api.openai.com/v1", "/responses", key=("OPENAI_API_KEY",)),
    "azure": Endpoint(key=("AZURE_OPENAI_API_KEY",), header="api-key", prefix=""),
    "anthropic_messages": Endpoint(
        "https://api.anthropic.com",
        "/v1/messages",
        key=("ANTHROPIC_API_KEY",),
        header="x-api-key",
        prefix="",
        headers=(("anthropic-version", "2023-06-01"),),
    ),
    "gemini": _GEMINI,
    "gemini_openapi": _GEMINI,
    "bedrock_converse": Endpoint(
        "https://bedrock-runtime.{region}.amazonaws.com",
        "/model/{model}/converse",
        "/model/{model}/converse-stream",
        omit=("modelId",),
        signed=True,
    ),
    "mistral": Endpoint("https://api.mistral.ai/v1", key=("MISTRAL_API_KEY",)),
    "cohere": Endpoint("https://api.cohere.com", "/v2/chat", key=("COHERE_API_KEY", "CO_API_KEY")),
    "ollama": Endpoint("http://localhost:11434", "/api/chat", key=("OLLAMA_API_KEY",)),
    "groq": Endpoint("https://api.groq.com/openai/v1", key=("GROQ_API_KEY",)),
    "deepseek": Endpoint("https://api.deepseek.com", key=("DEEPSEEK_API_KEY",)),
    "xai": Endpoint("https://api.x.ai/v1", key=("XAI_API_KEY",)),
    "openrouter": Endpoint("https://openrouter.ai/api/v1", key=("OPENROUTER_API_KEY",)),
    "together": Endpoint("https://api.together.xyz/v1", key=("TOGETHER_API_KEY",)),
    "fireworks": Endpoint("https://api.fireworks.ai/inference/v1", key=("FIREWORKS_API_KEY",)),
    "cerebras": Endpoint("https://api.cerebras.ai/v1", key=("CEREBRAS_API_KEY",)),
    "moonshot": Endpoint("https://api.moonshot.ai/v1", key=("MOONSHOT_API_KEY",)),
    "vllm": Endpoint("http://localhost:8000/v1", key=("VLLM_API_KEY",)),
    "sglang": Endpoint("http://localhost:30000/v1"),
    "llama_cpp": Endpoint("http://localhost:8080/v1"),
}


class Client:
    """One model behind one API.

    Args:
        api: the API, or its name.
        model: the model's name.
        base_url: the server's address, if it is not the provider's own.
        key: the key, which is never shown. Else it comes from the environment when a request is made: from `key_env`;
            or, for the provider's own address, from the variable that it is usually in.
        key_env: the environment variable that holds the key.
        transport: what carries the requests; else HTTP.
        text_format: the wire format in which calls may stand in the answer's text; "auto" for any, None for none.

    Raises:
        UnknownApi: no such API.
        ConfigurationError: the API has no address of its own, and none is given.
    """

    def __init__(
        self,
        api: str | ProviderApi,
        model: str,
        *,
        base_url: str = "",
        key: str | None = None,
        key_env: str = "",
        transport: Transport | None = None,
        text_format: str | None = "auto",
    ) -> None:
        self.api = get_api(api)
        check_type("model", model, str, "the model's name")
        check_type("base_url", base_url, str, "text")
        check_type("key", key, (str, NoneType), "text or None")
        check_type("text_format", text_format, (str, NoneType), "a format's name or None")
        if transport is not None and not callable(getattr(transport, "open", None)):
            raise wrong_type("transport", transport, "a Transport, such as HttpTransport()")
        self.model = model
        self.text_format = text_format
        self._endpoint = ENDPOINTS.get(self.api.name, Endpoint())
        self._base = (base_url or self._endpoint.base_url).rstrip("/")
        if not self._base:
            raise ConfigurationError(f"{self.api.name} has no address of its own: give a base_url")
        self._key = key
        self._key_env = key_env
        self._own: HttpTransport | None = None
        if transport is None:
            transport = self._own = HttpTransport()
        self._transport = transport

    def __repr__(self) -> str:
        """Return the API, the model and the server; never a key."""
        url = urlsplit(self._base)
        return f"<Client {self.api.name}: model {self.model!r} at {url.scheme}://{url.netloc.rpartition('@')[2]}>"

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections that were made here."""
        await self.close()

    async def close(self) -> None:
        """Close the connections that were made here."""
        if self._own is not None:
            await self._own.close()

    async def stream(
        self,
        conversation: ChatRequest | Iterable[Message] | str,
        *,
        tools: Any = (),
        notes: Notes | None = None,
        id_seed: str = "",
        **options: Unpack[RequestOptions],
    ) -> AsyncGenerator[Event]:
        """The events of the answer, as they come; closing the iterator cancels the request.

        Args:
            conversation: messages, a user's text, or a whole request.
            tools: what the model may call.
            notes: takes a note of everything that could not be said as it was.
            id_seed: goes into the ids of calls that come without one.
            options: see `toolwire.models.RequestOptions`.

        Raises:
            ProviderError: the server cannot be reached or refuses; its message says why.
            ConfigurationError: no key is set.
            DefinitionError: see `ProviderApi.encode_request`.
        """
        tools = _offered(conversation, tools)
        body = self._body(conversation, tools, True, notes, options)
        async with self._transport.open(self._request(body, stream=True)) as answer:
            if not answer.good:
                for event in replay(await self._refused(answer, tools, id_seed)):
                    yield event
                return
            reader = _Reader(self, tools, id_seed)
            async for piece in answer.body:
                for event in reader.feed(piece):
                    yield event
            for event in reader.finish():
                yield event

    async def ask(
        self,
        conversation: ChatRequest | Iterable[Message] | str,
        *,
        tools: Any = (),
        notes: Notes | None = None,
        id_seed: str = "",
        **options: Unpack[RequestOptions],
    ) -> ParsedResponse:
        """The whole answer; see `stream` for the arguments and what it raises."""
        tools = _offered(conversation, tools)
        body = self._body(conversation, tools, False, notes, options)
        async with self._transport.open(self._request(body, stream=False)) as answer:
            if not answer.good:
                return await self._refused(answer, tools, id_seed)
            data = _json(await answer.read())
        if not isinstance(data, dict):
            raise ProviderError(f"{self.api.name} answered what is no JSON object", status=answer.status)
        response = self.api.decode_response(data, tools=tools, id_seed=id_seed)
        if self.text_format is None:
            return response
        merged = merge_text(replay(response), format=self.text_format, tools=tools, id_seed=id_seed)
        return collect(merged, raw=data)

    def _body(self, conversation: Any, tools: Any, stream: bool, notes: Notes | None, options: RequestOptions) -> Json:
        return self.api.encode_request(
            conversation, tools=tools or None, model=self.model, stream=stream, notes=notes, **options
        )

    def _request(self, body: Json, *, stream: bool) -> HttpRequest:
        endpoint = self._endpoint
        path = (stream and endpoint.stream_path) or endpoint.path
        base = self._base
        if endpoint.signed:
            base = base.replace("{region}", _region())
        url = base + path.replace("{model}", quote(self.model, safe=""))
        data = json.dumps({key: value for key, value in body.items() if key not in endpoint.omit}).encode()
        headers = {"content-type": "application/json", **dict(endpoint.headers)}
        if getattr(self._transport, "offline", False):
            return HttpRequest(url, data, headers)
        if endpoint.signed:
            return HttpRequest(url, data, signed_headers(url, data, headers))
        key = self._secret()
        if key:
            headers[endpoint.header] = endpoint.prefix + key
        return HttpRequest(url, data, headers)

    def _secret(self) -> str:
        """The key, or "". A server of somebody else never gets a provider's key by itself."""
        own = self._base == self._endpoint.base_url
        names = (self._key_env,) if self._key_env else self._endpoint.key if own else ()
        key = (
            self._key
            if self._key is not None
            else next((value for name in names if (value := os.environ.get(name))), "")
        )
        key = key.strip()
        if not key and (self._key_env or (names and self._base.startswith("https://"))):
            raise ConfigurationError(f"{self.api.name} needs a key: set {' or '.join(names)}")
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError("the key holds characters that no key has")
        return key

    async def _refused(self, answer: HttpAnswer, tools: Any, id_seed: str) -> ParsedResponse:
        """What the model had written, where the server refuses just that; else the refusal as an error."""
        body = await answer.read()
        data = _json(body)
        error = data.get("error") if isinstance(data, dict) else None
        if isinstance(error, Mapping) and "failed_generation" in error and isinstance(data, dict):
            return self.api.decode_response(data, tools=tools, id_seed=id_seed)
        said = error.get("message") if isinstance(error, Mapping) else error
        if not said and isinstance(data, dict):
            said = data.get("message")
        text = str(said or body.decode("utf-8", "replace"))[:MAX_ERROR]
        if secret := ("" if self._endpoint.signed else self._secret()):
            text = text.replace(secret, "[key]")
        raise ProviderError(f"{self.api.name} answered {answer.status}: {text}", status=answer.status)


class _Reader:
    """Bytes of a streamed answer -> events, with the calls that stand in its text."""

    def __init__(self, client: Client, tools: Any, id_seed: str) -> None:
        self._decoder = client.api.stream_decoder(tools=tools, id_seed=id_seed)
        wanted = client.text_format
        self._merging = None if wanted is None else Merging(format=wanted, tools=tools, id_seed=id_seed)

    def feed(self, piece: bytes) -> Iterator[Event]:
        return self._merged(self._decoder.feed(piece))

    def finish(self) -> Iterator[Event]:
        yield from self._merged(self._decoder.finish())
        if self._merging is not None:
            yield from self._merging.finish()

    def _merged(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            yield from (event,) if self._merging is None else self._merging.feed(event)


def _offered(conversation: Any, tools: Any) -> list[ToolDefinition]:
    """The tools of a request, once: those that are given, else its own."""
    given = list(definitions(tools).values())
    return given or (list(conversation.tools) if isinstance(conversation, ChatRequest) else [])


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def signed_headers(url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request to Bedrock, signed with the credentials that botocore finds.

    Raises:
        MissingExtra: botocore is not installed.
        ConfigurationError: botocore finds no credentials.
    """
    with needs_extra("Bedrock"):
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.session import Session
    credentials = Session().get_credentials()
    if credentials is None:
        raise ConfigurationError("no AWS credentials were found")
    request = AWSRequest("POST", url, data=body, headers=dict(headers))
    SigV4Auth(credentials, "bedrock", _region()).add_auth(request)
    return dict(request.headers.items())

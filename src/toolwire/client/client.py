"""A client of a model behind a provider API: a conversation goes out, events come back."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from types import NoneType
from typing import Any, Self, Unpack
from urllib.parse import quote, urlsplit

from toolwire._surface import check_type, needs_extra, wrong_type
from toolwire.client.endpoints import ENDPOINTS, Endpoint
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
"""Maximum length of an error's body that a message shows, in characters."""


class Client:
    """A client of one model behind one API.

    Args:
        api: the API, or its name.
        model: the model's name.
        base_url: the base URL, if it is not the provider's own.
        key: the key, which is never shown. None to read it from the environment with each request: from `key_env`; or,
            for the provider's own URL, from the provider's usual variable.
        key_env: the environment variable that contains the key.
        transport: carries the requests; by default HTTP.
        text_format: the wire format of calls in the text of an answer; "auto" for any, None for none.

    Raises:
        UnknownApi: the API does not exist.
        ConfigurationError: the API has no public endpoint, and `base_url` is missing.
        TypeError: a value is of another type.
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
            raise ConfigurationError(f"{self.api.name} has no public endpoint: pass base_url")
        if not self._base.startswith(("http://", "https://")):
            raise ConfigurationError(
                f"base_url must begin with http:// or https://, not {self._base.rpartition('@')[2]!r:.200}"
            )
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
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections that the client opened."""
        await self.close()

    async def close(self) -> None:
        """Close the connections that the client opened; not those of a transport that was passed in."""
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
        """Yield the events of the answer as they arrive; closing the iterator cancels the request.

        Args:
            conversation: messages, a user's text, or a whole request.
            tools: the tools that the model may call, in any shape that `toolwire.parse` takes.
            notes: collects what could not be translated.
            id_seed: part of the ids of calls that come without one.
            options: see `toolwire.models.RequestOptions`.

        Raises:
            ProviderError: the server cannot be reached or refuses; the message gives its reason.
            ConfigurationError: no key is set.
            DefinitionError, TypeError: see `ProviderApi.encode_request`.
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
        """Return the whole answer; see `stream` for the arguments and the errors."""
        tools = _offered(conversation, tools)
        body = self._body(conversation, tools, False, notes, options)
        async with self._transport.open(self._request(body, stream=False)) as answer:
            if not answer.good:
                return await self._refused(answer, tools, id_seed)
            data = _json(await answer.read())
        if not isinstance(data, dict):
            raise ProviderError(f"{self.api.name} did not answer with a JSON object", status=answer.status)
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
        """Return the key, or "". Another server than the provider's own is never sent the provider's usual key."""
        is_public = self._base == self._endpoint.base_url
        names = (self._key_env,) if self._key_env else self._endpoint.key if is_public else ()
        key = (
            self._key
            if self._key is not None
            else next((value for name in names if (value := os.environ.get(name))), "")
        )
        key = key.strip()
        if not key and (self._key_env or (names and self._base.startswith("https://"))):
            raise ConfigurationError(f"{self.api.name} needs a key: set {' or '.join(names)}, or pass key=")
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError("the key contains characters that no key has")
        return key

    async def _refused(self, answer: HttpAnswer, tools: Any, id_seed: str) -> ParsedResponse:
        """Return the text that a server refuses as the model's failed generation; raise any other refusal.

        Raises:
            ProviderError: the server refuses the request.
        """
        body = await answer.read()
        data = _json(body)
        error = data.get("error") if isinstance(data, dict) else None
        if isinstance(error, Mapping) and "failed_generation" in error and isinstance(data, dict):
            return self.api.decode_response(data, tools=tools, id_seed=id_seed)
        message = error.get("message") if isinstance(error, Mapping) else error
        if not message and isinstance(data, dict):
            message = data.get("message")
        text = str(message or body.decode("utf-8", "replace"))[:MAX_ERROR]
        if secret := ("" if self._endpoint.signed else self._secret()):
            text = text.replace(secret, "[key]")
        raise ProviderError(f"{self.api.name} answered {answer.status}: {text}", status=answer.status)


class _Reader:
    """Reads the events of a streamed answer, and the calls in its text."""

    def __init__(self, client: Client, tools: Any, id_seed: str) -> None:
        self._decoder = client.api.stream_decoder(tools=tools, id_seed=id_seed)
        text_format = client.text_format
        self._merging = None if text_format is None else Merging(format=text_format, tools=tools, id_seed=id_seed)

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
    """Return the tools of a request: those of the argument, else those of the conversation."""
    passed = list(definitions(tools).values())
    return passed or (list(conversation.tools) if isinstance(conversation, ChatRequest) else [])


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def signed_headers(url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request to Bedrock, signed with the credentials that botocore finds.

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

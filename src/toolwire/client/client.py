"""A client of a model behind a provider API: a conversation goes out, events come back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from dataclasses import replace
from types import NoneType
from typing import Any, Self, Unpack, overload
from urllib.parse import urlsplit

from typing_extensions import TypeForm, TypeVar

from toolwire._surface import check_type, wrong_type
from toolwire.client.addressed_request import addressed, base_of, with_token_counts
from toolwire.client.aws_signature import signed_headers
from toolwire.client.cloud_places import filled
from toolwire.client.endpoint_key import read_key
from toolwire.client.endpoints import ENDPOINTS, Endpoint, with_model
from toolwire.client.exchange import HttpAnswer, HttpRequest, Transport
from toolwire.client.extraction import ExtractOptions, extract
from toolwire.client.hidden_secrets import hidden_in, without_secrets_in
from toolwire.client.response_body import (
    MAX_ERROR_BODY,
    MAX_STREAM,
    beginning,
    json_of,
    limited,
    model_names,
    refusal,
    without_secrets,
)
from toolwire.client.transport import HttpTransport, Retry
from toolwire.errors import ConfigurationError, ProviderError
from toolwire.events import Event, collect, replay
from toolwire.messages import Content, Message, ParsedResponse
from toolwire.providers.api_registry import get_api
from toolwire.providers.base import ProviderApi
from toolwire.providers.inert_request import inert_for_template, is_inert
from toolwire.providers.message_parts import Json
from toolwire.providers.model_settings import ModelOptions, RequestAdditions, patched
from toolwire.providers.parsing import AnswerReader, merge_text
from toolwire.providers.reasoning_seals import has_reasoning_of_others
from toolwire.providers.request import AskOptions, ChatRequest, Notes, RequestOptions, estimate_tools, result_texts
from toolwire.runtime.blocking import iterate_blocking, run_blocking
from toolwire.schema.output_type import output_type_of
from toolwire.text.suggest import check_options
from toolwire.text.tokens import PER_TOKEN, TokenCount, estimate_message_tokens
from toolwire.tools import ToolDefinition, definitions
from toolwire.wire.profiles import profile
from toolwire.wire.stream_parser import ParseOptions

_OutputT = TypeVar("_OutputT")

MAX_ERROR = 500
"""Maximum length of an error's body that a message shows, in characters."""

SECRET = 8
"""Length of an extra header, in characters, from which it may be a secret, so that no message shows it."""

_CLIENT_OPTIONS = ("base_url", "key", "key_env", "transport", "retry", "text_format", *ModelOptions.__annotations__)


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
        retry: when a request that failed is repeated; None for the defaults of `Retry`. Not with `transport`, which
            repeats requests by itself or not at all.
        text_format: the wire format of calls in the text of an answer: "" for the one in which this model writes calls
            by its profile, and none if the profile names none; "auto" for any, which is for models that are not known
            behind servers that leave calls in the text; None for none.
        options: additions to each request; see `toolwire.models.ModelOptions`.

    Attributes:
        api: the API.
        model: the model's name.
        text_format: the wire format of calls in the text of an answer, "auto", or None.
        price_provider: the provider in the list of published prices; "" for a server of one's own.

    Raises:
        UnknownApi: the API does not exist.
        ConfigurationError: the API has no public endpoint, and `base_url` is missing; or there are
            `transport` and `retry`.
        DefinitionError: a setting has an invalid value.
        TypeError: a value is of another type, or an option or a setting is unknown.
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
        retry: Retry | None = None,
        text_format: str | None = "",
        **options: Unpack[ModelOptions],
    ) -> None:
        check_options("Client", options, _CLIENT_OPTIONS)
        self.api = get_api(api)
        check_type("model", model, str, "the model's name")
        check_type("base_url", base_url, str, "text")
        check_type("key", key, (str, NoneType), "text or None")
        check_type("text_format", text_format, (str, NoneType), "a format's name or None")
        if transport is not None and not callable(getattr(transport, "open", None)):
            raise wrong_type("transport", transport, "a Transport, such as HttpTransport()")
        check_type("retry", retry, (Retry, NoneType), "Retry() or None")
        if transport is not None and retry is not None:
            raise ConfigurationError("retry= has no effect beside transport=: pass it to HttpTransport(retry=...)")
        self.model = model
        self.text_format = profile(model).text_format if text_format == "" else text_format
        self._additions = RequestAdditions.of(**options)
        self._endpoint = ENDPOINTS.get(self.api.name, Endpoint())
        self._base = base_of(self._endpoint, base_url)
        if not self._base:
            raise ConfigurationError(f"{self.api.name} has no public endpoint: pass base_url")
        if not self._base.startswith(("http://", "https://")):
            raise ConfigurationError(
                f"base_url must begin with http:// or https://, not {self._base.rpartition('@')[2]!r:.200}"
            )
        public = self._endpoint.base_url
        self.price_provider = self._endpoint.prices if not public or self._base == public else ""
        self._key = key
        self._key_env = key_env
        self._own: HttpTransport | None = None
        if transport is None:
            transport = self._own = HttpTransport(retry=retry)
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

    def __enter__(self) -> Self:
        """Return the client, for use without asyncio."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections that calls without asyncio opened."""
        run_blocking(self.close)

    async def stream(
        self,
        conversation: ChatRequest | Iterable[Message] | Content,
        *,
        tools: Any = (),
        notes: Notes | None = None,
        id_seed: str = "",
        **options: Unpack[AskOptions],
    ) -> AsyncGenerator[Event]:
        """Yield the events of the answer as they arrive; closing the iterator cancels the request.

        Args:
            conversation: messages; a user's text, or a list of text, images and files; or a whole request.
            tools: the tools that the model may call, in any shape that `toolwire.parse` takes.
            notes: collects what could not be translated.
            id_seed: part of the ids of calls that come without one.
            options: see `toolwire.models.AskOptions`.

        Raises:
            ProviderError: the server cannot be reached or refuses; the message gives its reason.
            ConfigurationError: no key is set.
            DefinitionError, TypeError: see `ProviderApi.encode_request`.
        """
        request, additions = self._asked(conversation, options)
        tools = _offered(request, tools)
        body = self._body(request, tools, True, notes, additions)
        async with self._transport.open(self._request(body, additions, stream=True)) as answer:
            if not answer.good:
                for event in replay(await self._refused(answer, tools, id_seed, additions)):
                    yield event
                return
            reading = self._text_options(request, tools, id_seed)
            reader = AnswerReader(self.api, reads_text=self.text_format is not None, **reading)
            secrets = self._secrets(additions)
            async for piece in limited(answer.body, MAX_STREAM, answer.status):
                for event in reader.feed(piece):
                    yield without_secrets_in(event, secrets)
            for event in reader.finish():
                yield without_secrets_in(event, secrets)

    async def ask(
        self,
        conversation: ChatRequest | Iterable[Message] | Content,
        *,
        tools: Any = (),
        notes: Notes | None = None,
        id_seed: str = "",
        **options: Unpack[AskOptions],
    ) -> ParsedResponse:
        """Return the whole answer; see `stream` for the arguments and the errors."""
        request, additions = self._asked(conversation, options)
        tools = _offered(request, tools)
        body = self._body(request, tools, False, notes, additions)
        async with self._transport.open(self._request(body, additions, stream=False)) as answer:
            if not answer.good:
                return await self._refused(answer, tools, id_seed, additions)
            data = json_of(await answer.read())
        if not isinstance(data, dict):
            raise ProviderError(f"{self.api.name} did not answer with a JSON object", status=answer.status)
        response = self.api.decode_response(data, tools=tools, id_seed=id_seed)
        if response.problems:
            secrets = self._secrets(additions)
            response = replace(response, problems=tuple(hidden_in(problem, secrets) for problem in response.problems))
        if self.text_format is None:
            return response
        return collect(merge_text(replay(response), **self._text_options(request, tools, id_seed)), raw=data)

    def encode_request(
        self,
        request: ChatRequest,
        *,
        model: str = "",
        stream: bool = False,
        notes: Notes | None = None,
        body: Mapping[str, Any] | None = None,
        counts_tokens: bool = True,
    ) -> Json:
        """Return the body that is sent for a request; see `ProviderApi.encode_request`.

        With a body of this API that the request stands for, its members stay as they are, unless a setting is added,
        the template could read control tokens in a result, or reasoning has the signature of another API.
        """
        model = model or self.model
        with_settings = request.with_defaults(self._additions.settings)
        is_foreign = self.api.checks_signatures and has_reasoning_of_others(request.messages, self.api.kind)
        if body is not None and with_settings is request and not is_foreign and is_inert(request, model):
            body = with_token_counts(self._endpoint, body) if stream and counts_tokens else body
            return patched({**body, "model": model} if "model" in body else body, self._additions.extra_body)
        return self._body(replace(with_settings, model=model), request.tools, stream, notes, self._additions)

    def open(
        self,
        body: Mapping[str, Any],
        *,
        model: str = "",
        stream: bool = False,
        extra_headers: Mapping[str, str] | None = None,
    ) -> AbstractAsyncContextManager[HttpAnswer]:
        """Send a body of the API as it is; for programs that read the answer's bytes themselves.

        Args:
            body: the body, in the API's own form.
            model: the model in the address, for APIs that have it there; "" for the client's own.
            stream: whether a stream is asked for, for APIs that say so in the address.
            extra_headers: headers of this request besides the client's own.

        Raises:
            ConfigurationError, ProviderError: see `stream`; an answer that is an error is not raised.
        """
        additions = RequestAdditions.of(None, None, extra_headers).over(self._additions)
        return self._transport.open(self._request(dict(body), additions, stream=stream, model=model))

    def beside(self, api: ProviderApi, path: str) -> Client:
        """Return a client of another API of the same server, at another path; only this client is to be closed."""
        other = copy(self)
        other.api, other._endpoint = api, replace(self._endpoint, path=path, stream_path="")
        return other

    def without_secrets(self, text: str) -> str:
        """Return a text of the server in which no key and no secret header of the client appears."""
        return without_secrets(text, self._secrets(self._additions))

    async def list_models(self) -> list[str]:
        """Return the names of the server's models; none for an API that has no list.

        Raises:
            ProviderError: the server cannot be reached, or refuses.
        """
        if not (path := self._endpoint.models):
            return []
        request = replace(self._request({}, self._additions, stream=False, path=path), body=b"", method="GET")
        async with self._transport.open(request) as answer:
            if not answer.good:
                await self._refused(answer, (), "", self._additions)
            return model_names(json_of(await answer.read()))

    async def count_tokens(
        self,
        conversation: ChatRequest | Iterable[Message] | Content,
        *,
        tools: Any = (),
        **options: Unpack[AskOptions],
    ) -> TokenCount:
        """Return the tokens that a request has: counted by the API where it can, estimated elsewhere.

        Args:
            conversation: messages, a user's text, or a whole request.
            tools: the tools that the model may call.
            options: see `stream`.

        Raises:
            ProviderError: the server cannot be reached, or does not count them.
        """
        request, additions = self._asked(conversation, options)
        tools = _offered(request, tools)
        endpoint = self._endpoint.count
        if endpoint is None:
            estimate = sum(map(estimate_message_tokens, request.messages)) + estimate_tools(tools)
            return TokenCount(estimate, estimated=True, by=f"an estimate of {PER_TOKEN} characters to a token")
        body = self._body(request, tools, False, None, additions)
        if endpoint.members:
            body = {key: value for key, value in body.items() if key in endpoint.members}
        if endpoint.wrapper:
            body = {endpoint.wrapper: {**body, "model": f"models/{self.model}"}}
        async with self._transport.open(self._request(body, additions, stream=False, path=endpoint.path)) as answer:
            if not answer.good:
                await self._refused(answer, tools, "", additions)
            data = json_of(await answer.read())
        tokens = data.get(endpoint.tokens) if isinstance(data, dict) else None
        if not isinstance(tokens, int):
            raise ProviderError(f"{self.api.name} did not count the tokens", status=answer.status)
        return TokenCount(tokens, estimated=False, by=self.api.name)

    def stream_sync(
        self,
        conversation: ChatRequest | Iterable[Message] | Content,
        *,
        tools: Any = (),
        notes: Notes | None = None,
        id_seed: str = "",
        **options: Unpack[AskOptions],
    ) -> Iterator[Event]:
        """Yield the events of the answer as they arrive, without asyncio; see `stream`."""
        return iterate_blocking(lambda: self.stream(conversation, tools=tools, notes=notes, id_seed=id_seed, **options))

    def ask_sync(
        self,
        conversation: ChatRequest | Iterable[Message] | Content,
        *,
        tools: Any = (),
        notes: Notes | None = None,
        id_seed: str = "",
        **options: Unpack[AskOptions],
    ) -> ParsedResponse:
        """Return the whole answer, without asyncio; see `ask`."""
        return run_blocking(lambda: self.ask(conversation, tools=tools, notes=notes, id_seed=id_seed, **options))

    @overload
    async def extract(
        self,
        output_type: TypeForm[_OutputT],
        conversation: ChatRequest | Iterable[Message] | Content,
        **options: Unpack[ExtractOptions],
    ) -> _OutputT: ...
    @overload
    async def extract(
        self,
        output_type: Mapping[str, Any] | Sequence[Any],
        conversation: ChatRequest | Iterable[Message] | Content,
        **options: Unpack[ExtractOptions],
    ) -> Any: ...
    async def extract(
        self,
        output_type: Any,
        conversation: ChatRequest | Iterable[Message] | Content,
        **options: Unpack[ExtractOptions],
    ) -> Any:
        """Return a value of a type that the model finds in a conversation.

        An answer that is not valid is explained to the model, which is asked again.

        Args:
            output_type: the type of the value: anything that pydantic understands, such as a model, a union or
                `list[...]`; or a dict, a JSON Schema.
            conversation: messages; a user's text, or a list of text, images and files; or a whole request, whose
                tools are not offered.
            options: `mode`, `retries` and `notes` of `ExtractOptions`, and those of each request; see
                `toolwire.models.RequestOptions`.

        Raises:
            OutputError: no answer is valid; the error says why, and contains the last answer.
            DefinitionError: the type has no JSON Schema.
            ProviderError, ConfigurationError: see `stream`. Or an option is one that an extraction sets itself.
        """
        check_options("extract", options, ExtractOptions.__annotations__)
        return await extract(self, output_type_of(output_type), ChatRequest.of(conversation, {}), options)

    @overload
    def extract_sync(
        self,
        output_type: TypeForm[_OutputT],
        conversation: ChatRequest | Iterable[Message] | Content,
        **options: Unpack[ExtractOptions],
    ) -> _OutputT: ...
    @overload
    def extract_sync(
        self,
        output_type: Mapping[str, Any] | Sequence[Any],
        conversation: ChatRequest | Iterable[Message] | Content,
        **options: Unpack[ExtractOptions],
    ) -> Any: ...
    def extract_sync(
        self,
        output_type: Any,
        conversation: ChatRequest | Iterable[Message] | Content,
        **options: Unpack[ExtractOptions],
    ) -> Any:
        """Return a value of a type that the model finds in a conversation, without asyncio; see `extract`."""
        return run_blocking(lambda: self.extract(output_type, conversation, **options))

    def _text_options(self, request: ChatRequest, tools: Sequence[ToolDefinition], id_seed: str) -> ParseOptions:
        """Return the options for reading calls in the text of an answer."""
        format = self.text_format or "auto"
        return {"format": format, "tools": tools, "id_seed": id_seed, "results": result_texts(request.messages)}

    def _asked(
        self, conversation: ChatRequest | Iterable[Message] | Content, options: AskOptions
    ) -> tuple[ChatRequest, RequestAdditions]:
        """Return the request with its settings, and what is added to it."""
        check_options("ask", options, AskOptions.__annotations__)
        call = RequestAdditions.of(options.get("settings"), options.get("extra_body"), options.get("extra_headers"))
        fields = {name: value for name, value in options.items() if name in RequestOptions.__annotations__}
        request = ChatRequest.of(conversation, {**call.settings, **fields})
        return request.with_defaults(self._additions.settings), call.over(self._additions)

    def _body(
        self, request: ChatRequest, tools: Any, stream: bool, notes: Notes | None, additions: RequestAdditions
    ) -> Json:
        model = request.model or self.model
        request, tools = inert_for_template(request, tools, model)
        body = self.api.encode_request(request, tools=tools or None, model=model, stream=stream, notes=notes)
        return patched(with_token_counts(self._endpoint, body) if stream else body, additions.extra_body)

    def _request(
        self, body: Json, additions: RequestAdditions, *, stream: bool, path: str = "", model: str = ""
    ) -> HttpRequest:
        endpoint = self._endpoint
        path = path or (stream and endpoint.stream_path) or endpoint.path
        is_offline = getattr(self._transport, "offline", False)
        address = self._base + with_model(path, model or self.model)
        url = filled(address, self.api.name, required=not is_offline)
        request = addressed(endpoint, url, body, additions.extra_headers)
        if is_offline:
            return request
        if endpoint.signed:
            return replace(request, headers=signed_headers(request.url, request.body, request.headers))
        key = self._secret(additions)
        return replace(request, headers={**request.headers, endpoint.header: endpoint.prefix + key}) if key else request

    def _secret(self, additions: RequestAdditions) -> str:
        """Return the key; "" for none, as if a header replaces that of the key."""
        if self._endpoint.header in additions.extra_headers:
            return ""
        return read_key(self._endpoint, self._base, self._key, self._key_env, self.api.name)

    async def _refused(
        self, answer: HttpAnswer, tools: Any, id_seed: str, additions: RequestAdditions
    ) -> ParsedResponse:
        """Return the text that a server refuses as the model's failed generation; raise any other refusal.

        Raises:
            ProviderError: the server refuses the request.
        """
        body = await beginning(answer.body, MAX_ERROR_BODY)
        data = json_of(body)
        error = data.get("error") if isinstance(data, dict) else None
        if isinstance(error, Mapping) and "failed_generation" in error and isinstance(data, dict):
            return self.api.decode_response(data, tools=tools, id_seed=id_seed)
        # Secrets are hidden before the text is truncated: otherwise the first part of one could remain at its end.
        why = refusal(answer.status, answer.headers, body)[: MAX_ERROR_BODY >> 2]
        text = f"{self.api.name} answered {answer.status}: {without_secrets(why, self._secrets(additions))[:MAX_ERROR]}"
        raise ProviderError(text, status=answer.status, retry_after=answer.headers.get("retry-after", ""))

    def _secrets(self, additions: RequestAdditions) -> dict[str, str]:
        """Return what no message may show, by the names that replace it."""
        headers = {name: value for name, value in additions.extra_headers.items() if len(value) >= SECRET}
        if self._endpoint.signed or getattr(self._transport, "offline", False):
            return headers
        return {"key": self._secret(additions), **headers}


def _offered(request: ChatRequest, tools: Any) -> list[ToolDefinition]:
    """Return the tools of a request: those of the argument, else those of the conversation."""
    return list(definitions(tools).values()) or list(request.tools)

"""The endpoint that a profile names, opened for requests that show its faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolwire.client.exchange import TIMEOUT, Transport
from toolwire.config.tables import ModelProfile
from toolwire.errors import ConfigurationError, ProviderError

if TYPE_CHECKING:
    from toolwire.client.client import Client
    from toolwire.client.transport import HttpTransport
    from toolwire.providers.base import ProviderApi

_WRONG_KEY = "wrong-key-of-toolwire-check"


@dataclass(frozen=True, slots=True)
class OpenEndpoint:
    """An endpoint that is examined.

    Attributes:
        api: its API.
        profile: its model.
        transport: carries the requests.
        connect: returns a client that sends its requests with a transport; with a wrong key if that is asked for.
    """

    api: ProviderApi
    profile: ModelProfile
    transport: HttpTransport
    connect: Callable[[Transport, bool], Client]

    async def with_model(self) -> OpenEndpoint:
        """Return the endpoint with a model: the only one of the server, unless the profile names one.

        Raises:
            ConfigurationError: the server has several models, or none, or does not list them, or cannot be reached.
        """
        if self.profile.model:
            return self
        try:
            models = await self.connect(self.transport, False).list_models()
        except ProviderError as error:
            if not error.status:
                raise ConfigurationError(f"{error} (is the server running, and is this its address?)") from error
            if error.status in (401, 403):
                reason = f"the server does not accept the key, or needs one: {error}"
                raise ConfigurationError(f"{reason} (--key-env names the variable with the key)") from error
            raise ConfigurationError(f"give --model: the server does not list its models: {error}") from error
        if len(models) != 1:
            raise ConfigurationError(f"give --model{listed(models) if models else ': the server lists none'}")
        return open_endpoint(self.profile.model_copy(update={"model": models[0]}), self.transport)


def open_endpoint(
    profile: ModelProfile, transport: HttpTransport | None = None, *, timeout: float = TIMEOUT
) -> OpenEndpoint:
    """Return the endpoint of a profile; no request is sent yet.

    Args:
        profile: the profile of the model.
        transport: carries the requests; None for a new one.
        timeout: seconds without any byte after which a request of a new one has failed.

    Raises:
        ConfigurationError, UnknownApi: the profile names no endpoint.
    """
    from toolwire.agent.model_pool import api_of, local_name, open_client  # here, because agents are slow to import
    from toolwire.client.transport import HttpTransport, Retry

    if name := local_name(profile):
        raise ConfigurationError(f"{name} runs in this process: there is no endpoint to check")
    if not profile.model and not profile.url:
        raise ConfigurationError("the profile names no model")
    api = api_of(profile, profile.negotiator().negotiate(profile.provider, profile.model))
    if transport is None:
        retry = Retry() if profile.retry is None else Retry(**profile.retry.model_dump())
        # An error of the server is an answer here, and not a reason to ask again.
        transport = HttpTransport(timeout=timeout, retry=replace(retry, statuses=frozenset((429, 529))))

    def connect(carrier: Transport, has_wrong_key: bool) -> Client:
        key = _WRONG_KEY if has_wrong_key else None
        return open_client(profile, api, text_format=None, transport=carrier, key=key)

    return OpenEndpoint(api, profile, transport, connect)


def listed(names: Iterable[str]) -> str:
    """Return the end of a message that lists what there is."""
    return f"; there are {', '.join(names)}"

"""Models as programs name them: a backend, a client, or text with a provider and a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from toolwire._surface import wrong_type
from toolwire.errors import ConfigurationError
from toolwire.models.backends import ApiBackend, Backend

if TYPE_CHECKING:
    from toolwire.client.client import Client  # not imported at run time: a text model needs no HTTP

EXAMPLE = "openai:gpt-5-mini"
LOCAL = "local"


def as_backend(model: Backend | Client | str | None, argument: str = "backend") -> Backend:
    """Return the backend of a model; for a client, and for text such as "openai:gpt-5-mini", one with fields for tools.

    Args:
        model: a backend, a client, or a provider and the name of its model, whose key is in the environment; None is
            refused, as any other type.
        argument: name of the argument, for messages.

    Raises:
        ConfigurationError: the text names no provider, or a model in this process; or the provider has no public
            endpoint.
        KeyError: there is no such provider; the message suggests similar names.
        TypeError: the model is something else.
    """
    if isinstance(model, str):
        return ApiBackend(_client(model, argument))
    if is_backend(model):
        return model
    from toolwire.client.client import Client

    if isinstance(model, Client):
        return ApiBackend(model)
    raise wrong_type(argument, model, f'a Backend, a Client, or text such as "{EXAMPLE}"')


def is_backend(model: object) -> TypeGuard[Backend]:
    """Return whether a model is a backend. A client streams too, but it has no format that it is asked to write."""
    return not isinstance(model, type) and hasattr(model, "format") and callable(getattr(model, "stream", None))


def _client(text: str, argument: str) -> Client:
    provider, colon, name = text.partition(":")
    if not (provider and colon and name):
        raise ConfigurationError(f'{argument} must name a provider and a model, such as "{EXAMPLE}", not {text!r:.80}')
    if provider == LOCAL:
        raise ConfigurationError(
            f"{text!r:.80} runs in this process, so it has to be loaded first: "
            f"TextBackend(local_source(open_model({name!r:.80})), format=...)"
        )
    from toolwire.client.client import Client

    return Client(provider, name)

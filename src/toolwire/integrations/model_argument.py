"""The model that an integration asks: a backend, a client, or a function from messages to text."""

from __future__ import annotations

from toolwire._surface import wrong_type
from toolwire.client.client import Client
from toolwire.errors import ConfigurationError
from toolwire.models.backends import Backend, Source, TextBackend, client_source
from toolwire.models.named_models import as_backend, is_backend
from toolwire.models.process_sources import TextFunction, Writer, function_source, local_source
from toolwire.wire.format_registry import get_format

AnyModel = Backend | Client | Writer | TextFunction | str
"""A model: a backend; a client, or text such as "openai:gpt-5-mini"; a model in this process; or a function."""


def backend_of(model: AnyModel, format: str) -> Backend:
    """Return the backend of a model.

    Args:
        model: the model.
        format: the wire format that it is asked to write; "" for a backend, which knows its own, and for an API whose
            fields for tools are used.

    Raises:
        ConfigurationError: `format` is missing or has no effect, or `model` is text that names no model of an API.
        KeyError: there is no such provider, or no such format; the message suggests similar names.
        TypeError: `model` is something else.
    """
    if is_backend(model) and format:
        raise ConfigurationError("a backend has a format of its own, so format= has no effect: leave it out")
    if not format and (is_backend(model) or isinstance(model, Client | str)):
        return as_backend(model, "model")
    source = _source_of(model)
    if not format:
        raise ConfigurationError('name the wire format of a model of text, such as format="hermes"')
    get_format(format)  # a wrong name is an error here, not with the first request
    return TextBackend(source, format=format, model=_name_of(model))


def _source_of(model: AnyModel) -> Source:
    if isinstance(model, str):
        model = as_backend(model, "model").client  # type: ignore[attr-defined]
    if isinstance(model, Client):
        return client_source(model)
    if callable(getattr(model, "stream", None)):
        return local_source(model)  # type: ignore[arg-type]
    if callable(model):
        return function_source(model)
    raise wrong_type("model", model, "a Backend, a Client, or a function from messages to text")


def _name_of(model: AnyModel) -> str:
    if isinstance(model, str):
        return model
    return model.model if isinstance(model, Client) else getattr(model, "__name__", "")

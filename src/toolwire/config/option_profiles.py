"""Profiles of models that options name, in place of a configuration file."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from toolwire.config.tables import ModelProfile
from toolwire.config.toml_source import fault_words
from toolwire.errors import ConfigurationError


def option_profile(**values: Any) -> ModelProfile:
    """Return the profile of a model that options name.

    Args:
        values: the keys of `ModelProfile`, with tables as dicts.

    Raises:
        ConfigurationError: a value cannot be used, such as the name of an API that does not exist.
    """
    try:
        return ModelProfile.model_validate(values)
    except ValidationError as error:
        # The options have other names than the keys of a file, and the value in the message says which one it is.
        raise ConfigurationError(fault_words(error.errors()[0])) from error

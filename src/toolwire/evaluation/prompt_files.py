"""Prompt styles by name or from a file, so that anyone can compare sentences of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from toolwire.config.toml_source import read_text, read_toml
from toolwire.errors import ConfigurationError
from toolwire.evaluation.suite import validation_message
from toolwire.wire.prompt_styles import PromptStyle, get_style

_ENDING: Final = ".toml"


class _StyleFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    before_tools: str
    before_example: str
    after_example: str = ""


def open_style(name: str) -> PromptStyle:
    """Return a prompt style.

    Args:
        name: the name of a style, or the path of a TOML file with the attributes of `PromptStyle`. The file's own name
            is that of the style.

    Raises:
        ConfigurationError: there is no such style or file, or the file has other members.
    """
    if not name.endswith(_ENDING):
        return get_style(name)
    try:
        members = _StyleFile.model_validate(read_toml(name, read_text(name)))
    except ValidationError as error:
        raise ConfigurationError(f"{name}: {validation_message(error)}") from error
    return PromptStyle(Path(name).stem, **members.model_dump())

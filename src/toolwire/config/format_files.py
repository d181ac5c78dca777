"""Own wire formats in JSON files: a file is read, and its format is known by its name in this process."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from toolwire.config.toml_source import read_text
from toolwire.errors import ConfigurationError, DefinitionError
from toolwire.text.json_text import standard_json
from toolwire.wire.format_import import import_formats
from toolwire.wire.format_registry import register_formats
from toolwire.wire.syntax import WireFormat


def register_format_files(configuration: str | PathLike[str], names: Any) -> None:
    """Register the formats that the files describe which a configuration file names.

    Args:
        configuration: the path of the configuration file.
        names: the paths of the files, relative to it. A value of another type is left to the check of the whole file.

    Raises:
        ConfigurationError: a file cannot be read, or does not describe one format, or its name is taken.
    """
    for name in names if isinstance(names, list) else ():
        path = Path(configuration).parent / str(name)
        try:
            document = standard_json(read_text(path, if_missing=f" ({configuration} names it in format_files)"))
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"{path}: it is not JSON: {' '.join(str(error).split())}") from error
        register_described_format(document, str(path))


def register_described_format(document: Any, place: str) -> WireFormat:
    """Register the format that a document describes, and return it.

    Args:
        document: the JSON value.
        place: where it comes from, for messages.

    Raises:
        ConfigurationError: it does not describe one format, or its name is taken.
    """
    if not isinstance(document, dict):
        raise ConfigurationError(f"{place}: it is not an object that describes a format")
    try:
        formats = import_formats(document)
        if len(formats) != 1:
            raise ConfigurationError(
                f"{place} describes {len(formats)} formats: one file describes one, without the others"
            )
        register_formats(formats)
    except DefinitionError as error:
        raise ConfigurationError(f"{place}: {error}") from error
    return formats[0]

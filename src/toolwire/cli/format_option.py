"""The option that names a wire format, or a JSON file that describes one."""

from __future__ import annotations

from toolwire.cli.console import CliError
from toolwire.cli.input_files import read_json
from toolwire.errors import DefinitionError
from toolwire.wire.format_import import import_formats
from toolwire.wire.format_registry import register_formats
from toolwire.wire.syntax import WireFormat

FORMAT_HELP = "Wire format, or a JSON file that describes one; `toolwire formats` lists them."
_described: list[WireFormat] = []


def read_format(value: str | None) -> str | None:
    """Return the name of a format; that of the one which the file describes, if the value is the path of a JSON file.

    Raises:
        CliError: the file cannot be read, or does not describe one format.
    """
    if value is None or not value.lower().endswith(".json"):
        return value
    document = read_json(value)
    if not isinstance(document, dict):
        raise CliError(f"{value}: it is not an object that describes a format")
    try:
        formats = import_formats(document)
        if len(formats) != 1:
            raise CliError(f"{value} describes {len(formats)} formats: one file describes one, without the others")
        register_formats(formats)
    except DefinitionError as error:
        raise CliError(f"{value}: {error}") from error
    _described.extend(formats)
    return formats[0].name


def read_formats(values: list[str] | None) -> list[str] | None:
    """Return the names of formats; see `read_format`."""
    return values and [str(read_format(value)) for value in values]


def described_formats() -> tuple[WireFormat, ...]:
    """Return the formats that were read from files, for processes that do not share the registry of this one."""
    return tuple(_described)

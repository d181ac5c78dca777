"""The option that names a wire format, or a JSON file that describes one."""

from __future__ import annotations

from toolwire.cli.input_files import read_json
from toolwire.config.format_files import register_described_format
from toolwire.wire.syntax import WireFormat

FORMAT_HELP = "Wire format, or a JSON file that describes one; `toolwire formats` lists them."
_described: list[WireFormat] = []


def read_format(value: str | None) -> str | None:
    """Return the name of a format; that of the one which the file describes, if the value is the path of a JSON file.

    Raises:
        CliError, ConfigurationError: the file cannot be read, or does not describe one format.
    """
    if value is None or not value.lower().endswith(".json"):
        return value
    wire = register_described_format(read_json(value), value)
    _described.append(wire)
    return wire.name


def read_formats(values: list[str] | None) -> list[str] | None:
    """Return the names of formats; see `read_format`."""
    return values and [str(read_format(value)) for value in values]


def described_formats() -> tuple[WireFormat, ...]:
    """Return the formats that were read from files, for processes that do not share the registry of this one."""
    return tuple(_described)

"""Looking up wire formats by name or alias."""

from __future__ import annotations

from collections.abc import Iterable

from toolwire.errors import UnknownFormat
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import WireFormat

AUTO = "auto"
"""The name that stands for detection."""


def _index(formats: Iterable[WireFormat]) -> dict[str, WireFormat]:
    found: dict[str, WireFormat] = {}
    for wire in formats:
        for name in (wire.name, *wire.aliases):
            found.setdefault(name.lower(), wire)
    return found


_BY_NAME = _index(FORMATS)


def formats() -> tuple[str, ...]:
    """The names of all wire formats, without aliases and without "auto"."""
    return tuple(wire.name for wire in FORMATS)


def get_format(name: str | WireFormat) -> WireFormat:
    """The format of that name or alias, in any case; a format itself is given back.

    Raises:
        UnknownFormat: there is none (also a KeyError); "auto" is none, it only reads.
    """
    if isinstance(name, WireFormat):
        return name
    found = _BY_NAME.get(name.lower())
    if found is None and name.lower() == AUTO:
        error = UnknownFormat(name, ())
        error.args = (
            f"{name!r} only reads: it stands for whichever format a text is in; to write or show one, name it "
            "(`toolwire formats` lists them all)",
        )
        raise error
    if found is None:
        raise UnknownFormat(name, [*_BY_NAME, AUTO])
    return found

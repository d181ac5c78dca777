"""The registry of wire formats, by name and alias, including those of other packages.

A package registers a format with an entry point in the group `toolwire.formats`, whose object is a `WireFormat`:

    [project.entry-points."toolwire.formats"]
    my_format = "my_package.my_format:FORMAT"

A program registers its own with `register_formats`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import lru_cache

from toolwire._surface import check_type
from toolwire.errors import DefinitionError, UnknownFormat, capture_errors
from toolwire.text.escape import escape_invisible
from toolwire.text.suggest import closest, did_you_mean
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import WireFormat

AUTO = "auto"
"""The format name that selects detection."""
GROUP = "toolwire.formats"
"""The group of entry points for formats of other packages."""
_registered: list[WireFormat] = []
"""The formats of `register_formats`."""
_SEPARATORS = str.maketrans("", "", "-._")


def _index(formats: Iterable[WireFormat]) -> dict[str, WireFormat]:
    by_name: dict[str, WireFormat] = {}
    for wire in formats:
        for name in (wire.name, *wire.aliases):
            by_name.setdefault(name.lower(), wire)
    return by_name


@lru_cache(maxsize=1)
def all_formats() -> tuple[WireFormat, ...]:
    """Return all formats: Toolwire's own, those of other packages, and those of this program.

    Raises:
        DefinitionError: an entry point is not a `WireFormat`, or its name is taken.
    """
    from importlib.metadata import entry_points  # slow to import

    all_found = list(FORMATS)
    names_taken = {AUTO, *_index(FORMATS)}
    # Sorted, because the order of installed packages differs between machines, and detection depends on the order.
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        wire: object = None
        # One broken package must not disable the others, nor end the program.
        with capture_errors((BaseException,), propagated=(KeyboardInterrupt,)) as loading:
            wire = point.load()
        if loading.error is not None:
            reason = escape_invisible(" ".join(loading.message.split()))
            warnings.warn(f"the wire format {point.name!r} of {point.value} cannot be loaded: {reason}", stacklevel=2)
            continue
        if not isinstance(wire, WireFormat):
            raise DefinitionError(
                f"the entry point {point.name!r} of {GROUP} is {point.value}, which is not a WireFormat"
            )
        names = {name.lower() for name in (wire.name, *wire.aliases)}
        if names & names_taken:
            raise DefinitionError(f"the format {wire.name!r} of {point.value} has a name that is taken")
        names_taken |= names
        all_found.append(wire)
    return (*all_found, *_registered)


def register_formats(formats: Iterable[WireFormat]) -> None:
    """Make formats known by name and in `auto`, in this process; it does not know them after it ends.

    Raises:
        DefinitionError: a name is taken by another format; then none of them is registered. The same format again
            changes nothing.
    """
    names_taken, new = {AUTO: None, **_by_name()}, []
    for wire in formats:
        names = [name.lower() for name in (wire.name, *wire.aliases)]
        if all(names_taken.get(name) == wire for name in names):
            continue
        for name in names:
            if name in names_taken:
                raise DefinitionError(f"the format {wire.name!r} has a name that is taken: {name!r}")
        names_taken.update(dict.fromkeys(names, wire))
        new.append(wire)
    if new:
        _registered.extend(new)
        for cached in (all_formats, _by_name, _by_spelling):
            cached.cache_clear()


@lru_cache(maxsize=1)
def _by_name() -> dict[str, WireFormat]:
    return _index(all_formats())


def _without_separators(name: str) -> str:
    return name.lower().translate(_SEPARATORS)


@lru_cache(maxsize=1)
def _by_spelling() -> dict[str, WireFormat | None]:
    """Return the formats by their names without separators; None where two formats would have one name."""
    by_spelling: dict[str, WireFormat | None] = {}
    for name, wire in _by_name().items():
        key = _without_separators(name)
        # Two formats that differ in a separator alone: neither may be chosen by guess.
        by_spelling[key] = wire if by_spelling.get(key, wire) is wire else None
    return by_spelling


def formats() -> tuple[str, ...]:
    """Return the names of all wire formats, without aliases and without "auto"."""
    return tuple(wire.name for wire in all_formats())


def format_names() -> dict[str, str]:
    """Return all names and aliases of wire formats, in lower case, each with the name of its format."""
    return {name: wire.name for name, wire in _by_name().items()}


def get_format(name: str | WireFormat) -> WireFormat:
    """Return the format with this name or alias, in any case and with any of "-", "." and "_" between its parts.

    A format is returned as it is.

    Raises:
        UnknownFormat: no such format; also a KeyError. "auto" is not a format, it only reads.
    """
    if isinstance(name, WireFormat):
        return name
    check_type("format", name, str, "a format's name or a WireFormat")
    by_name = _by_name()
    wire = by_name.get(name.lower()) or _by_spelling().get(_without_separators(name))
    if wire is None and name.lower() == AUTO:
        raise UnknownFormat(
            name,
            (),
            f"{name!r} only reads: it stands for whichever format a text is in; to write or show one, name it "
            "(`toolwire formats` lists them all)",
        )
    # No format's name has these characters, and a hub's name or an Ollama tag has one of them.
    if wire is None and ("/" in name or ":" in name):
        raise UnknownFormat(
            name, (), f"unknown wire format {name!r}; for a model's name use toolwire.profile({name!r}).format"
        )
    if wire is None:
        near = closest(name, sorted([*by_name, AUTO]), limit=3)
        hint = f"{did_you_mean(near)} (`toolwire formats` lists them all)"
        raise UnknownFormat(name, near, f"unknown wire format {name!r}{hint}")
    return wire

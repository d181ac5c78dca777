"""The option that says which calls without markers are read."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from toolwire.cli.console import CliError
from toolwire.text.suggest import closest, did_you_mean
from toolwire.wire.fallback import FallbackLevel

_LEVELS: tuple[FallbackLevel, ...] = get_args(FallbackLevel)
Fallback = Annotated[
    str, typer.Option(help="none, whole_message or embedded: which calls to known tools are read without markers.")
]


def fallback_level(name: str) -> FallbackLevel | None:
    """Return the level that the option names; None for "", the default of the format.

    Raises:
        CliError: there is no such level.
    """
    if not name:
        return None
    for level in _LEVELS:
        if level == name:
            return level
    raise CliError(f"--fallback is {', '.join(_LEVELS)}, not {name!r:.60}{did_you_mean(closest(name, _LEVELS))}")

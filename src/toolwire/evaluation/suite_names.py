"""Suites by the names that commands take: `bfcl`, `bfcl:CATEGORY,...`, `recorded`, `recorded:FILE`, or a file."""

from __future__ import annotations

from pathlib import Path

from toolwire.errors import ConfigurationError
from toolwire.evaluation import bfcl_suite, recorded_suite
from toolwire.evaluation.suite import Suite, load_rows
from toolwire.telemetry.archive import Archive
from toolwire.telemetry.defaults import standard_archive
from toolwire.text.suggest import closest, did_you_mean

_NAMES = (bfcl_suite.NAME, recorded_suite.NAME)


def open_suite(name: str) -> Suite:
    """Return a suite.

    Args:
        name: `bfcl`, or `bfcl:` and categories; `recorded` for the runs that this machine has recorded, or `recorded:`
            and a file of recorded runs; or the path of a file of questions.

    Raises:
        ConfigurationError: there is no such suite, or it has no question.
        StateError: the file of recorded runs cannot be read.
    """
    kind, colon, rest = name.partition(":")
    if kind == bfcl_suite.NAME:
        categories = [category.strip() for category in rest.split(",") if category.strip()]
        return bfcl_suite.load_bfcl(categories or bfcl_suite.SINGLE_TURN)
    if kind == recorded_suite.NAME:
        if rest and not Path(rest).is_file():
            raise ConfigurationError(f"{name}: there is no file {rest}")
        return recorded_suite.load_recorded(Archive(rest) if rest else standard_archive())
    path = Path(name)
    if not path.is_file():
        hint = did_you_mean(suggestion + colon + rest for suggestion in closest(kind, _NAMES))
        raise ConfigurationError(f"{name} is neither a suite ({', '.join(_NAMES)}) nor a file of questions{hint}")
    return load_rows(path)

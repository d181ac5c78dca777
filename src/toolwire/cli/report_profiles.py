"""`toolwire profile --from REPORT`: the best format of each model of an evaluation, and how to pin it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from rich.text import Text

from toolwire.cli.console import CliError, emit, print_rows, say, styled
from toolwire.config.tables import LOCAL
from toolwire.evaluation.stored_report import MeasuredFormat, read_report
from toolwire.providers.api_registry import find_api
from toolwire.text.counted import counted
from toolwire.wire.format_registry import formats as formats_known

_NATIVE = "native"
# TOML knows no surrogate pairs, which JSON writes, and wants the delete character escaped.
_UNSAFE = re.compile(r"[^ !#-\[\]-~]")
_COLUMNS = ("model", "format", "constrain", "right", "of", "at least", "at most")


def show_report_profiles(report: Path, name: str, *, json: bool) -> None:
    """Print the formats of each model of a report, and a profile that pins the best one.

    Args:
        report: a report as JSON, or the directory of an evaluation.
        name: print only this model; "" for all.
        json: print one JSON object per model.

    Raises:
        CliError: the report has no such model, or no answer of it.
        ConfigurationError: it cannot be read.
    """
    formats = read_report(report).formats()
    chosen = {model: rows for model, rows in formats.items() if name in ("", model, rows[0].choice.recorded_name)}
    if not formats:
        raise CliError(f"{report} has no answer of a model to the prompt of agents", status=1)
    if not chosen:
        raise CliError(f"{report} has no model {name!r}; it has {', '.join(formats)}", status=1)
    names: set[str] = set()
    for model, rows in chosen.items():
        if json:
            emit({"model": model, "profile": _profile(rows[0]), "formats": [_figures(row) for row in rows]})
        else:
            print_rows(_COLUMNS, [_cells(model, row) for row in rows], fold=_COLUMNS, right=_COLUMNS[3:])
            rivals = [row for row in rows[1:] if row.right.high >= rows[0].right.low]
            others = counted(len(rivals), "other way")
            unsure = f" ({others} may be as good: more questions tell)" if rivals else ""
            say(f"\nTo pin {rows[0].right.tally.format} in a configuration file{unsure}:")
            print(_toml(rows[0], names))
            format = rows[0].right.tally.format
            if format != _NATIVE and format not in formats_known():
                say(f"A file describes {format}: name it in format_files, before the first table.")


def _cells(model: str, row: MeasuredFormat) -> Sequence[Text]:
    right = row.right
    shares = (f"{right.low:.1%}", f"{right.high:.1%}")
    return [styled(str(value)) for value in (model, *_asked(row), right.tally.good, right.tally.tried, *shares)]


def _asked(row: MeasuredFormat) -> tuple[str, str]:
    return row.right.tally.format, row.constrain or "none"


def _figures(row: MeasuredFormat) -> dict[str, Any]:
    format, constrain = _asked(row)
    right = row.right
    return {
        "format": format,
        "constrain": constrain,
        "right": right.tally.good,
        "questions": right.tally.tried,
        "low": right.low,
        "high": right.high,
    }


def _profile(best: MeasuredFormat) -> dict[str, Any]:
    """Return the members of a profile in a configuration file."""
    choice = best.choice
    provider, colon, name = choice.model.partition(":")
    members: dict[str, Any] = {}
    if choice.url or choice.api:
        members = {"provider": choice.api, "model": choice.model, "url": choice.url, "key_env": choice.key_env}
    elif colon and name and find_api(provider) is not None:
        members = {"provider": provider, "model": name}
    else:
        members = {"provider": LOCAL, "model": choice.recorded_name}
    members = {key: value for key, value in members.items() if value}
    if best.constrain:
        members["constrain"] = best.constrain
    if best.right.tally.format != _NATIVE:
        members["tools"] = {"definition_format": best.right.tally.format}
    return members


def _toml(best: MeasuredFormat, names: set[str]) -> str:
    """Return the table of a profile, whose name is added to those that are taken."""
    members = _profile(best)
    # Names with dots or slashes would need quotes in TOML, wherever a profile is named.
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", best.choice.recorded_name).strip("-") or "model"
    # One model behind two servers is two profiles, and a table may be there once.
    unique = next(each for number in count(1) if (each := name if number == 1 else f"{name}-{number}") not in names)
    names.add(unique)
    return "\n".join([f"[profiles.{unique}]", *(f"{key} = {_value(value)}" for key, value in members.items())])


def _escaped(match: re.Match[str]) -> str:
    return f"\\U{ord(match[0]):08X}"


def _value(value: str | Mapping[str, str]) -> str:
    if isinstance(value, str):
        return f'"{_UNSAFE.sub(_escaped, value)}"'
    return "{ " + ", ".join(f"{key} = {_value(member)}" for key, member in value.items()) + " }"

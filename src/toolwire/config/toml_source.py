"""TOML files as sources: their text, their tables, and the line in which a key is, for messages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from toolwire._surface import check_type
from toolwire.errors import ConfigurationError
from toolwire.text.suggest import closest, did_you_mean


def read_text(path: str | PathLike[str], *, if_missing: str = "") -> str:
    """Return the text of a file.

    Args:
        path: the file.
        if_missing: what to do if there is no such file; added to the message.

    Raises:
        ConfigurationError: it cannot be read.
    """
    check_type("path", path, (str, PathLike), "a path")
    try:
        return Path(path).read_text("utf-8")
    except OSError as error:
        advice = if_missing if isinstance(error, FileNotFoundError) else ""
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror or error}{advice}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from error


def read_toml(path: str | PathLike[str], text: str) -> dict[str, Any]:
    """Parse the text of a file as TOML.

    Raises:
        ConfigurationError: it is not valid TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: not TOML: {error}") from error


def refused(
    path: str | PathLike[str],
    error: ValidationError,
    line_of: Callable[[list[str]], int],
    above: tuple[str, ...] = (),
    model: type[BaseModel] | None = None,
) -> ConfigurationError:
    """Return the error for the first problem of a file, with its place.

    Args:
        path: the file.
        error: the problems that pydantic found.
        line_of: returns the line of a key; 0 if it is not known.
        above: the keys that lead to the validated table.
        model: the validated model, for suggestions in place of an unknown key.
    """
    first = error.errors()[0]
    keys = [*above, *(str(key) for key in first["loc"])]
    line = line_of(keys)
    where = f"{path}:{line}" if line else str(path)
    message = fault_words(first)
    hint = did_you_mean(_near(first, model))
    return ConfigurationError(": ".join(filter(None, (where, ".".join(keys), f"{message}{_given(first)}{hint}"))))


def fault_words(fault: Any) -> str:
    """Return what is wrong, of a fault that pydantic found, in the words of someone who writes a file."""
    match fault["type"]:
        case "extra_forbidden":
            return "there is no such key"
        case "missing":
            return "this key is missing"
        case "model_type":
            return "a table or an object is expected"
        case "too_short" | "string_too_short" if not fault["input"]:
            return "it is empty"
    return str(fault["msg"]).removeprefix("Value error, ")


def _near(error: Any, model: type[BaseModel] | None) -> list[str]:
    """Return the known keys or words that are nearest to an unknown one."""
    unknown: Any = error["input"]
    candidates: list[str] = []
    if error["type"] == "extra_forbidden" and model is not None:
        *place, unknown = error["loc"]
        candidates = _keys(model, place)
    elif error["type"] == "literal_error":
        candidates = re.findall(r"'([^']*)'", error["ctx"]["expected"])
    return closest(unknown, candidates) if isinstance(unknown, str) else []


def _keys(model: type[BaseModel], place: Iterable[str | int]) -> list[str]:
    """Return the keys that the table at a place may have."""
    kinds: list[Any] = [model]
    for key in place:
        inner: list[Any] = []
        for kind in kinds:
            if _is_table(kind):
                inner += [kind.model_fields[key].annotation] if key in kind.model_fields else []
            else:
                inner += get_args(kind)  # of an array, or of tables by name
        kinds = [unwrapped for kind in inner for unwrapped in _unwrapped(kind)]
    return [key for kind in kinds if _is_table(kind) for key in kind.model_fields]


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _unwrapped(kind: Any) -> list[Any]:
    """Return the types that a value may have, one by one."""
    if get_origin(kind) is Annotated:
        return _unwrapped(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [unwrapped for inner in get_args(kind) for unwrapped in _unwrapped(inner)]
    return [kind]


def _given(error: Any) -> str:
    return "" if error["type"] in ("extra_forbidden", "value_error") else f" (it is {error['input']!r:.60})"


_TABLE = re.compile(r"\s*(\[+)\s*([^\]]*?)\s*\]+")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PIECE = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def toml_line(text: str, keys: list[str]) -> int:
    """Return the number of the line in which a key is, or of the nearest table around it; 0 if there is none."""
    table: list[str] = []
    counts: dict[tuple[str, ...], int] = {}  # of arrays of tables, by their path
    best = depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        if match := _TABLE.match(line):
            table = path = _placed(_pieces(match[2]), counts, new=match[1] == "[[")
        elif match := _KEY.match(line):
            path = [*table, *_pieces(match[1])]
        else:
            continue
        if path == keys[: len(path)] and len(path) > depth:
            best, depth = number, len(path)
    return best


def _placed(path: list[str], counts: dict[tuple[str, ...], int], *, new: bool) -> list[str]:
    """Return the path of a table, with its index in each array of tables around it; `new`: it begins an element."""
    placed: list[str] = []
    for at, piece in enumerate(path, 1):
        placed.append(piece)
        key = tuple(placed)
        if new and at == len(path):
            counts[key] = counts.get(key, -1) + 1
        if key in counts:
            placed.append(str(counts[key]))
    return placed


def _pieces(path: str) -> list[str]:
    return [piece.strip("\"'") for piece in _PIECE.findall(path)]

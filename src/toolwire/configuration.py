"""Models and their tools in a TOML file.

    [profiles.coder]
    provider = "ollama"
    model = "qwen3-coder:30b"
    url = "http://localhost:11434"

    [profiles.coder.tools]
    definition_format = "openai"
    call_parser = "auto"
    result_format = "openai"

The table `[policy]` says which calls may run; see `rules`. The tables `[mcp.servers.NAME]` name MCP servers; see
`toolwire.mcp.servers`, which reads them.

What is wrong in it is said with the file, the line and the key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from toolwire.errors import ConfigurationError
from toolwire.negotiation import FormatNegotiator, ToolsConfig, configured
from toolwire.rules import PolicyTable


def _name(value: str) -> str:
    try:
        configured(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
    return value


_Format = Annotated[str, AfterValidator(_name)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tools(_Strict):
    """The table `tools` of a profile; see `ToolsConfig`."""

    definition_format: _Format | None = None
    call_parser: _Format | None = None
    result_format: _Format | None = None
    use_xml_tool_format: bool | None = None


class ModelProfile(_Strict):
    """One model: who serves it, where, and how tools are told to it."""

    provider: str = ""
    model: str = ""
    url: str = ""
    tools: Tools = Field(default_factory=Tools)

    def negotiator(self) -> FormatNegotiator:
        """What settles the formats of this model."""
        return FormatNegotiator(ToolsConfig(**self.tools.model_dump()))


class Configuration(_Strict):
    """A whole file."""

    profiles: dict[str, ModelProfile] = Field(default_factory=dict)
    policy: PolicyTable = Field(default_factory=PolicyTable)
    mcp: dict[str, Any] = Field(default_factory=dict)


def load_configuration(path: str | PathLike[str]) -> Configuration:
    """Read a TOML file.

    Raises:
        ConfigurationError: it cannot be read, is no TOML, or holds a key or a value that is none; the message names the
            file, the line and the key.
    """
    text = read_text(path)
    data = read_toml(path, text)
    try:
        return Configuration.model_validate(data)
    except ValidationError as error:
        raise refused(path, error, lambda keys: toml_line(text, keys)) from error


def read_text(path: str | PathLike[str]) -> str:
    """The text of a file.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from error


def read_toml(path: str | PathLike[str], text: str) -> dict[str, Any]:
    """The text of a file as TOML.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def refused(
    path: str | PathLike[str],
    error: ValidationError,
    line_of: Callable[[list[str]], int],
    above: tuple[str, ...] = (),
) -> ConfigurationError:
    """The first thing that is wrong in a file, with its place.

    Args:
        path: the file.
        error: what pydantic found.
        line_of: the line in which a key stands; 0 if that is not known.
        above: the keys that lead to what was checked.
    """
    first = error.errors()[0]
    keys = [*above, *(str(key) for key in first["loc"])]
    line = line_of(keys)
    where = f"{path}:{line}" if line else str(path)
    message = str(first["msg"]).removeprefix("Value error, ")
    return ConfigurationError(f"{where}: {'.'.join(keys)}: {message}{_given(first)}")


def _given(error: Any) -> str:
    return "" if error["type"] in ("extra_forbidden", "value_error") else f" (it is {error['input']!r:.60})"


_TABLE = re.compile(r"\s*(\[+)\s*([^\]]*?)\s*\]+")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PIECE = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def toml_line(text: str, keys: list[str]) -> int:
    """The line in which a key stands, or the nearest that holds it; 0 if none does."""
    table: list[str] = []
    counts: dict[tuple[str, ...], int] = {}  # of arrays of tables, by their path
    best = depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        if match := _TABLE.match(line):
            table = found = _placed(_pieces(match[2]), counts, new=match[1] == "[[")
        elif match := _KEY.match(line):
            found = [*table, *_pieces(match[1])]
        else:
            continue
        if found == keys[: len(found)] and len(found) > depth:
            best, depth = number, len(found)
    return best


def _placed(path: list[str], counts: dict[tuple[str, ...], int], *, new: bool) -> list[str]:
    """A table's path with the number of each array's table that it is in; `new`: it begins one."""
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

"""What the command line reads: text, JSON and definitions of tools, from files and standard input."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from toolwire.cli.console import CliError, say
from toolwire.errors import DefinitionError
from toolwire.text.json_text import DuplicateKeyError, unique_members
from toolwire.text.limits import MAX_DIGITS
from toolwire.tools import ToolDefinition, definitions

PIECE = 65_536
STDIN = "standard input"


def read_pieces(path: str | None) -> Iterator[str]:
    """Yield the text of a file, or of standard input as it comes.

    Raises:
        CliError: it cannot be read, or is not UTF-8.
    """
    if path is None or path == "-":
        if sys.stdin is None:
            raise CliError(f"{STDIN} is closed")
        if sys.stdin.isatty():
            say("Reading standard input; end it with Ctrl-D.")
        yield from _decode(sys.stdin.buffer, STDIN)
        return
    try:
        with open(path, "rb") as file:
            yield from _decode(file, path)
    except OSError as error:
        raise CliError(f"cannot read {path}: {error.strerror or error}") from error


def _decode(file: BinaryIO, name: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()  # some editors begin a file with a mark
    before = 0
    while True:
        block = file.read1(PIECE) if hasattr(file, "read1") else file.read(PIECE)
        pending = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            offset = before - pending + error.start
            raise CliError(
                f"{name} is not UTF-8: byte 0x{error.object[error.start]:02x} at offset {offset} ({error.reason}); "
                "convert it first, with iconv for example"
            ) from error
        before += len(block)
        if text:
            yield text
        if not block:
            return


def read_bytes(path: str) -> bytes:
    """The bytes of a file, or of standard input for "-".

    Raises:
        CliError: it cannot be read.
    """
    if path == "-":
        if sys.stdin is None:
            raise CliError(f"{STDIN} is closed")
        return sys.stdin.buffer.read()
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise CliError(f"cannot read {path}: {error.strerror or error}") from error


def read_json(path: str) -> Any:
    """The JSON value in a file, or in standard input for "-".

    Raises:
        CliError: it cannot be read, or is not JSON.
    """
    return loads("".join(read_pieces(path)), named(path))


def loads(text: str, what: str) -> Any:
    """The value of JSON text.

    Raises:
        CliError: it is not JSON, has a key twice in one object, or a number or a nesting that Python does not read;
            says so of `what`.
    """
    try:
        return json.loads(text, object_pairs_hook=unique_members)
    except DuplicateKeyError as error:
        raise CliError(f"{what} has the key {error.key!r} twice in one object; remove one") from error
    except json.JSONDecodeError as error:
        raise CliError(f"{what} is not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except ValueError as error:
        raise CliError(f"{what} has a number of too many digits, at most {MAX_DIGITS} are read") from error
    except RecursionError as error:
        raise CliError(f"{what} is nested too deeply") from error


def named(path: str) -> str:
    """A path as messages name it."""
    return STDIN if path == "-" else path


def read_tools(path: str | None) -> list[ToolDefinition]:
    """Tool definitions from a JSON file: one, a list, or an object with the key `tools`.

    Raises:
        CliError: the file cannot be read, or a definition cannot be used.
    """
    if path is None:
        return []
    value = read_json(path)
    if isinstance(value, dict):
        value = value["tools"] if isinstance(value.get("tools"), list) else [value]
    if not isinstance(value, list):
        raise CliError(f"{named(path)} holds no list of tool definitions")
    try:
        return list(definitions(value, strict=True).values())
    except DefinitionError as error:
        raise CliError(f"{named(path)}: {error}") from error

"""Input of the command line: text, JSON and tool definitions, from files and standard input."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from toolwire.cli.console import CliError, say
from toolwire.errors import DefinitionError
from toolwire.text.json_text import DuplicateKeyError, NumberError, finite_number, refuse_constant, unique_members
from toolwire.text.limits import MAX_DIGITS
from toolwire.tools import ToolDefinition, definitions

PIECE = 65_536
STDIN = "standard input"


def check_one_stdin(file: str | None, tools: str | None) -> None:
    """Check that the text and the tools are not both standard input; no file for the text is standard input too.

    Raises:
        CliError: both are.
    """
    if tools == "-" and file in (None, "-"):
        raise CliError("standard input cannot be both the text and the tools; give one of them as a file")


def read_pieces(path: str | None) -> Iterator[str]:
    """Yield the text of a file, or of standard input as it arrives.

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
    decoder = codecs.getincrementaldecoder("utf-8-sig")()  # some editors write a byte order mark
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
    """Return the bytes of a file, or of standard input for "-".

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
    """Return the JSON value in a file, or in standard input for "-".

    Raises:
        CliError: it cannot be read, or is not JSON.
    """
    return loads("".join(read_pieces(path)), display_name(path))


def loads(text: str, what: str) -> Any:
    """Return the value of JSON text.

    Raises:
        CliError: it is not JSON, has a key twice in one object, or exceeds a limit on digits or nesting; the message
            calls the text `what`.
    """
    try:
        # Python's own decoder takes NaN, which no other program reads if it is written again.
        return json.loads(
            text, object_pairs_hook=unique_members, parse_constant=refuse_constant, parse_float=finite_number
        )
    except DuplicateKeyError as error:
        raise CliError(f"{what} has the key {error.key!r} twice in one object; remove one") from error
    except json.JSONDecodeError as error:
        raise CliError(f"{what} is not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except NumberError as error:
        raise CliError(f"{what} is not JSON: {error}") from error
    except ValueError as error:
        raise CliError(f"{what} has a number with too many digits; the limit is {MAX_DIGITS}") from error
    except RecursionError as error:
        raise CliError(f"{what} is nested too deeply") from error


def display_name(path: str) -> str:
    """Return a path as messages name it."""
    return STDIN if path == "-" else path


def read_tools(path: str | None) -> list[ToolDefinition]:
    """Return the tool definitions in a JSON file: one, a list, or an object with the key `tools`.

    Raises:
        CliError: the file cannot be read, or a definition cannot be used.
    """
    if path is None:
        return []
    try:
        return list(definitions(read_definitions(path), strict=True).values())
    except DefinitionError as error:
        raise CliError(f"{display_name(path)}: {error}") from error


def read_definitions(path: str) -> list[Any]:
    """Return the unchecked values of the tool definitions in a JSON file.

    Raises:
        CliError: the file cannot be read, or does not contain a list of definitions.
    """
    value = read_json(path)
    if isinstance(value, dict):
        value = value["tools"] if isinstance(value.get("tools"), list) else [value]
    if not isinstance(value, list):
        raise CliError(f"{display_name(path)} does not contain a list of tool definitions")
    return value

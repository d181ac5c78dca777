"""Images and files of results: a line for each, and their data written to files."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Annotated

import typer

from toolwire.cli.console import CliError, safe, say
from toolwire.messages import FilePart, ImagePart, ToolResult

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the image or the file of the result to this file; each further one gets a number in its name.",
    ),
]


def media_lines(result: ToolResult) -> list[str]:
    """Return a line for each image and file: kind, name, media type, and size or address."""
    return [_described(part) for part in result.media]


def save_media(result: ToolResult, path: Path) -> None:
    """Write the images and files of a result to files, and report their names on standard error.

    Raises:
        CliError: there are none, their data cannot be read, or a file cannot be written.
    """
    parts = [part for part in result.media if part.data]
    if not parts:
        raise CliError("the result contains no image and no file that could be written", status=1)
    for number, part in enumerate(parts, 1):
        file = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            file.write_bytes(base64.b64decode(part.data, validate=True))
        except (binascii.Error, ValueError) as error:
            raise CliError(f"{_described(part)} is not base64", status=1) from error
        except OSError as error:
            raise CliError(f"{file} cannot be written: {error.strerror}", status=1) from error
        say(f"{_described(part)} -> {file}")


def _described(part: ImagePart | FilePart) -> str:
    kind, name = ("image", "") if isinstance(part, ImagePart) else (part.kind, part.name)
    facts = [part.media_type or "of an unknown type"]
    facts.append(f"{len(part.data) * 3 // 4 - part.data[-2:].count('=')} bytes" if part.data else part.url)
    return safe(f"[{' '.join(filter(None, (kind, name)))}: {', '.join(facts)}]")

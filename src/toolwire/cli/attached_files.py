"""Images and files that are attached to a message: read from this machine, or named by their address."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from stat import S_ISDIR
from typing import Final
from urllib.parse import urlsplit

from toolwire.cli.console import CliError
from toolwire.errors import DefinitionError
from toolwire.messages import FilePart, ImagePart
from toolwire.runtime.attachments import attach, known_suffixes, media_part, media_type_of

_SCHEMES: Final = ("http", "https")


def read_attachments(sources: Sequence[str] | None) -> list[ImagePart | FilePart]:
    """Return a part for each source; see `read_attachment`."""
    return [read_attachment(source) for source in sources or ()]


def read_attachment(source: str) -> ImagePart | FilePart:
    """Return the file at a path as a part of a message, or a reference to the file at an address.

    What is at an address is not fetched here: the model's provider does that.

    Raises:
        CliError: the file cannot be read, is too large, or is of an unknown type.
    """
    address = urlsplit(source)
    name = PurePosixPath(address.path).name
    if address.scheme in _SCHEMES and address.netloc:
        return media_part(_known_type(source, name), url=source, name=name)
    try:
        path = Path(source).expanduser()
        if S_ISDIR(path.stat().st_mode):  # a missing file and a directory are the better messages, whatever the name
            raise CliError(f"cannot attach {source}: Is a directory")
        return attach(path, media_type=_known_type(source, path.name))
    except OSError as error:
        raise CliError(f"cannot attach {source}: {error.strerror or error}") from error
    except (DefinitionError, RuntimeError) as error:  # the home directory of an unknown user is a RuntimeError
        raise CliError(f"cannot attach {source}: {error}") from error


def attached_name(part: ImagePart | FilePart) -> str:
    """Return a name for an attached part: its own, its address, or what it is."""
    return part.url or (part.name if isinstance(part, FilePart) else "") or part.media_type


def _known_type(source: str, name: str) -> str:
    """Return the media type of a file by its name.

    Raises:
        CliError: its suffix is unknown.
    """
    if media_type := media_type_of(name):
        return media_type
    raise CliError(f"cannot attach {source}: its suffix shows no media type; known are {', '.join(known_suffixes())}")

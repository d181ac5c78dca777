"""Images and files as parts of a message, by their media types; files of this machine are read for that."""

from __future__ import annotations

import base64
from os import PathLike
from pathlib import Path

from toolwire._surface import check_type
from toolwire.errors import DefinitionError
from toolwire.messages import FilePart, ImagePart

MAX_ATTACHMENT = 20_000_000
"""Maximum size of an attached file, in bytes; most APIs refuse larger requests."""

_OFFICE = "application/vnd.openxmlformats-officedocument"
_IMAGES = {"image/png": "png", "image/jpeg": "jpg jpeg", "image/gif": "gif", "image/webp": "webp", "image/bmp": "bmp"}
_FILES = {
    "application/pdf": "pdf",
    "application/json": "json",
    "application/xml": "xml",
    "application/yaml": "yaml yml",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    f"{_OFFICE}.wordprocessingml.document": "docx",
    f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
    f"{_OFFICE}.presentationml.presentation": "pptx",
    "text/plain": "txt text log py js ts toml ini cfg sh c h cpp rs go java rb sql tex",
    "text/markdown": "md markdown",
    "text/csv": "csv",
    "text/html": "html htm",
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/ogg": "ogg oga",
    "audio/opus": "opus",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
    "video/mpeg": "mpeg mpg",
    "video/x-matroska": "mkv",
    "video/x-msvideo": "avi",
}
"""Suffixes of file names, by media type."""
_MEDIA_TYPES = {
    suffix: media_type for media_type, suffixes in {**_IMAGES, **_FILES}.items() for suffix in suffixes.split()
}


def media_type_of(name: str) -> str:
    """Return the media type that the suffix of a file's name shows; "" for an unknown suffix."""
    return _MEDIA_TYPES.get(Path(name).suffix.lower().removeprefix("."), "")


def known_suffixes() -> list[str]:
    """Return the suffixes that show a media type, by the alphabet."""
    return sorted(_MEDIA_TYPES)


def attach(path: str | Path, *, media_type: str = "", max_bytes: int = MAX_ATTACHMENT) -> ImagePart | FilePart:
    """Read a file as a part of a task: `["Summarize this.", toolwire.attach("report.pdf")]`.

    The whole file is read and becomes part of each request of the conversation. The model reads its name, without its
    folder.

    Args:
        path: the file.
        media_type: its media type; "" to derive it from the suffix of its name.
        max_bytes: the maximum size of the file, in bytes.

    Returns:
        An `ImagePart` for an image, and a `FilePart` for any other file.

    Raises:
        DefinitionError: the media type is unknown, or the file is empty or too large.
        OSError: the file cannot be read.
    """
    check_type("path", path, (str, PathLike), "a path")
    path = Path(path)
    with path.open("rb") as file:  # first, because the media type of what is not a file is not the mistake
        media_type = media_type or media_type_of(path.name)
        if not media_type:
            suffix = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
            raise DefinitionError(
                f"{path.name} has {suffix}, which shows no media type; pass media_type=, such as 'text/plain'"
            )
        # One byte more than allowed shows that a file is too large, without reading all of it.
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise DefinitionError(f"{path.name} has {path.stat().st_size:,} bytes; at most {max_bytes:,} can be attached")
    if not content:
        raise DefinitionError(f"{path.name} is empty, so there is nothing to attach")
    data = base64.b64encode(content).decode("ascii")
    return media_part(media_type, data, name=path.name)


def media_part(media_type: str, data: str = "", *, url: str = "", name: str = "") -> ImagePart | FilePart:
    """Return the part for content of a media type: an image, which has no name, or a file.

    Raises:
        ValueError: see `ImagePart` and `FilePart`.
    """
    if media_type.startswith("image/"):
        return ImagePart(data, media_type, url)
    return FilePart(data, media_type, url, name)

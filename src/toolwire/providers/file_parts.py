"""Files and images in the places of APIs: in words where an API cannot take them, and split off where it can."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolwire.messages import FilePart, ImagePart, Part, TextPart, ToolResult
from toolwire.providers.request import Notes

PDF = "application/pdf"
AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
"""Names of the recordings that Chat Completions takes, by media type."""


def in_words(part: FilePart | ImagePart, api: str, notes: Notes, *, reason: str = "") -> TextPart:
    """Return the text that stands for a file or an image which the API cannot take, and note the change.

    The text of a text document replaces it. For any other file the text says its address, or that it cannot be shown.

    Args:
        part: the file or the image.
        api: the name of the API.
        notes: collects the change.
        reason: why the API cannot take it, as a sentence without its end.
    """
    if isinstance(part, ImagePart):
        kind, label, text = "image", "", None
    else:
        kind, text = part.kind, part.text
        label = f" {part.name}" if part.name else ""
    where = f"{kind}{label}"
    reason = reason or f"{api} takes no {kind} here"
    title = kind.capitalize()
    # Text that a model can read is never withheld for the lack of a place for files.
    if text is not None:
        notes.changed(where, f"{reason}: its text is part of the message")
        return TextPart(f"{title}{label}:\n{text}")
    if part.url:
        notes.changed(where, f"{reason}: its address becomes text")
        return TextPart(f"{title}{label}: {part.url}")
    type = part.media_type or "of an unknown type"
    notes.dropped(where, f"{reason} ({type})")
    return TextPart(f"{title}{label} ({type}): it cannot be shown here.")


def is_uploaded(block: Mapping[str, Any]) -> bool:
    """Return whether a block names a file by the id that its own provider gave it when it was uploaded."""
    return any(
        isinstance(owner, Mapping) and "file_id" in owner for owner in (block, block.get("file"), block.get("source"))
    )


def media_follow(result: ToolResult) -> str:
    """Return the text of a result that consists of images and files alone, which follow in another message."""
    return "The file follows." if result.files else "The image follows."


def file_name(file: FilePart) -> str:
    """Return a name for a file that has none, for APIs that require one."""
    return f"{file.kind}.pdf" if file.media_type == PDF else file.kind


def files_of(parts: Iterable[Part]) -> tuple[FilePart, ...]:
    """Return all files of some parts."""
    return tuple(part for part in parts if isinstance(part, FilePart))


def images_of(parts: Iterable[Part]) -> tuple[ImagePart, ...]:
    """Return all images of some parts."""
    return tuple(part for part in parts if isinstance(part, ImagePart))

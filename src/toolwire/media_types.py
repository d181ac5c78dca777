"""Media types of images and files, in one spelling, or by their first bytes."""

from __future__ import annotations

import base64
import binascii

_BEGINNINGS = (
    ("image/png", b"\x89PNG"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF8"),
    ("image/bmp", b"BM"),
    ("application/pdf", b"%PDF-"),
    ("audio/mpeg", b"ID3"),
    ("audio/flac", b"fLaC"),
    ("audio/ogg", b"OggS"),
    ("video/webm", b"\x1aE\xdf\xa3"),
)
_CONTAINERS = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_OTHER_NAMES = {
    "image/jpg": "image/jpeg",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "application/x-pdf": "application/pdf",
}


def _by_beginning(data: str) -> str:
    """Return the media type of base64 data by its first bytes; "" if they are unknown."""
    try:
        begins = base64.b64decode(data[:16], validate=True)
    except (binascii.Error, ValueError):
        return ""
    if begins[:4] == b"RIFF" and begins[8:12] in _CONTAINERS:
        return _CONTAINERS[begins[8:12]]
    return next((kind for kind, beginning in _BEGINNINGS if begins.startswith(beginning)), "")


def is_address(data: str) -> bool:
    """Return whether text that should be base64 is a URL: base64 has no colon."""
    return ":" in data[:64]


def check_data(owner: str, data: str, *, needed: bool) -> None:
    """Check that the content of an image or a file can be base64 data.

    Args:
        owner: the class of the part, for the message.
        data: its data.
        needed: whether the part has no content besides.

    Raises:
        ValueError: the data is a URL, or it is needed and empty.
    """
    if needed and not data:
        raise ValueError(f"an empty {owner} shows a model nothing: give it data or url")
    if is_address(data):
        raise ValueError(f"the data of this {owner} is an address and not base64: pass it as url=")


def media_type(spelled: str, data: str) -> str:
    """Return a media type in one spelling; a missing one by the first bytes of base64 data, "" if unknown."""
    kind = spelled.lower().partition(";")[0].strip() or (_by_beginning(data) if data else "")
    return _OTHER_NAMES.get(kind, kind)

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


def media_type(spelled: str, data: str) -> str:
    """Return a media type in one spelling; a missing one by the first bytes of base64 data, "" if unknown."""
    kind = spelled.lower().partition(";")[0].strip() or (_by_beginning(data) if data else "")
    return _OTHER_NAMES.get(kind, kind)

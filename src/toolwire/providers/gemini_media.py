"""Images and files as parts of Gemini's contents."""

from __future__ import annotations

from collections.abc import Mapping

from toolwire.messages import FilePart, ImagePart
from toolwire.providers.gemini_stream import KIND, camel
from toolwire.providers.message_parts import Json, members_except, own_members

_BLOBS = ("inlineData", "fileData")
"""The members of a part with an image or a file. A further member of one is `fileData.NAME` in the part's `extra`."""


def write_media(part: ImagePart | FilePart) -> Json:
    """Return the part of a content that an image or a file becomes."""
    name = {"displayName": part.name} if isinstance(part, FilePart) and part.name else {}
    if part.url:
        type = {"mimeType": part.media_type} if part.media_type else {}
        written: Json = {"fileData": {"fileUri": part.url, **type, **name}}
    else:
        default = "image/png" if isinstance(part, ImagePart) else "application/octet-stream"
        written = {"inlineData": {"mimeType": part.media_type or default, "data": part.data, **name}}
    for path, value in own_members(part, KIND).items():
        blob, _, member = path.partition(".")
        if blob not in _BLOBS:
            written[path] = value
        elif blob in written:
            written[blob][member] = value
    return written


def read_media(part: Json) -> ImagePart | FilePart | None:
    """Return the image or the file that a part consists of; None for any other part, or one with a signature."""
    key = next((key for key in _BLOBS if isinstance(part.get(key), Mapping)), "")
    blob = camel(part[key]) if key else {}
    kind, name = str(blob.pop("mimeType", None) or ""), str(blob.pop("displayName", None) or "")
    data, url = str(blob.pop("data", None) or ""), str(blob.pop("fileUri", None) or "")
    if "thoughtSignature" in part or not kind or not (data or url):
        return None
    is_image = kind.startswith("image/")
    if is_image and name:
        blob["displayName"] = name
    members = {**{f"{key}.{member}": value for member, value in blob.items()}, **part}
    extra = members_except(members, frozenset((key,)), KIND)
    return ImagePart(data, kind, url, extra) if is_image else FilePart(data, kind, url, name, extra)

"""Images, documents, recordings and videos of Converse.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from toolwire.messages import FilePart, ImagePart, OpaquePart
from toolwire.providers.file_parts import in_words
from toolwire.providers.message_parts import Json
from toolwire.providers.request import Notes

KIND = "bedrock_converse"
_OFFICE = "application/vnd.openxmlformats-officedocument"
_IMAGES = {f"image/{form}": form for form in ("png", "jpeg", "gif", "webp")}
_FILES: Mapping[str, Mapping[str, str]] = {
    "document": {
        "application/pdf": "pdf",
        "text/csv": "csv",
        "application/msword": "doc",
        f"{_OFFICE}.wordprocessingml.document": "docx",
        "application/vnd.ms-excel": "xls",
        f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
        "text/html": "html",
        "text/plain": "txt",
        "text/markdown": "md",
    },
    "audio": {
        "audio/wav": "wav",
        "audio/mpeg": "mp3",
        "audio/aac": "aac",
        "audio/flac": "flac",
        "audio/ogg": "ogg",
        "audio/opus": "opus",
        "audio/mp4": "m4a",
        "audio/webm": "webm",
    },
    "video": {
        "video/x-matroska": "mkv",
        "video/quicktime": "mov",
        "video/mp4": "mp4",
        "video/webm": "webm",
        "video/x-flv": "flv",
        "video/mpeg": "mpeg",
        "video/x-ms-wmv": "wmv",
        "video/3gpp": "three_gp",
    },
}
"""Names of formats by media type."""
_MEDIA_TYPES = {(kind, form): type for kind, forms in _FILES.items() for type, form in forms.items()}
_NO_NAME = re.compile(r"[^0-9A-Za-z()\[\]-]+")
"""Text that the name of a document cannot contain; a single space takes its place."""
MAX_NAME = 200
"""Maximum length of a document's name, in characters."""


def write_image(image: ImagePart, api: str, notes: Notes) -> Json:
    """Return the block of an image; one with text, if it has to be in words."""
    form = _IMAGES.get(image.media_type)
    if image.data and form:
        return {"image": {"format": form, "source": {"bytes": image.data}}}
    if image.url:
        reason = f"{api} takes no address of an image"
    else:
        reason = f"{api} takes none that is {image.media_type or 'of an unknown type'}"
    return {"text": in_words(image, api, notes, reason=reason).text}


def write_file(file: FilePart, api: str, notes: Notes, *, result: bool = False) -> Json:
    """Return the block of a file; one with text, if it has to be in words.

    Args:
        file: the file.
        api: the name of the API.
        notes: collects what cannot be said.
        result: whether the block is part of a tool's result, where recordings have no place.
    """
    # A file of a type that the service does not list is refused with the whole request.
    form = _FILES[file.kind].get(file.media_type)
    if form is None or (result and file.kind == "audio") or (file.url and not file.url.startswith("s3://")):
        if file.url:
            return {"text": in_words(file, api, notes, reason=f"{api} takes only addresses in S3 here").text}
        return {"text": in_words(file, api, notes).text}
    source: Json = {"s3Location": {"uri": file.url}} if file.url else {"bytes": file.data}
    if file.kind != "document":
        return {file.kind: {"format": form, "source": source}}
    name = " ".join(_NO_NAME.sub(" ", file.name).split())[:MAX_NAME].strip() or "Document"
    if file.name and name != file.name:
        notes.changed(f"document {file.name}", f"{api} allows only letters, digits and a few signs: it becomes {name}")
    return {"document": {"format": form, "name": name, "source": source, **_own(file)}}


def _own(file: FilePart) -> Json:
    return file.extra.data if file.extra is not None and file.extra.provider == KIND else {}


def read_media(block: Mapping[str, Any]) -> ImagePart | FilePart | None:
    """Parse a block with an image or a file; None for any other, and for one that only this API can express."""
    key = next((key for key in ("image", "document", "audio", "video") if isinstance(block.get(key), Mapping)), "")
    if not key or len(block) > 1:
        return None
    members: Json = dict(block[key])
    form, source, name = members.pop("format", None), members.pop("source", None), members.pop("name", "")
    if not isinstance(source, Mapping):
        return None
    match dict(source):
        case {"bytes": bytes() | bytearray() | str() as data} if len(source) == 1:
            data, url = as_base64(data), ""
        case {"s3Location": {"uri": str(url), **owner}} if not owner:
            data = ""
        case _:
            return None
    if key == "image":
        return ImagePart(data, f"image/{form}") if data and not members else None
    media_type = _MEDIA_TYPES.get((key, form))
    if media_type is None or (members and key != "document"):
        return None
    return FilePart(data, media_type, url, name, OpaquePart(members, KIND) if members else None)


def as_base64(value: Any) -> Any:
    """Return bytes as text in base64; any other value unchanged."""
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes | bytearray) else value


def with_names(messages: list[Json], api: str, notes: Notes) -> list[Json]:
    """Make the names of the documents unique, and give messages that have documents the text they must have.

    A block may be a part of the caller's conversation, so that a renamed one is a copy.
    """
    names: set[str] = set()

    def renamed(block: Any) -> Any:
        match block:
            case {"document": {"name": str(name)} as document}:
                if (unique := _unique(name, names)) != name:
                    notes.changed(f"document {name}", f"another one has this name: it becomes {unique}")
                    return {**block, "document": {**document, "name": unique}}
            case _:
                pass
        return block

    def with_renamed(block: Json) -> Json:
        match block:
            case {"toolResult": {"content": list(content)} as result}:
                return {**block, "toolResult": {**result, "content": list(map(renamed, content))}}
            case _:
                return block

    # The service refuses two documents of one name in a request, wherever in the conversation they are.
    for message in messages:
        content = list(map(renamed, message["content"]))
        message["content"] = content = list(map(with_renamed, content))
        documents = [block["document"] for block in content if _has_name(block)]
        if documents and not any("text" in block for block in content):
            notes.added(f"document {documents[0]['name']}", f"{api} requires text beside a document")
            content.append({"text": f"Document: {documents[0]['name']}"})
    return messages


def _has_name(block: Json) -> bool:
    match block:
        case {"document": {"name": str()}}:
            return True
        case _:
            return False


def _unique(name: str, names: set[str]) -> str:
    """Return a name that is not one of these, and add it to them; case does not count."""
    unique, count = name, 1
    while unique.casefold() in names:
        count += 1
        unique = f"{name[: MAX_NAME - 5]} ({count})"
    names.add(unique.casefold())
    return unique

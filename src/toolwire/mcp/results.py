"""Convert results of MCP tools to `ToolResult`, and back for tools that are served.

All content is data: a link is shown and never opened, and images, sounds and binary resources become parts of the
result. Sizes are bounded both ways, and a note replaces each part that is left out.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, unquote

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from toolwire.execution.outcomes import Shaping
from toolwire.mcp.definitions import DeclaredTool, clean
from toolwire.messages import FilePart, ImagePart, OpaquePart, ToolCall, ToolResult
from toolwire.schema.validation import validate
from toolwire.text.json_text import json_text
from toolwire.text.truncate import truncate

PROVIDER = "mcp"
"""The provider of an `OpaquePart` that contains a result in the words of MCP."""
MAX_TEXT = 1_000_000
"""Maximum length of a result for a model, in characters."""
MAX_ERROR = 4_000
"""Maximum length of an error for a model, in characters."""
MAX_IMAGES = 20
MAX_FILES = 20
"""Maximum number of sounds and binary resources of one result, besides images."""
MAX_BINARY = 8 << 20
"""Maximum size of all images, sounds and binary resources of one result, in bytes of base64."""
MAX_STORED = 16 << 20
"""Maximum size of a result that is stored in the words of MCP, in bytes of JSON."""
MAX_LABEL = 300
"""Maximum length of a URI or a title in a description, in characters."""

_IMAGE = re.compile(r"image/[a-z0-9.+-]{1,60}")
_MEDIA_TYPE = re.compile(r"[a-z]{1,20}/[a-z0-9.+-]{1,120}")


def from_mcp(given: CallToolResult, declared: DeclaredTool) -> ToolResult:
    """Return the result of a call.

    For a tool with an output schema, the result is the structured content, which has to fit it. For any other tool it
    is the text or, where there is no text, the structured content.
    """
    read = _read(given.content)
    text, images, files = read.text, tuple(read.images), tuple(read.files)
    if given.is_error:
        if not text and given.structured_content is not None:
            text = _json(given.structured_content) or ""
        return ToolResult(
            "",
            "",
            error=truncate(text, MAX_ERROR) or "The tool failed, and gave no reason.",
            images=images,
            files=files,
        )
    written = None if given.structured_content is None else _json(given.structured_content)
    if declared.output is None and (text or given.structured_content is None):
        structured = given.structured_content if written is not None else None
        if written is not None and len(written) > MAX_TEXT:
            structured = None
            read.note(f"[structured content was left out: it {_too_long(written)}]")
        read.more = read.more or structured is not None
        extra = _stored(read, structured)
        # None for media alone: each API then says in its own way that the image or the file follows.
        only_media = not read.text and (images or files)
        return ToolResult("", "", None if only_media else read.text, images=images, files=files, extra=extra)
    if given.structured_content is None:
        written = _json(None)
    if written is None or len(written) > MAX_TEXT:
        return _unusable(f"its result {'is not JSON' if written is None else _too_long(written)}")
    if declared.output is not None:
        if given.structured_content is None and "structured_content" not in given.model_fields_set:
            return _unusable("it returned no structured content, which its outputSchema promises")
        if issues := validate(given.structured_content, declared.output):
            return _unusable(f"its result is not what its outputSchema promises: {'; '.join(map(str, issues))}")
    extra = _stored(read, given.structured_content)
    return ToolResult("", "", given.structured_content, images=images, files=files, extra=extra)


def _unusable(why: str) -> ToolResult:
    return ToolResult("", "", error=truncate(f"The tool ran, but {why}.", MAX_ERROR))


def to_mcp(result: ToolResult) -> CallToolResult:
    """Return a result for an MCP client, within the bounds that apply to a server's result.

    A result that a tool wrote in the words of MCP is passed on unchanged, if it is not too long.
    """
    if (original := _in_mcp_words(result)) is not None:
        return original
    content: list[Any] = []
    structured: dict[str, Any] | None = None
    if result.error is not None or result.result is not None:
        text = result.text
        content.append(TextContent(text=truncate(text, MAX_TEXT)))
        if result.success and isinstance(result.result, dict) and len(text) <= MAX_TEXT:
            structured = result.result
    size = 0
    for image in result.images:
        kind = image.media_type or "application/octet-stream"
        if not image.data:
            content.append(ResourceLink(name="image", uri=image.url))
        elif size + len(image.data) > MAX_BINARY:
            content.append(TextContent(text=_left_out("an image", kind, image.data)))
        else:
            size += len(image.data)
            content.append(ImageContent(data=image.data, mime_type=kind))
    for file in result.files:
        kind, name = file.media_type or "application/octet-stream", file.name or file.kind
        if not file.data:
            content.append(ResourceLink(name=name, uri=file.url))
        elif size + len(file.data) > MAX_BINARY:
            content.append(TextContent(text=_left_out(f"the file {name}", kind, file.data)))
        else:
            size += len(file.data)
            content.append(_of_file(file, kind, name))
    if structured is None:
        return CallToolResult(content=content, is_error=not result.success)
    return CallToolResult(content=content, structured_content=structured)


def _of_file(file: FilePart, kind: str, name: str) -> AudioContent | EmbeddedResource:
    if file.kind == "audio":
        return AudioContent(data=file.data, mime_type=kind)
    # A resource has a URI; this one can be read nowhere else.
    uri = f"attachment:///{quote(name)}"
    return EmbeddedResource(resource=BlobResourceContents(uri=uri, blob=file.data, mime_type=kind))


def shaped(shape: Shaping) -> Shaping:
    """Return a shaping that drops a result's copy in the words of MCP once the result differs from it."""

    def shape_once(call: ToolCall, result: ToolResult) -> ToolResult:
        new = shape(call, result)
        unchanged = (new.result, new.error, new.media) == (result.result, result.error, result.media)
        return new if unchanged else replace(new, extra=None)

    return shape_once


def structured_content(result: ToolResult) -> Any:
    """Return the structured content of a result of `from_mcp`; None if it has none."""
    if result.extra is not None and result.extra.provider == PROVIDER:
        return result.extra.data.get("structuredContent")
    return None if isinstance(result.result, str) else result.result


def _in_mcp_words(result: ToolResult) -> CallToolResult | None:
    """Return the result that the tool wrote in the words of MCP; None if there is none, or it is too long."""
    if result.extra is None or result.extra.provider != PROVIDER or _size_of(result.extra.data) > MAX_STORED:
        return None
    return CallToolResult.model_validate({**result.extra.data, "isError": not result.success})


@dataclass(slots=True)
class _ContentReader:
    """The content of a result while it is read.

    Attributes:
        parts: texts for the model.
        images, files: images, sounds and binary resources for the model.
        blocks: the content in the words of MCP, with a note for each part that was left out.
        more: True if texts and images do not contain everything.
        left: bytes of base64 that still fit.
    """

    parts: list[str] = field(default_factory=list)
    images: list[ImagePart] = field(default_factory=list)
    files: list[FilePart] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    more: bool = False
    left: int = field(default_factory=lambda: MAX_BINARY)

    @property
    def cut(self) -> bool:
        """True if there is more text than a model may read."""
        return sum(map(len, self.parts)) + len(self.parts) > MAX_TEXT

    @property
    def text(self) -> str:
        return truncate("\n".join(self.parts), MAX_TEXT)

    def add(self, block: dict[str, Any], text: str | None, *, more: bool = False) -> None:
        """Add a block, and the text by which a model reads it."""
        self.blocks.append(block)
        self.parts += [] if text is None else [text]
        self.more = self.more or more

    def room(self, data: str) -> bool:
        """Return whether binary data still fits; if so, count it."""
        fits = len(data) <= self.left
        self.left -= len(data) if fits else 0
        return fits

    def take(self, part: ImagePart | FilePart | None) -> bool:
        """Add an image or a file; return False if it is not one, or there are too many."""
        if isinstance(part, ImagePart) and len(self.images) < MAX_IMAGES:
            self.images.append(part)
            return True
        if isinstance(part, FilePart) and len(self.files) < MAX_FILES:
            self.files.append(part)
            return True
        return False

    def leave_out(self, what: str, kind: str, data: str) -> None:
        self.note(_left_out(what, kind, data))

    def note(self, note: str) -> None:
        self.add({"type": "text", "text": note}, note, more=True)


def _read(content: Iterable[Any]) -> _ContentReader:
    read = _ContentReader()
    for block in content:
        match block:
            case TextContent(text=text):
                read.add(_dumped(block), text)
            case ImageContent(data=data, mime_type=kind):
                if not read.room(data):
                    read.leave_out("an image", kind, data)
                elif read.take(_image(data, kind)):
                    read.add(_dumped(block), None)
                else:
                    description = f"[an image that cannot be shown: {_label(kind)}, {_size(data)}]"
                    read.add(_dumped(block), description, more=True)
            case AudioContent(data=data, mime_type=kind):
                if not read.room(data):
                    read.leave_out("a sound", kind, data)
                elif read.take(_sound(data, kind)):
                    read.add(_dumped(block), None)
                else:
                    description = f"[a sound that cannot be played: {_label(kind)}, {_size(data)}]"
                    read.add(_dumped(block), description, more=True)
            case ResourceLink(uri=uri, name=name, mime_type=kind):
                about = f"{_label(name)}, {_label(kind)}" if kind else _label(name)
                description = f"[a link to a resource, which was not opened: {_label(uri)} ({about})]"
                read.add(_dumped(block), description, more=True)
            case EmbeddedResource(resource=resource):
                data = "" if isinstance(resource, TextResourceContents) else resource.blob
                if not read.room(data):
                    read.leave_out(f"resource {_label(resource.uri)}", resource.mime_type or "", data)
                    continue
                # The resource's URI is in the original words alone, so these are stored even if the part was taken.
                read.add(_dumped(block), _described(resource, taken=read.take(_resource_part(resource))), more=True)
    return read


def _stored(read: _ContentReader, structured: Any) -> OpaquePart | None:
    """Return the result in the words of MCP, if its texts and images do not contain everything."""
    if not read.more or read.cut:
        return None
    data: dict[str, Any] = {"content": read.blocks}
    if structured is not None:
        data["structuredContent"] = structured
    if _size_of(data) > MAX_STORED:
        read.note(f"[the rest of this result was left out: it has more than {MAX_STORED} bytes]")
        return None
    return OpaquePart(data, PROVIDER)


def _described(resource: Any, *, taken: bool) -> str:
    """Return the text by which a model reads a resource: all of it, or the title of the part that contains it."""
    kind = resource.mime_type or ""
    head = f"resource {_label(resource.uri)}" + (f" ({_label(kind)})" if kind else "")
    if isinstance(resource, TextResourceContents):
        return f"[{head}]\n{resource.text}"
    return f"[{head}]" if taken else f"[{head}, not shown: {_size(resource.blob)}]"


def _resource_part(resource: Any) -> ImagePart | FilePart | None:
    """Return the image or the file that a resource contains; None for text, which models read as text."""
    if isinstance(resource, TextResourceContents):
        return None
    kind = resource.mime_type or ""
    if (image := _image(resource.blob, kind)) is not None:
        return image
    name = _label(unquote(str(resource.uri).rstrip("/").rpartition("/")[2]))
    return _file(resource.blob, kind, name)


def _image(data: str, kind: str) -> ImagePart | None:
    """Return an image; None if the data or its media type cannot be one."""
    kind = _plain(kind)
    return ImagePart(data, kind) if _IMAGE.fullmatch(kind) and data and _is_base64(data) else None


def _sound(data: str, kind: str) -> FilePart | None:
    """Return a sound; None if the data or its media type cannot be one."""
    return _file(data, kind, "") if _plain(kind).startswith("audio/") else None


def _file(data: str, kind: str, name: str) -> FilePart | None:
    """Return a file; None if the data is not base64. An invalid media type counts as a missing one."""
    kind = _plain(kind)
    if not data or not _is_base64(data):
        return None
    return FilePart(data, kind if _MEDIA_TYPE.fullmatch(kind) else "", name=name)


def _plain(kind: str) -> str:
    return kind.partition(";")[0].strip().lower()


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _label(text: str) -> str:
    return " ".join(clean(text, MAX_LABEL).split())


def _left_out(what: str, kind: str, data: str) -> str:
    about = f"{_label(kind)}, {_size(data)}" if kind else _size(data)
    return f"[{what} was left out: {about}; the binary parts of a result have at most {MAX_BINARY * 3 // 4} bytes]"


def _too_long(text: str) -> str:
    return f"has {len(text)} characters, at most {MAX_TEXT} are taken"


def _size(data: str) -> str:
    return f"{len(data) * 3 // 4} bytes"


def _json(value: Any) -> str | None:
    try:
        return json_text(value)
    except (TypeError, ValueError, RecursionError):
        return None


def _size_of(data: dict[str, Any]) -> int:
    """Return the size of data, in bytes of JSON."""
    return len((_json(data) or "").encode("utf-8", "replace"))


def _dumped(block: Any) -> dict[str, Any]:
    """Return a block as JSON, without `_meta`, which is between a server and its client."""
    content: dict[str, Any] = block.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"})
    return content

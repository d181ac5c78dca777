"""What a tool of an MCP server gave back, as a `ToolResult`; and the other way, what is served.

All of it is data: a link is told and never opened, and what cannot be told to a model is said in words. All of it is
bounded, both ways, and what is left out is said where it would stand.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from mcp_types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from toolwire.execution.outcomes import Shaping
from toolwire.mcp.definitions import Declared, cleaned
from toolwire.messages import ImagePart, OpaquePart, ToolCall, ToolResult
from toolwire.schema.validation import validate
from toolwire.text.json_text import json_text
from toolwire.text.truncate import truncate

PROVIDER = "mcp"
"""Of an `OpaquePart` that holds content as MCP writes it."""
MAX_TEXT = 1_000_000
"""Characters of a result that a model may be told."""
MAX_ERROR = 4_000
MAX_IMAGES = 20
MAX_BINARY = 8 << 20
"""Bytes of images, sounds and binary resources of one result, in base64 as they are sent."""
MAX_KEPT = 16 << 20
"""Bytes of a result that is kept as MCP writes it, for those who read MCP."""
MAX_WORDS = 300
"""Characters of a URI or a title that are told."""

_IMAGE = re.compile(r"image/[a-z0-9.+-]{1,60}")


def from_mcp(given: CallToolResult, declared: Declared) -> ToolResult:
    """What a call gave back.

    Structured content counts where the tool has an output schema, and has to fit it. Without such a schema the text
    counts, and structured content where there is no text.
    """
    read = _read(given.content)
    text, images = read.text, tuple(read.images)
    if given.is_error:
        if not text and given.structured_content is not None:
            text = _json(given.structured_content) or ""
        return ToolResult(
            "", "", error=truncate(text, MAX_ERROR) or "The tool failed, and did not say why.", images=images
        )
    written = None if given.structured_content is None else _json(given.structured_content)
    if declared.output is None and (text or given.structured_content is None):
        structured = given.structured_content if written is not None else None
        if written is not None and len(written) > MAX_TEXT:
            structured = None
            read.note(f"[structured content was left out: it {_too_long(written)}]")
        read.more = read.more or structured is not None
        extra = _kept(read, structured)
        return ToolResult("", "", read.text, images=images, extra=extra)
    if given.structured_content is None:
        written = _json(None)
    if written is None or len(written) > MAX_TEXT:
        return _unusable(f"what it gave back {'is no JSON' if written is None else _too_long(written)}")
    if declared.output is not None:
        if given.structured_content is None and "structured_content" not in given.model_fields_set:
            return _unusable("it gave back no structured content, which its outputSchema promises")
        if issues := validate(given.structured_content, declared.output):
            return _unusable(f"what it gave back is not what its outputSchema promises: {'; '.join(map(str, issues))}")
    extra = _kept(read, given.structured_content)
    return ToolResult("", "", given.structured_content, images=images, extra=extra)


def _unusable(why: str) -> ToolResult:
    return ToolResult("", "", error=truncate(f"The tool ran, but {why}.", MAX_ERROR))


def to_mcp(result: ToolResult) -> CallToolResult:
    """A result as MCP writes it, at most so long as one of a server may be.

    What the tool itself wrote in MCP's words goes out as it is, if it is not too long.
    """
    if (own := _own_words(result)) is not None:
        return own
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
    if structured is None:
        return CallToolResult(content=content, is_error=not result.success)
    return CallToolResult(content=content, structured_content=structured)


def shaped(shape: Shaping) -> Shaping:
    """The same, but for results in MCP's own words: these say what the result was, and go once it is another."""

    def made(call: ToolCall, result: ToolResult) -> ToolResult:
        told = shape(call, result)
        same = (told.result, told.error, told.images) == (result.result, result.error, result.images)
        return told if same else replace(told, extra=None)

    return made


def structured_content(result: ToolResult) -> Any:
    """The structured content of a result of `from_mcp`; None if it has none."""
    if result.extra is not None and result.extra.provider == PROVIDER:
        return result.extra.data.get("structuredContent")
    return None if isinstance(result.result, str) else result.result


def _own_words(result: ToolResult) -> CallToolResult | None:
    """What the tool itself wrote in MCP's words; None if it did not, or wrote too much."""
    if result.extra is None or result.extra.provider != PROVIDER or _size_of(result.extra.data) > MAX_KEPT:
        return None
    return CallToolResult.model_validate({**result.extra.data, "isError": not result.success})


@dataclass(slots=True)
class _Reading:
    """Content as it is read.

    Attributes:
        parts: what a model is told.
        images: what it is shown.
        blocks: the same as MCP writes it, with words for what was left out.
        more: whether text and images do not say it all.
        left: bytes that may still come in base64.
    """

    parts: list[str] = field(default_factory=list)
    images: list[ImagePart] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    more: bool = False
    left: int = field(default_factory=lambda: MAX_BINARY)

    @property
    def cut(self) -> bool:
        """Whether there is more text than a model is told."""
        return sum(map(len, self.parts)) + len(self.parts) > MAX_TEXT

    @property
    def text(self) -> str:
        return truncate("\n".join(self.parts), MAX_TEXT)

    def add(self, block: dict[str, Any], told: str | None, *, more: bool = False) -> None:
        """Something, with what a model is told of it."""
        self.blocks.append(block)
        self.parts += [] if told is None else [told]
        self.more = self.more or more

    def room(self, data: str) -> bool:
        """Whether this may still come; if so, it does."""
        fits = len(data) <= self.left
        self.left -= len(data) if fits else 0
        return fits

    def leave_out(self, what: str, kind: str, data: str) -> None:
        self.note(_left_out(what, kind, data))

    def note(self, note: str) -> None:
        self.add({"type": "text", "text": note}, note, more=True)


def _read(content: Iterable[Any]) -> _Reading:
    read = _Reading()
    for block in content:
        match block:
            case TextContent(text=text):
                read.add(_dumped(block), text)
            case ImageContent(data=data, mime_type=kind):
                if not read.room(data):
                    read.leave_out("an image", kind, data)
                elif len(read.images) < MAX_IMAGES and (image := _image(data, kind)) is not None:
                    read.images.append(image)
                    read.add(_dumped(block), None)
                else:
                    told = f"[an image that cannot be shown: {_words(kind)}, {_size(data)}]"
                    read.add(_dumped(block), told, more=True)
            case AudioContent(data=data, mime_type=kind):
                if read.room(data):
                    told = f"[a sound, which cannot be heard here: {_words(kind)}, {_size(data)}]"
                    read.add(_dumped(block), told, more=True)
                else:
                    read.leave_out("a sound", kind, data)
            case ResourceLink(uri=uri, name=name, mime_type=kind):
                about = f"{_words(name)}, {_words(kind)}" if kind else _words(name)
                told = f"[a link to a resource, which was not opened: {_words(uri)} ({about})]"
                read.add(_dumped(block), told, more=True)
            case EmbeddedResource(resource=resource):
                data = "" if isinstance(resource, TextResourceContents) else resource.blob
                if not read.room(data):
                    read.leave_out(f"resource {_words(resource.uri)}", resource.mime_type or "", data)
                    continue
                told, image = _resource(resource)
                read.images += [image] if image is not None and len(read.images) < MAX_IMAGES else []
                read.add(_dumped(block), told, more=True)
    return read


def _kept(read: _Reading, structured: Any) -> OpaquePart | None:
    """A result in MCP's own words, if words and images do not say it all."""
    if not read.more or read.cut:
        return None
    data: dict[str, Any] = {"content": read.blocks}
    if structured is not None:
        data["structuredContent"] = structured
    if _size_of(data) > MAX_KEPT:
        read.note(f"[what else came with this result was left out: it has more than {MAX_KEPT} bytes]")
        return None
    return OpaquePart(data, PROVIDER)


def _resource(resource: Any) -> tuple[str, ImagePart | None]:
    kind = resource.mime_type or ""
    head = f"resource {_words(resource.uri)}" + (f" ({_words(kind)})" if kind else "")
    if isinstance(resource, TextResourceContents):
        return f"[{head}]\n{resource.text}", None
    image = _image(resource.blob, kind)
    return (f"[{head}]", image) if image is not None else (f"[{head}, not shown: {_size(resource.blob)}]", None)


def _image(data: str, kind: str) -> ImagePart | None:
    """An image, if it is one."""
    kind = kind.partition(";")[0].strip().lower()
    if not _IMAGE.fullmatch(kind):
        return None
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return ImagePart(data, kind)


def _words(text: str) -> str:
    return " ".join(cleaned(text, MAX_WORDS).split())


def _left_out(what: str, kind: str, data: str) -> str:
    about = f"{_words(kind)}, {_size(data)}" if kind else _size(data)
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
    """Bytes of it as JSON."""
    return len((_json(data) or "").encode("utf-8", "replace"))


def _dumped(block: Any) -> dict[str, Any]:
    """A block as MCP writes it, without what servers and their clients say to each other beside it."""
    made: dict[str, Any] = block.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"})
    return made

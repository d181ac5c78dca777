"""What a tool of an MCP server gave back, as a `ToolResult`; and the other way, what is served.

All of it is data: a link is told and never opened, and what cannot be told to a model is said in words.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
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

from toolwire.mcp.definitions import Declared, cleaned
from toolwire.messages import ImagePart, OpaquePart, ToolResult
from toolwire.schema import validate

PROVIDER = "mcp"
"""Of an `OpaquePart` that holds content as MCP writes it."""
MAX_TEXT = 1_000_000
"""Characters of a result that a model may be told."""
MAX_ERROR = 4_000
MAX_IMAGES = 20
MAX_WORDS = 300
"""Characters of a URI or a title that are told."""

_IMAGE = re.compile(r"image/[a-z0-9.+-]{1,60}")


def from_mcp(given: CallToolResult, declared: Declared) -> ToolResult:
    """What a call gave back.

    Structured content counts where the tool has an output schema, and has to fit it. Without such a schema the text
    counts, and structured content where there is no text.
    """
    text, images, more = _content(given)
    if given.is_error:
        if not text and given.structured_content is not None:
            text = _json(given.structured_content) or ""
        return ToolResult("", "", error=_cut(text, MAX_ERROR) or "The tool failed, and did not say why.", images=images)
    extra = OpaquePart(_dumped(given), PROVIDER) if more else None
    if declared.output is None and (text or given.structured_content is None):
        return ToolResult("", "", text, images=images, extra=extra)
    written = _json(given.structured_content)
    if written is None or len(written) > MAX_TEXT:
        size = "is no JSON" if written is None else f"has {len(written)} characters, at most {MAX_TEXT} are taken"
        return _unusable(f"what it gave back {size}")
    if declared.output is not None:
        if given.structured_content is None and "structured_content" not in given.model_fields_set:
            return _unusable("it gave back no structured content, which its outputSchema promises")
        if issues := validate(given.structured_content, declared.output):
            return _unusable(f"what it gave back is not what its outputSchema promises: {'; '.join(map(str, issues))}")
    return ToolResult("", "", given.structured_content, images=images, extra=extra)


def _unusable(why: str) -> ToolResult:
    return ToolResult("", "", error=_cut(f"The tool ran, but {why}.", MAX_ERROR))


def to_mcp(result: ToolResult) -> CallToolResult:
    """A result as MCP writes it; what the tool itself wrote in MCP's words goes out as it is."""
    if result.extra is not None and result.extra.provider == PROVIDER:
        return CallToolResult.model_validate({**result.extra.data, "isError": not result.success})
    content: list[Any] = []
    structured: dict[str, Any] | None = None
    if result.error is not None or result.result is not None:
        content.append(TextContent(text=result.text))
    if result.success and isinstance(result.result, dict):
        structured = result.result
    for image in result.images:
        if image.data:
            content.append(ImageContent(data=image.data, mime_type=image.media_type or "application/octet-stream"))
        else:
            content.append(ResourceLink(name="image", uri=image.url))
    if structured is None:
        return CallToolResult(content=content, is_error=not result.success)
    return CallToolResult(content=content, structured_content=structured)


def _content(given: CallToolResult) -> tuple[str, tuple[ImagePart, ...], bool]:
    """The text, the images, and whether there was something that is neither."""
    parts: list[str] = []
    images: list[ImagePart] = []
    more = False
    for block in given.content:
        match block:
            case TextContent(text=text):
                parts.append(text)
            case ImageContent(data=data, mime_type=kind):
                if (image := _image(data, kind)) is not None and len(images) < MAX_IMAGES:
                    images.append(image)
                else:
                    parts.append(f"[an image that cannot be shown: {_words(kind)}, {_size(data)}]")
                    more = True
            case AudioContent(data=data, mime_type=kind):
                parts.append(f"[a sound, which cannot be heard here: {_words(kind)}, {_size(data)}]")
                more = True
            case ResourceLink(uri=uri, name=name, mime_type=kind):
                about = f"{_words(name)}, {_words(kind)}" if kind else _words(name)
                parts.append(f"[a link to a resource, which was not opened: {_words(uri)} ({about})]")
                more = True
            case EmbeddedResource(resource=resource):
                text, image = _resource(resource)
                parts.append(text)
                images += [image] if image is not None and len(images) < MAX_IMAGES else []
                more = True
    return _cut("\n".join(parts), MAX_TEXT), tuple(images), more


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


def _size(data: str) -> str:
    return f"{len(data) * 3 // 4} bytes"


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n... ({len(text) - limit} characters more are left out)"


def _json(value: Any) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None


def _dumped(given: CallToolResult) -> dict[str, Any]:
    return given.model_dump(mode="json", by_alias=True, exclude_none=True, include={"content", "structured_content"})

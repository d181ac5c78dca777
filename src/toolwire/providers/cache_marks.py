"""Cache marks: the places in a request up to which a provider stores the prompt, as one API's marks become another's.

Anthropic has the mark as a member of the marked block or tool, and so does OpenRouter. Bedrock has a block of its own
behind it.

Sources: https://platform.claude.com/docs/en/build-with-claude/prompt-caching,
https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html and
https://openrouter.ai/docs/features/prompt-caching
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from toolwire.messages import FilePart, ImagePart, Message, OpaquePart, Part, TextPart, ToolCall, ToolResult
from toolwire.providers.message_parts import Json
from toolwire.providers.request import ChatRequest
from toolwire.tools import ToolDefinition

MarkForm = Literal["cache_control", "cachePoint"]
MEMBER: Final = "cache_control"
BLOCK: Final = "cachePoint"
_TTL = "ttl"


def with_marks(request: ChatRequest, kind: str, form: MarkForm) -> ChatRequest:
    """Return a request with the marks of other APIs in the form of this one.

    Args:
        request: the request.
        kind: the API that it will be written for.
        form: the form in which this API has marks.
    """
    if request.provider == kind:
        return request
    messages: list[Message] = []
    for message in request.messages:
        parts = list(message.parts)
        if form == MEMBER and messages and messages[-1].role == "tool" and (mark := _first_mark(parts, kind)):
            # The block behind results is in a message of its own: results are apart from other content.
            *results, last = messages[-1].parts
            messages[-1] = replace(messages[-1], parts=(*results, _marked(last, mark, kind)))
            parts.pop(0)
        if parts or not message.parts:
            messages.append(replace(message, parts=tuple(_parts(parts, kind, form))))
    return replace(request, messages=tuple(messages), **_tools(request, kind, form))


def _first_mark(parts: Sequence[Part], kind: str) -> Any:
    """Return the mark that some parts begin with, in a block of its own; None if they do not."""
    return _mark_in(parts[0], kind) if parts and isinstance(parts[0], OpaquePart) else None


def _mark_in(part: OpaquePart, kind: str) -> Any:
    """Return the mark of another API than this that is a block of its own; None for any other block."""
    return part.data.get(BLOCK) if part.provider != kind and part.data.keys() == {BLOCK} else None


def _parts(parts: Iterable[Part], kind: str, form: MarkForm) -> Iterable[Part]:
    """Return the parts of a message with marks in a form."""
    written: list[Part] = []
    for part in parts:
        if isinstance(part, OpaquePart):
            mark = _mark_in(part, kind)
            at = next((at for at in range(len(written) - 1, -1, -1) if _can_have_mark(written[at])), None)
            if mark is not None and form == MEMBER and at is not None:
                written[at] = _marked(written[at], mark, kind)
            else:
                written.append(part)
            continue
        mark = _mark_of(part, kind)
        if mark is None:
            written.append(part)
        elif form == BLOCK:
            written += [_unmarked(part), OpaquePart(_block(mark), kind)]
        else:
            written.append(_marked(_unmarked(part), mark, kind))
    return written


def _can_have_mark(part: Part) -> bool:
    if isinstance(part, TextPart):
        return bool(part.text.strip())  # blank text is left out of requests
    return isinstance(part, ImagePart | FilePart | ToolCall | ToolResult)


def _mark_of(part: Part, kind: str) -> Any:
    """Return the mark of another API than this on a part; None if there is none."""
    extra = part.extra if isinstance(part, TextPart | ImagePart | FilePart | ToolCall | ToolResult) else None
    return None if extra is None or extra.provider == kind else extra.data.get(MEMBER)


def _unmarked(part: Part) -> Part:
    assert isinstance(part, TextPart | ImagePart | FilePart | ToolCall | ToolResult) and part.extra is not None
    rest = {name: value for name, value in part.extra.data.items() if name != MEMBER}
    return replace(part, extra=replace(part.extra, data=rest) if rest else None)


def _marked(part: Part, mark: Any, kind: str) -> Part:
    assert isinstance(part, TextPart | ImagePart | FilePart | ToolCall | ToolResult)
    if part.extra is not None and part.extra.provider != kind:
        return part  # members of a third API stay, and are noted; a part has those of one API
    before = part.extra.data if part.extra is not None else {}
    return replace(part, extra=OpaquePart({**before, MEMBER: _member(mark)}, kind))


def _member(mark: Any) -> Json:
    ttl = mark.get(_TTL) if isinstance(mark, Mapping) else None
    return {"type": "ephemeral", **({_TTL: ttl} if ttl else {})}


def _block(mark: Any) -> Json:
    ttl = mark.get(_TTL) if isinstance(mark, Mapping) else None
    return {BLOCK: {"type": "default", **({_TTL: ttl} if ttl else {})}}


def _tools(request: ChatRequest, kind: str, form: MarkForm) -> dict[str, Any]:
    """Return the fields of a request with tools whose marks are in a form."""
    tools: list[ToolDefinition] = []
    blocks: list[Mapping[str, Any]] = []
    for tool in request.tools:
        extra = tool.annotations.get(request.provider)
        mark = extra.get(MEMBER) if isinstance(extra, Mapping) else None
        if isinstance(extra, Mapping) and mark is not None:
            rest = {name: value for name, value in extra.items() if name != MEMBER}
            annotations = {**tool.annotations, request.provider: rest}
            if form == MEMBER:
                annotations[kind] = {MEMBER: _member(mark)}
            else:
                blocks = [_block(mark)]  # the tools are one list: the last mark contains those before it
            tool = replace(tool, annotations=annotations)
        tools.append(tool)
    marks = [tool[BLOCK] for tool in request.provider_tools if tool.keys() == {BLOCK}]
    if marks and tools and form == MEMBER:
        annotations = {**tools[-1].annotations, kind: {MEMBER: _member(marks[-1])}}
        tools[-1] = replace(tools[-1], annotations=annotations)
    server_tools = tuple(tool for tool in request.provider_tools if tool.keys() != {BLOCK})
    return {"tools": tuple(tools), "provider_tools": (*server_tools, *blocks)}

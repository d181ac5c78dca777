"""Requests to open-weights models behind an API: the server writes them into a chat template and reads tokens in them.

A tokenizer reads the control tokens of its template wherever they appear, so a result or a definition could end its own
place and begin another role. Models of providers whose APIs keep roles and text apart get the texts unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from toolwire.messages import FilePart, Part, ToolResult
from toolwire.providers.request import ChatRequest
from toolwire.tools import ToolDefinition
from toolwire.wire.format_registry import get_format
from toolwire.wire.profiles import profile
from toolwire.wire.result_text import inert_definition, inert_file, inert_result
from toolwire.wire.syntax import WireFormat


def inert_for_template(
    request: ChatRequest, tools: Iterable[ToolDefinition], model: str
) -> tuple[ChatRequest, list[ToolDefinition]]:
    """Return a request and its tools as a model of this name gets them."""
    wire = _template_format(model)
    if wire is None:
        return request, list(tools)
    messages = tuple(
        replace(message, parts=tuple(_inert_part(wire, part) for part in message.parts)) for message in request.messages
    )
    return replace(request, messages=messages), [inert_definition(wire, tool) for tool in tools]


def is_inert(request: ChatRequest, model: str) -> bool:
    """Return whether a model of this name gets the request as it is."""
    inert, tools = inert_for_template(request, request.tools, model)
    return inert is request or (inert == request and tuple(tools) == request.tools)


def _inert_part(wire: WireFormat, part: Part) -> Part:
    match part:
        case ToolResult():
            return inert_result(wire, part)
        case FilePart():
            return inert_file(wire, part)
        case _:
            return part


@lru_cache(maxsize=256)
def _template_format(model: str) -> WireFormat | None:
    """Return the format in which a model's template writes calls; None if its API keeps roles and text apart."""
    model_profile = profile(model)
    return get_format(model_profile.format) if model_profile.known and not model_profile.api else None

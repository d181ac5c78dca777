"""Text for prompts: definitions, usage, calls and results, by a format's name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from toolwire._surface import check_items, check_type
from toolwire.errors import RenderError
from toolwire.messages import ToolCall, ToolResult
from toolwire.tools import ToolDefinition, definitions
from toolwire.wire import renderer
from toolwire.wire.format_registry import get_format
from toolwire.wire.prompt_styles import DEFAULT_STYLE, PromptStyle, get_style
from toolwire.wire.result_text import inert_definition
from toolwire.wire.result_text import render_results as _render_results
from toolwire.wire.syntax import WireFormat

_CALLS = "an iterable of ToolCall"
_RESULTS = "an iterable of ToolResult"


def render_definitions(tools: Iterable[Any], *, format: str | WireFormat) -> str:
    """Render definitions as a prompt of this format lists them; markup for models inside them is inert.

    Raises:
        UnknownFormat, DefinitionError: the format or a tool cannot be used.
    """
    wire = get_format(format)
    return renderer.render_definitions(wire, _written(wire, tools))


def _written(wire: WireFormat, tools: Iterable[Any]) -> dict[str, ToolDefinition]:
    """Return the definitions of tools as a prompt contains them, by name: with inert markup.

    Raises:
        DefinitionError: a tool cannot be used.
    """
    return {name: inert_definition(wire, tool) for name, tool in definitions(tools, strict=True).items()}


def render_calls(calls: Iterable[ToolCall], *, format: str | WireFormat, tools: Iterable[Any] = ()) -> str:
    """Render calls as a model of this format writes them; parsing the text gives the same calls.

    Args:
        calls: the calls of one message.
        format: a format's name or alias.
        tools: definitions of the tools; formats without types in their markup need the schemas.

    Raises:
        UnknownFormat: no such format.
        RenderError: the format has no unambiguous way to write one of them.
    """
    check_type("calls", calls, Iterable, _CALLS)
    check_items("calls", calls := list(calls), ToolCall, _CALLS)
    return renderer.render_calls(get_format(format), calls, definitions(tools))


def render_results(results: Iterable[ToolResult], *, format: str | WireFormat) -> str:
    """Render the results of one turn in order; no markup inside them can be read as a call or as the end of a result.

    Raises:
        UnknownFormat: no such format.
    """
    check_type("results", results, Iterable, _RESULTS)
    check_items("results", results := list(results), ToolResult, _RESULTS)
    return _render_results(get_format(format), results)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A description of tools for a model that was never trained on the format.

    Attributes:
        text: guidelines, and a block for each tool.
        skipped: tools that the format cannot write a call to, each with the reason.
    """

    text: str
    skipped: dict[str, str]


def render_manifest(tools: Iterable[Any], *, format: str | WireFormat) -> Manifest:
    """Render guidelines and, for each tool, its definition and example calls made from its schema.

    Raises:
        UnknownFormat, DefinitionError: the format or a tool cannot be used.
        RenderError: the format has no calls.
    """
    wire = get_format(format)
    by_name = _written(wire, tools)
    if not wire.blocks:
        raise RenderError(f"the format {wire.name!r} has no calls")
    return Manifest(*renderer.manifest(wire, by_name))


def prompt(
    tools: Iterable[Any], *, format: str | WireFormat, system: str = "", style: str | PromptStyle = DEFAULT_STYLE
) -> str:
    """Build a system prompt: `system`, the definitions, and how to call a tool in this format.

    Args:
        tools: definitions of the tools.
        format: a format's name or alias.
        system: text before everything else.
        style: the sentences around definitions and example; a name from `PROMPT_STYLES`, or your own.

    Raises:
        UnknownFormat, DefinitionError, RenderError: the format or the tools cannot be used.
        ConfigurationError: there is no such style.
    """
    check_type("system", system, str, "text")
    wire = get_format(format)
    sentences = get_style(style)
    by_name = _written(wire, tools)
    if not by_name:
        return system
    parts = (
        system,
        sentences.before_tools,
        renderer.render_definitions(wire, by_name),
        renderer.render_usage(wire, by_name, sentences) if wire.blocks else "",
    )
    return "\n\n".join(part for part in parts if part)

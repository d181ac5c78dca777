"""Parsers of tool calls and reasoning for vLLM, in any format that Toolwire knows.

vLLM calls `register` when this package is installed. The names of the parsers are `toolwire`, which detects the format,
and `toolwire:FORMAT` for each format and alias.
"""

from __future__ import annotations

import toolwire

PREFIX = "toolwire"


def parser_names() -> dict[str, str]:
    """Return the format of each parser's name."""
    return {PREFIX: "auto", **{f"{PREFIX}:{name}": format for name, format in toolwire.format_names().items()}}


def register() -> None:
    """Register all parsers; the classes are made when they are used."""
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    for name, format in parser_names().items():
        ToolParserManager.register_lazy_module(name, "toolwire_vllm.tool_parser", format)
        ReasoningParserManager.register_lazy_module(name, "toolwire_vllm.reasoning_parser", format)

"""Toolwire: tool calling with any language model."""

from toolwire.events import collect, replay
from toolwire.reading import StreamParser, parse
from toolwire.tools import Tier, Tool, ToolDefinition, tool
from toolwire.wire.registry import formats, get_format

__all__ = ["StreamParser", "Tier", "Tool", "ToolDefinition", "collect", "formats", "get_format", "parse", "replay", "tool"]

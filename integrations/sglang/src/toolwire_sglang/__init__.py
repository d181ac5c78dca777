"""A detector of tool calls for SGLang, in any format that Toolwire knows.

SGLang calls `register` when this package is installed. The names of the parsers are `toolwire`, which detects the
format, and `toolwire:FORMAT` for each format and alias.
"""

from __future__ import annotations

import toolwire

PREFIX = "toolwire"


def parser_names() -> dict[str, str]:
    """Return the format of each parser's name."""
    return {PREFIX: "auto", **{f"{PREFIX}:{name}": format for name, format in toolwire.format_names().items()}}


def register() -> None:
    """Add all parsers to the table that SGLang's command line and server read."""
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    from toolwire_sglang.detector import detector_class

    for name, format in parser_names().items():
        FunctionCallParser.ToolCallParserEnum[name] = detector_class(format)

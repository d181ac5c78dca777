"""A detector of tool calls for SGLang, in any format that Toolwire knows.

SGLang calls `register` when this package is installed. The names of the parsers are `toolwire`, which detects the
format, and `toolwire:FORMAT` for each format and alias.
"""

from __future__ import annotations

from toolwire.wire import FORMATS

PREFIX = "toolwire"


def parser_names() -> dict[str, str]:
    """Return the format of each parser's name."""
    names = {PREFIX: "auto"}
    for wire in FORMATS:
        for name in (wire.name, *wire.aliases):
            names.setdefault(f"{PREFIX}:{name}", wire.name)
    return names


def register() -> None:
    """Add all parsers to the table that SGLang's command line and server read."""
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    from toolwire_sglang.detector import detector_class

    for name, format in parser_names().items():
        FunctionCallParser.ToolCallParserEnum[name] = detector_class(format)

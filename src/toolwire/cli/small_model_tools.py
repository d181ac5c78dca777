"""Tools that read files, as models of about a billion parameters can use them."""

from __future__ import annotations

import os
from typing import Any

from toolwire.builtin.toolsets import reading_tools
from toolwire.cli.small_model_prompts import RESULT_CHARACTERS
from toolwire.tools import Tool


def small_reading_tools(*roots: str | os.PathLike[str], only_calls: bool = False) -> list[Tool[..., Any]]:
    """Return the tools for reading, with short results.

    Args:
        roots: directories below which files may be read.
        only_calls: whether the model may write nothing but calls. It then gives each parameter a value, reads a file
            from the line that a search found, and misses what is above it.

    Raises:
        ToolError: a root is not a directory.
    """
    tools = reading_tools(*roots, characters=RESULT_CHARACTERS, short_files_whole=only_calls)
    return [
        tool.replace(parameters=("path", "start_line")) if only_calls and tool.definition.name == "read_file" else tool
        for tool in tools
    ]

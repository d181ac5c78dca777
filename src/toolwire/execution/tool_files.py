"""Load the tools of a Python file, which it defines with `@toolwire.tool`."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any

from toolwire.errors import ConfigurationError, ToolError, capture_errors
from toolwire.tools import Tool


def python_tools(path: str | os.PathLike[str]) -> list[Tool[..., Any]]:
    """Run a Python file and return the tools that it defines; the caller vouches for its code.

    Its module gets a name that no other has: `calendar.py` must not take the place of the standard library's.

    Raises:
        ConfigurationError: no Python file is there, or it makes no tool.
        ToolError: it cannot be run.
    """
    file = Path(path).resolve()
    digest = hashlib.sha256(os.fsencode(file)).hexdigest()[:12]
    name = re.sub(r"\W", "_", f"tools_{file.stem}_{digest}")
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ConfigurationError(f"cannot read {path}: no Python file is there")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with capture_errors() as caught:
        spec.loader.exec_module(module)
    if caught.error is not None:
        raise ToolError(f"{path} cannot be run: {caught.message}") from caught.error
    tools = list({id(value): value for value in vars(module).values() if isinstance(value, Tool)}.values())
    if not tools:
        raise ConfigurationError(f"{path} makes no tool; put @toolwire.tool over its functions")
    return tools

"""Tools in a process of their own, with limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolwire.errors import DefinitionError
from toolwire.tools import Isolation


async def run_isolated(function: Callable[..., Any], arguments: dict[str, Any], isolation: Isolation) -> Any:
    """Run a tool's function in a process of its own.

    Raises:
        DefinitionError: it cannot be imported there.
        ToolError: it failed, or met a limit.
    """
    raise DefinitionError("cannot be isolated yet")

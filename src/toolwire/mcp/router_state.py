"""The state of an `McpRouter`: its servers, and their tools in the registry."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from toolwire.mcp.connection import Connection
from toolwire.mcp.definitions import DeclaredTool, QuarantinedTool, describe, difference
from toolwire.mcp.server_status import ServerState, ToolState
from toolwire.mcp.servers import McpServer
from toolwire.policy.fingerprint import definition_hash
from toolwire.tools import ToolDefinition


@dataclass(slots=True)
class RegisteredTool:
    """A tool in the registry: the description that its server gives now, and the approved one."""

    current: DeclaredTool
    approved: DeclaredTool | None
    hash: str
    definition: ToolDefinition

    @property
    def state(self) -> ToolState:
        """The state of its approval."""
        if self.approved is None:
            return "new"
        return "approved" if definition_hash(self.approved.definition) == self.hash else "changed"

    @property
    def question(self) -> str:
        """The text to be approved before the tool runs, if its description is not approved."""
        if self.approved is None:
            head = "This tool is new on its server. To approve it is to approve its description:"
            return f"{head}\n{describe(self.current)}"
        return (
            "The description of this tool has changed since it was approved. To approve it is to approve the change:\n"
            f"{difference(self.approved, self.current)}"
        )

    def same(self, other: RegisteredTool) -> bool:
        """Return whether the other would be registered in the same way."""
        return (self.state, self.hash, self.definition) == (other.state, other.hash, other.definition)


@dataclass(slots=True)
class ServerEntry:
    """A server with its connection and its tools, by the names under which they are registered."""

    server: McpServer
    connection: Connection
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    tools: dict[str, RegisteredTool] = field(default_factory=dict)
    disabled: list[DeclaredTool] = field(default_factory=list)
    quarantined: list[QuarantinedTool] = field(default_factory=list)
    state: ServerState = "waiting"
    reason: str = ""
    stale: bool = False  # its current list of tools has not been read yet
    changes: int = 0  # number of changes that it has announced
    refresh: asyncio.Task[None] | None = None

"""Values that `McpRouter` reports: servers, their tools, the progress of calls, and questions about servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from toolwire.tools import Tier

ServerState = Literal["ready", "waiting", "not approved", "failed", "off"]
"""State of a server; see `ServerStatus`."""
ToolState = Literal["approved", "new", "changed", "quarantined", "off"]
"""State of a tool; see `ToolStatus`."""


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """A request to approve how a server is started or reached.

    Attributes:
        server: its name.
        launch: the command or address; only secrets are left out.
        previous_launch: the same as it was approved last; "" if it never was.
    """

    server: str
    launch: str
    previous_launch: str = ""

    @property
    def text(self) -> str:
        """The question for a reader."""
        if not self.previous_launch:
            return f"The MCP server {self.server} has not been used before. It\n{self.launch}"
        changed = (
            "something secret, or the content of a file that it runs"
            if self.previous_launch == self.launch
            else f"it\n{self.previous_launch}\nand now it\n{self.launch}"
        )
        return f"The MCP server {self.server} has changed since it was approved: {changed}"


Approve = Callable[[ServerQuestion], Awaitable[bool] | bool]
"""Asks a person whether a server may be used."""


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """The progress of a call.

    Attributes:
        server, tool: names of the server and of its tool.
        done: amount done, in the server's own unit.
        total: the whole amount, if the server reports it.
        message: the server's comment.
    """

    server: str
    tool: str
    done: float
    total: float | None
    message: str


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """A tool of a server.

    Attributes:
        name: its name on the server.
        exposed_name: its name for models; "" if they cannot call it.
        state: "approved", or why its calls are asked about or do not run.
        tier, confirm: the tier and the confirmation that apply to it.
        description: the description that models read.
        reason: why it is quarantined, or its change as a diff.
    """

    name: str
    exposed_name: str = ""
    state: ToolState = "approved"
    tier: Tier = Tier.RUN
    confirm: bool = False
    description: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server and its tools.

    Attributes:
        name: its name.
        state: "waiting" means that its tools are known and the first call starts it.
        reason: why it cannot be used.
        launch: how it is started or reached.
        protocol: the negotiated version of the protocol.
        server_version: the name and version that it reports.
        tools: its tools.
    """

    name: str
    state: ServerState
    reason: str = ""
    launch: str = ""
    protocol: str = ""
    server_version: str = ""
    tools: tuple[ToolStatus, ...] = ()

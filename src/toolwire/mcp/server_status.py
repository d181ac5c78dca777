"""Values that `McpRouter` reports: servers, their tools, the progress of calls, and questions about servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolwire.tools import Tier

ServerState = Literal["ready", "waiting", "not approved", "failed", "off"]
ToolState = Literal["approved", "new", "changed", "quarantined", "off"]


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """A request to approve how a server is started or reached.

    Attributes:
        server: its name.
        shown: the command or address; only secrets are left out.
        before: the same as it was approved last; "" if it never was.
    """

    server: str
    shown: str
    before: str = ""

    @property
    def text(self) -> str:
        """The question for a reader."""
        if not self.before:
            return f"The MCP server {self.server} has not been used before. It\n{self.shown}"
        changed = "something secret" if self.before == self.shown else f"it\n{self.before}\nand now it\n{self.shown}"
        return f"The MCP server {self.server} has changed since it was approved: {changed}"


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
        called: its name for models; "" if they cannot call it.
        state: "approved", or why its calls are asked about or do not run.
        tier, confirm: the tier and the confirmation that apply to it.
        description: the description that models read.
        reason: why it is quarantined, or its change as a diff.
    """

    name: str
    called: str = ""
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
        shown: how it is started or reached.
        protocol: the negotiated version of the protocol.
        about: the name and version that it reports.
        tools: its tools.
    """

    name: str
    state: ServerState
    reason: str = ""
    shown: str = ""
    protocol: str = ""
    about: str = ""
    tools: tuple[ToolStatus, ...] = ()

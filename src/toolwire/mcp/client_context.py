"""The MCP client behind a call, for tools that we serve: progress, log lines, questions.

    async def index(folder: str) -> int:
        for at, file in enumerate(files):
            await report_progress(at, len(files), file.name)

Called by anything but an MCP client, such a tool does the same and tells nobody.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitationCapability,
    ElicitResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    SamplingCapability,
    SamplingMessage,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolwire.errors import ToolError

CURRENT: ContextVar[Caller | None] = ContextVar("toolwire_mcp_caller", default=None)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who made a call.

    Attributes:
        context: the request, as the SDK gives it.
        modern: it speaks a version in which servers ask by answering, and never on their own.
    """

    context: ServerRequestContext[Any, Any]

    @property
    def modern(self) -> bool:
        """Whether the client is asked by an answer that it then completes."""
        return self.context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def can_be_asked(self) -> bool:
        """Whether there is a person behind it, as far as it says."""
        known = self.context.session.client_capabilities
        return known is not None and known.elicitation is not None and not _url_only(known.elicitation)

    async def ask(self, question: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Ask the person behind the client; None if they refuse, or close the question.

        Args:
            question: what they read.
            schema: JSON Schema of a flat object: what they fill in.

        Raises:
            ToolError: the client cannot ask.
        """
        answer = await self.elicit(question, schema)
        return dict(answer.content or {}) if answer.action == "accept" else None

    async def elicit(self, question: str, schema: dict[str, Any]) -> ElicitResult:
        """Like `ask`, but with what they did: whoever closes a question has not refused.

        Raises:
            ToolError: the client cannot ask.
        """
        if not self.can_be_asked:
            raise ToolError("The client cannot ask anybody.")
        try:
            return await self.context.session.elicit_form(question, schema, self.context.request_id)
        except MCPError as error:
            raise ToolError(f"The client could not ask: {error.message}") from error

    async def sample(self, prompt: str, max_tokens: int) -> str:
        """Let the client's own model write.

        Raises:
            ToolError: the client has none, or it wrote no text.
        """
        if not self.context.session.check_client_capability(ClientCapabilities(sampling=SamplingCapability())):
            raise ToolError("The client lends no model.")
        message = SamplingMessage(role="user", content=TextContent(text=prompt))
        request = CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=max_tokens))
        try:
            answer = await self.context.session.send_request(
                request, CreateMessageResult, metadata=ServerMessageMetadata(related_request_id=self.context.request_id)
            )
        except MCPError as error:
            raise ToolError(f"The client's model did not answer: {error.message}") from error
        if not isinstance(answer.content, TextContent):
            raise ToolError("The client's model wrote no text.")
        return answer.content.text

    async def leave(self) -> None:
        """Close the stream of this call, if there is one; the client comes back for the rest."""
        if self.context.close_sse_stream is not None:
            await self.context.close_sse_stream()


def _url_only(asked: ElicitationCapability) -> bool:
    return asked.url is not None and asked.form is None


def current_caller() -> Caller | None:
    """Who made the call in which this runs; None if it was no MCP client."""
    return CURRENT.get()


async def report_progress(done: float, total: float | None = None, message: str = "") -> None:
    """Tell how far the call has come, in whatever you count."""
    if (caller := CURRENT.get()) is not None:
        await caller.context.session.report_progress(done, total, message or None)


async def log(text: str, *, level: LoggingLevel = "info") -> None:
    """Tell the client something that is not part of the result."""
    if (caller := CURRENT.get()) is not None and not caller.modern:
        note = LoggingMessageNotification(params=LoggingMessageNotificationParams(level=level, data=text))
        await caller.context.session.send_notification(note, caller.context.request_id)

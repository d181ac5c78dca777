"""The MCP client behind a call, for tools that are served over MCP: progress, log lines, questions.

    async def index(folder: str) -> int:
        for at, file in enumerate(files):
            await report_progress(at, len(files), file.name)

Without an MCP client behind the call, these functions do nothing.
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
    """The client that made a call.

    Attributes:
        context: the request, as the SDK represents it.
    """

    context: ServerRequestContext[Any, Any]

    @property
    def modern(self) -> bool:
        """True if its protocol version lets servers ask only by an answer, which the client then completes."""
        return self.context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def can_be_asked(self) -> bool:
        """True if the client declares that it can ask its user questions."""
        capabilities = self.context.session.client_capabilities
        return (
            capabilities is not None
            and capabilities.elicitation is not None
            and not _url_only(capabilities.elicitation)
        )

    async def ask(self, question: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Ask the user of the client; return None if they refuse, or close the question.

        Args:
            question: text for the user.
            schema: JSON Schema of the flat object that the user fills in.

        Raises:
            ToolError: the client cannot ask.
        """
        answer = await self.elicit(question, schema)
        return dict(answer.content or {}) if answer.action == "accept" else None

    async def elicit(self, question: str, schema: dict[str, Any]) -> ElicitResult:
        """Ask like `ask`, and return the whole answer: to close a question is not to refuse.

        Raises:
            ToolError: the client cannot ask.
        """
        if not self.can_be_asked:
            raise ToolError("The client cannot ask its user.")
        try:
            return await self.context.session.elicit_form(question, schema, self.context.request_id)
        except MCPError as error:
            raise ToolError(f"The client could not ask: {error.message}") from error

    async def sample(self, prompt: str, max_tokens: int) -> str:
        """Return text that the client's own model writes.

        Raises:
            ToolError: the client offers no model, or the model wrote no text.
        """
        if not self.context.session.check_client_capability(ClientCapabilities(sampling=SamplingCapability())):
            raise ToolError("The client offers no model.")
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
        """Close the stream of this call, if there is one; the client reconnects for the rest."""
        if self.context.close_sse_stream is not None:
            await self.context.close_sse_stream()


def _url_only(asked: ElicitationCapability) -> bool:
    return asked.url is not None and asked.form is None


def current_caller() -> Caller | None:
    """Return the client that made the current call; None if it was not an MCP client."""
    return CURRENT.get()


async def report_progress(done: float, total: float | None = None, message: str = "") -> None:
    """Report the progress of the current call, in a unit of your own."""
    if (caller := CURRENT.get()) is not None:
        await caller.context.session.report_progress(done, total, message or None)


async def log(text: str, *, level: LoggingLevel = "info") -> None:
    """Send a log line, which is not part of the result, to the client."""
    if (caller := CURRENT.get()) is not None and not caller.modern:
        note = LoggingMessageNotification(params=LoggingMessageNotificationParams(level=level, data=text))
        await caller.context.session.send_notification(note, caller.context.request_id)

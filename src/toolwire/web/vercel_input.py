"""Requests of `useChat`: the task of a run and the conversation before it, read from messages of Vercel's AI SDK.

Source: ai-sdk.dev/docs/reference/ai-sdk-core/ui-message.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any, ClassVar, Literal, Unpack

from toolwire.agent.agent import Agent
from toolwire.agent.run_context import RunOptions
from toolwire.agent.team import AgentTeam
from toolwire.messages import Message, Part, TextPart, ToolCall, ToolResult
from toolwire.runtime.attachments import media_part
from toolwire.web.front_end_request import Body, CamelCase, FrontEndRequest, run_request
from toolwire.web.vercel import vercel_stream

_TOOL = "tool-"
"""The type of the part of a tool that the page knows begins so; the tool's name follows."""


class _UIPart(CamelCase):
    """A part of a message: text, a file, a tool's call with its result; the page's own parts have other types."""

    type: str
    text: str = ""
    media_type: str = ""
    filename: str | None = None
    url: str = ""
    tool_name: str = ""
    tool_call_id: str = ""
    state: str = ""
    input: Any = None
    output: Any = None
    error_text: str = ""

    def part(self) -> Part | None:
        """Return the part as a model reads it; None for a call, and for what only the page shows."""
        match self.type:
            case "text" if self.text:
                return TextPart(self.text)
            case "file":
                return media_part(self.media_type, url=self.url, name=self.filename or "")
        return None

    def call(self) -> ToolCall | None:
        """Return the call that this part shows; None for other parts."""
        if self.type != "dynamic-tool" and not self.type.startswith(_TOOL):
            return None
        name = self.tool_name or self.type.removeprefix(_TOOL)
        return ToolCall(name, self.input if isinstance(self.input, dict) else {}, self.tool_call_id)

    def result(self, call: ToolCall) -> ToolResult | None:
        """Return the result of the call; None if there is none yet."""
        match self.state:
            case "output-available":
                return ToolResult(call.id, call.name, self.output)
            case "output-error":
                return ToolResult(call.id, call.name, error=self.error_text or "The tool failed.")
            case "output-denied":
                return ToolResult(call.id, call.name, error="The user denied this call.")
        return None


class _UIMessage(CamelCase):
    role: Literal["system", "user", "assistant"]
    parts: list[_UIPart]


class _ChatRequest(FrontEndRequest):
    title: ClassVar[str] = "a request of useChat"

    id: str = ""
    messages: list[_UIMessage]

    def conversation(self) -> Iterator[Message]:
        """See `FrontEndRequest`."""
        for message in self.messages:
            if message.role == "user":
                yield Message("user", [part for item in message.parts if (part := item.part()) is not None])
            elif message.role == "assistant":
                yield from _answers(message.parts)


def _answers(items: list[_UIPart]) -> Iterator[Message]:
    """Yield the answers of one message of the assistant, which contains all rounds of a run, with their results."""
    parts: list[Part] = []
    results: list[ToolResult] = []
    for item in items:
        if item.type == "step-start" or (results and item.type == "text"):
            yield from _round(parts, results)
            parts, results = [], []
        elif (call := item.call()) is not None:
            parts.append(call)
            results += [result] if (result := item.result(call)) is not None else []
        if (part := item.part()) is not None:
            parts.append(part)
    yield from _round(parts, results)


def _round(parts: list[Part], results: list[ToolResult]) -> Iterator[Message]:
    if parts:
        yield Message("assistant", parts)
    if results:
        yield Message("tool", results)


def vercel_run(agent: Agent[Any] | AgentTeam[Any], body: Body, **options: Unpack[RunOptions]) -> AsyncGenerator[bytes]:
    """Run an agent on the request of `useChat`, and yield the chunks for the response; see `vercel_stream`.

    The last message is the task, and those before it are the history, as for `ag_ui_run`: with a stored conversation
    nothing but the task is believed. System messages are ignored, since the agent has its own prompt.

    Args:
        agent: the agent or the team.
        body: the body of the request: JSON, or the dict that was read from it.
        options: see `RunOptions`.

    Raises:
        DefinitionError: the body is not a request of `useChat`, or its last message is not the user's.
        ConfigurationError, TypeError: see `Agent.run`.
    """
    return vercel_stream(run_request(agent, body, _ChatRequest, options)[1])

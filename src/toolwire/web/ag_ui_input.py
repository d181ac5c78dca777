"""Requests of AG-UI front ends: the task of a run and the conversation before it, read from a run agent input.

Source: docs.ag-ui.com/concepts/messages; the tests write every message with the package `ag-ui-protocol`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Annotated, Any, ClassVar, Literal, Unpack

from pydantic import Field

from toolwire.agent.agent import Agent
from toolwire.agent.run_context import RunOptions
from toolwire.agent.team import AgentTeam
from toolwire.messages import FilePart, ImagePart, Message, Part, TextPart, ToolCall, ToolResult
from toolwire.runtime.attachments import media_part
from toolwire.web.ag_ui import ag_ui_stream
from toolwire.web.front_end_request import Body, CamelCase, FrontEndRequest, run_request
from toolwire.wire.arguments import read_arguments


class _Source(CamelCase):
    type: Literal["url", "data"]
    value: str
    mime_type: str | None = None


class _Text(CamelCase):
    type: Literal["text"]
    text: str

    def part(self) -> Part:
        return TextPart(self.text)


class _Media(CamelCase):
    type: Literal["image", "audio", "video", "document"]
    source: _Source

    def part(self) -> Part:
        kind = ImagePart if self.type == "image" else FilePart
        data, url = ("", self.source.value) if self.source.type == "url" else (self.source.value, "")
        return kind(data, self.source.mime_type or "", url)


class _Binary(CamelCase):
    """An image or a file as versions before 1.0 write them."""

    type: Literal["binary"]
    mime_type: str
    data: str | None = None
    url: str | None = None
    filename: str | None = None

    def part(self) -> Part:
        return media_part(self.mime_type, self.data or "", url=self.url or "", name=self.filename or "")


_Content = str | list[Annotated[_Text | _Media | _Binary, Field(discriminator="type")]]


def _parts(content: _Content) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    return tuple(item.part() for item in content)


class _Function(CamelCase):
    name: str
    arguments: str


class _Call(CamelCase):
    id: str
    function: _Function


class _User(CamelCase):
    role: Literal["user"]
    content: _Content


class _Assistant(CamelCase):
    role: Literal["assistant"]
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Tool(CamelCase):
    role: Literal["tool"]
    content: _Content
    tool_call_id: str
    error: str | None = None


class _Other(CamelCase):
    """A message for the agent's author or for the page: the server has its own prompt, and the page its own state."""

    role: Literal["system", "developer", "activity", "reasoning"]


_Message = Annotated[_User | _Assistant | _Tool | _Other, Field(discriminator="role")]


class _RunAgentInput(FrontEndRequest):
    title: ClassVar[str] = "a run agent input"

    thread_id: str
    run_id: str
    messages: list[_Message]

    def conversation(self) -> Iterator[Message]:
        """See `FrontEndRequest`."""
        names: dict[str, str] = {}  # of the called tools, by the ids of the calls
        for message in self.messages:
            match message:
                case _User():
                    yield Message("user", _parts(message.content))
                case _Assistant():
                    calls = [_call(call) for call in message.tool_calls or ()]
                    names |= {call.id: call.name for call in calls}
                    parts: list[Part] = [TextPart(message.content)] if message.content else []
                    if parts or calls:
                        yield Message("assistant", (*parts, *calls))
                case _Tool():
                    yield Message("tool", (_result(message, names.get(message.tool_call_id, "")),))
                case _Other():
                    pass


def _call(call: _Call) -> ToolCall:
    """Return a call of the conversation so far; arguments that cannot be read are left out, since it does not run."""
    arguments = read_arguments(call.function.arguments).value
    return ToolCall(call.function.name, arguments or {}, call.id)


def _result(message: _Tool, tool_name: str) -> ToolResult:
    parts = _parts(message.content)
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    images = tuple(part for part in parts if isinstance(part, ImagePart))
    files = tuple(part for part in parts if isinstance(part, FilePart))
    error = message.error or None
    return ToolResult(message.tool_call_id, tool_name, None if error else text, error, images, files=files)


def ag_ui_run(agent: Agent[Any] | AgentTeam[Any], body: Body, **options: Unpack[RunOptions]) -> AsyncGenerator[bytes]:
    """Run an agent on the request of an AG-UI front end, and yield the events for the response; see `ag_ui_stream`.

    The last message is the task. The user's, the assistant's and the tools' messages before it are the history, unless
    the options contain a history or a conversation. A front end can write anything into them: with a stored
    conversation, such as `store.open(name)`, nothing but the task is believed. System messages are ignored, since the
    agent has its own prompt.

    Args:
        agent: the agent or the team.
        body: the body of the request, a run agent input: JSON, or the dict that was read from it.
        options: see `RunOptions`.

    Raises:
        DefinitionError: the body is not a run agent input, or its last message is not the user's.
        ConfigurationError, TypeError: see `Agent.run`.
    """
    read, events = run_request(agent, body, _RunAgentInput, options)
    return ag_ui_stream(events, thread_id=read.thread_id, run_id=read.run_id)

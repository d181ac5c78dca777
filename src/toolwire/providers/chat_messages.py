"""The list of messages that Chat Completions began, as several APIs read and write it.

Arguments of calls belong to a `function`; results are messages of the role `tool`, which take neither images nor files:
these follow the results of the turn in a message of the user.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolwire.messages import FilePart, ImagePart, Message, OpaquePart, Part, TextPart, ToolCall, ToolResult
from toolwire.providers.base import OfferedTool, ProviderApi
from toolwire.providers.file_parts import in_words
from toolwire.providers.message_parts import Json, note_dropped, object_of, role_of, system_text
from toolwire.providers.request import ChatRequest, Notes, join_answers, split_results
from toolwire.providers.response_builder import ResponseBuilder


class ChatMessages(ProviderApi):
    """An API with such messages."""

    def pair(self, request: ChatRequest, notes: Notes) -> tuple[Message, ...]:
        """Return the messages with results directly after the message with their calls."""
        return join_answers(super().pair(request, notes))

    # -- writing -------------------------------------------------------------------------------------------------

    @staticmethod
    def function_of(tool: OfferedTool) -> Json:
        """Return a tool as a request lists it."""
        function: Json = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        return {"type": "function", "function": function}

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """Return the messages of the API that one message becomes."""
        match message.role:
            case "assistant":
                return [self.write_answer(message.parts, notes)]
            case "system":
                return [{"role": "system", "content": self.write_system(message, notes)}]
        results, rest = split_results(message.parts)
        written = [self.write_result(result) for result in results]
        media: list[Part] = []
        for result in results:
            if result.media:
                title = "Files" if result.files else "Images"
                media += [TextPart(f"{title} of the result of {result.tool_name}:"), *result.media]
        if media:
            written.append({"role": "user", "content": self.write_content(media, notes)})
        if rest or not results:
            written.append({"role": "user", "content": self.write_content(rest, notes)})
        return written

    @abstractmethod
    def write_answer(self, parts: Sequence[Part], notes: Notes) -> Json:
        """Return a message of the model."""

    @abstractmethod
    def write_result(self, result: ToolResult) -> Json:
        """Return a message that carries one result, without its images and files."""

    def write_system(self, message: Message, notes: Notes) -> Any:
        """Return the content of a system message."""
        return system_text(message, self.name, notes)

    def write_content(self, parts: Iterable[Part], notes: Notes) -> Any:
        """Return the content of a message of the user: text alone, or blocks."""
        blocks: list[Json] = []
        for part in parts:
            match part:
                case TextPart():
                    blocks.append(self.text_block(part))
                case ImagePart():
                    blocks.append({"type": "image_url", "image_url": {"url": part.as_url}})
                case FilePart():
                    blocks.append(self.file_block(part, notes))
                case OpaquePart(data, self.kind):
                    blocks.append(data)
                case _:
                    note_dropped(part, self.name, notes)
        if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
            return blocks[0]["text"]
        return blocks or ""

    def file_block(self, part: FilePart, notes: Notes) -> Json:
        """Return a block of the user's message for a file; text, where the API takes no such file."""
        return {"type": "text", "text": in_words(part, self.name, notes).text}

    def text_block(self, part: TextPart) -> Json:
        """Return a block of text, with the members that only this API knows."""
        extra = part.extra.data if part.extra is not None and part.extra.provider == self.kind else {}
        return {"type": "text", "text": part.text, **extra}

    # -- reading -------------------------------------------------------------------------------------------------

    def read_messages(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
        """Yield the messages of a request."""
        for message in messages:
            if message["role"] in ("tool", "function"):
                yield Message("tool", (self.read_result(message),))
            else:
                yield Message(role_of(message["role"]), tuple(self.read_parts(message)))

    @abstractmethod
    def read_result(self, message: Mapping[str, Any]) -> ToolResult:
        """Parse a message that carries a result."""

    @abstractmethod
    def read_parts(self, message: Mapping[str, Any]) -> Iterator[Part]:
        """Yield the parts of any other message."""

    def read_call(self, call: Mapping[str, Any]) -> ToolCall:
        """Parse a call of a message."""
        function = call.get("function") or {}
        arguments = object_of(function.get("arguments"))
        return ToolCall(str(function["name"]), arguments, str(call.get("id") or ""), format=self.kind)

    def add_call(self, call: Mapping[str, Any], builder: ResponseBuilder) -> None:
        """Report a whole call of an answer to the builder."""
        function = call.get("function") or {}
        builder.add_call(function.get("name"), function.get("arguments"), call.get("id"))


def read_image(block: Mapping[str, Any]) -> ImagePart:
    """Parse a block with the URL of an image."""
    image = block["image_url"]
    return ImagePart(url=str(image["url"] if isinstance(image, Mapping) else image))

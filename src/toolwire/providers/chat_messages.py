"""The list of messages that Chat Completions began, as several APIs read and write it.

Arguments of calls belong to a `function`; results are messages of the role `tool`, which take neither images nor files:
these follow the results of the turn in a message of the user.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolwire.messages import FilePart, ImagePart, Message, OpaquePart, Part, TextPart, ToolCall, ToolResult
from toolwire.providers.base import ProviderApi
from toolwire.providers.file_parts import in_words, is_uploaded
from toolwire.providers.message_parts import (
    ORIGINAL,
    Json,
    members_except,
    members_part,
    note_dropped,
    object_of,
    original_content,
    own_members,
    role_of,
    split_members,
    stand_in,
    system_text,
)
from toolwire.providers.offered_tool import OfferedTool
from toolwire.providers.request import ChatRequest, Notes, join_answers, split_results
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.tools import ToolDefinition, as_definition

_CALL = frozenset(("id", "type", "index", "function", "custom", "extra_content"))
_IMAGE = frozenset(("type", "image_url"))
_DETAIL = "detail"
_FUNCTION = "function"
_DECLARED = frozenset(("name", "description", "parameters", "strict"))
_BLANK: tuple[Any, ...] = (None, "", [{"type": "text", "text": ""}])


class ChatMessages(ProviderApi):
    """An API with such messages.

    Attributes:
        message_members: the members of messages that are read; others are kept for this API.
        takes_file_ids: whether a file may be named by the id that it got when it was uploaded.
    """

    message_members: frozenset[str]
    takes_file_ids: bool = True

    def pair(self, request: ChatRequest, notes: Notes) -> tuple[Message, ...]:
        """Return the messages with results directly after the message with their calls."""
        return join_answers(super().pair(request, notes))

    # -- writing -------------------------------------------------------------------------------------------------

    def function_of(self, tool: OfferedTool) -> Json:
        """Return a tool as a request lists it, with the members that only this API knows."""
        function: Json = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        extra = tool.definition.annotations.get(self.kind)
        members: Json = dict(extra) if isinstance(extra, Mapping) else {}
        return {"type": "function", "function": {**function, **members.pop(_FUNCTION, {})}, **members}

    def function_tool(self, tool: Json) -> ToolDefinition:
        """Parse a function among the tools of a request."""
        definition = as_definition(tool)
        rest = {name: value for name, value in tool.items() if name not in ("type", _FUNCTION) and value is not None}
        function = tool.get(_FUNCTION)
        if not isinstance(function, Mapping):
            return definition
        if inner := {name: value for name, value in function.items() if name not in _DECLARED and value is not None}:
            rest[_FUNCTION] = inner
        return replace(definition, annotations={**definition.annotations, self.kind: rest}) if rest else definition

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """Return the messages of the API that one message becomes."""
        members, parts = split_members(message.parts, self.kind)
        match message.role:
            case "assistant":
                answer = {**self.write_answer(parts, notes), **members}
                return [answer] if _has_content(answer) or not parts else []
            case "system":
                content = self.write_system(Message("system", tuple(parts)), notes)
                return [{"role": "system", "content": content, **members}] if content or not parts else []
        results, rest = split_results(parts)
        written = [{**self.write_result(result), **self.members_of(result)} for result in results]
        media: list[Part] = []
        for result in results:
            if result.media:
                title = "Files" if result.files else "Images"
                media += [TextPart(f"{title} of the result of {result.tool_name}:"), *result.media]
        if media:
            written.append({"role": "user", "content": self.write_content(media, notes)})
        if rest or members or not results:
            content = self.write_content(rest, notes) or stand_in(rest)
            written.append({"role": "user", "content": content, **members})
        return written

    @abstractmethod
    def write_answer(self, parts: Sequence[Part], notes: Notes) -> Json:
        """Return a message of the model."""

    @abstractmethod
    def write_result(self, result: ToolResult) -> Json:
        """Return a message that carries one result, without its images and files."""

    def members_of(self, result: ToolResult) -> Json:
        """Return the members of a message with a result that only this API knows."""
        message = {"tool_call_id": result.call_id}
        return original_content(result, self.kind, lambda content: self.read_result({**message, ORIGINAL: content}))

    def has_unread(self, content: Any) -> bool:
        """Return whether the content of a result has more than text and images."""
        blocks = content if isinstance(content, list) else ()
        return any(isinstance(block, Mapping) and block.get("type") not in ("text", "image_url") for block in blocks)

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
                    blocks.append(self._image_block(part))
                case FilePart():
                    blocks.append(self.file_block(part, notes))
                case OpaquePart(data, self.kind) if self.takes_file_ids or not is_uploaded(data):
                    blocks.append(data)
                case _:
                    note_dropped(part, self.name, notes)
        if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
            return blocks[0]["text"]
        return blocks or ""

    def _image_block(self, part: ImagePart) -> Json:
        members = dict(own_members(part, self.kind))
        image = {"url": part.as_url, **{name: members.pop(name) for name in (_DETAIL,) if name in members}}
        return {"type": "image_url", "image_url": image, **members}

    def file_block(self, part: FilePart, notes: Notes) -> Json:
        """Return a block of the user's message for a file; text, where the API takes no such file."""
        return {"type": "text", "text": in_words(part, self.name, notes).text}

    def text_block(self, part: TextPart) -> Json:
        """Return a block of text, with the members that only this API knows."""
        return {"type": "text", "text": part.text, **own_members(part, self.kind)}

    # -- reading -------------------------------------------------------------------------------------------------

    def read_messages(self, messages: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
        """Yield the messages of a request."""
        for message in messages:
            if message["role"] in ("tool", "function"):
                read = self.message_members | {"name"}
                if self.has_unread(message.get("content")):
                    read -= {ORIGINAL}
                extra = members_except(message, read, self.kind)
                yield Message("tool", (replace(self.read_result(message), extra=extra),))
            else:
                members = members_part(message, self.message_members, self.kind)
                yield Message(role_of(message["role"]), (*members, *self.read_parts(message)))

    @abstractmethod
    def read_result(self, message: Mapping[str, Any]) -> ToolResult:
        """Parse a message that carries a result."""

    @abstractmethod
    def read_parts(self, message: Mapping[str, Any]) -> Iterator[Part]:
        """Yield the parts of any other message."""

    def read_call(self, call: Mapping[str, Any]) -> ToolCall:
        """Parse a call of a message."""
        function = call.get("function") or {}
        arguments, id = object_of(function.get("arguments")), str(call.get("id") or "")
        return ToolCall(str(function["name"]), arguments, id, format=self.kind, extra=self.call_extra(call))

    def call_extra(self, call: Mapping[str, Any]) -> OpaquePart | None:
        """Return the members of a call that only this API has, such as a cache mark."""
        return members_except(call, _CALL, self.kind)

    def add_call(self, call: Mapping[str, Any], builder: ResponseBuilder) -> None:
        """Report a whole call of an answer to the builder."""
        function = call.get("function") or {}
        builder.add_call(function.get("name"), function.get("arguments"), call.get("id"))


def read_image(block: Mapping[str, Any], kind: str) -> ImagePart:
    """Parse a block with the URL of an image."""
    image = block["image_url"]
    if not isinstance(image, Mapping):
        image = {"url": image}
    members = {**block, _DETAIL: image.get(_DETAIL)}
    return ImagePart(url=str(image["url"]), extra=members_except(members, _IMAGE, kind, **{_DETAIL: "auto"}))


def _has_content(message: Json) -> bool:
    """Return whether a message has more than its role, and text that is not empty."""
    return any(message[name] not in _BLANK for name in message if name != "role")

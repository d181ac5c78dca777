"""Items of the input of the Responses API: messages, calls and results, as a request contains them.

Source: https://platform.openai.com/docs/api-reference/responses/create
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolwire.messages import (
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolResult,
)
from toolwire.providers.file_parts import file_name, files_of, images_of, in_words
from toolwire.providers.message_parts import (
    Json,
    members_except,
    members_part,
    message_members,
    note_dropped,
    object_of,
    own_members,
    role_of,
    split_members,
    stand_in,
)
from toolwire.providers.request import Notes, split_results
from toolwire.providers.responses_client_calls import (
    client_call,
    client_call_item,
    client_result,
    client_result_id,
    client_result_item,
    is_client_call,
)
from toolwire.providers.responses_items import (
    KIND,
    MESSAGE,
    OutputMessage,
    annotations_part,
    call_extra,
    input_text,
    reasoning_part,
)
from toolwire.text.json_text import json_text

_CALLER = "caller"
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_RESULT = frozenset(("type", "id", "call_id", "name", "output", "status"))
_TEXT = frozenset(("type", "text", "annotations", "logprobs"))
_IMAGE = frozenset(("type", "image_url"))
_FILE = frozenset(("type", "filename", "file_data", "file_url"))

# -- writing messages --------------------------------------------------------------------------------------------


class ItemWriter:
    """Writes messages as items.

    Args:
        custom: the tools whose input is text, not JSON.
        stored: whether the provider stores its answers.
    """

    def __init__(self, api: str, notes: Notes, custom: frozenset[str] = frozenset(), *, stored: bool = True) -> None:
        self._api = api
        self._notes = notes
        self._custom = custom
        self._free: set[str] = set()  # ids of calls whose input is written as text
        self._callers: dict[str, Json] = {}  # the members that say who made a call, by the call's id
        self._client: dict[str, str] = {}  # types of items of calls that the client runs for OpenAI's own tools, by id
        self._stored = stored

    def items(self, message: Message) -> list[Json]:
        """Return the items that a message becomes."""
        if message.role == "assistant":
            return list(self._assistant(message.parts))
        results, rest = split_results(message.parts)
        items = list(map(self._result, results))
        if rest or not results:
            role = "system" if message.role == "system" else "user"
            members, rest = split_members(rest, KIND)
            content = self._content(rest) or (stand_in(rest) if role == "user" else "")
            if content or not rest:
                items.append({"role": role, "content": content, **members})
        return items

    def _content(self, parts: Sequence[Part]) -> Any:
        blocks: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text):
                    blocks.append({"type": "input_text", "text": text, **own_members(part, KIND)})
                case ImagePart():
                    blocks.append(_image(part))
                case FilePart():
                    blocks.append(self._file(part))
                case OpaquePart(data, provider) if provider == KIND:
                    blocks.append(data)
                case _:
                    note_dropped(part, self._api, self._notes)
        if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
            return blocks[0]["text"]
        return blocks or ""

    def _assistant(self, parts: Sequence[Part]) -> Iterator[Json]:
        message = OutputMessage(only_own=True)
        for at, part in enumerate(parts):
            if message.takes(part):
                continue
            yield from message.items()
            message.begin(part)
            match part:
                case ToolCall():
                    yield self._call(part)
                case ReasoningPart(provider=provider, data=data) if provider == KIND and data is not None:
                    if self._usable(data, parts[at + 1 :]):
                        yield data
                case OpaquePart(data, provider) if provider == KIND:
                    if not message_members(part, KIND):
                        yield data
                case _ if part != ReasoningPart(""):
                    note_dropped(part, self._api, self._notes)
        yield from message.items()

    def _usable(self, item: Json, after: Sequence[Part]) -> bool:
        """Return whether an item of reasoning is accepted: its output follows, and the provider has its text."""
        if not any(isinstance(part, TextPart | ToolCall | OpaquePart) for part in after):
            self._notes.dropped("reasoning", "its output does not follow")
        elif not self._stored and not item.get("encrypted_content") and not item.get("content"):
            self._notes.dropped("reasoning", "the provider did not store it, and the request does not contain it")
        else:
            return True
        return False

    def _call(self, call: ToolCall) -> Json:
        if (client_item := client_call_item(call)) is not None:
            self._client[call.id] = is_client_call(call)
            return client_item
        item: Json = {"type": "function_call", "call_id": call.id, "name": call.name}
        if call.free or call.name in self._custom:
            self._free.add(call.id)
            item["type"] = "custom_tool_call"
            item["input"] = input_text(call)
        else:
            item["arguments"] = json_text(call.arguments)
        if call.server:
            item["namespace"] = call.server
        extra = own_members(call, KIND)
        if _CALLER in extra:
            self._callers[call.id] = {_CALLER: extra[_CALLER]}
        return {**item, **extra}

    def _result(self, result: ToolResult) -> Json:
        if type := self._client.get(result.call_id):
            return client_result_item(result, type)
        output: Any = result.marked_text
        if result.media:
            text = [] if result.only_media else [{"type": "input_text", "text": output}]
            output = [*text, *map(_image, result.images), *map(self._file, result.files)]
        free = result.call_id in self._free or result.tool_name in self._custom
        kind = "custom_tool_call" if free else "function_call"
        item = {"type": f"{kind}_output", "call_id": result.call_id, "output": output}
        # The program that made the call waits for a result that names it.
        return {**item, **self._callers.get(result.call_id, {}), **own_members(result, KIND)}

    def _file(self, file: FilePart) -> Json:
        """Return a document; words in place of any other file, because this API takes neither sound nor video."""
        if file.kind != "document":
            return {"type": "input_text", "text": in_words(file, self._api, self._notes).text}
        block: Json = {"type": "input_file", **own_members(file, KIND)}
        if file.url:
            block["file_url"] = file.url
            if file.name:
                self._notes.dropped(f"document {file.name}", f"{self._api} takes no name beside an address")
        else:
            block |= {"filename": file.name or file_name(file), "file_data": file.as_url}
        return block


def _image(image: ImagePart) -> Json:
    return {"type": "input_image", "detail": "auto", "image_url": image.as_url, **own_members(image, KIND)}


def is_reference(part: Part) -> bool:
    """Return whether a part stands for an item that only the provider has: a message, reasoning, or a call."""
    return isinstance(part, OpaquePart) and part.provider == KIND and part.data.get("type") == "item_reference"


# -- reading messages --------------------------------------------------------------------------------------------


def read_items(items: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
    """Yield the messages of a list of items; consecutive items of the model are one, and so are consecutive results."""
    calls: dict[str, str] = {}  # names of calls, by id
    provider_calls: set[Any] = set()  # ids of calls of the provider's own tools
    client_calls: dict[str, ToolCall] = {}  # calls that the client runs for these, by id
    role: Role = "user"
    parts: list[Part] = []
    for item in items:
        type, call_id = item.get("type") or "message", item.get("call_id")
        answered = client_calls.get(client_result_id(item))
        if answered is not None:
            item_role: Role = "tool"
        elif type in _OUTPUTS and not (call_id in provider_calls and call_id not in calls):
            item_role = "tool"
        elif type == "message" and item.get("role") != "assistant":
            item_role = role_of(item["role"])
        else:
            item_role = "assistant"
        if parts and item_role != role:
            yield Message(role, tuple(parts))
            parts = []
        role = item_role
        if answered is not None:
            parts.append(client_result(item, answered))
        elif role == "tool":
            id = str(call_id or "")
            extra = members_except(item, _RESULT, KIND)
            if id not in calls and type != _OUTPUTS[0]:  # without the call, nothing else says of which kind it was
                extra = OpaquePart({**(extra.data if extra is not None else {}), "type": type}, KIND)
            parts += _read_result(id, calls.get(id, str(item.get("name") or "")), item.get("output"), extra)
        elif role == "assistant":
            for part in _read_output(type, item):
                if isinstance(part, ToolCall):
                    calls[part.id] = part.name
                    if is_client_call(part):
                        client_calls[part.id] = part
                elif isinstance(part, OpaquePart) and isinstance(part.data.get("call_id"), str):
                    provider_calls.add(part.data["call_id"])
                parts.append(part)
        else:
            yield Message(role, (*members_part(item, MESSAGE, KIND), *_blocks(item.get("content"))))
    if parts:
        yield Message(role, tuple(parts))


def _read_output(type: str, item: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of an item of the model."""
    id, server = str(item.get("call_id") or ""), str(item.get("namespace") or "")
    match type:
        case "message":
            yield from members_part(item, MESSAGE, KIND)
            yield from _blocks(item.get("content"))
        case "function_call":
            arguments, extra = object_of(item.get("arguments")), call_extra(item)
            yield ToolCall(str(item["name"]), arguments, id, server, format=KIND, extra=extra)
        case "custom_tool_call":
            arguments = {"input": str(item.get("input") or "")}
            extra = call_extra(item)
            yield ToolCall(str(item["name"]), arguments, id, server, format=KIND, free=True, extra=extra)
        case "reasoning":
            yield reasoning_part(item)
        case _:
            yield client_call(item) or OpaquePart(dict(item), KIND)


def _blocks(content: Any) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield TextPart(content)
        return
    for block in content or ():
        match block.get("type"):
            case "input_text" | "output_text" | "text":
                yield TextPart(str(block["text"]), members_except(block, _TEXT, KIND))
                yield from annotations_part(block)
            case "refusal":
                yield TextPart(str(block["refusal"]))
            case "input_image" if isinstance(block.get("image_url"), str):
                yield ImagePart(url=block["image_url"], extra=members_except(block, _IMAGE, KIND, detail="auto"))
            case "input_file" if (file := _read_file(block)) is not None:
                yield file
            case _:
                yield OpaquePart(dict(block), KIND)


def _read_file(block: Mapping[str, Any]) -> FilePart | None:
    """Parse a document; None for one that only this API knows, such as that of an uploaded file."""
    extra = members_except(block, _FILE, KIND)
    name, data, url = (str(block.get(key) or "") for key in ("filename", "file_data", "file_url"))
    if block.get("file_id") is not None or (url and (data or name)):
        return None
    if url:
        return FilePart(url=url, extra=extra)
    return FilePart(url=data, name=name, extra=extra) if data.startswith("data:") else None


def _read_result(id: str, name: str, output: Any, extra: OpaquePart | None) -> Iterator[Part]:
    """Yield a result, and after it the parts that are neither text nor images."""
    if output is None or isinstance(output, str):
        yield ToolResult(id, name, output or "", extra=extra)
        return
    parts = list(_blocks(output))
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    images, files = images_of(parts), files_of(parts)
    unplaced = [part for part in parts if isinstance(part, OpaquePart)]
    text = "\n".join(texts) if texts else "The file follows." if unplaced else None if images or files else ""
    yield ToolResult(id, name, text, images=images, extra=extra, files=files)
    yield from unplaced

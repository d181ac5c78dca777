"""Items and bodies of the Responses API, as whole answers and streams share them.

CitedSource: https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolwire.messages import CitationPart, OpaquePart, ParsedResponse, Part, ReasoningPart, TextPart, ToolCall, Usage
from toolwire.providers.answer_shapes import AnswerShape
from toolwire.providers.citations import own_item, read_annotation, write_annotations
from toolwire.providers.finish_reasons import write_reason
from toolwire.providers.message_parts import Json, members_except, message_members, own_members
from toolwire.providers.reasoning_seals import seal_of, unsealed
from toolwire.providers.responses_client_calls import client_call_item
from toolwire.providers.stream_codec import Head, StreamEnd
from toolwire.text.json_text import JsonError, decode, json_text

KIND = "openai_responses"
ANSWER = AnswerShape(
    "status",
    """
: id object created_at completed_at model status incomplete_details error output output_text usage background billing \
instructions max_output_tokens max_tool_calls metadata parallel_tool_calls previous_response_id prompt \
prompt_cache_key prompt_cache_retention prompt_cache_options reasoning safety_identifier service_tier store \
temperature text tool_choice tools top_logprobs top_p truncation user frequency_penalty presence_penalty \
system_fingerprint content_filters tool_usage moderation
output[message].content[output_text]: type text annotations
output[message].content[refusal]: type refusal
""",
)

CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Types of items that are calls, and the member with the arguments."""
MESSAGE = frozenset(("type", "id", "role", "content", "status"))
"""The members of a message that are read."""
_CALL = frozenset(("type", "id", "call_id", "name", "arguments", "input", "status"))
_ANNOTATIONS = "annotations"
SEPARATOR = "\n\n"
"""Text between the summaries of one item of reasoning."""


def reasoning_part(item: Mapping[str, Any]) -> ReasoningPart:
    """Return the reasoning that an item stands for; another API's, if `reasoning_item` made the item of that."""
    text = summary_text(item)
    if (part := unsealed(text, item.get("encrypted_content"))) is not None:
        return part
    return ReasoningPart(text, "", KIND, dict(item))


def summary_text(item: Mapping[str, Any]) -> str:
    """Return the text of an item of reasoning."""
    blocks = item.get("summary") or item.get("content") or ()
    return SEPARATOR.join(str(block.get("text") or "") for block in blocks)


def reasoning_item(part: ReasoningPart, id: str) -> Json:
    """Return the item that clients send back: unchanged if it is this API's; otherwise with a seal."""
    if part.provider == KIND and part.data is not None:
        return {"id": id, "summary": [], **part.data}
    return sealed_item(part, part.text, id)


def sealed_item(part: ReasoningPart, text: str, id: str) -> Json:
    """Return an item whose encrypted content contains what another API needs back."""
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"id": id, "type": "reasoning", "summary": summary, "encrypted_content": seal_of(part)}


class OutputMessage:
    """A message of the model that is being written: adjacent text, and what belongs to it.

    Args:
        only_own: without the citations of other APIs.
    """

    def __init__(self, *, only_own: bool = False) -> None:
        self._only_own = only_own
        self._start = self._length = 0  # of the message, and of all text
        self._texts: list[str] = []
        self._annotations: list[Any] = []
        self._members: Json = {}

    def takes(self, part: Part | None) -> bool:
        """Add a part; return False for one that is not part of the message."""
        if isinstance(part, TextPart):
            self._texts.append(part.text)
            self._length += len(part.text)
            return True
        if isinstance(part, CitationPart):
            if self._only_own and own_item(part, KIND) is None:
                return False
            written = write_annotations(part, self._start, KIND)
            self._annotations += written
            return bool(written) or not self._only_own
        annotations = annotations_in(part)
        self._annotations += annotations
        return bool(annotations)

    def begin(self, part: Part | None) -> None:
        """Begin the next message, whose members the part may stand for."""
        self._texts, self._annotations = [], []
        self._start = self._length
        self._members = {} if part is None else message_members(part, KIND)

    def items(self) -> Iterator[Json]:
        """Yield the message as an item of a request, unless it has no text."""
        if text := "".join(self._texts):
            content: Any = text
            if self._annotations:
                content = [{"type": "output_text", "text": text, "annotations": self._annotations}]
            yield {"role": "assistant", "content": content, **self._members}

    def output_items(self, id: str) -> Iterator[Json]:
        """Yield the message as an item of an answer, unless it has no text."""
        if text := "".join(self._texts):
            yield {**message_item(id, text, annotations=self._annotations), **self._members}


def annotations_of(block: Mapping[str, Any], start: int) -> Iterator[CitationPart]:
    """Yield the citations in a block of text that begins at this place in the answer."""
    for annotation in block.get(_ANNOTATIONS) or ():
        if isinstance(annotation, Mapping):
            named = {"title": annotation["filename"]} if "filename" in annotation else {}
            yield read_annotation({**annotation, **named}, start, KIND)


def annotations_part(block: Mapping[str, Any]) -> Iterator[OpaquePart]:
    """Yield a part with the annotations of a block of text, which follows the text."""
    if annotations := block.get(_ANNOTATIONS):
        yield OpaquePart({_ANNOTATIONS: list(annotations)}, KIND)


def annotations_in(part: Part | None) -> list[Any]:
    """Return the annotations that a part of `annotations_part` has."""
    if isinstance(part, OpaquePart) and part.provider == KIND and part.data.keys() == {_ANNOTATIONS}:
        return list(part.data[_ANNOTATIONS])
    return []


def call_extra(item: Mapping[str, Any]) -> OpaquePart | None:
    """Return the members of a call that only this API has, such as the program that made it."""
    return members_except(item, _CALL, KIND)


def output_items(response: ParsedResponse, head: Head) -> list[Json]:
    """Return the items of a whole response, without those of other APIs."""
    items: list[Json] = []
    message = OutputMessage()
    for part in (*response.parts, None):
        if message.takes(part):
            continue
        items += message.output_items(item_id("msg", head, len(items)))
        message.begin(part)
        match part:
            case ToolCall() if (client_item := client_call_item(part)) is not None:
                items.append({"id": item_id("cc", head, len(items)), **client_item})
            case ToolCall(name, arguments, id):
                text = input_text(part) if part.free else json_text(arguments)
                item = call_item(item_id("fc", head, len(items)), name, id, text, free=part.free)
                items.append({**item, **own_members(part, KIND)})
            case ReasoningPart() if part != ReasoningPart(""):
                items.append(reasoning_item(part, item_id("rs", head, len(items))))
            case OpaquePart(data, provider) if provider == KIND and not message_members(part, KIND):
                items.append(dict(data))
            case _:
                pass
    return items


def item_id(prefix: str, head: Head, place: int) -> str:
    """Return the id of an item, which depends on its position in the answer."""
    return f"{prefix}_{head.id}_{place}"


def message_item(id: str, text: str, status: str = "completed", *, annotations: Sequence[Any] = ()) -> Json:
    """Return an item with content."""
    content = [content_block(text, annotations)] if status == "completed" else []
    return {"id": id, "type": "message", "status": status, "role": "assistant", "content": content}


def content_block(text: str, annotations: Sequence[Any] = ()) -> Json:
    """Return a block of content."""
    return {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}


def call_item(id: str, name: str, call_id: str, text: str, status: str = "completed", *, free: bool = False) -> Json:
    """Return an item with a call; `free`: its input is text, not JSON."""
    type = "custom_tool_call" if free else "function_call"
    return {"id": id, "type": type, "status": status, CALLS[type]: text, "call_id": call_id, "name": name}


def same_arguments(streamed: str, final: str, *, free: bool) -> bool:
    """Return whether two texts are the same arguments; `free`: they are text, not JSON."""
    if streamed == final or not final:
        return True
    if free:
        return False
    try:
        return bool(decode(streamed) == decode(final))
    except JsonError:
        return False


def input_text(call: ToolCall) -> str:
    """Return the input of a call that is text."""
    return str(call.arguments.get("input", ""))


def response_body(head: Head, output: list[Json], end: StreamEnd) -> Json:
    """Return a response that has ended."""
    word = write_reason(KIND, end.reason)
    status = word if word in ("completed", "failed") else "incomplete"
    body = open_body(head, status, output)
    usage = end.usage or Usage()
    body["usage"] = {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if status == "incomplete":
        body["incomplete_details"] = {"reason": word}
    elif status == "failed":
        body["error"] = {"code": "server_error", "message": end.problem or "the response failed"}
    return body


def open_body(head: Head, status: str, output: list[Json]) -> Json:
    """Return a response without its end."""
    return {
        "id": f"resp_{head.id}",
        "object": "response",
        "created_at": head.created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": head.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": None,
    }

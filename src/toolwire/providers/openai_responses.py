"""OpenAI Responses: input and output are lists of items.

Source: https://platform.openai.com/docs/api-reference/responses

Calls and results are items of their own, paired by `call_id`. Ids of items are sent back only in items that are sent
back unchanged: reasoning, which must precede the output that it led to, and what the provider did itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolwire.messages import (
    Message,
    ParsedResponse,
    TextPart,
)
from toolwire.providers import reasoning_effort, server_compaction
from toolwire.providers.base import ProviderApi
from toolwire.providers.chat_completions import custom_tool
from toolwire.providers.failure_kinds import INTERNAL, FailureKind
from toolwire.providers.framing import sse
from toolwire.providers.identifiers import WORD_64, Alphabet
from toolwire.providers.message_parts import Json, read_tools, system_text
from toolwire.providers.offered_tool import OfferedTool
from toolwire.providers.output_support import OPENAI_RESPONSES
from toolwire.providers.request import ChatRequest, Mode, Notes, ToolChoice, pair_results
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.responses_input import ItemWriter, is_reference, read_items
from toolwire.providers.responses_items import ANSWER, KIND, open_body, output_items, response_body
from toolwire.providers.responses_stream import OutputReader, ResponsesStreamWriter
from toolwire.providers.schema_dialects import JSON_SCHEMA, STRICT
from toolwire.providers.setting_members import SettingMembers
from toolwire.providers.stream_codec import Head, StreamEnd
from toolwire.tools import ToolDefinition, as_definition

_FUNCTION = frozenset(("type", "name", "description", "parameters", "strict"))
_STRICT = "strict"
_FAILED = "response.failed"
_ELSEWHERE = ("previous_response_id", "conversation")
"""Members of requests whose conversation began before, so that the provider has its beginning."""


class OpenAIResponses(ProviderApi):
    """The API."""

    kind = KIND
    checks_signatures = True
    names = WORD_64
    ids = Alphabet(r"\x21-\x7e", 64)
    dialect = JSON_SCHEMA
    strict_dialect = STRICT
    takes_text_input = True
    _outputs = OPENAI_RESPONSES
    _settings = SettingMembers(
        {
            "max_output_tokens": "max_tokens",
            "temperature": "temperature",
            "top_p": "top_p",
            "service_tier": "service_tier",
            "metadata": "metadata",
            "user": "end_user",
        },
        reasoning_effort.RESPONSES,
        compaction=server_compaction.RESPONSES,
    )
    _answer = ANSWER
    reader, writer = OutputReader, ResponsesStreamWriter
    members = frozenset(("input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "model", "stream"))

    # -- requests ------------------------------------------------------------------------------------------------

    def pair(self, request: ChatRequest, notes: Notes) -> tuple[Message, ...]:
        """Return the messages with results paired; the provider may have the calls of the first results."""
        start = 0
        if request.provider == self.kind and any(request.extra.get(key) for key in _ELSEWHERE):
            while start < len(request.messages) and request.messages[start].role != "assistant":
                start += 1
        return (
            *request.messages[:start],
            *pair_results(request.messages[start:], notes, is_reference=is_reference),
        )

    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body."""
        body: Json = {"model": request.model} if request.model else {}
        first = 0
        while first < len(request.messages) and request.messages[first].role == "system":
            first += 1
        if first == len(request.messages) and not any(request.extra.get(key) for key in (*_ELSEWHERE, "prompt")):
            first = 0  # a server refuses instructions without any input
        if first:
            instructions = [system_text(message, self.name, notes) for message in request.messages[:first]]
            body["instructions"] = "\n\n".join(instructions)
        custom = frozenset(tool.name for tool in tools if tool.text_input is not None)
        writer = ItemWriter(self.name, notes, custom, stored=request.extra.get("store") is not False)
        body["input"] = [item for message in request.messages[first:] for item in writer.items(message)]
        if listed := [*map(_tool, tools), *map(dict, request.provider_tools)]:
            body["tools"] = listed
            if request.tool_choice != ToolChoice():
                body["tool_choice"] = _write_choice(request.tool_choice, custom)
            if request.parallel is not None:
                body["parallel_tool_calls"] = request.parallel
        if request.stream:
            body["stream"] = True
        return self._with_settings(body, request, notes)

    def write_message(self, message: Message, notes: Notes) -> list[Json]:
        """Return the items that one message becomes."""
        return ItemWriter(self.name, notes).items(message)

    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body."""
        choice = _read_choice(body.get("tool_choice"))
        items = body.get("input") or ()
        instructions = body.get("instructions")
        messages = (
            [Message("system", (TextPart(instructions),))] if isinstance(instructions, str) and instructions else []
        )
        messages += [Message("user", (TextPart(items),))] if isinstance(items, str) else read_items(items)
        request = self._request_of(
            body,
            messages,
            **read_tools(body.get("tools"), _read_tool),
            tool_choice=choice or ToolChoice(),
            parallel=body.get("parallel_tool_calls"),
        )
        if choice is None:  # of a tool that the provider runs
            request = replace(request, extra={**request.extra, "tool_choice": body["tool_choice"]})
        return request

    # -- answers -------------------------------------------------------------------------------------------------

    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the content of a response to the builder."""
        OutputReader(builder).response(response)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return the body of a response."""
        problem = next((problem.message for problem in response.problems), "")
        return response_body(
            head, output_items(response, head), StreamEnd(response.finish_reason, response.usage, problem)
        )

    def write_error(self, message: str, kind: FailureKind = INTERNAL, head: Head | None = None) -> bytes:
        """Return the events that report a failure in the middle of a stream.

        OpenAI sends both. Some clients know only the second one, which needs the head of the answer.
        """
        code = kind.openai_code or kind.openai_type
        error = sse({"type": "error", "code": code, "message": message, "param": None, "sequence_number": 0}, "error")
        if head is None:
            return error
        response = {**open_body(head, "failed", []), "error": {"code": code, "message": message}}
        return error + sse({"type": _FAILED, "response": response, "sequence_number": 0}, _FAILED)


# -- tools -------------------------------------------------------------------------------------------------------


def _tool(tool: OfferedTool) -> Json:
    if (custom := tool.text_input) is not None:
        written: Json = {"type": "custom", "name": tool.name, "description": tool.description, **custom}
        if isinstance(format := written.get("format"), Mapping) and isinstance(format.get("grammar"), Mapping):
            written["format"] = {"type": "grammar", **format["grammar"]}  # Chat Completions nests it
        return written
    rest = tool.definition.annotations.get(KIND)
    # The API's default is true: only a client of this API that left the member out means that.
    is_default = tool.strict is None and _STRICT in tool.definition.annotations
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        **({} if is_default else {"strict": tool.strict is True}),
        **(rest if isinstance(rest, Mapping) else {}),
    }


def _read_tool(tool: Json) -> ToolDefinition | None:
    match tool.get("type"):
        case "custom":
            return custom_tool(tool)
        case "function":
            definition = as_definition(tool)
            if not isinstance(tool.get(_STRICT), bool):
                definition = replace(definition, annotations={**definition.annotations, _STRICT: None})
            if rest := {key: value for key, value in tool.items() if key not in _FUNCTION}:
                return replace(definition, annotations={**definition.annotations, KIND: rest})
            return definition
    return None


def _write_choice(choice: ToolChoice, custom: frozenset[str]) -> Any:
    listed = [{"type": "custom" if name in custom else "function", "name": name} for name in choice.names]
    if choice.name:
        return listed[0]
    if listed and choice.mode != "none":
        return {"type": "allowed_tools", "mode": choice.mode, "tools": listed}
    return choice.mode


def _read_choice(choice: Any) -> ToolChoice | None:
    """Return the choice; None if it names a tool that the provider runs."""
    if not isinstance(choice, Mapping):
        return ToolChoice.of(choice)
    mode: Mode = "required"
    named: Iterable[Any] = (choice,)
    if choice.get("type") == "allowed_tools":
        mode = "required" if choice.get("mode") == "required" else "auto"
        named = choice.get("tools") or ()
    names = [tool.get("name") for tool in named if tool.get("type") in ("function", "custom", None)]
    if len(names) < len(list(named)) or not all(isinstance(name, str) for name in names):
        return None
    return ToolChoice(mode, tuple(map(str, names)))


APIS = (OpenAIResponses(),)

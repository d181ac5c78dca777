"""Extraction of a value: a model is asked for an output of a type, and again while its answers are not valid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from toolwire._surface import check_number
from toolwire.errors import ConfigurationError, OutputError, ProviderError
from toolwire.events import response_parts
from toolwire.messages import FinishReason, Message, ParsedResponse, TextPart, ToolResult
from toolwire.providers.output_request import FINAL_ANSWER, OutputMode, OutputRequest, output_request
from toolwire.providers.request import AskOptions, ChatRequest, Notes, ToolChoice
from toolwire.schema.output_type import OutputType

if TYPE_CHECKING:
    from toolwire.client.client import Client

_SET_HERE = ("output", "tool_choice")
_NOT_WHOLE = {
    FinishReason.LENGTH: "the answer was cut off at the model's limit",
    FinishReason.CONTENT_FILTER: "the provider's filter stopped the answer",
}


class ExtractOptions(AskOptions, total=False):
    """Options of an extraction, besides those of its requests.

    Attributes:
        mode: how the model is asked: "native", "tool", "text", or "auto" for the best that the API can do.
        retries: maximum number of invalid answers that are explained to the model before it fails; by default 2.
        notes: collects what could not be translated.
    """

    mode: OutputMode
    retries: int
    notes: Notes | None


@dataclass(frozen=True, slots=True)
class _Extraction:
    type: OutputType[Any]
    way: OutputRequest

    def request(self, request: ChatRequest) -> ChatRequest:
        """Return the request that asks for the output of a conversation."""
        tool = self.way.tool
        messages = list(request.messages)
        if self.way.instruction:
            first = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
            messages.insert(first, Message("system", (TextPart(self.way.instruction),)))
        if self.way.note:
            messages.append(Message("user", (TextPart(self.way.note),)))
        return replace(
            request,
            messages=tuple(messages),
            tools=() if tool is None else (tool,),
            tool_choice=ToolChoice() if tool is None else ToolChoice("required", (FINAL_ANSWER,)),
            output=self.way.schema,
        )

    def read(self, response: ParsedResponse) -> Any:
        """Return the output of an answer.

        Raises:
            OutputError: there is none, or it is not valid.
        """
        calls = [call for call in response.all_calls if call.name == FINAL_ANSWER]
        if calls:
            return self.type.read(calls[0].arguments)
        malformed = [problem.message for problem in response.problems]
        if malformed and not response.content.strip():
            raise OutputError(malformed)
        return self.type.read_text(response.content)

    def correction(self, response: ParsedResponse, error: OutputError) -> Iterator[Message]:
        """Yield an invalid answer, and the messages that explain to the model what is wrong with it."""
        if parts := response_parts(response):
            yield Message("assistant", parts)
        if response.all_calls:
            results = [ToolResult(call.id, call.name, error=self.way.advice(error)) for call in response.all_calls]
            yield Message("tool", tuple(results))
        else:
            yield Message("user", (TextPart(self.way.advice(error)),))


async def extract(client: Client, type: OutputType[Any], request: ChatRequest, options: ExtractOptions) -> Any:
    """Return the output that a model gives for a conversation; see `Client.extract`.

    Raises:
        OutputError: no answer is valid.
        ProviderError: the server cannot be reached or refuses.
        ConfigurationError: an option is one that an extraction sets itself.
    """
    retries, mode, notes = options.get("retries", 2), options.get("mode", "auto"), options.get("notes")
    check_number("retries", retries, "a number of answers", whole=True)
    request_options: Any = {name: value for name, value in options.items() if name not in ("retries", "mode", "notes")}
    if fixed := [name for name in _SET_HERE if request_options.get(name) is not None]:
        raise ConfigurationError(f"extract sets {fixed[0]} itself")
    way = output_request(type, mode, api=client.api, format="", has_tools=False)
    extraction = _Extraction(type, way)
    request = extraction.request(request)
    answers = 0
    while True:
        response = await client.ask(request, notes=notes, **request_options)
        answers += 1
        failure = next((problem for problem in response.problems if problem.kind == "provider_error"), None)
        if failure is not None:
            raise ProviderError(failure.message)
        if (why := _NOT_WHOLE.get(response.finish_reason)) is not None:
            raise OutputError([why], response.content)
        try:
            return extraction.read(response)
        except OutputError as error:
            if answers > retries:
                message = f"no valid output in {answers} answers: {error}"
                raise OutputError(error.issues, response.content, message) from error
            request = replace(request, messages=(*request.messages, *extraction.correction(response, error)))

"""Structured output of a run: the way in which the model is asked for it, and the value that its answer becomes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolwire.agent.recovery import Fault
from toolwire.agent.run_events import PartialOutput, RunEnded
from toolwire.errors import DefinitionError, OutputError
from toolwire.events import ArgumentsDelta, CallStart, ContentDelta, Event
from toolwire.execution.outcomes import Issue, Outcome
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import FinishReason, ParsedResponse, ToolCall, ToolResult
from toolwire.providers.api_registry import find_api
from toolwire.providers.output_request import FINAL_ANSWER, OutputMode, OutputRequest, output_request
from toolwire.schema.output_type import OutputType
from toolwire.text.identity_cache import IdentityCache
from toolwire.text.json_text import json_text
from toolwire.text.partial_json import PartialJson
from toolwire.tools import ToolDefinition

ACCEPTED = "The final answer is accepted."
"""The result of a call that gives a valid output."""
TOO_EARLY = "No tool call has succeeded yet. Call a tool first, and give your final answer after its result."
"""The error of a call that gives the output of a run before any tool has given a result."""
INVALID_OUTPUT = "Your final answer is not valid:"
"""The beginning of the error of a call whose output is not valid."""


@dataclass(frozen=True, slots=True)
class AcceptedOutput:
    """A valid output.

    Attributes:
        value: the output itself.
        text: its JSON text, or the text of the answer that contains it.
    """

    value: Any
    text: str


class RunOutput:
    """The structured output of a run.

    Args:
        type: the type of the output.
        mode: the configured way to ask for it.
        has_tools: whether the agent has tools of its own.
    """

    def __init__(self, type: OutputType[Any], mode: OutputMode, *, has_tools: bool) -> None:
        self._type = type
        self._mode = mode
        self._has_tools = has_tools
        self._requests: dict[tuple[str, str], OutputRequest] = {}
        self._offered = IdentityCache(8)

    def request(self, api: str, format: str) -> OutputRequest:
        """Return the way to ask a model for the output.

        Args:
            api: name of its API, or "".
            format: the wire format that it writes; "" where calls have fields of their own.

        Raises:
            ConfigurationError: the configured way is not possible.
        """
        key = api, format
        if key not in self._requests:
            self._requests[key] = output_request(
                self._type, self._mode, api=find_api(api), format=format, has_tools=self._has_tools
            )
        return self._requests[key]

    def offer(self, tools: Sequence[ToolDefinition], request: OutputRequest) -> tuple[ToolDefinition, ...]:
        """Return the tools of a turn, with the one for the output; equal for the same `tools`."""
        if request.tool is None:
            return tuple(tools)
        added = request.tool
        return self._offered.get(lambda: (*tools, added), (tools,))

    def outcome(self, call: ToolCall, refusal: str = "") -> Outcome | None:
        """Return the outcome of a call that gives the output; None for a call of another tool.

        Args:
            call: the call.
            refusal: why the output cannot be accepted; "" if it can.
        """
        if call.name != FINAL_ANSWER:
            return None
        if refusal:
            return Outcome(call, ToolResult(call.id, call.name, error=refusal), Issue("denied", refusal))
        try:
            self._type.read(call.arguments)
        except OutputError as error:
            message = f"{INVALID_OUTPUT} {error}."
            result = ToolResult(call.id, call.name, error=message)
            return Outcome(call, result, Issue("invalid_arguments", message))
        return Outcome(call, ToolResult(call.id, call.name, ACCEPTED))

    def judge(
        self, response: ParsedResponse, text: str, request: OutputRequest
    ) -> tuple[AcceptedOutput | None, list[Fault]]:
        """Return the output that an answer without calls is, or the fault that it is not one.

        Args:
            response: the answer.
            text: its prose.
            request: the way in which it was asked for.
        """
        is_complete = response.finish_reason not in (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)
        if not is_complete or response.all_calls or response.incomplete:
            return None, []
        try:
            return AcceptedOutput(self._type.read_text(text), text), []
        except OutputError as error:
            tool = "" if request.tool is None else request.tool.name
            return None, [Fault("invalid_output", tool, request.advice(error))]

    def of_outcomes(self, outcomes: Iterable[Outcome]) -> AcceptedOutput | None:
        """Return the output that one of these calls gives; None if there is no valid one."""
        calls = (outcome.call for outcome in outcomes if outcome.call.name == FINAL_ANSWER and outcome.result.success)
        return next(map(self._of_call, calls), None)

    def of_last(self, response: ParsedResponse, text: str) -> AcceptedOutput | None:
        """Return the output of an answer whose calls do not run; None if there is no valid one.

        Args:
            response: the answer.
            text: its prose.
        """
        calls = [call for call in response.all_calls if call.name == FINAL_ANSWER]
        try:
            return self._of_call(calls[0]) if calls else AcceptedOutput(self._type.read_text(text), text)
        except OutputError:
            return None

    def _of_call(self, call: ToolCall) -> AcceptedOutput:
        return AcceptedOutput(self._type.read(call.arguments), json_text(self._type.unwrap(call.arguments)))

    def reader(self) -> PartialOutputs:
        """Return a reader of the parts of an output, for one answer."""
        return PartialOutputs(self._type)


class PartialOutputs:
    """Reads an output while the model writes it."""

    def __init__(self, type: OutputType[Any]) -> None:
        self._type = type
        self._content = PartialJson()
        self._calls: dict[int, PartialJson] = {}

    def feed(self, event: Event) -> PartialOutput | None:
        """Return the output so far if this event of the answer changes it."""
        match event:
            case ContentDelta(text):
                reader = self._content
            case CallStart(index=index, name=name) if name == FINAL_ANSWER:
                self._calls[index] = PartialJson()
                return None
            case ArgumentsDelta(index=index, text=text) if index in self._calls:
                reader = self._calls[index]
            case _:
                return None
        if not reader.feed(text):
            return None
        value = self._type.unwrap(reader.value)
        return None if value is None else PartialOutput(value)


def check_no_tool(registry: ToolRegistry) -> None:
    """Raise if a tool has the name of the one for the output.

    Raises:
        DefinitionError: there is such a tool.
    """
    if FINAL_ANSWER in registry:
        raise DefinitionError("an agent with an output type has a tool of this name already", tool=FINAL_ANSWER)


def with_output(end: RunEnded, type: OutputType[Any] | None) -> RunEnded:
    """Return the recorded end of a run with the output that its answer contains; records have the text alone.

    Args:
        end: the end without output.
        type: the agent's output type; None for text. If it has changed since, and the text is not of that type any
            more, there is no output.
    """
    if type is None:
        return replace(end, output=end.answer) if end.good else end
    if end.reason != "answered":
        return end
    try:
        return replace(end, output=type.read_text(end.answer))
    except OutputError:
        return end

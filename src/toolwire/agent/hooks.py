"""What a turn passes through, in order: the system prompt, the answer, each call, each result.

Each chain is a tuple of functions of one shape, and what is built in are such functions too, so that a program puts its
own before or behind them, or leaves them out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from toolwire.messages import ParsedResponse, ToolCall, ToolResult
from toolwire.text.identity_cache import Memo
from toolwire.tools import ToolDefinition
from toolwire.wire.prompts import prompt, render_definitions

PLACEHOLDER = "{{tools}}"
PREFIX = "You can call tools. They are:"
NO_TOOLS = "There are no tools."


@dataclass(frozen=True, slots=True)
class TurnInfo:
    """What a step may know.

    Attributes:
        round: how often the model was asked, this time included.
        tools: what it may call in this turn.
        model: its name.
        api: the API that it is asked through, or "".
        format: the wire format that it is asked to write; "" where calls have fields of their own.
        last: it is asked for an answer without calls, since a budget is used up.
    """

    round: int
    tools: tuple[ToolDefinition, ...]
    model: str = ""
    api: str = ""
    format: str = ""
    last: bool = False


class PromptHook(Protocol):
    """Changes the system prompt."""

    def __call__(self, prompt: str, turn: TurnInfo, /) -> str:
        """The prompt as it goes on."""
        ...


class ResponseHook(Protocol):
    """Changes an answer before its calls are looked at."""

    def __call__(self, response: ParsedResponse, turn: TurnInfo, /) -> ParsedResponse:
        """The answer as it goes on."""
        ...


class CallHook(Protocol):
    """Changes a call before it goes to the executor, or answers it."""

    def __call__(self, call: ToolCall, turn: TurnInfo, /) -> ToolCall | ToolResult:
        """The call as it goes on; or its result, and the call does not run."""
        ...


class ResultHook(Protocol):
    """Changes a result before the model is told."""

    def __call__(self, call: ToolCall, result: ToolResult, turn: TurnInfo, /) -> ToolResult:
        """The result as it goes on."""
        ...


@dataclass(frozen=True, slots=True)
class ManifestInjector:
    """Writes the tools into the system prompt of a model that reads them there.

    `{{tools}}` is replaced. A prompt without it gets them behind its end, or not at all with `inject="placeholder"`. A
    prompt that is nothing but the placeholder gets a sentence in front. Models that are told of tools in a field of
    their API get their names in place of the placeholder, and nothing else.
    """

    inject: Literal["append", "placeholder"] = "append"
    _memo: Memo = field(default_factory=lambda: Memo(64), repr=False, compare=False)

    def __call__(self, text: str, turn: TurnInfo, /) -> str:
        """The prompt with the tools in it."""
        return self._memo.get(lambda: self._written(text, turn), turn.tools, text, turn.format)

    def _written(self, text: str, turn: TurnInfo) -> str:
        if PLACEHOLDER not in text:
            wanted = turn.tools and turn.format and self.inject == "append"
            return prompt(turn.tools, format=turn.format, system=text) if wanted else text
        if not turn.tools:
            return text.replace(PLACEHOLDER, NO_TOOLS)
        if not turn.format:
            return text.replace(PLACEHOLDER, ", ".join(tool.name for tool in turn.tools))
        if text.strip() == PLACEHOLDER:
            return f"{PREFIX}\n\n{_manifest(turn)}"
        before, _, after = text.partition(PLACEHOLDER)
        gap = "\n" if before.strip() and not before.endswith("\n") else ""
        return before + gap + _manifest(turn) + after.replace(PLACEHOLDER, "")


def _manifest(turn: TurnInfo) -> str:
    whole = prompt(turn.tools, format=turn.format)
    return whole if whole else render_definitions(turn.tools, format=turn.format)


@dataclass(frozen=True, slots=True)
class Hooks:
    """The steps of an agent, each chain in order."""

    prompt: tuple[PromptHook, ...] = (ManifestInjector(),)
    response: tuple[ResponseHook, ...] = ()
    invocation: tuple[CallHook, ...] = ()
    result: tuple[ResultHook, ...] = ()

    def change_prompt(self, text: str, turn: TurnInfo) -> str:
        """The system prompt, through all of its steps."""
        for step in self.prompt:
            text = step(text, turn)
        return text

    def change_response(self, response: ParsedResponse, turn: TurnInfo) -> ParsedResponse:
        """An answer, through all of its steps."""
        for step in self.response:
            response = step(response, turn)
        return response

    def change_call(self, call: ToolCall, turn: TurnInfo) -> ToolCall | ToolResult:
        """A call, through its steps until one answers it."""
        for step in self.invocation:
            made = step(call, turn)
            if isinstance(made, ToolResult):
                return made
            call = made
        return call

    def change_result(self, call: ToolCall, result: ToolResult, turn: TurnInfo) -> ToolResult:
        """A result, through all of its steps."""
        for step in self.result:
            result = step(call, result, turn)
        return result

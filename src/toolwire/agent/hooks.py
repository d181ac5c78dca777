"""Hooks that change what passes through a turn: system prompt, conversation, the answer, each call, each result.

The hooks of one kind are a tuple of functions of one shape, applied in order. Built-in behaviour consists of such
functions too, so a program can put its own before or behind it, or leave it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from toolwire._surface import check_items, check_not_async, wrong_type
from toolwire.messages import Message, ParsedResponse, ToolCall, ToolResult
from toolwire.text.identity_cache import IdentityCache
from toolwire.text.suggest import suggests_keywords
from toolwire.tools import ToolDefinition
from toolwire.wire.prompt_styles import DEFAULT_STYLE, PromptStyle
from toolwire.wire.prompts import prompt, render_definitions

_T = TypeVar("_T")

PLACEHOLDER = "{{tools}}"
PREFIX = "You can call tools. They are:"
NO_TOOLS = "There are no tools."


@dataclass(frozen=True, slots=True)
class TurnInfo:
    """The turn in which a hook is called.

    Attributes:
        round: number of the round, from 1.
        tools: the tools that the model can see in this turn.
        model: name of the model.
        api: name of the API through which it is asked, or "".
        format: the wire format in which it is asked to write; "" where calls have fields of their own.
        last: whether the model is asked for an answer without calls, since a budget is used up.
        output: how the model is asked for a structured output: "native", "tool" or "text"; "" if it is not.
        must_call: whether the answer must call a tool; see `AgentConfig.require_tool_call`.
        deps: the dependencies of the run; None if it has none.
    """

    round: int
    tools: tuple[ToolDefinition, ...]
    model: str = ""
    api: str = ""
    format: str = ""
    last: bool = False
    output: Literal["", "native", "tool", "text"] = ""
    must_call: bool = False
    deps: Any = field(default=None, repr=False, compare=False)


class PromptHook(Protocol):
    """Changes the system prompt."""

    def __call__(self, prompt: str, turn: TurnInfo, /) -> str:
        """Return the prompt for the next hook."""
        ...


class MessagesHook(Protocol):
    """Changes the conversation in a prompt. What the run remembers, and what is recorded of it, stays as it is."""

    def __call__(self, messages: Sequence[Message], turn: TurnInfo, /) -> Sequence[Message]:
        """Return the messages for the next hook, without the system prompt; the results of each call must stay."""
        ...


class ResponseHook(Protocol):
    """Changes an answer before its calls are checked."""

    def __call__(self, response: ParsedResponse, turn: TurnInfo, /) -> ParsedResponse:
        """Return the answer for the next hook."""
        ...


class CallHook(Protocol):
    """Changes a call before the executor gets it, or answers it in the executor's place."""

    def __call__(self, call: ToolCall, turn: TurnInfo, /) -> ToolCall | ToolResult:
        """Return the call for the next hook; or its result, in which case the call does not run."""
        ...


class ResultHook(Protocol):
    """Changes a result before the model reads it."""

    def __call__(self, call: ToolCall, result: ToolResult, turn: TurnInfo, /) -> ToolResult:
        """Return the result for the next hook."""
        ...


@dataclass(frozen=True, slots=True)
class ManifestInjector:
    """Writes the tools into the system prompt of a model that reads them there.

    The tools replace `{{tools}}`. A prompt without this placeholder gets them at its end, or not at all with
    `inject="placeholder"`. A prompt that consists of the placeholder alone gets a sentence before them. For a model
    that reads tools in a field of its API, their names replace the placeholder, and nothing is added.

    The sentences around the tools are those of `style`: a name from `toolwire.wire.PROMPT_STYLES`, or your own.
    """

    inject: Literal["append", "placeholder"] = "append"
    style: str | PromptStyle = DEFAULT_STYLE
    _memo: IdentityCache = field(default_factory=lambda: IdentityCache(64), repr=False, compare=False)

    def __call__(self, text: str, turn: TurnInfo, /) -> str:
        """Return the prompt with the tools in it."""
        return self._memo.get(lambda: self._inject(text, turn), turn.tools, text, turn.format)

    def _inject(self, text: str, turn: TurnInfo) -> str:
        if PLACEHOLDER not in text:
            append = turn.tools and turn.format and self.inject == "append"
            return self._written(turn, text) if append else text
        if not turn.tools:
            return text.replace(PLACEHOLDER, NO_TOOLS)
        if not turn.format:
            return text.replace(PLACEHOLDER, ", ".join(tool.name for tool in turn.tools))
        if text.strip() == PLACEHOLDER:
            return f"{PREFIX}\n\n{self._manifest(turn)}"
        before, _, after = text.partition(PLACEHOLDER)
        gap = "\n" if before.strip() and not before.endswith("\n") else ""
        # The tools appear once, however often the placeholder does: they may be most of the prompt.
        return before + gap + self._manifest(turn) + after.replace(PLACEHOLDER, "")

    def _manifest(self, turn: TurnInfo) -> str:
        return self._written(turn) or render_definitions(turn.tools, format=turn.format)

    def _written(self, turn: TurnInfo, system: str = "") -> str:
        return prompt(turn.tools, format=turn.format, system=system, style=self.style)


@suggests_keywords
@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of an agent, each kind in the order in which they are applied."""

    prompt: tuple[PromptHook, ...] = (ManifestInjector(),)
    response: tuple[ResponseHook, ...] = ()
    invocation: tuple[CallHook, ...] = ()
    result: tuple[ResultHook, ...] = ()
    messages: tuple[MessagesHook, ...] = ()

    def __post_init__(self) -> None:
        """Check that each kind is a collection of plain functions.

        Raises:
            TypeError: it is of another type, or a function is async.
        """
        for name in ("prompt", "response", "invocation", "result", "messages"):
            check_items(name, getattr(self, name), object, "a tuple of functions")
            for hook in getattr(self, name):
                if not callable(hook):
                    raise wrong_type(name, [hook], "a tuple of functions")
                check_not_async(name, hook, "plain functions")

    def change_prompt(self, text: str, turn: TurnInfo) -> str:
        """Pass the system prompt through its hooks."""
        for hook in self.prompt:
            text = _checked("prompt", hook, hook(text, turn), str, "text")
        return text

    def change_messages(self, messages: Sequence[Message], turn: TurnInfo) -> Sequence[Message]:
        """Pass the conversation through its hooks."""
        for hook in self.messages:
            messages = _checked("messages", hook, hook(messages, turn), Sequence, "a sequence of messages")
        return messages

    def change_response(self, response: ParsedResponse, turn: TurnInfo) -> ParsedResponse:
        """Pass an answer through its hooks."""
        for hook in self.response:
            response = _checked("response", hook, hook(response, turn), ParsedResponse, "a ParsedResponse")
        return response

    def change_call(self, call: ToolCall, turn: TurnInfo) -> ToolCall | ToolResult:
        """Pass a call through its hooks, until one of them answers it."""
        for hook in self.invocation:
            kinds = (ToolCall, ToolResult)
            changed = _checked("invocation", hook, hook(call, turn), kinds, "a ToolCall or a ToolResult")
            if isinstance(changed, ToolResult):
                return changed
            call = changed
        return call

    def change_result(self, call: ToolCall, result: ToolResult, turn: TurnInfo) -> ToolResult:
        """Pass a result through its hooks."""
        for hook in self.result:
            result = _checked("result", hook, hook(call, result, turn), ToolResult, "a ToolResult")
        return result


def _checked(name: str, hook: Any, value: _T, kind: type | tuple[type, ...], expected: str) -> _T:
    """Return what a hook returned: one that forgets to return leaves a prompt or a result empty, and says nothing.

    Raises:
        TypeError: it is of another type.
    """
    if not isinstance(value, kind):
        function = getattr(hook, "__qualname__", type(hook).__name__)
        raise wrong_type(f"what the {name} hook {function} returns", value, expected)
    return value

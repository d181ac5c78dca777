"""Examples of calls, as a model should write them in a turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Final

from toolwire.agent.hooks import TurnInfo
from toolwire.agent.recovery import HIDDEN, OFFENCE, Fault
from toolwire.errors import RenderError
from toolwire.messages import Message, ParsedResponse, ToolCall
from toolwire.providers.request import result_texts
from toolwire.text.suggest import closest
from toolwire.wire.format_registry import get_format
from toolwire.wire.prompts import render_calls
from toolwire.wire.renderer import call_example, example_arguments
from toolwire.wire.stream_parser import parse

_FENCED: Final = "json_fence"
NAME_SIMILARITY: Final = 0.7
"""Minimum similarity of an unknown tool name to a tool's, for an example of that tool to be shown."""


def call_examples(turn: TurnInfo) -> Callable[[str], str]:
    """Return a function that shows how to call the tool that a model may have meant; "" if there is none."""
    tools = {tool.name: tool for tool in turn.tools}

    def example(name: str) -> str:
        matches = [name] if name in tools else closest(name, tools, similarity=NAME_SIMILARITY)
        definition = tools[matches[0]] if matches else None if name else next(iter(turn.tools), None)
        if definition is None:
            return ""
        if turn.format:
            return call_example(get_format(turn.format), definition, tools)
        return f"The arguments of {definition.name} look like this: {json.dumps(example_arguments(definition))}"

    return example


def call_text(call: ToolCall, turn: TurnInfo) -> str:
    """Render a call as the model should write it; the format's own example if the call cannot be rendered."""
    try:
        text = render_calls([call], format=turn.format, tools=turn.tools)
    except RenderError:
        text = ""
    tools = {tool.name: tool for tool in turn.tools}
    return text if 0 < len(text) <= 2 * OFFENCE else call_example(get_format(turn.format), tools[call.name], tools)


class FencedCalls:
    """Finds a call that an answer shows in a code fence among prose.

    Small models write calls like this: "I will call the tool:", the call as JSON, and the result they expect. It is
    reported once in a run, since it may be meant as an illustration.
    """

    def __init__(self) -> None:
        self._reported = False

    def faults(self, response: ParsedResponse, turn: TurnInfo, messages: Iterable[Message]) -> list[Fault]:
        """Return the fault that a call in a fence does not run, with the call as the model should write it.

        Args:
            response: the answer.
            turn: the turn to which it belongs.
            messages: the conversation; a call that the answer only quotes from a result in it does not count.
        """
        if self._reported or not turn.format or response.all_calls:
            return []
        results = result_texts(messages)
        calls = parse(response.content, format=_FENCED, tools=turn.tools, results=results).tool_calls
        self._reported = bool(calls)
        return [Fault("malformed", "", f"{HIDDEN} Like this:\n{call_text(calls[0], turn)}")] if calls else []

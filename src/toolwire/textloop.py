"""The loop: ask the model, read its calls, run them, tell it the results, until it calls nothing more.

Definitions stand in the system prompt and results in a user's turn, all as text: any model that takes text will do.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from toolwire.errors import (
    ApprovalRequired,
    DefinitionError,
    InvalidArguments,
    ModelOutputError,
    PolicyError,
    ToolError,
    UnknownTool,
)
from toolwire.events import CallEnd, ContentDelta, Event, Finish, collect
from toolwire.messages import FinishReason, ParsedResponse, ToolCall, ToolResult
from toolwire.prompting import prompt, render_results
from toolwire.reading import StreamParser
from toolwire.schema import validate
from toolwire.tools import Tool, ToolDefinition
from toolwire.wire.registry import get_format
from toolwire.wire.renderer import call_example
from toolwire.wire.results import unframed

SYSTEM = "You answer questions about files that you cannot see. Before you answer, call a tool to look; never guess."
BABBLE = 20
"""Characters of prose after a complete call at which the model is stopped: small ones invent the result there."""

GO_ON = "If these results tell the answer, give it now. If they do not, call another tool; never guess."
LAST_ROUND = "No more tool calls now. Answer the question in plain words, from what you have seen."
REPEATED = "You made exactly this call before, and its result is above. Do something else, or answer now."
EMPTY = "You wrote nothing. Answer the question, or call a tool."


MAX_ERROR = 1_000
"""Characters that a tool's error may add to the conversation."""

FAILURES = (
    *(ToolError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(AssertionError, OSError, RuntimeError),
)
"""What a tool may raise: the model is told, and the loop goes on. Whatever else it raises ends the loop, because it is
no failure of this one call; a tool for which it is turns it into a `ToolError`."""


class Model(Protocol):
    """What the loop needs of a model; `toolwire.local.LocalModel` is one."""

    def stream(self, messages: Sequence[Mapping[str, str]], /) -> Generator[str | Finish]:
        """Yield the answer's text as it is written, then a `Finish`."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened; an `answer` is the end, with what there is of it in `text`."""

    kind: Literal["text", "call", "result", "correction", "answer"]
    round: int
    text: str = ""
    call: ToolCall | None = None
    result: ToolResult | None = None
    reason: Literal["", "answered", "length", "repeated_call", "max_rounds"] = ""


def run(
    question: str,
    *,
    model: Model,
    tools: Sequence[Tool[..., Any]],
    format: str = "forge_xml",
    system: str = SYSTEM,
    max_rounds: int = 6,
) -> Iterator[Step]:
    """Let the model answer a question with tools, step by step; closing the iterator stops the model.

    The tools run without asking, so one that `requires_confirmation` never runs here; nor does an incomplete call. What
    a tool raises of `FAILURES`, or returns that is not JSON, is an error that the model is told. A call that equals an
    earlier one is answered with a reminder the first time, and ends the loop the second time. `max_rounds` is how often
    the model may write.

    Raises:
        ValueError: `max_rounds` is less than 1.
        DefinitionError, RenderError: a tool is async, or the tools cannot be used in this format.
    """
    if max_rounds < 1:
        raise ValueError(f"max_rounds must be at least 1, not {max_rounds}")
    for one in tools:
        if _is_async(one.function):
            raise DefinitionError("is async, and this loop awaits nothing", tool=one.definition.name)
    known = [one.definition for one in tools]
    messages = [
        {"role": "system", "content": prompt(known, format=format, system=system)},
        {"role": "user", "content": question},
    ]
    return _rounds(messages, model, tools, format, max_rounds)


def _rounds(
    messages: list[dict[str, str]], model: Model, tools: Sequence[Tool[..., Any]], format: str, max_rounds: int
) -> Iterator[Step]:
    by_name, known = {one.definition.name: one for one in tools}, [one.definition for one in tools]
    seen, reminded = set[str](), False
    for turn in range(1, max_rounds + 1):
        written, events = "", list[Event]()
        for piece, certain in _listen(model, messages, known, format, turn):
            written += piece
            events += certain
            yield Step("text", turn, piece)
            yield from (Step("call", turn, call=e.call) for e in certain if isinstance(e, CallEnd) and e.complete)
        response = collect(events)
        results, wrong = list[ToolResult](), {call.name for call in response.incomplete}
        for call in response.tool_calls:
            if (repeated := call.fingerprint in seen) and reminded:
                return (yield Step("answer", turn, _said(response, format), reason="repeated_call"))
            reminded = reminded or repeated
            seen.add(call.fingerprint)
            try:
                result = ToolResult(call.id, call.name, _execute(call, by_name, repeated=repeated))
            except (ModelOutputError, PolicyError, ToolError) as error:
                result = ToolResult(call.id, call.name, error=str(error)[:MAX_ERROR])
                wrong |= {call.name} if isinstance(error, InvalidArguments) else set()
            results.append(result)
            yield Step("result", turn, call=call, result=result)
        correction = _correction(response, wrong, known, format)
        if not results and not correction:
            cut = response.finish_reason is FinishReason.LENGTH
            return (yield Step("answer", turn, _said(response, format), reason="length" if cut else "answered"))
        if correction:
            yield Step("correction", turn, correction)
        reply = [render_results(results, format=format)] if results else []
        reply += [correction] if correction else []
        reply += [LAST_ROUND] if turn == max_rounds - 1 else [GO_ON] if results else []
        last = max((at for at, e in enumerate(events) if isinstance(e, CallEnd) and e.complete), default=len(events))
        babble = "".join(e.text for e in events[last:] if isinstance(e, ContentDelta))
        messages.append({"role": "assistant", "content": written.removesuffix(babble)})
        messages.append({"role": "user", "content": "\n\n".join(reply)})
    yield Step("answer", max_rounds, _said(response, format), reason="max_rounds")


def _said(response: ParsedResponse, format: str) -> str:
    """The content without the markers of results: a model that has seen results may write them itself."""
    return unframed(get_format(format), response.content).strip()


def _listen(
    model: Model, messages: list[dict[str, str]], known: list[ToolDefinition], format: str, turn: int
) -> Iterator[tuple[str, list[Event]]]:
    """Pieces of text, each with the events that it made certain."""
    parser = StreamParser(
        format=format if known else "plain", tools=known, fallback=("bare_json", "pythonic"), id_seed=str(turn)
    )
    called, after, cut = False, 0, list[Event]()
    with closing(model.stream(messages)) as stream:
        for piece in stream:
            if isinstance(piece, Finish):
                cut = [piece] if piece.reason is FinishReason.LENGTH else []
                break
            events = list(parser.feed(piece))
            yield piece, events
            called = called or any(isinstance(event, CallEnd) and event.complete for event in events)
            after += sum(len(event.text.strip()) for event in events if called and isinstance(event, ContentDelta))
            if after > BABBLE:
                break
    yield "", [*parser.finish(), *cut]


def _execute(call: ToolCall, tools: Mapping[str, Tool[..., Any]], *, repeated: bool) -> Any:
    """Run a call, or say why not."""
    if repeated:
        raise ModelOutputError(REPEATED)
    if (tool := tools.get(call.name)) is None:
        raise UnknownTool(f"There is no tool {call.name!r}. Available: {', '.join(tools)}.")
    if issues := validate(call.arguments, tool.definition.parameters):
        raise InvalidArguments(f"Wrong arguments: {'; '.join(map(str, issues))}")
    if tool.definition.requires_confirmation:
        raise ApprovalRequired(f"{call.name} did not run: it needs somebody's consent, and nobody can be asked here.")
    return _use(tool, call.arguments)


def _use(tool: Tool[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Run a tool.

    Raises:
        ToolError: it raised one of `FAILURES`, or returned something that is not JSON.
    """
    try:
        value = tool(**arguments)
    except ToolError:
        raise
    except FAILURES as error:
        raise ToolError(f"{type(error).__name__}: {error}".removesuffix(": ")) from error
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        name = tool.definition.name
        raise ToolError(f"{name} returned a {type(value).__name__} that is not JSON: {error}") from error
    return value


def _is_async(function: Any) -> bool:
    called = type(function).__call__
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(kind(one) for kind in kinds for one in (function, called))


def _correction(response: ParsedResponse, wrong: set[str], known: Sequence[ToolDefinition], format: str) -> str:
    """What the model should hear about its answer, with a right call of a tool that it got wrong; "" if all is well."""
    lines = list(dict.fromkeys(problem.message for problem in response.problems))
    if not (lines or response.content.strip() or response.tool_calls):
        return EMPTY
    tools = {definition.name: definition for definition in known}
    for definition in known:
        if definition.name in wrong and (example := call_example(get_format(format), definition, tools)):
            lines += [] if any(example in line for line in lines) else [example]
    return "\n".join(lines)

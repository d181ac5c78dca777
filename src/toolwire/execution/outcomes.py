"""Outcomes of tool calls: results, error messages, and issues that keep a call from running."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal

from toolwire.errors import ToolError
from toolwire.messages import FilePart, ImagePart, TextPart, ToolCall, ToolResult
from toolwire.policy.session import Session
from toolwire.schema.serialization import to_json_value
from toolwire.text.escape import replace_surrogates

MAX_ERROR = 1_000
"""Maximum length of an error message for the model, in characters."""
LOST = "The call ran, and its result was lost; it may or may not have done its work."

Shaping = Callable[[ToolCall, ToolResult], ToolResult]
"""Rewrites the result of a call that ran, for example as an envelope."""

Watching = Callable[[ToolCall], AbstractContextManager[Callable[["Outcome"], None]]]
"""Opens a context in which one call runs; the value of the context is called with the outcome."""


@dataclass(frozen=True, slots=True)
class Issue:
    """A reason that keeps a call from running.

    Attributes:
        kind: the step that failed; only `confirmation` can be resolved, by an approval.
        message: for the model, or for the program.
        untrusted: the message may quote untrusted content.
    """

    kind: Literal["unknown_tool", "invalid_arguments", "denied", "confirmation", "not_runnable"]
    message: str
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call.

    Attributes:
        call: as it ran: repaired, under the tool's own name; unchanged if it did not run.
        result: the result for the model.
        issue: why it did not run; None if it did.
    """

    call: ToolCall
    result: ToolResult
    issue: Issue | None = None


def invalid_arguments(name: str) -> str:
    """Return the beginning of the error of a call whose arguments are not valid."""
    return f"The arguments of {name!r} are not valid:"


def failed_result(call: ToolCall, message: str) -> ToolResult:
    """Return an error result. Tools write some of these messages, so their length and characters are bounded."""
    return ToolResult(call.id, call.name, error=replace_surrogates(message[:MAX_ERROR]))


def refuse(call: ToolCall, issue: Issue, session: Session) -> Outcome:
    """Return the outcome of a call that did not run."""
    # The message goes to the model like a result does, so text of a server in it taints the session like one.
    if issue.untrusted:
        session.untrusted = True
    return Outcome(call, failed_result(call, issue.message), issue)


def build_result(call: ToolCall, value: Any) -> ToolResult:
    """Return the value that a tool returned as a result: a `ToolResult`, parts, a value with a JSON form, or text.

    Parts are an image, a file, or a list of images, files and texts with at least one that is not a plain string. The
    texts of a list become one, with a line break between two; images and files follow it.

    Raises:
        ToolError: the value has no JSON form.
    """
    if isinstance(value, ToolResult):
        # A tool must not answer for another call: the id and the name are always those of the call that ran.
        return replace(value, call_id=call.id, tool_name=call.name, result=_to_json(value.result))
    parts = value if isinstance(value, list | tuple) else (value,) if isinstance(value, _PARTS) else ()
    # A list of plain strings is a JSON value, as it is without parts among them.
    has_parts = bool(parts) and any(isinstance(item, _PARTS) for item in parts)
    if has_parts and all(isinstance(item, str | _PARTS) for item in parts):
        return _result_of_parts(call, parts)
    return ToolResult(call.id, call.name, _to_json(value))


_PARTS = TextPart | ImagePart | FilePart


def _result_of_parts(call: ToolCall, parts: Sequence[str | TextPart | ImagePart | FilePart]) -> ToolResult:
    texts = [part if isinstance(part, str) else part.text for part in parts if isinstance(part, str | TextPart)]
    images = tuple(part for part in parts if isinstance(part, ImagePart))
    files = tuple(part for part in parts if isinstance(part, FilePart))
    return ToolResult(call.id, call.name, "\n".join(texts) if texts else None, images=images, files=files)


_SEQUENCES = (list, tuple)
_SCALARS = frozenset({str, int, float, bool, type(None)})


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value; tuples become lists."""
    # Much faster than `copy.deepcopy`, which looks for cycles. The parser bounds the depth, so recursion is safe.
    if isinstance(value, dict):
        if _SCALARS.issuperset(map(type, value.values())):
            return dict(value)
        return {key: item if type(item) in _SCALARS else copy_json(item) for key, item in value.items()}
    if isinstance(value, _SEQUENCES):
        if _SCALARS.issuperset(map(type, value)):
            return list(value)
        return [item if type(item) in _SCALARS else copy_json(item) for item in value]
    return value


def _to_json(value: Any) -> Any:
    try:
        converted = to_json_value(value)
    except ToolError as error:
        raise ToolError(f"The tool ran, but its result cannot be written as JSON: {error}") from error
    # The tool may keep its value and change it later, for example from a background task; the result must not change.
    return copy_json(converted)

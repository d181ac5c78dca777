"""Assertions about the calls of a run, with messages that list the calls there were."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolwire._surface import check_items, wrong_type
from toolwire.messages import Message, ToolCall
from toolwire.text.suggest import closest, did_you_mean


def calls_in(run: object) -> list[ToolCall]:
    """Return the calls of a run in order, also those that were denied or failed.

    Args:
        run: the end of the run, `RunEnded`, or the messages of a conversation.

    Raises:
        TypeError: it is neither.
    """
    messages = getattr(run, "messages", run)
    # The last event of `run_sync` is typed as any event, so the type is checked here, not by a type checker.
    if isinstance(messages, str) or not isinstance(messages, Iterable):
        raise wrong_type("run", run, "the end of a run, or a list of messages")
    messages = list(messages)
    check_items("run", messages, Message, "the end of a run, or a list of messages")
    return [part for message in messages for part in message.parts if isinstance(part, ToolCall)]


def assert_called(run: object, tool: str, /, *, times: int | None = None, **arguments: object) -> ToolCall:
    """Return the first call of a tool with these arguments; a call may have further arguments.

    Args:
        run: see `calls_in`.
        tool: the tool's name.
        times: the expected number of such calls; None for any number from one on.
        arguments: arguments that the call must have, with equal values. For one named `times`, use `calls_in`.

    Raises:
        AssertionError: there is no such call, or another number of them; the message lists all calls.
    """
    calls = calls_in(run)
    # Only the given arguments are compared: defaults that a model writes out should not break a test.
    matches = [call for call in calls if call.name == tool and arguments.items() <= _Items(call.arguments)]
    if matches and times in (None, len(matches)):
        return matches[0]
    expected = _text(tool, arguments) + ("" if times is None else f" {times} times")
    number = f"there were {len(matches)}" if matches else "there was none"
    raise AssertionError(f"expected a call {expected}; {number}{_hint(tool, calls)}\n{_listed(calls)}")


def assert_not_called(run: object, tool: str, /) -> None:
    """Check that a run did not call a tool.

    Raises:
        AssertionError: there is a call of it; the message lists all calls.
    """
    calls = calls_in(run)
    if any(call.name == tool for call in calls):
        raise AssertionError(f"expected no call of {tool}.\n{_listed(calls)}")


class _Items:
    """The items of a dict, whose values need not be hashable."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __ge__(self, items: Iterable[tuple[str, Any]]) -> bool:
        return all(name in self._values and self._values[name] == value for name, value in items)


def _hint(tool: str, calls: Sequence[ToolCall]) -> str:
    names = {call.name for call in calls}
    return "" if tool in names else did_you_mean(closest(tool, names))


def _listed(calls: Sequence[ToolCall]) -> str:
    lines = [f"  {number}. {_text(call.name, call.arguments)}" for number, call in enumerate(calls, 1)]
    return "\n".join(["The calls of the run:", *lines]) if lines else "The run made no calls."


def _text(name: str, arguments: Mapping[str, object]) -> str:
    listed = ", ".join(
        f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in arguments.items()
    )
    return f"{name}({listed})"

"""Shortening a conversation: the oldest steps are dropped first, and a call is never parted from its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from toolwire.messages import Message, Part, TextPart, ToolCall, ToolResult
from toolwire.text.truncate import truncate

LEFT_OUT = "(Earlier steps are left out here.)"


def trim(messages: Sequence[Message], limit: int, count: Callable[[Message], int]) -> list[Message]:
    """Return the conversation within a limit, or as near to it as possible.

    System messages, the user's first and last message, and the newest steps stay. A step is an answer of the model with
    the results of its calls; it stays or is dropped as a whole. A note marks the place where steps were dropped. If the
    newest step alone is too long, its longest results are truncated.

    Args:
        messages: the conversation.
        limit: maximum size, in the unit of `count`.
        count: returns the size of a message, for example in tokens.
    """
    if sum(map(count, messages)) <= limit:
        return list(messages)
    head, steps = _steps(messages)
    # The last request of the user stays, since everything after it is the work on it.
    last_user = max((at for at, step in enumerate(steps) if step[0].role == "user"), default=-1)
    room = limit - sum(map(count, head)) - (sum(map(count, steps[last_user])) if last_user >= 0 else 0)
    included = {last_user} if last_user >= 0 else set[int]()
    for at in range(len(steps) - 1, -1, -1):
        if at not in included:
            size = sum(map(count, steps[at]))
            if size > room and at < len(steps) - 1:
                break
            room -= size
            included.add(at)
    if room < 0 and steps:
        steps[-1] = _shortened(steps[-1], -room, count)
    shortened, marked = list(head), False
    for at, step in enumerate(steps):
        if at in included:
            shortened += step
        elif not marked:
            shortened.append(Message("user", (TextPart(LEFT_OUT),)))
            marked = True
    return shortened


def _steps(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]]]:
    """Split a conversation into the messages that always stay at its beginning, and its steps."""
    head: list[Message] = []
    at = 0
    while at < len(messages) and messages[at].role == "system":
        head.append(messages[at])
        at += 1
    if at < len(messages) and messages[at].role == "user":
        head.append(messages[at])
        at += 1
    steps: list[list[Message]] = []
    open_calls: set[str] = set()
    for message in messages[at:]:
        answers = {part.call_id for part in message.parts if isinstance(part, ToolResult)}
        if steps and answers & open_calls:
            steps[-1].append(message)
            open_calls -= answers
            continue
        steps.append([message])
        open_calls = {part.id for part in message.parts if isinstance(part, ToolCall)}
    return head, steps


def _shortened(step: list[Message], over: int, count: Callable[[Message], int]) -> list[Message]:
    """Truncate the longest results of a step until it is smaller by `over`, or nothing is left to truncate."""
    parts: dict[int, list[Part]] = {}  # of messages that are changed
    places = [
        (len(part.text), at, place)
        for at, message in enumerate(step)
        for place, part in enumerate(message.parts)
        if isinstance(part, ToolResult)
    ]
    for length, at, place in sorted(places, reverse=True):
        if over <= 0:
            break
        part = step[at].parts[place]
        assert isinstance(part, ToolResult)
        alone = replace(step[at], parts=(part,))  # a message may hold very many results
        before = count(alone)
        share = max(0.0, 1 - over / max(1, before))
        # A little less than its share: the note about what is missing takes some room too.
        keep = int(length * share * 0.9)
        text = truncate(part.text, keep)
        if len(text) >= length:  # and the others are shorter still
            break
        truncated = replace(part, result=text, error=None) if part.success else replace(part, error=text)
        parts.setdefault(at, list(step[at].parts))[place] = truncated
        over -= before - count(replace(alone, parts=(truncated,)))
    return [replace(message, parts=tuple(parts[at])) if at in parts else message for at, message in enumerate(step)]

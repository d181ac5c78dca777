"""A conversation made to fit: the oldest goes first, and a call never parts from its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from toolwire.messages import Message, Part, TextPart, ToolCall, ToolResult
from toolwire.text.truncate import truncate

LEFT_OUT = "(Earlier steps are left out here.)"


def trim(messages: Sequence[Message], limit: int, count: Callable[[Message], int]) -> list[Message]:
    """The conversation within a limit, or as near to it as can be.

    What the system says stays, the first and the last thing that the user said, and the newest steps. A step, which is
    what the model said with the results of its calls, stays or goes as a whole; a note stands where some are gone. If
    the newest step alone is too long, its longest results are cut.

    Args:
        messages: the conversation.
        limit: most that it may count.
        count: what one message counts, in tokens say.
    """
    if sum(map(count, messages)) <= limit:
        return list(messages)
    head, steps = _steps(messages)
    asked = max((at for at, step in enumerate(steps) if step[0].role == "user"), default=-1)
    left = limit - sum(map(count, head)) - (sum(map(count, steps[asked])) if asked >= 0 else 0)
    kept = {asked} if asked >= 0 else set[int]()
    for at in range(len(steps) - 1, -1, -1):
        if at not in kept:
            size = sum(map(count, steps[at]))
            if size > left and at < len(steps) - 1:
                break
            left -= size
            kept.add(at)
    if left < 0 and steps:
        steps[-1] = _shortened(steps[-1], -left, count)
    made, gone = list(head), False
    for at, step in enumerate(steps):
        if at in kept:
            made += step
        elif not gone:
            made.append(Message("user", (TextPart(LEFT_OUT),)))
            gone = True
    return made


def _steps(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]]]:
    """What always stays, and the steps behind it."""
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
    """The step with its longest results cut, until it counts so much less or nothing is left to cut."""
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
        keep = int(length * share * 0.9)
        text = truncate(part.text, keep)
        if len(text) >= length:  # and the others are shorter still
            break
        cut = replace(part, result=text, error=None) if part.success else replace(part, error=text)
        parts.setdefault(at, list(step[at].parts))[place] = cut
        over -= before - count(replace(alone, parts=(cut,)))
    return [replace(one, parts=tuple(parts[at])) if at in parts else one for at, one in enumerate(step)]

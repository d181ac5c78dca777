"""Shortening a conversation: the oldest steps are dropped first, and a call is never parted from its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from toolwire.messages import Message, ParsedResponse, Part, ReasoningPart, TextPart, ToolCall, ToolResult
from toolwire.text.tokens import estimate_message_tokens
from toolwire.text.truncate import truncate
from toolwire.wire.format_registry import get_format
from toolwire.wire.result_text import unframed

LEFT_OUT = "(Earlier steps are left out here.)"
BRIEF = 400
"""Maximum length of an old result that is truncated to make room, in characters."""


def conversation_tokens(messages: Iterable[Message]) -> int:
    """Return about how many tokens there are in a conversation."""
    return sum(map(estimate_message_tokens, messages))


@dataclass(frozen=True, slots=True)
class ShortenedConversation:
    """A conversation, with what was done to shorten it.

    Attributes:
        messages: the conversation.
        left_out: number of messages that are missing.
        shortened: number of results of calls that are truncated.
    """

    messages: list[Message]
    left_out: int = 0
    shortened: int = 0


def trim(messages: Sequence[Message], limit: int, count: Callable[[Message], int]) -> ShortenedConversation:
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
        return ShortenedConversation(list(messages))
    head, steps = split_steps(messages)
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
    truncated = 0
    if room < 0 and steps:
        steps[-1], truncated = _shortened(steps[-1], -room, count)
    shortened, marked = list(head), False
    for at, step in enumerate(steps):
        if at in included:
            shortened += step
        elif not marked:
            shortened.append(Message("user", (TextPart(LEFT_OUT),)))
            marked = True
    left_out = sum(len(step) for at, step in enumerate(steps) if at not in included)
    return ShortenedConversation(shortened, left_out, truncated)


def shorten_old_results(
    messages: Sequence[Message], limit: int, count: Callable[[Message], int], *, keep: int
) -> ShortenedConversation:
    """Return the conversation with old results truncated, the oldest first, until it is within a limit.

    Args:
        messages: the conversation.
        limit: maximum size, in the unit of `count`.
        count: returns the size of a message.
        keep: number of the newest steps whose results stay whole.
    """
    head, steps = split_steps(messages)
    over = sum(map(count, messages)) - limit
    shortened, truncated = list(head), 0
    for at, step in enumerate(steps):
        for message in step:
            changed = message
            if over > 0 and at < len(steps) - keep:
                changed = replace(message, parts=tuple(map(_brief, message.parts)))
                truncated += sum(new is not old for new, old in zip(changed.parts, message.parts, strict=True))
                over -= count(message) - count(changed)
            shortened.append(changed)
    return ShortenedConversation(shortened, 0, truncated)


def _brief(part: Part) -> Part:
    if not isinstance(part, ToolResult) or len(part.text) <= 2 * BRIEF:  # little to gain, or truncated before
        return part
    text = truncate(part.text, BRIEF)
    return replace(part, result=text, error=None) if part.success else replace(part, error=text)


def split_steps(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]]]:
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


def _shortened(step: list[Message], over: int, count: Callable[[Message], int]) -> tuple[list[Message], int]:
    """Truncate the longest results of a step until it is smaller by `over`, or nothing is left to truncate.

    Returns:
        The step, and the number of results that were truncated.
    """
    parts: dict[int, list[Part]] = {}  # of messages that are changed
    changed = 0
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
        changed += 1
        parts.setdefault(at, list(step[at].parts))[place] = truncated
        over -= before - count(replace(alone, parts=(truncated,)))
    step = [replace(message, parts=tuple(parts[at])) if at in parts else message for at, message in enumerate(step)]
    return step, changed


def answer_text(response: ParsedResponse, format: str) -> str:
    """Return the prose of an answer without result markers: a model that has read some may write them itself.

    Args:
        response: the answer.
        format: the wire format in which the model was asked to write; "" for none.
    """
    return (unframed(get_format(format), response.content) if format else response.content).strip()


def first_calls(response: ParsedResponse, maximum: int | None) -> ParsedResponse:
    """Return an answer with its first calls alone; the same object if it has no others, or if there is no maximum."""
    if maximum is None or len(response.all_calls) <= maximum:
        return response
    dropped = {id(call) for call in response.all_calls[maximum:]}
    return replace(
        response,
        tool_calls=tuple(call for call in response.tool_calls if id(call) not in dropped),
        parts=tuple(part for part in response.parts if id(part) not in dropped),
    )


def answer_parts(response: ParsedResponse, text: str, *, written: bool) -> tuple[Part, ...]:
    """Return the parts of an answer as the conversation contains them.

    Args:
        response: the answer.
        text: its prose.
        written: whether the model writes its calls as text.
    """
    parts: list[Part] = []
    if response.parts and response.all_calls:
        last = max((at for at, part in enumerate(response.parts) if isinstance(part, ToolCall)), default=-1)
        # Text that a text-only model writes behind its calls is invented: it has not seen the results.
        parts = list(response.parts[: last + 1] if written else response.parts)
    elif text or response.parts:
        parts = [part for part in response.parts if not isinstance(part, TextPart)]
        parts += [TextPart(text)] if text else []
    # By identity: two calls of one answer may be equal, and both have a result.
    included = {id(part) for part in parts if isinstance(part, ToolCall)}
    parts += [call for call in response.all_calls if id(call) not in included]
    return tuple(parts)


def turn_messages(
    parts: Sequence[Part], calls: Sequence[ToolCall], results: Sequence[ToolResult], *, answering: int | None = None
) -> Iterator[Message]:
    """Yield the messages of a turn: the model's answer, and the results of its calls.

    A call that gives the model's answer is text in the conversation, as if the model had written it: a later
    run may not have the tool.

    Args:
        parts: the parts of the answer.
        calls: its calls.
        results: their results, in the same order.
        answering: the place of the call whose result is the answer to the user; None if there is none.
    """
    last: tuple[Part, ...] = ()
    if answering is not None:
        parts = list(_without_call(parts, calls[answering]))
        text = results[answering].text
        last = (TextPart(text),) if text.strip() else ()
        results = [*results[:answering], *results[answering + 1 :]]
    if not results:
        parts, last = (*parts, *last), ()
    if parts:
        yield Message("assistant", parts)
    if results:
        yield Message("tool", tuple(results))
    if last:
        yield Message("assistant", last)


def _without_call(parts: Sequence[Part], call: ToolCall) -> Iterator[Part]:
    for part, following in zip_longest(parts, parts[1:]):
        # Reasoning without text is a signature of the part that follows it.
        is_signature = isinstance(part, ReasoningPart) and not part.text and following is call
        is_blank = isinstance(part, TextPart) and not part.text.strip()  # models write it before a call
        if not (part is call or is_signature or is_blank):
            yield part


def called_tools(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the names of the tools that were called."""
    return (part.name for message in messages for part in message.parts if isinstance(part, ToolCall))

"""Requests that are too long for a model's context, as the messages of providers' errors report them."""

from __future__ import annotations

import re
from dataclasses import dataclass

CODE = "context_length_exceeded"
"""The code of OpenAI's errors about such requests."""
STATUSES = (400, 413, 422, 500)
"""HTTP statuses with which providers report such requests."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """The sizes of a request that does not fit into a model's context, in tokens; 0 for an unknown one.

    Attributes:
        requested: the tokens of the prompt.
        limit: the model's limit.
        output: the tokens that were asked for as an answer; 0 if the prompt alone is too long.
    """

    requested: int = 0
    limit: int = 0
    output: int = 0

    def for_anthropic(self) -> str:
        """Return the words by which clients of Anthropic recognise an overflow, and shorten the conversation."""
        if self.output and self.requested <= self.limit:
            return (
                f"input length and `max_tokens` exceed context limit: {self.requested} + {self.output} > {self.limit}, "
                "decrease input length or `max_tokens` and try again"
            )
        limit = self.limit or max(self.requested - 1, 0)
        return f"prompt is too long: {max(self.requested, limit + 1)} tokens > {limit} maximum"


_OVERFLOW = re.compile(
    rf"{CODE}|context (?:length|window|limit|size)|prompt is too long|input is too long|too many (?:input )?tokens"
    r"|(?:input|prompt) length|length of the (?:messages|prompt|input)|inputs?\W{1,3}tokens|exceeds? the .{0,40}token",
    re.IGNORECASE,
)
_OF_ANSWERS = re.compile(
    r"max_?(?:completion_?|output_?|new_?)?tokens|(?:output|completion|budget)[ _]tokens?", re.IGNORECASE
)
_OF_PROMPTS = re.compile(r"prompt|input|context|messages", re.IGNORECASE)
"""Finds the side of a request that a shorter conversation makes shorter; a limit on answers remains as it is."""
_RATE = re.compile(r"rate limit|quota|throttl|\bwait\b|\bper (?:second|min|minute|hour|day)\b", re.IGNORECASE)
"""Finds the limits that are about time: the same request may succeed later."""
_IN_ANTHROPIC_WORDS = re.compile(
    r"prompt is too long: (?P<prompt>\d+) tokens > (?P<most>\d+) maximum"
    r"|exceed context limit: (?P<requested>\d+) \+ (?P<output>\d+) > (?P<limit>\d+)",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"""(?:maximum|max|limit|context(?:\ length|\ window|\ size)?)\D{0,40}?(?:is|of|>|=|:|\()?\s*(?P<behind>\d{3,9})
      | (?P<before>\d{3,9})\ (?:tokens\ )?max(?:imum)?""",
    re.IGNORECASE | re.VERBOSE,
)
_ANSWER_TOO_LARGE = re.compile(
    r"too large: (?P<output>\d{1,9})\b.{0,80}?context length is (?P<limit>\d{1,9})\b.{0,80}? (?P<prompt>\d{1,9}) input",
    re.IGNORECASE | re.DOTALL,
)
"""Finds the sizes in the message of vLLM for an answer that does not fit behind the prompt."""
_PARTS = re.compile(r"(\d{2,9}) (?:in|of) the (?:messages|input|prompt)\D{1,20}(\d{1,9}) in the completion")
_REQUESTED = re.compile(
    r"(?:requested|resulted in|contains|has|too long:?|length|request|prompt)\D{0,24}?(\d{3,9})\s*(?:input )?tokens",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"\d{3,9}")


def overflow_in(message: str) -> Overflow | None:
    """Return the sizes that a backend's error names; None if the error is not about the length of the context."""
    if not _OVERFLOW.search(message):
        return None
    if CODE not in message and (
        _RATE.search(message) or (_OF_ANSWERS.search(message) and not _OF_PROMPTS.search(message))
    ):
        return None
    if (sizes := _IN_ANTHROPIC_WORDS.search(message)) is not None:
        if sizes["prompt"]:
            return Overflow(int(sizes["prompt"]), int(sizes["most"]))
        return Overflow(int(sizes["requested"]), int(sizes["limit"]), int(sizes["output"]))
    if (sizes := _ANSWER_TOO_LARGE.search(message)) is not None:
        return Overflow(int(sizes["prompt"]), int(sizes["limit"]), int(sizes["output"]))
    plain = message.replace(",", "").replace("_", " ")
    parts, limit, requested = _PARTS.search(plain), _LIMIT.search(plain), _REQUESTED.search(plain)
    size = int(limit["behind"] or limit["before"]) if limit else 0
    if parts is not None:
        return Overflow(int(parts[1]), size, int(parts[2]))
    if requested is not None and int(requested[1]) != size:
        return Overflow(int(requested[1]), size)
    numbers = [int(number) for number in _NUMBERS.findall(plain) if int(number) != size]
    return Overflow(max(numbers, default=0), size)


def anthropic_words(message: str) -> str:
    """Return the message of an error about an overflow in the words that clients of Anthropic recognise."""
    return (overflow_in(message) or Overflow()).for_anthropic()


def recognisable(message: str) -> str:
    """Return the message of an error about an overflow, with OpenAI's code where nothing else in it says so.

    Not every API has a member for the kind of an error.
    """
    return message if overflow_in(message) is not None else f"{CODE}: {message}"
